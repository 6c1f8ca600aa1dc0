//! CSV as RFC 4180 has it: fields may be in quotes, where separators and newlines are data and two
//! quotes are one.
//!
//! The same few rules cut records out of a stream and fields out of a record. A quote means
//! something only at the start of a field; bytes between the closing quote and the separator belong
//! to the field.

use memchr::{memchr, memchr2};

const QUOTE: u8 = b'"';
const END: u8 = b'\n';

/// Finds the ends of records in bytes that arrive piece by piece.
#[derive(Clone, Copy, Default)]
pub struct RecordSplitter {
    state: State,
}

#[derive(Clone, Copy, Default)]
enum State {
    /// Before the first byte of a field.
    #[default]
    Start,
    Plain,
    Quoted,
    /// After a quote inside quotes, which the next byte shows to be the closing one or the first of
    /// two.
    Closed,
}

impl RecordSplitter {
    /// Returns whether the bytes end inside quotes.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Quoted)
    }

    /// Calls `found` with the index after each record's end. The state carries over to the next
    /// piece.
    pub fn feed(&mut self, bytes: &[u8], separator: u8, mut found: impl FnMut(usize)) {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match self.state {
                State::Start if rest[0] == QUOTE => (self.state, at) = (State::Quoted, at + 1),
                State::Start => self.state = State::Plain,
                State::Plain => match memchr2(separator, END, rest) {
                    None => return,
                    Some(end) => {
                        at += end + 1;
                        self.state = State::Start;
                        if rest[end] == END {
                            found(at);
                        }
                    }
                },
                State::Quoted => match memchr(QUOTE, rest) {
                    None => return,
                    Some(end) => (self.state, at) = (State::Closed, at + end + 1),
                },
                State::Closed if rest[0] == QUOTE => (self.state, at) = (State::Quoted, at + 1),
                State::Closed => self.state = State::Plain,
            }
        }
    }
}

/// Returns the field with this index of a record without its line end; `unquoted` is a buffer for
/// quoted fields.
pub fn field<'a>(
    record: &'a [u8],
    separator: u8,
    number: usize,
    unquoted: &'a mut Vec<u8>,
) -> Option<&'a [u8]> {
    // A carriage return before the newline belongs to the end of the record.
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    let mut rest = record;
    for _ in 0..number {
        rest = &rest[length(rest, separator)..];
        // The record ends here: it has fewer fields.
        rest = rest.get(1..)?;
    }
    let field = &rest[..length(rest, separator)];
    let Some(inside) = field.strip_prefix(&[QUOTE]) else { return Some(field) };
    unquoted.clear();
    let mut inside = inside;
    while let Some(quote) = memchr(QUOTE, inside) {
        unquoted.extend_from_slice(&inside[..quote]);
        inside = &inside[quote + 1..];
        match inside.strip_prefix(&[QUOTE]) {
            Some(more) => {
                unquoted.push(QUOTE);
                inside = more;
            }
            // The quote is closed; anything after it is taken literally.
            None => break,
        }
    }
    unquoted.extend_from_slice(inside);
    Some(unquoted)
}

/// Returns the length of the first field, including its quotes.
fn length(record: &[u8], separator: u8) -> usize {
    let mut at = 0;
    if record.first() == Some(&QUOTE) {
        at = 1;
        while let Some(quote) = memchr(QUOTE, &record[at..]) {
            at += quote + 1;
            if record.get(at) != Some(&QUOTE) {
                return at + memchr(separator, &record[at..]).unwrap_or(record.len() - at);
            }
            at += 1;
        }
        return record.len();
    }
    memchr(separator, &record[at..]).unwrap_or(record.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(text: &[u8], piece: usize) -> Vec<&[u8]> {
        let (mut splitter, mut ends) = (RecordSplitter::default(), vec![0]);
        for (i, bytes) in text.chunks(piece).enumerate() {
            splitter.feed(bytes, b',', |end| ends.push(i * piece + end));
        }
        ends.windows(2).map(|ends| &text[ends[0]..ends[1] - 1]).collect()
    }

    fn fields(record: &[u8]) -> Vec<Vec<u8>> {
        (0..).map_while(|i| field(record, b',', i, &mut Vec::new()).map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn quoted_fields_may_contain_separators_newlines_and_quotes() {
        let text = b"a,\"b,\"\"c\"\"\nd\",e\nf,g\"h,\"\"\n";
        for piece in 1..30 {
            assert_eq!(records(text, piece), [&text[..15], &text[16..24]], "in pieces of {piece}");
        }
        assert_eq!(fields(&text[..15]), [&b"a"[..], b"b,\"c\"\nd", b"e"]);
        assert_eq!(fields(b"f,g\"h,\"\"\r"), [&b"f"[..], b"g\"h", b""]);
        assert_eq!(fields(b""), [b""]);
        assert_eq!(fields(b","), [b"", b""]);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: proptest::test_runner::RngSeed::Fixed(1), failure_persistence: None, ..Default::default()
        })]
        #[test]
        fn records_written_by_another_library_are_read_back(
            table in proptest::collection::vec(proptest::collection::vec("[a-z,\"\n\r ]{0,6}", 2..5), 1..10),
            piece in 1..20usize,
        ) {
            let mut writer = ::csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            for record in &table {
                writer.write_record(record).unwrap();
            }
            let text = writer.into_inner().unwrap();
            let found: Vec<Vec<Vec<u8>>> = records(&text, piece).into_iter().map(fields).collect();
            let expected: Vec<Vec<Vec<u8>>> =
                table.iter().map(|record| record.iter().map(|field| field.clone().into_bytes()).collect()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
