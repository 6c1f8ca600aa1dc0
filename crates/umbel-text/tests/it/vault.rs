//! The server of a vault learns no more than is documented, every change to a vault is detected,
//! and the owner finds every document.

use flate2::{Compression, write::GzEncoder};
use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use sha2::Sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use umbel_text::Error;
use umbel_text::vault::zidx::{Id, Index, IndexKey, IndexShape, Noise, Trapdoor};
use umbel_text::vault::{CHUNK, Cost, Entry, Options, Passphrase, Server, Vault, padded};

pub(crate) fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(text.as_bytes().to_vec().into()).expect("a passphrase")
}

/// A vault for documents of few words, in a temporary directory.
struct TestVault {
    folder: TempDir,
    vault: Vault,
}

impl TestVault {
    fn new(words: u32, rate: f64) -> TestVault {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options { cost: Cost::WEAKEST, words, rate };
        let vault = Vault::create(folder.path().join("v"), &passphrase("open"), &options).expect("a vault");
        TestVault { folder, vault }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("v")
    }

    fn add(&self, name: &str, text: impl AsRef<[u8]>) -> Id {
        self.vault.add(name.as_bytes(), None, text.as_ref()).expect("a document").entry.id
    }

    fn file(&self, id: &Id) -> PathBuf {
        self.vault.server().path(id)
    }

    fn get(&self, id: &Id) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.vault.read(id, &mut bytes).expect("its contents");
        bytes
    }

    /// Returns the names of the documents that a search finds.
    fn search(&self, words: &[&str], confirm: bool) -> BTreeSet<String> {
        let query = self.vault.query(words).expect("words");
        let found = self.vault.search(&query, confirm).expect("an answer");
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        found.hits.iter().map(name).collect()
    }

    fn is_damaged(&self, id: &Id) -> bool {
        matches!(self.vault.check(id), Err(Error::Damaged { .. } | Error::Newer { .. }))
    }
}

fn name(entry: &Entry) -> String {
    String::from_utf8_lossy(&entry.head.name).into_owned()
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| (path.clone(), fs::read(&path).expect("a file"))).collect()
}

fn words(family: &str, count: usize) -> String {
    (0..count).map(|number| format!("{family}{number} ")).collect()
}

#[test]
fn trapdoors_and_codewords_match_the_paper() {
    let f = |key: &[u8], message: &[u8]| -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
        mac.update(message);
        mac.finalize().into_bytes().into()
    };
    let shape = IndexShape::new(100, 5).unwrap();
    let (secret, id) = ([3; 32], Id([4; 16]));
    let trapdoor = IndexKey::new(&secret, 5).trapdoor("word");
    let mut bytes = Vec::new();
    let mut positions = Vec::new();
    for i in 0..5u32 {
        let key = f(&secret, &[&b"key"[..], &i.to_le_bytes()].concat());
        let x = f(&key, b"word");
        let y = f(&x, &[&id.0[..], &7u32.to_le_bytes()].concat());
        bytes.extend(x);
        positions.push(u64::from_le_bytes(*y.first_chunk().unwrap()) % shape.bits());
    }
    assert_eq!(trapdoor.to_bytes(), bytes);
    assert_eq!(Trapdoor::from_bytes(&bytes), Some(trapdoor.clone()));
    assert!(Trapdoor::from_bytes(&bytes[1..]).is_none() && Trapdoor::from_bytes(&[]).is_none());
    assert_eq!(trapdoor.positions(&id, 7, shape.bits()).collect::<Vec<_>>(), positions);
    let index = Index::build(&shape, &id, 7, &[trapdoor], &mut Noise::new(&[0; 32]));
    assert!(positions.iter().all(|position| index.bit(*position)));
}

#[test]
fn indexes_of_the_same_words_share_bits_only_by_chance() {
    let shape = IndexShape::new(2000, 14).unwrap();
    let key = IndexKey::new(&[1; 32], shape.hashes());
    let m = shape.bits() as f64;
    for count in [1, 500, 2000] {
        let words: Vec<Trapdoor> = (0..count).map(|i| key.trapdoor(&format!("w{i}"))).collect();
        let index = |document: u8| {
            Index::build(&shape, &Id([document; 16]), 0, &words, &mut Noise::new(&[document; 32]))
        };
        let (mut shared, mut expected, mut variance) = (0.0, 0.0, 0.0);
        let mut fills = Vec::new();
        for pair in 0..12 {
            let (a, b) = (index(2 * pair), index(2 * pair + 1));
            let both = a.bits().iter().zip(b.bits()).map(|(a, b)| (a & b).count_ones()).sum::<u32>();
            let (x, y) = (a.ones() as f64, b.ones() as f64);
            shared += f64::from(both);
            // Two sets of x and y positions, drawn independently from m.
            expected += x * y / m;
            variance += x * y * (m - x) * (m - y) / (m * m * (m - 1.0));
            fills.extend([x / m, y / m]);
        }
        let distance = (shared - expected) / f64::sqrt(variance);
        assert!(distance.abs() < 4.0, "{count} words: {distance} standard errors");
        // The fill does not reveal the number of words. Its variance is below that of m independent
        // bits.
        let mean = fills.iter().sum::<f64>() / fills.len() as f64;
        let error = (0.25 / m / fills.len() as f64).sqrt();
        assert!((mean - shape.fill()).abs() < 4.0 * error, "{count} words: fill {mean}");
    }
    assert!((shape.fill() - 0.5).abs() < 0.001);
}

#[test]
fn the_rate_is_two_to_the_minus_r() {
    let shape = IndexShape::new(300, 6).unwrap();
    // The rate is not above 2^-6, because the number of bits is rounded up to whole words.
    assert!((0.95..=1.0).contains(&(shape.rate() * 64.0)), "{}", shape.rate());
    let (mut asked, mut taken, mut expected) = (0.0, 0.0, 0.0);
    for build in 0..20u8 {
        let key = IndexKey::new(&[build; 32], 6);
        let words: Vec<Trapdoor> = (0..200).map(|i| key.trapdoor(&format!("in{i}"))).collect();
        let id = Id([build; 16]);
        let index = Index::build(&shape, &id, 0, &words, &mut Noise::new(&[build; 32]));
        assert!(words.iter().all(|word| index.contains(&id, 0, word)));
        let fill = index.ones() as f64 / shape.bits() as f64;
        let strangers = 2000;
        let hits =
            (0..strangers).filter(|i| index.contains(&id, 0, &key.trapdoor(&format!("out{i}")))).count();
        asked += f64::from(strangers);
        taken += hits as f64;
        expected += f64::from(strangers) * fill.powi(6);
    }
    let rate = expected / asked;
    let distance = (taken - expected) / (asked * rate * (1.0 - rate)).sqrt();
    assert!(distance.abs() < 4.0, "{taken} of {asked}, {expected} expected");
    assert!((0.9..1.05).contains(&(rate * 64.0)), "{rate}");
}

#[test]
fn every_flipped_bit_of_a_document_is_detected() {
    let test = TestVault::new(8, 1e-4);
    let id = test.add("note", "attack at dawn");
    let path = test.file(&id);
    let good = fs::read(&path).unwrap();
    assert!(good.len() < 1500, "{}", good.len());
    // Change the file in place: writing a new file would flush it to disk each time.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for bit in 0..good.len() * 8 {
        let (at, byte) = (bit as u64 / 8, good[bit / 8]);
        file.write_all_at(&[byte ^ 1 << (bit % 8)], at).unwrap();
        assert!(test.is_damaged(&id), "bit {bit} of {}", good.len() * 8);
        file.write_all_at(&[byte], at).unwrap();
    }
    for end in (0..good.len()).rev() {
        file.set_len(end as u64).unwrap();
        assert!(test.is_damaged(&id), "cut to {end}");
    }
    fs::write(&path, [&good[..], b"\0"].concat()).unwrap();
    assert!(test.is_damaged(&id));
    fs::write(&path, &good).unwrap();
    assert_eq!(test.get(&id), b"attack at dawn");
}

#[test]
fn a_damaged_index_never_silently_hides_a_document() {
    let test = TestVault::new(8, 1e-4);
    let id = test.add("note", "attack at dawn");
    let other = test.add("other", "nothing");
    let path = test.file(&id);
    let mut bytes = fs::read(&path).unwrap();
    let index = bytes.len() - 32 - 24;
    bytes[index..index + 24].fill(0);
    fs::write(&path, bytes).unwrap();
    let query = test.vault.query(&["attack"]).unwrap();
    let answer = test.vault.server().search(query.trapdoors()).unwrap();
    assert_eq!((answer.hits.len(), answer.asked, answer.problems.len()), (0, 2, 1));
    assert!(answer.problems[0].to_string().contains(&id.to_string()));
    // The other document is fine.
    assert!(test.vault.check(&other).is_ok());
    let (entries, problems) = test.vault.entries().unwrap();
    assert_eq!((entries.len(), problems.len()), (1, 1));
}

#[test]
fn no_part_can_be_moved_removed_or_replaced() {
    let test = TestVault::new(8, 1e-4);
    let long = |byte: u8| vec![byte; 4 * CHUNK - 100];
    let (a, b) = (test.add("a", long(b'a')), test.add("b", long(b'b')));
    let [one, two] = [a, b].map(|id| fs::read(test.file(&id)).unwrap());
    assert_eq!(one.len(), two.len());
    let check = |bytes: Vec<u8>, what: &str| {
        assert_ne!(bytes, one, "{what}");
        fs::write(test.file(&a), bytes).unwrap();
        assert!(test.is_damaged(&a), "{what}");
        fs::write(test.file(&a), &one).unwrap();
        assert!(test.vault.check(&a).is_ok());
    };
    check(two.clone(), "another document under this name");
    let content = u64::from_le_bytes(*one[one.len() - 32..].first_chunk().unwrap()) as usize;
    let sealed = CHUNK + 16;
    let mut mixed = one.clone();
    mixed[32..32 + content].copy_from_slice(&two[32..32 + content]);
    check(mixed, "contents of another");
    let mut mixed = one.clone();
    mixed[32 + sealed..32 + 2 * sealed].copy_from_slice(&two[32 + sealed..32 + 2 * sealed]);
    check(mixed, "a chunk of another");
    let mut mixed = one.clone();
    mixed[32 + content..].copy_from_slice(&two[32 + content..]);
    check(mixed, "head and index of another");
    let index = one.len() - 32 - 24;
    let mut mixed = one.clone();
    mixed[index..].copy_from_slice(&two[index..]);
    check(mixed, "index of another");
    let mut mixed = one.clone();
    let (first, second) = mixed[32..32 + 2 * sealed].split_at_mut(sealed);
    first.swap_with_slice(second);
    check(mixed, "chunks in another order");
    // A hostile server could remove chunks and correct the length and the checksum.
    for left_out in [32..32 + sealed, 32 + content - sealed..32 + content] {
        let mut mixed = one.clone();
        mixed.drain(left_out);
        let at = mixed.len() - 32;
        mixed[at..at + 8].copy_from_slice(&((content - sealed) as u64).to_le_bytes());
        let mut hash = <Sha256 as sha2::Digest>::new();
        sha2::Digest::update(&mut hash, &mixed[..32]);
        sha2::Digest::update(&mut hash, &mixed[at - 24..at + 24]);
        let sum = sha2::Digest::finalize(hash);
        mixed[at + 24..].copy_from_slice(&sum[..8]);
        check(mixed, "a chunk less");
    }
    // A document of another vault with the same passphrase is refused, too.
    let stranger = TestVault::new(8, 1e-4);
    let c = stranger.add("c", "text");
    fs::copy(stranger.file(&c), test.file(&c)).unwrap();
    assert!(test.is_damaged(&c));
}

#[test]
fn a_name_may_be_any_bytes_up_to_a_limit() {
    let test = TestVault::new(8, 1e-4);
    for name in [&b""[..], b"../..\xff\n", &[b'n'; 1 << 16]] {
        let id = test.vault.add(name, None, &b"text"[..]).expect("a document").entry.id;
        assert_eq!(test.vault.entry(&id).expect("a head").head.name, name);
    }
    assert!(test.vault.add(&[b'n'; (1 << 16) + 1], None, &b"text"[..]).is_err());
}

#[test]
fn contents_survive_a_round_trip() {
    let test = TestVault::new(8, 1e-4);
    for length in [0, 1, 1023, 1024, 1025, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5] {
        let bytes: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        let id = test.add("n", &bytes);
        assert_eq!(test.get(&id), bytes, "{length}");
        let sealed = padded(length as u64) + 16 * padded(length as u64).div_ceil(CHUNK as u64);
        let seen = test.vault.server().seen().unwrap().0;
        assert_eq!(seen.iter().find(|seen| seen.id == id).unwrap().content, sealed);
    }
    // A length that needs no padding.
    let exact = padded(5 * CHUNK as u64);
    let id = test.add("n", vec![1; exact as usize]);
    assert_eq!(test.get(&id).len() as u64, exact);
}

#[test]
fn two_copies_of_a_document_look_unrelated_and_reveal_nothing() {
    let test = TestVault::new(2000, 1e-4);
    let text = words("confidential", 300);
    let (a, b) = (test.add("secretname.txt", &text), test.add("secretname.txt", &text));
    let [one, two] = [a, b].map(|id| fs::read(test.file(&id)).unwrap());
    assert_eq!(one.len(), two.len());
    let same = one.windows(12).filter(|window| two.windows(12).any(|other| other == *window)).count();
    // Only the start, with the version, and the numbers at the end are the same.
    assert!(same < 30, "{same} windows in common");
    for (path, bytes) in files(&test.path()) {
        let shown = path.display();
        for needle in ["confid", "secret", "txt"] {
            let found = bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
            assert!(
                !found && !path.file_name().unwrap().to_string_lossy().contains(needle),
                "{needle} in {shown}"
            );
        }
    }
}

#[test]
fn a_server_needs_no_key_and_a_trapdoor_finds_one_word() {
    let test = TestVault::new(100, 1e-6);
    let plan = test.add("plan", "attack at dawn");
    test.add("menu", "soup at noon");
    // The server has only the documents, not even the sealed key.
    let server = tempfile::tempdir().unwrap();
    for id in Server::new(test.path()).documents().unwrap() {
        fs::copy(test.file(&id), server.path().join(format!("{id}.doc"))).unwrap();
    }
    let sent: Vec<Vec<u8>> =
        test.vault.query(&["attack"]).unwrap().trapdoors().iter().map(Trapdoor::to_bytes).collect();
    let received: Vec<Trapdoor> = sent.iter().map(|bytes| Trapdoor::from_bytes(bytes).unwrap()).collect();
    let answer = Server::new(server.path()).search(&received).unwrap();
    assert_eq!((answer.hits, answer.asked), (vec![plan], 2));
    // A trapdoor of another vault finds nothing, even for the same word.
    let other = TestVault::new(100, 1e-6);
    let query = other.vault.query(&["attack"]).unwrap();
    assert!(Server::new(server.path()).search(query.trapdoors()).unwrap().hits.is_empty());
    // A similar word has a different trapdoor.
    assert_ne!(test.vault.query(&["attacks"]).unwrap().trapdoors(), &received[..]);
}

#[test]
fn all_words_of_a_document_with_a_multipart_index_are_found() {
    let test = TestVault::new(100, 1e-4);
    let id = test.add("long", words("w", 1234));
    let seen = test.vault.server().seen().unwrap().0;
    assert_eq!((seen.len(), seen[0].parts), (1, 13));
    let shape = test.vault.header().shape;
    assert_eq!(seen[0].bits[1], 13 * shape.bits());
    for number in (0..1234).step_by(7) {
        assert_eq!(test.search(&[&format!("W{number}")], false).len(), 1, "{number}");
    }
    // A query for several words, each in a different part.
    assert_eq!(test.search(&["w1", "w500", "w1233"], false).len(), 1);
    assert!(test.search(&["w1", "w1234"], true).is_empty());
    assert_eq!(test.vault.entry(&id).unwrap().head.words, 1234);
    let tiny = TestVault::new(8, 0.4);
    let most = 8 * umbel_text::vault::MAX_PARTS as usize;
    tiny.add("just", words("", most));
    let error = tiny.vault.add(b"more", None, words("", most + 1).as_bytes()).unwrap_err();
    assert!(matches!(error, Error::TooManyWords { .. }), "{error}");
    assert_eq!(tiny.vault.server().documents().unwrap().len(), 1);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_text_is_found_and_binary_data_has_no_words() {
    let test = TestVault::new(2000, 1e-5);
    let packed = gzip(b"Winter is coming.");
    let id = test.add("gz", &packed);
    assert_eq!(test.get(&id), packed);
    test.add("zst", zstd::encode_all(&b"winter and summer"[..], 1).unwrap());
    test.add("binary", b"winter\0\xff\xfe");
    test.add("latin", b"winter caf\xe9 au lait");
    assert_eq!(test.search(&["winter"], true), ["gz", "latin", "zst"].map(String::from).into());
    assert_eq!(test.search(&["winter"], false), test.search(&["winter"], true));
    let texts: Vec<_> = test.vault.entries().unwrap().0;
    assert!(texts.iter().all(|entry| entry.head.is_text == (name(entry) != "binary")));
    // A truncated archive is stored as it is.
    let packed = gzip(words("packed", 5000).as_bytes());
    let added = test.vault.add(b"cut", None, &packed[..packed.len() / 2]).unwrap();
    assert!(added.cut.is_some() && added.entry.head.is_text && added.entry.head.words > 100);
    assert_eq!(test.get(&added.entry.id), &packed[..packed.len() / 2]);
    assert_eq!(test.search(&["packed0"], true), ["cut".to_owned()].into());
}

/// A reader that fails after this many bytes.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::Error::other("the disk is on fire"));
        }
        let now = self.0.min(buffer.len());
        buffer[..now].fill(b'x');
        self.0 -= now;
        Ok(now)
    }
}

#[test]
fn a_document_that_cannot_be_read_is_not_added() {
    let test = TestVault::new(8, 1e-4);
    let before = files(&test.path());
    for length in [0, 5, 3 * CHUNK] {
        let error = test.vault.add(b"broken", None, Failing(length)).unwrap_err();
        let source = std::error::Error::source(&error).expect("a cause").to_string();
        assert!(error.to_string().contains("broken") && source.contains("on fire"), "{error}: {source}");
    }
    assert_eq!(files(&test.path()), before, "nothing is left of it");
}

#[test]
fn a_wrong_passphrase_opens_nothing_and_changes_nothing() {
    let test = TestVault::new(8, 1e-4);
    test.add("a", "text");
    let before = files(&test.path());
    for wrong in ["Open", "open ", "x"] {
        let error = Vault::open(test.path(), &passphrase(wrong)).err().expect("it is wrong");
        assert!(matches!(error, Error::WrongPassphrase { .. }), "{error}");
    }
    assert!(Passphrase::new(Vec::new().into()).is_none());
    assert_eq!(format!("{:?}", passphrase("swordfish")), "Passphrase");
    assert_eq!(Vault::open(test.path(), &passphrase("open")).unwrap().entries().unwrap().0.len(), 1);
    // A vault is created neither over another one nor among other files.
    let options = Options { cost: Cost::WEAKEST, ..Options::default() };
    let error = Vault::create(test.path(), &passphrase("new"), &options).err().expect("there is one");
    assert!(matches!(error, Error::VaultExists { .. }), "{error}");
    assert_eq!(files(&test.path()), before);
    // An accented letter is the same from every keyboard.
    let other = test.folder.path().join("other");
    Vault::create(&other, &passphrase("caf\u{e9}"), &options).unwrap();
    assert!(Vault::open(&other, &passphrase("cafe\u{301}")).is_ok());
    assert!(matches!(Vault::open(test.folder.path(), &passphrase("x")), Err(Error::NoVault { .. })));
}

#[test]
fn documents_can_be_added_concurrently() {
    let test = TestVault::new(100, 1e-6);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let path = test.path();
            scope.spawn(move || {
                let vault = Vault::open(path, &passphrase("open")).expect("a vault");
                for number in 0..25 {
                    let text = format!("worker{worker} number{number} all");
                    vault.add(format!("{worker}-{number}").as_bytes(), None, text.as_bytes()).expect("room");
                }
            });
        }
    });
    assert_eq!(test.search(&["all"], true).len(), 100);
    assert_eq!(test.search(&["worker2", "number7"], true), ["2-7".to_owned()].into());
}

/// A vault written by the first version, with its passphrase.
#[test]
fn a_vault_of_the_first_version_still_opens() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/vault");
    let vault = Vault::open(&golden, &passphrase("correct horse battery staple")).expect("the golden vault");
    let (entries, problems) = vault.entries().unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    let mut names: Vec<String> = entries.iter().map(name).collect();
    names.sort_unstable();
    assert_eq!(names, ["menu.txt", "plan.txt"]);
    let query = vault.query(&["attack", "dawn"]).unwrap();
    let found = vault.search(&query, false).unwrap();
    assert_eq!(found.hits.iter().map(name).collect::<Vec<_>>(), ["plan.txt"]);
    let mut bytes = Vec::new();
    vault.read(&found.hits[0].id, &mut bytes).expect("its contents");
    assert_eq!(bytes, b"We attack at dawn.\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Reading everything is the oracle.
    #[test]
    fn a_search_finds_what_reading_everything_finds(
        documents in proptest::collection::vec(proptest::collection::vec(0u8..40, 0..30), 1..12),
        asked in proptest::collection::vec(proptest::collection::vec(0u8..40, 1..4), 1..8),
    ) {
        let test = TestVault::new(16, 0.1);
        let word = |number: &u8| format!("wörd{number}");
        for (i, numbers) in documents.iter().enumerate() {
            let text: Vec<String> = numbers.iter().map(word).collect();
            test.add(&i.to_string(), text.join(", ").to_uppercase());
        }
        for numbers in asked {
            let words: Vec<String> = numbers.iter().map(word).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let holds = |document: &Vec<u8>| numbers.iter().all(|number| document.contains(number));
            let naive: BTreeSet<String> =
                documents.iter().enumerate().filter(|(_, d)| holds(d)).map(|(i, _)| i.to_string()).collect();
            prop_assert_eq!(&test.search(&words, true), &naive);
            prop_assert!(test.search(&words, false).is_superset(&naive));
        }
    }
}
