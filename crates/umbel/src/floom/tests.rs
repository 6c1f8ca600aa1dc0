//! Worked patterns, ranks, and invalid files.

use super::*;

fn patterns(bits: u64, hashes: u32, regions: u32, ranked: bool, compat: bool) -> Patterns {
    let options = Options { regions: Some(regions), ranked, compat };
    Patterns::new(Standard::new(bits, hashes).unwrap(), &options).unwrap()
}

#[test]
fn hits_in_the_second_and_fifth_of_five_regions_are_pattern_18_of_32() {
    let five = patterns(10, 2, 5, false, false);
    assert_eq!(five.bits(), 32);
    for (x, y) in [(2, 8), (3, 9), (9, 2)] {
        assert_eq!(five.pattern([x, y].into_iter()), 18);
        assert_eq!(five.index(18), 18);
    }
    assert_eq!(five.pattern([2, 3].into_iter()), 2, "two hits in one region");
}

#[test]
fn compat_assigns_only_boundary_positions_to_other_regions() {
    for (bits, regions) in
        [(10, 5), (16, 16), (17, 16), (100, 7), (999, 24), (960, 24), (1, 1), (1 << 48, 24)]
    {
        let plain = patterns(bits, 3, regions, false, false);
        let compat = patterns(bits, 3, regions, false, true);
        let step = (bits / 5000).max(1) | 1;
        for position in (0..bits).step_by(step as usize).chain([bits - 1]) {
            let region = plain.region(position);
            let exact = u128::from(position) * u128::from(regions) / u128::from(bits);
            assert_eq!(u128::from(region), exact);
            // The smallest j ≥ 1 with position ≤ ⌊j M / b⌋, counted from 0.
            let upper = |j: u64| (u128::from(j) * u128::from(bits) / u128::from(regions)) as u64;
            let lower = (1..=regions.into()).find(|j| position <= upper(*j)).unwrap() - 1;
            assert_eq!(compat.region(position), lower, "{position} of {bits}");
            let on_a_boundary = position > 0 && (position * u64::from(regions)).is_multiple_of(bits);
            assert_eq!(region != lower, on_a_boundary, "{position} of {bits}");
            assert_eq!(region - lower, u64::from(on_a_boundary));
        }
        assert_eq!(plain.region(bits - 1), u64::from(regions) - 1);
    }
}

#[test]
fn ranks_number_the_reachable_patterns_without_gaps() {
    for (regions, hashes) in [(1, 1), (5, 2), (8, 4), (12, 20), (16, 7), (16, 1), (20, 5)] {
        let ranked = patterns(1000, hashes, regions, true, false);
        let plain = patterns(1000, hashes, regions, false, false);
        let (hit, plain_hit) = (ranked.regions_hit(), plain.regions_hit());
        let mut met = vec![false; ranked.bits() as usize];
        for pattern in (1u32..1 << regions).filter(|pattern| pattern.count_ones() <= hashes) {
            let index = ranked.index(pattern);
            assert!(!std::mem::replace(&mut met[index as usize], true), "{pattern} of {regions}");
            assert_eq!(hit(index), pattern.count_ones() as usize);
            assert_eq!(plain_hit(plain.index(pattern)), pattern.count_ones() as usize);
        }
        assert!(met.into_iter().all(|met| met), "{regions} {hashes}");
    }
    assert_eq!(patterns(1000, 7, 16, true, false).bits(), 26_332);
    assert_eq!(patterns(1000, 5, 20, true, false).bits(), 21_699);
    assert_eq!(patterns(1000, 4, 8, true, false).bits(), 162);
    assert_eq!(patterns(1000, 7, 24, false, false).bits(), 1 << 24);
    assert_eq!(patterns(1000, 1024, 24, true, false).index((1 << 24) - 1), (1 << 24) - 2);
}

/// Restores an empty filter from these parameters and sections.
fn restore(params: &[u64], sections: &[(u32, u64)]) -> Result<Floom> {
    let sections: Vec<_> =
        sections.iter().map(|(what, lines)| (*what, Words::zeroed(*lines).unwrap())).collect();
    let head = Head::new(Hasher::default());
    Floom::restore(Parts { head, params: params.to_vec(), sections: sections.into_iter() })
}

#[test]
fn invalid_parameters_of_a_file_are_refused() {
    for flags in 0..4 {
        let good = restore(&[1000, 7, 9, flags], &[(BITS, 2), (PATTERNS, 1)]).unwrap();
        assert_eq!(good.params(), [1000, 7, 9, flags]);
    }
    for (params, sections) in [
        (&[1000, 7, 9][..], &[(BITS, 2), (PATTERNS, 1)][..]),
        (&[1000, 7, 0, 0], &[(BITS, 2), (PATTERNS, 1)]),
        (&[1000, 7, 25, 0], &[(BITS, 2), (PATTERNS, 1)]),
        (&[1000, 7, u64::MAX, 0], &[(BITS, 2), (PATTERNS, 1)]),
        (&[1000, 7, 9, 4], &[(BITS, 2), (PATTERNS, 1)]),
        (&[8, 7, 9, 0], &[(BITS, 1), (PATTERNS, 1)]),
        (&[1000, 0, 9, 0], &[(BITS, 2), (PATTERNS, 1)]),
        (&[u64::MAX, 7, 9, 0], &[(BITS, 2), (PATTERNS, 1)]),
        (&[1000, 7, 10, 0], &[(BITS, 2), (PATTERNS, 1)]),
        (&[1000, 7, 9, 0], &[(BITS, 2)]),
        (&[1000, 7, 9, 0], &[(PATTERNS, 1), (BITS, 2)]),
        (&[1000, 7, 9, 0], &[(BITS, 2), (PATTERNS, 1), (BITS, 1)]),
    ] {
        let refused = restore(params, sections);
        assert!(
            matches!(refused, Err(Error::Parameter { .. } | Error::Format { .. })),
            "{params:?} {sections:?}"
        );
    }
}

#[test]
fn bits_beyond_the_table_are_detected_and_unreachable_patterns_are_harmless() {
    let mut filter = restore(&[1000, 2, 6, 0], &[(BITS, 2), (PATTERNS, 1)]).unwrap();
    // Pattern 63 has six regions, which two hashes never hit.
    bits::set(filter.seen.words_mut(), 63);
    assert!(filter.check_contents().is_ok());
    assert_eq!(filter.seen_share(), 0.0);
    bits::set(filter.seen.words_mut(), 64);
    assert!(filter.check_contents().is_err());
    assert!(filter.stats().rate_now.is_finite());
}
