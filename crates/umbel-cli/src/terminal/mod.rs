//! Output, errors and warnings, a progress bar, a prompt for secrets, and exit codes.
//!
//! Everything that umbel prints passes through [`output`], the only place that decides how text
//! from servers and files appears: unchanged in a pipe or a file, escaped on a terminal. Standard
//! output and standard error are each decided for themselves.

pub mod escape;
pub mod exit;
pub mod output;
mod progress;
pub mod prompt;
pub mod redact;
pub mod style;

pub use progress::Progress;
