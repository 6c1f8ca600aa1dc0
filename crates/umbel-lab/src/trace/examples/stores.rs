//! Examples of filters in front of other stores: tables on disk, and the cache of a neighbour.

use crate::Result;
use crate::trace::cells::Cells;
use crate::trace::{Answer, Row, Step, Touch, and};

/// Keys with their positions.
type Keys<'a> = &'a [(&'a str, [usize; 2])];

/// Three tables on disk, the newest first, and the filter of each.
struct Tables {
    filters: [Cells; 3],
}

impl Tables {
    /// Looks a key up in the newest table first, and reads the tables whose filter says yes.
    fn lookup(&self, key: &str, positions: [usize; 2]) -> Step {
        let (mut rows, mut parts, mut reads) = (Vec::new(), Vec::new(), 0);
        let mut answer = None;
        for (number, filter) in (1..).zip(&self.filters) {
            let step = filter.query(key, &positions);
            rows.extend(step.rows);
            parts.push(match step.answer {
                Some(Answer::Member) => {
                    reads += 1;
                    answer = Some(Answer::Member);
                    format!("table {number} may have it, is read, and has it")
                }
                Some(Answer::FalsePositive(keys)) => {
                    reads += 1;
                    let text =
                        format!("table {number} may have it and is read in vain, because of {}", and(&keys));
                    answer = Some(Answer::FalsePositive(keys));
                    text
                }
                Some(Answer::No(zeros) | Answer::FalseNegative(zeros)) => {
                    answer = answer.or(Some(Answer::No(zeros)));
                    format!("table {number} certainly lacks it")
                }
                None => String::new(),
            });
            if answer == Some(Answer::Member) {
                break;
            }
        }
        let noun = if reads == 1 { "table is" } else { "tables are" };
        let saved = match rows.len() {
            asked if asked == reads => ", as without filters".to_string(),
            asked => format!(" instead of {asked}"),
        };
        let says = format!(
            "Look up {key} at {}: {}. {reads} {noun} read{saved}.",
            and(&positions),
            parts.join("; ")
        );
        Step { says, rows, answer }
    }
}

pub fn tables() -> Result<Vec<Step>> {
    let table = |label, keys: Keys<'_>| {
        let mut filter = Cells::new(label, 10);
        keys.iter().for_each(|(key, positions)| drop(filter.set(key, positions)));
        filter
    };
    let a = ("a", [2, 7]);
    let e = ("e", [3, 5]);
    let tables = Tables {
        filters: [
            table("table 1", &[("d", [0, 5]), e]),
            table("table 2", &[("b", [1, 4]), ("c", [4, 9])]),
            table("table 3", &[a]),
        ],
    };
    let start = "Three tables on disk, the newest first, each with a filter of its keys in memory. \
                 The keys and positions are ours; the text gives none.";
    let (count, rate) = (tables.filters.len(), 0.01);
    Ok(vec![
        Step::new(start, tables.filters.iter().map(Cells::row).collect()),
        tables.lookup(a.0, a.1),
        tables.lookup(e.0, e.1),
        tables.lookup("x", [6, 8]),
        tables.lookup("y", [1, 9]),
        Step::new(
            format!(
                "With a rate of p = {rate} and T = {count} tables, an absent key reads T p tables on \
                 average, and a key of the oldest table 1 + (T - 1) p."
            ),
            vec![
                Row::new(
                    "reads",
                    [
                        format!("{:.2}", count as f64 * rate),
                        format!("{:.2}", 1.0 + (count - 1) as f64 * rate),
                    ],
                )
                .under(["absent", "oldest"]),
                Row::new("unfiltered", [count, count]).under(["absent", "oldest"]),
            ],
        ),
    ])
}

/// Two proxies: A with its counters, and B with a copy of A's bits as they were published.
struct Proxies {
    counters: Cells,
    /// Its members are the pages that A has now, published or not.
    copy: Cells,
}

impl Proxies {
    fn rows(&self) -> Vec<Row> {
        vec![self.counters.row(), self.copy.row()]
    }

    /// Adds a page to A's cache, or evicts it.
    fn change(&mut self, page: &str, positions: [usize; 2], is_stored: bool) -> Step {
        let amounts = positions.map(|position| (position, 1));
        let (row, verb) = if is_stored {
            self.copy.join(page);
            (self.counters.add(page, &amounts), "stores")
        } else {
            self.copy.leave(page);
            (self.counters.subtract(page, &amounts), "evicts")
        };
        let says = format!("A {verb} {page}, whose counters are {}. B is not informed yet.", and(&positions));
        Step::new(says, vec![row, self.copy.row()])
    }

    /// Publishes A's bits. Returns B's copy, and the bits that have changed.
    fn publish(&mut self) -> (Row, Vec<String>) {
        let before = self.copy.values().to_vec();
        for (position, count) in self.counters.values().iter().enumerate() {
            self.copy.replace(position, (*count).min(1), self.counters.users(position));
        }
        let (mut row, mut flips) = (self.copy.row(), Vec::new());
        for (position, bit) in self.copy.values().iter().enumerate() {
            match (before[position], bit) {
                (0, 1) => row.mark(position, Touch::Set, "set"),
                (1, 0) => row.mark(position, Touch::Cleared, "clr"),
                _ => continue,
            }
            flips.push(format!("bit {position} is {bit}"));
        }
        (row.after(before), flips)
    }

    /// Handles a request for a page at B, which does not have it.
    fn request(&self, page: &str, positions: [usize; 2]) -> Step {
        let mut step = self.copy.query(page, &positions);
        let zeros = |cells: &[usize]| match cells {
            [one] => format!("{one} is 0 in the copy"),
            several => format!("{} are 0 in the copy", and(several)),
        };
        let verdict = match &step.answer {
            Some(Answer::Member) => "A may have it. B asks A, and gets it.".to_string(),
            Some(Answer::FalsePositive(pages)) => {
                let cause = match pages.iter().any(|known| known == page) {
                    true => "The copy is out of date".to_string(),
                    false => format!("A false positive by {}", and(pages)),
                };
                format!(
                    "A may have it. B asks A in vain, and fetches it from the web. {cause}; it costs a message."
                )
            }
            Some(Answer::FalseNegative(cells)) => format!(
                "{}, so B fetches it from the web, although A has it: a false negative, which costs a hit.",
                zeros(cells)
            ),
            Some(Answer::No(cells)) => {
                format!("{}, so B fetches it from the web and sends A no message.", zeros(cells))
            }
            None => String::new(),
        };
        step.says = format!("B lacks {page}, at {}: {verdict}", and(&positions));
        step
    }
}

pub fn proxies() -> Result<Vec<Step>> {
    let (u, v, t) = ([1, 6], [6, 8], [3, 9]);
    let mut proxies = Proxies { counters: Cells::new("A counts", 10), copy: Cells::new("B's copy", 10) };
    for (page, positions) in [("u", u), ("v", v)] {
        proxies.change(page, positions, true);
    }
    proxies.publish();
    let start = "Two proxies. A has the pages u and v and counts them; B has a copy of A's bits. The \
                 pages and positions are ours; the text gives none.";
    let mut steps = vec![Step::new(start, proxies.rows())];
    steps.push(proxies.request("u", u));
    steps.push(proxies.request("w", [0, 6]));
    steps.push(proxies.request("z", [1, 8]));
    steps.push(proxies.change("v", v, false));
    steps.push(proxies.request("v", v));
    steps.push(proxies.change("t", t, true));
    steps.push(proxies.request("t", t));
    let (row, flips) = proxies.publish();
    steps.push(Step::new(
        format!(
            "A publishes the {} bits that have changed: {}. As records of 32 bits they take more than \
             these ten bits, but far less than the millions of bits of a real summary.",
            flips.len(),
            and(&flips)
        ),
        vec![row],
    ));
    steps.push(proxies.request("v", v));
    steps.push(proxies.request("t", t));
    Ok(steps)
}
