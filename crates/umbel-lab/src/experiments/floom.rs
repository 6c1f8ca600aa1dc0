//! E7: the Floom filter, which records the patterns of regions that its keys have hit, and does not
//! pay off.

use super::prelude::*;
use crate::measure::Rate;
use umbel::Standard;
use umbel::floom::Floom;
use umbel::floom::Options;
use umbel::literature::{Family, Literature, Scheme};
use umbel::sizing::{KPolicy, Params, floom, rate};

pub struct Patterns;

/// n, p and b, and the published rates of one run each: standard, Floom, and the standard filter of
/// equal memory.
const PUBLISHED: [(u64, f64, u32, [f64; 3]); 10] = [
    (1000, 0.01, 16, [0.009706, 0.000452, 0.0]),
    (10_000, 0.01, 16, [0.009763, 0.003593, 0.000423]),
    (50_000, 0.01, 16, [0.010043, 0.008637, 0.005283]),
    (100_000, 0.01, 16, [0.010096, 0.009663, 0.007228]),
    (200_000, 0.01, 16, [0.009979, 0.009928, 0.008551]),
    (300_000, 0.01, 16, [0.010133, 0.010106, 0.009103]),
    (500, 0.05, 8, [0.05134, 0.04773, 0.04159]),
    (1000, 0.05, 8, [0.05140, 0.05102, 0.04333]),
    (10_000, 0.03, 20, [0.02988, 0.01169, 0.0]),
    (50_000, 0.03, 20, [0.03008, 0.02684, 0.0]),
];

/// The combinations with published figures: each n with each p and each b.
const GRID_N: [u64; 10] = [500, 1000, 10_000, 20_000, 30_000, 50_000, 100_000, 200_000, 300_000, 500_000];
const GRID_P: [f64; 5] = [0.005, 0.01, 0.02, 0.03, 0.05];
const GRID_B: [u32; 6] = [8, 10, 12, 14, 16, 20];

/// The numbers of a run of the grid, inserted and looked up together.
const NUMBERS: u64 = 1_000_000;

const NAMES: [&str; 3] = ["standard", "Floom", "standard of equal memory"];

const KEYS: Parameter = Parameter::count("n", "keys in a filter", [50_000; 2], [500, 1_000_000]);
const RATE: Parameter = Parameter::real("p", "rate of the standard filter", [0.01; 2], [0.001, 0.3]);
const REGIONS: Parameter = Parameter::count("b", "regions of the filter", [16; 2], [2, 24]);
const BUILDS: Parameter = Parameter::count("builds", "filters of each shape", [10; 2], [5, 1000]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [100_000, 1_000_000], [1000, 10_000_000]);

impl Experiment for Patterns {
    fn about(&self) -> About {
        About {
            id: "E7",
            chapter: Chapter::Kinds,
            title: "The Floom filter lowers the rate, but the same memory spent on bits lowers it \
                    more",
            sources: &[SCHIERZ],
            claim: "A table of 2^b bits beside a standard filter, for the patterns of regions that \
                    keys have hit, lowers the rate, but not below that of a standard filter of the \
                    same total memory. Only the first bit of the table is said to be wasted.",
            set_up: "M = 8 ceil(m/8) bits for n keys at the rate p, 2^b bits for the patterns of b \
                     regions, and for comparison a standard filter of M + 2^b bits with a k of its \
                     own. Decimal numbers are hashed as in the published program, with MurmurHash3 \
                     and the seeds 0, 1, 2, ...; each measured rate has to agree with theory \
                     within 2 % and chance. The table also lists the published figures, one run \
                     each. Theory is evaluated for the 300 combinations of n, p and b with \
                     published figures, and for a grid of ranked tables, which waste nothing; the \
                     full run also measures the 300, once each, with 1 000 000 numbers of which n \
                     are inserted.",
            advice: "Do not use a Floom filter: give its extra memory to a standard filter \
                     instead.",
            command: "`umbel build --kind floom`",
            seconds: [6, 70],
            timed: false,
            parameters: &[KEYS, RATE, REGIONS, BUILDS, QUERIES],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        rows(lab, &mut findings)?;
        let measured = grid(lab, &mut findings)?;
        never(lab, &mut findings)?;
        waste(lab, &mut findings)?;
        findings.verdict =
            "As long as there are few keys, the table lowers the rate of the filter that it is \
                            added to. The same bits in the filter itself lower it more: by theory \
                            in each of the combinations, however small the table is. Most of the \
                            table can never be addressed, as a key hits at most k regions."
                .to_string()
                + &measured;
        Ok(findings)
    }
}

/// The sizes of the three filters.
#[derive(Clone, Copy)]
struct FloomShape {
    n: u64,
    regions: u32,
    bits: u64,
    hashes: u32,
    /// Bits and hash functions of the standard filter of equal memory.
    equal: (u64, u32),
}

impl FloomShape {
    /// Sizes the filters as published: M is rounded up to bytes, and k follows from the bits before
    /// rounding.
    fn new(n: u64, p: f64, regions: u32) -> Result<FloomShape> {
        let params = Params::for_capacity(n, p, KPolicy::Round)?;
        let bits = params.bits.next_multiple_of(8);
        let equal = bits + (1 << regions);
        // The family has no more functions. Where more would be best, the rate is practically zero
        // anyway.
        let hashes = KPolicy::Round.hashes(equal, n)?.min(Family::Murmur3.max_hashes());
        Ok(FloomShape { n, regions, bits, hashes: params.hashes, equal: (equal, hashes) })
    }

    /// Returns the theoretical rates of the three filters.
    fn theory(&self) -> Result<[f64; 3]> {
        let standard = rate::classic(self.bits, self.n, self.hashes)?;
        let floom = floom::rate(self.bits, self.n, self.hashes, self.regions)?;
        Ok([standard, floom, rate::classic(self.equal.0, self.n, self.equal.1)?])
    }

    /// Returns the relative error of a rate that is measured with one filter: the counting error,
    /// and the variation in the number of set bits.
    fn error(bits: u64, n: u64, hashes: u32, rate: f64, queries: u64) -> f64 {
        let load = f64::from(hashes) * n as f64 / bits as f64;
        let zeros = (-load).exp();
        let of_fill = (zeros * (1.0 - (1.0 + load) * zeros) / bits as f64).sqrt() / (1.0 - zeros);
        (1.0 / (rate * queries as f64)).sqrt().hypot(f64::from(hashes) * of_fill)
    }
}

/// The three filters, with the hash of the published program.
struct Three {
    regions: u64,
    standard: Literature,
    seen: Vec<bool>,
    equal: Literature,
}

impl Three {
    fn new(shape: &FloomShape) -> Result<Three> {
        let filter = |hashes, bits| Literature::new(Scheme::new(Family::Murmur3, hashes, bits)?);
        Ok(Three {
            regions: shape.regions.into(),
            standard: filter(shape.hashes, shape.bits)?,
            seen: vec![false; 1 << shape.regions],
            equal: filter(shape.equal.1, shape.equal.0)?,
        })
    }

    /// Returns the regions of a key, one bit each. A position on a boundary belongs to the lower
    /// region, as in the program.
    fn pattern(&self, key: &str) -> usize {
        let scheme = self.standard.scheme();
        let region = |position: u64| (position * self.regions).saturating_sub(1) / scheme.m();
        scheme.positions(key.as_bytes()).fold(0, |pattern, position| pattern | 1 << region(position))
    }

    fn insert(&mut self, key: &str) -> Result<()> {
        self.standard.insert(key);
        self.equal.insert(key);
        let pattern = self.pattern(key);
        self.seen[pattern] = true;
        Ok(())
    }

    /// Returns the share of these keys that each of the three filters says yes to.
    fn rates(&self, keys: &[String]) -> [f64; 3] {
        let mut yes = [0u64; 3];
        for key in keys {
            let standard = self.standard.contains(key.as_str());
            yes[0] += u64::from(standard);
            yes[1] += u64::from(standard && self.seen[self.pattern(key)]);
            yes[2] += u64::from(self.equal.contains(key.as_str()));
        }
        yes.map(|yes| yes as f64 / keys.len() as f64)
    }
}

fn decimal(keys: Vec<u64>) -> Vec<String> {
    keys.iter().map(u64::to_string).collect()
}

/// Returns the keys of a build. The hash has no seed, so builds differ in their keys.
fn numbers(lab: &Lab, build: u64) -> Keys {
    Keys::of_build(lab.seed.wrapping_mul(1000).wrapping_add(build))
}

fn measured(lab: &Lab, shape: &FloomShape, builds: u64, queries: u64) -> Result<[Rate; 3]> {
    let mut rates = [const { Vec::new() }; 3];
    for build in 0..builds {
        let mut three = Three::new(shape)?;
        for key in decimal(numbers(lab, build).members(shape.n)) {
            three.insert(&key)?;
        }
        let found = three.rates(&decimal(numbers(lab, build).strangers(queries)));
        rates.iter_mut().zip(found).for_each(|(rates, rate)| rates.push(rate));
    }
    Ok(rates.map(|rates| Rate::from_builds(&rates, queries)))
}

/// Measures the rates of the table, and draws them by n.
fn rows(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, p, b) = (lab.count(&KEYS), lab.number(&RATE), lab.count(&REGIONS) as u32);
    let (builds, queries) = (lab.count(&BUILDS), lab.count(&QUERIES));
    let of_figure = [1000, 10_000, 50_000, 100_000, 200_000, 300_000];
    let mut shapes: Vec<(u64, f64, u32)> = of_figure.into_iter().chain([n]).map(|n| (n, p, b)).collect();
    shapes.sort_by_key(|shape| shape.0);
    shapes.dedup();
    let further = PUBLISHED[6..].iter().map(|(n, p, b, _)| (*n, *p, *b));
    let charted = shapes.len();
    shapes.extend(further);
    let mut sweep = Sweep::new("rates").chart(
        "rates",
        format!("False-positive rate by number of keys, p = {p}, b = {b}"),
        Axis::log("keys n"),
        Axis::log("false-positive rate"),
    );
    let mut lines = [const { Vec::new() }; 3];
    // Smaller rates would squeeze everything else to the upper edge.
    let is_drawn = |rate: f64| rate >= 1e-4 * p;
    let most = n.max(300_000) as f64;
    for step in 0..=60 {
        let n = (1000.0 * (most / 1000.0).powf(f64::from(step) / 60.0)).round() as u64;
        for (i, theory) in FloomShape::new(n, p, b)?.theory()?.into_iter().enumerate() {
            lines[i].extend(is_drawn(theory).then_some((n as f64, theory)));
        }
    }
    for (i, line) in lines.into_iter().enumerate() {
        sweep.series(format!("{}, theory", NAMES[i]), Mark::Line, i, line);
    }
    let mut library = Sweep::new("library");
    for (row, (n, p, b)) in shapes.into_iter().enumerate() {
        let shape = FloomShape::new(n, p, b)?;
        let (theory, found) = (shape.theory()?, measured(lab, &shape, builds, queries)?);
        let csv = PUBLISHED.iter().find(|published| (published.0, published.1, published.2) == (n, p, b));
        for (i, (theory, found)) in theory.into_iter().zip(found).enumerate() {
            sweep
                .at(n as f64)
                .cells([("n", &n), ("p", &p), ("b", &b), ("filter", &NAMES[i])])
                .cell("published", csv.map_or(String::new(), |csv| csv.3[i].to_string()))
                .scientific("theory", theory, 3)
                .rate("measured", &found, 6)
                .agrees(format!("rate, {}: n = {n}, p = {p}, b = {b}", NAMES[i]), theory, 0.02)
                .when(row < charted && is_drawn(found.mean), |point| {
                    point.dots(format!("{}, measured", NAMES[i]), i)
                });
        }
        // The filter of the library with its own hash.
        let options = Options { regions: Some(b), compat: true, ranked: false };
        let build = |hasher| Floom::with_layout(Standard::new(shape.bits, shape.hashes)?, &options, hasher);
        let found = measure::rate(lab, builds, n, queries, build)?;
        let claim = format!("rate, the library's Floom filter: n = {n}, p = {p}, b = {b}");
        library
            .row()
            .cells([("n", &n), ("p", &p), ("b", &b)])
            .value("theory", theory[1], 6)
            .rate("measured", &found, 6)
            .agrees(claim, theory[1], 0.02);
    }
    findings.add(sweep);
    findings.add(library);
    Ok(())
}

/// Compares Floom with equal memory in all published combinations.
fn grid(lab: &Lab, findings: &mut Findings) -> Result<String> {
    let full = lab.either(false, true);
    let mut sweep = Sweep::new("combinations").chart(
        "ratio",
        "Rate of the Floom filter / rate of a standard filter of equal memory, p = 0.01",
        Axis::log("keys n"),
        Axis::log("ratio; Floom would pay off below 1"),
    );
    let texts = if full { decimal(numbers(lab, lab.count(&BUILDS)).members(NUMBERS)) } else { Vec::new() };
    let (mut closest, mut wins, mut largest_win) = (f64::INFINITY, 0, 0.0f64);
    for b in GRID_B {
        for (p, n) in GRID_P.into_iter().flat_map(|p| GRID_N.map(|n| (p, n))) {
            let shape = FloomShape::new(n, p, b)?;
            let [_, floom, equal] = shape.theory()?;
            closest = closest.min(floom / equal);
            let mut rates = None;
            if full {
                let (members, strangers) = texts.split_at(n as usize);
                let mut three = Three::new(&shape)?;
                members.iter().try_for_each(|key| three.insert(key))?;
                let [_, found, other] = three.rates(strangers);
                if found < other {
                    wins += 1;
                    let queries = strangers.len() as u64;
                    let noise = (floom * FloomShape::error(shape.bits, n, shape.hashes, floom, queries))
                        .hypot(equal * FloomShape::error(shape.equal.0, n, shape.equal.1, equal, queries));
                    largest_win = largest_win.max((other - found) / noise);
                }
                rates = Some([found, other]);
            }
            sweep
                .row()
                .cells([("n", &n), ("p", &p), ("b", &b)])
                .scientific("theory_floom", floom, 4)
                .scientific("theory_equal", equal, 4)
                .value("ratio", floom / equal, 5)
                .optional("measured_floom", rates.map(|[found, _]| found), 6)
                .optional("measured_equal", rates.map(|[_, other]| other), 6);
        }
    }
    sweep.at_least(
        "smallest theoretical ratio of the rate to that of equal memory, in 300 combinations",
        closest,
        1.0002,
    );
    if full {
        sweep.at_most(
            format!("largest of {wins} measured advantages over equal memory, in standard errors"),
            largest_win,
            4.0,
        );
    }
    sweep.near(
        "share of strangers whose pattern was seen, n = 200 000, k = 7, b = 16",
        floom::seen(16, 7, 200_000)?,
        0.994,
        5e-4,
    );
    for (i, b) in GRID_B.into_iter().enumerate() {
        let mut curve = Vec::new();
        for step in 0..=100 {
            let n = (500.0 * 1000f64.powf(f64::from(step) / 100.0)).round() as u64;
            let [_, floom, equal] = FloomShape::new(n, 0.01, b)?.theory()?;
            // Larger ratios would only stretch the axis.
            if floom / equal < 30.0 {
                curve.push((n as f64, floom / equal));
            }
        }
        sweep.series(format!("b = {b}"), Mark::Line, i, curve);
    }
    findings.add(sweep);
    Ok(match full {
        true => format!(
            "Measured once each, equal memory was better in {} of 300 combinations, where 271 were \
             published; in the others the two differ by less than four standard errors.",
            300 - wins
        ),
        false => String::new(),
    })
}

/// Shows that tables of only the patterns that a key can have are never better than equal memory.
fn never(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let step = lab.either(2, 1);
    let rates = [0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3];
    let keys = [100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
    let regions = [2u32, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 1024];
    let mut sweep = Sweep::new("ranked");
    let (mut all, mut wins, mut closest) = (0, 0, f64::INFINITY);
    for p in rates.into_iter().step_by(step) {
        let (mut tried, mut won, mut least) = (0, 0, f64::INFINITY);
        for n in keys {
            let bits = rate::optimal_bits(n, p)?;
            for (k, b) in (1..=9).flat_map(|k| regions.map(|b| (k, b))) {
                let patterns = reachable(b, k);
                // A table that is many times as large as the filter cannot win.
                if patterns > 100.0 * bits as f64 {
                    continue;
                }
                let equal = Params::for_bits(bits + patterns as u64, n, KPolicy::Best)?.rate;
                let floom = floom::rate(bits, n, k, b)?;
                tried += 1;
                won += u32::from(floom < equal);
                // Where both rates vanish, the ratio is only rounding.
                if equal > 1e-300 {
                    least = least.min(floom / equal);
                }
            }
        }
        let row = sweep.row().cell("p", p).cell("combinations", tried).cell("better_than_equal_memory", won);
        row.value("least_ratio", least, 6);
        all += tried;
        wins += won;
        closest = closest.min(least);
    }
    sweep.at_most(
        format!("of {all} combinations, those in which a ranked table is better than equal memory"),
        wins.into(),
        0.0,
    );
    sweep.at_least("smallest ratio of the rates with ranked tables", closest, 1.0);
    findings.add(sweep);
    Ok(())
}

/// Returns the number of patterns of 1 to k of b regions, for any number of regions; the library
/// counts only as many as it supports.
fn reachable(regions: u32, k: u32) -> f64 {
    let mut choices = 1.0;
    let next = |j: u32| {
        choices *= f64::from(regions - j + 1) / f64::from(j);
        choices.round()
    };
    (1..=k.min(regions)).map(next).sum()
}

/// Checks how much of the table can never be addressed.
fn waste(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("waste");
    for (b, k, printed, digit) in [(16, 7, 0.40, 0.005), (20, 5, 0.021, 0.0005)] {
        let (all, reachable) = (1u64 << b, floom::reachable_patterns(b, k)?);
        let options = Options { regions: Some(b), ..Options::default() };
        let hasher = lab.hasher(0);
        let mut filter = Floom::with_layout(Standard::new(1 << 22, k)?, &options, hasher.clone())?;
        let keys = Keys::of_build(lab.seed).members(lab.either(200_000, 1_000_000));
        filter.insert_batch(&umbel::key::Hashed(&lab.digests(&hasher, &keys)));
        let seen = filter.seen_patterns();
        let share = reachable as f64 / all as f64;
        let share_claim = format!("share of the table that a key can address, b = {b}, k = {k}");
        let seen_claim = format!("patterns of {} keys, b = {b}, k = {k}", keys.len());
        sweep
            .row()
            .cells([("b", &b), ("k", &k), ("patterns", &all), ("reachable", &reachable)])
            .hidden(share)
            .near(share_claim, printed, digit)
            .shows("e28")
            .count("seen_with_many_keys", seen)
            .at_most(seen_claim, reachable as f64)
            .shows("e28");
    }
    findings.add(sweep);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_few_regions_are_counted_like_in_the_library() {
        for (regions, k) in [(8, 4), (16, 7), (20, 5), (24, 9), (2, 9)] {
            let counted = floom::reachable_patterns(regions, k).unwrap();
            assert_eq!(reachable(regions, k), counted as f64, "{regions} {k}");
        }
    }
}
