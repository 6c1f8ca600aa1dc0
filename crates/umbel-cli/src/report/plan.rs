//! The report of a plan: size, rate and capabilities of a filter before it is built.

use serde::Serialize;
use umbel::kind::Capabilities;
use umbel::{Kind, Plan};

/// The report of a plan, as `umbel plan` prints it, with the names that scripts rely on.
#[derive(Debug, Serialize)]
pub struct PlanReport {
    pub kind: String,
    pub capacity: u64,
    /// The exact m, before it is rounded up to whole words or cache lines.
    pub bits: u64,
    pub hashes: u32,
    pub bytes: u64,
    /// The predicted rate at capacity.
    pub fpr: f64,
    pub fpr_target: f64,
    pub bits_per_key: f64,
    pub lines_touched: u32,
    pub can: Abilities,
}

/// The operations that a kind supports besides queries.
#[derive(Debug, Serialize)]
pub struct Abilities {
    pub add: bool,
    /// Whether the values of a map can be changed.
    pub change: bool,
    pub remove: bool,
    pub grow: bool,
    pub forget: bool,
    pub union: bool,
    pub intersect: bool,
    pub fold: bool,
}

impl From<&Plan> for PlanReport {
    fn from(plan: &Plan) -> PlanReport {
        PlanReport {
            kind: plan.kind.to_string(),
            capacity: plan.capacity,
            bits: plan.bits,
            hashes: plan.hashes,
            bytes: plan.bytes,
            fpr: plan.rate,
            fpr_target: plan.rate_asked,
            bits_per_key: plan.bits as f64 / plan.capacity as f64,
            lines_touched: plan.lines_touched,
            can: plan.kind.into(),
        }
    }
}

impl From<Kind> for Abilities {
    fn from(kind: Kind) -> Abilities {
        let Capabilities { fixed, remove, grow, forget, union, intersect, fold, .. } = kind.capabilities();
        let change = kind == Kind::BloomierMutable;
        Abilities { add: !fixed, change, remove, grow, forget, union, intersect, fold }
    }
}

impl Abilities {
    /// Lists the operations, for instance `union, fold`.
    pub fn words(&self) -> String {
        let all = [
            (self.change, "change values"),
            (self.remove, "remove"),
            (self.grow, "grow"),
            (self.forget, "forget"),
            (self.union, "union"),
            (self.intersect, "intersect"),
            (self.fold, "fold"),
        ];
        let names: Vec<_> = all.iter().filter(|(can, _)| *can).map(|(_, word)| *word).collect();
        if names.is_empty() && !self.add { "answer only".to_string() } else { names.join(", ") }
    }
}
