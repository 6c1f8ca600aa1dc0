//! One Python object as a key.

use crate::errors::Exception;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyMemoryView, PyString, PyType};
use umbel::{Digest, Hasher, Key};

/// Turns objects into keys: the hash of a filter, and its function `key`.
#[derive(Clone, Copy)]
pub struct Encoder<'a> {
    pub hasher: &'a Hasher,
    /// Makes a key of an object that is none.
    pub key: Option<&'a Py<PyAny>>,
}

/// The bytes of a key.
pub enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
    /// An integer that fits into 64 bits with or without a sign.
    Int(u64),
    /// Any other integer of up to 128 bits.
    Wide(u128),
}

impl Bytes<'_> {
    #[inline]
    pub fn digest(&self, hasher: &Hasher) -> Digest {
        match self {
            Bytes::Borrowed(bytes) => hasher.digest_bytes(bytes),
            Bytes::Owned(bytes) => hasher.digest_bytes(bytes),
            Bytes::Int(int) => int.digest(hasher),
            Bytes::Wide(int) => int.digest(hasher),
        }
    }

    /// Calls `f` with the bytes.
    pub fn with<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Bytes::Borrowed(bytes) => f(bytes),
            Bytes::Owned(bytes) => f(bytes),
            Bytes::Int(int) => f(&int.to_le_bytes()),
            Bytes::Wide(int) => f(&int.to_le_bytes()),
        }
    }
}

impl Encoder<'_> {
    /// Returns the digest of an object of one of the usual types. Runs Python code only if it returns
    /// `None`.
    #[inline(always)]
    pub fn digest_now(&self, object: &Bound<'_, PyAny>) -> Option<Digest> {
        if let Some(text) = text(object) {
            return Some(self.hasher.digest_bytes(text));
        }
        if let Ok(int) = object.cast_exact::<PyInt>() {
            return small(int).map(|int| int.cast_unsigned().digest(self.hasher));
        }
        object.cast_exact::<PyBytes>().ok().map(|bytes| self.hasher.digest_bytes(bytes.as_bytes()))
    }

    /// Returns the digest of an object.
    #[inline(always)]
    pub fn digest(&self, object: &Bound<'_, PyAny>) -> PyResult<Digest> {
        match self.digest_now(object) {
            Some(digest) => Ok(digest),
            None => self.digest_other(object),
        }
    }

    #[inline(never)]
    fn digest_other(&self, object: &Bound<'_, PyAny>) -> PyResult<Digest> {
        match plain(object)? {
            Some(bytes) => Ok(bytes.digest(self.hasher)),
            None => self.other(object, |bytes| bytes.digest(self.hasher)),
        }
    }

    /// Calls `f` with the bytes of an object.
    pub fn with_bytes<R>(&self, object: &Bound<'_, PyAny>, f: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
        match plain(object)? {
            Some(bytes) => Ok(bytes.with(f)),
            None => self.other(object, |bytes| bytes.with(f)),
        }
    }

    /// Handles an object of a rarer type; may run Python code.
    #[cold]
    fn other<R>(&self, object: &Bound<'_, PyAny>, f: impl FnOnce(&Bytes<'_>) -> R) -> PyResult<R> {
        // `add` and `in` are called without PyO3 noticing. It would put off dropping objects such as
        // exceptions until it is called itself, which may be never.
        Python::attach(|_| self.rarest(object, f))
    }

    fn rarest<R>(&self, object: &Bound<'_, PyAny>, f: impl FnOnce(&Bytes<'_>) -> R) -> PyResult<R> {
        if let Some(bytes) = rare(object)? {
            return Ok(f(&bytes));
        }
        let Some(key) = self.key else { return Err(no_key(object)) };
        let made = key.bind(object.py()).call1((object,))?;
        let bytes = match plain(&made)? {
            Some(bytes) => Some(bytes),
            None => rare(&made)?,
        };
        let bytes = bytes.ok_or_else(|| {
            Exception::KeyType.with(format!(
                "the function key= returned {}, which is not a key: return a str, bytes or int",
                described(&made)
            ))
        })?;
        Ok(f(&bytes))
    }
}

/// Returns the UTF-8 of a text, without running Python code; `None` for other objects, and for a text
/// that has none. The hot path of single keys and lists.
///
/// If a text has none, Python code may have run: the exception is created, and then dropped.
#[inline(always)]
pub fn text<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    let text = object.cast_exact::<PyString>().ok()?;
    let mut len = 0;
    // SAFETY: the object is a text. Its UTF-8 is part of it and never changes, so it lives as long as
    // the reference. `PyString::to_str` does the same, but its result has room for an exception,
    // which costs a sixth of the time of a lookup.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    unsafe {
        let start = ffi::PyUnicode_AsUTF8AndSize(text.as_ptr(), &raw mut len);
        if start.is_null() {
            // `plain` raises the exception.
            ffi::PyErr_Clear();
            return None;
        }
        Some(std::slice::from_raw_parts(start.cast(), len.cast_unsigned()))
    }
}

/// Returns an integer that fits into 64 bits with a sign, without running Python code.
#[inline]
fn small(int: &Bound<'_, PyInt>) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: the object is an integer and alive. There is no exception, not even if it is too large.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(int.as_ptr(), &raw mut overflow) };
    (overflow == 0).then_some(value)
}

/// Returns the bytes of a text, of `bytes`, or of anything like an integer.
fn plain<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Bytes<'a>>> {
    if let Ok(int) = object.cast_exact::<PyInt>() {
        return integer(int).map(Some);
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(Bytes::Borrowed(bytes.as_bytes())));
    }
    // Subclasses, too, such as `numpy.str_`.
    match object.cast::<PyString>() {
        Ok(text) => Ok(Some(Bytes::Borrowed(text.to_str()?.as_bytes()))),
        Err(_) => index(object)?.map(|int| integer(&int)).transpose(),
    }
}

/// Returns the bytes of an object of the other types that are keys: anything like bytes, UUIDs and
/// network addresses.
fn rare<'a>(object: &Bound<'_, PyAny>) -> PyResult<Option<Bytes<'a>>> {
    let py = object.py();
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        let buffer = PyUntypedBuffer::get(object)?;
        if buffer.item_size() != 1 {
            return Ok(None);
        }
        let bytes = py.get_type::<PyBytes>().call1((object,))?;
        return Ok(Some(Bytes::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec())));
    }
    for (class, bytes) in known_classes(py)? {
        if object.is_instance(class.bind(py))? {
            let bytes = object.getattr(*bytes)?;
            return Ok(Some(Bytes::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec())));
        }
    }
    Ok(None)
}

/// Returns the text or the bytes that an object is.
pub fn string_of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Bytes<'a>>> {
    if let Some(text) = text(object) {
        return Ok(Some(Bytes::Borrowed(text)));
    }
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyString>() {
        return plain(object);
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        return rare(object);
    }
    Ok(None)
}

/// Returns the integer that an object is.
pub fn integer_of(object: &Bound<'_, PyAny>) -> PyResult<Option<i128>> {
    let Some(integer) = index(object)? else { return Ok(None) };
    if let Some(integer) = small(&integer) {
        return Ok(Some(integer.into()));
    }
    let too_large = "an integer key of a filter of another library has at most 64 bits";
    integer.extract().map(Some).map_err(|_| Exception::Parameter.with(too_large))
}

/// Returns the integer that an object is by the `__index__` of its class. An object that merely has an
/// attribute of every name is none.
fn index<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyInt>>> {
    // SAFETY: the thread is attached, and the object is alive. The second function returns a new
    // reference, or null with an exception.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    let int = unsafe {
        if ffi::PyIndex_Check(object.as_ptr()) == 0 {
            return Ok(None);
        }
        Bound::from_owned_ptr_or_err(object.py(), ffi::PyNumber_Index(object.as_ptr()))?
    };
    Ok(Some(int.cast_into::<PyInt>()?))
}

/// The classes of the standard library that are keys, and the attribute with their bytes.
fn known_classes(py: Python<'_>) -> PyResult<&[(Py<PyType>, &'static str)]> {
    static CLASSES: PyOnceLock<Vec<(Py<PyType>, &'static str)>> = PyOnceLock::new();
    let classes = [
        ("uuid", "UUID", "bytes"),
        ("ipaddress", "IPv4Address", "packed"),
        ("ipaddress", "IPv6Address", "packed"),
    ];
    let import = || {
        let class = |(module, class, bytes)| -> PyResult<_> {
            Ok((py.import(module)?.getattr(class)?.cast_into::<PyType>()?.unbind(), bytes))
        };
        classes.into_iter().map(class).collect::<PyResult<_>>()
    };
    Ok(CLASSES.get_or_try_init(py, import)?)
}

/// Returns the bytes of an integer: eight if it fits into 64 bits with or without a sign, else
/// sixteen.
fn integer<'a>(int: &Bound<'_, PyInt>) -> PyResult<Bytes<'a>> {
    if let Some(int) = small(int) {
        return Ok(Bytes::Int(int.cast_unsigned()));
    }
    let wide = |high, low| Bytes::Wide(u128::from(high) << 64 | u128::from(low));
    let (low, rest) = split(int)?;
    match small(&rest) {
        Some(0) => return Ok(Bytes::Int(low)),
        Some(high) => return Ok(wide(high.cast_unsigned(), low)),
        None => {}
    }
    let (high, rest) = split(&rest)?;
    if small(&rest) == Some(0) {
        return Ok(wide(high, low));
    }
    Err(Exception::Parameter.with(
        "an integer key has at most 128 bits, from -2**127 to 2**128 - 1: add a larger one as its text, str(key)",
    ))
}

/// Splits an integer into its lowest 64 bits and the others.
fn split<'py>(int: &Bound<'py, PyInt>) -> PyResult<(u64, Bound<'py, PyInt>)> {
    // SAFETY: the object is an integer and alive. There is no exception, however large it is.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    let low = unsafe { ffi::PyLong_AsUnsignedLongLongMask(int.as_ptr()) };
    Ok((low, int.rshift(64)?.cast_into()?))
}

/// Returns the exception for an object that is not a key.
pub fn no_key(object: &Bound<'_, PyAny>) -> PyErr {
    Exception::KeyType.with(format!(
        "{} is not a key: keys are str, bytes, int, uuid.UUID and ipaddress addresses; make one of other objects \
         with key=, as in Bloom(n, p, key=lambda item: item.name)",
        described(object)
    ))
}

/// Returns the type of an object, with its article.
pub fn described(object: &Bound<'_, PyAny>) -> String {
    if object.is_none() {
        return "None".to_owned();
    }
    let name = object.get_type().fully_qualified_name().map(|name| name.to_string());
    format!("an object of type {}", name.unwrap_or_else(|_| "unknown".to_owned()))
}
