//! A vault has the documents that its owner put into it: none that a server brings back, and no
//! fewer. Changes are in effect completely or not at all, and a header costs no more than allowed.

use crate::vault::passphrase;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use umbel_text::Error;
use umbel_text::vault::zidx::Id;
use umbel_text::vault::{Cost, Options, State, Vault};

const OPTIONS: Options = Options { cost: Cost::WEAKEST, words: 8, rate: 1e-4 };

fn new_vault() -> (TempDir, Vault) {
    let folder = tempfile::tempdir().expect("a folder");
    let vault = Vault::create(folder.path().join("v"), &passphrase("open"), &OPTIONS).expect("a vault");
    (folder, vault)
}

fn add(vault: &Vault, name: &str, text: &str) -> Id {
    vault.add(name.as_bytes(), None, text.as_bytes()).expect("a document").entry.id
}

/// Returns the texts of all documents, and the problems of the vault.
fn texts(vault: &Vault) -> (BTreeSet<String>, Vec<Error>) {
    let (entries, problems) = vault.entries().expect("a list");
    let text = |id: &Id| {
        let mut bytes = Vec::new();
        vault.read(id, &mut bytes).expect("its contents");
        String::from_utf8(bytes).expect("text")
    };
    (entries.iter().map(|entry| text(&entry.id)).collect(), problems)
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Returns the files of a vault.
fn snapshot(vault: &Vault) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(vault.server().folder()).expect("a folder");
    let path = files.map(|file| file.expect("a file").path());
    path.map(|path| (path.clone(), fs::read(path).expect("its bytes"))).collect()
}

fn restore(vault: &Vault, files: &[(PathBuf, Vec<u8>)]) {
    snapshot(vault).iter().for_each(|(path, _)| fs::remove_file(path).expect("it exists"));
    files.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("room"));
}

#[test]
fn a_replaced_document_cannot_be_brought_back() {
    let (_folder, vault) = new_vault();
    let other = add(&vault, "other", "noon");
    let old = add(&vault, "plan", "dawn");
    let kept = fs::read(vault.server().path(&old)).unwrap();
    let new = vault.replace(b"plan", None, &b"dusk"[..], &[old]).unwrap().entry.id;
    assert_eq!(texts(&vault).0, set(&["dusk", "noon"]));

    // Beside the new one.
    fs::write(vault.server().path(&old), &kept).unwrap();
    let (found, problems) = texts(&vault);
    assert_eq!(found, set(&["dusk", "noon"]));
    assert!(matches!(problems[..], [Error::NotListed { .. }]), "{problems:?}");
    // Instead of the new one.
    let hidden = fs::read(vault.server().path(&new)).unwrap();
    fs::remove_file(vault.server().path(&new)).unwrap();
    let (found, problems) = texts(&vault);
    assert_eq!(found, set(&["noon"]));
    let missing = |error: &Error| matches!(error, Error::MissingDocument { path } if *path == vault.server().path(&new));
    assert!(problems.len() == 2 && problems.iter().any(missing), "{problems:?}");
    // No other operation believes it, either.
    assert!(matches!(vault.entry(&old), Err(Error::NotListed { .. })));
    assert!(matches!(vault.check(&old), Err(Error::NotListed { .. })));
    let mut read = Vec::new();
    assert!(matches!(vault.read(&old, &mut read), Err(Error::NotListed { .. })) && read.is_empty());
    assert_eq!(vault.check_all().unwrap().0, 1);
    let query = vault.query(&["dawn"]).unwrap();
    let found = vault.search(&query, true).unwrap();
    assert!(found.hits.is_empty() && found.problems.len() == 2, "{found:?}");
    let answer = vault.server().search(query.trapdoors()).unwrap();
    assert_eq!(answer.hits, [old], "the server has it");
    let found = vault.reveal(&query, answer, true).unwrap();
    assert!(found.hits.is_empty() && matches!(found.problems[..], [Error::NotListed { .. }]));

    // Nor can it hide behind another change.
    add(&vault, "more", "midnight");
    assert_eq!(texts(&vault).1.len(), 2);
    // The owner decides.
    fs::write(vault.server().path(&new), hidden).unwrap();
    vault.remove(&old).unwrap();
    assert!(texts(&vault).1.is_empty());
    assert!(matches!(vault.remove(&old), Err(Error::Io { .. })));
    assert!(vault.check(&other).is_ok());
}

#[test]
fn a_removed_document_stays_removed_and_a_deleted_one_is_missed() {
    let (_folder, vault) = new_vault();
    let [a, b] = ["dawn", "dusk"].map(|text| add(&vault, text, text));
    let kept = fs::read(vault.server().path(&a)).unwrap();
    vault.remove(&a).unwrap();
    fs::write(vault.server().path(&a), &kept).unwrap();
    let (found, problems) = texts(&vault);
    assert_eq!(found, set(&["dusk"]));
    assert!(matches!(problems[..], [Error::NotListed { .. }]), "{problems:?}");
    // If the document is wanted after all, it is adopted.
    let mut changes = vault.changes().unwrap();
    assert_eq!(changes.adopt(&[a]).unwrap()[0].head.name, b"dawn");
    changes.finish().unwrap();
    assert_eq!(texts(&vault).0, set(&["dawn", "dusk"]));

    fs::remove_file(vault.server().path(&b)).unwrap();
    assert!(matches!(texts(&vault).1[..], [Error::MissingDocument { .. }]));
    assert_eq!(vault.missing().unwrap(), [b]);
    vault.remove(&b).unwrap();
    let (found, problems) = texts(&vault);
    assert!(problems.is_empty() && found == set(&["dawn"]), "{problems:?}");
    // A document of another vault is not adopted.
    let (_other_folder, other) = new_vault();
    let c = add(&other, "c", "noon");
    fs::copy(other.server().path(&c), vault.server().path(&c)).unwrap();
    assert!(matches!(vault.changes().unwrap().adopt(&[c]), Err(Error::Damaged { .. })));
}

/// The states of the directory between the steps of a change, as a killed process leaves them.
#[test]
fn after_a_kill_a_vault_has_the_old_document_or_the_new_one() {
    let (_folder, vault) = new_vault();
    let old = add(&vault, "plan", "dawn");
    let before = snapshot(&vault);
    let mut changes = vault.changes().unwrap();
    let new = changes.replace(b"plan", None, &b"dusk"[..], &[old]).unwrap().entry.id;
    // Killed before the list is updated.
    drop(changes);
    let announced = snapshot(&vault);
    assert_eq!(texts(&vault).0, set(&["dusk"]));
    assert!(texts(&vault).1.is_empty());
    // Killed before the old file is removed: it does not count, and the next change removes it.
    let old_file = before.iter().find(|(path, _)| *path == vault.server().path(&old)).unwrap().clone();
    restore(&vault, &[&announced[..], std::slice::from_ref(&old_file)].concat());
    let again = Vault::open(vault.server().folder(), &passphrase("open")).unwrap();
    let (found, problems) = texts(&again);
    assert!(problems.is_empty() && found == set(&["dusk"]), "{problems:?}");
    again.changes().unwrap().finish().unwrap();
    assert!(!vault.server().path(&old).exists());
    assert_eq!(texts(&again).0, set(&["dusk"]));
    // Killed before the new file appears: nothing was changed.
    restore(&vault, &[&announced[..], &[old_file]].concat());
    fs::remove_file(vault.server().path(&new)).unwrap();
    let (found, problems) = texts(&again);
    assert!(problems.is_empty() && found == set(&["dawn"]), "{problems:?}");
    add(&again, "more", "noon");
    let (found, problems) = texts(&again);
    assert!(problems.is_empty() && found == set(&["dawn", "noon"]), "{problems:?}");
}

#[test]
fn many_documents_are_announced_together() {
    let (_folder, vault) = new_vault();
    let counter = |state: State| state.to_string().split(' ').nth(2).unwrap().parse::<u64>().unwrap();
    let before = counter(vault.state().unwrap());
    let mut changes = vault.changes().unwrap();
    for number in 0..100 {
        changes.replace(format!("{number}").as_bytes(), None, &b"text"[..], &[]).unwrap();
    }
    // The documents are in the vault before the list is updated.
    assert_eq!(vault.entries().unwrap().0.len(), 100);
    changes.finish().unwrap();
    let (entries, problems) = vault.entries().unwrap();
    assert!(entries.len() == 100 && problems.is_empty(), "{problems:?}");
    let written = counter(vault.state().unwrap()) - before;
    assert!(written < 20, "the header was written {written} times");
}

#[test]
fn a_new_passphrase_opens_the_vault_and_the_old_one_does_not() {
    let (_folder, vault) = new_vault();
    add(&vault, "plan", "dawn");
    let folder = vault.server().folder().to_owned();
    let elsewhere = Vault::open(&folder, &passphrase("open")).unwrap();
    let mut changes = vault.changes().unwrap();
    changes.set_passphrase(&passphrase("close")).unwrap();
    changes.finish().unwrap();
    assert!(matches!(Vault::open(&folder, &passphrase("open")), Err(Error::WrongPassphrase { .. })));
    let opened = Vault::open(&folder, &passphrase("close")).unwrap();
    assert_eq!(texts(&opened).0, set(&["dawn"]));
    // An open vault has the key, but must not write the old passphrase back.
    let header = fs::read(Vault::header_path(&folder)).unwrap();
    let error = elsewhere.add(b"more", None, &b"noon"[..]).unwrap_err();
    assert!(matches!(error, Error::WrongPassphrase { .. }), "{error}");
    assert_eq!(fs::read(Vault::header_path(&folder)).unwrap(), header);
    add(&vault, "more", "noon");
    assert_eq!(texts(&opened).0, set(&["dawn", "noon"]));
}

#[test]
fn a_header_takes_no_more_memory_and_time_than_allowed() {
    let (_folder, vault) = new_vault();
    let path = Vault::header_path(vault.server().folder());
    let good = fs::read(&path).unwrap();
    let demand = |memory: u32, passes: u32| {
        let mut bytes = good.clone();
        bytes[12..16].copy_from_slice(&memory.to_le_bytes());
        bytes[16..20].copy_from_slice(&passes.to_le_bytes());
        let (body, sum) = bytes.split_at_mut(good.len() - 8);
        sum.copy_from_slice(&Sha256::digest(body)[..8]);
        fs::write(&path, bytes).unwrap();
    };
    for (memory, passes, allowed) in
        [(1 << 20, 32, 8192), (1 << 20, 1, 1024), (300 << 10, 1, 300), (64 << 10, 32, 512)]
    {
        demand(memory, passes);
        let start = Instant::now();
        let error = Vault::open(vault.server().folder(), &passphrase("open")).err().expect("too much");
        assert!(matches!(error, Error::CostlyVault { .. }), "{error}");
        assert!(error.to_string().contains(&format!("--max-memory {allowed}MiB")), "{error}");
        // Nothing was computed: 32 passes over a gigabyte take far longer.
        assert!(start.elapsed() < Duration::from_secs(5));
    }
    // Within the limit, the passphrase is tried, and the seal shows the change.
    demand(1024, 2);
    let error = Vault::open(vault.server().folder(), &passphrase("open")).err().expect("changed");
    assert!(matches!(error, Error::WrongPassphrase { .. }), "{error}");
    // An expensive vault opens if that is allowed.
    let folder = vault.server().folder().with_extension("expensive");
    let options = Options { cost: Cost { memory: 1024, passes: 8, lanes: 1 }, ..OPTIONS };
    Vault::create(&folder, &passphrase("open"), &options).unwrap();
    let open = |most| Vault::open_costly(&folder, &passphrase("open"), most);
    assert!(matches!(open(2047), Err(Error::CostlyVault { .. })));
    assert!(open(2048).is_ok());
    assert_eq!(Cost::LARGEST.required_limit(), 8 << 20);
    assert!(Cost::DEFAULT.required_limit() <= Cost::MAX_TRUSTED_MEMORY);
}

/// A file with holes of 64 GiB that fits its own numbers, and would take minutes to hash.
#[test]
fn a_forged_document_cannot_claim_a_huge_index() {
    let (_folder, vault) = new_vault();
    let good = add(&vault, "plan", "dawn");
    let id = Id([7; 16]);
    let (content, head, parts, bits) = (2000u64, 300u32, 4096u32, 1u64 << 27);
    let mut file = fs::File::create(vault.server().path(&id)).unwrap();
    file.write_all(&[&b"UMBELDOC\x01\0\0\0\0\0\0\0"[..], &id.0].concat()).unwrap();
    let length = 64 + content + u64::from(head) + u64::from(parts) * (bits / 8);
    file.seek(SeekFrom::Start(length - 32)).unwrap();
    let numbers =
        [&content.to_le_bytes()[..], &head.to_le_bytes(), &parts.to_le_bytes(), &bits.to_le_bytes()];
    file.write_all(&[numbers.concat(), vec![0; 8]].concat()).unwrap();
    let start = Instant::now();
    let query = vault.query(&["dawn"]).unwrap();
    let found = vault.search(&query, true).unwrap();
    assert_eq!(found.hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [good]);
    let (seen, problems) = vault.server().seen().unwrap();
    assert_eq!(seen.len(), 1);
    for problems in [found.problems, problems, vault.entries().unwrap().1] {
        assert!(problems.len() == 1 && problems[0].to_string().contains("shape"), "{problems:?}");
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_remembered_state_shows_that_the_whole_vault_was_set_back() {
    let (_folder, vault) = new_vault();
    let empty = vault.state().unwrap();
    let old = add(&vault, "plan", "dawn");
    let (before, earlier) = (vault.state().unwrap(), snapshot(&vault));
    vault.replace(b"plan", None, &b"dusk"[..], &[old]).unwrap();
    let now = vault.state().unwrap();
    assert!(now.follows(&before) && before.follows(&empty) && now.follows(&now));
    restore(&vault, &earlier);
    // By itself, the vault looks intact.
    let (found, problems) = texts(&vault);
    assert!(problems.is_empty() && found == set(&["dawn"]));
    assert!(!vault.state().unwrap().follows(&now));
    // Nor does it follow after as many other changes.
    add(&vault, "other", "noon");
    restore(&vault, &earlier);
    while vault.state().unwrap().to_string().split(' ').nth(2) != now.to_string().split(' ').nth(2) {
        let mut changes = vault.changes().unwrap();
        changes.set_passphrase(&passphrase("open")).unwrap();
    }
    assert!(!vault.state().unwrap().follows(&now));
    // Another vault is not mistaken for this one.
    let (_other_folder, other) = new_vault();
    assert!(!other.state().unwrap().is_of_same_vault(&now));
    let text = now.to_string();
    assert_eq!(text.parse(), Ok(now));
    for wrong in ["", "x", &text[1..], &text[..text.len() - 1], &text.replace('-', " ")] {
        assert!(wrong.parse::<State>().is_err(), "{wrong}");
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn copied(name: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(golden(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

#[test]
fn a_vault_of_the_first_version_gets_a_list_with_its_first_change() {
    let folder = copied("vault");
    let vault = Vault::open(folder.path(), &passphrase("correct horse battery staple")).unwrap();
    let (entries, _) = vault.entries().unwrap();
    let first = entries[0].id;
    let without_list = vault.state().unwrap();
    // Without a list, a missing document is not noticed.
    let kept = fs::read(vault.server().path(&first)).unwrap();
    fs::remove_file(vault.server().path(&first)).unwrap();
    assert!(vault.entries().unwrap().1.is_empty());
    fs::write(vault.server().path(&first), kept).unwrap();
    add(&vault, "new", "noon");
    let again = Vault::open(folder.path(), &passphrase("correct horse battery staple")).unwrap();
    assert_eq!(again.entries().unwrap().0.len(), 3);
    assert!(again.state().unwrap().follows(&without_list) && !without_list.follows(&again.state().unwrap()));
    fs::remove_file(again.server().path(&first)).unwrap();
    assert!(matches!(again.entries().unwrap().1[..], [Error::MissingDocument { .. }]));
}

#[test]
fn a_vault_of_the_second_version_still_opens() {
    let folder = copied("vault-2");
    let vault = Vault::open(folder.path(), &passphrase("correct horse battery staple")).unwrap();
    let (found, problems) = texts(&vault);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(found, set(&["We attack at dawn.\n", "Soup at noon.\n"]));
    let id = vault.entries().unwrap().0[0].id;
    fs::remove_file(vault.server().path(&id)).unwrap();
    assert!(matches!(vault.entries().unwrap().1[..], [Error::MissingDocument { .. }]));
}
