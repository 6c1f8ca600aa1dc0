//! Derives the keys of a vault from a passphrase.
//!
//! Argon2id turns the passphrase into a key, which opens the vault's own random key. HMAC derives a
//! key for each purpose from that. All of them, and the memory of Argon2, are wiped after use.

use super::zidx::{IndexKey, Prf};
use crate::{Error, Result};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::fmt;
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

/// The cost of turning a passphrase into a key with Argon2id, which an attacker has to spend on
/// every guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The memory in KiB.
    pub memory: u32,
    /// The number of passes over the memory.
    pub passes: u32,
    /// The number of lanes that can be computed in parallel.
    pub lanes: u32,
}

impl Cost {
    /// The recommendation of RFC 9106 for systems with little memory: 64 MiB, three passes, four
    /// lanes.
    pub const DEFAULT: Cost = Cost { memory: 64 << 10, passes: 3, lanes: 4 };
    /// For tests only: passphrases can be guessed at the speed of a plain hash.
    pub const WEAKEST: Cost = Cost { memory: 32, passes: 1, lanes: 4 };
    /// The maximum cost of a vault.
    pub const LARGEST: Cost = Cost { memory: 1 << 20, passes: 32, lanes: 16 };
    /// The maximum memory, in KiB, that a vault is opened with unless the caller allows more. The
    /// file with the cost may have been written by an attacker.
    pub const MAX_TRUSTED_MEMORY: u32 = 256 << 10;
    /// The number of passes over the maximum memory that take as long as opening a vault may.
    const MAX_TRUSTED_PASSES: u32 = 4;

    /// Returns the smallest memory limit, in KiB, that a caller of
    /// [`Vault::open_costly`](super::Vault::open_costly) has to allow for this cost. It is the
    /// memory, or more if there are more than four passes over it, so that it limits the time, too.
    pub fn required_limit(&self) -> u32 {
        let work = u64::from(self.memory) * u64::from(self.passes);
        let limit = work.div_ceil(Cost::MAX_TRUSTED_PASSES.into());
        u32::try_from(limit).unwrap_or(u32::MAX).max(self.memory)
    }

    /// Returns the parameters of Argon2. Fails for costs that are invalid or would exhaust the
    /// machine.
    pub(super) fn params(&self) -> Result<Params> {
        let (Cost { memory, passes, lanes }, most) = (*self, Cost::LARGEST);
        let wrong = || {
            let needs = format!(
                "at least 8 KiB for each lane and at most {} KiB, {} passes and {} lanes",
                most.memory, most.passes, most.lanes
            );
            Error::parameter("cost", format_args!("{memory} KiB, {passes} passes, {lanes} lanes"), needs)
        };
        if memory > most.memory || passes > most.passes || lanes > most.lanes {
            return Err(wrong());
        }
        Params::new(memory, passes, lanes, Some(32)).map_err(|_| wrong())
    }
}

impl Default for Cost {
    fn default() -> Cost {
        Cost::DEFAULT
    }
}

/// A passphrase. It is wiped from memory when it is dropped, and never printed.
pub struct Passphrase(Zeroizing<Vec<u8>>);

impl Passphrase {
    /// Creates a passphrase. Text is normalised (NFC), so that every keyboard produces the same
    /// bytes; other bytes stay as they are. Returns `None` for an empty passphrase.
    pub fn new(bytes: Zeroizing<Vec<u8>>) -> Option<Passphrase> {
        let bytes = match str::from_utf8(&bytes) {
            Ok(text) if !text.is_ascii() => {
                // Reserve enough memory, since growing would leave copies behind: NFC is at most
                // three times as long.
                let mut spelt = Zeroizing::new(String::with_capacity(3 * text.len()));
                spelt.extend(text.nfc());
                Zeroizing::new(spelt.as_bytes().to_vec())
            }
            _ => bytes,
        };
        (!bytes.is_empty()).then_some(Passphrase(bytes))
    }

    /// Returns the number of characters.
    pub fn chars(&self) -> usize {
        String::from_utf8_lossy(&self.0).chars().count()
    }

    /// Derives the key of [`PassphraseKey`].
    fn key(&self, salt: &[u8; 16], cost: &Cost) -> Result<Zeroizing<[u8; 32]>> {
        let params = cost.params()?;
        let blocks = params.block_count();
        let out_of_memory = || Error::OutOfMemory {
            bytes: blocks as u64 * 1024,
            purpose: "the slow hash of this vault's passphrase",
        };
        // Wiped on every path, since the last blocks determine the key.
        let mut memory = Zeroizing::new(Vec::new());
        memory.try_reserve_exact(blocks).map_err(|_| out_of_memory())?;
        memory.resize(blocks, Block::default());
        let mut key = Zeroizing::new([0; 32]);
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon
            .hash_password_into_with_memory(&self.0, salt, &mut key[..], &mut memory)
            .map_err(|error| Error::parameter("passphrase", "one", format!("another: {error}")))?;
        Ok(key)
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

/// The key that opens the header of a vault, and the salt that it was derived with.
pub(super) struct PassphraseKey {
    pub salt: [u8; 16],
    pub cipher: Cipher,
}

impl PassphraseKey {
    /// Derives a key with a new salt.
    pub fn random(passphrase: &Passphrase, cost: &Cost) -> Result<PassphraseKey> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)?;
        PassphraseKey::derive(passphrase, salt, cost)
    }

    /// Derives a key with the salt of a header.
    pub fn derive(passphrase: &Passphrase, salt: [u8; 16], cost: &Cost) -> Result<PassphraseKey> {
        Ok(PassphraseKey { salt, cipher: Cipher::new(&*passphrase.key(&salt, cost)?) })
    }
}

/// A cipher with its key, which is wiped when it is dropped.
pub(super) struct Cipher(XChaCha20Poly1305);

impl Cipher {
    pub fn new(key: &[u8; 32]) -> Cipher {
        Cipher(XChaCha20Poly1305::new(key.into()))
    }

    /// Encrypts `plain`, and authenticates `with` as well.
    pub fn seal(&self, nonce: &[u8; 24], plain: &[u8], with: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(&XNonce::from(*nonce), Payload { msg: plain, aad: with }).ok()
    }

    /// Decrypts `sealed`, if both it and `with` are unchanged.
    pub fn open(&self, nonce: &[u8; 24], sealed: &[u8], with: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: with }).ok()
    }
}

/// The keys of a vault, one for each purpose.
pub(super) struct Keys {
    pub head: Cipher,
    pub content: Cipher,
    pub index: IndexKey,
    /// Derives the ids of documents that are copied from another vault.
    pub copies: Prf,
    /// Identifies the vault and its states to those who have the key.
    pub state: Prf,
}

impl Keys {
    pub fn new(vault: &[u8; 32], hashes: u32) -> Keys {
        let prf = Prf::new(vault);
        let key = |purpose: &str| Zeroizing::new(prf.apply(&[b"umbel vault 1 ", purpose.as_bytes()]));
        Keys {
            head: Cipher::new(&key("head")),
            content: Cipher::new(&key("content")),
            index: IndexKey::new(&key("index"), hashes),
            copies: Prf::new(&key("copies")),
            state: Prf::new(&key("state")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::fs;
    use std::os::unix::fs::FileExt;
    use zeroize::Zeroize;

    /// Returns how many of these words are in the memory of this process. The words are inverted, so
    /// that they are not found where they are looked up.
    fn count_in_memory(inverted: &HashSet<u64>) -> usize {
        let memory = fs::File::open("/proc/self/mem").expect("our own memory");
        let maps = fs::read_to_string("/proc/self/maps").expect("our own mappings");
        let mut found = HashSet::new();
        let mut bytes = vec![0_u8; 1 << 20];
        for line in maps.lines().filter(|line| line.contains(" rw")) {
            let range = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
            let [mut at, end] = [range.0, range.1].map(|text| u64::from_str_radix(text, 16).expect("hex"));
            while at < end {
                let length = (end - at).min(bytes.len() as u64) as usize;
                // Other threads may have unmapped it.
                let Ok(read @ 1..) = memory.read_at(&mut bytes[..length], at) else { break };
                let words = bytes[..read].as_chunks::<8>().0.iter().map(|word| !u64::from_ne_bytes(*word));
                found.extend(words.filter(|word| inverted.contains(word)));
                at += read as u64;
                // The copies must not be found later.
                bytes[..].zeroize();
            }
        }
        found.len()
    }

    #[test]
    fn the_memory_of_argon2_is_wiped() {
        let (text, salt, cost) = (b"a passphrase of this test alone", [5; 16], Cost::WEAKEST);
        let params = cost.params().unwrap();
        let mut memory = Zeroizing::new(vec![Block::default(); params.block_count()]);
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut key = Zeroizing::new([0; 32]);
        argon.hash_password_into_with_memory(text, &salt, &mut key[..], &mut memory[..]).unwrap();
        // From the middle of each block, since an allocator may write to the ends.
        let inverted: HashSet<u64> = memory.iter().map(|block| !block.as_ref()[64]).collect();
        assert_eq!(count_in_memory(&inverted), inverted.len(), "the search finds them");
        drop(memory);

        let passphrase = Passphrase::new(Zeroizing::new(text.to_vec())).unwrap();
        assert_eq!(*passphrase.key(&salt, &cost).unwrap(), *key);
        // Argon2 computes the last few blocks on the stack.
        let left = count_in_memory(&inverted);
        assert!(left < inverted.len() / 4, "{left} of {} blocks are left", inverted.len());
    }
}
