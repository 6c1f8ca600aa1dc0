//! Byte strings, text and, on Unix, paths as keys. Arrays of bytes are in `composites.rs`.

use super::Key;
use crate::{Digest, Hasher};
#[cfg(unix)]
use {
    super::converted_keys,
    std::ffi::{OsStr, OsString},
    std::os::unix::ffi::OsStrExt,
    std::path::{Path, PathBuf},
};

macro_rules! byte_keys {
    ($($bytes:ty),*) => {$(
        impl Key for $bytes {
            #[inline(always)]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(self.as_ref())
            }

            // Not through `with_bytes`: a closure that is not inlined is compiled without the
            // instruction set.
            #[inline(always)]
            fn digest(&self, hasher: &Hasher) -> Digest {
                hasher.digest_bytes(self.as_ref())
            }
        }
    )*};
}
byte_keys!([u8], str, String, Vec<u8>);

impl Key for char {
    #[inline(always)]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.encode_utf8(&mut [0; 4]).as_bytes())
    }
}

#[cfg(unix)]
converted_keys! {
    |text: OsStr| text.as_bytes();
    |text: OsString| text.as_bytes();
    |path: Path| path.as_os_str().as_bytes();
    |path: PathBuf| path.as_os_str().as_bytes();
}
