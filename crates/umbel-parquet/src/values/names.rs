//! The names of types, from which a type can be read again: an index stores them.

use super::{Clock, Decimal, DecimalStorage, Integer, Unit, ValueType};

impl ValueType {
    /// Returns a name that [`from_name`](ValueType::from_name) reads. Unlike the printed type, it
    /// contains the bytes in which a decimal is stored.
    ///
    /// ```
    /// use umbel_parquet::values::{Decimal, DecimalStorage, ValueType};
    ///
    /// let price = ValueType::Decimal(Decimal { precision: 9, scale: 2, storage: DecimalStorage::Int32 });
    /// assert_eq!(price.name(), "decimal(9, 2) in int32");
    /// assert_eq!(ValueType::from_name(&price.name()), Some(price));
    /// ```
    pub fn name(&self) -> String {
        match self {
            ValueType::Decimal(decimal) => match decimal.storage {
                DecimalStorage::Int32 => format!("{self} in int32"),
                DecimalStorage::Int64 => format!("{self} in int64"),
                DecimalStorage::Fixed(length) => format!("{self} in binary({length})"),
                DecimalStorage::Shortest => format!("{self} in binary"),
            },
            ValueType::Timestamp96 => "timestamp in 96 bits".to_string(),
            _ => self.to_string(),
        }
    }

    /// Returns the type with a name, or `None` if there is none.
    pub fn from_name(name: &str) -> Option<ValueType> {
        let simple = [
            ValueType::Boolean,
            ValueType::Float16,
            ValueType::Float32,
            ValueType::Float64,
            ValueType::Date,
            ValueType::Timestamp96,
            ValueType::Text,
            ValueType::Bytes,
            ValueType::Uuid,
        ];
        let integers = [8, 16, 32, 64]
            .into_iter()
            .flat_map(|bits| [true, false].map(|signed| ValueType::Integer(Integer { bits, signed })));
        let clocks = [Unit::Millis, Unit::Micros, Unit::Nanos]
            .into_iter()
            .flat_map(|unit| [true, false].map(|utc| Clock { unit, utc }));
        let clocks = clocks.flat_map(|clock| [ValueType::Time(clock), ValueType::Timestamp(clock)]);
        if let Some(found) =
            simple.into_iter().chain(integers).chain(clocks).find(|known| known.name() == name)
        {
            return Some(found);
        }
        let in_brackets =
            |text: &str, before: &str| Some(text.strip_prefix(before)?.strip_suffix(')')?.to_string());
        if let Some(length) = in_brackets(name, "binary(") {
            return length.parse().ok().map(ValueType::FixedBytes);
        }
        let (digits, storage) = name.split_once(" in ")?;
        let digits = in_brackets(digits, "decimal(")?;
        let (precision, scale) = digits.split_once(", ")?;
        let storage = match storage {
            "int32" => DecimalStorage::Int32,
            "int64" => DecimalStorage::Int64,
            "binary" => DecimalStorage::Shortest,
            _ => DecimalStorage::Fixed(in_brackets(storage, "binary(")?.parse().ok()?),
        };
        let (precision, scale) = (precision.parse().ok()?, scale.parse().ok()?);
        Some(ValueType::Decimal(Decimal { precision, scale, storage }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_from_its_name() {
        let mut types =
            vec![ValueType::FixedBytes(16), ValueType::Uuid, ValueType::Text, ValueType::Timestamp96];
        for bits in [8, 16, 32, 64] {
            types.extend([true, false].map(|signed| ValueType::Integer(Integer { bits, signed })));
        }
        for unit in [Unit::Millis, Unit::Micros, Unit::Nanos] {
            for utc in [true, false] {
                types.extend([
                    ValueType::Time(Clock { unit, utc }),
                    ValueType::Timestamp(Clock { unit, utc }),
                ]);
            }
        }
        let storages = [
            DecimalStorage::Int32,
            DecimalStorage::Int64,
            DecimalStorage::Fixed(16),
            DecimalStorage::Shortest,
        ];
        types.extend(
            storages.map(|storage| ValueType::Decimal(Decimal { precision: 38, scale: 10, storage })),
        );
        let names: std::collections::BTreeSet<String> = types.iter().map(ValueType::name).collect();
        assert_eq!(names.len(), types.len());
        for known in types {
            assert_eq!(ValueType::from_name(&known.name()), Some(known));
        }
        for unknown in ["", "int7", "binary(", "decimal(1)", "decimal(1, 2) in text", "list<int8>"] {
            assert_eq!(ValueType::from_name(unknown), None, "{unknown}");
        }
    }
}
