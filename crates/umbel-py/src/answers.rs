//! The answers to many keys, in the form that suits the library which the keys came from.

use crate::errors::{Exception, too_many_rows};
use crate::keys::Origin;
use arrow_array::ffi::to_ffi;
use arrow_array::{Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder};
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyList, PySlice};
use umbel::Answers;

/// The answers to many keys: one bit each.
pub struct Collected {
    /// 64 answers each, the first in the lowest bit. Unused bits are zero.
    words: Vec<u64>,
    len: usize,
    /// Which of them are those of rows that had a key.
    nulls: NullBufferBuilder,
}

impl Default for Collected {
    fn default() -> Collected {
        Collected { words: Vec::new(), len: 0, nulls: NullBufferBuilder::new(0) }
    }
}

impl Collected {
    /// Makes room for the answers to a column. Some columns take no memory themselves, such as the
    /// broadcast arrays of numpy, so there may be more of them than memory can hold.
    pub fn reserve(&mut self, rows: usize) -> PyResult<()> {
        self.words.try_reserve(rows.div_ceil(64) + 1).map_err(|_| too_many_rows(rows))
    }

    pub fn push(&mut self, answers: &Answers) {
        let used = self.len % 64;
        self.len += answers.len();
        match self.words.last_mut() {
            Some(last) if used > 0 => {
                let mut carry = *last;
                self.words.pop();
                for word in answers.as_words() {
                    self.words.push(carry | word << used);
                    carry = word >> (64 - used);
                }
                self.words.push(carry);
            }
            _ => self.words.extend_from_slice(answers.as_words()),
        }
        self.words.truncate(self.len.div_ceil(64));
    }

    /// Notes which of the last `rows` rows had no key.
    pub fn push_nulls(&mut self, rows: usize, nulls: Option<&NullBuffer>) {
        match nulls {
            None => self.nulls.append_n_non_nulls(rows),
            Some(nulls) => self.nulls.append_buffer(nulls),
        }
    }

    fn into_array(mut self) -> BooleanArray {
        self.words.iter_mut().for_each(|word| *word = word.to_le());
        let values = BooleanBuffer::new(Buffer::from(self.words), 0, self.len);
        BooleanArray::new(values, self.nulls.finish())
    }
}

/// Returns the answers as a list, a numpy array, or a [`Mask`].
pub fn collect(py: Python<'_>, answers: Collected, origin: Origin) -> PyResult<Bound<'_, PyAny>> {
    match origin {
        Origin::Python => {
            let answer = |row: usize| answers.words[row / 64] >> (row % 64) & 1 == 1;
            Ok(PyList::new(py, (0..answers.len).map(answer))?.into_any())
        }
        Origin::Numpy => numpy_array(py, answers.len, answers.words.into_iter()),
        Origin::Arrow => Ok(Bound::new(py, Mask(answers.into_array()))?.into_any()),
    }
}

/// Returns a numpy array of Booleans, which are given as 64 bits each, the first in the lowest bit.
fn numpy_array(py: Python<'_>, len: usize, words: impl Iterator<Item = u64>) -> PyResult<Bound<'_, PyAny>> {
    let array = PyByteArray::new_with(py, len, |bytes| {
        let (tiles, rest) = bytes.as_chunks_mut::<64>();
        let mut words = words.map(|word| word.to_le_bytes().map(spread));
        for (tile, word) in tiles.iter_mut().zip(&mut words) {
            *tile = *word.as_flattened().first_chunk().expect("64 bytes");
        }
        if let Some(word) = words.next() {
            rest.copy_from_slice(&word.as_flattened()[..rest.len()]);
        }
        Ok(())
    })?;
    py.import("numpy")?.call_method1("frombuffer", (array, "bool"))
}

/// Returns a byte for each bit of a byte, the lowest bit first.
#[inline(always)]
fn spread(byte: u8) -> [u8; 8] {
    // Bit i in byte i of a word, and then 1 in each byte that is not 0.
    let bits = (u64::from(byte) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    (((bits + 0x7f7f_7f7f_7f7f_7f7f) >> 7) & 0x0101_0101_0101_0101).to_le_bytes()
}

/// The answers to an Arrow column: an Arrow array of Booleans, in which the answer to a null value is
/// null.
///
/// Every library that reads Arrow takes it without a copy, as in `pyarrow.array(mask)` and
/// `polars.Series(mask)`; `numpy.asarray(mask)` makes a numpy array, in which null is False.
///
/// >>> import pyarrow
/// >>> f = Bloom(100, 0.01)
/// >>> f.update(["apple", "pear"])
/// >>> f.contains_many(pyarrow.array(["apple", None, "plum"])).to_list()
/// [True, None, False]
#[pyclass(frozen, module = "umbel", sequence)]
pub struct Mask(BooleanArray);

impl Mask {
    fn item(&self, index: usize) -> Option<bool> {
        self.0.is_valid(index).then(|| self.0.value(index))
    }
}

#[pymethods]
impl Mask {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            return self.to_list(py)?.get_item(slice);
        }
        let len = self.0.len();
        let outside =
            || PyIndexError::new_err(format!("index {index} is outside of a mask with {len} answers"));
        let index = match index.extract::<isize>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => return Err(outside()),
            index => index?,
        };
        let at = if index < 0 { index.checked_add_unsigned(len) } else { Some(index) };
        let at = at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < len).ok_or_else(outside)?;
        Ok(self.item(at).into_pyobject(py)?.into_any())
    }

    /// Returns the answers as a list of True, False and None.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, (0..self.0.len()).map(|index| self.item(index)))?.into_any())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.to_list(py)?.try_iter()?.into_any())
    }

    fn __repr__(&self) -> String {
        format!("<umbel.Mask of {} answers, {} true>", self.0.len(), self.0.true_count())
    }

    #[pyo3(signature = (dtype = None, *, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            // As numpy demands: a `ValueError`.
            return Err(Exception::Parameter
                .with("the bits of a mask are copied to make a numpy array: leave copy= out"));
        }
        let known = self.0.nulls().map(|nulls| self.0.values() & nulls.inner());
        let answers = known.as_ref().unwrap_or(self.0.values());
        let array = numpy_array(py, answers.len(), answers.bit_chunks().iter_padded())?;
        match dtype {
            Some(dtype) if !dtype.is_none() => array.call_method1("astype", (dtype,)),
            _ => Ok(array),
        }
    }

    /// Exports the answers; see the Arrow `PyCapsule` interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A request is best effort: Booleans have no other form.
        let _ = requested_schema;
        let (array, schema) =
            to_ffi(&self.0.to_data()).map_err(|error| Exception::Parameter.with(error.to_string()))?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}
