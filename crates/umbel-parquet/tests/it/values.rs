//! Texts as the values of columns: each is exactly one value, or refused with a sentence.

use proptest::prelude::*;
use umbel_parquet::values::{Clock, Decimal, DecimalStorage, Integer, Unit, ValueType};

fn bytes(values: &ValueType, text: &str) -> Vec<u8> {
    values.value(text.as_bytes()).unwrap().bytes().to_vec()
}

/// Asserts that texts are refused, and that the reason has a word.
fn refused(values: &ValueType, texts: &[&str], word: &str) {
    for text in texts {
        let error = values.value(text.as_bytes()).map(|value| panic!("{text:?} is {value:?}")).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(word) && message.contains(&values.to_string()), "{message}");
    }
}

#[test]
fn whole_numbers_have_the_range_of_their_type() {
    for bits in [8, 16, 32, 64] {
        for signed in [true, false] {
            let values = ValueType::Integer(Integer { bits, signed });
            let (least, most) = match signed {
                true => (-1_i128 << (bits - 1), (1_i128 << (bits - 1)) - 1),
                false => (0, (1_i128 << bits) - 1),
            };
            for number in [least, least + 1, 0, most - 1, most] {
                let stored = bytes(&values, &number.to_string());
                assert_eq!(stored.len(), if bits == 64 { 8 } else { 4 });
                assert_eq!(stored, number.to_le_bytes()[..stored.len()], "{number} of {values}");
            }
            refused(&values, &[&(least - 1).to_string(), &(most + 1).to_string()], "whole number");
            refused(&values, &["", "x", "1.0", "1e3", " 1", "0x1", "1_000", "٣"], "whole number");
        }
    }
    assert_eq!(bytes(&ValueType::Integer(Integer { bits: 32, signed: true }), "+007"), [7, 0, 0, 0]);
}

#[test]
fn decimals_are_stored_as_their_column_stores_them() {
    let decimal = |precision, scale, storage| ValueType::Decimal(Decimal { precision, scale, storage });
    assert_eq!(bytes(&decimal(9, 2, DecimalStorage::Int32), "-12.34"), (-1234_i32).to_le_bytes());
    assert_eq!(bytes(&decimal(18, 0, DecimalStorage::Int64), "-7"), (-7_i64).to_le_bytes());
    assert_eq!(bytes(&decimal(9, 2, DecimalStorage::Fixed(4)), "-12.34"), (-1234_i32).to_be_bytes());
    assert_eq!(bytes(&decimal(38, 3, DecimalStorage::Fixed(16)), "1.5"), 1500_i128.to_be_bytes());
    for (text, stored) in [
        ("0", &[0][..]),
        ("-0.00", &[0]),
        ("1.27", &[127]),
        ("1.28", &[0, 128]),
        ("-1.28", &[0x80]),
        ("-1.29", &[0xff, 0x7f]),
        (".5", &[50]),
        ("5.", &[1, 0xf4]),
        ("002.5600", &[1, 0]),
    ] {
        assert_eq!(bytes(&decimal(30, 2, DecimalStorage::Shortest), text), stored, "{text}");
    }
    let price = decimal(9, 2, DecimalStorage::Int32);
    refused(
        &price,
        &["1.234", "12345678", "x", "", ".", "-", "1.2.3", "1e2", "--1", "1,5"],
        "of at most 9 digits",
    );
    assert_eq!(bytes(&price, "-9999999.99"), (-999_999_999_i32).to_le_bytes());
    // A column may claim more digits than its bytes hold.
    refused(&decimal(30, 0, DecimalStorage::Fixed(2)), &["32768", "-32769"], "digits");
}

#[test]
fn days_are_counted_from_1970() {
    let days = |text| i32::from_le_bytes(bytes(&ValueType::Date, text).try_into().unwrap());
    for (text, count) in [
        ("1970-01-01", 0),
        ("1969-12-31", -1),
        ("2000-02-29", 11016),
        ("2024-02-29", 19782),
        ("0001-01-01", -719_162),
        ("9999-12-31", 2_932_896),
        ("0000-03-01", -719_468),
        ("-0004-01-01", -720_989),
        ("+12345-01-01", 3_789_391),
    ] {
        assert_eq!(days(text), count, "{text}");
    }
    refused(
        &ValueType::Date,
        &[
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-1-1",
            "24-01-01",
            "2024-01-01T00:00",
            "x",
            "",
            "20240101",
            "2024-01-0١",
        ],
        "a day such as",
    );
}

#[test]
fn timestamps_have_the_unit_and_the_zone_of_their_column() {
    let at = |unit, utc| ValueType::Timestamp(Clock { unit, utc });
    let count = |values: &ValueType, text| i64::from_le_bytes(bytes(values, text).try_into().unwrap());
    let noon = 1_709_208_000;
    for (unit, per_second) in [(Unit::Millis, 1000), (Unit::Micros, 1_000_000), (Unit::Nanos, 1_000_000_000)]
    {
        for utc in [true, false] {
            for text in ["2024-02-29T12:00:00", "2024-02-29 12:00", "2024-02-29t12:00:00.000"] {
                assert_eq!(count(&at(unit, utc), text), noon * per_second, "{text}");
            }
        }
        for text in [
            "2024-02-29T12:00:00Z",
            "2024-02-29T14:00+02:00",
            "2024-02-29 06:30:00-0530",
            "2024-03-01T00:00:00+12",
        ] {
            assert_eq!(count(&at(unit, true), text), noon * per_second, "{text}");
            refused(&at(unit, false), &[text], "local times");
        }
        assert_eq!(count(&at(unit, true), "1969-12-31T23:59:59.5"), -per_second / 2);
    }
    assert_eq!(count(&at(Unit::Micros, false), "2024-02-29T12:00:00.000005"), noon * 1_000_000 + 5);
    assert_eq!(
        count(&at(Unit::Millis, false), "2024-02-29T12:00:00.120000000000000000000000"),
        noon * 1000 + 120
    );
    refused(&at(Unit::Millis, false), &["2024-02-29T12:00:00.0005"], "at most 3 decimals");
    refused(&at(Unit::Micros, true), &["2024-02-29T12:00:00.000000001"], "at most 6 decimals");
    refused(&at(Unit::Nanos, false), &["1677-01-01T00:00:00", "2263-01-01T00:00:00"], "64 bits");
    refused(
        &at(Unit::Nanos, true),
        &[
            "2024-02-29",
            "2024-02-29T",
            "2024-02-29T24:00:00",
            "2024-02-29T12:60",
            "2024-02-29T12:00:60",
            "12:00:00",
            "now",
            "",
            "2024-02-29T12:00:00.",
            "2024-02-29T12",
            "2024-02-29T12:00.5",
            "2024-02-29T12:00:00+25:00",
            "2024-02-29T12:00:00+2",
            "2024-02-29T12:00:00ZZ",
            "2024-02-29T12:00:00.0000000001",
            "2024-02-29T12:00:00+é",
        ],
        "a day and a time",
    );
    // The nanoseconds of the day, and the Julian day.
    let stored = bytes(&ValueType::Timestamp96, "1970-01-02T00:00:01Z");
    assert_eq!(stored, [&1_000_000_000_i64.to_le_bytes()[..], &2_440_589_i32.to_le_bytes()].concat());
}

#[test]
fn times_of_day_have_no_day() {
    let time = |unit, utc| ValueType::Time(Clock { unit, utc });
    assert_eq!(bytes(&time(Unit::Millis, false), "23:59:59.5"), 86_399_500_i32.to_le_bytes());
    assert_eq!(bytes(&time(Unit::Nanos, true), "00:00:00.000000001Z"), 1_i64.to_le_bytes());
    refused(
        &time(Unit::Micros, false),
        &["12:00Z", "2024-02-29T12:00", "24:00", "1:00", ""],
        "a time such as",
    );
}

#[test]
fn both_zeros_are_asked_for() {
    for (values, length) in [(ValueType::Float16, 2), (ValueType::Float32, 4), (ValueType::Float64, 8)] {
        for text in ["0", "-0.0", "0e9"] {
            let value = values.value(text.as_bytes()).unwrap();
            assert_eq!(value.bytes(), vec![0; length]);
            assert!(value.hashes().1.is_some_and(|other| other != value.hashes().0), "{text}");
        }
        assert_eq!(values.value(b"1").unwrap().hashes().1, None);
        refused(&values, &["NaN", "nan", "x", "", "0x1p3", "1,5"], "a number");
        refused(&values, &["1e400", "-1e400"], "range");
    }
    assert_eq!(bytes(&ValueType::Float32, "0.1"), 0.1_f32.to_le_bytes());
    assert_eq!(bytes(&ValueType::Float64, "-inf"), f64::NEG_INFINITY.to_le_bytes());
    assert_eq!(bytes(&ValueType::Float16, "1.5"), [0, 0x3e]);
    refused(&ValueType::Float16, &["70000"], "range");
}

#[test]
fn texts_and_bytes_are_taken_as_they_are() {
    assert_eq!(bytes(&ValueType::Text, " ключ "), " ключ ".as_bytes());
    assert_eq!(ValueType::Bytes.value(b"\xff\0").unwrap().bytes(), b"\xff\0");
    assert!(ValueType::Text.value(b"\xff").unwrap_err().to_string().contains("UTF-8"));
    refused(&ValueType::FixedBytes(4), &["", "abc", "abcde"], "4 bytes");
    let id: Vec<u8> = (0..16).map(|byte| byte * 17).collect();
    for text in ["00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899AABBCCDDEEFF"] {
        assert_eq!(bytes(&ValueType::Uuid, text), id);
    }
    refused(
        &ValueType::Uuid,
        &[
            "",
            "00112233-4455-6677-8899-aabbccddeef",
            "0011-2233",
            "g0112233-4455-6677-8899-aabbccddeeff",
            "001122334455-6677-8899-aabb-ccddeeff",
        ],
        "a UUID",
    );
    refused(&ValueType::Boolean, &["true"], "no filters");
    refused(&ValueType::Other("interval".into()), &["1 day"], "no text");
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn a_decimal_is_its_number(number in any::<i128>(), shift in 0_u32..127, scale in 0_u32..30) {
        let number = number >> shift;
        let digits = format!("{:0>1$}", number.unsigned_abs(), scale as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
        let text = format!("{}{whole}.{fraction}", if number < 0 { "-" } else { "" });
        let decimal = Decimal { precision: 60, scale, storage: DecimalStorage::Fixed(16) };
        prop_assert_eq!(bytes(&ValueType::Decimal(decimal), &text), number.to_be_bytes());
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,30}|[-+0-9T:.Ze ]{0,40}") {
        let clock = Clock { unit: Unit::Nanos, utc: true };
        for values in [
            ValueType::Integer(Integer { bits: 64, signed: false }),
            ValueType::Decimal(Decimal { precision: 9, scale: 2, storage: DecimalStorage::Int32 }),
            ValueType::Float16,
            ValueType::Float64,
            ValueType::Date,
            ValueType::Time(clock),
            ValueType::Timestamp(clock),
            ValueType::Timestamp96,
            ValueType::Uuid,
        ] {
            let _ = values.value(text.as_bytes());
        }
    }
}
