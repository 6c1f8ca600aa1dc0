//! The example of a filter that counts: groups of hash functions, one of which is chosen at random
//! for each recording.

use crate::Result;
use crate::trace::cells::Cells;
use crate::trace::{Row, Step, and};
use umbel::sizing::space_code::{coverage, mle, mve};

const BITS: usize = 16;
const GROUPS: u32 = 4;

/// The positions of a key in each group.
type Groups = [[usize; 2]; GROUPS as usize];

const X: Groups = [[1, 9], [4, 12], [6, 11], [3, 14]];
const Y: Groups = [[3, 7], [0, 14], [5, 9], [2, 13]];
const Z: Groups = [[0, 8], [2, 5], [3, 11], [7, 15]];

fn record(bits: &mut Cells, key: &str, groups: &Groups, drawn: usize) -> Step {
    let before = bits.values().to_vec();
    let row = bits.set(key, &groups[drawn]);
    let effect = if before == bits.values() { "nothing changes" } else { "its bits become 1" };
    let says = format!(
        "Record {key}: group {} of {GROUPS} is drawn, with the positions {}; {effect}.",
        drawn + 1,
        and(&groups[drawn])
    );
    Step::new(says, vec![row])
}

/// Counts the groups of a key whose bits are all set, and estimates the number of recordings.
fn count(bits: &Cells, key: &str, groups: &Groups, recorded: u64) -> Result<Step> {
    let is_found = |group: &[usize; 2]| group.iter().all(|position| bits.values()[*position] > 0);
    let found = groups.iter().filter(|group| is_found(group)).count() as u32;
    let set = bits.values().iter().filter(|bit| **bit > 0).count();
    let noise = (set as f64 / BITS as f64).powi(2);
    // Rounding errors can make the estimate of nothing a negative zero.
    let (mean, likely) = (mve(GROUPS, noise, found)?.max(0.0) + 0.0, mle(GROUPS, noise, found)?);
    let verb = if found == 1 { "is" } else { "are" };
    let says = format!(
        "Count {key}: {found} of its {GROUPS} groups {verb} found. {set} of {BITS} bits are 1, so a group that was \
         never drawn is found with f = ({set}/{BITS})^2 = {noise:.4}. The estimate is {mean:.2}, the \
         most likely number {likely}; the truth is {recorded}."
    );
    let heads = groups.map(|group| format!("{},{}", group[0], group[1]));
    let row = Row::new("groups", groups.iter().map(|group| if is_found(group) { "yes" } else { "no" }))
        .under(heads);
    Ok(Step::new(says, vec![bits.row(), row]))
}

pub fn groups() -> Result<Vec<Step>> {
    let mut bits = Cells::new("bits", BITS);
    let start = "Sixteen bits and four groups of two hash functions. A recording draws one group at \
                 random. The keys, positions and draws are ours.";
    let mut steps = vec![Step::new(start, vec![bits.row()])];
    for drawn in [2, 0, 2] {
        steps.push(record(&mut bits, "x", &X, drawn));
    }
    steps.push(count(&bits, "x", &X, 3)?);
    for drawn in [0, 1] {
        steps.push(record(&mut bits, "y", &Y, drawn));
    }
    let mut noisy = count(&bits, "x", &X, 3)?;
    noisy.says += " Group 4 of x is noise: y has set its bits.";
    steps.push(noisy);
    steps.push(count(&bits, "z", &Z, 0)?);
    let expected = (1..=GROUPS).map(|groups| coverage(GROUPS, groups).map(|packets| format!("{packets:.2}")));
    let expected = expected.collect::<umbel::Result<Vec<_>>>()?;
    steps.push(Step::new(
        "The recordings that it takes on average until 1, 2, 3 and 4 groups are drawn. More cannot be \
         told apart: a larger number needs more groups, or a second filter that takes a quarter of \
         the recordings.",
        vec![Row::new("recordings", expected).under(1..=GROUPS)],
    ));
    Ok(steps)
}
