//! Payload attribution: which hosts sent an excerpt, to whom, and when (Shanmugasundaram,
//! Brönnimann and Memon 2004).
//!
//! A [`Recorder`] takes packets and turns them into [`Epoch`]s. An epoch holds filters of the
//! blocks of its payloads and the list of pairs (source and destination) that communicated, but not
//! the payloads. A [`Store`] keeps epochs in a folder. Long afterwards, an excerpt of the traffic
//! can be looked up:
//!
//! ```
//! use umbel_net::attribution::{Recorder, Settings, Store};
//! use umbel_net::capture::{Link, Packet, Timestamp};
//!
//! let folder = tempfile::tempdir()?;
//! let store = Store::create(folder.path().join("store"))?;
//!
//! // UDP from 10.0.0.1 to 10.0.0.2.
//! let text = "From: the inside. To: the outside. Enclosed are the plans for the next year, as agreed. Burn this.";
//! let mut frame = vec![0x45, 0, 0, 28 + text.len() as u8, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
//! frame.extend([0, 53, 0, 99, 0, 8 + text.len() as u8, 0, 0]);
//! frame.extend(text.as_bytes());
//! let packet = Packet::from_frame(Link::RAW, &frame, Timestamp::from_secs(1_700_000_000), 0)?;
//!
//! let mut recorder = Recorder::new(Settings::default(), 1)?;
//! if let Some(full) = recorder.record(&packet)? {
//!     store.add(&full)?;
//! }
//! if let Some(last) = recorder.finish()? {
//!     store.add(&last)?;
//! }
//!
//! let answer = store.find(&text.as_bytes()[9..89], ..)?;
//! let found = &answer.searched[0].found.findings[0];
//! assert_eq!(found.listed.pair.source, Some("10.0.0.1".parse()?));
//! assert_eq!((found.position(), found.blocks), (Some(9), 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is recorded
//!
//! The *offset filter* holds each block of a payload with its number. The *payload filter* holds
//! each half of a block with its number and the pair. A query looks up the excerpt in the offset
//! filter, in every alignment and at every place, and tests each match against the payload filter
//! for every pair of the epoch.
//!
//! Splitting blocks into halves costs no memory, since each half takes half the bits. It extends
//! the comparison into the bytes before the first and after the last whole block, so that less than
//! half a block at either end is not compared. In real traffic, where many payloads are alike, most
//! wrong attributions come from those bytes.
//!
//! The *block filter* ([`Settings::block_digest`]) is optional: it holds each block without its
//! number. One lookup in it replaces 64 in the offset filter for a block that never passed, so that
//! an alignment of the excerpt, or a block of a document, is excluded sooner. It takes its share of
//! the memory from the other two.
//!
//! Each epoch has its own seed, so that records that collide in one epoch do not collide in the
//! next. See [`payload`](crate::payload) for blocks, and [`Method`] for the ways to record them.
//!
//! Block numbers are stored modulo [`WINDOW`]. So an excerpt has that many possible places, however
//! long payloads and streams are, and the position in a longer payload is known up to a multiple of
//! `WINDOW` blocks.
//!
//! [`Method::Winnowing`] cuts payloads at boundaries that their content determines. There are no
//! alignments and no block numbers then: an excerpt has the same blocks as the payload, and the
//! payload filter is queried directly.
//!
//! # What a finding proves
//!
//! There are no false negatives: a pair is always found if it carried the excerpt in a payload, or
//! in the followed part of a stream ([`streams`](crate::capture::streams) describes when a stream
//! is not followed), and at least one whole block of it can be compared.
//!
//! A pair may be reported by chance; [`Finding::chance`] is the expected number of such pairs. Some
//! bytes at both ends of an excerpt are not compared; [`Finding::not_compared`] counts them. The
//! destination of a payload can be relied on. Its source may be forged, unless it lies in a network
//! that keeps out forged sources: see [`Trust`].
//!
//! Payloads shorter than a block leave no record. A text split into small packets is found only if
//! streams are reassembled ([`Settings::streams`]); a text stuffed with no-ops is found by any
//! piece between them that has two blocks.
//!
//! # References
//!
//! * K. Shanmugasundaram, H. Brönnimann and N. Memon. *Payload attribution via hierarchical Bloom
//!   filters.* CCS 2004. `SBM04`
//! * M. Ponec, P. Giura, H. Brönnimann and J. Wein. *Highly efficient techniques for network
//!   forensics.* CCS 2007. `PGBW07`

mod chain;
mod document;
mod epoch;
mod find;
mod format;
mod pairs;
mod recorder;
pub mod store;

pub use crate::payload::Method;
pub use document::{Part, Parts, united};
pub use epoch::{Epoch, EpochInfo};
pub use find::{ExcerptFindings, Finding};
pub use pairs::{Listed, Pair};
pub use recorder::{Recorded, Recorder};
pub use store::{Answer, Searched, Store, Unread};

use crate::network::Prefix;
use crate::payload::winnowing::{MAX_WINDOW, Winnowing};
use crate::{Error, Result};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use umbel::Hasher;

/// The number of blocks after which block numbers start again at 0.
pub const WINDOW: u64 = 64;

/// The settings of a recorder. [`Settings::for_method`] returns the defaults of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The method that cuts and records payloads.
    pub method: Method,
    /// The size of a block in bytes; for [winnowing](Method::Winnowing), the largest distance
    /// between boundaries.
    pub block: usize,
    /// The number of independent winnowings.
    pub instances: u32,
    /// The total size of an epoch in bits per block: the filters, the list of pairs and the
    /// framing. The list takes the space it needs, and the filters the rest, but at least half of
    /// the total.
    pub bits_per_block: f64,
    /// The time after which an epoch ends; `None` for no limit.
    pub epoch: Option<Duration>,
    /// The number of bytes of payload after which an epoch ends.
    pub full: u64,
    /// The number of pairs of each kind that an epoch lists; see [`Listed`].
    pub pairs: usize,
    /// Whether TCP streams are reassembled.
    pub streams: bool,
    /// The local networks: those in whose name no outside host can send.
    pub local: Vec<Prefix>,
    /// Whether an epoch also has a block filter, which excludes most excerpts that were not carried
    /// at a fraction of the cost. Only for blocks of equal size.
    pub block_digest: bool,
}

impl Default for Settings {
    /// Returns the defaults of [`Method::BlockBased`].
    fn default() -> Settings {
        Settings::for_method(Method::default())
    }
}

impl Settings {
    /// Returns the defaults of a method: blocks of 32 bytes with 25 bits each, which is less than a
    /// tenth of the payload. Winnowing cuts twice, into blocks of at most 64 bytes with 2.5 bits
    /// each, which is less than a fiftieth. Epochs end at 64 MiB and list 65 536 pairs.
    pub fn for_method(method: Method) -> Settings {
        let (block, bits_per_block) = match method {
            Method::BlockBased | Method::Hierarchical => (32, 25.0),
            Method::Winnowing => (64, 2.5),
        };
        Settings {
            method,
            block,
            instances: 2,
            bits_per_block,
            epoch: None,
            full: 64 << 20,
            pairs: 1 << 16,
            streams: false,
            local: Vec::new(),
            block_digest: false,
        }
    }

    fn check(&self) -> Result<()> {
        let Settings { block, bits_per_block, epoch, full, pairs, .. } = self;
        if !self.method.can_cut(*block) {
            let needs = match self.method {
                Method::Winnowing => format!("1 to {MAX_WINDOW} bytes if it is winnowed"),
                _ => "an even number of bytes, from 4 to 65536".into(),
            };
            return Err(Error::parameter("block", block, needs));
        }
        if self.method == Method::Winnowing {
            Winnowing::new(*block, self.instances, 0, Hasher::default())?;
        }
        if self.block_digest && self.method == Method::Winnowing {
            let needs = "the method block or hierarchical, whose blocks have places to exclude";
            return Err(Error::parameter("block-digest", self.method, needs));
        }
        if !(1.0..=1024.0).contains(bits_per_block) {
            return Err(Error::parameter("bits-per-block", bits_per_block, "1 to 1024 bits"));
        }
        if epoch.is_some_and(|epoch| epoch.is_zero()) {
            return Err(Error::parameter("epoch", "0s", "some time"));
        }
        // The records of an epoch are kept in memory until it ends.
        if !(1 << 10..=1 << 32).contains(full) {
            return Err(Error::parameter("full", full, "1 KiB to 4 GiB"));
        }
        if !(1..=1 << 24).contains(pairs) {
            return Err(Error::parameter("pairs", pairs, "1 to 16777216"));
        }
        Ok(())
    }
}

/// How far the source of a finding can be trusted. The destination always can: a packet only
/// arrives if it names the real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The source is in a local network, in whose name no outside host can send.
    LocalSource,
    /// The source is elsewhere and may be forged; the destination is in a local network.
    LocalDestination,
    /// Both are elsewhere, and the source may be forged.
    Foreign,
}

impl Trust {
    /// Returns the trust in the source of a pair, given the local networks.
    ///
    /// ```
    /// use umbel_net::attribution::{Pair, Trust};
    /// let local = ["10.0.0.0/8".parse()?];
    /// let (inside, outside) = ("10.1.2.3".parse()?, "192.0.2.7".parse()?);
    /// assert_eq!(Trust::for_pair(&Pair::new(inside, outside), &local), Trust::LocalSource);
    /// assert_eq!(Trust::for_pair(&Pair::new(outside, inside), &local), Trust::LocalDestination);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_pair(pair: &Pair, local: &[Prefix]) -> Trust {
        let is_local = |host: Option<IpAddr>| host.is_some_and(|host| pairs::is_in(local, host));
        if is_local(pair.source) {
            Trust::LocalSource
        } else if is_local(pair.destination) {
            Trust::LocalDestination
        } else {
            Trust::Foreign
        }
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trust::LocalSource => "local source",
            Trust::LocalDestination => "foreign source, local destination",
            Trust::Foreign => "foreign source",
        })
    }
}
