//! A mapped file that someone else shortens: named, instead of a silent death.
//!
//! The system answers a touch of the missing part with the signal SIGBUS. The handler can do no more than wake a thread,
//! which says what happened and ends the program.

use crate::commands::FAILED;
use crate::output;
use crate::sync::lock;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once};

/// The files that are mapped, with the lengths they had.
static MAPPED: Mutex<Vec<(PathBuf, u64)>> = Mutex::new(Vec::new());
static WATCH: Once = Once::new();

/// Remembers that a file will be mapped, and from the first one on watches for the signal.
pub fn watch(path: &Path) {
    let len = std::fs::metadata(path).map_or(0, |found| found.len());
    lock(&MAPPED).push((path.to_owned(), len));
    WATCH.call_once(|| {
        let Ok((mut wake, signal)) = UnixStream::pair() else { return };
        umbel::words::release_bus_signal();
        if signal_hook::low_level::pipe::register(signal_hook::consts::SIGBUS, signal).is_err() {
            // Without the sentence the signal still ends the program.
            return;
        }
        std::thread::spawn(move || {
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
