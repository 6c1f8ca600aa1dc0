//! A prompt for secrets on the terminal, which does not show them.

use super::escape::escaped;
use anyhow::{Context, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs::File;
use std::io::ErrorKind;
use std::sync::{Mutex, Once};
use std::thread;
use umbel::internals::sync::lock;
use zeroize::Zeroizing;

/// Prompts for a secret on the terminal, which does not show it.
pub fn read_secret(prompt: &str) -> Result<Zeroizing<String>> {
    let terminal = File::options().read(true).write(true).open("/dev/tty").context("there is no terminal")?;
    // Before the prompt appears, so that early typing is not shown either.
    let silenced = EchoOff::begin(terminal);
    let secret =
        rpassword::prompt_password(format!("{}: ", String::from_utf8_lossy(&escaped(prompt.as_bytes()))));
    drop(silenced);
    if secret.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {
        // The prompt reads ^C as a character, but it is meant to end the program.
        let _ = emulate_default_handler(SIGINT);
    }
    Ok(secret.context("cannot read from the terminal")?.into())
}

/// The terminal whose echo is off, and its modes before.
static SAVED_MODES: Mutex<Option<(File, Termios)>> = Mutex::new(None);
static WATCH_SIGNALS: Once = Once::new();

/// Keeps the echo of the terminal off until it is dropped or a signal ends the program.
struct EchoOff;

impl EchoOff {
    fn begin(terminal: File) -> Option<EchoOff> {
        let before = tcgetattr(&terminal).ok()?;
        let mut silenced = before.clone();
        silenced.local_modes.remove(LocalModes::ECHO);
        WATCH_SIGNALS.call_once(restore_on_signal);
        let mut saved = lock(&SAVED_MODES);
        tcsetattr(&terminal, OptionalActions::Now, &silenced).ok()?;
        *saved = Some((terminal, before));
        Some(EchoOff)
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if let Some((terminal, before)) = lock(&SAVED_MODES).take() {
        // If the terminal is gone, there is nowhere to report that.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
}

/// Restores the terminal before a signal ends the program, from now on.
fn restore_on_signal() {
    // Without this, signals still end the program.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGQUIT]) else { return };
    thread::spawn(move || {
        for signal in signals.forever() {
            restore();
            let _ = emulate_default_handler(signal);
        }
    });
}
