//! `Structure`: the data of every object, and the methods that all classes have.

use super::foreign::{self, Reading};
use super::leaf;
use super::sharded::Sharded;
use crate::errors::{Exception, file_error, raise};
use crate::keys::Encoder;
use crate::secret;
use crate::shared::Shared;
use crate::storage::Storage;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PySlice, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use umbel::any::Stored;
use umbel::file::{self, Loaded, Meta, Options};
use umbel::hash::{KeyRing, Strength};
use umbel::kind::Category;
use umbel::sharded::MANIFEST;
use umbel::{Hasher, Stats};

/// Anything that an umbel file can hold: the base class of all filters, maps, counts and sketches.
///
/// Use `umbel.load` or `umbel.open` for a file of any class.
///
/// >>> [isinstance(f, Structure) for f in (Bloom(10, 0.01), Count(10), Distinct())]
/// [True, True, True]
#[pyclass(frozen, subclass, weakref, module = "umbel")]
pub struct Structure {
    pub storage: Shared<Storage>,
    /// The hash of the structure, which never changes. A copy, so that keys are hashed without a
    /// guard.
    pub hasher: Hasher,
    /// The function that makes a key of an object that is none.
    pub key: Option<Py<PyAny>>,
    /// The metadata of the file that this was loaded from.
    pub meta: Meta,
}

impl Structure {
    /// Makes the data of a Python object.
    ///
    /// # Errors
    ///
    /// If it is a filter of the literature, which has no hash of its own.
    pub fn new(storage: Storage, key: Option<Py<PyAny>>, meta: Meta) -> PyResult<Structure> {
        let hasher = match &storage {
            Storage::Owned(stored) => stored.hasher(),
            Storage::Mapped(mapped) => mapped.hasher(),
        };
        let hasher = hasher.cloned().ok_or_else(|| {
            Exception::Unsupported.with(
                "a filter of the literature is for measurements, and Python does not read it: use the command \
                 `umbel check`",
            )
        })?;
        Ok(Structure { storage: Shared::new(storage), hasher, key, meta })
    }

    /// Makes the data of a new structure in memory.
    pub fn owned(stored: impl Into<Stored>, key: Option<Py<PyAny>>) -> PyResult<Structure> {
        Structure::new(Storage::Owned(stored.into()), key, Meta::default())
    }

    pub fn encoder(&self) -> Encoder<'_> {
        Encoder { hasher: &self.hasher, key: self.key.as_ref() }
    }

    /// Calls `f` with the structure, detached. The guard is dropped before an exception is made, which
    /// can run Python code: that of the garbage collector.
    pub fn with_view<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&Stored) -> umbel::Result<R> + Send,
    ) -> PyResult<R> {
        let guard = self.storage.read(py);
        py.detach(move || guard.view().and_then(f)).map_err(raise)
    }

    /// Calls `f` with the structure, which it may change, detached.
    pub fn with_change<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Stored) -> umbel::Result<R> + Send,
    ) -> PyResult<R> {
        let mut guard = self.storage.write(py);
        py.detach(move || guard.change().and_then(f)).map_err(raise)
    }

    /// Returns a copy in memory.
    pub fn copied(&self, py: Python<'_>) -> PyResult<Structure> {
        let copy = self.with_view(py, Stored::try_clone)?;
        self.like(py, copy)
    }

    /// Makes a structure with the same `key` and metadata.
    pub fn like(&self, py: Python<'_>, stored: Stored) -> PyResult<Structure> {
        let key = self.key.as_ref().map(|key| key.clone_ref(py));
        Structure::new(Storage::Owned(stored), key, self.meta.clone())
    }

    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        self.with_view(py, |stored| Ok(stored.stats()))
    }

    fn file_bytes(&self, py: Python<'_>, embed_key: bool) -> PyResult<Vec<u8>> {
        let options = Options { meta: self.meta.clone(), embed_key, create_new: false };
        self.with_view(py, |stored| file::to_bytes(stored, &options))
    }
}

#[pymethods]
impl Structure {
    /// Writes the structure to a file, completely or not at all.
    ///
    /// `file` is a path or an object that is open for writing bytes. The secret of a keyed hash is
    /// written only with `embed_secret=True`; then everybody who has the file can craft false
    /// positives. A sealed secret is never written.
    ///
    /// `meta` replaces the metadata: a dict from names to texts. `format` names the format of another
    /// library, in which nothing but a `Foreign` of that format can be written.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> f.save("fruit.umbel", meta={"source": "market"})
    /// >>> umbel.load("fruit.umbel").meta
    /// {'source': 'market'}
    #[pyo3(signature = (file, *, embed_secret = false, meta = None, format = None))]
    fn save(
        &self,
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        embed_secret: bool,
        meta: Option<Meta>,
        format: Option<&str>,
    ) -> PyResult<()> {
        if let Some(name) = format {
            return Err(foreign::cannot_write("a filter of umbel", foreign::format_of(name)?));
        }
        let meta = meta.unwrap_or_else(|| self.meta.clone());
        let options = Options { meta, embed_key: embed_secret, create_new: false };
        if file.hasattr(intern!(py, "write"))? {
            let bytes = self.with_view(py, |stored| file::to_bytes(stored, &options))?;
            return write_all(file, &PyBytes::new(py, &bytes));
        }
        let path = path_of(file, SAVING)?;
        self.with_view(py, |stored| file::save(&path, stored, &options))
    }

    /// Returns the bytes of a file, like `bytes(f)`; with `embed_secret=True`, with the secret of a
    /// keyed hash.
    ///
    /// >>> f = Bloom(100, 0.01, hash="keyed")
    /// >>> data = f.to_bytes(embed_secret=True)
    /// >>> Bloom.from_bytes(data) == f
    /// True
    #[pyo3(signature = (*, embed_secret = false))]
    fn to_bytes<'py>(&self, py: Python<'py>, embed_secret: bool) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.file_bytes(py, embed_secret)?))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.to_bytes(py, false)
    }

    /// Reads and verifies a whole file into memory.
    ///
    /// `file` is a path or an object that is open for reading bytes. `secret` opens a keyed or
    /// sealed one: 16 or 32 bytes, or the path of a key file.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> f.save("fruit.umbel")
    /// >>> Bloom.load("fruit.umbel") == f
    /// True
    #[classmethod]
    #[pyo3(signature = (file, *, secret = None, key = None))]
    fn load<'py>(
        cls: &Bound<'py, PyType>,
        file: &Bound<'py, PyAny>,
        secret: Option<&Bound<'py, PyAny>>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        of_class(cls, load(cls.py(), file, secret, key, None, None)?)
    }

    /// Reads and verifies the bytes of a file.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> Bloom.from_bytes(bytes(f)) == f
    /// True
    #[classmethod]
    #[pyo3(signature = (data, *, secret = None, key = None))]
    fn from_bytes<'py>(
        cls: &Bound<'py, PyType>,
        data: &Bound<'py, PyAny>,
        secret: Option<&Bound<'py, PyAny>>,
        key: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ring = secret::ring(secret)?;
        of_class(cls, from_bytes(cls.py(), &bytes_of(data)?, &ring, key)?)
    }

    /// Returns the bytes of a file; the name that rbloom has for `to_bytes`.
    fn save_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.to_bytes(py, false)
    }

    /// Reads and verifies the bytes of a file; the name that rbloom has for `from_bytes`.
    #[classmethod]
    fn load_bytes<'py>(cls: &Bound<'py, PyType>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Structure::from_bytes(cls, data, None, None)
    }

    /// Returns a copy in memory, which can be changed even if this was opened for reading only.
    ///
    /// >>> Bloom(100, 0.01).save("fruit.umbel")
    /// >>> f = umbel.open("fruit.umbel").copy()
    /// >>> f.add("apple")
    /// True
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        leaf::wrap(py, self.copied(py)?)
    }

    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__<'py>(&self, py: Python<'py>, _memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let strength = self.hasher.id().strength;
        if strength == Strength::Sealed {
            return Err(Exception::Unsupported.with(
                "a pickle would reveal the secret of a sealed hash: pickle bytes(f), and use from_bytes(data, secret=...)",
            ));
        }
        let bytes = PyBytes::new(py, &self.file_bytes(py, strength == Strength::Keyed)?);
        let key = self.key.as_ref().map(|key| key.bind(py).clone());
        let restore = py.import("umbel._umbel")?.getattr("_restore")?;
        Ok((restore, (bytes, key).into_pyobject(py)?))
    }

    /// The kind of structure, as the command `umbel info` prints it: "blocked", "cuckoo", ...
    #[getter]
    fn kind(&self, py: Python<'_>) -> String {
        self.storage.read_now(py, |storage| storage.kind().to_string())
    }

    /// The hash: "fast", "keyed" or "sealed".
    #[getter]
    fn hash(&self) -> String {
        self.hasher.id().strength.to_string()
    }

    /// Whether this reads a file in place and cannot be changed; see `umbel.open`.
    #[getter]
    fn read_only(&self, py: Python<'_>) -> bool {
        self.storage.read_now(py, Storage::is_read_only)
    }

    /// The metadata of the file, from names to texts.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.meta.clone().into_pyobject(py)
    }

    /// Measures how large and how full the structure is, and the rate that follows.
    ///
    /// Returns a dict with the names that `umbel info --json` uses. Reads the whole structure.
    ///
    /// >>> stats = Bloom(1_000_000, 0.01).stats()
    /// >>> stats["kind"], stats["bytes"], stats["count"], stats["fpr_now"]
    /// ('blocked', 1262592, 0, 0.0)
    #[pyo3(name = "stats")]
    fn stats_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stats_dict(py, &self.stats(py)?, self.hasher.id().strength)
    }

    /// Lets the garbage collector find a `key` that refers back to this object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.key.as_ref().map_or(Ok(()), |key| visit.call(key))
    }

    fn __sizeof__(&self, py: Python<'_>) -> PyResult<usize> {
        let bytes = |storage: &Storage| match storage {
            Storage::Owned(stored) => stored.sections().iter().map(|words| size_of_val(words.words())).sum(),
            Storage::Mapped(_) => 0,
        };
        Ok(size_of::<Structure>() + self.storage.read_now(py, bytes))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let (kind, (design, inserted), read_only) = this
            .storage
            .read_now(slf.py(), |storage| (storage.kind(), storage.head(), storage.is_read_only()));
        let mut text = format!("<umbel.{} kind={kind}", slf.get_type().name()?);
        if let Some(design) = design {
            text += &format!(" expected_items={} false_positive_rate={:?}", design.capacity, design.rate);
        }
        if let Some(inserted) = inserted {
            text += &format!(" inserted={inserted}");
        }
        if read_only {
            text += " read_only";
        }
        Ok(text + ">")
    }
}

/// Returns measurements as a dict with the names that `umbel info --json` uses.
pub fn stats_dict<'py>(py: Python<'py>, stats: &Stats, hash: Strength) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", stats.kind.to_string())?;
    dict.set_item("holds", stats.kind.category().to_string())?;
    dict.set_item("cells", stats.cells)?;
    dict.set_item("hashes", stats.hashes)?;
    dict.set_item("bits", stats.bits)?;
    dict.set_item("bytes", stats.bytes)?;
    dict.set_item("capacity", stats.capacity)?;
    dict.set_item("count", stats.inserted)?;
    // The bits of a multiset do not count keys.
    let estimate = stats.estimate.estimate().filter(|_| stats.kind.category() != Category::Multiset);
    dict.set_item("estimated_count", estimate.map(|estimate| estimate.value))?;
    dict.set_item("estimated_count_error", estimate.map(|estimate| estimate.standard_error))?;
    dict.set_item("fill", if stats.cells == 0 { 0.0 } else { stats.fill() })?;
    dict.set_item("fpr_target", stats.rate_target)?;
    dict.set_item("fpr_now", stats.rate_now)?;
    dict.set_item("hash", hash.to_string())?;
    dict.set_item("public_hash", hash == Strength::Fast)?;
    for (name, value) in &stats.details {
        dict.set_item(name.replace(' ', "_"), value)?;
    }
    Ok(dict)
}

/// Fails unless a loaded object is of the class whose `load` was called.
fn of_class<'py>(cls: &Bound<'py, PyType>, object: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if object.is_instance(cls)? {
        return Ok(object);
    }
    let (found, expected) = (object.get_type().name()?.to_string(), cls.name()?.to_string());
    Err(Exception::Format.with(format!(
        "the file holds a {found}, not a {expected}: use {found}.load, or umbel.load, which opens every class"
    )))
}

/// Reads and verifies a whole file of any class into memory.
///
/// `file` is a path or an object that is open for reading bytes. `secret` opens a keyed or sealed
/// one: 16 or 32 bytes, or the path of a key file. `key` is a function that makes a key of an
/// object that is none, as in the constructors.
///
/// >>> Cuckoo(100, 0.01).save("fruit.umbel")
/// >>> umbel.load("fruit.umbel")
/// <umbel.Cuckoo kind=cuckoo expected_items=100 false_positive_rate=0.01 inserted=0>
///
/// Bloom filters of other libraries are read, too; see `Foreign` for their formats and funnels. Files
/// of DCSO, Spark and DataSketches are recognised; `format` names the others.
///
/// >>> Foreign("guava", 100, 0.01).save("fruit.guava")
/// >>> umbel.load("fruit.guava", format="guava", funnel="utf8")
/// <umbel.Foreign format=guava funnel=utf8>
#[pyfunction]
#[pyo3(signature = (file, *, secret = None, key = None, format = None, funnel = None))]
pub fn load<'py>(
    py: Python<'py>,
    file: &Bound<'py, PyAny>,
    secret: Option<&Bound<'py, PyAny>>,
    key: Option<Py<PyAny>>,
    format: Option<&str>,
    funnel: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let (ring, reading) = (secret::ring(secret)?, Reading { format, funnel });
    if let Some(contents) = contents_of(file)? {
        let bytes = bytes_of(&contents)?;
        return match reading.read(py, &bytes)? {
            Some(foreign) => foreign.opened(py, secret, key.as_ref()),
            None => from_bytes(py, &bytes, &ring, key),
        };
    }
    let path = path_of(file, LOADING)?;
    match reading.load(py, &path)? {
        Some(foreign) => foreign.opened(py, secret, key.as_ref()),
        None if path.join(MANIFEST).is_file() => Err(file_error(
            format!("{} is a filter in shards, which is not loaded: umbel.open opens it", path.display()),
            &path,
            &io::ErrorKind::IsADirectory.into(),
        )),
        None => finish(py, py.detach(|| file::load(&path, &ring)), key),
    }
}

/// Opens a file of any class for reading only, in a time that does not depend on its size.
///
/// The file is mapped: processes that open the same one share its memory, and each part is verified
/// before the first answer from it. The file must be neither changed nor shortened while it is
/// open; `save` does neither, since it replaces a file by a new one.
///
/// >>> f = Bloom(100, 0.01)
/// >>> f.update(["apple", "pear"])
/// >>> f.save("fruit.umbel")
/// >>> "apple" in umbel.open("fruit.umbel")
/// True
///
/// A folder is opened as a `Sharded`, a filter in shards. Its manifest lists all of them.
///
/// `format` and `funnel` are for files of other libraries, as in `umbel.load`. These have no checksums:
/// nothing but their headers is verified.
#[pyfunction]
#[pyo3(signature = (path, *, secret = None, key = None, format = None, funnel = None))]
pub fn open<'py>(
    py: Python<'py>,
    path: &Bound<'py, PyAny>,
    secret: Option<&Bound<'py, PyAny>>,
    key: Option<Py<PyAny>>,
    format: Option<&str>,
    funnel: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let (path, ring) = (path_of(path, "open() takes a path: str or os.PathLike")?, secret::ring(secret)?);
    if path.is_dir() && format.is_none() && funnel.is_none() {
        return Ok(Bound::new(py, Sharded::open(py, &path, &ring, key)?)?.into_any());
    }
    if let Some(foreign) = (Reading { format, funnel }).open(py, &path)? {
        return foreign.opened(py, secret, key.as_ref());
    }
    let mapped = py.detach(|| file::map(&path, &ring)).map_err(raise)?;
    let meta = mapped.meta().clone();
    leaf::wrap(py, Structure::new(Storage::Mapped(Box::new(mapped)), key, meta)?)
}

/// Restores a pickle.
#[pyfunction]
#[pyo3(name = "_restore")]
pub fn restore<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyBytes>,
    key: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    from_bytes(py, data.as_bytes(), &KeyRing::new(), key)
}

fn from_bytes<'py>(
    py: Python<'py>,
    bytes: &[u8],
    ring: &KeyRing,
    key: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    finish(py, py.detach(|| file::from_bytes(bytes, ring)), key)
}

fn finish<'py>(
    py: Python<'py>,
    loaded: umbel::Result<Loaded>,
    key: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let loaded = loaded.map_err(raise)?;
    leaf::wrap(py, Structure::new(Storage::Owned(loaded.filter), key, loaded.meta)?)
}

/// Writes bytes to a binary file. One without a buffer may take them in several parts, and returns
/// `None` if it would have to wait.
pub fn write_all(file: &Bound<'_, PyAny>, bytes: &Bound<'_, PyBytes>) -> PyResult<()> {
    let py = file.py();
    let (view, len) = (PyMemoryView::from(bytes)?, bytes.as_bytes().len());
    let mut at = 0;
    while at < len {
        let rest = if at == 0 {
            bytes.clone().into_any()
        } else {
            view.get_item(PySlice::new(py, at as isize, len as isize, 1))?
        };
        match file.call_method1(intern!(py, "write"), (rest,))?.extract::<usize>() {
            Ok(written) if written > 0 => at += written,
            // Other objects with this method need not count.
            Err(_) if at == 0 && !file.is_instance(&py.import("io")?.getattr("RawIOBase")?)? => break,
            _ => {
                return Err(
                    Exception::File.with(format!("the file object took {at} of {len} bytes, and no more"))
                );
            }
        }
    }
    Ok(())
}

/// Returns the contents of an object that is open for reading, for [`bytes_of`]; `None` for a path.
pub fn contents_of<'py>(file: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !file.hasattr(intern!(file.py(), "read"))? {
        return Ok(None);
    }
    file.call_method0(intern!(file.py(), "read")).map(Some)
}

/// The arguments of `save` and of `load`.
pub const SAVING: &str = "save() takes a path or an object with write(): str, os.PathLike or a binary file";
pub const LOADING: &str = "load() takes a path or an object with read(): str, os.PathLike or a binary file";

/// Returns a path, or the exception for an object that is none. An exception of the object's own
/// `__fspath__` is passed on.
pub fn path_of(path: &Bound<'_, PyAny>, expected: &'static str) -> PyResult<PathBuf> {
    path.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyTypeError>(path.py()) { PyTypeError::new_err(expected) } else { error }
    })
}

/// Returns the bytes of an object that has some; those that may change are copied.
pub fn bytes_of<'a>(data: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    let copied = PyBuffer::<u8>::get(data).and_then(|buffer| buffer.to_vec(data.py()));
    copied.map(Cow::Owned).map_err(|_| {
        PyTypeError::new_err("the contents of a file are bytes: open it in binary mode, open(path, \"rb\")")
    })
}
