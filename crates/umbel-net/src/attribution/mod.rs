//! Who sent this, to whom, and when: payload attribution (Shanmugasundaram, Brönnimann and Memon 2004).
//!
//! A [`Recorder`] takes packets and keeps, for each [`Epoch`], filters of their payloads' blocks and the list of the pairs that spoke; not
//! the payloads. A [`Store`] keeps epochs in a folder. Long after, an excerpt of what somebody sent is looked up:
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
//! # What is kept
//!
//! Of every block of a payload its content and its number, in the *offset filter*, and of each half of it also the pair, in the
//! *payload filter*. An excerpt is looked up in the first, in every alignment and at every place; what is found is asked of the
//! second for every pair of the epoch. That it has halves costs no memory, since each takes half the bits. But the bytes of an excerpt before
//! its first and after its last whole block are compared but for less than half a block on either side, and most errors of
//! real traffic, where many payloads are alike, are there. Each epoch has its own seed, so that what collides in one does not in the next. See
//! [`payload`](crate::payload) for blocks, [`Method`] for what can be recorded of them.
//!
//! Numbers of blocks are kept modulo [`WINDOW`]. So an excerpt has that many places, however long payloads and streams are, and
//! the position in a longer payload is known up to a multiple of that many blocks.
//!
//! [`Method::Winnowing`] cuts where the content says so. There are no alignments and no numbers then, and every excerpt has its
//! blocks: they are asked of the payload filter at once.
//!
//! # What it proves, and what not
//!
//! A pair that carried an excerpt in a payload, or in a stream as long as that was followed ([`streams`](crate::capture::streams) tells when it
//! is not), is always found, if a whole block of it can be compared: nothing is missed. A pair may be named by
//! chance; [`Finding::chance`] tells how many are to be expected. Some bytes at both ends of an excerpt are not compared,
//! [`Finding::not_compared`] tells how many. That a payload came *to* its destination can be relied upon; its source may be forged, unless it is in a
//! network of which forged sources are kept out: see [`Trust`].
//!
//! What is shorter than a block leaves no record. Whoever splits a text into small packets is found only if streams are put together
//! ([`Settings::streams`]); whoever stuffs it with no-ops is found by any piece between them that has two blocks.

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

/// The number of blocks after which their numbers begin again.
pub const WINDOW: u64 = 64;

/// The settings of a recorder. [`Settings::for_method`] has the defaults of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The method that cuts and records payloads.
    pub method: Method,
    /// The bytes of a block; of [winnowing](Method::Winnowing), how far its ends are apart at most.
    pub block: usize,
    /// The number of times that winnowing cuts.
    pub instances: u32,
    /// All bits that an epoch takes, for each block: of the filters, of the list of pairs, and of what is around them. The list gets what it
    /// needs, and the filters what is left, but not less than half.
    pub bits_per_block: f64,
    /// An epoch ends after this time, if there is one.
    pub epoch: Option<Duration>,
    /// The number of bytes of payload after which an epoch ends.
    pub full: u64,
    /// How many pairs of a kind are listed in an epoch; see [`Listed`].
    pub pairs: usize,
    /// Whether TCP streams are put together.
    pub streams: bool,
    /// The networks of which it is known that nobody outside sends in their names.
    pub local: Vec<Prefix>,
}

impl Default for Settings {
    /// Those of [`Method::BlockBased`].
    fn default() -> Settings {
        Settings::for_method(Method::default())
    }
}

impl Settings {
    /// Blocks of 32 bytes with 25 bits each, which is less than a tenth of the payload. Winnowing cuts twice into blocks of 64 bytes at
    /// most, of which each has 2.5 bits, which is less than a fiftieth. Epochs end when they are full, at 64 MiB; 65 536 pairs are listed.
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

/// How far the source of a finding can be trusted. Its destination always can: who wants something to arrive has to name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The source is in a local network, in whose name nobody outside can send.
    LocalSource,
    /// The source is elsewhere and may be forged; the destination is in a local network.
    LocalDestination,
    /// Both are elsewhere, and the source may be forged.
    Foreign,
}

impl Trust {
    /// Returns how far the source of a pair can be trusted, given the local networks.
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
