//! Arrays that other libraries pass by the C data interface of Arrow.
//!
//! The interface passes addresses without the sizes of the memory behind them, so the producer of an
//! array is trusted with those. Whatever else it promises is checked here before the array is used:
//! a producer with a bug must cause an exception, neither a crash nor a panic.

use super::c_schema;
use crate::errors::Exception;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, NullArray, make_array, new_empty_array};
use arrow_schema::DataType;
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};
use std::fmt::Display;
use std::sync::Arc;

/// A stream of arrays of one type.
pub struct Stream {
    stream: FFI_ArrowArrayStream,
    data_type: DataType,
}

/// Takes an array of a type that [`c_schema::data_type`] has returned. Its rows may come as an array
/// without a type if all of them are null.
pub fn import(array: FFI_ArrowArray, data_type: DataType) -> PyResult<ArrayRef> {
    // Some producers leave out the buffers of an array without rows.
    if !array.is_released() && array.is_empty() {
        return Ok(new_empty_array(&data_type));
    }
    // SAFETY: the specification fixes the layout of both, and the assertion below compares their
    // sizes. The pointers in an array that has not been released are valid or null, which `check`
    // tests before it follows one.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    let checked = unsafe { check(&*(&raw const array).cast::<RawArray>(), &data_type) };
    checked.map_err(bad_array)?;
    if is_null(&data_type) {
        return Ok(Arc::new(NullArray::new(array.len())));
    }
    // SAFETY: the producer promises that the array is of this type, and `check` did not find
    // otherwise.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    let data = unsafe { from_ffi_and_data_type(array, data_type) };
    Ok(make_array(data.map_err(bad_array)?))
}

/// Returns whether every value of a type is null.
fn is_null(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null => true,
        DataType::Dictionary(_, values) => is_null(values),
        DataType::Struct(fields) => fields.iter().all(|field| is_null(field.data_type())),
        _ => false,
    }
}

impl Stream {
    /// Takes a stream.
    pub fn new(py: Python<'_>, mut stream: FFI_ArrowArrayStream) -> PyResult<Stream> {
        let get_schema = stream.release().and_then(|_| stream.get_schema());
        let Some(get_schema) = get_schema else { return Err(bad_array("the stream has been released")) };
        let mut schema = FFI_ArrowSchema::empty();
        // Detached, because the producer may wait for a thread that runs Python code.
        let code = py.detach(|| {
            // SAFETY: the function belongs to this stream, which has not been released.
            #[allow(unsafe_code, reason = "sound for the reason above")]
            unsafe {
                get_schema(&raw mut stream, &raw mut schema)
            }
        });
        if code != 0 {
            return Err(failed(&mut stream, code));
        }
        Ok(Stream { data_type: c_schema::data_type(&schema)?, stream })
    }

    /// Returns the next array, or `None` at the end.
    pub fn next(&mut self, py: Python<'_>) -> PyResult<Option<ArrayRef>> {
        let Some(get_next) = self.stream.get_next() else {
            return Err(bad_array("the stream has no function that returns arrays"));
        };
        let mut array = FFI_ArrowArray::empty();
        // Detached, as above.
        let code = py.detach(|| {
            // SAFETY: the function belongs to this stream, which has not been released.
            #[allow(unsafe_code, reason = "sound for the reason above")]
            unsafe {
                get_next(&raw mut self.stream, &raw mut array)
            }
        });
        match code {
            0 if array.is_released() => Ok(None),
            0 => import(array, self.data_type.clone()).map(Some),
            code => Err(failed(&mut self.stream, code)),
        }
    }
}

/// Returns the exception for a function of a stream that has failed.
fn failed(stream: &mut FFI_ArrowArrayStream, code: i32) -> PyErr {
    // SAFETY: the function belongs to this stream, whose last operation has failed. Its result is null
    // or a text that lives until the next operation.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    let message = unsafe {
        let message = stream.get_last_error().map_or(std::ptr::null(), |last| last(&raw mut *stream));
        (!message.is_null()).then(|| CStr::from_ptr(message).to_string_lossy().into_owned())
    };
    bad_array(message.unwrap_or_else(|| format!("its producer failed with the code {code}")))
}

/// Returns the exception for an array that breaks the rules of the interface.
pub fn bad_array(why: impl Display) -> PyErr {
    Exception::Parameter.with(format!("the Arrow column cannot be read: {why}"))
}

/// Returns how many buffers an array of a type has, and how many it has at least if their number
/// varies; `None` for types that are not keys.
fn buffers(data_type: &DataType) -> Option<(i64, bool)> {
    Some(match data_type {
        // Polars has one, as for other types: that of the bits which tell values from nulls.
        DataType::Null => (0, true),
        DataType::Struct(_) => (1, false),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => (3, false),
        DataType::Utf8View | DataType::BinaryView => (3, true),
        DataType::Boolean | DataType::FixedSizeBinary(_) | DataType::Dictionary(..) => (2, false),
        integer if integer.is_integer() => (2, false),
        _ => return None,
    })
}

/// `struct ArrowArray` of the specification.
#[repr(C)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *const *const RawArray,
    dictionary: *const RawArray,
    release: Option<unsafe extern "C" fn(*mut RawArray)>,
    private_data: *mut c_void,
}

const _: () = assert!(size_of::<RawArray>() == size_of::<FFI_ArrowArray>());

/// The most rows of an array, so that the sizes of buffers do not overflow.
const MAX_ROWS: i64 = 1 << 48;

/// The most rows of an array whose rows take no memory. The answers to them take some.
const MAX_EMPTY_ROWS: i64 = 1 << 32;

/// Returns what is wrong with an array.
///
/// # Safety
///
/// The pointers of the array are valid as the specification demands, or null.
#[allow(unsafe_code, reason = "follows pointers as its caller promises")]
unsafe fn check(array: &RawArray, data_type: &DataType) -> Result<(), &'static str> {
    if array.release.is_none() {
        return Err("it has been released");
    }
    if array.length < 0 || array.offset < 0 || array.length.saturating_add(array.offset) > MAX_ROWS {
        return Err("its length is negative or too large");
    }
    let rows = array.length + array.offset;
    let (expected, or_more) = buffers(data_type).unwrap_or((0, true));
    if array.n_buffers < expected || array.n_buffers > expected && !or_more {
        return Err("it does not have as many buffers as its type demands");
    }
    if array.n_buffers > 0 && array.buffers.is_null() {
        return Err("its buffers are missing");
    }
    // SAFETY: there are this many buffers.
    let buffer = |index: i64| unsafe { *array.buffers.offset(index as isize) };
    match data_type {
        // Their last offset is the size of their last buffer.
        DataType::Utf8 | DataType::Binary if rows > 0 => {
            let offsets = buffer(1).cast::<i32>();
            // SAFETY: there is one offset more than there are rows.
            if offsets.is_null() || unsafe { offsets.offset(rows as isize).read_unaligned() } < 0 {
                return Err("its offsets are missing or negative");
            }
        }
        DataType::LargeUtf8 | DataType::LargeBinary if rows > 0 => {
            let offsets = buffer(1).cast::<i64>();
            // SAFETY: as above.
            if offsets.is_null() || unsafe { offsets.offset(rows as isize).read_unaligned() } < 0 {
                return Err("its offsets are missing or negative");
            }
        }
        // The last buffer has the sizes of those between the second and itself.
        DataType::Utf8View | DataType::BinaryView if array.n_buffers > 3 => {
            let sizes = buffer(array.n_buffers - 1).cast::<i64>();
            // SAFETY: there are this many sizes.
            let negative = |index: i64| unsafe { sizes.offset(index as isize).read_unaligned() } < 0;
            if sizes.is_null() || (0..array.n_buffers - 3).any(negative) {
                return Err("the sizes of its buffers are missing or negative");
            }
        }
        DataType::Null | DataType::FixedSizeBinary(0) if rows > MAX_EMPTY_ROWS => {
            return Err("its length is too large");
        }
        DataType::FixedSizeBinary(width) if rows.saturating_mul((*width).into()) > i64::MAX / 64 => {
            return Err("its length is too large");
        }
        DataType::Struct(fields) => {
            if array.n_children != fields.len() as i64 || array.children.is_null() {
                return Err("it does not have as many columns as its type demands");
            }
            for (index, field) in fields.iter().enumerate() {
                // SAFETY: there are this many children, each null or an array.
                let child = unsafe { (*array.children.add(index)).as_ref() };
                let Some(child) = child.filter(|child| child.length >= rows) else {
                    return Err("one of its columns is missing or too short");
                };
                // SAFETY: as the caller promises.
                unsafe { check(child, field.data_type())? };
            }
        }
        DataType::Dictionary(_, values) => {
            // SAFETY: null or an array.
            let Some(dictionary) = (unsafe { array.dictionary.as_ref() }) else {
                return Err("its dictionary is missing");
            };
            // SAFETY: as the caller promises.
            unsafe { check(dictionary, values)? };
        }
        _ => {}
    }
    if !matches!(data_type, DataType::Dictionary(..)) && !array.dictionary.is_null() {
        return Err("it has a dictionary, which its type does not have");
    }
    Ok(())
}
