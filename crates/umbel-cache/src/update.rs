//! Updates of a summary, as one cache sends them to another: all bits, or the bits that have
//! changed.
//!
//! | bytes | |
//! | --- | --- |
//! | 4 | `UMSU` |
//! | 1 | 1, the version of this format |
//! | 1 | the kind of payload: 0 nothing new, 1 all bits, 2 all bits compressed (zstd), 3 changes |
//! | 8 + 8 | the epoch, random for each summary, and the generation, one more with each publication |
//! | 8 | the number of keys |
//! | 4 | the number of bits |
//! | | the payload: bit `i` in byte `i / 8`; or 8 bytes with the generation that changes apply to, and the changes |
//! | 8 | the checksum of all bytes before it |
//!
//! Integers are little-endian. A change takes 4 bytes: the index of the bit in the lower 31 bits,
//! and the new value of the bit in the highest. Changes carry values instead of flips, so that
//! applying one twice is harmless.

use crate::error::{Error, Result};
use crate::key_filter::{self, MAX_BITS};
use crate::{CacheDigest, CacheKey};
use std::sync::Arc;
use umbel::counting::Flip;
use umbel::file::fields::{Fields, sum};
use umbel::literature::Literature;

/// The version of a published summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    /// A random number that is different for each summary.
    pub epoch: u64,
    /// The number of publications with changes.
    pub generation: u64,
}

/// An update of a summary, for a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The version of the summary after this update.
    pub version: Version,
    /// The number of keys of the cache.
    pub key_count: u64,
    pub(crate) bits: u32,
    pub(crate) payload: Payload,
}

/// The contents of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// The peer has this version already.
    Unchanged,
    AllBits(Arc<Literature>),
    /// The values of the bits that have changed since generation `from`.
    Changes {
        from: u64,
        changes: Vec<(u32, bool)>,
    },
}

/// The name of this format in error messages.
pub(crate) const UPDATE_NAME: &str = "update of a summary";

const MAGIC: [u8; 4] = *b"UMSU";
const FORMAT_VERSION: u8 = 1;
/// The bit of an encoded change that has the new value.
const VALUE_BIT: u32 = 1 << 31;

/// The largest compression ratio, so that a few bytes from a peer cannot claim much memory.
const MAX_COMPRESSION: usize = 64;

impl Update {
    /// The `Content-Type` of an update.
    pub const MEDIA_TYPE: &'static str = "application/x-umbel-summary";

    /// Returns the number of bits of the summary.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns whether the update consists of changes only.
    pub fn is_delta(&self) -> bool {
        matches!(self.payload, Payload::Changes { .. })
    }

    /// Serializes the update. Bits are compressed if that makes them fewer: a sparse summary with
    /// many bits per key can take fewer bytes than a dense one, at a lower rate of false positives
    /// (Mitzenmacher 2002).
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body) = match &self.payload {
            Payload::Unchanged => (0, Vec::new()),
            Payload::AllBits(filter) => {
                let bytes = filter.to_bits();
                match zstd::bulk::compress(&bytes, 1) {
                    Ok(compressed)
                        if compressed.len() < bytes.len()
                            && bytes.len() <= MAX_COMPRESSION * compressed.len() =>
                    {
                        (2, compressed)
                    }
                    _ => (1, bytes),
                }
            }
            Payload::Changes { from, changes } => {
                let record = |(bit, value): &(u32, bool)| if *value { bit | VALUE_BIT } else { *bit };
                let records = changes.iter().flat_map(|change| record(change).to_le_bytes());
                (3, from.to_le_bytes().into_iter().chain(records).collect())
            }
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend([FORMAT_VERSION, kind]);
        for number in [self.version.epoch, self.version.generation, self.key_count] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.bits.to_le_bytes());
        bytes.extend(body);
        let end = sum(&bytes);
        bytes.extend(end.to_le_bytes());
        bytes
    }

    /// Parses an update.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the bytes are not an update of this version.
    pub fn decode(bytes: &[u8]) -> Result<Update> {
        Update::decode_bounded(bytes, MAX_BITS)
    }

    /// Parses an update of a summary with at most `max_bits` bits. A larger one takes no memory.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the bytes are not an update of this version, or have more bits.
    pub fn decode_bounded(bytes: &[u8], max_bits: u32) -> Result<Update> {
        let malformed = |why: &str| Error::malformed(UPDATE_NAME, why);
        let too_short = || malformed("it is too short");
        let (summed, end) = bytes.split_last_chunk::<8>().ok_or_else(too_short)?;
        let mut fields = Fields(summed);
        if fields.array().ok_or_else(too_short)? != MAGIC {
            return Err(malformed("it begins otherwise"));
        }
        let [format_version, kind] = fields.array().ok_or_else(too_short)?;
        if format_version != FORMAT_VERSION {
            return Err(malformed("its form is not known: another version wrote it"));
        }
        if sum(summed).to_le_bytes() != *end {
            return Err(malformed("its sum is not right"));
        }
        let mut number = || fields.u64().ok_or_else(too_short);
        let (version, key_count) = (Version { epoch: number()?, generation: number()? }, number()?);
        let bits = fields.u32().filter(|bits| (1..=MAX_BITS).contains(bits));
        let bits = bits.ok_or_else(|| malformed("it has no bits, or too many"))?;
        if bits > max_bits {
            let why = format!("it has {bits} bits, and at most {max_bits} are accepted");
            return Err(Error::malformed(UPDATE_NAME, why));
        }
        let payload = match kind {
            0 if fields.0.is_empty() => Payload::Unchanged,
            1 => Payload::AllBits(Arc::new(key_filter::from_bytes(fields.0, bits)?)),
            2 => {
                let length = bits.div_ceil(8) as usize;
                if length > fields.0.len().saturating_mul(MAX_COMPRESSION) {
                    return Err(malformed("it claims more bits than it can have"));
                }
                let bytes = zstd::bulk::decompress(fields.0, length).map_err(|error| Error::Malformed {
                    what: UPDATE_NAME,
                    why: "its bits are damaged".into(),
                    source: Some(error.into()),
                })?;
                Payload::AllBits(Arc::new(key_filter::from_bytes(&bytes, bits)?))
            }
            3 => {
                let from = fields.u64().ok_or_else(too_short)?;
                let (records, []) = fields.0.as_chunks::<4>() else { return Err(too_short()) };
                let change = |record: &[u8; 4]| {
                    let record = u32::from_le_bytes(*record);
                    (record & !VALUE_BIT, record & VALUE_BIT > 0)
                };
                let changes: Vec<(u32, bool)> = records.iter().map(change).collect();
                if changes.iter().any(|(bit, _)| *bit >= bits) {
                    return Err(malformed("a change is beyond its bits"));
                }
                Payload::Changes { from, changes }
            }
            _ => return Err(malformed("what it has is not known")),
        };
        Ok(Update { version, key_count, bits, payload })
    }
}

/// The summary of another cache, as of its last update. Clones share the filter until one of them
/// changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    version: Option<Version>,
    key_count: u64,
    filter: Option<Arc<Literature>>,
}

/// The effect of an update on a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The view is up to date already.
    Unchanged,
    /// All bits were replaced.
    Replaced,
    /// This number of bits has changed.
    Changed(u32),
    /// The changes apply to a version that the view does not have; it needs all bits.
    NeedsAllBits,
}

impl View {
    /// Creates the view of one of Squid's cache digests, which have no versions.
    pub fn from_digest(digest: &CacheDigest) -> View {
        let filter = Some(Arc::clone(digest.filter()));
        View { version: None, key_count: digest.count().into(), filter }
    }

    /// Returns the version of the summary.
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// Returns the number of keys of the other cache.
    pub fn key_count(&self) -> u64 {
        self.key_count
    }

    /// Returns the filter of the other cache's keys, or `None` before the first update.
    pub fn filter(&self) -> Option<&Literature> {
        self.filter.as_deref()
    }

    /// Returns whether the other cache may have a response for this key.
    #[inline]
    pub fn contains(&self, key: &CacheKey) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.contains_slices(&key.slices()))
    }

    /// Applies an update.
    ///
    /// # Errors
    ///
    /// [`Error::Filter`] if there is no memory for a copy of a filter that others use; the view
    /// stays unchanged.
    pub fn apply(&mut self, update: &Update) -> Result<Applied> {
        let ours = self.version.filter(|own| own.epoch == update.version.epoch);
        let applied = match &update.payload {
            Payload::AllBits(filter) => {
                self.filter = Some(Arc::clone(filter));
                Applied::Replaced
            }
            // A version that the view does not have may have other bits.
            Payload::Unchanged if ours == Some(update.version) => Applied::Unchanged,
            Payload::Changes { from, changes } if ours.is_some_and(|own| own.generation >= *from) => {
                let Some(filter) =
                    self.filter.as_mut().filter(|own| own.scheme().m() == u64::from(update.bits))
                else {
                    return Ok(Applied::NeedsAllBits);
                };
                // An update that is older than the view would bring back removed keys.
                if ours.is_some_and(|own| own.generation > update.version.generation) {
                    return Ok(Applied::Unchanged);
                }
                let filter = key_filter::make_mut(filter)?;
                let flips = changes.iter().map(|(bit, set)| Flip { index: (*bit).into(), set: *set });
                Applied::Changed(flips.filter(|flip| filter.apply(*flip)).count() as u32)
            }
            _ => return Ok(Applied::NeedsAllBits),
        };
        (self.version, self.key_count) = (Some(update.version), update.key_count);
        Ok(applied)
    }
}
