//! Which of many signatures occur in data, and where: filters in front of an exact table (Dharmapurikar, Krishnamurthy,
//! Sproull and Lockwood 2004).
//!
//! Whole signatures are grouped by their length, and each length has a Bloom filter. A window slides over the data byte by
//! byte; the bytes of each length that begin there are asked of the filter of that length, and only what it lets pass is looked up
//! in the exact table. So the findings are those of an exact search, always: a filter misses nothing, and what it takes for a signature
//! by mistake costs time only.
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
//! # How it is made fast
//!
//! With B lengths there would be B questions for each byte. Two things spare most of them.
//!
//! *Gates.* All places of the data are first asked, in one go, of a filter of the first eight bytes of all signatures that have as
//! many. Only where it says yes are the lengths from 8 to 15 asked one by one. Then comes a gate of as many bytes of all longer
//! signatures as the shortest of them has, behind it the lengths from 16 to 31, and so on. Signatures of 4 to 7 bytes have a gate of
//! four bytes of their own, so that they do not loosen the one of the longer ones. Those of two and three bytes, and of one, have a bit for
//! every possible start, which is exact.
//!
//! *A rolling hash* gives the hash of any window in a few instructions, whatever its length, and is computed only from places
//! that passed a gate.
//!
//! # Where it is used
//!
//! [`Scanner::find`] searches what is in memory, and a [`Search`] what comes in pieces. [`StreamSearch`] searches the TCP streams of
//! a capture, so that a signature is found however it was split into packets.
//!
//! # Where it wins and where not
//!
//! An automaton such as that of Aho and Corasick 1975 looks at each byte once, however many lengths there are, but holds all signatures
//! as states in memory, and with many of them waits for it at almost every byte. Here most bytes touch only the first gate,
//! which takes two bytes for each signature. The price is paid where the data is full of starts of signatures: then many lengths are asked. Times as
//! fast as the automaton, on one machine, for signatures of 8 to 64 bytes:
//!
//! | signatures | random data | a signature in every kilobyte | nothing but starts of signatures |
//! | ---: | ---: | ---: | ---: |
//! | 1 000 | 2.6 | 2.7 | 0.3 |
//! | 100 000 | 50 | 38 | 3.4 |
//! | 1 000 000 | 64 | 43 | 2.2 |
//!
//! `cargo run --release -p umbel-net --example scan_speed` measures it again. Without the gates, as the method was published for
//! circuits that ask all filters at the same time, a processor manages 1 to 3 MB/s.

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

/// How a [`Scanner`] works. It changes the speed, never the findings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The false-positive rate of each filter.
    pub rate: f64,
    /// Whether gates spare the filters of the lengths most questions. Without them it is the method as it was published.
    pub gates: bool,
    /// Where the hashes start.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { rate: 0.001, gates: true, seed: 0 }
    }
}

/// How many bytes the parts of a [`Scanner`] take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The gates.
    pub gates: u64,
    /// The filters of the lengths.
    pub filters: u64,
    /// The signatures and the exact table.
    pub exact: u64,
}

/// Finds signatures in data.
#[derive(Debug)]
pub struct Scanner {
    base: Base,
    table: Table,
    classes: Vec<Class>,
    longest: usize,
}

impl Scanner {
    /// A scanner for these signatures of 1 to [`MAX_LENGTH`] bytes. What comes twice counts once.
    pub fn new<S: AsRef<[u8]>>(signatures: impl IntoIterator<Item = S>) -> Result<Scanner> {
        Scanner::with(signatures, &Settings::default())
    }

    /// Returns a scanner with these settings.
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

    /// How many different signatures there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none, so that nothing is ever found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The signature with this number: they are numbered from 0 in the order in which they first came.
    pub fn signature(&self, number: usize) -> Option<&[u8]> {
        self.table.get(number)
    }

    /// The different lengths, which is how many filters there are, from the shortest to the longest.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        let groups = self.classes.iter().flat_map(|class| &class.groups);
        groups.flat_map(|group| &group.lengths).map(|sieve| sieve.length())
    }

    /// How long the longest signature is; 0 without any.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// How much memory it takes.
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

    /// Every occurrence of every signature in the data, sorted by offset, and at the same offset by length.
    pub fn find(&self, data: &[u8]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let _: ControlFlow<Infallible> = self.search().whole(data, |finding| {
            findings.push(finding);
            ControlFlow::Continue(())
        });
        findings
    }

    /// Returns a search, which calls back with each finding and has statistics.
    pub fn search(&self) -> Search<'_> {
        Search::new(self)
    }
}
