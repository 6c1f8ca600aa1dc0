//! What an experiment is, what it is given, and what it finds.

use crate::{Chart, Criterion, Table};
use umbel::{Digest, Hasher, Result};

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Enough to see whether it holds; everything takes three minutes.
    Quick,
    /// As much as the literature did, or more.
    Full,
}

/// What an experiment is about.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// By which it is asked for.
    pub id: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// Where the claim is made.
    pub source: &'static str,
    /// What is claimed, in a sentence or two.
    pub claim: &'static str,
    /// How it is put to the test.
    pub set_up: &'static str,
    /// About how many seconds it takes, quick and full.
    pub seconds: [u32; 2],
    /// Whether it measures times, so that nothing else may run meanwhile.
    pub timed: bool,
}

/// A claim of the literature, and the code that puts it to the test.
pub trait Experiment: Send + Sync {
    /// What it is about.
    fn about(&self) -> About;

    /// Puts it to the test.
    fn run(&self, lab: &Lab) -> Result<Findings>;
}

/// What experiments are given.
#[derive(Clone, Debug)]
pub struct Lab {
    /// How much is to be done.
    pub scale: Scale,
    /// On which every number depends that is drawn.
    pub seed: u64,
    /// What is done to digests before filters see them: nothing, unless somebody wants to see that a bad hash is noticed.
    pub spoil: fn(Digest) -> Digest,
}

impl Lab {
    /// A lab whose hashes are as good as they are.
    pub fn new(scale: Scale, seed: u64) -> Lab {
        Lab { scale, seed, spoil: |digest| digest }
    }

    /// The first number in quick runs, the second in full ones.
    pub fn either<T>(&self, quick: T, full: T) -> T {
        if self.scale == Scale::Quick { quick } else { full }
    }

    /// The hash of a build: each has its own.
    pub fn hasher(&self, build: u64) -> Hasher {
        Hasher::fast(self.seed.wrapping_mul(1 << 32).wrapping_add(build))
    }

    /// The digests of keys, as filters will see them.
    pub fn digests(&self, hasher: &Hasher, keys: &[u64]) -> Vec<Digest> {
        hasher.digest_batch(keys).into_iter().map(self.spoil).collect()
    }
}

/// What an experiment has found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// What has to hold.
    pub criteria: Vec<Criterion>,
    /// The figures.
    pub tables: Vec<Table>,
    /// The pictures.
    pub charts: Vec<Chart>,
    /// What it means, in a sentence or two.
    pub verdict: String,
}
