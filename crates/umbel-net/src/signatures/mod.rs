//! Multi-pattern search: which of many signatures occur in data, and where, by Bloom filters in
//! front of an exact table (Dharmapurikar, Krishnamurthy, Sproull and Lockwood 2004).
//!
//! Signatures are grouped by length, and each length has a Bloom filter. A window slides over the
//! data byte by byte. At each byte, the substring of each length is tested against the filter of
//! that length, and only matches are looked up in the exact table. So the findings are always those
//! of an exact search: a filter has no false negatives, and a false positive only costs time.
//!
//! ```
//! use umbel_net::signatures::{Finding, Scanner};
//!
//! let scanner = Scanner::new(["cmd.exe", "exe", "/bin/sh"])?;
//! let found = scanner.find(b"GET /cmd.exe?/bin/sh");
//! let found: Vec<_> = found.iter().map(|finding| (finding.offset, finding.signature)).collect();
//! assert_eq!(found, [(5, 0), (9, 1), (13, 2)]);
//! # Ok::<(), umbel_net::Error>(())
//! ```
//!
//! # Performance
//!
//! With B lengths there would be B filter lookups for each byte. Two techniques avoid most of them.
//!
//! *Gates.* All places of the data are first tested in bulk against a filter of the first eight
//! bytes of all signatures that have at least as many. Only where it matches are the lengths from 8
//! to 15 tested one by one. Next comes a gate for all longer signatures, on as many first bytes as
//! the shortest of them has, then the lengths from 16 to 31, and so on. Signatures of 4 to 7 bytes
//! have their own gate of four bytes, so that they do not loosen the gate of the longer ones.
//! Signatures of two and three bytes, and of one byte, have a bit for every possible start, which
//! is exact.
//!
//! *A rolling hash* computes the hash of any window in a few instructions, whatever its length. It
//! is computed only from places that passed a gate.
//!
//! # Interfaces
//!
//! [`Scanner::find`] searches data in memory, and a [`Search`] data that arrives in pieces.
//! [`StreamSearch`] searches the TCP streams of a capture, so that a signature is found however it
//! was split into packets.
//!
//! # Comparison with an automaton
//!
//! An automaton such as that of Aho and Corasick (1975) reads each byte once, however many lengths
//! there are. But it keeps all signatures as states in memory, and with many signatures it waits
//! for memory at almost every byte. Here most bytes touch only the first gate, which takes two
//! bytes per signature. The worst case is data full of starts of signatures, where many lengths
//! must be tested. Speed relative to the automaton, on one machine, for signatures of 8 to 64
//! bytes:
//!
//! | signatures | random data | a signature in every kilobyte | only starts of signatures |
//! | ---: | ---: | ---: | ---: |
//! | 1 000 | 2.6 | 2.7 | 0.3 |
//! | 100 000 | 50 | 38 | 3.4 |
//! | 1 000 000 | 64 | 43 | 2.2 |
//!
//! `cargo run --release -p umbel-net --example scan_speed` repeats the measurement. Without the
//! gates, as the method was published for circuits that query all filters at the same time, a
//! processor manages 1 to 3 MB/s.
//!
//! # References
//!
//! * S. Dharmapurikar, P. Krishnamurthy, T. S. Sproull and J. W. Lockwood. *Deep packet inspection
//!   using parallel Bloom filters.* IEEE Micro 24(1), 2004. `DKSL04`
//! * A. V. Aho and M. J. Corasick. *Efficient string matching: an aid to bibliographic search.*
//!   Communications of the ACM 18(6), 1975. `AC75`

mod rolling;
mod search;
mod sieve;
mod streams;
mod table;
mod theory;

pub use search::{Finding, Search, Stats, Tail};
pub use streams::{StreamFinding, StreamSearch};
pub use theory::{Circuit, chance_of_any, lengths, vain_probes};

use crate::Result;
use rolling::Base;
use sieve::Class;
use std::convert::Infallible;
use std::ops::ControlFlow;
use table::Table;

/// The longest signature in bytes.
pub const MAX_LENGTH: usize = 65_535;

/// The settings of a [`Scanner`]. They affect the speed, never the findings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The false-positive rate of each filter.
    pub rate: f64,
    /// Whether gates are used to avoid most lookups in the filters of the lengths. Without them,
    /// this is the published method.
    pub gates: bool,
    /// The seed of the hashes.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { rate: 0.001, gates: true, seed: 0 }
    }
}

/// The memory of the parts of a [`Scanner`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The memory of the gates.
    pub gates: u64,
    /// The memory of the filters of the lengths.
    pub filters: u64,
    /// The memory of the signatures and the exact table.
    pub exact: u64,
}

/// A scanner that finds signatures in data.
#[derive(Debug)]
pub struct Scanner {
    base: Base,
    table: Table,
    classes: Vec<Class>,
    longest: usize,
}

impl Scanner {
    /// Returns a scanner for these signatures of 1 to [`MAX_LENGTH`] bytes. Duplicates count once.
    ///
    /// # Errors
    ///
    /// Fails if a signature is empty or too long, or if there are 2^32 - 1 different ones or more.
    pub fn new<S: AsRef<[u8]>>(signatures: impl IntoIterator<Item = S>) -> Result<Scanner> {
        Scanner::with(signatures, &Settings::default())
    }

    /// Returns a scanner with these settings.
    ///
    /// # Errors
    ///
    /// Fails for the reasons of [`new`](Scanner::new), or if the rate is out of range.
    pub fn with<S: AsRef<[u8]>>(
        signatures: impl IntoIterator<Item = S>,
        settings: &Settings,
    ) -> Result<Scanner> {
        let base = Base::new(settings.seed);
        let (table, digests) = Table::new(signatures, base)?;
        let mut sorted: Vec<_> = table.iter().zip(digests).collect();
        sorted.sort_by_key(|(signature, _)| signature.len());
        let longest = sorted.last().map_or(0, |(signature, _)| signature.len());
        let classes = Class::all(&sorted, base, settings)?;
        Ok(Scanner { base, table, classes, longest })
    }

    /// Returns the number of different signatures.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether there are no signatures, so that nothing is ever found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the signature with this number. Signatures are numbered from 0 in the order in which
    /// they were first passed.
    pub fn signature(&self, number: usize) -> Option<&[u8]> {
        self.table.get(number)
    }

    /// Returns the different lengths, shortest first. Each has one filter.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        let groups = self.classes.iter().flat_map(|class| &class.groups);
        groups.flat_map(|group| &group.lengths).map(|sieve| sieve.length())
    }

    /// Returns the length of the longest signature; 0 without signatures.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the memory that the scanner uses.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory { gates: 0, filters: 0, exact: self.table.memory() };
        for class in &self.classes {
            memory.gates += class.front.memory();
            for group in &class.groups {
                memory.gates += group.gate.as_ref().map_or(0, |gate| gate.memory());
                memory.filters += group.lengths.iter().map(|sieve| sieve.memory()).sum::<u64>();
            }
        }
        memory
    }

    /// Finds every occurrence of every signature in the data, sorted by offset, and at the same
    /// offset by length.
    pub fn find(&self, data: &[u8]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let _: ControlFlow<Infallible> = self.search().whole(data, |finding| {
            findings.push(finding);
            ControlFlow::Continue(())
        });
        findings
    }

    /// Returns a search, which calls back with each finding and keeps statistics.
    pub fn search(&self) -> Search<'_> {
        Search::new(self)
    }
}
