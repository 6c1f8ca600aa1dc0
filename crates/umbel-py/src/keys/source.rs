//! How an object holds many keys.

use super::arrow;
use super::c_data::Stream;
use super::column::Column;
use super::numbers::{Numbers, not_keys, one_dimension};
use crate::errors::Exception;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyImportError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PySet, PyString, PyTuple};

/// Many keys.
pub enum Source<'py> {
    /// Columns in memory.
    Columns(Columns),
    /// Objects that Python hands out one by one.
    Objects(Bound<'py, PyAny>),
}

/// One column, or a stream of them.
pub enum Columns {
    One(Option<Box<Column>>),
    Stream(Box<Stream>),
}

/// The library that an object comes from, which the answers to its keys should suit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Python,
    Numpy,
    Arrow,
}

impl Columns {
    /// Returns the next column; `None` after the last one. Fails if a signal handler does, as for
    /// Ctrl-C: a stream need not run Python code, nor end.
    pub fn next(&mut self, py: Python<'_>) -> PyResult<Option<Column>> {
        py.check_signals()?;
        match self {
            Columns::One(column) => Ok(column.take().map(|column| *column)),
            Columns::Stream(stream) => arrow::next(py, stream),
        }
    }
}

impl<'py> Source<'py> {
    /// Finds out how an object holds keys, and which library it comes from.
    ///
    /// # Errors
    ///
    /// If it is a column of a type that cannot be keys, or a table.
    pub fn new(object: &Bound<'py, PyAny>) -> PyResult<(Source<'py>, Origin)> {
        let objects = |origin| Ok((Source::Objects(object.clone()), origin));
        // A text is an iterable of characters, also one of numpy, which is a buffer too.
        if is_plain_container(object) || object.is_instance_of::<PyString>() {
            return objects(Origin::Python);
        }
        if let Some(columns) = from_arrow(object)? {
            return Ok((Source::Columns(columns), Origin::Arrow));
        }
        if is_numpy_array(object)? {
            return Ok((from_numpy(object)?, Origin::Numpy));
        }
        if let Ok(buffer) = PyUntypedBuffer::get(object) {
            return Ok((numbers(buffer)?, Origin::Python));
        }
        if object.hasattr(intern!(object.py(), "__array__"))? {
            // Such as a column of pandas 2.
            let array = object.py().import("numpy")?.call_method1("asarray", (object,))?;
            return Ok((from_numpy(&array)?, Origin::Numpy));
        }
        objects(Origin::Python)
    }
}

/// Returns whether iterating over an object runs no Python code, so that nothing can see how far the
/// iteration is.
pub fn is_plain_container(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
        || object.is_exact_instance_of::<PySet>()
        || object.is_exact_instance_of::<PyFrozenSet>()
        || object.is_exact_instance_of::<PyDict>()
}

fn from_arrow(object: &Bound<'_, PyAny>) -> PyResult<Option<Columns>> {
    let py = object.py();
    let columns = if object.hasattr(intern!(py, "__arrow_c_array__"))? {
        arrow::array(object).map(|column| Columns::One(Some(Box::new(column))))
    } else if object.hasattr(intern!(py, "__arrow_c_stream__"))? {
        refuse_polars_objects(object)?;
        arrow::stream(object).map(|stream| Columns::Stream(Box::new(stream)))
    } else {
        return Ok(None);
    };
    match columns {
        Ok(columns) => Ok(Some(columns)),
        // pandas has the method, but needs pyarrow for it.
        Err(error) if error.is_instance_of::<PyImportError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fails for a column of Python objects from polars, or a table of one: their Arrow form is the
/// addresses of the objects, and does not say so.
fn refuse_polars_objects(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let dtype = if is_instance(object, intern!(py, "polars"), intern!(py, "Series"))? {
        object.getattr(intern!(py, "dtype"))?
    } else if is_instance(object, intern!(py, "polars"), intern!(py, "DataFrame"))? {
        match object.getattr(intern!(py, "dtypes"))?.extract::<Vec<Bound<'_, PyAny>>>()?.pop() {
            Some(dtype) => dtype,
            None => return Ok(()),
        }
    } else {
        return Ok(());
    };
    if dtype.eq(py.import(intern!(py, "polars"))?.getattr(intern!(py, "Object"))?)? {
        return Err(Exception::KeyType.with(
            "a polars column of Python objects does not hold keys: convert it to text, bytes or integers, or pass \
             column.to_list() to a filter with key=",
        ));
    }
    Ok(())
}

fn is_numpy_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    is_instance(object, intern!(object.py(), "numpy"), intern!(object.py(), "ndarray"))
}

/// Returns whether an object is an instance of a class of this module, which need not exist.
fn is_instance(
    object: &Bound<'_, PyAny>,
    module: &Bound<'_, PyString>,
    class: &Bound<'_, PyString>,
) -> PyResult<bool> {
    // Instances exist only if the module is imported; importing it here would take a tenth of a second.
    let modules =
        object.py().import(intern!(object.py(), "sys"))?.getattr(intern!(object.py(), "modules"))?;
    let Some(module) = modules.cast::<PyDict>()?.get_item(module)? else { return Ok(false) };
    // Another thread may still be importing it, or a program may have put None in its place.
    match module.getattr_opt(class)? {
        Some(class) => object.is_instance(&class),
        None => Ok(false),
    }
}

fn from_numpy<'py>(array: &Bound<'py, PyAny>) -> PyResult<Source<'py>> {
    one_dimension(array.getattr("ndim")?.extract()?)?;
    if array.hasattr("mask")? {
        return Err(Exception::KeyType.with("a masked array has rows without keys: pass array.compressed()"));
    }
    let dtype = array.getattr("dtype")?;
    match dtype.getattr("kind")?.extract::<String>()?.as_str() {
        "b" | "i" | "u" => numbers(PyUntypedBuffer::get(array)?),
        // Texts of fixed length, bytes of fixed length, objects, and texts of any length.
        "U" | "S" | "O" | "T" => Ok(Source::Objects(array.clone())),
        _ => Err(not_keys(&format!("a numpy array of type {dtype}"))),
    }
}

fn numbers<'py>(buffer: PyUntypedBuffer) -> PyResult<Source<'py>> {
    let column = Column::Numbers(Numbers::new(buffer)?);
    Ok(Source::Columns(Columns::One(Some(Box::new(column)))))
}
