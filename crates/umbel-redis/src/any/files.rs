//! The files of the command line, in and out, piece by piece.
//!
//! The secret of a keyed filter stays here: a file that goes out can be asked with the key file only, and one that comes
//! in is understood if the module was loaded with the same.

use super::{Any, Held, Structure, put};
use crate::config::{self, secret_to_hex};
use crate::persist::{CHUNK_BYTES, Entry};
use crate::server::{Arguments, Context, Failure, Reply, Result, Text, memory};
use umbel::file::{self, FormatError, Image, Options};
use umbel::hash::KeyRing;
use umbel::{Error, Hasher};

fn number(text: &Text) -> Result<u64> {
    text.parse::<u64>().ok_or_else(|| Failure::new("value is not an integer or out of range"))
}

/// `UMBEL.EXPORT key offset [count]`: the length of the file, and its bytes from there on. What has changed between two
/// calls shows in the file's sums.
pub fn export(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, offset) = (arguments.next_arg()?, number(arguments.next_arg()?)?);
    let count = arguments.next().map_or(Ok(CHUNK_BYTES), number)?.min(CHUNK_BYTES);
    arguments.expect_end()?;
    let held = Held::existing(context, key)?;
    let options = Options::default();
    let image = match held.structure()? {
        Structure::Set(filter) => Image::new(filter, &options)?,
        Structure::Cuckoo(filter) => Image::new(filter, &options)?,
        Structure::Stored(stored) => Image::new(stored, &options)?,
    };
    let mut bytes = vec![0; image.len().saturating_sub(offset).min(count) as usize];
    image.read(offset, &mut bytes);
    Ok(Reply::Array(vec![image.len().into(), Reply::Bytes(bytes)]))
}

/// `UMBEL.IMPORT key length offset bytes [SEED secret]`: takes a piece of a file of this length; pieces come in their
/// order. How much has come is told, also to who sends no bytes, so that one who was interrupted can go on. With the last
/// piece the file becomes a filter, if it is whole. The secret is that of a keyed file, if it is not the one of this
/// server.
pub fn import(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, length_text, offset_text) =
        (arguments.next_arg()?, arguments.next_arg()?, arguments.next_arg()?);
    let (length, offset, bytes) = (number(length_text)?, number(offset_text)?, arguments.next_arg()?.bytes());
    let secret = match arguments.next() {
        None => config::secret(),
        Some(option) if option.is("SEED") => config::next_secret(&mut arguments)?,
        Some(_) => return Err(Failure::new("Unknown argument received")),
    };
    arguments.expect_end()?;
    let mut ring = config::ring();
    ring.insert(Hasher::keyed(secret));
    let progress = match Held::open(context, key)? {
        Some(Held::Any(entry)) => entry.file_progress()?,
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
        return Err(Failure::new(format!("{received} bytes have come: go on from there")));
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
            put(context, key, any.0)?;
            // Elsewhere there is another secret, and after the next start, too.
            let secret = secret_to_hex(&secret);
            let told =
                [key.bytes(), length_text.bytes(), offset_text.bytes(), bytes, b"SEED", secret.as_bytes()];
            context.replicate_as(c"UMBEL.IMPORT", &told);
        }
        None => context.replicate(),
    }
    context.notify(c"umbel.import", key);
    Ok((received + bytes.len() as u64).into())
}

/// What can be seen from the first piece is not found out with the last one: that it is no such file, or one with a secret
/// that is not known here.
fn check_start(bytes: &[u8], length: u64, ring: &KeyRing) -> Result<()> {
    match file::inspect_start(bytes, length) {
        Ok(info) => match info.hash.filter(|_| !info.embedded_key) {
            Some(id) => Ok(ring.find(id).map(drop)?),
            None => Ok(()),
        },
        // The piece is too short to say.
        Err(Error::Format { problem: FormatError::Length { found, .. }, .. })
            if found == bytes.len() as u64 && found < length =>
        {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
