//! [`Builder`]: makes an empty filter from any sufficient settings and the options of its kind.

use crate::key::Hashed;
use crate::set::Set;
use crate::sizing::{Given, KPolicy};
use crate::space_code::{Resolution, SpaceCodeFilter};
use crate::structure::Structure;
use crate::{
    Aging, Counting, Cuckoo, Deletable, Hasher, Insert, Key, MultiResolution, Plan, Quotient, Result,
    Scalable, Spec, VariableIncrement, aging, counting, cuckoo, floom, scalable, variable_increment,
};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// Collects the settings of an empty filter of kind `F`.
///
/// ```
/// use umbel::{BloomFilter, Cuckoo};
///
/// let cuckoo = Cuckoo::builder().capacity(1000).rate(0.01).fingerprint_bits(12).build()?;
/// assert!(cuckoo.predicted_rate(1000)? < 0.01);
///
/// // The filter of a textbook: ten bits, three hash functions.
/// let textbook = BloomFilter::builder().bits(10).hashes(3).build()?;
/// assert_eq!((textbook.stats().bits, textbook.stats().hashes), (10, 3));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// Any sufficient subset of [`capacity`](Builder::capacity) (n), [`rate`](Builder::rate) (p),
/// [`bits`](Builder::bits) (m) and [`hashes`](Builder::hashes) (k) will do. The rules of
/// [`sizing`](crate::sizing) determine the rest.
#[must_use = "a builder makes a filter only when `build` is called"]
pub struct Builder<F> {
    given: Given,
    /// The hash, the rounding of k, and the options of the kind. `given` is stored separately until
    /// it is complete.
    spec: Spec,
    kind: PhantomData<fn() -> F>,
}

// Not derived, because a builder implements `Clone` and `Debug` whether or not `F` does.
impl<F> Clone for Builder<F> {
    fn clone(&self) -> Builder<F> {
        Builder { given: self.given, spec: self.spec.clone(), kind: PhantomData }
    }
}

impl<F> fmt::Debug for Builder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("given", &self.given).field("spec", &self.spec).finish()
    }
}

impl<F> Builder<F> {
    pub(crate) fn new() -> Builder<F> {
        Builder { given: Given::default(), spec: Spec::default(), kind: PhantomData }
    }

    /// Sets the number of keys to plan for (n).
    pub fn capacity(mut self, keys: u64) -> Self {
        self.given.n = Some(keys);
        self
    }

    /// Sets the false-positive rate at capacity (p).
    pub fn rate(mut self, rate: f64) -> Self {
        self.given.p = Some(rate);
        self
    }

    /// Sets the number of bits (m).
    pub fn bits(mut self, bits: u64) -> Self {
        self.given.m = Some(bits);
        self
    }

    /// Sets the number of hash functions (k).
    pub fn hashes(mut self, hashes: u32) -> Self {
        self.given.k = Some(hashes);
        self
    }

    /// Sets the hash function. The default is [`Hasher::fast`] with seed 0, for reproducible files;
    /// use [`Hasher::keyed`] if attackers may choose the keys.
    pub fn hasher(mut self, hasher: Hasher) -> Self {
        self.spec = self.spec.with_hasher(hasher);
        self
    }

    /// Sets how k is rounded to a whole number.
    pub fn policy(mut self, policy: KPolicy) -> Self {
        self.spec = self.spec.with_policy(policy);
        self
    }

    /// Returns the specification of these settings, for
    /// [`AnyFilter::build`](crate::AnyFilter::build).
    ///
    /// # Errors
    ///
    /// If 64-bit digests cannot distinguish that many keys at that rate.
    pub fn spec(self) -> Result<Spec> {
        self.spec.with_given(self.given)
    }
}

impl<F: Build> Builder<F> {
    /// Computes what will be built, without building it.
    ///
    /// # Errors
    ///
    /// As [`build`](Builder::build).
    pub fn plan(self) -> Result<Plan> {
        F::plan(&self.spec()?)
    }

    /// Makes the empty filter.
    ///
    /// # Errors
    ///
    /// If the settings are not sufficient, if two of them contradict each other, in which case the
    /// error names both, or if there is not enough memory.
    pub fn build(self) -> Result<F> {
        F::build(&self.spec()?)
    }
}

/// A kind that can be built from a specification. Sealed by
/// [`Structure`](crate::structure::Structure), and implemented for
/// [`BloomFilter`](crate::BloomFilter).
pub trait Build: Sized {
    /// Computes what would be built.
    ///
    /// # Errors
    ///
    /// If the settings are not sufficient or contradict each other.
    fn plan(spec: &Spec) -> Result<Plan>;
    /// Makes an empty filter.
    ///
    /// # Errors
    ///
    /// As `plan`, or if there is not enough memory.
    fn build(spec: &Spec) -> Result<Self>;
}

impl<S: Set> Build for S {
    fn plan(spec: &Spec) -> Result<Plan> {
        <S as Structure>::plan(spec)
    }

    fn build(spec: &Spec) -> Result<S> {
        Set::build(spec)
    }
}

/// Makes a filter of these keys. Hashes all keys first, because their number determines the size.
pub(crate) fn from_keys<F: Build + Insert, I>(keys: I, rate: f64) -> Result<F>
where
    I: IntoIterator,
    I::Item: Key,
{
    let hasher = Hasher::default();
    let digests: Vec<_> = keys.into_iter().map(|key| key.digest(&hasher)).collect();
    let mut filter = F::build(&Spec::new(digests.len().max(1) as u64, rate)?)?;
    filter.insert_batch(&Hashed(&digests)).map_err(Into::into)?;
    Ok(filter)
}

impl Builder<Counting> {
    /// Sets the bits of a counter, 2 to 16; the default is 4.
    pub fn counter_bits(mut self, bits: u32) -> Self {
        self.spec.options_mut().counting.counter_bits = bits;
        self
    }

    /// Sets what happens when a counter is at its largest value.
    pub fn overflow(mut self, overflow: counting::Overflow) -> Self {
        self.spec.options_mut().counting.overflow = overflow;
        self
    }
}

impl Builder<VariableIncrement> {
    /// Sets the scheme that chooses the amount each probe adds to its cell.
    pub fn scheme(mut self, scheme: variable_increment::Scheme) -> Self {
        self.spec.options_mut().variable_increment.scheme = scheme;
        self
    }
}

impl Builder<Deletable> {
    /// Sets the number of filter bits per collision bit. The smaller it is, the more keys can be
    /// removed.
    pub fn region_bits(mut self, bits: u64) -> Self {
        self.spec.options_mut().deletable.region_bits = bits;
        self
    }
}

impl Builder<Scalable> {
    /// Sets the tightening ratio: the rate of a stage divided by that of the stage before, between
    /// 0 and 1.
    pub fn tightening(mut self, ratio: f64) -> Self {
        self.spec.options_mut().scalable.tightening = ratio;
        self
    }

    /// Sets the growth factor: the capacity of a stage divided by that of the stage before.
    pub fn growth(mut self, factor: u32) -> Self {
        self.spec.options_mut().scalable.growth = factor;
        self
    }

    /// Sets the kind of the stages.
    pub fn stage(mut self, stage: scalable::Stage) -> Self {
        self.spec.options_mut().scalable.stage = stage;
        self
    }
}

impl Builder<Aging> {
    /// Sets the time after which a key is forgotten. The filter does not read a clock; pass it the
    /// time with [`Aging::advance`].
    pub fn window(mut self, time: Duration) -> Self {
        self.spec.options_mut().aging.window = Some(aging::Window::Time(time));
        self
    }

    /// Sets the number of other keys after which a key is forgotten; the default is the capacity.
    pub fn window_keys(mut self, keys: u64) -> Self {
        self.spec.options_mut().aging.window = Some(aging::Window::Keys(keys));
        self
    }

    /// Sets the number of generations. The window is forgotten one generation at a time.
    pub fn generations(mut self, generations: u32) -> Self {
        self.spec.options_mut().aging.generations = generations;
        self
    }
}

impl Builder<Cuckoo> {
    /// Sets the bits of a fingerprint (f), 2 to 32; the default follows from the rate.
    pub fn fingerprint_bits(mut self, bits: u32) -> Self {
        self.spec.options_mut().cuckoo.fingerprint_bits = Some(bits);
        self
    }

    /// Sets the slots of a bucket (b): 1, 2, 4 or 8.
    pub fn slots(mut self, slots: u32) -> Self {
        self.spec.options_mut().cuckoo.slots = slots;
        self
    }

    /// Sets how buckets are stored.
    pub fn form(mut self, form: cuckoo::Form) -> Self {
        self.spec.options_mut().cuckoo.form = form;
        self
    }

    /// Sets the share of slots in use at capacity.
    pub fn load(mut self, load: f64) -> Self {
        self.spec.options_mut().cuckoo.load = Some(load);
        self
    }
}

impl Builder<Quotient> {
    /// Sets the bits of a remainder, 1 to 57; the default needs the least memory.
    pub fn remainder_bits(mut self, bits: u32) -> Self {
        self.spec.options_mut().quotient.remainder_bits = Some(bits);
        self
    }

    /// Sets the share of slots in use at capacity, 0.01 to 0.95.
    pub fn load(mut self, load: f64) -> Self {
        self.spec.options_mut().quotient.load = load;
        self
    }
}

impl Builder<floom::Floom> {
    /// Sets the number of regions (b), the patterns that get a bit, and the boundaries of regions.
    pub fn options(mut self, options: floom::Options) -> Self {
        self.spec.options_mut().floom = options;
        self
    }
}

impl<R: Resolution> Build for SpaceCodeFilter<R> {
    fn plan(spec: &Spec) -> Result<Plan> {
        <Self as Structure>::plan(spec)
    }

    fn build(spec: &Spec) -> Result<Self> {
        SpaceCodeFilter::build(spec)
    }
}

impl<R: Resolution> Builder<SpaceCodeFilter<R>> {
    /// Sets the groups of hash functions (l), 1 to 64.
    pub fn groups(mut self, groups: u32) -> Self {
        self.spec.options_mut().space_code.groups = groups;
        self
    }

    /// Sets the number of distinct keys that will be recorded, if it is known: the filter then
    /// needs fewer bits.
    pub fn distinct_keys(mut self, keys: u64) -> Self {
        self.spec.options_mut().space_code.keys = Some(keys);
        self
    }

    /// Sets the seed of the random numbers. Filters that will be united need different seeds.
    pub fn seed(mut self, seed: u64) -> Self {
        self.spec.options_mut().space_code.seed = seed;
        self
    }

    /// Sets the epoch. A key uses different groups in different epochs.
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.spec.options_mut().space_code.epoch = epoch;
        self
    }
}

impl Builder<MultiResolution> {
    /// Sets the number of levels (r), 1 to 16.
    pub fn levels(mut self, levels: u32) -> Self {
        self.spec.options_mut().space_code.levels = levels;
        self
    }
}
