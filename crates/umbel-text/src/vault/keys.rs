//! From a passphrase to the keys of a vault.
//!
//! Argon2id makes a key of the passphrase, and that key opens the vault's own key, which is random. Of this one HMAC makes a
//! key for each purpose.

use super::zidx::{IndexKey, Prf};
use crate::{Error, Result};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::fmt;
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

/// What Argon2id takes to make a key of a passphrase: so much has to be spent on every guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Memory, in KiB.
    pub memory: u32,
    /// How often it is gone through.
    pub passes: u32,
    /// Lanes, which could be worked on at the same time.
    pub lanes: u32,
}

impl Cost {
    /// What RFC 9106 recommends where memory is dear: 64 MiB, three passes, four lanes.
    pub const DEFAULT: Cost = Cost { memory: 64 << 10, passes: 3, lanes: 4 };
    /// For tests alone: a passphrase under it is guessed at the speed of a hash.
    pub const WEAKEST: Cost = Cost { memory: 32, passes: 1, lanes: 4 };
    /// No file makes us take more than this.
    pub const LARGEST: Cost = Cost { memory: 1 << 20, passes: 32, lanes: 16 };

    /// Refuses what makes no sense, and what would take all of the machine.
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

/// What a person knows. It is wiped from memory when it is dropped, and never printed.
pub struct Passphrase(Zeroizing<Vec<u8>>);

impl Passphrase {
    /// Text in one spelling, so that every keyboard gives the same bytes; other bytes as they are. Nothing is no
    /// passphrase.
    pub fn new(bytes: Zeroizing<Vec<u8>>) -> Option<Passphrase> {
        let bytes = match str::from_utf8(&bytes) {
            Ok(text) if !text.is_ascii() => {
                // No growth, which would leave pieces behind: NFC is at most three times as long.
                let mut spelt = Zeroizing::new(String::with_capacity(3 * text.len()));
                spelt.extend(text.nfc());
                Zeroizing::new(spelt.as_bytes().to_vec())
            }
            _ => bytes,
        };
        (!bytes.is_empty()).then_some(Passphrase(bytes))
    }

    /// How many characters it has.
    pub fn chars(&self) -> usize {
        String::from_utf8_lossy(&self.0).chars().count()
    }

    /// The key that opens the vault's key.
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

    /// Encrypts, and vouches for `with` as well.
    pub fn seal(&self, nonce: &[u8; 24], plain: &[u8], with: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(&XNonce::from(*nonce), Payload { msg: plain, aad: with }).ok()
    }

    /// Decrypts, if both are what they were.
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
