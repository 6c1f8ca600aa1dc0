use super::*;

fn plan(n: u64, p: f64, policy: KPolicy) -> Params {
    Params::for_capacity(n, p, policy).unwrap()
}

#[test]
fn the_sizing_table_is_reproduced_to_the_printed_digit() {
    // n, p, m, (m/n) ln 2, k rounded, k rounded up, and the rate with each.
    let table = [
        (1000, 0.01, 9586, 6.6445, 7, 7, 0.0100370198, 0.0100370198),
        (50000, 0.01, 479253, 6.6439, 7, 7, 0.0100392594, 0.0100392594),
        (58110, 0.04, 389318, 4.6439, 5, 5, 0.0402212181, 0.0402212181),
        // 0.0100392170480; computed with a rounded 1-1/m it ends in 171.
        (1000000, 0.01, 9585059, 6.6439, 7, 7, 0.0100392170, 0.0100392170),
        (1000000, 0.001, 14377588, 9.9658, 10, 10, 0.0010000250, 0.0010000250),
        (500, 0.05, 3118, 4.3225, 4, 5, 0.0502746427, 0.0510346765),
        (100000, 0.03, 729845, 5.0589, 5, 6, 0.0300043511, 0.0310029744),
        (100000, 0.02, 814237, 5.6439, 6, 6, 0.0200917553, 0.0200917553),
    ];
    for (n, p, m, ideal, k_round, k_ceil, rate_round, rate_ceil) in table {
        let (round, ceil) = (plan(n, p, KPolicy::Round), plan(n, p, KPolicy::Ceil));
        assert_eq!((round.bits, round.hashes), (m, k_round), "n {n} p {p}");
        assert_eq!((ceil.bits, ceil.hashes), (m, k_ceil), "n {n} p {p}");
        assert!((rate::optimal_hashes(round.bits_per_key()).unwrap() - ideal).abs() <= 5.1e-5, "n {n} p {p}");
        assert!((round.rate - rate_round).abs() <= 5.1e-11, "n {n} p {p}: {}", round.rate);
        assert!((ceil.rate - rate_ceil).abs() <= 5.1e-11, "n {n} p {p}: {}", ceil.rate);
        assert_eq!(plan(n, p, KPolicy::Best).rate, round.rate, "rounding found the best k in every row");
    }
}

#[test]
fn sizes_beyond_32_bits_are_ordinary() {
    assert_eq!(plan(220_000_000, 0.01, KPolicy::Round).bits, 2_108_712_844);
    let large = plan(1 << 36, 0.001, KPolicy::Round);
    assert!(large.bits > 1 << 39 && large.hashes == 10 && (large.rate / 0.001 - 1.0).abs() < 1e-4);
    assert!(Params::for_capacity(MAX_KEYS, 0.01, KPolicy::Round).is_err());
    assert!(Params::for_capacity(MAX_KEYS, 0.01, KPolicy::Strict).is_err());
}

#[test]
fn strict_keeps_the_rate_with_the_fewest_bits_of_all() {
    for n in [1, 2, 3, 5, 10, 40, 1000] {
        for p in [0.9, 0.6, 0.5, 0.3, 0.1, 0.04, 0.01, 1e-3, 1e-6, 1e-9] {
            let strict = plan(n, p, KPolicy::Strict);
            assert!(strict.expected_rate() <= p, "n {n} p {p}");
            let fewest = (1..=60).map(|k| fewest_bits(n, p, k).unwrap()).min().unwrap();
            assert_eq!(strict.bits, fewest, "n {n} p {p}");
        }
    }
    let far = plan(1 << 40, 1e-3, KPolicy::Strict);
    assert!(far.rate <= 1e-3 && far.rate > 1e-3 * (1.0 - 1e-9));
}

#[test]
fn sizing_for_keys_and_for_bits_are_inverse() {
    for policy in KPolicy::ALL {
        for n in [1, 7, 1000, 58_110, 1 << 33] {
            for p in [0.5, 0.05, 0.01, 1e-6] {
                let planned = plan(n, p, policy);
                let given = Given { m: Some(planned.bits), p: Some(p), ..Given::default() };
                let back = given.solve(policy).unwrap();
                assert!(back.capacity >= n && back.bits == planned.bits, "{policy} n {n} p {p}");
                assert!(plan(back.capacity, p, policy).bits <= planned.bits, "{policy} n {n} p {p}");
            }
        }
    }
}

#[test]
fn every_sufficient_subset_determines_the_rest() {
    let (n, p, m, k) = (Some(1000), Some(0.01), Some(9586), Some(7));
    let solve = |n, p, m, k| Given { n, p, m, k }.solve(KPolicy::Round).unwrap();
    let summary = |s: Params| (s.capacity, s.bits, s.hashes);
    assert_eq!(summary(solve(n, p, None, None)), (1000, 9586, 7));
    assert_eq!(summary(solve(n, None, m, None)), (1000, 9586, 7));
    assert_eq!(summary(solve(n, None, m, k)), (1000, 9586, 7));
    assert_eq!(summary(solve(None, p, m, None)), (1000, 9586, 7));
    assert_eq!(summary(solve(n, p, m, None)), (1000, 9586, 7));
    assert_eq!(summary(solve(n, p, m, k)), (1000, 9586, 7));
    // A given k is kept, and p is met: with a few more bits, or one key fewer.
    let with_k = solve(n, p, None, k);
    assert!(with_k.expected_rate() <= 0.01 && rate::mean(with_k.bits - 1, 1000, 7) > 0.01);
    let with_k = solve(None, p, m, k);
    assert!(with_k.expected_rate() <= 0.01 && rate::mean(9586, with_k.capacity + 1, 7) > 0.01);
    // m = k n / ln 2 in both directions: half full.
    assert_eq!(summary(solve(n, None, None, k)), (1000, 10099, 7));
    assert_eq!(summary(solve(None, None, Some(10099), k)), (1000, 10099, 7));
    assert!((solve(n, None, None, k).rate / 0.5f64.powi(7) - 1.0).abs() < 1e-3);
}

#[test]
fn too_few_bits_are_refused_with_the_number_needed() {
    let given = Given { n: Some(1000), p: Some(0.01), m: Some(9000), k: None };
    let message = given.solve(KPolicy::Round).unwrap_err().to_string();
    assert!(message.contains("9586"), "{message}");
    let given = Given { k: Some(3), m: Some(9586), ..given };
    let message = given.solve(KPolicy::Round).unwrap_err().to_string();
    assert!(message.contains(&fewest_bits(1000, 0.01, 3).unwrap().to_string()), "{message}");
}

#[test]
fn results_of_the_formulas_are_never_refused_and_strict_is_strict() {
    for policy in KPolicy::ALL {
        for (n, p) in [(1000, 0.01), (500, 0.05), (58_110, 0.04), (7, 0.3), (3, 0.9)] {
            let params = plan(n, p, policy);
            let given = Given { n: Some(n), p: Some(p), m: Some(params.bits), k: None };
            assert_eq!(given.solve(policy).unwrap(), params, "{policy} n {n} p {p}");
            let given = Given { k: Some(params.hashes), ..given };
            assert_eq!(given.solve(policy).unwrap(), params, "{policy} n {n} p {p}");
        }
    }
    for n in 1..40 {
        for p in [0.7, 0.3, 0.1, 0.02, 1e-3, 1e-5] {
            let bits = plan(n, p, KPolicy::Strict).bits;
            for m in bits..bits + 5 {
                let given = Given { n: Some(n), p: Some(p), m: Some(m), k: None };
                assert!(given.solve(KPolicy::Strict).unwrap().rate <= p, "n {n} p {p} m {m}");
            }
        }
    }
    let given = Given { n: Some(1000), p: Some(0.01), m: Some(9586), k: Some(7) };
    assert!(given.solve(KPolicy::Round).is_ok() && given.solve(KPolicy::Strict).is_err());
}

#[test]
fn errors_name_the_missing_parameters() {
    let none = Given::default();
    let insufficient = [
        (none, "two of n, p, m and k"),
        (Given { n: Some(5), ..none }, "p, m or k"),
        (Given { p: Some(0.1), ..none }, "n or m"),
        (Given { m: Some(5), ..none }, "n, p or k"),
        (Given { k: Some(5), ..none }, "n or m"),
        (Given { p: Some(0.1), k: Some(5), ..none }, "n or m"),
    ];
    for (given, missing) in insufficient {
        let message = given.solve(KPolicy::Round).unwrap_err().to_string();
        assert!(message.contains(missing), "{message}");
    }
}

#[test]
fn nonsense_is_refused_in_every_combination() {
    let ns = [None, Some(0), Some(1), Some(1000), Some(MAX_KEYS), Some(u64::MAX)];
    let ps = [None, Some(0.0), Some(1.0), Some(f64::NAN), Some(5e-324), Some(0.01), Some(1.0 - 1e-16)];
    let ms = [None, Some(0), Some(1), Some(9586), Some(MAX_BITS), Some(u64::MAX)];
    let ks = [None, Some(0), Some(1), Some(7), Some(MAX_HASHES), Some(u32::MAX)];
    for n in ns {
        for p in ps {
            for (m, k) in ms.into_iter().flat_map(|m| ks.map(|k| (m, k))) {
                for policy in KPolicy::ALL {
                    let Ok(params) = (Given { n, p, m, k }).solve(policy) else {
                        continue;
                    };
                    assert!((1..=MAX_KEYS).contains(&params.capacity), "{params:?}");
                    assert!((1..=MAX_BITS).contains(&params.bits), "{params:?}");
                    assert!((1..=MAX_HASHES).contains(&params.hashes), "{params:?}");
                    assert!((0.0..=1.0).contains(&params.rate), "{params:?}");
                }
            }
        }
    }
}
