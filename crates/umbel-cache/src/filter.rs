//! The filters of summaries and digests: standard Bloom filters over the slices of a key's MD5.

use crate::CacheKey;
use crate::error::{Error, Result};
use std::sync::Arc;
use umbel::literature::{Family, Literature, Scheme};

/// The largest number of bits: a change names a bit in 31 bits.
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

/// Creates a filter from the bytes of its bits, as they travel.
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

/// Returns a shared filter for changes: in place if nobody else has it, otherwise a copy of it.
pub fn make_mut(shared: &mut Arc<Literature>) -> Result<&mut Literature> {
    if Arc::get_mut(shared).is_none() {
        *shared = Arc::new(shared.try_clone()?);
    }
    Ok(Arc::get_mut(shared).expect("a new copy has one owner"))
}
