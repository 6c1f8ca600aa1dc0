//! A vault: its header, and then one document.
//!
//! No input may cause a panic in opening, searching or reading. Only contents that were added are
//! read from a document, from their beginning and under their name; all of them, or there is an
//! error. A complete document is found by its words.
//!
//! Seals cannot be forged without the key, so the checksums match but the seals do not: the inputs
//! are those that an attacker with access to the directory could assemble.

use crate::seal;
use std::fs;
use std::path::Path;
use umbel_text::vault::zidx::{Id, Trapdoor};
use umbel_text::vault::{Passphrase, Server, Vault};

/// The length in bytes of a header that lists one document.
pub const HEADER: usize = 168;

/// Tests any bytes, as they are and with matching lengths and checksums.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::vault(&mut sealed);
    loads(&sealed);
    if let Some(trapdoor) = Trapdoor::from_bytes(bytes) {
        assert_eq!(trapdoor.to_bytes(), bytes);
    }
}

/// Tries to open the vault and to read its document, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let folder = crate::folder();
    let (header, document) = bytes.split_at(bytes.len().min(HEADER));
    fs::write(Vault::header_path(folder.path()), header).expect("room");
    // A document whose name is not its id is rejected immediately.
    let id = document.get(16..).and_then(|rest| rest.first_chunk()).map_or(Id([0; 16]), |id| Id(*id));
    let server = Server::new(folder.path());
    fs::write(server.path(&id), document).expect("room");
    let (seen, problems) = server.seen().expect("a directory that can be listed");
    assert_eq!(seen.len() + problems.len(), 1);
    assert!(seen.iter().all(|seen| seen.bits[0] <= seen.bits[1] && seen.content < bytes.len() as u64));
    opens(folder.path()).is_some_and(|vault| reads(&vault, &id))
}

/// Returns the passphrase of the vault.
pub fn passphrase() -> Passphrase {
    Passphrase::new(b"correct horse battery staple".to_vec().into()).expect("a passphrase")
}

fn opens(folder: &Path) -> Option<Vault> {
    let header = Vault::header_of(folder).ok()?;
    // A header may request an expensive key derivation, within bounds, which is too slow for a
    // fuzzer.
    if header.cost.memory > 256 || header.cost.passes > 2 {
        return None;
    }
    let vault = Vault::open(folder, &passphrase()).ok()?;
    assert_eq!(*vault.header(), header);
    Some(vault)
}

fn reads(vault: &Vault, id: &Id) -> bool {
    let mut read = Vec::new();
    let whole = vault.read(id, &mut read).is_ok();
    let entry = vault.entry(id).ok();
    assert!(entry.is_some() || !whole && read.is_empty(), "nothing without a head");
    assert_eq!(vault.check(id).is_ok(), whole);
    assert_eq!(vault.entries().expect("a list").0.first(), entry.as_ref());
    let Some(entry) = entry else { return false };
    let (_, word, contents) = documents()
        .into_iter()
        .find(|(name, ..)| name.as_bytes() == entry.head.name)
        .expect("only what was added has a head");
    assert_eq!(entry.head.size, contents.len() as u64);
    assert!(contents.starts_with(&read) && (read == contents || !whole), "{:?}", entry.head);
    let query = vault.query(&[word]).expect("a word");
    // The index is under the same seal as the head.
    assert_eq!(vault.server().search(query.trapdoors()).expect("an answer").hits, [*id]);
    let confirmed = vault.search(&query, true).expect("an answer");
    assert_eq!(confirmed.hits.len(), usize::from(whole), "{:?}", confirmed.problems);
    whole
}

/// Returns all documents that were ever added: name, a word in it, and contents. One of them has
/// more than one chunk.
pub fn documents() -> [(&'static str, &'static str, Vec<u8>); 3] {
    [
        ("plan.txt", "dawn", b"We attack at dawn.\n".to_vec()),
        ("short", "dusk", b"Dusk".to_vec()),
        ("long.txt", "letters", b"letters that nobody answers\n".repeat(2400)),
    ]
}
