//! The sets of increments, and which keys the value of a cell excludes.

use crate::{Error, Result};
use std::fmt;

/// What probes add to their cells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// The increments D_L = {L, ..., 2L-1}, L a power of two: a cell of value c may hold v if c = v or c - v >= L.
    Range {
        /// L.
        l: u32,
        /// Bits of a cell.
        bits: u32,
    },
    /// Any increments: a cell of value c may hold v if c - v is a sum of increments.
    Set {
        /// The increments.
        increments: Vec<u32>,
        /// Bits of a cell.
        bits: u32,
    },
    /// The increments of a B_h sequence, and cells that count the keys beside adding up their increments: a cell of i
    /// keys and value c may hold v if c - v is a sum of i - 1 increments.
    Bh {
        /// The increments.
        increments: Vec<u32>,
        /// Up to how many keys a cell's sum tells exactly which increments are in it.
        h: u32,
        /// Whether cells of more than h keys are looked at as well. If not, they let everything pass.
        improved: bool,
        /// Bits of a cell that count keys.
        count_bits: u32,
        /// Bits of a cell that hold the sum.
        sum_bits: u32,
    },
}

impl Default for Scheme {
    /// The increments 4 to 7 in cells of seven bits.
    fn default() -> Scheme {
        Scheme::range(4)
    }
}

/// Bits for sixteen times the largest increment: as wide as four bits are for ones.
fn bits_for(largest: Option<u32>) -> u32 {
    (16 * u64::from(largest.unwrap_or(1).max(1)) + 1).next_power_of_two().ilog2()
}

impl Scheme {
    /// The increments {L, ..., 2L-1} in cells of the usual width: seven bits for L = 4.
    pub fn range(l: u32) -> Scheme {
        Scheme::Range { l, bits: bits_for(Some(l.saturating_mul(2).saturating_sub(1))) }
    }

    /// These increments in cells of the usual width: eight bits for {8, 12, 14, 15}.
    pub fn set(increments: &[u32]) -> Scheme {
        Scheme::Set { increments: increments.to_vec(), bits: bits_for(increments.iter().max().copied()) }
    }

    /// This B_h sequence in cells of the usual width: four bits to count and eight to add for {1, 4, 8, 13}.
    pub fn b_h(increments: &[u32], h: u32, improved: bool) -> Scheme {
        let sum_bits = bits_for(increments.iter().max().copied());
        Scheme::Bh { increments: increments.to_vec(), h, improved, count_bits: 4, sum_bits }
    }

    /// The increments.
    pub fn increments(&self) -> Vec<u32> {
        match self {
            // No scheme that is accepted has more.
            Scheme::Range { l, .. } => (*l..l.saturating_mul(2)).take(MAX_INCREMENTS as usize).collect(),
            Scheme::Set { increments, .. } | Scheme::Bh { increments, .. } => increments.clone(),
        }
    }

    /// Bits of a cell: those that count, and those of the sum.
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
        let got = format!("{increments:?}");
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

    /// The numbers that stand in a file.
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

    /// The scheme with these numbers, as far as there is one.
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
    /// As the literature writes it: `D_4 in 7 bits`, `{8,12,14,15} in 8 bits`, `B_3 {1,4,8,13} in 4+8 bits`.
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

/// A scheme ready for use: the answer of every cell to every increment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    count_bits: u32,
    sum_bits: u32,
    /// The cells that hold one increment each.
    singles: Vec<u64>,
    /// Bit `value` of the part of increment `i`: whether a cell of this value may hold it.
    passes: Vec<u64>,
    /// Words of a part.
    stride: usize,
    /// Which values a cell can get, from nothing, by adding increments: the sums of any number of them, or with counts
    /// the sums of each number of them.
    possible: Vec<bool>,
}

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
        // Rising: whatever is reached by adding is larger than what it was added to.
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

    /// The value of a cell that has overflowed.
    #[inline(always)]
    pub fn max(&self) -> u64 {
        !0 >> (64 - self.width())
    }

    /// The count and the sum of a cell.
    #[inline(always)]
    fn split(&self, value: u64) -> (u64, u64) {
        (value >> self.sum_bits, value & (!0 >> (64 - self.sum_bits)))
    }

    /// Both cells together; `None` when either number overflows.
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

    /// Both cells together, or the value of overflow. In whatever order cells are joined, the result is the same: it
    /// overflows when the total of counts or of sums does.
    #[inline(always)]
    pub fn join(&self, a: u64, b: u64) -> u64 {
        if a == self.max() || b == self.max() {
            return self.max();
        }
        self.plus(a, b).unwrap_or(self.max())
    }

    /// The cell without this increment, if what is left is something that increments can make.
    #[inline(always)]
    pub fn without(&self, value: u64, choice: usize) -> Option<u64> {
        if value == self.max() {
            return Some(value);
        }
        self.minus(value, self.singles[choice]).filter(|rest| self.possible[*rest as usize])
    }

    /// Whether increments can make this value, without an overflow.
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

    /// The share of increments that a cell of this value lets pass.
    pub fn share_passing(&self, value: u64) -> f64 {
        let passing = (0..self.choices()).filter(|choice| self.passes(value, *choice)).count();
        passing as f64 / self.choices() as f64
    }

    /// The probability that a cell with 0, 1, 2, ... random increments excludes another one, as far as it is worth
    /// counting.
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

/// How many multisets of exactly 0, 1, ... `most` increments have each sum; two stands for more.
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
    if !(1..=8).contains(&h) {
        return Err(Error::parameter("h", h, "1 to 8"));
    }
    Ok(())
}

/// Whether all sums of exactly `h` of the increments, repetition allowed, are different.
///
/// ```
/// use umbel::variable_increment::is_b_h;
/// assert!(is_b_h(&[1, 4, 8, 13], 3)?);
/// assert!(!is_b_h(&[1, 4, 8, 13], 4)?, "4 + 4 + 4 + 4 = 1 + 1 + 1 + 13");
/// # Ok::<(), umbel::Error>(())
/// ```
pub fn is_b_h(increments: &[u32], h: u32) -> Result<bool> {
    check_sequence(increments, h)?;
    Ok(multisets(increments, h)[h as usize].iter().all(|ways| *ways < 2))
}

/// Whether all sums of up to `h` of the increments are different, and differ from all sums of more: then a sum of up to
/// `h` tells what is in it, without a count.
///
/// ```
/// use umbel::variable_increment::is_b_tilde_h;
/// assert!(is_b_tilde_h(&[3, 4], 2)?);
/// assert!(!is_b_tilde_h(&[8, 12, 14, 15], 2)?, "12 + 12 = 8 + 8 + 8");
/// # Ok::<(), umbel::Error>(())
/// ```
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

/// The numbers that are no sum of increments, if there are only finitely many; the last is the Frobenius number.
///
/// ```
/// use umbel::variable_increment::gaps;
/// let gaps = gaps(&[8, 12, 14, 15])?.expect("their greatest common divisor is 1");
/// assert_eq!(gaps, [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 17, 18, 19, 21, 25, 33]);
/// # Ok::<(), umbel::Error>(())
/// ```
pub fn gaps(increments: &[u32]) -> Result<Option<Vec<u32>>> {
    check_sequence(increments, 1)?;
    let (Some(smallest), Some(largest)) = (increments.iter().min(), increments.iter().max()) else {
        return Ok(None);
    };
    let divisor = increments.iter().fold(0, |a, b| gcd(a, *b));
    if divisor > 1 {
        return Ok(None);
    }
    // The bound of Schur on the Frobenius number: (a-1)(b-1) - 1 for the smallest and the largest.
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
