//! Epochs: the records of a period of time.

use super::{Listed, Method, Settings, WINDOW, format, pairs};
use crate::capture::Timestamp;
use crate::network::Prefix;
use crate::payload::winnowing::{Block, Winnowing};
use crate::payload::{PayloadFilter, Scheme};
use crate::{Error, Result};
use std::sync::OnceLock;
use umbel::internals::TILE;
use umbel::sizing::{self, Given};
use umbel::spec::plan;
use umbel::{AnyFilter, Digest, Hasher, Kind, Spec};

/// A description of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochInfo {
    /// The number that all epochs of one recording share.
    pub run: u64,
    /// The number of the epoch within its recording, from 0.
    pub number: u64,
    /// The method that cut and recorded payloads.
    pub method: Method,
    /// The size of a block in bytes; for winnowing, the largest distance between boundaries.
    pub block: usize,
    /// The number of independent winnowings; 0 for other methods.
    pub instances: u32,
    /// Whether streams were reassembled.
    pub streams: bool,
    /// The time of the first payload.
    pub first: Timestamp,
    /// The time of the last payload.
    pub last: Timestamp,
    /// The number of payloads and pieces of streams.
    pub payloads: u64,
    /// The number of bytes in the payloads.
    pub bytes: u64,
    /// The number of recorded blocks.
    pub blocks: u64,
    /// The number of blocks in the longest payload or stream.
    pub longest: u64,
    /// The number of payloads of pairs that did not fit in the list.
    pub unlisted: u64,
    /// Whether the epoch has a block filter.
    pub block_digest: bool,
}

impl EpochInfo {
    /// Returns an empty epoch that begins now.
    pub(super) fn new(settings: &Settings, run: u64, number: u64, now: Timestamp) -> EpochInfo {
        EpochInfo {
            run,
            number,
            method: settings.method,
            block: settings.block,
            instances: if settings.method == Method::Winnowing { settings.instances } else { 0 },
            streams: settings.streams,
            first: now,
            last: now,
            payloads: 0,
            bytes: 0,
            blocks: 0,
            longest: 0,
            unlisted: 0,
            block_digest: settings.block_digest,
        }
    }

    /// Returns the times of the first and the last payload.
    pub fn span(&self) -> (Timestamp, Timestamp) {
        (self.first, self.last)
    }

    /// Returns the numbering and grouping of blocks of equal size.
    pub(super) fn scheme(&self) -> Scheme {
        Scheme { method: self.method, window: WINDOW }
    }

    /// Returns the numbering and grouping of half blocks.
    pub(super) fn half_scheme(&self) -> Scheme {
        Scheme { window: 2 * WINDOW, ..self.scheme() }
    }

    /// Returns the size of half a block in bytes.
    pub(super) fn half(&self) -> usize {
        self.block / 2
    }

    /// Returns the winnowing, which has the same boundaries in all epochs of a run, so that streams
    /// continue across epochs.
    pub(super) fn winnowing(&self) -> Result<Winnowing> {
        Winnowing::new(self.block, self.instances, OVERLAP_BYTES, Hasher::fast(self.run))
    }

    /// Returns the record of a block, which differs between epochs.
    pub(super) fn winnowed(&self, block: &Block) -> Digest {
        block.digest.salted(self.number)
    }
}

/// The number of bytes of the next block that a winnowed block includes.
const OVERLAP_BYTES: usize = 8;

/// The filter that holds each block of a payload with its number, which determines its offset.
pub(super) type OffsetFilter = PayloadFilter<AnyFilter>;

/// The filters of the payloads of a period of time, and the pairs that communicated in it.
#[derive(Debug)]
pub struct Epoch {
    pub(super) about: EpochInfo,
    pub(super) local: Vec<Prefix>,
    pub(super) listed: Vec<Listed>,
    pub(super) cut: Cut,
    /// The filter that holds each block without its number, if there is one.
    pub(super) block_filter: Option<AnyFilter>,
    /// The filter that holds each half of a block, or each winnowed block, with its pair.
    pub(super) payload_filter: AnyFilter,
    /// The salts that are mixed into the records of each pair.
    pub(super) salts: Vec<Digest>,
    /// See [`Epoch::rate`].
    rate: OnceLock<f64>,
}

/// The filters of an epoch.
#[derive(Debug)]
pub(super) struct Filters {
    pub blocks: Option<AnyFilter>,
    /// Blocks of equal size come with an offset filter.
    pub offsets: Option<AnyFilter>,
    pub payloads: AnyFilter,
}

/// The way payloads were cut.
#[derive(Debug)]
pub(super) enum Cut {
    /// Into blocks of equal size.
    Evenly(Box<OffsetFilter>),
    /// At boundaries determined by their content.
    Winnowed(Box<Winnowing>),
}

/// The records of an epoch. The filters are built from them when the epoch ends, because only then
/// is their number known.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub blocks: Vec<Digest>,
    pub offsets: Vec<Digest>,
    pub payloads: Vec<Digest>,
}

/// Returns the settings of a filter of `m` bits for `n` records.
///
/// A filter stores the rate that it is planned for. For a standard filter, epochs have always stored
/// that of the classic formula, which is a little too low for small filters. It is stated here, so
/// that the same packets make the same bytes in every version.
fn spec(kind: Kind, m: u64, n: u64) -> Result<Spec> {
    let given = Given { m: Some(m), n: Some(n), ..Given::default() };
    let spec = Spec::from_given(given)?;
    let plan = plan(kind, &spec)?;
    if plan.kind != Kind::Standard {
        return Ok(spec);
    }
    let p = sizing::rate::classic(m, n, plan.hashes)?;
    // A rate below what digests can tell apart cannot be asked for.
    Ok(Spec::from_given(Given { p: Some(p), ..given }).unwrap_or(spec))
}

impl Epoch {
    pub(super) fn build(
        about: EpochInfo,
        settings: &Settings,
        hasher: &Hasher,
        listed: Vec<Listed>,
        records: &Records,
    ) -> Result<Epoch> {
        let around = format::around(&settings.local, about.block_digest)
            + pairs::to_bytes(&listed, about.span()).len();
        let all = settings.bits_per_block * about.blocks as f64;
        let bits = (all - 8.0 * around as f64).max(all / 2.0);
        let filter = |share: f64, records: &[Digest]| {
            let (m, n) = ((bits * share).max(512.0) as u64, records.len().max(1) as u64);
            // A blocked filter sets eight bits for each record, which is too many with fewer than
            // eight bits per record.
            let kind = if m < 8 * n { Kind::Standard } else { Kind::Blocked };
            let mut filter = AnyFilter::build(kind, &spec(kind, m, n)?.with_hasher(hasher.clone()))?;
            records.chunks(TILE).try_for_each(|tile| filter.insert_tile(tile))?;
            Ok::<_, Error>(filter)
        };
        let local = settings.local.clone();
        if about.method == Method::Winnowing {
            let filters = Filters { blocks: None, offsets: None, payloads: filter(1.0, &records.payloads)? };
            return Epoch::from_parts(about, local, listed, filters);
        }
        // An error of the block filter costs the lookups that it was meant to save; an error of the
        // offset filter costs a test of every pair; an error of the payload filter reports a wrong
        // pair.
        let (of_blocks, of_offsets) = if about.block_digest { (0.125, 0.1875) } else { (0.0, 0.25) };
        let filters = Filters {
            blocks: about.block_digest.then(|| filter(of_blocks, &records.blocks)).transpose()?,
            offsets: Some(filter(of_offsets, &records.offsets)?),
            payloads: filter(1.0 - of_blocks - of_offsets, &records.payloads)?,
        };
        Epoch::from_parts(about, local, listed, filters)
    }

    /// Returns the epoch with these parts.
    pub(super) fn from_parts(
        about: EpochInfo,
        local: Vec<Prefix>,
        listed: Vec<Listed>,
        filters: Filters,
    ) -> Result<Epoch> {
        let Filters { blocks: block_filter, offsets: offset_filter, payloads: payload_filter } = filters;
        let salts = listed.iter().map(|listed| listed.pair.digest(payload_filter.hasher())).collect();
        let cut = match offset_filter {
            Some(filter) => {
                let scheme = about.scheme();
                Cut::Evenly(Box::new(PayloadFilter::restored(filter, about.block, scheme, about.longest)))
            }
            None => Cut::Winnowed(Box::new(about.winnowing()?)),
        };
        let rate = OnceLock::new();
        Ok(Epoch { about, local, listed, cut, block_filter, payload_filter, salts, rate })
    }

    /// Returns the block filter, if there is one.
    pub fn block_filter(&self) -> Option<&AnyFilter> {
        self.block_filter.as_ref()
    }

    /// Returns whether all of these blocks may have passed, by the block filter alone. Without one,
    /// any may have.
    pub(super) fn admits(&self, blocks: &[Digest]) -> bool {
        let holds_all = |filter: &AnyFilter| blocks.iter().all(|block| filter.contains_digest(*block));
        self.block_filter.as_ref().is_none_or(holds_all)
    }

    /// Returns the description of the epoch.
    pub fn about(&self) -> &EpochInfo {
        &self.about
    }

    /// Returns the networks that were local when the epoch was recorded.
    pub fn local(&self) -> &[Prefix] {
        &self.local
    }

    /// Returns the pairs that communicated.
    pub fn listed(&self) -> &[Listed] {
        &self.listed
    }

    /// Returns the false-positive rate of the payload filter. The first call reads the whole
    /// filter.
    pub(super) fn rate(&self) -> f64 {
        *self.rate.get_or_init(|| self.payload_filter.stats().rate_now)
    }
}
