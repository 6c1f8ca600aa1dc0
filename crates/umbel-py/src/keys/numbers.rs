//! Integers in a buffer of another library: numpy arrays, `array.array`, `memoryview`.

use super::column::{Integers, TILE, TILES_AHEAD};
use super::prefetch;
use crate::errors::Exception;
use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::prelude::*;
use std::ops::Range;
use umbel::{Batch, Digest, Hasher, Key};

/// A column of integers of any width, sign, byte order, stride and alignment.
pub struct Numbers {
    start: *const u8,
    /// The number of bytes from one integer to the next; may be negative.
    stride: isize,
    len: usize,
    format: Format,
    /// Keeps the memory alive and in its place.
    _owner: PyUntypedBuffer,
}

// SAFETY: the memory belongs to `_owner`, which keeps it until it is dropped, on whichever thread.
// Numbers are only read.
#[allow(unsafe_code, reason = "sound for the reason above")]
unsafe impl Send for Numbers {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "sound for the reason above")]
unsafe impl Sync for Numbers {}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Format {
    bytes: usize,
    signed: bool,
    /// Whether they are Booleans, of which every byte but 0 is true.
    boolean: bool,
    /// Whether the byte order is not that of the machine.
    swapped: bool,
}

impl Numbers {
    /// Takes the integers of a buffer.
    ///
    /// # Errors
    ///
    /// If its elements are not integers, or it does not have exactly one dimension.
    pub fn new(owner: PyUntypedBuffer) -> PyResult<Numbers> {
        one_dimension(owner.dimensions())?;
        let format = format(&owner)?;
        let (start, len, stride) = (owner.buf_ptr().cast::<u8>(), owner.shape()[0], owner.strides()[0]);
        if owner.suboffsets().is_some() {
            return Err(
                Exception::KeyType.with("a buffer with suboffsets has no column: copy it to an array")
            );
        }
        Ok(Numbers { start, stride, len, format, _owner: owner })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn widen<const N: usize>(&self, start: usize, to: &mut [u64], widen: impl Fn([u8; N]) -> u64) {
        if self.stride == N as isize && !self.format.swapped {
            return self.widen_every(start, to, N as isize, widen);
        }
        let swapped = self.format.swapped;
        self.widen_every(start, to, self.stride, |mut bytes: [u8; N]| {
            if swapped {
                bytes.reverse();
            }
            widen(bytes)
        });
    }

    #[inline(always)]
    fn widen_every<const N: usize>(
        &self,
        start: usize,
        to: &mut [u64],
        stride: isize,
        widen: impl Fn([u8; N]) -> u64,
    ) {
        for (i, to) in to.iter_mut().enumerate() {
            // SAFETY: `new` checked that elements have N bytes, and the assertion of `copy_to` that
            // this is one of them; the owner keeps them in place. Python's buffers may be written by
            // another thread meanwhile, as for every reader of one that releases the interpreter:
            // such an element has an unspecified value, and every value is a valid integer.
            #[allow(unsafe_code, reason = "sound for the reason above")]
            let bytes = unsafe {
                let at = self.start.offset((start + i) as isize * stride);
                at.cast::<[u8; N]>().read_unaligned()
            };
            *to = widen(bytes);
        }
    }
}

impl Integers for Numbers {
    fn len(&self) -> usize {
        self.len
    }

    fn prefetch(&self, start: usize) {
        let bytes = self.stride.saturating_mul(TILE as isize);
        let from = self.start.wrapping_offset((start as isize).wrapping_mul(self.stride));
        // Of integers that are far apart, or go backwards, the first.
        prefetch(from, usize::try_from(bytes).unwrap_or(0).clamp(1, 8 * TILE));
    }

    fn copy_to(&self, start: usize, to: &mut [u64]) {
        assert!(start + to.len() <= self.len, "the caller stays inside the column");
        match (self.format.bytes, self.format.signed) {
            (1, false) if self.format.boolean => self.widen(start, to, |[byte]: [u8; 1]| (byte != 0).into()),
            (1, false) => self.widen(start, to, |[byte]: [u8; 1]| byte.into()),
            (1, true) => self.widen(start, to, |bytes| i64::from(i8::from_ne_bytes(bytes)).cast_unsigned()),
            (2, false) => self.widen(start, to, |bytes| u16::from_ne_bytes(bytes).into()),
            (2, true) => self.widen(start, to, |bytes| i64::from(i16::from_ne_bytes(bytes)).cast_unsigned()),
            (4, false) => self.widen(start, to, |bytes| u32::from_ne_bytes(bytes).into()),
            (4, true) => self.widen(start, to, |bytes| i64::from(i32::from_ne_bytes(bytes)).cast_unsigned()),
            _ => self.widen(start, to, u64::from_ne_bytes),
        }
    }
}

impl Batch for Numbers {
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn digest_tile(&self, range: Range<usize>, hasher: &Hasher, digests: &mut [Digest]) {
        let mut tile = [0; TILE];
        let tile = &mut tile[..range.len()];
        self.prefetch(range.start + TILES_AHEAD * TILE);
        self.copy_to(range.start, tile);
        u64::digest_tile(tile, hasher, digests);
    }

    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        let mut integer = [0];
        self.copy_to(index, &mut integer);
        f(&integer[0].to_le_bytes())
    }
}

/// Fails unless a column has one dimension.
pub fn one_dimension(dimensions: usize) -> PyResult<()> {
    if dimensions == 1 {
        return Ok(());
    }
    Err(Exception::Parameter.with(format!(
        "an array of {dimensions} dimensions is not a column of keys: pass one column, or array.ravel()"
    )))
}

fn format(buffer: &PyUntypedBuffer) -> PyResult<Format> {
    let name = buffer.format();
    let bytes = buffer.item_size();
    let element = ElementType::from_format(name);
    let (width, signed) = match element {
        // The elements of this format are `bytes` of one byte, not integers.
        _ if name.to_bytes().ends_with(b"c") => (0, false),
        ElementType::SignedInteger { bytes } => (bytes, true),
        ElementType::UnsignedInteger { bytes } => (bytes, false),
        ElementType::Bool => (1, false),
        _ => (0, false),
    };
    let boolean = matches!(element, ElementType::Bool);
    if width != bytes || !matches!(bytes, 1 | 2 | 4 | 8) {
        return Err(not_keys(&format!("a buffer of format {:?}", name.to_string_lossy())));
    }
    let foreign: &[u8] = if cfg!(target_endian = "little") { b">!" } else { b"<" };
    let swapped = name.to_bytes().first().is_some_and(|order| foreign.contains(order));
    Ok(Format { bytes, signed, boolean, swapped })
}

/// Returns the exception for a column of a type that cannot be keys.
pub fn not_keys(what: &str) -> PyErr {
    Exception::KeyType.with(format!(
        "{what} does not hold keys: keys are text, bytes and integers; convert the column, or pass a list of the \
         objects to a filter with key="
    ))
}
