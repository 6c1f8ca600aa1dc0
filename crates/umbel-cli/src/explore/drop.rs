//! Files that were dropped on the page. They are stored in a private folder until the server ends.

use super::guard::Refusal;
use anyhow::{Context, Result};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

/// The largest file. Larger ones are named on the command line, and stay where they are.
const MAX_BYTES: u64 = 256 << 20;

/// The largest number of files.
const MAX_FILES: usize = 16;

/// The longest name of a file in bytes.
const MAX_NAME_BYTES: usize = 100;

/// The time limit for the next part of a file.
const PART_TIMEOUT: Duration = Duration::from_secs(30);

/// The folder with the files.
pub struct Drops {
    folder: PathBuf,
    count: AtomicUsize,
}

impl Drops {
    /// Creates the folder, which is removed with the second value.
    ///
    /// # Errors
    ///
    /// If there is no place for temporary files.
    pub fn new() -> Result<(Drops, TempDir)> {
        let folder = tempfile::Builder::new().prefix("umbel-explore-").tempdir();
        let folder = folder.context("cannot create a folder for dropped files")?;
        Ok((Drops { folder: folder.path().to_owned(), count: AtomicUsize::new(0) }, folder))
    }

    /// Stores the body of a request as a file of this name.
    ///
    /// # Errors
    ///
    /// If it is too large or incomplete, if there are too many files, or it cannot be stored.
    pub async fn store(&self, name: &str, mut body: Incoming) -> Result<PathBuf, Refusal> {
        const TOO_LARGE: Refusal =
            (StatusCode::PAYLOAD_TOO_LARGE, "the file is larger than 256 MiB: name it on the command line");
        const NOT_STORED: Refusal =
            (StatusCode::INSUFFICIENT_STORAGE, "the file cannot be stored: is the disk full?");
        if body.size_hint().lower() > MAX_BYTES {
            return Err(TOO_LARGE);
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        if number >= MAX_FILES {
            return Err((StatusCode::TOO_MANY_REQUESTS, "more than 16 files were dropped: start again"));
        }
        let folder = self.folder.join(number.to_string());
        let path = folder.join(safe(name));
        let mut file =
            fs::create_dir(&folder).and_then(|()| File::create_new(&path)).map_err(|_| NOT_STORED)?;
        let mut stored = 0;
        let result = loop {
            let Ok(part) = timeout(PART_TIMEOUT, body.frame()).await else {
                break Err((StatusCode::REQUEST_TIMEOUT, "the file did not arrive in time"));
            };
            let part = match part {
                None => break Ok(path),
                Some(Err(_)) => break Err((StatusCode::BAD_REQUEST, "the file is incomplete")),
                Some(Ok(part)) => part,
            };
            let Ok(bytes) = part.into_data() else { continue };
            stored += bytes.len() as u64;
            if stored > MAX_BYTES {
                break Err(TOO_LARGE);
            }
            // A part is short, and a temporary folder is fast.
            if file.write_all(&bytes).is_err() {
                break Err(NOT_STORED);
            }
        };
        if result.is_err() {
            let _ = fs::remove_dir_all(&folder);
        }
        result
    }

    /// Removes a file that turned out to be no filter.
    pub fn remove(&self, path: &Path) {
        if let Some(folder) = path.parent().filter(|folder| folder.starts_with(&self.folder)) {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Returns a name that cannot lead out of the folder.
fn safe(name: &str) -> String {
    let is_plain = |letter: &char| letter.is_alphanumeric() || "._- ".contains(*letter);
    let mut plain: String = name.chars().map(|letter| if is_plain(&letter) { letter } else { '_' }).collect();
    while plain.len() > MAX_NAME_BYTES {
        plain.pop();
    }
    let plain = plain.trim_start_matches(['.', '-', ' ']);
    if plain.is_empty() { "filter".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_folder() {
        for (name, expected) in [
            ("seen.umbel", "seen.umbel"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("..", "filter"),
            ("", "filter"),
            ("-f", "f"),
            ("größe\0\n.umbel", "größe__.umbel"),
        ] {
            assert_eq!(safe(name), expected, "{name:?}");
        }
        assert!(safe(&"ü".repeat(500)).len() <= MAX_NAME_BYTES);
    }
}
