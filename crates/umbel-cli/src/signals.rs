//! A mapped file that someone else shortens: named, instead of a silent death or a wrong answer.
//!
//! The system answers a touch of the missing part with the signal SIGBUS. The handler can do no more than wake a thread,
//! which says what happened and ends the program. What is missing of the last page that is left reads as zeros, without a
//! signal: so whoever has asked a mapped filter asks in the end whether it was whole all the time.

use crate::commands::FAILED;
use crate::output;
use crate::sync::lock;
use anyhow::{Result, bail};
use std::fs::File;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once};

/// The files that are mapped.
static MAPPED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
static WATCH: Once = Once::new();

struct Watched {
    path: PathBuf,
    /// The file itself, whatever its name stands for by now.
    file: Option<File>,
    len: u64,
}

/// Remembers that a file is mapped, and from the first one on watches for the signal.
pub fn watch(path: &Path, len: u64) {
    // Opening a pipe would wait for its writer; and nobody maps one.
    let regular = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let file = if regular { File::open(path).ok() } else { None };
    lock(&MAPPED).push(Watched { path: path.to_owned(), file, len });
    WATCH.call_once(|| {
        let Ok((mut wake, signal)) = UnixStream::pair() else { return };
        umbel::words::release_bus_signal();
        if signal_hook::low_level::pipe::register(signal_hook::consts::SIGBUS, signal).is_err() {
            // Without the sentence the signal still ends the program.
            return;
        }
        std::thread::spawn(move || {
            if wake.read(&mut [0]).is_ok() {
                output::error(sentence(shortened().as_deref()));
                std::process::exit(FAILED.into());
            }
        });
    });
}

/// Fails if a mapped file has been shortened.
pub fn check_whole() -> Result<()> {
    match shortened() {
        Some(path) => bail!(sentence(Some(&path))),
        None => Ok(()),
    }
}

fn shortened() -> Option<PathBuf> {
    let mapped = lock(&MAPPED);
    let now = |watched: &Watched| watched.file.as_ref().and_then(|file| Some(file.metadata().ok()?.len()));
    mapped
        .iter()
        .find(|watched| now(watched).is_some_and(|now| now < watched.len))
        .map(|found| found.path.clone())
}

fn sentence(path: Option<&Path>) -> String {
    let name = path.map_or("a filter".into(), Path::to_string_lossy);
    format!(
        "{name} was shortened while it was in use: do not write over a filter, replace it with `mv` or `umbel`"
    )
}
