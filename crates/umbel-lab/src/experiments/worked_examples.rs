//! E1b: the worked examples of the source documents, position by position.

use super::prelude::*;
use crate::trace::{Step, find};

pub struct WorkedExamples;

/// Values that the sources print, or that follow from them: example, step, array or `answer`, and
/// expected value.
const PRINTED: [(&str, usize, &str, &str); 93] = [
    ("insert", 1, "bits", "0000000000"),
    ("insert", 2, "bits", "0011000100"),
    ("insert", 3, "bits", "0111100101"),
    ("insert", 4, "bits", "0111100101"),
    ("search", 2, "answer", "yes"),
    ("search", 3, "answer", "no by 5"),
    ("search", 4, "answer", "false positive by 2"),
    ("search", 5, "answer", "no by 8"),
    ("search", 6, "answers", "0010100001"),
    ("two-hashes", 4, "answer", "no by 9"),
    ("two-hashes", 5, "answer", "false positive by y and x"),
    ("parameters", 4, "values", "1000 0.01 9586 7 0.010037"),
    ("counting", 2, "counters", "0010000010"),
    ("counting", 3, "counters", "0020010010"),
    ("counting", 4, "counters", "0010010000"),
    ("counting", 5, "answer", "yes"),
    ("counting", 6, "answer", "no by 8"),
    ("variable-increment", 3, "counters", "0 14 0 8 0 20 0 0 0 0"),
    ("variable-increment", 4, "answer", "no by 5 and 9"),
    ("variable-increment", 6, "answer", "no by 5"),
    ("variable-increment", 7, "total 20", "yes yes no no"),
    ("variable-increment", 7, "total 24", "yes yes no no"),
    ("variable-increment", 7, "total 28", "yes yes yes no"),
    ("variable-increment", 8, "total 9", "yes yes no no"),
    ("variable-increment", 8, "total 5", "no yes no no"),
    ("deletable", 2, "bits", "0010000010"),
    ("deletable", 2, "collisions", "00000"),
    ("deletable", 3, "bits", "0010010010"),
    ("deletable", 3, "collisions", "01000"),
    ("deletable", 4, "bits", "0010010000"),
    ("deletable", 5, "answer", "no by 8"),
    ("deletable", 6, "answer", "yes"),
    ("floom", 2, "bits", "0001000010"),
    ("floom", 2, "patterns", "00000000000000000010000000000000"),
    ("floom", 4, "answer", "no by 6"),
    ("floom", 5, "can occur", "01111110111010001110100010000000"),
    ("web-cache", 2, "answer", "yes"),
    ("web-cache", 3, "answer", "no by 0"),
    ("web-cache", 4, "answer", "false positive by a and b"),
    ("similarity", 2, "AND", "0010101011"),
    ("loop", 1, "header", "0000000000"),
    ("loop", 2, "header", "0000100010"),
    ("loop", 3, "header", "1000100010"),
    ("loop", 4, "header", "1000100010"),
    ("two-keys", 2, "bits", "0100100001"),
    ("two-keys", 3, "bits", "0100110011"),
    ("two-keys", 4, "answer", "no by 0"),
    ("two-keys", 5, "answer", "false positive by x0 and x1"),
    ("deletion", 2, "bits", "0000010010"),
    ("deletion", 3, "answer", "false negative by 4"),
    ("counters", 3, "counters", "0100210011"),
    ("counters", 4, "counters", "0000110010"),
    ("counters", 5, "answer", "yes"),
    ("overflow", 3, "counters", "0 15 0 0 15 0 0 0 0 15"),
    ("overflow", 5, "answer", "false negative by 1, 4 and 9"),
    ("overflow", 7, "answer", "yes"),
    ("blocks", 1, "offset", "ABR ACA DAB RAC ADA RAC ABA"),
    ("hierarchy", 1, "level 1", "S0S1 S2S3"),
    ("hierarchy", 2, "level 1", "S0S2 S3S1"),
    ("hierarchy", 5, "found", "S1S3 S2S1 S2S2 S3S3"),
    ("hierarchy", 6, "found", "S1S3 S2S2"),
    ("bloomier", 2, "uses", "0313002232"),
    ("bloomier", 5, "table", "00 00 00 c9 00 00 00 00 00 00"),
    ("bloomier", 6, "table", "00 00 00 c9 00 00 43 00 00 00"),
    ("bloomier", 7, "table", "00 00 00 c9 00 00 43 cf 00 00"),
    ("bloomier", 8, "table", "00 00 a2 c9 00 00 43 cf 00 00"),
    ("bloomier-mutable", 6, "table 1", "00 00 78 e9 00 00 05 bc 00 00"),
    ("bloomier-mutable", 7, "table 2", "00 00 88 22 00 00 44 11 00 00"),
    ("bloomier-mutable", 8, "table 2", "00 00 88 22 00 00 99 11 00 00"),
    ("bloomier-mask", 1, "table", "00 00 01 02 00 00 03 04 00 00"),
    ("recombination", 1, "packet 2", "S0 S2 S3 S1 S4"),
    ("growing", 2, "stage 1", "0110"),
    ("growing", 4, "stage 2", "011001101001"),
    ("growing", 6, "answer", "yes"),
    ("growing", 7, "answer", "false positive by a"),
    ("growing", 9, "rates", "0.25 0.125 0.0625"),
    ("tables", 2, "answer", "yes"),
    ("tables", 4, "answer", "no by 6 and 8"),
    ("tables", 5, "answer", "false positive by b and c"),
    ("tables", 6, "reads", "0.03 1.02"),
    ("proxies", 4, "answer", "false positive by u and v"),
    ("proxies", 5, "A counts", "0100001000"),
    ("proxies", 8, "answer", "false negative by 3 and 9"),
    ("proxies", 9, "B's copy", "0101001001"),
    ("routing", 1, "P, level 2", "101101010"),
    ("routing", 3, "answer", "yes"),
    ("routing", 5, "answer", "false positive by c and a"),
    ("traceback", 5, "answer", "no by 9"),
    ("traceback", 6, "answer", "false positive by r and s"),
    ("traceback", 7, "suspected", "yes yes no yes yes"),
    ("groups", 5, "groups", "yes no yes no"),
    ("groups", 8, "groups", "yes no yes yes"),
    ("groups", 10, "recordings", "1.00 2.33 4.33 8.33"),
];

/// Parts of the texts of steps whose answer is not an array: example, step, text.
const SAID: [(&str, usize, &str); 11] = [
    ("blocks", 2, "BRA CAD is not found at any offset"),
    ("blocks", 3, "RAC ADA is found at offset 3, and at offset 5 its first block alone"),
    ("blocks", 4, "begin at byte 8, where BRACADAR stands: it is not there"),
    ("blocks", 5, "ACA DAB is found at offset 1."),
    ("blocks", 6, "begin at byte 1, where BRACADAB stands: it is really there"),
    ("recombination", 3, "S2 S1: found at offset 2, one block from each packet: a false hit"),
    ("bloomier-mutable", 2, "A4, B2, C2 and D1"),
    ("bloomier-mask", 2, "= 00, a value: a false positive"),
    ("tables", 2, "1 table is read instead of 3"),
    ("routing", 3, "its potential is 2^-2 + 2^-3 = 0.375"),
    ("routing", 6, "sends only the bits that change: 0 and 4"),
];

/// The steps that show an error of a source document: example, step, number of the erratum.
const SHOWN: [(&str, usize, &str); 3] = [("search", 3, "e01"), ("search", 6, "e04"), ("overflow", 7, "e54")];

/// The examples that the report draws; `umbel lab trace` draws all of them.
const DRAWN: [&str; 6] = ["search", "deletion", "counters", "variable-increment", "blocks", "bloomier"];

fn value(step: &Step, what: &str) -> Option<String> {
    match what {
        "answer" => step.answer.as_ref().map(ToString::to_string),
        array => step.array(array),
    }
}

impl Experiment for WorkedExamples {
    fn about(&self) -> About {
        About {
            id: "E1b",
            chapter: Chapter::Sizing,
            title: "The worked examples, bit by bit",
            sources: &[JAMBURA, SCHIERZ, HONOROFF, ALMEIDA, FAN_CAO, RHEA, SNOEREN, KUMAR],
            claim: "With a few cells and a few keys, everything can be followed by hand: the array \
                    after each step, the certain noes, the false positives, the deletion that \
                    loses a key, the blocks that are found, and the words of the Bloomier table. \
                    The sources print most of them; the others follow from their rules.",
            set_up: "Each example runs step by step with the positions that the source gives, or \
                     with our own where it gives none. `umbel lab trace` prints and draws the \
                     examples.",
            advice: "To explain a filter, print an example; never delete a key from a \
                     plain filter by clearing its bits.",
            command: "`umbel lab trace search`; for a key of your own filter, `umbel why`",
            seconds: [1, 1],
            timed: false,
            parameters: &[],
        }
    }

    fn run(&self, _: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut sweep = Sweep::new("arrays");
        let step = |name: &str, step: usize| -> Result<Option<Step>> {
            let Some(example) = find(name) else { return Ok(None) };
            Ok(example.run()?.steps.into_iter().nth(step - 1))
        };
        for (name, number, what, expected) in PRINTED {
            let found = step(name, number)?.and_then(|step| value(&step, what)).unwrap_or_default();
            let claim = format!("{name}, step {number}: {what} {expected}");
            let shown = SHOWN.iter().find(|(example, step, _)| (*example, *step) == (name, number));
            sweep
                .row()
                .cells([("example", &name), ("step", &number), ("what", &what), ("expected", &expected)])
                .cell("found", &found)
                .that(claim, found == expected)
                .with(shown, |point, (.., erratum)| point.shows(erratum));
        }
        findings.add(sweep);
        for (name, number, expected) in SAID {
            let said = step(name, number)?.is_some_and(|step| step.says.contains(expected));
            findings.that(format!("{name}, step {number}: {expected}"), said);
        }
        for example in DRAWN.iter().filter_map(|name| find(name)) {
            findings.traces.push(example.run()?);
        }
        findings.verdict =
            "Every array and answer was computed again. In the first example position 5 rejects \
             the key 5; Jambura et al. 2026 name position 2, which holds a 1. Bits are shared, so \
             clearing the bits of a key does not remove it safely; counters make removal safe \
             until one of them overflows. Blocks at the edges of a string, and blocks of different \
             packets, produce false hits."
                .into();
        Ok(findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::trace::examples;

    #[test]
    fn every_example_gives_the_printed_values() {
        let findings = WorkedExamples.run(&Lab::new(Scale::Quick, 1)).unwrap();
        for criterion in &findings.criteria {
            assert!(criterion.holds, "{}", criterion.claim);
        }
    }

    #[test]
    fn every_example_has_rows_and_no_row_is_empty() {
        for example in examples() {
            assert!(PRINTED.iter().any(|(name, ..)| *name == example.name), "{}", example.name);
        }
        assert!(PRINTED.iter().all(|(.., expected)| !expected.is_empty()));
    }
}
