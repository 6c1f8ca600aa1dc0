//! umbel and its peers, side by side in one process.
fn main() {}
