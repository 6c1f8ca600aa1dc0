//! What an experiment is, what it is given, and what it finds.

use crate::keys::mix;
use crate::trace::Trace;
use crate::{Chart, Criterion, Error, Keys, Result, Table};
use std::collections::BTreeMap;
use umbel::hash::reduce;
use umbel::{Digest, Hasher};

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
    /// Where the claim is made, by author, year and, in parentheses, a short title; see `docs/references.md`.
    pub source: &'static str,
    /// What is claimed, in a sentence or two.
    pub claim: &'static str,
    /// How it is put to the test.
    pub set_up: &'static str,
    /// About how many seconds it takes, quick and full.
    pub seconds: [u32; 2],
    /// Whether it measures times, so that nothing else may run meanwhile.
    pub timed: bool,
    /// What of it can be set.
    pub parameters: &'static [Parameter],
}

/// A claim of the literature, and the code that puts it to the test.
pub trait Experiment: Send + Sync {
    /// What it is about.
    fn about(&self) -> About;

    /// Puts it to the test.
    fn run(&self, lab: &Lab) -> Result<Findings>;
}

/// A number of an experiment that can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// As the literature names it.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// What it is if nothing is said, quick and full.
    pub default: [f64; 2],
    /// From where to where it may be.
    pub range: [f64; 2],
    /// Whether it is a whole number.
    pub whole: bool,
}

impl Parameter {
    /// A number of things.
    pub const fn count(
        name: &'static str,
        meaning: &'static str,
        default: [u64; 2],
        range: [u64; 2],
    ) -> Parameter {
        let default = [default[0] as f64, default[1] as f64];
        Parameter { name, meaning, default, range: [range[0] as f64, range[1] as f64], whole: true }
    }

    /// A rate or a ratio.
    pub const fn real(
        name: &'static str,
        meaning: &'static str,
        default: [f64; 2],
        range: [f64; 2],
    ) -> Parameter {
        Parameter { name, meaning, default, range, whole: false }
    }
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
    /// The parameters that are not what they are by default.
    set: BTreeMap<&'static str, f64>,
}

impl Lab {
    /// A lab whose hashes are as good as they are.
    pub fn new(scale: Scale, seed: u64) -> Lab {
        Lab { scale, seed, spoil: |digest| digest, set: BTreeMap::new() }
    }

    /// The first number in quick runs, the second in full ones.
    pub fn either<T>(&self, quick: T, full: T) -> T {
        if self.scale == Scale::Quick { quick } else { full }
    }

    /// Sets a parameter of those of these experiments that have it.
    ///
    /// ```
    /// use umbel_lab::{Lab, Scale, find};
    /// let mut lab = Lab::new(Scale::Quick, 1);
    /// let experiments: Vec<_> = find("E1").into_iter().collect();
    /// assert!(lab.set(&experiments, "n", 2000.0).is_ok());
    /// assert!(lab.set(&experiments, "n", 0.5).is_err());
    /// assert!(lab.set(&experiments, "leaves", 4.0).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::UnknownParameter`] if none of the experiments has it, [`Error::OutOfRange`] if one of them does not take the
    /// value.
    pub fn set(&mut self, experiments: &[Box<dyn Experiment>], name: &str, value: f64) -> Result<()> {
        let mut takers = experiments
            .iter()
            .map(|experiment| experiment.about())
            .flat_map(|about| about.parameters.iter().map(move |parameter| (about.id, parameter)))
            .filter(|(_, parameter)| parameter.name == name)
            .peekable();
        if takers.peek().is_none() {
            let mut known: Vec<&'static str> = experiments
                .iter()
                .flat_map(|experiment| experiment.about().parameters)
                .map(|parameter| parameter.name)
                .collect();
            known.sort_unstable();
            known.dedup();
            return Err(Error::UnknownParameter { known });
        }
        for (id, parameter) in takers {
            let [least, most] = parameter.range;
            if !(least..=most).contains(&value) || parameter.whole && value.fract() != 0.0 {
                return Err(Error::OutOfRange { parameter: *parameter, experiment: id });
            }
            self.set.insert(parameter.name, value);
        }
        Ok(())
    }

    /// The parameters that are not what they are by default.
    pub fn changed(&self) -> &BTreeMap<&'static str, f64> {
        &self.set
    }

    /// What a parameter is.
    pub fn number(&self, parameter: &Parameter) -> f64 {
        let [quick, full] = parameter.default;
        self.set.get(parameter.name).copied().unwrap_or_else(|| self.either(quick, full))
    }

    /// What a parameter that counts things is.
    pub fn count(&self, parameter: &Parameter) -> u64 {
        self.number(parameter) as u64
    }

    /// The keys of a build, which depend on the seed as well.
    pub fn keys(&self, build: u64) -> Keys {
        Keys::of_build(mix(self.seed).wrapping_add(build))
    }

    /// A number below `range`, drawn from nothing that a filter hashes with.
    pub fn draw(&self, stream: u64, number: u64, range: u64) -> u64 {
        reduce(mix(mix(mix(self.seed) ^ stream) ^ number), range)
    }

    /// The hash of a build: each has its own.
    pub fn hasher(&self, build: u64) -> Hasher {
        Hasher::fast(mix(self.seed ^ 0x5eed).wrapping_add(build))
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
    /// Worked examples that are drawn.
    pub traces: Vec<Trace>,
    /// What it means, in a sentence or two.
    pub verdict: String,
}
