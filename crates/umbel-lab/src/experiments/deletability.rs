//! E5: which share of its keys a deletable filter can remove: three formulas and a simulation.

use super::prelude::*;
use crate::measure::Rate;
use umbel::internals::Structure;
use umbel::sizing::deletable::{complement, deletability, filter_bits, printed, resettable};
use umbel::{Deletable, Digest, Removed, Standard, hash::reduce};

pub struct Deletability;

/// m, k, n, r, and what simulations of others found.
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

/// Filters of so many keys are large.
const LARGE: u64 = 500;

const BITS: Parameter = Parameter::count("m", "bits of the filter in the chart", [240; 2], [40, 100_000]);
const HASHES: Parameter = Parameter::count("k", "hash functions of the filter in the chart", [5; 2], [1, 32]);
const KEYS: Parameter = Parameter::count("n", "keys of the filter in the chart", [22; 2], [1, 10_000]);
const TRIALS: Parameter = Parameter::count(
    "trials",
    "small filters for each share; of large ones a tenth",
    [40_000, 200_000],
    [20_000, 1_000_000],
);

impl Experiment for Deletability {
    fn about(&self) -> About {
        About {
            id: "E5",
            title: "How many keys a deletable filter can remove",
            source: "Rothenberg et al. 2010; Schierz 2022 (Wie zuverlässig ist Probabilismus)",
            claim: "Of m bits, r tell in which regions of the others keys have collided. A key can be removed with the \
                    probability (1 - a)^k, where a is the probability that a region has no collision.",
            set_up: "Many filters with different hashes are filled, and asked for each of their keys whether it can be removed; \
                     positions of a key may coincide, which counts as a collision. Beside it the printed formula, one minus \
                     what is printed, and a formula that knows that the key's own cells are hit. The chart has filters of one \
                     size with regions of 1 to 39 bits.",
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
            "What is printed is the probability that a key cannot be removed. One minus that is still too high, \
                            by 0.07 to 0.23, because a key's own cells are certainly hit and must not be hit again. With that \
                            condition the formula is within 0.05 of the simulation."
                .into();
        Ok(findings)
    }
}

/// What was found in many filters of one shape.
struct Found {
    /// The share of keys that can be removed.
    deletable: Rate,
    /// The share of hits that lie in regions without a collision.
    resettable: f64,
}

/// Fills many filters of `layout`, and asks for all of their keys.
fn simulate(lab: &Lab, layout: Standard, region_bits: u64, n: u64, k: u32) -> Result<Found> {
    // Large filters differ less among themselves.
    let trials = lab.count(&TRIALS) / if n < LARGE { 1 } else { 10 };
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
    // A share is no rate of independent answers: what filters differ by is all that counts.
    let deletable = Rate::from_builds(&shares, n);
    Ok(Found { deletable, resettable: free as f64 / (trials * n * u64::from(k)) as f64 })
}

fn rows(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let columns =
        ["m", "k", "n", "r", "printed", "one_minus_printed", "umbel", "simulated_elsewhere", "simulated"];
    let mut table = Table::new("deletability", &columns);
    let mut by_regions = Vec::new();
    for (number, (m, k, n, r, elsewhere)) in ROWS.into_iter().enumerate() {
        let bits = m - r;
        let found = simulate(lab, Standard::new(bits, k)?, bits.div_ceil(r), n, k)?;
        let (share, chance) = (found.deletable.mean, found.deletable.chance(found.deletable.mean));
        let [said, less, own] = [printed, complement, deletability].map(|formula| formula(bits, r, n, k));
        let (said, less, own) = (said?, less?, own?);
        let of = format!("m = {m}, k = {k}, n = {n}, r = {r}");
        let claim = format!("{of}: share that can be removed");
        findings.near(claim, share, elsewhere, chance.max(0.01));
        let claim = format!("{of}: the same, by the corrected formula");
        findings.near(claim, share, own, 0.05 + chance);
        findings
            .at_least(format!("{of}: one minus the printed formula is too high by"), less - share, 0.05)
            .shows("e23");
        if number == 0 {
            let expected = resettable(bits, r, n, k)?;
            let claim = format!("{of}: share of hits in regions without a collision");
            findings.near(claim.clone(), found.resettable, 0.275, 0.01);
            findings.near(format!("{claim}, by formula"), found.resettable, expected, 0.01);
        }
        if (m, k, n) == (240, 5, 22) {
            by_regions.push((r, said, share));
        }
        table.add([
            m.to_string(),
            k.to_string(),
            n.to_string(),
            r.to_string(),
            format!("{said:.4}"),
            format!("{less:.4}"),
            format!("{own:.4}"),
            format!("{elsewhere:.3}"),
            format!("{share:.4}"),
        ]);
    }
    by_regions.sort_by_key(|(r, ..)| *r);
    let falls = by_regions.windows(2).all(|pair| pair[1].1 < pair[0].1);
    let claim = "with more regions, r = 12, 24, 60, 120, the printed probability falls, and from 12 to 60 the share rises";
    let rises = by_regions[..3].windows(2).all(|pair| pair[1].2 > pair[0].2);
    findings.that(claim, falls && rises).shows("e23");
    findings.tables.push(table);
    Ok(())
}

/// The most collision bits that make sense.
fn worst_case(findings: &mut Findings) -> Result<()> {
    let (bits, n) = (1000, 100);
    let regions = |region_bits| -> Result<f64> {
        let filter = Deletable::with_layout(Standard::new(bits, 7)?, region_bits, umbel::Hasher::default())?;
        Ok(1.0 + filter.regions() as f64 / bits as f64)
    };
    let claim = "memory with a region for each bit, over that of the bits alone";
    findings.near(claim, regions(1)?, 2.0, 1e-9).shows("e24");
    let claim = "the same with a region for each key, at ten bits per key";
    findings.near(claim, regions(bits / n)?, 1.1, 1e-9).shows("e24");
    Ok(())
}

fn chart(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (m, k, n) = (lab.count(&BITS), lab.count(&HASHES) as u32, lab.count(&KEYS));
    let mut table =
        Table::new("regions", &["r", "region_bits", "printed", "one_minus_printed", "umbel", "simulated"]);
    let mut curves: [Vec<(f64, f64)>; 4] = Default::default();
    for region_bits in REGIONS {
        let bits = filter_bits(m, region_bits)?;
        let r = bits.div_ceil(region_bits);
        let share = simulate(lab, Standard::new(bits, k)?, region_bits, n, k)?.deletable.mean;
        let [said, less, own] = [printed, complement, deletability].map(|formula| formula(bits, r, n, k));
        let values = [own?, said?, less?, share];
        curves.iter_mut().zip(values).for_each(|(curve, value)| curve.push((r as f64, value)));
        let [own, said, less, share] = values.map(|value| format!("{value:.4}"));
        table.add([r.to_string(), region_bits.to_string(), said, less, own, share]);
    }
    let [own, said, less, share] = curves;
    findings.tables.push(table);
    findings.charts.push(Chart {
        name: "regions".into(),
        title: format!("Keys that can be removed: m = {m}, k = {k}, n = {n}"),
        x: Axis::linear("regions r, each of which costs a bit"),
        y: Axis::linear("share of keys that can be removed"),
        series: vec![
            Series::new("as printed", Mark::Dashes, 1, said),
            Series::new("one minus that", Mark::Dashes, 4, less),
            Series::new("corrected", Mark::Line, 0, own),
            Series::new("simulated", Mark::Dots, 2, share),
        ],
    });
    Ok(())
}

/// The published program looks for the region of a position by `while (pos > j*m/b) j++`.
fn region_test(findings: &mut Findings) {
    let by_search = |position: u64, m: u64, b: u64| (1..=b).find(|j| position <= j * m / b).unwrap_or(b) - 1;
    let (m, b) = (480, 16);
    let moved: Vec<u64> = (0..m).filter(|at| by_search(*at, m, b) != at * b / m).collect();
    let boundaries: Vec<u64> = (1..b).map(|j| j * m / b).collect();
    findings.that(
            "480 bits in 16 regions: the published search puts the first bit of each but the first into the one below",
            moved == boundaries,
        ).shows("e36");
}
