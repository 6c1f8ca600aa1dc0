//! Output, errors and warnings, a progress bar, a prompt for secrets, and exit codes.

pub mod exit;
pub mod output;
mod progress;
pub mod prompt;

pub use progress::Progress;
