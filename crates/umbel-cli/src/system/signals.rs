//! Signals: a handler can do no more than wake a thread, and the thread does the rest.
//!
//! A mapped file that someone else shortens is named, instead of a silent death: the system answers a touch of the missing
//! part with SIGBUS. And whoever is told to end while he waits for input comes to the end of his input, and can save.

use crate::sync::lock;
use crate::terminal::exit::FAILED;
use crate::terminal::output;
use signal_hook::consts::{SIGBUS, SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, pipe};
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Once};
use std::thread;

/// The files that are mapped, with the lengths they had.
static MAPPED: Mutex<Vec<(PathBuf, u64)>> = Mutex::new(Vec::new());
static WATCH: Once = Once::new();

/// Remembers that a file will be mapped, and from the first one on watches for the signal.
pub fn watch(path: &Path) {
    let len = std::fs::metadata(path).map_or(0, |found| found.len());
    lock(&MAPPED).push((path.to_owned(), len));
    WATCH.call_once(|| {
        let Ok((mut wake, signal)) = UnixStream::pair() else { return };
        umbel::memory::release_bus_signal();
        if pipe::register(SIGBUS, signal).is_err() {
            // Without the sentence the signal still ends the program.
            return;
        }
        thread::spawn(move || {
            if wake.read(&mut [0]).is_ok() {
                let mapped = lock(&MAPPED);
                let now = |path: &Path| std::fs::metadata(path).map_or(0, |now| now.len());
                let shortened = mapped.iter().find(|(path, len)| now(path) < *len);
                output::error(sentence(shortened.map(|(path, _)| &**path)));
                std::process::exit(FAILED.into());
            }
        });
    });
}

/// What is said of a file that was shortened.
pub fn sentence(path: Option<&Path>) -> String {
    let name = path.map_or("a filter".into(), Path::to_string_lossy);
    format!(
        "{name} was shortened while it was in use: do not write over a filter, replace it with `mv` or `umbel`"
    )
}

/// Set when SIGTERM or SIGINT comes, for whoever looks at it often. The second of them ends the program.
pub fn told_to_end() -> io::Result<Arc<AtomicBool>> {
    let told = Arc::new(AtomicBool::new(false));
    for number in [SIGTERM, SIGINT] {
        flag::register_conditional_default(number, Arc::clone(&told))?;
        flag::register(number, Arc::clone(&told))?;
    }
    Ok(told)
}

/// Does something when SIGTERM or SIGINT comes. The second of them ends the program: it may be waiting for more than that,
/// such as for a reader of its answers.
pub fn when_told(then: impl FnOnce() + Send + 'static) -> io::Result<()> {
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

/// Does something whenever SIGHUP comes, which does not end the program any more.
pub fn at_hangup(mut then: impl FnMut() + Send + 'static) -> io::Result<()> {
    let (mut wake, signal) = UnixStream::pair()?;
    pipe::register(SIGHUP, signal)?;
    thread::spawn(move || {
        while wake.read_exact(&mut [0]).is_ok() {
            then();
        }
    });
    Ok(())
}

/// Standard input, which is at its end too when SIGTERM or SIGINT comes. The second of them ends the program.
pub struct Input {
    lines: UnixStream,
    failed: Arc<Mutex<Option<io::Error>>>,
}

/// Reads standard input from now on, until the program is told to end.
pub fn input_until_told() -> io::Result<Input> {
    let (mut forward, lines) = UnixStream::pair()?;
    let end = forward.try_clone()?;
    when_told(move || {
        // The other end cannot be gone before the program is.
        let _ = end.shutdown(Shutdown::Write);
    })?;
    let failed = Arc::new(Mutex::new(None));
    let input = Input { lines, failed: Arc::clone(&failed) };
    thread::spawn(move || {
        let copied = io::copy(&mut io::stdin().lock(), &mut forward);
        // That nothing can be forwarded any more is the end that was told.
        *lock(&failed) = copied.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
        let _ = forward.shutdown(Shutdown::Write);
    });
    Ok(input)
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.lines.read(buffer)? {
            0 => lock(&self.failed).take().map_or(Ok(0), Err),
            read => Ok(read),
        }
    }
}
