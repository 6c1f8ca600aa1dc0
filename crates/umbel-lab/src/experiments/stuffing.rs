//! E8e: payloads that are stuffed with no-ops, recorded by blocks and by whole packets.

use super::prelude::*;
use crate::measure::Rate;
use crate::traffic::{Dice, Sent, names, pair, record};
use std::ops::Range;
use umbel::{Bloom, Standard};
use umbel_net::attribution::Settings;

pub struct Stuffing;

const DOCUMENTS: Parameter =
    Parameter::count("documents", "documents sent in each trace", [60, 500], [10, 10_000]);
const OTHERS: Parameter =
    Parameter::count("others", "other payloads in each trace", [200, 1000], [0, 100_000]);

/// Number of traces for each distance.
const TRACES: u64 = 4;
/// Bytes of a document, which is sent in one payload.
const DOCUMENT: usize = 1000;
/// The no-op of many processors.
const NO_OP: u8 = 0x90;
/// Mean distances between no-ops, in bytes.
const APART: [usize; 8] = [6, 8, 12, 16, 24, 32, 64, 128];
/// The rate of the filter of whole packets.
const RATE: f64 = 0.01;

impl Experiment for Stuffing {
    fn about(&self) -> About {
        About {
            id: "E8e",
            chapter: Chapter::Networks,
            title: "Payloads stuffed with no-ops",
            sources: &[SHANMUGASUNDARAM, HONOROFF],
            claim: "Filters of blocks are more robust than digests of whole packets against a \
                    sender who stuffs a known payload with bytes that do nothing.",
            set_up: "Documents of 1000 random bytes, each sent by a pair of its own in one \
                     payload, among other payloads. Before each byte a byte that does nothing is \
                     inserted with a probability of one in 6 to one in 128: 0x90 in half of the \
                     documents, random bytes in the others. The attribution system is queried for \
                     all stretches between them that are long enough, as an investigator would who \
                     has captured them, and then for parts of the original document. A Bloom \
                     filter with a rate of 1 % holds every payload as a whole, with its pair, and \
                     is queried for the document.",
            advice: "Record blocks, not whole packets, and query for parts of a known document; \
                     stuffing every eight bytes defeats both.",
            command: "`umbel net attribute STORE --document plans.pdf`",
            seconds: [2, 30],
            timed: false,
            parameters: &[DOCUMENTS, OTHERS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut rows = Vec::new();
        let mut by_chance = Vec::new();
        let (mut needed, mut least) = (0, 0);
        for apart in APART {
            let mut all = Counts::default();
            for build in 0..TRACES {
                let counts = send(lab, apart, build)?;
                by_chance.push(counts.by_packets as f64 / counts.documents as f64);
                all.add(&counts);
            }
            (needed, least) = (all.needed, all.least.max(least));
            rows.push((apart, all));
        }
        let mut sweep = Sweep::new("stuffed").chart(
            "stuffed",
            "Stuffed documents that are found",
            Axis::log("mean bytes from one no-op to the next"),
            Axis::linear("share of documents"),
        );
        for (apart, all) in &rows {
            let share = |count: u64| count as f64 / all.documents as f64;
            let expected = survives(DOCUMENT, all.needed, 1.0 / *apart as f64);
            let claim = |what: &str| format!("a no-op every {apart} bytes: {what}");
            let missed = |[all, found]: [u64; 2]| (all - found) as f64;
            let found = claim("share of documents found by a stretch");
            sweep
                .at(*apart as f64)
                .cell("bytes_between", apart)
                .value("theory", expected, 4)
                .line(format!("theory: {needed} bytes without a no-op"), 0)
                .value("by_stretches", share(all.by_stretches), 4)
                .dots("by a stretch", 0)
                .judge(Criterion::share(found, all.by_stretches, all.documents, expected, 0.0))
                .value("by_parts", share(all.by_parts), 4)
                .path("by parts of the document", 1)
                .value("by_whole_packets", share(all.by_packets), 4)
                .path("by whole packets", 2)
                .cells([("stretches", &all.stretches[0]), ("stretches_found", &all.stretches[1])])
                .hidden(missed(all.stretches))
                .at_most(claim("missed stretches that are long enough"), 0.0)
                .cells([("long_parts", &all.long_parts[0]), ("long_parts_found", &all.long_parts[1])])
                .hidden(missed(all.long_parts))
                .at_most(claim("missed parts that are long enough"), 0.0)
                .value("wrong_pairs_for_a_stretch", all.wrong as f64 / all.stretches[0].max(1) as f64, 4)
                .value("wrong_pairs_for_a_document", share(all.wrong_parts), 4)
                .at_most(claim("wrong pairs per document, queried by parts"), 0.02);
        }
        let packets = Rate::from_builds(&by_chance, lab.count(&DOCUMENTS));
        let claim = "share of documents found by whole packets: the rate of their filter";
        sweep.rate(claim, &packets, RATE, 0.0);
        findings.add(sweep);
        findings.verdict = format!(
            "One no-op is enough to hide a payload from digests of whole packets, which then find \
             it only by chance. Filters of blocks find it wherever {needed} bytes in a row are \
             unchanged. Short stretches, which have only one whole block to compare, also name \
             wrong pairs. A query for the original document finds every stretch of {least} bytes, \
             and hardly ever a wrong pair. A no-op every eight bytes leaves hardly anything to \
             find."
        );
        Ok(findings)
    }
}

/// Counts of stuffed documents and their parts.
#[derive(Default)]
struct Counts {
    documents: u64,
    /// Documents that were found by some stretch, by parts, and as whole packets.
    by_stretches: u64,
    by_parts: u64,
    by_packets: u64,
    /// Stretches that are long enough to be queried, and those that are found.
    stretches: [u64; 2],
    /// Stretches that are long enough to be found by parts, and those that are found.
    long_parts: [u64; 2],
    /// Pairs that were named for a stretch, or for a document, but did not send it.
    wrong: u64,
    wrong_parts: u64,
    /// Smallest lengths in bytes of a stretch that can be queried, and of one that is found by
    /// parts.
    needed: usize,
    least: usize,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.documents += other.documents;
        self.by_stretches += other.by_stretches;
        self.by_parts += other.by_parts;
        self.by_packets += other.by_packets;
        for at in 0..2 {
            self.stretches[at] += other.stretches[at];
            self.long_parts[at] += other.long_parts[at];
        }
        self.wrong += other.wrong;
        self.wrong_parts += other.wrong_parts;
        (self.needed, self.least) = (other.needed, self.least.max(other.least));
    }
}

/// Stuffs documents, records them, and searches for them.
fn send(lab: &Lab, apart: usize, build: u64) -> Result<Counts> {
    let mut dice = Dice::new(lab, b"noop", TRACES * apart as u64 + build);
    let mut sent = Vec::new();
    let mut documents = Vec::new();
    for number in 0..lab.count(&DOCUMENTS) as usize {
        let document = dice.bytes(DOCUMENT);
        let (payload, stretches) = stuffed(&document, apart, number % 2 == 0, &mut dice);
        sent.push(Sent { pair: pair(number), payload });
        documents.push((document, stretches));
    }
    for number in 0..lab.count(&OTHERS) as usize {
        sent.push(Sent { pair: pair(number), payload: dice.bytes(DOCUMENT) });
    }
    let epoch = record(Settings::default(), dice.below(1 << 40) as u64, &sent)?;
    let mut packets = Bloom::<Standard>::with_capacity(sent.len() as u64, RATE)?;
    let whole = |number: usize, payload: &[u8]| [&number.to_le_bytes()[..], payload].concat();
    for (number, sent) in sent.iter().enumerate() {
        packets.insert(&whole(number, &sent.payload)[..]);
    }
    let mut counts =
        Counts { documents: documents.len() as u64, needed: epoch.needed(), ..Counts::default() };
    for (number, (document, stretches)) in documents.iter().enumerate() {
        let mut is_found = false;
        for stretch in stretches.iter().filter(|stretch| stretch.len() >= epoch.needed()) {
            let found = epoch.find(&document[stretch.clone()])?.findings;
            let is_named = names(&found, pair(number));
            counts.stretches[0] += 1;
            counts.stretches[1] += u64::from(is_named);
            counts.wrong += (found.len() - usize::from(is_named)) as u64;
            is_found |= is_named;
        }
        counts.by_stretches += u64::from(is_found);
        let parts = epoch.find_parts(document)?;
        let own = parts.parts.iter().find(|part| part.listed.pair == pair(number));
        counts.by_parts += u64::from(own.is_some());
        counts.wrong_parts += (parts.parts.len() - usize::from(own.is_some())) as u64;
        counts.least = counts.least.max(parts.least);
        for stretch in stretches.iter().filter(|stretch| stretch.len() >= parts.least) {
            // Up to nearly half of a stretch may lie outside its whole blocks.
            let overlaps = |range: &Range<usize>| {
                let common = range.start.max(stretch.start)..range.end.min(stretch.end);
                2 * common.len() >= parts.least
            };
            counts.long_parts[0] += 1;
            counts.long_parts[1] += u64::from(own.is_some_and(|own| own.ranges.iter().any(overlaps)));
        }
        counts.by_packets += u64::from(packets.contains(&whole(number, document)[..]));
    }
    Ok(counts)
}

/// Returns a document with no-ops in random places, and the stretches of the document between them.
fn stuffed(document: &[u8], apart: usize, no_ops: bool, dice: &mut Dice<'_>) -> (Vec<u8>, Vec<Range<usize>>) {
    let (mut payload, mut stretches) = (Vec::new(), Vec::new());
    let mut start = 0;
    for (at, byte) in document.iter().enumerate() {
        if dice.below(apart) == 0 {
            payload.push(if no_ops { NO_OP } else { dice.below(256) as u8 });
            stretches.push(start..at);
            start = at;
        }
        payload.push(*byte);
    }
    stretches.push(start..document.len());
    (payload, stretches)
}

/// Returns the probability that a document has `needed` bytes in a row without a no-op between
/// them, if each byte is preceded by a no-op with the probability `rate`.
fn survives(document: usize, needed: usize, rate: f64) -> f64 {
    // A no-op before the first byte of the stretch does no harm, so runs of one byte less are
    // enough.
    let run = needed - 1;
    // lengths[i] is the probability that there was no such run so far and that the current run has
    // length i.
    let mut lengths = vec![0.0; run];
    lengths[0] = 1.0;
    for _ in 1..document {
        let ended: f64 = lengths.iter().sum::<f64>() * rate;
        lengths.rotate_right(1);
        lengths.iter_mut().for_each(|length| *length *= 1.0 - rate);
        lengths[0] = ended;
    }
    1.0 - lengths.iter().sum::<f64>()
}
