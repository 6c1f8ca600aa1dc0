//! One input at a time: opened, decompressed, and asked whether reading it would have to wait.

use crate::report::escaped;
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
use umbel_text::content::{Format, decoded, decompressed, format, start_of};

/// How long a read waits before it looks whether it is still wanted.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What standard input is called in messages.
const STDIN: &str = "standard input";

/// An input that is being read.
pub struct Source {
    reader: Box<dyn Read + Send>,
    /// For whatever may make a reader wait: not a regular file.
    slow: Option<OwnedFd>,
    stop: Arc<AtomicBool>,
    name: String,
}

impl Source {
    /// Opens a file, or standard input for `-`; `count` is told how many bytes were read, and after `stop` nothing is
    /// waited for.
    pub fn open(path: &Path, count: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Result<Source> {
        let name = name(path);
        let failed = || format!("cannot open {name}");
        let file = open_file(path).with_context(failed)?;
        let metadata = file.metadata().with_context(|| format!("cannot examine {name}"))?;
        check_readable(&name, &metadata)?;
        let slow = match metadata.is_file() {
            true => None,
            false => Some(file.as_fd().try_clone_to_owned().with_context(failed)?),
        };
        let mut file = Counted { file, slow: slow.is_some(), count, stop: Arc::clone(&stop) };
        let start = start_of(&mut file).with_context(|| format!("cannot read {name}"))?;
        let format = format(&start);
        let whole = Cursor::new(start).chain(file);
        check_lines(&name, format)?;
        let reader = decoded(format, whole).with_context(failed)?;
        let name = match format {
            Some(Format::Gzip) => format!("{name} (as gzip)"),
            Some(Format::Zstd) => format!("{name} (as zstd)"),
            _ => name,
        };
        Ok(Source { reader, slow, stop, name })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads what there is; nothing means the end, or that it should stop.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What a decoder misses then is not missing.
                Err(_) if self.stop.load(Relaxed) => return Ok(0),
                result => return result.with_context(|| format!("cannot read {}", self.name)),
            }
        }
    }

    /// Whether nobody wants more of it, so that what it has given is not all.
    pub fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Whether the next read would wait for someone to write.
    pub fn would_wait(&self) -> bool {
        self.slow.as_ref().is_some_and(|slow| !ready(slow, &Timespec::default()))
    }
}

/// Refuses what has no lines, as far as its first bytes tell.
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

/// Opens a list for whoever takes its lines apart, decompressed if need be, or standard input for `-`; `count` is told
/// how many bytes were read.
pub fn open_list(path: &Path, count: Arc<AtomicU64>) -> Result<impl Read + Send + use<>> {
    let name = name(path);
    let file = open_raw(path)?;
    let counted = Counted { file, slow: false, count, stop: Arc::default() };
    let (format, reader) = decompressed(counted).with_context(|| format!("cannot read {name}"))?;
    check_lines(&name, format)?;
    Ok(reader)
}

/// Opens a file of which the very bytes matter, or standard input for `-`.
pub fn open_raw(path: &Path) -> Result<File> {
    let name = name(path);
    let failed = || format!("cannot open {name}");
    let file = open_file(path).with_context(failed)?;
    check_readable(&name, &file.metadata().with_context(failed)?)?;
    Ok(file)
}

/// Opens a file that need not be text, or standard input for `-`. What is compressed with gzip or zstd is decompressed.
pub fn open_bytes(path: &Path) -> Result<impl Read + Send + use<>> {
    let file = open_raw(path)?;
    let (_, reader) = decompressed(file).with_context(|| format!("cannot read {}", name(path)))?;
    Ok(reader)
}

fn open_file(path: &Path) -> io::Result<File> {
    if is_stdin(path) { Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?)) } else { File::open(path) }
}

/// Whether there is something to read; also when that cannot be told.
fn ready(file: &impl AsFd, wait: &Timespec) -> bool {
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(wait)) != Ok(0)
}

/// A file that counts the bytes it gives, and waits for more only as long as they are wanted.
struct Counted {
    file: File,
    slow: bool,
    count: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Here, below the decoder: what that still holds does not wait for the file.
        while self.slow && !ready(&self.file, &PATIENCE) {
            if self.stop.load(Relaxed) {
                return Ok(0);
            }
        }
        let read = self.file.read(buffer)?;
        self.count.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}

/// Says so if what is to be asked and the lines were taken for each other; `usage` is the command up to the lines.
pub fn check_filter_first(usage: &str, filter: &Path, inputs: &[PathBuf]) -> Result<()> {
    if filter.exists() && !is_filter(filter) && inputs.iter().any(|input| is_filter(input)) {
        bail!("the filter comes first, then the lines: `umbel {usage} {}`", filter.display());
    }
    Ok(())
}

/// Whether a file is a filter, as far as its first bytes tell.
pub fn is_filter(path: &Path) -> bool {
    start_of_file(path).is_some_and(|start| matches!(format(&start), Some(Format::Filter)))
}

/// Whether a file can be read again, and is not compressed.
pub fn is_plain(path: &Path) -> bool {
    !is_stdin(path) && start_of_file(path).is_some_and(|start| format(&start).is_none())
}

/// How a regular file starts. Nothing else is opened: a pipe would wait for its writer.
fn start_of_file(path: &Path) -> Option<Vec<u8>> {
    let regular = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if regular { start_of(&mut File::open(path).ok()?).ok() } else { None }
}

pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What an input is called where people read it.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { STDIN.to_string() } else { escaped(path.as_os_str().as_bytes()) }
}

/// What an input is called where programs read it, as in JSON.
pub fn plain_name(path: &Path) -> String {
    if is_stdin(path) { STDIN.to_string() } else { path.display().to_string() }
}

fn check_readable(name: &str, metadata: &Metadata) -> Result<()> {
    if metadata.is_dir() {
        bail!("{name} is a directory: give the files in it, for instance {name}/*");
    }
    Ok(())
}

/// The inputs to read; refuses at once what can be seen to fail later, and a terminal on which nobody types.
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
        // Opening a pipe would wait for its writer, and take from it what is meant for the real reader.
        if metadata.is_file() {
            File::open(path).with_context(|| format!("cannot open {name}"))?;
        }
    }
    Ok(inputs.to_vec())
}

/// How many bytes there are to read; `None` if an input does not know its length.
pub fn total_len(inputs: &[PathBuf]) -> Option<u64> {
    inputs
        .iter()
        .try_fold(0, |total: u64, path| regular(path).map(|metadata| total.saturating_add(metadata.len())))
}

/// Whether opening an input, or reading its first byte, may take as long as someone else likes.
pub fn may_wait(path: &Path) -> bool {
    regular(path).is_none()
}

/// What is known of an input without opening it, if it is a regular file.
fn regular(path: &Path) -> Option<Metadata> {
    let metadata = if is_stdin(path) {
        File::from(io::stdin().as_fd().try_clone_to_owned().ok()?).metadata()
    } else {
        fs::metadata(path)
    };
    metadata.ok().filter(Metadata::is_file)
}

/// Refuses to write over a file that is to be read, by whatever name.
pub fn check_not_output(inputs: &[PathBuf], output: &Path) -> Result<()> {
    match fs::metadata(output) {
        Ok(output) => check_not(inputs, &output, "write the filter to another file"),
        Err(_) => Ok(()),
    }
}

/// Whether what is printed goes to a file, and not to a terminal or another program.
pub fn stdout_is_file() -> bool {
    stdout().is_some_and(|stdout| stdout.is_file())
}

fn stdout() -> Option<Metadata> {
    File::from(io::stdout().as_fd().try_clone_to_owned().ok()?).metadata().ok()
}

/// Whether a file, of which the inode is known, is the one that is printed to.
pub fn is_stdout(path: impl FnOnce() -> PathBuf, inode: u64) -> bool {
    // Asked once: it is asked for each of many files, and mostly no file is printed to.
    static STDOUT: OnceLock<Option<(u64, u64)>> = OnceLock::new();
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let stdout = STDOUT.get_or_init(|| stdout().filter(Metadata::is_file).map(identity));
    // The file itself is asked only if it can be.
    stdout.is_some_and(|(_, of_stdout)| of_stdout == inode)
        && fs::metadata(path()).ok().map(identity) == *stdout
}

/// Refuses to print into a file that is to be read: it would never end.
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
