//! Blocks through many threads, and their results in the order of the input.
//!
//! A thread takes the next block under a lock, works on it alone, and hands its result to the sink when it is that
//! block's turn. A result that comes early waits; a thread that is far ahead of the slowest one waits too, so that
//! memory stays bounded.

use crate::input::{Block, Blocks, Records, Scratch, Skipped};
use crate::sync::{inner, lock};
use crate::terminal::Progress;
use crate::terminal::output::warn;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// How far a thread may be ahead of the slowest, in blocks per thread.
const AHEAD: u64 = 4;

/// What the sink is told of a block beside its result.
#[derive(Clone, Copy)]
pub struct Turn {
    /// The input has nothing more at the moment: whatever was computed should be seen now.
    pub caught_up: bool,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub records: u64,
    pub keys: u64,
    no_field: u64,
    not_hex: u64,
    /// The first record without a key, counted from 1 over all inputs, headers apart.
    first_skipped: Option<u64>,
}

/// Works on every block, and gives the results to `sink` in order, until there are no more or the sink has enough.
/// `work` is told which of the threads it runs on.
pub fn run<T: Send>(
    blocks: Blocks,
    threads: usize,
    work: impl Fn(usize, &Records) -> Result<T> + Sync,
    sink: impl FnMut(T, Turn) -> Result<ControlFlow<()>> + Send,
) -> Result<Tally> {
    let key_spec = blocks.key_spec();
    let progress = Progress::start(&blocks);
    let stop = blocks.stop();
    let blocks = Mutex::new(blocks);
    let order = Order {
        state: Mutex::new(State {
            next: 0,
            early: BTreeMap::new(),
            sink,
            tally: Tally::default(),
            failure: None,
        }),
        turned: Condvar::new(),
        stop: &stop,
        window: AHEAD * threads as u64,
    };
    let worker = |thread: usize| {
        let _alarm = Alarm(&order);
        let (mut block, mut scratch) = (Block::default(), Scratch::default());
        loop {
            // Not in the match, where the lock would be held until a failure has had its turn.
            let read = lock(&blocks).next(&mut block);
            match read {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return order.hand_in(block.number, Err(error)),
            }
            let turn = Turn { caught_up: block.caught_up };
            let done = Records::new(&block, &key_spec, &mut scratch).map_err(anyhow::Error::from).and_then(
                |records| Ok(Done { result: work(thread, &records)?, tally: Tally::of(&records), turn }),
            );
            order.hand_in(block.number, done);
        }
    };
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let worker = &worker;
            scope.spawn(move || worker(thread));
        }
        worker(0);
    });
    progress.finish();
    let State { failure, tally, .. } = inner(order.state);
    match failure {
        Some(error) => Err(error),
        None => tally.checked(),
    }
}

/// How many lines files have. Whoever only counts needs no order and no whole lines, so threads do not wait for each other.
pub fn count(files: &[PathBuf], line_end: u8, threads: usize) -> Result<u64> {
    const PIECE: u64 = 4 << 20;
    let total = AtomicU64::new(0);
    let mut pieces = Vec::new();
    for path in files {
        let failed = || format!("cannot read {}", path.display());
        let file = Arc::new(File::open(path).with_context(failed)?);
        let len = file.metadata().with_context(failed)?.len();
        // The last line may lack its end.
        let mut last = [line_end];
        file.read_at(&mut last, len.saturating_sub(1)).with_context(failed)?;
        total.fetch_add(u64::from(last != [line_end]), Relaxed);
        pieces.extend((0..len).step_by(PIECE as usize).map(|start| Ok((path, Arc::clone(&file), start))));
    }
    spread(pieces.into_iter(), threads, |_, (path, file, start)| {
        let mut buffer = vec![0; 1 << 17];
        let mut at = start;
        while at < start + PIECE {
            // A piece is a whole number of buffers; a short read ends earlier, and the next goes on from there.
            let most = buffer.len().min((start + PIECE - at) as usize);
            let read = file.read_at(&mut buffer[..most], at);
            let read = read.with_context(|| format!("cannot read {}", path.display()))?;
            if read == 0 {
                break;
            }
            at += read as u64;
            total.fetch_add(memchr::memchr_iter(line_end, &buffer[..read]).count() as u64, Relaxed);
        }
        Ok(())
    })?;
    Ok(total.into_inner())
}

/// Works on items with many threads, in any order, until one fails.
pub fn spread<I: Send>(
    items: impl Iterator<Item = Result<I>> + Send,
    threads: usize,
    work: impl Fn(usize, I) -> Result<()> + Sync,
) -> Result<()> {
    let items = Mutex::new(items);
    let worker = |thread: usize| {
        loop {
            // Not in the loop's head, where the lock would be held while the item is worked on.
            let item = lock(&items).next();
            match item {
                Some(item) => work(thread, item?)?,
                None => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let worker = &worker;
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || worker(thread))).collect();
        let own = worker(0);
        let results =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        results.fold(own, |all, one| all.and(one))
    })
}

/// The results of a block.
struct Done<T> {
    result: T,
    tally: Tally,
    turn: Turn,
}

/// Puts results in order.
struct Order<'a, T, S> {
    state: Mutex<State<T, S>>,
    turned: Condvar,
    stop: &'a AtomicBool,
    /// How far ahead a block may be.
    window: u64,
}

struct State<T, S> {
    /// The block whose turn it is.
    next: u64,
    early: BTreeMap<u64, Result<Done<T>>>,
    sink: S,
    tally: Tally,
    failure: Option<anyhow::Error>,
}

impl<T, S: FnMut(T, Turn) -> Result<ControlFlow<()>>> Order<'_, T, S> {
    /// Gives the results of a block to the sink when it is their turn. What failed waits for its turn too, so that all
    /// that came before it in the input is seen.
    fn hand_in(&self, number: u64, done: Result<Done<T>>) {
        let mut state = lock(&self.state);
        while number >= state.next + self.window && !self.stop.load(Relaxed) {
            state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.early.insert(number, done);
        let before = state.next;
        while !self.stop.load(Relaxed) {
            let next = state.next;
            let Some(done) = state.early.remove(&next) else { break };
            state.next += 1;
            let flow = done.and_then(|done| {
                state.tally.add(done.tally);
                (state.sink)(done.result, done.turn)
            });
            match flow {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => self.stop.store(true, Relaxed),
                Err(error) => {
                    state.failure.get_or_insert(error);
                    self.stop.store(true, Relaxed);
                }
            }
        }
        if state.next != before {
            self.turned.notify_all();
        }
    }
}

impl<T, S> Order<'_, T, S> {
    fn stop(&self) {
        self.stop.store(true, Relaxed);
        // Under the lock: a thread that has just seen that it must wait is waiting by then.
        drop(lock(&self.state));
        self.turned.notify_all();
    }
}

/// A thread that panics must not leave the others waiting for its block.
struct Alarm<'a, 'b, T, S>(&'a Order<'b, T, S>);

impl<T, S> Drop for Alarm<'_, '_, T, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

impl Tally {
    fn of(records: &Records) -> Tally {
        let Skipped { no_field, not_hex, first } = records.skipped();
        let (records, keys) = (records.record_count() as u64, records.key_count() as u64);
        Tally { records, keys, no_field, not_hex, first_skipped: first.map(|first| first + 1) }
    }

    /// Adds what comes after.
    fn add(&mut self, other: Tally) {
        let first = other.first_skipped.map(|first| first + self.records);
        self.first_skipped = self.first_skipped.or(first);
        self.records += other.records;
        self.keys += other.keys;
        self.no_field += other.no_field;
        self.not_hex += other.not_hex;
    }

    /// Says which lines were left out; an error if that were all of them.
    fn checked(self) -> Result<Tally> {
        let Some(first) = self.first_skipped else { return Ok(self) };
        let skipped = self.no_field + self.not_hex;
        let lack = match (self.no_field, self.not_hex) {
            (1, 0) => "lacks the field",
            (_, 0) => "lack the field",
            (0, 1) => "is not hexadecimal",
            (0, _) => "are not hexadecimal",
            _ => "lack the field or are not hexadecimal",
        };
        let lines = if skipped == 1 { "line" } else { "lines" };
        if self.keys == 0 {
            let see = if self.no_field == 0 { "--hex" } else { "-F, -d, --csv and --hex" };
            bail!("all {skipped} {lines} {lack}: see {see}");
        }
        warn(format_args!("skipped {skipped} {lines} that {lack}; the first is line {first} of the input"));
        Ok(self)
    }
}
