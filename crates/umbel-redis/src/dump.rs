//! `SCANDUMP` and `LOADCHUNK`, the same for every type: a client copies a value chunk by chunk.

use crate::persist::{Entry, Persist, Stream, cursor};
use crate::server::{Arguments, Context, Failure, Reply, Result};

fn bad_cursor() -> Failure {
    Failure::new("Second argument must be numeric")
}

/// `SCANDUMP key cursor`: the next cursor and a chunk. The first cursor is 0, and so is the one
/// after the last chunk.
pub fn scan<P: Persist>(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key, at] = arguments.exactly()?;
    let at = at.parse::<u64>().ok_or_else(bad_cursor)?;
    let entry = context.existing::<Entry<P>>(key)?;
    let value = entry.ready()?;
    if let Some(dump) = value.redisbloom() {
        let (next, chunk) = dump.chunk(at);
        return Ok(Reply::Array(vec![next.into(), Reply::Bytes(chunk)]));
    }
    let stream = Stream::new(value)?;
    let offset = at.saturating_sub(1);
    let chunk = stream.chunk(offset);
    let next = if chunk.is_empty() { 0 } else { cursor(offset + chunk.len() as u64) };
    Ok(Reply::Array(vec![Reply::Integer(next), Reply::Bytes(chunk)]))
}

/// `LOADCHUNK key cursor chunk`: loads a reply of `SCANDUMP`, of this module or of RedisBloom. The
/// chunks must be sent in order; the first creates the key.
pub fn load<P: Persist>(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key, at, chunk] = arguments.exactly()?;
    let end = at.parse::<u64>().and_then(|at| at.checked_sub(1)).ok_or_else(bad_cursor)?;
    let new_entry = match context.write::<Entry<P>>(key)? {
        Some(mut entry) => {
            entry.append_chunk(end, chunk.bytes())?;
            None
        }
        None => Some(Entry::<P>::from_first_chunk(end, chunk.bytes())?),
    };
    if let Some(entry) = new_entry {
        context.set(key, entry)?;
    }
    context.replicate();
    context.notify(c"umbel.loadchunk", key);
    Ok(Reply::Ok)
}
