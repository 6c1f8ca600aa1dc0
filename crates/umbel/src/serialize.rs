//! `serde` for every structure: serializes the bytes of its file and verifies them like a file.
//!
//! Secrets are not serialized. A filter with a `keyed` or `sealed` hash can be serialized, but
//! deserializing it fails because its secret is missing. Write such a filter with
//! [`file::to_bytes`](crate::file::to_bytes) and read it with
//! [`file::from_bytes`](crate::file::from_bytes), which takes a key ring.

use crate::file::{self, Options, Storable};
use crate::hash::KeyRing;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserializer, Serializer};
use std::fmt;

pub(crate) fn serialize<S: Serializer>(structure: &impl Storable, serializer: S) -> Result<S::Ok, S::Error> {
    let bytes = file::to_bytes(structure, &Options::default()).map_err(S::Error::custom)?;
    serializer.serialize_bytes(&bytes)
}

pub(crate) fn deserialize<'de, F: Storable, D: Deserializer<'de>>(deserializer: D) -> Result<F, D::Error> {
    let Bytes(bytes) = deserializer.deserialize_byte_buf(BytesVisitor)?;
    // `serde` keeps only the message of an error, so include the causes in it.
    let with_causes = |error| D::Error::custom(format_args!("{error:#}"));
    let loaded = file::from_bytes(&bytes, &KeyRing::new()).map_err(with_causes)?;
    F::from_stored(loaded.filter).map_err(with_causes)
}

struct Bytes(Vec<u8>);

/// Accepts bytes, or the sequence of numbers that some formats use for bytes.
struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a filter file")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes(bytes.to_vec()))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
        Ok(Bytes(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Bytes, A::Error> {
        // Do not reserve the length that the input claims: memory grows as numbers arrive.
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        Ok(Bytes(bytes))
    }
}
