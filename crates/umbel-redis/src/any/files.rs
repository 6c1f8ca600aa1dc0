//! Import and export of the files of the command line, piece by piece.
//!
//! The secret of a keyed filter does not leave the server: an exported file can only be used with
//! the key file, and an imported one only if the module was loaded with the same key file.

use super::{Any, OpenFilter, StructureRef, store};
use crate::config::{self, seed_argument};
use crate::persist::{CHUNK_BYTES, Entry};
use crate::server::{Arguments, Context, Failure, Reply, Result, Text, memory};
use umbel::file::{self, FormatError, Image, Options};
use umbel::hash::KeyRing;
use umbel::{Error, Hasher};

fn parse_number(text: &Text) -> Result<u64> {
    text.parse::<u64>().ok_or_else(|| Failure::new("value is not an integer or out of range"))
}

/// `UMBEL.EXPORT key offset [count]`: the length of the file, and its bytes from an offset on. If
/// the filter changes between two calls, the checksums of the file do not match.
pub fn export(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, offset) = (arguments.next_arg()?, parse_number(arguments.next_arg()?)?);
    let count = arguments.next().map_or(Ok(CHUNK_BYTES), parse_number)?.min(CHUNK_BYTES);
    arguments.expect_end()?;
    let filter = OpenFilter::existing(context, key)?;
    let options = Options::default();
    let image = match filter.structure()? {
        StructureRef::Set(filter) => Image::new(filter, &options)?,
        StructureRef::Cuckoo(filter) => Image::new(filter, &options)?,
        StructureRef::Stored(stored) => Image::new(stored, &options)?,
    };
    let mut bytes = vec![0; image.len().saturating_sub(offset).min(count) as usize];
    image.read(offset, &mut bytes);
    Ok(Reply::Array(vec![image.len().into(), Reply::Bytes(bytes)]))
}

/// `UMBEL.IMPORT key length offset bytes [SEED secret]`: appends bytes to a file of this length and
/// replies with the number of bytes received so far. A client that was interrupted sends no bytes
/// to get that number and resumes there. The last bytes turn the file into a filter, if it is
/// intact. A keyed file needs its secret unless it is that of the server.
pub fn import(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, length_text, offset_text) =
        (arguments.next_arg()?, arguments.next_arg()?, arguments.next_arg()?);
    let (length, offset, bytes) =
        (parse_number(length_text)?, parse_number(offset_text)?, arguments.next_arg()?.bytes());
    let secret = match arguments.next() {
        None => config::secret(),
        Some(option) if option.is("SEED") => config::next_secret(&mut arguments)?,
        Some(_) => return Err(Failure::new("Unknown argument received")),
    };
    arguments.expect_end()?;
    let mut ring = config::ring();
    ring.insert(Hasher::keyed(secret.0));
    let progress = match OpenFilter::open(context, key)? {
        Some(OpenFilter::Any(entry)) => entry.file_progress()?,
        Some(_) => return Err(Failure::new("item exists")),
        None => None,
    };
    let received = match progress {
        None => 0,
        Some(progress) if progress.length == length => progress.received,
        Some(_) => {
            return Err(Failure::new("another file is arriving under this key: delete it, or use another"));
        }
    };
    if bytes.is_empty() {
        return Ok(received.into());
    }
    if offset != received {
        return Err(Failure::new(format!("{received} bytes were received: continue from there")));
    }
    let complete = match received {
        0 => {
            if !memory::is_unlimited() {
                check_start(bytes, length, &ring)?;
            }
            let mut entry = Entry::<Any>::for_file(length)?;
            let complete = entry.append_to_file(bytes, &ring)?;
            if complete.is_none() {
                context.set(key, entry)?;
            }
            complete
        }
        _ => context.existing_mut::<Entry<Any>>(key)?.append_to_file(bytes, &ring)?,
    };
    match complete {
        Some(any) => {
            store(context, key, any.into_stored())?;
            // Replicas, and this server after a restart, have other secrets.
            let secret = seed_argument(&secret);
            let arguments =
                [key.bytes(), length_text.bytes(), offset_text.bytes(), bytes, b"SEED", secret.as_bytes()];
            context.replicate_as(c"UMBEL.IMPORT", &arguments);
        }
        None => context.replicate(),
    }
    context.notify(c"umbel.import", key);
    Ok((received + bytes.len() as u64).into())
}

/// Checks the first piece of a file, so that a file of another format or with an unknown secret
/// fails before all of it has been sent.
fn check_start(bytes: &[u8], length: u64, ring: &KeyRing) -> Result<()> {
    match file::inspect_start(bytes, length) {
        Ok(info) => match info.hash.filter(|_| !info.embedded_key) {
            Some(id) => Ok(ring.find(id).map(drop)?),
            None => Ok(()),
        },
        // The piece is too short to decide.
        Err(Error::Format { problem: FormatError::Length { found, .. }, .. })
            if found == bytes.len() as u64 && found < length =>
        {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
