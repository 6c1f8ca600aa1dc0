//! Secrets that someone types on a terminal.

use anyhow::{Context, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use zeroize::Zeroizing;

/// Asks for a secret on the terminal, and shows nothing of it.
pub fn secret(prompt: &str) -> Result<Zeroizing<String>> {
    // Before the prompt is there: who types at once is not shown either.
    let _quiet = Quiet::begin();
    let secret =
        rpassword::prompt_password(format!("{prompt}: ")).context("cannot read from the terminal")?;
    Ok(secret.into())
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Quiet(File, Termios);

impl Quiet {
    fn begin() -> Option<Quiet> {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &quiet).ok()?;
        Some(Quiet(terminal, before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // There is nobody to tell that a terminal is gone.
        let _ = tcsetattr(&self.0, OptionalActions::Now, &self.1);
    }
}
