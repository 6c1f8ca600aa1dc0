//! Runs experiments in parallel, and afterwards those that measure times, one by one.

use crate::{About, Experiment, Findings, Lab, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The outcome of an experiment.
#[derive(Debug)]
pub struct Outcome {
    /// Description of the experiment.
    pub about: About,
    /// Findings, or the error that ended the run.
    pub findings: Result<Findings>,
}

impl Outcome {
    /// Returns whether all criteria hold.
    pub fn holds(&self) -> bool {
        self.findings.as_ref().is_ok_and(|findings| findings.criteria.iter().all(|criterion| criterion.holds))
    }
}

/// Runs experiments and calls `done` after each. The outcomes have the order of the experiments and
/// do not depend on the number of threads, times aside.
pub fn run(
    experiments: &[Box<dyn Experiment>],
    lab: &Lab,
    threads: usize,
    done: &(dyn Fn(&Outcome) + Sync),
) -> Vec<Outcome> {
    let outcomes: Vec<Mutex<Option<Outcome>>> = experiments.iter().map(|_| Mutex::default()).collect();
    let one = |i: usize| {
        let outcome = Outcome { about: experiments[i].about(), findings: experiments[i].run(lab) };
        done(&outcome);
        *outcomes[i].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(outcome);
    };
    let (alone, together): (Vec<usize>, Vec<usize>) =
        (0..experiments.len()).partition(|i| experiments[*i].about().timed);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, together.len().max(1)) {
            scope.spawn(|| {
                while let Some(i) = together.get(next.fetch_add(1, Relaxed)) {
                    one(*i);
                }
            });
        }
    });
    alone.into_iter().for_each(one);
    let outcome = |outcome: Mutex<Option<Outcome>>| {
        outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    };
    outcomes.into_iter().filter_map(outcome).collect()
}
