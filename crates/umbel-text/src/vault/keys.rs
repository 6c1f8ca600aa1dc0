//! Derives the keys of a vault from a passphrase.
//!
//! Argon2id turns the passphrase into a key, which opens the vault's own random key. HMAC derives a
//! key for each purpose from that.

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
    /// The maximum cost that a file can demand.
    pub const LARGEST: Cost = Cost { memory: 1 << 20, passes: 32, lanes: 16 };

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

    /// Derives the key that opens the vault's key.
    pub(super) fn key(&self, salt: &[u8; 16], cost: &Cost) -> Result<Zeroizing<[u8; 32]>> {
        let params = cost.params()?;
        let blocks = params.block_count();
        let out_of_memory = || Error::OutOfMemory {
            bytes: blocks as u64 * 1024,
            purpose: "the slow hash of this vault's passphrase",
        };
        let mut memory = Vec::new();
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

/// A cipher with its key.
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
}

impl Keys {
    pub fn new(vault: &[u8; 32], hashes: u32) -> Keys {
        let prf = Prf::new(vault);
        let key = |purpose: &str| Zeroizing::new(prf.apply(&[b"umbel vault 1 ", purpose.as_bytes()]));
        Keys {
            head: Cipher::new(&key("head")),
            content: Cipher::new(&key("content")),
            index: IndexKey::new(&key("index"), hashes),
        }
    }
}
