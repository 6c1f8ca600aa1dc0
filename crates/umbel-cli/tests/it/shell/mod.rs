//! The real binary in a folder of its own: arguments and bytes in, exit code and bytes out.

mod process;

use flate2::{Compression, write::GzEncoder};
pub use process::{Answer, PROCESS_TIMEOUT, Process, on_terminal, terminal};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::{ffi::OsStrExt, fs::PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use umbel::any::Stored;
use umbel::file::{self, Loaded};
use umbel::hash::KeyRing;

/// The path of the program.
pub const UMBEL: &str = env!("CARGO_BIN_EXE_umbel");

/// Arguments: a list, or a line if none of them contains a space.
pub trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<&str> {
        self[..].words()
    }
}

impl Words for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Words for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Words for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

/// Returns all memory of a filter.
pub fn cells(filter: &Stored) -> Vec<u64> {
    filter.sections().iter().flat_map(|words| words.words()).copied().collect()
}

/// A temporary folder in which umbel runs. File names are relative to it.
pub struct Shell {
    folder: TempDir,
}

impl Shell {
    pub fn new() -> Shell {
        Shell { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("a file in the temporary folder");
    }

    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Sets the permissions of a file or folder.
    pub fn allow(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(mode)).expect("a file of our own");
    }

    /// Returns the entries of a folder by name: contents of files, targets of links, and the types
    /// of others.
    pub fn contents(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.expect("a folder can be listed");
            let (path, kind) = (entry.path(), entry.file_type().expect("it has a type"));
            let bytes = if kind.is_symlink() {
                fs::read_link(&path).expect("a link has a target").as_os_str().as_bytes().to_vec()
            } else if kind.is_file() {
                // A file without read permission counts as empty.
                fs::read(&path).unwrap_or_default()
            } else {
                format!("{kind:?}").into_bytes()
            };
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        };
        fs::read_dir(self.path(folder)).expect("a folder can be listed").map(entry).collect()
    }

    pub fn names(&self, folder: &str) -> Vec<String> {
        self.contents(folder).into_keys().collect()
    }

    /// Loads a filter with the library, as the oracle for its bits.
    #[track_caller]
    pub fn load(&self, name: &str) -> Loaded {
        file::load(self.path(name), &KeyRing::new()).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns a program in this folder with three pipes, and without environment variables for
    /// colours and backtraces.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "CI", "RUST_BACKTRACE"] {
            command.env_remove(name);
        }
        command
    }

    /// Returns umbel with these arguments, not yet started.
    pub fn command(&self, args: &(impl Words + ?Sized)) -> Command {
        let mut command = self.program(UMBEL);
        command.args(args.words());
        command
    }

    /// Returns `sh` with a script, not yet started, and with `umbel` on its path.
    pub fn script(&self, script: &str) -> Command {
        let umbel = Path::new(UMBEL).parent().expect("a folder");
        let path = format!("{}:{}", umbel.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = self.program("sh");
        command.args(["-c", script]).env("PATH", path).env("LC_ALL", "C.UTF-8");
        command
    }

    /// Starts umbel for a dialogue.
    #[track_caller]
    pub fn start(&self, args: &(impl Words + ?Sized)) -> Process {
        Process::start(&mut self.command(args))
    }

    /// Runs without input.
    #[track_caller]
    pub fn run(&self, args: &(impl Words + ?Sized)) -> Answer {
        self.start(args).finish()
    }

    /// Runs with these bytes from a pipe.
    #[track_caller]
    pub fn pipe(&self, args: &(impl Words + ?Sized), bytes: impl AsRef<[u8]>) -> Answer {
        let bytes = bytes.as_ref();
        self.start(args).feed(|mut stdin| stdin.write_all(bytes))
    }

    /// Runs with a file as standard input, as `<` of a shell.
    #[track_caller]
    pub fn redirect(&self, args: &(impl Words + ?Sized), name: &str) -> Answer {
        let input = File::open(self.path(name)).expect("an input");
        Process::start(self.command(args).stdin(input)).finish()
    }

    /// Builds a filter from lines.
    #[track_caller]
    pub fn build(&self, name: &str, args: &(impl Words + ?Sized), lines: impl AsRef<[u8]>) {
        self.pipe(&[&["build", "-o", name][..], &args.words()].concat(), lines).ok();
    }

    /// Returns the JSON of `info`.
    #[track_caller]
    pub fn info(&self, name: &str) -> Value {
        self.run(&["info", "--json", name]).ok().json()
    }
}

/// Returns a number in a JSON report.
#[track_caller]
pub fn number(facts: &Value, name: &str) -> f64 {
    facts[name].as_f64().unwrap_or_else(|| panic!("{name} in {facts}"))
}

/// Compresses bytes into a gzip member, of which a file may have many.
pub fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes.as_ref()).and_then(|()| encoder.finish()).expect("memory can be written to")
}

/// A bijection of 64-bit numbers that is unrelated to the hashes of the library.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 27).wrapping_mul(0x3c79_ac49_2ba7_b653);
    let x = (x ^ x >> 33).wrapping_mul(0x1c69_b3f7_4ac4_ae35);
    x ^ x >> 27
}

/// Returns line `number` of a family, of 1 to 40 bytes, so that block boundaries fall anywhere.
/// Lines differ for different numbers below 2^40 and different families.
pub fn line(family: u64, number: u64) -> Vec<u8> {
    let dots = (mix(number) % 24) as usize;
    format!("{:x}{:.<dots$}", mix(family << 40 | number), "").into_bytes()
}

/// Returns lines of a family, with their newlines.
pub fn lines(family: u64, numbers: Range<u64>) -> Vec<u8> {
    text(&numbers.map(|number| line(family, number)).collect::<Vec<_>>())
}

/// Writes many distinct short lines, generated on the fly.
pub fn write_lines(to: impl Write, count: u64) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 16, to);
    (0..count).try_for_each(|number| writeln!(to, "{number:x}")).and_then(|()| to.flush())
}

/// Joins lines, each with its newline.
pub fn text(lines: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.as_ref().len() + 1).sum());
    for line in lines {
        text.extend_from_slice(line.as_ref());
        text.push(b'\n');
    }
    text
}

/// Splits a text whose last line has its newline.
#[track_caller]
pub fn split(text: &[u8]) -> Vec<&[u8]> {
    let Some(text) = text.strip_suffix(b"\n") else {
        assert!(text.is_empty(), "the last line has no end");
        return Vec::new();
    };
    text.split(|byte| *byte == b'\n').collect()
}

/// Returns the first occurrence of each line, naively.
pub fn first_occurrences<'a>(lines: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut seen = HashSet::new();
    lines.iter().copied().filter(|line| seen.insert(*line)).collect()
}
