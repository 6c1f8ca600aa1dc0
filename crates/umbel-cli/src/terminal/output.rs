//! Results on standard output, messages on standard error.

use super::escape::{self, Escaper};
use super::redact;
use super::style::{self, ERROR, Styled, WARNING};
use anstream::stream::{IsTerminal, RawStream};
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

/// Buffered standard output for many lines, without a lock and a search for newlines per write.
pub struct Out {
    writer: BufWriter<Stdout>,
    /// Whether every write is flushed.
    eager: bool,
}

/// Standard output, with text escaped on a terminal.
struct Stdout {
    file: File,
    escaper: Option<Escaper>,
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.escaper {
            None => self.file.write(bytes),
            Some(escaper) => self.file.write_all(&escaper.escape(bytes)).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Out {
    /// Opens standard output; `eager` flushes every write.
    pub fn new(eager: bool) -> Result<Out> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let escaper = file.is_terminal().then(Escaper::default);
        Ok(Out { writer: BufWriter::with_capacity(1 << 16, Stdout { file, escaper }), eager })
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

    /// Writes what is left.
    pub fn finish(mut self) -> Result<()> {
        self.writer.flush().context(WRITE_FAILED)?;
        let Stdout { file, escaper } = self.writer.get_mut();
        let rest = escaper.as_mut().map(Escaper::finish).unwrap_or_default();
        file.write_all(&rest).context(WRITE_FAILED)
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

/// Prints bytes: as they are, except on a terminal.
pub fn bytes(bytes: &[u8]) -> Result<()> {
    let mut out = Out::new(false)?;
    out.write(bytes, true)?;
    out.finish()
}

/// Prints a value as a line of JSON.
pub fn json(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    bytes(&line)
}

/// Prints text, with styles and escapes if standard output is a terminal.
pub fn text(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    let rendered = render(&out, text);
    out.write_all(&rendered).and_then(|()| out.flush()).context(WRITE_FAILED)
}

/// Returns whether the error is that the reader of our output has closed it.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints a warning to standard error.
pub fn warn(problem: impl Display) {
    problem_line(Styled(WARNING, "umbel:"), &problem);
}

/// Prints an error to standard error.
pub fn error(problem: impl Display) {
    problem_line(Styled(ERROR, "umbel:"), &problem);
}

/// Prints one line, so that a file name or a server cannot add another that looks like ours.
fn problem_line(subject: impl Display, problem: &impl Display) {
    let problem = redact::passwords(&problem.to_string());
    match io::stderr().is_terminal() {
        true => message(format_args!("{subject} {}", problem.trim_end().replace('\n', "\\n"))),
        false => message(format_args!("{subject} {problem}")),
    }
}

/// Prints a line to standard error, with styles and escapes if that is a terminal.
pub fn message(line: impl Display) {
    let mut stderr = io::stderr().lock();
    let rendered = render(&stderr, format_args!("{line}\n"));
    // If standard error is closed, there is no way to report that.
    let _ = stderr.write_all(&rendered);
}

/// Formats text for a stream.
fn render(stream: &impl RawStream, text: impl Display) -> Vec<u8> {
    let mut rendered = Rendered {
        bytes: Vec::new(),
        is_terminal: stream.is_terminal(),
        has_styles: AutoStream::choice(stream) != ColorChoice::Never,
    };
    // Writes to memory do not fail.
    let _ = fmt::write(&mut rendered, format_args!("{text}"));
    rendered.bytes
}

/// Text as it is written to a stream.
struct Rendered {
    bytes: Vec<u8>,
    is_terminal: bool,
    has_styles: bool,
}

impl fmt::Write for Rendered {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let style = style::current();
        let is_styled = self.has_styles && !style.is_plain();
        if is_styled {
            self.bytes.extend_from_slice(style.render().to_string().as_bytes());
        }
        match self.is_terminal {
            true => self.bytes.extend_from_slice(&escape::escaped(text.as_bytes())),
            false => self.bytes.extend_from_slice(text.as_bytes()),
        }
        if is_styled {
            self.bytes.extend_from_slice(style.render_reset().to_string().as_bytes());
        }
        Ok(())
    }
}
