//! Values for keys: pairs read in order, values of a map numbered, keys with two values reported,
//! and stores of tables opened.

mod conflict;
mod pairs;
mod stores;
mod values;

pub use conflict::{KeptInput, explain_conflict};
pub use pairs::{read_changes, read_pairs};
pub use stores::{open_reader, open_store, write_changes};
pub use values::{ValueSpec, Values, value_spec};
