//! The construction as it was published: in rounds, over explicitly given neighbourhoods and masks.
//! It is for worked examples and for teaching. The maps themselves solve the same equations in
//! linear time.
//!
//! ```
//! use umbel::bloomier::textbook::{Element, lookup, match_in_rounds, fill};
//! // Two keys that share the cells 1 and 2, and have one cell each to themselves.
//! let elements = [
//!     Element { neighbours: vec![0, 1, 2], mask: 0x5a, value: 1 },
//!     Element { neighbours: vec![1, 2, 3], mask: 0x33, value: 2 },
//! ];
//! let order = match_in_rounds(&elements, 4).expect("each has a cell of its own");
//! let table = fill(&elements, &order, 4, |element, _| element.value);
//! assert!(elements.iter().all(|element| lookup(&table, element) == element.value));
//! ```
//!
//! # References
//!
//! * B. Chazelle, J. Kilian, R. Rubinfeld and A. Tal. *The Bloomier filter: an efficient data
//!   structure for static support lookup tables.* SODA 2004. `CKRT04`
//! * J. Honoroff. *An Examination of Bloom Filters and their Applications.* Lecture slides, 2006.
//!   `Honoroff06`

/// A key as the construction sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// The neighbourhood N(t): distinct cells.
    pub neighbours: Vec<usize>,
    /// The mask M(t).
    pub mask: u64,
    /// The encoded value f(t).
    pub value: u64,
}

/// An element and the cell that was assigned to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The index of the element.
    pub element: usize,
    /// Its cell τ(t), which is in the neighbourhood of no element earlier in the order.
    pub cell: usize,
}

impl Match {
    /// Returns ι(t): the index of the cell among the element's neighbours, counted from 1.
    pub fn place(&self, elements: &[Element]) -> u64 {
        let neighbours = elements.get(self.element).map_or(&[][..], |element| &element.neighbours);
        neighbours.iter().position(|cell| *cell == self.cell).map_or(0, |i| i as u64 + 1)
    }
}

/// Returns the elements in the order Π in which their cells can be set, each with its cell.
/// Elements that are removed in one round come before all that were removed in earlier rounds.
/// Returns `None` if there is no such order, or if a neighbour is outside the table.
pub fn match_in_rounds(elements: &[Element], cells: usize) -> Option<Vec<Match>> {
    if elements.iter().flat_map(|element| &element.neighbours).any(|cell| *cell >= cells) {
        return None;
    }
    let mut order = Vec::new();
    let mut left: Vec<usize> = (0..elements.len()).collect();
    while !left.is_empty() {
        let mut degree = vec![0; cells];
        left.iter().flat_map(|element| &elements[*element].neighbours).for_each(|cell| degree[*cell] += 1);
        let singleton = |element: usize| {
            let mine = elements[element].neighbours.iter().copied().filter(|cell| degree[*cell] == 1);
            mine.min().map(|cell| Match { element, cell })
        };
        let mut round: Vec<Match> = left.iter().filter_map(|element| singleton(*element)).collect();
        if round.is_empty() {
            return None;
        }
        left.retain(|element| singleton(*element).is_none());
        round.append(&mut order);
        order = round;
    }
    Some(order)
}

/// Fills the table so that each element decodes to `encode(element, match)`: its value, or, for a
/// map with mutable values, the [place](Match::place) of its cell.
pub fn fill(
    elements: &[Element],
    order: &[Match],
    cells: usize,
    encode: impl Fn(&Element, &Match) -> u64,
) -> Vec<u64> {
    let mut table = vec![0; cells];
    for matched in order {
        let Some(element) = elements.get(matched.element) else { continue };
        // The element's own cell is among those that are read, but it still holds 0.
        let value = encode(element, matched) ^ lookup(&table, element);
        if let Some(cell) = table.get_mut(matched.cell) {
            *cell = value;
        }
    }
    table
}

/// Decodes an element: the xor of its mask and all cells of its neighbourhood. Neighbours outside
/// the table count as 0.
pub fn lookup(table: &[u64], element: &Element) -> u64 {
    element.neighbours.iter().filter_map(|cell| table.get(*cell)).fold(element.mask, |sum, cell| sum ^ cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four keys with four neighbours each among ten cells of eight bits.
    fn example() -> Vec<Element> {
        [
            (0x11, 0x54, [1, 3, 6, 7]),
            (0x22, 0xeb, [1, 3, 8, 9]),
            (0x44, 0x07, [1, 6, 8, 9]),
            (0x88, 0x2c, [2, 3, 8, 7]),
        ]
        .map(|(value, mask, neighbours)| Element { neighbours: neighbours.to_vec(), mask, value })
        .to_vec()
    }

    fn cells(set: &[(usize, u64)]) -> Vec<u64> {
        let mut table = vec![0; 10];
        set.iter().for_each(|(cell, value)| table[*cell] = *value);
        table
    }

    #[test]
    fn the_worked_example_of_an_immutable_map_is_reproduced_exactly() {
        let elements = example();
        let order = match_in_rounds(&elements, 10).unwrap();
        // B and C first, then A, then D.
        let expected = [(1, 3), (2, 6), (0, 7), (3, 2)].map(|(element, cell)| Match { element, cell });
        assert_eq!(order, expected);
        let table = fill(&elements, &order, 10, |element, _| element.value);
        assert_eq!(table, cells(&[(3, 0xc9), (6, 0x43), (7, 0xcf), (2, 0xa2)]));
        assert!(elements.iter().all(|element| lookup(&table, element) == element.value));
    }

    #[test]
    fn the_worked_example_of_a_mutable_map_is_reproduced_exactly() {
        let elements = example();
        let order = match_in_rounds(&elements, 10).unwrap();
        let mut places: Vec<(usize, u64)> = order.iter().map(|m| (m.element, m.place(&elements))).collect();
        places.sort_unstable();
        assert_eq!(places, [(0, 4), (1, 2), (2, 2), (3, 1)]);
        let first = fill(&elements, &order, 10, |_, matched| matched.place(&elements));
        assert_eq!(first, cells(&[(3, 0xe9), (6, 0x05), (7, 0xbc), (2, 0x78)]));
        let mut second = vec![0; 10];
        order.iter().for_each(|matched| second[matched.cell] = elements[matched.element].value);
        assert_eq!(second, cells(&[(3, 0x22), (6, 0x44), (7, 0x11), (2, 0x88)]));
        // Setting a value affects no other key.
        let place = lookup(&first, &elements[2]) as usize;
        second[elements[2].neighbours[place - 1]] = 0x99;
        for (element, value) in elements.iter().zip([0x11, 0x22, 0x99, 0x88]) {
            let place = lookup(&first, element) as usize;
            assert_eq!(second[element.neighbours[place - 1]], value);
        }
    }

    #[test]
    fn without_a_mask_a_key_whose_cells_are_empty_gets_a_value() {
        let table = cells(&[(2, 1), (3, 2), (6, 3), (7, 4)]);
        let stranger = Element { neighbours: vec![1, 4, 5, 9], mask: 0, value: 0 };
        assert!(lookup(&table, &stranger) < 5, "0 is among the values 0 to 4");
        assert!(lookup(&table, &Element { mask: 0x5a, ..stranger }) >= 5);
    }

    #[test]
    fn elements_with_the_same_neighbours_cannot_be_matched() {
        let same = Element { neighbours: vec![0, 1, 2], mask: 1, value: 1 };
        assert_eq!(match_in_rounds(&[same.clone(), same.clone()], 3), None);
        assert_eq!(match_in_rounds(std::slice::from_ref(&same), 2), None, "a neighbour outside the table");
        assert_eq!(lookup(&[7, 8], &same), 1 ^ 7 ^ 8);
    }
}
