//! CSV is read as by the `csv` crate: long files, whose records cross block boundaries, and
//! arbitrary text.

use crate::shell::{self, Shell, mix};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::HashSet;

/// A fixed sequence of pseudorandom numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 += 1;
        mix(self.0) % end
    }
}

/// Returns text that usually needs quotes; sometimes longer than a block of 256 KiB, in which no
/// record ends.
fn field(dice: &mut Dice) -> String {
    const PIECES: [&str; 10] = ["a", "bc", "xyz", " ", ",", "\"", "\n", "\r\n", "é", "\"\""];
    let len = match dice.below(2_000) {
        0 => 200_000,
        1..200 => 100 + dice.below(2_000),
        _ => dice.below(12),
    };
    (0..len).map(|_| PIECES[dice.below(PIECES.len() as u64) as usize]).collect()
}

/// Returns rows of three fields; the second is the key.
fn rows(count: u64) -> Vec<[String; 3]> {
    let mut dice = Dice(1 << 32);
    (0..count).map(|number| [number.to_string(), field(&mut dice), field(&mut dice)]).collect()
}

fn encode(row: &[String], terminator: csv::Terminator) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
    writer.write_record(row).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn records_of_long_files_agree_with_another_library() {
    let shell = Shell::new();
    let rows = rows(8_000);
    for (terminator, end) in [(csv::Terminator::Any(b'\n'), "\n"), (csv::Terminator::CRLF, "\r\n")] {
        let records: Vec<Vec<u8>> = rows.iter().map(|row| encode(row, terminator)).collect();
        let text = [format!("id,key,rest{end}").as_bytes(), &records.concat()].concat();
        assert!(text.len() > 3 << 20, "several blocks of 256 KiB: {}", text.len());
        assert!(records.iter().any(|record| record.len() > 256 << 10), "a record longer than a block");
        shell.write("table.csv", &text);
        // The other library reads the rows that were written.
        let mut reader = csv::Reader::from_reader(&text[..]);
        let keys: Vec<Vec<u8>> = reader.byte_records().map(|record| record.unwrap()[1].to_vec()).collect();
        assert!(keys.iter().map(Vec::as_slice).eq(rows.iter().map(|row| row[1].as_bytes())));

        let zero =
            |keys: &[&[u8]]| keys.iter().flat_map(|key| [key, &b"\0"[..]].concat()).collect::<Vec<u8>>();
        let all: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let half: HashSet<&[u8]> = all.iter().copied().step_by(2).collect();
        shell.build("all", "-f -0 -p 1e-9", zero(&all));
        shell.build("half", "-f -0 -p 1e-12", zero(&half.iter().copied().collect::<Vec<_>>()));
        let printed = |member: bool| -> Vec<u8> {
            let chosen = records.iter().zip(&all).filter(|(_, key)| half.contains(*key) == member);
            chosen.flat_map(|(record, _)| record.clone()).collect()
        };
        for threads in ["1", "2", "7"] {
            let run = |args: &[&str]| {
                let csv = ["--csv", "--header", "-F", "key", "-j", threads, "table.csv"];
                shell.run(&[args, &csv].concat()).ok().stdout
            };
            run(&["build", "-f", "-p", "1e-9", "-o", "f"]);
            assert!(shell.read("f") == shell.read("all"), "build, {threads} threads");
            assert!(run(&["check", "half"]) == printed(true), "check, {threads} threads");
            assert!(run(&["check", "-v", "half"]) == printed(false), "check -v, {threads} threads");
            let fields = run(&["check", "all", "--print-field"]);
            assert!(fields == shell::text(&all), "--print-field, {threads} threads");
            let firsts = run(&["uniq", "-q", "--print-field"]);
            assert!(firsts == shell::text(&shell::first_occurrences(&all)), "uniq, {threads} threads");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200, rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..Default::default()
    })]
    /// For quotes in the middle of a field, text after a closing quote, unclosed quotes and empty
    /// lines, the second field of every record is the same.
    #[test]
    fn fields_of_any_text_agree_with_another_library(text in "[ab,\"\n]{0,40}") {
        let shell = Shell::new();
        // An empty filter contains no key, so -v prints every key.
        shell.build("empty", "-n 1", "");
        let fields_of = |text: &str| shell.pipe("check -v --csv -F 2 --print-field empty", text);
        let (mut answer, mut text) = (fields_of(&text), text);
        if answer.stderr.contains("never closed") {
            answer.failed(&["a quote is never closed in the record that starts with"]);
            // An unclosed quote is the only possible error.
            text.push('"');
            answer = fields_of(&text);
            prop_assert!(!answer.stderr.contains("never closed"), "{}", answer.stderr);
        }
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let records = reader.byte_records().map(|record| record.unwrap());
        let fields: Vec<Vec<u8>> = records.filter_map(|record| record.get(1).map(<[u8]>::to_vec)).collect();
        prop_assert_eq!(answer.stdout, shell::text(&fields));
    }
}
