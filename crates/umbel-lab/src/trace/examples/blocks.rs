//! Examples of payloads in blocks: records of blocks with their offsets, and of groups of blocks.

use crate::Result;
use crate::trace::{Row, Step, Touch, and};
use std::collections::BTreeSet;

/// The exact contents of a filter of payloads: blocks with their offsets.
#[derive(Default)]
struct Records {
    /// Groups of blocks, each with its position among the groups of its size.
    records: BTreeSet<(Vec<String>, usize)>,
    /// Number of blocks of the longest payload.
    blocks: usize,
}

impl Records {
    /// Records every block, and with more than one level all aligned groups of 2, 4, ... blocks.
    fn new(payloads: &[&[String]], levels: u32) -> Records {
        let mut records = Records::default();
        for payload in payloads {
            records.blocks = records.blocks.max(payload.len());
            for size in (0..levels).map(|level| 1 << level) {
                let groups = payload.chunks_exact(size).map(<[String]>::to_vec);
                records.records.extend(groups.zip(0..));
            }
        }
        records
    }

    fn has(&self, group: &[String], place: usize) -> bool {
        self.records.contains(&(group.to_vec(), place))
    }

    /// Returns the offsets at which all blocks of a string, and all aligned groups in it, are
    /// recorded.
    fn hits(&self, string: &[String], levels: u32) -> Vec<usize> {
        let at = |offset: &usize| {
            (0..levels).map(|level| 1 << level).all(|size: usize| {
                let aligned = |start: &usize| (offset + start).is_multiple_of(size);
                let groups = string.windows(size).enumerate().filter(|(start, _)| aligned(start));
                groups.into_iter().all(|(start, group)| self.has(group, (offset + start) / size))
            })
        };
        (0..=self.blocks.saturating_sub(string.len())).filter(at).collect()
    }
}

/// Returns the full blocks of a string.
fn blocks(string: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = string.chars().collect();
    characters.chunks_exact(size).map(|block| block.iter().collect()).collect()
}

pub fn payload() -> Result<Vec<Step>> {
    let (payload, string, size) = ("ABRACADABRACADARACABA", "BRACADAB", 3);
    let cut = blocks(payload, size);
    let records = Records::new(&[&cut], 1);
    let mut steps = vec![Step::new(
        format!("The payload {payload} in blocks of {size}; each is recorded with its offset."),
        vec![Row::new("offset", &cut)],
    )];
    for (skipped, from) in ["first", "second", "third"].iter().enumerate().take(size) {
        let asked = blocks(&string[skipped..], size);
        let hits = records.hits(&asked, 1);
        let mut row = Row::new("offset", &cut);
        let mut halves = Vec::new();
        for offset in (0..cut.len()).filter(|offset| records.has(&asked[..1], *offset)) {
            row.mark(offset, Touch::Found, "yes");
            if hits.contains(&offset) {
                row.mark(offset + 1, Touch::Found, "yes");
            } else {
                halves.push(offset);
                row.mark(offset + 1, Touch::Refused, "NO");
            }
        }
        let found = match (hits.is_empty(), halves.is_empty()) {
            (true, true) => "is not found at any offset".to_string(),
            (true, false) => format!("is not found, only its first block at offset {}", and(&halves)),
            (false, true) => format!("is found at offset {}", and(&hits)),
            (false, false) => {
                format!(
                    "is found at offset {}, and at offset {} its first block alone",
                    and(&hits),
                    and(&halves)
                )
            }
        };
        steps.push(Step::new(
            format!("Ask for {string} from its {from} letter on: {} {found}.", asked.join(" ")),
            vec![row],
        ));
        for offset in hits {
            steps.push(judged(payload, string, offset * size - skipped));
        }
    }
    Ok(steps)
}

/// Compares a hit with the payload, letter by letter.
fn judged(payload: &str, string: &str, start: usize) -> Step {
    let there = &payload[start..(start + string.len()).min(payload.len())];
    let mut row = Row::new("byte", there.chars()).under(start..);
    for (at, (found, wanted)) in there.chars().zip(string.chars()).enumerate() {
        match found == wanted {
            true => row.mark(at, Touch::Found, "yes"),
            false => row.mark(at, Touch::Refused, "NO"),
        }
    }
    let verdict = if there == string {
        "it is really there"
    } else {
        "it is not there: the letter outside the full blocks was not compared. A false hit"
    };
    Step::new(format!("So {string} would begin at byte {start}, where {there} stands: {verdict}."), vec![row])
}

/// Returns blocks by their numbers.
fn packet(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|number| format!("S{number}")).collect()
}

/// Returns the packets, with the blocks marked that a string matches at these offsets.
fn rows(packets: &[&[String]], string: &[String], offsets: &[usize]) -> Vec<Row> {
    let row = |(number, packet): (usize, &&[String])| {
        let mut row = Row::new(&format!("packet {number}"), *packet);
        for (at, block) in offsets.iter().flat_map(|offset| (*offset..).zip(string)) {
            if packet.get(at) == Some(block) {
                row.mark(at, Touch::Found, "yes");
            }
        }
        row
    };
    (1..).zip(packets).map(row).collect()
}

pub fn recombination() -> Result<Vec<Step>> {
    let (first, second) = (packet(&[0, 1, 2, 3, 4]), packet(&[0, 2, 3, 1, 4]));
    let packets = [&first[..], &second];
    let records = Records::new(&packets, 1);
    let mut steps = vec![Step::new(
        "Two packets of five blocks. Each block is recorded with its offset, but not with its packet.",
        rows(&packets, &[], &[]),
    )];
    for string in [packet(&[2, 3]), packet(&[2, 1]), packet(&[4, 0])] {
        let hits = records.hits(&string, 1);
        let real = packets.iter().any(|packet| packet.windows(string.len()).any(|window| window == string));
        let verdict = match (hits.is_empty(), real) {
            (true, _) => "not found at any offset: certainly not there".to_string(),
            (false, true) => format!("found at offset {}, and really there", and(&hits)),
            (false, false) => {
                format!("found at offset {}, one block from each packet: a false hit", and(&hits))
            }
        };
        let says = format!("Ask for {}: {verdict}.", string.join(" "));
        steps.push(Step::new(says, rows(&packets, &string, &hits)));
    }
    Ok(steps)
}

pub fn hierarchy() -> Result<Vec<Step>> {
    let (first, second) = (packet(&[0, 1, 2, 3]), packet(&[0, 2, 3, 1]));
    let packets = [&first[..], &second];
    let levels = 3;
    let records = Records::new(&packets, levels);
    let mut steps = Vec::new();
    let level = |packet: &[String], level: u32| {
        let groups = packet.chunks_exact(1 << level).map(<[String]>::concat);
        Row::new(&format!("level {level}"), groups)
    };
    let own = Records::new(&packets[..1], levels).records.len();
    for (number, packet) in (1..).zip(packets) {
        steps.push(Step::new(
            format!("Packet {number} leaves {own} records: the whole, its pairs and its blocks, each with its position."),
            (0..levels).rev().map(|number| level(packet, number)).collect(),
        ));
    }
    for string in [packet(&[2, 1]), packet(&[1, 3])] {
        let [by_blocks, by_pairs] = [1, levels].map(|levels| records.hits(&string, levels));
        let mut shown = rows(&packets, &string, &by_blocks);
        let verdict = if by_pairs.is_empty() {
            let place = by_blocks.first().map_or(0, |offset| offset / 2);
            let pairs = packets.map(|packet| packet[2 * place..2 * place + 2].concat());
            let mut row = Row::new("level 1", pairs).under([place; 2]);
            (0..2).for_each(|packet| row.mark(packet, Touch::Refused, "NO"));
            shown.push(row);
            format!(
                "But there they would be the pair at position {place}, and {} is not recorded \
                 there: certainly not a string of a packet.",
                string.concat()
            )
        } else {
            "Two blocks at an odd offset are not an aligned pair, so nothing else is checked: a false hit."
                .into()
        };
        let says = format!(
            "Ask for {}: both blocks are recorded at offset {}, one from each packet. {verdict}",
            string.join(" "),
            and(&by_blocks)
        );
        steps.push(Step::new(says, shown));
    }
    for (who, levels) in [("by blocks alone", 1), ("with pairs", levels)] {
        let wrong = false_hits(&packets, &records, levels);
        steps.push(Step::new(
            format!("Strings of two blocks that are in neither packet but are found, {who}."),
            vec![Row::new("found", &wrong).under(wrong.iter().map(|_| ""))],
        ));
    }
    Ok(steps)
}

/// Returns all strings of two blocks that are in none of the packets but are found.
fn false_hits(packets: &[&[String]], records: &Records, levels: u32) -> Vec<String> {
    let every = (0..16).map(|number| packet(&[number / 4, number % 4]));
    let absent = every
        .filter(|string| !packets.iter().any(|packet| packet.windows(2).any(|window| window == &string[..])));
    absent.filter(|string| !records.hits(string, levels).is_empty()).map(|string| string.concat()).collect()
}
