//! The footer of a Parquet file, read within the bounds of the file.
//!
//! ```text
//! PAR1 | pages and filters ... | footer (Thrift) | length of the footer: u32 | PAR1
//! ```
//!
//! The `parquet` crate decodes the footer, but trusts it: a few bytes can claim a group with two
//! thousand million columns, for which it would reserve memory. So [`shape`] first checks that the
//! footer holds the elements that it announces, and [`schema`] that the tree of columns is no
//! deeper and its paths no longer than those of real files.

pub(crate) mod edit;
mod schema;
mod shape;
pub(crate) mod thrift;

use crate::error::{Error, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The length of what follows the footer: its own length and the signature.
const TAIL_BYTES: u64 = 8;

/// The signature at both ends of a file.
pub(crate) const SIGNATURE: &[u8] = b"PAR1";

/// The signature of a file whose footer is encrypted.
const ENCRYPTED_SIGNATURE: &[u8] = b"PARE";

/// A footer that was read and decoded.
pub(crate) struct Footer {
    pub metadata: ParquetMetaData,
    /// The position of the footer: pages and filters end before it.
    pub start: u64,
    /// The length of the footer.
    pub length: u64,
}

/// Reads the footer of a file of this length.
pub(crate) fn read(path: &Path, file: &File, length: u64) -> Result<Footer> {
    // The signature is at both ends, so that a shorter file has no footer.
    let Some(tail_start) = length.checked_sub(TAIL_BYTES).filter(|start| *start >= SIGNATURE.len() as u64)
    else {
        return Err(Error::NotParquet { path: path.to_owned() });
    };
    let mut tail = [0; TAIL_BYTES as usize];
    file.read_exact_at(&mut tail, tail_start).map_err(Error::io(path, "read"))?;
    let (footer_length, signature) = tail.split_at(4);
    match signature {
        SIGNATURE => {}
        ENCRYPTED_SIGNATURE => return Err(Error::Encrypted { path: path.to_owned() }),
        _ => return Err(Error::NotParquet { path: path.to_owned() }),
    }
    let footer_length =
        u32::from_le_bytes([footer_length[0], footer_length[1], footer_length[2], footer_length[3]]);
    let start = tail_start.checked_sub(footer_length.into()).filter(|start| *start >= SIGNATURE.len() as u64);
    let Some(start) = start else {
        let what = format!("it claims a footer of {footer_length} bytes, and has only {length} bytes");
        return Err(Error::damaged(path, what));
    };
    let footer = read_bytes(path, file, start, footer_length.into())?;
    shape::check(&footer).map_err(|what| Error::damaged(path, format!("in its footer, {what}")))?;
    let metadata = ParquetMetaDataReader::decode_metadata(&footer)
        .map_err(|error| Error::damaged(path, format!("its footer cannot be read ({error})")))?;
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    if columns.into_iter().any(|column| column.file_path().is_some()) {
        return Err(Error::Summary { path: path.to_owned() });
    }
    Ok(Footer { metadata, start, length: footer_length.into() })
}

/// Reads bytes that are known to lie within the file.
pub(crate) fn read_bytes(path: &Path, file: &File, start: u64, length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let reserved = usize::try_from(length).ok().filter(|length| bytes.try_reserve_exact(*length).is_ok());
    let Some(length) = reserved else {
        return Err(Error::OutOfMemory { path: path.to_owned(), bytes: length });
    };
    bytes.resize(length, 0);
    file.read_exact_at(&mut bytes, start).map_err(Error::io(path, "read"))?;
    Ok(bytes)
}
