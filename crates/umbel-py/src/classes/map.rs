//! `Map`: a value for each key in a few bits.

use super::filter::{Filter, Rows};
use super::kinds;
use super::structure::Structure;
use crate::errors::{Exception, raise};
use crate::keys::{Encoder, for_each_object};
use crate::secret;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use std::collections::BTreeMap;
use umbel::any::Stored;
use umbel::bloomier::CodeBook;
use umbel::key::Hashed;
use umbel::spec::Construction;
use umbel::{AnyMap, Digest, Kind, Spec};

/// An approximate map: the value of each key in 1.13 times the bits of a value, plus the bits of the
/// rate.
///
/// `keys` and `values` are of the same length. Values are integers from 0 to 2**64 - 1, or texts, which
/// are stored once each. A key that is not in the map has no value, except at the rate. With
/// `kind="bloomier-mutable"`, the values of the keys can be changed.
///
/// >>> sections = Map(["bash", "vim", "gcc"], [0, 1, 2], 0.01)
/// >>> sections["vim"], sections.get("emacs", "none")
/// (1, 'none')
/// >>> sections = Map(["bash", "vim"], [0, 1], kind="bloomier-mutable")
/// >>> sections["vim"] = 0
/// >>> sections["vim"]
/// 0
#[pyclass(frozen, extends = Structure, module = "umbel", mapping)]
pub struct Map;

/// The values of a new map: numbers, or the numbers of names and the names.
fn values(values: &Bound<'_, PyAny>) -> PyResult<(Vec<u64>, Option<CodeBook>)> {
    let mut objects = Vec::new();
    for_each_object(values, |value| {
        objects.push(value.clone());
        Ok(())
    })?;
    let values = objects;
    if !values.first().is_some_and(|value| value.is_instance_of::<PyString>()) {
        return Ok((values.iter().map(number).collect::<PyResult<_>>()?, None));
    }
    let text =
        |value: &Bound<'_, PyAny>| Ok(value.cast::<PyString>().map_err(|_| no_value())?.to_str()?.to_owned());
    let texts: Vec<String> = values.iter().map(text).collect::<PyResult<_>>()?;
    let mut numbers: BTreeMap<&str, u64> = texts.iter().map(|text| (text.as_str(), 0)).collect();
    numbers.values_mut().enumerate().for_each(|(at, number)| *number = at as u64);
    let names: Vec<&str> = numbers.keys().copied().collect();
    let book = CodeBook::new(&names).map_err(raise)?;
    Ok((texts.iter().map(|text| numbers[text.as_str()]).collect(), Some(book)))
}

fn number(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract().map_err(|_| no_value())
}

fn no_value() -> PyErr {
    Exception::Parameter.with("the values of a map are integers from 0 on, or all of them are texts")
}

impl Map {
    fn structure<'a>(map: &'a Bound<'_, Map>) -> &'a Structure {
        map.as_super().get()
    }

    /// Looks up keys; returns their values as Python objects, `None` for keys without one.
    fn look_up<'py>(map: &Bound<'py, Map>, digests: &[Digest]) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let (py, this) = (map.py(), Map::structure(map));
        let (values, names) = this.with_view(py, |stored| {
            let map = as_map(stored)?;
            let values = map.get_batch(&Hashed(digests));
            let name = |value: &Option<u64>| {
                let book = map.book()?;
                book.get((*value)?).map(|name| name.into_owned())
            };
            let names = map.book().map(|_| values.iter().map(name).collect::<Vec<_>>());
            Ok((values, names))
        })?;
        let object = |(row, value): (usize, Option<u64>)| {
            let Some(value) = value else { return Ok(None) };
            let name = names.as_ref().and_then(|names| names[row].as_deref());
            Ok(Some(match name.map(|name| (name, str::from_utf8(name))) {
                None => value.into_pyobject(py)?.into_any(),
                Some((_, Ok(text))) => PyString::new(py, text).into_any(),
                Some((bytes, Err(_))) => PyBytes::new(py, bytes).into_any(),
            }))
        };
        values.into_iter().enumerate().map(object).collect()
    }
}

fn as_map(stored: &Stored) -> umbel::Result<&AnyMap> {
    match stored {
        Stored::Map(map) => Ok(map),
        other => Err(umbel::Error::parameter("kind", other.kind(), "a map")),
    }
}

#[pymethods]
impl Map {
    #[new]
    #[pyo3(signature = (
        keys, values, false_positive_rate = 0.01, *, kind = "bloomier", hash = None, secret = None, seed = 0, key = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn new(
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = kinds::real)] false_positive_rate: f64,
        kind: &str,
        hash: Option<&str>,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = kinds::seed)] seed: u64,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Map>> {
        let kind = kinds::kind_of(kind, &[Kind::Bloomier, Kind::BloomierMutable])?;
        let hasher = secret::hasher(hash, secret, seed)?;
        let digests = Filter::digests(keys, Encoder { hasher: &hasher, key: key.as_ref() })?;
        let (values, book) = self::values(values)?;
        if digests.len() != values.len() {
            return Err(Exception::Parameter.with(format!(
                "there are {} keys, but {} values: a map needs one value for each key that is not null",
                digests.len(),
                values.len()
            )));
        }
        let spec =
            Spec::new(digests.len().max(1) as u64, false_positive_rate).map_err(raise)?.with_hasher(hasher);
        let pairs = digests.into_iter().zip(values).collect();
        let map = py.detach(|| AnyMap::from_pairs(kind, &spec, pairs, book, &Construction::default()));
        Ok(PyClassInitializer::from(Structure::owned(map.map_err(raise)?, key)?).add_subclass(Map))
    }

    /// Returns the value of a key, or the default if it has none.
    ///
    /// >>> sections = Map(["bash", "vim"], ["shells", "editors"], 1e-6)
    /// >>> sections.get("bash"), sections.get("emacs", "unknown")
    /// ('shells', 'unknown')
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let digest = Map::structure(slf).encoder().digest(key)?;
        let value = Map::look_up(slf, &[digest])?.pop().flatten();
        Ok(value.or(default))
    }

    /// Returns the values of many keys, in order: a list, with None for keys without a value and for
    /// null.
    ///
    /// >>> Map(["bash", "vim"], [1, 2], 1e-6).get_many(["vim", "emacs", "bash"])
    /// [2, None, 1]
    fn get_many<'py>(slf: &Bound<'py, Self>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let Rows { digests, nulls } = Filter::rows(keys, Map::structure(slf).encoder())?;
        let mut values = Map::look_up(slf, &digests)?;
        nulls.into_iter().for_each(|row| values[row] = None);
        PyList::new(slf.py(), values)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Map::get(slf, key, None)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let this = Map::structure(slf);
        let (digest, value) = (this.encoder().digest(key)?, number(value)?);
        let set = this.with_change(slf.py(), |stored| match stored {
            Stored::Map(map) => map.set_digest(digest, value),
            other => Err(umbel::Error::parameter("kind", other.kind(), "a map")),
        })?;
        // The keys of a map are fixed, only their values change.
        if set { Ok(()) } else { Err(PyKeyError::new_err(key.clone().unbind())) }
    }

    fn __delitem__(_slf: &Bound<'_, Self>, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(Exception::Unsupported.with(
            "the keys of a map are fixed: build a new one without the key, or give the key another value",
        ))
    }

    fn __contains__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(Map::get(slf, key, None)?.is_some())
    }

    /// The largest value that a key can have.
    #[getter]
    fn largest_value(slf: &Bound<'_, Self>) -> PyResult<u64> {
        Map::structure(slf).with_view(slf.py(), |stored| Ok(as_map(stored)?.largest_value()))
    }

    /// The texts of the values, if they are texts, with their numbers.
    #[getter]
    fn names<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let names = Map::structure(slf).with_view(slf.py(), |stored| {
            let names = |book: &CodeBook| book.iter().map(|name| name.into_owned()).collect::<Vec<_>>();
            Ok(as_map(stored)?.book().map(names))
        })?;
        let Some(names) = names else { return Ok(None) };
        let dict = PyDict::new(slf.py());
        for (number, name) in names.iter().enumerate() {
            dict.set_item(number, String::from_utf8_lossy(name))?;
        }
        Ok(Some(dict))
    }
}
