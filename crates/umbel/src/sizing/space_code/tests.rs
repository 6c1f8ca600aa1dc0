use super::*;

fn close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

#[test]
fn coverage_is_that_of_the_coupon_collector() {
    for (theta, expected) in [
        (1, 1.0),
        (2, 2.032),
        (8, 9.041),
        (16, 21.689),
        (20, 30.569),
        (24, 42.900),
        (28, 63.205),
        (31, 97.872),
    ] {
        close(coverage(32, theta).unwrap(), expected, 0.0005);
    }
    let all = coverage(32, 32).unwrap();
    close(all, 129.87, 0.005);
    let harmonic: f64 = (1..=32).map(|i| 1.0 / f64::from(i)).sum();
    close(all, 32.0 * harmonic, 1e-9);
    // l ln l is only the leading term, 15 % low.
    let leading = 32.0 * 32f64.ln();
    close(leading, 110.9, 0.05);
    close(1.0 - leading / all, 0.146, 0.001);
}

#[test]
fn both_estimators_have_the_values_of_the_specification() {
    for (f, theta, likely, mean) in [
        (0.0, 1, 1.0, 1.00),
        (0.0, 2, 2.0, 2.03),
        (0.0, 4, 4.0, 4.21),
        (0.0, 8, 9.0, 9.06),
        (0.0, 16, 22.0, 21.83),
        (0.0, 24, 44.0, 43.66),
        (0.0, 28, 66.0, 65.50),
        (0.0, 30, 88.0, 87.33),
        (0.0, 31, 109.0, 109.16),
        (0.01, 1, 1.0, 0.68),
        (0.01, 8, 8.0, 8.74),
        (0.01, 16, 21.0, 21.52),
        (0.01, 24, 43.0, 43.35),
        (0.05, 1, 0.0, 0.0),
        (0.05, 2, 1.0, 0.42),
        (0.05, 8, 8.0, 7.45),
        (0.05, 24, 42.0, 42.05),
    ] {
        assert_eq!(mle(32, f, theta).unwrap(), likely, "f {f} theta {theta}");
        close(mve(32, f, theta).unwrap(), mean, 0.0051);
    }
    for f in [0.0, 0.01, 0.05] {
        for estimator in [mle, mve] {
            assert_eq!(estimator(32, f, 0).unwrap(), 0.0);
            close(estimator(32, f, 32).unwrap(), 129.87, 0.005);
        }
    }
}

#[test]
fn inaccuracy_is_least_at_twenty_of_thirty_two() {
    for (theta, expected) in [
        (1, 1.032),
        (2, 0.525),
        (4, 0.272),
        (8, 0.1475),
        (12, 0.1085),
        (16, 0.0922),
        (18, 0.0885),
        (20, 0.0872),
        (22, 0.0885),
        (24, 0.0932),
        (28, 0.1266),
        (30, 0.195),
        (31, 0.327),
    ] {
        close(inaccuracy(32, theta).unwrap(), expected, 0.0006);
    }
    assert!(inaccuracy(32, 0).unwrap().is_infinite() && inaccuracy(32, 32).unwrap().is_infinite());
    assert_eq!(scale(32).best, 20);
}

/// Returns the likelihood as the specification writes it: groups hit, and noise among the others.
fn likelihood_by_the_sum(l: u32, f: f64, theta: u32, x: u64) -> f64 {
    let mut hit = vec![0.0; l as usize + 1];
    hit[0] = 1.0;
    for _ in 0..x {
        for j in (1..=l as usize).rev() {
            hit[j] = hit[j] * j as f64 / f64::from(l) + hit[j - 1] * (1.0 - (j - 1) as f64 / f64::from(l));
        }
        hit[0] = 0.0;
    }
    (0..=theta).map(|j| hit[j as usize] * binomial(l - j, f)[(theta - j) as usize]).sum()
}

#[test]
fn the_chain_equals_the_sum_over_groups_hit() {
    for l in [1, 2, 7, 32, 64] {
        for f in [0.0, 0.005, 0.05, 0.7] {
            for x in [0, 1, 2, 5, 20, 100] {
                let mut total = 0.0;
                for theta in 0..=l {
                    let value = likelihood(l, f, theta, x).unwrap();
                    close(value, likelihood_by_the_sum(l, f, theta, x), 1e-12);
                    total += value;
                }
                close(total, 1.0, 1e-12);
            }
        }
    }
    close(likelihood(32, 0.0, 32, u64::MAX).unwrap(), 1.0, 1e-9);
}

#[test]
fn likelihood_has_one_maximum() {
    for l in [2, 32, 64] {
        for f in [0.0, 0.005, 0.05] {
            for theta in 0..l {
                let of_x: Vec<f64> = {
                    let mut found = GroupDistribution::new(l, f);
                    let mut next = || {
                        found.record();
                        found.probability[theta as usize]
                    };
                    (0..800).map(|_| next()).collect()
                };
                let turns = of_x.windows(3).filter(|x| x[1] > x[0] && x[1] > x[2]).count();
                assert!(turns <= 1, "l {l} f {f} theta {theta}");
            }
        }
    }
}

#[test]
fn intervals_have_their_stated_coverage() {
    for l in [1, 8, 32, 64] {
        for f in [0.0, 0.005, 0.05, 0.3] {
            let of_theta = intervals(l, f);
            let mut found = GroupDistribution::new(l, f);
            for x in 0..600 {
                let x = f64::from(x);
                let covered = |(low, high): &(f64, f64)| *low <= x && x <= *high;
                let chance: f64 = found
                    .probability
                    .iter()
                    .zip(&of_theta)
                    .filter(|(_, of)| covered(of))
                    .map(|(p, _)| p)
                    .sum();
                assert!(chance > 0.95 - 1e-9, "l {l} f {f} x {x}: {chance}");
                found.record();
            }
        }
    }
    assert_eq!(interval(32, 0.0, 1).unwrap(), (1.0, 2.0));
    assert_eq!(interval(32, 0.0, 0).unwrap(), (0.0, 0.0));
    let (low, high) = interval(32, 0.005, 16).unwrap();
    assert!(low < 21.7 && 21.7 < high && (14.0..18.0).contains(&low) && (27.0..32.0).contains(&high));
    // The sampled interval is wider, because the number of sampled recordings is unknown.
    let (sampled_low, sampled_high) = sampled_interval(32, 0.005, 16, 1.0).unwrap();
    assert!(sampled_low < low && sampled_high > high);
    let (quarter_low, quarter_high) = sampled_interval(32, 0.005, 16, 0.25).unwrap();
    close(quarter_low, 4.0 * sampled_low, 1e-9);
    close(quarter_high, 4.0 * sampled_high, 1e-9);
    assert!(interval(32, 0.0, 32).unwrap().1.is_infinite());
    assert!(sampled_interval(32, 0.0, 32, 0.25).unwrap().1.is_infinite());
}

#[test]
fn a_thousand_packets_are_read_from_a_sixteenth_or_a_sixty_fourth() {
    // The average number of groups found on each level.
    let theta = |level| {
        let missed = 32.0 * (1.0 - sampling(level) / 32.0).powi(1000);
        (32.0 - missed).round() as u32
    };
    assert_eq!(theta(0), 32);
    assert!(theta(5) <= 2);
    let (level, _) = most_relevant(32, 9, Rule::Guarded, theta).unwrap();
    assert!([2, 3].contains(&level), "{level}");
    assert_eq!(most_relevant(32, 9, Rule::Unguarded, theta).unwrap().0, level);
    // With a single level there is no choice.
    assert_eq!(most_relevant(32, 1, Rule::Guarded, theta).unwrap(), (0, 32));
    assert_eq!(most_relevant(32, 3, Rule::Unguarded, |_| 32).unwrap(), (2, 32));
    assert_eq!(most_relevant(32, 3, Rule::Unguarded, |_| 0).unwrap(), (0, 0));
    assert_eq!(most_relevant(32, 3, Rule::Guarded, |_| 32).unwrap(), (2, 32));
}

#[test]
fn the_guarded_rule_reads_no_more_levels_than_it_needs() {
    let mut asked = Vec::new();
    let mut ask = |theta: &[u32]| {
        asked.clear();
        most_relevant(32, 9, Rule::Guarded, |level| {
            asked.push(level);
            theta[level as usize]
        })
        .unwrap();
        asked.len()
    };
    assert_eq!(ask(&[19, 9]), 1, "nineteen groups are few enough");
    assert_eq!(ask(&[20, 9]), 2, "twenty may be too many");
    assert_eq!(ask(&[32, 31, 20, 5]), 4);
}

#[test]
fn keys_recorded_equally_often_make_the_most_pairs() {
    // 10^5 recordings of 10^3 keys: spread evenly, by Zipf's law, and almost all of one key.
    let (n, keys, l) = (100_000u64, 1000u64, 32u32);
    let zipf: Vec<f64> = (1..=keys).map(|rank| 1.0 / rank as f64).collect();
    let scale = n as f64 / zipf.iter().sum::<f64>();
    let expected = |counts: &mut dyn Iterator<Item = f64>, level| {
        let miss = 1.0 - sampling(level) / f64::from(l);
        counts.map(|x| f64::from(l) * (1.0 - miss.powf(x))).sum::<f64>()
    };
    for level in 0..9 {
        let bound = pairs(n, Some(keys), l, level).unwrap();
        let equal = expected(&mut (0..keys).map(|_| (n / keys) as f64), level);
        let skewed = expected(&mut zipf.iter().map(|share| share * scale), level);
        assert!(skewed < bound * 0.999_99 && equal < bound * (1.0 + 1e-9), "level {level}");
        assert!(bound <= pairs(n, None, l, level).unwrap());
    }
    close(pairs(n, Some(keys), l, 0).unwrap(), 30_662.0, 1.0);
    assert_eq!(pairs(n, Some(10 * n), l, 0).unwrap(), n as f64, "more keys than recordings add no bound");
    assert_eq!(pairs(n, Some(7), 1, 0).unwrap(), 7.0);
}

#[test]
fn levels_are_at_most_half_full_and_keep_the_noise() {
    for n in [1, 100, 10_000, 10_000_000] {
        for f in [0.3, 0.05, 0.01, 0.005, 1e-6] {
            let levels = levels(n, None, 32, 9, f).unwrap();
            assert_eq!(levels.len(), 9);
            for (level, LevelParams { bits, hashes }) in (0..).zip(levels) {
                let noise = predicted_noise(n, None, 32, level, bits, hashes).unwrap();
                assert!(noise <= f, "{n} {f} {level}: {noise}");
                let pairs = pairs(n, None, 32, level).unwrap().ceil() as u64;
                assert!(rate::expected_fill(bits, pairs, hashes).unwrap() <= 0.5);
            }
        }
    }
    // Few keys need far less.
    let bits = |keys| levels(1_000_000, keys, 32, 1, 0.005).unwrap()[0].bits;
    assert!(bits(Some(1000)) * 30 < bits(None));
}

#[test]
fn invalid_arguments_are_refused() {
    assert!(coverage(0, 0).is_err() && coverage(65, 1).is_err() && coverage(32, 33).is_err());
    assert!(mve(32, 1.0, 1).is_err() && mle(32, -0.1, 1).is_err() && likelihood(32, f64::NAN, 1, 1).is_err());
    assert!(sampled_interval(32, 0.0, 1, 0.0).is_err());
    assert!(most_relevant(32, 0, Rule::Guarded, |_| 0).is_err());
    assert!(most_relevant(32, 17, Rule::Guarded, |_| 0).is_err());
    assert!(levels(0, None, 32, 9, 0.01).is_err() && levels(1, None, 32, 9, 0.0).is_err());
    // A level that reports more groups than there are counts as full.
    assert_eq!(most_relevant(32, 1, Rule::Guarded, |_| 99).unwrap(), (0, 32));
    // One group says only whether it was hit; noise that covers everything says nothing.
    assert_eq!((mean_value(1, 0.0, 0), mean_value(1, 0.0, 1)), (0.0, 1.0));
    assert_eq!(mean_value(32, 1.0, 3), 0.0);
    assert_eq!(intervals(32, 1.0)[3].0, 0.0);
    for l in 1..=MAX_GROUPS {
        assert!((1..=l).contains(&scale(l).best));
        assert!((0..=l).all(|theta| mean_value(l, 0.0, theta).is_finite()));
    }
}
