//! What the operating system tells the program: the time, and signals.

pub mod clock;
pub mod signals;
