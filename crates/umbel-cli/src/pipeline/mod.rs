//! Blocks of lines through many threads, with the results in the order of the input.
//!
//! [`run`] is the loop from input to output of every command with lines. A thread reads the next
//! block under a lock, splits it into records, works on them alone, and passes the result to the
//! sink when the block's turn has come. [`select`] prints the lines that a query selects, [`dedup`]
//! those that were not seen before.

mod bit_runs;
mod counts;
pub mod dedup;
mod order;
mod select;
mod unordered;

pub use bit_runs::bit_runs;
pub use counts::{InputCounts, LineNumbers};
pub use select::Select;
pub use unordered::{count_lines, run_unordered};

use crate::input::{Block, Blocks, Records, Scratch};
use crate::terminal::Progress;
use anyhow::Result;
use order::{BlockResult, InOrder};
use std::ops::ControlFlow;
use std::sync::Mutex;
use umbel::internals::sync::lock;

/// The state of the input at a block, which is passed to the sink with its result.
#[derive(Clone, Copy)]
pub struct BlockInfo {
    /// Whether the input has no more data at the moment, so that results should be shown now.
    pub caught_up: bool,
}

/// The number of blocks (a gigabyte) that one thread works on alone after a long line. Few threads
/// then have held the memory for a long line, which an allocator returns to the system late.
const BLOCKS_ALONE: u32 = 4096;

/// Calls `work` for every block, with the number of the thread, and passes the results to `sink` in
/// the order of the input, until the input ends or the sink breaks.
///
/// A thread that reads a block with an unusually long line works on it, and on [`BLOCKS_ALONE`]
/// after it, while the others wait. So memory is bounded by a few such lines for any number of
/// threads.
pub fn run<T: Send>(
    blocks: Blocks,
    threads: usize,
    work: impl Fn(usize, &Records) -> Result<T> + Sync,
    sink: impl FnMut(T, BlockInfo) -> Result<ControlFlow<()>> + Send,
) -> Result<InputCounts> {
    let key_spec = blocks.key_spec();
    let progress = Progress::start(&blocks);
    let stop = blocks.stop();
    let blocks = Mutex::new(blocks);
    let order = InOrder::new(sink, threads, &stop);
    let worker = |thread: usize| {
        let _guard = order.guard();
        let (mut block, mut scratch) = (Block::default(), Scratch::default());
        let work_on = |block: &Block, scratch: &mut Scratch| {
            let info = BlockInfo { caught_up: block.caught_up };
            let records = Records::new(block, &key_spec, scratch)?;
            let (input, counts) = (block.input, InputCounts::from_records(&records));
            Ok(BlockResult { result: work(thread, &records)?, input, counts, info })
        };
        let (mut reader, mut alone) = (lock(&blocks), 0);
        loop {
            match reader.next(&mut block) {
                Ok(true) => {
                    if block.is_large() {
                        alone = BLOCKS_ALONE;
                    }
                    if alone > 0 {
                        order.await_turn(block.number);
                        order.deliver(block.number, work_on(&block, &mut scratch));
                        alone -= 1;
                        if alone == 0 {
                            (block, scratch) = Default::default();
                        }
                    } else {
                        drop(reader);
                        order.deliver(block.number, work_on(&block, &mut scratch));
                        reader = lock(&blocks);
                    }
                }
                Ok(false) => return,
                Err(error) => {
                    // A failure waits for its turn, and the other threads should not wait with it.
                    drop(reader);
                    return order.deliver(block.number, Err(error));
                }
            }
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
    order.finish()?.checked()
}
