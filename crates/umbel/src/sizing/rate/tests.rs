use super::*;
use crate::sizing::{MAX_BITS, MAX_HASHES, MAX_KEYS};

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

#[test]
fn the_classic_formula_is_right_where_its_written_form_loses_digits() {
    // m, n, k, and the value computed with sixty decimal digits.
    let table = [
        (9_586, 1_000, 7, 0.010037019796068617),
        (389_318, 58_110, 5, 0.04022121808720158),
        (9_585_059, 1_000_000, 7, 0.010039217048002816),
    ];
    for (m, n, k, truth) in table {
        assert!((classic(m, n, k).unwrap() / truth - 1.0).abs() < 1e-14, "{m}");
        assert!((classic_as_written(m, n, k).unwrap() / truth - 1.0).abs() < 2e-9, "{m}");
    }
    assert_eq!(classic_as_written(389_318, 58_110, 5).unwrap(), 0.04022121808446685);
}

#[test]
fn one_minus_one_over_x_to_the_minus_x_has_six_digits_at_every_size() {
    // Rows converge to e; the last ones are close enough that Clippy takes them for a misspelt
    // constant.
    #[expect(clippy::approx_constant)]
    let table = [
        (4, 3.160494),
        (16, 2.808404),
        (64, 2.739827),
        (256, 2.723610),
        (1024, 2.719610),
        (4096, 2.718614),
        (16384, 2.718365),
        (65536, 2.718303),
        (262144, 2.718287),
        (1048576, 2.718283),
        (4194304, 2.718282),
    ];
    for (x, printed) in table {
        assert_eq!(rounded(1.0 / zero_probability(x, x, 1).unwrap(), 6), printed, "{x}");
    }
    let e = 1.0 / zero_probability(MAX_BITS, MAX_BITS, 1).unwrap();
    assert!((e - std::f64::consts::E).abs() < 1e-13);
}

#[test]
fn the_table_of_bits_per_key_and_hashes_has_every_printed_digit() {
    let table: [(u64, f64, &[f64]); 7] = [
        (2, 1.39, &[0.3935, 0.3996]),
        (3, 2.08, &[0.2835, 0.2368, 0.2526]),
        (4, 2.77, &[0.2212, 0.1548, 0.1469, 0.1597]),
        // The literature prints 3.46 here: 5 ln 2 = 3.4657 truncated, not rounded.
        (5, 3.47, &[0.1813, 0.1087, 0.0918, 0.0920, 0.1009]),
        (6, 4.16, &[0.1535, 0.0804, 0.0609, 0.0561, 0.0578]),
        (7, 4.85, &[0.1331, 0.0618, 0.0423, 0.0359, 0.0347]),
        (8, 5.55, &[0.1175, 0.0489, 0.0306, 0.0240, 0.0217]),
    ];
    let n = 10_000;
    for (bits, best, rates) in table {
        assert_eq!(rounded(optimal_hashes(bits as f64).unwrap(), 2), best);
        for (k, &printed) in (1..).zip(rates) {
            assert_eq!(rounded(asymptotic(bits * n, n, k).unwrap(), 4), printed, "m/n = {bits}, k = {k}");
        }
    }
}

#[test]
fn the_approximations_have_their_reference_values() {
    let table = [
        (2, 1, 2, 0.5625, 0.399576401, 0.625), // the second order is exact at k = 2
        (10, 3, 3, 0.229872702, 0.208982173, 0.247227145),
        (128, 16, 5, 0.021986968, 0.021679217, 0.022538143),
        (128, 8, 11, 0.000472658, 0.000458711, 0.000534941),
        (128, 8, 10, 0.000483427, 0.000469988, 0.000537961),
        (64, 8, 6, 0.022270492, 0.021577141, 0.023792946),
        (1024, 100, 7, 0.007319840, 0.007302421, 0.007366202),
    ];
    for (m, n, k, a1, a2, a3) in table {
        assert!((classic(m, n, k).unwrap() - a1).abs() < 5.1e-10, "classic {m} {n} {k}");
        assert!((asymptotic(m, n, k).unwrap() - a2).abs() < 5.1e-10, "asymptotic {m} {n} {k}");
        assert!((second_order(m, n, k).unwrap() - a3).abs() < 5.1e-10, "second order {m} {n} {k}");
    }
}

#[test]
fn the_rate_rises_with_keys_falls_with_bits_and_has_one_minimum_in_hashes() {
    let rate = |m, n, k| classic(m, n, k).unwrap();
    assert!((1..5000).all(|n| rate(9586, n, 7) < rate(9586, n + 1, 7)));
    assert!((1000..5000).all(|m| rate(m, 1000, 4) > rate(m + 1, 1000, 4)));
    for (m, n) in [(9586, 1000), (128, 8), (1 << 30, 1 << 24), (100, 90)] {
        let curve: Vec<f64> = (1..=60).map(|k| rate(m, n, k)).collect();
        let lowest = (0..60).min_by(|&a, &b| curve[a].total_cmp(&curve[b])).unwrap();
        assert!(curve[..=lowest].windows(2).all(|w| w[0] > w[1]), "falls before its minimum");
        // Far beyond the minimum every bit is set, and the rate is 1 to the last digit.
        assert!(curve[lowest..].windows(2).all(|w| w[0] < w[1] || w[1] > 0.999), "rises after it");
        let best = optimal_hashes(m as f64 / n as f64).unwrap();
        assert!((lowest as f64 + 1.0 - best).abs() <= 1.0 || lowest == 0);
    }
}

#[test]
fn the_constants_of_the_literature_are_reproduced() {
    assert_eq!(rounded(minimum_rate(1.0).unwrap(), 6), 0.618503);
    assert_eq!(rounded(optimal_hashes(13.0).unwrap(), 1), 9.0);
    assert!((optimal_hashes(1.0).unwrap() / (9.0 / 13.0) - 1.0).abs() < 0.0013);
    assert_eq!(bits_per_key(0.5).unwrap(), std::f64::consts::LOG2_E);
    assert_eq!(information_minimum(1.0 / 1024.0).unwrap(), 10.0);
    // At the best k the filter is half full, and the rate is a half to the power of k.
    let (bits, k) = (10.0 / LN_2, 10);
    assert!((minimum_rate(bits).unwrap() / 0.5f64.powi(k) - 1.0).abs() < 1e-13);
}

#[test]
fn a_lookup_that_fails_costs_two_probes_at_half_fill() {
    assert_eq!(expected_probes(0.5, 1).unwrap(), 1.0);
    assert!((expected_probes(0.5, 7).unwrap() - (1.0 - 0.5f64.powi(7)) / 0.5).abs() < 1e-15);
    assert_eq!(expected_probes(0.0, 7).unwrap(), 1.0);
    assert_eq!(expected_probes(1.0, 7).unwrap(), 7.0);
    assert!(expected_probes(1.1, 7).is_err() && expected_probes(f64::NAN, 7).is_err());
}

#[test]
fn the_extremes_stay_finite() {
    for m in [1, 2, 3, MAX_BITS] {
        for n in [0, 1, MAX_KEYS] {
            for k in [1, 2, 7, MAX_HASHES] {
                for f in
                    [zero_probability, expected_fill, classic, classic_as_written, asymptotic, second_order]
                {
                    let value = f(m, n, k).unwrap();
                    assert!(value >= 0.0 && value.is_finite(), "m {m} n {n} k {k}: {value}");
                }
                assert_eq!(classic(m, 0, k).unwrap(), 0.0, "an empty filter says no");
            }
        }
    }
    assert!(optimal_bits(MAX_KEYS, 0.01).is_err() && optimal_bits(1, f64::MIN_POSITIVE).is_ok());
    assert!(minimum_rate(f64::NAN).is_err() && minimum_rate(0.0).is_err());
    assert!(classic(0, 1, 1).is_err() && classic(1, 1, 0).is_err() && classic(1, u64::MAX, 1).is_err());
    assert_eq!(bytes(u64::MAX), 1 << 61);
}

#[test]
fn the_second_order_stays_accurate_at_sizes_where_its_textbook_form_cancels() {
    // Var X = m q (1 - q - c q) in the limit, with c = kn/m: the correction relative to the classic
    // formula.
    let (m, k) = (MAX_BITS, 7);
    let n = m / 10;
    let c = f64::from(k) * n as f64 / m as f64;
    let q = (-c).exp();
    let expected = q * (1.0 - q - c * q) / m as f64 * 21.0 / (1.0 - q).powi(2);
    let ratio = second_order(m, n, k).unwrap() / classic(m, n, k).unwrap();
    assert!((ratio - 1.0 - expected).abs() < 1e-15);
}

#[test]
fn the_expected_rate_is_exact_for_small_filters_and_smooth_beyond() {
    for (m, n, k) in [(10, 3, 3), (128, 8, 11), (64, 10, 4), (200, 20, 7), (1024, 100, 7)] {
        assert_eq!(expected(m, n, k).unwrap(), exact(m, n, k).unwrap(), "{m} {n} {k}");
    }
    for k in [1u32, 2, 5, 7, 11, 20, 40, 57] {
        // Half full, just below and just above the limit of exact computations.
        let n = (MAX_EXACT_STEPS as f64 * LN_2).sqrt() / f64::from(k);
        let (n, m) = ((n as u64).max(1), (f64::from(k) * n / LN_2) as u64);
        let rates: Vec<f64> = (n.saturating_sub(4)..n + 5).map(|n| expected(m, n, k).unwrap()).collect();
        assert!(rates.is_sorted_by(|a, b| a < b), "k {k}: rises with n: {rates:?}");
        let rates: Vec<f64> = (m - 30..m + 30).map(|m| expected(m, n, k).unwrap()).collect();
        assert!(rates.is_sorted_by(|a, b| a > b), "k {k}: falls with m: {rates:?}");
        let (exact, second) = (exact(m, n, k).unwrap(), second_order(m, n, k).unwrap());
        let allowed = if k <= 20 { 1e-3 } else { 0.07 };
        assert!((second / exact - 1.0).abs() < allowed, "k {k}: {second} {exact}");
    }
    for (m, n, k) in [(1, 1, 1), (1, 5, 3), (3, 0, 2), (1 << 48, 1 << 48, 1024), (64, 1 << 40, 7)] {
        let rate = expected(m, n, k).unwrap();
        assert!((classic(m, n, k).unwrap()..=1.0).contains(&rate), "{m} {n} {k}: {rate}");
    }
    assert!(expected(0, 1, 1).is_err() && expected(10, 1, 0).is_err());
}
