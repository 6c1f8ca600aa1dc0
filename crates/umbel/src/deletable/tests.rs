//! Worked examples by their positions, and invalid files.

use super::*;
use crate::Error;

/// A filter of ten bits with given positions, in regions of two bits.
struct Toy {
    words: [u64; 1],
    collisions: [u64; 1],
}

const REGIONS: Regions = Regions { bits: 2 };

impl Toy {
    fn new(keys: &[&[u64]]) -> Toy {
        let mut toy = Toy { words: [0], collisions: [0] };
        for key in keys {
            REGIONS.insert(&mut toy.words, &mut toy.collisions, key.iter().copied());
        }
        toy
    }

    fn remove(&mut self, key: &[u64]) -> Removed {
        REGIONS.remove(&mut self.words, &self.collisions, || key.iter().copied())
    }

    fn contains(&self, key: &[u64]) -> bool {
        key.iter().all(|position| bits::is_set(&self.words, *position))
    }

    fn shown(&self) -> String {
        digits(&self.words, 10)
    }
}

fn digits(words: &[u64], count: u64) -> String {
    (0..count).map(|bit| if bits::is_set(words, bit) { '1' } else { '0' }).collect()
}

const X0: &[u64] = &[1, 4, 9];
const X1: &[u64] = &[4, 5, 8];

#[test]
fn clearing_bits_of_a_standard_filter_loses_keys_that_a_deletable_filter_keeps() {
    assert_eq!(Toy::new(&[X0]).shown(), "0100100001");
    let mut toy = Toy::new(&[X0, X1]);
    assert_eq!(toy.shown(), "0100110011");
    assert!(!toy.contains(&[0, 4, 8]) && toy.contains(&[1, 5, 8]), "a true negative, and a false positive");

    let mut naive = toy.words;
    X0.iter().for_each(|position| bits::clear(&mut naive, *position));
    assert_eq!(digits(&naive, 10), "0000010010");
    assert!(!X1.iter().all(|position| bits::is_set(&naive, *position)), "a false negative");

    assert_eq!(toy.remove(X0), Removed::Removed);
    // Position 4 is in a region with a collision, so it stays set.
    assert_eq!((toy.shown().as_str(), digits(&toy.collisions, 5).as_str()), ("0000110010", "00100"));
    assert!(toy.contains(X1) && !toy.contains(X0));
    assert_eq!(toy.remove(X0), Removed::NotPresent);
}

#[test]
fn a_key_stays_deletable_through_its_other_bit() {
    // The figure of the literature: x and y both hit entry 3.
    let (x, y) = ([2, 7], [2, 5]);
    let mut toy = Toy::new(&[&x, &y]);
    assert_eq!((toy.shown().as_str(), digits(&toy.collisions, 5).as_str()), ("0010010100", "01000"));
    assert_eq!(toy.remove(&x), Removed::Removed);
    assert_eq!(toy.shown(), "0010010000");
    assert!(toy.contains(&y) && !toy.contains(&x));
    assert_eq!(toy.remove(&y), Removed::Removed);
    assert_eq!(toy.shown(), "0010000000", "the shared bit is orphaned");
}

#[test]
fn a_key_with_collisions_in_all_regions_is_not_deletable() {
    let mut toy = Toy::new(&[X0, X0]);
    let before = (toy.words, toy.collisions);
    assert_eq!(toy.remove(X0), Removed::NotDeletable);
    assert_eq!((toy.words, toy.collisions), before);
    // A key whose hashes share a cell collides with itself.
    assert_eq!(Toy::new(&[&[3, 3]]).remove(&[3, 3]), Removed::NotDeletable);
    let mut toy = Toy::new(&[&[3, 3, 8]]);
    assert_eq!((toy.remove(&[3, 3, 8]), toy.shown().as_str()), (Removed::Removed, "0001000000"));
}

/// Restores an empty filter from these parameters and sections.
fn restore(params: &[u64], sections: &[(u32, u64)]) -> Result<Deletable> {
    let sections: Vec<_> =
        sections.iter().map(|(what, lines)| (*what, Words::zeroed(*lines).unwrap())).collect();
    let head = Head::new(Hasher::default());
    Deletable::restore(Parts { head, params: params.to_vec(), sections: sections.into_iter() })
}

#[test]
fn invalid_parameters_of_a_file_are_refused() {
    let good = restore(&[1000, 7, 4], &[(BITS, 2), (COLLISIONS, 1)]).unwrap();
    assert_eq!((good.regions(), good.layout().hashes()), (250, 7));
    // Regions longer than the filter result in a single region.
    assert_eq!(restore(&[1000, 7, 1 << 48], &[(BITS, 2), (COLLISIONS, 1)]).unwrap().regions(), 1);
    for (params, sections) in [
        (&[1000, 7][..], &[(BITS, 2), (COLLISIONS, 1)][..]),
        (&[1000, 7, 4, 0], &[(BITS, 2), (COLLISIONS, 1)]),
        (&[0, 7, 4], &[(BITS, 1), (COLLISIONS, 1)]),
        (&[1000, 0, 4], &[(BITS, 2), (COLLISIONS, 1)]),
        (&[1000, u64::MAX, 4], &[(BITS, 2), (COLLISIONS, 1)]),
        (&[1000, 7, 0], &[(BITS, 2), (COLLISIONS, 1)]),
        (&[1000, 7, u64::MAX], &[(BITS, 2), (COLLISIONS, 1)]),
        (&[u64::MAX, 7, 4], &[(BITS, 2), (COLLISIONS, 1)]),
        (&[1000, 7, 1], &[(BITS, 2), (COLLISIONS, 1)]),
        (&[1000, 7, 4], &[(BITS, 1), (COLLISIONS, 1)]),
        (&[1000, 7, 4], &[(BITS, 2)]),
        (&[1000, 7, 4], &[(COLLISIONS, 1), (BITS, 2)]),
        (&[1000, 7, 4], &[(BITS, 2), (COLLISIONS, 1), (BITS, 1)]),
    ] {
        let refused = restore(params, sections);
        assert!(
            matches!(refused, Err(Error::Parameter { .. } | Error::Format { .. })),
            "{params:?} {sections:?}"
        );
    }
}

#[test]
fn bits_beyond_the_last_region_are_detected() {
    let mut filter = restore(&[1000, 7, 4], &[(BITS, 2), (COLLISIONS, 1)]).unwrap();
    assert!(filter.check_contents().is_ok());
    bits::set(filter.collisions.words_mut(), 249);
    assert!(filter.check_contents().is_ok());
    bits::set(filter.collisions.words_mut(), 250);
    assert!(filter.check_contents().is_err());
}
