//! A filter that fills while the page watches: after each step its rate is measured with keys that
//! were never inserted.

use super::plan::Question as PlanQuestion;
use super::{Context, fields};
use crate::commands::lab::fpr::{Z_95, wilson};
use crate::filters::DEFAULT_RATE;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use umbel::any::Stored;
use umbel::internals::sync::lock;
use umbel::sizing::Given;
use umbel::spec::plan;
use umbel::{AnyFilter, Kind, Spec};

/// The largest filter.
const MAX_BYTES: u64 = 64 << 20;

/// The largest number of keys beyond which nothing is inserted, in multiples of the capacity.
const MAX_FACTOR: u64 = 4;

/// The number of keys that are inserted or asked at a time.
const BATCH: u64 = 1 << 16;

/// The number of keys that are asked in each step.
const QUERIES: u64 = 50_000;

/// The number of filters at a time. A new one replaces the oldest.
const MAX_RUNS: usize = 4;

/// The number of points of the predicted curve.
const POINTS: u64 = 60;

/// The filters that fill at the moment, each with its number.
#[derive(Default)]
pub struct Runs {
    runs: VecDeque<(u64, Arc<Mutex<Run>>)>,
    count: u64,
}

/// A filter that fills.
struct Run {
    filter: Stored,
    capacity: u64,
    /// The keys of the user, which are inserted first.
    own: Vec<String>,
    /// The keys that were inserted.
    keys: u64,
    /// The keys that were asked for, none of which was inserted.
    strangers: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    plan: PlanQuestion,
    /// Keys of the user, one on each line.
    own: String,
}

/// Builds an empty filter, and predicts its rate up to twice its capacity.
pub fn start(context: &Context, asked: &Value) -> Result<Value> {
    let Start { plan: question, own } = fields(asked)?;
    if let Some(mistake) = question.mistake() {
        return Ok(mistake);
    }
    let given = question.given()?;
    let given = Given { p: given.p.or(Some(DEFAULT_RATE).filter(|_| given.m.is_none())), ..given };
    let spec = Spec::from_given(given)?;
    let kind = question.chosen()?;
    if kind.capabilities().fixed || kind == Kind::Literature {
        bail!("the kind {kind} cannot be filled step by step: choose another one");
    }
    let planned = plan(kind, &spec)?;
    if planned.bytes > MAX_BYTES {
        bail!("filters of at most 64 MiB are filled here: plan for fewer keys or a higher rate");
    }
    let filter = AnyFilter::build(kind, &spec)?;
    let capacity = planned.capacity;
    let at = |point: u64| {
        let keys = (2 * capacity * point).div_ceil(POINTS);
        Some(json!([keys, filter.predicted_rate(keys).ok()?]))
    };
    let curve: Vec<Value> = (1..=POINTS).filter_map(at).collect();
    let own = own.lines().map(str::to_owned).collect();
    let run = Run { filter: filter.into(), capacity, own, keys: 0, strangers: 0 };
    let mut runs = lock(&context.runs);
    runs.count += 1;
    let number = runs.count;
    runs.runs.push_back((number, Arc::new(Mutex::new(run))));
    if runs.runs.len() > MAX_RUNS {
        runs.runs.pop_front();
    }
    Ok(json!({
        "run": number, "kind": planned.kind.to_string(), "capacity": capacity, "fpr": planned.rate,
        "curve": curve,
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    run: u64,
    /// The number of keys to reach.
    keys: u64,
}

/// Inserts keys until there are as many as asked for, and measures the rate.
pub fn step(context: &Context, asked: &Value) -> Result<Value> {
    let Step { run: number, keys } = fields(asked)?;
    let found =
        lock(&context.runs).runs.iter().find(|(own, _)| *own == number).map(|(_, run)| Arc::clone(run));
    let run = found.context("this filter was replaced by newer ones: start again")?;
    let mut run = lock(&run);
    let full = run.insert_until(keys).err().map(|error| error.to_string());
    let (positives, queries) = run.ask();
    let (low, high) = wilson(positives, queries, Z_95);
    let theory = match &run.filter {
        Stored::Set(filter) => filter.predicted_rate(run.keys).ok(),
        _ => None,
    };
    Ok(json!({
        "keys": run.keys, "measured": positives as f64 / queries as f64, "low": low, "high": high,
        "theory": theory, "full": full,
    }))
}

impl Run {
    /// Inserts keys until there are this many: those of the user first, then numbers.
    fn insert_until(&mut self, keys: u64) -> umbel::Result<()> {
        let keys = keys.min(self.capacity.saturating_mul(MAX_FACTOR));
        while self.keys < keys {
            let next = (self.keys + BATCH).min(keys);
            let own = self.own.get(self.keys as usize..).unwrap_or_default();
            if own.is_empty() {
                let numbers: Vec<u64> = (self.keys..next).collect();
                self.filter.insert_batch(&numbers)?;
                self.keys = next;
            } else {
                let own = &own[..own.len().min((next - self.keys) as usize)];
                self.filter.insert_batch(own)?;
                self.keys += own.len() as u64;
            }
        }
        Ok(())
    }

    /// Asks for numbers that are never inserted. Returns how many were found, of how many.
    fn ask(&mut self) -> (u64, u64) {
        let start = (1 << 63) + self.strangers;
        let strangers: Vec<u64> = (start..start + QUERIES).collect();
        self.strangers += QUERIES;
        (self.filter.contains_batch(&strangers).count(), QUERIES)
    }
}
