//! The record of a filter in shards: the text under its name, from which clients learn the number of
//! shards and the hash that chooses among them.
//!
//! ```text
//! umbel-shards 2 48 fast 0000000000000000
//! umbel-shards 2 48 keyed 8f3c0d6f5a1b2c3d blocked 1000000000 0.001
//! ```
//!
//! Its words are the version, the number of shards, and the hash from whose digests the shard of a
//! line follows, with its seed or the tag of its secret. The record of a filter that was pushed from a
//! folder goes on with the kind, the number of keys and the rate of the manifest. Version 1 had the
//! number of shards alone.

use umbel::hash::HashId;
use umbel::sharded::{MAX_SHARDS, Manifest};
use umbel::{Hasher, Kind};

/// The first word of a record.
const FIRST_WORD: &str = "umbel-shards";

/// The version of the records that are written.
const VERSION: u32 = 2;

/// The entries of a folder's manifest other than the hash and the number of shards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub kind: Kind,
    /// The number of keys that all shards together are planned for.
    pub capacity: u64,
    pub rate: f64,
}

/// A record of this version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    pub shards: u32,
    /// The hash from whose digests the shard of a line follows.
    pub hash: HashId,
    /// The shape of a filter that was pushed from a folder.
    pub shape: Option<Shape>,
}

/// A record of any version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FoundRecord {
    Current(Record),
    /// Version 1, which chose the shard of a line in another way.
    Old {
        shards: u32,
    },
    Newer {
        version: u32,
    },
}

impl Record {
    /// Returns the record of a new filter whose servers hash lines with a secret of theirs. The shard
    /// of a line follows from the public hash, or from one with a secret that clients need.
    pub fn new(shards: u32, hasher: &Hasher) -> Record {
        Record { shards, hash: hasher.id(), shape: None }
    }

    /// Returns the record of the filter in a folder.
    pub fn from_manifest(manifest: &Manifest) -> Record {
        let shape = Shape { kind: manifest.kind(), capacity: manifest.capacity(), rate: manifest.rate() };
        Record { shards: manifest.sums().len() as u32, hash: manifest.hash(), shape: Some(shape) }
    }

    pub fn encode(&self) -> String {
        let Record { shards, hash, shape } = self;
        let mut text = format!("{FIRST_WORD} {VERSION} {shards} {} {:016x}", hash.strength, hash.value);
        if let Some(Shape { kind, capacity, rate }) = shape {
            text += &format!(" {kind} {capacity} {rate:?}");
        }
        text
    }

    fn parse(words: &[&str]) -> Option<Record> {
        let (&[shards, strength, value], rest) = words.split_first_chunk()?;
        let hash = HashId { strength: strength.parse().ok()?, value: u64::from_str_radix(value, 16).ok()? };
        let shape = match rest {
            [] => None,
            &[kind, capacity, rate] => Some(Shape {
                kind: kind.parse().ok()?,
                capacity: capacity.parse().ok()?,
                rate: rate.parse().ok()?,
            }),
            _ => return None,
        };
        Some(Record { shards: number_of_shards(shards)?, hash, shape })
    }
}

impl FoundRecord {
    /// Parses the text under a name; returns `None` if it is not a record.
    pub fn parse(text: &[u8]) -> Option<FoundRecord> {
        // A server may send any text.
        let words: Vec<&str> = std::str::from_utf8(text).ok()?.split(' ').collect();
        match words[..] {
            [FIRST_WORD, shards] => Some(FoundRecord::Old { shards: number_of_shards(shards.trim_end())? }),
            [FIRST_WORD, version, ref words @ ..] => match version.parse().ok()? {
                VERSION => Record::parse(words).map(FoundRecord::Current),
                version if version > VERSION => Some(FoundRecord::Newer { version }),
                _ => None,
            },
            _ => None,
        }
    }
}

fn number_of_shards(text: &str) -> Option<u32> {
    text.parse().ok().filter(|shards| (1..=MAX_SHARDS).contains(shards))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let shape = Shape { kind: Kind::Blocked, capacity: 1_000_000_000, rate: 1e-3 };
        let created = Record::new(48, &Hasher::fast(7));
        let pushed = Record { shape: Some(shape), ..Record::new(1024, &Hasher::keyed([5; 16])) };
        assert_eq!(created.encode(), "umbel-shards 2 48 fast 0000000000000007");
        for record in [created, pushed] {
            assert_eq!(FoundRecord::parse(record.encode().as_bytes()), Some(FoundRecord::Current(record)));
        }
    }

    #[test]
    fn records_of_other_versions_are_told_from_other_texts() {
        for (text, found) in [
            ("umbel-shards 48", Some(FoundRecord::Old { shards: 48 })),
            ("umbel-shards 2", Some(FoundRecord::Old { shards: 2 })),
            ("umbel-shards 3 anything at all", Some(FoundRecord::Newer { version: 3 })),
            ("umbel-shards 0", None),
            ("umbel-shards 1025", None),
            ("umbel-shards 2 1025 fast 00", None),
            ("umbel-shards 2 48 fast", None),
            ("umbel-shards 2 48 md5 00", None),
            ("umbel-shards 2 48 fast 00 blocked", None),
            ("umbel-shards 1 48 fast 00", None),
            ("umbel-shards", None),
            ("umbel", None),
            ("", None),
        ] {
            assert_eq!(FoundRecord::parse(text.as_bytes()), found, "{text}");
        }
        assert_eq!(FoundRecord::parse(b"umbel-shards \xff"), None);
    }
}
