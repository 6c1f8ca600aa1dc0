//! A blocklist saved in a file, so that it survives a restart.
//!
//! ```
//! use umbel::hash::KeyRing;
//! use umbel::Timestamp;
//! use umbel_net::blocklist::{Blocklist, Options, state};
//!
//! let mut list = Blocklist::new(&Options::default(), Timestamp::from_millis(0))?;
//! list.block("192.0.2.0/24".parse()?, None)?;
//! let bytes = state::to_bytes(&list)?;
//! let list = state::from_bytes(&bytes, &KeyRing::new())?;
//! assert!(list.check([192, 0, 2, 7].into()).is_blocked());
//! assert!(state::from_bytes(&bytes[..bytes.len() / 2], &KeyRing::new()).is_err());
//! # Ok::<(), umbel_net::Error>(())
//! ```
//!
//! The layout of the file, with all numbers little-endian:
//!
//! | bytes | contents |
//! | --- | --- |
//! | 8 | `UMBELBLK` |
//! | 4, 4 | the version, 1, and the backend: 0 aging, 1 exact |
//! | 8 | the length of the file |
//! | 8 each | the time, the capacity, the rate (f64), the lifetime, the clients, the budget (f64), the number of keys in the current generation; times in milliseconds |
//! | 8 each | the numbers of blocked prefixes, lengths and allowed prefixes, and the size of the filter |
//! | 26 each | blocked: a prefix (the family, 4 or 6; the length; 16 bytes of address, those of IPv4 first) and when it expires |
//! | 26 each | lengths: a prefix, of which only family and length count, and when the last prefix of that length expires |
//! | 18 each | allowed: a prefix |
//! | | the filter, as a filter file |
//! | 8 | XXH3-64 of everything before |
//!
//! The aging backend stores lengths and no blocked prefixes; the exact backend stores no lengths.
//!
//! A [`Keeper`] holds the right to write the file, so that two processes do not overwrite each
//! other's changes.

use super::ledger::Ledger;
use super::lengths::PrefixLengths;
use super::ring::Ring;
use super::{Backend, BackendState, Blocklist, Options};
use crate::network::Prefix;
use crate::{Error, Result, checked};
use std::fs::{File, TryLockError};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use umbel::AnyFilter;
use umbel::aging::{Timestamp, Window};
use umbel::any::Stored;
use umbel::file::fields::{Fields, sum};
use umbel::file::{self, FormatError, Placing};
use umbel::hash::KeyRing;
use umbel::internals::file_lock::{FileLockKind, lock_current};
use umbel::internals::regular_file;

const MAGIC: &[u8; 8] = b"UMBELBLK";
const VERSION: u32 = 1;
/// The size of the header: magic, version, backend, length, seven numbers and four counts.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 7 * 8 + 4 * 8;
const PREFIX_BYTES: usize = Prefix::BYTES;
const TIMED_PREFIX_BYTES: usize = PREFIX_BYTES + 8;
const CHECKSUM_BYTES: usize = 8;

/// Encodes a list as the bytes of a file.
///
/// # Errors
///
/// Fails if the filter cannot be encoded.
pub fn to_bytes(list: &Blocklist) -> Result<Vec<u8>> {
    let options = &list.options;
    let stored = file::Options { embed_key: options.embed_key, ..file::Options::default() };
    let (backend, filter, taken, timed) = match &list.backend {
        BackendState::Ring(ring) => {
            let of = |v4: bool| {
                let none: IpAddr =
                    if v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
                let lengths = ring.lengths.family(v4).iter();
                lengths.map(move |(length, until)| (Prefix::masked(none, *length), *until))
            };
            let timed: Vec<_> = of(true).chain(of(false)).collect();
            (0, file::to_bytes(&ring.filter, &stored)?, ring.taken, timed)
        }
        BackendState::Ledger(ledger) => {
            (1, file::to_bytes(&ledger.filter, &stored)?, 0, ledger.blocked().collect())
        }
    };
    let (blocked, lengths) = if backend == 0 { (0, timed.len()) } else { (timed.len(), 0) };
    let allowed = list.allowed().len();
    let length = HEADER_BYTES
        + TIMED_PREFIX_BYTES * timed.len()
        + PREFIX_BYTES * allowed
        + filter.len()
        + CHECKSUM_BYTES;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(MAGIC);
    bytes.extend([VERSION, backend].map(u32::to_le_bytes).as_flattened());
    let millis = u64::try_from(options.lifetime.as_millis()).unwrap_or(u64::MAX);
    let numbers = [
        length as u64,
        list.now.millis(),
        options.capacity,
        options.rate.to_bits(),
        millis,
        options.clients,
        options.budget.to_bits(),
        taken,
        blocked as u64,
        lengths as u64,
        allowed as u64,
        filter.len() as u64,
    ];
    bytes.extend(numbers.map(u64::to_le_bytes).as_flattened());
    for (prefix, until) in timed {
        bytes.extend(prefix.to_bytes());
        bytes.extend(until.millis().to_le_bytes());
    }
    list.allowed().for_each(|prefix| bytes.extend(prefix.to_bytes()));
    bytes.extend(filter);
    bytes.extend(sum(&bytes).to_le_bytes());
    Ok(bytes)
}

/// Decodes and verifies the bytes of a file. The secret of a keyed hash comes from the file itself
/// or from the ring.
///
/// # Errors
///
/// Fails if the bytes are not the state of a blocklist, have an unknown version, or are damaged, or
/// if the secret is missing.
pub fn from_bytes(bytes: &[u8], ring: &KeyRing) -> Result<Blocklist> {
    let found = bytes.len() as u64;
    let (backend, fields) = start(bytes, found)?;
    let whole = bytes.split_last_chunk::<CHECKSUM_BYTES>().filter(|(before, _)| before.len() >= HEADER_BYTES);
    let (before, end) = whole.ok_or_else(|| short(found))?;
    if sum(before) != u64::from_le_bytes(*end) {
        return Err(FormatError::Damaged { part: "the file".into() }.into());
    }
    list(fields, backend, ring)
}

fn short(found: u64) -> Error {
    FormatError::Length { expected: (HEADER_BYTES + CHECKSUM_BYTES) as u64, found }.into()
}

/// Decodes the first fields of a file of length `found`. Returns the number of the backend and the
/// fields after the length, which is right.
fn start(bytes: &[u8], found: u64) -> Result<(u32, Fields<'_>)> {
    let mut fields = Fields(bytes);
    let short = || short(found);
    match fields.array() {
        Some(magic) if &magic == MAGIC => {}
        // A file may be truncated anywhere.
        None if MAGIC.starts_with(bytes) => return Err(short()),
        _ => return Err(FormatError::Invalid { what: "it is not the state of a blocklist".into() }.into()),
    }
    let version = fields.u32().ok_or_else(short)?;
    if version != VERSION {
        let what = format!("version {version} of the state of a blocklist");
        return Err(FormatError::Unknown { what }.into());
    }
    let backend = fields.u32().ok_or_else(short)?;
    let expected = fields.u64().ok_or_else(short)?;
    if expected != found {
        return Err(FormatError::Length { expected, found }.into());
    }
    Ok((backend, fields))
}

/// Decodes the fields after the length, which has been verified.
fn list(mut fields: Fields<'_>, backend: u32, ring: &KeyRing) -> Result<Blocklist> {
    let invalid = |what: &str| Error::from(FormatError::Invalid { what: what.into() });
    let short = || invalid("it claims more than it has");
    let mut number = || fields.u64().ok_or_else(short);
    let now = Timestamp::from_millis(number()?);
    let (capacity, rate) = (number()?, f64::from_bits(number()?));
    let lifetime = Duration::from_millis(number()?);
    let (clients, budget) = (number()?, f64::from_bits(number()?));
    let taken = number()?;
    let (blocked, lengths, allowed, filter) = (number()?, number()?, number()?, number()?);
    let blocked = fields.records(blocked, TIMED_PREFIX_BYTES).ok_or_else(short)?;
    let lengths = fields.records(lengths, TIMED_PREFIX_BYTES).ok_or_else(short)?;
    let allowed = fields.records(allowed, PREFIX_BYTES).ok_or_else(short)?;
    let sane = capacity > 0 && rate > 0.0 && rate < 1.0 && !lifetime.is_zero() && budget > 0.0;
    if !sane || fields.0.len() as u64 != filter.saturating_add(CHECKSUM_BYTES as u64) {
        return Err(invalid("impossible numbers"));
    }
    let file::Loaded { filter, embedded_key: embed_key, .. } =
        file::from_bytes(&fields.0[..fields.0.len() - CHECKSUM_BYTES], ring)?;
    let wrong = || invalid("an invalid prefix");
    let entry = |record: &[u8]| {
        let (prefix, until) = record.split_last_chunk().ok_or_else(wrong)?;
        Ok((
            Prefix::from_bytes(prefix).ok_or_else(wrong)?,
            Timestamp::from_millis(u64::from_le_bytes(*until)),
        ))
    };
    let blocked = blocked.map(entry).collect::<Result<Vec<_>>>()?;
    let (backend, hasher, state) = match (backend, filter) {
        (0, Stored::Set(AnyFilter::Aging(filter))) => {
            if filter.window() != Window::Time(lifetime) || filter.now() != Some(now) || !blocked.is_empty() {
                return Err(invalid("its filter is not the one of this list"));
            }
            let backend = Backend::Aging { generations: filter.generations() as u32 };
            let hasher = filter.hasher().clone();
            let mut held = PrefixLengths::default();
            for record in lengths {
                let (prefix, until) = entry(record)?;
                held.insert(prefix, until);
            }
            (backend, hasher, BackendState::Ring(Ring { filter, lengths: held, taken }))
        }
        (1, Stored::Set(AnyFilter::Counting(filter))) => {
            let hasher = filter.hasher().clone();
            let ledger = Ledger::restored(filter, blocked.into_iter());
            let ledger = ledger.ok_or_else(|| invalid("its filter is not the one of this list"))?;
            (Backend::Exact, hasher, BackendState::Ledger(ledger))
        }
        _ => return Err(invalid("its filter is not the filter of a blocklist")),
    };
    let options = Options { backend, capacity, rate, lifetime, hasher, embed_key, clients, budget };
    let (set, counts) = Default::default();
    let mut list = Blocklist { options, now, backend: state, allowed: set, allowed_lengths: counts };
    for record in allowed {
        list.allow(Prefix::from_bytes(record).ok_or_else(wrong)?);
    }
    Ok(list)
}

/// Writes the list to a file, which is replaced only after everything is safely on disk. A new file
/// is readable by its owner alone. If several processes write the file, each should use a
/// [`Keeper`].
///
/// # Errors
///
/// Fails if the list cannot be encoded or the file cannot be written.
pub fn save(path: impl AsRef<Path>, list: &Blocklist) -> Result<()> {
    write(path.as_ref(), list, true).map(drop)
}

/// Writes the list to a file, and returns the locked file. With `replace`, the file may exist
/// already.
fn write(path: &Path, list: &Blocklist, replace: bool) -> Result<File> {
    let placing = Placing { create_new: !replace, private: true, locked: true };
    Ok(file::save_bytes(path, &to_bytes(list)?, placing)?)
}

/// Reads and verifies a file.
///
/// # Errors
///
/// Fails if the file cannot be read, or for the reasons of [`from_bytes`].
pub fn load(path: impl AsRef<Path>, ring: &KeyRing) -> Result<Blocklist> {
    let path = path.as_ref();
    let bytes = checked::read(path, "the file", HEADER_BYTES, |bytes, found| start(bytes, found).map(drop));
    bytes.and_then(|bytes| from_bytes(&bytes, ring)).map_err(|error| error.at(path))
}

/// The right to write a state file. One process holds it at a time, until the keeper is dropped or
/// the process ends.
///
/// The lock is on the file itself, and the file that replaces it is locked before it takes the
/// name. So no extra lock file is needed, and nothing is left behind. If there is no file yet, the
/// first process to save becomes its keeper.
#[derive(Debug)]
pub struct Keeper {
    path: PathBuf,
    /// Locked while it is open.
    file: Option<File>,
}

impl Keeper {
    /// Acquires the right, and waits for another keeper for at most `patience`.
    ///
    /// # Errors
    ///
    /// Fails if another process still holds the lock then, or the file cannot be opened.
    pub fn new(path: impl Into<PathBuf>, patience: Duration) -> Result<Keeper> {
        let path = path.into();
        let open = || regular_file::open(&path);
        match lock_current(&path, FileLockKind::Exclusive, patience, open) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Keeper { path, file: None }),
            Err(error) => Err(Error::io(&path, "open")(error)),
            Ok(Ok(file)) => Ok(Keeper { path, file: Some(file) }),
            Ok(Err(TryLockError::WouldBlock)) => Err(Error::Locked { path }),
            Ok(Err(TryLockError::Error(error))) => Err(Error::io(&path, "lock")(error)),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file; returns `None` if there was none.
    ///
    /// # Errors
    ///
    /// Fails for the reasons of [`load`].
    pub fn load(&self, ring: &KeyRing) -> Result<Option<Blocklist>> {
        self.file.as_ref().map(|_| load(&self.path, ring)).transpose()
    }

    /// Writes the file like [`save`], and keeps the lock. Does not replace a file that another
    /// process has created since.
    ///
    /// # Errors
    ///
    /// Fails for the reasons of [`save`], or if another process has created the file since.
    pub fn save(&mut self, list: &Blocklist) -> Result<()> {
        self.file = Some(write(&self.path, list, self.file.is_some())?);
        Ok(())
    }
}
