//! The hashes in which leaked lists hold passwords.

use super::Form;
use md4::Md4;
use sha1::{Digest as _, Sha1};
use std::fmt;
use umbel::internals::hex;
use zeroize::{Zeroize, Zeroizing};

/// The algorithm of the hashes in a leaked list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// SHA-1 of the bytes of the password: 40 hexadecimal digits.
    Sha1,
    /// NTLM, as Windows stores passwords: MD4 of the password in UTF-16, 32 hexadecimal digits.
    Ntlm,
}

impl Algorithm {
    /// Returns the number of hexadecimal digits of a hash.
    pub fn digits(self) -> usize {
        match self {
            Algorithm::Sha1 => 40,
            Algorithm::Ntlm => 32,
        }
    }

    /// Returns the form of passwords in a filter that was built from such hashes.
    pub fn form(self) -> Form {
        match self {
            Algorithm::Sha1 => Form::Sha1,
            Algorithm::Ntlm => Form::Ntlm,
        }
    }

    /// Returns the hash of a password.
    pub fn hash(self, password: &[u8]) -> Zeroizing<PasswordHash> {
        Zeroizing::new(match self {
            Algorithm::Sha1 => PasswordHash::Sha1(*sha1(password)),
            Algorithm::Ntlm => PasswordHash::Ntlm(*ntlm(password)),
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::Sha1 => "SHA-1",
            Algorithm::Ntlm => "NTLM",
        })
    }
}

/// The hash of a password, whose debug output shows only the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PasswordHash {
    /// SHA-1.
    Sha1([u8; 20]),
    /// NTLM.
    Ntlm([u8; 16]),
}

impl PasswordHash {
    /// Parses the 40 or 32 hexadecimal digits of a hash.
    pub(super) fn parse(digits: &[u8]) -> Option<PasswordHash> {
        match digits.len() {
            40 => hex::decode_array(digits).map(PasswordHash::Sha1),
            32 => hex::decode_array(digits).map(PasswordHash::Ntlm),
            _ => None,
        }
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            PasswordHash::Sha1(_) => Algorithm::Sha1,
            PasswordHash::Ntlm(_) => Algorithm::Ntlm,
        }
    }

    /// Returns the bytes of the hash.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            PasswordHash::Sha1(bytes) => bytes,
            PasswordHash::Ntlm(bytes) => bytes,
        }
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PasswordHash({})", self.algorithm())
    }
}

impl Zeroize for PasswordHash {
    fn zeroize(&mut self) {
        match self {
            PasswordHash::Sha1(bytes) => bytes.zeroize(),
            PasswordHash::Ntlm(bytes) => bytes.zeroize(),
        }
    }
}

/// Returns the SHA-1 hash of bytes.
pub fn sha1(bytes: &[u8]) -> Zeroizing<[u8; 20]> {
    Zeroizing::new(Sha1::digest(bytes).into())
}

/// Returns the NTLM hash of a password: MD4 of its UTF-16 form, lowest byte first. If it is not
/// UTF-8, each byte stands for the character of Latin-1.
///
/// ```
/// use umbel_text::password::ntlm;
/// let hex = |word: &str| umbel::internals::hex::encode(&*ntlm(word.as_bytes()));
/// assert_eq!(hex("password"), "8846f7eaee8fb117ad06bdd830b7586c");
/// assert_eq!(hex(""), "31d6cfe0d16ae931b73c59d7e0c089c0");
/// assert_eq!(ntlm(b"\xe9t\xe9"), ntlm("été".as_bytes()));
/// ```
pub fn ntlm(password: &[u8]) -> Zeroizing<[u8; 16]> {
    // Never grows, since growing would leave pieces of the password in memory: each byte of UTF-8
    // makes at most two of UTF-16.
    let mut utf16 = Zeroizing::new(Vec::with_capacity(2 * password.len()));
    match str::from_utf8(password) {
        Ok(text) => utf16.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
        Err(_) => utf16.extend(password.iter().flat_map(|byte| u16::from(*byte).to_le_bytes())),
    }
    Zeroizing::new(Md4::digest(&utf16[..]).into())
}

#[cfg(test)]
mod tests {
    use crate::password::{Prefix, Pwned, scan};

    #[test]
    fn no_debug_output_shows_the_hash_of_a_password() {
        let line = b"5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:9659365";
        let pwned = Pwned::parse(line).unwrap();
        let suffixes = scan(&line[..], Prefix::from_hash(&pwned.hash)).unwrap();
        assert_eq!(suffixes.len(), 1);
        for shown in [format!("{pwned:?}"), format!("{suffixes:?}")] {
            // The same bytes in hexadecimal and as numbers.
            assert!(!shown.to_uppercase().contains("E4C9") && !shown.contains("228, 201"), "{shown}");
        }
    }
}
