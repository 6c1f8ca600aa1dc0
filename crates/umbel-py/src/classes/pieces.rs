//! Private classes and functions for `umbel.spark`: one filter built by tasks that share no memory;
//! see the module `umbel::pieces`.
//!
//! Layouts are sent to the tasks. The other objects stay in the process that made them.

use super::filter::Filter;
use super::kinds::{Items, kind_of, number, real, seed};
use super::leaf;
use super::structure::{Structure, bytes_of, path_of};
use crate::errors::{Exception, raise};
use crate::keys::{Columns, Encoder, Source, Work, for_each, for_each_object};
use crate::secret;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use umbel::internals::sync::lock;
use umbel::key::Hashed;
use umbel::pieces::{Assembly, Collector as Collect, Merge as Merging, PiecePlan};
use umbel::{AnyFilter, Batch, Kind, Spec};

/// The shape of a filter that is built in pieces: ranges of its bits, or shards.
///
/// The parameters are those of `Bloom`. A pickle contains the secret of the hash: every task needs it.
///
/// >>> layout = umbel._umbel._Layout(1_000_000, 0.01)
/// >>> layout.ranges, layout.shards, layout.file_bytes
/// (20, None, 1262912)
#[pyclass(frozen, module = "umbel._umbel", name = "_Layout")]
pub struct Layout(PiecePlan);

/// Parses the parameter `shards`, or `None`.
fn shards(object: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    if object.is_none() { Ok(None) } else { number(object, "shards", "a number from 1 to 1024").map(Some) }
}

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(signature = (
        expected_items, false_positive_rate, *, kind = "blocked", hash = None, secret = None, seed = 0, shards = None,
        embed_secret = false
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn new(
        expected_items: Items,
        #[pyo3(from_py_with = real)] false_positive_rate: f64,
        kind: &str,
        hash: Option<&str>,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = seed)] seed: u64,
        #[pyo3(from_py_with = shards)] shards: Option<u32>,
        embed_secret: bool,
    ) -> PyResult<Layout> {
        let kind = kind_of(kind, &[Kind::Blocked, Kind::Standard, Kind::Partitioned])?;
        let hasher = secret::hasher(hash, secret, seed)?;
        let spec = Spec::new(expected_items.0, false_positive_rate).map_err(raise)?.with_hasher(hasher);
        PiecePlan::new(kind, &spec, shards, embed_secret).map(Layout).map_err(raise)
    }

    /// The number of parts that pieces belong to: ranges or shards.
    #[getter]
    fn ranges(&self) -> u32 {
        self.0.parts()
    }

    /// The number of shards, or `None`.
    #[getter]
    fn shards(&self) -> Option<usize> {
        self.0.shard_plan().map(|plan| plan.shards())
    }

    /// The number of bytes in all files, without a manifest.
    #[getter]
    fn file_bytes(&self) -> PyResult<u64> {
        self.0.file_bytes().map_err(raise)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.import("umbel._umbel")?.getattr("_restore_layout")?;
        let bytes = PyBytes::new(py, &self.0.to_bytes().map_err(raise)?);
        Ok((restore, (bytes,).into_pyobject(py)?))
    }

    fn __repr__(&self) -> PyResult<String> {
        let (parts, bytes) = (self.0.parts(), self.file_bytes()?);
        let what = if self.shards().is_some() { "shards" } else { "ranges" };
        Ok(format!("<umbel._Layout {what}={parts} file_bytes={bytes}>"))
    }
}

/// Restores a pickled layout.
#[pyfunction]
#[pyo3(name = "_restore_layout")]
pub fn restore_layout(data: &Bound<'_, PyBytes>) -> PyResult<Layout> {
    PiecePlan::from_bytes(data.as_bytes()).map(Layout).map_err(raise)
}

/// Takes the keys of one task, and returns them as pieces: `(range, bytes)`.
///
/// >>> layout = umbel._umbel._Layout(1_000_000, 0.01)
/// >>> task = umbel._umbel._Collector(layout)
/// >>> task.add(["apple"])
/// >>> [(range, len(piece)) for range, piece in task.drain(True)]
/// [(6, 48)]
#[pyclass(frozen, module = "umbel._umbel", name = "_Collector")]
pub struct Collector {
    plan: PiecePlan,
    collector: Mutex<Collect>,
}

/// Adds the keys of a column to a collector.
struct Collection<'a>(&'a mut Collect);

impl Work for Collection<'_> {
    fn run<B: Batch + ?Sized>(&mut self, keys: &B) -> umbel::Result<()> {
        self.0.add(keys)
    }
}

#[pymethods]
impl Collector {
    #[new]
    fn new(layout: &Layout) -> Collector {
        Collector { plan: layout.0.clone(), collector: Mutex::new(Collect::new(&layout.0)) }
    }

    /// Adds the items of an iterable or a column, as `Bloom.update` does. Null values are left out.
    fn add(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = keys.py();
        if keys.is_instance_of::<Filter>() {
            return Err(Exception::KeyType.with("a filter has no list of its items: pass the items"));
        }
        match Source::new(keys)?.0 {
            Source::Columns(mut columns) => {
                while let Some(column) = columns.next(py)? {
                    let added = py.detach(|| {
                        column.for_each_key_batch(
                            self.plan.hasher(),
                            &mut Collection(&mut lock(&self.collector)),
                        )
                    });
                    added.map_err(raise)?;
                }
                Ok(())
            }
            Source::Objects(objects) => {
                let encoder = Encoder { hasher: self.plan.hasher(), key: None };
                for_each(&objects, encoder, &mut |digests| {
                    py.detach(|| lock(&self.collector).add(&Hashed(digests))).map_err(raise)
                })
            }
        }
    }

    /// Returns the pieces that must leave now, `(range, bytes)` each: all of them if these were the
    /// `last` keys of the task, else those that are full. Call it after every `add`.
    #[pyo3(signature = (last = false))]
    fn drain<'py>(&self, py: Python<'py>, last: bool) -> Vec<(u32, Bound<'py, PyBytes>)> {
        let pieces = py.detach(|| lock(&self.collector).drain(last));
        pieces.into_iter().map(|(range, piece)| (range, PyBytes::new(py, &piece))).collect()
    }
}

/// Takes all pieces of one range or shard, in any order.
///
/// >>> layout = umbel._umbel._Layout(1_000_000, 0.01)
/// >>> task = umbel._umbel._Collector(layout)
/// >>> task.add(["apple"])
/// >>> [(range, piece)] = task.drain(True)
/// >>> merge = umbel._umbel._Merge(layout, range)
/// >>> merge.add(piece)
/// >>> merge.inserted, len(merge.bits())
/// (1, 65536)
#[pyclass(frozen, module = "umbel._umbel", name = "_Merge")]
pub struct Merge(Mutex<Merging>);

impl Merge {
    /// Calls `f` with the merge, detached.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Merging) -> umbel::Result<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| f(&mut lock(&self.0))).map_err(raise)
    }
}

#[pymethods]
impl Merge {
    #[new]
    fn new(py: Python<'_>, layout: &Layout, range: u32) -> PyResult<Merge> {
        py.detach(|| Merging::new(&layout.0, range)).map(|merge| Merge(Mutex::new(merge))).map_err(raise)
    }

    /// Adds a piece.
    fn add(&self, piece: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = bytes_of(piece)?;
        self.with(piece.py(), |merge| merge.add(&bytes))
    }

    /// Adds the pieces in an Arrow column of binary values, without copying them, or in an iterable.
    fn update(&self, pieces: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = pieces.py();
        match Source::new(pieces)?.0 {
            Source::Columns(mut columns) => self.add_columns(py, &mut columns),
            Source::Objects(objects) => for_each_object(&objects, |piece| self.add(piece)),
        }
    }

    /// The number of insertions that the pieces stand for.
    #[getter]
    fn inserted(&self) -> u64 {
        lock(&self.0).inserted()
    }

    /// Returns the bits of the range, for `_assemble`.
    fn bits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bits = self.with(py, |merge| Ok(merge.bits()?.into_owned()))?;
        Ok(PyBytes::new(py, &bits))
    }

    /// Returns the merged range as pieces, for `_assemble_pieces`. Unlike bits, they are never longer
    /// than pieces are.
    fn pieces<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let pieces = self.with(py, |merge| merge.pieces())?;
        Ok(pieces.into_iter().map(|piece| PyBytes::new(py, &piece)).collect())
    }

    /// Writes the range to a file that `_create_file` made. Returns the checksums of the range, for
    /// `_finish_file`.
    fn write<'py>(&self, py: Python<'py>, partial: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let partial = path(partial)?;
        let sums = self.with(py, |merge| merge.write(&partial))?;
        let sums: Vec<[u8; 8]> = sums.into_iter().map(u64::to_le_bytes).collect();
        Ok(PyBytes::new(py, sums.as_flattened()))
    }

    /// Writes the file of the shard to a folder that exists, completely or not at all.
    fn save_shard(&self, py: Python<'_>, folder: &Bound<'_, PyAny>) -> PyResult<()> {
        let folder = path(folder)?;
        self.with(py, |merge| merge.save_shard(&folder))
    }
}

impl Merge {
    fn add_columns(&self, py: Python<'_>, columns: &mut Columns) -> PyResult<()> {
        while let Some(column) = columns.next(py)? {
            self.with(py, |merge| column.for_each_bytes(&mut |piece| merge.add(piece)))?;
        }
        Ok(())
    }
}

/// Makes a filter of the bits of ranges, `(range, bits)` each, in any order. Ranges without items may be
/// left out. `inserted` is the sum over all merges.
#[pyfunction]
#[pyo3(name = "_assemble")]
pub fn assemble<'py>(
    py: Python<'py>,
    layout: &Layout,
    parts: &Bound<'py, PyAny>,
    inserted: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let mut assembly = py.detach(|| Assembly::new(&layout.0)).map_err(raise)?;
    for_each_object(parts, |part| {
        let (range, bits) = part.extract::<(u32, Bound<'_, PyAny>)>()?;
        let bits = bytes_of(&bits)?;
        py.detach(|| assembly.set_range(range, &bits)).map_err(raise)
    })?;
    finish(py, assembly, inserted)
}

/// Makes a filter of pieces of any ranges, in any order: those that collectors drained, or those that
/// merges made of them.
#[pyfunction]
#[pyo3(name = "_assemble_pieces")]
pub fn assemble_pieces<'py>(
    py: Python<'py>,
    layout: &Layout,
    pieces: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut assembly = py.detach(|| Assembly::new(&layout.0)).map_err(raise)?;
    for_each_object(pieces, |piece| {
        let piece = bytes_of(piece)?;
        py.detach(|| assembly.add(&piece)).map_err(raise)
    })?;
    finish(py, assembly, 0)
}

fn finish(py: Python<'_>, assembly: Assembly, inserted: u64) -> PyResult<Bound<'_, PyAny>> {
    let filter = AnyFilter::from(assembly.finish(inserted));
    leaf::wrap(py, Structure::owned(filter, None)?)
}

/// Creates a file of the right length beside its target, and returns its path. Delete it if it is never
/// finished.
#[pyfunction]
#[pyo3(name = "_create_file")]
pub fn create_file(py: Python<'_>, layout: &Layout, file: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let target = path(file)?;
    py.detach(|| layout.0.create_file(&target)).map_err(raise)
}

/// Completes a file that merges have written, and puts it in place of its target.
///
/// `sums` has what `_Merge.write` returned for each range, `(range, sums)`; the other ranges are read from
/// the file. `inserted` is the sum over all merges.
#[pyfunction]
#[pyo3(name = "_finish_file", signature = (layout, file, partial, inserted, sums = None))]
pub fn finish_file(
    py: Python<'_>,
    layout: &Layout,
    file: &Bound<'_, PyAny>,
    partial: &Bound<'_, PyAny>,
    inserted: u64,
    sums: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (target, partial) = (path(file)?, path(partial)?);
    let mut all = BTreeMap::new();
    if let Some(sums) = sums {
        for_each_object(sums, |sums| {
            let (range, sums) = sums.extract::<(u32, Bound<'_, PyAny>)>()?;
            let sums = bytes_of(&sums)?;
            all.insert(range, sums.as_chunks().0.iter().map(|sum| u64::from_le_bytes(*sum)).collect());
            Ok(())
        })?;
    }
    py.detach(|| layout.0.finish_file(&target, &partial, inserted, &all)).map_err(raise)
}

/// Writes the manifest of a folder that has all shards, after checking them.
#[pyfunction]
#[pyo3(name = "_seal")]
pub fn seal(py: Python<'_>, layout: &Layout, folder: &Bound<'_, PyAny>) -> PyResult<()> {
    let folder = path(folder)?;
    let plan = layout.0.shard_plan().ok_or_else(|| {
        Exception::Parameter.with("shards = None cannot be used: a manifest needs a layout with shards")
    })?;
    py.detach(|| plan.seal(&folder).map(drop)).map_err(raise)
}

fn path(path: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    path_of(path, "a path is a str or an os.PathLike")
}

/// Adds the classes and functions to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Layout>()?;
    module.add_class::<Collector>()?;
    module.add_class::<Merge>()?;
    module.add_function(wrap_pyfunction!(restore_layout, module)?)?;
    module.add_function(wrap_pyfunction!(assemble, module)?)?;
    module.add_function(wrap_pyfunction!(assemble_pieces, module)?)?;
    module.add_function(wrap_pyfunction!(create_file, module)?)?;
    module.add_function(wrap_pyfunction!(finish_file, module)?)?;
    module.add_function(wrap_pyfunction!(seal, module)?)
}
