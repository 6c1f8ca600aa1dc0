//! Invalid parameters are refused with an error that names them. Nothing panics, and nothing is
//! allocated.

use std::fmt::Debug;
use umbel::internals::Layout;
use umbel::literature::{Family, Scheme};
use umbel::memory::Words;
use umbel::sizing::{
    BlockedParams, Given, KPolicy, Params, PartitionedParams, Shape, blocked, partitioned, rate,
};
use umbel::spec::plan;
use umbel::{Arena, Blocked, Bloom, Error, Hasher, Kind, Partitioned, Result, Spec, Standard};

/// Checks that the result is a parameter error whose message starts with the parameter and its
/// value.
#[track_caller]
fn assert_names<T: Debug>(name: &str, result: Result<T>) -> String {
    match result {
        Err(error @ Error::Parameter { .. }) => {
            let Error::Parameter { name: named, ref got, ref needs } = error else { unreachable!() };
            assert_eq!(named, name, "{error}");
            assert!(!got.is_empty() && !needs.is_empty(), "{error}");
            let sentence = error.to_string();
            assert!(sentence.starts_with(&format!("{name} = {got} ")), "{sentence}");
            sentence
        }
        other => panic!("{name} should be refused: {other:?}"),
    }
}

#[track_caller]
fn assert_out_of_memory<T: Debug>(result: Result<T>) {
    match result {
        Err(error @ Error::OutOfMemory { bytes }) => {
            assert!(bytes >= 1 << 56 && error.to_string().contains(&bytes.to_string()), "{error}");
        }
        other => panic!("so much memory should be refused: {other:?}"),
    }
}

const KINDS: [Kind; 3] = [Kind::Standard, Kind::Partitioned, Kind::Blocked];

const BAD_RATES: [f64; 9] = [0.0, -0.0, 1.0, -0.01, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 100.0];

/// Checks that both ways from a capacity and a rate to a filter refuse them, for every kind.
fn assert_all_refuse(name: &str, n: u64, p: f64) {
    for kind in KINDS {
        assert_names(name, Spec::new(n, p).and_then(|spec| plan(kind, &spec)));
    }
    assert_names(name, Bloom::<Standard>::with_capacity(n, p));
    assert_names(name, Bloom::<Partitioned>::with_capacity(n, p));
    assert_names(name, Bloom::<Blocked>::with_capacity(n, p));
}

#[test]
fn a_capacity_of_zero_is_refused() {
    assert_all_refuse("n", 0, 0.01);
    for policy in KPolicy::ALL {
        assert_names("n", Params::for_capacity(0, 0.01, policy));
        assert_names("n", Params::for_bits(1000, 0, policy));
    }
    assert_names("n", PartitionedParams::for_capacity(0, 0.01));
    assert_names("n", BlockedParams::for_capacity(0, 0.01));
    assert_names("n", BlockedParams::for_bits(4096, 0));
}

#[test]
fn invalid_rates_are_refused() {
    for p in BAD_RATES {
        assert_all_refuse("p", 1000, p);
        for policy in KPolicy::ALL {
            assert_names("p", Params::for_capacity(1000, p, policy));
            assert_names("p", Given { m: Some(1000), p: Some(p), ..Given::default() }.solve(policy));
        }
        assert_names("p", PartitionedParams::for_capacity(1000, p));
        assert_names("p", PartitionedParams::for_bits_and_rate(100_000, p));
        assert_names("p", BlockedParams::for_capacity(1000, p));
        assert_names("p", BlockedParams::for_bits_and_rate(100_000, p));
        assert_names("p", rate::bits_per_key(p));
        assert_names("p", rate::information_minimum(p));
        assert_names("p", rate::optimal_bits(1000, p));
    }
}

#[test]
fn a_rate_too_low_for_64_bit_digests_is_refused() {
    let sentence = assert_names("p", Spec::new(1_000_000_000, 1e-12));
    assert!(sentence.contains("5.4e-9"), "{sentence}");
    assert!(Spec::new(1_000_000_000, 1e-8).is_ok());
    assert_names("p", Spec::new(1000, f64::MIN_POSITIVE));
    assert_names("p", Spec::new(1000, 5e-324));
}

#[test]
fn absurd_numbers_of_keys_are_refused() {
    for policy in KPolicy::ALL {
        assert_names("n", Params::for_capacity(u64::MAX, 0.01, policy));
        assert_names("n", Params::for_bits(1000, u64::MAX, policy));
    }
    assert_names("n", PartitionedParams::for_capacity(u64::MAX, 0.01));
    assert_names("n", BlockedParams::for_capacity(u64::MAX, 0.01));
    assert_names("n", rate::classic(1000, u64::MAX, 7));
    assert_names("n", partitioned::rate(1000, u64::MAX, 7));
    assert_names("n", blocked::rate(1000, u64::MAX, 1));
    // Within the limits, but more bits than allowed.
    assert_all_refuse("n", 1 << 47, 0.01);
}

#[test]
fn the_error_names_an_absurd_number_of_keys_and_not_the_rate() {
    // No rate would help: "at least 100" is not advice.
    for n in [u64::MAX, 1 << 60, (1 << 48) + 1] {
        assert_all_refuse("n", n, 0.01);
    }
}

#[test]
fn zero_or_too_many_hash_functions_are_refused() {
    for k in [0, 1025, u32::MAX] {
        assert_names("k", Standard::new(1000, k));
        assert_names("k", Partitioned::new(1000, k));
        assert_names("k", Standard::from_params([1000, k.into()]));
        assert_names("k", Partitioned::from_params([1000, k.into()]));
        assert_names("k", rate::classic(1000, 10, k));
        assert_names("k", Shape::Standard { bits: 1000, hashes: k }.cardinality(10));
        for given in [
            Given { n: Some(1000), k: Some(k), ..Given::default() },
            Given { m: Some(1000), k: Some(k), ..Given::default() },
            Given { n: Some(1000), p: Some(0.01), k: Some(k), ..Given::default() },
            Given { m: Some(1000), p: Some(0.01), k: Some(k), ..Given::default() },
            Given { n: Some(1000), m: Some(9586), k: Some(k), ..Given::default() },
        ] {
            for kind in KINDS {
                assert_names("k", Spec::from_given(given).and_then(|spec| plan(kind, &spec)));
            }
        }
        assert_names("k", Scheme::new(Family::Murmur3, k, 1000));
    }
    // A file has 64 bits for k.
    assert_names("k", Standard::from_params([1000, u64::MAX]));
    assert_names("k", Standard::from_params([1000, (1 << 32) + 7]));
    assert_names("k", Partitioned::from_params([1000, (1 << 32) + 7]));
    // A blocked filter sets eight bits in each of one to four lines.
    for k in [7, 9, 40] {
        let given = Given { n: Some(1000), p: Some(0.01), k: Some(k), ..Given::default() };
        assert_names("k", Spec::from_given(given).and_then(|spec| Bloom::<Blocked>::build(&spec)));
    }
}

#[test]
fn a_size_of_zero_is_refused() {
    assert_names("m", Standard::new(0, 7));
    assert_names("slice bits", Partitioned::new(0, 7));
    assert_names("lines", Blocked::new(0, 1));
    assert_names("m", rate::classic(0, 10, 7));
    assert_names("m", Shape::Standard { bits: 0, hashes: 7 }.cardinality(0));
    assert_names("m", Scheme::new(Family::Murmur3, 7, 0));
    for given in [
        Given { n: Some(1000), m: Some(0), ..Given::default() },
        Given { p: Some(0.01), m: Some(0), ..Given::default() },
        Given { n: Some(1000), p: Some(0.01), m: Some(0), ..Given::default() },
    ] {
        for kind in KINDS {
            assert_names("m", Spec::from_given(given).and_then(|spec| plan(kind, &spec)));
        }
    }
    assert_names("lines", Words::zeroed(0));
}

#[test]
fn plans_refuse_absurd_sizes() {
    for m in [1 << 60, u64::MAX] {
        for given in [
            Given { n: Some(1000), m: Some(m), ..Given::default() },
            Given { p: Some(0.01), m: Some(m), ..Given::default() },
        ] {
            for kind in KINDS {
                assert_names("m", Spec::from_given(given).and_then(|spec| plan(kind, &spec)));
            }
        }
    }
    assert_names("lines", Blocked::new(1 << 60, 1));
    assert_names("lines", Blocked::new(u64::MAX, 1));
    assert_names("slice bits", Partitioned::new(1 << 60, 1024));
    assert_names("slice bits", Partitioned::new(u64::MAX, 2));
}

#[test]
fn layouts_refuse_absurd_sizes() {
    for bits in [(1 << 48) + 1, 1 << 60, u64::MAX] {
        assert_names("m", Standard::new(bits, 3));
        assert_names("slice bits", Partitioned::new(bits, 1));
        assert_names("lines", Blocked::new(bits / 511, 1));
    }
    // The largest possible filter has 32 TiB. The system may promise that much, but must not abort.
    if let Err(error) = Bloom::with_layout(Standard::new(1 << 48, 3).expect("valid"), Hasher::default()) {
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    }
    assert_out_of_memory(Words::zeroed(u64::MAX));
}

#[test]
fn lines_per_key_other_than_one_to_four_are_refused() {
    for lines_per_key in [0, 5, 64, u32::MAX] {
        assert_names("lines per key", Blocked::new(1000, lines_per_key));
        assert_names("lines per key", Blocked::from_params([1000, lines_per_key.into()]));
        assert_names("lines per key", blocked::rate(1000, 10, lines_per_key));
        assert_names("lines per key", BlockedParams::with_lines_per_key(1000, 0.01, lines_per_key));
        assert_names("lines per key", Shape::Blocked { lines: 1000, lines_per_key }.cardinality(10));
    }
    assert_names("lines per key", Blocked::from_params([1000, (1 << 32) + 1]));
}

#[test]
fn insufficient_settings_are_refused_and_the_missing_ones_named() {
    for (given, missing) in [
        (Given::default(), "two of"),
        (Given { n: Some(1000), ..Given::default() }, "p, m or k"),
        (Given { p: Some(0.01), ..Given::default() }, "n or m"),
        (Given { m: Some(1000), ..Given::default() }, "n, p or k"),
    ] {
        for kind in KINDS {
            let error = Spec::from_given(given).and_then(|spec| plan(kind, &spec)).expect_err("not enough");
            assert!(matches!(error, Error::Parameter { .. }), "{error:?}");
            assert!(error.to_string().contains(missing), "{error}");
        }
    }
}

#[test]
fn contradictory_settings_are_refused() {
    let given = Given { n: Some(1_000_000), p: Some(0.001), m: Some(1_000_000), ..Given::default() };
    for kind in KINDS {
        let error = Spec::from_given(given).and_then(|spec| plan(kind, &spec)).expect_err("too few bits");
        let Error::Contradiction { settings, .. } = &error else { panic!("{kind}: {error:?}") };
        let named =
            ["m = ", "p = "].iter().all(|name| settings.iter().any(|setting| setting.starts_with(name)));
        assert!(named, "{kind}: {error}");
        assert!(error.to_string().contains("bits"), "{kind}: {error}");
    }
}

#[test]
fn a_literature_filter_has_no_plan() {
    let spec = Spec::new(1000, 0.01).expect("valid");
    assert_names("kind", plan(Kind::Literature, &spec));
    assert!("blom".parse::<Kind>().is_err() && "sloppy".parse::<umbel::hash::Strength>().is_err());
}

#[test]
fn offsets_that_leave_the_buffer_are_refused() {
    for offsets in [&[0u64, 4][..], &[0, 2, 1], &[u64::MAX], &[3, 0]] {
        assert_names("offsets", Arena::new(b"abc", offsets));
    }
}

#[test]
fn impossible_counts_of_set_bits_are_refused() {
    let shape = Shape::Standard { bits: 1000, hashes: 7 };
    assert_names("set bits", shape.cardinality(1001));
    assert_names("union", shape.overlap(500, 400, 499));
    assert_names("union", shape.overlap(100, 100, 201));
    assert_names("set bits", shape.overlap(1001, 1, 2));
}

#[test]
fn unusual_but_valid_parameters_are_accepted() {
    // The limits are not overcautious: unusual but valid parameters work.
    assert!(Bloom::<Standard>::with_capacity(1, 0.999_999).is_ok());
    assert!(Bloom::<Partitioned>::with_capacity(1, 0.999_999).is_ok());
    assert!(Bloom::<Blocked>::with_capacity(1, 0.999_999).is_ok());
    assert!(Bloom::<Standard>::with_capacity(1, 1e-17).is_ok());
    assert!(Bloom::<Partitioned>::with_capacity(1, 1e-17).is_ok());
    assert!(Bloom::<Blocked>::with_capacity(1, 1e-17).is_ok());
    assert!(
        Standard::new(1, 1024).is_ok() && Partitioned::new(1, 1024).is_ok() && Blocked::new(1, 4).is_ok()
    );
}
