//! The real program, run in a folder of its own: what it says, what it prints, what it leaves behind.

// Every test file takes a part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// A program that has not ended by then hangs.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What a run of the program came to.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Outcome {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// What was printed, as text.
    pub fn text(&self) -> &str {
        str::from_utf8(&self.stdout).expect("text on standard output")
    }

    /// It went well, and there was nothing to say.
    #[track_caller]
    pub fn quiet(self) -> Outcome {
        assert_eq!((self.code(), &self.stderr[..]), (Some(0), ""), "{self:?}");
        self
    }

    /// It was refused in one sentence, which has all of this in it; and nothing was printed.
    #[track_caller]
    pub fn refused(&self, says: &[&str]) {
        self.failed(says);
        assert!(self.stdout.is_empty(), "{self:?}");
    }

    /// It failed with one sentence, which has all of this in it.
    #[track_caller]
    pub fn failed(&self, says: &[&str]) {
        assert_eq!(self.code(), Some(2), "{self:?}");
        for unwanted in ["panicked", "RUST_BACKTRACE", "Error:", "\u{1b}"] {
            assert!(!self.stderr.contains(unwanted), "{unwanted}: {self:?}");
        }
        let mut lines = self.stderr.lines();
        let first = lines.next().unwrap_or_default();
        // Below the sentence of clap there is only how to go on.
        let goes_on = |line: &str| {
            ["Usage: ", "For more information, try ", "  "].iter().any(|start| line.starts_with(start))
        };
        let well_said = if first.starts_with("error: ") {
            lines.all(|line| line.is_empty() || goes_on(line))
        } else {
            first.starts_with("umbel: ") && lines.next().is_none()
        };
        assert!(well_said && self.stderr.ends_with('\n'), "not one sentence: {self:?}");
        for part in says {
            assert!(self.stderr.contains(part), "does not say {part:?}: {self:?}");
        }
    }
}

/// The program, as a shell script would start it: nothing to read, and no colours.
pub fn umbel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_umbel"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that does not outlive the test, however that ends.
pub struct Process(Child);

impl Process {
    pub fn start(command: &mut Command) -> Process {
        Process(command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")))
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    pub fn stdin(&mut self) -> ChildStdin {
        self.0.stdin.take().expect("a pipe to standard input")
    }

    /// Waits for the end, and takes what was printed and said until then.
    #[track_caller]
    pub fn finish(mut self) -> Outcome {
        let (sender, ended) = channel();
        let drain = |pipe: Option<Box<dyn Read + Send>>| {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut pipe) = pipe {
                    pipe.read_to_end(&mut bytes).expect("a pipe can be read");
                }
                // The other end is gone only when the test has failed.
                let _ = sender.send(());
                bytes
            })
        };
        let stdout = drain(self.0.stdout.take().map(|pipe| Box::new(pipe) as _));
        let stderr = drain(self.0.stderr.take().map(|pipe| Box::new(pipe) as _));
        for _ in [&stdout, &stderr] {
            assert!(ended.recv_timeout(PATIENCE).is_ok(), "the program hangs");
        }
        let [stdout, stderr] = [stdout, stderr].map(|pipe| pipe.join().expect("pipes are read"));
        let stderr = String::from_utf8(stderr).expect("text on standard error");
        Outcome { status: self.0.wait().expect("it can be waited for"), stdout, stderr }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the program to its end, with something to read.
#[track_caller]
pub fn run(command: &mut Command, input: impl Into<Vec<u8>>) -> Outcome {
    let mut process = Process::start(command.stdin(Stdio::piped()));
    let (mut stdin, input) = (process.stdin(), input.into());
    // Whoever ends before having read everything has its reasons.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let outcome = process.finish();
    writer.join().expect("the input is written");
    outcome
}

/// A folder for one test.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.join(name), bytes).expect("a file in the temporary folder");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The program in this folder, with arguments that have no spaces in them.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = umbel();
        command.current_dir(self.path()).args(arguments.split_whitespace());
        command
    }

    #[track_caller]
    pub fn umbel(&self, arguments: &str) -> Outcome {
        Process::start(&mut self.command(arguments)).finish()
    }

    #[track_caller]
    pub fn umbel_with(&self, arguments: &str, input: impl Into<Vec<u8>>) -> Outcome {
        run(&mut self.command(arguments), input)
    }

    /// Everything in the folder, by name: contents of files, targets of links, and what else is there.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        contents(self.path())
    }

    pub fn names(&self) -> Vec<String> {
        self.contents().into_keys().collect()
    }
}

/// Everything in a folder, by name.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("a folder can be listed");
        let (path, kind) = (entry.path(), entry.file_type().expect("it has a type"));
        let bytes = if kind.is_symlink() {
            fs::read_link(&path).expect("a link has a target").as_os_str().as_bytes().to_vec()
        } else if kind.is_file() {
            // What may not be read did not change either, as far as anyone can tell.
            fs::read(&path).unwrap_or_default()
        } else {
            format!("{kind:?}").into_bytes()
        };
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    };
    fs::read_dir(folder).expect("a folder can be listed").map(entry).collect()
}

/// Lines with the numbers of a range.
pub fn lines(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|number| format!("{number}\n")).collect()
}

/// How a process ended that was ended by a signal.
pub fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}
