//! Between the program and the person or script that runs it: output, errors and warnings, a
//! progress bar, a prompt for secrets, exit codes.

pub mod exit;
pub mod output;
mod progress;
pub mod prompt;

pub use progress::Progress;
