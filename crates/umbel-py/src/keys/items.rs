//! Objects that Python hands out one by one: lists, tuples, sets, iterators.

use super::column::CHUNK;
use super::object::{Encoder, plain, text};
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
/// If an object is not a key, the iteration fails, or `work` does. The digests of all objects before
/// have been passed on.
pub fn for_each(
    objects: &Bound<'_, PyAny>,
    encoder: Encoder<'_>,
    work: &mut dyn FnMut(&[Digest]) -> PyResult<()>,
) -> PyResult<()> {
    if !is_plain_container(objects) {
        return objects.try_iter()?.try_for_each(|object| work(&[encoder.digest(&object?)?]));
    }
    let mut chunk = Chunk { digests: Vec::with_capacity(CHUNK.min(objects.len()?)), work };
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
        passed
    }
}

/// The number of objects of a list that are borrowed at a time.
const BLOCK: usize = 64;

/// Hashes a list without taking a reference to each object, which would be a third of the time.
///
/// The list may change whenever Python code runs, also in another thread while this one is detached.
/// So objects are borrowed in blocks, during which neither happens.
fn hash_list(list: &Bound<'_, PyList>, encoder: Encoder<'_>, chunk: &mut Chunk<'_>) -> PyResult<()> {
    let mut at = 0;
    while at < list.len() {
        let block = at..list.len().min(at + BLOCK);
        at = block.end;
        for index in block {
            // SAFETY: the index is below the length, which cannot have changed since: with a global
            // interpreter lock (see `for_each`), no other thread has run, and neither `text` nor
            // `plain` runs Python code. For the same reason the list keeps the object alive until its
            // bytes have been hashed.
            #[allow(unsafe_code, reason = "sound for the reason above")]
            let object = unsafe {
                let object = pyo3::ffi::PyList_GetItem(list.as_ptr(), index as isize);
                Borrowed::from_ptr(list.py(), object)
            };
            if let Some(text) = text(&object) {
                chunk.digests.push(encoder.hasher.digest_bytes(text));
                continue;
            }
            match plain(&object)? {
                Some(bytes) => chunk.digests.push(bytes.digest(encoder.hasher)),
                None => {
                    let object = object.to_owned();
                    chunk.digests.push(encoder.digest(&object)?);
                    // Python code may have run, so the rest of the block is borrowed again.
                    at = index + 1;
                    break;
                }
            }
        }
        if chunk.digests.len() + BLOCK > CHUNK {
            chunk.pass_on()?;
        }
    }
    Ok(())
}
