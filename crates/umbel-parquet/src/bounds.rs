//! The least and the greatest value of a column in a row group, which its footer may have.

use crate::file::{Column, ParquetFile};
use crate::values::{DecimalStorage, Value, ValueType};
use parquet::basic::ColumnOrder;

/// What the footer says of the values of a column in a row group.
pub enum Bounds {
    /// Nothing that could be relied on.
    Unknown,
    /// There are no values, only nulls.
    Empty,
    /// Whole numbers, as they compare.
    Numbers(i128, i128),
    /// Strings of bytes.
    Bytes(Vec<u8>, Vec<u8>),
}

/// The order of the values of a type, as far as all writers agree on it.
#[derive(Clone, Copy)]
enum Order {
    Signed,
    Unsigned,
    Bytes,
}

impl Bounds {
    /// Returns the bounds of a column in a row group.
    pub fn new(file: &ParquetFile, row_group: usize, column: &Column) -> Bounds {
        let chunk = file.metadata().row_group(row_group).column(column.index());
        let Some(statistics) = chunk.statistics() else { return Bounds::Unknown };
        if statistics.null_count_opt().is_some_and(|nulls| i64::try_from(nulls) == Ok(chunk.num_values())) {
            return Bounds::Empty;
        }
        // Older writers compared bytes and unsigned numbers as signed ones, and stored the results
        // in fields that are deprecated since.
        let order = file.metadata().file_metadata().column_order(column.index());
        let is_defined = matches!(order, ColumnOrder::TYPE_DEFINED_ORDER(_));
        if !is_defined || statistics.is_min_max_deprecated() {
            return Bounds::Unknown;
        }
        let (Some(least), Some(greatest)) = (statistics.min_bytes_opt(), statistics.max_bytes_opt()) else {
            return Bounds::Unknown;
        };
        match order_of(column.values()) {
            None => Bounds::Unknown,
            Some(Order::Bytes) => Bounds::Bytes(least.to_vec(), greatest.to_vec()),
            Some(order) => match (number(least, order), number(greatest, order)) {
                (Some(least), Some(greatest)) => Bounds::Numbers(least, greatest),
                _ => Bounds::Unknown,
            },
        }
    }

    /// Returns whether a value of the column lies outside of the bounds.
    pub fn exclude(&self, values: &ValueType, value: &Value) -> bool {
        match self {
            Bounds::Unknown => false,
            Bounds::Empty => true,
            Bounds::Bytes(least, greatest) => value.bytes() < &least[..] || value.bytes() > &greatest[..],
            Bounds::Numbers(least, greatest) => order_of(values)
                .and_then(|order| number(value.bytes(), order))
                .is_some_and(|number| number < *least || number > *greatest),
        }
    }
}

/// Returns the order of the values of a type; `None` for floats, whose writers do not agree on NaN
/// and on zeros, and for decimals in bytes.
fn order_of(values: &ValueType) -> Option<Order> {
    Some(match values {
        ValueType::Integer(integer) if !integer.signed => Order::Unsigned,
        ValueType::Integer(_) | ValueType::Date | ValueType::Time(_) | ValueType::Timestamp(_) => {
            Order::Signed
        }
        ValueType::Decimal(decimal)
            if matches!(decimal.storage, DecimalStorage::Int32 | DecimalStorage::Int64) =>
        {
            Order::Signed
        }
        ValueType::Text | ValueType::Bytes | ValueType::FixedBytes(_) | ValueType::Uuid => Order::Bytes,
        _ => return None,
    })
}

/// Returns the number that is stored in 4 or 8 bytes.
fn number(bytes: &[u8], order: Order) -> Option<i128> {
    let signed = matches!(order, Order::Signed);
    if let Ok(bytes) = bytes.try_into() {
        return Some(if signed {
            i32::from_le_bytes(bytes).into()
        } else {
            u32::from_le_bytes(bytes).into()
        });
    }
    let bytes = bytes.try_into().ok()?;
    Some(if signed { i64::from_le_bytes(bytes).into() } else { u64::from_le_bytes(bytes).into() })
}
