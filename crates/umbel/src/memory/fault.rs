//! The signal with which the system answers a touch of memory whose file is gone.

/// Sets SIGBUS back to its default, so that a program which maps filters can install a handler of its own and say what
/// happened when someone shortens a file in use; see [`file::map`](crate::file::map).
///
/// The Rust runtime has a handler too, to tell of stack overflows. It would come first, and for every other cause take
/// itself away: the next touch would end the program before a word is said.
#[cfg(unix)]
pub fn release_bus_signal() {
    // SAFETY: the default action is valid for every signal, and needs nothing to stay alive.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}
