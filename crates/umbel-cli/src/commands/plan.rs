//! `umbel plan`: computes the size, capacity or rate of a filter.

use crate::args::names::{self, kinds_of};
use crate::args::{headings, number};
use crate::filters::{FormatArg, KindOptionArgs, Model, MultisetArgs, SizeArgs, default_rate, window_keys};
use crate::report::{Columns, FormulaReport, PlanReport, Rows, percent, size};
use crate::terminal::output;
use anyhow::{Result, bail};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::kind::Category;
use umbel::sharded::{MAX_SHARDS, ShardPlan};
use umbel::sizing::KPolicy;
use umbel::spec::{KindOptions, plan};
use umbel::{Kind, Plan, Spec};

/// Compute the size, capacity or rate of a filter to build.
///
/// Give any sufficient combination of keys (-n), rate (-p), bits (-m) and hash functions (-k), and
/// the rest is computed: -n 1e6 -p 1%, -m 64MiB -p 0.1%, or -n 1e6 -m 1MiB. Unless -m and another
/// number determine the rate, it is 1%. With the same options, `umbel build` makes exactly this
/// filter. Bits by the formula are rounded up to whole words, so that the filter can be folded, and
/// both numbers are printed if they differ; bits that are given with -m are kept. The kind is
/// blocked; it is standard below 64 KiB, where the rate of a blocked filter varies too much, and if
/// -k is given, since the blocked kind uses multiples of eight hash functions.
///
/// With --like, the keys and the rate are those of another filter, of umbel or of another program,
/// unless they are given. For formats that store neither, they follow from the bits and the hash
/// functions.
///
/// With --shards, the numbers are those of all shards together. Keys are not spread evenly, so each
/// shard has room for a few more than its share.
///
/// A rate assumes keys that were not crafted to collide, unless the filter is built with --key-file.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel plan -n 1e9 -p 0.1%               # the memory of a billion keys
  umbel plan -m 64MiB -p 1%               # the number of keys that fit
  umbel plan -n 1e11 -p 1% --shards 256   # the size of each shard
  umbel plan -n 58110 -p 0.04 --kind standard
  umbel plan -m 10 -n 3 -k 3 --formulas   # what a textbook would say
  umbel plan -n 1e6 -p 1% --compare       # all kinds of sets side by side
  umbel plan --kind bloomier -n 1e6 --values 5
  umbel plan --kind multi-resolution -n 1e7 --keys 1e5
  umbel plan --format guava --like users.bloom   # what umbel needs instead")]
pub struct Args {
    /// Number of keys
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    capacity: Option<u64>,

    /// False-positive rate
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, help_heading = headings::FILTER)]
    fpr: Option<f64>,

    #[command(flatten)]
    size: SizeArgs,

    /// Kind of filter
    #[arg(
        long,
        conflicts_with = "compare",
        value_parser = names::planned_kind(),
        help_heading = headings::FILTER
    )]
    kind: Option<Kind>,

    /// Rounding of the number of hash functions, on which the literature disagrees
    #[arg(long, default_value_t, value_parser = names::policy(), help_heading = headings::FILTER)]
    policy: KPolicy,

    /// Map: number of different values, or 0..N for the integers up to N [default: 256]
    #[arg(long, value_name = "N|0..N", value_parser = values, help_heading = headings::FILTER)]
    values: Option<u64>,

    /// Split the keys into N shards, as `umbel build --shards` does
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["bits", "formulas", "compare"],
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHARDS)),
        help_heading = headings::FILTER
    )]
    shards: Option<u32>,

    #[command(flatten)]
    options: KindOptionArgs,

    #[command(flatten)]
    multiset: MultisetArgs,

    /// Plan for the keys and the rate of another filter, and for its kind if it is one of umbel
    #[arg(long, value_name = "FILTER", help_heading = headings::FILTER)]
    like: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArg,

    /// Numbers without their options, for a better error
    #[arg(hide = true, value_name = "NUMBER")]
    numbers: Vec<String>,

    /// Also compute the rate by each formula of the literature: classic, asymptotic, second order and
    /// exact; and the best number of hash functions by formula and by rule of thumb
    #[arg(long, conflicts_with = "compare", help_heading = headings::OUTPUT)]
    formulas: bool,

    /// Compare all kinds of sets
    #[arg(
        long,
        conflicts_with_all = ["values", "keys", "groups", "levels"],
        help_heading = headings::OUTPUT
    )]
    compare: bool,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// A kind that was asked for, and its plan or why there is none.
pub type PlannedKind = (Kind, Result<(Plan, PlanReport)>);

pub fn run(args: &Args) -> Result<ExitCode> {
    if !args.numbers.is_empty() {
        bail!("numbers need their options: umbel plan {}", with_options(&args.numbers));
    }
    if args.format.format.is_some() && args.like.is_none() {
        bail!("--format names the format of the filter of --like: add --like FILTER, or leave it out");
    }
    let model = args.like.as_deref().map(|path| Model::open(path, args.format)).transpose()?;
    if args.compare {
        return compare(args, &args.options.for_all_kinds()?, model.as_ref());
    }
    let like = model.as_ref().and_then(|model| model.kind).filter(|_| args.size.hashes.is_none());
    let kind = args.kind.or(like).unwrap_or_else(|| match args.formulas {
        true => Kind::Standard,
        false => args.size.default_kind(),
    });
    let mut options = args.options.for_kind(kind)?;
    args.multiset.for_kind(kind, &mut options)?;
    if args.values.is_some() && kind.category() != Category::Map {
        bail!("--values is for maps: add --kind bloomier, or leave it out");
    }
    options.bloomier.largest = args.values;
    let (plan, mut report) = args.planned(kind, &options, model.as_ref())?;
    if args.formulas {
        if !matches!(plan.kind, Kind::Standard | Kind::Literature) {
            bail!("--formulas is for the kind standard, whose rate they give: leave --kind {kind} out");
        }
        report.formulas = Some(FormulaReport::new(&plan)?);
    }
    if args.json {
        output::json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(model) = &model {
        output::text(model)?;
    }
    output::text(describe(&plan, &report, kind))?;
    if let Some(formulas) = &report.formulas {
        output::text(format_args!("\n{formulas}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the options that numbers on their own stand for: a share is a rate, and others are keys.
fn with_options(numbers: &[String]) -> String {
    let option = |number: &String| match number::rate(number) {
        Ok(_) => Some(format!("-p {number}")),
        Err(_) => number::count(number).is_ok().then(|| format!("-n {number}")),
    };
    let options: Option<Vec<String>> = numbers.iter().map(option).collect();
    options.map_or("-n 1e6 -p 1%".to_string(), |options| options.join(" "))
}

impl Args {
    /// Plans a filter of each kind of set, as `--compare` prints them. The plan may be one of another
    /// kind than the one asked for.
    pub fn all_kinds(&self) -> Result<Vec<PlannedKind>> {
        let model = self.like.as_deref().map(|path| Model::open(path, self.format)).transpose()?;
        Ok(self.each_kind(&self.options.for_all_kinds()?, model.as_ref()))
    }

    fn each_kind(&self, options: &KindOptions, model: Option<&Model>) -> Vec<PlannedKind> {
        kinds_of(Category::Set).map(|kind| (kind, self.planned(kind, options, model))).collect()
    }

    /// Plans a filter of any kind.
    fn planned(
        &self,
        kind: Kind,
        options: &KindOptions,
        model: Option<&Model>,
    ) -> Result<(Plan, PlanReport)> {
        let keys = self.capacity.or_else(|| window_keys(kind, options)).or(model.map(|model| model.capacity));
        // Bits that are given determine the rate.
        let rate = self.fpr.or(model.map(|model| model.rate).filter(|_| self.size.bits.is_none()));
        let given = self.size.given(keys, rate, default_rate(kind, options));
        if given.n.is_none() && given.m.is_none() {
            bail!(
                "give the number of keys (-n) or of bits (-m): nothing else determines the size of a filter"
            );
        }
        let spec = Spec::from_given(given)?.with_policy(self.policy).with_options(options.clone());
        if let Some(shards) = self.shards {
            return planned_shards(&ShardPlan::new(kind, &spec, shards)?);
        }
        let plan = match kind {
            // The kind literature is a standard filter with other hashes, and with exactly the bits
            // of the formula.
            Kind::Literature => {
                let mut plan = plan(Kind::Standard, &spec)?;
                (plan.kind, plan.stored_bits) = (kind, plan.bits);
                plan
            }
            _ => plan(kind, &spec)?,
        };
        let report = PlanReport::new(&plan, &spec)?;
        Ok((plan, report))
    }
}

/// Returns the plan and the report of a whole filter in shards.
fn planned_shards(shards: &ShardPlan) -> Result<(Plan, PlanReport)> {
    let mut plan = plan(shards.kind(), shards.shard_spec())?;
    let report = PlanReport::new(&plan, shards.shard_spec())?.in_shards(shards);
    (plan.capacity, plan.bytes) = (report.capacity, report.bytes);
    (plan.bits, plan.stored_bits) = (report.bits, report.built_bits);
    Ok((plan, report))
}

/// Parses --values, a number of values or `0..N`, and returns the largest value.
fn values(text: &str) -> Result<u64, String> {
    if let Some(largest) = text.strip_prefix("0..") {
        return number::count(largest);
    }
    number::count(text)?.checked_sub(1).ok_or("a map has at least one value".to_string())
}

fn describe(plan: &Plan, report: &PlanReport, asked: Kind) -> Rows {
    let mut rows = Rows::default();
    let instead = if plan.kind == asked {
        ""
    } else {
        ", because below 64 KiB the rate of a blocked filter varies too much"
    };
    rows.add("kind", format!("{}{instead}", plan.kind));
    let multiset = plan.kind.category() == Category::Multiset;
    let (capacity, each) = if multiset { ("recordings", "recording") } else { ("keys", "key") };
    rows.add(capacity, plan.capacity);
    let built = match plan.stored_bits {
        same if same == plan.bits => String::new(),
        built => format!("; {built} are built"),
    };
    rows.add("bits", format!("{}, {:.2} per {each}{built}", plan.bits, report.bits_per_key));
    rows.add("memory", size(plan.bytes));
    if let Some(shards) = &report.shards {
        let each = format!("of {} for up to {} keys", size(shards.bytes), shards.capacity);
        rows.add("shards", format!("{} {each}", shards.count));
    }
    let cells = match plan.kind {
        Kind::Counting | Kind::VariableIncrement => "counters of each key",
        Kind::Cuckoo => "buckets for each key",
        Kind::Quotient => "slot for each key",
        Kind::SpaceCode | Kind::MultiResolution => "bits set by each recording, on the first level",
        Kind::Fuse | Kind::Bloomier | Kind::BloomierMutable => "cells of each key",
        _ => "bits set by each key",
    };
    rows.add("hashes", format!("{} {cells}", plan.hashes));
    let lines = if plan.lines_touched == 1 {
        "one cache line".to_string()
    } else {
        format!("up to {} cache lines", plan.lines_touched)
    };
    rows.add("lookup", format!("touches {lines}"));
    rows.add(
        if multiset { "noise" } else { "rate" },
        match plan.kind {
            Kind::Scalable => format!(
                "{} of the first stage, at most {} in all",
                percent(plan.rate),
                percent(plan.rate_asked)
            ),
            Kind::Bloomier | Kind::BloomierMutable => {
                format!("{} of keys that are not in the map get a value", percent(plan.rate))
            }
            _ => {
                // More bits than the formula asks for matter in small filters only.
                let built = match report.built_fpr / plan.rate {
                    ratio if (ratio - 1.0).abs() < 0.01 => String::new(),
                    _ => format!("; {} with the bits that are built", percent(report.built_fpr)),
                };
                format!("{} predicted at capacity{built}", percent(plan.rate))
            }
        },
    );
    if let Some(share) = report.deletability {
        rows.add("deletable", format!("{} of the keys at capacity", percent(share)));
    }
    if !multiset {
        rows.add("can", report.can.words());
    }
    rows
}

fn compare(args: &Args, options: &KindOptions, model: Option<&Model>) -> Result<ExitCode> {
    let plans = args.each_kind(options, model);
    if let [(_, Err(first)), ..] = &plans[..]
        && plans.iter().all(|(_, plan)| plan.is_err())
    {
        bail!("{first}");
    }
    if args.json {
        let all: Vec<_> = plans
            .iter()
            .map(|(kind, plan)| match plan {
                Ok((_, report)) => json!(report),
                Err(error) => json!({"kind": kind.to_string(), "error": error.to_string()}),
            })
            .collect();
        output::json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table =
        Columns::new(&["kind", "keys", "bits per key", "memory", "hashes", "lines touched", "rate", "can"]);
    for (kind, plan) in &plans {
        match plan {
            Ok((plan, report)) => {
                let name =
                    if plan.kind == *kind { kind.to_string() } else { format!("{kind} (as {})", plan.kind) };
                table.add(vec![
                    name,
                    plan.capacity.to_string(),
                    format!("{:.2}", report.bits_per_key),
                    size(plan.bytes),
                    plan.hashes.to_string(),
                    plan.lines_touched.to_string(),
                    percent(plan.rate),
                    report.can.words(),
                ]);
            }
            Err(error) => output::warn(format_args!("{kind}: {error}")),
        }
    }
    output::text(table)?;
    Ok(ExitCode::SUCCESS)
}
