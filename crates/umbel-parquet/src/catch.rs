//! Runs decoders of the `parquet` crate, which panic on some damaged pages.

use parquet::errors::{ParquetError, Result};
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether this thread runs a decoder, whose panics are not reported.
    static DECODES: Cell<bool> = const { Cell::new(false) };
}

/// Calls `decode`, and returns an error if it panics.
pub fn catch<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !DECODES.get() {
                report(panic);
            }
        }));
    });
    let outside = DECODES.replace(true);
    // The decoder is dropped, so that nothing sees a state that it left behind.
    let result = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODES.set(outside);
    result.unwrap_or_else(|_| Err(ParquetError::General("a page has other values than it claims".into())))
}
