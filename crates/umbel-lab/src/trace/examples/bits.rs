//! Examples of standard filters.

use crate::Result;
use crate::trace::cells::Cells;
use crate::trace::{Row, Step, and};
use umbel::sizing::{KPolicy, Params, rate};

/// Returns the positions of a number by the three hash functions of Jambura et al. 2026, which
/// depend only on the last digit.
pub fn positions(x: u64) -> [usize; 3] {
    [x % 10, (2 * x + 3) % 10, (3 * x + 7) % 10].map(|position| position as usize)
}

const NUMBERS: [u64; 3] = [2, 4, 9];

pub fn insert() -> Result<Vec<Step>> {
    let mut bits = Cells::new("bits", 10);
    let mut steps = vec![Step::new(
        "Ten bits, all 0, and three hash functions: x mod 10, (2x + 3) mod 10 and (3x + 7) mod 10.",
        vec![bits.row()],
    )];
    steps.extend(NUMBERS.map(|x| bits.insert(&x.to_string(), &positions(x))));
    Ok(steps)
}

pub fn search() -> Result<Vec<Step>> {
    let mut bits = Cells::new("bits", 10);
    NUMBERS.iter().for_each(|x| drop(bits.set(&x.to_string(), &positions(*x))));
    let mut steps = vec![Step::new("The filter after 2, 4 and 9.", vec![bits.row()])];
    let ask = |x: u64| bits.query(&x.to_string(), &positions(x));
    steps.extend([4, 5, 12].map(ask));
    let mut two_equal = ask(7);
    two_equal.says += " Two of its three positions are the same.";
    steps.push(two_equal);
    let answers: String = (0..10)
        .map(|x| if positions(x).iter().all(|at| bits.values()[*at] > 0) { '1' } else { '0' })
        .collect();
    let yes: Vec<usize> = answers.match_indices('1').map(|(digit, _)| digit).collect();
    let formula = rate::classic(10, 3, 3)?;
    steps.push(Step::new(
        format!(
            "The hash functions depend only on the last digit, so the filter says yes to every \
             number that ends in {}: a rate of {:.1}, where the formula for good hashes gives \
             {formula:.4}.",
            and(&yes),
            yes.len() as f64 / 10.0
        ),
        vec![Row::new("answers", answers.chars()).under(0..10)],
    ));
    Ok(steps)
}

pub fn two_hashes() -> Result<Vec<Step>> {
    let mut bits = Cells::new("bits", 10);
    let start =
        "Ten bits and two hash functions. The positions are ours; the text of Schierz 2022 gives none.";
    Ok(vec![
        Step::new(start, vec![bits.row()]),
        bits.insert("x", &[2, 8]),
        bits.insert("y", &[2, 5]),
        bits.query("z", &[5, 9]),
        bits.query("w", &[5, 8]),
    ])
}

pub fn parameters() -> Result<Vec<Step>> {
    let (n, p) = (1000, 0.01);
    let Params { bits: m, hashes: k, rate: expected, .. } = Params::for_capacity(n, p, KPolicy::Round)?;
    let row = |m: &str, k: &str, rate: &str, n: u64| {
        Row::new("values", [n.to_string(), p.to_string(), m.into(), k.into(), rate.into()])
            .under(["n", "p", "m", "k", "rate"])
    };
    let ideal = rate::optimal_hashes(m as f64 / n as f64)?;
    let (m_text, k_text) = (m.to_string(), k.to_string());
    let twice = rate::classic(m, 2 * n, k)?;
    Ok(vec![
        Step::new(
            format!("Given: {n} keys and a rate of {p}. The values are ours; the text uses letters."),
            vec![row("?", "?", "?", n)],
        ),
        Step::new(
            format!("The bits, -n ln p / (ln 2)^2 rounded up, are m = {m}."),
            vec![row(&m_text, "?", "?", n)],
        ),
        Step::new(
            format!(
                "The best number of hash functions, (m/n) ln 2, is {ideal:.4}; the nearest whole number is k = {k}."
            ),
            vec![row(&m_text, &k_text, "?", n)],
        ),
        Step::new(
            format!("With a whole k the rate is {expected:.6}, a little more than requested."),
            vec![row(&m_text, &k_text, &format!("{expected:.6}"), n)],
        ),
        Step::new(
            format!(
                "The values depend on each other: with twice the keys the same bits give a rate of {twice:.4}."
            ),
            vec![row(&m_text, &k_text, &format!("{twice:.6}"), 2 * n)],
        ),
    ])
}

/// The two keys of Honoroff 2006.
pub const X0: [usize; 3] = [1, 4, 9];
pub const X1: [usize; 3] = [4, 5, 8];

fn both() -> Cells {
    let mut bits = Cells::new("bits", 10);
    bits.set("x0", &X0);
    bits.set("x1", &X1);
    bits
}

pub fn two_keys() -> Result<Vec<Step>> {
    let mut bits = Cells::new("bits", 10);
    Ok(vec![
        Step::new("Ten bits, all 0, and three positions for each key.", vec![bits.row()]),
        bits.insert("x0", &X0),
        bits.insert("x1", &X1),
        bits.query("y0", &[0, 4, 8]),
        bits.query("y1", &[1, 5, 8]),
    ])
}

pub fn deletion() -> Result<Vec<Step>> {
    let mut bits = both();
    let start = Step::new("The filter after x0 and x1, which share position 4.", vec![bits.row()]);
    let cleared = Step::new(
        "Delete x0 in the only way there is: its bits at 1, 4 and 9 become 0.",
        vec![bits.clear("x0", &X0)],
    );
    Ok(vec![start, cleared, bits.query("x1", &X1)])
}
