//! Examples of applications.

use crate::Result;
use crate::trace::cells::Cells;
use crate::trace::{Answer, Row, Step, Touch};

pub fn web_cache() -> Result<Vec<Step>> {
    let mut bits = Cells::new("bits", 10);
    let start = "A cache with the pages a and b, and a filter of its addresses. The positions are \
                 ours; the text gives none.";
    bits.set("a", &[1, 6]);
    bits.set("b", &[4, 8]);
    let request = |page: &str, positions: &[usize]| {
        let mut step = bits.query(page, positions);
        step.says += match step.answer {
            Some(Answer::Member) => " The cache is searched, and has the page.",
            Some(Answer::FalsePositive(_)) => {
                " The cache is searched in vain, and the page is fetched from the web."
            }
            _ => " The page is fetched from the web at once.",
        };
        step
    };
    Ok(vec![
        Step::new(start, vec![bits.row()]),
        request("a", &[1, 6]),
        request("c", &[0, 6]),
        request("d", &[1, 8]),
    ])
}

pub fn similarity() -> Result<Vec<Step>> {
    let rose: &[usize] = &[2, 6];
    let lily: &[usize] = &[4, 8];
    let page = |label, words: &[(&str, &[usize])]| {
        let mut bits = Cells::new(label, 10);
        words.iter().for_each(|(word, positions)| drop(bits.set(word, positions)));
        bits
    };
    let first = page("page 1", &[("rose", rose), ("tulip", &[0, 9]), ("lily", lily)]);
    let second = page("page 2", &[("rose", rose), ("oak", &[5, 9]), ("lily", lily)]);
    let common: Vec<u64> = first.values().iter().zip(second.values()).map(|(a, b)| a & b).collect();
    let count = |bits: &[u64]| bits.iter().filter(|bit| **bit == 1).count();
    let mut row = Row::new("AND", &common);
    (0..10)
        .filter(|position| common[*position] == 1)
        .for_each(|position| row.mark(position, Touch::Found, "both"));
    let start = "The words rose, tulip and lily of one page and rose, oak and lily of another, two \
                 bits for each. The words and positions are ours; the text gives none.";
    let (left, of) = (count(&common), count(first.values()));
    Ok(vec![
        Step::new(start, vec![first.row(), second.row()]),
        Step::new(
            format!(
                "Both filters joined by AND: {left} of the {of} bits of the first page are left, \
                 so the pages resemble each other. Four of these bits belong to rose and lily, \
                 which are on both. Bit 9 is left by chance: tulip set it on one page and oak on \
                 the other."
            ),
            vec![row],
        ),
    ])
}

pub fn packet_loop() -> Result<Vec<Step>> {
    let mut header = Cells::new("header", 10);
    let mut steps = vec![Step::new(
        "A packet starts with a filter of ten bits in its header, all 0.",
        vec![header.row()],
    )];
    for (router, mask) in [("a", [4, 8]), ("b", [0, 8]), ("a", [4, 8])] {
        let before = header.values().to_vec();
        let row = header.set(router, &mask);
        let verdict = if before == header.values() {
            "nothing changes, so the packet may have passed before, and is dropped"
        } else {
            "the filter changes, so the packet has certainly not passed before, and is forwarded"
        };
        let drawn: String = (0..10).map(|bit| if mask.contains(&bit) { '1' } else { '0' }).collect();
        steps.push(Step::new(format!("Interface {router} adds its mask {drawn}: {verdict}."), vec![row]));
    }
    Ok(steps)
}
