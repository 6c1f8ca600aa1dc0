//! The header of a vault, in its file `vault`: the parameters that open it with the passphrase, the
//! shape of its indexes, and, sealed, the vault's key and the inventory of its documents.
//! `docs/vault.md` in the repository describes the format.

use super::document::open_regular;
use super::inventory::{self, Inventory};
use super::keys::{Cost, Passphrase, PassphraseKey};
use super::zidx::IndexShape;
use crate::{Error, Result};
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"UMBELVLT";
/// The version without an inventory, which is still read.
const UNLISTED: u32 = 1;
const VERSION: u32 = 2;
/// The size of magic, version, cost, salt and shape, which the seal authenticates.
const OPEN_BYTES: usize = 8 + 4 + 12 + 16 + 16;
const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 8;
/// The size of a header without an inventory.
const HEADER_BYTES: usize = OPEN_BYTES + NONCE_BYTES + KEY_BYTES + TAG_BYTES + CHECKSUM_BYTES;

/// The public properties of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The cost of guessing the passphrase once.
    pub cost: Cost,
    /// The shape of all indexes.
    pub shape: IndexShape,
}

/// The contents of a header that the passphrase opens.
pub(super) struct Contents {
    /// The vault's key.
    pub key: Zeroizing<[u8; KEY_BYTES]>,
    /// The list of documents; `None` in a vault of the first version.
    pub inventory: Option<Inventory>,
}

/// Returns the bytes of a header.
pub(super) fn seal(
    header: &Header,
    opener: &PassphraseKey,
    key: &[u8; KEY_BYTES],
    inventory: &Inventory,
) -> Result<Vec<u8>> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce)?;
    let Header { cost, shape } = header;
    let inventory = inventory.to_bytes();
    if inventory.len() > inventory::MAX_BYTES {
        let most = inventory::MAX_BYTES >> 20;
        let got = format_args!("{} MiB", inventory.len() >> 20);
        return Err(Error::parameter("list of documents", got, format!("one of at most {most} MiB")));
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + inventory.len());
    bytes.extend(MAGIC);
    bytes.extend([VERSION, cost.memory, cost.passes, cost.lanes].map(u32::to_le_bytes).as_flattened());
    bytes.extend(opener.salt);
    bytes.extend([shape.words(), shape.hashes()].map(u32::to_le_bytes).as_flattened());
    bytes.extend(shape.bits().to_le_bytes());
    let mut plain = Zeroizing::new(Vec::with_capacity(KEY_BYTES + inventory.len()));
    plain.extend(key);
    plain.extend(inventory);
    let sealed = opener.cipher.seal(&nonce, &plain, &bytes).unwrap_or_default();
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
    bytes: Vec<u8>,
    salt: [u8; 16],
    has_inventory: bool,
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
        let most = (HEADER_BYTES + inventory::MAX_BYTES) as u64;
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
        Stored::parse(bytes, path)
    }

    /// Parses a header. Checks every field, because the server may have written it.
    fn parse(bytes: Vec<u8>, path: &Path) -> Result<Stored> {
        if !bytes.starts_with(MAGIC) {
            return Err(Error::damaged(path, "it is not the header of a vault"));
        }
        let number = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
        let version = number(8).unwrap_or(VERSION);
        if version != VERSION && version != UNLISTED {
            return Err(Error::Newer { path: path.to_owned(), version });
        }
        let most = HEADER_BYTES + if version == UNLISTED { 0 } else { inventory::MAX_BYTES };
        let wrong_length = || Error::damaged(path, "it does not have the length of a header");
        if !(HEADER_BYTES..=most).contains(&bytes.len()) {
            return Err(wrong_length());
        }
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
            Ok(shape) if shape.bits() == bits => {
                let has_inventory = version != UNLISTED;
                Ok(Stored { header: Header { cost, shape }, bytes, salt, has_inventory })
            }
            _ => Err(Error::damaged(path, "its indexes have an impossible shape")),
        }
    }

    /// Derives the key that opens this header.
    pub fn opener(&self, passphrase: &Passphrase) -> Result<PassphraseKey> {
        PassphraseKey::derive(passphrase, self.salt, &self.header.cost)
    }

    /// Opens the sealed part.
    pub fn open(&self, folder: &Path, opener: &PassphraseKey) -> Result<Contents> {
        let wrong = || Error::WrongPassphrase { path: folder.to_owned() };
        // The passphrase was changed since the key was derived.
        if opener.salt != self.salt {
            return Err(wrong());
        }
        let (open, rest) = self.bytes.split_at(OPEN_BYTES);
        let (nonce, rest) = rest.split_first_chunk::<NONCE_BYTES>().ok_or_else(wrong)?;
        let sealed = &rest[..rest.len() - CHECKSUM_BYTES];
        let plain = Zeroizing::new(opener.cipher.open(nonce, sealed, open).ok_or_else(wrong)?);
        let (key, list) = plain.split_first_chunk().ok_or_else(wrong)?;
        let key = Zeroizing::new(*key);
        let inventory = match self.has_inventory {
            true => Some(Inventory::from_bytes(list).ok_or_else(wrong)?),
            false => None,
        };
        Ok(Contents { key, inventory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::zidx::Id;

    #[test]
    fn hostile_headers_are_refused_and_cost_little() {
        let passphrase = Passphrase::new(Zeroizing::new(b"open".to_vec())).unwrap();
        let header = Header { cost: Cost::WEAKEST, shape: IndexShape::new(100, 10).unwrap() };
        let opener = PassphraseKey::random(&passphrase, &header.cost).unwrap();
        let (key, inventory) = ([7; KEY_BYTES], Inventory::from_documents([Id([1; 16]), Id([2; 16])]));
        let bytes = seal(&header, &opener, &key, &inventory).unwrap();
        let (folder, path) = (Path::new("v"), Path::new("v/vault"));
        let parse = |bytes: &[u8]| Stored::parse(bytes.to_vec(), path);
        let stored = parse(&bytes).unwrap();
        let contents = stored.open(folder, &stored.opener(&passphrase).unwrap()).unwrap();
        assert_eq!((stored.header, *contents.key, contents.inventory), (header, key, Some(inventory)));
        // Damage is detected before a passphrase is needed.
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&bytes).is_err(), "bit {bit}");
        }
        assert!((0..bytes.len()).all(|end| parse(&bytes[..end]).is_err()));
        assert!(parse(&[&bytes[..], b"x"].concat()).is_err());
        // With a corrected checksum, the seal or the limits still detect the change.
        let altered = |at: usize, value: u32| {
            let mut bytes = bytes[..bytes.len() - CHECKSUM_BYTES].to_vec();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            bytes.extend(sum(&bytes));
            parse(&bytes)
        };
        for (at, value) in [(12, 100 << 20), (12, 0), (16, u32::MAX), (16, 0), (20, 1 << 20), (20, 0)] {
            let error = altered(at, value).err().expect("a cost that is refused").to_string();
            assert!(error.contains("no vault has such a passphrase"), "{error}");
        }
        for (at, value) in [(40, 1 << 30), (40, 0), (44, 65), (44, 9), (48, 1)] {
            assert!(altered(at, value).is_err(), "{at} {value}");
        }
        let refused = |stored: &Stored| {
            let opened = stored.open(folder, &stored.opener(&passphrase).unwrap());
            let error = opened.err().expect("a wrong key");
            assert!(matches!(error, Error::WrongPassphrase { .. }), "{error}");
        };
        for at in [16, 24, OPEN_BYTES, OPEN_BYTES + NONCE_BYTES, bytes.len() - CHECKSUM_BYTES - 4] {
            refused(&altered(at, 2).unwrap());
        }
        // Nor can the inventory be dropped, by calling it a header of the first version.
        assert!(altered(8, UNLISTED).is_err());
        let mut short = bytes[..HEADER_BYTES - CHECKSUM_BYTES].to_vec();
        short[8..12].copy_from_slice(&UNLISTED.to_le_bytes());
        short.extend(sum(&short));
        refused(&parse(&short).unwrap());
        let other = Passphrase::new(Zeroizing::new(b"Open".to_vec())).unwrap();
        let opened = stored.open(folder, &stored.opener(&other).unwrap());
        assert!(matches!(opened, Err(Error::WrongPassphrase { .. })));
    }
}
