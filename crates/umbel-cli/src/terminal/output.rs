//! Results on standard output, messages on standard error.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

/// Buffered standard output for many lines, without a lock and a search for newlines per write.
pub struct Out {
    writer: BufWriter<File>,
    /// Whether every write is flushed.
    eager: bool,
}

impl Out {
    /// Opens standard output; `eager` flushes every write.
    pub fn new(eager: bool) -> Result<Out> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Out { writer: BufWriter::with_capacity(1 << 16, file), eager })
    }

    /// Writes whole lines, and flushes them if the input has no more data at the moment.
    pub fn write(&mut self, lines: &[u8], caught_up: bool) -> Result<()> {
        self.writer.write_all(lines).context(WRITE_FAILED)?;
        if caught_up || self.eager { self.writer.flush().context(WRITE_FAILED) } else { Ok(()) }
    }

    /// Writes answers that the exit code summarises, so that a closed output is not an error.
    pub fn write_answers(&mut self, lines: &[u8]) -> Result<()> {
        match self.write(lines, true) {
            Err(error) if is_broken_pipe(&error) => Ok(()),
            result => result,
        }
    }

    /// Flushes the output.
    pub fn finish(mut self) -> Result<()> {
        self.writer.flush().context(WRITE_FAILED)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        if self.eager {
            self.writer.flush()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The context of errors when writing to standard output, for instance because a disk is full.
pub const WRITE_FAILED: &str = "cannot write to standard output";

/// Prints bytes as they are.
pub fn bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context(WRITE_FAILED)
}

/// Prints a value as a line of JSON.
pub fn json(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    bytes(&line)
}

/// Prints text, with styles if standard output is a terminal.
pub fn text(text: impl Display) -> Result<()> {
    let mut out = anstream::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).context(WRITE_FAILED)
}

/// Prints a warning to standard error.
pub fn warn(problem: impl Display) {
    let yellow = anstyle::AnsiColor::Yellow.on_default();
    message(format_args!("{yellow}umbel:{yellow:#} {problem}"));
}

/// Returns whether the error is that the reader of our output has closed it.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints an error to standard error.
pub fn error(problem: impl Display) {
    let red = anstyle::AnsiColor::Red.on_default().bold();
    message(format_args!("{red}umbel:{red:#} {problem}"));
}

/// Prints a line to standard error.
pub fn message(line: impl Display) {
    // If standard error is closed, there is no way to report that.
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}
