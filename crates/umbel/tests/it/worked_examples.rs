//! Two worked examples from the literature, small enough to follow on paper: ten cells, three
//! positions per key.
//!
//! They show the bits after every step, so the positions are given here instead of hashed.

use std::fmt;
use umbel::memory::Words;

/// The Bloom filter of the examples: sets positions, tests positions, and displays the bits from
/// cell 0 on. It uses the memory of the real filters, whose positions cannot be chosen.
struct Bits {
    words: Words,
    m: usize,
}

impl Bits {
    fn new(m: usize) -> Bits {
        Bits { words: Words::zeroed(m.div_ceil(512) as u64).expect("a line of memory"), m }
    }

    fn set(&mut self, positions: [usize; 3]) {
        let words = self.words.words_mut();
        for position in positions {
            words[position / 64] |= 1 << (position % 64);
        }
    }

    /// Clears positions. A real Bloom filter has no such operation, for the reason shown below.
    fn clear(&mut self, positions: [usize; 3]) {
        let words = self.words.words_mut();
        for position in positions {
            words[position / 64] &= !(1 << (position % 64));
        }
    }

    fn is_set(&self, position: usize) -> bool {
        self.words.words()[position / 64] >> (position % 64) & 1 == 1
    }

    fn all_set(&self, positions: [usize; 3]) -> bool {
        positions.iter().all(|&position| self.is_set(position))
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.m).try_for_each(|cell| f.write_str(if self.is_set(cell) { "1" } else { "0" }))
    }
}

/// Compares the bits with the published ones, and prints them for a reader who follows along.
fn assert_shows(bits: &Bits, step: &str, published: &str) {
    println!("{step}: {bits}");
    assert_eq!(bits.to_string(), published, "{step}");
}

/// Example (a): three linear functions modulo ten. This family is only for teaching, because all
/// three functions depend on x mod 10 alone: they are not independent, and 4 and 9 have the same
/// three cells.
fn linear(x: usize) -> [usize; 3] {
    [x % 10, (2 * x + 3) % 10, (3 * x + 7) % 10]
}

/// Returns the filter of example (a) after its three insertions.
fn two_four_nine() -> Bits {
    let mut bits = Bits::new(10);
    for x in [2, 4, 9] {
        bits.set(linear(x));
    }
    bits
}

#[test]
fn linear_functions_set_the_published_bits() {
    let mut bits = Bits::new(10);
    assert_shows(&bits, "empty", "0000000000");

    assert_eq!(linear(2), [2, 7, 3]);
    bits.set(linear(2));
    assert_shows(&bits, "after 2", "0011000100");

    assert_eq!(linear(4), [4, 1, 9]);
    bits.set(linear(4));
    assert_shows(&bits, "after 4", "0111100101");

    assert_eq!(linear(9), [9, 1, 4], "the cells of 4 in another order");
    bits.set(linear(9));
    assert_shows(&bits, "after 9", "0111100101");
}

#[test]
fn a_member_is_found_and_a_stranger_is_not() {
    let bits = two_four_nine();
    assert!(bits.all_set(linear(4)));

    // 5 is absent because of position 5; its other two positions are set.
    assert_eq!(linear(5), [5, 3, 2]);
    assert!(!bits.all_set(linear(5)));
    assert!(!bits.all_set([5, 5, 5]));
    assert!(bits.all_set([3, 2, 3]));
}

#[test]
fn twelve_is_a_false_positive() {
    assert_eq!(linear(12), linear(2));
    assert!(two_four_nine().all_set(linear(12)));
}

#[test]
fn positions_of_one_key_may_coincide() {
    assert_eq!(linear(7), [7, 7, 8]);
}

#[test]
fn the_rate_is_worse_than_the_formula_because_the_functions_are_not_independent() {
    let bits = two_four_nine();
    let answers_yes: Vec<usize> = (0..10).filter(|&x| bits.all_set(linear(x))).collect();
    assert_eq!(answers_yes, [2, 4, 9]);
    for y in 0..1000 {
        assert_eq!(bits.all_set(linear(y)), [2, 4, 9].contains(&(y % 10)), "{y}");
    }

    let (m, n, k) = (10.0_f64, 3, 3);
    let formula = (1.0 - (1.0 - 1.0 / m).powi(k * n)).powi(k);
    let measured = answers_yes.len() as f64 / m;
    println!("measured {measured}, formula {formula:.4}");
    assert_eq!(measured, 0.3);
    assert!((formula - 0.2299).abs() < 5e-5);
}

// Example (b): the positions are given.
const X0: [usize; 3] = [1, 4, 9];
const X1: [usize; 3] = [4, 5, 8];
const Y0: [usize; 3] = [0, 4, 8];
const Y1: [usize; 3] = [1, 5, 8];

#[test]
fn given_positions_set_the_published_bits() {
    let mut bits = Bits::new(10);
    bits.set(X0);
    assert_shows(&bits, "after x0", "0100100001");
    bits.set(X1);
    assert_shows(&bits, "after x1", "0100110011");

    assert!(bits.all_set(X0) && bits.all_set(X1));
    assert!(!bits.all_set(Y0), "y0 is not a member and is not found");
    assert!(bits.all_set(Y1), "y1 is not a member, but x0 and x1 together cover it");
}

#[test]
fn clearing_bits_to_remove_a_key_makes_another_key_vanish() {
    let mut bits = Bits::new(10);
    bits.set(X0);
    bits.set(X1);

    bits.clear(X0);
    assert_shows(&bits, "x0 cleared", "0000010010");
    assert!(!bits.all_set(X1), "x1 was inserted, shared cell 4 with x0, and is now a false negative");
}
