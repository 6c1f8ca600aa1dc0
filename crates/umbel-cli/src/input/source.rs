//! One input: opened, decompressed, and polled if a read might wait. Checks of inputs and output
//! before the work.

use crate::columns::ColumnLines;
use crate::report::{escaped, size};
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{self, File, Metadata};
use std::io::{self, Cursor, IsTerminal, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use umbel::foreign;
use umbel_text::content::{Format, decoded, decompressed, format, start_of};

/// The interval at which a waiting read checks the stop flag.
const STOP_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The name of standard input in messages.
const STDIN: &str = "standard input";

/// An input that is being read.
pub struct Source {
    reader: Box<dyn Read + Send>,
    /// The descriptor to poll, unless the input is a regular file, which never waits.
    waitable: Option<OwnedFd>,
    stop: Arc<AtomicBool>,
    name: String,
}

impl Source {
    /// Opens a file, or standard input for `-`. `count` counts the bytes read; once `stop` is set,
    /// no read waits.
    pub fn open(path: &Path, count: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Result<Source> {
        let name = name(path);
        let failed = || format!("cannot open {name}");
        let file = open_file(path).with_context(failed)?;
        let metadata = file.metadata().with_context(|| format!("cannot examine {name}"))?;
        check_readable(&name, &metadata)?;
        let waitable = match metadata.is_file() {
            true => None,
            false => Some(file.as_fd().try_clone_to_owned().with_context(failed)?),
        };
        let file = StoppableFile { file, waitable: waitable.is_some(), stop: Arc::clone(&stop) };
        let mut file = CountedReader::new(file, count);
        let start = start_of(&mut file).with_context(|| format!("cannot read {name}"))?;
        let format = format(&start);
        let whole = Cursor::new(start).chain(file);
        check_lines(&name, format)?;
        if let Some(foreign) = recognized(path) {
            bail!(
                "{name} is a filter in the format {foreign}, not a list of keys: `umbel check {name} ...` asks it for keys"
            );
        }
        let reader = decoded(format, whole).with_context(failed)?;
        let name = match format {
            Some(Format::Gzip) => format!("{name} (as gzip)"),
            Some(Format::Zstd) => format!("{name} (as zstd)"),
            _ => name,
        };
        Ok(Source { reader, waitable, stop, name })
    }

    /// Opens a column of a Parquet file, as CSV records.
    pub fn open_column(
        path: &Path,
        column: &str,
        count: Arc<AtomicU64>,
        stop: Arc<AtomicBool>,
    ) -> Result<Source> {
        let reader = Box::new(ColumnLines::open(path, column, count)?);
        Ok(Source { reader, waitable: None, stop, name: name(path) })
    }

    /// Returns an input that is in memory, and is not decompressed.
    pub fn from_bytes(bytes: Vec<u8>, count: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Source {
        let reader = Box::new(CountedReader::new(Cursor::new(bytes), count));
        Source { reader, waitable: None, stop, name: "--key".to_string() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the bytes that are available; 0 means the end, or that `stop` is set.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A decoder that is stopped early complains about a truncated file.
                Err(_) if self.stop.load(Relaxed) => return Ok(0),
                result => return result.with_context(|| format!("cannot read {}", self.name)),
            }
        }
    }

    /// Returns whether reading was stopped before the end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Returns whether the next read would wait for a writer.
    pub fn would_wait(&self) -> bool {
        self.waitable.as_ref().is_some_and(|waitable| !ready(waitable, &Timespec::default()))
    }
}

/// Fails if the format, recognised by the first bytes, has no lines.
fn check_lines(name: &str, format: Option<Format>) -> Result<()> {
    match format {
        Some(Format::Filter) => {
            bail!("{name} is a filter, not a list of keys: see `umbel union` to combine filters")
        }
        Some(Format::Foreign(program)) => {
            bail!(
                "{name} is compressed with {program}: decompress it first, as in `{program} -dc {name} | umbel ...`"
            )
        }
        Some(Format::Gzip | Format::Zstd) | None => Ok(()),
    }
}

/// Opens a list of lines, decompressed if necessary, or standard input for `-`. `count` counts the
/// bytes read.
pub fn open_list(path: &Path, count: Arc<AtomicU64>) -> Result<impl Read + Send + use<>> {
    let name = name(path);
    let counted = CountedReader::new(open_raw(path)?, count);
    let (format, reader) = decompressed(counted).with_context(|| format!("cannot read {name}"))?;
    check_lines(&name, format)?;
    Ok(reader)
}

/// Opens a file without decompressing it, or standard input for `-`.
pub fn open_raw(path: &Path) -> Result<File> {
    let name = name(path);
    let failed = || format!("cannot open {name}");
    let file = open_file(path).with_context(failed)?;
    check_readable(&name, &file.metadata().with_context(failed)?)?;
    Ok(file)
}

/// Opens a file of any content, or standard input for `-`, and decompresses gzip and zstd.
pub fn open_bytes(path: &Path) -> Result<impl Read + Send + use<>> {
    let file = open_raw(path)?;
    let (_, reader) = decompressed(file).with_context(|| format!("cannot read {}", name(path)))?;
    Ok(reader)
}

/// The length of the longest file that is read as a whole, after decompression.
const MAX_WHOLE_BYTES: u64 = 64 << 20;

/// Reads a whole file, such as a list of words, or standard input for `-`, and decompresses gzip and
/// zstd. Fails if it is longer than [`MAX_WHOLE_BYTES`].
pub fn read_whole(path: &Path) -> Result<Vec<u8>> {
    let (name, mut bytes) = (name(path), Vec::new());
    let reader = open_bytes(path)?;
    reader
        .take(MAX_WHOLE_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MAX_WHOLE_BYTES {
        bail!("{name} is longer than {}, and has to fit into memory: divide it", size(MAX_WHOLE_BYTES));
    }
    Ok(bytes)
}

fn open_file(path: &Path) -> io::Result<File> {
    if is_stdin(path) { Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?)) } else { File::open(path) }
}

/// Returns whether there is something to read, or polling fails.
fn ready(file: &impl AsFd, wait: &Timespec) -> bool {
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(wait)) != Ok(0)
}

/// A file whose reads stop waiting once `stop` is set.
struct StoppableFile {
    file: File,
    waitable: bool,
    stop: Arc<AtomicBool>,
}

impl Read for StoppableFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Wait below the decoder, whose buffered data does not need the file.
        while self.waitable && !ready(&self.file, &STOP_POLL_INTERVAL) {
            if self.stop.load(Relaxed) {
                return Ok(0);
            }
        }
        self.file.read(buffer)
    }
}

/// A reader that counts the bytes read.
pub struct CountedReader<R> {
    reader: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> CountedReader<R> {
    /// Adds the number of bytes read from `reader` to `count`.
    pub fn new(reader: R, count: Arc<AtomicU64>) -> CountedReader<R> {
        CountedReader { reader, count }
    }
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.count.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}

/// Fails with a hint if the filter and the input files appear to be swapped; `usage` is the command
/// up to the lines.
pub fn check_not_swapped(usage: &str, filter: &Path, inputs: &[PathBuf]) -> Result<()> {
    let is_any_filter = |path: &Path| is_filter(path) || recognized(path).is_some();
    if filter.exists() && !is_any_filter(filter) && inputs.iter().any(|input| is_any_filter(input)) {
        bail!("the filter comes first, then the lines: `umbel {usage} {}`", filter.display());
    }
    Ok(())
}

/// Returns the error of opening a filter, or the hint of [`check_not_swapped`] if that explains it.
pub fn explain_swapped(
    error: anyhow::Error,
    usage: &str,
    filter: &Path,
    inputs: &[PathBuf],
) -> anyhow::Error {
    check_not_swapped(usage, filter, inputs).err().unwrap_or(error)
}

/// Returns whether the first bytes of a file are those of a filter.
pub fn is_filter(path: &Path) -> bool {
    start_of_file(path).is_some_and(|start| matches!(format(&start), Some(Format::Filter)))
}

/// Returns the format of a filter that another program wrote, if the first bytes of the file show it.
pub fn recognized(path: &Path) -> Option<foreign::Format> {
    let mut start = Vec::new();
    fs::metadata(path).ok().filter(Metadata::is_file)?;
    File::open(path).ok()?.take(foreign::Format::RECOGNIZE_BYTES as u64).read_to_end(&mut start).ok()?;
    foreign::Format::recognize(&start)
}

/// Returns whether this is an uncompressed regular file.
pub fn is_plain(path: &Path) -> bool {
    !is_stdin(path) && start_of_file(path).is_some_and(|start| format(&start).is_none())
}

/// Returns the first bytes of a regular file. Other files are not opened: a pipe would wait for its
/// writer.
fn start_of_file(path: &Path) -> Option<Vec<u8>> {
    let regular = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if regular { start_of(&mut File::open(path).ok()?).ok() } else { None }
}

pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns the name of an input for messages.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { STDIN.to_string() } else { escaped(path.as_os_str().as_bytes()) }
}

/// Returns the name of an input for programs, as in JSON.
pub fn plain_name(path: &Path) -> String {
    if is_stdin(path) { STDIN.to_string() } else { path.display().to_string() }
}

fn check_readable(name: &str, metadata: &Metadata) -> Result<()> {
    if metadata.is_dir() {
        bail!("{name} is a directory: give the files in it, for instance {name}/*");
    }
    Ok(())
}

/// Returns the inputs to read. Fails early for inputs that cannot be opened, and if standard input
/// is a terminal.
pub fn resolve(inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if inputs.is_empty() {
        if io::stdin().is_terminal() {
            bail!(
                "there are no lines to read: name a file, or send lines, as in `seq 1000 | umbel ...`; `-` reads the terminal"
            );
        }
        return Ok(vec!["-".into()]);
    }
    for path in inputs.iter().filter(|path| !is_stdin(path)) {
        let name = name(path);
        let metadata = fs::metadata(path).with_context(|| format!("cannot open {name}"))?;
        check_readable(&name, &metadata)?;
        // Opening a pipe would wait for its writer, and take data from the real reader.
        if metadata.is_file() {
            File::open(path).with_context(|| format!("cannot open {name}"))?;
        }
    }
    Ok(inputs.to_vec())
}

/// Returns the total length of the inputs; `None` if one is not a regular file.
pub fn total_len(inputs: &[PathBuf]) -> Option<u64> {
    inputs
        .iter()
        .try_fold(0, |total: u64, path| regular(path).map(|metadata| total.saturating_add(metadata.len())))
}

/// Returns whether opening or reading an input may wait for another process.
pub fn may_wait(path: &Path) -> bool {
    regular(path).is_none()
}

/// Returns the metadata of an input if it is a regular file.
fn regular(path: &Path) -> Option<Metadata> {
    let metadata = if is_stdin(path) {
        File::from(io::stdin().as_fd().try_clone_to_owned().ok()?).metadata()
    } else {
        fs::metadata(path)
    };
    metadata.ok().filter(Metadata::is_file)
}

/// Fails if the output is one of the inputs, by whatever name.
pub fn check_not_output(inputs: &[PathBuf], output: &Path) -> Result<()> {
    match fs::metadata(output) {
        Ok(output) => check_not(inputs, &output, "write the filter to another file"),
        Err(_) => Ok(()),
    }
}

/// Returns whether standard output is a regular file.
pub fn stdout_is_file() -> bool {
    stdout().is_some_and(|stdout| stdout.is_file())
}

fn stdout() -> Option<Metadata> {
    File::from(io::stdout().as_fd().try_clone_to_owned().ok()?).metadata().ok()
}

/// Returns whether a file, whose inode is known, is the one that standard output goes to.
pub fn is_output_file(path: impl FnOnce() -> PathBuf, inode: u64) -> bool {
    // Looked up once: this is called for each of many files, and standard output is rarely a file.
    static STDOUT: OnceLock<Option<(u64, u64)>> = OnceLock::new();
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let stdout = STDOUT.get_or_init(|| stdout().filter(Metadata::is_file).map(identity));
    // Look at the file itself only if the inode matches.
    stdout.is_some_and(|(_, of_stdout)| of_stdout == inode)
        && fs::metadata(path()).ok().map(identity) == *stdout
}

/// Fails if standard output is one of the inputs, which would then never end.
pub fn check_not_stdout(inputs: &[PathBuf]) -> Result<()> {
    match stdout() {
        Some(stdout) => check_not(inputs, &stdout, "redirect the output to another file"),
        None => Ok(()),
    }
}

fn check_not(inputs: &[PathBuf], output: &Metadata, instead: &str) -> Result<()> {
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    let same = |input: &&PathBuf| regular(input).is_some_and(|input| identity(&input) == identity(output));
    // Standard input is read if no file is named.
    let stdin = [PathBuf::from("-")];
    let inputs = if inputs.is_empty() { &stdin } else { inputs };
    match inputs.iter().find(same) {
        Some(input) if output.is_file() => {
            bail!("{} is both an input and the output: {instead}", name(input))
        }
        _ => Ok(()),
    }
}
