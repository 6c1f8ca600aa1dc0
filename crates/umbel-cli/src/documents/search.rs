//! Files searched for a text: small ones by several threads, large ones one at a time, with the
//! output in order.

use super::report_unreadable;
use crate::input::{self, LineLimit};
use crate::terminal::exit::{FAILED, NOT_FOUND};
use crate::terminal::output::{self, Out};
use anyhow::Result;
use rayon::prelude::*;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use umbel_text::index::{Part, Selected, Selection};
use umbel_text::lines::LineTooLong;
use umbel_text::search::{Pattern, Searcher};

/// Larger files are searched one at a time, and their lines are printed as they are found.
const MAX_PARALLEL_FILE_BYTES: u64 = 16 << 20;

/// The number of small files that are searched in parallel before their output is printed.
const FILES_PER_BATCH: usize = 256;

/// The maximum output of a file, and the longest line, that is held in memory by each of several
/// threads. A file with more is searched again alone, and its lines are printed as they are found.
const MAX_HELD_BYTES: usize = 1 << 20;

/// The output for a matching file.
#[derive(Clone, Copy)]
pub struct SearchOptions {
    /// Print the name of the file before each line.
    pub with_names: bool,
    /// Print the line number before each line.
    pub line_numbers: bool,
    /// Print only the names of files with a match.
    pub names_only: bool,
    /// Print only the number of matching lines of each file.
    pub count: bool,
    /// Print nothing, and stop at the first match.
    pub quiet: bool,
    /// The maximum number of matching lines of a file.
    pub max_count: u64,
    /// Print the lines of binary files.
    pub binary_as_text: bool,
    /// The length of the longest line.
    pub max_line: LineLimit,
}

/// A number of files and their bytes.
#[derive(Default)]
struct Amount {
    files: u64,
    bytes: u64,
}

/// A search through many files, and its results so far.
pub struct Search<'a> {
    pattern: &'a Pattern,
    options: SearchOptions,
    out: Out,
    any_match: bool,
    any_failed: bool,
    read: Amount,
    total: Amount,
}

/// The result of searching one file.
#[derive(Default)]
struct FileResult {
    /// The number of matching lines.
    count: u64,
    output: Vec<u8>,
    bytes_read: u64,
    failed: Option<io::Error>,
}

impl<'a> Search<'a> {
    /// Creates a search that prints to standard output.
    pub fn new(pattern: &'a Pattern, options: SearchOptions) -> Result<Search<'a>> {
        let (read, total) = Default::default();
        Ok(Search {
            pattern,
            options,
            out: Out::new(false)?,
            any_match: false,
            any_failed: false,
            read,
            total,
        })
    }

    /// Searches the selected files in order; breaks when no more has to be searched.
    pub fn selection(&mut self, selection: &Selection) -> Result<ControlFlow<()>> {
        self.any_failed |= !selection.failed.is_empty();
        report_unreadable(&selection.failed);
        // Searching the output would find the lines that were just printed, again and again.
        let (output, files): (Vec<&Selected>, Vec<&Selected>) =
            selection.files.iter().partition(|file| input::is_output_file(|| file.path(), file.inode()));
        for file in output {
            self.any_failed = true;
            output::error(format_args!(
                "{} is both an input and the output: it is not searched",
                file.name().display()
            ));
        }
        let is_large =
            |file: &&Selected| file.bytes() > MAX_PARALLEL_FILE_BYTES && file.part != Part::Nothing;
        let mut left = &files[..];
        while let Some(first) = left.first() {
            if is_large(first) {
                let result = self.search_and_print(first)?;
                self.add(first, result)?;
                left = &left[1..];
            } else {
                let count = left.iter().take(FILES_PER_BATCH).take_while(|file| !is_large(file)).count();
                let (batch, rest) = left.split_at(count);
                self.search_batch(batch)?;
                left = rest;
            }
            if self.options.quiet && self.any_match {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Searches small files in parallel and prints their output in order.
    fn search_batch(&mut self, batch: &[&Selected]) -> Result<()> {
        let (pattern, options) = (self.pattern, self.options);
        // Where a binary file is cut can be seen if it is printed as text.
        let max_line = options.max_line.bytes();
        let max_line = if options.binary_as_text { max_line } else { max_line.min(MAX_HELD_BYTES) };
        let search = |file: &&Selected| {
            let (mut output, mut fits) = (Vec::new(), true);
            let result = search_file(pattern, options, max_line, file, |line| {
                fits = output.len() + line.len() < MAX_HELD_BYTES;
                if fits {
                    output.extend_from_slice(line);
                }
                fits
            });
            let is_long =
                result.failed.as_ref().is_some_and(|error| LineTooLong::from_error(error).is_some());
            (fits && !is_long).then_some(FileResult { output, ..result })
        };
        let results: Vec<_> = batch.par_iter().with_min_len(16).map(search).collect();
        for (file, result) in batch.iter().zip(results) {
            let result = result.map_or_else(|| self.search_and_print(file), Ok)?;
            self.add(file, result)?;
        }
        Ok(())
    }

    /// Searches a file and prints its lines as they are found.
    fn search_and_print(&mut self, file: &Selected) -> Result<FileResult> {
        let mut written = Ok(());
        let out = &mut self.out;
        let result = search_file(self.pattern, self.options, self.options.max_line.bytes(), file, |line| {
            written = out.write(line, false);
            written.is_ok()
        });
        written?;
        Ok(result)
    }

    /// Adds the result of a file, and prints its output.
    fn add(&mut self, file: &Selected, result: FileResult) -> Result<()> {
        self.total.files += 1;
        self.total.bytes += file.bytes();
        self.read.files += u64::from(file.part != Part::Nothing);
        self.read.bytes += result.bytes_read;
        self.any_match |= result.count > 0;
        self.out.write(&result.output, false)?;
        match result.failed {
            // The file was removed after its directory was read.
            Some(error) if error.kind() == io::ErrorKind::NotFound => {}
            Some(error) => {
                self.any_failed = true;
                report_unreadable(&[(file.name(), error)]);
            }
            None => {}
        }
        Ok(())
    }

    /// Prints the statistics, if they are wanted, and returns the exit code.
    pub fn finish(self, stats: bool) -> Result<ExitCode> {
        let Search { options, out, any_match, any_failed, read, total, .. } = self;
        out.finish()?;
        if stats {
            let share = |part: u64, of: u64| if of > 0 { 100.0 * part as f64 / of as f64 } else { 0.0 };
            output::message(format_args!(
                "read {} of {} files ({:.2} %), {} of {} bytes ({:.2} %)",
                read.files,
                total.files,
                share(read.files, total.files),
                read.bytes,
                total.bytes,
                share(read.bytes, total.bytes)
            ));
        }
        Ok(ExitCode::from(match (any_failed, any_match) {
            (true, any_match) if !(any_match && options.quiet) => FAILED,
            (_, true) => 0,
            _ => NOT_FOUND,
        }))
    }
}

/// Searches a file and passes its output to `print` line by line, until that returns `false`.
fn search_file(
    pattern: &Pattern,
    options: SearchOptions,
    max_line: usize,
    file: &Selected,
    mut print: impl FnMut(&[u8]) -> bool,
) -> FileResult {
    let SearchOptions {
        with_names, line_numbers, names_only, count, quiet, max_count, binary_as_text, ..
    } = options;
    let mut searcher = Searcher::new(pattern).numbers(line_numbers).max_line(max_line);
    let prints_lines = !(quiet || count || names_only);
    let name = file.name();
    let name = name.as_os_str().as_bytes();
    let mut result = FileResult::default();
    let mut output_line = Vec::new();
    let searched = if max_count == 0 {
        Ok(())
    } else {
        searcher.search(file, |line| {
            result.count += 1;
            if !prints_lines {
                return count && result.count < max_count;
            }
            if line.binary && !binary_as_text {
                print(&[b"umbel: ", name, b": binary file matches\n"].concat());
                return false;
            }
            output_line.clear();
            if with_names {
                output_line.extend_from_slice(name);
                output_line.push(b':');
            }
            if line_numbers {
                let _ = write!(output_line, "{}:", line.number);
            }
            output_line.extend_from_slice(line.text);
            output_line.push(b'\n');
            print(&output_line) && result.count < max_count
        })
    };
    if count && !quiet {
        let count = result.count.to_string();
        let prefix: &[&[u8]] = if with_names { &[name, b":"] } else { &[] };
        print(&[&prefix.concat()[..], count.as_bytes(), b"\n"].concat());
    } else if names_only && !quiet && result.count > 0 {
        print(&[name, b"\n"].concat());
    }
    result.bytes_read = searcher.bytes_read();
    result.failed = searched.err();
    result
}
