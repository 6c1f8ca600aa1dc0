//! Many keys in memory, which are hashed without the interpreter.

use super::numbers::Numbers;
use super::prefetch;
use arrow_array::types::{ArrowPrimitiveType, ByteArrayType, ByteViewType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, GenericByteArray,
    GenericByteViewArray, LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray, StringViewArray,
};
use arrow_buffer::NullBuffer;
use umbel::key::{Hashed, Offset};
use umbel::{Arena, Batch, Digest, Error, Hasher, Result};

/// The number of keys that are hashed at a time. Their digests stay in the caches, and the first
/// keys of a chunk, which are not prefetched, do not matter.
pub const CHUNK: usize = 1 << 11;

/// A column of keys.
pub enum Column {
    Numbers(Numbers),
    Arrow {
        values: Values,
        /// The rows that have no key.
        nulls: Option<NullBuffer>,
    },
}

/// The values of an Arrow array.
pub enum Values {
    Integers(Box<dyn Integers>),
    Booleans(BooleanArray),
    Text(StringArray),
    LargeText(LargeStringArray),
    TextView(StringViewArray),
    Bytes(BinaryArray),
    LargeBytes(LargeBinaryArray),
    BytesView(BinaryViewArray),
    FixedBytes(FixedSizeBinaryArray),
    /// Values that rows refer to: the column of the values, and for each row the index of one. The
    /// index of a row without a key is arbitrary.
    Dictionary(Box<Column>, Box<dyn Integers>),
    /// Rows without any key.
    Nulls(usize),
}

/// The number of integers that are hashed together.
pub const TILE: usize = 64;

/// Integers of any width and sign in memory.
pub trait Integers: Send + Sync {
    fn len(&self) -> usize;

    /// Requests the tile from `start` on from memory, if there is one.
    fn prefetch(&self, start: usize);

    /// Widens the integers from `start` on to 64 bits with their sign.
    fn copy_to(&self, start: usize, to: &mut [u64]);
}

impl<T: ArrowPrimitiveType> Integers for PrimitiveArray<T>
where
    T::Native: Widen,
{
    fn len(&self) -> usize {
        Array::len(self)
    }

    fn prefetch(&self, start: usize) {
        let from = self.values().as_ptr().wrapping_add(start);
        prefetch(from.cast(), TILE * size_of::<T::Native>());
    }

    fn copy_to(&self, start: usize, to: &mut [u64]) {
        for (to, value) in to.iter_mut().zip(&self.values()[start..]) {
            *to = value.widen();
        }
    }
}

/// An integer of up to 64 bits.
pub trait Widen: Copy {
    /// Widens the integer to 64 bits with its sign.
    fn widen(self) -> u64;
}

macro_rules! widen {
    ($($int:ty),*) => {$(
        impl Widen for $int {
            fn widen(self) -> u64 {
                self as u64
            }
        }
    )*};
}
widen!(i8, i16, i32, i64, u8, u16, u32, u64);

/// An operation on the keys of a column.
pub trait Work {
    fn run<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()>;
}

impl Column {
    pub fn len(&self) -> usize {
        match self {
            Column::Numbers(numbers) => numbers.len(),
            Column::Arrow { values, .. } => values.len(),
        }
    }

    /// Returns the rows that have no key.
    pub fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Column::Numbers(_) => None,
            Column::Arrow { nulls, .. } => nulls.as_ref(),
        }
    }

    /// Hashes the column chunk by chunk, and passes the digests of each to `work`, until it fails.
    /// The digest of a row without a key is arbitrary.
    pub fn for_each(&self, hasher: &Hasher, work: &mut dyn FnMut(&mut [Digest]) -> Result<()>) -> Result<()> {
        let of_values = self.digests_of_values(hasher)?;
        let mut digests = vec![Digest::default(); self.len().min(CHUNK)];
        for start in (0..self.len()).step_by(CHUNK) {
            let digests = &mut digests[..CHUNK.min(self.len() - start)];
            self.digest_rows(start, hasher, &of_values, digests)?;
            work(digests)?;
        }
        Ok(())
    }

    /// Like [`for_each`](Column::for_each), but leaves out the rows without a key.
    pub fn for_each_key(&self, hasher: &Hasher, work: &mut dyn FnMut(&[Digest]) -> Result<()>) -> Result<()> {
        let Some(nulls) = self.nulls() else { return self.for_each(hasher, &mut |digests| work(digests)) };
        let mut row = 0;
        self.for_each(hasher, &mut |digests| {
            let mut keys = 0;
            for i in 0..digests.len() {
                digests[keys] = digests[i];
                keys += usize::from(nulls.is_valid(row + i));
            }
            row += digests.len();
            work(&digests[..keys])
        })
    }

    /// Passes the rows to `work` in batches. Usual columns are one batch, whose keys are hashed while
    /// `work` waits for memory; others come in chunks that were hashed before. The digest of a row
    /// without a key is arbitrary.
    pub fn for_each_batch(&self, hasher: &Hasher, work: &mut impl Work) -> Result<()> {
        if let Column::Numbers(numbers) = self {
            return work.run(numbers);
        }
        self.run_text(work)
            .unwrap_or_else(|| self.for_each(hasher, &mut |digests| work.run(&Hashed(digests))))
    }

    /// Passes a column of text that lies in one buffer to `work` as one batch; returns `None` for other
    /// columns.
    pub fn run_text(&self, work: &mut impl Work) -> Option<Result<()>> {
        match self {
            Column::Arrow { values: Values::Text(array), .. } => Some(run_strings(array, work)),
            Column::Arrow { values: Values::LargeText(array), .. } => Some(run_strings(array, work)),
            _ => None,
        }
    }

    /// Like [`for_each_batch`](Column::for_each_batch), but leaves out the rows without a key.
    pub fn for_each_key_batch(&self, hasher: &Hasher, work: &mut impl Work) -> Result<()> {
        match self.nulls() {
            Some(nulls) if nulls.null_count() > 0 => {
                self.for_each_key(hasher, &mut |digests| work.run(&Hashed(digests)))
            }
            _ => self.for_each_batch(hasher, work),
        }
    }

    /// Calls `f` with the bytes of each key, in order, until it fails.
    pub fn for_each_bytes(&self, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let nulls = self.nulls();
        let mut rows = (0..self.len()).filter(|row| nulls.is_none_or(|nulls| nulls.is_valid(*row)));
        rows.try_for_each(|row| self.with_bytes(row, f))
    }

    /// Calls `f` with the bytes of a key.
    pub fn with_bytes(&self, row: usize, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let integer = |copy: &dyn Fn(&mut [u64])| {
            let mut int = [0];
            copy(&mut int);
            int[0].to_le_bytes()
        };
        let values = match self {
            Column::Numbers(numbers) => return f(&integer(&|to| numbers.copy_to(row, to))),
            Column::Arrow { values, .. } => values,
        };
        let string = match values {
            Values::Integers(integers) => return f(&integer(&|to| integers.copy_to(row, to))),
            Values::Booleans(array) => return f(&u64::from(array.value(row)).to_le_bytes()),
            Values::FixedBytes(array) => return f(array.value(row)),
            Values::Text(array) => string(array.value_data(), array.value_offsets(), row),
            Values::LargeText(array) => string(array.value_data(), array.value_offsets(), row),
            Values::Bytes(array) => string(array.value_data(), array.value_offsets(), row),
            Values::LargeBytes(array) => string(array.value_data(), array.value_offsets(), row),
            Values::TextView(array) => {
                return with_view(array, row, f).unwrap_or_else(|| Err(outside(row)));
            }
            Values::BytesView(array) => {
                return with_view(array, row, f).unwrap_or_else(|| Err(outside(row)));
            }
            Values::Dictionary(values, indexes) => {
                let mut index = [0];
                indexes.copy_to(row, &mut index);
                return values.with_bytes(index[0] as usize, f);
            }
            Values::Nulls(_) => return Ok(()),
        };
        f(string.ok_or_else(|| outside(row))?)
    }

    /// Returns the digests of the values of a dictionary, each of which is hashed once; nothing for
    /// other columns.
    fn digests_of_values(&self, hasher: &Hasher) -> Result<Vec<Digest>> {
        let mut of_values = Vec::new();
        if let Column::Arrow { values: Values::Dictionary(values, _), .. } = self {
            values.for_each(hasher, &mut |digests| {
                of_values.extend_from_slice(digests);
                Ok(())
            })?;
        }
        Ok(of_values)
    }

    /// Hashes the rows from `start` on.
    fn digest_rows(
        &self,
        start: usize,
        hasher: &Hasher,
        of_values: &[Digest],
        digests: &mut [Digest],
    ) -> Result<()> {
        let rows = start..start + digests.len();
        let strings = rows.start..rows.end + 1;
        match self {
            Column::Numbers(numbers) => digest_integers(digests, hasher, start, numbers),
            Column::Arrow { values, .. } => match values {
                Values::Integers(array) => digest_integers(digests, hasher, start, &**array),
                Values::Booleans(array) => {
                    for (digest, row) in digests.iter_mut().zip(rows) {
                        *digest = hasher.digest_bytes(&u64::from(array.value(row)).to_le_bytes());
                    }
                }
                Values::Text(array) => {
                    digest_strings(digests, hasher, array.value_data(), &array.value_offsets()[strings])?;
                }
                Values::LargeText(array) => {
                    digest_strings(digests, hasher, array.value_data(), &array.value_offsets()[strings])?;
                }
                Values::Bytes(array) => {
                    digest_strings(digests, hasher, array.value_data(), &array.value_offsets()[strings])?;
                }
                Values::LargeBytes(array) => {
                    digest_strings(digests, hasher, array.value_data(), &array.value_offsets()[strings])?;
                }
                Values::FixedBytes(array) => {
                    for (digest, row) in digests.iter_mut().zip(rows) {
                        *digest = hasher.digest_bytes(array.value(row));
                    }
                }
                Values::TextView(array) => digest_views(digests, rows, hasher, array)?,
                Values::BytesView(array) => digest_views(digests, rows, hasher, array)?,
                Values::Dictionary(_, indexes) => {
                    let mut rows = vec![0; digests.len()];
                    indexes.copy_to(start, &mut rows);
                    for (digest, index) in digests.iter_mut().zip(rows) {
                        *digest = of_values.get(index as usize).copied().unwrap_or_default();
                    }
                }
                Values::Nulls(_) => {}
            },
        }
        Ok(())
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Integers(array) => array.len(),
            Values::Booleans(array) => array.len(),
            Values::Text(array) => array.len(),
            Values::LargeText(array) => array.len(),
            Values::TextView(array) => array.len(),
            Values::Bytes(array) => array.len(),
            Values::LargeBytes(array) => array.len(),
            Values::BytesView(array) => array.len(),
            Values::FixedBytes(array) => array.len(),
            Values::Dictionary(_, indexes) => indexes.len(),
            Values::Nulls(len) => *len,
        }
    }
}

/// The number of tiles ahead of the current one that integers are requested from memory.
pub const TILES_AHEAD: usize = 4;

/// Widens the integers from `start` on, and hashes them.
fn digest_integers(
    digests: &mut [Digest],
    hasher: &Hasher,
    start: usize,
    integers: &(impl Integers + ?Sized),
) {
    let mut tile = [0; TILE];
    for (at, digests) in (start..).step_by(TILE).zip(digests.chunks_mut(TILE)) {
        integers.prefetch(at + TILES_AHEAD * TILE);
        let tile = &mut tile[..digests.len()];
        integers.copy_to(at, tile);
        hasher.digest_batch_into(tile, 0, digests);
    }
}

/// Passes the strings of an array to `work`. Fails as [`digest_strings`] does.
fn run_strings<T: ByteArrayType<Offset: Offset>>(
    array: &GenericByteArray<T>,
    work: &mut impl Work,
) -> Result<()> {
    work.run(&Arena::new(array.value_data(), array.value_offsets())?)
}

/// Hashes strings that lie in one buffer. Fails if the offsets do not rise, or leave the buffer:
/// nothing has checked yet what the producer of the array promised.
fn digest_strings<O: Offset>(
    digests: &mut [Digest],
    hasher: &Hasher,
    bytes: &[u8],
    offsets: &[O],
) -> Result<()> {
    hasher.digest_batch_into(&Arena::new(bytes, offsets)?, 0, digests);
    Ok(())
}

/// Hashes strings that are given by views. Fails if a view leaves its buffer.
fn digest_views<T: ByteViewType + ?Sized>(
    digests: &mut [Digest],
    rows: std::ops::Range<usize>,
    hasher: &Hasher,
    array: &GenericByteViewArray<T>,
) -> Result<()> {
    for (digest, row) in digests.iter_mut().zip(rows) {
        *digest = match with_view(array, row, |bytes| hasher.digest_bytes(bytes)) {
            Some(digest) => digest,
            // The view of a row without a key is arbitrary.
            None if array.is_null(row) => Digest::default(),
            None => return Err(outside(row)),
        };
    }
    Ok(())
}

/// Calls `f` with the string that a view describes; returns `None` if it leaves its buffer. The
/// methods of the array do not check that.
fn with_view<T: ByteViewType + ?Sized, R>(
    array: &GenericByteViewArray<T>,
    row: usize,
    f: impl FnOnce(&[u8]) -> R,
) -> Option<R> {
    // The length, and then the string itself if it fits, or its first four bytes, the index of its
    // buffer, and its offset there.
    let view = array.views()[row].to_le_bytes();
    let part = |at: usize| u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]) as usize;
    let (len, buffer, offset) = (part(0), part(8), part(12));
    if let Some(inline) = view[4..].get(..len) {
        return Some(f(inline));
    }
    array.data_buffers().get(buffer)?.get(offset..offset + len).map(f)
}

/// Returns the string of a row; `None` if its offsets do not rise, or leave the buffer.
fn string<'a, O: Offset>(bytes: &'a [u8], offsets: &[O], row: usize) -> Option<&'a [u8]> {
    bytes.get(offsets[row].bytes() as usize..offsets[row + 1].bytes() as usize)
}

/// Returns the error for a row whose bytes are not in the buffers of its array.
fn outside(row: usize) -> Error {
    Error::parameter("row", row, "bytes that lie in the buffers of its Arrow column")
}

/// Returns an array with its concrete type.
pub fn downcast<A: Array + Clone + 'static>(array: &ArrayRef) -> Option<A> {
    array.as_any().downcast_ref::<A>().cloned()
}
