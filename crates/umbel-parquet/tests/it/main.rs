//! The promises of the crate, one module for each.

mod add_filter;
mod golden;
mod hostile;
mod index;
mod pages;
mod values;

use std::path::PathBuf;

/// Returns the path of a golden file.
fn golden_file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name].iter().collect()
}
