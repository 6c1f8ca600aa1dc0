//! What is kept of a stretch of time.

use super::{Listed, Method, Settings, WINDOW, format, pairs};
use crate::capture::Timestamp;
use crate::network::Prefix;
use crate::payload::winnowing::{Block, Winnowing};
use crate::payload::{PayloadFilter, Scheme};
use crate::{Error, Result};
use std::sync::OnceLock;
use umbel::internals::TILE;
use umbel::sizing::Given;
use umbel::{AnyFilter, Digest, Hasher, Kind, Spec};

/// A description of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochInfo {
    /// What all epochs of one recording have in common.
    pub run: u64,
    /// The epoch's number in it, from 0.
    pub number: u64,
    /// What was recorded.
    pub method: Method,
    /// The bytes of a block; of winnowing, how far its ends are apart at most.
    pub block: usize,
    /// How many times winnowing has cut; otherwise 0.
    pub instances: u32,
    /// Whether streams were put together.
    pub streams: bool,
    /// When the first payload was captured.
    pub first: Timestamp,
    /// When the last one was.
    pub last: Timestamp,
    /// Payloads, and pieces of streams, that were given.
    pub payloads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that were recorded.
    pub blocks: u64,
    /// How many blocks the longest payload or stream had.
    pub longest: u64,
    /// Payloads of pairs that were too many to be listed.
    pub unlisted: u64,
}

impl EpochInfo {
    /// An epoch that begins now, with nothing in it.
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
        }
    }

    /// When it was.
    pub fn span(&self) -> (Timestamp, Timestamp) {
        (self.first, self.last)
    }

    /// How blocks of equal size are numbered and grouped.
    pub(super) fn scheme(&self) -> Scheme {
        Scheme { method: self.method, window: WINDOW }
    }

    /// The same for their halves.
    pub(super) fn half_scheme(&self) -> Scheme {
        Scheme { window: 2 * WINDOW, ..self.scheme() }
    }

    /// The bytes of half a block.
    pub(super) fn half(&self) -> usize {
        self.block / 2
    }

    /// Where winnowing cuts, which is the same in all epochs of a run, so that streams go on.
    pub(super) fn winnowing(&self) -> Result<Winnowing> {
        Winnowing::new(self.block, self.instances, OVERLAP_BYTES, Hasher::fast(self.run))
    }

    /// The same block has another record in another epoch.
    pub(super) fn winnowed(&self, block: &Block) -> Digest {
        block.digest.salted(self.number)
    }
}

/// The number of bytes of the next block that belong to a block of winnowing.
const OVERLAP_BYTES: usize = 8;

/// The filter that holds each block of a payload with its number, which gives its offset.
pub(super) type OffsetFilter = PayloadFilter<AnyFilter>;

/// Filters of the payloads of some time, and the pairs that spoke then.
#[derive(Debug)]
pub struct Epoch {
    pub(super) about: EpochInfo,
    pub(super) local: Vec<Prefix>,
    pub(super) listed: Vec<Listed>,
    pub(super) cut: Cut,
    /// The filter that holds each half of a block, or each winnowed block, with its pair.
    pub(super) payload_filter: AnyFilter,
    /// What is mixed into the records of each pair.
    pub(super) salts: Vec<Digest>,
    /// See [`Epoch::rate`].
    rate: OnceLock<f64>,
}

/// How payloads were cut.
#[derive(Debug)]
pub(super) enum Cut {
    /// Into blocks of equal size.
    Evenly(Box<OffsetFilter>),
    /// Where their content says so.
    Winnowed(Box<Winnowing>),
}

/// The records of an epoch, from which its filters are built when it ends and their number is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub offsets: Vec<Digest>,
    pub payloads: Vec<Digest>,
}

impl Epoch {
    pub(super) fn build(
        about: EpochInfo,
        settings: &Settings,
        hasher: &Hasher,
        listed: Vec<Listed>,
        records: &Records,
    ) -> Result<Epoch> {
        let around = format::around(&settings.local) + pairs::to_bytes(&listed, about.span()).len();
        let all = settings.bits_per_block * about.blocks as f64;
        let bits = (all - 8.0 * around as f64).max(all / 2.0);
        let filter = |share: f64, records: &[Digest]| {
            let (m, n) = ((bits * share).max(512.0) as u64, records.len().max(1) as u64);
            // A blocked filter sets eight bits for each record, which is too many if it has fewer.
            let kind = if m < 8 * n { Kind::Standard } else { Kind::Blocked };
            let given = Given { m: Some(m), n: Some(n), ..Given::default() };
            let mut filter = AnyFilter::build(kind, &Spec::from_given(given)?.with_hasher(hasher.clone()))?;
            records.chunks(TILE).try_for_each(|tile| filter.insert_tile(tile))?;
            Ok::<_, Error>(filter)
        };
        let local = settings.local.clone();
        if about.method == Method::Winnowing {
            return Epoch::from_parts(about, local, listed, None, filter(1.0, &records.payloads)?);
        }
        // An error of the offset filter costs a look at every pair, one of the payload filter names a wrong one.
        let (offsets, payloads) = (filter(0.25, &records.offsets)?, filter(0.75, &records.payloads)?);
        Epoch::from_parts(about, local, listed, Some(offsets), payloads)
    }

    /// Returns the epoch with these parts. Blocks of equal size come with an offset filter.
    pub(super) fn from_parts(
        about: EpochInfo,
        local: Vec<Prefix>,
        listed: Vec<Listed>,
        offset_filter: Option<AnyFilter>,
        payload_filter: AnyFilter,
    ) -> Result<Epoch> {
        let salts = listed.iter().map(|listed| listed.pair.digest(payload_filter.hasher())).collect();
        let cut = match offset_filter {
            Some(filter) => {
                let scheme = about.scheme();
                Cut::Evenly(Box::new(PayloadFilter::restored(filter, about.block, scheme, about.longest)))
            }
            None => Cut::Winnowed(Box::new(about.winnowing()?)),
        };
        Ok(Epoch { about, local, listed, cut, payload_filter, salts, rate: OnceLock::new() })
    }

    /// Returns the description of the epoch.
    pub fn about(&self) -> &EpochInfo {
        &self.about
    }

    /// The networks that were local when it was recorded.
    pub fn local(&self) -> &[Prefix] {
        &self.local
    }

    /// Who spoke.
    pub fn listed(&self) -> &[Listed] {
        &self.listed
    }

    /// Returns the false-positive rate of the payload filter. The first call reads the whole filter.
    pub(super) fn rate(&self) -> f64 {
        *self.rate.get_or_init(|| self.payload_filter.stats().rate_now)
    }
}
