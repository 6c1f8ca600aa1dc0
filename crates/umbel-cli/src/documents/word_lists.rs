//! Lists of passwords: files, pipes, or a single word typed at a prompt.

use crate::input;
use crate::terminal::prompt;
use anyhow::Result;
use std::io::{self, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use umbel_text::Error;
use zeroize::Zeroizing;

/// Opens standard input if no list is named; on a terminal, prompts for a single word instead.
pub fn open_stdin_or_prompt(prompt: &str) -> Result<Box<dyn Read + Send>> {
    if !io::stdin().is_terminal() {
        return Ok(Box::new(input::open_list(Path::new("-"), Arc::default())?));
    }
    Ok(Box::new(Cursor::new(WipedSecret(prompt::read_secret(prompt)?))))
}

/// Adds context that names the list to an error. For an error of the system, the message of the
/// library is left out, since it would name the list again.
pub fn with_list_name(error: Error, context: String) -> anyhow::Error {
    match error {
        Error::Input(source) | Error::Io { source, .. } => anyhow::Error::new(source).context(context),
        other => anyhow::Error::new(other).context(context),
    }
}

/// A word that is wiped from memory after it is read.
struct WipedSecret(Zeroizing<String>);

impl AsRef<[u8]> for WipedSecret {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Opens the lists, each with its name. `count` counts the bytes read.
pub fn open_lists(
    lists: &[PathBuf],
    count: &Arc<AtomicU64>,
) -> impl Iterator<Item = Result<(String, Box<dyn Read + Send>)>> {
    lists.iter().map(|path| {
        let reader = input::open_list(path, Arc::clone(count))?;
        Ok((input::name(path), Box::new(reader) as Box<dyn Read + Send>))
    })
}
