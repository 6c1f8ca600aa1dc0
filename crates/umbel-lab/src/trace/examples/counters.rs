//! Examples of filters with counters.

use super::bits::{X0, X1};
use crate::Result;
use crate::trace::cells::Cells;
use crate::trace::{Row, Step, Touch, and};
use umbel::variable_increment;

/// Returns an amount of one for each position.
fn ones(positions: &[usize]) -> Vec<(usize, u64)> {
    positions.iter().map(|position| (*position, 1)).collect()
}

fn insert(counters: &mut Cells, key: &str, positions: &[usize]) -> Step {
    let row = counters.add(key, &ones(positions));
    Step::new(format!("Insert {key}: the counters {} go up by 1.", and(positions)), vec![row])
}

fn remove(counters: &mut Cells, key: &str, positions: &[usize]) -> Step {
    let row = counters.subtract(key, &ones(positions));
    Step::new(format!("Remove {key}: the counters {} go down by 1.", and(positions)), vec![row])
}

pub fn counting() -> Result<Vec<Step>> {
    let mut counters = Cells::new("counters", 10);
    let start = "Ten counters and two hash functions. x has the third and the ninth counter, y the \
                 third too; the other positions are ours.";
    let (x, y, z) = ([2, 8], [2, 5], [5, 6]);
    let mut steps = vec![
        Step::new(start, vec![counters.row()]),
        insert(&mut counters, "x", &x),
        insert(&mut counters, "y", &y),
        remove(&mut counters, "x", &x),
        counters.query("y", &y),
        counters.query("x", &x),
    ];
    let mut refused = counters.row();
    z.iter().for_each(|position| match counters.values()[*position] {
        0 => refused.mark(*position, Touch::Refused, "NO"),
        _ => refused.mark(*position, Touch::Found, "yes"),
    });
    steps.push(Step::new(
        "Remove z, which was never inserted: refused, since its counter 6 is 0. All counters are \
         checked before the first is changed, so counter 5 does not change, and y stays a member.",
        vec![refused],
    ));
    Ok(steps)
}

pub fn deletion() -> Result<Vec<Step>> {
    let mut counters = Cells::new("counters", 10);
    Ok(vec![
        Step::new("Ten counters, all 0, and the keys of the first example.", vec![counters.row()]),
        insert(&mut counters, "x0", &X0),
        insert(&mut counters, "x1", &X1),
        remove(&mut counters, "x0", &X0),
        counters.query("x1", &X1),
    ])
}

/// The largest value of a counter of four bits.
const MAX_COUNT: u64 = 15;

pub fn overflow() -> Result<Vec<Step>> {
    let mut counters = Cells::new("counters", 10);
    counters.join("x0");
    let up = |count: u64| (count + 1).min(MAX_COUNT);
    let start = Step::new("Ten counters of four bits, which hold at most 15.", vec![counters.row()]);
    let fifteen = Step::new(
        "Insert x0 fifteen times: its counters are as high as they go.",
        vec![times(&mut counters, 15, "+15", up)],
    );
    let once = Step::new(
        "Insert x0 once more: they stay where they are, and the sixteenth copy is not counted.",
        vec![times(&mut counters, 1, "+0", up)],
    );
    let mut kept = counters.clone();
    let removed = Step::new(
        "Remove it fifteen times, each time by 1: one copy should be left, but the counters are 0.",
        vec![times(&mut counters, 15, "-15", |count| count - 1)],
    );
    let lost = counters.query("x0", &X0);
    // A counter that may have missed an insertion is never changed again.
    let stuck = times(&mut kept, 15, "-0", |count| if count == MAX_COUNT { count } else { count - 1 });
    let stuck = Step::new(
        "The same fifteen removals where a full counter never changes again, as in practical \
         filters: nothing changes.",
        vec![stuck],
    );
    Ok(vec![start, fifteen, once, removed, lost, stuck, kept.query("x0", &X0)])
}

/// Applies a number of insertions or removals of x0 at once.
fn times(counters: &mut Cells, copies: usize, text: &str, next: fn(u64) -> u64) -> Row {
    let last = |count: u64| (0..copies).fold(count, |count, _| next(count));
    let changes = X0.map(|at| (at, last(counters.values()[at]), text.to_string()));
    counters.change("x0", &changes)
}

pub fn variable_increment() -> Result<Vec<Step>> {
    let (mut counters, sums) = (Cells::new("counters", 10), Sums::new(&[8, 12, 14, 15])?);
    let start = "Ten counters; a second hash selects the amount that a key adds: 8, 12, 14 or 15. \
                 x and y share the sixth counter, z has the sixth and the last; the other \
                 positions are ours.";
    let z = [(5, 14), (9, 12)];
    let mut steps = vec![
        Step::new(start, vec![counters.row()]),
        add(&mut counters, "x", &[(5, 8), (1, 14)]),
        add(&mut counters, "y", &[(5, 12), (3, 8)]),
        sums.query(&counters, "z", &z),
        add(&mut counters, "w", &[(9, 12), (7, 15)]),
        sums.query(&counters, "z", &z),
    ];
    steps.push(Step::new(
        "Which amounts may be part of 20, 24 or 28? 24 is 12 + 12 or 8 + 8 + 8, and 28 is 14 + 14 \
         or 8 + 8 + 12: the amounts cannot always be read off the sum; here only 15 is certainly \
         not among them.",
        [20, 24, 28].map(|total| sums.row(total)).into(),
    ));
    let range = Sums::new(&[4, 5, 6, 7])?;
    steps.push(Step::new(
        "With 4, 5, 6 and 7 instead: a counter of 9 is 4 + 5, which excludes 6 and 7; a counter of \
         5 can only be a 5.",
        [9, 5].map(|total| range.row(total)).into(),
    ));
    Ok(steps)
}

fn add(counters: &mut Cells, key: &str, amounts: &[(usize, u64)]) -> Step {
    let parts: Vec<String> =
        amounts.iter().map(|(position, by)| format!("{by} to counter {position}")).collect();
    Step::new(format!("Insert {key}: it adds {}.", and(&parts)), vec![counters.add(key, amounts)])
}

/// The sums that increments can have.
struct Sums {
    increments: Vec<u32>,
    /// The numbers that are not sums of increments.
    gaps: Vec<u32>,
}

impl Sums {
    fn new(increments: &[u32]) -> Result<Sums> {
        let gaps = variable_increment::gaps(increments)?.unwrap_or_default();
        Ok(Sums { increments: increments.to_vec(), gaps })
    }

    /// Returns whether a counter with this total may contain an increment.
    fn allows(&self, total: u64, increment: u64) -> bool {
        let rest = total.checked_sub(increment);
        rest.is_some_and(|rest| !self.gaps.iter().any(|gap| u64::from(*gap) == rest))
    }

    fn query(&self, counters: &Cells, key: &str, amounts: &[(usize, u64)]) -> Step {
        let reason = |position: usize, by: u64| match counters.values()[position] {
            0 => Some("holds 0".to_string()),
            total if self.allows(total, by) => None,
            total => Some(match total.checked_sub(by) {
                Some(rest) => format!("holds {total} and {total} - {by} = {rest} is not a sum of increments"),
                None => format!("holds {total}, less than {by}"),
            }),
        };
        let cells: Vec<(usize, Option<String>)> =
            amounts.iter().map(|(position, by)| (*position, reason(*position, *by))).collect();
        counters.query_with_reasons(key, &cells)
    }

    /// Returns a row that shows which increments can be part of a total.
    fn row(&self, total: u64) -> Row {
        let can = |increment: &u32| if self.allows(total, u64::from(*increment)) { "yes" } else { "no" };
        Row::new(&format!("total {total}"), self.increments.iter().map(can)).under(&self.increments)
    }
}
