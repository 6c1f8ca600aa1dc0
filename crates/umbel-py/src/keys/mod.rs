//! The keys in Python objects: single objects, and many at once from lists, iterators, numpy arrays
//! and Arrow columns.
//!
//! [`Encoder`] turns one object into a digest. [`Source`] tells how an object holds many keys: as
//! [columns](Column) in memory, which are hashed without the interpreter, or as objects that
//! Python hands out one by one.

mod arrow;
mod c_data;
mod c_schema;
mod column;
mod foreign;
mod items;
mod numbers;
mod object;
mod source;

pub use column::{CHUNK, Column, Work};
pub use foreign::ForeignKeys;
pub use items::{for_each, for_each_object};
pub use object::Encoder;
pub use source::{Columns, Origin, Source};

/// Requests bytes from memory that will be read soon. They need not exist.
#[inline(always)]
fn prefetch(from: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        // SAFETY: a prefetch reads nothing that the program can observe, and cannot fault.
        #[cfg(target_arch = "x86_64")]
        #[allow(unsafe_code, reason = "sound for the reason above")]
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(line).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (from, line);
    }
}
