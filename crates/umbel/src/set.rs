//! What makes a filter a kind among kinds: everything that files, [`AnyFilter`](crate::AnyFilter) and the faces of
//! the product ask of each of them beyond [`Filter`](crate::Filter) and [`Insert`].
//!
//! A new kind is a type with a [`Head`] and some [`Words`], an implementation of [`Set`], and a line in the list of
//! `any.rs`.

use crate::file::FormatError;
use crate::words::{LINE_BYTES, Words};
use crate::{Algebra, Digest, Error, Hasher, Insert, Kind, Level, Plan, Remove, Result, Spec};
use std::ops::Range;

/// A kind of approximate set.
///
/// The trait is sealed: what it promises to files and to the faces is kept inside this library.
pub trait Set: Insert + Algebra + Send + Sync + 'static + sealed::Sealed {
    /// The kind.
    const KIND: Kind;

    /// What it can do beside being asked and filled.
    const CAN: Can;

    /// What filter a specification leads to.
    fn plan(spec: &Spec) -> Result<Plan>;

    /// An empty filter as specified: the one that [`Set::plan`] describes.
    fn build(spec: &Spec) -> Result<Self>;

    /// What it was planned for.
    fn design(&self) -> Option<Design> {
        self.head().design
    }

    /// How often something was inserted, less what was removed; `None` after a union, when nobody knows.
    fn inserted(&self) -> Option<u64> {
        self.head().inserted
    }

    /// The false-positive rate the theory predicts after `n` distinct keys.
    fn predicted_rate(&self, n: u64) -> Result<f64>;

    /// Forgets everything.
    fn clear(&mut self) -> Result<()>;

    /// A copy in memory of its own, which can be changed whatever this one is.
    fn try_clone_owned(&self) -> Result<Self>;

    /// An empty filter of the same shape, hash and design.
    fn try_clone_empty(&self) -> Result<Self>;

    /// Looks a digest up cell by cell, and tells `probe` of each before it is read. An error of `probe` ends it.
    ///
    /// A kind whose lookups go too far to be told names all it has.
    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        for (section, (_, words)) in self.sections().into_iter().enumerate() {
            probe(Probe { section, bits: 0..words.words().len() as u64 * 64 })?;
        }
        Ok(self.contains_digest(digest))
    }

    /// Takes in what was inserted into another filter of the same shape, as threads do that each fill one of their
    /// own: the result is the same as if this one had been given everything. It is a [union](Algebra::union) of which
    /// it is known that both counts of insertions add up.
    ///
    /// ```
    /// use umbel::{Blocked, Bloom, Filter, Insert, Set};
    /// let mut whole = Bloom::<Blocked>::with_capacity(100_000, 0.01)?;
    /// let mut part = whole.try_clone_empty()?;
    /// whole.insert("apple")?;
    /// part.insert("pear")?;
    /// whole.absorb(&part)?;
    /// assert!(whole.contains("pear") && whole.inserted() == Some(2));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    fn absorb(&mut self, part: &Self) -> Result<()> {
        if !Self::CAN.absorb {
            return Err(Error::cannot(
                Self::KIND,
                "be filled in parts",
                "its cells depend on the order of the keys",
            ));
        }
        let inserted = self.inserted().zip(part.inserted()).map(|(ours, theirs)| ours.saturating_add(theirs));
        self.union(part)?;
        self.head_mut().inserted = inserted;
        Ok(())
    }

    /// The filter of the same keys in half the memory, without the keys: every bit becomes the union of two
    /// neighbours. The rate rises accordingly. Refused when the size is odd, and by kinds that have no such bits.
    ///
    /// ```
    /// use umbel::{Blocked, Bloom, Filter, Insert, Set};
    /// let mut roomy = Bloom::<Blocked>::with_capacity(1_000_000, 0.001)?;
    /// roomy.insert_batch(&(0..100_000u64).collect::<Vec<_>>())?;
    /// let folded = roomy.fold()?;
    /// assert_eq!(folded.stats().bytes * 2, roomy.stats().bytes);
    /// assert!((0..100_000u64).all(|key| folded.contains(&key)));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    fn fold(&self) -> Result<Self> {
        Err(Error::cannot(
            Self::KIND,
            "be folded",
            "only bits of standard, partitioned and blocked filters can be joined",
        ))
    }

    /// Itself, if keys can be removed from it.
    fn remover(&mut self) -> Result<&mut dyn Remove> {
        let why = "several keys share a bit, and clearing it for one would lose the others; kinds that can are \
                   counting, variable-increment, deletable, cuckoo and quotient";
        Err(Error::cannot(Self::KIND, "remove keys", why))
    }

    /// Hash, design and counts.
    #[doc(hidden)]
    fn head(&self) -> &Head;
    #[doc(hidden)]
    fn head_mut(&mut self) -> &mut Head;

    /// The numbers that describe it in a file, besides those of its head.
    #[doc(hidden)]
    fn params(&self) -> Vec<u64>;

    /// Its memory, as sections of a file: what each is, and its words.
    #[doc(hidden)]
    fn sections(&self) -> Vec<(u32, &Words)>;

    /// The filter with these parts. Nothing has been verified of the words yet, so they are not looked at.
    #[doc(hidden)]
    fn restore(parts: Parts) -> Result<Self>;

    /// Whether the contents of the memory are such as insertions leave, as far as the other methods rely on it. They
    /// must not panic, nor run for ever, if it is not.
    #[doc(hidden)]
    fn check_contents(&self) -> Result<(), FormatError>;

    /// Runs on another instruction set than the best one; the answers are the same.
    fn set_level(&mut self, level: Level) {
        self.head_mut().level = level;
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// The sections of files, by what they hold.
pub(crate) const BITS: u32 = 1;
pub(crate) const COUNTERS: u32 = 2;
pub(crate) const INCREMENTS: u32 = 3;
pub(crate) const COLLISIONS: u32 = 4;
pub(crate) const PATTERNS: u32 = 5;
pub(crate) const FINGERPRINTS: u32 = 6;
pub(crate) const SLOTS: u32 = 7;

/// What a filter was planned for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    /// Keys.
    pub capacity: u64,
    /// The false-positive rate once it holds so many.
    pub rate: f64,
}

/// What every set has beside its cells.
#[derive(Clone, Debug)]
pub struct Head {
    pub(crate) hasher: Hasher,
    pub(crate) design: Option<Design>,
    /// How often something was inserted; unknown after a union.
    pub(crate) inserted: Option<u64>,
    pub(crate) level: Level,
}

impl Head {
    pub(crate) fn new(hasher: Hasher) -> Head {
        Head { hasher, design: None, inserted: Some(0), level: Level::detect() }
    }

    /// The head of a filter that was planned.
    pub(crate) fn planned(spec: &Spec, plan: &Plan) -> Head {
        let design = Some(Design { capacity: plan.capacity, rate: plan.rate_asked });
        Head { design, ..Head::new(spec.hasher().clone()) }
    }

    /// The same, with nothing inserted yet.
    pub(crate) fn emptied(&self) -> Head {
        Head { inserted: Some(0), ..self.clone() }
    }

    #[inline(always)]
    pub(crate) fn count_inserted(&mut self, keys: usize) {
        self.inserted = self.inserted.map(|before| before.saturating_add(keys as u64));
    }

    /// Counts a key that is no longer there.
    pub(crate) fn count_removed(&mut self) {
        self.inserted = self.inserted.map(|before| before.saturating_sub(1));
    }
}

/// What a kind of filter can do beside being asked and filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Can {
    /// Keys can be removed, see [`Remove`].
    pub remove: bool,
    /// It grows beyond its capacity and keeps its rate.
    pub grow: bool,
    /// It forgets old keys by itself.
    pub forget: bool,
    /// Two of them can be united.
    pub union: bool,
    /// Two of them can be intersected.
    pub intersect: bool,
    /// It can be folded in half.
    pub fold: bool,
    /// Every insertion takes room, those of keys that are there already too.
    pub multiset: bool,
    /// Parts that were filled apart can be joined, see [`Set::absorb`].
    pub absorb: bool,
    /// Several threads can fill it at once, see [`Concurrent`](crate::Concurrent).
    pub share: bool,
}

impl Can {
    /// Nothing.
    pub(crate) const NOTHING: Can = Can {
        remove: false,
        grow: false,
        forget: false,
        union: false,
        intersect: false,
        fold: false,
        multiset: false,
        absorb: false,
        share: false,
    };
}

/// A part of the memory that a lookup reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Which of the filter's sections it is in.
    pub section: usize,
    /// The bits of that section.
    pub bits: Range<u64>,
}

impl Probe {
    /// One bit of the first section.
    pub(crate) fn bit(bit: u64) -> Probe {
        Probe { section: 0, bits: bit..bit + 1 }
    }

    /// Its value in these words, which are those of its section; the lowest 64 bits of it if it is longer.
    pub fn value(&self, words: &Words) -> u64 {
        let (words, start) = (words.words(), self.bits.start);
        let (word, shift) = ((start / 64) as usize, start % 64);
        let low = words.get(word).map_or(0, |word| word >> shift);
        let high = if shift == 0 { 0 } else { words.get(word + 1).map_or(0, |word| word << (64 - shift)) };
        let width = self.bits.end.saturating_sub(start).min(64);
        let mask = if width == 64 { !0 } else { (1 << width) - 1 };
        (low | high) & mask
    }
}

/// What a file holds of a filter.
pub struct Parts {
    pub(crate) head: Head,
    pub(crate) params: Vec<u64>,
    pub(crate) sections: std::vec::IntoIter<(u32, Words)>,
}

impl Parts {
    /// Exactly so many parameters.
    pub(crate) fn params<const N: usize>(&self) -> Result<[u64; N]> {
        let count = self.params.len();
        <[u64; N]>::try_from(&self.params[..])
            .map_err(|_| FormatError::invalid(format!("{count} parameters instead of {N}")).into())
    }

    /// The next section, of this type and so many lines.
    pub(crate) fn section(&mut self, what: u32, lines: u64) -> Result<Words> {
        let (found, words) =
            self.sections.next().ok_or_else(|| FormatError::invalid("a section is missing"))?;
        if found != what {
            return Err(FormatError::Unknown { what: format!("section {found}") }.into());
        }
        if words.lines().len() as u64 != lines {
            let bytes = words.lines().len() * LINE_BYTES;
            let what =
                format!("it claims a filter of {lines} lines of 64 bytes, but holds {bytes} bytes of it");
            return Err(FormatError::invalid(what).into());
        }
        Ok(words)
    }

    /// Refuses sections that nobody asked for.
    pub(crate) fn finish(mut self) -> Result<Head> {
        match self.sections.next() {
            Some(_) => Err(FormatError::invalid("there are more sections than its kind has").into()),
            None => Ok(self.head),
        }
    }
}

/// A number of a file as a smaller one; what does not fit becomes one that no parameter accepts.
pub(crate) fn small(param: u64) -> u32 {
    u32::try_from(param).unwrap_or(u32::MAX)
}

/// Bits beyond the last position are zero; whoever counts bits relies on it.
pub(crate) fn check_tail(words: &Words, bits: u64) -> Result<(), FormatError> {
    let words = words.words();
    let (whole, rest) = ((bits / 64) as usize, bits % 64);
    let partial = words.get(whole).is_some_and(|word| rest > 0 && word >> rest != 0);
    let beyond = words.get(whole + usize::from(rest > 0)..).unwrap_or_default();
    if partial || beyond.iter().any(|word| *word != 0) {
        return Err(FormatError::invalid(format!("there are bits beyond the {bits} of the filter")));
    }
    Ok(())
}
