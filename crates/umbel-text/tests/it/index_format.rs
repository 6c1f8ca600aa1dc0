//! Indexes written by earlier versions are read, and their bytes match `docs/index.md`.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use umbel::Hasher;
use umbel::file::fields::Fields;
use umbel_text::index::{Index, Look};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Returns the files that an index names for a text, without examining them.
fn named(index: &Index, text: &str, whole_words: bool) -> Vec<String> {
    let query = index.any_of(&[text], Look { whole_words, ..Look::default() });
    assert!(query.is_decided(), "{text}");
    index.recall(&query).unwrap().iter().map(|path| path.display().to_string()).collect()
}

#[test]
fn golden_indexes_are_still_readable() {
    let index = Index::open(golden("words.idx")).unwrap();
    for word in ["disk", "Node7", "error_log", "NAÏVE"] {
        assert_eq!(named(&index, word, true), ["logs/a.log", "logs/d.gz"], "{word}");
    }
    assert_eq!(named(&index, "byte", true), ["logs/c.bin"]);
    assert_eq!(named(&index, "longer", true), ["logs/deep/b.log"]);
    let files: Vec<_> =
        index.files().map(|file| (file.text, file.keys, file.blocks, file.compressed)).collect();
    // Ten kilobytes in blocks of four.
    assert_eq!(files[..3], [(36, 8, 1, false), (12, 2, 1, false), (36, 8, 1, true)]);
    assert_eq!((files[3].0, files[3].2), (10292, 3));

    let index = Index::open(golden("substrings.idx")).unwrap();
    assert_eq!(named(&index, "sk full o", false), ["logs/a.log", "logs/d.gz"]);
    assert_eq!(named(&index, "longer fi", false), ["logs/deep/b.log"]);
}

#[test]
fn every_single_bit_flip_of_a_golden_index_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.idx");
    for name in ["words.idx", "substrings.idx"] {
        let whole = std::fs::read(golden(name)).unwrap();
        std::fs::write(&path, &whole).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for bit in 0..8 * whole.len() {
            let (at, byte) = (bit / 8, whole[bit / 8]);
            file.write_all_at(&[byte ^ 1 << (bit % 8)], at as u64).unwrap();
            // There is one page, so opening the index reads everything.
            assert!(Index::open(&path).is_err(), "{name}, bit {bit}");
            file.write_all_at(&[byte], at as u64).unwrap();
        }
        assert!(Index::open(&path).is_ok());
    }
}

/// An independent reader, written from `docs/index.md` alone.
struct Reader {
    contents: Vec<u8>,
    rate: f64,
    grams: u64,
    cells: u64,
    /// The path of each file, and the number of keys in each of its blocks.
    files: Vec<(String, Vec<u64>)>,
    shelves: usize,
}

impl Reader {
    fn new(bytes: &[u8]) -> Reader {
        let mut contents = Vec::new();
        for (number, page) in bytes.chunks(4096).enumerate() {
            let (inside, sum) = page.split_at(4088);
            assert_eq!(Hasher::fast(number as u64).digest_bytes(inside).get().to_le_bytes(), sum);
            contents.extend_from_slice(inside);
        }
        assert_eq!(&contents[..8], b"UMBELIDX");
        assert_eq!(contents[8..16], [1, 0, 0, 0, 0, 0, 0, 0]);
        let number = |at: usize| u64::from_le_bytes(contents[at..at + 8].try_into().unwrap());
        let (catalog, total) = (number(16) as usize, number(24) as usize);
        assert!(contents[total..].iter().all(|byte| *byte == 0) && contents.len() - total < 4088);
        let mut fields = Fields(&contents[32..32 + catalog]);
        let name = |fields: &mut Fields<'_>| {
            let length = fields.varint().unwrap();
            String::from_utf8(fields.bytes(length).unwrap().to_vec()).unwrap()
        };
        let rate = f64::from_bits(fields.u64().unwrap());
        let (grams, _block) = (fields.varint().unwrap(), fields.varint().unwrap());
        let cells = fields.varint().unwrap();
        assert_eq!(fields.varint(), Some(1));
        assert_eq!((name(&mut fields), name(&mut fields)), ("logs".into(), "/logs".into()));
        let mut files: Vec<(String, Vec<u64>)> = Vec::new();
        for _ in 0..fields.varint().unwrap() {
            assert_eq!(fields.varint(), Some(0));
            let shared = fields.varint().unwrap() as usize;
            let start = files.last().map_or("", |(path, _)| &path[..shared]).to_owned();
            let path = start + &name(&mut fields);
            let [flags] = fields.array().unwrap();
            assert_eq!(flags, 1 + 2 * u8::from(path.ends_with("gz")));
            let (_size, _inode, _times) = (fields.varint(), fields.varint(), fields.bytes(24).unwrap());
            let (blocks, before_zero) = (fields.varint().unwrap(), fields.varint().unwrap());
            assert_eq!(before_zero, if path == "c.bin" { 0 } else { blocks });
            let block = |_| {
                let (_bytes, _lines) = (fields.varint(), fields.varint());
                fields.varint().unwrap()
            };
            files.push((path, (0..blocks).map(block).collect()));
        }
        assert!(fields.0.is_empty());
        Reader { rate, grams, cells, files, shelves: 32 + catalog, contents }
    }

    /// Returns the files with a filter that has this digest.
    fn with(&self, digest: u64) -> Vec<&str> {
        let k = (1.0 / self.rate).log2().round().max(1.0);
        let c = self.cells;
        assert!((256.0 * -k / (1.0 - self.rate.powf(1.0 / k)).ln() - c as f64).abs() <= 1.0);
        let bits = |rung: u32| {
            let step = (2f64.powi(32) * 2f64.powf(f64::from(rung % 8) / 8.0)).floor() as u128;
            ((64 * step * (1 << (rung / 8))) >> 32) as u64
        };
        let rung = |keys: u64| (0..).find(|rung| bits(*rung) >= (keys * c).div_ceil(256)).unwrap();
        let blocks =
            self.files.iter().flat_map(|(path, keys)| keys.iter().map(move |keys| (path, rung(*keys))));
        let blocks: Vec<(&String, u32)> = blocks.collect();
        let mut at = self.shelves;
        let mut found = Vec::new();
        for rung in 0..200 {
            let columns: Vec<&String> =
                blocks.iter().filter(|(_, on)| *on == rung).map(|(path, _)| *path).collect();
            for (column, path) in columns.iter().enumerate() {
                let mut x = digest;
                let mut all = true;
                for _ in 0..k as u32 {
                    let row = ((u128::from(x) * u128::from(bits(rung))) >> 64) as usize;
                    let bit = row * columns.len() + column;
                    all &= self.contents[at + bit / 8] >> (bit % 8) & 1 == 1;
                    x = x.wrapping_mul(0xf135_7aea_2e62_a9c5);
                }
                if all && !found.contains(&path.as_str()) {
                    found.push(path.as_str());
                }
            }
            at += (bits(rung) as usize * columns.len()).div_ceil(8);
        }
        found.sort_unstable();
        found
    }
}

#[test]
fn the_bytes_match_the_documentation() {
    let reader = Reader::new(&std::fs::read(golden("words.idx")).unwrap());
    let word = |text: &str| Hasher::fast(0).digest_bytes(text.as_bytes()).get();
    assert_eq!(reader.grams, 0);
    assert_eq!(reader.with(word("naïve")), ["a.log", "d.gz"]);
    assert_eq!(reader.with(word("longer")), ["deep/b.log"]);
    assert!(reader.with(word("nowhere")).is_empty());

    let reader = Reader::new(&std::fs::read(golden("substrings.idx")).unwrap());
    let gram = |text: &[u8; 4]| {
        let number = u64::from(u32::from_be_bytes(*text));
        Hasher::fast(0x73_6d61_7267).digest_bytes(&number.to_le_bytes()).get()
    };
    assert_eq!(reader.grams, 4);
    assert_eq!(reader.with(gram(b"node")), ["a.log", "d.gz"]);
    assert_eq!(reader.with(gram(b"onge")), ["deep/b.log"]);
}
