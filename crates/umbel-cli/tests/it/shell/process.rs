//! Processes that end with the test, and their results.

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

/// Time limit of a process. One that takes longer is killed, and the test fails.
pub const PROCESS_TIMEOUT: Duration = Duration::from_secs(120);

/// A process that never outlives the test.
pub struct Process {
    child: Child,
    /// Bytes that were read after the last line returned.
    unread: Vec<u8>,
}

impl Process {
    #[track_caller]
    pub fn start(command: &mut Command) -> Process {
        let start = Instant::now();
        let child = loop {
            match command.spawn() {
                Ok(child) => break child,
                // The program was just copied, and a child process that another thread is starting
                // may still have it open for writing.
                Err(error)
                    if error.kind() == ErrorKind::ExecutableFileBusy && start.elapsed() < PROCESS_TIMEOUT =>
                {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(error) => panic!("cannot start {command:?}: {error}"),
            }
        };
        Process { child, unread: Vec::new() }
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Takes the pipe to standard input, which is closed when it is dropped.
    #[track_caller]
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("a pipe to standard input")
    }

    /// Writes to standard input and leaves it open.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.child.stdin.as_mut().expect("a pipe to standard input");
        stdin.write_all(bytes.as_ref()).expect("a process that reads");
    }

    /// Returns the next line of standard output, if it arrives within the time limit.
    #[track_caller]
    pub fn next_line(&mut self, timeout: Duration) -> Option<Vec<u8>> {
        let stdout = self.child.stdout.as_mut().expect("a pipe from standard output");
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                return Some(self.unread.drain(..=end).collect());
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
            self.unread.extend_from_slice(&bytes[..count]);
        }
    }

    /// Writes to standard input while the process runs, until it is closed, and waits for the end.
    #[track_caller]
    pub fn feed(mut self, write: impl FnOnce(ChildStdin) -> io::Result<()> + Send) -> Answer {
        let stdin = self.stdin();
        thread::scope(|scope| {
            scope.spawn(move || match write(stdin) {
                // A process may end without reading everything, such as `check -q` or one with
                // invalid arguments.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                result => result.expect("a pipe that can be written to"),
            });
            self.finish()
        })
    }

    /// Closes standard input, waits for the end, and returns the output, except for lines already
    /// returned.
    #[track_caller]
    pub fn finish(mut self) -> Answer {
        drop(self.child.stdin.take());
        let printed = drain(self.child.stdout.take(), std::mem::take(&mut self.unread));
        let said = drain(self.child.stderr.take(), Vec::new());
        let both = printed
            .recv_timeout(PROCESS_TIMEOUT)
            .and_then(|out| Ok((out, said.recv_timeout(PROCESS_TIMEOUT)?)));
        let Ok((stdout, stderr)) = both else {
            let _ = self.child.kill();
            let said = said.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
            panic!(
                "still running after {PROCESS_TIMEOUT:?}, having said: {}",
                String::from_utf8_lossy(&said)
            );
        };
        let stderr = String::from_utf8(stderr).expect("messages are text");
        let status = self.child.wait().expect("a process of our own");
        Answer { code: status.code(), signal: status.signal(), stdout, stderr }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a pipe to its end, if there is one, in a separate thread.
fn drain(pipe: Option<impl Read + Send + 'static>, mut bytes: Vec<u8>) -> Receiver<Vec<u8>> {
    let (sender, output) = channel();
    thread::spawn(move || {
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        }
        // The receiver is gone only if the test has failed.
        let _ = sender.send(bytes);
    });
    output
}

/// The result of a process.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    /// The signal that ended the process, if any.
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Answer {
    /// Asserts success without any message.
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

    /// Asserts that the command failed with one sentence that contains all of these parts, and
    /// printed nothing.
    #[track_caller]
    pub fn refused(&self, says: &[&str]) {
        self.failed(says);
        assert_eq!(String::from_utf8_lossy(&self.stdout), "", "{}", self.stderr);
    }

    /// Asserts that the command failed with one sentence that contains all of these parts.
    #[track_caller]
    pub fn failed(&self, says: &[&str]) {
        let said = &self.stderr;
        assert_eq!(self.code, Some(2), "{said}");
        for unwanted in ["panicked", "RUST_BACKTRACE", "Error:", "\u{1b}"] {
            assert!(!said.contains(unwanted), "{unwanted}: {said:?}");
        }
        let mut lines = said.lines();
        let first = lines.next().unwrap_or_default();
        // After its first sentence, clap prints only usage and advice.
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

    /// Returns standard output as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        str::from_utf8(&self.stdout).expect("text on standard output")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }
}

/// Opens a terminal: the user's end and the program's end.
pub fn terminal() -> (File, File) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&user).and_then(|()| unlockpt(&user)).expect("a terminal of our own");
    let name = ptsname(&user, Vec::new()).expect("a terminal with a name");
    // NOCTTY, so that it does not become the controlling terminal of the test.
    let program = open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the other end");
    (user.into(), program.into())
}

/// Runs with a terminal as standard output and standard error, both of which are returned as
/// output, and as standard input unless another is given.
pub fn on_terminal(mut command: Command, stdin: Option<Stdio>) -> Answer {
    let (mut user, program) = terminal();
    let other = || Stdio::from(program.try_clone().expect("another of the same"));
    command.stdin(stdin.unwrap_or_else(other)).stdout(other()).stderr(other());
    let process = Process::start(&mut command);
    // Only the process may hold the other end, or the reader would wait for ever.
    drop((command, program));
    let mut stdout = Vec::new();
    // A terminal whose last writer has closed it reports an error instead of the end.
    let _ = user.read_to_end(&mut stdout);
    Answer { stdout, ..process.finish() }
}
