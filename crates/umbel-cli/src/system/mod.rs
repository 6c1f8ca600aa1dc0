//! The clock and the signals of the operating system.

pub mod clock;
pub mod signals;
