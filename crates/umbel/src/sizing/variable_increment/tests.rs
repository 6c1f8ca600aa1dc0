use super::*;
use crate::variable_increment::{Increments, Scheme};

fn excluded(scheme: Scheme) -> Vec<f64> {
    Increments::new(1, 1, scheme).unwrap().excluded()
}

/// Returns the lowest rate of 1024 keys with this many bits each, in cells of this width.
fn best(bits_per_key: u64, width: u64, excluded: &[f64]) -> (f64, u32) {
    let (n, cells) = (1024, 1024 * bits_per_key / width);
    let k = best_hashes(cells, n, excluded).unwrap();
    (rate(cells, n, k, excluded).unwrap(), k)
}

#[track_caller]
fn close(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() < tolerance, "{value} instead of {expected}");
}

#[test]
fn the_comparison_at_equal_memory_is_reproduced() {
    let range = excluded(Scheme::default());
    let general = excluded(Scheme::set(&[8, 12, 14, 15]));
    let b_3 = excluded(Scheme::b_h(&[1, 4, 8, 13], 3, false));
    for (bits, plain, b_3_rate, range_rate, general_rate) in [
        (20, (0.09187, 3), 0.06083, (0.04087, 3), (0.02512, 4)),
        (30, (0.02728, 5), 0.01527, (0.00825, 5), (0.00398, 6)),
        (40, (0.00820, 7), 0.00369, (0.00167, 6), (0.00063, 8)),
        (50, (0.00247, 9), 0.00092, (0.00033, 8), (0.00010, 10)),
    ] {
        for (width, excluded, (expected, k)) in
            [(4, &[1.0][..], plain), (7, &range[..], range_rate), (8, &general[..], general_rate)]
        {
            let (rate, hashes) = best(bits, width, excluded);
            close(rate, expected, 0.05);
            assert_eq!(hashes, k, "{bits} bits per key, cells of {width}");
        }
        close(best(bits, 12, &b_3).0, b_3_rate, 0.05);
    }
    // As printed in Rottenstreich et al. 2014, where it prints them.
    close(best(30, 4, &[1.0]).0, 0.02803, 0.05);
    close(best(30, 12, &b_3).0, 0.01521, 0.05);
    close(best(30, 7, &range).0, 0.00825, 0.05);
    close(best(30, 8, &general).0, 0.00383, 0.05);
    close(best(50, 4, &[1.0]).0, 0.00258, 0.05);
}

#[test]
fn four_is_the_best_l() {
    for (l, expected, printed) in
        [(2, 0.01390, 0.01388), (4, 0.00825, 0.00825), (8, 0.00838, 0.00841), (16, 0.01102, 0.01105)]
    {
        let rule = Increments::new(1, 1, Scheme::range(l)).unwrap();
        let width = u64::from(crate::counting::Rule::cells(&rule).width());
        let (rate, _) = best(30, width, &rule.excluded());
        close(rate, expected, 0.005);
        close(rate, printed, 0.005);
    }
}

#[test]
fn memory_for_one_in_a_thousand() {
    let kilobytes = |width: u64, excluded: &[f64]| {
        let given = Given { n: Some(2000), p: Some(0.001), ..Given::default() };
        let params = Params::of_cells(given, 1 << 40, excluded).unwrap();
        assert!(params.rate <= 0.001);
        (params.bits * width) as f64 / 8.0 / 1024.0
    };
    for (width, excluded, expected, printed) in [
        (4, vec![1.0], 14.06, 14.1),
        (7, excluded(Scheme::default()), 10.55, 10.97),
        (8, excluded(Scheme::set(&[8, 12, 14, 15])), 9.18, 9.31),
    ] {
        let memory = kilobytes(width, &excluded);
        close(memory, expected, 0.05);
        close(memory, printed, 0.05);
    }
}

/// The printed bound is 6.31e-16 m for the increments 4 to 7 in 4m/7 cells of seven bits, which
/// take the memory of m plain counters. It holds: at the best load by the simple bound, and at any
/// sensible load by the exact value.
#[test]
fn overflow_stays_below_the_printed_bound() {
    let excluded = excluded_by_range(4).unwrap();
    let (n, cells) = (1_000_000u64, 10_000_000u64);
    let load = f64::from(best_hashes(cells, n, &excluded).unwrap()) * n as f64 / cells as f64;
    // 127 is the value of overflow, and 18 increments of 7 stay below it.
    let simple = 4.0 / 7.0 * (std::f64::consts::E * load / 19.0).powi(19);
    assert!((1e-17..6.31e-16).contains(&simple), "load {load}: {simple:e}");
    // The distribution of the sum of a Poisson number of increments, by Panjer's recursion; 7/4 ln
    // 2 is the load with the k of the plain filter.
    let load = 1.75 * std::f64::consts::LN_2;
    let mut share = vec![(-load).exp()];
    for sum in 1..400usize {
        let before: f64 = (4..=7.min(sum)).map(|v| v as f64 / 4.0 * share[sum - v]).sum();
        share.push(load / sum as f64 * before);
    }
    let overflow = 4.0 / 7.0 * share[127..].iter().sum::<f64>();
    assert!((1e-22..6.31e-16).contains(&overflow), "{overflow:e}");
}

#[test]
fn without_increments_it_is_the_classic_formula() {
    for (cells, n, k) in [(10, 3, 2), (9586, 1000, 7), (1 << 40, 1 << 36, 9), (2, 1000, 3)] {
        let classic = super::super::rate::classic(cells, n, k).unwrap();
        close(rate(cells, n, k, &[1.0]).unwrap(), classic, 1e-9);
    }
    assert_eq!(rate(100, 0, 3, &[1.0]).unwrap(), 0.0);
}

#[test]
fn plans_keep_the_given_parameters() {
    let e = excluded(Scheme::default());
    let most = 1 << 40;
    let (n, p, m, k) = (Some(10_000), Some(0.001), Some(64_000), Some(6));
    let plan = |given| Params::of_cells(given, most, &e);
    let open = Given::default();
    let free = plan(Given { n, p, ..open }).unwrap();
    assert!(free.rate <= 0.001 && rate(free.bits - 1, 10_000, free.hashes, &e).unwrap() > 0.001);
    let six = plan(Given { n, p, k, ..open }).unwrap();
    assert!(six.hashes == 6 && six.bits >= free.bits && six.rate <= 0.001);
    let sized = plan(Given { n, m, ..open }).unwrap();
    assert!(sized.bits == 64_000 && sized.capacity == 10_000);
    assert!(sized.rate <= plan(Given { n, m, k, ..open }).unwrap().rate);
    let filled = plan(Given { p, m, ..open }).unwrap();
    assert!(filled.rate <= 0.001 && filled.capacity > 10_000);
    let few = Given { n, p, m: Some(20_000), ..open };
    assert!(matches!(plan(few), Err(Error::Contradiction { .. })));
    assert!(plan(Given { n, p, m, ..open }).is_ok());
    // The keys for which k is the best choice, and one at least.
    let textbook = plan(Given { m, k, ..open }).unwrap();
    assert!(textbook.capacity > 1 && Some(textbook.bits) == m && Some(textbook.hashes) == k);
    assert_eq!(plan(Given { m: Some(2), k, ..open }).unwrap().capacity, 1);
    for given in [
        open,
        Given { n, ..open },
        Given { n, k, ..open },
        Given { n: Some(0), p, ..open },
        Given { n, p: Some(0.0), ..open },
        Given { n, p: Some(f64::NAN), ..open },
        Given { n, p, k: Some(0), ..open },
        Given { n, m: Some(0), ..open },
        Given { n, m, k: Some(5000), ..open },
        Given { n: Some(1 << 48), p: Some(1e-300), ..open },
    ] {
        assert!(matches!(plan(given), Err(Error::Parameter { .. })), "{given:?}");
    }
    // From one key to a great many.
    for n in [1, 2, 3, 10, 1 << 20, 1 << 33] {
        for p in [0.9, 0.5, 0.1, 1e-3, 1e-9] {
            let params = plan(Given { n: Some(n), p: Some(p), ..open }).unwrap();
            assert!(params.rate <= p, "n {n} p {p}: {params:?}");
        }
    }
}
