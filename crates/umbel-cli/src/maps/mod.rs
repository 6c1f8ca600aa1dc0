//! Maps from pairs of keys and values: pairs read in order, values numbered, and keys with two
//! values reported.

mod conflict;
mod pairs;
mod values;

pub use conflict::{KeptInput, explain_conflict};
pub use pairs::read_pairs;
pub use values::{ValueSpec, Values, value_spec};
