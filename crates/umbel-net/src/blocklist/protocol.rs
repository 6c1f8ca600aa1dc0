//! A line protocol for blocklists, for firewalls and scripts.
//!
//! Every line is answered at once with one line. The first word of the answer is the result. It is
//! `error`, followed by a sentence, if the line was not understood or could not be carried out; the
//! session continues after that.
//!
//! | line | answer |
//! | --- | --- |
//! | `block ADDRESS\|PREFIX [SECONDS]` | `blocked PREFIX until TIME` |
//! | `unblock ADDRESS\|PREFIX` | `unblocked PREFIX`, or `free PREFIX` if it was not blocked; followed by `(still blocked by PREFIX)` if a wider prefix covers it |
//! | `allow ADDRESS\|PREFIX` | `allowed PREFIX` |
//! | `disallow ADDRESS\|PREFIX` | `disallowed PREFIX`, or `unknown PREFIX` if it was not allowed |
//! | `check ADDRESS` | `blocked ADDRESS by PREFIX until TIME`, `allowed ADDRESS by PREFIX` or `free ADDRESS` |
//! | `stats` | `stats` and figures, `name=value` |
//! | `innocent [KEYS]` | `innocent` and the false positives among this many keys that belong to no address, 100000 by default |
//! | `tick [@TIME]` | `time TIME` |
//! | `save` | `saved FILE` |
//! | `help` | `help` and a list of the lines |
//!
//! Times are seconds since the start of 1970, with up to three decimals. The clock is the system's
//! until a line sets it. Any line can: `@TIME` may precede it, as in `@1800000000 block 192.0.2.7`.
//! From then on, the clock only moves when a line sets it again. Time never goes backwards: an
//! earlier time is an error, and if the system's clock is behind a saved state, time stands still
//! until the clock has caught up. The aging backend does not know when an existing entry expires,
//! so its answers to `check` have no `until`.
//!
//! ```
//! use umbel::Timestamp;
//! use umbel_net::blocklist::{Blocklist, Options, protocol::Session};
//!
//! let list = Blocklist::new(&Options::default(), Timestamp::from_millis(0))?;
//! let mut session = Session::new(list, None);
//! let mut said = Vec::new();
//! session.serve(&b"@100 block 192.0.2.0/24 60\ncheck 192.0.2.7\n@160 check 192.0.2.7\nhello\n"[..], &mut said, Timestamp::now)?;
//! let said = String::from_utf8(said)?;
//! let lines: Vec<&str> = said.lines().collect();
//! assert_eq!(lines[0], "blocked 192.0.2.0/24 until 160.000");
//! assert_eq!(lines[1], "blocked 192.0.2.7 by 192.0.2.0/24 until 160.000");
//! assert_eq!(lines[2], "free 192.0.2.7");
//! assert!(lines[3].starts_with("error "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::state::Keeper;
use super::{Blocklist, Figures, Verdict};
use crate::network::{Prefix, quoted};
use crate::{Error, Result};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::time::Duration;
use umbel::Timestamp;

/// The longest line that is read.
const MAX_LINE_BYTES: usize = 1024;

/// The default number of keys in a sample.
const DEFAULT_SAMPLE_KEYS: u64 = 100_000;
/// The largest sample. A larger one would delay the next line for too long.
const MAX_SAMPLE_KEYS: u64 = 100_000_000;

/// The first time that is rejected. Later times are mistakes, such as milliseconds instead of
/// seconds.
const MAX_SECONDS: u64 = 1_000_000_000_000;

/// A session of the protocol with a blocklist.
#[derive(Debug)]
pub struct Session {
    list: Blocklist,
    state: Option<Keeper>,
    /// Whether lines set the clock.
    clock_is_set: bool,
    /// Whether the list has unsaved changes.
    changed: bool,
}

impl Session {
    /// Returns a session about this list. `save` lines write it to `state`.
    pub fn new(list: Blocklist, state: Option<Keeper>) -> Session {
        Session { list, state, clock_is_set: false, changed: false }
    }

    /// Returns the list.
    pub fn list(&self) -> &Blocklist {
        &self.list
    }

    /// Returns whether the list has changed since it was last saved.
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// Answers a line, passed without its line ending, at a time of the system's clock.
    pub fn answer(&mut self, line: &[u8], clock: Timestamp) -> String {
        let understood = str::from_utf8(line).map_err(|_| Error::parameter("line", "not UTF-8", "text"));
        let answer = understood.and_then(|line| self.try_answer(line, clock));
        answer.unwrap_or_else(|error| format!("error {error:#}"))
    }

    fn try_answer(&mut self, line: &str, clock: Timestamp) -> Result<String> {
        let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
        let time = match words[..] {
            [time, ..] if time.starts_with('@') => Some(words.remove(0)),
            ["tick", _] => words.pop(),
            _ => None,
        };
        let time = time.map(parse_time).transpose()?;
        if let Some(time) = time {
            self.list.advance(time)?;
            self.clock_is_set = true;
        } else if !self.clock_is_set {
            self.list.advance(clock.max(self.list.now()))?;
        }
        match &words[..] {
            ["block", prefix] => self.block(prefix, None),
            ["block", prefix, seconds] => self.block(prefix, Some(duration(seconds)?)),
            ["unblock", prefix] => self.unblock(prefix.parse()?),
            ["allow", text] => {
                let (prefix, cleared) = Prefix::parse(text)?;
                self.changed |= self.list.allow(prefix);
                Ok(format!("allowed {prefix}{}", note(cleared)))
            }
            ["disallow", prefix] => {
                let prefix: Prefix = prefix.parse()?;
                let known = self.list.disallow(prefix);
                self.changed |= known;
                Ok(format!("{} {prefix}", if known { "disallowed" } else { "unknown" }))
            }
            ["check", address] => self.check(address),
            ["stats"] => Ok(format_figures(&self.list.figures(), &self.list)),
            ["innocent"] => Ok(self.innocent(DEFAULT_SAMPLE_KEYS)),
            ["innocent", keys] => match keys.parse() {
                Ok(keys @ 1..=MAX_SAMPLE_KEYS) => Ok(self.innocent(keys)),
                _ => Err(Error::parameter(
                    "keys",
                    quoted(keys),
                    format!("a number from 1 to {MAX_SAMPLE_KEYS}"),
                )),
            },
            ["tick"] => Ok(format!("time {}", self.list.now())),
            ["save"] => self.save(),
            ["help"] => Ok(format!("help {COMMANDS}")),
            _ => Err(Error::parameter("line", quoted(line), format!("one of: {COMMANDS}"))),
        }
    }

    fn block(&mut self, text: &str, lifetime: Option<Duration>) -> Result<String> {
        let (prefix, cleared) = Prefix::parse(text)?;
        let until = self.list.block(prefix, lifetime)?;
        self.changed = true;
        Ok(format!("blocked {prefix} until {until}{}", note(cleared)))
    }

    fn unblock(&mut self, prefix: Prefix) -> Result<String> {
        let known = self.list.unblock(prefix)?;
        self.changed |= known;
        let still = match prefix.as_host().map(|address| self.list.check(address)) {
            Some(Verdict::Blocked { by, .. }) => format!(" (still blocked by {by})"),
            _ => String::new(),
        };
        Ok(format!("{} {prefix}{still}", if known { "unblocked" } else { "free" }))
    }

    fn check(&mut self, text: &str) -> Result<String> {
        let wrong = || Error::parameter("check", quoted(text), "a single address");
        let address = text.parse::<Prefix>()?.as_host().ok_or_else(wrong)?;
        Ok(match self.list.check(address) {
            Verdict::Blocked { by, until: Some(until) } => format!("blocked {address} by {by} until {until}"),
            Verdict::Blocked { by, until: None } => format!("blocked {address} by {by}"),
            Verdict::Allowed { by } => format!("allowed {address} by {by}"),
            Verdict::Free => format!("free {address}"),
        })
    }

    fn innocent(&self, keys: u64) -> String {
        let hits = self.list.sample(keys, self.list.now().millis());
        let Figures { rate, innocents, .. } = self.list.figures();
        format!(
            "innocent keys={keys} hits={hits} measured={:.3e} predicted={rate:.3e} expected_clients={innocents:.3}",
            hits as f64 / keys as f64
        )
    }

    /// Saves the list.
    ///
    /// # Errors
    ///
    /// Fails if the session has no file, or the file cannot be written.
    pub fn save(&mut self) -> Result<String> {
        let Some(keeper) = &mut self.state else {
            return Err(Error::parameter("save", "no file", "a file for the state"));
        };
        keeper.save(&self.list)?;
        self.changed = false;
        Ok(format!("saved {}", keeper.path().to_string_lossy().escape_debug()))
    }

    /// Answers line by line until the input ends. Each line is answered before the session waits
    /// for the next one.
    ///
    /// # Errors
    ///
    /// Fails if reading or writing fails.
    pub fn serve(
        &mut self,
        input: impl Read,
        output: impl Write,
        mut clock: impl FnMut() -> Timestamp,
    ) -> io::Result<()> {
        let (mut input, mut output) = (BufReader::new(input), BufWriter::new(output));
        let mut line = Vec::new();
        while let Some(whole) = next_line(&mut input, &mut line)? {
            let answer = if whole {
                self.answer(&line, clock())
            } else {
                format!("error the line is longer than {MAX_LINE_BYTES} bytes")
            };
            writeln!(output, "{answer}")?;
            // A client that has already sent the next line is not waiting for this answer.
            if !input.buffer().contains(&b'\n') {
                output.flush()?;
            }
        }
        output.flush()
    }
}

/// Reads a line, and returns whether it was kept completely; `None` at the end of the input.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    let (mut any, mut whole) = (false, true);
    loop {
        let bytes = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            return Ok(any.then_some(whole));
        }
        any = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (part, used) = end.map_or((bytes, bytes.len()), |end| (&bytes[..end], end + 1));
        whole &= line.len() + part.len() <= MAX_LINE_BYTES;
        if whole {
            line.extend_from_slice(part);
        }
        input.consume(used);
        if end.is_some() {
            return Ok(Some(whole));
        }
    }
}

const COMMANDS: &str = "block ADDRESS|PREFIX [SECONDS], unblock, allow, disallow ADDRESS|PREFIX, check ADDRESS, \
                        stats, innocent [KEYS], tick [@TIME], save";

fn note(cleared: bool) -> &'static str {
    if cleared { " (host bits cleared)" } else { "" }
}

fn format_figures(figures: &Figures, list: &Blocklist) -> String {
    let lengths = |lengths: &[u8]| {
        let texts: Vec<String> = lengths.iter().map(u8::to_string).collect();
        if texts.is_empty() { "none".to_string() } else { texts.join(",") }
    };
    let options = list.options();
    format!(
        "stats engine={} time={} blocked={} capacity={} allowed={} lengths_v4={} lengths_v6={} rate={:.3e} bytes={} \
         clients={} expected_innocents={:.3} budget={} over_budget={}",
        figures.backend,
        figures.now,
        figures.blocked,
        options.capacity,
        figures.allowed,
        lengths(&figures.lengths_v4),
        lengths(&figures.lengths_v6),
        figures.rate,
        figures.bytes,
        options.clients,
        figures.innocents,
        options.budget,
        if figures.over_budget { "yes" } else { "no" },
    )
}

/// Parses a time, as `@1800000000` or `@1800000000.250`.
fn parse_time(text: &str) -> Result<Timestamp> {
    let millis = text.strip_prefix('@').and_then(millis);
    let needs = "a time as @ and seconds since the start of 1970, such as @1800000000";
    millis.map(Timestamp::from_millis).ok_or_else(|| Error::parameter("time", quoted(text), needs))
}

/// Parses a number of seconds, with up to three decimals.
fn duration(text: &str) -> Result<Duration> {
    let wrong = || Error::parameter("lifetime", quoted(text), "seconds above 0, such as 600 or 0.5");
    millis(text).filter(|millis| *millis > 0).map(Duration::from_millis).ok_or_else(wrong)
}

fn millis(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 3 {
        return None;
    }
    let seconds = whole.parse().ok().filter(|seconds: &u64| *seconds < MAX_SECONDS)?;
    Some(seconds * 1000 + format!("{decimals:0<3}").parse::<u64>().ok()?)
}

/// Parses a line of a list in a file: `ADDRESS|PREFIX [SECONDS]`. Returns `None` for a line without
/// an entry. Text after a `#` or a `;` is a comment, as in published lists.
///
/// # Errors
///
/// Fails if the line is not UTF-8, or not an address or prefix and an optional number of seconds.
pub fn entry(line: &[u8]) -> Result<Option<Entry>> {
    let text = str::from_utf8(line).map_err(|_| Error::parameter("line", "not UTF-8", "text"))?;
    let text = text.split(['#', ';']).next().unwrap_or_default();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (prefix, lifetime) = match words[..] {
        [] => return Ok(None),
        [prefix] => (prefix, None),
        [prefix, seconds] => (prefix, Some(duration(seconds)?)),
        _ => return Err(Error::parameter("line", quoted(text), "an address or a prefix, and seconds")),
    };
    let (prefix, cleared) = Prefix::parse(prefix)?;
    Ok(Some(Entry { prefix, lifetime, cleared }))
}

/// An entry of a list in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The prefix.
    pub prefix: Prefix,
    /// Its lifetime, if the line has one.
    pub lifetime: Option<Duration>,
    /// Whether bits after the prefix were cleared.
    pub cleared: bool,
}
