//! A progress bar for long work, on a terminal only.

use crate::input::Blocks;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Work that ends before this has no bar.
const LONG: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(200);

/// Watches how much has been done, from a thread of its own, until it is finished.
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Shows how much of the input has been read.
    pub fn start(blocks: &Blocks) -> Progress {
        if !blocks.show_progress {
            return Progress(None);
        }
        let (read, total) = blocks.progress();
        Progress::of_bytes(read, total)
    }

    /// How many bytes have been read, of so many if that is known.
    pub fn of_bytes(read: Arc<AtomicU64>, total: Option<u64>) -> Progress {
        let template = match total {
            Some(_) => "{wide_bar} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left",
            None => "{spinner} {bytes}, {binary_bytes_per_sec}",
        };
        Progress::watch(read, total, template)
    }

    /// How many of so many keys a construction is done with.
    pub fn of_keys(done: Arc<AtomicU64>, total: u64) -> Progress {
        Progress::watch(done, Some(total), "{wide_bar} {human_pos} of {human_len} keys, {eta} left")
    }

    /// How many of so many experiments have ended.
    pub fn of_experiments(done: Arc<AtomicU64>, total: u64) -> Progress {
        Progress::watch(done, Some(total), "{wide_bar} {pos} of {len} experiments")
    }

    /// How many of so many files have been read.
    pub fn of_files(done: Arc<AtomicU64>, total: u64) -> Progress {
        Progress::watch(done, Some(total), "{wide_bar} {human_pos} of {human_len} files, {eta} left")
    }

    fn watch(done: Arc<AtomicU64>, total: Option<u64>, template: &'static str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(None);
        }
        let (sender, finished) = channel();
        let watch = move || {
            let still = |wait| matches!(finished.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
            if !still(LONG) {
                return;
            }
            let bar =
                total.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_style(style(template));
            loop {
                bar.set_position(done.load(Relaxed));
                if !still(TICK) {
                    return bar.finish_and_clear();
                }
            }
        };
        Progress(Some((sender, std::thread::spawn(watch))))
    }

    /// Takes the bar away, so that what is printed next stands alone.
    pub fn finish(self) {
        if let Some((sender, thread)) = self.0 {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
