//! The filter of hash prefixes, and the verdict on an address, which also needs the exact list.

use super::exact::identity;
use super::{Address, Exact};
use crate::{Error, Result};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use umbel::file::Meta;
use umbel::key::Hashed;
use umbel::{AnyFilter, Digest, Hasher, Kind, Spec};

/// The whole SHA-256 hash of an expression.
pub type Full = [u8; 32];

/// Returns the SHA-256 hash of an expression.
pub fn sha256(expression: &str) -> Full {
    Sha256::digest(expression.as_bytes()).into()
}

/// A source of whole hashes, such as a file or a server.
pub trait Confirm {
    /// Returns all listed hashes that start with these bytes. No more than the prefix is passed, so
    /// that a server does not learn the address.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot be read.
    fn starting_with(&mut self, first: &[u8]) -> Result<Vec<Full>>;
}

/// The result of checking an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The address is certainly not listed.
    Clear,
    /// This expression of the address is listed.
    Unsafe(String),
    /// The address may be listed, and there was no exact list to confirm it.
    Unconfirmed,
}

/// Counts of the queries to the exact list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenStats {
    /// The number of addresses checked.
    pub addresses: u64,
    /// The number of expressions of these addresses.
    pub expressions: u64,
    /// The number of expressions that passed the filter, so that the exact list was queried.
    pub asked: u64,
    /// The number of queries for which the exact list did not have the whole hash.
    pub in_vain: u64,
}

/// The names of the metadata entries of a filter: the number of hash bytes it holds, and the
/// identity of its list.
const PREFIX: &str = "address-prefix";
const LIST: &str = "address-list";

/// A filter of the first bytes of hashes.
pub struct Screen {
    filter: AnyFilter,
    prefix: usize,
    list: u64,
    stats: ScreenStats,
}

/// Returns the identity of the list that a filter was built with.
fn list_in(meta: &Meta) -> Option<u64> {
    u64::from_str_radix(meta.get(LIST)?, 16).ok()
}

impl Screen {
    /// The default number of hash bytes in the filter.
    pub const PREFIX: usize = 4;

    /// Builds a filter of the first four hash bytes of these addresses. Returns it with the whole
    /// hashes in ascending order.
    ///
    /// # Errors
    ///
    /// Fails if the rate is out of range or memory is short.
    pub fn build<'a>(
        addresses: impl IntoIterator<Item = &'a Address>,
        rate: f64,
    ) -> Result<(Screen, Vec<Full>)> {
        let hashes: BTreeSet<Full> =
            addresses.into_iter().map(|address| sha256(&address.expression())).collect();
        let hashes: Vec<Full> = hashes.into_iter().collect();
        Ok((Screen::from_hashes(&hashes, Screen::PREFIX, rate, Hasher::default())?, hashes))
    }

    /// Builds a filter of the first `prefix` bytes of hashes, from 4 to 32.
    ///
    /// # Errors
    ///
    /// Fails if `prefix` or the rate is out of range, or memory is short.
    pub fn from_hashes(hashes: &[Full], prefix: usize, rate: f64, hasher: Hasher) -> Result<Screen> {
        if !(4..=32).contains(&prefix) {
            return Err(Error::parameter("prefix", prefix, "from 4 to 32 bytes"));
        }
        let spec = Spec::new(hashes.len().max(1) as u64, rate)?.with_hasher(hasher);
        let mut filter = AnyFilter::build(Kind::Blocked, &spec)?;
        let digests: Vec<Digest> =
            hashes.iter().map(|hash| filter.hasher().digest_bytes(&hash[..prefix])).collect();
        filter.insert_batch(&Hashed(&digests))?;
        Ok(Screen { filter, prefix, list: identity(hashes), stats: ScreenStats::default() })
    }

    /// Creates the screen of a stored filter. Returns `None` if the metadata does not describe a
    /// filter of addresses.
    pub fn from_filter(filter: AnyFilter, meta: &Meta) -> Option<Screen> {
        let prefix = meta.get(PREFIX)?.parse().ok().filter(|prefix| (4..=32).contains(prefix))?;
        let list = list_in(meta)?;
        Some(Screen { filter, prefix, list, stats: ScreenStats::default() })
    }

    /// Returns whether the metadata describes a filter of addresses.
    pub fn is_in(meta: &Meta) -> bool {
        meta.contains_key(PREFIX)
    }

    /// Adds the entries that [`Screen::from_filter`] needs to the metadata of a filter.
    pub fn record(&self, meta: &mut Meta) {
        meta.insert(PREFIX.into(), self.prefix.to_string());
        meta.insert(LIST.into(), format!("{:016x}", self.list));
    }

    /// Returns whether this filter was built with the given exact list. With another list, listed
    /// addresses could be reported as clear.
    pub fn fits(&self, exact: &Exact) -> bool {
        self.list == exact.identity()
    }

    /// Returns whether the metadata is that of a filter that was built with the given exact list.
    pub fn meta_fits(meta: &Meta, exact: &Exact) -> bool {
        list_in(meta) == Some(exact.identity())
    }

    /// Checks an address. Without an exact list the verdict is never [`Verdict::Unsafe`].
    ///
    /// # Errors
    ///
    /// Returns the error of the exact list.
    pub fn check(&mut self, address: &Address, mut exact: Option<&mut impl Confirm>) -> Result<Verdict> {
        let expressions = address.expressions();
        let hashes: Vec<Full> = expressions.iter().map(|expression| sha256(expression)).collect();
        let digests: Vec<Digest> =
            hashes.iter().map(|hash| self.filter.hasher().digest_bytes(&hash[..self.prefix])).collect();
        self.stats.addresses += 1;
        self.stats.expressions += expressions.len() as u64;
        // There are at most 30 expressions, which fit into one tile.
        let answers = self.filter.contains_tile(&digests);
        let mut verdict = Verdict::Clear;
        for (number, (expression, hash)) in expressions.into_iter().zip(hashes).enumerate() {
            if answers >> number & 1 == 0 {
                continue;
            }
            let Some(exact) = exact.as_deref_mut() else {
                return Ok(Verdict::Unconfirmed);
            };
            self.stats.asked += 1;
            if exact.starting_with(&hash[..self.prefix])?.contains(&hash) {
                verdict = Verdict::Unsafe(expression);
                break;
            }
            self.stats.in_vain += 1;
        }
        Ok(verdict)
    }

    /// Returns how often the exact list was queried.
    pub fn stats(&self) -> ScreenStats {
        self.stats
    }

    /// Returns the filter.
    pub fn into_filter(self) -> AnyFilter {
        self.filter
    }
}
