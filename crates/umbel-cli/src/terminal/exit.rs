//! Exit codes, which are those of grep: 0 something was found, 1 nothing was, 2 an error occurred.

use std::process::ExitCode;

/// The exit code of a command that found nothing.
pub const NOT_FOUND: u8 = 1;

/// The exit code of a command that failed.
pub const FAILED: u8 = 2;

/// Returns the exit code of a command that found something, or nothing.
pub fn found(any: bool) -> ExitCode {
    if any { ExitCode::SUCCESS } else { ExitCode::from(NOT_FOUND) }
}
