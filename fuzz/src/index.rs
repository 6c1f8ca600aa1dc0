//! The index of a search.
//!
//! No input may cause a panic in opening or querying. An index names only files that it contains;
//! where it cannot exclude any, all that have text. Opened again it gives the same answers. The
//! files themselves are not read: `select` would read them, and is not called.

use crate::seal;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use umbel_text::index::{Index, Look};

/// Tests any bytes, as they are and with matching lengths and checksums.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::index(&mut sealed);
    loads(&sealed);
}

/// Tries to open an index and to read every filter that is queried, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let folder = crate::folder();
    let path = folder.path().join("of.idx");
    std::fs::write(&path, bytes).expect("room");
    let Ok(index) = Index::open(&path) else { return false };
    assert_eq!(index.length(), bytes.len() as u64);
    let (described, whole) = describe(&index);
    assert_eq!(described, again(&path), "reopening changes nothing");
    whole
}

fn again(path: &Path) -> String {
    describe(&Index::open(path).expect("what was opened can be opened")).0
}

/// Returns facts and answers as text, and whether all pages were intact.
fn describe(index: &Index) -> (String, bool) {
    let facts: Vec<_> = index.files().collect();
    assert!(index.filters() <= facts.iter().map(|file| file.blocks as u64).sum());
    for file in &facts {
        // None of these may overflow, nor may their sums over all files.
        assert!(file.keys <= 2 * file.text && (file.filter_bits > 0) == (file.keys > 0), "{file:?}");
    }
    let sums = facts.iter().fold([0u64; 3], |[text, keys, bits], file| {
        [text + file.text, keys + file.keys, bits + file.filter_bits]
    });
    let names: BTreeSet<&PathBuf> = facts.iter().map(|file| &file.name).collect();
    let mut text = format!("{sums:?} {facts:?} {:?} {:?}", index.source(), index.roots());
    let mut whole = true;
    for look in looks() {
        for words in [&["disk"][..], &["full on", "longer file"], &["na\u{ef}ve Error_log"], &[""], &["-"]] {
            for query in [index.any_of(words, look), index.all_of(words, look)] {
                let named = index.recall(&query);
                if let Ok(named) = &named {
                    assert!(named.iter().all(|name| names.contains(name)), "{named:?}");
                }
                if !query.is_decided() {
                    // An empty file contains nothing to search for.
                    let all = facts.iter().filter(|file| file.blocks > 0).map(|file| file.name.clone());
                    assert_eq!(named.as_ref().ok(), Some(&all.collect()), "{words:?} cannot be decided");
                }
                whole &= named.is_ok();
                text += &format!("{named:?}");
            }
        }
    }
    let key = umbel::Hasher::fast(0).digest_bytes(b"disk");
    assert!(index.count(&[key]).is_ok_and(|count| count <= index.filters()) || !whole);
    (text, whole)
}

fn looks() -> [Look; 3] {
    let whole_words = Look { whole_words: true, ..Look::default() };
    [Look::default(), whole_words, Look { ignore_case: true, ascii: true, ..whole_words }]
}
