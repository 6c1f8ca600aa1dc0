//! The schemes of increments, and the keys that the value of a cell excludes.

use crate::{Error, Result};
use std::fmt;

/// The increments that probes add to their cells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// The increments `D_L` = {L, ..., 2L-1}, where L is a power of two. A cell with value c may
    /// hold v if c = v or c - v >= L.
    Range {
        /// The parameter L.
        l: u32,
        /// The width of a cell in bits.
        bits: u32,
    },
    /// Any increments. A cell with value c may hold v if c - v is a sum of increments.
    Set {
        /// The increments.
        increments: Vec<u32>,
        /// The width of a cell in bits.
        bits: u32,
    },
    /// The increments of a `B_h` sequence, with cells that count the keys in addition to summing
    /// up their increments. A cell with i keys and sum c may hold v if c - v is a sum of i - 1
    /// increments.
    Bh {
        /// The increments.
        increments: Vec<u32>,
        /// The largest number of keys for which the sum of a cell determines its increments.
        h: u32,
        /// Whether cells with more than h keys can exclude increments, too. If not, they match
        /// every key.
        improved: bool,
        /// The number of bits in a cell that count keys.
        count_bits: u32,
        /// The number of bits in a cell for the sum.
        sum_bits: u32,
    },
}

impl Default for Scheme {
    /// The increments 4 to 7 in cells of seven bits.
    fn default() -> Scheme {
        Scheme::range(4)
    }
}

/// Returns the bits for sixteen times the largest increment, which corresponds to four bits for
/// ones.
fn bits_for(largest: Option<u32>) -> u32 {
    (16 * u64::from(largest.unwrap_or(1).max(1)) + 1).next_power_of_two().ilog2()
}

impl Scheme {
    /// Returns the increments {L, ..., 2L-1} in cells of the usual width: seven bits for L = 4.
    pub fn range(l: u32) -> Scheme {
        Scheme::Range { l, bits: bits_for(Some(l.saturating_mul(2).saturating_sub(1))) }
    }

    /// Returns these increments in cells of the usual width: eight bits for {8, 12, 14, 15}.
    pub fn set(increments: &[u32]) -> Scheme {
        Scheme::Set { increments: increments.to_vec(), bits: bits_for(increments.iter().max().copied()) }
    }

    /// Returns this `B_h` sequence in cells of the usual width: four bits for the count and eight
    /// for the sum of {1, 4, 8, 13}.
    pub fn b_h(increments: &[u32], h: u32, improved: bool) -> Scheme {
        let sum_bits = bits_for(increments.iter().max().copied());
        Scheme::Bh { increments: increments.to_vec(), h, improved, count_bits: 4, sum_bits }
    }

    /// Returns these increments as a `B_h` sequence with the largest h, up to 8.
    ///
    /// ```
    /// use umbel::variable_increment::Scheme;
    /// let scheme = Scheme::longest_b_h(&[1, 4, 8, 13], false)?;
    /// assert_eq!(scheme.to_string(), "B_3 {1,4,8,13} in 4+8 bits");
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if an increment is not 1 to 65536, occurs twice, or there are none.
    pub fn longest_b_h(increments: &[u32], improved: bool) -> Result<Scheme> {
        check_sequence(increments, 1)?;
        match (1..=MAX_H).rev().find(|h| is_b_h(increments, *h).unwrap_or(false)) {
            Some(h) => Ok(Scheme::b_h(increments, h, improved)),
            None => Err(Error::parameter("increments", format!("{increments:?}"), "different numbers")),
        }
    }

    /// Returns the increments.
    pub fn increments(&self) -> Vec<u32> {
        match self {
            // No valid scheme has more.
            Scheme::Range { l, .. } => (*l..l.saturating_mul(2)).take(MAX_INCREMENTS as usize).collect(),
            Scheme::Set { increments, .. } | Scheme::Bh { increments, .. } => increments.clone(),
        }
    }

    /// Returns the width of a cell: the bits of the count, and the bits of the sum.
    fn bits(&self) -> (u32, u32) {
        match *self {
            Scheme::Range { bits, .. } | Scheme::Set { bits, .. } => (0, bits),
            Scheme::Bh { count_bits, sum_bits, .. } => (count_bits, sum_bits),
        }
    }

    fn check(&self) -> Result<()> {
        if let Scheme::Range { l, .. } = *self
            && !(l.is_power_of_two() && l <= MAX_INCREMENTS)
        {
            return Err(Error::parameter("L", l, format!("a power of two up to {MAX_INCREMENTS}")));
        }
        let (count_bits, sum_bits) = self.bits();
        let counts = matches!(self, Scheme::Bh { .. });
        if !(2..=MAX_CELL_BITS).contains(&sum_bits)
            || counts && !(2..=8).contains(&count_bits)
            || count_bits + sum_bits > MAX_CELL_BITS
        {
            let (got, needs) = if counts {
                (format!("{count_bits} + {sum_bits}"), "2 to 8 that count keys, and 16 in all at most")
            } else {
                (sum_bits.to_string(), "2 to 16; smaller increments need fewer, 4095 is the largest for 16")
            };
            return Err(Error::parameter("bits per cell", got, needs));
        }
        let mut increments = self.increments();
        // A file can list half a million, too many for a message.
        let got = match increments.len() > MAX_INCREMENTS as usize {
            true => format!("{} numbers", increments.len()),
            false => format!("{increments:?}"),
        };
        increments.sort_unstable();
        increments.dedup();
        let largest = (1 << sum_bits) - 2;
        let fits = increments.iter().all(|v| (1..=largest).contains(v));
        if !(1..=MAX_INCREMENTS as usize).contains(&increments.len())
            || increments.len() != self.increments().len()
            || !fits
        {
            let needs = format!("1 to {MAX_INCREMENTS} different numbers from 1 to {largest}");
            return Err(Error::parameter("increments", got, needs));
        }
        if let Scheme::Bh { h, .. } = *self
            && !is_b_h(&increments, h)?
        {
            return Err(Error::parameter(
                "increments",
                got,
                format!("all sums of {h} of them to be different"),
            ));
        }
        Ok(())
    }

    /// Returns the parameters of the scheme in a file.
    pub(super) fn params(&self) -> Vec<u64> {
        let (count_bits, sum_bits) = self.bits();
        let bits = [count_bits.into(), sum_bits.into()];
        let (head, increments) = match self {
            Scheme::Range { l, .. } => ([1, 0, 0], vec![*l]),
            Scheme::Set { increments, .. } => ([2, 0, 0], increments.clone()),
            Scheme::Bh { increments, h, improved, .. } => {
                ([3, u64::from(*h), u64::from(*improved)], increments.clone())
            }
        };
        head.into_iter().chain(bits).chain(increments.into_iter().map(u64::from)).collect()
    }

    /// Restores a scheme from the parameters of a file; `None` if they do not describe one.
    pub(super) fn from_params(params: &[u64]) -> Option<Scheme> {
        let small: Vec<u32> = params.iter().map(|param| u32::try_from(*param).ok()).collect::<Option<_>>()?;
        let (head, increments) = small.split_at_checked(5)?;
        let increments = increments.to_vec();
        match (head, &increments[..]) {
            ([1, 0, 0, 0, bits], [l]) => Some(Scheme::Range { l: *l, bits: *bits }),
            ([2, 0, 0, 0, bits], _) => Some(Scheme::Set { increments, bits: *bits }),
            ([3, h, improved @ 0..=1, count_bits, sum_bits], _) => Some(Scheme::Bh {
                increments,
                h: *h,
                improved: *improved == 1,
                count_bits: *count_bits,
                sum_bits: *sum_bits,
            }),
            _ => None,
        }
    }
}

impl fmt::Display for Scheme {
    /// Formats the scheme as in the literature: `D_4 in 7 bits`, `{8,12,14,15} in 8 bits`,
    /// `B_3 {1,4,8,13} in 4+8 bits`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let braces = |increments: &[u32]| {
            format!("{{{}}}", increments.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
        };
        match self {
            Scheme::Range { l, bits } => write!(f, "D_{l} in {bits} bits"),
            Scheme::Set { increments, bits } => write!(f, "{} in {bits} bits", braces(increments)),
            Scheme::Bh { increments, h, improved, count_bits, sum_bits } => {
                let improved = if *improved { "improved " } else { "" };
                write!(f, "{improved}B_{h} {} in {count_bits}+{sum_bits} bits", braces(increments))
            }
        }
    }
}

/// A scheme ready for lookups: which cell values match which increments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    count_bits: u32,
    sum_bits: u32,
    /// For each increment, the value of a cell that holds only this one.
    singles: Vec<u64>,
    /// For each increment, a bitmap: bit `value` is set if a cell with this value may hold the
    /// increment.
    passes: Vec<u64>,
    /// The number of words in a bitmap.
    stride: usize,
    /// Whether a cell can reach each value from 0 by adding increments. With counts, the number of
    /// increments must match, too.
    possible: Vec<bool>,
}

/// The largest h of a `B_h` sequence.
const MAX_H: u32 = 8;
const MAX_INCREMENTS: u32 = 64;
const MAX_CELL_BITS: u32 = 16;

impl Table {
    pub fn new(scheme: &Scheme) -> Result<Table> {
        scheme.check()?;
        let (count_bits, sum_bits) = scheme.bits();
        let increments = scheme.increments();
        let one = if count_bits > 0 { 1 << sum_bits } else { 0 };
        let singles: Vec<u64> = increments.iter().map(|v| one + u64::from(*v)).collect();
        let stride = (1usize << (count_bits + sum_bits)).div_ceil(64);
        let passes = vec![0; stride * singles.len()];
        let mut table = Table { count_bits, sum_bits, passes, singles, stride, possible: Vec::new() };
        table.possible = table.possible();
        for choice in 0..increments.len() {
            for value in 0..=table.max() {
                let crowded = match scheme {
                    Scheme::Bh { h, improved: false, .. } => value >> sum_bits > u64::from(*h),
                    _ => false,
                };
                if crowded || table.without(value, choice).is_some() {
                    table.passes[choice * stride + value as usize / 64] |= 1 << (value % 64);
                }
            }
        }
        Ok(table)
    }

    fn possible(&self) -> Vec<bool> {
        let mut possible = vec![false; self.max() as usize + 1];
        possible[0] = true;
        // In ascending order: adding an increment always results in a larger value.
        for value in 0..=self.max() {
            if possible[value as usize] {
                for single in &self.singles {
                    if let Some(sum) = self.plus(value, *single) {
                        possible[sum as usize] = true;
                    }
                }
            }
        }
        possible
    }

    pub fn width(&self) -> u32 {
        self.count_bits + self.sum_bits
    }

    /// Returns the value of a cell that has overflowed.
    #[inline(always)]
    pub fn max(&self) -> u64 {
        !0 >> (64 - self.width())
    }

    /// Splits a cell into its count and its sum.
    #[inline(always)]
    fn split(&self, value: u64) -> (u64, u64) {
        (value >> self.sum_bits, value & (!0 >> (64 - self.sum_bits)))
    }

    /// Returns the sum of both cells; `None` if the count or the sum overflows.
    #[inline(always)]
    fn plus(&self, a: u64, b: u64) -> Option<u64> {
        let ((count_a, sum_a), (count_b, sum_b)) = (self.split(a), self.split(b));
        let (count, sum) = (count_a + count_b, sum_a + sum_b);
        (count >> self.count_bits == 0 && sum >> self.sum_bits == 0).then_some(count << self.sum_bits | sum)
    }

    #[inline(always)]
    fn minus(&self, value: u64, single: u64) -> Option<u64> {
        let ((count, sum), (one, increment)) = (self.split(value), self.split(single));
        (count >= one && sum >= increment).then(|| value - single)
    }

    /// Returns the sum of both cells, or the overflow value. The order of several joins does not
    /// matter: the result overflows if the total of the counts or of the sums does.
    #[inline(always)]
    pub fn join(&self, a: u64, b: u64) -> u64 {
        if a == self.max() || b == self.max() {
            return self.max();
        }
        self.plus(a, b).unwrap_or(self.max())
    }

    /// Returns the cell without this increment, if the rest is a value that increments can produce.
    #[inline(always)]
    pub fn without(&self, value: u64, choice: usize) -> Option<u64> {
        if value == self.max() {
            return Some(value);
        }
        self.minus(value, self.singles[choice]).filter(|rest| self.possible[*rest as usize])
    }

    /// Returns whether increments can produce this value without an overflow.
    pub fn is_possible(&self, value: u64) -> bool {
        self.possible.get(value as usize).is_some_and(|possible| *possible)
    }

    #[inline(always)]
    pub fn choices(&self) -> usize {
        self.singles.len()
    }

    #[inline(always)]
    pub fn single(&self, choice: usize) -> u64 {
        self.singles[choice]
    }

    #[inline(always)]
    pub fn passes(&self, value: u64, choice: usize) -> bool {
        self.passes[choice * self.stride + value as usize / 64] >> (value % 64) & 1 == 1
    }

    /// Returns the fraction of increments that match a cell with this value.
    pub fn share_passing(&self, value: u64) -> f64 {
        let passing = (0..self.choices()).filter(|choice| self.passes(value, *choice)).count();
        passing as f64 / self.choices() as f64
    }

    /// Returns the probability that a cell with 0, 1, 2, ... random increments excludes another
    /// one, up to the last element that is not negligible.
    pub fn excluded(&self) -> Vec<f64> {
        let share = 1.0 / self.choices() as f64;
        let mut likely = vec![0.0; self.max() as usize + 1];
        likely[0] = 1.0;
        let mut excluded = Vec::new();
        for _ in 0..64 {
            let values = (0..).zip(&likely).filter(|(_, p)| **p > 0.0);
            let sum: f64 = values.map(|(value, p)| p * (1.0 - self.share_passing(value))).sum();
            if sum < 1e-12 {
                break;
            }
            excluded.push(sum);
            let mut next = vec![0.0; likely.len()];
            for (value, p) in (0..).zip(&likely).filter(|(_, p)| **p > 0.0) {
                for single in &self.singles {
                    next[self.join(value, *single) as usize] += p * share;
                }
            }
            likely = next;
        }
        excluded
    }
}

/// Returns, for each size from 0 to `most` and each sum, the number of multisets of increments with
/// this size and sum. 2 stands for 2 or more.
fn multisets(increments: &[u32], most: u32) -> Vec<Vec<u8>> {
    let sums = increments.iter().max().map_or(0, |v| *v as usize) * most as usize + 1;
    let mut ways = vec![vec![0u8; sums]; most as usize + 1];
    ways[0][0] = 1;
    for v in increments {
        for size in 1..=most as usize {
            for sum in *v as usize..sums {
                ways[size][sum] = (ways[size][sum] + ways[size - 1][sum - *v as usize]).min(2);
            }
        }
    }
    ways
}

fn check_sequence(increments: &[u32], h: u32) -> Result<()> {
    if increments.is_empty() || increments.iter().any(|v| !(1..=1 << MAX_CELL_BITS).contains(v)) {
        return Err(Error::parameter("increments", format!("{increments:?}"), "numbers from 1 to 65536"));
    }
    if !(1..=MAX_H).contains(&h) {
        return Err(Error::parameter("h", h, "1 to 8"));
    }
    Ok(())
}

/// Returns whether all sums of exactly `h` increments, with repetition, are different.
///
/// ```
/// use umbel::variable_increment::is_b_h;
/// assert!(is_b_h(&[1, 4, 8, 13], 3)?);
/// assert!(!is_b_h(&[1, 4, 8, 13], 4)?, "4 + 4 + 4 + 4 = 1 + 1 + 1 + 13");
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// Returns an error if `h` is not 1 to 8, or if an increment is not 1 to 65536 or there are none.
pub fn is_b_h(increments: &[u32], h: u32) -> Result<bool> {
    check_sequence(increments, h)?;
    Ok(multisets(increments, h)[h as usize].iter().all(|ways| *ways < 2))
}

/// Returns whether all sums of up to `h` increments are different, and differ from all sums of
/// more. Such a sum determines its increments without a count.
///
/// ```
/// use umbel::variable_increment::is_b_tilde_h;
/// assert!(is_b_tilde_h(&[3, 4], 2)?);
/// assert!(!is_b_tilde_h(&[8, 12, 14, 15], 2)?, "12 + 12 = 8 + 8 + 8");
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// Returns an error if `h` is not 1 to 8, or if an increment is not 1 to 65536 or there are none.
pub fn is_b_tilde_h(increments: &[u32], h: u32) -> Result<bool> {
    check_sequence(increments, h)?;
    let few = multisets(increments, h);
    let sums = few[0].len();
    // Multisets of any size.
    let mut ways = vec![0u8; sums];
    ways[0] = 1;
    for v in increments {
        for sum in *v as usize..sums {
            ways[sum] = (ways[sum] + ways[sum - *v as usize]).min(2);
        }
    }
    let is_sum_of_few = |sum: usize| few.iter().any(|size| size[sum] > 0);
    Ok((0..sums).all(|sum| ways[sum] < 2 || !is_sum_of_few(sum)))
}

/// Returns the numbers that are not sums of increments; the last is the Frobenius number. Returns
/// `None` if there are infinitely many.
///
/// ```
/// use umbel::variable_increment::gaps;
/// let gaps = gaps(&[8, 12, 14, 15])?.expect("their greatest common divisor is 1");
/// assert_eq!(gaps, [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 17, 18, 19, 21, 25, 33]);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// Returns an error if an increment is not 1 to 65536 or there are none, or if the increments are
/// too large to enumerate the numbers.
pub fn gaps(increments: &[u32]) -> Result<Option<Vec<u32>>> {
    check_sequence(increments, 1)?;
    let (Some(smallest), Some(largest)) = (increments.iter().min(), increments.iter().max()) else {
        return Ok(None);
    };
    let divisor = increments.iter().fold(0, |a, b| gcd(a, *b));
    if divisor > 1 {
        return Ok(None);
    }
    // Schur's bound on the Frobenius number: (a-1)(b-1) - 1 for the smallest and the largest
    // increment.
    let bound = (u64::from(*smallest) - 1) * (u64::from(*largest) - 1) + 1;
    if bound > 1 << 24 {
        return Err(Error::parameter("increments", format!("{increments:?}"), "smaller numbers"));
    }
    let mut possible = vec![false; bound as usize + 1];
    possible[0] = true;
    for sum in 1..possible.len() {
        possible[sum] = increments.iter().any(|v| sum >= *v as usize && possible[sum - *v as usize]);
    }
    Ok(Some((0..).zip(possible).filter(|(_, possible)| !possible).map(|(sum, _)| sum).collect()))
}

fn gcd(a: u32, b: u32) -> u32 {
    if a == 0 { b } else { gcd(b % a, a) }
}
