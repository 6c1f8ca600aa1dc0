//! The values of a column as lines, for commands that read keys.
//!
//! A value may contain newlines, so the lines are CSV records of one field, in quotes where that is
//! needed. Another thread decodes the file while the command works on the lines.

use super::find;
use crate::input::{is_stdin, name};
use anyhow::{Result, bail};
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use umbel_parquet::{Column, ParquetFile};

/// The size of a piece that is passed from one thread to the other.
const PIECE_BYTES: usize = 256 << 10;

/// The number of pieces that may wait.
const WAITING_PIECES: usize = 4;

/// The lines of a column.
pub struct ColumnLines {
    pieces: Receiver<io::Result<Vec<u8>>>,
    current: Cursor<Vec<u8>>,
}

impl ColumnLines {
    /// Opens a Parquet file. `count` counts the bytes of the columns that were decoded.
    pub fn open(path: &Path, column: &str, count: Arc<AtomicU64>) -> Result<ColumnLines> {
        if is_stdin(path) {
            bail!("a Parquet file is not read from {}: name a file", name(path));
        }
        let file = ParquetFile::open(path)?;
        let column = find(&file, column)?;
        column.check_text(&file)?;
        let (sender, pieces) = sync_channel(WAITING_PIECES);
        thread::spawn(move || send(&file, &column, &count, &sender));
        Ok(ColumnLines { pieces, current: Cursor::default() })
    }
}

impl Read for ColumnLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.current.read(buffer)? {
                0 => match self.pieces.recv() {
                    Ok(piece) => self.current = Cursor::new(piece?),
                    // The other thread has sent everything.
                    Err(_) => return Ok(0),
                },
                read => return Ok(read),
            }
        }
    }
}

/// Sends all lines, until the receiver is gone.
fn send(file: &ParquetFile, column: &Column, count: &AtomicU64, to: &SyncSender<io::Result<Vec<u8>>>) {
    let (mut text, mut piece, mut gone) = (Vec::new(), Vec::with_capacity(PIECE_BYTES), false);
    for row_group in 0..file.row_groups() {
        let decoded = file.each_value(row_group, column, |value| {
            if gone {
                return;
            }
            text.clear();
            // Columns without a text were refused.
            column.values().write_text(value, &mut text);
            append_record(&text, &mut piece);
            if piece.len() >= PIECE_BYTES {
                gone = to.send(Ok(std::mem::take(&mut piece))).is_err();
            }
        });
        if let Err(error) = decoded {
            // The lines before it come first.
            let _ = to.send(Ok(piece)).and_then(|()| to.send(Err(io::Error::other(error))));
            return;
        }
        if gone {
            return;
        }
        let bytes = file.metadata().row_group(row_group).column(column.index()).compressed_size();
        count.fetch_add(u64::try_from(bytes).unwrap_or(0), Relaxed);
    }
    let _ = to.send(Ok(piece));
}

/// Appends a CSV record of one field.
fn append_record(text: &[u8], to: &mut Vec<u8>) {
    let special = |byte: &u8| matches!(byte, b'"' | b',' | b'\n' | b'\r');
    // A byte order mark at the start of a file is not part of a field.
    if text.iter().any(special) || text.starts_with(b"\xef\xbb\xbf") {
        to.push(b'"');
        for part in text.split_inclusive(|byte| *byte == b'"') {
            to.extend_from_slice(part);
            if part.ends_with(b"\"") {
                to.push(b'"');
            }
        }
        to.push(b'"');
    } else {
        to.extend_from_slice(text);
    }
    to.push(b'\n');
}
