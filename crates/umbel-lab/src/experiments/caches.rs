//! E12-caches: web caches that share summaries, and caches that query all others on every miss.

use super::prelude::*;
use crate::popularity::Zipf;
use crate::traffic::Dice;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use umbel_cache::{CacheKey, PublishTrigger, Summary, View};

pub struct Caches;

const PROXIES: Parameter = Parameter::count("proxies", "number of cooperating caches", [16, 16], [2, 64]);
const DOCUMENTS: Parameter =
    Parameter::count("documents", "number of documents", [100_000, 1_000_000], [1000, 10_000_000]);
const REQUESTS: Parameter =
    Parameter::count("requests", "total number of requests", [300_000, 3_000_000], [10_000, 100_000_000]);
const HELD: Parameter = Parameter::count("held", "documents per cache", [2000, 10_000], [100, 100_000]);
const SKEW: Parameter = Parameter::real("skew", "exponent of Zipf's law", [0.8, 0.8], [0.0, 2.0]);

/// Bits of a summary per document, and the share of new documents after which it is published.
const BITS: [u32; 4] = [5, 8, 16, 32];
const SHARES: [f64; 6] = [0.001, 0.01, 0.02, 0.05, 0.1, 0.2];
/// The bits and the share that are judged.
const JUDGED: (u32, f64) = (16, 0.01);

/// Bytes of a query or a reply: the headers of IP, UDP and ICP, and a URL of fifty characters.
const MESSAGE_BYTES: u64 = 20 + 8 + 20 + 50;

impl Experiment for Caches {
    fn about(&self) -> About {
        About {
            id: "E12-caches",
            chapter: Chapter::Caches,
            title: "Web caches that share summaries instead of querying each other",
            sources: &[FAN_CAO, JAMBURA, SCHIERZ, HONOROFF],
            claim: "Sixteen caches that exchange summaries send 25 to 60 times fewer messages than \
                    caches that query all others on every miss (ICP), and less than half of the \
                    bytes, and find almost as many documents in each other. The goals here are a \
                    tenth of the messages and the loss of at most one hit in a hundred.",
            set_up: "Caches that evict the least recently used document, and requests by Zipf's \
                     law that go to any of them. A cache that misses a document fetches and stores \
                     it, from wherever, so all caches hold the same documents with either \
                     protocol. With ICP, a cache queries all others; with summaries, those that \
                     promise the document. Summaries are counting filters whose bits are published \
                     once a certain share of the documents is new, as changes or as a whole, \
                     counted in the bytes that travel.",
            advice: "Share summaries of 8 to 16 bits per document and publish them after 1 % of \
                     new documents; caches with few documents gain little.",
            command: "`umbel proxy`",
            seconds: [10, 120],
            timed: false,
            parameters: &[PROXIES, DOCUMENTS, REQUESTS, HELD, SKEW],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut sweep = Sweep::new("exchanged")
            .chart(
                "delay",
                "Hits by the share of new documents before a summary is published, 16 bits",
                Axis::log("share of new documents"),
                Axis::linear("hit ratio"),
            )
            .chart(
                "bits",
                "Messages and bytes, as shares of those of ICP",
                Axis::linear("bits per document"),
                Axis::log("share of ICP"),
            );
        let choices = BITS
            .map(|bits| (bits, JUDGED.1))
            .into_iter()
            .chain(SHARES.into_iter().filter(|share| *share != JUDGED.1).map(|share| (JUDGED.0, share)));
        let mut runs = BTreeMap::new();
        for (bits, share) in choices {
            let run = Run::new(lab, (bits, share), lab.count(&HELD))?;
            run.describe(bits, share, &mut sweep);
            runs.insert((bits, (share * 1e6) as u64), run);
        }
        let run = |bits: u32, share: f64| &runs[&(bits, (share * 1e6) as u64)];
        judge(run(JUDGED.0, JUDGED.1), &mut sweep);
        for bits in BITS {
            let run = run(bits, JUDGED.1);
            let claim =
                format!("{bits} bits per document: share of summaries that promise an absent document");
            let expected = run.expected;
            // Summaries lag behind and also promise documents that were evicted since.
            let least = 0.9 * expected - 4.0 * (expected / run.looked as f64).sqrt();
            sweep.at_least(claim, run.false_rate(), least);
        }
        draw(
            &SHARES.map(|share| (share, run(JUDGED.0, share))),
            &BITS.map(|bits| (bits, run(bits, JUDGED.1))),
            &mut sweep,
        );
        findings.add(sweep);
        by_size(lab, run(JUDGED.0, JUDGED.1), &mut findings)?;
        findings.verdict = verdict(run(JUDGED.0, JUDGED.1));
        Ok(findings)
    }
}

fn judge(run: &Run, sweep: &mut Sweep) {
    sweep.at_least("messages with ICP / with summaries", run.messages_ratio(), 10.0);
    sweep.at_most("bytes with summaries / with ICP", run.bytes_ratio(), 0.5);
    sweep.at_most("share of all hits that are lost with summaries", run.lost(), 0.01);
    sweep.that("summaries find no more documents than ICP", run.found <= run.possible);
}

fn verdict(run: &Run) -> String {
    let both = run.messages_ratio() >= 10.0 && run.lost() <= 0.01;
    let met = if both { "Both goals are met" } else { "A goal is missed" };
    format!(
        "{met}: {:.0} times fewer messages, {:.0} % of the bytes, and {:.2} % of the hits lost. \
         Nearly all lost hits are for documents that a cache stored after its last publication. \
         Nearly all queries in vain are for documents that a cache has evicted since, or are false \
         positives. More bits per document avoid the latter, and a longer delay causes more of \
         both. The number of saved messages depends on the size of the caches: a cache of h \
         documents publishes after every h / 100 new ones, so it saves no more than a factor of h \
         / 50.",
        run.messages_ratio(),
        100.0 * run.bytes_ratio(),
        100.0 * run.lost(),
    )
}

/// Repeats the run with caches of other sizes.
fn by_size(lab: &Lab, usual: &Run, findings: &mut Findings) -> Result<()> {
    let held = lab.count(&HELD);
    let mut sweep = Sweep::new("sizes");
    for size in [held / 8, held / 4, held / 2, held] {
        let smaller = if size == held { None } else { Some(Run::new(lab, JUDGED, size.max(1))?) };
        let run = smaller.as_ref().unwrap_or(usual);
        // The number of documents before a publication is a whole number.
        let most = 2.0 * (JUDGED.1 * size as f64).ceil();
        let claim = format!("{size} documents in each cache: messages with ICP / with summaries");
        sweep
            .row()
            .cells([("held", &size), ("most", &most)])
            .value("messages_icp_by_summaries", run.messages_ratio(), 2)
            .at_most(claim, most)
            .value("share_of_hits_missed", run.lost(), 5);
    }
    findings.add(sweep);
    Ok(())
}

/// The counts of one run.
#[derive(Default)]
struct Run {
    requests: u64,
    local: u64,
    /// Misses that another cache could have answered, and those that a summary led to.
    possible: u64,
    found: u64,
    misses: u64,
    others: u64,
    asked: u64,
    publications: u64,
    published_bytes: u64,
    /// Lookups in summaries of caches without the document, and those that promised it.
    looked: u64,
    wrong: u64,
    /// Mean false-positive rate of the summaries.
    expected: f64,
}

impl Run {
    fn hits(&self, remote: u64) -> f64 {
        (self.local + remote) as f64 / self.requests as f64
    }

    /// Returns the number of queries and replies with ICP.
    fn messages_icp(&self) -> u64 {
        2 * self.misses * self.others
    }

    fn messages(&self) -> u64 {
        2 * self.asked + self.publications * self.others
    }

    fn messages_ratio(&self) -> f64 {
        self.messages_icp() as f64 / self.messages() as f64
    }

    fn bytes_icp(&self) -> u64 {
        self.messages_icp() * MESSAGE_BYTES
    }

    fn bytes(&self) -> u64 {
        2 * self.asked * MESSAGE_BYTES + self.published_bytes
    }

    fn bytes_ratio(&self) -> f64 {
        self.bytes() as f64 / self.bytes_icp() as f64
    }

    /// Returns the share of all hits that are lost.
    fn lost(&self) -> f64 {
        (self.possible - self.found) as f64 / (self.local + self.possible) as f64
    }

    fn false_rate(&self) -> f64 {
        self.wrong as f64 / self.looked.max(1) as f64
    }

    /// Adds the row of a run with this many bits per document, published when this share of the
    /// documents is new.
    fn describe(&self, bits: u32, share: f64, sweep: &mut Sweep) {
        sweep
            .row()
            .cells([("bits", &bits), ("published_after", &share)])
            .value("hits_local", self.hits(0), 5)
            .value("hits_icp", self.hits(self.possible), 5)
            .value("hits_summaries", self.hits(self.found), 5)
            .cell("messages_icp", self.messages_icp())
            .cell("messages_summaries", self.messages())
            .cell("bytes_icp", self.bytes_icp())
            .cell("bytes_summaries", self.bytes())
            .value("false_hits", self.false_rate(), 6)
            .value("expected_false_hits", self.expected, 6);
    }

    /// Runs caches of `held` documents, with `bits` bits for each, published when `share` of them
    /// are new.
    fn new(lab: &Lab, (bits, share): (u32, f64), held: u64) -> Result<Run> {
        let proxies = lab.count(&PROXIES) as usize;
        let keys: Vec<CacheKey> = (0..lab.count(&DOCUMENTS))
            .map(|i| CacheKey::from_url(&format!("http://example.org/{i}")))
            .collect();
        let popularity = Zipf::new(keys.len(), lab.number(&SKEW));
        let mut caches =
            (0..proxies).map(|_| Cache::new(held, bits)).collect::<umbel_cache::Result<Vec<_>>>()?;
        let mut dice = Dice::new(lab, b"cach", 0);
        let mut run = Run { others: proxies as u64 - 1, ..Run::default() };
        for request in 0..lab.count(&REQUESTS) {
            let at = dice.below(proxies);
            let document = popularity.draw(&mut dice);
            // The first quarter of the requests fills the caches and is not counted.
            let counted = request >= lab.count(&REQUESTS) / 4;
            let miss = !caches[at].touch(document);
            if miss && counted {
                run.look(&caches, at, document, &keys[document]);
            }
            run.requests += u64::from(counted);
            run.local += u64::from(counted && !miss);
            if miss {
                let bytes = caches[at].keep(document, &keys, share)?;
                if let Some(bytes) = bytes.filter(|_| counted) {
                    run.publications += 1;
                    run.published_bytes += (bytes + MESSAGE_BYTES) * run.others;
                }
            }
        }
        let rates = caches.iter().filter_map(|cache| Some(cache.view.filter()?.stats().rate_now));
        run.expected = rates.sum::<f64>() / proxies as f64;
        Ok(run)
    }

    /// Counts the caches that hold a missed document, and those whose summaries promise it.
    fn look(&mut self, caches: &[Cache], at: usize, document: usize, key: &CacheKey) {
        self.misses += 1;
        let (mut possible, mut found) = (false, false);
        let others = caches.iter().enumerate().filter(|(other, _)| *other != at);
        for (_, cache) in others {
            let (has, promises) = (cache.used.contains_key(&document), cache.view.contains(key));
            possible |= has;
            self.looked += u64::from(!has);
            self.wrong += u64::from(promises && !has);
            // Queries stop at the first cache that has the document.
            if promises && !found {
                self.asked += 1;
                found = has;
            }
        }
        self.possible += u64::from(possible);
        self.found += u64::from(found);
    }
}

/// A cache that evicts the least recently used document, with the view that others have of it.
struct Cache {
    held: usize,
    /// Time of the last request of each document, and the documents in the order of these times.
    used: HashMap<usize, u64>,
    order: BTreeMap<u64, usize>,
    clock: u64,
    summary: Summary,
    view: View,
}

impl Cache {
    fn new(held: u64, bits: u32) -> umbel_cache::Result<Cache> {
        let summary = Summary::new(held, bits)?;
        let mut view = View::default();
        view.apply(&summary.update(None))?;
        let held = held as usize;
        Ok(Cache { held, used: HashMap::new(), order: BTreeMap::new(), clock: 0, summary, view })
    }

    /// Requests a document, and returns whether it is stored.
    fn touch(&mut self, document: usize) -> bool {
        self.clock += 1;
        let Some(used) = self.used.get_mut(&document) else { return false };
        self.order.remove(used);
        *used = self.clock;
        self.order.insert(self.clock, document);
        true
    }

    /// Stores a document, and publishes the summary if it is due. Returns the bytes that travel to
    /// each other cache then.
    fn keep(&mut self, document: usize, keys: &[CacheKey], share: f64) -> umbel_cache::Result<Option<u64>> {
        if self.used.len() >= self.held
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
            self.summary.remove(&keys[oldest]);
        }
        self.used.insert(document, self.clock);
        self.order.insert(self.clock, document);
        self.summary.insert(&keys[document]);
        let trigger = PublishTrigger { interval: Duration::MAX, new_share: share };
        if !self.summary.is_due(&trigger, Duration::ZERO) {
            return Ok(None);
        }
        self.summary.publish()?;
        let update = self.summary.update(self.view.version());
        self.view.apply(&update)?;
        Ok(Some(update.encode().len() as u64))
    }
}

/// Draws hits by the share of new documents, and messages and bytes by the bits per document.
fn draw(by_share: &[(f64, &Run)], by_bits: &[(u32, &Run)], sweep: &mut Sweep) {
    let mut hits = |label, mark, colour, of: &dyn Fn(&Run) -> u64| {
        sweep.series(label, mark, colour, by_share.iter().map(|(share, run)| (*share, run.hits(of(run)))));
    };
    hits("all others queried", Mark::Dashes, 6, &|run| run.possible);
    hits("with summaries", Mark::Line, 0, &|run| run.found);
    hits("without other caches", Mark::Dashes, 1, &|_| 0);
    let messages = by_bits.iter().map(|(bits, run)| (f64::from(*bits), 1.0 / run.messages_ratio()));
    sweep.series_on(1, "messages", Mark::Line, 0, messages);
    let bytes = by_bits.iter().map(|(bits, run)| (f64::from(*bits), run.bytes_ratio()));
    sweep.series_on(1, "bytes", Mark::Line, 1, bytes);
}
