//! What travels between caches: all bits of a summary, or those that have changed.
//!
//! | bytes | |
//! | --- | --- |
//! | 4 | `UMSU` |
//! | 1 | 1, the version of this form |
//! | 1 | what follows: 0 nothing new, 1 all bits, 2 all bits compressed (zstd), 3 changes |
//! | 8 + 8 | the epoch, another one whenever a summary is made anew, and the generation, one more with each publication |
//! | 8 | how many documents there are |
//! | 4 | how many bits |
//! | | the bits, bit `i` in byte `i / 8`; or 8 bytes with the generation from which on they are, and changes |
//! | 8 | the sum of all this |
//!
//! Numbers have their lowest byte first. A change is 4 bytes: the bit in the lower 31, and its value above. It is the value
//! that counts and not that it has changed: changes that come twice, or that are known already, do no harm.

use crate::error::{Error, Result};
use crate::key_filter::{self, MAX_BITS};
use crate::{CacheDigest, CacheKey};
use std::sync::Arc;
use umbel::counting::Flip;
use umbel::file::fields::{Fields, sum};
use umbel::literature::Literature;

/// Which state of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    /// Another one whenever the summary is made anew.
    pub epoch: u64,
    /// One more with each publication.
    pub generation: u64,
}

/// What a cache tells another of its summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The state that the other has then.
    pub version: Version,
    /// How many documents there are.
    pub documents: u64,
    pub(crate) bits: u32,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Nothing,
    All(Arc<Literature>),
    Changes { from: u64, changes: Vec<(u32, bool)> },
}

/// The name of the format in errors.
pub(crate) const WHAT: &str = "update of a summary";

const MAGIC: [u8; 4] = *b"UMSU";
const FORM: u8 = 1;
const VALUE: u32 = 1 << 31;

/// By how much bits are compressed at most, so that nobody takes much memory for a few bytes.
const MOST_GAIN: usize = 64;

impl Update {
    /// Of what type it is, as servers say.
    pub const MEDIA_TYPE: &'static str = "application/x-umbel-summary";

    /// How many bits the summary has.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Whether it has changes only.
    pub fn is_delta(&self) -> bool {
        matches!(self.what, What::Changes { .. })
    }

    /// Its bytes. Bits are compressed if that makes them fewer: a summary that has many more bits than documents can
    /// travel in fewer bytes than one that has not, at a lower rate. (Mitzenmacher 2002)
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body) = match &self.what {
            What::Nothing => (0, Vec::new()),
            What::All(filter) => {
                let bytes = filter.to_bits();
                match zstd::bulk::compress(&bytes, 1) {
                    Ok(fewer) if fewer.len() < bytes.len() && bytes.len() <= MOST_GAIN * fewer.len() => {
                        (2, fewer)
                    }
                    _ => (1, bytes),
                }
            }
            What::Changes { from, changes } => {
                let record = |(bit, value): &(u32, bool)| if *value { bit | VALUE } else { *bit };
                let records = changes.iter().flat_map(|change| record(change).to_le_bytes());
                (3, from.to_le_bytes().into_iter().chain(records).collect())
            }
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend([FORM, kind]);
        for number in [self.version.epoch, self.version.generation, self.documents] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.bits.to_le_bytes());
        bytes.extend(body);
        let end = sum(&bytes);
        bytes.extend(end.to_le_bytes());
        bytes
    }

    /// The update in these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Update> {
        let malformed = |why: &str| Error::malformed(WHAT, why);
        let too_short = || malformed("it is too short");
        let (summed, end) = bytes.split_last_chunk::<8>().ok_or_else(too_short)?;
        let mut fields = Fields(summed);
        if fields.array().ok_or_else(too_short)? != MAGIC {
            return Err(malformed("it begins otherwise"));
        }
        let [form, kind] = fields.array().ok_or_else(too_short)?;
        if form != FORM {
            return Err(malformed("its form is not known: another version wrote it"));
        }
        if sum(summed).to_le_bytes() != *end {
            return Err(malformed("its sum is not right"));
        }
        let mut number = || fields.u64().ok_or_else(too_short);
        let (version, documents) = (Version { epoch: number()?, generation: number()? }, number()?);
        let bits = fields.u32().filter(|bits| (1..=MAX_BITS).contains(bits));
        let bits = bits.ok_or_else(|| malformed("it has no bits, or too many"))?;
        let what = match kind {
            0 if fields.0.is_empty() => What::Nothing,
            1 => What::All(Arc::new(key_filter::from_bytes(fields.0, bits)?)),
            2 => {
                let length = bits.div_ceil(8) as usize;
                if length > fields.0.len().saturating_mul(MOST_GAIN) {
                    return Err(malformed("it claims more bits than it can have"));
                }
                let bytes = zstd::bulk::decompress(fields.0, length).map_err(|error| Error::Malformed {
                    what: WHAT,
                    why: "its bits are damaged".into(),
                    source: Some(error.into()),
                })?;
                What::All(Arc::new(key_filter::from_bytes(&bytes, bits)?))
            }
            3 => {
                let from = fields.u64().ok_or_else(too_short)?;
                let (records, []) = fields.0.as_chunks::<4>() else { return Err(too_short()) };
                let change = |record: &[u8; 4]| {
                    let record = u32::from_le_bytes(*record);
                    (record & !VALUE, record & VALUE > 0)
                };
                let changes: Vec<(u32, bool)> = records.iter().map(change).collect();
                if changes.iter().any(|(bit, _)| *bit >= bits) {
                    return Err(malformed("a change is beyond its bits"));
                }
                What::Changes { from, changes }
            }
            _ => return Err(malformed("what it has is not known")),
        };
        Ok(Update { version, documents, bits, what })
    }
}

/// What a cache knows of the summary of another. A copy shares the filter until one of the two changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    version: Option<Version>,
    documents: u64,
    filter: Option<Arc<Literature>>,
}

/// What came of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Nothing is new.
    Same,
    /// All bits are new.
    Replaced,
    /// So many bits have changed.
    Changed(u32),
    /// These are changes of a state that is not known here: all bits are needed.
    Unknown,
}

impl View {
    /// The view of a digest of Squid, which has no versions.
    pub fn from_digest(digest: &CacheDigest) -> View {
        let filter = Some(Arc::clone(digest.filter()));
        View { version: None, documents: digest.count().into(), filter }
    }

    /// Which state it is.
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// How many documents the other has.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns the filter of the other's documents; `None` before the first update.
    pub fn filter(&self) -> Option<&Literature> {
        self.filter.as_deref()
    }

    /// Returns whether the other may have a document.
    #[inline]
    pub fn contains(&self, key: &CacheKey) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.contains_slices(&key.slices()))
    }

    /// Applies an update.
    ///
    /// # Errors
    ///
    /// [`Error::Filter`] if there is no memory for a copy of a filter that others use; the view is as it was.
    pub fn apply(&mut self, update: &Update) -> Result<Applied> {
        let known = self.version.filter(|ours| ours.epoch == update.version.epoch);
        let applied = match &update.what {
            What::All(filter) => {
                self.filter = Some(Arc::clone(filter));
                Applied::Replaced
            }
            What::Nothing if known.is_some() => Applied::Same,
            What::Changes { from, changes } if known.is_some_and(|ours| ours.generation >= *from) => {
                let Some(filter) =
                    self.filter.as_mut().filter(|ours| ours.scheme().m() == u64::from(update.bits))
                else {
                    return Ok(Applied::Unknown);
                };
                // What is older than what is known here would bring it back.
                if known.is_some_and(|ours| ours.generation > update.version.generation) {
                    return Ok(Applied::Same);
                }
                let filter = key_filter::make_mut(filter)?;
                let flips = changes.iter().map(|(bit, set)| Flip { index: (*bit).into(), set: *set });
                Applied::Changed(flips.filter(|flip| filter.apply(*flip)).count() as u32)
            }
            _ => return Ok(Applied::Unknown),
        };
        (self.version, self.documents) = (Some(update.version), update.documents);
        Ok(applied)
    }
}
