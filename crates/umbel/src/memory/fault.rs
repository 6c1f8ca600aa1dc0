//! The signal that the system sends when a program reads mapped memory beyond the end of its file.

/// Resets SIGBUS to its default, so that a program that maps filters can install its own handler
/// and explain the error when another process shortens a file in use; see
/// [`file::map`](crate::file::map).
///
/// The Rust runtime installs a handler as well, to report stack overflows. It would be called first
/// and, for every other cause, uninstall itself: the next access would then end the program without
/// a message.
#[cfg(unix)]
pub fn release_bus_signal() {
    // SAFETY: the default action is valid for every signal, and needs nothing to stay alive.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}
