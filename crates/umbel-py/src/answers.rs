//! The answers to many keys, in the form that suits the library which the keys came from.

use crate::errors::Exception;
use crate::keys::Origin;
use arrow_array::ffi::to_ffi;
use arrow_array::{Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyList, PySlice};
use umbel::Answers;

/// The answers to many keys.
#[derive(Default)]
pub struct Collected {
    /// One byte for each row: 1 if it may be a member.
    answers: Vec<u8>,
    /// One element for each row of the columns so far: whether it had a key. Empty if all had.
    valid: Vec<bool>,
}

impl Collected {
    pub fn reserve(&mut self, rows: usize) {
        self.answers.reserve(rows);
    }

    pub fn push(&mut self, answers: &Answers) {
        let mut rows = answers.len();
        for word in answers.as_words() {
            let bytes: [u8; 64] = std::array::from_fn(|i| (word >> i & 1) as u8);
            let count = rows.min(64);
            self.answers.extend_from_slice(&bytes[..count]);
            rows -= count;
        }
    }

    /// Notes which of the last `rows` rows had no key.
    pub fn push_nulls(&mut self, rows: usize, nulls: Option<&NullBuffer>) {
        if nulls.is_none() && self.valid.is_empty() {
            return;
        }
        // All rows of the columns before had keys.
        let before = self.answers.len() - rows;
        if self.valid.len() < before {
            self.valid.resize(before, true);
        }
        match nulls {
            None => self.valid.resize(self.answers.len(), true),
            Some(nulls) => self.valid.extend(nulls.iter()),
        }
    }

    fn into_array(self) -> BooleanArray {
        let nulls = (!self.valid.is_empty()).then(|| NullBuffer::from(self.valid));
        let values = BooleanBuffer::collect_bool(self.answers.len(), |row| self.answers[row] == 1);
        BooleanArray::new(values, nulls)
    }
}

/// Returns the answers as a list, a numpy array, or a [`Mask`].
pub fn collect(py: Python<'_>, answers: Collected, origin: Origin) -> PyResult<Bound<'_, PyAny>> {
    match origin {
        Origin::Python => Ok(PyList::new(py, answers.answers.iter().map(|answer| *answer == 1))?.into_any()),
        Origin::Numpy => numpy_array(py, &answers.answers),
        Origin::Arrow => Ok(Bound::new(py, Mask(answers.into_array()))?.into_any()),
    }
}

/// Returns a numpy array of Booleans.
fn numpy_array<'py>(py: Python<'py>, answers: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    py.import("numpy")?.call_method1("frombuffer", (PyByteArray::new(py, answers), "bool"))
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
            return Err(Exception::Unsupported
                .with("the bits of a mask are copied to make a numpy array: leave copy= out"));
        }
        let bytes: Vec<u8> =
            (0..self.0.len()).map(|index| self.item(index).unwrap_or(false).into()).collect();
        let array = numpy_array(py, &bytes)?;
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
