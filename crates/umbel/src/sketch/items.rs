//! The section of a file that holds counted keys. Each item has a record of 16 bytes: its count and
//! the offset at which its key ends. The keys follow one after the other.

use super::table::Entry;
use crate::file::FormatError;
use crate::file::fields::Fields;
use crate::memory::{LINE_BYTES, Words};
use crate::{Error, Hasher, Result};

/// The bytes of an item besides its key.
const RECORD: usize = 16;

/// Writes counted keys.
pub(super) fn encode<'a>(items: impl Iterator<Item = (u64, &'a [u8])> + Clone) -> Result<Words> {
    let (count, keys) = items.clone().fold((0, 0), |(count, keys), (_, key)| (count + 1, keys + key.len()));
    let mut words = Words::zeroed(lines(count, keys))?;
    let (records, mut text) = words.as_bytes_mut().split_at_mut(count * RECORD);
    let mut end = 0u64;
    for (record, (count, key)) in records.as_chunks_mut::<RECORD>().0.iter_mut().zip(items) {
        end += key.len() as u64;
        record[..8].copy_from_slice(&count.to_le_bytes());
        record[8..].copy_from_slice(&end.to_le_bytes());
        let (place, rest) = text.split_at_mut(key.len());
        place.copy_from_slice(key);
        text = rest;
    }
    words.convert_from_le();
    Ok(words)
}

/// Reads `count` counted keys. A count of 0 marks a free place, unless `free` is `false`. Then memory
/// is allocated only for what is in the file, and a long one full of zeros takes none.
pub(super) fn decode(words: &Words, count: u64, free: bool, hasher: &Hasher) -> Result<Vec<Entry>> {
    let bytes = words.to_le_bytes();
    let mut fields = Fields(&bytes);
    let records = fields.records(count, RECORD).ok_or_else(|| {
        FormatError::invalid(format!("it claims {count} items in a section that has no room for them"))
    })?;
    let text = fields.0;
    let mut start = 0;
    let mut entries = Vec::new();
    for record in records {
        let mut record = Fields(record);
        let (count, end) = (record.u64().unwrap_or_default(), record.u64().unwrap_or_default());
        let end = usize::try_from(end).unwrap_or(usize::MAX);
        let key = text
            .get(start..end)
            .ok_or_else(|| FormatError::invalid("the keys of its items overlap, or end beyond it"))?;
        if count == 0 && !free {
            return Err(FormatError::invalid("it has an item with a count of 0").into());
        }
        let bytes = (entries.len() * size_of::<Entry>()) as u64;
        entries.try_reserve(1).map_err(|_| Error::OutOfMemory { bytes })?;
        entries.push(Entry { digest: hasher.digest_bytes(key), count, key: key.to_vec() });
        start = end;
    }
    if words.lines().len() as u64 != lines(entries.len(), start)
        || text[start..].iter().any(|byte| *byte != 0)
    {
        return Err(FormatError::invalid("there are bytes after its last item").into());
    }
    Ok(entries)
}

/// Returns the number of lines for this many items and bytes of keys; a section has at least one.
fn lines(items: usize, keys: usize) -> u64 {
    (items * RECORD + keys).div_ceil(LINE_BYTES).max(1) as u64
}
