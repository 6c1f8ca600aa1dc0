//! A line for everything that goes wrong, but not more lines in a second than somebody can read.

use crate::sync::lock;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Where lines go.
pub type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// Lines in a second; of more it is only said how many there were.
const MOST: u32 = 20;

/// A log of what goes wrong.
pub(super) struct Log {
    sink: Sink,
    second: Mutex<Second>,
}

struct Second {
    since: Instant,
    lines: u32,
}

impl Log {
    pub fn new(sink: Sink) -> Log {
        Log { sink, second: Mutex::new(Second { since: Instant::now(), lines: 0 }) }
    }

    pub fn line(&self, line: fmt::Arguments<'_>) {
        let mut second = lock(&self.second);
        if second.since.elapsed() >= Duration::from_secs(1) {
            let dropped = second.lines.saturating_sub(MOST);
            *second = Second { since: Instant::now(), lines: 0 };
            if dropped > 0 {
                (self.sink)(&format!("{dropped} more lines were left out"));
            }
        }
        second.lines += 1;
        if second.lines <= MOST {
            (self.sink)(&shown(&line.to_string()));
        }
    }
}

/// No line has more characters.
const LONGEST: usize = 500;

/// What others have sent cannot end a line or command a terminal.
fn shown(line: &str) -> String {
    line.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_cut_short_and_a_line_is_one() {
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
