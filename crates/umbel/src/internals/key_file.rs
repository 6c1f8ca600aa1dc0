//! Reads key files: the secret of a `keyed` or `sealed` hash, as `umbel key new` writes it.

use super::hex;
use super::secret_file::SecretFile;
use crate::Hasher;
use crate::error::write_causes;
use crate::hash::Strength;
use rustix::process::geteuid;
use std::fmt;
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The first word of a key file, before the strength and the secret in hexadecimal.
pub const MARK: &str = "umbel-key";
/// The longest key file; more is not read.
const MAX_KEY_FILE_BYTES: usize = 1024;

/// The error of a key file that cannot be used.
#[derive(Debug)]
pub enum KeyFileError {
    /// The system refused an operation on the file.
    Io {
        /// The file.
        path: PathBuf,
        /// The operation: "open" or "read".
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not hold a secret.
    NoSecret {
        /// The file.
        path: PathBuf,
    },
    /// Another user may know the secret.
    Exposed(Exposed),
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFileError::Io { path, doing, .. } => {
                write!(f, "cannot {doing} the key file {}", path.display())
            }
            KeyFileError::NoSecret { path } => {
                write!(f, "{} is not a key file: `umbel key new` makes one", path.display())
            }
            KeyFileError::Exposed(exposed) => exposed.fmt(f),
        }?;
        write_causes(self, f)
    }
}

impl std::error::Error for KeyFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            KeyFileError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The error of a file with a secret that other users can access.
#[derive(Debug)]
pub struct Exposed {
    /// The kind of file, such as "key file".
    kind: &'static str,
    name: String,
    /// Whether the file belongs to another user.
    foreign: bool,
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exposed { kind, name, foreign } = self;
        if *foreign {
            let why = "who may know the secret: make one that is your own";
            return write!(f, "the {kind} {name} belongs to another user, {why}");
        }
        write!(f, "others have access to the {kind} {name}: `chmod 600 {name}` keeps it secret")
    }
}

impl std::error::Error for Exposed {}

/// Reads the secret in a key file, which may be a pipe: see [`SecretFile`].
///
/// # Errors
///
/// If the file cannot be read, a pipe does not bring the secret in time, or the file does not hold a
/// secret or is [exposed](check_private).
pub fn read(path: &Path) -> Result<Hasher, KeyFileError> {
    let failed = |doing| move |source| KeyFileError::Io { path: path.to_owned(), doing, source };
    let file = SecretFile::open(path).map_err(failed("open"))?;
    let found = file.metadata().clone();
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_KEY_FILE_BYTES));
    file.take(MAX_KEY_FILE_BYTES as u64).read_to_end(&mut text).map_err(failed("read"))?;
    let secret = parse(&text).ok_or_else(|| KeyFileError::NoSecret { path: path.to_owned() })?;
    // Only now that it is known to be a key file: users should not change the permissions of other
    // files.
    check_private(&found, "key file", &path.display().to_string()).map_err(KeyFileError::Exposed)?;
    Ok(secret)
}

/// Parses the contents of a key file.
fn parse(text: &[u8]) -> Option<Hasher> {
    // 32 raw bytes, as `head -c 32 /dev/urandom` makes them and other programs store them.
    if !text.starts_with(MARK.as_bytes())
        && let Ok(secret) = <[u8; 32]>::try_from(text)
    {
        return Some(Hasher::sealed(secret));
    }
    let tokens: Vec<&str> = str::from_utf8(text).ok()?.split_ascii_whitespace().collect();
    let [MARK, strength, secret] = tokens[..] else { return None };
    match strength.parse().ok()? {
        Strength::Keyed => decode(secret).map(|secret| Hasher::keyed(*secret)),
        Strength::Sealed => decode(secret).map(|secret| Hasher::sealed(*secret)),
        Strength::Fast => None,
    }
}

fn decode<const N: usize>(text: &str) -> Option<Zeroizing<[u8; N]>> {
    hex::decode_array(text.as_bytes()).map(Zeroizing::new)
}

/// Checks that no other user owns a file with a secret, or can read or change it. `found` is the
/// metadata of the open file. A pipe is as private as its writer.
///
/// Files of root pass, since root can read everything.
///
/// # Errors
///
/// If other users can access the file.
pub fn check_private(found: &Metadata, kind: &'static str, name: &str) -> Result<(), Exposed> {
    if !found.is_file() {
        return Ok(());
    }
    let owner = found.uid();
    let foreign = owner != 0 && owner != geteuid().as_raw();
    if foreign || found.permissions().mode() & 0o077 != 0 {
        return Err(Exposed { kind, name: name.to_owned(), foreign });
    }
    Ok(())
}
