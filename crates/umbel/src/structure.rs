//! What every structure of this library is, whatever it answers: everything that files and the faces of the product ask
//! of each kind beyond its answers.
//!
//! A new kind is a type with a [`Head`] and some [`Words`], an implementation of [`Structure`] and of what it is asked
//! for ([`Filter`](crate::Filter) and [`Set`](crate::Set), [`Map`](crate::Map) or [`Count`](crate::Count); sketches have
//! inherent methods only), and a line in a list of `any/`.

use crate::file::FormatError;
use crate::memory::{LINE_BYTES, Mover, Words};
use crate::sizing::Given;
use crate::{Capabilities, Design, Digest, Error, Hasher, Kind, Level, Plan, Result, Spec};
use std::fmt;
use std::ops::{Deref, Range};

/// A kind of set, map, multiset or sketch.
///
/// The trait is sealed: what it promises to files and to the faces is kept inside this library.
pub trait Structure: Sized + Send + Sync + 'static + sealed::Sealed {
    /// The kind.
    const KIND: Kind;

    /// What it can do beside being asked.
    const CAPABILITIES: Capabilities;

    /// What a specification leads to. Sketches are not made from one, and refuse.
    fn plan(spec: &Spec) -> Result<Plan> {
        let _ = spec;
        Err(Error::cannot(Self::KIND, "be planned", "its size does not depend on the number of keys"))
    }

    /// What it was planned for.
    fn design(&self) -> Option<Design> {
        self.head().design
    }

    /// How often something was inserted, less what was removed; `None` after a union, when nobody knows.
    fn inserted(&self) -> Option<u64> {
        self.head().inserted
    }

    /// The false-positive rate the theory predicts after `n` distinct keys. Sketches have none, and refuse.
    fn predicted_rate(&self, n: u64) -> Result<f64> {
        let _ = n;
        Err(Error::cannot(Self::KIND, "predict a rate", "it does not tell members from strangers"))
    }

    /// A copy in memory of its own, which can be changed whatever this one is.
    fn try_clone(&self) -> Result<Self>;

    /// Looks a digest up cell by cell, and tells `probe` of each before it is read. An error of `probe` ends it. The answer
    /// is whether the key may be a member. Sketches have no lookups of members, and refuse.
    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        let _ = (digest, probe);
        Err(Error::cannot(Self::KIND, "trace a lookup", "it does not tell members from strangers"))
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

    /// Everything that a file has behind its header: the sections, and those that exist only in files.
    #[doc(hidden)]
    fn body(&self) -> Result<Vec<(u32, Body<'_>)>> {
        Ok(self.sections().into_iter().map(|(what, words)| (what, Body::Held(words))).collect())
    }

    /// Lets its memory be moved, see [`Mover`].
    fn relocate(&mut self, mover: &mut dyn Mover);

    /// What has these parts. Nothing has been verified of the words yet, so they are not looked at; those of sketches
    /// have been verified.
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
pub(crate) const TABLE: u32 = 8;
pub(crate) const VALUES: u32 = 9;
pub(crate) const BOOK: u32 = 10;
pub(crate) const REGISTERS: u32 = 11;
pub(crate) const CELLS: u32 = 12;
pub(crate) const ITEMS: u32 = 13;

/// The words of a section on their way into a file.
pub enum Body<'a> {
    /// Memory of the structure.
    Held(&'a Words),
    /// Made for the file, from what the structure holds elsewhere.
    Made(Words),
}

impl Deref for Body<'_> {
    type Target = Words;

    fn deref(&self) -> &Words {
        match self {
            Body::Held(words) => words,
            Body::Made(words) => words,
        }
    }
}

/// Formats a summary of a structure: no cells, no secrets.
pub(crate) fn summarize<S: Structure>(structure: &S, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let bytes: usize = structure.sections().iter().map(|(_, words)| size_of_val(words.words())).sum();
    let name = std::any::type_name::<S>();
    let mut summary =
        f.debug_struct(name.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(name));
    summary.field("kind", &S::KIND);
    if let Some(Design { capacity, rate }) = structure.design() {
        summary.field("capacity", &capacity).field("rate", &rate);
    }
    if let Some(inserted) = structure.inserted() {
        summary.field("inserted", &inserted);
    }
    summary.field("bytes", &bytes).field("hash", &format_args!("{}", structure.head().hasher.id())).finish()
}

/// What every structure has beside its cells.
#[derive(Clone, Debug)]
pub struct Head {
    pub(crate) hasher: Hasher,
    pub(crate) design: Option<Design>,
    /// How often something was inserted; unknown after a union.
    pub(crate) inserted: Option<u64>,
    pub(crate) level: Level,
}

/// The most insertions that are counted: one more stands in files for an unknown number.
pub(crate) const MAX_INSERTED: u64 = u64::MAX - 1;

impl Head {
    pub(crate) fn new(hasher: Hasher) -> Head {
        Head { hasher, design: None, inserted: Some(0), level: Level::detect() }
    }

    /// The head of a filter that was planned.
    pub(crate) fn planned(spec: &Spec, plan: &Plan) -> Head {
        let design = Some(Design { capacity: plan.capacity, rate: plan.rate_asked });
        Head { design, ..Head::new(spec.hasher().clone()) }
    }

    /// The head of what was made from so many different keys at once, in so many bits and with this rate. A size that was
    /// given is kept, or nothing is made; without a rate, what it allows was asked for.
    pub(crate) fn of_all(spec: &Spec, keys: u64, bits: u64, rate: f64) -> Result<Head> {
        let Given { p, m, .. } = spec.given();
        if let Some(m) = m.filter(|m| bits > *m) {
            return Err(Error::parameter(
                "m",
                m,
                format!("{bits} bits: these keys need more room than most"),
            ));
        }
        let design = Some(Design { capacity: keys.max(1), rate: p.unwrap_or(rate) });
        Ok(Head { design, inserted: Some(keys), ..Head::new(spec.hasher().clone()) })
    }

    /// The same, with nothing inserted yet.
    pub(crate) fn emptied(&self) -> Head {
        Head { inserted: Some(0), ..self.clone() }
    }

    #[inline(always)]
    pub(crate) fn count_inserted(&mut self, keys: usize) {
        self.inserted = self.inserted.map(|before| before.saturating_add(keys as u64).min(MAX_INSERTED));
    }

    /// Counts a key that is no longer there.
    pub(crate) fn count_removed(&mut self) {
        self.inserted = self.inserted.map(|before| before.saturating_sub(1));
    }
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

    /// The next section, of this type, whatever its size.
    pub(crate) fn section_of_any_size(&mut self, what: u32) -> Result<Words> {
        let (found, words) =
            self.sections.next().ok_or_else(|| FormatError::invalid("a section is missing"))?;
        if found != what {
            return Err(FormatError::Unknown { what: format!("section {found}") }.into());
        }
        Ok(words)
    }

    /// The next section, of this type and so many lines.
    pub(crate) fn section(&mut self, what: u32, lines: u64) -> Result<Words> {
        let words = self.section_of_any_size(what)?;
        if words.lines().len() as u64 != lines {
            let bytes = words.lines().len() * LINE_BYTES;
            let what =
                format!("it claims a filter of {lines} lines of 64 bytes, but holds {bytes} bytes of it");
            return Err(FormatError::invalid(what).into());
        }
        Ok(words)
    }

    /// The same for what was made from all its keys at once, each of which has a cell of its own: their number is known, and
    /// what it was made for.
    pub(crate) fn finish_all(self, cells: u64) -> Result<Head> {
        let head = self.finish()?;
        let keys = head.inserted.filter(|keys| *keys <= cells);
        if keys.is_none() || keys.map(|keys| keys.max(1)) != head.design.map(|design| design.capacity) {
            return Err(FormatError::invalid("it does not say how many keys it was made from").into());
        }
        Ok(head)
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
