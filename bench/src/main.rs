//! umbel and its peers, side by side in one process.
//!
//! ```text
//! cargo run --release -p umbel-bench -- --n 1e7 --p 0.01 --keys u64
//! ```
//!
//! # What is measured
//!
//! Nanoseconds per key, on one thread, in four sections: `insert` of all n members into an empty
//! filter, lookups of members only (`hit`), of absent keys only (`miss`), and of half of each in
//! random order (`mixed`). Also reported are the memory that the filter really uses and its false
//! positive rate on absent keys that no timed section uses. Every filter is sized by its own
//! constructor for n and p. Hashing the key is part of the loop.
//!
//! # How
//!
//! - All contestants see the same keys ([`keys`]), in one process, interleaved: repetition 1 of
//!   each, then repetition 2 of each; every repetition starts with another contestant. Machines
//!   drift, and only ratios within one run are meaningful.
//! - In every repetition a new filter is created, then emptied by its own `clear`, which writes all
//!   its memory, so that insert finds every page present. Each filter chooses its own pages, and
//!   the share on huge pages is reported. The insert time of a static filter is its whole
//!   construction.
//! - Queries are split into slices of a millisecond or more, each a sample; median and best are
//!   over the samples of all repetitions. For insert, every whole build is a sample.
//! - A loop counts the keys it finds and the count is used, so that the compiler cannot drop the
//!   work. Each loop is compiled for its filter and key type; the only indirect call is per
//!   section.
//! - All n members are looked up in every filter once, untimed, and hits are counted in the timed
//!   sections too: a false negative ends the run with exit code 1.
//!
//! `physical limit` is not a filter: it hashes the same keys and loads one line per key from an
//! array of the size of a blocked filter, as fast as the machine can ([`limit`]).
//!
//! # Adding a contestant
//!
//! Write `impl Filter<K> for ...` in a file of [`contestants`] (generic over the key, or once for
//! `u64` and once for `[u8]` if the two take different paths; a wrapper type for each way of
//! calling the same filter), and add one line to the list in `contestants.rs`. A filter that
//! several threads may fill also implements `Shared`.

mod contestants;
mod error;
mod keys;
mod limit;
mod machine;
mod measure;
mod report;
mod sizing;

use clap::{Parser, ValueEnum};
use contestants::{Contestant, Job, Roster};
use error::Error;
use measure::Plan;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Bloom filters side by side: time, memory and false positive rate.
#[derive(Parser)]
#[command(name = "umbel-bench")]
struct Args {
    /// Number of keys: 1000000, 1e6, 10M
    #[arg(long, default_value = "1e6", value_parser = number)]
    n: u64,
    /// False positive rate to build for
    #[arg(long, default_value = "0.01", value_parser = probability)]
    p: f64,
    /// Kind of key: random words, or strings of 16 to 24 bytes
    #[arg(long, value_enum, default_value = "u64")]
    keys: Kind,
    /// Print only a JSON list, one object per contestant
    #[arg(long)]
    json: bool,
    /// Only these contestants, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Repetitions [default: 5 up to n = 1e7, 3 above]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    reps: Option<u32>,
    /// Seed of the keys and of the filters' hashes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also measure concurrent insert with this many threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// First measure how quiet the machine is
    #[arg(long)]
    quiet_check: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    U64,
    Str,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match args.keys {
        Kind::U64 => run::<u64>(&args),
        Kind::Str => run::<[u8]>(&args),
    };
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("umbel-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run<K: Roster + ?Sized>(args: &Args) -> error::Result<String> {
    let contestants = choose(K::roster(), &args.only)?;
    let say = |line: &str| {
        if args.json { eprintln!("{line}") } else { println!("{line}") }
    };
    if args.quiet_check || !args.json {
        say(&machine::describe());
    }
    if args.quiet_check {
        let (median, worst) = machine::unrest();
        say(&format!("equal pieces of arithmetic: median {median:.2}, slowest {worst:.2} times the fastest"));
    }
    let plan = Plan {
        job: Job { n: args.n, p: args.p, seed: args.seed },
        reps: args.reps.unwrap_or(if args.n <= 10_000_000 { 5 } else { 3 }) as usize,
        threads: args.threads as usize,
    };
    let terminal = std::io::stderr().is_terminal();
    let progress = |what: &str| {
        if terminal {
            // Erase the line and overwrite it.
            let _ = write!(std::io::stderr(), "\r\x1b[K{what}");
        }
    };
    let rows = measure::run::<K>(&plan, contestants, progress);
    if terminal {
        eprint!("\r\x1b[K");
    }
    let rows = rows?;
    if args.json {
        return Ok(report::json(&rows, plan.threads) + "\n");
    }
    let kind = match args.keys {
        Kind::U64 => "u64 keys",
        Kind::Str => "strings of 16 to 24 bytes",
    };
    let head = format!("n = {}, p = {}, {kind}, repetitions: {}\n\n", args.n, args.p, plan.reps);
    Ok(head + &report::table(&rows, plan.threads))
}

/// Returns the contestants with these names, or all of them if none is named.
fn choose<K: Roster + ?Sized>(
    mut all: Vec<Box<dyn Contestant<K>>>,
    only: &[String],
) -> error::Result<Vec<Box<dyn Contestant<K>>>> {
    let names: Vec<&'static str> = all.iter().map(|contestant| contestant.name()).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.trim())) {
        return Err(Error::UnknownContestant { name: unknown.clone(), known: names });
    }
    all.retain(|contestant| only.is_empty() || only.iter().any(|name| name.trim() == contestant.name()));
    Ok(all)
}

/// Parses a count, also written as 1e6 or 10M.
fn number(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        Some((at, 'g' | 'G')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let value = digits.parse::<f64>().map_err(|_| "not a number like 1000000, 1e6 or 10M")? * factor;
    // Above 1e10 keys the list of members alone would need 80 GB.
    if !(1.0..=1e10).contains(&value) || value.fract() != 0.0 {
        return Err("not a whole number from 1 to 1e10".into());
    }
    Ok(value as u64)
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if (1e-9..=0.5).contains(&p) => Ok(p),
        _ => Err("not a rate from 1e-9 to 0.5".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_in_every_usual_form() {
        for (text, value) in
            [("1000000", 1_000_000), ("1e6", 1_000_000), ("10M", 10_000_000), ("2.5k", 2_500)]
        {
            assert_eq!(number(text), Ok(value));
        }
        for text in ["", "0", "-1", "1.5", "M", "1e6x", "nan", "1e11"] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_probabilities() {
        assert_eq!(probability("0.01"), Ok(0.01));
        for text in ["0", "1", "-0.1", "nan", "x"] {
            assert!(probability(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_unknown_contestant_is_named() {
        let error = choose::<u64>(u64::roster(), &["no such".into()]).err().unwrap().to_string();
        assert!(error.contains("`no such`") && error.contains("fastbloom foldhash"), "{error}");
        let chosen = choose::<u64>(u64::roster(), &["physical limit".into(), "fastbloom".into()]).unwrap();
        assert_eq!(chosen.iter().map(|c| c.name()).collect::<Vec<_>>(), ["fastbloom", "physical limit"]);
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }
}
