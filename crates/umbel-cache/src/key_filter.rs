//! The filters of summaries and cache digests: standard Bloom filters whose hashes are the four
//! words of a cache key.

use crate::CacheKey;
use crate::error::{Error, Result};
use std::sync::Arc;
use umbel::literature::{Family, Literature, Scheme};

/// The largest number of bits. A changed bit of a summary is encoded in 31 bits.
pub const MAX_BITS: u32 = 1 << 31;

fn scheme(bits: u32) -> Result<Scheme> {
    if bits == 0 || bits > MAX_BITS {
        return Err(Error::Size { what: format!("a summary has 1 to 2^31 bits, and not {bits}") });
    }
    Ok(Scheme::new(Family::Md5Slices, CacheKey::HASHES, bits.into())?)
}

/// Creates an empty filter.
pub fn empty(bits: u32) -> Result<Literature> {
    Ok(Literature::new(scheme(bits)?)?)
}

/// Creates a filter from its bits as they are transmitted: bit `i` is bit `i % 8` of byte `i / 8`.
pub fn from_bytes(bytes: &[u8], bits: u32) -> Result<Literature> {
    Literature::from_bits(scheme(bits)?, bytes).map_err(|error| match error {
        umbel::Error::Format { .. } => Error::Malformed {
            what: "summary",
            why: "its bits do not fit its size".into(),
            source: Some(error.into()),
        },
        other => other.into(),
    })
}

/// Returns a mutable reference to a shared filter, which is copied first if it has other owners.
pub fn make_mut(shared: &mut Arc<Literature>) -> Result<&mut Literature> {
    if Arc::get_mut(shared).is_none() {
        *shared = Arc::new(shared.try_clone()?);
    }
    Ok(Arc::get_mut(shared).expect("a new copy has one owner"))
}
