//! E12-similar: the similarity of two sets, from the AND of their filters.

use super::prelude::*;
use crate::measure::Rate;
use umbel::key::Hashed;
use umbel::sizing::estimate::Overlap;
use umbel::{Bloom, Digest, Standard};
use umbel_text::similarity::{Sketch, compare, fill};

pub struct Similar;

const BITS: Parameter = Parameter::count("m", "bits of a filter", [2048; 2], [256, 1_000_000]);
const HASHES: Parameter = Parameter::count("k", "hash functions", [4; 2], [1, 32]);
const ELEMENTS: Parameter = Parameter::count("n", "elements in each set", [200; 2], [20, 100_000]);
const BUILDS: Parameter = Parameter::count("builds", "pairs of filters", [400, 10_000], [50, 100_000]);

/// Quarters of the elements that are in both sets, the AND fraction, and the corrected Jaccard
/// similarity, at m = 2048, k = 4, n = 200.
const PRINTED: [(u64, f64, f64); 5] =
    [(0, 0.324, 0.001), (1, 0.470, 0.144), (2, 0.628, 0.332), (3, 0.805, 0.600), (4, 1.0, 1.0)];

/// The tolerance of a printed figure.
const TOLERANCE: f64 = 0.01;

impl Experiment for Similar {
    fn about(&self) -> About {
        About {
            id: "E12-similar",
            chapter: Chapter::Documents,
            title: "The AND of two filters shows how similar two documents are, above a floor",
            sources: &[JAIN, SCHIERZ],
            claim: "The share of the bits of A that are also set in B shows how similar two \
                    documents are, without comparing the documents.",
            set_up: "Two sets of 200 elements, of which none, a quarter, half, three quarters or \
                     all are in both, in filters of 2048 bits with k = 4, over many pairs of \
                     filters with different hashes: the share of A's bits that are in B, and the \
                     Jaccard similarity that follows from the bits of A, of B and of their union. \
                     Then disjoint sets, of which B grows.",
            advice: "Compute the Jaccard similarity from the three bit counts; use the share of \
                     common bits only to rank documents of equal size.",
            command: "`umbel similar draft1.txt draft2.txt`",
            seconds: [1, 5],
            timed: false,
            parameters: &[BITS, HASHES, ELEMENTS, BUILDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        shares(lab, &mut findings)?;
        floor(lab, &mut findings)?;
        findings.verdict =
            "The share of common bits ranks documents by similarity, but does not measure it: for \
             two sets that share nothing it equals the fill of the second filter, and a full \
             filter has everything in common with every other. The Jaccard similarity from the \
             three bit counts has no such floor, and is right on average. A subset is always \
             recognised."
                .into();
        Ok(findings)
    }
}

fn sketch(lab: &Lab, build: u64, digests: &[Digest]) -> Result<Sketch> {
    let layout = Standard::new(lab.count(&BITS), lab.count(&HASHES) as u32)?;
    let mut filter = Bloom::with_layout(layout, lab.hasher(build))?;
    filter.insert_batch(&Hashed(digests));
    Ok(filter)
}

/// Returns the similarity before it is clamped to 0 and 1.
fn unclamped(overlap: &Overlap) -> f64 {
    (overlap.left.value + overlap.right.value - overlap.union.value) / overlap.union.value
}

/// Compares sets that share more and more elements.
fn shares(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, builds) = (lab.count(&ELEMENTS), lab.count(&BUILDS));
    let as_printed = (lab.count(&BITS), lab.count(&HASHES), n) == (2048, 4, 200);
    let mut sweep = Sweep::new("similarity").chart(
        "similarity",
        "Two sets that share more and more elements",
        Axis::linear("share of the elements of each that are in both"),
        Axis::linear("similarity"),
    );
    for (quarters, and_printed, jaccard_printed) in PRINTED {
        let shared = n * quarters / 4;
        let (mut and, mut jaccard, mut inside, mut full) = (Vec::new(), Vec::new(), true, 0);
        for build in 0..builds {
            let keys = Keys::of_build(build).members(2 * n - shared);
            let digests = lab.digests(&lab.hasher(build), &keys);
            let (one, two) = digests.split_at((n - shared) as usize);
            let one = [one, &two[..shared as usize]].concat();
            let likeness = compare(&sketch(lab, build, &one)?, &sketch(lab, build, two)?)?;
            let part = compare(&sketch(lab, build, &two[..shared as usize])?, &sketch(lab, build, &one)?)?;
            inside &= part.left_inside;
            and.push(likeness.left_and);
            match likeness.overlap {
                // Not clamped at 0, so that the mean is also right for disjoint sets.
                Some(overlap) => jaccard.push(unclamped(&overlap)),
                None => full += 1,
            }
        }
        let share = shared as f64 / n as f64;
        let truth = shared as f64 / (2 * n - shared) as f64;
        let (and, spread) = (Rate::from_builds(&and, 1), Rate::from_builds(&jaccard, 1));
        let chance = 4.0 * spread.deviation / (builds as f64).sqrt();
        let claim = |what: &str| format!("{share} shared: {what}");
        sweep
            .at(share)
            .cell("shared", share)
            .optional("and_printed", as_printed.then_some(and_printed), 3)
            .value("and_measured", and.mean, 4)
            .dots("share of common bits", 0)
            .when(as_printed, |point| {
                point.near(claim("share of A's bits that are in B"), and_printed, TOLERANCE)
            })
            .value("jaccard_true", truth, 4)
            .line("Jaccard, true", 1)
            .optional("jaccard_printed", as_printed.then_some(jaccard_printed), 3)
            .value("jaccard_measured", spread.mean, 4)
            .dots("Jaccard, from the bits", 1)
            .when(as_printed, |point| {
                point.near(claim("Jaccard similarity, corrected"), jaccard_printed, TOLERANCE)
            })
            .when(full == 0, |point| {
                point.near(
                    claim("Jaccard similarity, corrected, against the true one"),
                    truth,
                    0.005 + chance,
                )
            })
            .that(claim("a subset is recognised"), inside)
            .value("jaccard_sd", spread.deviation, 4);
    }
    findings.add(sweep);
    Ok(())
}

/// Compares disjoint sets, of which the second grows.
fn floor(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (m, k, n) = (lab.count(&BITS) as f64, lab.count(&HASHES) as f64, lab.count(&ELEMENTS));
    let builds = lab.count(&BUILDS) / 4;
    let mut sweep = Sweep::new("floor").chart(
        "floor",
        "Two sets that share no element",
        Axis::linear("elements of B"),
        Axis::linear("share of A's bits that are in B"),
    );
    for eighths in [1, 2, 4, 8, 16, 24] {
        let others = (n * eighths / 8).max(1);
        let (mut and, mut filled, mut jaccard) = (Vec::new(), Vec::new(), Vec::new());
        for build in 0..builds {
            let digests = lab.digests(&lab.hasher(build), &Keys::of_build(build).members(n + others));
            let (one, two) = digests.split_at(n as usize);
            let (one, two) = (sketch(lab, build, one)?, sketch(lab, build, two)?);
            let likeness = compare(&one, &two)?;
            and.push(likeness.left_and);
            filled.push(fill(&two));
            jaccard.extend(likeness.overlap.as_ref().map(unclamped));
        }
        let (and, filled, jaccard) =
            (Rate::from_builds(&and, 1), Rate::from_builds(&filled, 1), Rate::from_builds(&jaccard, 1));
        let chance = 4.0 * and.deviation / (builds as f64).sqrt();
        let claim = format!("nothing shared, {others} elements in B: share of common bits minus fill of B");
        sweep
            .at(others as f64)
            .cell("elements_of_b", others)
            .hidden(1.0 - (-k * others as f64 / m).exp())
            .line("fill of B", 0)
            .value("fill_of_b", filled.mean, 4)
            .value("and_measured", and.mean, 4)
            .dots("measured", 0)
            .hidden(and.mean - filled.mean)
            .near(claim, 0.0, 0.001 + chance)
            .value("jaccard_measured", jaccard.mean, 4);
    }
    findings.add(sweep);
    Ok(())
}
