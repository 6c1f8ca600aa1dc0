//! Results of blocks, put back into the order of the input.
//!
//! A result that comes early is stored until its turn. A thread that is far ahead of the slowest
//! one waits, so that memory stays bounded.

use super::{BlockInfo, InputCounts, LineNumbers};
use anyhow::Result;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use umbel::internals::sync::{into_inner, lock};

/// The maximum lead of a thread over the slowest one, in blocks per thread.
const BLOCKS_AHEAD: u64 = 4;

/// The result of a block.
pub struct BlockResult<T> {
    pub result: T,
    /// The index of the input that the block comes from.
    pub input: usize,
    pub counts: InputCounts,
    pub info: BlockInfo,
}

/// Passes the results of blocks to a sink in the order of the input.
pub struct InOrder<'a, T, S> {
    state: Mutex<State<T, S>>,
    /// Signalled when the turn moves on to another block.
    turned: Condvar,
    stop: &'a AtomicBool,
    /// The maximum number of blocks by which a result may be ahead of the current one.
    window: u64,
}

struct State<T, S> {
    /// The number of the block whose turn it is.
    next: u64,
    /// Results that came before their turn.
    early: BTreeMap<u64, Result<BlockResult<T>>>,
    sink: S,
    counts: InputCounts,
    lines: LineNumbers,
    failure: Option<anyhow::Error>,
}

impl<'a, T, S: FnMut(T, BlockInfo) -> Result<ControlFlow<()>>> InOrder<'a, T, S> {
    /// Creates an order for results of this many threads; `stop` is set when the sink breaks or
    /// something fails.
    pub fn new(sink: S, threads: usize, stop: &'a AtomicBool) -> InOrder<'a, T, S> {
        let (early, counts, lines) = Default::default();
        InOrder {
            state: Mutex::new(State { next: 0, early, sink, counts, lines, failure: None }),
            turned: Condvar::new(),
            stop,
            window: BLOCKS_AHEAD * threads as u64 - 1,
        }
    }

    /// Waits until all blocks before this one have been delivered.
    pub fn await_turn(&self, number: u64) {
        drop(self.wait(number, 0));
    }

    /// Waits until a block is at most `ahead` blocks ahead of the current one, or the stop flag is
    /// set.
    fn wait(&self, number: u64, ahead: u64) -> MutexGuard<'_, State<T, S>> {
        let mut state = lock(&self.state);
        while number > state.next + ahead && !self.stop.load(Relaxed) {
            state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Passes the result of a block to the sink when it is its turn. A failure waits for its turn
    /// too, so that the results of all blocks before it reach the sink.
    pub fn deliver(&self, number: u64, result: Result<BlockResult<T>>) {
        let mut state = self.wait(number, self.window);
        state.early.insert(number, result);
        let before = state.next;
        while !self.stop.load(Relaxed) {
            let next = state.next;
            let Some(result) = state.early.remove(&next) else { break };
            state.next += 1;
            let flow = result.and_then(|block| {
                state.lines.next_block(block.input, block.counts.records as usize);
                state.counts.add(block.counts);
                (state.sink)(block.result, block.info)
            });
            match flow {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => self.stop.store(true, Relaxed),
                Err(error) => {
                    let error = state.lines.complete(error);
                    state.failure.get_or_insert(error);
                    self.stop.store(true, Relaxed);
                }
            }
        }
        if state.next != before {
            self.turned.notify_all();
        }
    }

    /// Returns the counts of all blocks that reached the sink, or the first failure.
    pub fn finish(self) -> Result<InputCounts> {
        let State { failure, counts, .. } = into_inner(self.state);
        failure.map_or(Ok(counts), Err)
    }
}

impl<'a, T, S> InOrder<'a, T, S> {
    /// Returns a guard that stops the other threads if the present one panics: they would wait for
    /// its block.
    pub fn guard(&self) -> PanicGuard<'_, 'a, T, S> {
        PanicGuard(self)
    }

    fn stop(&self) {
        self.stop.store(true, Relaxed);
        // Take the lock once, so that a thread that has checked the flag is waiting by now.
        drop(lock(&self.state));
        self.turned.notify_all();
    }
}

/// Stops all threads if the thread that holds it panics.
pub struct PanicGuard<'a, 'b, T, S>(&'a InOrder<'b, T, S>);

impl<T, S> Drop for PanicGuard<'_, '_, T, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
