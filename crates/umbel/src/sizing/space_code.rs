//! The mathematics of space-code filters: how often a key was recorded, given how many of its
//! groups are found.
//!
//! Each recording of a key hits one of its `l` groups at random. A query finds `theta` groups:
//! those that were hit, and some that were not, because other keys have set all their bits. An
//! unhit group is found with probability `f`, the noise, which is the share of set bits to the
//! power of k. The number of groups found is therefore a Markov chain. It starts with Bin(l, f),
//! the groups found by noise alone, and gains a group with probability (l - theta) / l at each
//! recording. [`likelihood`] follows the chain step by step, without approximation.
//!
//! | groups found of l = 32 | recordings until then, [`coverage`] | [`mve`] without noise | weight of one more group, [`inaccuracy`] |
//! | --- | --- | --- | --- |
//! | 1 | 1 | 1 | 103 % |
//! | 8 | 9.0 | 9.1 | 14.8 % |
//! | 20 | 30.6 | 31.0 | 8.7 %, the least |
//! | 31 | 97.9 | 109.2 | 33 % |
//! | 32 | 129.9 | at least that | |
//!
//! Larger counts are read from samples: level i of a multi-resolution filter takes 4^-(i-1) of the
//! recordings, and [`most_relevant`] chooses the level to read.
//!
//! ```
//! use umbel::sizing::space_code::{coverage, mle, mve};
//! assert!((coverage(32, 32)? - 129.87).abs() < 0.01);
//! assert!((mve(32, 0.01, 16)? - 21.52).abs() < 0.01);
//! assert_eq!(mle(32, 0.01, 16)?, 21.0);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # References
//!
//! * A. Kumar, J. Xu, J. Wang, O. Spatschek and L. Li. *Space-code Bloom filter for efficient
//!   per-flow traffic measurement.* INFOCOM 2004. `Kumar04`

use super::{MAX_BITS, check, least, rate};
use crate::{Error, Result};
use std::sync::OnceLock;

/// The largest number of groups: one bit of a word for each.
pub const MAX_GROUPS: u32 = 64;

/// The largest number of levels: the last one takes one recording in a thousand million.
pub const MAX_LEVELS: u32 = 16;

/// The largest number of hash functions per group.
pub const MAX_HASHES: u32 = 64;

/// The probability that an interval leaves out on either side.
const TAIL: f64 = 0.025;

/// Returns T: the average number of recordings until `theta` of `l` groups are hit. The last groups
/// take longest: all of them take `l H_l`, of which `l ln l` is only the leading term (for 32
/// groups, 111 instead of 130).
///
/// # Errors
///
/// If `l` is not 1 to 64, or `theta` is above `l`.
pub fn coverage(l: u32, theta: u32) -> Result<f64> {
    check(l, 0.0, theta)?;
    Ok(scale(l).coverage[theta as usize])
}

/// Returns R: the uncertainty of the wait for the next group, relative to all recordings so far.
/// Infinite when no group or every group is found, because neither case says how often.
///
/// # Errors
///
/// If `l` is not 1 to 64, or `theta` is above `l`.
pub fn inaccuracy(l: u32, theta: u32) -> Result<f64> {
    check(l, 0.0, theta)?;
    Ok(scale(l).inaccuracy[theta as usize])
}

/// Returns L(theta | x): the probability that `theta` groups are found after `x` recordings, with
/// noise `f`.
///
/// # Errors
///
/// If `l` is not 1 to 64, `f` is not from 0 to below 1, or `theta` is above `l`.
pub fn likelihood(l: u32, f: f64, theta: u32, x: u64) -> Result<f64> {
    check(l, f, theta)?;
    let mut found = GroupDistribution::new(l, f);
    // After a thousand recordings per group, the probability that one is missing is too small for
    // `f64`.
    (0..x.min(1000 * u64::from(l))).for_each(|_| found.record());
    Ok(found.probability[theta as usize])
}

/// Returns the maximum-likelihood estimate: the number of recordings for which finding `theta`
/// groups is most probable. If all groups are found, returns the lower bound [`coverage`]`(l, l)`.
///
/// # Errors
///
/// As [`likelihood`].
pub fn mle(l: u32, f: f64, theta: u32) -> Result<f64> {
    check(l, f, theta)?;
    Ok(most_likely(l, f, theta))
}

/// Returns the mean-value estimate: the number of recordings after which `theta` groups are found
/// on average, ln((l - theta) / (l (1 - f))) / ln(1 - 1/l), at least zero. If all groups are found,
/// returns the lower bound [`coverage`]`(l, l)`.
///
/// # Errors
///
/// As [`likelihood`].
pub fn mve(l: u32, f: f64, theta: u32) -> Result<f64> {
    check(l, f, theta)?;
    Ok(mean_value(l, f, theta))
}

/// Returns a 95 % interval of the number of recordings when `theta` groups are found. It has no
/// upper end when all are. The interval follows from the exact distribution: numbers of recordings
/// outside it would produce so few groups, or so many, with a probability below 2.5 %.
///
/// # Errors
///
/// As [`likelihood`].
pub fn interval(l: u32, f: f64, theta: u32) -> Result<(f64, f64)> {
    check(l, f, theta)?;
    Ok(intervals(l, f)[theta as usize])
}

/// Returns a 95 % interval like [`interval`] for recordings that are sampled with probability `p`.
/// Hits of the groups are then nearly independent: theta is Bin(l, 1 - (1-f) e^(-x p / l)).
///
/// # Errors
///
/// As [`likelihood`]; also if `p` is not above 0 and at most 1.
pub fn sampled_interval(l: u32, f: f64, theta: u32, p: f64) -> Result<(f64, f64)> {
    check(l, f, theta)?;
    if p > 0.0 && p <= 1.0 {
        return Ok(poisson_interval(l, f, theta, p));
    }
    Err(Error::parameter("sampling", p, "a probability above 0"))
}

/// Returns the share of the recordings that a level samples, counted from 0: 4^-level.
pub fn sampling(level: u32) -> f64 {
    0.25f64.powi(level.min(MAX_LEVELS) as i32)
}

/// The rule that chooses the level to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// Starts at the first level, which samples everything. Moves to the next level as long as at
    /// least the [best](inaccuracy) number of groups is found, and either all groups are found or
    /// the next level is less inaccurate.
    #[default]
    Guarded,
    /// Takes the least inaccurate of all levels. This is wrong for keys that were recorded a few
    /// times: two groups found by noise on a coarse level appear to say more than the one true
    /// group on the first, and count for thousands.
    Unguarded,
}

/// Returns the level to read, counted from 0, and the number of groups found on it. `theta` returns
/// the number of groups found on a level; the guarded rule calls it for as few levels as possible.
///
/// ```
/// use umbel::sizing::space_code::{Rule, most_relevant};
/// // A thousand packets on levels that sample 1, 1/4, 1/16, 1/64, ...
/// let theta = [32, 32, 28, 12, 4, 1, 0, 0, 0];
/// assert_eq!(most_relevant(32, 9, Rule::Guarded, |level| theta[level as usize])?, (3, 12));
/// // One packet, and noise.
/// let theta = [1, 0, 0, 0, 0, 2, 0, 0, 0];
/// assert_eq!(most_relevant(32, 9, Rule::Guarded, |level| theta[level as usize])?, (0, 1));
/// assert_eq!(most_relevant(32, 9, Rule::Unguarded, |level| theta[level as usize])?, (5, 2));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If the number of groups or levels is out of range.
pub fn most_relevant(
    l: u32,
    levels: u32,
    rule: Rule,
    mut theta: impl FnMut(u32) -> u32,
) -> Result<(u32, u32)> {
    check_groups(l)?;
    check_levels(levels)?;
    let mut found = |level| theta(level).min(l);
    Ok(match rule {
        Rule::Guarded => guarded(l, levels, found(0), found),
        Rule::Unguarded => unguarded(l, levels, found),
    })
}

/// [`Rule::Guarded`] for checked arguments; `first` is the number of groups found on level 0.
pub(crate) fn guarded(l: u32, levels: u32, first: u32, mut found: impl FnMut(u32) -> u32) -> (u32, u32) {
    let Scale { inaccuracy, best, .. } = scale(l);
    let (mut level, mut theta) = (0, first);
    while theta >= *best && level + 1 < levels {
        let next = found(level + 1);
        if theta < l && inaccuracy[next as usize] >= inaccuracy[theta as usize] {
            break;
        }
        (level, theta) = (level + 1, next);
    }
    (level, theta)
}

/// [`Rule::Unguarded`] for checked arguments.
pub(crate) fn unguarded(l: u32, levels: u32, found: impl FnMut(u32) -> u32) -> (u32, u32) {
    let inaccuracy = |theta: u32| scale(l).inaccuracy[theta as usize];
    let better = |a: (u32, u32), b: (u32, u32)| {
        // Full levels carry no information on their own; the last of them is the most useful.
        let further = inaccuracy(a.1).is_infinite() && b.1 == l;
        if inaccuracy(b.1) < inaccuracy(a.1) || further { b } else { a }
    };
    (0..levels).zip((0..levels).map(found)).reduce(better).unwrap_or_default()
}

/// Returns an upper bound of the expected number of (key, group) pairs on a level, counted from 0,
/// after this many recordings.
///
/// There are at most as many pairs as sampled recordings. If the number of different keys is known,
/// there are also at most as many as if all keys were recorded equally often, because the pairs of
/// a key are a concave function of its recordings.
///
/// # Errors
///
/// If `l` or `level` is out of range.
pub fn pairs(recordings: u64, keys: Option<u64>, l: u32, level: u32) -> Result<f64> {
    check_groups(l)?;
    check_levels(level.saturating_add(1))?;
    let (p, n) = (sampling(level), recordings as f64);
    let of_keys = |keys: u64| {
        let (keys, l) = (keys as f64, f64::from(l));
        // With one group, every key makes a pair as soon as it is sampled.
        let missed = (n / keys * (-p / l).ln_1p()).exp_m1();
        -keys * l * missed
    };
    Ok(keys.filter(|keys| *keys > 0).map_or(n * p, |keys| of_keys(keys).min(n * p)))
}

/// The bits and hash functions of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelParams {
    /// m: the number of bits.
    pub bits: u64,
    /// k: the number of hash functions.
    pub hashes: u32,
}

/// Plans `r` levels for `n` recordings of `keys` different keys (if known) at noise `f`.
///
/// Each level is a standard filter for the [`pairs`] it will hold, with the most hash functions for
/// which at most half of the bits are set. Four standard deviations of the number of pairs are
/// added where that number is random. All levels have the same noise. Coarse levels need no less,
/// since the guarded rule reads them only where most of the groups were really hit, and the
/// estimates account for the noise.
///
/// ```
/// use umbel::sizing::space_code::levels;
/// let levels = levels(1_000_000, None, 32, 9, 0.005)?;
/// assert_eq!(levels[0].hashes, 7);
/// // 11 bits for a recording on the first level, a third of that on all others together.
/// let bits: u64 = levels.iter().map(|level| level.bits).sum();
/// assert!((14.7e6..15.0e6).contains(&(bits as f64)));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If an argument is out of range, or a level would need more than [`MAX_BITS`].
pub fn levels(n: u64, keys: Option<u64>, l: u32, r: u32, f: f64) -> Result<Vec<LevelParams>> {
    check::capacity(n)?;
    check::rate(f)?;
    check_levels(r)?;
    let hashes = (-f.log2()).floor().clamp(1.0, f64::from(MAX_HASHES)) as u32;
    let one = |level| {
        let pairs = room(n, keys, l, level)?;
        let bits = least(1..=MAX_BITS, |m| noise(m, pairs, hashes) <= f).ok_or_else(|| {
            let needs = format!("fewer recordings: at a noise of {f} these take more than 2^48 bits");
            Error::parameter("n", n, needs)
        })?;
        Ok(LevelParams { bits, hashes })
    };
    (0..r).map(one).collect()
}

/// Returns the number of pairs a level is planned for.
fn room(n: u64, keys: Option<u64>, l: u32, level: u32) -> Result<u64> {
    let pairs = pairs(n, keys, l, level)?;
    // Without sampling, every recording makes at most one pair, so that bound needs no slack.
    let random = level > 0 || pairs < n as f64;
    let slack = if random { 4.0 * pairs.sqrt() } else { 0.0 };
    Ok(((pairs + slack).ceil() as u64).clamp(1, n))
}

/// Returns the theoretical noise of a level with this many pairs.
fn noise(m: u64, pairs: u64, k: u32) -> f64 {
    // The second-order formula can leave [0, 1] for a nearly full filter of a handful of bits.
    rate::second_order(m, pairs, k).map_or(1.0, |noise| noise.max(rate::formula(m, pairs, k)).min(1.0))
}

/// Returns the theoretical noise after `n` recordings of `keys` different keys on a level, counted
/// from 0, of m bits and k hash functions.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn predicted_noise(n: u64, keys: Option<u64>, l: u32, level: u32, m: u64, k: u32) -> Result<f64> {
    check::load(n)?;
    check::bits(m)?;
    check::hashes(k)?;
    Ok(noise(m, pairs(n, keys, l, level)?.ceil() as u64, k))
}

pub(crate) fn check_groups(l: u32) -> Result<()> {
    if (1..=MAX_GROUPS).contains(&l) {
        return Ok(());
    }
    Err(Error::parameter("groups", l, "1 to 64 groups"))
}

pub(crate) fn check_levels(r: u32) -> Result<()> {
    if (1..=MAX_LEVELS).contains(&r) {
        return Ok(());
    }
    Err(Error::parameter("levels", r, "1 to 16 levels"))
}

fn check(l: u32, f: f64, theta: u32) -> Result<()> {
    check_groups(l)?;
    if !(0.0..1.0).contains(&f) {
        return Err(Error::parameter("noise", f, "a share from 0 to below 1"));
    }
    if theta > l {
        return Err(Error::parameter("theta", theta, format!("no more than the {l} groups")));
    }
    Ok(())
}

/// Tables that depend on the number of groups alone.
struct Scale {
    /// T (coverage) and R (inaccuracy) for each theta.
    coverage: Vec<f64>,
    inaccuracy: Vec<f64>,
    /// The theta with the least R.
    best: u32,
    /// The 95 % interval of the probability that a group is found, for each theta.
    chance: Vec<(f64, f64)>,
}

impl Scale {
    fn new(l: u32) -> Scale {
        let groups = f64::from(l);
        let mut coverage = vec![0.0];
        for hit in 0..l {
            coverage.push(coverage[hit as usize] + groups / (groups - f64::from(hit)));
        }
        let wait = |theta: u32| groups / (groups - f64::from(theta));
        let inaccuracy: Vec<f64> = (0..=l).map(|theta| wait(theta) / coverage[theta as usize]).collect();
        let best = (1..=l).min_by(|a, b| inaccuracy[*a as usize].total_cmp(&inaccuracy[*b as usize]));
        let chance = (0..=l).map(|theta| binomial_interval(l, theta)).collect();
        Scale { coverage, inaccuracy, best: best.unwrap_or(l), chance }
    }
}

/// Returns the tables for a valid number of groups, which are computed once.
fn scale(l: u32) -> &'static Scale {
    static SCALES: [OnceLock<Scale>; MAX_GROUPS as usize + 1] =
        [const { OnceLock::new() }; MAX_GROUPS as usize + 1];
    SCALES[l as usize].get_or_init(|| Scale::new(l))
}

/// [`coverage`] of all groups, for a checked argument.
pub(crate) fn full(l: u32) -> f64 {
    scale(l).coverage[l as usize]
}

/// [`mve`] for checked arguments.
pub(crate) fn mean_value(l: u32, f: f64, theta: u32) -> f64 {
    if theta == l {
        return full(l);
    }
    let (l, theta) = (f64::from(l), f64::from(theta));
    // Neither negative, nor NaN where noise is everything or there is only one group.
    (((l - theta) / (l * (1.0 - f))).ln() / (-1.0 / l).ln_1p()).max(0.0)
}

/// [`mle`] for checked arguments.
pub(crate) fn most_likely(l: u32, f: f64, theta: u32) -> f64 {
    if theta == l {
        return full(l);
    }
    let (mut found, mut best, mut most) = (GroupDistribution::new(l, f), 0, 0.0);
    // The maximum lies near the mean-value estimate, which is below l ln l.
    for x in 0..=u64::from(l) * 8 {
        let likelihood = found.probability[theta as usize];
        if likelihood > most {
            (best, most) = (x, likelihood);
        }
        found.record();
    }
    best as f64
}

/// [`interval`] of every theta, for checked arguments.
pub(crate) fn intervals(l: u32, f: f64) -> Vec<(f64, f64)> {
    let all = l as usize;
    let mut low = vec![None; all + 1];
    let mut high = vec![0.0; all + 1];
    let mut found = GroupDistribution::new(l, f);
    // After l ln(l / TAIL) recordings all groups are found with probability 1 - TAIL; 16 l is a
    // safe bound for the loop.
    for x in 0..=u64::from(l) * 16 {
        let x = x as f64;
        let mut below = 0.0;
        for theta in 0..=all {
            // The probability of at least theta groups is 1 - below, up to rounding.
            if 1.0 - below > TAIL && low[theta].is_none() {
                low[theta] = Some(x);
            }
            below += found.probability[theta];
            if below > TAIL {
                high[theta] = x;
            }
        }
        if 1.0 - found.probability[all] <= TAIL {
            break;
        }
        found.record();
    }
    high[all] = f64::INFINITY;
    // If noise alone finds more groups than this, no number of recordings fits; zero is the
    // nearest.
    low.into_iter().map(Option::unwrap_or_default).zip(high).map(|(low, high)| (low, high.max(low))).collect()
}

/// [`sampled_interval`] for checked arguments.
pub(crate) fn poisson_interval(l: u32, f: f64, theta: u32, p: f64) -> (f64, f64) {
    let (low, high) = scale(l).chance[theta as usize];
    let recordings = |chance: f64| (f64::from(l) / p * ((1.0 - f) / (1.0 - chance)).ln()).max(0.0);
    let high = if theta == l { f64::INFINITY } else { recordings(high) };
    (recordings(low), high)
}

/// The distribution of the number of groups found.
struct GroupDistribution {
    probability: Vec<f64>,
}

impl GroupDistribution {
    /// The distribution by noise alone: Bin(l, f).
    fn new(l: u32, f: f64) -> GroupDistribution {
        GroupDistribution { probability: binomial(l, f) }
    }

    /// Adds a recording: theta becomes theta + 1 with probability (l - theta) / l.
    fn record(&mut self) {
        let l = (self.probability.len() - 1) as f64;
        for theta in (1..self.probability.len()).rev() {
            let stays = self.probability[theta] * theta as f64;
            let comes = self.probability[theta - 1] * (l - (theta - 1) as f64);
            self.probability[theta] = (stays + comes) / l;
        }
        self.probability[0] = 0.0;
    }
}

/// Returns Bin(n, q) for 0 <= q <= 1.
fn binomial(n: u32, q: f64) -> Vec<f64> {
    // Trial by trial: cheap for 64 trials, and exact for every q.
    let mut probability = vec![0.0; n as usize + 1];
    probability[0] = 1.0;
    for trial in 1..=n as usize {
        for hits in (1..=trial).rev() {
            probability[hits] = probability[hits] * (1.0 - q) + probability[hits - 1] * q;
        }
        probability[0] *= 1.0 - q;
    }
    probability
}

/// Returns the 95 % interval of Clopper and Pearson for q after `hits` of `n` trials.
fn binomial_interval(n: u32, hits: u32) -> (f64, f64) {
    let bisect = |below: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if below(middle) { low = middle } else { high = middle }
        }
        low
    };
    let hits = hits as usize;
    let low = bisect(&|q| binomial(n, q)[hits..].iter().sum::<f64>() <= TAIL);
    let high = bisect(&|q| binomial(n, q)[..=hits].iter().sum::<f64>() > TAIL);
    (if hits == 0 { 0.0 } else { low }, if hits == n as usize { 1.0 } else { high })
}

#[cfg(test)]
mod tests;
