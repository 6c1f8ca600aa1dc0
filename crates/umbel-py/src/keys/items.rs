//! Objects that Python hands out one by one: lists, tuples, sets, iterators.

use super::column::CHUNK;
use super::object::Encoder;
use super::source::is_plain_container;
use pyo3::prelude::*;
use pyo3::types::PyList;
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
        return objects.try_iter()?.zip(1u64..).try_for_each(|(object, count)| {
            work(&[encoder.digest(&object?)?])?;
            // Signals wait while no Python code runs, and some iterators in C never end.
            if count.is_multiple_of(1024) { objects.py().check_signals() } else { Ok(()) }
        });
    }
    let py = objects.py();
    let mut chunk = Chunk { digests: Vec::with_capacity(CHUNK.min(objects.len()?)), work, py };
    let hashed = match objects.cast_exact::<PyList>() {
        Ok(list) if cfg!(not(Py_GIL_DISABLED)) => hash_list(list, encoder, &mut chunk),
        _ => objects.try_iter()?.try_for_each(|object| chunk.push(encoder.digest(&object?)?)),
    };
    chunk.pass_on().and(hashed)
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

/// The number of objects of a list that are borrowed at a time.
const BLOCK: usize = 64;

/// Hashes a list without taking a reference to each object, which would be a third of the time.
///
/// The list may change whenever Python code runs, also in another thread while this one is detached.
/// So objects are borrowed in blocks, during which neither happens. A block ends early at an object
/// that is not an ordinary text, integer or `bytes`: even an exception that is dropped at once is an
/// object, whose creation may start the garbage collector, and with it Python code.
fn hash_list(list: &Bound<'_, PyList>, encoder: Encoder<'_>, chunk: &mut Chunk<'_>) -> PyResult<()> {
    let mut at = 0;
    while at < list.len() {
        let block = at..list.len().min(at + BLOCK);
        at = block.end;
        for index in block {
            // SAFETY: the index is below the length, which cannot have changed since: with a global
            // interpreter lock (see `for_each`), no other thread has run, and a block ends where
            // Python code may have run. For the same reason the list keeps the object alive until
            // its bytes have been hashed.
            #[allow(unsafe_code, reason = "sound for the reason above")]
            let object = unsafe {
                let object = pyo3::ffi::PyList_GetItem(list.as_ptr(), index as isize);
                Borrowed::from_ptr(list.py(), object)
            };
            if let Some(digest) = encoder.digest_now(&object) {
                chunk.digests.push(digest);
                continue;
            }
            // The borrowed object may be gone, and the list be shorter.
            at = index + 1;
            if let Ok(object) = list.get_item(index) {
                chunk.digests.push(encoder.digest(&object)?);
            }
            break;
        }
        if chunk.digests.len() + BLOCK > CHUNK {
            chunk.pass_on()?;
        }
    }
    Ok(())
}
