//! `umbel lab run`: runs experiments and writes their report.

use crate::args::{headings, number};
use crate::terminal::exit::NOT_FOUND;
use crate::terminal::{Progress, output};
use anyhow::{Context, Result, bail};
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel_lab::{Experiment, Lab, Outcome, Scale};

/// Run experiments and write a report.
///
/// The report directory gets a self-contained page, index.html, and for each experiment its tables
/// as CSV, its criteria as JSON and its charts as SVG. The same seed gives the same figures with
/// any number of threads, except for times. The exit code is 1 if a criterion does not hold.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel lab run all --quick
  umbel lab run E1 E1c --full --out rates
  umbel lab run E1 --set n=1e5,queries=1M")]
pub struct Args {
    /// Ids of experiments, as listed by `umbel lab list`; `all` runs all of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,

    /// Run each experiment on just enough data to check its criteria (default)
    #[arg(long, help_heading = headings::EXPERIMENT)]
    quick: bool,

    /// Run each experiment on at least as much data as the literature
    #[arg(long, conflicts_with = "quick", help_heading = headings::EXPERIMENT)]
    full: bool,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = headings::EXPERIMENT)]
    seed: u64,

    /// Change parameters, as listed by `umbel lab list --parameters` (repeatable)
    #[arg(
        long = "set",
        value_name = "NAME=NUMBER,...",
        value_delimiter = ',',
        value_parser = assignment,
        help_heading = headings::EXPERIMENT
    )]
    parameters: Vec<(String, f64)>,

    /// Number of experiments that run at a time; those that measure times run alone [default: the
    /// number of processors]
    #[arg(
        short = 'j',
        long,
        value_name = "N",
        value_parser = number::threads,
        help_heading = headings::EXPERIMENT
    )]
    threads: Option<usize>,

    /// Directory of the report
    #[arg(long, value_name = "DIR", default_value = "lab", help_heading = headings::OUTPUT)]
    out: PathBuf,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let experiments = args.experiments()?;
    let mut lab = Lab::new(if args.full { Scale::Full } else { Scale::Quick }, args.seed);
    for (number, (name, value)) in args.parameters.iter().enumerate() {
        if args.parameters[..number].iter().any(|(known, _)| known == name) {
            bail!("--set {name} is given twice");
        }
        if let Err(why) = lab.set(&experiments, name, *value) {
            bail!("--set {name}={value}: {why}");
        }
    }
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let done = Arc::new(AtomicU64::new(0));
    let progress = Progress::of_experiments(Arc::clone(&done), experiments.len() as u64);
    let count = |_: &Outcome| {
        done.fetch_add(1, Relaxed);
    };
    let failed = || format!("cannot write the report to {}", args.out.display());
    // Fail before the work if the report cannot be written.
    fs::create_dir_all(&args.out).with_context(failed)?;
    tempfile::tempfile_in(&args.out).with_context(failed)?;
    let outcomes = umbel_lab::run(&experiments, &lab, threads, &count);
    progress.finish();
    for outcome in &outcomes {
        output::text(format_args!("{}\n", describe(outcome)))?;
    }
    umbel_lab::report(&args.out, &lab, &outcomes)?;
    output::text(format_args!("the report is {}\n", args.out.join("index.html").display()))?;
    Ok(if outcomes.iter().all(Outcome::holds) { ExitCode::SUCCESS } else { ExitCode::from(NOT_FOUND) })
}

/// Parses `n=1e6`: a name, and a number as people write it.
fn assignment(text: &str) -> Result<(String, f64), String> {
    let wrong = || "write it as n=1000, n=1e6, n=10M, p=0.01 or p=1%";
    let (name, value) =
        text.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(wrong)?;
    let plain = || value.parse().ok().filter(|value: &f64| value.is_finite());
    let value = number::count(value).map(|count| count as f64).or_else(|_| number::rate(value)).ok();
    Ok((name.to_string(), value.or_else(plain).ok_or_else(wrong)?))
}

/// Describes an outcome in a line, followed by a line for each criterion that does not hold.
fn describe(outcome: &Outcome) -> String {
    let id = outcome.about.id;
    let findings = match &outcome.findings {
        Ok(findings) => findings,
        Err(error) => return format!("{id:<5} could not be run: {error:#}"),
    };
    let held = findings.criteria.iter().filter(|criterion| criterion.holds).count();
    let verdict = if outcome.holds() { "holds" } else { "does not hold" };
    let mut text =
        format!("{id:<5} {verdict}, {held} of {} criteria: {}", findings.criteria.len(), outcome.about.title);
    for criterion in findings.criteria.iter().filter(|criterion| !criterion.holds) {
        let (claim, measured, expected) = (&criterion.claim, criterion.measured_text(), &criterion.expected);
        text += &format!("\n      {claim}: {measured} instead of {expected}");
    }
    text
}

impl Args {
    fn experiments(&self) -> Result<Vec<Box<dyn Experiment>>> {
        let mut experiments = Vec::new();
        for id in &self.ids {
            match umbel_lab::find(id) {
                None if id.eq_ignore_ascii_case("all") => experiments.extend(umbel_lab::all()),
                Some(experiment) => experiments.push(experiment),
                None => bail!("there is no experiment {id:?}: `umbel lab list` names them"),
            }
        }
        // An experiment that is named twice is run once.
        let mut known = HashSet::new();
        experiments.retain(|experiment| known.insert(experiment.about().id));
        Ok(experiments)
    }
}
