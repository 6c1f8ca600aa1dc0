//! Signals: a handler only wakes a thread, which does the rest.
//!
//! When another process shortens a mapped file, touching the missing part raises SIGBUS, and a
//! message names the file before the program ends. SIGTERM and SIGINT can end the input instead of
//! the program, so that it can save its state.

use crate::terminal::exit::FAILED;
use crate::terminal::output;
use signal_hook::consts::{SIGBUS, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, pipe};
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Once};
use std::thread;
use umbel::internals::sync::lock;

/// The mapped files, with their original lengths.
static MAPPED: Mutex<Vec<(PathBuf, u64)>> = Mutex::new(Vec::new());
static WATCH_BUS_SIGNAL: Once = Once::new();

/// Registers a file that will be mapped; the first call installs the handler of SIGBUS.
pub fn watch_mapped(path: &Path) {
    let len = std::fs::metadata(path).map_or(0, |found| found.len());
    let mut mapped = lock(&MAPPED);
    // A file may be mapped again and again.
    mapped.retain(|(known, _)| known != path);
    mapped.push((path.to_owned(), len));
    drop(mapped);
    WATCH_BUS_SIGNAL.call_once(|| {
        let Ok((mut wake, signal)) = UnixStream::pair() else { return };
        umbel::memory::release_bus_signal();
        if pipe::register(SIGBUS, signal).is_err() {
            // Without the message, the signal still ends the program.
            return;
        }
        thread::spawn(move || {
            if wake.read(&mut [0]).is_ok() {
                let mapped = lock(&MAPPED);
                let now = |path: &Path| std::fs::metadata(path).map_or(0, |now| now.len());
                let shortened = mapped.iter().find(|(path, len)| now(path) < *len);
                output::error(shortened_message(shortened.map(|(path, _)| &**path)));
                std::process::exit(FAILED.into());
            }
        });
    });
}

/// Returns the message for a file that was shortened.
pub fn shortened_message(path: Option<&Path>) -> String {
    let name = path.map_or("a filter".into(), Path::to_string_lossy);
    format!(
        "{name} was shortened while it was in use: do not write over a filter, replace it with `mv` or `umbel`"
    )
}

/// Lets a write beyond the limit on the size of files fail, so that it is reported and the unfinished
/// file is removed. By default, the signal ends the program.
pub fn report_file_size_limit() {
    // Without the handler, the program still leaves the old file.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Returns a flag that is set by SIGTERM or SIGINT. The second signal ends the program.
pub fn termination_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for number in [SIGTERM, SIGINT] {
        flag::register_conditional_default(number, Arc::clone(&flag))?;
        flag::register(number, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Calls `then` at SIGTERM or SIGINT. The second signal ends the program, which may be waiting for
/// something else, such as a reader of its output.
pub fn on_termination(then: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (mut wake, signal) = UnixStream::pair()?;
    for number in [SIGTERM, SIGINT] {
        pipe::register(number, signal.try_clone()?)?;
    }
    thread::spawn(move || {
        if wake.read_exact(&mut [0]).is_ok() {
            then();
        }
        if wake.read_exact(&mut [0]).is_ok() {
            let _ = emulate_default_handler(SIGTERM);
        }
    });
    Ok(())
}

/// Calls `then` at every SIGHUP, which then no longer ends the program.
pub fn on_hangup(mut then: impl FnMut() + Send + 'static) -> io::Result<()> {
    let (mut wake, signal) = UnixStream::pair()?;
    pipe::register(SIGHUP, signal)?;
    thread::spawn(move || {
        while wake.read_exact(&mut [0]).is_ok() {
            then();
        }
    });
    Ok(())
}

/// Standard input, which also ends at SIGTERM or SIGINT. The second signal ends the program.
pub struct TerminableStdin {
    lines: UnixStream,
    failed: Arc<Mutex<Option<io::Error>>>,
}

/// Starts to read standard input, until SIGTERM or SIGINT.
pub fn stdin_until_termination() -> io::Result<TerminableStdin> {
    let (mut forward, lines) = UnixStream::pair()?;
    let end = forward.try_clone()?;
    on_termination(move || {
        // The other end lives as long as the program.
        let _ = end.shutdown(Shutdown::Write);
    })?;
    let failed = Arc::new(Mutex::new(None));
    let input = TerminableStdin { lines, failed: Arc::clone(&failed) };
    thread::spawn(move || {
        let copied = io::copy(&mut io::stdin().lock(), &mut forward);
        // A broken pipe is the end of input caused by the signal.
        *lock(&failed) = copied.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
        let _ = forward.shutdown(Shutdown::Write);
    });
    Ok(input)
}

impl Read for TerminableStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.lines.read(buffer)? {
            0 => lock(&self.failed).take().map_or(Ok(0), Err),
            read => Ok(read),
        }
    }
}
