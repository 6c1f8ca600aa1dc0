//! The index of a search.
//!
//! Whatever the bytes are, opening and asking end without a panic. What an index names are files that it has; where it cannot tell, all
//! that have any text. Opened again it answers the same. Files that it names are not looked at: `select` would, and is not asked.

use crate::seal;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use umbel_text::index::{Index, Look};

/// Takes any bytes, as they are and with lengths and sums that fit.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::index(&mut sealed);
    loads(&sealed);
}

/// Tries to open and to read every filter that is asked; whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let folder = crate::folder();
    let path = folder.path().join("of.idx");
    std::fs::write(&path, bytes).expect("room");
    let Ok(index) = Index::open(&path) else { return false };
    assert_eq!(index.length(), bytes.len() as u64);
    let (told, whole) = told(&index);
    assert_eq!(told, again(&path), "the same again");
    whole
}

fn again(path: &Path) -> String {
    told(&Index::open(path).expect("what was opened can be opened")).0
}

/// Facts and answers, as text; and whether no page was damaged.
fn told(index: &Index) -> (String, bool) {
    let facts: Vec<_> = index.files().collect();
    assert!(index.filters() <= facts.iter().map(|file| file.blocks as u64).sum());
    for file in &facts {
        // None of these may overflow, nor may their sums, which are told of all files together.
        assert!(file.keys <= 2 * file.text && (file.filter_bits > 0) == (file.keys > 0), "{file:?}");
    }
    let sums = facts.iter().fold([0u64; 3], |[text, keys, bits], file| {
        [text + file.text, keys + file.keys, bits + file.filter_bits]
    });
    let names: BTreeSet<&PathBuf> = facts.iter().map(|file| &file.name).collect();
    let mut text = format!("{sums:?} {facts:?} {:?} {:?}", index.settings(), index.roots());
    let mut whole = true;
    for look in looks() {
        for words in [&["disk"][..], &["full on", "longer file"], &["na\u{ef}ve Error_log"], &[""], &["-"]] {
            for query in [index.any_of(words, look), index.all_of(words, look)] {
                let named = index.recall(&query);
                if let Ok(named) = &named {
                    assert!(named.iter().all(|name| names.contains(name)), "{named:?}");
                }
                if !query.is_decided() {
                    // An empty file has nothing that could be looked for.
                    let all = facts.iter().filter(|file| file.blocks > 0).map(|file| file.name.clone());
                    assert_eq!(named.as_ref().ok(), Some(&all.collect()), "{words:?} cannot be told");
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
