//! The measurement: the order of the timed sections, the verification, and the figures.

use crate::contestants::{Contestant, Job};
use crate::error::{Error, Result};
use crate::keys::{self, Key, List, Store, Tag, Workload};
use crate::machine;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

/// The largest number of keys in a slice. A timed section of queries is split into slices, each a
/// sample of its own. A slice takes a millisecond or more, and one that was disturbed by another
/// process does not affect the others.
const SLICE: usize = 1 << 18;
/// A repetition builds and queries a small filter several times, until this many keys have been
/// processed ...
const KEYS_PER_REPETITION: u64 = 4_000_000;
/// ... but at most this often.
const PASSES_MAX: u64 = 64;
/// Up to this n every contestant is built once untimed before the first repetition, so that
/// allocator, clock frequency and branch predictors settle. Larger filters take seconds each and
/// settle by themselves.
const WARM_UP_MAX: u64 = 10_000_000;
/// The rate is measured on 6400/p absent keys, for a standard error of 1.25 %, but on no fewer than
/// this ...
const RATE_KEYS_MIN: u64 = 4_000_000;
/// ... and no more than this, because a very low rate would take hours.
const RATE_KEYS_MAX: u64 = 1_000_000_000;
/// The number of keys generated at a time to measure the rate.
const RATE_BLOCK: u64 = 1 << 16;

/// Times in nanoseconds per key, one per sample.
#[derive(Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    fn time<T>(&mut self, keys: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let value = black_box(work());
        self.0.push(start.elapsed().as_nanos() as f64 / keys as f64);
        value
    }

    /// Returns the middle sample, or the mean of the middle two.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            count if count % 2 == 1 => Some(sorted[half]),
            _ => Some((sorted[half - 1] + sorted[half]) / 2.0),
        }
    }

    pub fn best(&self) -> Option<f64> {
        self.0.iter().copied().min_by(f64::total_cmp)
    }
}

/// The results of one contestant.
#[derive(Default)]
pub struct Row {
    pub name: &'static str,
    pub insert: Samples,
    pub hit: Samples,
    pub miss: Samples,
    pub mixed: Samples,
    /// Concurrent insert: wall time with one thread and with several.
    pub one_thread: Samples,
    pub threads: Samples,
    pub bits_per_key: f64,
    /// The measured false positive rate; `None` if the contestant is not a filter.
    pub rate: Option<f64>,
    /// The share of its memory that lies on huge pages.
    pub huge_pages: Option<f64>,
}

pub struct Plan {
    pub job: Job,
    pub reps: usize,
    /// The number of threads of the concurrent insert; with one it is not measured.
    pub threads: usize,
}

/// Measures all contestants, interleaved: repetition 1 of each, then repetition 2 of each, and so
/// on. Every repetition starts one contestant further. Fails if a contestant has a false negative.
pub fn run<K: Key + ?Sized>(
    plan: &Plan,
    mut contestants: Vec<Box<dyn Contestant<K>>>,
    progress: impl Fn(&str),
) -> Result<Vec<Row>> {
    let job = &plan.job;
    progress("making keys");
    let work = Workload::<K>::new(job.n, job.seed);
    let mut rows: Vec<Row> = contestants.iter().map(|c| Row { name: c.name(), ..Row::default() }).collect();
    if job.n <= WARM_UP_MAX {
        for contestant in &mut contestants {
            progress(&format!("warm-up: {}", contestant.name()));
            contestant.prepare(job);
            contestant.insert(work.members.list());
            contestant.release();
        }
    }
    for repetition in 0..plan.reps {
        for turn in 0..contestants.len() {
            let who = (repetition + turn) % contestants.len();
            let (contestant, row) = (&mut *contestants[who], &mut rows[who]);
            progress(&format!("repetition {} of {}: {}", repetition + 1, plan.reps, contestant.name()));
            repeat(plan, &work, contestant, row, repetition == 0)?;
            contestant.release();
        }
    }
    Ok(rows)
}

/// Runs one repetition of one contestant; the first one also verifies it.
fn repeat<K: Key + ?Sized>(
    plan: &Plan,
    work: &Workload<K>,
    contestant: &mut dyn Contestant<K>,
    row: &mut Row,
    first: bool,
) -> Result<()> {
    let job = &plan.job;
    let members = work.members.list();
    let huge_before = machine::huge_page_bytes();

    for _ in 0..passes(job.n) {
        contestant.prepare(job);
        if contestant.is_filter() {
            row.insert.time(members.len(), || contestant.insert(members));
        }
    }
    // Section by section, so that all but the first pass find the same queries in the cache.
    if contestant.is_filter() {
        let hits = work.hits.list();
        let found = ask(contestant, hits, &mut row.hit);
        no_false_negatives(row.name, found, hits.len())?;
        ask(contestant, work.misses.list(), &mut row.miss);
    }
    ask(contestant, work.mixed.list(), &mut row.mixed);

    if first {
        row.bits_per_key = contestant.bits() as f64 / job.n as f64;
        row.huge_pages = huge_before.zip(machine::huge_page_bytes()).map(|(before, after)| {
            (after.saturating_sub(before) as f64 * 8.0 / contestant.bits() as f64).min(1.0)
        });
        if contestant.is_filter() {
            no_false_negatives(row.name, contestant.count(members), members.len())?;
            row.rate = Some(rate(job, contestant));
        }
    }
    if plan.threads > 1 && contestant.is_filter() && contestant.shared().is_some() {
        for (threads, samples) in [(1, &mut row.one_thread), (plan.threads, &mut row.threads)] {
            for _ in 0..passes(job.n) {
                contestant.prepare(job);
                insert_from_threads(&*contestant, members, threads, samples);
                no_false_negatives(row.name, contestant.count(members), members.len())?;
            }
        }
    }
    Ok(())
}

fn passes(keys: u64) -> u64 {
    (KEYS_PER_REPETITION / keys.max(1)).clamp(1, PASSES_MAX)
}

/// Looks up all queries, slice by slice, in as many passes as a repetition takes. Returns how many
/// keys each pass found.
fn ask<K: Key + ?Sized>(contestant: &dyn Contestant<K>, queries: K::List<'_>, samples: &mut Samples) -> u64 {
    let slices = queries.len().div_ceil(SLICE);
    let mut found = 0;
    for _ in 0..passes(queries.len() as u64) {
        found = 0u64;
        for slice in 0..slices {
            let part = queries.slice(queries.len() * slice / slices..queries.len() * (slice + 1) / slices);
            found = found.wrapping_add(samples.time(part.len(), || contestant.count(part)));
        }
    }
    found
}

fn no_false_negatives(name: &'static str, found: u64, asked: usize) -> Result<()> {
    let asked = asked as u64;
    match asked.saturating_sub(found) {
        0 => Ok(()),
        lost => Err(Error::FalseNegatives { name, lost, asked }),
    }
}

/// Measures the false positive rate, over absent keys that no timed section uses.
fn rate<K: Key + ?Sized>(job: &Job, contestant: &dyn Contestant<K>) -> f64 {
    let wanted = ((6400.0 / job.p) as u64).clamp(RATE_KEYS_MIN, RATE_KEYS_MAX);
    let blocks = wanted.div_ceil(RATE_BLOCK);
    let mut store = K::Store::with_capacity(RATE_BLOCK);
    let mut found = 0;
    for block in 0..blocks {
        store.clear();
        for i in block * RATE_BLOCK..(block + 1) * RATE_BLOCK {
            store.push(keys::id(Tag::Rate, i), job.seed);
        }
        found += contestant.count(store.list());
    }
    found as f64 / (blocks * RATE_BLOCK) as f64
}

/// Returns the wall time from the first insert of any thread to the last. The threads read the
/// clock themselves, because a thread that waits for them may be woken late at either end.
fn insert_from_threads<'a, K: Key + ?Sized>(
    contestant: &dyn Contestant<K>,
    keys: K::List<'a>,
    threads: usize,
    samples: &mut Samples,
) {
    let shared = contestant.shared().expect("asked before");
    let ready = Barrier::new(threads);
    let times = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|i| {
                let share = keys.slice(keys.len() * i / threads..keys.len() * (i + 1) / threads);
                let ready = &ready;
                scope.spawn(move || {
                    ready.wait();
                    let start = Instant::now();
                    shared.insert_shared(share);
                    (start, Instant::now())
                })
            })
            .collect();
        let join = |worker: ScopedJoinHandle<'_, _>| worker.join().expect("an insert does not panic");
        workers.into_iter().map(join).collect::<Vec<(Instant, Instant)>>()
    });
    let start = times.iter().map(|(start, _)| *start).min().expect("at least one thread");
    let end = times.iter().map(|(_, end)| *end).max().expect("at least one thread");
    samples.0.push((end - start).as_secs_f64() * 1e9 / keys.len() as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Samples(vec![]).median(), None);
        assert_eq!(Samples(vec![3.0]).median(), Some(3.0));
        assert_eq!(Samples(vec![9.0, 1.0, 2.0]).median(), Some(2.0));
        assert_eq!(Samples(vec![9.0, 1.0, 2.0, 4.0]).median(), Some(3.0));
        assert_eq!(Samples(vec![9.0, 1.0, 2.0]).best(), Some(1.0));
    }

    #[test]
    fn a_false_negative_is_an_error() {
        assert!(no_false_negatives("x", 10, 10).is_ok());
        assert!(no_false_negatives("x", 9, 10).unwrap_err().to_string().contains("denies 1 of 10"));
    }

    /// A filter that has lost keys must not get a row.
    #[test]
    fn a_forgetful_filter_is_caught() {
        struct Forgetful;
        impl Contestant<u64> for Forgetful {
            fn name(&self) -> &'static str {
                "forgetful"
            }
            fn prepare(&mut self, _: &Job) {}
            fn insert(&mut self, _: &[u64]) {}
            fn count(&self, keys: &[u64]) -> u64 {
                (keys.len() - keys.len() / 1000) as u64
            }
            fn bits(&self) -> u64 {
                8
            }
            fn shared(&self) -> Option<&dyn crate::contestants::Shared<u64>> {
                None
            }
            fn release(&mut self) {}
        }
        let plan = Plan { job: Job { n: 1000, p: 0.01, seed: 0 }, reps: 1, threads: 1 };
        let error = run::<u64>(&plan, vec![Box::new(Forgetful)], |_| ()).err().unwrap();
        assert!(matches!(error, Error::FalseNegatives { name: "forgetful", .. }), "{error}");
        assert!(error.to_string().contains("forgetful has false negatives"), "{error}");
    }
}
