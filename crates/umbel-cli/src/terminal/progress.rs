//! A progress bar for long work, on a terminal only.

use crate::input::Blocks;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Work that takes less than this has no bar.
const BAR_DELAY: Duration = Duration::from_secs(1);
/// The interval at which the bar is redrawn.
const REFRESH_INTERVAL: Duration = Duration::from_millis(200);

/// A progress bar that a thread of its own redraws until the work is finished.
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

    /// Shows how many bytes of a total have been read.
    pub fn of_bytes(read: Arc<AtomicU64>, total: Option<u64>) -> Progress {
        let template = match total {
            Some(_) => "{wide_bar} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left",
            None => "{spinner} {bytes}, {binary_bytes_per_sec}",
        };
        Progress::watch(read, total, template)
    }

    /// Shows how many keys a construction has processed.
    pub fn of_keys(done: Arc<AtomicU64>, total: u64) -> Progress {
        Progress::watch(done, Some(total), "{wide_bar} {human_pos} of {human_len} keys, {eta} left")
    }

    /// Shows how many experiments have ended.
    pub fn of_experiments(done: Arc<AtomicU64>, total: u64) -> Progress {
        Progress::watch(done, Some(total), "{wide_bar} {pos} of {len} experiments")
    }

    /// Shows how many files have been read.
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
            if !still(BAR_DELAY) {
                return;
            }
            let bar =
                total.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_style(style(template));
            loop {
                bar.set_position(done.load(Relaxed));
                if !still(REFRESH_INTERVAL) {
                    return bar.finish_and_clear();
                }
            }
        };
        Progress(Some((sender, std::thread::spawn(watch))))
    }

    /// Removes the bar.
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
