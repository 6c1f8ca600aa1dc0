//! Corner cases of the index and the search: damaged archives, hostile indexes, odd characters, and
//! files that are not regular.

use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use umbel::file::fields::{put_varint, sum_at};
use umbel_text::index::{self, Index, Look, Options, Part, Settings, everything};
use umbel_text::search::{Pattern, Searcher};
use umbel_text::tokens::{Alphabet, fold};

const WORD: Look = Look { whole_words: true, ignore_case: false, ascii: false };
const PART: Look = Look { whole_words: false, ignore_case: false, ascii: false };
const WORD_ANY_CASE: Look = Look { whole_words: true, ignore_case: true, ascii: false };

/// Creates a directory `logs` with one file.
fn logs(name: &str, bytes: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    fs::write(logs.join(name), bytes).unwrap();
    (folder, logs)
}

/// Returns the lines found by reading everything, with their numbers, and the result of the search.
fn found(directory: &Path, texts: &[&str], look: Look) -> (Vec<(u64, Vec<u8>)>, io::Result<()>) {
    let pattern = Pattern::new(texts, look);
    let mut lines = Vec::new();
    let mut result = Ok(());
    for file in &everything(directory).files {
        let each = |line: umbel_text::search::MatchedLine<'_>| {
            lines.push((line.number, line.text.to_vec()));
            true
        };
        result = result.and(Searcher::new(&pattern).search(file, each));
    }
    (lines, result)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_damaged_end_hides_nothing_before_it() {
    let text = (0..5000).map(|i| format!("line {i} foo\n")).collect::<String>();
    let whole = gzip(text.as_bytes());
    let padded = [&whole[..], &[0; 512]].concat();
    let rubbish = [&whole[..], b"rubbish\n"].concat();
    // A log that is still being written has no end, either.
    let cut = &whole[..whole.len() - 8];
    for bytes in [&padded[..], &rubbish, cut] {
        let (_folder, logs) = logs("a.gz", bytes);
        let (lines, result) = found(&logs, &["foo"], PART);
        assert!(result.is_err());
        assert_eq!(lines.len(), 5000, "zgrep finds them all");
        let index = logs.with_extension("idx");
        let made = index::build(&index, &[logs], &Settings::WORDS, &Options::default()).unwrap();
        assert_eq!((made.files, made.failed.len()), (0, 1), "an incomplete text is not in an index");
    }
}

#[test]
fn a_rare_text_does_not_slow_down_a_frequent_one() {
    let (_folder, logs) = logs("a", "x foo\n".repeat(1 << 19));
    let start = Instant::now();
    assert_eq!(found(&logs, &["foo", "nowhere"], PART).0.len(), 1 << 19);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn no_line_is_found_after_the_last_one() {
    let (_folder, logs) = logs("a", "ab\n");
    assert_eq!(found(&logs, &[""], WORD).0, []);
    assert_eq!(found(&logs, &[""], PART).0, [(1, b"ab".to_vec())]);
}

#[test]
fn characters_that_are_not_letters_for_grep_end_a_word() {
    // `grep -Fw` in the locale C.UTF-8 finds each of these.
    for (text, word) in [("10 m² of land\n", "m"), ("a½ b\n", "a"), ("see x①\n", "x")] {
        let (_folder, logs) = logs("a", text);
        assert_eq!(found(&logs, &[word], WORD).0.len(), 1, "{text}");
        let index = logs.with_extension("idx");
        index::build(&index, &[logs], &Settings::WORDS, &Options::default()).unwrap();
        let index = Index::open(index).unwrap();
        assert_eq!(index.select(&index.any_of(&[word], WORD)).unwrap().named().count(), 1, "{text}");
    }
    // It counts these as parts of words.
    for digit in ['٣', '५', '３', 'Ⅳ', '〇', 'Ⓐ', '𝟗'] {
        assert!(Alphabet::Words.contains(digit), "{digit}");
    }
}

#[test]
fn folding_does_not_move_the_edges_of_words() {
    for character in (0..0x11_0000).filter_map(char::from_u32) {
        let folded = String::from_utf8(fold(character.encode_utf8(&mut [0; 4]).as_bytes())).unwrap();
        assert_eq!(folded.chars().count(), 1, "{character:?}");
        let is_word = |c| Alphabet::Words.contains(c);
        assert!(folded.chars().all(|folded| is_word(folded) == is_word(character)), "{character:?}");
    }
}

#[test]
fn the_index_rules_out_nothing_that_the_search_would_find() {
    let (_folder, logs) = logs("a", "İstanbul\n");
    for settings in [Settings::WORDS, Settings { grams: Some(2), ..Settings::SUBSTRINGS }] {
        let index = logs.with_extension("idx");
        index::build(&index, std::slice::from_ref(&logs), &settings, &Options::default()).unwrap();
        let index = Index::open(index).unwrap();
        // A lower-case i with a combining dot.
        let text = "i\u{307}stanbul";
        let read = !found(&logs, &[text], WORD_ANY_CASE).0.is_empty();
        let named = index.select(&index.any_of(&[text], WORD_ANY_CASE)).unwrap().named().count() > 0;
        assert!(named || !read);
    }
}

#[test]
fn a_link_to_a_directory_has_its_index_beside_it() {
    let (folder, logs) = logs("a", "foo\n");
    let link = folder.path().join("link");
    symlink(&logs, &link).unwrap();
    let index = index::default_index(&link).unwrap();
    index::build(&index, std::slice::from_ref(&link), &Settings::WORDS, &Options::default()).unwrap();
    let beside = index::beside(&link).map(|found| fs::canonicalize(found).unwrap());
    assert_eq!(beside, Some(fs::canonicalize(index).unwrap()));
}

#[test]
fn a_file_with_a_wrong_length_is_never_ruled_out() {
    // Such files change without a new time.
    let load = Path::new("/proc/loadavg");
    if load.exists() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("load.idx");
        index::build(&index, &[load.to_owned()], &Settings::WORDS, &Options::default()).unwrap();
        let index = Index::open(index).unwrap();
        let selection = index.select(&index.any_of(&["nowhere"], WORD)).unwrap();
        assert!(matches!(selection.files[0].part, Part::All(_)), "{selection:?}");
    }
}

/// Divides contents into pages with correct checksums.
fn pages(contents: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, page) in contents.chunks(4088).enumerate() {
        let mut page = page.to_vec();
        page.resize(4088, 0);
        let sum = sum_at(number as u64, &page);
        bytes.extend(page);
        bytes.extend(sum.to_le_bytes());
    }
    bytes
}

fn head(catalog: u64, total: u64) -> Vec<u8> {
    [&b"UMBELIDX"[..], &[1, 0, 0, 0, 0, 0, 0, 0], &catalog.to_le_bytes(), &total.to_le_bytes()].concat()
}

/// Returns the start of a catalog with one root, up to its files.
fn catalog(root: &Path, files: u64) -> Vec<u8> {
    let mut bytes = 0.01f64.to_le_bytes().to_vec();
    // Words only, blocks of 1 MiB, 9.6 bits per key, one root.
    [0, 1 << 20, 2456, 1].into_iter().for_each(|number| put_varint(&mut bytes, number));
    for _ in 0..2 {
        put_varint(&mut bytes, root.as_os_str().len() as u64);
        bytes.extend(root.as_os_str().as_encoded_bytes());
    }
    put_varint(&mut bytes, files);
    bytes
}

/// Appends a file of a catalog, up to its blocks.
fn entry(bytes: &mut Vec<u8>, shared: u64, rest: &[u8], of: &fs::Metadata, flags: u8) {
    put_varint(bytes, 0);
    put_varint(bytes, shared);
    put_varint(bytes, rest.len() as u64);
    bytes.extend(rest);
    bytes.push(flags);
    put_varint(bytes, of.len());
    put_varint(bytes, of.ino());
    for (seconds, nanoseconds) in [(of.mtime(), of.mtime_nsec()), (of.ctime(), of.ctime_nsec())] {
        bytes.extend(seconds.to_le_bytes());
        bytes.extend((nanoseconds as u32).to_le_bytes());
    }
}

/// Opens an index with this catalog and shelves of zeros.
fn open(catalog: &[u8], shelves: usize) -> umbel_text::Result<Index> {
    let total = 32 + catalog.len() + shelves;
    let contents = [&head(catalog.len() as u64, total as u64)[..], catalog, &vec![0; shelves]].concat();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), pages(&contents)).unwrap();
    Index::open(file.path())
}

#[test]
fn a_length_that_wraps_around_is_refused() {
    // The size of this many pages is 4096 modulo 2^64, which would allow any length of the catalog.
    let total = ((1u64 << 52) + 1) * 4088;
    for catalog in [1 << 62, 1 << 45, total - 32] {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), pages(&head(catalog, total))).unwrap();
        assert!(Index::open(file.path()).is_err());
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), pages(&head(0, u64::MAX))).unwrap();
    assert!(Index::open(file.path()).is_err());
}

#[test]
fn shared_prefixes_cannot_exhaust_memory() {
    // Each of these files takes about forty bytes in the catalog, but a hundred thousand in memory.
    let (_folder, logs) = logs("a", "foo\n");
    let metadata = fs::metadata(logs.join("a")).unwrap();
    let mut bytes = catalog(&logs, 101);
    entry(&mut bytes, 0, &[b'a'; 100_000], &metadata, 1);
    bytes.extend([0, 0]);
    for i in 0..100u64 {
        entry(&mut bytes, 100_000, &i.to_be_bytes(), &metadata, 1);
        bytes.extend([0, 0]);
    }
    assert!(open(&bytes, 0).is_err());
}

#[test]
fn blocks_are_not_longer_than_their_file() {
    // Reading this as one block would take eight terabytes of memory.
    let (_folder, logs) = logs("a", "foo\n");
    let metadata = fs::metadata(logs.join("a")).unwrap();
    let mut bytes = catalog(&logs, 1);
    entry(&mut bytes, 0, b"a", &metadata, 1);
    bytes.extend([1, 1]);
    [1 << 43, 0, 1].into_iter().for_each(|number| put_varint(&mut bytes, number));
    assert!(open(&bytes, 8).is_err());
    // With the actual length the index opens.
    let mut bytes = catalog(&logs, 1);
    entry(&mut bytes, 0, b"a", &metadata, 1);
    bytes.extend([1, 1, 4, 1, 1]);
    assert!(open(&bytes, 8).is_ok());
}

#[test]
fn sums_of_claimed_sizes_do_not_overflow() {
    let (_folder, logs) = logs("a", "foo\n");
    let metadata = fs::metadata(logs.join("a")).unwrap();
    for (blocks, keys) in [(1u64 << 20, 0), (1 << 21, (1 << 44) - 1)] {
        let mut bytes = catalog(&logs, 1);
        entry(&mut bytes, 0, b"a", &metadata, 3);
        put_varint(&mut bytes, blocks);
        put_varint(&mut bytes, 0);
        for _ in 0..blocks {
            [(1 << 44) - 1, 1, keys].into_iter().for_each(|number| put_varint(&mut bytes, number));
        }
        if let Ok(index) = open(&bytes, 0) {
            let _ = index.recall(&index.any_of(&["foo", ","], WORD));
            let _ = index.files().map(|file| file.text).max();
        }
    }
}
