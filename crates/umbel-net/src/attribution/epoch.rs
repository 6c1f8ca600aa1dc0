//! What is kept of a stretch of time.

use super::{Listed, Method, Settings, WINDOW, format, pairs};
use crate::blocklist::Prefix;
use crate::capture::Time;
use crate::payload::{PayloadFilter, Scheme};
use umbel::sizing::Known;
use umbel::{AnyFilter, Construction, Digest, Filter, Hasher, Kind, Result, Spec};

/// What an epoch says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// What all epochs of one recording have in common.
    pub run: u64,
    /// The epoch's number in it, from 0.
    pub number: u64,
    /// What was recorded.
    pub method: Method,
    /// The bytes of a block.
    pub block: usize,
    /// Whether streams were put together.
    pub streams: bool,
    /// When the first payload was captured.
    pub first: Time,
    /// When the last one was.
    pub last: Time,
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

impl About {
    /// When it was.
    pub fn span(&self) -> (Time, Time) {
        (self.first, self.last)
    }

    pub(super) fn scheme(&self) -> Scheme {
        Scheme { method: self.method.of_blocks(), window: WINDOW }
    }
}

/// Digests of the payloads of some time, and who spoke then.
#[derive(Debug)]
pub struct Epoch {
    pub(super) about: About,
    pub(super) local: Vec<Prefix>,
    pub(super) listed: Vec<Listed>,
    /// Which block was at which place.
    pub(super) offsets: PayloadFilter<AnyFilter>,
    /// And whose it was.
    pub(super) payloads: AnyFilter,
    /// What is mixed into the records of each pair.
    pub(super) salts: Vec<Digest>,
}

/// The records of an epoch, from which its digests are made when it ends and their number is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub offsets: Vec<Digest>,
    pub payloads: Vec<Digest>,
}

impl Epoch {
    pub(super) fn build(
        about: About,
        settings: &Settings,
        hasher: &Hasher,
        listed: Vec<Listed>,
        records: Records,
    ) -> Result<Epoch> {
        let around = format::around(&settings.local) + pairs::to_bytes(&listed, about.span()).len();
        let all = settings.bits_per_block * about.blocks as f64;
        let bits = (all - 8.0 * around as f64).max(all / 2.0);
        let filter = |share: f64, records: Vec<Digest>| {
            let m = (bits * share) as u64;
            let known =
                Known { m: Some(m.max(512)), n: Some(records.len().max(1) as u64), ..Known::default() };
            let spec = Spec::from_known(known)?.with_hasher(hasher.clone());
            AnyFilter::from_digests(Kind::Blocked, &spec, records, &Construction::default())
        };
        // An error of the offset digest costs a look at every pair, one of the payload digest names a wrong one.
        let (offsets, payloads) = (filter(1.0 / 3.0, records.offsets)?, filter(2.0 / 3.0, records.payloads)?);
        Ok(Epoch::of(about, settings.local.clone(), listed, offsets, payloads))
    }

    pub(super) fn of(
        about: About,
        local: Vec<Prefix>,
        listed: Vec<Listed>,
        offsets: AnyFilter,
        payloads: AnyFilter,
    ) -> Epoch {
        let salts = listed.iter().map(|listed| listed.pair.digest(offsets.hasher())).collect();
        let offsets = PayloadFilter::restored(offsets, about.block, about.scheme(), about.longest);
        Epoch { about, local, listed, offsets, payloads, salts }
    }

    /// What it says about itself.
    pub fn about(&self) -> &About {
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

    /// The rates at which records that were never made are found in the offset digest and in the payload digest.
    pub fn rates(&self) -> (f64, f64) {
        (self.offsets.filter().stats().rate_now, self.payloads.stats().rate_now)
    }
}
