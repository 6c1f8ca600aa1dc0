//! `SCANDUMP` and `LOADCHUNK`, the same for every type: a value leaves in chunks, and comes back.

use crate::persist::{Entry, Persist, Stream, cursor};
use crate::server::{Arguments, Context, Failure, Reply, Result};

/// `SCANDUMP key cursor`: a cursor and a chunk. It starts with 0, goes on with the cursor that came, and ends when that is
/// 0 again.
pub fn scan<P: Persist>(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, at) = (arguments.next_arg()?, arguments.next_arg()?);
    arguments.expect_end()?;
    let invalid = || Failure::new("Second argument must be numeric");
    let at = at.parse::<u64>().ok_or_else(invalid)?;
    let entry = context.existing::<Entry<P>>(key)?;
    let stream = Stream::new(entry.ready()?)?;
    let offset = at.saturating_sub(1);
    let chunk = stream.chunk(offset);
    let next = if chunk.is_empty() { 0 } else { cursor(offset + chunk.len() as u64) };
    Ok(Reply::Array(vec![Reply::Integer(next), Reply::Bytes(chunk)]))
}

/// `LOADCHUNK key cursor chunk`, with what `SCANDUMP` gave, in its order. The first makes the key.
pub fn load<P: Persist>(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, at, chunk) = (arguments.next_arg()?, arguments.next_arg()?, arguments.next_arg()?);
    arguments.expect_end()?;
    let invalid = || Failure::new("Second argument must be numeric");
    let end = at.parse::<u64>().ok_or_else(invalid)?.checked_sub(1).ok_or_else(invalid)?;
    let begun = match context.write::<Entry<P>>(key)? {
        Some(mut entry) => {
            entry.append_chunk(end, chunk.bytes())?;
            None
        }
        None => Some(Entry::<P>::from_first_chunk(end, chunk.bytes())?),
    };
    if let Some(begun) = begun {
        context.set(key, begun)?;
    }
    context.replicate();
    context.notify(c"umbel.loadchunk", key);
    Ok(Reply::Ok)
}
