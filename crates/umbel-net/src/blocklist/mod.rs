//! A blocklist of addresses and prefixes whose entries expire.
//!
//! ```
//! use std::net::IpAddr;
//! use std::time::Duration;
//! use umbel::Timestamp;
//! use umbel_net::blocklist::{Blocklist, Options, Verdict};
//!
//! let start = Timestamp::from_millis(1_800_000_000_000);
//! let mut list = Blocklist::new(&Options { lifetime: Duration::from_secs(60), ..Options::default() }, start)?;
//! list.block("192.0.2.7".parse()?, None)?;
//! list.block("2001:db8::/32".parse()?, None)?;
//! list.allow("2001:db8::53".parse()?);
//!
//! let address = |text: &str| text.parse::<IpAddr>().unwrap();
//! assert!(list.check(address("192.0.2.7")).is_blocked());
//! assert!(list.check(address("2001:db8::1")).is_blocked());
//! assert!(!list.check(address("2001:db8::53")).is_blocked(), "allowed addresses are never blocked");
//! assert_eq!(list.check(address("192.0.2.8")), Verdict::Free);
//!
//! list.advance(Timestamp::from_millis(start.millis() + 60_000))?;
//! assert_eq!(list.check(address("192.0.2.7")), Verdict::Free);
//! # Ok::<(), umbel_net::Error>(())
//! ```
//!
//! A key is a prefix: its family, its length and its bits, hashed once. An address is looked up
//! under every prefix length in the list, longest first; lengths without a blocked prefix cost
//! nothing.
//!
//! There are two backends.
//!
//! | [`Backend`] | memory | lifetime | unblocking | innocents blocked |
//! | --- | --- | --- | --- | --- |
//! | `Aging` | a ring of filters, nothing else | more than T - T/g, at most T | not supported: use the allow-list | the rate of the filter, for each length |
//! | `Exact` | a counting filter and the list itself | exactly as requested | immediate | none |
//!
//! The exact backend consults its list only if the filter matches, which is rare where most
//! addresses are innocent; so its answers are exact. The aging backend has no list. It blocks an
//! innocent address with the rate of the filter, once for every prefix length in use.
//! [`Blocklist::new`] refuses a rate that would block more clients than the budget allows, and
//! [`Blocklist::figures`] reports the number to expect now. Attacks come in bursts: each generation
//! has room for as many addresses as may be blocked at once, and beyond that a block is refused
//! rather than innocents locked out.
//!
//! An attacker who sends packets with forged sources can choose the addresses that the list blocks,
//! and could choose them so that a particular innocent is blocked, too. Use a
//! [keyed](umbel::Hasher::keyed) hash with a secret against that. [`Options`] does not default to
//! one because it has no source of secrets.
//!
//! The caller sets the clock with [`Blocklist::advance`]. [`protocol`] is a line protocol for
//! firewalls; [`state`] saves the list across restarts.

mod figures;
mod ledger;
mod lengths;
pub mod protocol;
mod ring;
pub mod state;

pub use figures::{Figures, Innocents};

use crate::network::{self, Prefix};
use crate::{Error, Result};
use ledger::Ledger;
use lengths::PrefixLengths;
use ring::Ring;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;
use umbel::Timestamp;
use umbel::hash::Strength;
use umbel::internals::TILE;
use umbel::{Digest, Filter, Hasher, Kind};

/// The options of a blocklist.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The data structure that holds the list.
    pub backend: Backend,
    /// The number of addresses and prefixes that may be blocked at once.
    pub capacity: u64,
    /// The false-positive rate of the filter.
    pub rate: f64,
    /// The default lifetime of an entry.
    pub lifetime: Duration,
    /// The hash of the keys. It should have a secret if others can cause entries.
    pub hasher: Hasher,
    /// Whether the secret of a keyed hash is stored in the state file, which is then private.
    pub embed_key: bool,
    /// The number of innocent clients; 0 if it is unknown.
    pub clients: u64,
    /// The number of clients that may be blocked by mistake.
    pub budget: f64,
}

impl Default for Options {
    /// Returns options for a hundred thousand addresses, an hour, and the exact backend.
    fn default() -> Options {
        Options {
            backend: Backend::Exact,
            capacity: 100_000,
            rate: 1e-4,
            lifetime: Duration::from_secs(3600),
            hasher: Hasher::default(),
            embed_key: false,
            clients: 0,
            budget: 1.0,
        }
    }
}

/// The data structure behind a blocklist, which determines how entries expire; see the
/// [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A ring of filters: entries expire by generation.
    Aging {
        /// The number of generations in a lifetime (g).
        generations: u32,
    },
    /// A counting filter with the exact list: each entry expires at its own time.
    Exact,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Backend::Aging { .. } => "aging",
            Backend::Exact => "exact",
        })
    }
}

impl FromStr for Backend {
    type Err = Error;

    /// Parses `exact`, or `aging`, which has eight generations.
    fn from_str(text: &str) -> Result<Backend> {
        match text {
            "aging" => Ok(Backend::Aging { generations: umbel::aging::Options::default().generations }),
            "exact" => Ok(Backend::Exact),
            _ => Err(Error::parameter("engine", network::quoted(text), "aging or exact")),
        }
    }
}

/// The verdict on an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is not blocked.
    Free,
    /// It is on the allow-list, which takes precedence.
    Allowed {
        /// The prefix on the allow-list.
        by: Prefix,
    },
    /// It is blocked.
    Blocked {
        /// The longest blocked prefix that covers it.
        by: Prefix,
        /// When the block expires, if the backend knows.
        until: Option<Timestamp>,
    },
}

impl Verdict {
    /// Returns whether the address is blocked.
    pub fn is_blocked(&self) -> bool {
        matches!(self, Verdict::Blocked { .. })
    }
}

/// A list of addresses and prefixes that are blocked for a time, and of others that never are.
#[derive(Debug)]
pub struct Blocklist {
    options: Options,
    now: Timestamp,
    backend: BackendState,
    allowed: BTreeSet<Prefix>,
    allowed_lengths: PrefixLengths<u64>,
}

/// The data of a backend.
#[derive(Debug)]
enum BackendState {
    Ring(Ring),
    Ledger(Ledger),
}

impl Blocklist {
    /// Returns an empty list whose clock is at `now`.
    ///
    /// # Errors
    ///
    /// Fails if an option is out of range. With the aging backend, also fails if the rate would
    /// block more clients than the budget allows.
    pub fn new(options: &Options, now: Timestamp) -> Result<Blocklist> {
        if options.lifetime.as_millis() == 0 {
            return Err(Error::parameter(
                "lifetime",
                format!("{:?}", options.lifetime),
                "a millisecond or more",
            ));
        }
        if !(options.budget.is_finite() && options.budget > 0.0) {
            return Err(Error::parameter("budget", options.budget, "a number of clients above 0"));
        }
        if options.embed_key && options.hasher.id().strength != Strength::Keyed {
            return Err(Error::parameter(
                "embed_key",
                options.hasher.id(),
                "a keyed hash: no other secret is written",
            ));
        }
        let now = followed(now);
        let backend = match options.backend {
            Backend::Aging { generations } => {
                let innocents = options.rate * options.clients as f64;
                if innocents > options.budget {
                    let fits = options.budget / options.clients as f64;
                    let needs = format!(
                        "at most {fits:.1e} for {} clients of whom {} may be blocked: {innocents:.1} would be",
                        options.clients, options.budget
                    );
                    return Err(Error::parameter("p", options.rate, needs));
                }
                BackendState::Ring(Ring::new(options, generations, now)?)
            }
            Backend::Exact => BackendState::Ledger(Ledger::new(options)?),
        };
        let (allowed, allowed_lengths) = Default::default();
        Ok(Blocklist { options: options.clone(), now, backend, allowed, allowed_lengths })
    }

    /// Returns the options of the list.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the time of the last [`advance`](Blocklist::advance).
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Sets the clock, and drops all entries that have expired by then.
    ///
    /// # Errors
    ///
    /// Fails for a time before the last one.
    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        let now = followed(now);
        if now < self.now {
            return Err(umbel::Error::Clock { last: self.now, got: now }.into());
        }
        match &mut self.backend {
            BackendState::Ring(ring) => ring.advance(self.now, now)?,
            BackendState::Ledger(ledger) => ledger.advance(now)?,
        }
        self.now = now;
        Ok(())
    }

    /// Blocks a prefix, and returns when the block expires. A block that exists already is
    /// extended, never shortened.
    ///
    /// # Errors
    ///
    /// Fails if the list is full, if the lifetime is below a millisecond, or if a lifetime other
    /// than the default is passed to the aging backend.
    pub fn block(&mut self, prefix: Prefix, lifetime: Option<Duration>) -> Result<Timestamp> {
        let (now, capacity) = (self.now, self.options.capacity);
        let lifetime = match lifetime {
            Some(time) if time.as_millis() == 0 => {
                return Err(Error::parameter("lifetime", format!("{time:?}"), "a millisecond or more"));
            }
            Some(time) => time,
            None => self.options.lifetime,
        };
        match &mut self.backend {
            BackendState::Ring(_) if lifetime != self.options.lifetime => Err(cannot(
                "block for a time of its own",
                "all it holds has the same lifetime; leave the seconds out, or use the exact engine",
            )),
            BackendState::Ring(ring) => ring.block(prefix, now, capacity),
            BackendState::Ledger(ledger) => {
                let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
                let until = Timestamp::from_millis(now.millis().saturating_add(millis));
                ledger.block(prefix, until, capacity)
            }
        }
    }

    /// Unblocks exactly this prefix, and returns whether it was blocked.
    ///
    /// # Errors
    ///
    /// Fails with the aging backend, which cannot unblock.
    pub fn unblock(&mut self, prefix: Prefix) -> Result<bool> {
        match &mut self.backend {
            BackendState::Ring(_) => Err(cannot(
                "unblock",
                "it does not know what it holds; allow the address, or use the exact engine",
            )),
            BackendState::Ledger(ledger) => ledger.unblock(prefix),
        }
    }

    /// Adds a prefix to the allow-list, so that its addresses are never blocked. Returns `false` if
    /// it was there already.
    pub fn allow(&mut self, prefix: Prefix) -> bool {
        let new = self.allowed.insert(prefix);
        if new {
            self.allowed_lengths.add(prefix);
        }
        new
    }

    /// Removes a prefix from the allow-list. Returns `false` if it was not there.
    pub fn disallow(&mut self, prefix: Prefix) -> bool {
        let known = self.allowed.remove(&prefix);
        if known {
            self.allowed_lengths.remove(prefix);
        }
        known
    }

    /// Returns the allow-list.
    pub fn allowed(&self) -> impl ExactSizeIterator<Item = Prefix> {
        self.allowed.iter().copied()
    }

    /// Returns the verdict on an address.
    pub fn check(&self, address: IpAddr) -> Verdict {
        let mut verdict = [Verdict::Free];
        self.check_tile(&[address], &mut verdict);
        verdict[0]
    }

    /// Returns the verdicts on many addresses. Faster than checking them one by one.
    pub fn check_all(&self, addresses: &[IpAddr]) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Free; addresses.len()];
        for (addresses, verdicts) in addresses.chunks(TILE).zip(verdicts.chunks_mut(TILE)) {
            self.check_tile(addresses, verdicts);
        }
        verdicts
    }

    fn check_tile(&self, addresses: &[IpAddr], verdicts: &mut [Verdict]) {
        self.find(addresses, true, |i, by| {
            let until = match &self.backend {
                BackendState::Ring(_) => None,
                BackendState::Ledger(ledger) => ledger.until(&by),
            };
            verdicts[i] = Verdict::Blocked { by, until };
        });
        if self.allowed.is_empty() {
            return;
        }
        for (address, verdict) in addresses.iter().zip(verdicts) {
            if let Some(by) = self.allowed_by(*address) {
                *verdict = Verdict::Allowed { by };
            }
        }
    }

    fn allowed_by(&self, address: IpAddr) -> Option<Prefix> {
        let address = address.to_canonical();
        let lengths = self.allowed_lengths.family(address.is_ipv4()).keys().rev();
        let mut prefixes = lengths.map(|length| Prefix::masked(address, *length));
        prefixes.find(|prefix| self.allowed.contains(prefix))
    }

    /// Finds the longest blocked prefix of each of at most 64 addresses. Without `confirm`, a match
    /// in the filter is enough.
    fn find(&self, addresses: &[IpAddr], confirm: bool, mut found: impl FnMut(usize, Prefix)) {
        let hasher = self.filter().hasher();
        for v4 in [true, false] {
            let lengths = self.lengths(v4);
            if lengths.is_empty() {
                continue;
            }
            // The addresses of this family that were not found yet, with their indices.
            let mut open: Vec<(usize, IpAddr)> =
                addresses.iter().map(IpAddr::to_canonical).enumerate().collect();
            open.retain(|(_, address)| address.is_ipv4() == v4);
            for length in lengths {
                let mut tile = [Digest::default(); TILE];
                for (digest, (_, address)) in tile.iter_mut().zip(&open) {
                    *digest = Prefix::masked(*address, length).digest(hasher);
                }
                let mut hits = match &tile[..open.len()] {
                    // For some kinds, a tile costs the same however few digests it holds.
                    [alone] => self.filter().contains_digest(*alone).into(),
                    tile => self.filter().contains_tile(tile),
                };
                open.retain(|(i, address)| {
                    let prefix = Prefix::masked(*address, length);
                    let hit = hits & 1 == 1 && (!confirm || self.confirms(&prefix));
                    hits >>= 1;
                    if hit {
                        found(*i, prefix);
                    }
                    !hit
                });
            }
        }
    }

    fn filter(&self) -> &dyn Filter {
        match &self.backend {
            BackendState::Ring(ring) => &ring.filter,
            BackendState::Ledger(ledger) => &ledger.filter,
        }
    }

    /// Returns whether a prefix that passed the filter is blocked.
    fn confirms(&self, prefix: &Prefix) -> bool {
        match &self.backend {
            BackendState::Ring(_) => true,
            BackendState::Ledger(ledger) => ledger.until(prefix).is_some(),
        }
    }

    /// Returns the lengths of blocked prefixes, the longest first.
    fn lengths(&self, v4: bool) -> Vec<u8> {
        fn longest_first<T>(lengths: &BTreeMap<u8, T>) -> Vec<u8> {
            lengths.keys().rev().copied().collect()
        }
        match &self.backend {
            BackendState::Ring(ring) => longest_first(ring.lengths.family(v4)),
            BackendState::Ledger(ledger) => longest_first(ledger.lengths.family(v4)),
        }
    }

    /// Returns the current figures of the list.
    pub fn figures(&self) -> Figures {
        let stats = self.filter().stats();
        let (blocked, confirmed) = match &self.backend {
            BackendState::Ring(ring) => (ring.filter.held(), false),
            BackendState::Ledger(ledger) => (ledger.blocked().len() as u64, true),
        };
        let lengths = [self.lengths(true), self.lengths(false)];
        let most = lengths.iter().map(Vec::len).max().unwrap_or(0);
        let innocents = if confirmed { 0.0 } else { any(stats.rate_now, most) * self.options.clients as f64 };
        let [lengths_v4, lengths_v6] = lengths;
        Figures {
            backend: self.options.backend,
            now: self.now,
            blocked,
            allowed: self.allowed.len() as u64,
            lengths_v4,
            lengths_v6,
            rate: stats.rate_now,
            bytes: stats.bytes,
            innocents,
            over_budget: innocents > self.options.budget,
        }
    }

    /// Checks addresses that are known to be innocent, and counts the mistakes.
    pub fn innocents(&self, addresses: &[IpAddr]) -> Innocents {
        let blocked = self.check_all(addresses).iter().filter(|verdict| verdict.is_blocked()).count();
        let mut by_filter = 0;
        for tile in addresses.chunks(TILE) {
            self.find(tile, false, |_, _| by_filter += 1);
        }
        let v4 = addresses.iter().filter(|address| address.to_canonical().is_ipv4()).count();
        let rate = self.filter().stats().rate_now;
        let of = |v4, many: usize| any(rate, self.lengths(v4).len()) * many as f64;
        let expected = of(true, v4) + of(false, addresses.len() - v4);
        Innocents { asked: addresses.len() as u64, blocked: blocked as u64, by_filter, expected }
    }

    /// Looks up `keys` keys that belong to no address, and returns the number of false positives.
    /// The keys depend only on the seed.
    pub fn sample(&self, keys: u64, seed: u64) -> u64 {
        let seed = Digest::from_hash(seed);
        let (mut hits, mut asked) = (0, 0);
        while asked < keys {
            let tile: [Digest; TILE] = std::array::from_fn(|i| seed.salted(asked + i as u64));
            let many = (keys - asked).min(TILE as u64);
            hits += u64::from(self.filter().contains_tile(&tile[..many as usize]).count_ones());
            asked += many;
        }
        hits
    }
}

/// Returns the error for an operation that the aging backend does not support.
fn cannot(what: &'static str, why: &'static str) -> Error {
    umbel::Error::Cannot { kind: Kind::Aging, what, why }.into()
}

/// Limits a time to the latest that every backend supports.
fn followed(now: Timestamp) -> Timestamp {
    now.min(Timestamp::from_millis(u64::MAX - 1))
}

/// Returns the chance that at least one of `questions` lookups is a false positive.
fn any(rate: f64, questions: usize) -> f64 {
    1.0 - (1.0 - rate).powi(i32::try_from(questions).unwrap_or(i32::MAX))
}
