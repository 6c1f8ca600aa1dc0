//! A search through data with a [`Scanner`].

use super::Scanner;
use super::rolling::Rolling;
use std::mem;
use std::ops::{ControlFlow, Range};

/// An occurrence of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finding {
    /// The byte of the data at which it begins.
    pub offset: u64,
    /// The number of the signature, for [`Scanner::signature`].
    pub signature: usize,
}

/// Counts of the work of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of bytes searched.
    pub bytes: u64,
    /// The number of places that passed the first gate of a class, over all classes.
    pub passed: u64,
    /// The number of lookups in the filters of the lengths.
    pub probes: u64,
    /// The number of matches in these filters, each followed by a lookup in the exact table.
    pub candidates: u64,
    /// The number of signatures that the exact table confirmed.
    pub confirmed: u64,
}

/// The number of words of a mask, which has a bit for each place of the data that is searched at a
/// time.
const MASK_WORDS: usize = 64;

/// A search, with its buffers.
///
/// Search many pieces of data with [`Search::whole`], or a single one that arrives in pieces with
/// [`Search::feed`] and [`Search::finish`]. Findings come sorted by offset, and at the same offset
/// by length. To search many streams whose pieces are interleaved, use [`Search::follow`], which
/// reports each finding as soon as it is complete.
#[derive(Clone, Debug)]
pub struct Search<'s> {
    scanner: &'s Scanner,
    stats: Stats,
    rolling: Rolling,
    scratch: Vec<u64>,
    masks: Vec<[u64; MASK_WORDS]>,
    /// The data that arrived in pieces and is still needed.
    pending: Vec<u8>,
    /// The place in `pending` up to which signatures have been searched.
    done: usize,
    /// The number of bytes before `pending`.
    before: u64,
    /// The tail of a stream, joined with its next piece.
    joined: Vec<u8>,
    /// The places in `joined` where a signature may have begun that is not complete yet.
    open: Vec<Open>,
}

/// The state of a stream between its pieces, for [`Search::follow`]: the bytes from the first place
/// on where a signature may have begun. At most as many bytes as the longest signature has, and
/// mostly fewer than eight.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    bytes: Vec<u8>,
    /// The number of bytes of the stream before `bytes`.
    before: u64,
    /// The places where a signature may have begun, in order.
    open: Vec<Open>,
}

impl Tail {
    /// Returns an empty tail at an offset of a stream.
    pub fn new_at(offset: u64) -> Tail {
        Tail { before: offset, ..Tail::default() }
    }

    /// Returns the number of bytes kept.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether no bytes are kept.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A place that has passed all gates so far.
#[derive(Clone, Copy, Debug)]
struct Open {
    at: usize,
    /// The number of the class.
    class: usize,
    /// The number of bytes that the next check needs.
    wanted: usize,
}

/// The data of a search.
#[derive(Clone, Copy)]
struct View<'d> {
    data: &'d [u8],
    /// The number of bytes before `data`.
    before: u64,
    /// The number of bytes that have been searched before: findings that end within them are known.
    known: usize,
    /// Whether more data will follow, so that open places must be recorded.
    goes_on: bool,
}

impl View<'_> {
    /// Returns the number of bytes from a place on that have been searched before.
    fn known_from(&self, at: usize) -> usize {
        self.known.saturating_sub(at)
    }
}

impl<'s> Search<'s> {
    pub(super) fn new(scanner: &'s Scanner) -> Search<'s> {
        Search {
            scanner,
            stats: Stats::default(),
            rolling: Rolling::new(scanner.base),
            scratch: Vec::new(),
            masks: vec![[0; MASK_WORDS]; scanner.classes.len()],
            pending: Vec::new(),
            done: 0,
            before: 0,
            joined: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Calls `found` with every occurrence in the data, until it breaks.
    pub fn whole<B>(
        &mut self,
        data: &[u8],
        mut found: impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let view = View { data, before: 0, known: 0, goes_on: false };
        self.scan(view, 0..data.len(), &mut found)
    }

    /// Searches the next piece of data that arrives in pieces. Calls `found` with the occurrences,
    /// also across pieces, that begin up to the last place where even the longest signature would
    /// be complete. If `found` breaks, the other findings of this call are lost.
    pub fn feed<B>(
        &mut self,
        piece: &[u8],
        mut found: impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.pending.extend_from_slice(piece);
        // At these places even the longest signature would be complete.
        let ready = (self.pending.len() + 1).saturating_sub(self.scanner.longest().max(1));
        self.advance(ready, &mut found)
    }

    /// Ends data that arrived in pieces: calls `found` with the remaining occurrences, and prepares
    /// for other data.
    pub fn finish<B>(&mut self, mut found: impl FnMut(Finding) -> ControlFlow<B>) -> ControlFlow<B> {
        let flow = self.advance(self.pending.len(), &mut found);
        self.pending.clear();
        (self.done, self.before) = (0, 0);
        flow
    }

    /// Searches the next piece of one of many streams, whose state is in `tail`. Calls `found` with
    /// every occurrence that ends in the piece, also across pieces, in no particular order. If
    /// `found` breaks, the tail is no longer valid.
    pub fn follow<B>(
        &mut self,
        tail: &mut Tail,
        piece: &[u8],
        mut found: impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut joined = mem::take(&mut self.joined);
        joined.clear();
        joined.extend_from_slice(&tail.bytes);
        joined.extend_from_slice(piece);
        let view = View { data: &joined, before: tail.before, known: tail.bytes.len(), goes_on: true };
        // At the last places, there are too few bytes for the front of a class.
        let undecided = self.scanner.classes.iter().map(|class| class.front.width() - 1).max().unwrap_or(0);
        self.open.clear();
        let mut flow = self.reopen(view, &tail.open, &mut found);
        if flow.is_continue() {
            flow = self.scan(view, view.known.saturating_sub(undecided)..joined.len(), &mut found);
        }
        self.open.sort_unstable_by_key(|open| open.at);
        let last = joined.len().saturating_sub(undecided);
        let kept = self.open.first().map_or(last, |open| last.min(open.at));
        tail.bytes.clear();
        tail.bytes.extend_from_slice(&joined[kept..]);
        tail.before += kept as u64;
        tail.open.clear();
        tail.open.extend(self.open.iter().map(|open| Open { at: open.at - kept, ..*open }));
        self.joined = joined;
        flow
    }

    /// Continues at places that were left open.
    fn reopen<B>(
        &mut self,
        view: View<'_>,
        places: &[Open],
        found: &mut impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.rolling.restart(0);
        for open in places {
            if open.wanted > view.data.len() - open.at {
                self.open.push(*open);
            } else {
                self.rolling.go_to(open.at);
                self.look(open.class, view, open.at, found)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn advance<B>(&mut self, to: usize, found: &mut impl FnMut(Finding) -> ControlFlow<B>) -> ControlFlow<B> {
        let places = self.done..to.max(self.done);
        self.done = places.end;
        let pending = mem::take(&mut self.pending);
        let view = View { data: &pending, before: self.before, known: 0, goes_on: false };
        let flow = self.scan(view, places, found);
        self.pending = pending;
        // Not with every piece, since a piece may be as small as a byte.
        if self.done > self.pending.len() / 2 {
            self.pending.drain(..self.done);
            self.before += self.done as u64;
            self.done = 0;
        }
        flow
    }

    /// Finds the signatures that begin at these places.
    fn scan<B>(
        &mut self,
        view: View<'_>,
        places: Range<usize>,
        found: &mut impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let scanner = self.scanner;
        let mut start = places.start;
        while start < places.end {
            let count = (places.end - start).min(MASK_WORDS * 64);
            let words = count.div_ceil(64);
            let last = u64::MAX >> (words * 64 - count);
            self.stats.bytes += count.saturating_sub(view.known_from(start)) as u64;
            for (class, mask) in scanner.classes.iter().zip(&mut self.masks) {
                class.front.pass(view.data, start, &mut self.scratch, &mut mask[..words]);
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
                        let passed = self.masks[number][word] >> bit & 1 == 1;
                        // A place that passed the front before was examined then, and is open if it
                        // needs more bytes.
                        if passed && class.front.width() > view.known_from(at) {
                            self.stats.passed += 1;
                            self.look(number, view, at, found)?;
                        }
                    }
                }
            }
            start += count;
        }
        ControlFlow::Continue(())
    }

    /// Finds the signatures of a class that begin at a place and were not found before.
    fn look<B>(
        &mut self,
        class: usize,
        view: View<'_>,
        at: usize,
        found: &mut impl FnMut(Finding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let View { data, before, .. } = view;
        let (known, room) = (view.known_from(at), data.len() - at);
        let scanner = self.scanner;
        for group in &scanner.classes[class].groups {
            if let Some(gate) = &group.gate {
                if gate.length() > room {
                    self.leave_open(class, view, at, gate.length());
                    break;
                }
                if gate.length() > known && gate.pass(&mut self.rolling, data, at).is_none() {
                    break;
                }
            }
            for sieve in &group.lengths {
                if sieve.length() > room {
                    self.leave_open(class, view, at, sieve.length());
                    return ControlFlow::Continue(());
                }
                if sieve.length() <= known {
                    continue;
                }
                self.stats.probes += 1;
                let Some(digest) = sieve.pass(&mut self.rolling, data, at) else { continue };
                self.stats.candidates += 1;
                if let Some(signature) = scanner.table.find(digest, &data[at..at + sieve.length()]) {
                    self.stats.confirmed += 1;
                    found(Finding { offset: before + at as u64, signature })?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Records a place where `wanted` bytes are needed, if more data will follow.
    fn leave_open(&mut self, class: usize, view: View<'_>, at: usize, wanted: usize) {
        if view.goes_on {
            self.open.push(Open { at, class, wanted });
        }
    }
}
