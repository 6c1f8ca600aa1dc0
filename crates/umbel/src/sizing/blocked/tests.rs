use super::*;
use crate::sizing::experiment::{Random, moments};

const KEYS: u64 = 10_000_000;

fn percent_over(n: u64, p: f64, params: BlockedParams) -> f64 {
    assert!(params.rate <= p, "the rate is kept");
    100.0 * (params.bits as f64 / (n as f64 * standard::bits_per_key(p).unwrap()) - 1.0)
}

/// Returns the true rate of one build: the product of the fills of a line's lanes, averaged over
/// the lines.
fn build(random: &mut Random, lines: u64, n: u64, lines_per_key: u32) -> f64 {
    let mut lanes = vec![[0u64; LANES as usize]; lines as usize];
    for _ in 0..n * u64::from(lines_per_key) {
        let line = &mut lanes[random.below(lines)];
        let mut positions = random.next();
        for lane in line {
            *lane |= 1 << (positions % LANE_BITS);
            positions /= LANE_BITS;
        }
    }
    let fill = |lane: &u64| f64::from(lane.count_ones()) / LANE_BITS as f64;
    let rates = lanes.iter().map(|line| line.iter().map(fill).product::<f64>());
    (rates.sum::<f64>() / lines as f64).powf(f64::from(lines_per_key))
}

#[test]
fn memory_stays_near_the_optimum_at_every_usual_rate() {
    // p, lines per key by the rule, per cent over the optimum.
    let table = [
        (0.3, 1, 63.7),
        (0.2, 1, 42.0),
        (0.1, 1, 22.7),
        (0.05, 1, 13.0),
        (0.02, 1, 7.0),
        (0.01, 1, 5.4),
        (0.005, 1, 5.3),
        (0.002, 1, 7.0),
        (1e-3, 1, 9.4),
        (1e-4, 2, 5.4),
        (1e-5, 2, 5.9),
        (1e-6, 3, 5.4),
        (1e-7, 3, 5.4),
        (1e-8, 3, 6.8),
        (1e-9, 4, 5.2),
        (1e-10, 4, 5.9),
        (1e-11, 4, 7.3),
        (1e-12, 4, 9.4),
    ];
    for (p, lines_per_key, percent) in table {
        let params = BlockedParams::for_capacity(KEYS, p).unwrap();
        assert_eq!(params.lines_per_key, lines_per_key, "{p}");
        assert!((percent_over(KEYS, p, params) - percent).abs() < 0.06, "{p}");
        assert!((100.0 * params.overhead() - percent).abs() < 0.06, "{p}");
    }
}

#[test]
fn the_lines_planned_are_the_fewest_that_keep_the_rate() {
    for n in [1, 1000, KEYS, 1 << 35] {
        for p in [0.5, 0.01, 1e-4, 1e-9] {
            let BlockedParams { lines, lines_per_key, bits, .. } = BlockedParams::for_capacity(n, p).unwrap();
            assert_eq!((lines % LINE_MULTIPLE, bits), (0, lines * LINE_BITS));
            assert!(rate(lines, n, lines_per_key).unwrap() <= p);
            if lines > LINE_MULTIPLE {
                assert!(rate(lines - LINE_MULTIPLE, n, lines_per_key).unwrap() > p);
            }
            let held = capacity(lines, lines_per_key, p).unwrap();
            assert!(held >= n && rate(lines, held + 1, lines_per_key).unwrap() > p);
            // Planning for these bits yields the same filter.
            let back = BlockedParams::for_bits(bits, n).unwrap();
            assert_eq!(back.lines, lines);
            assert!(back.rate <= p || n == 1, "n {n} p {p}: {back:?}");
        }
    }
}

#[test]
fn the_rate_with_one_line_per_key_is_exact() {
    // All keys fall into the only line.
    for n in [0, 1, 10, 1000] {
        let all_set = (1.0 - (63.0 / 64.0_f64).powi(n as i32)).powi(8);
        assert!((rate(1, n, 1).unwrap() - all_set).abs() <= 1e-14 * all_set, "{n}");
        assert!(
            (rate(1, n, 4).unwrap() - (1.0 - (63.0 / 64.0_f64).powi(4 * n as i32)).powi(32)).abs() < 1e-14
        );
    }
    // Two lines and three keys: a line holds 0, 1, 2 or 3 of them with 1, 3, 3 and 1 chances in 8.
    let line = |j: i32| (1.0 - (63.0 / 64.0_f64).powi(j)).powi(8);
    let by_hand = (3.0 * line(1) + 3.0 * line(2) + line(3)) / 8.0;
    assert!((rate(2, 3, 1).unwrap() / by_hand - 1.0).abs() < 1e-13);
}

#[test]
fn builds_have_the_predicted_mean_and_deviation() {
    let mut random = Random(7);
    for (lines, n, lines_per_key, builds) in
        [(8, 400, 1, 600), (20, 1000, 1, 400), (32, 800, 2, 400), (1024, 51_200, 1, 60)]
    {
        let rates: Vec<f64> = (0..builds).map(|_| build(&mut random, lines, n, lines_per_key)).collect();
        let (mean, deviation) = moments(&rates);
        let predicted = rate(lines, n, lines_per_key).unwrap();
        let spread = relative_deviation(lines, n, lines_per_key).unwrap();
        // Four standard errors of each, and for several lines per key the term that the power of a
        // mean leaves out.
        let doubt = f64::from(builds).sqrt();
        let excess = f64::from(lines_per_key * (lines_per_key - 1)) / 2.0
            * (spread / f64::from(lines_per_key)).powi(2);
        assert!(
            (mean / predicted - 1.0 - excess).abs() < 4.0 * spread / doubt,
            "{lines} lines: {mean} {predicted}"
        );
        assert!(
            (deviation / mean / spread - 1.0).abs() < 4.0 / (2.0_f64.sqrt() * doubt) + 0.03,
            "{lines} lines: {deviation} {spread}"
        );
    }
    assert!((rate(1024, 51_200, 1).unwrap() - 0.00935).abs() < 1e-5);
}

#[test]
fn the_rate_is_steady_from_64_kib() {
    let steady = STEADY_BITS / LINE_BITS;
    let n = capacity(steady, 1, 0.01).unwrap();
    assert!((relative_deviation(steady, n, 1).unwrap() - 0.0103).abs() < 2e-4);
    assert!((relative_deviation(20, 1000, 1).unwrap() - 0.074).abs() < 1e-3);
    assert!((relative_deviation(2, 100, 1).unwrap() - 0.234).abs() < 1e-3);
}

#[test]
fn fill_is_that_of_eight_slices() {
    let params = BlockedParams::for_capacity(KEYS, 0.01).unwrap();
    assert!((params.expected_fill() - 0.547).abs() < 1e-3);
    let slices = crate::sizing::partitioned::expected_fill(params.lines * LANE_BITS, KEYS).unwrap();
    assert_eq!(params.expected_fill(), slices);
    assert_eq!(expected_fill(1, 0, 1).unwrap(), 0.0);
}

#[test]
fn the_rate_rises_with_keys_and_falls_with_lines() {
    for lines_per_key in 1..=MAX_LINES_PER_KEY {
        let r = |lines, n| rate(lines, n, lines_per_key).unwrap();
        assert!((0..600).all(|n| r(16, n) < r(16, n + 1)));
        assert!((1..200).all(|lines| r(lines, 2000) > r(lines + 1, 2000) || r(lines, 2000) > 0.999));
    }
}

#[test]
fn the_extremes_return_immediately() {
    for lines in [1, 2, 8, MAX_LINES] {
        for n in [0, 1, 1 << 20, MAX_KEYS] {
            for lines_per_key in 1..=MAX_LINES_PER_KEY {
                let rate = rate(lines, n, lines_per_key).unwrap();
                assert!((0.0..=1.0).contains(&rate), "{lines} {n} {lines_per_key}: {rate}");
                assert!(relative_deviation(lines, n, lines_per_key).unwrap().is_finite());
                assert!(expected_fill(lines, n, lines_per_key).unwrap() <= 1.0);
            }
        }
    }
    assert_eq!(rate(1, MAX_KEYS, 4).unwrap(), 1.0);
    assert_eq!(rate(MAX_LINES, 0, 1).unwrap(), 0.0);
}

#[test]
fn invalid_arguments_are_refused() {
    assert!(
        BlockedParams::for_capacity(0, 0.01).is_err() && BlockedParams::for_capacity(10, f64::NAN).is_err()
    );
    assert!(BlockedParams::for_capacity(MAX_KEYS, 0.01).is_err());
    assert!(
        BlockedParams::for_capacity(10, 1e-300).is_err(),
        "four lines do not reach that rate at any size"
    );
    assert!(BlockedParams::with_lines_per_key(10, 0.01, 0).is_err());
    assert!(BlockedParams::with_lines_per_key(10, 0.01, 5).is_err());
    assert!(BlockedParams::for_bits(4095, 10).is_err() && BlockedParams::for_bits(4096, 10).is_ok());
    assert!(BlockedParams::for_bits(4096, 0).is_err() && BlockedParams::for_bits(u64::MAX, 1).is_err());
    assert!(rate(0, 1, 1).is_err() && rate(MAX_LINES + 1, 1, 1).is_err() && rate(8, u64::MAX, 1).is_err());
    assert!(capacity(1, 1, 1e-20).is_err(), "not even one key");
    assert!(capacity(8, 1, 1.0).is_err() && capacity(0, 1, 0.5).is_err());
}
