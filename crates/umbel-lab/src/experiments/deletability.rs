//! E5: the share of its keys that a deletable filter can remove, by three formulas and a
//! simulation.

use super::prelude::*;
use crate::measure::Rate;
use umbel::internals::Structure;
use umbel::sizing::deletable::{complement, deletability, filter_bits, printed, resettable};
use umbel::{Deletable, Digest, Removed, Standard, hash::reduce};

pub struct Deletability;

/// m, k, n and r, and the share that other simulations found.
const ROWS: [(u64, u32, u64, u64, f64); 9] = [
    (240, 5, 22, 24, 0.786),
    (240, 5, 22, 12, 0.455),
    (240, 5, 22, 60, 0.929),
    (240, 5, 22, 120, 0.925),
    (240, 5, 35, 24, 0.321),
    (1000, 7, 100, 100, 0.481),
    (1000, 7, 100, 250, 0.835),
    (10_000, 7, 1000, 1000, 0.483),
    (10_000, 5, 625, 500, 0.854),
];

/// Bits of a region in the chart.
const REGIONS: [u64; 12] = [1, 2, 3, 4, 5, 7, 9, 11, 14, 19, 29, 39];

/// The number of keys from which on a filter counts as large.
const LARGE_FILTER_KEYS: u64 = 500;

const BITS: Parameter = Parameter::count("m", "bits of the filter in the chart", [240; 2], [40, 100_000]);
const HASHES: Parameter = Parameter::count("k", "hash functions of the filter in the chart", [5; 2], [1, 32]);
const KEYS: Parameter = Parameter::count("n", "keys in the filter of the chart", [22; 2], [1, 10_000]);
const TRIALS: Parameter = Parameter::count(
    "trials",
    "filters for each share; a tenth as many if they are large",
    [40_000, 200_000],
    [20_000, 1_000_000],
);

impl Experiment for Deletability {
    fn about(&self) -> About {
        About {
            id: "E5",
            chapter: Chapter::Kinds,
            title: "How many keys a deletable filter can remove",
            sources: &[ROTHENBERG, SCHIERZ],
            claim: "Of m bits, r record in which regions of the other bits keys have collided. A \
                    key can be removed with the probability (1 - a)^k, where a is the probability \
                    that a region has no collision.",
            set_up: "Many filters with different hashes are filled, and each of their keys is \
                     tested for whether it can be removed; a key whose positions coincide counts \
                     as a collision. Three formulas are compared with this simulation: the printed \
                     one, one minus the printed one, and one that takes into account that the \
                     key's own cells are hit. The chart shows filters of one size with regions of \
                     1 to 39 bits.",
            advice: "Use a deletable filter if it is enough that most removals succeed, and choose \
                     the size of its regions by the corrected formula.",
            command: "`umbel build --kind deletable --region-bits 4`",
            seconds: [3, 12],
            timed: false,
            parameters: &[BITS, HASHES, KEYS, TRIALS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        rows(lab, &mut findings)?;
        worst_case(&mut findings)?;
        chart(lab, &mut findings)?;
        region_test(&mut findings);
        findings.verdict =
            "The printed formula is the probability that a key cannot be removed. One minus it is \
             still too high, by 0.07 to 0.23, because a key's own cells are certainly hit and must \
             not be hit again. With that condition the formula is within 0.05 of the simulation."
                .into();
        Ok(findings)
    }
}

/// The shares measured with many filters of one size.
struct Simulated {
    /// Share of keys that can be removed.
    deletable: Rate,
    /// Share of hits that lie in regions without a collision.
    resettable: f64,
}

/// Fills many filters of `layout` and tests all of their keys.
fn simulate(lab: &Lab, layout: Standard, region_bits: u64, n: u64, k: u32) -> Result<Simulated> {
    // Large filters vary less.
    let trials = lab.count(&TRIALS) / if n < LARGE_FILTER_KEYS { 1 } else { 10 };
    let mut filter = Deletable::with_layout(layout, region_bits, lab.hasher(0))?;
    let bits = filter.stats().cells;
    let (mut shares, mut free) = (Vec::new(), 0u64);
    for trial in 0..trials {
        filter.clear();
        let digests: Vec<Digest> = lab.digests(&lab.hasher(trial), &Keys::of_build(trial).members(n));
        filter.insert_tile(&digests);
        let can = digests.iter().filter(|digest| filter.would_remove_digest(**digest) == Removed::Removed);
        shares.push(can.count() as f64 / n as f64);
        let sections = filter.sections();
        let collisions = sections.last().map_or(&[][..], |(_, words)| words.words());
        let hits = digests.iter().flat_map(|digest| digest.stream().take(k as usize));
        let regions = hits.map(|x| reduce(x, bits) / region_bits);
        free += regions.filter(|at| collisions[(at / 64) as usize] >> (at % 64) & 1 == 0).count() as u64;
    }
    // The keys of one filter are not independent, so only the variation between filters counts.
    let deletable = Rate::from_builds(&shares, n);
    Ok(Simulated { deletable, resettable: free as f64 / (trials * n * u64::from(k)) as f64 })
}

fn rows(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("deletability");
    let mut by_regions = Vec::new();
    for (number, (m, k, n, r, elsewhere)) in ROWS.into_iter().enumerate() {
        let bits = m - r;
        let found = simulate(lab, Standard::new(bits, k)?, bits.div_ceil(r), n, k)?;
        let (share, chance) = (found.deletable.mean, found.deletable.chance(found.deletable.mean));
        let formulas = [printed, complement, deletability].map(|formula| formula(bits, r, n, k));
        let [as_printed, less, own] = formulas;
        let (as_printed, less, own) = (as_printed?, less?, own?);
        let of = format!("m = {m}, k = {k}, n = {n}, r = {r}");
        let claim = |text: &str| format!("{of}: {text}");
        let free = "share of hits in regions without a collision";
        let expected = resettable(bits, r, n, k)?;
        sweep
            .row()
            .cells([("m", &m), ("k", &k), ("n", &n), ("r", &r)])
            .value("printed", as_printed, 4)
            .value("one_minus_printed", less, 4)
            .value("umbel", own, 4)
            .value("simulated_elsewhere", elsewhere, 3)
            .value("simulated", share, 4)
            .near(claim("share that can be removed"), elsewhere, chance.max(0.01))
            .near(claim("share that can be removed, by the corrected formula"), own, 0.05 + chance)
            .hidden(less - share)
            .at_least(claim("excess of one minus the printed formula"), 0.05)
            .shows("e23")
            .hidden(found.resettable)
            .when(number == 0, |point| {
                point.near(claim(free), 0.275, 0.01).near(
                    claim(&format!("{free}, by formula")),
                    expected,
                    0.01,
                )
            });
        if (m, k, n) == (240, 5, 22) {
            by_regions.push((r, as_printed, share));
        }
    }
    by_regions.sort_by_key(|(r, ..)| *r);
    let falls = by_regions.windows(2).all(|pair| pair[1].1 < pair[0].1);
    let claim = "with more regions (r = 12, 24, 60, 120) the printed probability falls, \
         although the share rises from 12 to 60";
    let rises = by_regions[..3].windows(2).all(|pair| pair[1].2 > pair[0].2);
    sweep.that(claim, falls && rises).shows("e23");
    findings.add(sweep);
    Ok(())
}

/// Checks the memory with the largest sensible number of collision bits.
fn worst_case(findings: &mut Findings) -> Result<()> {
    let (bits, n) = (1000, 100);
    let regions = |region_bits| -> Result<f64> {
        let filter = Deletable::with_layout(Standard::new(bits, 7)?, region_bits, umbel::Hasher::default())?;
        Ok(1.0 + filter.regions() as f64 / bits as f64)
    };
    let claim = "memory with a region for each bit / memory of the bits alone";
    findings.near(claim, regions(1)?, 2.0, 1e-9).shows("e24");
    let claim = "the same with one region per key, at ten bits per key";
    findings.near(claim, regions(bits / n)?, 1.1, 1e-9).shows("e24");
    Ok(())
}

fn chart(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (m, k, n) = (lab.count(&BITS), lab.count(&HASHES) as u32, lab.count(&KEYS));
    let mut sweep = Sweep::new("regions").chart(
        "regions",
        format!("Keys that can be removed: m = {m}, k = {k}, n = {n}"),
        Axis::linear("regions r, at one bit each"),
        Axis::linear("share of keys that can be removed"),
    );
    for region_bits in REGIONS {
        let bits = filter_bits(m, region_bits)?;
        let r = bits.div_ceil(region_bits);
        let share = simulate(lab, Standard::new(bits, k)?, region_bits, n, k)?.deletable.mean;
        let formulas = [printed, complement, deletability].map(|formula| formula(bits, r, n, k));
        let [as_printed, less, own] = formulas;
        sweep
            .at(r as f64)
            .cells([("r", &r), ("region_bits", &region_bits)])
            .value("printed", as_printed?, 4)
            .dashes("as printed", 1)
            .value("one_minus_printed", less?, 4)
            .dashes("one minus the printed formula", 4)
            .value("umbel", own?, 4)
            .line("corrected", 0)
            .value("simulated", share, 4)
            .dots("simulated", 2);
    }
    findings.add(sweep);
    Ok(())
}

/// Checks the published program, which finds the region of a position by `while (pos > j*m/b) j++`.
fn region_test(findings: &mut Findings) {
    let by_search = |position: u64, m: u64, b: u64| (1..=b).find(|j| position <= j * m / b).unwrap_or(b) - 1;
    let (m, b) = (480, 16);
    let moved: Vec<u64> = (0..m).filter(|at| by_search(*at, m, b) != at * b / m).collect();
    let boundaries: Vec<u64> = (1..b).map(|j| j * m / b).collect();
    findings
        .that(
            "480 bits in 16 regions: the published search puts the first bit of \
         each region but the first into the region below",
            moved == boundaries,
        )
        .shows("e36");
}
