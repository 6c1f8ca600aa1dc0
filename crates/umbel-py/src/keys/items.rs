//! Objects that Python hands out one by one: lists, tuples, sets, iterators.

use super::column::CHUNK;
use super::object::Encoder;
use super::prefetch;
use super::source::is_plain_container;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::ops::Range;
use umbel::Digest;

/// Hashes the objects of an iterable, and passes their digests to `work` in order.
///
/// Lists, tuples and sets are hashed in chunks. Of any other iterable, each digest is passed on
/// before the next object is requested, since Python code that yields objects may look at what has
/// become of those before.
///
/// # Errors
///
/// If an object is not a key, the iteration fails, or `work` does; also if a signal handler raises an
/// exception, as Ctrl-C does. The digests of all objects before have been passed on.
pub fn for_each(
    objects: &Bound<'_, PyAny>,
    encoder: Encoder<'_>,
    work: &mut dyn FnMut(&[Digest]) -> PyResult<()>,
) -> PyResult<()> {
    if !is_plain_container(objects) {
        return for_each_object(objects, |object| work(&[encoder.digest(object)?]));
    }
    let py = objects.py();
    let mut chunk = Chunk { digests: Vec::with_capacity(CHUNK.min(objects.len()?)), work, py };
    let hashed = match objects.cast_exact::<PyList>() {
        Ok(list) if cfg!(not(Py_GIL_DISABLED)) => hash_list(list, encoder, &mut chunk),
        _ => objects.try_iter()?.try_for_each(|object| chunk.push(encoder.digest(&object?)?)),
    };
    chunk.pass_on().and(hashed)
}

/// Calls `f` with each object of an iterable, until it fails.
///
/// # Errors
///
/// If the iteration or `f` fails, or a signal handler raises an exception.
pub fn for_each_object<'py>(
    objects: &Bound<'py, PyAny>,
    mut f: impl FnMut(&Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    objects.try_iter()?.zip(1u64..).try_for_each(|(object, count)| {
        f(&object?)?;
        // Signals wait while no Python code runs, and some iterators in C never end.
        if count.is_multiple_of(1024) { objects.py().check_signals() } else { Ok(()) }
    })
}

/// Digests that have not been passed on.
struct Chunk<'a> {
    digests: Vec<Digest>,
    work: &'a mut dyn FnMut(&[Digest]) -> PyResult<()>,
    py: Python<'a>,
}

impl Chunk<'_> {
    #[inline(always)]
    fn push(&mut self, digest: Digest) -> PyResult<()> {
        self.digests.push(digest);
        if self.digests.len() >= CHUNK { self.pass_on() } else { Ok(()) }
    }

    fn pass_on(&mut self) -> PyResult<()> {
        let passed = (self.work)(&self.digests);
        self.digests.clear();
        passed?;
        self.py.check_signals()
    }
}

/// How many objects of a list are borrowed, and requested from memory, before they are hashed. They
/// are scattered over the memory, which takes about as long to deliver one as these take to hash.
const AHEAD: usize = 32;

/// Hashes a list without taking a reference to each object, which would be a third of the time.
///
/// The list may change whenever Python code runs, also in another thread while this one is detached.
/// So objects are borrowed in runs, during which neither happens. A run ends at an object that is not
/// an ordinary text, integer or `bytes`: even an exception that is dropped at once is an object,
/// whose creation may start the garbage collector, and with it Python code.
fn hash_list(list: &Bound<'_, PyList>, encoder: Encoder<'_>, chunk: &mut Chunk<'_>) -> PyResult<()> {
    let mut at = 0;
    while at < list.len() {
        let run = at..list.len().min(at + CHUNK - chunk.digests.len());
        at = hash_run(list, run.clone(), encoder, &mut chunk.digests);
        if at < run.end {
            // The borrowed object may be gone, and the list be shorter.
            if let Ok(object) = list.get_item(at) {
                chunk.digests.push(encoder.digest(&object)?);
            }
            at += 1;
        }
        if chunk.digests.len() >= CHUNK {
            chunk.pass_on()?;
        }
    }
    Ok(())
}

/// Hashes objects of a list up to the first whose digest may need Python code. Returns the index of
/// that object, or the end of the run.
fn hash_run(
    list: &Bound<'_, PyList>,
    run: Range<usize>,
    encoder: Encoder<'_>,
    digests: &mut Vec<Digest>,
) -> usize {
    let borrow = |index: usize| {
        // SAFETY: the index is below the length, which was read before the run. The result is a
        // borrowed reference, and there is no exception.
        #[allow(unsafe_code, reason = "sound for the reason above")]
        let object = unsafe { ffi::PyList_GetItem(list.as_ptr(), index as isize) };
        // Its type and, of a short text, its contents.
        prefetch(object.cast(), 128);
        object
    };
    let mut borrowed = [std::ptr::null_mut(); AHEAD];
    run.clone().take(AHEAD).for_each(|index| borrowed[index % AHEAD] = borrow(index));
    for index in run.clone() {
        let object = borrowed[index % AHEAD];
        if index + AHEAD < run.end {
            borrowed[index % AHEAD] = borrow(index + AHEAD);
        }
        // SAFETY: with a global interpreter lock (see `for_each`), no other thread has run since the
        // beginning of the run, which ends where Python code may have run. So the list has not
        // changed, and it keeps the object alive until its bytes have been hashed.
        #[allow(unsafe_code, reason = "sound for the reason above")]
        let object = unsafe { Borrowed::from_ptr(list.py(), object) };
        let Some(digest) = encoder.digest_now(&object) else { return index };
        digests.push(digest);
    }
    run.end
}
