//! The curves of a plan: rate by keys for filters of bits, and bits per key by rate for all kinds.

use super::plan::Question;
use super::{Context, fields};
use crate::args::names::kinds_of;
use crate::filters::DEFAULT_RATE;
use anyhow::Result;
use serde_json::{Value, json};
use umbel::kind::Category;
use umbel::sizing::Given;
use umbel::spec::plan;
use umbel::{Kind, Spec};

/// The number of points of a curve.
const POINTS: u32 = 49;

/// The kinds of which the rate follows from keys, bits and hash functions beyond the capacity, too.
const BIT_KINDS: [Kind; 3] = [Kind::Blocked, Kind::Standard, Kind::Partitioned];

/// The highest and the lowest rate of the curves of sizes.
const RATES: (f64, f64) = (0.3, 1e-8);

/// Returns the points of all curves of a plan.
pub fn curves(_: &Context, asked: &Value) -> Result<Value> {
    let question: Question = fields(asked)?;
    let given = question.given()?;
    let given = Given { p: given.p.or(Some(DEFAULT_RATE).filter(|_| given.m.is_none())), ..given };
    let rates: Vec<Value> =
        BIT_KINDS.into_iter().filter_map(|kind| Some(series(kind, rate_by_keys(kind, given)?))).collect();
    // The rate does not depend much on the number of keys, which the plan determines.
    let keys = match given.n {
        Some(keys) => Some(keys),
        None => plan(Kind::Standard, &Spec::from_given(given)?).ok().map(|plan| plan.capacity),
    };
    let sizes = keys.map_or(Vec::new(), |keys| {
        kinds_of(Category::Set).map(|kind| series(kind, size_by_rate(kind, keys))).collect()
    });
    Ok(json!({"rate_by_keys": rates, "size_by_rate": sizes}))
}

fn series(kind: Kind, points: Vec<[f64; 2]>) -> Value {
    json!({"kind": kind.to_string(), "points": points})
}

/// Returns the rate of the planned filter from a tenth to three times its capacity; `None` if there
/// is no such filter.
fn rate_by_keys(kind: Kind, given: Given) -> Option<Vec<[f64; 2]>> {
    let built = Spec::from_given(given).and_then(|spec| plan(kind, &spec)).ok()?;
    let at = |keys: u64| {
        let given = Given { n: Some(keys), p: None, m: Some(built.bits), k: Some(built.hashes) };
        let planned = plan(built.kind, &Spec::from_given(given).ok()?).ok()?;
        Some([keys as f64, planned.rate])
    };
    let capacity = built.capacity as f64;
    let mut keys: Vec<u64> =
        spread(capacity / 10.0, capacity * 3.0).map(|keys| keys.round().max(1.0) as u64).collect();
    keys.dedup();
    Some(keys.into_iter().filter_map(at).collect())
}

/// Returns the bits per key of a kind for this many keys at different rates.
fn size_by_rate(kind: Kind, keys: u64) -> Vec<[f64; 2]> {
    let at = |rate: f64| {
        let spec = Spec::new(keys, rate).ok()?;
        let planned = plan(kind_of_plan(kind), &spec).ok()?;
        Some([rate, planned.bits as f64 / planned.capacity as f64])
    };
    spread(RATES.0, RATES.1).filter_map(at).collect()
}

/// The kind literature has the sizes of the standard kind.
fn kind_of_plan(kind: Kind) -> Kind {
    if kind == Kind::Literature { Kind::Standard } else { kind }
}

/// Returns numbers from one to another, in equal ratios.
fn spread(from: f64, to: f64) -> impl Iterator<Item = f64> {
    let ratio = (to / from).powf(1.0 / f64::from(POINTS - 1));
    (0..POINTS).map(move |point| from * ratio.powi(point as i32))
}
