//! E4: counters with variable increments and plain counters, in the same memory and at the same
//! rate.

use super::prelude::*;
use umbel::sizing::variable_increment::{best_hashes, excluded_by_b_h, excluded_by_range, rate};
use umbel::spec::KindOptions;
use umbel::variable_increment::{Increments, Scheme, gaps, is_b_h, is_b_tilde_h};
use umbel::{Counting, Hasher, Kind, Spec, VariableIncrement, counting};

pub struct VariableIncrements;

const KEYS: Parameter = Parameter::count("n", "keys", [1024; 2], [500, 100_000]);
const BUILDS: Parameter = Parameter::count("builds", "filters of each kind", [40, 50], [10, 200]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [100_000, 1_000_000], [50_000, 2_000_000]);

/// The increments of the general scheme.
const SET: [u32; 4] = [8, 12, 14, 15];
/// A `B_3` sequence.
const SEQUENCE: [u32; 4] = [1, 4, 8, 13];

/// Bits per key at which the kinds are compared.
const BUDGETS: [u64; 4] = [20, 30, 40, 50];

/// A kind of cell.
struct Cell {
    name: &'static str,
    bits: u64,
    /// Increments; none for plain counters.
    scheme: Option<Scheme>,
    excluded: Vec<f64>,
    /// Printed rates of 1024 keys for each budget, and the best k where it is printed.
    printed: [f64; 4],
    hashes: Option<[u32; 4]>,
    /// Rates that the authors print.
    authors: [Option<f64>; 4],
}

fn cells() -> Result<[Cell; 4]> {
    let general = Increments::new(1, 1, Scheme::set(&SET))?.excluded();
    Ok([
        Cell {
            name: "plain counters, 4 bits",
            bits: 4,
            scheme: None,
            excluded: vec![1.0],
            printed: [0.091_87, 0.027_28, 0.008_20, 0.002_47],
            hashes: Some([3, 5, 7, 9]),
            authors: [None, Some(0.028_03), None, Some(0.002_58)],
        },
        Cell {
            name: "B_3 with a count, 12 bits",
            bits: 12,
            scheme: Some(Scheme::b_h(&SEQUENCE, 3, false)),
            excluded: excluded_by_b_h(4, 3)?,
            printed: [0.060_83, 0.015_27, 0.003_69, 0.000_92],
            hashes: None,
            authors: [None, Some(0.015_21), None, Some(0.000_92)],
        },
        Cell {
            name: "increments 4 to 7, 7 bits",
            bits: 7,
            scheme: Some(Scheme::range(4)),
            excluded: excluded_by_range(4)?.into(),
            printed: [0.040_87, 0.008_25, 0.001_67, 0.000_33],
            hashes: Some([3, 5, 6, 8]),
            authors: [None, Some(0.008_25), None, Some(0.000_31)],
        },
        Cell {
            name: "increments 8, 12, 14, 15, 8 bits",
            bits: 8,
            scheme: Some(Scheme::set(&SET)),
            excluded: general,
            printed: [0.025_12, 0.003_98, 0.000_63, 0.000_10],
            hashes: Some([4, 6, 8, 10]),
            authors: [None, Some(0.003_83), None, Some(0.000_11)],
        },
    ])
}

impl Experiment for VariableIncrements {
    fn about(&self) -> About {
        About {
            id: "E4",
            chapter: Chapter::Kinds,
            title: "Counters with variable increments need less memory, not more",
            sources: &[ROTTENSTREICH, SCHIERZ],
            claim: "A key adds one of several increments to its cells, so a cell can exclude a key \
                    even if other keys have used it. Schierz 2022 says that this needs even more \
                    memory than plain counters, and that the increments in a cell can be read off \
                    its sum.",
            set_up: "1024 keys in 20, 30, 40 and 50 bits each, with the best k: plain counters of \
                     4 bits, the increments 4 to 7 in 7 bits, 8, 12, 14 and 15 in 8 bits, and the \
                     B_3 sequence 1, 4, 8, 13 with a count in 12 bits. Rates by formula and of the \
                     library's filters; then the memory for 2000 keys at a rate of 0.001.",
            advice: "If removal has to work on counters, take variable increments: the same rate \
                     in a quarter to a third less memory.",
            command: "`umbel build --kind variable-increment`",
            seconds: [3, 40],
            timed: false,
            parameters: &[KEYS, BUILDS, QUERIES],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        sums(&mut findings)?;
        memory(&mut findings)?;
        equal_memory(lab, &mut findings)?;
        ranges(lab, &mut findings)?;
        findings.verdict =
            "At 30 bits per key, the rate with the increments 4 to 7 is a third of that of plain \
             counters, and with 8, 12, 14 and 15 it is a seventh. At the same rate the memory is a \
             quarter to a third less: cells are wider, but fewer. The increments cannot always be \
             read off the sum: 24 and 28 have two readings each."
                .into();
        Ok(findings)
    }
}

/// Returns all ways to write `sum` as a sum of increments in non-decreasing order.
fn readings(sum: u32, increments: &[u32]) -> Vec<Vec<u32>> {
    if sum == 0 {
        return vec![Vec::new()];
    }
    let with = |i: usize| {
        let rest = sum.checked_sub(increments[i]).map_or(Vec::new(), |rest| readings(rest, &increments[i..]));
        rest.into_iter().map(move |rest| [vec![increments[i]], rest].concat())
    };
    (0..increments.len()).flat_map(with).collect()
}

/// Lists the increments that the sum of a cell allows.
fn sums(findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("sums");
    let gaps = gaps(&SET)?.unwrap_or_default();
    let possible = |sum: u32| -> Vec<u32> {
        SET.into_iter().filter(|v| sum.checked_sub(*v).is_some_and(|rest| !gaps.contains(&rest))).collect()
    };
    for sum in (8..=34).filter(|sum| !gaps.contains(sum)) {
        let texts = |increments: Vec<u32>| increments.iter().map(u32::to_string).collect::<Vec<_>>();
        let ways = readings(sum, &SET).into_iter().map(|way| texts(way).join("+")).collect::<Vec<_>>();
        sweep
            .row()
            .cell("sum", sum)
            .cell("readings", ways.join(" or "))
            .cell("increments_that_may_be_in_it", texts(possible(sum)).join(" "));
    }
    findings.add(sweep);
    let mut that = |claim: &str, holds| {
        findings.that(claim, holds).shows("e26");
    };
    that("24 = 12 + 12 = 8 + 8 + 8", readings(24, &SET) == [vec![8, 8, 8], vec![12, 12]]);
    that("28 = 14 + 14 = 8 + 8 + 12", readings(28, &SET) == [vec![8, 8, 12], vec![14, 14]]);
    that(
        "sums of two of 8, 12, 14, 15 differ from each other, but not from longer sums",
        is_b_h(&SET, 2)? && !is_b_tilde_h(&SET, 2)?,
    );
    let mut that = |claim: &str, holds| {
        findings.that(claim, holds);
    };
    that("a cell of 20 may contain 8 and 12, but neither 14 nor 15", possible(20) == [8, 12]);
    that(
        "a cell of 24 may contain 8 and 12, one of 28 also 14",
        possible(24) == [8, 12] && possible(28) == [8, 12, 14],
    );
    that(
        "17 numbers are not sums of 8, 12, 14 and 15; the largest is 33",
        gaps.len() == 17 && gaps.last() == Some(&33),
    );
    that(
        "sums of three of 1, 4, 8, 13 are all different, sums of four are not",
        is_b_h(&SEQUENCE, 3)? && !is_b_h(&SEQUENCE, 4)?,
    );
    Ok(())
}

/// Compares the memory for 2000 keys at a rate of 0.001.
fn memory(findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("memory");
    let spec = Spec::new(2000, 0.001)?;
    let plain = umbel::spec::plan(Kind::Counting, &spec)?.bits as f64;
    for (name, scheme, printed, authors) in [
        ("plain counters, 4 bits", None, 14.06, 14.1),
        ("increments 4 to 7, 7 bits", Some(Scheme::range(4)), 10.55, 10.97),
        ("increments 8, 12, 14, 15, 8 bits", Some(Scheme::set(&SET)), 9.18, 9.31),
    ] {
        let bits = match scheme {
            None => plain,
            Some(scheme) => {
                let mut options = KindOptions::default();
                options.variable_increment.scheme = scheme;
                umbel::spec::plan(Kind::VariableIncrement, &spec.clone().with_options(options))?.bits as f64
            }
        };
        let kib = bits / 8192.0;
        sweep
            .row()
            .cell("kind", name)
            .value("kib", kib, 2)
            .near(format!("KiB for 2000 keys at 0.001: {name}"), printed, 0.05 * printed)
            .cells([("printed_kib", &printed), ("authors_kb", &authors)])
            .value("over_counting", bits / plain, 3)
            .when(bits != plain, |point| {
                point.at_most(format!("memory of {name} / memory of plain counters"), 0.8).shows("e27")
            });
    }
    findings.add(sweep);
    Ok(())
}

/// Measures the rate of the library's filters.
fn measured(lab: &Lab, scheme: Option<&Scheme>, cells: u64, k: u32) -> Result<measure::Rate> {
    let (n, builds, queries) = (lab.count(&KEYS), lab.count(&BUILDS), lab.count(&QUERIES));
    match scheme {
        None => {
            let build = |hasher: Hasher| Counting::new(cells, k, counting::Options::default(), hasher);
            measure::rate(lab, builds, n, queries, build)
        }
        Some(scheme) => {
            let build = |hasher: Hasher| VariableIncrement::new(cells, k, scheme.clone(), hasher);
            measure::rate(lab, builds, n, queries, build)
        }
    }
}

fn equal_memory(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let n = lab.count(&KEYS);
    let is_printed = n == 1024;
    let mut sweep = Sweep::new("equal_memory").chart(
        "equal_memory",
        format!("Rate of filters that count, {n} keys"),
        Axis::linear("bits per key"),
        Axis::log("false-positive rate"),
    );
    let mut at_thirty = Vec::new();
    for (colour, cell) in cells()?.into_iter().enumerate() {
        let best = |budget: u64| -> Result<(u64, u32, f64)> {
            let cells = budget * n / cell.bits;
            let k = best_hashes(cells, n, &cell.excluded)?;
            Ok((cells, k, rate(cells, n, k, &cell.excluded)?))
        };
        let curve = (12..=56).map(|budget| Ok((budget as f64, best(budget)?.2)));
        sweep.series(cell.name, Mark::Line, colour, curve.collect::<Result<Vec<_>>>()?);
        for (i, budget) in BUDGETS.into_iter().enumerate() {
            let (cells, k, computed) = best(budget)?;
            let found = measured(lab, cell.scheme.as_ref(), cells, k)?;
            let of = format!("{}, {budget} bits per key", cell.name);
            if budget == 30 {
                at_thirty.push(found.mean);
            }
            sweep
                .at(budget as f64)
                .cells([("kind", &cell.name), ("bits_per_key", &budget), ("cells", &cells)])
                .exact("k", k)
                .with(cell.hashes.filter(|_| is_printed), |point, hashes| {
                    point.near(format!("{of}: best k"), hashes[i].into(), 0.0)
                })
                .value("computed", computed, 5)
                .when(is_printed, |point| {
                    point.near(format!("{of}: rate by formula"), cell.printed[i], 5.1e-6)
                })
                .optional("printed", is_printed.then_some(cell.printed[i]), 5)
                .optional("authors", cell.authors[i].filter(|_| is_printed), 5)
                .rate("measured", &found, 6)
                .dots("measured", 6)
                .agrees(format!("{of}: measured rate"), computed, 0.05);
        }
    }
    for (name, rate) in ["B_3", "4 to 7", "8, 12, 14, 15"].into_iter().zip(&at_thirty[1..]) {
        let claim = format!("30 bits per key: measured rate of {name} / rate of plain counters");
        sweep.at_most(claim, rate / at_thirty[0], 0.7).shows("e27");
    }
    findings.add(sweep);
    Ok(())
}

/// Compares the increments L to 2L-1 for growing L: more increments exclude more keys, but take
/// wider cells.
fn ranges(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let n = lab.count(&KEYS);
    let printed = [0.013_90, 0.008_25, 0.008_38, 0.011_02];
    let is_printed = n == 1024;
    let mut sweep = Sweep::new("ranges").chart(
        "ranges",
        format!("Increments L to 2L-1, 30 bits per key, {n} keys"),
        Axis::log("L"),
        Axis::linear("false-positive rate"),
    );
    for (l, printed) in [2, 4, 8, 16].into_iter().zip(printed) {
        let scheme = Scheme::range(l);
        let Scheme::Range { bits, .. } = scheme else { continue };
        let (cells, excluded) = (30 * n / u64::from(bits), excluded_by_range(l)?);
        let k = best_hashes(cells, n, &excluded)?;
        let computed = rate(cells, n, k, &excluded)?;
        let found = measured(lab, Some(&scheme), cells, k)?;
        let of = format!("L = {l}, 30 bits per key");
        sweep
            .at(l.into())
            .cells([("l", &l), ("cell_bits", &bits), ("k", &k)])
            .value("computed", computed, 5)
            .line("theory", 0)
            .when(is_printed, |point| point.near(format!("{of}: rate by formula"), printed, 5.1e-6))
            .optional("printed", is_printed.then_some(printed), 5)
            .rate("measured", &found, 6)
            .dots("measured", 1)
            .agrees(format!("{of}: measured rate"), computed, 0.05);
    }
    findings.add(sweep);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_all_ways_to_write_a_sum() {
        assert_eq!(readings(0, &SET), [Vec::<u32>::new()]);
        assert!(readings(13, &SET).is_empty());
        assert_eq!(readings(23, &SET), [vec![8, 15]]);
        assert_eq!(readings(36, &SET), [vec![8, 8, 8, 12], vec![8, 14, 14], vec![12, 12, 12]]);
    }
}
