//! The description, the parameters and the findings of an experiment.

use crate::keys::mix;
use crate::trace::Trace;
use crate::{Chapter, Chart, Criterion, Error, Keys, Reference, Result, Table};
use std::collections::BTreeMap;
use umbel::hash::reduce;
use umbel::{Digest, Hasher};

/// The amount of work that an experiment does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Enough to decide whether a claim holds; all experiments together take three minutes.
    Quick,
    /// As much work as in the literature, or more.
    Full,
}

/// The description of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Identifier on the command line.
    pub id: &'static str,
    /// Chapter of the report.
    pub chapter: Chapter,
    /// Title, in a few words.
    pub title: &'static str,
    /// Works that make the claim.
    pub sources: &'static [Reference],
    /// The claim, in a sentence or two.
    pub claim: &'static str,
    /// The set-up of the test.
    pub set_up: &'static str,
    /// What to do with the result, in a sentence that follows "In practice:".
    pub advice: &'static str,
    /// Command that puts the result to use, with backticks around it, in a phrase that follows "Try
    /// it with"; the library module where no command does.
    pub command: &'static str,
    /// Approximate seconds of a quick and of a full run.
    pub seconds: [u32; 2],
    /// Whether the experiment measures times and therefore has to run alone.
    pub timed: bool,
    /// Parameters that can be set.
    pub parameters: &'static [Parameter],
}

impl About {
    /// Returns the cited works by author and year, such as `Bloom 1970; Honoroff 2006`.
    pub fn source(&self) -> String {
        self.sources.iter().map(|source| source.cite).collect::<Vec<_>>().join("; ")
    }
}

/// A claim of the literature, and the code that tests it.
pub trait Experiment: Send + Sync {
    /// Returns the description.
    fn about(&self) -> About;

    /// Runs the test.
    ///
    /// # Errors
    ///
    /// An error of the library under test, or of a parameter that does not fit the others. A claim
    /// that does not hold is not an error but a [`Criterion`] that does not hold.
    fn run(&self, lab: &Lab) -> Result<Findings>;
}

/// A number of an experiment that `umbel lab run --set` can change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name in the literature.
    pub name: &'static str,
    /// Meaning, in a few words.
    pub meaning: &'static str,
    /// Defaults of a quick and of a full run.
    pub default: [f64; 2],
    /// Smallest and largest value.
    pub range: [f64; 2],
    /// Whether the value has to be a whole number.
    pub whole: bool,
}

impl Parameter {
    /// Creates a parameter that counts things.
    pub const fn count(
        name: &'static str,
        meaning: &'static str,
        default: [u64; 2],
        range: [u64; 2],
    ) -> Parameter {
        let default = [default[0] as f64, default[1] as f64];
        Parameter { name, meaning, default, range: [range[0] as f64, range[1] as f64], whole: true }
    }

    /// Creates a parameter that is a rate or a ratio.
    pub const fn real(
        name: &'static str,
        meaning: &'static str,
        default: [f64; 2],
        range: [f64; 2],
    ) -> Parameter {
        Parameter { name, meaning, default, range, whole: false }
    }
}

/// The scale, seed and parameters of a run.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Amount of work.
    pub scale: Scale,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Function that is applied to digests before filters see them: the identity, except in tests
    /// that simulate a bad hash.
    pub spoil: fn(Digest) -> Digest,
    /// Parameters with a value other than the default.
    set: BTreeMap<&'static str, f64>,
}

impl Lab {
    /// Creates a lab with default parameters and unchanged hashes.
    pub fn new(scale: Scale, seed: u64) -> Lab {
        Lab { scale, seed, spoil: |digest| digest, set: BTreeMap::new() }
    }

    /// Returns the first value in quick runs, the second in full ones.
    pub fn either<T>(&self, quick: T, full: T) -> T {
        if self.scale == Scale::Quick { quick } else { full }
    }

    /// Sets a parameter of those experiments that have it.
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
    /// [`Error::UnknownParameter`] if none of the experiments has the parameter,
    /// [`Error::OutOfRange`] if the value is out of range for one of them.
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

    /// Returns the parameters with a value other than the default.
    pub fn changed(&self) -> &BTreeMap<&'static str, f64> {
        &self.set
    }

    /// Returns the value of a parameter.
    pub fn number(&self, parameter: &Parameter) -> f64 {
        let [quick, full] = parameter.default;
        self.set.get(parameter.name).copied().unwrap_or_else(|| self.either(quick, full))
    }

    /// Returns the value of a parameter that counts things.
    pub fn count(&self, parameter: &Parameter) -> u64 {
        self.number(parameter) as u64
    }

    /// Returns the keys of a build. They also depend on the seed.
    pub fn keys(&self, build: u64) -> Keys {
        Keys::of_build(mix(self.seed).wrapping_add(build))
    }

    /// Draws a number below `range` that is independent of the hashes of filters.
    pub fn draw(&self, stream: u64, number: u64, range: u64) -> u64 {
        reduce(mix(mix(mix(self.seed) ^ stream) ^ number), range)
    }

    /// Returns the hash of a build. Each build has its own.
    pub fn hasher(&self, build: u64) -> Hasher {
        Hasher::fast(mix(self.seed ^ 0x5eed).wrapping_add(build))
    }

    /// Returns the digests of keys as filters see them.
    pub fn digests(&self, hasher: &Hasher, keys: &[u64]) -> Vec<Digest> {
        hasher.digest_batch(keys).into_iter().map(self.spoil).collect()
    }
}

/// The findings of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Criteria that have to hold.
    pub criteria: Vec<Criterion>,
    /// Tables of numbers.
    pub tables: Vec<Table>,
    /// Charts.
    pub charts: Vec<Chart>,
    /// Drawn worked examples.
    pub traces: Vec<Trace>,
    /// Conclusion, in a sentence or two.
    pub verdict: String,
}
