//! The promises of space-code and multi-resolution filters: counts are as accurate as theory
//! predicts, every recorded key is found, nothing overflows, and a loaded file continues where it
//! was saved.

use crate::common::{Keys, mix, moments};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::HashMap;
use umbel::any::Stored;
use umbel::hash::KeyRing;
use umbel::internals::Structure;
use umbel::sizing::Given;
use umbel::sizing::space_code::{self as formulas, Rule};
use umbel::space_code::{Estimator, Options, Resolution, SpaceCodeFilter};
use umbel::spec::KindOptions;
use umbel::{AnyCount, AnyFilter, Error, Hasher, Key, Kind, MultiResolution, SpaceCode, Spec, file};

/// Random numbers for the tests, unrelated to those of the filters.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        mix(mix(self.0) ^ 0x5eed)
    }

    /// Returns a number above 0 and up to 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, range: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(range)) >> 64) as u64
    }
}

fn tuned(recordings: u64, noise: f64, options: Options) -> Spec {
    let mut kind_options = KindOptions::default();
    kind_options.space_code = options;
    Spec::new(recordings, noise).unwrap().with_options(kind_options)
}

/// A summary of relative errors.
#[derive(Debug)]
struct Accuracy {
    bias: f64,
    sd: f64,
    within_quarter: f64,
    within_half: f64,
}

fn accuracy(errors: &[f64]) -> Accuracy {
    let (bias, sd) = moments(errors);
    let within = |limit: f64| errors.iter().filter(|e| e.abs() <= limit).count() as f64 / errors.len() as f64;
    Accuracy { bias, sd, within_quarter: within(0.25), within_half: within(0.5) }
}

/// Draws the numbers of groups that the levels find for a key recorded `x` times, from the exact
/// distribution.
fn simulated(x: u64, noise: f64, random: &mut Random) -> Vec<u32> {
    (0..9)
        .map(|level| {
            let p = formulas::sampling(level);
            let mut found = 0u32;
            // Skip from one sampled recording to the next. After 3000 samples no group is missing.
            let (mut at, mut hits) = (0u64, 0);
            while hits < 3000 {
                let skip = if p == 1.0 { 1.0 } else { (random.unit().ln() / (-p).ln_1p()).ceil().max(1.0) };
                at = at.saturating_add(skip as u64);
                if at > x {
                    break;
                }
                hits += 1;
                found |= 1 << random.below(32);
            }
            let noisy = |group: u32| if random.unit() < noise { 1 << group } else { 0 };
            (found | (0..32).map(noisy).sum::<u32>()).count_ones()
        })
        .collect()
}

const ROWS: [(u64, f64, f64, f64, f64); 7] = [
    (1, -0.01, 0.39, 0.86, 0.86),
    (5, 0.0, 0.15, 0.88, 0.995),
    (20, 0.0, 0.14, 0.91, 1.0),
    (100, 0.02, 0.23, 0.76, 0.97),
    (1000, 0.02, 0.27, 0.61, 0.92),
    (10_000, 0.02, 0.24, 0.76, 0.98),
    (100_000, 0.0, 0.25, 0.64, 0.96),
];

/// Returns the level that is used for the estimate, and the number of groups it finds.
fn chosen_level(theta: &[u32], rule: Rule) -> (u32, u32) {
    formulas::most_relevant(32, 9, rule, |level| theta[level as usize]).unwrap()
}

/// With 4000 keys each, the measurements are within 0.01 of the true values, and the table is
/// rounded.
#[test]
fn several_levels_are_as_accurate_as_the_table_says() {
    let mut random = Random(1 << 40);
    for (x, bias, sd, within_quarter, within_half) in ROWS {
        let (mut errors, mut covered) = (Vec::new(), 0);
        for _ in 0..4000 {
            let theta = simulated(x, 0.005, &mut random);
            let (level, found) = chosen_level(&theta, Rule::Guarded);
            let p = formulas::sampling(level);
            errors.push(formulas::mve(32, 0.005, found).unwrap() / p / x as f64 - 1.0);
            let (low, high) = match level {
                0 => formulas::interval(32, 0.005, found).unwrap(),
                _ => formulas::sampled_interval(32, 0.005, found, p).unwrap(),
            };
            covered += u32::from(low <= x as f64 && x as f64 <= high);
        }
        let got = accuracy(&errors);
        println!("{x} times: {got:.3?}, {:.3} in the interval", f64::from(covered) / 4000.0);
        for (got, expected) in [
            (got.bias, bias),
            (got.sd, sd),
            (got.within_quarter, within_quarter),
            (got.within_half, within_half),
        ] {
            assert!((got - expected).abs() <= 0.04, "{x} times: {got} instead of {expected}");
        }
        assert!(covered >= 3800, "{x} times: {covered} of 4000 in the interval");
    }
}

/// Coarse levels could have two more hash functions each, and a quarter of the noise, without any
/// noticeable effect.
#[test]
fn less_noise_on_coarse_levels_does_not_improve_counts() {
    for x in [100, 1000, 10_000] {
        let [as_planned, quieter] = [0.005, 0.005 / 4.0].map(|noise| {
            let mut random = Random(5 << 40);
            let error = |_| {
                let (level, found) = chosen_level(&simulated(x, noise, &mut random), Rule::Guarded);
                formulas::mve(32, noise, found).unwrap() / formulas::sampling(level) / x as f64 - 1.0
            };
            moments(&(0..4000).map(error).collect::<Vec<_>>()).1
        });
        println!("{x} times: sd {as_planned:.3}, with a quarter of the noise {quieter:.3}");
        assert!((as_planned - quieter).abs() < 0.015, "{x} times: {as_planned} and {quieter}");
    }
}

/// The accuracy in the table, measured with filters: flows of every size among single packets,
/// until the noise reaches the planned one.
#[test]
fn filters_are_as_accurate_as_the_theory() {
    let keys = Keys::of_build(1);
    // The size and the number of flows.
    let flows =
        [(1u64, 1500u64), (5, 1500), (20, 1500), (100, 1500), (1000, 500), (10_000, 40), (100_000, 8)];
    let packets: u64 = flows.iter().map(|(x, count)| x * count).sum();
    let mut filter = MultiResolution::with_capacity(1_000_000, 0.005).unwrap();
    let (mut member, mut all) = (0, Vec::new());
    for (x, count) in flows {
        for _ in 0..count {
            all.push((keys.member(member), x));
            member += 1;
        }
    }
    for (key, x) in &all {
        filter.insert_batch(&vec![*key; *x as usize]);
    }
    let mut background = 0;
    while filter.levels().next().unwrap().noise < 0.005 {
        let strangers: Vec<u64> = (background..background + 5000).map(|i| keys.stranger(i)).collect();
        filter.insert_batch(&strangers);
        background += 5000;
    }
    assert_eq!(filter.inserted(), Some(packets + background));
    let mut covered = 0;
    for (x, bias, sd, within_quarter, _) in ROWS {
        let flows: Vec<u64> = all.iter().filter(|(_, size)| *size == x).map(|(key, _)| *key).collect();
        let counts = filter.count_batch(&flows);
        let errors: Vec<f64> = counts.iter().map(|count| count.value / x as f64 - 1.0).collect();
        let got = accuracy(&errors);
        println!("{x} times: {got:.3?}");
        covered += counts.iter().filter(|count| count.low <= x as f64 && x as f64 <= count.high).count();
        // The tolerance of the table, and four standard errors for this number of flows.
        let slack = |sd: f64| 0.04 + 4.0 * sd / (flows.len() as f64).sqrt();
        assert!((got.bias - bias).abs() <= slack(sd), "{x} times: {got:?}");
        assert!((got.within_quarter - within_quarter).abs() <= slack(0.5), "{x} times: {got:?}");
        if flows.len() > 100 {
            assert!((got.sd - sd).abs() <= slack(sd), "{x} times: {got:?}");
        }
    }
    println!("{covered} of {} in the interval", all.len());
    assert!(covered as f64 >= 0.95 * all.len() as f64);
}

/// Computes the exact mean error of the unguarded rule for keys that were recorded once: it uses
/// the first of the levels that find the most groups.
fn unguarded_error(noise: f64) -> f64 {
    let found = |level: u32, theta: u32| {
        let p = formulas::sampling(level);
        let [missed, taken] = [0, 1].map(|x| formulas::likelihood(32, noise, theta, x).unwrap());
        (1.0 - p) * missed + p * taken
    };
    let up_to = |level, theta| (0..=theta).map(|theta| found(level, theta)).sum::<f64>();
    let mut mean = 0.0;
    for level in 0..9 {
        for theta in 1..20 {
            let before: f64 = (0..level).map(|level| up_to(level, theta - 1)).product();
            let after: f64 = (level + 1..9).map(|level| up_to(level, theta)).product();
            let value = formulas::mve(32, noise, theta).unwrap() / formulas::sampling(level);
            mean += before * found(level, theta) * after * value;
        }
    }
    mean - 1.0
}

/// Without the guard, noise on coarse levels determines the estimates of keys that were recorded
/// once. (The specification has 870 from a simulation; the mean is dominated by one key in a
/// hundred, and is 1470.)
#[test]
fn the_unguarded_rule_overestimates_single_recordings() {
    let exact = unguarded_error(0.005);
    assert!((exact - 1470.0).abs() < 1.0, "{exact}");
    let mut random = Random(2 << 40);
    let trials = 200_000;
    let mut sums = [0.0; 2];
    for _ in 0..trials {
        let theta = simulated(1, 0.005, &mut random);
        for (sum, rule) in sums.iter_mut().zip([Rule::Unguarded, Rule::Guarded]) {
            let (level, found) = chosen_level(&theta, rule);
            *sum += formulas::mve(32, 0.005, found).unwrap() / formulas::sampling(level) - 1.0;
        }
    }
    let [unguarded, guarded] = sums.map(|sum| sum / f64::from(trials));
    println!("mean error {unguarded:.0} unguarded, {guarded:.3} guarded; exactly {exact:.0}");
    // Three standard errors: one key in a hundred is off by a hundred thousand.
    assert!((unguarded - exact).abs() < 100.0 && guarded.abs() < 0.02, "{unguarded} {guarded}");
    // A filter shows the same effect, most clearly if it is too full.
    let keys = Keys::of_build(2);
    let mut filter = MultiResolution::with_capacity(100_000, 0.01).unwrap();
    filter.insert_batch(&keys.members(150_000));
    let mean = |rule| {
        let of = |key: u64| filter.estimate(key.digest(filter.hasher()), Estimator::Mve, rule).value;
        keys.members(4000).into_iter().map(of).sum::<f64>() / 4000.0
    };
    let [unguarded, guarded] = [Rule::Unguarded, Rule::Guarded].map(mean);
    println!("by a filter: {unguarded:.1} unguarded, {guarded:.3} guarded, instead of 1");
    assert!(unguarded > 20.0 && guarded < 1.3, "{unguarded} {guarded}");
}

/// Flows of 1 to 59 packets, where size x has a share of 1/x^2: most flows are small, as in real
/// traffic. The specification's 0.54 for up to four packets is for such flows; if all four sizes
/// were equally frequent, it would be 0.38.
#[test]
fn one_level_is_as_accurate_as_the_table_says() {
    let cumulative: Vec<f64> = (1..60)
        .scan(0.0, |sum, x| {
            *sum += 1.0 / f64::from(x * x);
            Some(*sum)
        })
        .collect();
    let mut random = Random(3 << 40);
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for build in 0..10 {
        let keys = Keys::of_build(build);
        let mut filter = SpaceCode::with_capacity(6000, 0.011).unwrap();
        let mut sizes = Vec::new();
        for flow in 0..2000 {
            let at = random.unit() * cumulative[58];
            let size = 1 + cumulative.iter().position(|sum| *sum >= at).unwrap();
            filter.insert_batch(&vec![keys.member(flow); size]);
            sizes.push(size);
        }
        let mut background = 0;
        while filter.stats().rate_now < 0.011 {
            filter.insert(&keys.stranger(background));
            background += 1;
        }
        for (flow, size) in (0..).zip(sizes) {
            let error = filter.count(&keys.member(flow)).value / size as f64 - 1.0;
            if size < 5 { small.push(error) } else { large.push(error) }
        }
    }
    let ((small_bias, small_sd), (bias, sd)) = (moments(&small), moments(&large));
    println!(
        "{} small: {small_bias:.3} {small_sd:.3}; {} large: {bias:.3} {sd:.3}",
        small.len(),
        large.len()
    );
    assert!((0.15 - 0.03..=0.18 + 0.03).contains(&sd) && bias.abs() <= 0.03);
    assert!((small_sd - 0.54).abs() <= 0.03 && small_bias.abs() <= 0.03);
}

/// Half a million packets of ten thousand flows, where flow i has a share of 1/i.
#[test]
fn skewed_traffic_is_counted_with_the_planned_accuracy() {
    let (packets, flows) = (500_000u64, 10_000u64);
    let options = Options { keys: Some(flows), ..Options::default() };
    let mut filter = MultiResolution::build(&tuned(packets, 0.005, options)).unwrap();
    let harmonic: f64 = (1..=flows).map(|i| 1.0 / i as f64).sum();
    let size = |flow: u64| ((packets as f64 / harmonic / (flow + 1) as f64).round() as u64).max(1);
    let keys = Keys::of_build(4);
    for flow in 0..flows {
        filter.insert_batch(&vec![keys.member(flow); size(flow) as usize]);
    }
    let recorded = filter.inserted().unwrap();
    assert!((packets - 2000..packets + 2000).contains(&recorded));
    // Knowing the number of flows saves memory, and the bits still suffice for traffic of any
    // distribution.
    let stats = filter.stats();
    assert!(stats.rate_now < 0.005, "{}", stats.rate_now);
    assert!(stats.bits * 3 / 2 < MultiResolution::with_capacity(packets, 0.005).unwrap().stats().bits);
    for range in [0..10, 10..100, 100..1000, 1000..10_000] {
        let of = |flow: u64| filter.count(&keys.member(flow)).value / size(flow) as f64 - 1.0;
        let count = (range.end - range.start) as f64;
        let got = accuracy(&range.clone().map(of).collect::<Vec<_>>());
        println!("flows {range:?}: {got:.3?}");
        let slack = 0.03 + 4.0 * 0.3 / count.sqrt();
        assert!(got.bias.abs() < slack && got.sd < 0.25 + slack, "{range:?}: {got:?}");
    }
    // The sum over all flows, and keys that were never recorded.
    let total: f64 = (0..flows).map(|flow| filter.count(&keys.member(flow)).value).sum();
    assert!((total / recorded as f64 - 1.0).abs() < 0.1, "{total} of {recorded}");
    let strangers = filter.count_batch(&keys.strangers(20_000));
    let mean = strangers.iter().map(|count| count.value).sum::<f64>() / 20_000.0;
    let (found, largest) = strangers.iter().fold((0, 0.0f64), |(found, largest), count| {
        (found + u32::from(count.value > 0.0), largest.max(count.value))
    });
    println!("strangers: {mean:.3} on average, at most {largest:.1}, {found} above zero");
    assert!(mean < 0.2 && largest < 6.0);
}

/// The noise is the share of groups that are found although no recording hit them.
#[test]
fn noise_at_capacity_is_the_requested_one() {
    for p in [0.01, 0.001] {
        for n in [100u64, 1000, 20_000] {
            let builds = 200_000 / n + 5;
            let (mut found, mut groups, mut predicted) = (0u64, 0u64, 0.0);
            for build in 0..builds {
                let keys = Keys::of_build(build);
                let mut filter = SpaceCode::with_capacity(n, p).unwrap();
                filter.insert_batch(&keys.members(n));
                let asked = (400_000 / builds).max(100);
                let of = |key: u64| u64::from(filter.groups_found(key.digest(filter.hasher())));
                found += keys.strangers(asked).into_iter().map(of).sum::<u64>();
                groups += 32 * asked;
                predicted += filter.stats().rate_now / builds as f64;
            }
            let rate = found as f64 / groups as f64;
            // Builds vary more than groups do: by about k / sqrt(bits).
            let sampling =
                4.0 * (p / groups as f64).sqrt() + 4.0 * p * (0.6 / (n as f64 * builds as f64).sqrt());
            println!("{n} recordings at {p}: {rate:.6}, {predicted:.6} from the bits");
            assert!(rate <= p * 1.02 + sampling, "{n} at {p}: {rate}");
            assert!((rate / predicted - 1.0).abs() < 0.03, "{rate} and {predicted}");
            // 100 recordings need less than whole words.
            assert!(n == 100 || rate > p * 0.9, "{n} at {p}: {rate}, so it has more bits than needed");
        }
    }
    // Every level keeps its noise.
    let keys = Keys::of_build(3);
    let mut filter = MultiResolution::with_capacity(100_000, 0.01).unwrap();
    filter.insert_batch(&keys.members(100_000));
    for level in filter.levels() {
        assert!(level.noise <= 0.01 * 1.02 + 0.001 && level.ones * 2 <= level.bits + 300, "{level:?}");
    }
}

fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(9), failure_persistence: None, ..Default::default() }
}

fn round_trip<R: Resolution>(filter: &SpaceCodeFilter<R>) -> AnyCount {
    let bytes = file::to_bytes(filter, &Default::default()).unwrap();
    AnyCount::try_from(file::from_bytes(&bytes, &KeyRing::new()).unwrap().filter).unwrap()
}

proptest! {
    #![proptest_config(fixed(1000))]

    /// After any history, every recorded key is found, and its estimate is finite and inside a
    /// valid interval.
    #[test]
    fn every_recorded_key_is_found(
        capacity in 1..300u64,
        noise in 0.001..0.5f64,
        (groups, levels) in prop_oneof![(8..=64u32, 1..=16u32), (1..=64u32, Just(1))],
        steps in prop::collection::vec((0..40u64, 0..24u8), 1..200),
    ) {
        let options = Options { groups, levels, ..Options::default() };
        let mut filter = MultiResolution::build(&tuned(capacity, noise, options)).unwrap();
        let mut truth: HashMap<u64, u64> = HashMap::new();
        for (key, step) in steps {
            match step {
                0 => {
                    let ended = filter.turn().unwrap();
                    prop_assert!(truth.keys().all(|key| ended.contains(key)));
                    prop_assert_eq!(ended.epoch() + 1, filter.epoch());
                    truth.clear();
                }
                1 => {
                    filter.clear();
                    truth.clear();
                }
                2 => filter = round_trip(&filter).try_into().unwrap(),
                3 => {
                    let mut part = filter.part(filter.seed() + 1).unwrap();
                    part.insert(&key);
                    filter.union(&part).unwrap();
                    *truth.entry(key).or_default() += 1;
                }
                4 => filter = filter.try_clone().unwrap(),
                5..12 => {
                    filter.insert_batch(&vec![key; usize::from(step)]);
                    *truth.entry(key).or_default() += u64::from(step);
                }
                _ => {
                    filter.insert(&key);
                    *truth.entry(key).or_default() += 1;
                }
            }
            prop_assert_eq!(filter.inserted(), Some(truth.values().sum()));
        }
        if truth.is_empty() {
            prop_assert!(filter.sections().iter().all(|(_, words)| words.count_ones() == 0));
        }
        for key in truth.keys() {
            let found = filter.groups_found(key.digest(filter.hasher()));
            prop_assert!(filter.contains(key) && found[0] >= 1);
            let count = filter.count(key);
            prop_assert!(count.low <= count.high && count.value >= 0.0 && count.value.is_finite());
        }
        prop_assert!(filter.check_contents().is_ok());
    }
}

#[test]
fn a_loaded_file_continues_where_it_was_saved() {
    let keys = Keys::of_build(5);
    let options = Options { seed: 3, epoch: 8, keys: Some(50), ..Options::default() };
    let spec = tuned(4000, 0.005, options).with_hasher(Hasher::fast(11));
    let mut whole = MultiResolution::build(&spec).unwrap();
    let mut halves = AnyCount::build(Kind::MultiResolution, &spec).unwrap();
    let packets: Vec<u64> = (0..4000).map(|i| keys.member(mix(i) % 50)).collect();
    whole.insert_batch(&packets);
    halves.insert_batch(&packets[..1999]);
    for packet in [&packets[1999..2000], &packets[2000..]] {
        let bytes = file::to_bytes(&halves, &Default::default()).unwrap();
        halves = AnyCount::try_from(file::from_bytes(&bytes, &KeyRing::new()).unwrap().filter).unwrap();
        halves.insert_batch(packet);
    }
    let bytes = |filter: &dyn Fn() -> Vec<u8>| filter();
    assert_eq!(
        bytes(&|| file::to_bytes(&whole, &Default::default()).unwrap()),
        bytes(&|| file::to_bytes(&halves, &Default::default()).unwrap()),
    );
    let loaded: MultiResolution = halves.try_into().unwrap();
    assert_eq!((loaded.seed(), loaded.epoch(), loaded.keys(), loaded.groups()), (3, 8, Some(50), 32));
    assert_eq!(loaded.stats(), whole.stats());

    // A mapped file has the same answers, and cannot be changed.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.umbel");
    file::save(&path, &whole, &Default::default()).unwrap();
    let mapped = file::map(&path, &KeyRing::new()).unwrap();
    assert_eq!(mapped.count(&packets[0]).unwrap(), whole.count(&packets[0]));
    assert_eq!(mapped.count_batch(&packets).unwrap(), whole.count_batch(&packets));
    assert!(mapped.get(&packets[0]).is_err() && mapped.contains_batch(&packets).is_err());
    let mapped = mapped.verify().unwrap().filter.into_kind::<MultiResolution>().unwrap();
    assert_eq!(mapped.inserted(), Some(4000));
    assert_eq!(mapped.count_batch(&packets), whole.count_batch(&packets));
    // A copy can be filled.
    let mut next = mapped.try_clone().unwrap();
    let ended = next.turn().unwrap();
    next.insert(&1u64);
    assert!(ended.contains(&packets[0]) && next.epoch() == 9 && next.inserted() == Some(1));

    // A damaged file fails for every key, because the noise is computed from all of its bits.
    let mut damaged = std::fs::read(&path).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, damaged).unwrap();
    let mapped = file::map(&path, &KeyRing::new()).unwrap();
    assert!(packets[..5].iter().all(|key| mapped.count(key).is_err()));
    // A multiset is not a set, and refuses the operations of sets.
    let mut stored = Stored::from(whole);
    assert!(stored.contains(&packets[0]) && stored.contains_batch(&packets[..]).count() == 4000);
    assert!(stored.insert(&1u64).is_err() && AnyFilter::try_from(stored).is_err());
}

#[test]
fn a_union_adds_the_counts() {
    let keys = Keys::of_build(6);
    let build = |seed| {
        let options = Options { seed, ..Options::default() };
        MultiResolution::build(&tuned(100_000, 0.005, options)).unwrap()
    };
    let mut parts = [build(1), build(2), build(3)];
    // The same key at the same position of every part.
    for flow in 0..400 {
        for part in &mut parts {
            part.insert_batch(&vec![keys.member(flow); 10]);
        }
    }
    let [mut union, second, third] = parts;
    union.union(&second).unwrap();
    union.union(&third).unwrap();
    assert_eq!(union.inserted(), Some(12_000));
    let errors: Vec<f64> = (0..400).map(|flow| union.count(&keys.member(flow)).value / 30.0 - 1.0).collect();
    let (bias, sd) = moments(&errors);
    println!("30 times in three parts: bias {bias:.3}, sd {sd:.3}");
    // One filter has 0.15 at 30; the bias allows four standard errors of the mean.
    assert!(bias.abs() < 0.04 && sd < 0.2);

    // With equal seeds, the recordings would be counted once, so that union is refused, as are
    // filters that differ otherwise.
    let twin = build(1);
    let error = union.union(&twin).unwrap_err();
    assert!(error.to_string().contains("differ between the two"), "{error}");
    let before = file::to_bytes(&union, &Default::default()).unwrap();
    let other = |n, options| MultiResolution::build(&tuned(n, 0.005, options)).unwrap();
    let options = Options { seed: 9, ..Options::default() };
    for (what, other) in [
        ("number of groups", other(100_000, Options { groups: 31, ..options })),
        ("number of levels", other(100_000, Options { levels: 8, ..options })),
        ("number of bits", other(200_000, options)),
        ("epoch", other(100_000, Options { epoch: 1, ..options })),
        ("seed", {
            let spec = tuned(100_000, 0.005, options).with_hasher(Hasher::fast(1));
            MultiResolution::build(&spec).unwrap()
        }),
    ] {
        assert_eq!(union.mismatch(&other).unwrap().what, what);
        assert!(matches!(union.union(&other), Err(Error::Mismatch(_))));
    }
    assert_eq!(file::to_bytes(&union, &Default::default()).unwrap(), before);
    let one = AnyCount::build(Kind::SpaceCode, &Spec::new(100_000, 0.005).unwrap()).unwrap();
    assert_eq!(AnyCount::from(union).mismatch(&one).unwrap().what, "kind");
}

#[test]
fn different_epochs_mistake_different_keys() {
    // Far too small, so that strangers are mistaken for members.
    let keys = Keys::of_build(7);
    let mut filter = SpaceCode::with_capacity(300, 0.3).unwrap();
    let mut mistaken = Vec::new();
    for epoch in 0..2 {
        assert_eq!(filter.epoch(), epoch);
        filter.insert_batch(&keys.members(300));
        let found = |number: &u64| filter.groups_found(keys.stranger(*number).digest(filter.hasher())) > 13;
        mistaken.push((0..5000).filter(found).collect::<Vec<_>>());
        let ended = filter.turn().unwrap();
        assert_eq!((ended.epoch(), ended.inserted(), filter.inserted()), (epoch, Some(300), Some(0)));
        assert!(!filter.contains(&keys.member(0)) && ended.contains(&keys.member(0)));
    }
    let [first, second] = &mistaken[..] else { panic!() };
    let both = first.iter().filter(|number| second.contains(number)).count();
    println!("mistaken: {} and {}, {both} in both", first.len(), second.len());
    assert!(first.len() > 200 && second.len() > 200);
    assert!(both * 4 < first.len().min(second.len()));
    // Epochs wrap around.
    let options = Options { epoch: u64::MAX, ..Options::default() };
    let mut last = SpaceCode::build(&tuned(300, 0.01, options)).unwrap();
    last.turn().unwrap();
    assert_eq!(last.epoch(), 0);
}

#[test]
fn nothing_overflows_and_saturation_is_reported() {
    let mut one = SpaceCode::with_capacity(1000, 0.005).unwrap();
    let mut many = MultiResolution::with_capacity(1000, 0.005).unwrap();
    for filter in [&mut one as &mut dyn RecordMany, &mut many] {
        filter.record_many("apple", 1_000_000);
    }
    // A million recordings of one key set only the bits of its groups.
    let ones = one.levels().next().unwrap().ones;
    assert!(ones <= 32 * 7, "{ones}");
    let apple = one.count("apple");
    assert!(apple.saturated && apple.high.is_infinite());
    assert_eq!((apple.to_string(), format!("{apple:>9.2}")), (">=129.9".into(), " >=129.87".into()));
    assert!((50.0..100.0).contains(&apple.low), "{apple:?}");
    let apple = many.count("apple");
    assert!(!apple.saturated && (5e5..2e6).contains(&apple.value), "{apple:?}");
    assert!(apple.low < 1e6 && 1e6 < apple.high);
    assert!([7, 8].contains(&many.believed("apple".digest(many.hasher()), Rule::Guarded)));
    assert_eq!(one.count("pear").to_string(), "0.0");
    // Three levels reach 130 * 16.
    let options = Options { levels: 3, ..Options::default() };
    let mut three = MultiResolution::build(&tuned(1000, 0.005, options)).unwrap();
    three.record_many("apple", 1_000_000);
    assert_eq!(three.count("apple").to_string(), ">=2077.9");
}

/// Records one key many times.
trait RecordMany {
    fn record_many(&mut self, key: &str, times: usize);
}

impl<R: Resolution> RecordMany for SpaceCodeFilter<R> {
    fn record_many(&mut self, key: &str, times: usize) {
        let digest = key.digest(self.hasher());
        (0..times).for_each(|_| self.insert_digest(digest));
    }
}

#[test]
fn the_caller_can_supply_random_numbers() {
    let digest = 5u64.digest(&Hasher::default());
    let mut filter = SpaceCode::with_capacity(100, 0.001).unwrap();
    // One group after the other.
    for group in 0..32u64 {
        filter.insert_with(digest, &mut || group << 59);
        assert!(filter.groups_found(digest) > group as u32);
    }
    assert!(filter.count_digest(digest).saturated);
    // If all bits are zero, every level samples the recording; if all are one, only the first.
    for (number, levels) in [(0, 9), (!0, 1)] {
        let mut filter = MultiResolution::with_capacity(100, 0.001).unwrap();
        filter.insert_with(digest, &mut || number);
        assert_eq!(filter.levels().filter(|level| level.ones > 0).count(), levels);
        assert_eq!(filter.inserted(), Some(1));
    }
}

#[test]
fn filters_are_built_as_planned() {
    let (n, p, m) = (Some(100_000), Some(0.005), Some(1_600_000));
    for kind in [Kind::SpaceCode, Kind::MultiResolution] {
        for given in [
            Given { n, p, ..Given::default() },
            Given { n, m, ..Given::default() },
            Given { m, p, ..Given::default() },
            Given { n, p, m, ..Given::default() },
        ] {
            let spec = Spec::from_given(given).unwrap();
            let plan = umbel::spec::plan(kind, &spec).unwrap();
            let stats = AnyCount::build(kind, &spec).unwrap().stats();
            assert_eq!((plan.kind, plan.stored_bits, plan.bytes), (kind, stats.bits, stats.bytes));
            assert_eq!((Some(plan.capacity), Some(plan.rate_asked)), (stats.capacity, stats.rate_target));
            assert_eq!(plan.hashes, stats.hashes);
            assert!(plan.rate <= plan.rate_asked && plan.rate > 0.85 * plan.rate_asked, "{plan:?}");
            assert!(given.m.is_none_or(|m| plan.stored_bits <= m) && plan.bits <= plan.stored_bits);
            assert!(given.n.is_none_or(|n| n == plan.capacity));
            if given.n.is_none() || given.p.is_none() {
                assert!(plan.stored_bits as f64 > 0.99 * 1.6e6, "{plan:?}");
            }
            let counts = AnyCount::build(kind, &spec).unwrap();
            assert_eq!(counts.predicted_rate(plan.capacity).unwrap(), plan.rate);
        }
    }
    let bits =
        |kind| umbel::spec::plan(kind, &Spec::new(1_000_000, 0.005).unwrap()).unwrap().bits as f64 / 1e6;
    assert!((11.0..11.1).contains(&bits(Kind::SpaceCode)));
    assert!((14.7..14.9).contains(&bits(Kind::MultiResolution)));
}

#[test]
fn the_upper_bound_is_zero_only_for_keys_never_recorded() {
    // Three times as many recordings as planned, some with a high noise from the start.
    for (groups, noise) in [(32, 0.2), (64, 0.05), (32, 0.005)] {
        let spec = tuned(1000, noise, Options { groups, ..Options::default() });
        let mut filter = MultiResolution::build(&spec).unwrap();
        filter.insert_batch(&(0..3000u64).collect::<Vec<_>>());
        for key in 0..6000u64 {
            let count = filter.count(&key);
            assert_eq!(count.high > 0.0, filter.contains(&key), "{key}: {count:?}");
            assert!(key >= 3000 || count.high >= 1.0, "{key}: {count:?}");
        }
    }
}

#[test]
fn a_full_multiset_has_an_unbounded_interval() {
    let mut filter = SpaceCode::with_capacity(500, 0.005).unwrap();
    filter.insert_batch(&(0..300_000u64).collect::<Vec<_>>());
    let stranger = filter.count(&u64::MAX);
    assert!(stranger.saturated && stranger.high.is_infinite(), "{stranger:?}");
    assert_eq!((stranger.value, stranger.low), (0.0, 0.0), "noise alone explains the answer");
}

#[test]
fn digests_are_accepted_as_keys() {
    let mut filter = MultiResolution::with_capacity(1000, 0.005).unwrap();
    filter.insert_batch(&(0..100u64).collect::<Vec<_>>());
    let digests = filter.hasher().digest_batch(&(0..200u64).collect::<Vec<_>>()[..]);
    let found = umbel::any::Stored::from(filter).contains_batch(&umbel::key::Hashed(&digests));
    assert!((0..100).all(|i| found.get(i) == Some(true)) && found.count() < 150);
}

#[test]
fn the_number_of_recordings_saturates_below_unknown() {
    // The number that means "unknown" in files is never reached.
    let filter = SpaceCode::with_capacity(100, 0.005).unwrap();
    let mut bytes = umbel::file::to_bytes(&filter, &Default::default()).unwrap();
    bytes[64..72].copy_from_slice(&(u64::MAX - 1).to_le_bytes());
    let header = u32::from_le_bytes(bytes[20..24].try_into().unwrap()) as usize;
    let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes[..header - 8], 0x006c_6562_6d75);
    bytes[header - 8..header].copy_from_slice(&sum.to_le_bytes());
    let loaded = umbel::file::from_bytes(&bytes, &umbel::hash::KeyRing::new()).unwrap().filter;
    let umbel::any::Stored::Count(mut counts) = loaded else { panic!("a multiset") };
    counts.insert("apple");
    assert_eq!(counts.inserted(), Some(u64::MAX - 1));
    let again = umbel::file::to_bytes(&counts, &Default::default()).unwrap();
    assert!(umbel::file::from_bytes(&again, &umbel::hash::KeyRing::new()).is_ok());
}

#[test]
fn invalid_parameters_are_refused() {
    for options in [
        Options { groups: 0, ..Options::default() },
        Options { groups: 65, ..Options::default() },
        Options { levels: 0, ..Options::default() },
        Options { levels: 17, ..Options::default() },
        Options { keys: Some(0), ..Options::default() },
    ] {
        let spec = tuned(1000, 0.01, options);
        assert!(matches!(MultiResolution::build(&spec), Err(Error::Parameter { .. })), "{options:?}");
        let one = SpaceCode::build(&spec);
        assert_eq!(one.is_ok(), options.levels != 9, "it has only one level: {options:?}");
    }
    // With few groups, one level would be full before the next has sampled anything.
    for (groups, levels) in [(1, 2), (7, 9)] {
        let spec = tuned(1000, 0.01, Options { groups, levels, ..Options::default() });
        let refused = MultiResolution::build(&spec);
        assert!(matches!(refused, Err(Error::Parameter { name: "groups", .. })), "{refused:?}");
    }
    assert!(SpaceCode::with_capacity(0, 0.01).is_err() && SpaceCode::with_capacity(1, 0.0).is_err());
    assert!(SpaceCode::with_capacity(1, 1.0).is_err() && SpaceCode::with_capacity(1, f64::NAN).is_err());
    let given = Given { n: Some(1000), p: Some(0.01), k: Some(7), ..Given::default() };
    let error = SpaceCode::build(&Spec::from_given(given).unwrap()).unwrap_err();
    assert!(error.to_string().contains("left out"), "{error}");
    for given in [
        Given { n: Some(1000), ..Given::default() },
        Given { n: Some(1000), m: Some(64), ..Given::default() },
        Given { n: Some(1000), m: Some(64), p: Some(0.01), ..Given::default() },
    ] {
        let spec = Spec::from_given(given).unwrap();
        assert!(matches!(MultiResolution::build(&spec), Err(Error::Parameter { .. })), "{given:?}");
    }
    let spec = Spec::new(10, 0.01).unwrap();
    assert!(
        AnyCount::build(Kind::Standard, &spec).is_err() && AnyFilter::build(Kind::SpaceCode, &spec).is_err()
    );
    // The smallest possible filter.
    let mut tiny = MultiResolution::with_capacity(1, 0.5).unwrap();
    tiny.insert("apple");
    assert!(tiny.contains("apple"));
}
