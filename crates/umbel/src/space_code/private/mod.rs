//! Private counts: asks how often a key was recorded without revealing the key.
//!
//! Bob keeps a multiset, and Alice wants the count of a key from it. Her [`Question`] names a class
//! of keys: all those whose public hash begins with the same bits, few enough that about as many
//! keys as she wishes share them. Bob's [`Answer`] has the groups found for every key of the class,
//! and Alice reads off her own. The estimate is the one that Bob's multiset gives.
//!
//! ```
//! use umbel::space_code::private::{Answer, Question, PublicShape, Universe};
//! use umbel::{AnyCount, Kind, Spec};
//!
//! let names: Vec<String> = (0..1000).map(|number| format!("host{number}")).collect();
//! let mut counts = AnyCount::build(Kind::MultiResolution, &Spec::new(2000, 0.005)?)?;
//! (0..2).for_each(|_| counts.insert_batch(&names[..]));
//!
//! // Bob publishes the shape; Alice knows which hosts there are.
//! let shape = PublicShape::from_counts(&counts)?;
//! let universe: Universe = names.iter().map(|name| shape.hash_key(name)).collect();
//! let question = Question::new(&shape, 100, &[shape.hash_key("host7")], Some(&universe))?;
//! assert!((50..400).contains(&question.digests().len()), "about a hundred, and fewer than twice as many");
//!
//! let answer = Answer::new(&counts, &question, None, 1000)?;
//! assert_eq!(answer.count("host7"), Some(counts.count("host7")));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # Why a list of keys is needed
//!
//! A question for the cells of one key reveals it: a key has k bits in each of 32 groups on every
//! level, hundreds of cells drawn from the whole filter, and no other key has the same. A question
//! for the cells of all keys that a class can have is a question for the whole filter. So one side
//! needs a list of the keys that exist, a [`Universe`]. If Alice has it, her question lists the
//! digests of the keys in the class, and Bob needs nothing but his multiset. If Bob has it, the
//! question is the class alone. Made-up keys do not help: Bob would recognise them as such.
//!
//! # What leaks
//!
//! Bob learns the class. The class of a key depends on nothing but the key and the number of bits,
//! so the same question asked again reveals nothing more, nor does a question to another multiset.
//! Classes of different sizes are nested: of several questions for a key, the one for the smallest
//! class decides. If Alice lists the keys, Bob also learns her list, and lists that differ from one
//! question to the next can be intersected. Questions for several keys are several classes; Bob may
//! guess from what he knows about the keys that belong together.
//!
//! Alice learns the counts of all keys in the class, if she can guess the keys.

mod format;

pub use format::{Message, is_message};

use super::{Estimator, LevelInfo, Resolution, SpaceCodeFilter, at_least_once, multiplicity, rounded_noise};
use crate::count::Multiplicity;
use crate::hash::Strength;
use crate::sizing::space_code::{self as formulas, sampling};
use crate::{AnyCount, Digest, Error, HashId, Hasher, Key, Result};
use std::sync::OnceLock;

/// The seed of the hash that determines the class of a key. All multisets have the same classes, so
/// that questions to several of them cannot be combined.
const CLASS_SEED: u64 = u64::from_le_bytes(*b"classes\0");

/// The public facts about a multiset that a question depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicShape {
    hash_seed: u64,
    keys: u64,
}

impl PublicShape {
    /// Returns the shape of a multiset.
    ///
    /// # Errors
    ///
    /// If the hash of the multiset has a secret, without which nobody can ask.
    pub fn from_counts(counts: &AnyCount) -> Result<PublicShape> {
        Ok(PublicShape { hash_seed: public_seed(counts.hasher().id())?, keys: least_keys(counts) })
    }

    /// Returns the estimated number of distinct keys in the multiset. It is rather too low than too
    /// high, so that classes are not too small.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Returns the hashes of a key that questions and answers contain.
    pub fn hash_key<K: Key + ?Sized>(&self, key: &K) -> HashedKey {
        let class = key.digest(&Hasher::fast(CLASS_SEED)).get();
        HashedKey { class, digest: key.digest(&Hasher::fast(self.hash_seed)) }
    }
}

/// Returns the seed of a hash without a secret.
///
/// # Errors
///
/// If the hash has a secret.
pub fn public_seed(hash: HashId) -> Result<u64> {
    match hash.strength {
        Strength::Fast => Ok(hash.value),
        _ => Err(Error::parameter(
            "hash",
            hash,
            "a public hash: nobody without the secret can ask for a key, and anyone who has it can read the counts",
        )),
    }
}

/// Returns a number of distinct keys that is not too high: with too many, classes would be too
/// small and hide too little.
fn least_keys(counts: &AnyCount) -> u64 {
    let (planned, groups) = match counts {
        AnyCount::SpaceCode(counts) => (counts.keys(), counts.groups()),
        AnyCount::MultiResolution(counts) => (counts.keys(), counts.groups()),
    };
    let recorded = counts.inserted().unwrap_or(0);
    // Every key has at least one pair of a key and a group, and at most `groups`.
    let pairs = counts.stats().estimate.estimate().map_or(recorded, |pairs| pairs.value.round() as u64);
    match planned {
        Some(keys) => keys.min(pairs),
        None => pairs.div_ceil(groups.into()),
    }
}

/// The hashes of a key: the one that determines its class, and its digest in the multiset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashedKey {
    class: u64,
    digest: Digest,
}

/// A list of the keys that exist, as hashes.
#[derive(Clone, Debug, Default)]
pub struct Universe {
    /// Distinct and ascending, so that the keys of a class lie together.
    keys: Vec<HashedKey>,
}

impl Universe {
    /// Returns the number of distinct keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns whether a key is in the list.
    pub fn contains(&self, key: HashedKey) -> bool {
        self.keys.binary_search(&key).is_ok()
    }

    /// Returns the distinct digests of the keys in classes, in ascending order.
    fn digests(&self, bits: u32, classes: &[u64]) -> Vec<Digest> {
        let mut digests: Vec<Digest> = Vec::new();
        for class in classes {
            let start = self.keys.partition_point(|key| class_of(key.class, bits) < *class);
            let rest = &self.keys[start..];
            let end = rest.partition_point(|key| class_of(key.class, bits) == *class);
            digests.extend(rest[..end].iter().map(|key| key.digest));
        }
        // The order must not depend on the keys that were asked for.
        digests.sort_unstable();
        digests.dedup();
        digests
    }
}

impl FromIterator<HashedKey> for Universe {
    fn from_iter<I: IntoIterator<Item = HashedKey>>(keys: I) -> Universe {
        let mut keys: Vec<HashedKey> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        Universe { keys }
    }
}

/// Returns the first `bits` bits of a hash.
fn class_of(hash: u64, bits: u32) -> u64 {
    hash.checked_shr(64 - bits).unwrap_or(0)
}

/// A question for the counts of keys, which names the classes of the keys and not the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    hash_seed: u64,
    /// The number of bits that a class is named by.
    class_bits: u32,
    /// The classes, distinct and ascending.
    classes: Vec<u64>,
    /// The digests of all listed keys in these classes, distinct and ascending; empty if the keeper
    /// of the counts lists the keys.
    digests: Vec<Digest>,
}

impl Question {
    /// Returns the question for some keys. Each class is the smallest in which at least `cover` keys
    /// are expected: of those in the universe, or if there is none, of those that the shape claims.
    /// So fewer than twice as many are expected. If there are not enough keys, the class is that of
    /// all keys.
    ///
    /// # Errors
    ///
    /// If there are no keys or `cover` is zero, or if a key is not in the universe: Bob would
    /// recognise it as the one that was added.
    pub fn new(
        shape: &PublicShape,
        cover: u64,
        keys: &[HashedKey],
        universe: Option<&Universe>,
    ) -> Result<Question> {
        if cover == 0 {
            return Err(Error::parameter("cover", cover, "a number of keys of at least 1"));
        }
        if keys.is_empty() {
            return Err(Error::parameter("keys", 0, "at least one key to ask for"));
        }
        let of = universe.map_or(shape.keys, |universe| universe.len() as u64);
        let class_bits = (of / cover).checked_ilog2().unwrap_or(0);
        let mut classes: Vec<u64> = keys.iter().map(|key| class_of(key.class, class_bits)).collect();
        classes.sort_unstable();
        classes.dedup();
        if let Some(universe) = universe
            && let Some(number) = keys.iter().position(|key| !universe.contains(*key))
        {
            let needs = "to be in the list of keys: it would stand out among them";
            return Err(Error::parameter("key", format_args!("number {}", number + 1), needs));
        }
        let digests = universe.map_or_else(Vec::new, |universe| universe.digests(class_bits, &classes));
        Ok(Question { hash_seed: shape.hash_seed, class_bits, classes, digests })
    }

    /// Returns the number of bits that a class is named by: there are 2 to the power of this many
    /// classes.
    pub fn class_bits(&self) -> u32 {
        self.class_bits
    }

    /// Returns the number of classes that the question names.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Returns the digests of the listed keys; none if the keeper of the counts lists the keys.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Returns whether a key fits the question, so that it may be the one that was meant.
    pub fn fits(&self, key: HashedKey) -> bool {
        self.classes.binary_search(&class_of(key.class, self.class_bits)).is_ok()
    }

    /// Returns the expected number of keys that fit the question, of this many.
    pub fn expected_keys(&self, of: u64) -> f64 {
        of as f64 * self.classes.len() as f64 / 2f64.powi(self.class_bits as i32)
    }
}

/// The answer to a question: the groups that are found for every key of its classes.
#[derive(Debug)]
pub struct Answer {
    hash_seed: u64,
    groups: u32,
    levels: Vec<LevelInfo>,
    /// The digests of the keys, distinct and ascending.
    digests: Vec<Digest>,
    /// The number of groups found on each level, key by key.
    found: Vec<u8>,
    /// The 95 % intervals of the first level, computed on the first estimate.
    intervals: OnceLock<Vec<(f64, f64)>>,
}

impl Answer {
    /// Answers a question for the keys that it lists, or if it lists none, for those in `listed`.
    ///
    /// # Errors
    ///
    /// If the question is for a multiset with another hash, if neither side lists keys, or if there
    /// are more than `max_keys`.
    pub fn new(
        counts: &AnyCount,
        question: &Question,
        listed: Option<&Universe>,
        max_keys: u64,
    ) -> Result<Answer> {
        let seed = public_seed(counts.hasher().id())?;
        if seed != question.hash_seed {
            let needs = format!("the seed {seed} of this multiset: it was asked of another one");
            return Err(Error::parameter("seed of the question", question.hash_seed, needs));
        }
        let digests = match listed {
            _ if !question.digests.is_empty() => question.digests.clone(),
            Some(listed) => listed.digests(question.class_bits, &question.classes),
            None => {
                let needs =
                    "a list of the keys that may be asked for, since it names a class of keys and no keys";
                return Err(Error::parameter("classes", question.classes.len(), needs));
            }
        };
        if digests.len() as u64 > max_keys {
            let needs = format!("to be at most {max_keys}; a higher limit reveals more counts");
            return Err(Error::parameter("keys asked for", digests.len(), needs));
        }
        Ok(match counts {
            AnyCount::SpaceCode(counts) => Answer::read(counts, seed, digests),
            AnyCount::MultiResolution(counts) => Answer::read(counts, seed, digests),
        })
    }

    fn read<R: Resolution>(counts: &SpaceCodeFilter<R>, hash_seed: u64, digests: Vec<Digest>) -> Answer {
        // A level has at most 64 groups.
        let found =
            digests.iter().flat_map(|digest| counts.found(*digest)).map(|found| found as u8).collect();
        let levels = counts.levels().collect();
        Answer { hash_seed, groups: counts.groups(), levels, digests, found, intervals: OnceLock::new() }
    }

    /// Returns the number of keys in the answer.
    pub fn keys(&self) -> usize {
        self.digests.len()
    }

    /// Returns the estimate for a key; `None` if the answer does not have it. It is the one that
    /// the multiset gives.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> Option<Multiplicity> {
        self.estimate(key, Estimator::default())
    }

    /// Returns the estimate for a key with this estimator; `None` if the answer does not have it.
    pub fn estimate<K: Key + ?Sized>(&self, key: &K, estimator: Estimator) -> Option<Multiplicity> {
        let row = self.digests.binary_search(&key.digest(&Hasher::fast(self.hash_seed))).ok()?;
        let found = &self.found[row * self.levels.len()..][..self.levels.len()];
        let found = |level: u32| u32::from(found[level as usize]);
        let (level, theta) = formulas::guarded(self.groups, self.levels.len() as u32, found(0), found);
        let noise = self.levels[level as usize].noise;
        let interval = match level {
            0 => self.intervals()[theta as usize],
            _ => formulas::poisson_interval(self.groups, noise, theta, sampling(level)),
        };
        let count = multiplicity(self.groups, level, theta, noise, interval, estimator);
        Some(at_least_once(found(0), count))
    }

    fn intervals(&self) -> &[(f64, f64)] {
        let noise = || rounded_noise(self.levels.first().map_or(0.0, |level| level.noise));
        self.intervals.get_or_init(|| formulas::intervals(self.groups, noise()))
    }
}
