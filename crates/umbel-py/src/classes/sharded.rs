//! `Sharded`: a filter in shards, as a folder of files and a manifest.

use super::filter::DETACH_FROM;
use super::kinds::{Items, kind_of, real, seed};
use super::lookup::Lookup;
use super::structure::{path_of, stats_dict};
use crate::answers::{Collected, collect};
use crate::errors::{Exception, file_error, raise};
use crate::keys::{Encoder, Source, Work, for_each};
use crate::secret;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::io;
use std::path::{Path, PathBuf};
use umbel::hash::{KeyRing, Strength};
use umbel::key::Hashed;
use umbel::sharded::{MANIFEST, Manifest, ShardPlan, ShardedBuilder};
use umbel::{Batch, Digest, Kind, Spec};

/// A filter in shards: a folder of files, which many processes can build and which answers like one
/// filter.
///
/// `umbel.open` of the folder makes one, for lookups only. Every shard is mapped, so processes that
/// open the same folder share its memory, and each part is verified before the first answer from it. A
/// shard that is missing or damaged is an exception that names its file, never an answer.
///
/// >>> words = Sharded.build(["apple", "pear"], 1000, 0.01, 4, "words")
/// >>> "apple" in umbel.open("words"), "plum" in umbel.open("words")
/// (True, False)
/// >>> umbel.open("words")
/// <umbel.Sharded kind=standard shards=4 expected_items=1000 false_positive_rate=0.01 inserted=2 read_only>
#[pyclass(frozen, module = "umbel")]
pub struct Sharded {
    filter: umbel::Sharded,
    path: PathBuf,
    /// The function that makes a key of an object that is none.
    key: Option<Py<PyAny>>,
}

/// Inserts the keys of a column.
struct Insertion<'a>(&'a ShardedBuilder);

impl Work for Insertion<'_> {
    fn run<B: Batch + ?Sized>(&mut self, keys: &B) -> umbel::Result<()> {
        self.0.insert_batch(keys)
    }
}

impl Sharded {
    /// Opens a folder for reading only.
    pub fn open(py: Python<'_>, path: &Path, ring: &KeyRing, key: Option<Py<PyAny>>) -> PyResult<Sharded> {
        let filter = py.detach(|| umbel::Sharded::open_with(path, ring)).map_err(|error| {
            match path.join(MANIFEST).symlink_metadata() {
                Err(_) if path.is_dir() => {
                    file_error(format!("{error:#}"), path, &io::ErrorKind::IsADirectory.into())
                }
                _ => raise(error),
            }
        })?;
        Ok(Sharded { filter, path: path.to_owned(), key })
    }

    fn encoder(&self) -> Encoder<'_> {
        Encoder { hasher: self.filter.hasher(), key: self.key.as_ref() }
    }
}

/// Calls `work` with digests. A large batch is processed while other threads run Python code.
fn with_digests<R: Send>(
    py: Python<'_>,
    digests: &[Digest],
    work: impl FnOnce(&Hashed<'_>) -> umbel::Result<R> + Send,
) -> PyResult<R> {
    let keys = &Hashed(digests);
    let done = if digests.len() < DETACH_FROM { work(keys) } else { py.detach(|| work(keys)) };
    done.map_err(raise)
}

/// Inserts the keys of an iterable or a column.
fn insert(builder: &ShardedBuilder, keys: &Bound<'_, PyAny>, encoder: Encoder<'_>) -> PyResult<()> {
    let py = keys.py();
    match Source::new(keys)?.0 {
        Source::Columns(mut columns) => {
            while let Some(column) = columns.next(py)? {
                let insert = || column.for_each_key_batch(encoder.hasher, &mut Insertion(builder));
                py.detach(insert).map_err(raise)?;
            }
            Ok(())
        }
        Source::Objects(objects) => for_each(&objects, encoder, &mut |digests| {
            with_digests(py, digests, |keys| builder.insert_batch(keys))
        }),
    }
}

#[pymethods]
impl Sharded {
    /// Builds a filter in shards of these items in a new folder, and opens it.
    ///
    /// The same items and parameters give the same files, byte for byte, whatever program builds them.
    /// All shards are in memory until they are written. The manifest is written last: a folder that an
    /// exception has left has none and is not taken for a filter.
    ///
    /// `items` is an iterable or a column, and the other parameters are those of `Bloom`.
    /// `embed_secret=True` writes the secret of a keyed hash into the files.
    ///
    /// >>> f = Sharded.build(range(10_000), 10_000, 0.001, 8, "numbers")
    /// >>> f.shards, f.inserted, 9_999 in f
    /// (8, 10000, True)
    #[staticmethod]
    #[pyo3(signature = (
        items, expected_items, false_positive_rate, shards, path, *, kind = "blocked", hash = None, secret = None,
        seed = 0, embed_secret = false, key = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn build(
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        expected_items: Items,
        #[pyo3(from_py_with = real)] false_positive_rate: f64,
        #[pyo3(from_py_with = shards)] shards: u32,
        path: &Bound<'_, PyAny>,
        kind: &str,
        hash: Option<&str>,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = seed)] seed: u64,
        embed_secret: bool,
        key: Option<Py<PyAny>>,
    ) -> PyResult<Sharded> {
        let path = path_of(path, "build() takes the path of a folder: str or os.PathLike")?;
        let kind = kind_of(kind, &[Kind::Blocked, Kind::Standard, Kind::Partitioned])?;
        let hasher = secret::hasher(hash, secret, seed)?;
        let spec = Spec::new(expected_items.0, false_positive_rate).map_err(raise)?;
        let plan = ShardPlan::new(kind, &spec.with_hasher(hasher.clone()), shards).map_err(raise)?;
        Manifest::refuse_existing(&path).map_err(raise)?;
        let builder = py.detach(|| ShardedBuilder::new(plan)).map_err(raise)?;
        insert(&builder, items, Encoder { hasher: &hasher, key: key.as_ref() })?;
        py.detach(|| builder.save_with(&path, embed_secret)).map_err(raise)?;
        Sharded::open(py, &path, &[hasher].into_iter().collect(), key)
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.filter.contains_digest(self.encoder().digest(item)?).map_err(raise)
    }

    /// Looks up many items at once; returns one answer per item, in order.
    ///
    /// A numpy array has a numpy array of Booleans as answer, an Arrow column a `Mask`, in which the
    /// answer to a null value is null, and anything else a list.
    ///
    /// >>> f = Sharded.build(["apple", "pear"], 1000, 0.01, 2, "fruit")
    /// >>> f.contains_many(["apple", "plum", "pear"])
    /// [True, False, True]
    fn contains_many<'py>(&self, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = items.py();
        let (source, origin) = Source::new(items)?;
        let mut answers = Collected::default();
        match source {
            Source::Columns(mut columns) => {
                while let Some(column) = columns.next(py)? {
                    answers.reserve(column.len())?;
                    let lookup = &mut Lookup { set: &self.filter, answers: &mut answers };
                    py.detach(|| column.for_each_batch(self.filter.hasher(), lookup)).map_err(raise)?;
                    answers.push_nulls(column.len(), column.nulls());
                }
            }
            Source::Objects(objects) => for_each(&objects, self.encoder(), &mut |digests| {
                answers.push(&with_digests(py, digests, |keys| self.filter.contains_batch(keys))?);
                Ok(())
            })?,
        }
        collect(py, answers, origin)
    }

    /// Raises `UnsupportedError`: a filter in shards is opened for lookups only.
    #[pyo3(signature = (item, /))]
    fn add(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let _ = item;
        Err(read_only())
    }

    /// Raises `UnsupportedError`, as `add` does.
    #[pyo3(signature = (*others))]
    fn update(&self, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        let _ = others;
        Err(read_only())
    }

    /// Measures how large and how full all shards together are, and the rate that follows.
    ///
    /// Returns a dict with the names of `Bloom.stats`, and `shards`. Reads and verifies every shard.
    ///
    /// >>> stats = Sharded.build(range(100_000), 100_000, 0.01, 4, "seen").stats()
    /// >>> stats["shards"], stats["count"], stats["fpr_now"] < 0.01
    /// (4, 100000, True)
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = py.detach(|| self.filter.stats()).map_err(raise)?;
        let dict = stats_dict(py, &stats, self.filter.hasher().id().strength)?;
        dict.set_item("shards", self.shards())?;
        Ok(dict)
    }

    /// The number of shards.
    #[getter]
    fn shards(&self) -> usize {
        self.filter.shards().len()
    }

    /// The folder that was opened.
    #[getter]
    fn path(&self) -> &Path {
        &self.path
    }

    /// The kind of each shard: "blocked", "standard" or "partitioned".
    #[getter]
    fn kind(&self) -> String {
        self.filter.manifest().kind().to_string()
    }

    /// The hash: "fast", "keyed" or "sealed".
    #[getter]
    fn hash(&self) -> String {
        self.filter.hasher().id().strength.to_string()
    }

    /// The number of items that all shards together were planned for.
    #[getter]
    fn expected_items(&self) -> u64 {
        self.filter.manifest().capacity()
    }

    /// The rate it was planned for.
    #[getter]
    fn false_positive_rate(&self) -> f64 {
        self.filter.manifest().rate()
    }

    /// The number of insertions, repeated items included; `None` where it is unknown, as after a
    /// union.
    #[getter]
    fn inserted(&self) -> Option<u64> {
        self.filter.inserted()
    }

    /// The number of distinct items, estimated from the bits; `inf` if every bit of a shard is set.
    /// Reads and verifies every shard.
    ///
    /// >>> f = Sharded.build(["apple", "pear", "apple"], 1000, 0.01, 2, "pome")
    /// >>> round(f.approx_items)
    /// 2
    #[getter]
    fn approx_items(&self, py: Python<'_>) -> PyResult<f64> {
        let stats = py.detach(|| self.filter.stats()).map_err(raise)?;
        Ok(stats.estimate.estimate().map_or(f64::INFINITY, |estimate| estimate.value))
    }

    /// True: a filter in shards is opened for reading only.
    #[getter]
    fn read_only(&self) -> bool {
        true
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let is_open = |shard: &umbel::file::Mapped| shard.info().embedded_key;
        let public = self.filter.hasher().id().strength == Strength::Fast;
        if !public && !self.filter.shards().iter().all(is_open) {
            return Err(Exception::Unsupported.with(
                "a pickle of a filter in shards is the path of its folder, which has no secret: pass the path, and \
                 use umbel.open(path, secret=...)",
            ));
        }
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let key = self.key.as_ref().map(|key| key.bind(py).clone());
        let restore = py.import("umbel._umbel")?.getattr("_restore_sharded")?;
        Ok((restore, (path, key).into_pyobject(py)?))
    }

    /// Lets the garbage collector find a `key` that refers back to this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.key.as_ref().map_or(Ok(()), |key| visit.call(key))
    }

    fn __repr__(&self) -> String {
        let (shards, items) = (self.shards(), self.expected_items());
        let mut text = format!(
            "<umbel.Sharded kind={} shards={shards} expected_items={items} false_positive_rate={:?}",
            self.kind(),
            self.false_positive_rate()
        );
        if let Some(inserted) = self.inserted() {
            text += &format!(" inserted={inserted}");
        }
        text + " read_only>"
    }
}

/// Restores a pickle: opens the folder.
#[pyfunction]
#[pyo3(name = "_restore_sharded")]
pub fn restore_sharded(py: Python<'_>, path: PathBuf, key: Option<Py<PyAny>>) -> PyResult<Sharded> {
    Sharded::open(py, &path, &KeyRing::new(), key)
}

fn read_only() -> PyErr {
    Exception::Unsupported.with(
        "a filter in shards is opened for reading only: add to its folder with `umbel add`, or build it again",
    )
}

/// Parses the parameter `shards`.
fn shards(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    super::kinds::number(object, "shards", "a number from 1 to 1024")
}
