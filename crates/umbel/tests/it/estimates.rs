//! The estimated number of keys lies within its stated error, for every kind, at every size and
//! stage of growth.

use crate::common::Keys;
use umbel::scalable::{Options, Stage};
use umbel::sizing::{Cardinality, Estimate};
use umbel::spec::KindOptions;
use umbel::{Aging, AnyFilter, Kind, Scalable, Spec};

/// The errors of many estimates, in standard errors.
#[derive(Default)]
struct Errors(Vec<f64>);

impl Errors {
    /// Adds an estimate of `keys` keys. The error of many keys must be small.
    fn add(&mut self, what: &str, estimate: Cardinality, keys: u64) {
        // A saturated filter states no number.
        let Some(Estimate { value, standard_error }) = estimate.estimate() else { return };
        let off = (value - keys as f64).abs();
        assert!(standard_error > 0.0 || off == 0.0, "{what}: {value} instead of {keys}, without an error");
        assert!(keys < 3000 || standard_error <= 0.02 * keys as f64, "{what}: {value} ± {standard_error}");
        self.0.push(if off == 0.0 { 0.0 } else { off / standard_error });
    }

    /// Checks the shares within one, two and four standard errors. Those of a normal law are 68 %,
    /// 95 % and 99.994 %. Small filters have a few more outliers, because their numbers are whole.
    fn check(&self, what: &str) {
        let within =
            |errors: f64| self.0.iter().filter(|off| **off <= errors).count() as f64 / self.0.len() as f64;
        let shares = [1.0, 2.0, 4.0].map(within);
        println!("{what}: {shares:?} of {} estimates within 1, 2 and 4 standard errors", self.0.len());
        assert!(shares[0] > 0.6 && shares[1] > 0.9, "{what}: {shares:?}");
        assert!((1.0 - shares[2]) * self.0.len() as f64 <= 1.0 + self.0.len() as f64 / 2000.0, "{what}");
    }
}

/// The kinds of filters that take keys one by one, except those that have a test of their own.
const KINDS: [Kind; 9] = [
    Kind::Standard,
    Kind::Partitioned,
    Kind::Blocked,
    Kind::Counting,
    Kind::VariableIncrement,
    Kind::Deletable,
    Kind::Floom,
    Kind::Cuckoo,
    Kind::Quotient,
];

/// Estimates filters for `capacity` keys that hold a half, all and twice of them: inserted once,
/// inserted twice, and of unknown number.
fn estimate_kind(kind: Kind, capacity: u64, rate: f64, builds: u64, errors: &mut Errors) {
    let has_slots = matches!(kind, Kind::Cuckoo | Kind::Quotient);
    let empty = AnyFilter::build(kind, &Spec::new(capacity, rate).unwrap()).unwrap();
    for build in 0..builds {
        for keys in [capacity.div_ceil(2), capacity, 2 * capacity] {
            if has_slots && keys > capacity {
                continue;
            }
            let what = format!("{kind} for {capacity} keys at {rate} with {keys}");
            let members = Keys::of_build(build).members(keys);
            let mut filter = empty.try_clone_empty().unwrap();
            filter.insert_batch(&members).unwrap();
            errors.add(&what, filter.stats().estimate, keys);
            // Copies of keys would not fit.
            if !has_slots {
                filter.insert_batch(&members).unwrap();
                errors.add(&what, filter.stats().estimate, keys);
                filter.union(&empty).unwrap();
                errors.add(&what, filter.stats().estimate, keys);
            }
        }
    }
}

#[test]
fn the_error_of_a_small_filter_includes_whole_cells() {
    for kind in KINDS {
        let mut errors = Errors::default();
        for capacity in [1, 2, 3, 10, 30, 100] {
            for rate in [0.3, 0.05, 0.01, 0.001] {
                estimate_kind(kind, capacity, rate, 12, &mut errors);
            }
        }
        errors.check(&kind.to_string());
    }
}

#[test]
fn the_error_of_a_large_filter_is_at_most_2_percent() {
    for kind in KINDS {
        let mut errors = Errors::default();
        for (capacity, rate) in [(1000, 0.05), (3000, 0.3), (3000, 0.01), (6000, 0.001)] {
            estimate_kind(kind, capacity, rate, 4, &mut errors);
        }
        errors.check(&kind.to_string());
    }
}

fn scalable(capacity: u64, rate: f64, options: Options) -> Scalable {
    let mut kind_options = KindOptions::default();
    kind_options.scalable = options;
    Scalable::build(&Spec::new(capacity, rate).unwrap().with_options(kind_options)).unwrap()
}

#[test]
fn a_scalable_filter_counts_the_keys_that_it_took_for_members() {
    for stage in [Stage::Automatic, Stage::Partitioned, Stage::Compact] {
        let mut errors = Errors::default();
        for (tightening, growth) in [(0.85, 2), (0.5, 2), (0.9, 4)] {
            // At 50 % the stages have so few hash functions that their errors depend on each other.
            for rate in [0.5, 0.1, 0.01] {
                for (build, capacity) in [3, 50, 1000].into_iter().enumerate() {
                    let what = format!("{stage:?}, r {tightening}, s {growth}, {rate}, from {capacity} keys");
                    let mut filter = scalable(capacity, rate, Options { tightening, growth, stage });
                    let members = Keys::of_build(build as u64).members(10_000);
                    let mut inserted = 0;
                    // Full, half full and nearly empty stages.
                    for keys in [2, 3, 5, 10, 40, 100, 1000, 1100, 3000, 4500, 10_000] {
                        filter.insert_batch(&members[inserted..keys]).unwrap();
                        inserted = keys;
                        errors.add(&what, filter.stats().estimate, keys as u64);
                    }
                    // Repeated keys change nothing but the number of insertions.
                    filter.insert_batch(&members).unwrap();
                    errors.add(&what, filter.stats().estimate, 10_000);
                }
            }
        }
        errors.check(&format!("{stage:?}"));
    }
}

#[test]
fn the_error_of_a_united_scalable_filter_covers_keys_in_two_stages() {
    for (ours, theirs) in
        [(0..6000, 6000..9000), (0..6000, 0..6000), (0..6000, 3000..9000), (0..90, 50..2000)]
    {
        for rate in [0.2, 0.01] {
            let all = Keys::of_build(3).members(9000);
            let [mut filter, mut other] = [(); 2].map(|()| scalable(100, rate, Options::default()));
            filter.insert_batch(&all[ours.clone()]).unwrap();
            // In the other order, the stages hold different keys of the same set.
            other.insert_batch(&all[theirs.clone()].iter().rev().copied().collect::<Vec<_>>()).unwrap();
            filter.union(&other).unwrap();
            let estimate = filter.stats().estimate.estimate().unwrap();
            let truth = ours.end.max(theirs.end) as f64;
            let off = (estimate.value - truth).abs() / estimate.standard_error;
            assert!(off <= 4.0, "{ours:?} and {theirs:?} at {rate}: {estimate}");
        }
    }
}

#[test]
fn an_aging_filter_counts_a_key_once_however_often_it_came() {
    let (mut once, mut again) = (Errors::default(), Errors::default());
    for (capacity, builds) in [(3, 12), (10, 12), (100, 12), (1000, 6), (3000, 4)] {
        for rate in [0.1, 0.01, 0.001] {
            for build in 0..builds {
                let what = format!("window of {capacity} keys at {rate}");
                let members = Keys::of_build(build).members(capacity);
                let half = &members[..members.len().div_ceil(2)];
                let mut filter = Aging::with_capacity(capacity, rate).unwrap();
                filter.insert_batch(half);
                once.add(&what, filter.stats().estimate, half.len() as u64);
                filter.insert_batch(&members[half.len()..]);
                once.add(&what, filter.stats().estimate, capacity);
                // Half of the window again: these keys are in two generations, unless their old one
                // was dropped.
                filter.clear();
                filter.insert_batch(half);
                filter.insert_batch(half);
                again.add(&what, filter.stats().estimate, half.len() as u64);
            }
        }
    }
    once.check("aging, keys that came once");
    again.check("aging, keys that came twice");
}

#[test]
fn a_few_keys_are_counted_exactly() {
    for kind in KINDS.into_iter().filter(|kind| *kind != Kind::Deletable) {
        for keys in [0, 1, 3] {
            let mut filter = AnyFilter::build(kind, &Spec::new(1000, 0.01).unwrap()).unwrap();
            filter.insert_batch(&Keys::of_build(1).members(keys)).unwrap();
            let exact = Cardinality::Estimated(Estimate { value: keys as f64, standard_error: 0.0 });
            assert_eq!(filter.stats().estimate, exact, "{kind}");
        }
    }
}

#[test]
fn estimates_are_written_with_the_digits_of_their_error() {
    for (value, standard_error, text) in [
        (2.4711, 0.5931, "2.5 ± 0.6"),
        (1000.15, 8.2, "1000 ± 8"),
        (99_951.3, 82.4, "99951 ± 82"),
        (1.000_35, 0.0071, "1.000 ± 0.007"),
        (3.2, 0.97, "3.2 ± 1.0"),
        (3.0, 0.0, "3"),
    ] {
        assert_eq!(Estimate { value, standard_error }.to_string(), text);
    }
    assert_eq!(format!("{:.1}", Estimate { value: 1000.15, standard_error: 8.24 }), "1000.1 ± 8.2");
}
