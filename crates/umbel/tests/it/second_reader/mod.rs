//! A reader of the container and the bits as docs/format.md describes them, which shares no code
//! with the library.

use std::path::PathBuf;
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub const C: u64 = 0xf135_7aea_2e62_a9c5;
const LINE: usize = 64;

/// A file's header and body, after every check of the container.
pub struct File {
    pub kind: u64,
    pub seed: u64,
    pub capacity: u64,
    pub rate: f64,
    pub parameters: Vec<u64>,
    /// The type and the bytes of each section.
    pub sections: Vec<(u64, Vec<u8>)>,
}

fn number(bytes: &[u8], offset: usize, length: usize) -> u64 {
    bytes[offset..offset + length].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn all_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Reads a golden file by the rules of the chapter "The container".
pub fn read(name: &str, insertions: u64) -> File {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    parse(&std::fs::read(path.with_extension("umbel")).unwrap(), insertions)
}

/// Parses a file without metadata and with the hash `fast`.
pub fn parse(bytes: &[u8], insertions: u64) -> File {
    let header = number(bytes, 20, 4) as usize;
    assert_eq!(bytes[..8], *b"\x89UMBEL\r\n");
    assert_eq!(header % LINE, 0);
    assert_eq!(
        number(bytes, header - 8, 8),
        xxh3_64_with_seed(&bytes[..header - 8], u64::from_le_bytes(*b"umbel\0\0\0"))
    );
    assert_eq!(number(bytes, 8, 2), 1, "version");
    assert_eq!(number(bytes, 12, 8), 0, "flags");
    assert_eq!(number(bytes, 24, 8), bytes.len() as u64);
    assert_eq!(number(bytes, 32, 1), 1, "fast");
    assert_eq!(number(bytes, 33, 1), 16, "chunks of 64 KiB");
    assert_eq!(number(bytes, 34, 2), 0, "metadata");
    assert_eq!(number(bytes, 64, 8), insertions, "insertions");

    let mut offset = 80;
    let mut next = |length| {
        offset += length;
        number(bytes, offset - length, length)
    };
    let parameters = (0..number(bytes, 72, 4)).map(|_| next(8)).collect();
    let (mut sections, mut end) = (Vec::new(), header);
    for _ in 0..number(bytes, 36, 4) {
        let what = next(4);
        assert_eq!(next(4), 0);
        assert_eq!(next(8), end as u64, "whole lines leave no gaps");
        let start = end;
        end += next(8) as usize;
        sections.push((what, bytes[start..end].to_vec()));
    }
    assert_eq!(end, bytes.len());
    let chunks = bytes[header..].chunks(1 << 16);
    assert_eq!(number(bytes, 76, 4), chunks.len() as u64);
    for (i, chunk) in chunks.enumerate() {
        assert_eq!(next(8), xxh3_64_with_seed(chunk, i as u64), "sum of chunk {i}");
    }
    assert!(all_zero(&bytes[offset..header - 8]));
    File {
        kind: number(bytes, 10, 2),
        seed: number(bytes, 40, 8),
        capacity: number(bytes, 48, 8),
        rate: f64::from_bits(number(bytes, 56, 8)),
        parameters,
        sections,
    }
}

impl File {
    /// Returns the digests of the keys in the golden files, in the order of insertion.
    pub fn digests(&self) -> [u64; 6] {
        let integer = (-7i64).to_le_bytes();
        let keys: [&[u8]; 6] = [b"apple", b"pear", b"quince", b"medlar", b"", &integer];
        keys.map(|key| xxh3_64_with_seed(key, self.seed))
    }

    /// Returns the bytes of the section at an index of the table, which must have the type `what`.
    pub fn section(&self, place: usize, what: u64) -> &[u8] {
        assert_eq!(self.sections[place].0, what);
        &self.sections[place].1
    }
}

pub fn bit(section: &[u8], i: usize) -> bool {
    section[i / 8] >> (i % 8) & 1 == 1
}

pub fn set(section: &mut [u8], i: usize) {
    section[i / 8] |= 1 << (i % 8);
}

pub fn bits(section: &[u8], start: usize, width: usize) -> u64 {
    (0..width).map(|j| u64::from(bit(section, start + j)) << j).sum()
}

/// Returns a section of this many bits, in whole lines, all zero.
pub fn empty(bits: usize) -> Vec<u8> {
    vec![0; bits.div_ceil(8 * LINE) * LINE]
}

/// Returns the section of these packed cells.
pub fn packed(cells: &[u64], width: usize) -> Vec<u8> {
    let mut section = empty(cells.len() * width);
    for (c, value) in cells.iter().enumerate() {
        (0..width).filter(|j| value >> j & 1 == 1).for_each(|j| set(&mut section, c * width + j));
    }
    section
}

pub fn stream(digest: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(digest), |x| Some(x.wrapping_mul(C)))
}

pub fn position(x: u64, range: u64) -> u64 {
    ((u128::from(x) * u128::from(range)) >> 64) as u64
}

/// Returns the k positions of a digest in a standard filter of m bits.
pub fn positions(digest: u64, m: u64, k: u64) -> Vec<usize> {
    stream(digest).take(k as usize).map(|x| position(x, m) as usize).collect()
}
