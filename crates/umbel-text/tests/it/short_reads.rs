//! Readers that return one byte at a time, after an interruption by a signal, change no result.

use flate2::{Compression, write::GzEncoder};
use std::io::{self, BufReader, Read, Write};
use std::ops::ControlFlow;
use umbel_text::content::{self, Format};
use umbel_text::hyphenation::{Hyphenator, Language};
use umbel_text::lines::Lines;
use umbel_text::similarity::{By, Elements};
use umbel_text::spelling::each_word;

/// A reader that is interrupted before every byte.
struct Trickle<'a> {
    bytes: &'a [u8],
    interrupted: bool,
}

impl Trickle<'_> {
    fn new(bytes: &[u8]) -> Trickle<'_> {
        Trickle { bytes, interrupted: false }
    }
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = buffer.len().min(1);
        self.bytes.read(&mut buffer[..count])
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const TEXT: &[u8] = "The programs of the table,\r\nnaïve and \u{feff}well-known.\n\nLast".as_bytes();

#[test]
fn contents_are_recognised_and_decompressed() {
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let two = |pack: &dyn Fn(&[u8]) -> Vec<u8>| [pack(&TEXT[..9]), pack(b""), pack(&TEXT[9..])].concat();
    for (packed, format) in
        [(TEXT.to_vec(), None), (two(&gzip), Some(Format::Gzip)), (two(&zstd), Some(Format::Zstd))]
    {
        let mut text = Vec::new();
        let (found, mut reader) = content::decompressed(Trickle::new(&packed)).unwrap();
        reader.read_to_end(&mut text).unwrap();
        assert_eq!((found, &text[..]), (format, TEXT));
        // Nothing is read after an end that comes too early.
        if format.is_some() {
            let cut = &packed[..packed.len() - 1];
            let (_, mut reader) = content::decompressed(Trickle::new(cut)).unwrap();
            reader.read_to_end(&mut Vec::new()).unwrap_err();
        }
    }
}

#[test]
fn lines_are_whole() {
    let mut lines = Lines::new(Trickle::new(TEXT));
    let mut all = Vec::new();
    while lines.more().unwrap() {
        all.extend(lines.lot().map(<[u8]>::to_vec));
    }
    let expected: Vec<&[u8]> =
        TEXT.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
    assert_eq!(all, expected);
}

#[test]
fn words_and_elements_are_the_same() {
    let words = |text: &mut dyn io::BufRead| {
        let mut words = Vec::new();
        let found = |word: umbel_text::spelling::Word<'_>| {
            words.push((word.text.into_owned(), word.line, word.column));
            ControlFlow::<()>::Continue(())
        };
        let (passed, _) = each_word(text, false, found).unwrap();
        (words, passed)
    };
    assert_eq!(words(&mut BufReader::with_capacity(1, Trickle::new(TEXT))), words(&mut &*TEXT));
    for by in [By::Words, By::Shingles(2), By::Chunks] {
        for html in [false, true] {
            let whole = Elements::read(TEXT, by, html).unwrap();
            assert_eq!(Elements::read(Trickle::new(TEXT), by, html).unwrap(), whole);
        }
    }
    let hyphenator = Hyphenator::new(Language::English).unwrap();
    let hyphenated = |text: &mut dyn io::BufRead| {
        let mut out = Vec::new();
        hyphenator.hyphenate(text, &mut out, "-").unwrap();
        out
    };
    assert_eq!(hyphenated(&mut BufReader::with_capacity(1, Trickle::new(TEXT))), hyphenated(&mut &*TEXT));
}
