//! E1b: the worked examples of the sources, position by position.

use crate::{About, Criterion, Experiment, Findings, Lab, Table};
use umbel::Result;

pub struct WorkedExamples;

/// A bit array as the sources draw it, index 0 first.
struct Bits([bool; 10]);

impl Bits {
    fn set(&mut self, positions: &[usize]) {
        positions.iter().for_each(|position| self.0[*position] = true);
    }

    fn has(&self, positions: &[usize]) -> bool {
        positions.iter().all(|position| self.0[*position])
    }

    fn drawn(&self) -> String {
        self.0.iter().map(|bit| if *bit { '1' } else { '0' }).collect()
    }
}

/// The three hash functions of the first example; they depend on the last digit alone.
fn positions(x: u64) -> [usize; 3] {
    [x % 10, (2 * x + 3) % 10, (3 * x + 7) % 10].map(|position| position as usize)
}

impl Experiment for WorkedExamples {
    fn about(&self) -> About {
        About {
            id: "E1b",
            title: "The worked examples, bit by bit",
            source: "a seminar paper and lecture slides",
            claim: "Ten bits, three hash functions, a few keys: the arrays after each insertion, a certain no, and a false \
                    positive are those that are printed.",
            set_up: "The examples' own positions, in order. The second one also clears the bits of a key, which must make \
                     another one disappear.",
            seconds: [1, 1],
            timed: false,
            parameters: &[],
        }
    }

    fn run(&self, _: &Lab) -> Result<Findings> {
        let mut table = Table::new("arrays", &["example", "step", "array"]);
        let mut findings = Findings::default();
        let mut check = |claim: &str, holds: bool| findings.criteria.push(Criterion::that(claim, holds));

        let mut bits = Bits([false; 10]);
        for (key, printed) in [(2, "0011000100"), (4, "0111100101"), (9, "0111100101")] {
            bits.set(&positions(key));
            table.add(["one".into(), format!("after {key}"), bits.drawn()]);
            check(&format!("the array after {key} is {printed}"), bits.drawn() == printed);
        }
        check("4 is found", bits.has(&positions(4)));
        check("5 is certainly not a member, because of position 5", !bits.has(&positions(5)) && !bits.0[5]);
        check("12 is a false positive", bits.has(&positions(12)));
        let yes: Vec<u64> = (0..10).filter(|x| bits.has(&positions(*x))).collect();
        check(
            "of all last digits 2, 4 and 9 are found: a rate of 0.3, not the formula's 0.2299",
            yes == [2, 4, 9],
        );

        let mut bits = Bits([false; 10]);
        for (key, positions, printed) in [("x0", [1, 4, 9], "0100100001"), ("x1", [4, 5, 8], "0100110011")] {
            bits.set(&positions);
            table.add(["two".into(), format!("after {key}"), bits.drawn()]);
            check(&format!("the array after {key} is {printed}"), bits.drawn() == printed);
        }
        check("y0 is certainly not a member", !bits.has(&[0, 4, 8]));
        check("y1 is a false positive", bits.has(&[1, 5, 8]));
        [1, 4, 9].into_iter().for_each(|position: usize| bits.0[position] = false);
        table.add(["two".into(), "after clearing the bits of x0".into(), bits.drawn()]);
        check("clearing the bits of x0 loses x1", bits.drawn() == "0000010010" && !bits.has(&[4, 5, 8]));

        findings.tables.push(table);
        findings.verdict =
            "All arrays and answers are as printed. Bits are shared, so a key cannot be removed by clearing \
                            its bits: that is what counting filters are for."
                .into();
        Ok(findings)
    }
}
