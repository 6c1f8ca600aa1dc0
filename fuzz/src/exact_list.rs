//! The exact list of addresses.
//!
//! No input may cause a panic in opening or querying. Results start with the queried prefix, and
//! are the same if the list is opened again. If its hashes are in order, as they are written, all
//! matching hashes are found.

use crate::seal;
use std::path::Path;
use umbel_text::address::{Confirm, Exact, Full};

/// Tests any bytes, as they are and with matching checksums.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::exact_list(&mut sealed);
    loads(&sealed);
}

/// Tries to open a list and to read every page, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let folder = crate::folder();
    let path = folder.path().join("exact");
    std::fs::write(&path, bytes).expect("room");
    let Ok(mut exact) = Exact::open(&path) else { return false };
    // Every hash starts with the empty prefix.
    let all = exact.starting_with(&[]).ok();
    let ordered = all.as_ref().filter(|all| all.is_sorted());
    if let Some(all) = &all {
        assert_eq!(all.len() as u64, exact.len());
    }
    for first in asked(bytes, all.as_deref().unwrap_or_default()) {
        let found = exact.starting_with(&first).ok();
        assert_eq!(found, again(&path, &first), "reopening changes nothing");
        if let Some(found) = &found {
            assert!(found.iter().all(|hash| hash.starts_with(&first)));
        }
        if let Some(all) = ordered {
            let here: Vec<Full> = all.iter().filter(|hash| hash.starts_with(&first)).copied().collect();
            assert_eq!(found, Some(here), "{first:?}");
        }
    }
    all.is_some()
}

fn again(path: &Path, first: &[u8]) -> Option<Vec<Full>> {
    Exact::open(path).and_then(|mut exact| exact.starting_with(first)).ok()
}

/// Returns prefixes of hashes in the list, and some that are not.
fn asked(bytes: &[u8], all: &[Full]) -> Vec<Vec<u8>> {
    let ends = [all.first(), all.get(all.len() / 2), all.last()];
    let mut asked: Vec<Vec<u8>> = ends.into_iter().flatten().map(|hash| hash[..4].to_vec()).collect();
    asked.extend([vec![0; 4], vec![7; 4], vec![255; 32], bytes[..bytes.len().min(32)].to_vec()]);
    asked
}
