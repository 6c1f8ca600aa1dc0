//! Secrets that someone types on a terminal.

use crate::sync::lock;
use anyhow::{Context, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs::File;
use std::io::ErrorKind;
use std::sync::{Mutex, Once};
use std::thread;
use zeroize::Zeroizing;

/// Asks for a secret on the terminal, and shows nothing of it.
pub fn secret(prompt: &str) -> Result<Zeroizing<String>> {
    let terminal = File::options().read(true).write(true).open("/dev/tty").context("there is no terminal")?;
    // Before the prompt is there: who types at once is not shown either.
    let quiet = Quiet::begin(terminal);
    let secret = rpassword::prompt_password(format!("{prompt}: "));
    drop(quiet);
    if secret.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
        // The prompt reads ^C as a character. Whoever types it wants to end.
        let _ = emulate_default_handler(SIGINT);
    }
    Ok(secret.context("cannot read from the terminal")?.into())
}

/// The terminal that is quiet, and what it was before.
static BEFORE: Mutex<Option<(File, Termios)>> = Mutex::new(None);
static WATCH: Once = Once::new();

/// A terminal that shows nothing of what is typed, until this is dropped or a signal ends the program.
struct Quiet;

impl Quiet {
    fn begin(terminal: File) -> Option<Quiet> {
        let before = tcgetattr(&terminal).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        WATCH.call_once(watch);
        let mut place = lock(&BEFORE);
        tcsetattr(&terminal, OptionalActions::Now, &quiet).ok()?;
        *place = Some((terminal, before));
        Some(Quiet)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if let Some((terminal, before)) = lock(&BEFORE).take() {
        // There is nobody to tell that a terminal is gone.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
}

/// From now on the terminal is as it was before a signal ends the program.
fn watch() {
    // Without this the signals still end it.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGQUIT]) else { return };
    thread::spawn(move || {
        for signal in signals.forever() {
            restore();
            let _ = emulate_default_handler(signal);
        }
    });
}
