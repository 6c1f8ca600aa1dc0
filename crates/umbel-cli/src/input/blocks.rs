//! Blocks of whole records, read one after the other from all inputs.

use super::csv::RecordSplitter;
use super::key_spec::KeySpec;
use super::line_limit::LongLine;
use super::source::{self, Source};
use crate::report::printable;
use anyhow::{Context, Result, anyhow};
use memchr::{memchr, memrchr};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The size of a block: large enough that a read costs little more than its copy, small enough that
/// a block and the results computed from it stay in the cache of one core.
const BLOCK_BYTES: usize = 256 << 10;

/// The signature at the start of some UTF-8 texts.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The length from which a block is large: at least one of its lines is unusually long.
const LARGE_BLOCK_BYTES: usize = 4 * BLOCK_BYTES;

/// A reader of blocks from all inputs, one after the other.
pub struct Blocks {
    key_spec: Arc<KeySpec>,
    inputs: VecDeque<PathBuf>,
    current: Option<OpenInput>,
    /// The start of a record whose end has not been read yet.
    carry: Vec<u8>,
    /// The number of blocks so far.
    number: u64,
    /// The number of inputs opened so far.
    opened: usize,
    /// Whether the last block reported that the input is idle (`caught_up`), so that a read may
    /// wait.
    idle_reported: bool,
    read: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    total: Option<u64>,
    /// Whether a progress bar does not disturb the output.
    pub show_progress: bool,
}

struct OpenInput {
    source: Source,
    /// The index of the input.
    number: usize,
    /// An error to report after the records that were read before it.
    failure: Option<anyhow::Error>,
    /// The index of the key's field in this input; unknown until its header has been read.
    field: Option<usize>,
}

/// Whole records, and the block's number in the order of the input.
#[derive(Default)]
pub struct Block {
    /// The block is `start..len` of this buffer, which is initialised to its end.
    buffer: Vec<u8>,
    start: usize,
    len: usize,
    /// The ends of records, if the input is CSV.
    ends: Vec<u32>,
    field: usize,
    /// The index of the input that the block comes from.
    pub input: usize,
    /// Whether the input has no more data at the moment, so that results should be shown now.
    pub caught_up: bool,
    pub number: u64,
}

impl Blocks {
    /// Checks that the inputs can be opened.
    pub fn open(inputs: &[PathBuf], key_spec: KeySpec) -> Result<Blocks> {
        let inputs = source::resolve(inputs)?;
        let total = source::total_len(&inputs);
        Ok(Blocks { inputs: inputs.into(), total, ..Blocks::new(key_spec) })
    }

    /// Returns the blocks of these lines, without reading any input.
    pub fn from_bytes(lines: Vec<u8>, key_spec: KeySpec) -> Blocks {
        let mut blocks = Blocks { opened: 1, total: Some(lines.len() as u64), ..Blocks::new(key_spec) };
        let source = Source::from_bytes(lines, Arc::clone(&blocks.read), Arc::clone(&blocks.stop));
        blocks.current = Some(OpenInput::new(source, 0));
        blocks
    }

    /// Returns the blocks of no input.
    fn new(key_spec: KeySpec) -> Blocks {
        Blocks {
            key_spec: Arc::new(key_spec),
            total: None,
            inputs: VecDeque::new(),
            current: None,
            carry: Vec::new(),
            number: 0,
            opened: 0,
            idle_reported: true,
            read: Arc::default(),
            stop: Arc::default(),
            show_progress: true,
        }
    }

    /// Prepares for a command that prints lines while it reads: the output must not be one of the
    /// inputs, and a progress bar is shown only if the lines go to a file.
    pub fn printing(mut self) -> Result<Blocks> {
        // Without inputs, the lines are in memory.
        if !self.inputs.is_empty() {
            source::check_not_stdout(self.inputs.make_contiguous())?;
        }
        Ok(Blocks { show_progress: source::stdout_is_file(), ..self })
    }

    pub fn key_spec(&self) -> Arc<KeySpec> {
        Arc::clone(&self.key_spec)
    }

    /// Returns the counter of bytes read so far, and the total if it is known.
    pub fn progress(&self) -> (Arc<AtomicU64>, Option<u64>) {
        (Arc::clone(&self.read), self.total)
    }

    /// Returns the flag that ends the blocks; once it is set, no read waits.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Reads the next block; returns `false` at the end of the last input, or once the stop flag is
    /// set. Fails with [`LongLine`] if a record is longer than the limit; its number is counted from
    /// the start of the block.
    ///
    /// A block may be empty: before the reader waits for more data, it returns a block that only
    /// reports `caught_up`. An error has a number in the order of blocks, and is the last one.
    pub fn next(&mut self, block: &mut Block) -> Result<bool> {
        let result = self.read_next(block);
        if result.is_err() {
            self.inputs.clear();
            self.current = None;
            block.number = self.number;
        }
        result
    }

    fn read_next(&mut self, block: &mut Block) -> Result<bool> {
        while !self.stop.load(Relaxed) {
            if self.current.is_none() {
                let Some(path) = self.inputs.front() else { return Ok(false) };
                if !self.idle_reported && source::may_wait(path) {
                    block.reset(&[], self.key_spec.max_line + 1)?;
                    // No record of the next input has been read.
                    block.input = self.opened.saturating_sub(1);
                    block.caught_up = true;
                    return Ok(self.number_block(block));
                }
                let (count, stop) = (Arc::clone(&self.read), Arc::clone(&self.stop));
                let source = match &self.key_spec.parquet {
                    None => Source::open(path, count, stop)?,
                    Some(column) => Source::open_column(path, column, count, stop)?,
                };
                self.current = Some(OpenInput::new(source, self.opened));
                self.inputs.pop_front();
                self.opened += 1;
            }
            let Some(current) = &mut self.current else { unreachable!("an input was just opened") };
            block.input = current.number;
            let more = current.fill(block, &mut self.carry, &self.key_spec, self.idle_reported)?;
            if !more {
                self.current = None;
            }
            if block.len > block.start || block.caught_up && !self.idle_reported {
                return Ok(self.number_block(block));
            }
        }
        Ok(false)
    }

    /// Numbers the block; returns `false` once the stop flag is set.
    fn number_block(&mut self, block: &mut Block) -> bool {
        (block.number, self.number) = (self.number, self.number + 1);
        self.idle_reported = block.caught_up;
        !self.stop.load(Relaxed)
    }
}

impl OpenInput {
    fn new(source: Source, number: usize) -> OpenInput {
        OpenInput { source, number, failure: None, field: None }
    }

    /// Reads whole records into `block`, and the start of the next one into `carry`; returns
    /// `false` at the end of the input. Waits for the first record only if `idle_reported`.
    fn fill(
        &mut self,
        block: &mut Block,
        carry: &mut Vec<u8>,
        key_spec: &KeySpec,
        idle_reported: bool,
    ) -> Result<bool> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let room = key_spec.max_line + 1;
        block.reset(carry, room)?;
        if carry.capacity() > LARGE_BLOCK_BYTES {
            *carry = Vec::new();
        }
        carry.clear();
        // `..whole` are whole records, and `..searched` has been searched for their ends.
        let (mut whole, mut searched, mut splitter) = (0, 0, RecordSplitter::default());
        let mut more = loop {
            let unsearched = &block.buffer[searched..block.len];
            if key_spec.csv {
                splitter
                    .feed(unsearched, key_spec.separator[0], |end| block.ends.push((searched + end) as u32));
                whole = block.ends.last().map_or(0, |end| *end as usize);
            } else if let Some(last) = memrchr(key_spec.line_end, unsearched) {
                whole = searched + last + 1;
            }
            searched = block.len;
            if block.len == block.buffer.len() {
                if whole > 0 {
                    break true;
                }
                if block.len >= room {
                    return Err(self.long_line(key_spec).into());
                }
                let grown = block.resize((2 * block.len).min(room));
                grown.with_context(|| format!("in {}", self.source.name()))?;
            }
            if (whole > 0 || !idle_reported) && self.source.would_wait() {
                block.caught_up = true;
                break true;
            }
            match self.source.read(&mut block.buffer[block.len..]) {
                Ok(0) => break false,
                Ok(read) => block.len += read,
                // Return the whole records first, and the error with the next block.
                Err(failure) if whole > 0 => {
                    self.failure = Some(failure);
                    break true;
                }
                Err(failure) => return Err(failure),
            }
        };
        if more {
            carry.extend_from_slice(&block.buffer[whole..block.len]);
            block.len = whole;
        } else if whole < block.len && splitter.is_open() && !self.source.stopped() {
            let record = &block.buffer[whole..block.len];
            let start = record.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let start = printable(&start[..start.len().min(60)]);
            let name = self.source.name();
            let failure = anyhow!("{name}: a quote is never closed in the record that starts with {start}");
            if whole == 0 {
                return Err(failure);
            }
            (self.failure, block.len, more) = (Some(failure), whole, true);
        } else if whole < block.len {
            // The last record of a file may lack its end.
            block.end_with(key_spec.line_end)?;
        }
        if whole > 0 || !more {
            self.read_header(block, key_spec)?;
        }
        Ok(more)
    }

    /// Returns the error of a record that is the first of its block, and longer than the limit.
    fn long_line(&self, key_spec: &KeySpec) -> LongLine {
        // The header is a line, but not a record.
        let line = if key_spec.header && self.field.is_some() { 2 } else { 1 };
        let name = self.source.name().to_string();
        LongLine { name, input: self.number, line, csv: key_spec.csv, limit: key_spec.max_line }
    }

    fn read_header(&mut self, block: &mut Block, key_spec: &KeySpec) -> Result<()> {
        if self.field.is_none() {
            let bytes = &block.buffer[..block.len];
            // The byte order mark that spreadsheets write is not part of the first field.
            let mark = if (key_spec.header || key_spec.csv) && bytes.starts_with(BYTE_ORDER_MARK) {
                BYTE_ORDER_MARK.len()
            } else {
                0
            };
            let end = match (key_spec.header, key_spec.csv) {
                (false, _) => 0,
                (true, true) => block.ends.first().map_or(block.len, |end| *end as usize),
                (true, false) => memchr(key_spec.line_end, bytes).map_or(block.len, |end| end + 1),
            };
            let header = (end > 0).then(|| &bytes[mark..end - 1]);
            self.field = Some(key_spec.field_index(header, self.source.name())?);
            block.start = end.max(mark);
            block.ends.drain(..usize::from(key_spec.csv && end > 0));
        }
        block.field = self.field.unwrap_or_default();
        Ok(())
    }
}

impl Block {
    /// Returns the bytes; every record has its line end.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Returns the start of the first record.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the ends of records, if the input is CSV.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Returns the index of the key's field.
    pub fn field(&self) -> usize {
        self.field
    }

    /// Returns whether the block has an unusually long line, so that few such blocks should be in
    /// memory at once.
    pub fn is_large(&self) -> bool {
        self.buffer.len() > LARGE_BLOCK_BYTES
    }

    /// Starts the block with `carry`, in a buffer of at most `room` bytes.
    fn reset(&mut self, carry: &[u8], room: usize) -> Result<()> {
        // Release the memory of an unusually long line.
        if self.is_large() && carry.len() < BLOCK_BYTES {
            self.buffer = Vec::new();
        }
        self.resize(BLOCK_BYTES.max(carry.len() + 1).min(room))?;
        self.buffer[..carry.len()].copy_from_slice(carry);
        (self.start, self.len, self.caught_up) = (0, carry.len(), false);
        self.ends.clear();
        Ok(())
    }

    fn resize(&mut self, len: usize) -> Result<()> {
        if self.buffer.len() < len {
            let before = self.buffer.len();
            let failed = || format!("the system has no memory for a line of more than {before} bytes");
            self.buffer.try_reserve_exact(len - before).with_context(failed)?;
            self.buffer.resize(len, 0);
        }
        Ok(())
    }

    fn end_with(&mut self, line_end: u8) -> Result<()> {
        self.resize(self.len + 1)?;
        self.buffer[self.len] = line_end;
        self.len += 1;
        // Inside unclosed quotes this is not a record's end, but the file has no other.
        if self.ends.last().is_none_or(|end| (*end as usize) < self.len) {
            self.ends.push(self.len as u32);
        }
        Ok(())
    }
}
