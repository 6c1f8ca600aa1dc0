//! Going through data with a [`Scanner`].

use super::Scanner;
use super::rolling::Rolling;
use super::sieve::Class;
use std::mem;
use std::ops::{ControlFlow, Range};

/// An occurrence of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finding {
    /// At which byte of the data it begins.
    pub offset: u64,
    /// The number of the signature, for [`Scanner::signature`].
    pub signature: usize,
}

/// What was done to search some data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many bytes there were.
    pub bytes: u64,
    /// At how many of them a signature may begin, as far as the first gate of a class can tell; once for each class.
    pub passed: u64,
    /// How often the filter of a length was asked.
    pub probes: u64,
    /// How often it said "probably yes", so that the exact table was asked.
    pub candidates: u64,
    /// How often that said yes.
    pub confirmed: u64,
}

/// How many words of bits, one bit for each place of the data, are worked on at a time.
const WORDS: usize = 64;

/// A search, with the memory that it needs.
///
/// One can search many things with [`Search::whole`], or a single one that comes in pieces with [`Search::feed`] and
/// [`Search::finish`]. Findings come sorted by their offset, and at the same offset by length.
#[derive(Clone, Debug)]
pub struct Search<'s> {
    scanner: &'s Scanner,
    stats: Stats,
    rolling: Rolling,
    scratch: Vec<u64>,
    masks: Vec<[u64; WORDS]>,
    /// What has come in pieces and cannot be forgotten yet.
    pending: Vec<u8>,
    /// Up to here signatures that begin in it have been found.
    done: usize,
    /// How many bytes came before it.
    before: u64,
}

impl<'s> Search<'s> {
    pub(super) fn new(scanner: &'s Scanner) -> Search<'s> {
        Search {
            scanner,
            stats: Stats::default(),
            rolling: Rolling::new(scanner.base),
            scratch: Vec::new(),
            masks: vec![[0; WORDS]; scanner.classes.len()],
            pending: Vec::new(),
            done: 0,
            before: 0,
        }
    }

    /// What has been done so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Tells `found` of every occurrence in the data, until it breaks off.
    pub fn whole<B>(
        &mut self,
        data: &[u8],
        mut found: impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.scan(data, 0..data.len(), 0, &mut found)
    }

    /// The next piece of data that comes in pieces: tells of the occurrences up to the last place at which the longest signature
    /// would be whole by now, across pieces too. If `found` breaks off, it is not told again what else was found in between.
    pub fn feed<B>(
        &mut self,
        piece: &[u8],
        mut found: impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.pending.extend_from_slice(piece);
        // At these places even the longest signature would be whole.
        let ready = (self.pending.len() + 1).saturating_sub(self.scanner.longest().max(1));
        self.advance(ready, &mut found)
    }

    /// The end of data that came in pieces: tells of the rest, and is ready for other data.
    pub fn finish<B>(&mut self, mut found: impl FnMut(Finding) -> ControlFlow<B>) -> ControlFlow<B> {
        let flow = self.advance(self.pending.len(), &mut found);
        self.pending.clear();
        (self.done, self.before) = (0, 0);
        flow
    }

    fn advance<B>(&mut self, to: usize, found: &mut impl FnMut(Finding) -> ControlFlow<B>) -> ControlFlow<B> {
        let places = self.done..to.max(self.done);
        self.done = places.end;
        let pending = mem::take(&mut self.pending);
        let flow = self.scan(&pending, places, self.before, found);
        self.pending = pending;
        // Not with every piece: they may be as small as a byte.
        if self.done > self.pending.len() / 2 {
            self.pending.drain(..self.done);
            self.before += self.done as u64;
            self.done = 0;
        }
        flow
    }

    /// Finds what begins at these places.
    fn scan<B>(
        &mut self,
        data: &[u8],
        places: Range<usize>,
        before: u64,
        found: &mut impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let scanner = self.scanner;
        let mut start = places.start;
        while start < places.end {
            let count = (places.end - start).min(WORDS * 64);
            let words = count.div_ceil(64);
            let last = u64::MAX >> (words * 64 - count);
            self.stats.bytes += count as u64;
            for (class, mask) in scanner.classes.iter().zip(&mut self.masks) {
                class.front.pass(data, start, &mut self.scratch, &mut mask[..words]);
                mask[words - 1] &= last;
            }
            self.rolling.restart(start);
            for word in 0..words {
                let mut any = self.masks.iter().fold(0, |any, mask| any | mask[word]);
                while any != 0 {
                    let bit = any.trailing_zeros();
                    any &= any - 1;
                    let at = start + word * 64 + bit as usize;
                    self.rolling.go_to(at);
                    for (number, class) in scanner.classes.iter().enumerate() {
                        if self.masks[number][word] >> bit & 1 == 1 {
                            self.look(class, data, at, before, found)?;
                        }
                    }
                }
            }
            start += count;
        }
        ControlFlow::Continue(())
    }

    /// Finds what of a class begins at a place.
    fn look<B>(
        &mut self,
        class: &Class,
        data: &[u8],
        at: usize,
        before: u64,
        found: &mut impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.stats.passed += 1;
        let room = data.len() - at;
        for group in &class.groups {
            if let Some(gate) = &group.gate
                && (gate.length() > room || gate.pass(&mut self.rolling, data, at).is_none())
            {
                break;
            }
            for sieve in group.lengths.iter().take_while(|sieve| sieve.length() <= room) {
                self.stats.probes += 1;
                let Some(digest) = sieve.pass(&mut self.rolling, data, at) else { continue };
                self.stats.candidates += 1;
                if let Some(signature) = self.scanner.table.find(digest, &data[at..at + sieve.length()]) {
                    self.stats.confirmed += 1;
                    found(Finding { offset: before + at as u64, signature })?;
                }
            }
        }
        ControlFlow::Continue(())
    }
}
