//! Processes that end with the test, and what came of them.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A process that takes longer hangs: it is ended, and the test fails.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A process that does not outlive the test, however that ends.
pub struct Process {
    child: Child,
    /// What was read beyond the last line that was heard.
    heard: Vec<u8>,
}

impl Process {
    #[track_caller]
    pub fn start(command: &mut Command) -> Process {
        let start = Instant::now();
        let child = loop {
            match command.spawn() {
                Ok(child) => break child,
                // Copied just now: a process that another thread is about to start may still have it open for writing.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && start.elapsed() < PATIENCE => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(error) => panic!("cannot start {command:?}: {error}"),
            }
        };
        Process { child, heard: Vec::new() }
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The pipe to standard input, which is closed by whoever takes it.
    #[track_caller]
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("a pipe to standard input")
    }

    /// Writes to a standard input that stays open.
    #[track_caller]
    pub fn say(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.child.stdin.as_mut().expect("a pipe to standard input");
        stdin.write_all(bytes.as_ref()).expect("a process that reads");
    }

    /// The next line that is printed, if that is soon.
    #[track_caller]
    pub fn hear(&mut self, patience: Duration) -> Option<Vec<u8>> {
        let stdout = self.child.stdout.as_mut().expect("a pipe from standard output");
        let deadline = Instant::now() + patience;
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                return Some(self.heard.drain(..=end).collect());
            }
            let rest = deadline.saturating_duration_since(Instant::now());
            let rest = Timespec::try_from(rest).expect("a short time");
            let mut ready = [PollFd::new(stdout, PollFlags::IN)];
            let mut bytes = [0; 1 << 16];
            let count = match poll(&mut ready, Some(&rest)).expect("a pipe can be waited for") {
                0 => 0,
                _ => stdout.read(&mut bytes).expect("a pipe can be read"),
            };
            if count == 0 {
                return None;
            }
            self.heard.extend_from_slice(&bytes[..count]);
        }
    }

    /// Writes to standard input while the process runs, until nobody reads if need be, and waits for the end.
    #[track_caller]
    pub fn feed(mut self, write: impl FnOnce(ChildStdin) -> io::Result<()> + Send) -> Answer {
        let stdin = self.stdin();
        thread::scope(|scope| {
            scope.spawn(move || match write(stdin) {
                // A process may end without having read everything: `check -q`, and whatever refuses its arguments.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                result => result.expect("a pipe that can be written to"),
            });
            self.finish()
        })
    }

    /// Closes standard input and waits for the end: what was printed and said, but for the lines that were heard.
    #[track_caller]
    pub fn finish(mut self) -> Answer {
        drop(self.child.stdin.take());
        let printed = drain(self.child.stdout.take(), std::mem::take(&mut self.heard));
        let said = drain(self.child.stderr.take(), Vec::new());
        let both = printed.recv_timeout(PATIENCE).and_then(|out| Ok((out, said.recv_timeout(PATIENCE)?)));
        let Ok((stdout, stderr)) = both else {
            let _ = self.child.kill();
            let said = said.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
            panic!("still running after {PATIENCE:?}, having said: {}", String::from_utf8_lossy(&said));
        };
        let stderr = String::from_utf8(stderr).expect("messages are text");
        let status = self.child.wait().expect("a process of our own");
        Answer { code: status.code(), signal: status.signal(), stdout, stderr }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a pipe to its end, if there is one, in a thread of its own.
fn drain(pipe: Option<impl Read + Send + 'static>, mut bytes: Vec<u8>) -> Receiver<Vec<u8>> {
    let (sender, output) = channel();
    thread::spawn(move || {
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        }
        // The other end is gone only when the test has failed.
        let _ = sender.send(bytes);
    });
    output
}

/// What came of a run.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    /// What ended it, if it did not end by itself.
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Answer {
    /// Nothing went wrong, and there was nothing to say about it.
    #[track_caller]
    pub fn ok(self) -> Answer {
        assert_eq!((self.code, &self.stderr[..]), (Some(0), ""), "{:?}", self.signal);
        self
    }

    #[track_caller]
    pub fn code(self, code: i32) -> Answer {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        self
    }

    /// It was refused in one sentence, which has all of this in it; and nothing was printed.
    #[track_caller]
    pub fn refused(&self, says: &[&str]) {
        self.failed(says);
        assert_eq!(String::from_utf8_lossy(&self.stdout), "", "{}", self.stderr);
    }

    /// It failed with one sentence, which has all of this in it.
    #[track_caller]
    pub fn failed(&self, says: &[&str]) {
        let said = &self.stderr;
        assert_eq!(self.code, Some(2), "{said}");
        for unwanted in ["panicked", "RUST_BACKTRACE", "Error:", "\u{1b}"] {
            assert!(!said.contains(unwanted), "{unwanted}: {said:?}");
        }
        let mut lines = said.lines();
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
        assert!(well_said && said.ends_with('\n'), "not one sentence: {said:?}");
        for part in says {
            assert!(said.contains(part), "{said:?} does not say {part:?}");
        }
    }

    /// What was printed, as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        str::from_utf8(&self.stdout).expect("text on standard output")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }
}

/// A terminal: the end at which someone would sit, and the end for the program.
pub fn terminal() -> (File, File) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&user).and_then(|()| unlockpt(&user)).expect("a terminal of our own");
    let name = ptsname(&user, Vec::new()).expect("a terminal with a name");
    // Not to become the terminal that controls this test.
    let program = open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the other end");
    (user.into(), program.into())
}

/// Runs with a terminal as standard output and standard error, where all is printed, and as standard input if there is
/// no other.
pub fn on_terminal(mut command: Command, stdin: Option<Stdio>) -> Answer {
    let (mut user, program) = terminal();
    let other = || Stdio::from(program.try_clone().expect("another of the same"));
    command.stdin(stdin.unwrap_or_else(other)).stdout(other()).stderr(other());
    let process = Process::start(&mut command);
    // Nothing but the process may hold the other end, or the reader would wait for ever.
    drop((command, program));
    let mut stdout = Vec::new();
    // When the last one closes its end, a terminal reports an error instead of the end.
    let _ = user.read_to_end(&mut stdout);
    Answer { stdout, ..process.finish() }
}
