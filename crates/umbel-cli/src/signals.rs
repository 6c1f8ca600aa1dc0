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

/// Remembers that a file is mapped, and from the first one on watches for the signal.
pub fn watch(path: &Path, len: u64) {
    lock(&MAPPED).push((path.to_owned(), len));
    WATCH.call_once(|| {
        let Ok((mut wake, signal)) = UnixStream::pair() else { return };
        if signal_hook::low_level::pipe::register(signal_hook::consts::SIGBUS, signal).is_err() {
            // Without the sentence the signal still ends the program.
            return;
        }
        std::thread::spawn(move || {
            if wake.read(&mut [0]).is_ok() {
                tell();
                std::process::exit(FAILED.into());
            }
        });
    });
}

fn tell() {
    let mapped = lock(&MAPPED);
    let shortened =
        |(path, len): &&(PathBuf, u64)| std::fs::metadata(path).map_or(true, |now| now.len() < *len);
    let name =
        mapped.iter().find(shortened).map_or("a filter".into(), |(path, _)| path.display().to_string());
    output::error(format_args!(
        "{name} was shortened while it was in use: do not write over a filter, replace it with `mv` or `umbel`"
    ));
}
