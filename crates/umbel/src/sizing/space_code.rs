//! The mathematics of space-code filters: how often a key was recorded, given how many of its
//! groups are found.
//!
//! A recording hits one of `l` groups at random. Of a key, `theta` groups are found: those that
//! were hit, and some that were not, because all their bits are set by other keys. The latter
//! happens with probability `f`, the noise, which is the share of set bits to the power of k. So
//! the number of groups found is a Markov chain. It starts with Bin(l, f), the groups found by
//! noise alone, and gains a group with probability (l - theta) / l at each recording.
//! [`likelihood`] follows the chain step by step, without approximation.
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

/// The most groups: their answers are the bits of a word.
pub const MAX_GROUPS: u32 = 64;

/// The most levels: the last one takes one recording of a thousand millions.
pub const MAX_LEVELS: u32 = 16;

/// The most hash functions of a group.
pub const MAX_HASHES: u32 = 64;

/// An interval leaves out this much on either side.
const TAIL: f64 = 0.025;

/// T: how many recordings it takes on average until `theta` of `l` groups are hit. The last ones take longest: all of
/// them take l H_l, of which l ln l is only the leading term (for 32, 111 instead of 130).
pub fn coverage(l: u32, theta: u32) -> Result<f64> {
    check(l, 0.0, theta)?;
    Ok(scale(l).coverage[theta as usize])
}

/// R: by how much, relative to all recordings so far, the wait for the next group is uncertain. Infinite when no group
/// or every group is found: neither tells how often.
pub fn inaccuracy(l: u32, theta: u32) -> Result<f64> {
    check(l, 0.0, theta)?;
    Ok(scale(l).inaccuracy[theta as usize])
}

/// L(theta | x): the probability that `theta` groups are found after `x` recordings, with noise `f`.
pub fn likelihood(l: u32, f: f64, theta: u32, x: u64) -> Result<f64> {
    check(l, f, theta)?;
    let mut found = GroupDistribution::new(l, f);
    // Beyond a thousand recordings for each group, none is missing with a probability that f64 could express.
    (0..x.min(1000 * u64::from(l))).for_each(|_| found.record());
    Ok(found.probability[theta as usize])
}

/// The maximum-likelihood estimate: the number of recordings under which finding `theta` groups is most probable. If
/// all are found, it is at least [`coverage`] of all, which is the answer.
pub fn mle(l: u32, f: f64, theta: u32) -> Result<f64> {
    check(l, f, theta)?;
    Ok(most_likely(l, f, theta))
}

/// The mean-value estimate: the number of recordings after which `theta` groups are found on average,
/// ln((l - theta) / (l (1 - f))) / ln(1 - 1/l), and not below zero. If all are found, it is at least [`coverage`] of
/// all, which is the answer.
pub fn mve(l: u32, f: f64, theta: u32) -> Result<f64> {
    check(l, f, theta)?;
    Ok(mean_value(l, f, theta))
}

/// A 95 % interval of the number of recordings when `theta` groups are found; without an upper end when all are.
/// From the exact distribution: what is left out makes so few groups, or so many, with a probability below 2.5 %.
pub fn interval(l: u32, f: f64, theta: u32) -> Result<(f64, f64)> {
    check(l, f, theta)?;
    Ok(intervals(l, f)[theta as usize])
}

/// A 95 % interval as above, of recordings of which only a sample is taken in with probability `p`. Hits of the groups
/// are then as good as independent: theta is Bin(l, 1 - (1-f) e^(-x p / l)).
pub fn sampled_interval(l: u32, f: f64, theta: u32, p: f64) -> Result<(f64, f64)> {
    check(l, f, theta)?;
    if p > 0.0 && p <= 1.0 {
        return Ok(poisson_interval(l, f, theta, p));
    }
    Err(Error::parameter("sampling", p, "a probability above 0"))
}

/// What share of the recordings a level takes in, counted from 0: 4^-level.
pub fn sampling(level: u32) -> f64 {
    0.25f64.powi(level.min(MAX_LEVELS) as i32)
}

/// How the level is chosen that is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// From the first level, which misses nothing, to the next as long as more groups are found than are best, and
    /// either all are or the next level is less [inaccurate](inaccuracy).
    #[default]
    Guarded,
    /// The least inaccurate of all levels. It is wrong for what was recorded a few times: two groups that noise makes
    /// up on a coarse level seem to tell more than the one true one on the first, and count for thousands.
    Unguarded,
}

/// The level to believe, counted from 0, and how many groups it finds, which is all that it asks for. The guarded rule
/// asks as few levels as it can.
///
/// ```
/// use umbel::sizing::space_code::{Rule, most_relevant};
/// // A thousand packets on levels that take 1, 1/4, 1/16, 1/64, ...
/// let theta = [32, 32, 28, 12, 4, 1, 0, 0, 0];
/// assert_eq!(most_relevant(32, 9, Rule::Guarded, |level| theta[level as usize])?, (3, 12));
/// // One packet, and noise.
/// let theta = [1, 0, 0, 0, 0, 2, 0, 0, 0];
/// assert_eq!(most_relevant(32, 9, Rule::Guarded, |level| theta[level as usize])?, (0, 1));
/// assert_eq!(most_relevant(32, 9, Rule::Unguarded, |level| theta[level as usize])?, (5, 2));
/// # Ok::<(), umbel::Error>(())
/// ```
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

/// The [`Rule::Guarded`] of arguments already checked; `first` is what level 0 finds.
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

/// The [`Rule::Unguarded`] of arguments already checked.
pub(crate) fn unguarded(l: u32, levels: u32, found: impl FnMut(u32) -> u32) -> (u32, u32) {
    let inaccuracy = |theta: u32| scale(l).inaccuracy[theta as usize];
    let better = |a: (u32, u32), b: (u32, u32)| {
        // Among levels that tell nothing, the last that is full tells most.
        let further = inaccuracy(a.1).is_infinite() && b.1 == l;
        if inaccuracy(b.1) < inaccuracy(a.1) || further { b } else { a }
    };
    (0..levels).zip((0..levels).map(found)).reduce(better).unwrap_or_default()
}

/// The most pairs of a key and a group that can be expected on a level, counted from 0, after so many recordings: no
/// more than are sampled, and for so many different keys at most what they make if all are recorded equally often. (The
/// pairs of a key are a concave function of its recordings.)
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

/// Bits and hash functions of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelParams {
    /// m.
    pub bits: u64,
    /// k.
    pub hashes: u32,
}

/// The levels for so many recordings of so many different keys (if that is known) at noise `f`.
///
/// Each level is a standard filter of the [`pairs`] it will hold, with the most hash functions at which no more than
/// half of the bits are set. What is random about the number of pairs is allowed for with four standard deviations.
/// All levels have the same noise: coarse ones need no less, since the guarded rule believes them only where most of
/// the groups were really hit, and the estimates know the noise.
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

/// The pairs a level is planned for.
fn room(n: u64, keys: Option<u64>, l: u32, level: u32) -> Result<u64> {
    let pairs = pairs(n, keys, l, level)?;
    // Without a sample, every recording is at most one pair, and that is certain.
    let random = level > 0 || pairs < n as f64;
    let slack = if random { 4.0 * pairs.sqrt() } else { 0.0 };
    Ok(((pairs + slack).ceil() as u64).clamp(1, n))
}

/// The noise that the theory predicts for a level of so many pairs.
fn noise(m: u64, pairs: u64, k: u32) -> f64 {
    // The second-order formula can leave [0, 1] where a handful of bits are full.
    rate::second_order(m, pairs, k).map_or(1.0, |noise| noise.max(rate::formula(m, pairs, k)).min(1.0))
}

/// The noise that the theory predicts after `n` recordings of so many keys on a level, counted from 0, of m bits and k
/// hash functions.
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

/// What depends on the number of groups alone.
struct Scale {
    /// T and R of each theta.
    coverage: Vec<f64>,
    inaccuracy: Vec<f64>,
    /// The theta of the least R.
    best: u32,
    /// Of each theta, the 95 % interval of the probability with which a group is found.
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

/// Computed once for each number of groups, which is in range.
fn scale(l: u32) -> &'static Scale {
    static SCALES: [OnceLock<Scale>; MAX_GROUPS as usize + 1] =
        [const { OnceLock::new() }; MAX_GROUPS as usize + 1];
    SCALES[l as usize].get_or_init(|| Scale::new(l))
}

/// [`coverage`] of all groups, already checked.
pub(crate) fn full(l: u32) -> f64 {
    scale(l).coverage[l as usize]
}

/// [`mve`] of arguments already checked.
pub(crate) fn mean_value(l: u32, f: f64, theta: u32) -> f64 {
    if theta == l {
        return full(l);
    }
    let (l, theta) = (f64::from(l), f64::from(theta));
    // Not below zero, nor what is no number at all where noise is everything or there is but one group.
    (((l - theta) / (l * (1.0 - f))).ln() / (-1.0 / l).ln_1p()).max(0.0)
}

/// [`mle`] of arguments already checked.
pub(crate) fn most_likely(l: u32, f: f64, theta: u32) -> f64 {
    if theta == l {
        return full(l);
    }
    let (mut found, mut best, mut most) = (GroupDistribution::new(l, f), 0, 0.0);
    // The maximum lies near the mean value, which is below l ln l.
    for x in 0..=u64::from(l) * 8 {
        let likelihood = found.probability[theta as usize];
        if likelihood > most {
            (best, most) = (x, likelihood);
        }
        found.record();
    }
    best as f64
}

/// [`interval`] of each theta, of arguments already checked.
pub(crate) fn intervals(l: u32, f: f64) -> Vec<(f64, f64)> {
    let all = l as usize;
    let mut low = vec![None; all + 1];
    let mut high = vec![0.0; all + 1];
    let mut found = GroupDistribution::new(l, f);
    // After l ln(l / TAIL) recordings all groups are found as often as TAIL asks; a bound for what cannot be any more.
    for x in 0..=u64::from(l) * 16 {
        let x = x as f64;
        let mut below = 0.0;
        for theta in 0..=all {
            // At least theta groups: whatever is not below; rounding leaves a little of it.
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
    // Fewer groups than noise alone finds have no explanation; zero is the nearest.
    low.into_iter().map(Option::unwrap_or_default).zip(high).map(|(low, high)| (low, high.max(low))).collect()
}

/// [`sampled_interval`] of arguments already checked.
pub(crate) fn poisson_interval(l: u32, f: f64, theta: u32, p: f64) -> (f64, f64) {
    let (low, high) = scale(l).chance[theta as usize];
    let recordings = |chance: f64| (f64::from(l) / p * ((1.0 - f) / (1.0 - chance)).ln()).max(0.0);
    let high = if theta == l { f64::INFINITY } else { recordings(high) };
    (recordings(low), high)
}

/// The distribution of the groups found.
struct GroupDistribution {
    probability: Vec<f64>,
}

impl GroupDistribution {
    /// By noise alone: Bin(l, f).
    fn new(l: u32, f: f64) -> GroupDistribution {
        GroupDistribution { probability: binomial(l, f) }
    }

    /// One more recording: theta becomes theta + 1 with probability (l - theta) / l.
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

/// Bin(n, q) for 0 <= q <= 1.
fn binomial(n: u32, q: f64) -> Vec<f64> {
    // One trial after the other: for 64 trials this is nothing, and exact for every q.
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

/// The 95 % interval of Clopper and Pearson for q after `hits` of `n` trials.
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
