//! `Foreign`: filters of other libraries.

use super::kinds::{Items, number};
use super::lookup::Lookup;
use super::structure::{LOADING, SAVING, bytes_of, contents_of, path_of, write_all};
use crate::answers::{Collected, collect};
use crate::errors::{Exception, bad_parameter, raise};
use crate::keys::{Columns, ForeignKeys, Source, Work};
use crate::shared::Shared;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use umbel::Batch;
use umbel::file::Placing;
use umbel::foreign::{ForeignFilter, Format, Funnel, Given, Options};

/// A Bloom filter of another library, in its own file format.
///
/// `format` is "datasketches", "dcso", "guava", "redisbloom", "sbbf" (Parquet), "spark" or "spark2". The
/// filter has the size that the original library chooses for `expected_items` and
/// `false_positive_rate`, and the same bits for the same items, so that the library reads what `save`
/// writes. `umbel.load` and `umbel.open` read its files.
///
/// >>> f = Foreign("spark", 1000, 0.01)
/// >>> f.update(["apple", "pear"])
/// >>> f.save("fruit.spark")
/// >>> "apple" in umbel.load("fruit.spark")
/// True
///
/// Items are text, bytes and integers. The file does not say how its library hashed them: `funnel` does,
/// in Guava's words. It is "utf8" for text, "unencoded" for text that Guava took by
/// `unencodedCharsFunnel`, "bytes", and "long" or "int" for integers of 64 or 32 bits. Without it, text is
/// taken as UTF-8, and integers as "long" where "int" is the same.
///
/// `seed` is that of the hash, which "datasketches" and "spark2" store.
#[pyclass(frozen, module = "umbel")]
pub struct Foreign {
    filter: Shared<ForeignFilter>,
    keys: ForeignKeys,
    read_only: bool,
}

/// The parameters `format` and `funnel`, which say what a file is.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    pub format: Option<&'a str>,
    pub funnel: Option<&'a str>,
}

impl Reading<'_> {
    /// Reads a file into memory; returns `None` if it is not one of another library.
    pub fn load(self, py: Python<'_>, path: &Path) -> PyResult<Option<Foreign>> {
        let keys = self.keys_of(py, path)?;
        keys.map(|keys| Foreign::read(py, keys, false, |given| ForeignFilter::load(path, given))).transpose()
    }

    /// Opens a file for reading only; returns `None` if it is not one of another library.
    pub fn open(self, py: Python<'_>, path: &Path) -> PyResult<Option<Foreign>> {
        let keys = self.keys_of(py, path)?;
        keys.map(|keys| Foreign::read(py, keys, true, |given| ForeignFilter::map(path, given))).transpose()
    }

    /// Reads the bytes of a file; returns `None` if they are not one of another library.
    pub fn read(self, py: Python<'_>, bytes: &[u8]) -> PyResult<Option<Foreign>> {
        let keys = self.keys(bytes)?;
        keys.map(|keys| Foreign::read(py, keys, false, |given| ForeignFilter::from_bytes(bytes, given)))
            .transpose()
    }

    fn keys_of(self, py: Python<'_>, path: &Path) -> PyResult<Option<ForeignKeys>> {
        let mut start = Vec::new();
        if self.format.is_none() {
            let mut read = || {
                // A pipe could not be read again.
                let file =
                    File::open(path).ok().filter(|file| file.metadata().is_ok_and(|it| it.is_file()))?;
                file.take(Format::RECOGNIZE_BYTES as u64).read_to_end(&mut start).ok()
            };
            // A file that cannot be read is reported when it is loaded.
            let _ = py.detach(&mut read);
        }
        self.keys(&start)
    }

    /// Returns the format and the funnel. The format is recognised by the start of the file if it is not
    /// given; it is `None` if the file is not one of another library.
    fn keys(self, start: &[u8]) -> PyResult<Option<ForeignKeys>> {
        let funnel = funnel_of(self.funnel)?;
        let format = match self.format {
            Some(name) => Some(format_of(name)?),
            None => Format::recognize(start),
        };
        match format {
            None if funnel.is_some() => Err(Exception::Parameter.with(
                "funnel= is for files of other libraries, and this one is not recognised as such: pass format=, too",
            )),
            format => format.map(|format| ForeignKeys::new(format, funnel)).transpose(),
        }
    }
}

/// Returns the exception for a file whose format is neither given nor recognised.
fn unrecognised() -> PyErr {
    let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
    let needs = format!("the name of the format, which the file does not show: {}", names.join(", "));
    bad_parameter("format", "None", needs)
}

pub fn format_of(name: &str) -> PyResult<Format> {
    name.parse().map_err(raise)
}

fn funnel_of(name: Option<&str>) -> PyResult<Option<Funnel>> {
    name.map(|name| name.parse().map_err(raise)).transpose()
}

/// An insertion into a filter.
struct Insertion<'a>(&'a mut ForeignFilter);

impl Work for Insertion<'_> {
    fn run<B: Batch + ?Sized>(&mut self, keys: &B) -> umbel::Result<()> {
        self.0.insert_batch(keys).map(drop)
    }
}

impl Foreign {
    /// Returns the Python object, unless parameters were passed that only files of umbel have.
    pub fn opened<'py>(
        self,
        py: Python<'py>,
        secret: Option<&Bound<'py, PyAny>>,
        key: Option<&Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if secret.is_some() || key.is_some() {
            return Err(Exception::Parameter.with(format!(
                "secret= and key= are for files of umbel, and this one is in the format {}: leave them out",
                self.format(py)
            )));
        }
        Ok(Bound::new(py, self)?.into_any())
    }

    fn with_keys(filter: ForeignFilter, keys: ForeignKeys, read_only: bool) -> Foreign {
        Foreign { filter: Shared::new(filter), keys, read_only }
    }

    /// Reads a file.
    fn read(
        py: Python<'_>,
        keys: ForeignKeys,
        read_only: bool,
        read: impl FnOnce(Given) -> umbel::Result<ForeignFilter> + Send,
    ) -> PyResult<Foreign> {
        let given = Given { format: Some(keys.format), funnel: Some(keys.of_bytes()) };
        let filter = py.detach(|| read(given)).map_err(raise)?;
        Ok(Foreign::with_keys(filter, keys, read_only))
    }

    /// Returns the bytes that are hashed for an item.
    fn key(&self, item: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let mut key = Vec::new();
        self.keys.push(item, &mut key)?;
        Ok(key)
    }

    fn check_writable(&self) -> PyResult<()> {
        if !self.read_only {
            return Ok(());
        }
        Err(Exception::Unsupported
            .with("this filter was opened for reading only: `umbel.load` makes a copy that can be changed"))
    }

    fn contains_columns(
        &self,
        py: Python<'_>,
        mut columns: Columns,
        answers: &mut Collected,
    ) -> PyResult<()> {
        while let Some(column) = columns.next(py)? {
            let encoding = self.keys.encoding_of(&column)?;
            answers.reserve(column.len())?;
            let (rows, answered, guard) = (&column, &mut *answers, self.filter.read(py));
            let looked_up = py.detach(move || {
                let mut lookup = Lookup { set: &*guard, answers: answered };
                rows.for_each_foreign_batch(encoding, false, &mut lookup)
            });
            looked_up.map_err(raise)?;
            answers.push_nulls(column.len(), column.nulls());
        }
        Ok(())
    }

    fn add_all(&self, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = items.py();
        match Source::new(items)?.0 {
            Source::Columns(mut columns) => {
                while let Some(column) = columns.next(py)? {
                    let encoding = self.keys.encoding_of(&column)?;
                    let (rows, mut guard) = (&column, self.filter.write(py));
                    py.detach(move || {
                        rows.for_each_foreign_batch(encoding, true, &mut Insertion(&mut guard))
                    })
                    .map_err(raise)?;
                }
                Ok(())
            }
            Source::Objects(objects) => self.keys.for_each_chunk(&objects, &mut |keys| {
                self.filter
                    .write_now(py, |filter| filter.insert_batch(&keys.keys()?).map(drop))
                    .map_err(raise)
            }),
        }
    }
}

#[pymethods]
impl Foreign {
    #[new]
    #[pyo3(signature = (format, expected_items, false_positive_rate, *, funnel = None, seed = None))]
    fn new(
        py: Python<'_>,
        format: &str,
        expected_items: Items,
        false_positive_rate: f64,
        funnel: Option<&str>,
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Foreign> {
        let keys = ForeignKeys::new(format_of(format)?, funnel_of(funnel)?)?;
        let seed = seed.map(|seed| seed_of(keys.format, seed)).transpose()?;
        let options = Options { funnel: Some(keys.of_bytes()), seed, ..Options::default() };
        let made =
            || ForeignFilter::with_capacity(keys.format, expected_items.0, false_positive_rate, &options);
        Ok(Foreign::with_keys(py.detach(made).map_err(raise)?, keys, false))
    }

    /// Adds an item. Returns whether it was certainly not there before.
    ///
    /// >>> f = Foreign("spark", 100, 0.01)
    /// >>> f.add("apple"), f.add("apple")
    /// (True, False)
    #[pyo3(signature = (item, /))]
    fn add(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.check_writable()?;
        let key = self.key(item)?;
        self.filter.write_now(item.py(), |filter| filter.insert(&key)).map_err(raise)
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = self.key(item)?;
        self.filter.read_now(item.py(), |filter| filter.contains(&key)).map_err(raise)
    }

    /// Adds the items of iterables or columns.
    ///
    /// A column of numpy, Arrow, polars or pandas is hashed without Python objects, and null values
    /// in it are left out. After an exception, the items before the one that caused it have been
    /// added.
    ///
    /// >>> f = Foreign("guava", 100, 0.01, funnel="long")
    /// >>> f.update([1, 2], range(3, 5))
    /// >>> 4 in f
    /// True
    #[pyo3(signature = (*others))]
    fn update(&self, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.check_writable()?;
        others.iter().try_for_each(|other| self.add_all(&other))
    }

    /// Looks up many items at once; returns one answer per item, in order.
    ///
    /// A numpy array has a numpy array of Booleans as answer, an Arrow column a `Mask`, in which the
    /// answer to a null value is null, and anything else a list.
    ///
    /// >>> f = Foreign("dcso", 100, 0.01)
    /// >>> f.update(["apple", "pear"])
    /// >>> f.contains_many(["apple", "plum", "pear"])
    /// [True, False, True]
    fn contains_many<'py>(&self, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = items.py();
        let (source, origin) = Source::new(items)?;
        let mut answers = Collected::default();
        match source {
            Source::Columns(columns) => self.contains_columns(py, columns, &mut answers)?,
            Source::Objects(objects) => self.keys.for_each_chunk(&objects, &mut |keys| {
                let found = self.filter.read_now(py, |filter| filter.contains_batch(&keys.keys()?));
                answers.push(&found.map_err(raise)?);
                Ok(())
            })?,
        }
        collect(py, answers, origin)
    }

    /// Explains the answer to an item: a dict with the bits that are read for it, as
    /// `umbel why --json` prints them.
    ///
    /// The numbers are those of the format. In a chain of "redisbloom", each `link` has bits of its own.
    ///
    /// >>> f = Foreign("spark", 100, 0.01)
    /// >>> why = f.why("apple")
    /// >>> why["member"], [probe["value"] for probe in why["probes"]]
    /// (False, [0, 0, 0, 0, 0, 0, 0])
    fn why<'py>(&self, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let (py, key) = (item.py(), self.key(item)?);
        let (member, probes) = self
            .filter
            .read_now(py, |filter| Ok((filter.contains(&key)?, filter.probes(&key)?)))
            .map_err(raise)?;
        let rows = PyList::empty(py);
        for probe in &probes {
            let row = PyDict::new(py);
            row.set_item("link", probe.link)?;
            row.set_item("bit", probe.bit)?;
            row.set_item("value", u8::from(probe.set))?;
            rows.append(row)?;
        }
        let zero = probes.iter().position(|probe| !probe.set).filter(|_| !member);
        let explanation = PyDict::new(py);
        explanation.set_item("key", item)?;
        explanation.set_item("format", self.format(py))?;
        explanation.set_item("probes", rows)?;
        explanation.set_item("member", member)?;
        explanation.set_item("first_zero", zero.map(|row| row + 1))?;
        Ok(explanation)
    }

    /// Measures how large and how full the filter is, and the rate that follows.
    ///
    /// Returns a dict. `capacity`, `fpr_target`, `count` and `seed` are `None` if the format does not
    /// store them. Reads the whole filter.
    ///
    /// >>> stats = Foreign("guava", 1000, 0.01).stats()
    /// >>> stats["format"], stats["bits"], stats["hashes"], stats["fpr_now"]
    /// ('guava', 9600, 7, 0.0)
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let guard = self.filter.read(py);
        let facts = py.detach(move || guard.facts());
        let dict = PyDict::new(py);
        dict.set_item("format", facts.format.name())?;
        dict.set_item("bits", facts.bits)?;
        dict.set_item("bits_set", facts.bits_set)?;
        dict.set_item("hashes", facts.hashes)?;
        dict.set_item("fill", facts.fill)?;
        dict.set_item("links", facts.links)?;
        dict.set_item("capacity", facts.design.map(|design| design.capacity))?;
        dict.set_item("count", facts.keys)?;
        dict.set_item("fpr_target", facts.design.map(|design| design.rate))?;
        dict.set_item("fpr_now", facts.rate_now)?;
        dict.set_item("seed", facts.seed)?;
        dict.set_item("remark", facts.remark)?;
        Ok(dict)
    }

    /// The format: "spark2" for a file of Spark's second version, whichever was named.
    #[getter]
    fn format(&self, py: Python<'_>) -> &'static str {
        self.filter.read_now(py, ForeignFilter::format).name()
    }

    /// How items become bytes; `None` if their types determine it.
    #[getter]
    fn funnel(&self) -> Option<&'static str> {
        self.keys.funnel.map(Funnel::name)
    }

    /// Whether this reads a file in place and cannot be changed; see `umbel.open`.
    #[getter]
    fn read_only(&self) -> bool {
        self.read_only
    }

    /// Writes the file of the original library, completely or not at all.
    ///
    /// `file` is a path or an object that is open for writing bytes. `format` is that of the filter: the
    /// bits of another format belong to another hash.
    ///
    /// >>> f = Foreign("dcso", 100, 0.01)
    /// >>> f.save("fruit.bloom")
    /// >>> umbel.load("fruit.bloom").format
    /// 'dcso'
    #[pyo3(signature = (file, *, format = None))]
    fn save(&self, py: Python<'_>, file: &Bound<'_, PyAny>, format: Option<&str>) -> PyResult<()> {
        if let Some(name) = format {
            let (from, to) = (self.filter.read_now(py, ForeignFilter::format), format_of(name)?);
            if from != to {
                return Err(cannot_write(&format!("a filter in the format {from}"), to));
            }
        }
        if file.hasattr(intern!(py, "write"))? {
            return write_all(file, &self.to_bytes(py));
        }
        let path = path_of(file, SAVING)?;
        let guard = self.filter.read(py);
        py.detach(move || guard.save(&path, Placing::default())).map_err(raise)
    }

    /// Returns the bytes of a file, like `bytes(f)`.
    ///
    /// >>> f = Foreign("spark", 100, 0.01)
    /// >>> bytes(Foreign.from_bytes(f.to_bytes())) == bytes(f)
    /// True
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let guard = self.filter.read(py);
        PyBytes::new(py, &py.detach(move || guard.to_bytes()))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.to_bytes(py)
    }

    /// Reads and verifies a whole file; see `umbel.load`.
    ///
    /// >>> Foreign("spark", 100, 0.01).save("fruit.spark")
    /// >>> Foreign.load("fruit.spark")
    /// <umbel.Foreign format=spark>
    #[staticmethod]
    #[pyo3(signature = (file, *, format = None, funnel = None))]
    fn load(file: &Bound<'_, PyAny>, format: Option<&str>, funnel: Option<&str>) -> PyResult<Foreign> {
        let (py, reading) = (file.py(), Reading { format, funnel });
        let found = match contents_of(file)? {
            Some(contents) => reading.read(py, &bytes_of(&contents)?)?,
            None => reading.load(py, &path_of(file, LOADING)?)?,
        };
        found.ok_or_else(unrecognised)
    }

    /// Reads and verifies the bytes of a file; see `umbel.load`.
    ///
    /// >>> f = Foreign("guava", 100, 0.01)
    /// >>> f.add("apple")
    /// True
    /// >>> "apple" in Foreign.from_bytes(bytes(f), format="guava")
    /// True
    #[staticmethod]
    #[pyo3(signature = (data, *, format = None, funnel = None))]
    fn from_bytes(data: &Bound<'_, PyAny>, format: Option<&str>, funnel: Option<&str>) -> PyResult<Foreign> {
        (Reading { format, funnel }).read(data.py(), &bytes_of(data)?)?.ok_or_else(unrecognised)
    }

    /// Returns a copy in memory, which can be changed even if this was opened for reading only.
    ///
    /// >>> Foreign("spark", 100, 0.01).save("fruit.spark")
    /// >>> f = umbel.open("fruit.spark").copy()
    /// >>> f.add("apple")
    /// True
    fn copy(&self, py: Python<'_>) -> PyResult<Foreign> {
        let bytes = self.to_bytes(py);
        let (bytes, keys) = (bytes.as_bytes(), self.keys);
        Foreign::read(py, keys, false, |given| ForeignFilter::from_bytes(bytes, given))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Foreign> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Foreign> {
        self.copy(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.import("umbel._umbel")?.getattr("_restore_foreign")?;
        let arguments = (self.to_bytes(py), self.format(py), self.funnel());
        Ok((restore, arguments.into_pyobject(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let mut text = format!("<umbel.Foreign format={}", self.format(py));
        if let Some(funnel) = self.funnel() {
            text += &format!(" funnel={funnel}");
        }
        if self.read_only {
            text += " read_only";
        }
        text + ">"
    }
}

/// Restores a pickle.
#[pyfunction]
#[pyo3(name = "_restore_foreign")]
pub fn restore_foreign(data: &Bound<'_, PyAny>, format: &str, funnel: Option<&str>) -> PyResult<Foreign> {
    Foreign::from_bytes(data, Some(format), funnel)
}

/// Returns the exception for a filter whose bits are not those of a format.
pub fn cannot_write(what: &str, to: Format) -> PyErr {
    Exception::Unsupported.with(format!(
        "{what} cannot be written in the format {to}: its bits are those of another hash; make a filter of the same \
         items, umbel.Foreign(\"{to}\", n, p)"
    ))
}

/// Parses the parameter `seed`, which Java programs take for a number with a sign.
fn seed_of(format: Format, seed: &Bound<'_, PyAny>) -> PyResult<u64> {
    let (bits, needs) = match format {
        Format::Spark2 => (32, "a number from -2**31 to 2**32 - 1"),
        _ => (64, "a number from -2**63 to 2**64 - 1"),
    };
    let seed: i128 = number(seed, "seed", needs)?;
    if seed < -(1 << (bits - 1)) || seed >= 1 << bits {
        return Err(bad_parameter("seed", seed, needs));
    }
    Ok(seed.rem_euclid(1 << bits) as u64)
}
