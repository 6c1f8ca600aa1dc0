//! The real binary in a folder of its own: arguments and bytes in, exit code and bytes out.

// Every test file takes a part of this.
#![allow(dead_code)]

use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use umbel::KeyRing;
use umbel::file::{self, Loaded};

/// A process that takes longer hangs: it is ended, and the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder in which umbel runs, gone with this value. Files go by names relative to it.
pub struct Shell {
    folder: TempDir,
}

/// What came of a run.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
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

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Takes a file away from everybody but its owner.
    pub fn private(&self, name: &str) {
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o600)).expect("a file of our own");
    }

    /// A filter as the library reads it: the oracle for what its bits say.
    pub fn load(&self, name: &str) -> Loaded {
        file::load(self.path(name), &KeyRing::new()).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// umbel with these arguments, neither started nor connected. What the caller's environment says about colours and
    /// temporary files stays outside.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_umbel"));
        command.args(args).current_dir(self.folder.path());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs without input.
    pub fn run(&self, args: &[&str]) -> Answer {
        self.pipe(args, b"")
    }

    /// Runs with these bytes from a pipe.
    pub fn pipe(&self, args: &[&str], stdin: impl AsRef<[u8]>) -> Answer {
        let stdin = stdin.as_ref();
        finish(self.command(args), |mut pipe| pipe.write_all(stdin))
    }

    /// Runs with whatever `feed` writes to a pipe; it may go on for ever, until nobody reads.
    pub fn feed(&self, args: &[&str], feed: impl FnOnce(ChildStdin) -> std::io::Result<()> + Send) -> Answer {
        finish(self.command(args), feed)
    }

    /// Runs with a file as standard input, as `<` of a shell.
    pub fn redirect(&self, args: &[&str], name: &str) -> Answer {
        let mut command = self.command(args);
        command.stdin(File::open(self.path(name)).expect("an input"));
        collect(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("umbel"))
    }

    /// Builds a filter from lines.
    pub fn build(&self, name: &str, args: &[&str], lines: impl AsRef<[u8]>) {
        self.pipe(&[&["build", "-o", name], args].concat(), lines).ok();
    }

    /// The facts that `info` tells of a filter.
    pub fn info(&self, name: &str) -> Value {
        self.run(&["info", "--json", name]).ok().json()
    }

    /// Starts a conversation.
    pub fn talk(&self, args: &[&str]) -> Talk {
        Talk::start(self.command(args))
    }
}

/// Starts a command, writes to it from a thread of its own, and waits for its end.
pub fn finish(mut command: Command, feed: impl FnOnce(ChildStdin) -> std::io::Result<()> + Send) -> Answer {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("umbel");
    let stdin = child.stdin.take().expect("a pipe");
    thread::scope(|scope| {
        scope.spawn(move || match feed(stdin) {
            // A process may end without having read everything: `check -q`, and whatever refuses its arguments.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            result => result.expect("a pipe that can be written to"),
        });
        collect(child)
    })
}

/// Waits for the end; a process that hangs is ended.
fn collect(mut child: Child) -> Answer {
    let (sender, outputs) = channel();
    let drain = |mut pipe: Box<dyn Read + Send>| {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = pipe.read_to_end(&mut bytes);
            let _ = sender.send(());
            read.map(|_| bytes).expect("a pipe that can be read")
        })
    };
    let stdout = drain(Box::new(child.stdout.take().expect("a pipe")));
    let stderr = drain(Box::new(child.stderr.take().expect("a pipe")));
    let ended = (0..2).all(|_| outputs.recv_timeout(PATIENCE).is_ok());
    if !ended {
        child.kill().expect("a process of our own");
    }
    let code = child.wait().expect("a process of our own").code();
    let [stdout, stderr] = [stdout, stderr].map(|thread| thread.join().expect("a thread that only reads"));
    let stderr = String::from_utf8(stderr).expect("messages are text");
    assert!(ended, "still running after {PATIENCE:?}, having said: {stderr}");
    Answer { code, stdout, stderr }
}

impl Answer {
    /// Nothing went wrong, and there was nothing to say about it.
    #[track_caller]
    pub fn ok(self) -> Answer {
        assert_eq!((self.code, &self.stderr[..]), (Some(0), ""));
        self
    }

    #[track_caller]
    pub fn code(self, code: i32) -> Answer {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        self
    }

    /// The exit code is 2, and standard error says this.
    #[track_caller]
    pub fn refused(self, reason: &str) {
        assert_eq!(self.code, Some(2), "{}", self.stderr);
        assert!(self.stderr.contains(reason), "{:?} does not say {reason:?}", self.stderr);
    }

    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("text")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }
}

/// A run whose standard input stays open between lines.
pub struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
}

impl Talk {
    pub fn start(mut command: Command) -> Talk {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("umbel");
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match stdout.read_until(b'\n', &mut line) {
                    Ok(1..) if sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        Talk { child, stdin, lines }
    }

    pub fn say(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.stdin();
        stdin.write_all(bytes.as_ref()).and_then(|()| stdin.flush()).expect("a process that reads");
    }

    pub fn stdin(&mut self) -> &mut ChildStdin {
        self.stdin.as_mut().expect("an open pipe")
    }

    pub fn child(&self) -> &Child {
        &self.child
    }

    /// The next line that is printed, if that is soon.
    pub fn hear(&self, patience: Duration) -> Option<Vec<u8>> {
        self.lines.recv_timeout(patience).ok()
    }

    /// Closes the input; the lines that are still printed, and the exit code.
    pub fn end(mut self) -> (Vec<Vec<u8>>, Option<i32>) {
        drop(self.stdin.take());
        let mut rest = Vec::new();
        while let Some(line) = self.hear(PATIENCE) {
            rest.push(line);
        }
        (rest, self.child.wait().expect("a process of our own").code())
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // A failed test leaves nothing running either.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A bijection of the 64-bit numbers that has nothing in common with the hashes of the library.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 27).wrapping_mul(0x3c79_ac49_2ba7_b653);
    let x = (x ^ x >> 33).wrapping_mul(0x1c69_b3f7_4ac4_ae35);
    x ^ x >> 27
}

/// Line `number` of a family: different for different numbers below 2^40 and different families, of 1 to 40 bytes, so
/// that the borders of blocks fall anywhere.
pub fn line(family: u64, number: u64) -> Vec<u8> {
    let dots = (mix(number) % 24) as usize;
    format!("{:x}{:.<dots$}", mix(family << 40 | number), "").into_bytes()
}

/// Lines `0..count` of a family, with their ends.
pub fn lines(family: u64, count: u64) -> Vec<u8> {
    text(&(0..count).map(|number| line(family, number)).collect::<Vec<_>>())
}

/// Every line with its end.
pub fn text(lines: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.as_ref().len() + 1).sum());
    for line in lines {
        text.extend_from_slice(line.as_ref());
        text.push(b'\n');
    }
    text
}

/// The lines of a text whose last line has its end.
#[track_caller]
pub fn split(text: &[u8]) -> Vec<&[u8]> {
    let Some(text) = text.strip_suffix(b"\n") else {
        assert!(text.is_empty(), "the last line has no end");
        return Vec::new();
    };
    text.split(|byte| *byte == b'\n').collect()
}

/// The lines without their repetitions, by the naive way.
pub fn firsts<'a>(lines: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut seen = HashSet::new();
    lines.iter().copied().filter(|line| seen.insert(*line)).collect()
}
