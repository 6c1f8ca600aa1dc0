//! The report of a plan: size, rate and capabilities of a filter before it is built.

use super::{Columns, percent};
use serde::Serialize;
use std::fmt;
use umbel::kind::Capabilities;
use umbel::sharded::ShardPlan;
use umbel::sizing::{deletable, rate};
use umbel::spec::stored_rate;
use umbel::{Kind, Plan, Result, Spec};

/// The report of a plan, as `umbel plan` prints it, with the names that scripts rely on.
#[derive(Debug, Serialize)]
pub struct PlanReport {
    pub kind: String,
    pub capacity: u64,
    /// The exact m, before it is rounded up to whole words or cache lines.
    pub bits: u64,
    /// The bits of the filter that is built, as `umbel info` reports them.
    pub built_bits: u64,
    pub hashes: u32,
    pub bytes: u64,
    /// The predicted rate at capacity, with `bits`.
    pub fpr: f64,
    /// The predicted rate at capacity of the filter that is built, with `built_bits`.
    pub built_fpr: f64,
    pub fpr_target: f64,
    pub bits_per_key: f64,
    pub lines_touched: u32,
    /// The share of keys that can be removed from a full deletable filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletability: Option<f64>,
    pub can: Abilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<ShardSizes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formulas: Option<FormulaReport>,
}

/// The shards of a planned filter.
#[derive(Debug, Serialize)]
pub struct ShardSizes {
    pub count: usize,
    /// The number of keys that each shard has room for.
    pub capacity: u64,
    /// The bytes of each shard.
    pub bytes: u64,
}

/// The formulas of the literature for the m, n and k of a plan.
#[derive(Debug, Serialize)]
pub struct FormulaReport {
    pub classic: f64,
    pub asymptotic: f64,
    pub second_order: f64,
    /// Missing if the filter is so large that it would take long to compute.
    pub exact: Option<f64>,
    /// The best number of hash functions.
    pub optimal_hashes: f64,
    /// The best number of hash functions by the rule of thumb.
    pub rule_of_thumb: f64,
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

impl PlanReport {
    /// Describes a plan that was made with these settings.
    pub fn new(plan: &Plan, spec: &Spec) -> Result<PlanReport> {
        let options = spec.options();
        let region_bits = options.deletable.region_bits;
        let deletability = (plan.kind == Kind::Deletable).then(|| {
            let bits = deletable::filter_bits(plan.bits, region_bits)?;
            deletable::deletability(bits, plan.bits - bits, plan.capacity, plan.hashes)
        });
        Ok(PlanReport {
            kind: plan.kind.to_string(),
            capacity: plan.capacity,
            bits: plan.bits,
            built_bits: plan.stored_bits,
            hashes: plan.hashes,
            bytes: plan.bytes,
            fpr: plan.rate,
            built_fpr: stored_rate(plan, spec)?,
            fpr_target: plan.rate_asked,
            bits_per_key: plan.bits as f64 / plan.capacity as f64,
            lines_touched: plan.lines_touched,
            deletability: deletability.transpose()?,
            can: plan.kind.into(),
            shards: None,
            formulas: None,
        })
    }

    /// Returns the report of a filter in shards, given that of one shard.
    pub fn in_shards(self, plan: &ShardPlan) -> PlanReport {
        let all = |one: u64| one.saturating_mul(plan.shards() as u64);
        let sizes = ShardSizes { count: plan.shards(), capacity: self.capacity, bytes: self.bytes };
        PlanReport {
            capacity: plan.capacity(),
            bits: all(self.bits),
            built_bits: all(self.built_bits),
            bytes: all(self.bytes),
            bits_per_key: all(self.bits) as f64 / plan.capacity() as f64,
            shards: Some(sizes),
            ..self
        }
    }
}

impl FormulaReport {
    /// Evaluates the formulas for the plan of a standard filter.
    pub fn new(plan: &Plan) -> Result<FormulaReport> {
        let (m, n, k) = (plan.bits, plan.capacity, plan.hashes);
        let small = u128::from(m) * u128::from(n) * u128::from(k) <= rate::MAX_EXACT_STEPS.into();
        // The recurrence is immediate at any size, but it has fewer digits.
        let exact = if small { rate::exact(m, n, k) } else { rate::exact_recurrence(m, n, k) };
        let bits_per_key = m as f64 / n as f64;
        Ok(FormulaReport {
            classic: rate::classic(m, n, k)?,
            asymptotic: rate::asymptotic(m, n, k)?,
            second_order: rate::second_order(m, n, k)?,
            exact: exact.ok(),
            optimal_hashes: rate::optimal_hashes(bits_per_key)?,
            rule_of_thumb: rate::rule_of_thumb(bits_per_key)?,
        })
    }
}

impl fmt::Display for FormulaReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Columns::new(&["formula", "", "value"]);
        let exact = self.exact.map_or("too large to compute".to_string(), percent);
        for [name, formula, value] in [
            ["rate, classic", "(1-(1-1/m)^(kn))^k", &percent(self.classic)],
            ["rate, asymptotic", "(1-e^(-kn/m))^k", &percent(self.asymptotic)],
            ["rate, second order", "classic and variance of the fill", &percent(self.second_order)],
            ["rate, exact", "mean over all fills", &exact],
            ["best k", "(m/n) ln 2", &format!("{:.3}", self.optimal_hashes)],
            ["best k, rule of thumb", "9m/(13n)", &format!("{:.3}", self.rule_of_thumb)],
        ] {
            table.add(vec![name.to_string(), formula.to_string(), value.to_string()]);
        }
        table.fmt(f)
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
