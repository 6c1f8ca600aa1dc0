//! The examples of the literature, with given cells and increments instead of hashed ones.

use super::*;
use crate::counting::counters::{At, add, take};

fn table(scheme: &Scheme) -> Table {
    Table::new(scheme).unwrap()
}

/// Returns the increments that a cell with this value may hold.
fn possible(scheme: &Scheme, value: u64) -> Vec<u32> {
    let table = table(scheme);
    let passes = scheme.increments().into_iter().enumerate().filter(|(i, _)| table.passes(value, *i));
    passes.map(|(_, v)| v).collect()
}

#[test]
fn a_set_excludes_increments_whose_remainder_is_not_a_sum() {
    let scheme = Scheme::set(&[8, 12, 14, 15]);
    assert_eq!(table(&scheme).width(), 8);
    // x adds 8 and y adds 12 to one cell: 14 and 15 cannot be in it.
    assert_eq!(possible(&scheme, 20), [8, 12]);
    // 24 = 12 + 12 = 8 + 8 + 8, and 28 = 14 + 14 = 8 + 8 + 12: the sum is ambiguous.
    assert_eq!(possible(&scheme, 24), [8, 12]);
    assert_eq!(possible(&scheme, 28), [8, 12, 14]);
    assert_eq!(possible(&scheme, 0), []);
    assert_eq!(possible(&scheme, 255), [8, 12, 14, 15], "a cell that has overflowed excludes nothing");
    let gaps = gaps(&[8, 12, 14, 15]).unwrap().unwrap();
    for value in 0..255 {
        let sums = [8, 12, 14, 15].into_iter().filter(|v| value >= *v && !gaps.contains(&(value - v)));
        assert_eq!(possible(&scheme, value.into()), sums.collect::<Vec<_>>(), "{value}");
    }
}

#[test]
fn a_range_follows_the_four_cases_of_the_literature() {
    let scheme = Scheme::default();
    assert_eq!((scheme.increments(), table(&scheme).width()), (vec![4, 5, 6, 7], 7));
    for l in [1u64, 2, 4, 8, 16] {
        let scheme = Scheme::range(l as u32);
        for value in 0..table(&scheme).max() {
            let by_definition = |v: &u64| value == *v || value >= v + l;
            let by_case: Vec<u64> = match value {
                0 => vec![],
                c if c >= 3 * l => (l..2 * l).collect(),
                c if c >= 2 * l => (l..=c - l).collect(),
                c if c >= l => vec![c],
                _ => vec![],
            };
            assert_eq!(by_case, (l..2 * l).filter(by_definition).collect::<Vec<_>>());
            let found: Vec<u64> = possible(&scheme, value).into_iter().map(u64::from).collect();
            assert_eq!(found, by_case, "L = {l}, cell {value}");
        }
    }
    // From Rottenstreich et al. 2014: 9 = 4 + 5 does not hold 7, and 5 does not hold 6.
    assert_eq!(possible(&scheme, 9), [4, 5]);
    assert_eq!(possible(&scheme, 5), [5]);
}

#[test]
fn cells_with_counts_determine_their_increments() {
    let cell = |count: u64, sum: u64| count << 8 | sum;
    let improved = Scheme::b_h(&[1, 4, 8, 13], 3, true);
    let basic = Scheme::b_h(&[1, 4, 8, 13], 3, false);
    assert_eq!(table(&basic).width(), 12);
    for scheme in [&basic, &improved] {
        assert_eq!(possible(scheme, cell(0, 0)), []);
        assert_eq!(possible(scheme, cell(3, 25)), [4, 8, 13]);
        assert_eq!(possible(scheme, cell(3, 30)), [4, 13]);
    }
    // Sum 30 of four keys: 4 is impossible, since no three increments sum to 26. The basic scheme
    // does not check.
    assert_eq!(possible(&improved, cell(4, 30)), [1, 8, 13]);
    assert_eq!(possible(&basic, cell(4, 30)), [1, 4, 8, 13]);
}

#[test]
fn sequences_have_the_properties_stated_in_the_literature() {
    assert!(is_b_h(&[1, 4, 8, 13], 3).unwrap() && !is_b_h(&[1, 4, 8, 13], 4).unwrap());
    assert!(is_b_h(&[8, 12, 14, 15], 2).unwrap() && !is_b_tilde_h(&[8, 12, 14, 15], 2).unwrap());
    assert!(is_b_tilde_h(&[3, 4], 2).unwrap() && is_b_h(&[3, 4], 2).unwrap());
    assert!(!is_b_tilde_h(&[3, 4], 4).unwrap(), "3 + 3 + 3 + 3 = 4 + 4 + 4");
    assert!(is_b_tilde_h(&[5], 8).unwrap());
    assert!(is_b_h(&[], 2).is_err() && is_b_h(&[0, 1], 2).is_err() && is_b_tilde_h(&[1], 0).is_err());
    assert_eq!(gaps(&[4, 6]).unwrap(), None, "no odd number is a sum");
    assert_eq!(gaps(&[1, 7]).unwrap().unwrap(), []);
    assert_eq!(gaps(&[3, 5]).unwrap().unwrap(), [1, 2, 4, 7]);
}

#[test]
fn sets_with_a_common_divisor_are_sound_as_well() {
    let scheme = Scheme::set(&[4, 6]);
    assert_eq!(possible(&scheme, 10), [4, 6]);
    assert_eq!(possible(&scheme, 8), [4]);
    assert_eq!(possible(&scheme, 2), []);
}

fn schemes() -> Vec<Scheme> {
    vec![
        Scheme::range(1),
        Scheme::range(2),
        Scheme::default(),
        Scheme::Range { l: 4, bits: 4 },
        Scheme::set(&[8, 12, 14, 15]),
        Scheme::Set { increments: vec![4, 6], bits: 5 },
        Scheme::b_h(&[1, 4, 8, 13], 3, false),
        Scheme::Bh { increments: vec![1, 4, 8, 13], h: 3, improved: true, count_bits: 2, sum_bits: 5 },
    ]
}

/// In any order, and whichever cells overflow: the sums are the same, added increments match, and
/// they can be removed.
#[test]
fn cells_hold_what_was_added_in_any_order() {
    for scheme in schemes() {
        let table = table(&scheme);
        let mut state = 1u64;
        for _ in 0..2000 {
            let mut draw = |range: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % range
            };
            let choices: Vec<usize> = (0..=draw(9)).map(|_| draw(table.choices())).collect();
            let sum = |order: &mut dyn Iterator<Item = &usize>| {
                order.fold(0, |c, i| table.join(c, table.single(*i)))
            };
            let whole = sum(&mut choices.iter());
            assert_eq!(whole, sum(&mut choices.iter().rev()));
            let (left, right) = choices.split_at(choices.len() / 2);
            assert_eq!(whole, table.join(sum(&mut left.iter()), sum(&mut right.iter())), "{scheme:?}");
            let mut rest = whole;
            for choice in &choices {
                assert!(table.passes(rest, *choice), "{scheme:?} {choices:?}");
                rest = table.without(rest, *choice).unwrap();
            }
            assert!(rest == 0 || rest == table.max() && whole == rest, "{scheme:?} {choices:?}");
        }
    }
}

#[test]
fn a_removal_that_leaves_an_impossible_sum_is_refused() {
    let rule = Increments::new(10, 3, Scheme::set(&[8, 12, 14, 15])).unwrap();
    let mut words = vec![0; rule.cells.lines() as usize * 8];
    let key = |cells: [(u64, usize); 3]| cells.into_iter().map(|(cell, choice)| At { cell, choice });
    // Cell 2 becomes 8 + 12 = 20.
    assert!(add(&rule, &mut words, key([(1, 3), (2, 0), (5, 1)])));
    assert!(add(&rule, &mut words, key([(2, 1), (7, 2), (7, 2)])));
    assert_eq!((rule.cells.get(&words, 2), rule.cells.get(&words, 7)), (20, 28));
    let before = words.clone();
    // 20 - 14 = 6 is not a sum; 28 holds 12 or 14, but not both; and 28 - 15 = 13 is not a sum
    // either.
    for stranger in [
        [(1, 3), (5, 1), (2, 2)],
        [(2, 0), (7, 1), (7, 2)],
        [(1, 3), (7, 3), (2, 0)],
        [(1, 3), (2, 0), (0, 0)],
    ] {
        assert!(!take(&rule, &mut words, key(stranger)), "{stranger:?}");
        assert_eq!(words, before);
    }
    // Two probes in one cell are removed as their sum.
    assert!(take(&rule, &mut words, key([(2, 1), (7, 2), (7, 2)])));
    assert!(take(&rule, &mut words, key([(1, 3), (2, 0), (5, 1)])));
    assert!(words.iter().all(|word| *word == 0));
}

#[test]
fn a_cell_that_has_overflowed_stays_stuck() {
    for scheme in schemes() {
        let table = table(&scheme);
        let full = (0..300).fold(0, |cell, i| table.join(cell, table.single(i % table.choices())));
        assert_eq!(full, table.max(), "{scheme:?}");
        for choice in 0..table.choices() {
            assert!(table.passes(full, choice));
            assert_eq!(table.without(full, choice), Some(full));
            assert_eq!(table.join(full, table.single(choice)), full);
        }
    }
}

#[test]
fn the_cells_confirm_the_theorems() {
    for l in [1, 2, 4, 8, 16] {
        let cells = table(&Scheme::range(l)).excluded();
        let theorem = variable_increment::excluded_by_range(l).unwrap();
        for (j, e) in theorem.iter().enumerate() {
            assert!((cells.get(j).unwrap_or(&0.0) - e).abs() < 1e-12, "L = {l}, {j} keys: {cells:?}");
        }
        assert!(cells.len() <= 3, "three keys exclude nothing");
    }
    let theorem = variable_increment::excluded_by_b_h(4, 3).unwrap();
    let basic = table(&Scheme::b_h(&[1, 4, 8, 13], 3, false)).excluded();
    let improved = table(&Scheme::b_h(&[1, 4, 8, 13], 3, true)).excluded();
    assert!(basic.len() == 4 && improved.len() > 4);
    for j in 0..4 {
        assert!((basic[j] - theorem[j]).abs() < 1e-12 && (improved[j] - theorem[j]).abs() < 1e-12, "{j}");
    }
}

#[test]
fn invalid_schemes_are_refused() {
    let set = |increments: &[u32], bits| Scheme::Set { increments: increments.to_vec(), bits };
    let bh = |h, count_bits, sum_bits| Scheme::Bh {
        increments: vec![1, 4, 8, 13],
        h,
        improved: true,
        count_bits,
        sum_bits,
    };
    for scheme in [
        Scheme::range(0),
        Scheme::range(3),
        Scheme::range(128),
        Scheme::range(u32::MAX),
        Scheme::Range { l: 4, bits: 3 },
        Scheme::Range { l: 4, bits: 17 },
        Scheme::Range { l: 4, bits: u32::MAX },
        set(&[], 8),
        set(&[0, 1], 8),
        set(&[3, 3], 8),
        set(&[3, 255], 8),
        set(&[u32::MAX], 16),
        bh(4, 4, 8),
        bh(0, 4, 8),
        bh(9, 4, 8),
        bh(3, 1, 8),
        bh(3, 9, 7),
        bh(3, 8, 9),
        bh(3, u32::MAX, 1),
    ] {
        let error = Increments::new(100, 3, scheme.clone());
        assert!(matches!(error, Err(crate::Error::Parameter { .. })), "{scheme:?}: {error:?}");
    }
    for scheme in schemes() {
        assert_eq!(Scheme::from_params(&scheme.params()), Some(scheme));
    }
    for params in [&[][..], &[1, 0, 0, 0, 7], &[1, 1, 0, 0, 7, 4], &[4, 0, 0, 0, 7, 4], &[3, 3, 2, 4, 8, 1]] {
        assert_eq!(Scheme::from_params(params), None, "{params:?}");
    }
    assert_eq!(Scheme::from_params(&[1, 0, 0, 0, 1 << 40, 4]), None);
}

#[test]
fn schemes_are_written_as_in_the_literature() {
    assert_eq!(Scheme::default().to_string(), "D_4 in 7 bits");
    assert_eq!(Scheme::set(&[8, 12, 14, 15]).to_string(), "{8,12,14,15} in 8 bits");
    assert_eq!(Scheme::b_h(&[1, 4, 8, 13], 3, true).to_string(), "improved B_3 {1,4,8,13} in 4+8 bits");
}
