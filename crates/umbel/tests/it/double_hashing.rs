//! Measures the cost of double hashing in small filters.
//!
//! All inputs are fixed, so each rate below is the same number in every run. The tolerances allow
//! for a correct implementation with other inputs: more than five standard deviations in every
//! case.

use umbel::literature::murmur::murmur3_x64_128;
use umbel::literature::{Family, Scheme, double_hashing_floor, double_hashing_is_safe};

/// A small filter, with the number of builds and queries.
#[derive(Clone, Copy)]
struct Setup {
    m: u64,
    k: u32,
    n: u64,
    builds: u64,
    queries: u64,
}

/// One in a million by theory; 8 million queries.
const MANY_FUNCTIONS: Setup = Setup { m: 1024, k: 20, n: 36, builds: 200, queries: 40_000 };

/// One percent by theory; 6 million queries. All queries of a build share its fill, which changes
/// the rate by 12 %, so there are many builds. The rate then has a standard deviation of 0.5 %.
const ONE_PERCENT: Setup = Setup { m: 1024, k: 7, n: 107, builds: 4000, queries: 1500 };

impl Setup {
    /// Returns the share of absent keys whose positions are all set. `visit` calls its second
    /// argument with the positions of a key, one by one, until it returns false, and returns
    /// whether it always returned true.
    fn rate(self, visit: impl Fn(&[u8], &mut dyn FnMut(u64) -> bool) -> bool) -> f64 {
        let key =
            |build: u64, number: u64, inserted: u64| (build << 33 | number << 1 | inserted).to_le_bytes();
        let mut false_positives = 0;
        for build in 0..self.builds {
            let mut bits = vec![false; self.m as usize];
            for number in 0..self.n {
                visit(&key(build, number, 1), &mut |position| {
                    bits[position as usize] = true;
                    true
                });
            }
            false_positives += (0..self.queries)
                .filter(|&number| visit(&key(build, number, 0), &mut |position| bits[position as usize]))
                .count();
        }
        false_positives as f64 / (self.builds * self.queries) as f64
    }

    fn rate_of(self, family: Family) -> f64 {
        let scheme = Scheme::new(family, self.k, self.m).expect("parameters within the family's limits");
        let rate = self.rate(|key, test| scheme.positions(key).all(test));
        self.report(family.name(), rate)
    }

    /// Measures double hashing as the papers define it, where all positions coincide if the stride
    /// is divisible by m.
    fn rate_of_plain_double_hashing(self) -> f64 {
        let rate = self.rate(|key, test| {
            let (a, b) = murmur3_x64_128(key, 0);
            (0..u64::from(self.k)).map(|i| a.wrapping_add(i.wrapping_mul(b)) % self.m).all(test)
        });
        self.report("plain double hashing", rate)
    }

    fn report(self, name: &str, rate: f64) -> f64 {
        println!("m = {}, k = {}, n = {}: {name} {rate:.3e}", self.m, self.k, self.n);
        rate
    }
}

fn assert_within(measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    assert!(error.abs() <= tolerance, "{measured:.3e} is not within {tolerance} of {expected:.3e}");
}

#[test]
fn c2_many_functions_on_a_small_filter_lose_a_factor_of_a_thousand() {
    let setup = MANY_FUNCTIONS;
    // Independent functions: about 10 hits are expected, 80 allowed.
    assert!(setup.rate_of(Family::Murmur3) <= 1e-5);
    // About 300 hits, 6 % standard deviation.
    assert_within(setup.rate_of(Family::Murmur3Enhanced), 4e-5, 0.4);
    // Thousands of hits, below 2 % standard deviation.
    assert_within(setup.rate_of_plain_double_hashing(), 1.1e-3, 0.4);
    let double = setup.rate_of(Family::Murmur3Double);
    assert_within(double, 7e-4, 0.2);
    assert_within(double, double_hashing_floor(setup.m, setup.n, setup.k), 0.25);

    assert!(!double_hashing_is_safe(setup.m, setup.n, 1e-6));
}

#[test]
fn c2_one_percent_on_a_small_filter_becomes_a_tenth_worse() {
    let setup = ONE_PERCENT;
    let independent = setup.rate_of(Family::Murmur3);
    assert_within(independent, 0.0102, 0.03);
    assert_within(setup.rate_of_plain_double_hashing() / independent, 1.12, 0.04);
    assert_within(setup.rate_of(Family::Murmur3Double) / independent, 1.08, 0.04);
    assert_within(setup.rate_of(Family::Murmur3Enhanced) / independent, 1.0, 0.04);

    assert!(!double_hashing_is_safe(setup.m, setup.n, 0.01));
}

#[test]
fn c2_double_hashing_loses_nothing_if_the_rule_calls_it_safe() {
    // 2 million queries; the standard deviation of each rate is 0.7 %.
    let setup = Setup { m: 8192, k: 7, n: 854, builds: 800, queries: 2500 };
    assert!(double_hashing_is_safe(setup.m, setup.n, 0.01));
    assert_within(setup.rate_of(Family::Murmur3Double), 0.0101, 0.05);
}

#[test]
fn c2_wrapping_at_2_to_64_halves_the_floor_of_an_odd_m() {
    // About 800 hits, 4 % standard deviation.
    let setup = Setup { m: 1021, ..MANY_FUNCTIONS };
    let share = setup.rate_of(Family::Murmur3Double) / double_hashing_floor(setup.m, setup.n, setup.k);
    assert!((0.3..0.7).contains(&share), "{share}");
}
