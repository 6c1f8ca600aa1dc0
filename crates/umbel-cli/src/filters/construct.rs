//! Filters and maps that are constructed from all their keys at once, in memory, with a progress
//! bar.

use crate::terminal::Progress;
use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::spec::Construction;

/// Appends to the keys that are held in memory. Fails if the memory is exhausted.
pub fn append<T>(
    all: &mut Vec<T>,
    more: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
) -> Result<()> {
    let more = more.into_iter();
    let (held, each) = (all.len(), size_of::<T>());
    all.try_reserve(more.len()).with_context(|| {
        format!("the system has no memory for more than {held} keys, of {each} bytes each")
    })?;
    all.extend(more);
    Ok(())
}

/// Calls `build` with this number of threads, and shows its progress through `keys` keys.
pub fn with_progress<T>(
    threads: usize,
    keys: u64,
    build: impl FnOnce(&Construction<'_>) -> umbel::Result<T>,
) -> umbel::Result<T> {
    let done = Arc::new(AtomicU64::new(0));
    let progress = Progress::of_keys(Arc::clone(&done), keys);
    let built = build(&Construction { threads, progress: &|keys| done.store(keys, Relaxed) });
    progress.finish();
    built
}
