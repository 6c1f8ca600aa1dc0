//! The manifest of a filter in shards: a short text that names its shape and the checksum of each
//! shard.
//!
//! ```text
//! umbel-shards 1
//! kind blocked
//! keys 1000000
//! rate 0.001
//! hash fast 0000000000000000
//! shard 0 8f3c0d6f5a1b2c3d
//! shard 1 ...
//! sum 2b7e151628aed2a6
//! ```

use super::ShardPlan;
use super::plan::can_be_split;
use crate::file::{self, FormatError, Placing};
use crate::internals::regular_file;
use crate::{Error, HashId, Kind, Result};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The name of the manifest in the folder.
pub const MANIFEST: &str = "manifest";

/// The name of the manifest of a change that is committed, and not complete yet.
pub(super) const NEXT_MANIFEST: &str = "manifest.next";

/// The largest number of shards: each is an open file when the filter is asked.
pub const MAX_SHARDS: u32 = 1024;

/// Where a manifest was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the file of this name.
    Usual,
    /// In that of a change that is committed, and not complete yet.
    Next,
}

const VERSION: u16 = 1;
const FIRST_WORD: &str = "umbel-shards ";
/// "umbel" as a little-endian number, as in the header of a filter file.
const SUM_SEED: u64 = 0x6c_65_62_6d_75;
/// More than the longest manifest, with 1024 lines of 26 bytes at most.
const MAX_BYTES: u64 = 64 << 10;

/// The shape of a filter in shards, and the checksum of each shard.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    kind: Kind,
    capacity: u64,
    rate: f64,
    hash: HashId,
    sums: Vec<u64>,
}

impl Manifest {
    pub(super) fn new(plan: &ShardPlan, sums: Vec<u64>) -> Manifest {
        Manifest {
            kind: plan.kind(),
            capacity: plan.capacity(),
            rate: plan.rate(),
            hash: plan.hasher().id(),
            sums,
        }
    }

    /// Returns the manifest of a filter of the same plan with other shards.
    pub(super) fn with_sums(&self, sums: Vec<u64>) -> Manifest {
        Manifest { sums, ..self.clone() }
    }

    /// Reads the manifest of a folder: that of a change which was committed and is not complete, if
    /// there is one.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not valid or damaged.
    pub fn load(folder: impl AsRef<Path>) -> Result<Manifest> {
        Manifest::load_listed(folder.as_ref()).map(|(manifest, _)| manifest)
    }

    /// Reads the manifest that lists the shards of a folder, and returns where it was.
    pub(super) fn load_listed(folder: &Path) -> Result<(Manifest, Place)> {
        match Manifest::load_next(folder)? {
            Some(manifest) => Ok((manifest, Place::Next)),
            None => Ok((Manifest::read(folder, MANIFEST)?, Place::Usual)),
        }
    }

    /// Reads the manifest of a change that is not complete; `None` if there is no such change.
    pub(super) fn load_next(folder: &Path) -> Result<Option<Manifest>> {
        match Manifest::read(folder, NEXT_MANIFEST) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            manifest => manifest.map(Some),
        }
    }

    fn read(folder: &Path, name: &str) -> Result<Manifest> {
        let path = &folder.join(name);
        let failed = |doing| move |source| Error::io(path, doing, source);
        let file = regular_file::open(path).map_err(explain_missing(folder)).map_err(failed("open"))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed("read"))?;
        Manifest::decode(&bytes).map_err(|problem| Error::from(problem).at(path))
    }

    /// Writes the manifest, completely or not at all. It never replaces another.
    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        let once = Placing { create_new: true, ..Placing::default() };
        file::save_bytes(folder.join(MANIFEST), self.encode().as_bytes(), once).map(drop)
    }

    /// Writes the manifest of a change, which commits it.
    pub(super) fn save_next(&self, folder: &Path) -> Result<()> {
        file::save_bytes(folder.join(NEXT_MANIFEST), self.encode().as_bytes(), Placing::default()).map(drop)
    }

    /// Fails if the folder has a manifest already. Builders check that before they start.
    ///
    /// # Errors
    ///
    /// If it has one, or that cannot be found out.
    pub fn refuse_existing(folder: impl AsRef<Path>) -> Result<()> {
        for path in [MANIFEST, NEXT_MANIFEST].map(|name| folder.as_ref().join(name)) {
            match fs::symlink_metadata(&path) {
                Ok(_) => {
                    let why = "the folder is a filter already: name another one, or remove it first";
                    return Err(Error::io(&path, "create", io::Error::new(ErrorKind::AlreadyExists, why)));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(&path, "find", error)),
            }
        }
        Ok(())
    }

    /// Returns the kind of each shard.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of keys that all shards together are planned for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the false-positive rate that the filter is planned for.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the identity of the hash function.
    pub fn hash(&self) -> HashId {
        self.hash
    }

    /// Returns the checksum of each shard, in order: the one at the end of its header, which covers
    /// the checksums of all its parts.
    pub fn sums(&self) -> &[u64] {
        &self.sums
    }

    fn encode(&self) -> String {
        let Manifest { kind, capacity, rate, hash, sums } = self;
        let (strength, value) = (hash.strength, hash.value);
        let mut text = format!(
            "{FIRST_WORD}{VERSION}\nkind {kind}\nkeys {capacity}\nrate {rate:?}\nhash {strength} {value:016x}\n"
        );
        for (shard, sum) in sums.iter().enumerate() {
            writeln!(text, "shard {shard} {sum:016x}").expect("a string can be written to");
        }
        let sum = xxh3_64_with_seed(text.as_bytes(), SUM_SEED);
        writeln!(text, "sum {sum:016x}").expect("a string can be written to");
        text
    }

    /// Decodes a manifest. Only the text that [`Manifest::encode`] writes is valid.
    fn decode(bytes: &[u8]) -> Result<Manifest, FormatError> {
        let not_valid = || FormatError::invalid("it is not the manifest of a filter in shards");
        let text = std::str::from_utf8(bytes).map_err(|_| not_valid())?;
        let version = text.strip_prefix(FIRST_WORD).and_then(|rest| rest.lines().next());
        match version.and_then(|version| version.parse().ok()) {
            Some(VERSION) => {}
            Some(version) if version > VERSION => return Err(FormatError::Newer { version }),
            _ => return Err(not_valid()),
        }
        let damaged = || FormatError::Damaged { part: "the manifest".into() };
        let content = text.rfind("sum ").map(|at| text.split_at(at));
        let (content, sum) = content.ok_or_else(damaged)?;
        if sum != format!("sum {:016x}\n", xxh3_64_with_seed(content.as_bytes(), SUM_SEED)) {
            return Err(damaged());
        }
        let manifest = Manifest::parse(content).ok_or_else(not_valid)?;
        // One text for each manifest, so that equal filters have equal folders.
        let sensible = can_be_split(manifest.kind)
            && manifest.capacity > 0
            && (manifest.rate > 0.0 && manifest.rate < 1.0)
            && (1..=MAX_SHARDS as usize).contains(&manifest.sums.len());
        if manifest.encode() != text || !sensible {
            return Err(not_valid());
        }
        Ok(manifest)
    }

    fn parse(content: &str) -> Option<Manifest> {
        let mut lines = content.lines().skip(1);
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let kind = field("kind")?.parse().ok()?;
        let capacity = field("keys")?.parse().ok()?;
        let rate = field("rate")?.parse().ok()?;
        let (strength, value) = field("hash")?.split_once(' ')?;
        let hash = HashId { strength: strength.parse().ok()?, value: u64::from_str_radix(value, 16).ok()? };
        let sums = lines.map(|line| {
            let (_, sum) = line.strip_prefix("shard ")?.split_once(' ')?;
            u64::from_str_radix(sum, 16).ok()
        });
        let sums = sums.collect::<Option<_>>()?;
        Some(Manifest { kind, capacity, rate, hash, sums })
    }
}

/// Explains the error if a folder exists and has no manifest.
fn explain_missing(folder: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| match error.kind() {
        ErrorKind::NotFound if folder.is_dir() => {
            let why = "there is none, so the folder is not a filter in shards, or it was not built to the end: \
                       the manifest is written last; build the filter again";
            io::Error::new(ErrorKind::NotFound, why)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Strength;

    fn manifest() -> Manifest {
        let hash = HashId { strength: Strength::Keyed, value: 0xabc };
        Manifest { kind: Kind::Blocked, capacity: 1_000_000, rate: 1e-3, hash, sums: vec![7, u64::MAX, 0] }
    }

    #[test]
    fn the_text_does_not_change() {
        let text = "umbel-shards 1\nkind blocked\nkeys 1000000\nrate 0.001\nhash keyed 0000000000000abc\n\
                    shard 0 0000000000000007\nshard 1 ffffffffffffffff\nshard 2 0000000000000000\n\
                    sum ";
        let encoded = manifest().encode();
        assert_eq!(encoded.split_at(text.len()), (text, "8323ca9263a663ce\n"));
        assert_eq!(Manifest::decode(encoded.as_bytes()), Ok(manifest()));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let text = manifest().encode().into_bytes();
        for end in 0..text.len() {
            assert!(Manifest::decode(&text[..end]).is_err(), "cut at {end}");
        }
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&flipped).is_err(), "bit {bit}");
        }
        let newer = String::from_utf8(text).unwrap().replace("shards 1", "shards 2");
        assert_eq!(Manifest::decode(newer.as_bytes()), Err(FormatError::Newer { version: 2 }));
    }

    /// A manifest with a correct checksum may still hold nonsense.
    #[test]
    fn nonsense_with_a_correct_checksum_is_refused() {
        let sealed = |content: String| {
            let sum = xxh3_64_with_seed(content.as_bytes(), SUM_SEED);
            Manifest::decode(format!("{content}sum {sum:016x}\n").as_bytes())
        };
        let text = manifest().encode();
        let content = text.split_at(text.rfind("sum ").unwrap()).0.to_string();
        assert!(sealed(content.clone()).is_ok());
        for (from, to) in [
            ("kind blocked", "kind flat"),
            ("kind blocked", "kind cuckoo"),
            ("keys 1000000", "keys +1000000"),
            ("rate 0.001", "rate 0.0010"),
            ("rate 0.001", "rate NaN"),
            ("rate 0.001", "rate 1.0"),
            ("keys 1000000", "keys 0"),
            ("shard 1", "shard 2"),
            ("shard 2 0000000000000000\n", "shard 2 0000000000000000\n\n"),
            ("hash keyed", "hash md5"),
        ] {
            assert!(sealed(content.replace(from, to)).is_err(), "{to}");
        }
        let shards: String = (0..=MAX_SHARDS).map(|shard| format!("shard {shard} {:016x}\n", 1)).collect();
        let head = content.split_at(content.find("shard 0").unwrap()).0;
        assert!(sealed(format!("{head}{shards}")).is_err(), "too many shards");
        assert!(sealed(head.to_string()).is_err(), "no shards");
    }
}
