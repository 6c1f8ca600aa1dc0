//! Traces of a user's own keys, with the hash of the library or with formulas.

use super::cells::Cells;
use super::formula::{Formula, MAX_HASHES};
use super::{Answer, Step, Touch, Trace, and};
use crate::{Error, Result};
use umbel::hash::reduce;
use umbel::{Hasher, Key, Kind};

/// Limits that keep a trace readable.
const MAX_BITS: usize = 512;
const MAX_KEYS: usize = 200;
const MAX_KEY_CHARS: usize = 40;

/// The largest value of a counter of four bits, which never changes again.
const FULL: u64 = 15;

/// A small filter of a user's own keys, and the operations on it in their order.
///
/// ```
/// use umbel::Kind;
/// use umbel_lab::trace::{Answer, Formula, Operation, OwnHash, OwnKeys};
/// let keys = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
/// let own = OwnKeys {
///     kind: Kind::Standard,
///     bits: 10,
///     hash: OwnHash::Formulas(Formula::parse_list("x mod 10, 2x+3 mod 10", 10)?),
///     operations: Operation::sequence(&keys(&["2", "4", "9"]), &[], &keys(&["5", "12"])),
/// };
/// let trace = own.run()?;
/// let answers: Vec<&Answer> = trace.steps.iter().flat_map(|step| &step.answer).collect();
/// assert_eq!(answers, [&Answer::No(vec![5, 3]), &Answer::FalsePositive(vec!["2".into()])]);
/// # Ok::<(), umbel_lab::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OwnKeys {
    /// Kind of filter: standard or counting.
    pub kind: Kind,
    /// Number of bits or counters.
    pub bits: usize,
    /// The hash functions.
    pub hash: OwnHash,
    /// Operations, in their order.
    pub operations: Vec<Operation>,
}

/// An operation on a filter, with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Inserts the key.
    Insert(String),
    /// Removes the key.
    Remove(String),
    /// Asks for the key.
    Ask(String),
}

impl Operation {
    /// Returns operations on these keys: all are inserted, then some removed, then some asked for.
    pub fn sequence(insert: &[String], remove: &[String], ask: &[String]) -> Vec<Operation> {
        let inserted = insert.iter().cloned().map(Operation::Insert);
        let removed = remove.iter().cloned().map(Operation::Remove);
        inserted.chain(removed).chain(ask.iter().cloned().map(Operation::Ask)).collect()
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        let (Operation::Insert(key) | Operation::Remove(key) | Operation::Ask(key)) = self;
        key
    }
}

/// The hash functions for a user's own keys.
#[derive(Clone, Debug)]
pub enum OwnHash {
    /// The default hash of the library, with this number of positions for each key.
    Library(u32),
    /// A position by each formula, for keys that are numbers.
    Formulas(Vec<Formula>),
}

/// A key and its positions.
struct Placed<'a> {
    key: &'a str,
    positions: Vec<usize>,
    /// The calculation of the positions, as a sentence with a space before it; empty without
    /// formulas.
    calculation: String,
}

impl OwnKeys {
    /// Computes the steps: the empty filter, one for each operation, and a summary.
    ///
    /// # Errors
    ///
    /// [`Error::OwnKeys`] if a number is out of range, a position would lie behind the last bit, or
    /// a key does not suit the hash functions.
    pub fn run(&self) -> Result<Trace> {
        self.check()?;
        let (cells, label) = match self.kind {
            Kind::Standard => ("bits", "bits"),
            Kind::Counting => ("counters of four bits", "counters"),
            kind => return Err(wrong(format!("a {kind} filter cannot be traced: use standard or counting"))),
        };
        let mut filter = Cells::new(label, self.bits);
        let mut steps = vec![Step::new(
            format!("{} {cells}, all 0, and {}.", self.bits, self.hash.description()),
            vec![filter.row()],
        )];
        for operation in &self.operations {
            let placed = self.placed(operation.key())?;
            steps.push(match operation {
                Operation::Insert(_) => self.inserted(&mut filter, &placed),
                Operation::Remove(_) => self.removed(&mut filter, &placed),
                Operation::Ask(_) => {
                    let mut step = filter.query(placed.key, &placed.positions);
                    step.says += &placed.calculation;
                    step
                }
            });
        }
        steps.push(self.summary(&filter, &steps));
        let is_insertion = |operation: &&Operation| matches!(operation, Operation::Insert(_));
        let inserted = self.operations.iter().filter(is_insertion).count();
        let title = format!("{} in {} {label}", counted(inserted, "key"), self.bits);
        Ok(Trace { name: "keys", title, source: "Keys of your own".into(), steps })
    }

    /// Returns the positions of a key.
    ///
    /// # Errors
    ///
    /// [`Error::OwnKeys`] if the key does not suit the hash functions.
    pub fn positions(&self, key: &str) -> Result<Vec<usize>> {
        Ok(self.placed(key)?.positions)
    }

    fn check(&self) -> Result<()> {
        if !(1..=MAX_BITS).contains(&self.bits) {
            return Err(wrong(format!("a trace has 1 to {MAX_BITS} bits, not {}", self.bits)));
        }
        let hashes = self.hash.count();
        if !(1..=MAX_HASHES).contains(&hashes) {
            return Err(wrong(format!("a trace has 1 to {MAX_HASHES} hash functions, not {hashes}")));
        }
        let keys = || self.operations.iter().map(Operation::key);
        if keys().count() > MAX_KEYS {
            return Err(wrong(format!("a trace has at most {MAX_KEYS} keys, not {}", keys().count())));
        }
        for key in keys() {
            if key.is_empty() {
                return Err(wrong("a key is empty: is there a comma too many?"));
            }
            if key.chars().count() > MAX_KEY_CHARS {
                let start: String = key.chars().take(MAX_KEY_CHARS).collect();
                return Err(wrong(format!(
                    "the key that begins with {start:?} is too long to draw: at most {MAX_KEY_CHARS} characters fit"
                )));
            }
            if key.chars().any(char::is_control) {
                return Err(wrong(format!("the key {key:?} has a character that cannot be drawn")));
            }
        }
        if let OwnHash::Formulas(formulas) = &self.hash
            && let Some(formula) = formulas.iter().find(|formula| formula.modulus() > self.bits as u64)
        {
            let (text, modulus, bits) = (formula.text(), formula.modulus(), self.bits);
            return Err(wrong(format!(
                "{text:?} can be as large as {}, but the last of {bits} bits is {}: take it mod {bits} or less",
                modulus - 1,
                bits - 1
            )));
        }
        Ok(())
    }

    fn placed<'a>(&self, key: &'a str) -> Result<Placed<'a>> {
        let (positions, calculation) = match &self.hash {
            OwnHash::Library(hashes) => {
                let stream = key.digest(&Hasher::default()).stream().take(*hashes as usize);
                (stream.map(|x| reduce(x, self.bits as u64) as usize).collect(), String::new())
            }
            OwnHash::Formulas(formulas) => {
                let x: u64 = key.parse().map_err(|_| {
                    wrong(format!(
                        "the key {key:?} is not a whole number from 0 to {}: formulas take numbers; \
                         without formulas, a key may be any text",
                        u64::MAX
                    ))
                })?;
                let calculations: Vec<String> =
                    formulas.iter().map(|formula| formula.calculation(x)).collect();
                let positions = formulas.iter().map(|formula| formula.position(x)).collect();
                (positions, format!(" By the formulas: {}.", calculations.join(", ")))
            }
        };
        Ok(Placed { key, positions, calculation })
    }

    fn inserted(&self, filter: &mut Cells, placed: &Placed<'_>) -> Step {
        let Placed { key, positions, calculation } = placed;
        let mut step = if self.kind == Kind::Standard {
            filter.insert(key, positions)
        } else {
            filter.join(key);
            let amounts = amounts(positions);
            let changes: Vec<(usize, u64, String)> = amounts
                .iter()
                .map(|(at, by)| (*at, (filter.values()[*at] + by).min(FULL), format!("+{by}")))
                .collect();
            let full = changes.iter().filter(|(_, value, _)| *value == FULL).map(|(at, ..)| *at).collect();
            let row = filter.change(key, &changes);
            let says = format!("Insert {key} at {}: it adds {}.", and(positions), parts(&amounts, "to"));
            Step::new(says + &full_counters(full), vec![row])
        };
        step.says += calculation;
        step
    }

    fn removed(&self, filter: &mut Cells, placed: &Placed<'_>) -> Step {
        let Placed { key, positions, calculation } = placed;
        let was_member = filter.is_member(key);
        let others = others(filter, key, positions);
        let mut step = if self.kind == Kind::Standard {
            filter.leave(key);
            let row = filter.clear(key, positions);
            let mut says =
                format!("Remove {key} in the only way there is: its bits at {} become 0.", and(positions));
            if !others.is_empty() {
                says += &format!(" The filter loses {} as well, which used some of them.", and(&others));
            }
            Step::new(says, vec![row])
        } else {
            count_down(filter, key, positions, &others)
        };
        if !was_member {
            step.says += " It was not in the set.";
        }
        step.says += calculation;
        step
    }

    /// Returns the last step: the answers, and the rate that the set cells predict.
    fn summary(&self, filter: &Cells, steps: &[Step]) -> Step {
        let answers = || steps.iter().filter_map(|step| step.answer.as_ref());
        let count = |wanted: fn(&Answer) -> bool| answers().filter(|answer| wanted(answer)).count();
        let kinds = [
            (count(|answer| matches!(answer, Answer::Member)), "right yes", "right yeses"),
            (count(|answer| matches!(answer, Answer::No(_))), "right no", "right noes"),
            (count(|answer| matches!(answer, Answer::FalsePositive(_))), "false positive", "false positives"),
            (count(|answer| matches!(answer, Answer::FalseNegative(_))), "false negative", "false negatives"),
        ];
        let named = kinds.into_iter().filter(|(count, ..)| *count > 0);
        let named: Vec<String> = named
            .map(|(count, one, more)| format!("{count} {}", if count == 1 { one } else { more }))
            .collect();
        let mut says =
            if named.is_empty() { String::new() } else { format!("The answers: {}. ", and(&named)) };
        let set = filter.values().iter().filter(|value| **value > 0).count();
        let hashes = self.hash.count();
        let rate = (set as f64 / self.bits as f64).powi(hashes as i32);
        let noun = if self.kind == Kind::Standard { "bits are 1" } else { "counters are above 0" };
        says += &format!(
            "In the end {set} of {} {noun}, so a stranger with random positions is found with the \
             probability ({set}/{})^{hashes} = {rate:.4}.",
            self.bits, self.bits
        );
        Step::new(says, vec![filter.row()])
    }
}

impl OwnHash {
    /// Returns the number of positions of each key.
    pub fn count(&self) -> usize {
        match self {
            OwnHash::Library(hashes) => *hashes as usize,
            OwnHash::Formulas(formulas) => formulas.len(),
        }
    }

    fn description(&self) -> String {
        match self {
            OwnHash::Library(hashes) => {
                format!("the hash of umbel, which gives each key {}", counted(*hashes as usize, "position"))
            }
            OwnHash::Formulas(formulas) => {
                let texts: Vec<&str> = formulas.iter().map(Formula::text).collect();
                let noun = if texts.len() == 1 { "hash function" } else { "hash functions" };
                format!("the {noun} {}", and(&texts))
            }
        }
    }
}

/// Subtracts a key from its counters, unless one of them excludes it.
fn count_down(filter: &mut Cells, key: &str, positions: &[usize], others: &[String]) -> Step {
    let amounts = amounts(positions);
    let value = |at: usize| filter.values()[at];
    let low: Vec<usize> =
        amounts.iter().filter(|(at, by)| value(*at) < (*by).min(FULL)).map(|(at, _)| *at).collect();
    let is_stuck = amounts.iter().all(|(at, _)| value(*at) == FULL);
    if !low.is_empty() || is_stuck {
        let mut row = filter.row();
        for (at, _) in &amounts {
            match low.contains(at) || is_stuck {
                true => row.mark(*at, Touch::Refused, "NO"),
                false => row.mark(*at, Touch::Found, "yes"),
            }
        }
        let because = match is_stuck {
            true => "all its counters are full and never change again".to_string(),
            false if low.len() == 1 => format!("{} is too low", low[0]),
            false => format!("{} are too low", and(&low)),
        };
        let says = format!("Remove {key} at {}: refused, since {because}. Nothing changes.", and(positions));
        return Step::new(says, vec![row]);
    }
    let was_member = filter.is_member(key);
    filter.leave(key);
    let (full, rest): (Vec<_>, Vec<_>) =
        amounts.into_iter().partition(|(at, _)| filter.values()[*at] == FULL);
    let changes: Vec<(usize, u64, String)> =
        rest.iter().map(|(at, by)| (*at, filter.values()[*at] - by, format!("-{by}"))).collect();
    let mut row = filter.change(key, &changes);
    full.iter().for_each(|(at, _)| row.mark(*at, Touch::Found, "full"));
    let mut says = format!("Remove {key} at {}: it takes {}.", and(positions), parts(&rest, "from"));
    says += &full_counters(full.into_iter().map(|(at, _)| at).collect());
    if !was_member && !others.is_empty() {
        says += &format!(" These counts belonged to {}.", and(others));
    }
    Step::new(says, vec![row])
}

/// Returns each position once, with the number of times that it occurs.
fn amounts(positions: &[usize]) -> Vec<(usize, u64)> {
    let mut amounts: Vec<(usize, u64)> = Vec::new();
    for position in positions {
        match amounts.iter_mut().find(|(at, _)| at == position) {
            Some((_, by)) => *by += 1,
            None => amounts.push((*position, 1)),
        }
    }
    amounts
}

/// Describes amounts: `1 to counter 2 and 2 to counter 7`.
fn parts(amounts: &[(usize, u64)], preposition: &str) -> String {
    let parts: Vec<String> =
        amounts.iter().map(|(at, by)| format!("{by} {preposition} counter {at}")).collect();
    and(&parts)
}

/// Returns a sentence about full counters, with a space before it; nothing if there are none.
fn full_counters(full: Vec<usize>) -> String {
    match &full[..] {
        [] => String::new(),
        [one] => format!(" Counter {one} is full and never changes again."),
        several => format!(" The counters {} are full and never change again.", and(several)),
    }
}

/// Returns the other keys that use the positions of a key, each once.
fn others(filter: &Cells, key: &str, positions: &[usize]) -> Vec<String> {
    let mut others: Vec<String> = Vec::new();
    for user in positions.iter().flat_map(|position| filter.users(*position)) {
        if user != key && !others.contains(user) {
            others.push(user.clone());
        }
    }
    others
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn wrong(problem: impl Into<String>) -> Error {
    Error::OwnKeys { problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Row, find};
    use umbel::counting::Options;
    use umbel::{Bloom, Counting, Standard};

    fn keys(keys: &[&str]) -> Vec<String> {
        keys.iter().map(ToString::to_string).collect()
    }

    fn own(kind: Kind, hash: OwnHash, [insert, remove, ask]: [&[&str]; 3]) -> OwnKeys {
        let operations = Operation::sequence(&keys(insert), &keys(remove), &keys(ask));
        OwnKeys { kind, bits: 10, hash, operations }
    }

    fn formulas(text: &str) -> OwnHash {
        OwnHash::Formulas(Formula::parse_list(text, 10).unwrap())
    }

    fn answers(trace: &Trace) -> Vec<String> {
        trace.steps.iter().flat_map(|step| &step.answer).map(ToString::to_string).collect()
    }

    fn numbers(range: std::ops::Range<u64>) -> Vec<String> {
        range.map(|number| format!("key {number}")).collect()
    }

    #[test]
    fn the_first_example_of_the_literature_is_reproduced_from_its_formulas() {
        let hash = formulas("x mod 10, 2x+3 mod 10, (3x + 7) mod 10");
        let trace = own(Kind::Standard, hash, [&["2", "4", "9"], &[], &["4", "5", "12"]]).run().unwrap();
        let example = find("insert").unwrap().run().unwrap();
        for step in 0..4 {
            assert_eq!(trace.steps[step].array("bits"), example.steps[step].array("bits"));
        }
        assert_eq!(answers(&trace), ["yes", "no by 5", "false positive by 2"]);
        assert!(trace.steps[6].says.contains("12 mod 10 = 2, 27 mod 10 = 7, 43 mod 10 = 3"));
    }

    #[test]
    fn the_bits_and_answers_are_those_of_the_library() {
        for (bits, hashes) in [(10, 3), (1, 1), (64, 5), (97, 2), (512, 16)] {
            let (inserted, asked) = (numbers(0..20), numbers(0..100));
            let own = OwnKeys {
                kind: Kind::Standard,
                bits,
                hash: OwnHash::Library(hashes),
                operations: Operation::sequence(&inserted, &[], &asked),
            };
            let layout = Standard::new(bits as u64, hashes).unwrap();
            let mut filter = Bloom::with_layout(layout, Hasher::default()).unwrap();
            for key in &inserted {
                filter.insert(key.as_bytes());
            }
            let trace = own.run().unwrap();
            let words = filter.words().words();
            let expected = Row::new("bits", (0..bits).map(|bit| words[bit / 64] >> (bit % 64) & 1)).printed();
            assert_eq!(trace.steps.last().unwrap().array("bits").unwrap(), expected);
            for (key, answer) in asked.iter().zip(trace.steps.iter().flat_map(|step| &step.answer)) {
                assert_eq!(answer.is_yes(), filter.contains(key.as_bytes()), "{key}");
            }
        }
    }

    #[test]
    fn counters_and_removals_are_those_of_the_library() {
        for (bits, hashes) in [(10, 3), (5, 7), (97, 2), (2, 2)] {
            // Some were inserted twice, some once, some never.
            let (inserted, removed) = ([numbers(0..12), numbers(0..4)].concat(), numbers(2..20));
            let own = OwnKeys {
                kind: Kind::Counting,
                bits,
                hash: OwnHash::Library(hashes),
                operations: Operation::sequence(&inserted, &removed, &[]),
            };
            let mut filter =
                Counting::new(bits as u64, hashes, Options::default(), Hasher::default()).unwrap();
            for key in &inserted {
                filter.insert(key.as_bytes()).unwrap();
            }
            for key in &removed {
                filter.remove(key.as_bytes());
            }
            let trace = own.run().unwrap();
            let counters = Row::new("counters", filter.values()).printed();
            assert_eq!(trace.steps.last().unwrap().array("counters").unwrap(), counters, "{bits}, {hashes}");
        }
    }

    #[test]
    fn removal_loses_a_neighbour_in_a_standard_filter_and_not_in_a_counting_one() {
        let keys: [&[&str]; 3] = [&["2", "12", "3"], &["2"], &["2", "12", "3"]];
        let trace = own(Kind::Standard, formulas("x, 2x + 3"), keys).run().unwrap();
        assert_eq!(answers(&trace), ["no by 2 and 7", "false negative by 2 and 7", "yes"]);
        assert!(trace.steps[4].says.contains("The filter loses 12 as well"), "{}", trace.steps[4].says);
        let trace = own(Kind::Counting, formulas("x, 2x + 3"), keys).run().unwrap();
        assert_eq!(answers(&trace), ["false positive by 12", "yes", "yes"]);
        assert!(trace.steps[5].says.contains("yes, but it was removed"), "{}", trace.steps[5].says);
    }

    #[test]
    fn two_equal_positions_count_twice_and_a_stranger_is_not_removed() {
        let trace = own(Kind::Counting, formulas("x, 2x, 7"), [&["7"], &["4", "7"], &[]]).run().unwrap();
        assert_eq!(trace.steps[1].array("counters").unwrap(), "0000100200");
        assert!(trace.steps[1].says.contains("2 to counter 7 and 1 to counter 4"), "{}", trace.steps[1].says);
        assert!(trace.steps[2].says.contains("refused, since 8 is too low"), "{}", trace.steps[2].says);
        assert_eq!(trace.steps[3].array("counters").unwrap(), "0000000000");
    }

    #[test]
    fn long_and_many_keys_fit_into_the_text_and_the_picture() {
        let long = ["a".repeat(MAX_KEY_CHARS), "b,c <&>\"".into()];
        let trace = OwnKeys {
            kind: Kind::Standard,
            bits: MAX_BITS,
            hash: OwnHash::Library(4),
            operations: Operation::sequence(&[&long[..], &numbers(0..60)].concat(), &[], &long),
        };
        let trace = trace.run().unwrap();
        let text = trace.to_text();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("aaaaaa…") && text.contains(" keys"), "{text}");
        assert!(trace.to_svg().unwrap().contains("&lt;&amp;&gt;"));
    }

    #[test]
    fn numbers_and_keys_out_of_range_are_refused() {
        let refused = |own: OwnKeys, expected: &str| {
            let error = own.run().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let plain = || own(Kind::Standard, OwnHash::Library(3), [&["a"], &[], &[]]);
        let inserting =
            |keys: &[String]| OwnKeys { operations: Operation::sequence(keys, &[], &[]), ..plain() };
        refused(OwnKeys { bits: 0, ..plain() }, "1 to 512 bits, not 0");
        refused(OwnKeys { bits: 513, ..plain() }, "not 513");
        refused(OwnKeys { hash: OwnHash::Library(0), ..plain() }, "1 to 16 hash functions");
        refused(OwnKeys { kind: Kind::Cuckoo, ..plain() }, "use standard or counting");
        refused(inserting(&keys(&[""])), "a comma too many");
        refused(inserting(&keys(&["\u{7}"])), "cannot be drawn");
        refused(inserting(&["a".repeat(41)]), "at most 40 characters");
        refused(inserting(&numbers(0..201)), "at most 200 keys, not 201");
        refused(OwnKeys { hash: formulas("x"), ..plain() }, "not a whole number");
        refused(OwnKeys { hash: formulas("x, x mod 11"), ..plain() }, "\"x mod 11\" can be as large as 10");
    }
}
