//! The header of a vault, in its file `vault`: the parameters that open it with the passphrase, and
//! the shape of its indexes. `docs/vault.md` in the repository describes the format.

use super::document::open_regular;
use super::keys::{Cipher, Cost, Passphrase};
use super::zidx::IndexShape;
use crate::{Error, Result};
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"UMBELVLT";
const VERSION: u32 = 1;
/// The size of magic, version, cost, salt and shape, which the sealed key authenticates.
const OPEN_BYTES: usize = 8 + 4 + 12 + 16 + 16;
const NONCE_BYTES: usize = 24;
const SEALED_KEY_BYTES: usize = 32 + 16;
const CHECKSUM_BYTES: usize = 8;
const HEADER_BYTES: usize = OPEN_BYTES + NONCE_BYTES + SEALED_KEY_BYTES + CHECKSUM_BYTES;

/// The public properties of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The cost of guessing the passphrase once.
    pub cost: Cost,
    /// The shape of all indexes.
    pub shape: IndexShape,
}

/// Creates a key and the header in which it is sealed.
pub(super) fn create(header: &Header, passphrase: &Passphrase) -> Result<(Zeroizing<[u8; 32]>, Vec<u8>)> {
    let mut key = Zeroizing::new([0; 32]);
    getrandom::fill(&mut key[..])?;
    let bytes = seal(header, passphrase, &key)?;
    Ok((key, bytes))
}

fn seal(header: &Header, passphrase: &Passphrase, key: &[u8; 32]) -> Result<Vec<u8>> {
    let (mut salt, mut nonce) = ([0; 16], [0; NONCE_BYTES]);
    getrandom::fill(&mut salt)?;
    getrandom::fill(&mut nonce)?;
    let Header { cost, shape } = header;
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    bytes.extend(MAGIC);
    bytes.extend([VERSION, cost.memory, cost.passes, cost.lanes].map(u32::to_le_bytes).as_flattened());
    bytes.extend(salt);
    bytes.extend([shape.words(), shape.hashes()].map(u32::to_le_bytes).as_flattened());
    bytes.extend(shape.bits().to_le_bytes());
    let cipher = Cipher::new(&*passphrase.key(&salt, cost)?);
    let sealed = cipher.seal(&nonce, key, &bytes).unwrap_or_default();
    bytes.extend(nonce);
    bytes.extend(sealed);
    bytes.extend(sum(&bytes));
    Ok(bytes)
}

fn sum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let hash: [u8; 32] = Sha256::digest(bytes).into();
    hash.first_chunk().copied().unwrap_or_default()
}

/// A header that was read from a file.
pub(super) struct Stored {
    pub header: Header,
    bytes: [u8; HEADER_BYTES],
    salt: [u8; 16],
}

impl Stored {
    /// Reads the header of the vault in a directory.
    pub fn read(folder: &Path, path: &Path) -> Result<Stored> {
        let file = open_regular(path).map_err(|error| match error {
            Error::Io { source, .. }
                if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                Error::NoVault { path: folder.to_owned() }
            }
            other => other,
        })?;
        let mut bytes = Vec::new();
        file.take(HEADER_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
        Stored::parse(&bytes, path)
    }

    /// Parses a header. Checks every field, because the server may have written it.
    fn parse(bytes: &[u8], path: &Path) -> Result<Stored> {
        if !bytes.starts_with(MAGIC) {
            return Err(Error::damaged(path, "it is not the header of a vault"));
        }
        let number = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
        if let Some(version) = number(8).filter(|version| *version != VERSION) {
            return Err(Error::Newer { path: path.to_owned(), version });
        }
        let wrong_length = || Error::damaged(path, format!("it does not have {HEADER_BYTES} bytes"));
        let bytes: [u8; HEADER_BYTES] = bytes.try_into().map_err(|_| wrong_length())?;
        let (before, end) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(wrong_length)?;
        if sum(before) != *end {
            return Err(Error::damaged(path, "its checksum does not match"));
        }
        let number = |at| number(at).ok_or_else(wrong_length);
        let cost = Cost { memory: number(12)?, passes: number(16)?, lanes: number(20)? };
        cost.params()
            .map_err(|error| Error::damaged(path, format!("no vault has such a passphrase: {error}")))?;
        let salt = bytes[24..].first_chunk().copied().ok_or_else(wrong_length)?;
        let shape = IndexShape::new(number(40)?, number(44)?);
        let bits = u64::from(number(48)?) | u64::from(number(52)?) << 32;
        match shape {
            Ok(shape) if shape.bits() == bits => Ok(Stored { header: Header { cost, shape }, bytes, salt }),
            _ => Err(Error::damaged(path, "its indexes have an impossible shape")),
        }
    }

    /// Returns the key of the vault.
    pub fn open(&self, folder: &Path, passphrase: &Passphrase) -> Result<Zeroizing<[u8; 32]>> {
        let wrong = || Error::WrongPassphrase { path: folder.to_owned() };
        let cipher = Cipher::new(&*passphrase.key(&self.salt, &self.header.cost)?);
        let (open, rest) = self.bytes.split_at(OPEN_BYTES);
        let (nonce, rest) = rest.split_first_chunk::<NONCE_BYTES>().ok_or_else(wrong)?;
        let key =
            cipher.open(nonce, &rest[..SEALED_KEY_BYTES], open).map(Zeroizing::new).ok_or_else(wrong)?;
        key.first_chunk().copied().map(Zeroizing::new).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_headers_are_refused_and_cost_little() {
        let passphrase = Passphrase::new(Zeroizing::new(b"open".to_vec())).unwrap();
        let header = Header { cost: Cost::WEAKEST, shape: IndexShape::new(100, 10).unwrap() };
        let (key, bytes) = create(&header, &passphrase).unwrap();
        let (folder, path) = (Path::new("v"), Path::new("v/vault"));
        let stored = Stored::parse(&bytes, path).unwrap();
        assert_eq!((stored.header, *stored.open(folder, &passphrase).unwrap()), (header, *key));
        // Damage is detected before a passphrase is needed.
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Stored::parse(&bytes, path).is_err(), "bit {bit}");
        }
        assert!((0..bytes.len()).all(|end| Stored::parse(&bytes[..end], path).is_err()));
        assert!(Stored::parse(&[&bytes[..], b"x"].concat(), path).is_err());
        // With a corrected checksum, the sealed key or the limits still detect the change.
        let altered = |at: usize, value: u32| {
            let mut bytes = bytes[..HEADER_BYTES - CHECKSUM_BYTES].to_vec();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            bytes.extend(sum(&bytes));
            Stored::parse(&bytes, path)
        };
        for (at, value) in [(12, 100 << 20), (12, 0), (16, u32::MAX), (16, 0), (20, 1 << 20), (20, 0)] {
            let error = altered(at, value).err().expect("a cost that is refused").to_string();
            assert!(error.contains("no vault has such a passphrase"), "{error}");
        }
        for (at, value) in [(40, 1 << 30), (40, 0), (44, 65), (44, 9), (48, 1)] {
            assert!(altered(at, value).is_err(), "{at} {value}");
        }
        for at in [16, 24, OPEN_BYTES, OPEN_BYTES + NONCE_BYTES, HEADER_BYTES - CHECKSUM_BYTES - 4] {
            let error = altered(at, 2).unwrap().open(folder, &passphrase).expect_err("a wrong key");
            assert!(matches!(error, Error::WrongPassphrase { .. }), "{error}");
        }
        let other = Passphrase::new(Zeroizing::new(b"Open".to_vec())).unwrap();
        assert!(matches!(stored.open(folder, &other), Err(Error::WrongPassphrase { .. })));
    }
}
