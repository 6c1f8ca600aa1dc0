//! The types of arrays that other libraries pass by the C data interface of Arrow.
//!
//! Few types hold keys, and their schemas are read here: arrow-schema follows every pointer of a
//! schema, however deep, and panics if one is null or a text is not UTF-8.

use super::c_data::bad_array;
use super::numbers::not_keys;
use crate::errors::Exception;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field};
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_void};

/// `struct ArrowSchema` of the specification.
#[repr(C)]
struct RawSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *const *const RawSchema,
    dictionary: *const RawSchema,
    release: Option<unsafe extern "C" fn(*mut RawSchema)>,
    private_data: *mut c_void,
}

const _: () = assert!(size_of::<RawSchema>() == size_of::<FFI_ArrowSchema>());

/// The most tables and dictionaries that a column may be nested in.
const MAX_DEPTH: u32 = 8;

/// Returns the type that a schema describes.
///
/// # Errors
///
/// If a column of this type cannot hold keys, or there is no such type.
pub fn data_type(schema: &FFI_ArrowSchema) -> PyResult<DataType> {
    if schema.release().is_none() {
        return Err(bad_array("its schema has been released"));
    }
    // SAFETY: the specification fixes the layout of both, and the assertion above compares their
    // sizes. The pointers in a schema that has not been released are valid or null.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    unsafe {
        parse(&*(&raw const *schema).cast::<RawSchema>(), 0)
    }
}

/// Returns the type that a schema describes.
///
/// # Safety
///
/// The pointers of the schema are valid as the specification demands, or null.
#[allow(unsafe_code, reason = "follows pointers as its caller promises")]
unsafe fn parse(schema: &RawSchema, depth: u32) -> PyResult<DataType> {
    if depth > MAX_DEPTH {
        return Err(bad_array("its type is nested too deeply"));
    }
    if schema.format.is_null() {
        return Err(bad_array("its schema has no format"));
    }
    // SAFETY: a format ends with a zero byte.
    let format = unsafe { CStr::from_ptr(schema.format) }.to_string_lossy();
    // SAFETY: null or a schema, as the caller promises.
    if let Some(values) = unsafe { schema.dictionary.as_ref() } {
        let Some(indexes) = leaf(&format).filter(DataType::is_integer) else {
            return Err(bad_array("the indexes of its dictionary are not integers"));
        };
        // SAFETY: as the caller promises.
        let values = unsafe { parse(values, depth + 1)? };
        return Ok(DataType::Dictionary(Box::new(indexes), Box::new(values)));
    }
    if format != "+s" {
        return leaf(&format).ok_or_else(|| not_keys(&described(&format)));
    }
    if schema.n_children != 1 {
        return Err(Exception::KeyType.with("a table is not a column of keys: pass one of its columns"));
    }
    // SAFETY: there is one child, which is null or a schema.
    let child = unsafe { schema.children.as_ref().and_then(|child| child.as_ref()) };
    let child = child.ok_or_else(|| bad_array("the schema of its column is missing"))?;
    // SAFETY: as the caller promises.
    let child = unsafe { parse(child, depth + 1)? };
    Ok(DataType::Struct([Field::new("", child, true)].into_iter().collect()))
}

/// Returns the type of keys that a format describes; `None` for tables and for values that are not keys.
fn leaf(format: &str) -> Option<DataType> {
    Some(match format {
        "n" => DataType::Null,
        "b" => DataType::Boolean,
        "c" => DataType::Int8,
        "C" => DataType::UInt8,
        "s" => DataType::Int16,
        "S" => DataType::UInt16,
        "i" => DataType::Int32,
        "I" => DataType::UInt32,
        "l" => DataType::Int64,
        "L" => DataType::UInt64,
        "u" => DataType::Utf8,
        "U" => DataType::LargeUtf8,
        "vu" => DataType::Utf8View,
        "z" => DataType::Binary,
        "Z" => DataType::LargeBinary,
        "vz" => DataType::BinaryView,
        _ => {
            let width: i32 = format.strip_prefix("w:")?.parse().ok()?;
            return (width >= 0).then_some(DataType::FixedSizeBinary(width));
        }
    })
}

/// Returns what a column holds whose format is not that of keys.
fn described(format: &str) -> String {
    let values = match format.as_bytes() {
        [b'e' | b'f' | b'g'] => "floating-point numbers",
        [b'd', b':', ..] => "decimals",
        [b't', b'd', ..] => "dates",
        [b't', b't' | b's', ..] => "times",
        [b't', b'D' | b'i', ..] => "durations",
        [b'+', b'l' | b'L' | b'w', ..] | [b'+', b'v', ..] => "lists",
        [b'+', b'm', ..] => "maps",
        [b'+', b'u', ..] => "unions",
        [b'+', b'r', ..] => "runs of equal values",
        _ => return format!("an Arrow column of the format {format:?}"),
    };
    format!("an Arrow column of {values}")
}
