//! Long runs of `fuzz/soak`: one writer after the other with random faults, until the time is over
//! or something is found.

use super::{Trial, WRITERS, copy};
use crate::shell::Shell;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// The seconds that a long run takes.
const SECONDS: &str = "UMBEL_SOAK_SECONDS";
/// The folder for what shows a finding again.
const ARTIFACTS: &str = "UMBEL_SOAK_ARTIFACTS";

/// Random numbers (xorshift, Marsaglia 2003).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(2) + 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number from 0 to 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A long run, with its counts.
pub struct Soak {
    /// The name of the count of successful faults.
    name: &'static str,
    end: Instant,
    random: Random,
    trials: Vec<Trial>,
    current: usize,
    executions: u64,
    faults: u64,
    finding: Option<String>,
}

impl Soak {
    pub fn start(name: &'static str) -> Soak {
        let seconds = env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(1.0);
        let seed = SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
        Soak {
            name,
            end: Instant::now() + Duration::from_secs_f64(seconds),
            random: Random::new(seed),
            trials: Vec::new(),
            current: 0,
            executions: 0,
            faults: 0,
            finding: None,
        }
    }

    /// Returns the next writer to try, and random numbers to choose a fault.
    pub fn next(&mut self) -> Option<(&Trial, &mut Random)> {
        if Instant::now() >= self.end || self.finding.is_some() {
            return None;
        }
        self.current = (self.executions % WRITERS.len() as u64) as usize;
        if self.trials.len() == self.current {
            self.trials.push(Trial::new(&WRITERS[self.current]));
        }
        Some((&self.trials[self.current], &mut self.random))
    }

    /// Counts an execution: whether the fault happened, or what was found.
    pub fn count(&mut self, folder: &Shell, result: Result<bool, String>) {
        self.executions += 1;
        match result {
            Ok(happened) => self.faults += u64::from(happened),
            Err(problem) => {
                let finding = format!("{}: {problem}", self.trials[self.current]);
                self.keep(folder, &finding);
                self.finding = Some(finding);
            }
        }
    }

    /// Stores the folder before and after the fault, with a description.
    fn keep(&self, folder: &Shell, finding: &str) {
        let Some(artifacts) = env::var_os(ARTIFACTS) else { return };
        let at = PathBuf::from(artifacts).join(format!("{}-{}", self.name, std::process::id()));
        for (name, from) in [("before", &self.trials[self.current].folder()), ("after", folder)] {
            fs::create_dir_all(at.join(name)).expect("a folder for the finding");
            copy(&from.path("."), &at.join(name));
        }
        fs::write(at.join("finding"), format!("{finding}\n")).expect("a description of the finding");
        println!("reproducer: {}", at.display());
    }

    /// Prints the counts in the form that `fuzz/soak` reads, and fails if something was found.
    pub fn finish(self) {
        println!("soak: executions={} {}={}", self.executions, self.name, self.faults);
        assert!(self.finding.is_none(), "{}", self.finding.unwrap_or_default());
    }
}
