//! Opens an address in the browser of the user.

use std::env;
use std::process::{Command, Stdio};
use std::thread;

/// The programs that open an address with the browser of a desktop.
#[cfg(target_os = "macos")]
const OPENERS: &[&str] = &["open"];
#[cfg(not(target_os = "macos"))]
const OPENERS: &[&str] = &["xdg-open", "sensible-browser"];

/// Opens an address in the browser, if this is a desktop with one. The address becomes an argument
/// of a program, which other users can see: it must not contain a secret.
pub fn open(address: &str) {
    if has_desktop() {
        OPENERS.iter().any(|opener| start(opener, address));
    }
}

fn has_desktop() -> bool {
    cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some())
}

/// Starts a program and returns whether it exists. A thread waits for its end.
fn start(program: &str, address: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    thread::spawn(move || child.wait());
    true
}
