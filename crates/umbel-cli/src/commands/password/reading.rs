//! Where words come from: lists, pipes, and someone who types.

use crate::input;
use crate::terminal::prompt;
use anyhow::Result;
use std::io::{self, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use umbel_text::Error;
use zeroize::Zeroizing;

/// What is read if no list is named: a word that is typed without being shown, or whatever standard input has.
pub fn words(prompt: &str) -> Result<Box<dyn Read + Send>> {
    if !io::stdin().is_terminal() {
        return Ok(Box::new(input::open_list(Path::new("-"), Arc::default())?));
    }
    Ok(Box::new(Cursor::new(Wiped(prompt::secret(prompt)?))))
}

/// Adds the name of a list to an error about it. An error of the system says enough without the library's own message,
/// which would name the list once more.
pub fn failed(error: Error, context: String) -> anyhow::Error {
    match error {
        Error::Input(source) | Error::Io { source, .. } => anyhow::Error::new(source).context(context),
        other => anyhow::Error::new(other).context(context),
    }
}

/// A word that is gone once it is read.
struct Wiped(Zeroizing<String>);

impl AsRef<[u8]> for Wiped {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The lists to read, each with its name; `count` is told how many bytes were read.
pub fn open(
    lists: &[PathBuf],
    count: &Arc<AtomicU64>,
) -> impl Iterator<Item = Result<(String, Box<dyn Read + Send>)>> {
    lists.iter().map(|path| {
        let reader = input::open_list(path, Arc::clone(count))?;
        Ok((input::name(path), Box::new(reader) as Box<dyn Read + Send>))
    })
}
