//! E12-privacy: disguised queries for counts, and how little the disguise hides.

use super::prelude::*;
use crate::keys::mix;
use crate::measure::Rate;
use umbel::{Digest, Hasher};
use umbel_net::privacy::{Table as Counts, cover};

pub struct Privacy;

const THINGS: Parameter =
    Parameter::count("things", "items that Bob knows", [20_000, 100_000], [1000, 1_000_000]);
const CELLS: Parameter = Parameter::count("cells", "cells per row", [500, 1000], [100, 10_000]);
const ASKED: Parameter = Parameter::count("asked", "items that Alice queries", [300, 2000], [100, 10_000]);

impl Experiment for Privacy {
    fn about(&self) -> About {
        About {
            id: "E12-privacy",
            chapter: Chapter::Privacy,
            title: "Asking for a count without revealing the item",
            sources: &[HONOROFF],
            claim: "Alice, who wants Bob's count of X, can query an uninteresting Y instead that \
                    falls on the same cell. Honoroff 2006 gives no protocol; this is one.",
            set_up: "Bob counts 20 000 items, whose counts fall as 1, 1/2, 1/3, ..., in one, two \
                     and three rows of 500 cells. Alice looks for a Y that shares a cell with X, \
                     queries it, and reads the bound. Bob, who knows that she does so, lists all \
                     items that share a cell with Y; and after a second and a third query for the \
                     same X, those that share a cell with each.",
            advice: "Do not rely on this for secrecy: use a single row and never ask twice for the \
                     same item with several rows, or fetch a whole range of counts.",
            command: "`umbel count ask`, which asks for a whole class of keys",
            seconds: [1, 14],
            timed: false,
            parameters: &[THINGS, CELLS, ASKED],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let (things, cells, asked) = (lab.count(&THINGS), lab.count(&CELLS), lab.count(&ASKED));
        let hasher = Hasher::fast(lab.seed);
        let known = lab.digests(&hasher, &Keys::of_build(0).members(things));
        let mut findings = Findings::default();
        let mut questions = Sweep::new("questions").chart(
            "candidates",
            "Items that Alice may be interested in, as Bob sees it",
            Axis::linear("queries for the same item"),
            Axis::log("mean number of candidates"),
        );
        let mut bounds = Sweep::new("bounds");
        for rows in 1..=3usize {
            let mut counts = Counts::new(rows, cells as usize)?;
            let seen = |rank: usize| (1000.0 / (rank + 1) as f64).ceil() as u64;
            for (rank, thing) in known.iter().enumerate() {
                (0..seen(rank)).for_each(|_| counts.record(*thing));
            }
            let mut tries = Vec::new();
            let mut candidates = [Vec::new(), Vec::new(), Vec::new()];
            let (mut truths, mut answers) = (Vec::new(), Vec::new());
            let mut below = 0;
            for question in 0..asked {
                let rank = (mix(mix(lab.seed).wrapping_add(question)) % things) as usize;
                let wanted = known[rank];
                let mut innocent = (0..).map(|number| stranger(lab, &hasher, question << 32 | number));
                let mut covers: Vec<Digest> = Vec::new();
                for found in &mut candidates {
                    // About one item in cells / rows is suitable, so there is always one.
                    let Some(cover) = cover(&counts, wanted, &mut innocent) else { break };
                    tries.push(cover.tries as f64);
                    covers.push(cover.digest);
                    found.push(counts.candidates(&covers, &known).len() as f64);
                    if covers.len() == 1 {
                        let bound = counts.query(cover.digest)[cover.row];
                        below += u64::from(bound < seen(rank));
                        truths.push(seen(rank));
                        answers.push(bound);
                    }
                }
            }
            // The probability that two items share a cell in one of the rows.
            let share = 1.0 - (1.0 - 1.0 / cells as f64).powi(rows as i32);
            let mean_tries = Rate::from_builds(&tries, 1);
            let claim = format!("rows: {rows}: items that Alice tries");
            questions.near(claim, mean_tries.mean, 1.0 / share, mean_tries.error());
            questions.at_most(format!("rows: {rows}: answers below the truth"), below as f64, 0.0);
            let mut before = 0.0;
            for (number, found) in (1..).zip(&candidates) {
                let measured = Rate::from_builds(found, 1);
                let only = found.iter().filter(|count| **count == 1.0).count() as f64 / found.len() as f64;
                // X itself, and others. With one row all covers share the same cell, and a further
                // query reveals nothing.
                let others = (things - 1) as f64;
                let expected = 1.0 + others * if rows == 1 { share } else { share.powi(number) };
                // Two covers may use the same row, and then the second reveals nothing.
                let is_exact = rows == 1 || number == 1;
                let claim = format!("rows: {rows}, queries: {number}:");
                questions
                    .at(number.into())
                    .cell("rows", rows)
                    .value("tries", mean_tries.mean, 1)
                    .value("expected_tries", 1.0 / share, 1)
                    .cell("questions", number)
                    .value("candidates", measured.mean, 2)
                    .path(format!("rows: {rows}"), rows - 1)
                    .when(is_exact, |point| {
                        let tolerance = measured.error() + 0.02 * expected;
                        point.near(format!("{claim} candidates"), expected, tolerance)
                    })
                    .when(!is_exact, |point| {
                        let claim = format!("{claim} fewer candidates than before");
                        point.that(claim, measured.mean < before)
                    })
                    .optional("expected_candidates", is_exact.then_some(expected), 2)
                    .value("only_x", only, 4);
                before = measured.mean;
            }
            truths.sort_unstable();
            answers.sort_unstable();
            let median = |sorted: &[u64]| sorted.get(sorted.len() / 2).copied().unwrap_or(0);
            bounds
                .row()
                .cell("rows", rows)
                .cell("truth_median", median(&truths))
                .cell("bound_median", median(&answers));
        }
        findings.add(questions);
        findings.add(bounds);
        findings.verdict =
            "Alice gets an upper bound, which for rare items is far above the truth, because a \
             cell holds many items. Bob learns that X is one of the items that share a cell with \
             Y. With more than one row, each further query for the same X removes most of these, \
             and often leaves only X; with one row it removes none. Bob's answer is the sum of a \
             cell, which also tells Alice about items that she has not asked for. To learn or \
             reveal less, Alice has to ask for a whole range of items at once."
                .into();
        Ok(findings)
    }
}

/// Returns an item that nobody counts.
fn stranger(lab: &Lab, hasher: &Hasher, number: u64) -> Digest {
    (lab.spoil)(umbel::Key::digest(&Keys::of_build(1).stranger(number), hasher))
}
