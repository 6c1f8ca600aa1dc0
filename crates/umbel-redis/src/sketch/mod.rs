//! `CMS.*`: count-min sketches, whose counts of items are never too low.
//!
//! [`Sketch`] is the value, and [`commands`] are the commands on it. The structure itself is the
//! library's [`CountMin`].

pub mod commands;

use crate::config::{self, HashSecret};
use crate::error::{self, Error};
use crate::persist::{self, Persist};
use crate::server::{Failure, Result, TypeHandle};
use std::ffi::CStr;
use umbel::Hasher;
use umbel::any::Stored;
use umbel::hash::HashId;
use umbel::memory::{LINE_BYTES, Mover, Words};
use umbel::sketch::CountMin;

/// The largest number of rows of a sketch: each is read for every item.
pub const MAX_DEPTH: u32 = 256;

/// A count-min sketch and the secret of its hash function, for streams.
#[derive(Debug)]
pub struct Sketch {
    counts: CountMin,
    secret: HashSecret,
}

impl Sketch {
    /// Creates an empty sketch.
    ///
    /// # Errors
    ///
    /// If the sketch is larger than a key may be, or there is not enough memory.
    pub fn new(width: u64, depth: u32, secret: HashSecret) -> Result<Sketch> {
        let lines =
            counter_lines(width, depth).ok_or_else(|| Failure::new("CMS: the sketch is too large"))?;
        config::check_memory(lines.saturating_mul(LINE_BYTES as u64))?;
        let counters = Words::zeroed(lines)?;
        Ok(Sketch {
            counts: CountMin::from_parts(width, depth, Hasher::keyed(secret.0), 0, counters)?,
            secret,
        })
    }
}

/// Returns the cache lines for the counters of a sketch, 4 bytes each.
fn counter_lines(width: u64, depth: u32) -> Option<u64> {
    Some(width.checked_mul(depth.into())?.div_ceil(LINE_BYTES as u64 / 4))
}

static TYPE_HANDLE: TypeHandle = TypeHandle::new();

impl Persist for Sketch {
    const NAME: &'static CStr = c"umbel-cms";

    const LOAD_COMMAND: &'static CStr = c"CMS.LOADCHUNK";

    fn type_handle() -> &'static TypeHandle {
        &TYPE_HANDLE
    }

    fn hash_id(&self) -> Option<HashId> {
        Some(self.counts.hasher().id())
    }

    fn numbers(&self) -> Vec<u64> {
        let mut numbers = vec![self.counts.width(), self.counts.depth().into(), self.counts.total()];
        numbers.extend(config::secret_to_numbers(&self.secret));
        numbers
    }

    fn sections(&self) -> Vec<&Words> {
        vec![self.counts.words()]
    }

    fn extra(&self) -> umbel::Result<Vec<u8>> {
        persist::words_to_bytes(self.counts.words())
    }

    fn restore(numbers: &[u64], filters: Vec<Stored>, extra: &[u8]) -> error::Result<Sketch> {
        let &[width, depth, total, ref secret @ ..] = numbers else { return Err(Error::CONTRADICTORY) };
        let depth = u32::try_from(depth).map_err(|_| Error::CONTRADICTORY)?;
        let bytes = counter_lines(width, depth).and_then(|lines| lines.checked_mul(LINE_BYTES as u64));
        if !filters.is_empty() || bytes != Some(extra.len() as u64) {
            return Err(Error::CONTRADICTORY);
        }
        let secret = config::secret_from_numbers(secret)?;
        let counters = persist::words_from_bytes(extra)?;
        let counts = CountMin::from_parts(width, depth, Hasher::keyed(secret.0), total, counters);
        Ok(Sketch { counts: counts.map_err(|_| Error::CONTRADICTORY)?, secret })
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self.counts.words().lines())
    }

    fn copy(&self) -> umbel::Result<Sketch> {
        Ok(Sketch { counts: self.counts.try_clone()?, ..*self })
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.counts.relocate(mover);
    }
}
