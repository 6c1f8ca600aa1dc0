//! Columns of other libraries through the Arrow `PyCapsule` interface, without copying them:
//! pyarrow, polars, pandas 3, `DuckDB` and everything else that has `__arrow_c_array__` or
//! `__arrow_c_stream__`.

use super::c_data::{self, Stream, bad_array};
use super::c_schema;
use super::column::{Column, Values, Widen, downcast};
use super::numbers::not_keys;
use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, downcast_dictionary_array};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::DataType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// Takes the array of an object that has `__arrow_c_array__`.
pub fn array(object: &Bound<'_, PyAny>) -> PyResult<Column> {
    let capsules = object.call_method0(intern!(object.py(), "__arrow_c_array__"))?.cast_into::<PyTuple>()?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let (schema, array) = (pointer(&schema, c"arrow_schema")?, pointer(&array, c"arrow_array")?);
    // SAFETY: capsules of these names hold pointers to these structures, as the interface demands.
    // The array is moved out, which leaves a released one behind; the schema stays in its capsule,
    // which lives until the end of this function. Nobody else uses either: the capsules are new.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    let (schema, array) = unsafe {
        (schema.cast::<FFI_ArrowSchema>().as_ref(), FFI_ArrowArray::from_raw(array.cast().as_ptr()))
    };
    column(&c_data::import(array, c_schema::data_type(schema)?)?)
}

/// Takes the stream of an object that has `__arrow_c_stream__`.
pub fn stream(object: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let capsule =
        object.call_method0(intern!(object.py(), "__arrow_c_stream__"))?.cast_into::<PyCapsule>()?;
    let stream = pointer(&capsule, c"arrow_array_stream")?;
    // SAFETY: as in `array`: a capsule of this name holds a pointer to this structure, which is
    // moved out.
    #[allow(unsafe_code, reason = "sound for the reason above")]
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.cast().as_ptr()) };
    Stream::new(object.py(), stream)
}

/// Returns the next array of a stream, or `None` at its end.
pub fn next(py: Python<'_>, stream: &mut Stream) -> PyResult<Option<Column>> {
    stream.next(py)?.map(|array| column(&array)).transpose()
}

/// Returns the pointer in a capsule of this name.
fn pointer(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<NonNull<c_void>> {
    capsule
        .pointer_checked(Some(name))
        .map_err(|_| bad_array(format!("it comes in another capsule than {:?}", name.to_string_lossy())))
}

/// Returns the keys of an array. A table of one column is that column.
fn column(array: &ArrayRef) -> PyResult<Column> {
    let unexpected = || bad_array("it is not of the type that it claims");
    macro_rules! values {
        ($variant:ident) => {
            Values::$variant(downcast(array).ok_or_else(unexpected)?)
        };
    }
    macro_rules! integers {
        ($type:ty) => {
            Values::Integers(Box::new(array.as_primitive::<$type>().clone()))
        };
    }
    let values = match array.data_type() {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        DataType::Boolean => values!(Booleans),
        DataType::Utf8 => values!(Text),
        DataType::LargeUtf8 => values!(LargeText),
        DataType::Utf8View => values!(TextView),
        DataType::Binary => values!(Bytes),
        DataType::LargeBinary => values!(LargeBytes),
        DataType::BinaryView => values!(BytesView),
        DataType::FixedSizeBinary(_) => values!(FixedBytes),
        DataType::Null => Values::Nulls(array.len()),
        DataType::Dictionary(..) => downcast_dictionary_array!(
            array => dictionary(array)?,
            _ => return Err(unexpected())
        ),
        // Tables come as structures, and some libraries, such as DuckDB, have nothing smaller.
        DataType::Struct(_) => {
            let [only] = array.as_struct().columns() else { return Err(unexpected()) };
            let rows = array.as_struct().nulls();
            let Column::Arrow { values, nulls } = column(only)? else { return Err(unexpected()) };
            return Ok(Column::Arrow { values, nulls: NullBuffer::union(nulls.as_ref(), rows) });
        }
        other => return Err(not_keys(&format!("an Arrow column of type {other}"))),
    };
    Ok(Column::Arrow { values, nulls: array.logical_nulls() })
}

fn dictionary<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>) -> PyResult<Values>
where
    K::Native: Widen,
{
    let values = array.values().len();
    if !array.keys().iter().flatten().all(|index| index.as_usize() < values) {
        return Err(bad_array("a row refers to a value that its dictionary does not have"));
    }
    Ok(Values::Dictionary(Box::new(column(array.values())?), Box::new(array.keys().clone())))
}
