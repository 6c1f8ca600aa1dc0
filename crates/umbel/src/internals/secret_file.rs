//! Reads files with secrets, which may be pipes, as in `--key-file <(pass show key)`, but not for
//! ever: a pipe has to bring its secret in time.

use super::regular_file::{is_a_directory, open_without_waiting};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time limit for a process to open a named pipe for writing.
const WRITER_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for all of a secret to come through a pipe, if for instance its writer prompts for
/// a passphrase.
const SECRET_TIMEOUT: Duration = Duration::from_secs(60);

/// An open file with a secret. Callers limit the number of bytes that they read.
#[derive(Debug)]
pub struct SecretFile {
    file: File,
    metadata: Metadata,
    opened: Instant,
    /// Whether there is or was a process at the other end of a pipe.
    has_writer: bool,
}

impl SecretFile {
    /// Opens a file or a pipe.
    ///
    /// # Errors
    ///
    /// Returns the system's error. That the path leads to a directory is an error of reading.
    pub fn open(path: &Path) -> io::Result<SecretFile> {
        let file = open_without_waiting(OpenOptions::new().read(true), path)?;
        let metadata = file.metadata()?;
        let has_writer = !metadata.file_type().is_fifo();
        Ok(SecretFile { file, metadata, opened: Instant::now(), has_writer })
    }

    /// Returns the metadata of the open file.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Waits until the pipe has data or was closed by its writer, which it returns. Fails after this
    /// time.
    fn wait(&self, limit: Duration, problem: &str) -> io::Result<bool> {
        loop {
            let left = limit.saturating_sub(self.opened.elapsed());
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(0) => {
                    let limit = limit.as_secs();
                    let message = format!("it is a pipe, and {problem} within {limit} seconds");
                    return Err(io::Error::new(ErrorKind::TimedOut, message));
                }
                Ok(_) => return Ok(polled[0].revents().contains(PollFlags::HUP)),
            }
        }
    }
}

impl Read for SecretFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.metadata.is_dir() {
            return Err(is_a_directory());
        }
        loop {
            match self.file.read(buffer) {
                // Nobody has opened the pipe for writing, or its writer has closed it.
                Ok(0) if !self.has_writer => {
                    self.has_writer = true;
                    if self.wait(WRITER_TIMEOUT, "no process has opened it for writing")? {
                        return Ok(0);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.has_writer = true;
                    self.wait(SECRET_TIMEOUT, "no secret has come through it")?;
                }
                Ok(count) => {
                    self.has_writer |= count > 0;
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::io::Write;
    use std::thread;

    fn pipe() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RWXU).unwrap();
        (folder, path)
    }

    fn read(path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        SecretFile::open(path)?.take(100).read_to_end(&mut bytes).map(|_| bytes)
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_an_error() {
        let (_folder, path) = pipe();
        let error = read(&path).unwrap_err();
        assert!(error.to_string().contains("no process has opened it for writing"), "{error}");
    }

    #[test]
    fn a_writer_may_come_late_and_write_in_pieces() {
        let (_folder, path) = pipe();
        let writer = path.clone();
        let writer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            let mut file = File::options().write(true).open(writer).unwrap();
            for piece in ["one ", "two ", "three"] {
                thread::sleep(Duration::from_millis(50));
                file.write_all(piece.as_bytes()).unwrap();
            }
        });
        assert_eq!(read(&path).unwrap(), b"one two three");
        writer.join().unwrap();
    }

    #[test]
    fn an_anonymous_pipe_is_read_to_its_end() {
        let (from, mut to) = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&from));
        if !Path::new(&path).exists() {
            eprintln!("skipped: there is no /proc");
            return;
        }
        to.write_all(b"a secret").unwrap();
        drop(to);
        assert_eq!(read(Path::new(&path)).unwrap(), b"a secret");
        assert_eq!(read(Path::new(&path)).unwrap(), b"", "the writer is gone");
    }

    #[test]
    fn no_more_is_read_than_the_caller_takes() {
        assert_eq!(read(Path::new("/dev/zero")).unwrap(), [0; 100]);
        let error = read(Path::new("/")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
    }
}
