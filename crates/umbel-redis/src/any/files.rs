//! The files of the command line, in and out, piece by piece.
//!
//! The secret of a keyed filter stays here: a file that goes out can be asked with the key file only, and one that comes
//! in is understood if the module was loaded with the same.

use super::{Any, Held, Structure, put};
use crate::config;
use crate::engine::{Arguments, Context, Failure, Reply, Result, Text};
use crate::kept::{CHUNK, Slot};
use umbel::Error;
use umbel::file::{self, FormatError, Image, Options};

fn number(text: &Text) -> Result<u64> {
    text.parse::<u64>().ok_or_else(|| Failure::new("value is not an integer or out of range"))
}

/// `UMBEL.EXPORT key offset [count]`: the length of the file, and its bytes from there on. What has changed between two
/// calls shows in the file's sums.
pub fn export(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, offset) = (arguments.take()?, number(arguments.take()?)?);
    let count = arguments.next().map_or(Ok(CHUNK), number)?.min(CHUNK);
    arguments.end()?;
    let held = Held::existing(context, key)?;
    let options = Options::default();
    let image = match held.structure()? {
        Structure::Set(filter) => Image::of(filter, &options)?,
        Structure::Cuckoo(filter) => Image::of(filter, &options)?,
        Structure::Stored(stored) => Image::of(stored, &options)?,
    };
    let mut bytes = vec![0; image.len().saturating_sub(offset).min(count) as usize];
    image.read(offset, &mut bytes);
    Ok(Reply::Array(vec![image.len().into(), Reply::Bytes(bytes)]))
}

/// `UMBEL.IMPORT key length offset bytes`: takes a piece of a file of this length; pieces come in their order. How much
/// has come is told, also to who sends no bytes, so that one who was interrupted can go on. With the last piece the
/// file becomes a filter, if it is whole.
pub fn import(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, length) = (arguments.take()?, number(arguments.take()?)?);
    let (offset, bytes) = (number(arguments.take()?)?, arguments.take()?.bytes());
    arguments.end()?;
    let arriving = match Held::open(context, key)? {
        Some(Held::Any(slot)) => slot.arriving(),
        Some(_) => Some(Err(Failure::new("item exists"))),
        None => None,
    };
    let received = match arriving {
        None => 0,
        Some(Ok((received, total))) if total == length => received,
        Some(Ok(_)) => {
            return Err(Failure::new("another file is arriving under this key: delete it, or use another"));
        }
        Some(Err(failure)) => return Err(failure),
    };
    if bytes.is_empty() {
        return Ok(received.into());
    }
    if offset != received {
        return Err(Failure::new(format!("{received} bytes have come: go on from there")));
    }
    let complete = match received {
        0 => {
            check_start(bytes, length)?;
            let mut slot = Slot::<Any>::begin_file(length)?;
            let complete = slot.take_file(bytes)?;
            if complete.is_none() {
                context.set(key, slot)?;
            }
            complete
        }
        _ => context.existing_mut::<Slot<Any>>(key)?.take_file(bytes)?,
    };
    if let Some(any) = complete {
        put(context, key, any.0)?;
    }
    context.replicate();
    context.notify(c"umbel.import", key);
    Ok((received + bytes.len() as u64).into())
}

/// What can be seen from the first piece is not found out with the last one: that it is no such file, or one with a secret
/// that is not known here.
fn check_start(bytes: &[u8], length: u64) -> Result<()> {
    match file::inspect_start(bytes, length) {
        Ok(info) => match info.hash.filter(|_| !info.embedded_key) {
            Some(id) => Ok(config::ring().find(id).map(drop)?),
            None => Ok(()),
        },
        // The piece is too short to say.
        Err(Error::Format { problem: FormatError::Length { .. }, .. }) if (bytes.len() as u64) < length => {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
