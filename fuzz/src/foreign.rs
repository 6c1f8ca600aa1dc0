//! Filters of other programs. The first byte of an input is the number of a format and of a funnel,
//! the rest is a file.
//!
//! No input may cause a panic, or memory beyond its own length. A filter that was read gives the same
//! answers, one by one and in a batch, before and after it was written and read again. It then
//! contains every line inserted into it.

use umbel::foreign::{ForeignFilter, Format, Funnel, Given};

const LINES: [&str; 8] = ["apple", "pear", "", "42", "-7", "quince", "9223372036854775807", "medlar"];

/// The largest bit set of an empty filter to which lines are added: it takes memory only then.
const MAX_BITS: u64 = 1 << 26;

/// Tests any bytes.
pub fn run(bytes: &[u8]) {
    loads(bytes);
}

/// Tries to read a filter, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let Some((&choice, file)) = bytes.split_first() else { return false };
    Format::recognize(file);
    let given = Given {
        format: Some(Format::ALL[usize::from(choice) % Format::ALL.len()]),
        funnel: Some(Funnel::ALL[usize::from(choice) / Format::ALL.len() % Funnel::ALL.len()]),
    };
    let Ok(mut filter) = ForeignFilter::from_bytes(file, given) else { return false };
    let written = filter.to_bytes();
    assert!(written.len() <= 1040 * (file.len() + 64), "no more than was read");
    let again = ForeignFilter::from_bytes(&written, given).expect("what was written can be read");
    assert_eq!(describe(&filter), describe(&again));
    assert_eq!(written, again.to_bytes(), "the same bytes");
    if filter.facts().bits <= MAX_BITS {
        for line in LINES {
            if filter.insert(line.as_bytes()).is_ok() && !is_ignored(&filter, line) {
                assert!(filter.contains(line.as_bytes()).expect("a line that was inserted"), "{line}");
            }
        }
    }
    true
}

/// DataSketches ignores the empty text.
fn is_ignored(filter: &ForeignFilter, line: &str) -> bool {
    filter.format() == Format::DataSketches && line.is_empty()
}

/// Returns answers and figures as text, because a figure may be NaN, which equals nothing.
fn describe(filter: &ForeignFilter) -> String {
    let answers: Vec<_> = LINES.iter().map(|line| filter.contains(line.as_bytes()).ok()).collect();
    if let Ok(batch) = filter.contains_batch(&LINES[..]) {
        assert!(batch.iter().map(Some).eq(answers.iter().copied()), "single and batch lookups agree");
    }
    let probes = filter.probes(b"42").ok();
    format!("{answers:?} {:?} {probes:?}", filter.facts())
}
