//! The log of failures, limited to a number of lines per second that a person can read.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use umbel::internals::sync::lock;
use umbel::internals::text::is_control;

/// Receives the lines of the log.
pub type LogSink = Arc<dyn Fn(&str) + Send + Sync>;

/// The largest number of lines per second. Only the number of further lines is logged.
const MAX_LINES_PER_SECOND: u32 = 20;

/// A rate-limited log of failures.
pub(super) struct Log {
    sink: LogSink,
    second: Mutex<Second>,
}

struct Second {
    since: Instant,
    lines: u32,
}

impl Log {
    pub fn new(sink: LogSink) -> Log {
        Log { sink, second: Mutex::new(Second { since: Instant::now(), lines: 0 }) }
    }

    /// Logs a line.
    pub fn line(&self, line: fmt::Arguments<'_>) {
        let mut second = lock(&self.second);
        if second.since.elapsed() >= Duration::from_secs(1) {
            let dropped = second.lines.saturating_sub(MAX_LINES_PER_SECOND);
            *second = Second { since: Instant::now(), lines: 0 };
            if dropped > 0 {
                (self.sink)(&format!("{dropped} more lines were left out"));
            }
        }
        second.lines += 1;
        if second.lines <= MAX_LINES_PER_SECOND {
            (self.sink)(&printable(&line.to_string()));
        }
    }
}

/// The largest number of characters in a line.
const MAX_LINE_CHARS: usize = 500;

/// Truncates a line and replaces control characters and those that change the direction of text,
/// since text from clients and origins must not end a line or control a terminal.
pub(super) fn printable(line: &str) -> String {
    line.chars().take(MAX_LINE_CHARS).map(|c| if is_control(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floods_and_line_breaks_are_suppressed() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&lines);
        let log = Log::new(Arc::new(move |line: &str| lock(&heard).push(line.to_owned())));
        (0..1000).for_each(|i| log.line(format_args!("{i}\nsecond\u{1b}[31m")));
        lock(&log.second).since -= Duration::from_secs(2);
        log.line(format_args!("later"));
        let lines = lock(&lines);
        assert_eq!(lines.len(), 22);
        assert_eq!(lines[0], "0\u{fffd}second\u{fffd}[31m");
        assert_eq!(lines[20..], ["980 more lines were left out", "later"]);
    }
}
