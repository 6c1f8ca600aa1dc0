//! Examples of maps: four keys in ten cells of eight bits.

use crate::Result;
use crate::trace::{Row, Step, Touch, and};
use umbel::bloomier::textbook::{Element, Match, fill, lookup, match_in_rounds};

const CELLS: usize = 10;
const NAMES: [&str; 4] = ["A", "B", "C", "D"];

/// The four keys of Honoroff 2006.
pub fn elements() -> Vec<Element> {
    let of = |(value, mask, neighbours): (u64, u64, [usize; 4])| Element {
        neighbours: neighbours.to_vec(),
        mask,
        value,
    };
    [
        (0x11, 0x54, [1, 3, 6, 7]),
        (0x22, 0xeb, [1, 3, 8, 9]),
        (0x44, 0x07, [1, 6, 8, 9]),
        (0x88, 0x2c, [2, 3, 8, 7]),
    ]
    .map(of)
    .to_vec()
}

/// Returns the order in which cells can be set, which exists for these keys.
fn order(elements: &[Element]) -> Vec<Match> {
    match_in_rounds(elements, CELLS).unwrap_or_default()
}

fn hex(value: &u64) -> String {
    format!("{value:02x}")
}

fn table(label: &str, cells: &[u64]) -> Row {
    Row::new(label, cells.iter().map(hex))
}

/// Introduces the keys, their values, masks and cells.
fn given(label: &str, elements: &[Element]) -> Step {
    let keys: Vec<String> = NAMES
        .iter()
        .zip(elements)
        .map(|(name, Element { neighbours, mask, value })| {
            format!("{name} with value {value:02x}, mask {mask:02x}, cells {}", and(neighbours))
        })
        .collect();
    Step::new(
        format!("Four keys: {}. All numbers but positions are hexadecimal.", keys.join("; ")),
        vec![table(label, &[0; CELLS])],
    )
}

/// Removes keys round by round: in each round those that have a cell to themselves.
fn rounds(elements: &[Element], order: &[Match]) -> Vec<Step> {
    let mut left: Vec<Match> = order.to_vec();
    let mut steps = Vec::new();
    while !left.is_empty() {
        let mut degree = vec![0; CELLS];
        let neighbours = left.iter().flat_map(|matched| &elements[matched.element].neighbours);
        neighbours.for_each(|cell| degree[*cell] += 1);
        let (taken, rest): (Vec<Match>, Vec<Match>) =
            left.iter().partition(|matched| degree[matched.cell] == 1);
        let mut row = Row::new("uses", &degree);
        let mut sorted = left.clone();
        sorted.sort_unstable_by_key(|matched| matched.element);
        for cell in &mut row.cells {
            let position = cell.head.parse().unwrap_or(CELLS);
            let mine =
                sorted.iter().filter(|matched| elements[matched.element].neighbours.contains(&position));
            cell.keys = mine.map(|matched| NAMES[matched.element]).collect();
        }
        taken.iter().for_each(|matched| row.mark(matched.cell, Touch::Set, NAMES[matched.element]));
        let matches: Vec<String> = taken
            .iter()
            .map(|matched| format!("{} gets cell {}", NAMES[matched.element], matched.cell))
            .collect();
        steps.push(Step::new(
            format!(
                "Round {}: the number of remaining keys that use each cell. A key that is alone in \
                 a cell is removed: {}.",
                steps.len() + 1,
                and(&matches)
            ),
            vec![row],
        ));
        left = rest;
    }
    steps
}

/// Sets the cells in an order in which no cell that a key relies on changes later.
fn filling(
    label: &str,
    elements: &[Element],
    order: &[Match],
    encode: impl Fn(&Element, &Match) -> u64,
) -> Vec<Step> {
    let step = |done: usize| {
        let (before, after) =
            (fill(elements, &order[..done], CELLS, &encode), fill(elements, &order[..=done], CELLS, &encode));
        let (matched, element) = (&order[done], &elements[order[done].element]);
        let mut row = table(label, &after).after(before.iter().map(hex));
        let others = || element.neighbours.iter().filter(|cell| **cell != matched.cell);
        others().for_each(|cell| row.mark(*cell, Touch::Found, "xor"));
        row.mark(matched.cell, Touch::Set, "set");
        let read: String = others()
            .filter(|cell| before[**cell] > 0)
            .map(|cell| format!(" ^ {:02x}", before[*cell]))
            .collect();
        Step::new(
            format!(
                "{}: cell {} becomes {:02x} ^ {:02x}{read} = {:02x}, so its mask and its cells give {:02x}.",
                NAMES[matched.element],
                matched.cell,
                encode(element, matched),
                element.mask,
                after[matched.cell],
                encode(element, matched),
            ),
            vec![row],
        )
    };
    (0..order.len()).map(step).collect()
}

/// Returns the sum that a lookup of a key computes.
fn sum(cells: &[u64], element: &Element) -> String {
    let terms: String = element.neighbours.iter().map(|cell| format!(" ^ {:02x}", cells[*cell])).collect();
    format!("{:02x}{terms} = {:02x}", element.mask, lookup(cells, element))
}

/// Returns the table with the cells of a key marked.
fn asked(label: &str, cells: &[u64], element: &Element) -> Row {
    let mut row = table(label, cells);
    element.neighbours.iter().for_each(|cell| row.mark(*cell, Touch::Found, "xor"));
    row
}

pub fn build() -> Result<Vec<Step>> {
    let elements = elements();
    let order = order(&elements);
    let mut steps = vec![given("table", &elements)];
    steps.extend(rounds(&elements, &order));
    steps.extend(filling("table", &elements, &order, |element, _| element.value));
    let table = fill(&elements, &order, CELLS, |element, _| element.value);
    for (name, element) in NAMES.iter().zip(&elements) {
        steps.push(Step::new(
            format!("Ask for {name}: {}, its value.", sum(&table, element)),
            vec![asked("table", &table, element)],
        ));
    }
    let stranger = Element { neighbours: vec![0, 3, 5, 7], mask: 0x2b, value: 0 };
    steps.push(Step::new(
        format!(
            "Ask for y, a stranger with mask 2b and cells 0, 3, 5 and 7, which are ours: {}, which \
             is not one of the four values, so y has none. One stranger in 64 finds a value by \
             chance.",
            sum(&table, &stranger)
        ),
        vec![asked("table", &table, &stranger)],
    ));
    Ok(steps)
}

pub fn mutable() -> Result<Vec<Step>> {
    let mut elements = elements();
    let order = order(&elements);
    let mut steps = vec![given("table 1", &elements)];
    let places = |elements: &[Element]| -> Vec<String> {
        let mut places: Vec<&Match> = order.iter().collect();
        places.sort_unstable_by_key(|matched| matched.element);
        places
            .iter()
            .map(|matched| format!("{}{}", NAMES[matched.element], matched.place(elements)))
            .collect()
    };
    steps.push(Step::new(
        format!(
            "The cells are found as before. The first table only says which of its cells is a \
             key's own, counted from 1: {}.",
            and(&places(&elements))
        ),
        Vec::new(),
    ));
    steps.extend(filling("table 1", &elements, &order, |_, matched| matched.place(&elements)));
    let first = fill(&elements, &order, CELLS, |_, matched| matched.place(&elements));
    let mut second = vec![0; CELLS];
    order.iter().for_each(|matched| second[matched.cell] = elements[matched.element].value);
    let mut row = table("table 2", &second).after([0; CELLS].iter().map(hex));
    order.iter().for_each(|matched| row.mark(matched.cell, Touch::Set, NAMES[matched.element]));
    steps.push(Step::new("The second table has the value of each key in its own cell.", vec![row]));
    let place = lookup(&first, &elements[2]);
    let cell = elements[2].neighbours[place as usize - 1];
    let before = second.clone();
    (elements[2].value, second[cell]) = (0x99, 0x99);
    let mut row = table("table 2", &second).after(before.iter().map(hex));
    row.mark(cell, Touch::Set, "set");
    steps.push(Step::new(
        format!(
            "Change the value of C to 99, which is ours: {}, so its own cell is number {place} of \
             1, 6, 8 and 9. Cell {cell} of the second table changes; it is not the own cell of any \
             other key.",
            sum(&first, &elements[2])
        ),
        vec![asked("table 1", &first, &elements[2]), row],
    ));
    Ok(steps)
}

pub fn mask() -> Result<Vec<Step>> {
    let mut cells = vec![0; CELLS];
    (1..).zip([2, 3, 6, 7]).for_each(|(value, cell)| cells[cell] = value);
    let stranger = Element { neighbours: vec![1, 4, 5, 9], mask: 0, value: 0 };
    let masked = Element { mask: 0x5a, ..stranger.clone() };
    Ok(vec![
        Step::new(
            "A map with the values 0 to 4 and without masks. Most cells are 0.",
            vec![table("table", &cells)],
        ),
        Step::new(
            format!(
                "Ask for y, a stranger, at 1, 4, 5 and 9: {}, a value: a false positive.",
                sum(&cells, &stranger)
            ),
            vec![asked("table", &cells, &stranger)],
        ),
        Step::new(
            format!(
                "The same with a mask, say 5a: {}, which is not a value. Masks do not prevent \
                 false positives, but make them equally rare for every stranger: 5 in 256 here.",
                sum(&cells, &masked)
            ),
            vec![asked("table", &cells, &masked)],
        ),
    ])
}
