//! `Filter`: sets of every kind.

use super::leaf;
use super::lookup::Lookup;
use super::structure::Structure;
use crate::answers::{Collected, collect};
use crate::errors::{Exception, raise, too_many_rows};
use crate::keys::{CHUNK, Column, Columns, Encoder, Source, Work, for_each};
use crate::storage::Storage;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use umbel::any::Stored;
use umbel::internals::Probe;
use umbel::key::Hashed;
use umbel::{Answers, AnyFilter, Batch, Digest, Removed};

/// A set of keys that answers "certainly not" or "probably yes": the base class of all sets.
///
/// >>> [isinstance(f, Filter) for f in (Bloom(10, 0.01), Cuckoo(10, 0.01), Count(10))]
/// [True, True, False]
#[pyclass(frozen, extends = Structure, subclass, module = "umbel")]
pub struct Filter;

/// A batch of at least this many keys is processed while other threads run Python code. Detaching
/// from the interpreter and attaching again costs as much as a few keys, but another thread may keep
/// the interpreter for its turn of 5 ms.
pub const DETACH_FROM: usize = CHUNK / 2;

impl Filter {
    /// `item in set`.
    #[inline(always)]
    pub fn contains_item(set: &Structure, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let digest = set.encoder().digest(item)?;
        set.storage.read_now(item.py(), |storage| storage.contains_digest(digest)).map_err(raise)
    }

    /// `set.add(item)`.
    #[inline(always)]
    pub fn add_item(set: &Structure, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let digest = set.encoder().digest(item)?;
        let insert = |storage: &mut Storage| storage.change_set()?.insert_digest(digest);
        set.storage.write_now(item.py(), insert).map_err(raise)
    }

    /// Adds the keys of an iterable, a column or another filter.
    pub fn add_all(set: &Structure, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = keys.py();
        if let Ok(other) = keys.cast::<Filter>() {
            return unite(py, set, structure(other), AnyFilter::union);
        }
        match Source::new(keys)?.0 {
            Source::Columns(mut columns) => {
                while let Some(column) = columns.next(py)? {
                    add_column(py, set, &column)?;
                }
                Ok(())
            }
            Source::Objects(objects) => {
                for_each(&objects, set.encoder(), &mut |digests| add_digests(py, set, digests))
            }
        }
    }

    /// Returns whether a set may have all keys of an iterable or a column.
    fn contains_all(set: &Structure, keys: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, mut all) = (keys.py(), true);
        match Source::new(keys)?.0 {
            Source::Columns(mut columns) => {
                while let Some(column) = columns.next(py)? {
                    let (rows, guard) = (&column, set.storage.read(py));
                    let found = py.detach(move || {
                        let mut lookup = LookupAll { storage: &guard, all: true };
                        rows.for_each_key_batch(&set.hasher, &mut lookup).map(|()| lookup.all)
                    });
                    all &= found.map_err(raise)?;
                }
            }
            Source::Objects(objects) => for_each(&objects, set.encoder(), &mut |digests| {
                all &= contains_digests(py, set, digests)?.iter().all(|found| found);
                Ok(())
            })?,
        }
        Ok(all)
    }

    /// Returns the digests of all keys of an iterable or a column.
    pub fn digests(keys: &Bound<'_, PyAny>, encoder: Encoder<'_>) -> PyResult<Vec<Digest>> {
        let Rows { mut digests, nulls } = Filter::rows(keys, encoder)?;
        if !nulls.is_empty() {
            let (mut row, mut nulls) = (0, nulls.into_iter().peekable());
            digests.retain(|_| {
                row += 1;
                nulls.next_if_eq(&(row - 1)).is_none()
            });
        }
        Ok(digests)
    }

    /// Returns the digest of each row of an iterable or a column.
    pub fn rows(keys: &Bound<'_, PyAny>, encoder: Encoder<'_>) -> PyResult<Rows> {
        let py = keys.py();
        let mut rows = Rows::default();
        match Source::new(keys)?.0 {
            Source::Columns(mut columns) => {
                while let Some(column) = columns.next(py)? {
                    let before = rows.digests.len();
                    rows.digests.try_reserve(column.len()).map_err(|_| too_many_rows(column.len()))?;
                    let hashed = py.detach(|| {
                        column.for_each(encoder.hasher, &mut |digests| {
                            rows.digests.extend_from_slice(digests);
                            Ok(())
                        })
                    });
                    hashed.map_err(raise)?;
                    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
                    let is_null = |row: &usize| nulls.is_some_and(|nulls| nulls.is_null(*row));
                    rows.nulls.extend((0..column.len()).filter(is_null).map(|row| before + row));
                }
            }
            Source::Objects(objects) => for_each(&objects, encoder, &mut |digests| {
                rows.digests.extend_from_slice(digests);
                Ok(())
            })?,
        }
        Ok(rows)
    }
}

/// The digests of many rows.
#[derive(Default)]
pub struct Rows {
    /// One for each row; that of a row without a key is arbitrary.
    pub digests: Vec<Digest>,
    /// The rows that have no key, in order.
    pub nulls: Vec<usize>,
}

fn add_digests(py: Python<'_>, set: &Structure, digests: &[Digest]) -> PyResult<()> {
    match digests {
        [] => Ok(()),
        [digest] => {
            set.storage.write_now(py, |s| s.change_set()?.insert_digest(*digest).map(drop)).map_err(raise)
        }
        _ if digests.len() < DETACH_FROM => {
            set.storage.write_now(py, |s| s.change_set()?.insert_batch(&Hashed(digests))).map_err(raise)
        }
        _ => {
            let mut guard = set.storage.write(py);
            py.detach(move || guard.change_set()?.insert_batch(&Hashed(digests))).map_err(raise)
        }
    }
}

fn contains_digests(py: Python<'_>, set: &Structure, digests: &[Digest]) -> PyResult<Answers> {
    if digests.len() < DETACH_FROM {
        return set.storage.read_now(py, |storage| storage.contains_batch(&Hashed(digests))).map_err(raise);
    }
    let guard = set.storage.read(py);
    py.detach(move || guard.contains_batch(&Hashed(digests))).map_err(raise)
}

/// Inserts the keys of a column into a set.
struct Insertion<'a>(&'a mut AnyFilter);

impl Work for Insertion<'_> {
    fn run<B: Batch + ?Sized>(&mut self, keys: &B) -> umbel::Result<()> {
        self.0.insert_batch(keys)
    }
}

/// Finds out whether all keys of a column are in a set.
struct LookupAll<'a> {
    storage: &'a Storage,
    all: bool,
}

impl Work for LookupAll<'_> {
    fn run<B: Batch + ?Sized>(&mut self, keys: &B) -> umbel::Result<()> {
        self.all &= self.storage.contains_batch(keys)?.iter().all(|found| found);
        Ok(())
    }
}

fn add_column(py: Python<'_>, set: &Structure, column: &Column) -> PyResult<()> {
    let mut guard = set.storage.write(py);
    py.detach(move || {
        let filter = guard.change_set()?;
        column.for_each_key_batch(&set.hasher, &mut Insertion(filter))
    })
    .map_err(raise)
}

/// Combines a set with another.
fn unite(
    py: Python<'_>,
    set: &Structure,
    other: &Structure,
    combine: fn(&mut AnyFilter, &AnyFilter) -> umbel::Result<()>,
) -> PyResult<()> {
    if std::ptr::eq(set, other) {
        let copy = other.with_view(py, |stored| stored.try_clone())?;
        return set.with_change(py, move |stored| combine(as_set_mut(stored)?, as_set(&copy)?));
    }
    let (mut ours, theirs) = set.storage.write_with(py, &other.storage);
    py.detach(move || combine(ours.change_set()?, theirs.set()?)).map_err(raise)
}

/// Compares a set with another.
fn compare<R: Send>(
    py: Python<'_>,
    set: &Structure,
    other: &Structure,
    compare: impl FnOnce(&AnyFilter, &AnyFilter) -> umbel::Result<R> + Send,
) -> PyResult<R> {
    let (ours, theirs) = (set.storage.read(py), other.storage.read(py));
    py.detach(move || compare(ours.set()?, theirs.set()?)).map_err(raise)
}

fn as_set(stored: &Stored) -> umbel::Result<&AnyFilter> {
    match stored {
        Stored::Set(filter) => Ok(filter),
        other => Err(umbel::Error::parameter("kind", other.kind(), "a kind that holds a set")),
    }
}

fn as_set_mut(stored: &mut Stored) -> umbel::Result<&mut AnyFilter> {
    match stored {
        Stored::Set(filter) => Ok(filter),
        other => Err(umbel::Error::parameter("kind", other.kind(), "a kind that holds a set")),
    }
}

/// Returns the data of a set.
pub fn structure<'a>(set: &'a Bound<'_, Filter>) -> &'a Structure {
    set.as_super().get()
}

/// Returns the filter that `other` is, or a new one of its keys, like `set`.
fn as_filter<'py>(set: &Bound<'py, Filter>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Filter>> {
    if let Ok(filter) = other.cast::<Filter>() {
        return Ok(filter.clone());
    }
    let this = structure(set);
    let empty = this.with_view(set.py(), Stored::try_clone_empty)?;
    let filter = leaf::wrap(set.py(), this.like(set.py(), empty)?)?.cast_into::<Filter>()?;
    Filter::add_all(structure(&filter), other)?;
    Ok(filter)
}

fn copied<'py>(set: &Bound<'py, Filter>) -> PyResult<Bound<'py, Filter>> {
    Ok(leaf::wrap(set.py(), structure(set).copied(set.py())?)?.cast_into()?)
}

fn is_subset(ours: &Bound<'_, Filter>, theirs: &Bound<'_, Filter>) -> PyResult<bool> {
    compare(ours.py(), structure(ours), structure(theirs), AnyFilter::is_subset)
}

fn is_equal(ours: &Bound<'_, Filter>, theirs: &Bound<'_, Filter>) -> PyResult<bool> {
    compare(ours.py(), structure(ours), structure(theirs), |a, b| Ok(a.has_same_cells(b)))
}

#[pymethods]
impl Filter {
    /// Adds the items of iterables, columns or other filters.
    ///
    /// A column of numpy, Arrow, polars or pandas is hashed without Python objects, and null values
    /// in it are left out. After an exception, the items before the one that caused it have been
    /// added.
    ///
    /// >>> f, g = Bloom(100, 0.01), Bloom(100, 0.01)
    /// >>> f.update(["apple", "pear"], range(3))
    /// >>> g.update(["plum"], f)
    /// >>> "plum" in g, "apple" in g, 2 in g
    /// (True, True, True)
    #[pyo3(signature = (*others))]
    fn update(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        others.iter().try_for_each(|other| Filter::add_all(structure(slf), &other))
    }

    /// Looks up many items at once; returns one answer per item, in order.
    ///
    /// A numpy array has a numpy array of Booleans as answer, an Arrow column a `Mask`, in which the
    /// answer to a null value is null, and anything else a list.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> f.update(["apple", "pear"])
    /// >>> f.contains_many(["apple", "plum", "pear"])
    /// [True, False, True]
    fn contains_many<'py>(slf: &Bound<'py, Self>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), structure(slf));
        let (source, origin) = Source::new(items)?;
        let mut answers = Collected::default();
        match source {
            Source::Columns(columns) => contains_columns(py, this, columns, &mut answers)?,
            Source::Objects(objects) => for_each(&objects, this.encoder(), &mut |digests| {
                answers.push(&contains_digests(py, this, digests)?);
                Ok(())
            })?,
        }
        collect(py, answers, origin)
    }

    /// Returns a new filter with the items of this one and of all others.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> f.union(["apple"], ["pear"]).contains_many(["apple", "pear"])
    /// [True, True]
    #[pyo3(signature = (*others))]
    fn union<'py>(slf: &Bound<'py, Self>, others: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Self>> {
        let union = copied(slf)?;
        Filter::update(&union, others)?;
        Ok(union)
    }

    /// Returns a new filter with the items that this one and all others may have.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> f.update(["apple", "pear"])
    /// >>> f.intersection(["pear", "plum"]).contains_many(["apple", "pear", "plum"])
    /// [False, True, False]
    #[pyo3(signature = (*others))]
    fn intersection<'py>(slf: &Bound<'py, Self>, others: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Self>> {
        let intersection = copied(slf)?;
        Filter::intersection_update(&intersection, others)?;
        Ok(intersection)
    }

    /// Keeps only the items that all others may have, too.
    #[pyo3(signature = (*others))]
    fn intersection_update(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        others.iter().try_for_each(|other| {
            let other = as_filter(slf, &other)?;
            unite(slf.py(), structure(slf), structure(&other), AnyFilter::intersect)
        })
    }

    /// Returns whether the other may have all items of this one.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> f.update(["apple", "pear"])
    /// >>> f.issubset(["apple", "pear", "plum"]), f.issubset(["apple"])
    /// (True, False)
    fn issubset<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<bool> {
        is_subset(slf, &as_filter(slf, other)?)
    }

    /// Returns whether this one may have all items of the other.
    ///
    /// >>> f = Cuckoo(100, 0.01)
    /// >>> f.update(["apple", "pear"])
    /// >>> f.issuperset(["apple"]), f.issuperset(["apple", "plum"])
    /// (True, False)
    fn issuperset<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<bool> {
        match other.cast::<Filter>() {
            Ok(other) => is_subset(other, slf),
            Err(_) => Filter::contains_all(structure(slf), other),
        }
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Filter>) -> PyResult<Bound<'py, Self>> {
        let union = copied(slf)?;
        Filter::__ior__(&union, other)?;
        Ok(union)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Filter>) -> PyResult<Bound<'py, Self>> {
        let intersection = copied(slf)?;
        Filter::__iand__(&intersection, other)?;
        Ok(intersection)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        unite(slf.py(), structure(slf), structure(other), AnyFilter::union)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<()> {
        unite(slf.py(), structure(slf), structure(other), AnyFilter::intersect)
    }

    fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Filter>, op: CompareOp) -> PyResult<bool> {
        match op {
            CompareOp::Eq => is_equal(slf, other),
            CompareOp::Ne => Ok(!is_equal(slf, other)?),
            CompareOp::Le => is_subset(slf, other),
            CompareOp::Ge => is_subset(other, slf),
            CompareOp::Lt => Ok(is_subset(slf, other)? && !is_equal(slf, other)?),
            CompareOp::Gt => Ok(is_subset(other, slf)? && !is_equal(slf, other)?),
        }
    }

    /// Returns whether anything was added.
    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let this = structure(slf);
        let (kind, inserted) = this.storage.read_now(slf.py(), |storage| (storage.kind(), storage.head().1));
        let can = kind.capabilities();
        match inserted {
            Some(0) => Ok(false),
            Some(_) if !can.remove && !can.forget => Ok(true),
            _ => this.with_view(slf.py(), |stored| Ok(stored.stats().used_cells > 0)),
        }
    }

    /// Removes all items.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
        structure(slf).with_change(slf.py(), Stored::clear)
    }

    /// The number of distinct items, estimated from the bits; `inf` if every bit is set.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> f.update(["apple", "pear", "apple"])
    /// >>> round(f.approx_items)
    /// 2
    #[getter]
    fn approx_items(slf: &Bound<'_, Self>) -> PyResult<f64> {
        let estimate = structure(slf).with_view(slf.py(), |stored| Ok(stored.stats().estimate.estimate()))?;
        Ok(estimate.map_or(f64::INFINITY, |estimate| estimate.value))
    }

    /// The number of insertions, repeated items included; `None` where it is unknown, as after a
    /// union.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> f.update(["apple", "pear", "apple"])
    /// >>> f.inserted, (f | f).inserted
    /// (3, None)
    #[getter]
    fn inserted(slf: &Bound<'_, Self>) -> Option<u64> {
        structure(slf).storage.read_now(slf.py(), Storage::head).1
    }

    /// The size in bits, with all bookkeeping.
    #[getter]
    fn size_in_bits(slf: &Bound<'_, Self>) -> PyResult<u64> {
        structure(slf).with_view(slf.py(), |stored| Ok(stored.stats().bits))
    }

    /// The number of items it was planned for; `None` if it was not.
    #[getter]
    fn expected_items(slf: &Bound<'_, Self>) -> Option<u64> {
        let (design, _) = structure(slf).storage.read_now(slf.py(), Storage::head);
        design.map(|design| design.capacity)
    }

    /// The rate it was planned for; `None` if it was not.
    #[getter]
    fn false_positive_rate(slf: &Bound<'_, Self>) -> Option<f64> {
        let (design, _) = structure(slf).storage.read_now(slf.py(), Storage::head);
        design.map(|design| design.rate)
    }

    /// Estimates how many items two filters have in common: the number and its standard error, or
    /// `None` if their union is full.
    ///
    /// >>> f, g = Bloom(10_000, 0.01), Bloom(10_000, 0.01)
    /// >>> f.update(range(5000))
    /// >>> g.update(range(4000, 9000))
    /// >>> common, error = f.overlap(g)
    /// >>> abs(common - 1000) < 4 * error
    /// True
    fn overlap(slf: &Bound<'_, Self>, other: &Bound<'_, Filter>) -> PyResult<Option<(f64, f64)>> {
        let overlap = compare(slf.py(), structure(slf), structure(other), AnyFilter::overlap)?;
        Ok(overlap.map(|overlap| (overlap.intersection.value, overlap.intersection.standard_error)))
    }

    /// Explains the answer to an item: a dict with its digest and the cells that are read for it, as
    /// `umbel why --json` prints them.
    ///
    /// >>> f = Bloom(100, 0.01)
    /// >>> why = f.why("apple")
    /// >>> why["member"], why["digest"], why["first_zero"]
    /// (False, '517a430dcf1f8a00', 1)
    fn why<'py>(slf: &Bound<'py, Self>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), structure(slf));
        let digest = this.encoder().digest(item)?;
        let (member, probes) = this.with_view(py, |stored| {
            let filter = as_set(stored)?;
            let mut probes: Vec<(Probe, u64)> = Vec::new();
            let sections = filter.sections();
            let member = filter.trace(digest, &mut |probe| {
                let value = sections.get(probe.section).map_or(0, |words| probe.value(words));
                probes.push((probe, value));
                Ok(())
            })?;
            Ok((member, probes))
        })?;
        let rows = PyList::empty(py);
        for (probe, value) in &probes {
            let row = PyDict::new(py);
            row.set_item("section", probe.section)?;
            row.set_item("bit", probe.bits.start)?;
            row.set_item("bits", probe.bits.end - probe.bits.start)?;
            row.set_item("line", probe.bits.start / 512)?;
            row.set_item("value", value)?;
            rows.append(row)?;
        }
        let zero =
            probes.iter().position(|(probe, value)| probe.bits.end - probe.bits.start == 1 && *value == 0);
        let explanation = PyDict::new(py);
        explanation.set_item("key", item)?;
        explanation.set_item("kind", slf.as_super().getattr("kind")?)?;
        explanation.set_item("hash", this.hasher.id().to_string())?;
        explanation.set_item("digest", format!("{:016x}", digest.get()))?;
        explanation.set_item("probes", rows)?;
        explanation.set_item("member", member)?;
        explanation.set_item("first_zero", zero.filter(|_| !member).map(|row| row + 1))?;
        Ok(explanation)
    }
}

fn contains_columns(
    py: Python<'_>,
    set: &Structure,
    mut columns: Columns,
    answers: &mut Collected,
) -> PyResult<()> {
    while let Some(column) = columns.next(py)? {
        answers.reserve(column.len())?;
        let (rows, answered, guard) = (&column, &mut *answers, set.storage.read(py));
        let looked_up = py.detach(move || {
            rows.for_each_batch(&set.hasher, &mut Lookup { set: &*guard, answers: answered })
        });
        looked_up.map_err(raise)?;
        answers.push_nulls(column.len(), column.nulls());
    }
    Ok(())
}

/// Removes an item once. Returns whether it was there.
pub fn discard(set: &Bound<'_, Filter>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
    let this = structure(set);
    let digest = this.encoder().digest(item)?;
    let remove = |storage: &mut Storage| storage.change_set()?.remove_digest(digest);
    match this.storage.write_now(set.py(), remove).map_err(raise)? {
        Removed::Removed => Ok(true),
        Removed::NotPresent => Ok(false),
        Removed::NotDeletable => Err(Exception::Unsupported.with(
            "this item shares all its bits with others and cannot be removed: a cuckoo filter can remove every item",
        )),
    }
}

/// Removes an item once. Raises `KeyError` if it was certainly not there.
pub fn remove(set: &Bound<'_, Filter>, item: &Bound<'_, PyAny>) -> PyResult<()> {
    if discard(set, item)? { Ok(()) } else { Err(PyKeyError::new_err(item.clone().unbind())) }
}
