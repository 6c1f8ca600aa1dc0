//! Results on standard output, messages on standard error.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

/// Standard output for many lines: no lock and no newline search per write.
pub struct Out {
    writer: BufWriter<File>,
    /// Whether lines are shown as soon as they are there.
    eager: bool,
}

impl Out {
    pub fn new(eager: bool) -> Result<Out> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Out { writer: BufWriter::with_capacity(1 << 16, file), eager })
    }

    /// Writes whole lines; shows them at once if nothing more is to come for the moment.
    pub fn write(&mut self, lines: &[u8], caught_up: bool) -> Result<()> {
        self.writer.write_all(lines).context(FAILED)?;
        if caught_up || self.eager { self.writer.flush().context(FAILED) } else { Ok(()) }
    }

    /// Writes answers of which the exit code tells the sum: that is what counts when nobody reads them any more.
    pub fn write_answers(&mut self, lines: &[u8]) -> Result<()> {
        match self.write(lines, true) {
            Err(error) if is_broken_pipe(&error) => Ok(()),
            result => result,
        }
    }

    pub fn finish(mut self) -> Result<()> {
        self.writer.flush().context(FAILED)
    }
}

/// What is said when standard output takes no more, for instance because a disk is full.
pub const FAILED: &str = "cannot write to standard output";

/// Prints bytes as they are.
pub fn bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context(FAILED)
}

/// Prints a value as a line of JSON.
pub fn json(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    bytes(&line)
}

/// Prints text that stands for itself.
pub fn text(text: impl Display) -> Result<()> {
    let mut out = anstream::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).context(FAILED)
}

/// Says something that is not an error.
pub fn warn(message: impl Display) {
    let yellow = anstyle::AnsiColor::Yellow.on_default();
    say(format_args!("{yellow}umbel:{yellow:#} {message}"));
}

/// Whether something failed only because whoever reads our output has gone.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Says what went wrong.
pub fn error(message: impl Display) {
    let red = anstyle::AnsiColor::Red.on_default().bold();
    say(format_args!("{red}umbel:{red:#} {message}"));
}

/// A line on standard error.
pub fn say(line: impl Display) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}
