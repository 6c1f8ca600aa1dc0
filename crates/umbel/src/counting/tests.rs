//! The examples of the literature, with given positions instead of hashed ones.

use super::counters::{At, add, take};
use super::*;
use crate::variable_increment::{Increments, Scheme};
use crate::{Structure, VariableIncrement};

fn at(positions: &[u64]) -> impl Iterator<Item = At> + Clone {
    positions.iter().map(|cell| At { cell: *cell, choice: 0 })
}

fn ones(cells: u64, overflow: Overflow) -> (Ones, Vec<u64>) {
    let rule = Ones::new(cells, 3, Options { counter_bits: 4, overflow }).unwrap();
    (rule, vec![0; rule.cells.lines() as usize * 8])
}

fn values(rule: &Ones, words: &[u64]) -> Vec<u64> {
    rule.cells.iter(words).collect()
}

fn contains(rule: &Ones, words: &[u64], positions: &[u64]) -> bool {
    at(positions).all(|at| rule.passes(rule.cells.get(words, at.cell), at.choice))
}

#[test]
fn ten_counters_and_two_keys() {
    let (x0, x1) = ([1, 4, 9], [4, 5, 8]);
    for overflow in Overflow::ALL {
        let (rule, mut words) = ones(10, overflow);
        assert!(add(&rule, &mut words, at(&x0)) && add(&rule, &mut words, at(&x1)));
        assert_eq!(values(&rule, &words), [0, 1, 0, 0, 2, 1, 0, 0, 1, 1]);
        // The bits are those of the standard filter's example: y0 is absent, y1 is a false
        // positive.
        assert!(!contains(&rule, &words, &[0, 4, 8]) && contains(&rule, &words, &[1, 5, 8]));
        assert!(take(&rule, &mut words, at(&x0)));
        assert_eq!(values(&rule, &words), [0, 0, 0, 0, 1, 1, 0, 0, 1, 0]);
        // Clearing bits would have lost x1; with counters it is still there.
        assert!(contains(&rule, &words, &x1) && !contains(&rule, &words, &x0));
        // A second removal is refused and changes nothing, although position 4 is not zero.
        assert!(!take(&rule, &mut words, at(&[4, 5, 1])));
        assert_eq!(values(&rule, &words), [0, 0, 0, 0, 1, 1, 0, 0, 1, 0]);
        // Removing a false positive passes the check and makes the filter forget x1.
        assert!(add(&rule, &mut words, at(&x0)) && take(&rule, &mut words, at(&[1, 5, 8])));
        assert!(!contains(&rule, &words, &x1));
    }
}

#[test]
fn probes_that_share_a_cell_are_added_and_removed_separately() {
    for positions in [[7, 7, 8], [3, 3, 3], [0, 9, 0]] {
        let (rule, mut words) = ones(10, Overflow::Sticky);
        assert!(add(&rule, &mut words, at(&positions)));
        assert_eq!(values(&rule, &words).iter().sum::<u64>(), 3);
        assert!(take(&rule, &mut words, at(&positions)));
        assert!(words.iter().all(|word| *word == 0));
        // A key with a single probe in this cell does not allow two to be removed.
        assert!(add(&rule, &mut words, at(&[positions[0], 1, 2])));
        let before = words.clone();
        assert!(!take(&rule, &mut words, at(&positions)));
        assert_eq!(words, before);
    }
}

#[test]
fn overflow_policies_after_sixteen_insertions_and_fifteen_removals() {
    let x = [2, 5, 5];
    for (overflow, found) in [(Overflow::Sticky, true), (Overflow::Decrement, false)] {
        let (rule, mut words) = ones(10, overflow);
        (0..16).for_each(|_| assert!(add(&rule, &mut words, at(&x))));
        assert_eq!(rule.cells.get(&words, 2), 15);
        for _ in 0..15 {
            take(&rule, &mut words, at(&[2]));
        }
        assert_eq!(contains(&rule, &words, &[2]), found, "{overflow:?}");
        assert_eq!(rule.is_stuck(15), overflow == Overflow::Sticky);
    }
    // The insertion is refused and changes nothing: counter 5 is full after seven insertions, when
    // counter 2 still has room.
    let (rule, mut words) = ones(10, Overflow::Error);
    (0..7).for_each(|_| assert!(add(&rule, &mut words, at(&x))));
    let before = words.clone();
    assert!(!add(&rule, &mut words, at(&x)));
    assert_eq!(words, before);
    // A full counter is still exact, and can be decremented.
    (0..7).for_each(|_| assert!(take(&rule, &mut words, at(&x))));
    assert!(words.iter().all(|word| *word == 0));
}

#[test]
fn overflow_policies_with_hashed_positions() {
    let build = |overflow| {
        let mut filter =
            Counting::new(1000, 5, Options { counter_bits: 4, overflow }, Hasher::fast(1)).unwrap();
        (0..16).try_for_each(|_| filter.insert("apple").map(drop)).map(|()| filter)
    };
    for (overflow, found) in [(Overflow::Sticky, true), (Overflow::Decrement, false)] {
        let mut filter = build(overflow).unwrap();
        let answer = if found { Removed::NotDeletable } else { Removed::Removed };
        (0..15).for_each(|_| assert_eq!(filter.remove("apple"), answer));
        assert_eq!(filter.contains("apple"), found, "{overflow:?}");
        assert_eq!(filter.stuck_cells() > 0, found);
    }
    assert!(matches!(build(Overflow::Error), Err(Error::Full { kind: Kind::Counting, .. })));
}

/// In a cell with a value that no insertions produce, an inserted key may not be found.
#[test]
fn cell_values_that_insertions_cannot_produce_are_refused() {
    for scheme in [Scheme::range(4), Scheme::set(&[8, 12]), Scheme::b_h(&[1, 4, 8, 13], 3, true)] {
        let mut filter = VariableIncrement::new(64, 4, scheme.clone(), Hasher::fast(3)).unwrap();
        let width = filter.rule().cells().width();
        let mut refused = 0;
        for value in 0..1 << width {
            filter.words.words_mut()[0] = value;
            refused += usize::from(filter.check_contents().is_err());
            // In contents that pass the check, every inserted key is found.
            if filter.check_contents().is_ok() {
                for key in 0..8u64 {
                    let mut filter = filter.try_clone().unwrap();
                    filter.insert(&key).unwrap();
                    assert!(filter.contains(&key), "{scheme}: {key} in {value}");
                }
            }
        }
        assert!(refused > 2, "{scheme}: {refused}");
    }
}

/// A file is mapped before it is verified, so every method must return whatever is in the cells.
fn survives<R: Rule>(rule: R) {
    let mut filter = Counters::with_rule(rule, Hasher::fast(1)).unwrap();
    let mut state = 1u64;
    for word in filter.words.words_mut() {
        state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        *word = state ^ state >> 29;
    }
    let keys: Vec<u64> = (0..1000).collect();
    let asked = filter.contains_batch(&keys);
    assert!(keys.iter().zip(asked.iter()).all(|(key, found)| filter.contains(key) == found));
    assert!((0.0..=1.0).contains(&filter.stats().rate_now));
    assert!(filter.check_contents().is_err(), "there are bits beyond the last cell");
    for key in &keys {
        let before = filter.words.words().to_vec();
        if filter.remove(key) == Removed::Removed {
            // Not all contents come from insertions, so this may be refused; otherwise it restores
            // the cells exactly.
            if filter.insert(key).is_ok() {
                assert_eq!(filter.words.words(), before);
            }
        }
    }
    let mut other = filter.try_clone_empty().unwrap();
    other.insert_batch(&keys).ok();
    let (union, overlap) = (other.union(&filter), other.overlap(&filter));
    assert!(matches!(union, Ok(()) | Err(Error::Full { .. })) && overlap.is_ok());
    assert!(other.intersect(&filter).is_ok());
}

#[test]
fn arbitrary_contents_do_no_harm() {
    for overflow in Overflow::ALL {
        survives(Ones::new(999, 3, Options { counter_bits: 5, overflow }).unwrap());
    }
    for scheme in [Scheme::default(), Scheme::set(&[8, 12, 14, 15]), Scheme::b_h(&[1, 4, 8, 13], 3, false)] {
        survives(Increments::new(999, 3, scheme).unwrap());
    }
}

#[test]
fn policies_have_names() {
    for policy in Overflow::ALL {
        assert_eq!(policy.to_string().parse::<Overflow>().unwrap(), policy);
    }
    assert!("wrap".parse::<Overflow>().is_err());
}
