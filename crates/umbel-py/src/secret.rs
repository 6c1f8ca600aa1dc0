//! The parameters `hash` and `secret`.

use crate::classes::path_of;
use crate::errors::{Exception, raise, raise_key_file};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use umbel::Hasher;
use umbel::hash::{KeyRing, Strength};
use umbel::internals::key_file;

/// Returns the hash of a new structure.
///
/// Without a hash, the secret decides: 16 bytes make a keyed hash, 32 bytes a sealed one, and a key
/// file names its own. Without a secret, a keyed or sealed hash gets a random one.
pub fn hasher(hash: Option<&str>, secret: Option<&Bound<'_, PyAny>>, seed: u64) -> PyResult<Hasher> {
    let strength: Option<Strength> = hash.map(str::parse).transpose().map_err(raise)?;
    let hasher = match (strength, secret.map(of).transpose()?) {
        (None | Some(Strength::Fast), None) => return Ok(Hasher::fast(seed)),
        (Some(Strength::Fast), Some(_)) => {
            return Err(Exception::Parameter
                .with("a fast hash has no secret: pass hash=\"keyed\" or leave hash= out"));
        }
        (Some(Strength::Keyed), None) => Hasher::random().map_err(raise)?,
        (Some(_), None) => Hasher::sealed(random_secret()?),
        (Some(wanted), Some(found)) if found.id().strength != wanted => {
            return Err(Exception::Parameter.with(format!(
                "the secret is that of a {} hash, not of a {wanted} one: a keyed secret has 16 bytes, a sealed one 32",
                found.id().strength
            )));
        }
        (_, Some(found)) => found,
    };
    if seed != 0 {
        return Err(Exception::Parameter.with("only a fast hash has a seed: leave seed= or the secret out"));
    }
    Ok(hasher)
}

/// Returns the secrets that open a file.
pub fn ring(secret: Option<&Bound<'_, PyAny>>) -> PyResult<KeyRing> {
    secret.map(of).into_iter().collect()
}

/// Returns the hash of a secret: 16 or 32 bytes, or the path of a key file.
fn of(secret: &Bound<'_, PyAny>) -> PyResult<Hasher> {
    if secret.is_instance_of::<PyBytes>() || secret.is_instance_of::<PyByteArray>() {
        let bytes: Vec<u8> = secret.extract()?;
        return match (<[u8; 16]>::try_from(&bytes[..]), <[u8; 32]>::try_from(&bytes[..])) {
            (Ok(keyed), _) => Ok(Hasher::keyed(keyed)),
            (_, Ok(sealed)) => Ok(Hasher::sealed(sealed)),
            _ => Err(Exception::Secret.with(format!(
                "a secret has 16 bytes (keyed) or 32 bytes (sealed), not {}: secrets.token_bytes(16) makes one",
                bytes.len()
            ))),
        };
    }
    let path = path_of(
        secret,
        "a secret is 16 or 32 bytes, or the path of a key file that `umbel key new` has written",
    )?;
    key_file::read(&path).map_err(raise_key_file)
}

fn random_secret() -> PyResult<[u8; 32]> {
    Python::attach(|py| py.import("secrets")?.call_method1("token_bytes", (32,))?.extract())
}
