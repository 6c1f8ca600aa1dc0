//! Encoding and decoding of an epoch's file, whose layout is described in [`store`](super::store).

use super::epoch::{Cut, Filters};
use super::{Epoch, EpochInfo, Method, pairs};
use crate::capture::Timestamp;
use crate::network::Prefix;
use crate::{Error, Result};
use umbel::AnyFilter;
use umbel::any::Stored;
use umbel::file::fields::{Fields, sum};
use umbel::file::{self, FormatError};
use umbel::hash::KeyRing;

const MAGIC: &[u8; 8] = b"UMBELPAS";
/// The version of files without a block filter.
const VERSION: u32 = 1;
/// The version of files with a block filter. Older programs refuse it.
const VERSION_WITH_BLOCKS: u32 = 2;
const CHECKSUM_BYTES: usize = 8;
/// The size of the header: magic, version, method, length, twelve numbers, four counts and the
/// checksum.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 12 * 8 + 4 * 8 + CHECKSUM_BYTES;
/// The size of the longest header, which has a fifth count: the size of the block filter.
pub(super) const MAX_HEADER_BYTES: usize = HEADER_BYTES + 8;

/// Returns the size of an epoch's file apart from the list of pairs and the contents of the
/// filters. The headers of the filter files are included.
pub(super) fn around(local: &[Prefix], block_digest: bool) -> usize {
    let filters = 2 + usize::from(block_digest);
    header_bytes(block_digest) + local.len() * Prefix::BYTES + filters * 256 + CHECKSUM_BYTES
}

fn header_bytes(block_digest: bool) -> usize {
    if block_digest { MAX_HEADER_BYTES } else { HEADER_BYTES }
}

/// The header of a file, which has a checksum of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct EpochHeader {
    pub about: EpochInfo,
    /// The number of local networks, and the sizes of the list, the offset filter and the payload
    /// filter in bytes.
    counts: [u64; 4],
    /// The size of the block filter in bytes; 0 if there is none.
    block_filter: u64,
}

impl Epoch {
    /// Encodes the epoch as the bytes of a file.
    ///
    /// # Errors
    ///
    /// Fails if a filter cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let EpochInfo { run, number, method, block, instances, streams, first, last, .. } = self.about;
        let EpochInfo { payloads, bytes, blocks, longest, unlisted, .. } = self.about;
        let listed = pairs::to_bytes(&self.listed, self.about.span());
        let file = |filter: &AnyFilter| file::to_bytes(filter, &file::Options::default());
        let offsets = match &self.cut {
            Cut::Evenly(offset_filter) => file(offset_filter.filter())?,
            Cut::Winnowed(_) => Vec::new(),
        };
        let payload_filter = file(&self.payload_filter)?;
        let block_filter = self.block_filter.as_ref().map(file).transpose()?;
        let mut parts: Vec<&[u8]> = vec![&listed, &offsets, &payload_filter];
        parts.extend(block_filter.as_deref());
        let after = self.local.len() * Prefix::BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
        let length = header_bytes(block_filter.is_some()) + after + CHECKSUM_BYTES;
        let mut out = Vec::with_capacity(length);
        out.extend(MAGIC);
        let method: u32 = match method {
            Method::BlockBased => 0,
            Method::Hierarchical => 1,
            Method::Winnowing => 2,
        };
        let version = if block_filter.is_some() { VERSION_WITH_BLOCKS } else { VERSION };
        out.extend([version, method].map(u32::to_le_bytes).as_flattened());
        let numbers = [
            length as u64,
            run,
            number,
            block as u64,
            instances.into(),
            streams.into(),
            first.nanos(),
            last.nanos(),
            payloads,
            bytes,
            blocks,
            longest,
            unlisted,
            self.local.len() as u64,
        ];
        out.extend(numbers.map(u64::to_le_bytes).as_flattened());
        parts.iter().for_each(|part| out.extend((part.len() as u64).to_le_bytes()));
        out.extend(sum(&out).to_le_bytes());
        self.local.iter().for_each(|network| out.extend(network.to_bytes()));
        parts.iter().for_each(|part| out.extend(*part));
        out.extend(sum(&out).to_le_bytes());
        Ok(out)
    }

    /// Decodes and verifies the bytes of a file.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not an epoch, have an unknown version, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Epoch> {
        let head = EpochHeader::read(bytes, bytes.len() as u64)?;
        let header = header_bytes(head.about.block_digest);
        let whole = bytes.split_last_chunk::<CHECKSUM_BYTES>().filter(|(before, _)| before.len() >= header);
        // The length in the header matches, so only the header can be incomplete here.
        let (before, end) = whole.ok_or_else(|| invalid("it is shorter than its header"))?;
        if sum(before) != u64::from_le_bytes(*end) {
            return Err(FormatError::Damaged { part: "the epoch".into() }.into());
        }
        let mut fields = Fields(&before[header..]);
        let short = || invalid("it claims more than it has");
        let [local, listed, offsets, payloads] = head.counts;
        let local = fields.records(local, Prefix::BYTES).ok_or_else(short)?;
        let local: Option<Vec<Prefix>> = local.map(Prefix::from_bytes).collect();
        let local = local.ok_or_else(|| invalid("an invalid network"))?;
        let listed = fields.bytes(listed).ok_or_else(short)?;
        let listed = pairs::from_bytes(listed, head.about.span());
        let listed = listed.ok_or_else(|| invalid("an invalid list of pairs"))?;
        let offsets = fields.bytes(offsets).ok_or_else(short)?;
        let winnowed = head.about.method == Method::Winnowing;
        if winnowed != offsets.is_empty() {
            return Err(invalid("an offset filter that does not fit its method"));
        }
        let offsets = if winnowed { None } else { Some(read_filter(offsets)?) };
        let payloads = read_filter(fields.bytes(payloads).ok_or_else(short)?)?;
        let blocks = fields.bytes(head.block_filter).ok_or_else(short)?;
        if head.about.block_digest == blocks.is_empty() || (winnowed && !blocks.is_empty()) {
            return Err(invalid("a block filter that does not fit its method"));
        }
        let blocks = if blocks.is_empty() { None } else { Some(read_filter(blocks)?) };
        if !fields.0.is_empty() {
            return Err(invalid("bytes after its last part"));
        }
        if offsets.iter().chain(&blocks).any(|filter| filter.hasher() != payloads.hasher()) {
            return Err(invalid("two filters with different hashes"));
        }
        Epoch::from_parts(head.about, local, listed, Filters { blocks, offsets, payloads })
    }
}

impl EpochHeader {
    /// Reads the header of a file of length `found`.
    pub fn read(bytes: &[u8], found: u64) -> Result<EpochHeader> {
        let mut fields = Fields(bytes);
        let short = || FormatError::Length { expected: (HEADER_BYTES + CHECKSUM_BYTES) as u64, found };
        match fields.array() {
            Some(magic) if &magic == MAGIC => {}
            // A file may be truncated anywhere.
            None if MAGIC.starts_with(bytes) => return Err(short().into()),
            _ => return Err(invalid("it is not an epoch of a store")),
        }
        let block_digest = match fields.u32().ok_or_else(short)? {
            VERSION => false,
            VERSION_WITH_BLOCKS => true,
            version => {
                let what = format!("version {version} of the format of epochs");
                return Err(FormatError::Unknown { what }.into());
            }
        };
        let head = bytes.get(..header_bytes(block_digest));
        let Some((head, end)) = head.and_then(|head| head.split_last_chunk::<CHECKSUM_BYTES>()) else {
            return Err(short().into());
        };
        if sum(head) != u64::from_le_bytes(*end) {
            return Err(FormatError::Damaged { part: "the header".into() }.into());
        }
        let method = match fields.u32().ok_or_else(short)? {
            0 => Method::BlockBased,
            1 => Method::Hierarchical,
            2 => Method::Winnowing,
            other => return Err(FormatError::Unknown { what: format!("method {other}") }.into()),
        };
        let mut number = || fields.u64().ok_or_else(short);
        let length = number()?;
        if length != found {
            return Err(FormatError::Length { expected: length, found }.into());
        }
        let about = EpochInfo {
            run: number()?,
            number: number()?,
            method,
            block: usize::try_from(number()?).unwrap_or(usize::MAX),
            instances: u32::try_from(number()?).unwrap_or(u32::MAX),
            streams: number()? != 0,
            first: Timestamp::from_nanos(number()?),
            last: Timestamp::from_nanos(number()?),
            payloads: number()?,
            bytes: number()?,
            blocks: number()?,
            longest: number()?,
            unlisted: number()?,
            block_digest,
        };
        let counts = [number()?, number()?, number()?, number()?];
        let block_filter = if block_digest { number()? } else { 0 };
        let is_winnowed = method == Method::Winnowing;
        let is_cut = method.can_cut(about.block) && (!is_winnowed || about.winnowing().is_ok());
        if !is_cut || about.first > about.last {
            return Err(invalid("impossible numbers"));
        }
        Ok(EpochHeader { about, counts, block_filter })
    }
}

fn read_filter(bytes: &[u8]) -> Result<AnyFilter> {
    match file::from_bytes(bytes, &KeyRing::new())?.filter {
        Stored::Set(filter) => Ok(filter),
        _ => Err(invalid("a filter that is not a set")),
    }
}

fn invalid(what: &str) -> Error {
    FormatError::Invalid { what: what.into() }.into()
}
