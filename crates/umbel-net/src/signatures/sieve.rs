//! Filters over windows: gates on the first bytes of many signatures, and one filter for each
//! length.

use super::Settings;
use super::rolling::{Base, Rolling, Window};
use crate::Result;
use umbel::key::Hashed;
use umbel::{Blocked, Bloom, Digest, Hasher, Spec};

/// The purposes of windows. A signature and the start of a longer one must not share a digest.
pub(super) const WHOLE: u64 = 0;
const GATE: u64 = 1;

/// A filter of windows of one length.
#[derive(Debug)]
pub(super) struct Sieve {
    window: Window,
    filter: Bloom<Blocked>,
}

impl Sieve {
    /// Returns the filter of signatures of the same length.
    fn whole(same: &[Signed], base: Base, settings: &Settings) -> Result<Sieve> {
        let window = Window::new(base, same[0].0.len(), WHOLE);
        Sieve::new(window, same.iter().map(|(_, digest)| *digest).collect(), settings)
    }

    /// Returns the filter of the first bytes of signatures, as many as the first and shortest one
    /// has.
    fn gate(rest: &[Signed], base: Base, settings: &Settings) -> Result<Sieve> {
        let window = Window::new(base, rest[0].0.len(), GATE);
        let starts = rest.iter().map(|(signature, _)| window.digest(base.hash(&signature[..window.length])));
        Sieve::new(window, starts.collect(), settings)
    }

    fn new(window: Window, mut digests: Vec<Digest>, settings: &Settings) -> Result<Sieve> {
        // Signatures with the same start need room only once.
        digests.sort_unstable();
        digests.dedup();
        let mut filter = filter(digests.len(), settings)?;
        filter.insert_batch(&Hashed(&digests));
        Ok(Sieve { window, filter })
    }

    pub fn length(&self) -> usize {
        self.window.length
    }

    /// Returns the digest of the window at a place, if the filter may contain it.
    #[inline]
    pub fn pass(&self, rolling: &mut Rolling, data: &[u8], at: usize) -> Option<Digest> {
        let digest = rolling.digest(data, at, &self.window);
        self.filter.contains_digest(digest).then_some(digest)
    }

    pub fn memory(&self) -> u64 {
        memory(&self.filter)
    }
}

/// A group of signatures of similar length: none is twice as long as another.
#[derive(Debug)]
pub(super) struct Group {
    /// The filter of the first bytes of these signatures and of all longer ones, as many as the
    /// shortest has.
    pub gate: Option<Sieve>,
    /// A filter for each length, shortest first.
    pub lengths: Vec<Sieve>,
}

/// The groups that are tested only where the first bytes of one of their signatures may be.
#[derive(Debug)]
pub(super) struct Class {
    pub front: Front,
    /// The groups, shortest signatures first.
    pub groups: Vec<Group>,
}

/// A signature and its digest.
pub(super) type Signed<'a> = (&'a [u8], Digest);

impl Class {
    /// Returns all classes for these signatures, which are sorted by length.
    pub fn all(sorted: &[Signed], base: Base, settings: &Settings) -> Result<Vec<Class>> {
        let width = |(signature, _): &Signed| Front::width_for(signature.len());
        let classes = sorted.chunk_by(|a, b| width(a) == width(b));
        classes.map(|members| Class::new(members, width(&members[0]), base, settings)).collect()
    }

    fn new(members: &[Signed], width: usize, base: Base, settings: &Settings) -> Result<Class> {
        let magnitude = |(signature, _): &Signed| signature.len().ilog2();
        let mut groups = Vec::new();
        let mut rest = members;
        for group in members.chunk_by(|a, b| magnitude(a) == magnitude(b)) {
            // The front already serves as the gate of the first group.
            let gated = settings.gates && magnitude(&group[0]) > width.ilog2();
            let gate = gated.then(|| Sieve::gate(rest, base, settings)).transpose()?;
            let lengths = group.chunk_by(|(a, _), (b, _)| a.len() == b.len());
            let lengths = lengths.map(|same| Sieve::whole(same, base, settings)).collect::<Result<_>>()?;
            groups.push(Group { gate, lengths });
            rest = &rest[group.len()..];
        }
        Ok(Class { front: Front::new(members, width, settings)?, groups })
    }
}

/// The test that every place of the data undergoes first: whether a signature of the class may
/// begin there.
#[derive(Debug)]
pub(super) struct Front {
    /// The number of bytes tested.
    width: usize,
    starts: Starts,
}

#[derive(Debug)]
enum Starts {
    /// No test: every place passes.
    Any,
    /// A bit for each possible start, which is exact.
    Bits(Vec<u64>),
    /// A filter, where too many starts are possible for bits.
    Filter(Bloom<Blocked>),
}

impl Front {
    /// Returns the number of bytes that the front tests in the class of signatures of this length.
    fn width_for(length: usize) -> usize {
        1 << length.ilog2().min(3)
    }

    /// Returns the number of bytes tested.
    pub fn width(&self) -> usize {
        self.width
    }

    fn new(members: &[Signed], width: usize, settings: &Settings) -> Result<Front> {
        let mut starts: Vec<u64> = members.iter().map(|(signature, _)| number(&signature[..width])).collect();
        let starts = if !settings.gates {
            Starts::Any
        } else if width <= 2 {
            let mut bits = vec![0; (1 << (8 * width)) / 64];
            starts.iter().for_each(|start| bits[*start as usize / 64] |= 1 << (start % 64));
            Starts::Bits(bits)
        } else {
            starts.sort_unstable();
            starts.dedup();
            let mut filter = filter(starts.len(), settings)?;
            filter.insert_batch(&starts[..]);
            Starts::Filter(filter)
        };
        Ok(Front { width, starts })
    }

    /// Sets a bit of the mask for each place from `start` on where a signature may begin. Covers as
    /// many places as the mask has bits.
    pub fn pass(&self, data: &[u8], start: usize, scratch: &mut Vec<u64>, mask: &mut [u64]) {
        mask.fill(0);
        let places = data.get(start..).unwrap_or_default().windows(self.width).take(mask.len() * 64);
        match &self.starts {
            Starts::Any => set(mask, places.map(|_| 1)),
            Starts::Bits(bits) => set(mask, places.map(|place| bit(bits, number(place)))),
            Starts::Filter(filter) => {
                scratch.clear();
                match self.width {
                    // With a constant length, this compiles to one load per place.
                    8 => scratch.extend(places.map(|place| number(&place[..8]))),
                    _ => scratch.extend(places.map(number)),
                }
                let answers = filter.contains_batch(&scratch[..]);
                mask.iter_mut().zip(answers.as_words()).for_each(|(mask, word)| *mask = *word);
            }
        }
    }

    pub fn memory(&self) -> u64 {
        match &self.starts {
            Starts::Any => 0,
            Starts::Bits(bits) => size_of_val(&bits[..]) as u64,
            Starts::Filter(filter) => memory(filter),
        }
    }
}

/// Returns at most eight bytes as a number.
#[inline(always)]
fn number(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(number)
}

#[inline(always)]
fn bit(bits: &[u64], at: u64) -> u64 {
    bits[at as usize / 64] >> (at % 64) & 1
}

/// Sets the bits of the mask in order.
#[inline(always)]
fn set(mask: &mut [u64], bits: impl Iterator<Item = u64>) {
    bits.enumerate().for_each(|(at, bit)| mask[at / 64] |= bit << (at % 64));
}

fn filter(keys: usize, settings: &Settings) -> Result<Bloom<Blocked>> {
    let spec = Spec::new(keys as u64, settings.rate)?;
    Ok(Bloom::build(&spec.with_hasher(Hasher::fast(settings.seed)))?)
}

fn memory(filter: &Bloom<Blocked>) -> u64 {
    size_of_val(filter.words().words()) as u64
}
