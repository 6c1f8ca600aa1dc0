//! Blocks of whole records, read one after the other from all inputs.

use super::csv::Cutter;
use super::shape::Shape;
use super::source::{self, Source};
use crate::report::printable;
use anyhow::{Context, Result, anyhow, bail};
use memchr::{memchr, memrchr};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Large enough that a read costs little more than its copy, small enough that a block and what is computed from it
/// stay in the cache of one processor.
const SIZE: usize = 256 << 10;

/// What some programs start a text in UTF-8 with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Positions in a block are 32-bit numbers, in lower case as in the original.
const LONGEST: usize = 1 << 31;

/// All inputs, one after the other.
pub struct Blocks {
    shape: Arc<Shape>,
    inputs: VecDeque<PathBuf>,
    current: Option<Current>,
    /// The start of a record whose end has not been read yet.
    carry: Vec<u8>,
    /// How many blocks there were.
    number: u64,
    /// How many inputs were opened.
    opened: usize,
    /// Whether whoever waits for the blocks so far was told that no more come at the moment.
    settled: bool,
    read: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    total: Option<u64>,
    /// Whether a progress bar would be in nobody's way.
    pub bar_welcome: bool,
}

struct Current {
    source: Source,
    /// What went wrong after the records that were still handed out.
    failure: Option<anyhow::Error>,
    /// The number of the key's field in this input; unknown until its header has been read.
    field: Option<usize>,
}

/// Whole records, and a place in the order of all blocks.
#[derive(Default)]
pub struct Block {
    /// Initialised to its end; the block is `start..len` of it.
    buffer: Vec<u8>,
    start: usize,
    len: usize,
    /// Where records end, if the reader had to find out.
    ends: Vec<u32>,
    field: usize,
    /// Which of the inputs it comes from, the first being 0.
    pub input: usize,
    /// Whether whoever writes to the input has nothing more at the moment: then answers are wanted now.
    pub caught_up: bool,
    pub number: u64,
}

impl Blocks {
    /// Looks at the inputs without opening them.
    pub fn open(inputs: &[PathBuf], shape: Shape) -> Result<Blocks> {
        let inputs = source::resolve(inputs)?;
        Ok(Blocks {
            shape: Arc::new(shape),
            total: source::total_len(&inputs),
            inputs: inputs.into(),
            current: None,
            carry: Vec::new(),
            number: 0,
            opened: 0,
            settled: true,
            read: Arc::default(),
            stop: Arc::default(),
            bar_welcome: true,
        })
    }

    /// For commands that print lines while they read. A progress bar would stand among them, unless they go to a file,
    /// which must not be one of the inputs.
    pub fn printing(mut self) -> Result<Blocks> {
        source::check_not_stdout(self.inputs.make_contiguous())?;
        Ok(Blocks { bar_welcome: source::stdout_is_file(), ..self })
    }

    pub fn shape(&self) -> Arc<Shape> {
        Arc::clone(&self.shape)
    }

    /// The bytes read so far, to be watched from another thread, and how many there will be, if that is known.
    pub fn progress(&self) -> (Arc<AtomicU64>, Option<u64>) {
        (Arc::clone(&self.read), self.total)
    }

    /// Once this is set there are no more blocks, and nothing is waited for.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// The next records; `false` at the end of the last input, or once it should stop.
    ///
    /// There may be none: before a wait that follows other blocks comes one that only says so. An error has its place in
    /// the order of all blocks, and nothing comes after it.
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
                if !self.settled && source::may_wait(path) {
                    block.reset(&[])?;
                    block.caught_up = true;
                    return Ok(self.hand_out(block));
                }
                let source = Source::open(path, Arc::clone(&self.read), Arc::clone(&self.stop))?;
                self.current = Some(Current { source, failure: None, field: None });
                self.inputs.pop_front();
                self.opened += 1;
            }
            let Some(current) = &mut self.current else { unreachable!("an input was just opened") };
            block.input = self.opened - 1;
            let more = current.fill(block, &mut self.carry, &self.shape, self.settled)?;
            if !more {
                self.current = None;
            }
            if block.len > block.start || block.caught_up && !self.settled {
                return Ok(self.hand_out(block));
            }
        }
        Ok(false)
    }

    /// Gives the block its number, unless it should stop.
    fn hand_out(&mut self, block: &mut Block) -> bool {
        (block.number, self.number) = (self.number, self.number + 1);
        self.settled = block.caught_up;
        !self.stop.load(Relaxed)
    }
}

impl Current {
    /// Reads whole records into `block`, and the start of the next into `carry`; `false` at the end. Waits for the first
    /// record only if whoever waits for earlier ones is `settled`.
    fn fill(&mut self, block: &mut Block, carry: &mut Vec<u8>, shape: &Shape, settled: bool) -> Result<bool> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        block.reset(carry)?;
        carry.clear();
        // Records as far as they are known to be whole, and what has been searched for their ends.
        let (mut whole, mut searched, mut cutter) = (0, 0, Cutter::default());
        let mut more = loop {
            let unsearched = &block.buffer[searched..block.len];
            if shape.csv {
                cutter.feed(unsearched, shape.separator[0], |end| block.ends.push((searched + end) as u32));
                whole = block.ends.last().map_or(0, |end| *end as usize);
            } else if let Some(last) = memrchr(shape.line_end, unsearched) {
                whole = searched + last + 1;
            }
            searched = block.len;
            if block.len == block.buffer.len() {
                if whole > 0 {
                    break true;
                }
                block.grow().with_context(|| format!("in {}", self.source.name()))?;
            }
            if (whole > 0 || !settled) && self.source.would_wait() {
                block.caught_up = true;
                break true;
            }
            match self.source.read(&mut block.buffer[block.len..]) {
                Ok(0) => break false,
                Ok(read) => block.len += read,
                // What was read before is whole, and comes first.
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
        } else if whole < block.len && cutter.is_open() && !self.source.stopped() {
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
            block.end_with(shape.line_end)?;
        }
        if whole > 0 || !more {
            self.take_header(block, shape)?;
        }
        Ok(more)
    }

    fn take_header(&mut self, block: &mut Block, shape: &Shape) -> Result<()> {
        if self.field.is_none() {
            let bytes = &block.buffer[..block.len];
            // What spreadsheets put before a table is not part of its first field.
            let mark = if (shape.header || shape.csv) && bytes.starts_with(BYTE_ORDER_MARK) {
                BYTE_ORDER_MARK.len()
            } else {
                0
            };
            let end = match (shape.header, shape.csv) {
                (false, _) => 0,
                (true, true) => block.ends.first().map_or(block.len, |end| *end as usize),
                (true, false) => memchr(shape.line_end, bytes).map_or(block.len, |end| end + 1),
            };
            let header = (end > 0).then(|| &bytes[mark..end - 1]);
            self.field = Some(shape.field_in(header, self.source.name())?);
            block.start = end.max(mark);
            block.ends.drain(..usize::from(shape.csv && end > 0));
        }
        block.field = self.field.unwrap_or_default();
        Ok(())
    }
}

impl Block {
    /// The bytes, every record with its end.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Where the first record starts.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Where records end, if the reader had to find out.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// The number of the key's field.
    pub fn field(&self) -> usize {
        self.field
    }

    fn reset(&mut self, carry: &[u8]) -> Result<()> {
        // After a line of a hundred megabytes the memory goes back.
        if self.buffer.len() > 4 * SIZE && carry.len() < SIZE {
            self.buffer = Vec::new();
        }
        self.resize(SIZE.max(carry.len() + 1))?;
        self.buffer[..carry.len()].copy_from_slice(carry);
        (self.start, self.len, self.caught_up) = (0, carry.len(), false);
        self.ends.clear();
        Ok(())
    }

    fn grow(&mut self) -> Result<()> {
        if self.buffer.len() >= LONGEST {
            bail!(
                "a line is longer than 2 GiB: are these lines? See -0 and -d for other ways to separate keys"
            );
        }
        self.resize(2 * self.buffer.len())
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
        // Inside quotes that were never closed the end is not one, but the file has no other.
        if self.ends.last().is_none_or(|end| (*end as usize) < self.len) {
            self.ends.push(self.len as u32);
        }
        Ok(())
    }
}
