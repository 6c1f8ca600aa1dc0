//! A store hashes with a secret of its own, which crafted keys cannot know, and without which no
//! entry is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use umbel::spec::Construction;
use umbel::{AnyFilter, Hasher, Kind, Spec};
use umbel_text::tables::{Options, Reader, Store};

const ENTRIES: u64 = 1000;
const CRAFTED: usize = 500;

/// The options of a store as earlier versions wrote it.
fn public() -> Options {
    Options { hasher: Some(Hasher::fast(0)), ..Options::default() }
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Puts these entries into a table of their own.
fn add_table(folder: &Path, options: Options, entries: std::ops::Range<u64>) {
    let mut store = Store::open(folder, options).unwrap();
    entries.for_each(|number| store.put(&key(number), b"value").unwrap());
    store.flush().unwrap();
}

/// Returns absent keys that pass the filter of the first [`ENTRIES`] entries under the public hash,
/// as an attacker finds them who knows the entries.
fn crafted() -> Vec<Vec<u8>> {
    let hasher = Hasher::fast(0);
    let digests = (0..ENTRIES).map(|number| hasher.digest_bytes(&key(number))).collect();
    let spec = Spec::new(ENTRIES, Options::default().rate).unwrap();
    let filter = AnyFilter::from_digests(Kind::Blocked, &spec, digests, &Construction::default()).unwrap();
    let candidates = (0..u64::MAX).map(|number| format!("crafted {number}").into_bytes());
    candidates.filter(|key| filter.contains_digest(hasher.digest_bytes(key))).take(CRAFTED).collect()
}

/// Returns the number of tables that lookups of absent keys read.
fn wasted(reader: &Reader, keys: &[Vec<u8>]) -> u64 {
    let before = reader.counts().wasted;
    keys.iter().for_each(|key| assert_eq!(reader.get(key).unwrap(), None));
    reader.counts().wasted - before
}

fn secret(folder: &Path) -> PathBuf {
    folder.join("filters.key")
}

#[test]
fn each_store_has_a_private_secret_in_a_key_file() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [one, other] = folders.each_ref().map(|folder| {
        add_table(folder.path(), Options::default(), 0..10);
        let path = secret(folder.path());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(path).unwrap();
        let digits = text.strip_prefix("umbel-key keyed ").and_then(|rest| rest.strip_suffix('\n')).unwrap();
        assert!(digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{text}");
        text
    });
    assert_ne!(one, other);
    add_table(folders[0].path(), Options::default(), 10..20);
    assert_eq!(fs::read_to_string(secret(folders[0].path())).unwrap(), one, "it stays the same");
}

#[test]
fn crafted_keys_do_not_pass_the_filters() {
    let crafted = crafted();
    let [open, own] = [public(), Options::default()].map(|options| {
        let folder = tempfile::tempdir().unwrap();
        add_table(folder.path(), options.clone(), 0..ENTRIES);
        wasted(&Reader::open(folder.path(), options).unwrap(), &crafted)
    });
    assert_eq!(open, CRAFTED as u64, "all pass under the public hash");
    // 5 of 500 are expected at a rate of 1 %, and 30 are less likely than one in 10^13.
    assert!(own < 30, "{own}");
}

#[test]
fn a_store_without_a_secret_is_used_as_it_is_until_its_tables_are_merged() {
    let (folder, crafted) = (tempfile::tempdir().unwrap(), crafted());
    add_table(folder.path(), public(), 0..ENTRIES);
    assert!(!secret(folder.path()).exists());
    // A reader creates nothing.
    let reader = Reader::open(folder.path(), Options::default()).unwrap();
    assert_eq!((reader.get(&key(7)).unwrap(), wasted(&reader, &crafted)), (Some(b"value".to_vec()), 500));
    assert!(!secret(folder.path()).exists());
    add_table(folder.path(), Options::default(), ENTRIES..ENTRIES + 10);
    let mut store = Store::open(folder.path(), Options::default()).unwrap();
    assert!(wasted(&store, &crafted) >= 500, "the old table has its public filter");
    store.merge(0..2).unwrap();
    assert!(wasted(&store, &crafted) < 30);
    (0..ENTRIES + 10).for_each(|number| assert!(store.get(&key(number)).unwrap().is_some()));
}

#[test]
fn no_entry_is_lost_with_the_secret() {
    let (folder, crafted) = (tempfile::tempdir().unwrap(), crafted());
    add_table(folder.path(), Options::default(), 0..ENTRIES);
    let lost = fs::read(secret(folder.path())).unwrap();
    fs::remove_file(secret(folder.path())).unwrap();
    // A reader without the secret reads the table for every key, and writes nothing.
    let reader = Reader::open(folder.path(), Options::default()).unwrap();
    (0..ENTRIES).for_each(|number| assert!(reader.get(&key(number)).unwrap().is_some()));
    assert_eq!((wasted(&reader, &crafted), reader.counts().skipped), (500, 0));
    assert_eq!(reader.tables()[0].filter_bytes, 0);
    assert!(!secret(folder.path()).exists());
    // A store makes a new secret and builds its filters again.
    let store = Store::open(folder.path(), Options::default()).unwrap();
    (0..ENTRIES).for_each(|number| assert!(store.get(&key(number)).unwrap().is_some()));
    assert!(wasted(&store, &crafted) < 30);
    assert_ne!(fs::read(secret(folder.path())).unwrap(), lost);
}

#[test]
fn a_file_that_is_not_the_secret_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    add_table(folder.path(), Options::default(), 0..10);
    let whole = fs::read(secret(folder.path())).unwrap();
    for contents in [&b"my notes\n"[..], b"", &whole[..30], &[&whole[..], b"\n"].concat(), &[b'f'; 9000]] {
        fs::write(secret(folder.path()), contents).unwrap();
        let error = format!("{:#}", Store::open(folder.path(), Options::default()).unwrap_err());
        assert!(error.contains("filters.key") && error.contains("not a key file"), "{error}");
        assert_eq!(fs::read(secret(folder.path())).unwrap(), contents);
        let reader = Reader::open(folder.path(), Options::default()).unwrap();
        assert!((0..10).all(|number| reader.get(&key(number)).unwrap().is_some()));
    }
    // Nor is a link followed.
    let elsewhere = folder.path().join("00000007.log.elsewhere");
    fs::write(&elsewhere, &whole).unwrap();
    fs::remove_file(secret(folder.path())).unwrap();
    std::os::unix::fs::symlink(&elsewhere, secret(folder.path())).unwrap();
    assert!(Store::open(folder.path(), Options::default()).is_err());
    // Alone in a folder, a file of that name does not make a store.
    let foreign = tempfile::tempdir().unwrap();
    fs::write(secret(foreign.path()), &whole).unwrap();
    let error = Store::open(foreign.path(), Options::default()).unwrap_err();
    assert!(matches!(error, umbel_text::Error::Occupied { .. }), "{error}");
}
