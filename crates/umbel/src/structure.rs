//! [`Structure`]: the operations that files and the other crates need from every kind, whatever
//! queries it answers.
//!
//! A new kind is a type with a [`Head`] and some [`Words`]. It implements [`Structure`] and the
//! trait of its category: [`Filter`](crate::Filter) and [`Set`](crate::Set), [`Map`](crate::Map) or
//! [`Count`](crate::Count). Sketches have inherent methods only. Then add the type to a list in
//! `any/`.

use crate::file::FormatError;
use crate::memory::{LINE_BYTES, Mover, Words};
use crate::sizing::Given;
use crate::{Capabilities, Design, Digest, Error, Hasher, Kind, Level, Plan, Result, Spec};
use std::fmt;
use std::ops::{Deref, Range};

/// A kind of set, map, multiset or sketch.
///
/// The trait is sealed: only this library implements it, because files rely on its guarantees.
pub trait Structure: Sized + Send + Sync + 'static + sealed::Sealed {
    /// The kind of this structure.
    const KIND: Kind;

    /// The operations that the kind supports beyond lookups.
    const CAPABILITIES: Capabilities;

    /// Computes the structure that a specification leads to.
    ///
    /// # Errors
    ///
    /// If the settings are not sufficient or contradict each other. Sketches always fail: they are
    /// not made from a specification.
    fn plan(spec: &Spec) -> Result<Plan> {
        let _ = spec;
        Err(Error::cannot(Self::KIND, "be planned", "its size does not depend on the number of keys"))
    }

    /// Returns the number of keys and the rate it was planned for; `None` if it was made without a
    /// plan.
    fn design(&self) -> Option<Design> {
        self.head().design
    }

    /// Returns the number of insertions, less the removals; `None` if it is unknown, such as after
    /// a union.
    fn inserted(&self) -> Option<u64> {
        self.head().inserted
    }

    /// Computes the false-positive rate that theory predicts after `n` distinct keys.
    ///
    /// # Errors
    ///
    /// If `n` is more than the theory covers. Sketches always fail: they have no such rate.
    fn predicted_rate(&self, n: u64) -> Result<f64> {
        let _ = n;
        Err(Error::cannot(Self::KIND, "predict a rate", "it does not tell members from strangers"))
    }

    /// Returns a copy that owns its memory, so that it can be changed even if this structure is
    /// read-only.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for it.
    fn try_clone(&self) -> Result<Self>;

    /// Looks up a digest cell by cell and calls `probe` with each cell before reading it. Returns
    /// whether the key may be a member.
    ///
    /// # Errors
    ///
    /// If `probe` fails, which ends the lookup. Sketches always fail: they do not look up members.
    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        let _ = (digest, probe);
        Err(Error::cannot(Self::KIND, "trace a lookup", "it does not tell members from strangers"))
    }

    /// Returns the hash, the design and the counts.
    #[doc(hidden)]
    fn head(&self) -> &Head;
    #[doc(hidden)]
    fn head_mut(&mut self) -> &mut Head;

    /// Returns the numbers that describe the structure in a file, besides those of its head.
    #[doc(hidden)]
    fn params(&self) -> Vec<u64>;

    /// Returns the memory as sections of a file: the type of each section and its words.
    #[doc(hidden)]
    fn sections(&self) -> Vec<(u32, &Words)>;

    /// Returns everything in a file after the header: the sections, and those that exist only in
    /// files.
    #[doc(hidden)]
    fn body(&self) -> Result<Vec<(u32, Body<'_>)>> {
        Ok(self.sections().into_iter().map(|(what, words)| (what, Body::Held(words))).collect())
    }

    /// Lets `mover` move the memory of this structure; see [`Mover`].
    fn relocate(&mut self, mover: &mut dyn Mover);

    /// Restores a structure from the parts of a file. The words have not been verified yet, so they
    /// must not be read here, except by sketches, whose words have been verified.
    #[doc(hidden)]
    fn restore(parts: Parts) -> Result<Self>;

    /// Checks that the memory holds contents that insertions could have produced, to the extent
    /// that other methods rely on it. If it does not, those methods must still neither panic nor
    /// loop forever.
    #[doc(hidden)]
    fn check_contents(&self) -> Result<(), FormatError>;

    /// Selects an instruction set other than the best one. The answers are the same.
    fn set_level(&mut self, level: Level) {
        self.head_mut().level = level;
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// The types of sections in files.
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

/// The words of a section to be written to a file.
pub enum Body<'a> {
    /// Memory that belongs to the structure.
    Held(&'a Words),
    /// Words made only for the file.
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

/// Formats a summary of a structure, without its cells and without secrets.
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

/// The data that every structure has besides its cells.
#[derive(Clone, Debug)]
pub struct Head {
    pub(crate) hasher: Hasher,
    pub(crate) design: Option<Design>,
    /// The number of insertions; unknown after a union.
    pub(crate) inserted: Option<u64>,
    pub(crate) level: Level,
}

/// The largest number of insertions. In files, the next number means that it is unknown.
pub(crate) const MAX_INSERTED: u64 = u64::MAX - 1;

impl Head {
    pub(crate) fn new(hasher: Hasher) -> Head {
        Head { hasher, design: None, inserted: Some(0), level: Level::detect() }
    }

    /// Returns the head of a filter that was planned.
    pub(crate) fn planned(spec: &Spec, plan: &Plan) -> Head {
        let design = Some(Design { capacity: plan.capacity, rate: plan.rate_asked });
        Head { design, ..Head::new(spec.hasher().clone()) }
    }

    /// Returns the head of a structure that was built from `keys` distinct keys at once, has `bits`
    /// bits and the false-positive rate `rate`. Fails if the specification gives a smaller size. If
    /// the specification gives no rate, `rate` becomes the designed one.
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

    /// Returns the same head with nothing inserted.
    pub(crate) fn emptied(&self) -> Head {
        Head { inserted: Some(0), ..self.clone() }
    }

    #[inline(always)]
    pub(crate) fn count_inserted(&mut self, keys: usize) {
        self.inserted = self.inserted.map(|before| before.saturating_add(keys as u64).min(MAX_INSERTED));
    }

    pub(crate) fn count_removed(&mut self) {
        self.inserted = self.inserted.map(|before| before.saturating_sub(1));
    }
}

/// A range of bits that a lookup reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The index of the section among those of the structure.
    pub section: usize,
    /// The range of bits in that section.
    pub bits: Range<u64>,
}

impl Probe {
    /// Returns the probe of one bit in the first section.
    pub(crate) fn bit(bit: u64) -> Probe {
        Probe { section: 0, bits: bit..bit + 1 }
    }

    /// Returns the value of these bits in the words of their section. If there are more than 64
    /// bits, returns the lowest 64.
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

/// The parts of a structure that a file holds.
pub struct Parts {
    pub(crate) head: Head,
    pub(crate) params: Vec<u64>,
    pub(crate) sections: std::vec::IntoIter<(u32, Words)>,
}

impl Parts {
    /// Returns the parameters, or an error unless there are exactly `N`.
    pub(crate) fn params<const N: usize>(&self) -> Result<[u64; N]> {
        let count = self.params.len();
        <[u64; N]>::try_from(&self.params[..])
            .map_err(|_| FormatError::invalid(format!("{count} parameters instead of {N}")).into())
    }

    /// Returns the next section, which must be of type `what` but may have any size.
    pub(crate) fn section_of_any_size(&mut self, what: u32) -> Result<Words> {
        let (found, words) =
            self.sections.next().ok_or_else(|| FormatError::invalid("a section is missing"))?;
        if found != what {
            return Err(FormatError::Unknown { what: format!("section {found}") }.into());
        }
        Ok(words)
    }

    /// Returns the next section, which must be of type `what` and have `lines` lines.
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

    /// Like [`finish`](Parts::finish), for structures that are built from all their keys at once
    /// with at least one cell per key. Their number of keys and capacity must be known and agree.
    pub(crate) fn finish_all(self, cells: u64) -> Result<Head> {
        let head = self.finish()?;
        let keys = head.inserted.filter(|keys| *keys <= cells);
        if keys.is_none() || keys.map(|keys| keys.max(1)) != head.design.map(|design| design.capacity) {
            return Err(FormatError::invalid("it does not say how many keys it was made from").into());
        }
        Ok(head)
    }

    /// Returns the head, or an error if there are sections left.
    pub(crate) fn finish(mut self) -> Result<Head> {
        match self.sections.next() {
            Some(_) => Err(FormatError::invalid("there are more sections than its kind has").into()),
            None => Ok(self.head),
        }
    }
}

/// Converts a number from a file to 32 bits. A number that does not fit becomes `u32::MAX`, which
/// no parameter accepts.
pub(crate) fn small(param: u64) -> u32 {
    u32::try_from(param).unwrap_or(u32::MAX)
}

/// Checks that the bits beyond the last position are zero, which code that counts bits relies on.
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
