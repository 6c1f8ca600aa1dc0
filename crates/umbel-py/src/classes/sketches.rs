//! Counts of keys and sketches of streams: `Count`, `Distinct`, `CountMin`, `TopK`, `Frequent`.

use super::filter::{Filter, Rows};
use super::kinds::{self, Items};
use super::leaf;
use super::structure::Structure;
use crate::errors::{Exception, bad_parameter, raise};
use crate::keys::{Source, for_each, for_each_object};
use crate::secret;
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use umbel::any::{AnySketch, Stored};
use umbel::key::Hashed;
use umbel::spec::KindOptions;
use umbel::{AnyCount, Digest, Kind, Spec, sketch};

/// Adds the digests of all keys of these iterables and columns to a structure.
fn add_digests(
    this: &Structure,
    others: &Bound<'_, PyTuple>,
    add: fn(&mut Stored, &[Digest]) -> umbel::Result<()>,
) -> PyResult<()> {
    let py = others.py();
    others.iter().try_for_each(|keys| match Source::new(&keys)?.0 {
        Source::Columns(mut columns) => {
            while let Some(column) = columns.next(py)? {
                this.with_change(py, |stored| {
                    column.for_each_key(&this.hasher, &mut |digests| add(stored, digests))
                })?;
            }
            Ok(())
        }
        Source::Objects(objects) => for_each(&objects, this.encoder(), &mut |digests| {
            this.storage.write_now(py, |storage| add(storage.change()?, digests)).map_err(raise)
        }),
    })
}

/// Adds the bytes of all keys of these iterables and columns to a structure that stores keys.
fn add_bytes(
    this: &Structure,
    others: &Bound<'_, PyTuple>,
    add: fn(&mut Stored, &[u8]) -> umbel::Result<()>,
) -> PyResult<()> {
    let py = others.py();
    others.iter().try_for_each(|keys| match Source::new(&keys)?.0 {
        Source::Columns(mut columns) => {
            while let Some(column) = columns.next(py)? {
                this.with_change(py, |stored| column.for_each_bytes(&mut |key| add(stored, key)))?;
            }
            Ok(())
        }
        Source::Objects(objects) => for_each_object(&objects, |object| add_one(this, object, add)),
    })
}

fn add_one(
    this: &Structure,
    item: &Bound<'_, PyAny>,
    add: fn(&mut Stored, &[u8]) -> umbel::Result<()>,
) -> PyResult<()> {
    let key = this.encoder().with_bytes(item, <[u8]>::to_vec)?;
    this.storage.write_now(item.py(), |storage| add(storage.change()?, &key)).map_err(raise)
}

/// Returns the number of times that an item was counted.
fn count_of(
    this: &Structure,
    item: &Bound<'_, PyAny>,
    count: fn(&Stored, &[u8]) -> umbel::Result<u64>,
) -> PyResult<u64> {
    let key = this.encoder().with_bytes(item, <[u8]>::to_vec)?;
    this.with_view(item.py(), |stored| count(stored, &key))
}

fn unite(py: Python<'_>, this: &Structure, other: &Structure) -> PyResult<()> {
    if std::ptr::eq(this, other) {
        return unite(py, this, &other.copied(py)?);
    }
    let (mut ours, theirs) = this.storage.write_with(py, &other.storage);
    py.detach(move || ours.change()?.union(theirs.view()?)).map_err(raise_union)
}

/// Raises a failure to unite. Only counts need seeds that differ, those of their random numbers.
fn raise_union(error: umbel::Error) -> PyErr {
    match error {
        umbel::Error::Parameter { name: "seed", got, needs } => bad_parameter("random_seed", got, needs),
        error => raise(error),
    }
}

fn united<'py, T: PyClass>(py: Python<'py>, this: &Structure, other: &Structure) -> PyResult<Bound<'py, T>> {
    let copy = leaf::wrap(py, this.copied(py)?)?;
    unite(py, copy.cast::<Structure>()?.get(), other)?;
    Ok(copy.cast_into::<T>()?)
}

fn wrong(stored: &Stored) -> umbel::Error {
    umbel::Error::parameter("kind", stored.kind(), "another kind")
}

/// How often each item was added, from once to millions of times, in about 15 bits per addition.
///
/// `expected_items` is the number of additions it is planned for. `kind` is "multi-resolution" or
/// "space-code", which is smaller but counts only up to about a hundred.
///
/// Each addition sets random bits. Counts that will be united need different random numbers: pass
/// each another `random_seed`.
///
/// >>> visits = Count(10_000)
/// >>> visits.update(["/index.html"] * 500)
/// >>> 300 < visits.count("/index.html") < 800
/// True
#[pyclass(frozen, extends = Structure, module = "umbel")]
pub struct Count;

fn as_count(stored: &Stored) -> umbel::Result<&AnyCount> {
    match stored {
        Stored::Count(counts) => Ok(counts),
        other => Err(wrong(other)),
    }
}

fn record(stored: &mut Stored, digests: &[Digest]) -> umbel::Result<()> {
    match stored {
        Stored::Count(counts) => {
            counts.insert_batch(&Hashed(digests));
            Ok(())
        }
        other => Err(wrong(other)),
    }
}

/// Parses the parameter `random_seed`.
fn random_seed(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    kinds::number(object, "random_seed", "a number from 0 to 2**64 - 1")
}

impl Count {
    fn structure<'a>(this: &'a Bound<'_, Count>) -> &'a Structure {
        this.as_super().get()
    }
}

#[pymethods]
impl Count {
    #[new]
    #[pyo3(signature = (
        expected_items, *, noise = 0.005, kind = "multi-resolution", random_seed = 0, hash = None, secret = None,
        seed = 0, key = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn new(
        py: Python<'_>,
        expected_items: Items,
        #[pyo3(from_py_with = kinds::real)] noise: f64,
        kind: &str,
        #[pyo3(from_py_with = random_seed)] random_seed: u64,
        hash: Option<&str>,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = kinds::seed)] seed: u64,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Count>> {
        let kind = kinds::kind_of(kind, &[Kind::MultiResolution, Kind::SpaceCode])?;
        let raise_noise = |error| match error {
            umbel::Error::Parameter { name: "p", got, needs } => bad_parameter("noise", got, needs),
            error => raise(error),
        };
        let spec = Spec::new(expected_items.0, noise).map_err(raise_noise)?;
        let mut options = KindOptions::default();
        options.space_code.seed = random_seed;
        let spec = spec.with_hasher(secret::hasher(hash, secret, seed)?).with_options(options);
        let counts = py.detach(|| AnyCount::build(kind, &spec)).map_err(raise_noise)?;
        Ok(PyClassInitializer::from(Structure::owned(counts, key)?).add_subclass(Count))
    }

    /// Records an item once more.
    ///
    /// >>> visits = Count(1000)
    /// >>> visits.add("/index.html")
    /// >>> "/index.html" in visits
    /// True
    fn add(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let this = Count::structure(slf);
        let digest = this.encoder().digest(item)?;
        this.storage.write_now(slf.py(), |storage| record(storage.change()?, &[digest])).map_err(raise)
    }

    /// Records each item of iterables and columns once more.
    #[pyo3(signature = (*others))]
    fn update(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        add_digests(Count::structure(slf), others, record)
    }

    /// Estimates how often an item was recorded.
    fn count(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(Count::interval(slf, item)?.0)
    }

    /// Estimates how often an item was recorded, with a 95 % confidence interval: the estimate, its
    /// lower and its upper end.
    ///
    /// >>> visits = Count(1000)
    /// >>> visits.update(["/index.html"] * 100)
    /// >>> estimate, low, high = visits.interval("/index.html")
    /// >>> low < 100 < high
    /// True
    fn interval(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<(f64, f64, f64)> {
        let this = Count::structure(slf);
        let digest = this.encoder().digest(item)?;
        let count = this.with_view(slf.py(), |stored| Ok(as_count(stored)?.count_digest(digest)))?;
        Ok((count.value, count.low, count.high))
    }

    /// Estimates how often each of many items was recorded: a list, in order, with 0 for null.
    ///
    /// >>> visits = Count(1000)
    /// >>> visits.add("/index.html")
    /// >>> [round(count) for count in visits.count_many(["/index.html", "/about.html"])]
    /// [1, 0]
    fn count_many<'py>(slf: &Bound<'py, Self>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let this = Count::structure(slf);
        let Rows { digests, nulls } = Filter::rows(items, this.encoder())?;
        let counts =
            this.with_view(slf.py(), |stored| Ok(as_count(stored)?.count_batch(&Hashed(&digests))))?;
        let mut values: Vec<f64> = counts.iter().map(|count| count.value).collect();
        nulls.into_iter().for_each(|row| values[row] = 0.0);
        PyList::new(slf.py(), values)
    }

    fn __contains__(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let this = Count::structure(slf);
        let digest = this.encoder().digest(item)?;
        this.with_view(slf.py(), |stored| Ok(as_count(stored)?.contains_digest(digest)))
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Count>) -> PyResult<()> {
        unite(slf.py(), Count::structure(slf), Count::structure(other))
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Count>) -> PyResult<Bound<'py, Self>> {
        united(slf.py(), Count::structure(slf), Count::structure(other))
    }

    /// Removes everything.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
        Count::structure(slf).with_change(slf.py(), Stored::clear)
    }
}

/// Parses the parameter `k`.
fn number_of_items(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    kinds::number(object, "k", "a number of items from 1 on")
}

/// Defines a class of sketches, with the methods that all of them have.
macro_rules! sketch_class {
    ($(#[$doc:meta])* $class:ident, $add:path, { $($methods:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, extends = Structure, module = "umbel")]
        pub struct $class;

        impl $class {
            fn structure<'a>(this: &'a Bound<'_, $class>) -> &'a Structure {
                this.as_super().get()
            }

            fn make(sketch: impl Into<AnySketch>, key: Option<Py<PyAny>>) -> PyResult<PyClassInitializer<$class>> {
                let stored = Stored::Sketch(sketch.into());
                Ok(PyClassInitializer::from(Structure::owned(stored, key)?).add_subclass($class))
            }
        }

        #[pymethods]
        impl $class {
            $($methods)*

            /// Counts each item of iterables and columns.
            #[pyo3(signature = (*others))]
            fn update(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
                add_bytes($class::structure(slf), others, $add)
            }

            /// Counts an item.
            fn add(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<()> {
                add_one($class::structure(slf), item, $add)
            }

            /// Removes everything.
            fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
                $class::structure(slf).with_change(slf.py(), Stored::clear)
            }

            fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, $class>) -> PyResult<()> {
                unite(slf.py(), $class::structure(slf), $class::structure(other))
            }

            fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, $class>) -> PyResult<Bound<'py, Self>> {
                united(slf.py(), $class::structure(slf), $class::structure(other))
            }
        }
    };
}

/// Defines the function that counts a key of a sketch.
macro_rules! add_to {
    ($name:ident, $class:ident) => {
        fn $name(stored: &mut Stored, key: &[u8]) -> umbel::Result<()> {
            match stored {
                Stored::Sketch(AnySketch::$class(sketch)) => {
                    let _ = sketch.insert(key);
                    Ok(())
                }
                other => Err(wrong(other)),
            }
        }
    };
}
add_to!(add_to_count_min, CountMin);
add_to!(add_to_top_k, TopK);
add_to!(add_to_frequent, Frequent);

/// The number of distinct items of a stream, in memory that does not grow: HyperLogLog.
///
/// `error` is the relative standard error, for example 0.01.
///
/// >>> visitors = Distinct(0.01)
/// >>> visitors.update(["alice", "bob", "alice"])
/// >>> round(visitors.count())
/// 2
#[pyclass(frozen, extends = Structure, module = "umbel")]
pub struct Distinct;

fn as_distinct(stored: &Stored) -> umbel::Result<&sketch::Distinct> {
    match stored {
        Stored::Sketch(AnySketch::Distinct(sketch)) => Ok(sketch),
        other => Err(wrong(other)),
    }
}

fn add_to_distinct(stored: &mut Stored, digests: &[Digest]) -> umbel::Result<()> {
    match stored {
        Stored::Sketch(AnySketch::Distinct(sketch)) => {
            sketch.insert_tile(digests);
            Ok(())
        }
        other => Err(wrong(other)),
    }
}

impl Distinct {
    fn structure<'a>(this: &'a Bound<'_, Distinct>) -> &'a Structure {
        this.as_super().get()
    }
}

#[pymethods]
impl Distinct {
    #[new]
    #[pyo3(signature = (error = 0.01, *, hash = None, secret = None, seed = 0, key = None))]
    fn new(
        #[pyo3(from_py_with = kinds::real)] error: f64,
        hash: Option<&str>,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = kinds::seed)] seed: u64,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Distinct>> {
        let hasher = secret::hasher(hash, secret, seed)?;
        let sketch = sketch::Distinct::with_error(error).map_err(raise)?.with_hasher(hasher);
        let stored = Stored::Sketch(sketch.into());
        Ok(PyClassInitializer::from(Structure::owned(stored, key)?).add_subclass(Distinct))
    }

    /// Counts an item, unless it was counted before.
    fn add(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let this = Distinct::structure(slf);
        let digest = this.encoder().digest(item)?;
        this.storage
            .write_now(slf.py(), |storage| add_to_distinct(storage.change()?, &[digest]))
            .map_err(raise)
    }

    /// Counts the items of iterables and columns.
    #[pyo3(signature = (*others))]
    fn update(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        add_digests(Distinct::structure(slf), others, add_to_distinct)
    }

    /// Estimates the number of distinct items.
    fn count(slf: &Bound<'_, Self>) -> PyResult<f64> {
        Ok(Distinct::estimate(slf)?.0)
    }

    /// Estimates the number of distinct items: the number and its standard error.
    ///
    /// >>> visitors = Distinct(0.01)
    /// >>> visitors.update(range(100_000))
    /// >>> count, error = visitors.estimate()
    /// >>> abs(count - 100_000) < 4 * error
    /// True
    fn estimate(slf: &Bound<'_, Self>) -> PyResult<(f64, f64)> {
        let count =
            Distinct::structure(slf).with_view(slf.py(), |stored| Ok(as_distinct(stored)?.count()))?;
        Ok((count.value, count.standard_error))
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Distinct>) -> PyResult<()> {
        unite(slf.py(), Distinct::structure(slf), Distinct::structure(other))
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Distinct>) -> PyResult<Bound<'py, Self>> {
        united(slf.py(), Distinct::structure(slf), Distinct::structure(other))
    }

    /// Removes everything.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
        Distinct::structure(slf).with_change(slf.py(), Stored::clear)
    }
}

sketch_class! {
    /// How often each item of a stream was added, never too low: a count-min sketch.
    ///
    /// A count is too high by at most `error` times the number of all additions, except with
    /// `probability`.
    ///
    /// >>> counts = CountMin(0.001, 0.01)
    /// >>> counts.update(["apple", "pear", "apple"])
    /// >>> counts.count("apple")
    /// 2
    CountMin, add_to_count_min, {
        #[new]
        #[pyo3(signature = (error = 0.001, probability = 0.01, *, hash = None, secret = None, seed = 0, key = None))]
        fn new(
            #[pyo3(from_py_with = kinds::real)] error: f64,
            #[pyo3(from_py_with = kinds::real)] probability: f64,
            hash: Option<&str>,
            secret: Option<&Bound<'_, PyAny>>,
            #[pyo3(from_py_with = kinds::seed)] seed: u64,
            key: Option<Py<PyAny>>,
        ) -> PyResult<PyClassInitializer<CountMin>> {
            let hasher = secret::hasher(hash, secret, seed)?;
            let sketch = sketch::CountMin::with_error(error, probability).map_err(raise)?;
            CountMin::make(sketch.with_hasher(hasher), key)
        }

        /// Returns how often an item was added, or more.
        fn count(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<u64> {
            count_of(CountMin::structure(slf), item, |stored, key| match stored {
                Stored::Sketch(AnySketch::CountMin(sketch)) => Ok(sketch.count(key)),
                other => Err(wrong(other)),
            })
        }
    }
}

sketch_class! {
    /// The `k` most frequent items of a stream, with their counts: HeavyKeeper.
    ///
    /// >>> top = TopK(2)
    /// >>> top.update(["apple"] * 3 + ["pear"] * 2 + ["plum"])
    /// >>> top.items()
    /// [('apple', 3), ('pear', 2)]
    TopK, add_to_top_k, {
        #[new]
        #[pyo3(signature = (k, *, hash = None, secret = None, seed = 0, key = None))]
        fn new(
            #[pyo3(from_py_with = number_of_items)] k: u64,
            hash: Option<&str>,
            secret: Option<&Bound<'_, PyAny>>,
            #[pyo3(from_py_with = kinds::seed)] seed: u64,
            key: Option<Py<PyAny>>,
        ) -> PyResult<PyClassInitializer<TopK>> {
            let hasher = secret::hasher(hash, secret, seed)?;
            TopK::make(sketch::TopK::builder(k).build_with_hasher(hasher).map_err(raise)?, key)
        }

        /// Returns how often an item was added, as far as it is known; 0 if it is not among the most
        /// frequent ones.
        fn count(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<u64> {
            count_of(TopK::structure(slf), item, |stored, key| match stored {
                Stored::Sketch(AnySketch::TopK(sketch)) => Ok(sketch.count(key)),
                other => Err(wrong(other)),
            })
        }

        /// Returns the most frequent items with their counts, the most frequent one first.
        ///
        /// A sketch stores the bytes of its items. `type` is the type that they are returned as: str
        /// (the default), bytes or int.
        ///
        /// >>> top = TopK(2)
        /// >>> top.update([404] * 3 + [200] * 5)
        /// >>> top.items(int)
        /// [(200, 5), (404, 3)]
        #[pyo3(signature = (r#type = None))]
        fn items<'py>(
            slf: &Bound<'py, Self>,
            r#type: Option<&Bound<'py, PyType>>,
        ) -> PyResult<Bound<'py, PyList>> {
            items(TopK::structure(slf), slf.py(), r#type)
        }
    }
}

sketch_class! {
    /// Every item above a share of the stream, with a lower bound of its count: Misra-Gries.
    ///
    /// It has all items that were added more than once in `k + 1` additions.
    ///
    /// >>> frequent = Frequent(2)
    /// >>> frequent.update(["apple"] * 3 + ["pear"] * 2 + ["plum"])
    /// >>> frequent.items()[0][0]
    /// 'apple'
    Frequent, add_to_frequent, {
        #[new]
        #[pyo3(signature = (k, *, hash = None, secret = None, seed = 0, key = None))]
        fn new(
            #[pyo3(from_py_with = number_of_items)] k: u64,
            hash: Option<&str>,
            secret: Option<&Bound<'_, PyAny>>,
            #[pyo3(from_py_with = kinds::seed)] seed: u64,
            key: Option<Py<PyAny>>,
        ) -> PyResult<PyClassInitializer<Frequent>> {
            let hasher = secret::hasher(hash, secret, seed)?;
            Frequent::make(sketch::Frequent::new(k).map_err(raise)?.with_hasher(hasher), key)
        }

        /// Returns a lower bound of how often an item was added.
        fn count(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<u64> {
            count_of(Frequent::structure(slf), item, |stored, key| match stored {
                Stored::Sketch(AnySketch::Frequent(sketch)) => Ok(sketch.count(key)),
                other => Err(wrong(other)),
            })
        }

        /// Returns the items with lower bounds of their counts, the most frequent one first; see
        /// `TopK.items`.
        #[pyo3(signature = (r#type = None))]
        fn items<'py>(
            slf: &Bound<'py, Self>,
            r#type: Option<&Bound<'py, PyType>>,
        ) -> PyResult<Bound<'py, PyList>> {
            items(Frequent::structure(slf), slf.py(), r#type)
        }
    }
}

/// Returns the stored items of a sketch and their counts.
fn items<'py>(
    this: &Structure,
    py: Python<'py>,
    of_type: Option<&Bound<'py, PyType>>,
) -> PyResult<Bound<'py, PyList>> {
    let items: Vec<(Vec<u8>, u64)> = this.with_view(py, |stored| {
        let items = match stored {
            Stored::Sketch(AnySketch::TopK(sketch)) => sketch.items(),
            Stored::Sketch(AnySketch::Frequent(sketch)) => sketch.items(),
            other => return Err(wrong(other)),
        };
        Ok(items.iter().map(|item| (item.key.to_vec(), item.count)).collect())
    })?;
    let is = |class: Bound<'py, PyType>| of_type.is_some_and(|wanted| wanted.is(&class));
    let (bytes, int) = (is(py.get_type::<PyBytes>()), is(py.get_type::<PyInt>()));
    if !bytes && !int && of_type.is_some() && !is(py.get_type::<PyString>()) {
        return Err(
            Exception::Parameter.with("items are returned as str, bytes or int: pass one of these types")
        );
    }
    let object = |key: &[u8]| -> PyResult<Bound<'py, PyAny>> {
        let raw = PyBytes::new(py, key);
        if bytes {
            return Ok(raw.into_any());
        }
        if int {
            let signed = PyDict::new(py);
            signed.set_item("signed", true)?;
            return py.get_type::<PyInt>().call_method("from_bytes", (raw, "little"), Some(&signed));
        }
        // Bytes that are not text survive the way to a str and back.
        raw.call_method1("decode", ("utf-8", "surrogateescape"))
    };
    let pairs = items.iter().map(|(key, count)| Ok((object(key)?, *count))).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, pairs)
}
