//! The filter of first bytes, and the verdict that it never speaks alone.

use super::exact::identity;
use super::{Address, Exact};
use crate::{Error, Result};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use umbel::file::Meta;
use umbel::key::Hashed;
use umbel::{AnyFilter, Digest, Hasher, Kind, Spec};

/// A whole hash of an expression.
pub type Full = [u8; 32];

/// The SHA-256 of an expression.
pub fn sha256(expression: &str) -> Full {
    Sha256::digest(expression.as_bytes()).into()
}

/// Who knows the whole hashes: a file, or a server.
pub trait Confirm {
    /// All listed hashes that start with these bytes. More is not told, so that a server does not learn the address.
    fn starting_with(&mut self, first: &[u8]) -> Result<Vec<Full>>;
}

/// What is known of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is certainly not listed.
    Clear,
    /// This expression of it is listed.
    Unsafe(String),
    /// It may be listed, and nobody was there to tell.
    Unconfirmed,
}

/// Counts of the queries to the exact list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenStats {
    /// Checked addresses.
    pub addresses: u64,
    /// Their expressions.
    pub expressions: u64,
    /// Expressions that passed the filter, so that the exact list was queried.
    pub asked: u64,
    /// Queries for which the exact list did not have the whole hash.
    pub in_vain: u64,
}

/// The names of the marks in the metadata of a filter: how many bytes of a hash it holds, and of which list.
const PREFIX: &str = "address-prefix";
const LIST: &str = "address-list";

/// A filter of the first bytes of hashes.
pub struct Screen {
    filter: AnyFilter,
    prefix: usize,
    list: u64,
    stats: ScreenStats,
}

impl Screen {
    /// The bytes of a hash that go into the filter, unless something else is said.
    pub const PREFIX: usize = 4;

    /// A filter of four bytes for each of these addresses, and their whole hashes in order.
    pub fn build<'a>(
        addresses: impl IntoIterator<Item = &'a Address>,
        rate: f64,
    ) -> Result<(Screen, Vec<Full>)> {
        let hashes: BTreeSet<Full> =
            addresses.into_iter().map(|address| sha256(&address.expression())).collect();
        let hashes: Vec<Full> = hashes.into_iter().collect();
        Ok((Screen::from_hashes(&hashes, Screen::PREFIX, rate, Hasher::default())?, hashes))
    }

    /// Returns a filter of the first `prefix` bytes of hashes, four or more.
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

    /// Returns the screen of a stored filter, or `None` if its metadata do not say that it holds addresses.
    pub fn from_filter(filter: AnyFilter, meta: &Meta) -> Option<Screen> {
        let prefix = meta.get(PREFIX)?.parse().ok().filter(|prefix| (4..=32).contains(prefix))?;
        let list = u64::from_str_radix(meta.get(LIST)?, 16).ok()?;
        Some(Screen { filter, prefix, list, stats: ScreenStats::default() })
    }

    /// Whether the metadata of a filter say that it holds addresses.
    pub fn is_in(meta: &Meta) -> bool {
        meta.contains_key(PREFIX)
    }

    /// Writes into the metadata of a filter what [`Screen::from_filter`] needs.
    pub fn record(&self, meta: &mut Meta) {
        meta.insert(PREFIX.into(), self.prefix.to_string());
        meta.insert(LIST.into(), format!("{:016x}", self.list));
    }

    /// Whether an exact list is that with which this filter was built: another would call addresses clear that are not.
    pub fn fits(&self, exact: &Exact) -> bool {
        self.list == exact.identity()
    }

    /// What is known of an address. Without an exact list it is never called unsafe.
    pub fn check(&mut self, address: &Address, mut exact: Option<&mut impl Confirm>) -> Result<Verdict> {
        let expressions = address.expressions();
        let hashes: Vec<Full> = expressions.iter().map(|expression| sha256(expression)).collect();
        let digests: Vec<Digest> =
            hashes.iter().map(|hash| self.filter.hasher().digest_bytes(&hash[..self.prefix])).collect();
        self.stats.addresses += 1;
        self.stats.expressions += expressions.len() as u64;
        // There are never more than 30.
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

    /// The filter.
    pub fn into_filter(self) -> AnyFilter {
        self.filter
    }
}
