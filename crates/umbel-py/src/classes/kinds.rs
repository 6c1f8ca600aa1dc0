//! The classes of sets: their constructors, and the operations that only some kinds have.

use super::filter::{Filter, discard, remove, structure};
use super::structure::Structure;
use crate::errors::{Exception, bad_parameter, raise};
use crate::keys::Encoder;
use crate::secret;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDict};
use std::time::Duration;
use umbel::aging::{self, Window};
use umbel::any::Stored;
use umbel::spec::{Construction, KindOptions, plan as plan_filter, stored_rate};
use umbel::{AnyFilter, Kind, Spec, Timestamp};

/// A constructor's result: the data, as an instance of `Filter`.
type Set = PyClassInitializer<Filter>;

/// The parameters that all constructors share.
struct Common<'a, 'py> {
    hash: Option<&'a str>,
    secret: Option<&'a Bound<'py, PyAny>>,
    seed: u64,
    key: Option<Py<PyAny>>,
}

/// A number of items.
pub struct Items(pub u64);

impl<'a, 'py> FromPyObject<'a, 'py> for Items {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Items> {
        number(&object, "expected_items", "a number of keys from 1 to 2^48").map(Items)
    }
}

/// Parses the parameter `seed`.
pub fn seed(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    number(object, "seed", "a number from 0 to 2**64 - 1")
}

/// Parses a number that is not negative.
pub fn number<'py, T>(object: &Bound<'py, PyAny>, name: &str, needs: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    object.extract::<T>().map_err(|error| {
        if !error.is_instance_of::<PyOverflowError>(object.py()) {
            return error;
        }
        // Python refuses to write very large integers.
        let got = object.str().map_or_else(|_| String::new(), |text| text.to_string());
        let got = if (1..40).contains(&got.len()) { got } else { "a number of many digits".to_owned() };
        bad_parameter(name, got, needs)
    })
}

/// Parses a real number. A number that is too large for it is infinite, which no parameter may be.
pub fn real(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    object.extract::<f64>().or_else(|error| {
        if !error.is_instance_of::<PyOverflowError>(object.py()) {
            return Err(error);
        }
        Ok(if object.lt(0)? { f64::NEG_INFINITY } else { f64::INFINITY })
    })
}

/// Parses a time in seconds, or `None`.
fn seconds(object: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    if object.is_none() { Ok(None) } else { real(object).map(Some) }
}

/// Makes an empty filter, detached: clearing a large one takes time.
fn empty(
    py: Python<'_>,
    kind: Kind,
    (n, p): (u64, f64),
    options: KindOptions,
    common: Common<'_, '_>,
) -> PyResult<Set> {
    let hasher = secret::hasher(common.hash, common.secret, common.seed)?;
    let spec = Spec::new(n, p).map_err(raise)?.with_hasher(hasher).with_options(options);
    let filter = py.detach(|| AnyFilter::build(kind, &spec)).map_err(raise)?;
    set(Stored::Set(filter), common.key)
}

fn set(stored: Stored, key: Option<Py<PyAny>>) -> PyResult<Set> {
    Ok(PyClassInitializer::from(Structure::owned(stored, key)?).add_subclass(Filter))
}

/// Parses the parameter `kind`, which must be one of these.
pub fn kind_of(name: &str, of: &[Kind]) -> PyResult<Kind> {
    of.iter().copied().find(|kind| kind.to_string() == name).ok_or_else(|| {
        let names = of.iter().map(|kind| format!("{kind:?}", kind = kind.to_string())).collect::<Vec<_>>();
        Exception::Parameter
            .with(format!("kind = {name:?} cannot be used: it needs one of {}", names.join(", ")))
    })
}

/// A Bloom filter: a set that answers "certainly not" or "probably yes" in about ten bits per item.
///
/// `expected_items` and `false_positive_rate` determine its size: with that many distinct items, that
/// share of all other items is found by mistake. Items that were added are always found.
///
/// >>> f = Bloom(1_000_000, 0.01)
/// >>> f.add("apple")
/// True
/// >>> "apple" in f, "pear" in f
/// (True, False)
///
/// Items are text, bytes, integers, UUIDs and network addresses. The number 42 and the text "42" are
/// different items. `key` is a function that makes an item of any other object.
///
/// `kind` is "blocked" (the fastest), "standard" (the smallest) or "partitioned". A blocked filter of less
/// than 64 KiB would miss its rate, and is a standard one. `hash` is "fast"
/// (the same in every process and language; anyone can craft items that collide), "keyed" (for hostile
/// input) or "sealed" (for sets that must not leak from their files). `secret` is the secret of the
/// latter two: 16 or 32 bytes, or the path of a key file; without one, they get a random secret.
#[pyclass(frozen, extends = Filter, subclass, module = "umbel")]
pub struct Bloom;

#[pymethods]
impl Bloom {
    #[new]
    #[pyo3(signature = (
        expected_items, false_positive_rate, *, kind = "blocked", hash = None, secret = None, seed = 0, key = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn new(
        py: Python<'_>,
        expected_items: Items,
        #[pyo3(from_py_with = real)] false_positive_rate: f64,
        kind: &str,
        hash: Option<&str>,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = seed)] seed: u64,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Bloom>> {
        let kind = kind_of(kind, &[Kind::Blocked, Kind::Standard, Kind::Partitioned])?;
        let size = (expected_items.0, false_positive_rate);
        let set = empty(py, kind, size, KindOptions::default(), Common { hash, secret, seed, key })?;
        Ok(set.add_subclass(Bloom))
    }
}

/// Defines a class whose constructor takes the same parameters as `Bloom` but for the kind.
macro_rules! sized_class {
    ($(#[$doc:meta])* $class:ident, $kind:expr, { $($methods:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, extends = Filter, subclass, module = "umbel")]
        pub struct $class;

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (
                expected_items, false_positive_rate, *, hash = None, secret = None, seed = 0, key = None
            ))]
            fn new(
                py: Python<'_>,
                expected_items: Items,
                #[pyo3(from_py_with = real)] false_positive_rate: f64,
                hash: Option<&str>,
                secret: Option<&Bound<'_, PyAny>>,
                #[pyo3(from_py_with = seed)] seed: u64,
                key: Option<Py<PyAny>>,
            ) -> PyResult<PyClassInitializer<$class>> {
                let size = (expected_items.0, false_positive_rate);
                let set = empty(py, $kind, size, KindOptions::default(), Common { hash, secret, seed, key })?;
                Ok(set.add_subclass($class))
            }

            $($methods)*
        }
    };
}

sized_class! {
    /// A cuckoo filter: a set from which items can be removed, with 10.6 bits per item at 1 %.
    ///
    /// An item that was added twice must be removed twice. Adding to a full filter raises
    /// `FullError` and changes nothing.
    ///
    /// >>> f = Cuckoo(1000, 0.01)
    /// >>> f.update(["apple", "pear"])
    /// >>> f.remove("apple")
    /// >>> "apple" in f, "pear" in f
    /// (False, True)
    Cuckoo, Kind::Cuckoo, {
        /// Removes an item once; raises `KeyError` if it is certainly not there.
        ///
        /// Only remove items that were added: others may share their cells with one that was.
        ///
        /// >>> f = Cuckoo(100, 0.01)
        /// >>> f.update(["apple", "pear"])
        /// >>> f.remove("apple")
        /// >>> "apple" in f, "pear" in f
        /// (False, True)
        fn remove(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<()> {
            remove(slf.as_super(), item)
        }

        /// Removes an item once if it may be there. Returns whether it was.
        ///
        /// >>> f = Cuckoo(100, 0.01)
        /// >>> f.update(["apple", "pear"])
        /// >>> f.discard("apple"), f.discard("plum")
        /// (True, False)
        fn discard(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
            discard(slf.as_super(), item)
        }
    }
}

sized_class! {
    /// A quotient filter: a set from which items can be removed, and which can be resized, with 12.5
    /// bits per item at 1 %.
    ///
    /// >>> f = Quotient(1000, 0.01)
    /// >>> f.update(["apple", "pear"])
    /// >>> f.discard("apple"), f.discard("plum")
    /// (True, False)
    Quotient, Kind::Quotient, {
        /// Removes an item once; raises `KeyError` if it is certainly not there.
        ///
        /// Only remove items that were added: others may share their cells with one that was.
        ///
        /// >>> f = Quotient(100, 0.01)
        /// >>> f.update(["apple", "pear"])
        /// >>> f.remove("apple")
        /// >>> "apple" in f, "pear" in f
        /// (False, True)
        fn remove(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<()> {
            remove(slf.as_super(), item)
        }

        /// Removes an item once if it may be there. Returns whether it was.
        ///
        /// >>> f = Quotient(100, 0.01)
        /// >>> f.update(["apple", "pear"])
        /// >>> f.discard("apple"), f.discard("plum")
        /// (True, False)
        fn discard(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
            discard(slf.as_super(), item)
        }

        /// Returns a new filter of the same items that is planned for another number of items.
        ///
        /// >>> f = Quotient(100, 0.01)
        /// >>> f.update(range(100))
        /// >>> f = f.resized(1000)
        /// >>> f.update(range(100, 1000))
        /// >>> all(f.contains_many(range(1000)))
        /// True
        fn resized<'py>(slf: &Bound<'py, Self>, expected_items: Items) -> PyResult<Bound<'py, PyAny>> {
            let (py, this) = (slf.py(), structure(slf.as_super()));
            let resized = this.with_view(py, |stored| match stored {
                Stored::Set(filter) => Ok(Stored::Set(filter.resized_for(expected_items.0)?)),
                other => other.try_clone(),
            })?;
            super::leaf::wrap(py, this.like(py, resized)?)
        }
    }
}

sized_class! {
    /// A set that grows beyond the number of items it was planned for, and keeps its rate.
    ///
    /// >>> f = Scalable(100, 0.01)
    /// >>> f.update(str(i) for i in range(10_000))
    /// >>> all(f.contains_many([str(i) for i in range(10_000)]))
    /// True
    Scalable, Kind::Scalable, {}
}

/// A counting filter: a set from which items can be removed, with counters instead of bits.
///
/// `kind` is "counting" (38 bits per item at 1 %), "variable-increment" (29 bits) or "deletable" (12
/// bits, but not every item can be removed).
///
/// >>> f = Counting(1000, 0.01)
/// >>> f.update(["apple", "apple"])
/// >>> f.remove("apple")
/// >>> "apple" in f
/// True
#[pyclass(frozen, extends = Filter, subclass, module = "umbel")]
pub struct Counting;

#[pymethods]
impl Counting {
    #[new]
    #[pyo3(signature = (
        expected_items, false_positive_rate, *, kind = "counting", hash = None, secret = None, seed = 0, key = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn new(
        py: Python<'_>,
        expected_items: Items,
        #[pyo3(from_py_with = real)] false_positive_rate: f64,
        kind: &str,
        hash: Option<&str>,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = seed)] seed: u64,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Counting>> {
        let kind = kind_of(kind, &[Kind::Counting, Kind::VariableIncrement, Kind::Deletable])?;
        let size = (expected_items.0, false_positive_rate);
        let set = empty(py, kind, size, KindOptions::default(), Common { hash, secret, seed, key })?;
        Ok(set.add_subclass(Counting))
    }

    /// Removes an item once; raises `KeyError` if it is certainly not there.
    ///
    /// Only remove items that were added: others may share their cells with one that was.
    ///
    /// >>> f = Counting(100, 0.01)
    /// >>> f.update(["apple", "apple", "pear"])
    /// >>> f.remove("apple")
    /// >>> "apple" in f, "pear" in f
    /// (True, True)
    fn remove(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        remove(slf.as_super(), item)
    }

    /// Removes an item once if it may be there. Returns whether it was.
    ///
    /// >>> f = Counting(100, 0.01)
    /// >>> f.update(["apple", "pear"])
    /// >>> f.discard("apple"), f.discard("plum")
    /// (True, False)
    fn discard(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        discard(slf.as_super(), item)
    }
}

/// A set that forgets old items: after `window` other items, or after a time.
///
/// `window` is a number of items (by default `expected_items`) or a `datetime.timedelta`. The filter
/// does not read a clock: with a time, call `advance` before adding and asking.
///
/// >>> f = Aging(1000, 0.01)
/// >>> f.add("apple")
/// True
/// >>> f.update(range(3000))
/// >>> "apple" in f
/// False
#[pyclass(frozen, extends = Filter, subclass, module = "umbel")]
pub struct Aging;

/// Parses the parameter `window`.
fn window(object: &Bound<'_, PyAny>) -> PyResult<Option<Window>> {
    if object.is_none() {
        return Ok(None);
    }
    if object.is_instance_of::<PyDelta>() {
        // A negative one does not fit.
        let time = object.extract::<Duration>();
        let time = time.map_err(|_| bad_parameter("window", object, "a time that is not negative"))?;
        return Ok(Some(Window::Time(time)));
    }
    match number(object, "window", "a number of keys from 1 on") {
        Ok(items) => Ok(Some(Window::Keys(items))),
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => Err(PyTypeError::new_err(format!(
            "window is a number of items or a datetime.timedelta, not {}",
            object.get_type().name()?
        ))),
        Err(error) => Err(error),
    }
}

/// Parses the parameter `generations`.
fn generations(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    number(object, "generations", "a number from 1 to 256")
}

#[pymethods]
impl Aging {
    #[new]
    #[pyo3(signature = (
        expected_items, false_positive_rate, *, window = None, generations = 8, hash = None, secret = None, seed = 0,
        key = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn new(
        py: Python<'_>,
        expected_items: Items,
        #[pyo3(from_py_with = real)] false_positive_rate: f64,
        #[pyo3(from_py_with = window)] window: Option<Window>,
        #[pyo3(from_py_with = generations)] generations: u32,
        hash: Option<&str>,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = seed)] seed: u64,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Aging>> {
        let mut options = KindOptions::default();
        options.aging = aging::Options { window, generations };
        let size = (expected_items.0, false_positive_rate);
        let set = empty(py, Kind::Aging, size, options, Common { hash, secret, seed, key })?;
        Ok(set.add_subclass(Aging))
    }

    /// Sets the clock of a filter with a time window, and forgets what is older than the window.
    ///
    /// `now` is in seconds since 1970, by default the time of the system. It must not be before the
    /// time that was set last.
    ///
    /// >>> from datetime import timedelta
    /// >>> f = Aging(1000, 0.01, window=timedelta(hours=1))
    /// >>> f.advance(1_800_000_000)
    /// >>> f.add("apple")
    /// True
    /// >>> f.advance(1_800_000_000 + 3000)
    /// >>> "apple" in f
    /// True
    /// >>> f.advance(1_800_000_000 + 10_000)
    /// >>> "apple" in f
    /// False
    #[pyo3(signature = (now = None))]
    fn advance(slf: &Bound<'_, Self>, #[pyo3(from_py_with = seconds)] now: Option<f64>) -> PyResult<()> {
        let now = match now {
            None => Timestamp::now(),
            Some(now) if (0.0..1e15).contains(&now) => Timestamp::from_millis((now * 1000.0) as u64),
            Some(now) => {
                return Err(Exception::Parameter.with(format!(
                    "now = {now} cannot be used: it needs the seconds since 1970, as time.time() returns them"
                )));
            }
        };
        structure(slf.as_super()).with_change(slf.py(), |stored| stored.advance(now))
    }
}

/// A binary fuse filter: the smallest set, 7.9 bits per item at 1 %, built from all its items at once.
///
/// >>> f = Fuse(["apple", "pear"], 0.001)
/// >>> "apple" in f, "plum" in f
/// (True, False)
#[pyclass(frozen, extends = Filter, subclass, module = "umbel")]
pub struct Fuse;

#[pymethods]
impl Fuse {
    #[new]
    #[pyo3(signature = (items, false_positive_rate, *, hash = None, secret = None, seed = 0, key = None))]
    fn new(
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = real)] false_positive_rate: f64,
        hash: Option<&str>,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = seed)] seed: u64,
        key: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Fuse>> {
        let hasher = secret::hasher(hash, secret, seed)?;
        let digests = Filter::digests(items, Encoder { hasher: &hasher, key: key.as_ref() })?;
        let keys = digests.len().max(1) as u64;
        let spec = Spec::new(keys, false_positive_rate).map_err(raise)?.with_hasher(hasher);
        let filter =
            py.detach(|| AnyFilter::from_digests(Kind::Fuse, &spec, digests, &Construction::default()));
        Ok(set(Stored::Set(filter.map_err(raise)?), key)?.add_subclass(Fuse))
    }
}

/// Computes the size and rate of a filter without building it.
///
/// Returns a dict with names that `umbel plan --json` uses, too. `kind` is the name of any kind of set,
/// such as "blocked", "standard", "cuckoo" or "fuse".
///
/// >>> umbel.plan(1_000_000, 0.01)["bits"]
/// 10100736
/// >>> umbel.plan(1_000_000, 0.01, kind="cuckoo")["can"]["remove"]
/// True
#[pyfunction]
#[pyo3(signature = (expected_items, false_positive_rate, *, kind = "blocked"))]
pub fn plan<'py>(
    py: Python<'py>,
    expected_items: Items,
    #[pyo3(from_py_with = real)] false_positive_rate: f64,
    kind: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = Spec::new(expected_items.0, false_positive_rate).map_err(raise)?;
    let plan = plan_filter(kind.parse().map_err(raise)?, &spec).map_err(raise)?;
    let can = plan.kind.capabilities();
    let dict = PyDict::new(py);
    dict.set_item("kind", plan.kind.to_string())?;
    dict.set_item("capacity", plan.capacity)?;
    dict.set_item("bits", plan.bits)?;
    dict.set_item("built_bits", plan.stored_bits)?;
    dict.set_item("hashes", plan.hashes)?;
    dict.set_item("bytes", plan.bytes)?;
    dict.set_item("fpr", plan.rate)?;
    dict.set_item("built_fpr", py.detach(|| stored_rate(&plan, &spec)).map_err(raise)?)?;
    dict.set_item("fpr_target", plan.rate_asked)?;
    dict.set_item("bits_per_key", plan.bits as f64 / plan.capacity as f64)?;
    dict.set_item("lines_touched", plan.lines_touched)?;
    let abilities = PyDict::new(py);
    for (name, able) in [
        ("add", !can.fixed),
        ("remove", can.remove),
        ("grow", can.grow),
        ("forget", can.forget),
        ("union", can.union),
        ("intersect", can.intersect),
        ("fold", can.fold),
    ] {
        abilities.set_item(name, able)?;
    }
    dict.set_item("can", abilities)?;
    Ok(dict)
}
