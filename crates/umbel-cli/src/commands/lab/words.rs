//! `umbel lab words`: the classic experiment, with the user's list of words.

use crate::args::{headings, number};
use crate::input::{InputArgs, is_stdin};
use crate::pipeline;
use crate::report::Rows;
use crate::terminal::output;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use umbel::Batch;
use umbel_lab::{WordsReport, words};

/// Measure the rate of a filter of words with random words.
///
/// The filter is a standard one, with m = -n ln p / (ln 2)^2 bits and k = (m/n) ln 2 hash
/// functions, both rounded up. The measured rate is the share of random words, none of them in the
/// list, that the filter reports as present; the computed rate is (1 - (1 - 1/m)^(kn))^k. Repeated
/// words count once, empty lines are ignored, and a carriage return at the end of a line is not
/// part of the word. Without -p, the rate is prompted for if standard input is a terminal.
#[derive(clap::Args)]
#[command(mut_arg("inputs", |arg| arg.value_name("FILE").required(true).help(FILES_HELP)))]
#[command(mut_arg("print_field", |arg| arg.hide(true)))]
#[command(after_help = "Examples:
  umbel lab words -p 0.04 words.txt
  umbel lab words -p 5% --queries 1e6 --json words.txt")]
pub struct Args {
    /// False-positive rate of the filter
    #[arg(
        short = 'p',
        long,
        value_name = "RATE",
        value_parser = number::rate,
        help_heading = headings::EXPERIMENT
    )]
    fpr: Option<f64>,

    /// Number of random words
    #[arg(
        long,
        value_name = "N",
        value_parser = number::count,
        default_value = "100000",
        help_heading = headings::EXPERIMENT
    )]
    queries: u64,

    /// Seed of the random words and of the hash
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = headings::EXPERIMENT)]
    seed: u64,

    #[command(flatten)]
    input: InputArgs,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

const FILES_HELP: &str = "Files with one word per line; `-` means standard input. Files compressed with gzip or zstd are decompressed";

/// The maximum number of random words; more would take too long and too much memory.
const MAX_QUERIES: u64 = 100_000_000;

pub fn run(args: &Args) -> Result<ExitCode> {
    if !(1..=MAX_QUERIES).contains(&args.queries) {
        bail!("--queries is from 1 to {MAX_QUERIES}, not {}", args.queries);
    }
    let reads_stdin = args.input.files().iter().any(|file| is_stdin(file));
    if args.fpr.is_none() && (reads_stdin || !io::stdin().is_terminal()) {
        bail!("there is no terminal to prompt for the rate on: give it with -p, for instance -p 1%");
    }
    let list = read(&args.input)?;
    if list.is_empty() {
        bail!("there are no words in {}", args.input.name(0));
    }
    let fpr = match args.fpr {
        Some(fpr) => fpr,
        None => prompt_rate(&mut io::stdin().lock(), &mut io::stderr())?,
    };
    let report = words(&list, fpr, args.queries, args.seed)?;
    if args.json {
        let WordsReport { p, n, m, k, queries, positives, computed, .. } = report;
        let measured = report.measured();
        let rounded = report.rounded.map(|(k, computed)| json!({"k": k, "computed": computed}));
        output::json(&json!({
            "p": p, "n": n, "m": m, "k": k, "queries": queries, "positives": positives, "measured": measured,
            "computed": computed, "rounded": rounded,
        }))?;
    } else {
        output::text(describe(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the words of all lines.
fn read(input: &InputArgs) -> Result<Vec<Vec<u8>>> {
    let mut list = Vec::new();
    pipeline::run(
        input.open()?,
        input.threads(),
        |_, records| {
            let keys = records.keys()?;
            let word = |i| keys.with_bytes(i, |key| key.strip_suffix(b"\r").unwrap_or(key).to_vec());
            Ok((0..keys.len()).map(word).filter(|word| !word.is_empty()).collect::<Vec<_>>())
        },
        |words, _| {
            list.extend(words);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(list)
}

/// The part of a line that is read as an answer.
const MAX_ANSWER_BYTES: u64 = 1024;

/// Prompts for a rate until a valid one is entered.
fn prompt_rate(from: &mut impl BufRead, to: &mut impl Write) -> Result<f64> {
    let failed = "cannot prompt for the rate";
    loop {
        write!(to, "false-positive rate, between 0 and 1: ").and_then(|()| to.flush()).context(failed)?;
        let mut line = Vec::new();
        if (&mut *from).take(MAX_ANSWER_BYTES).read_until(b'\n', &mut line).context(failed)? == 0 {
            // End the line of the prompt.
            let _ = writeln!(to);
            bail!("no rate was given");
        }
        match number::rate(String::from_utf8_lossy(&line).trim()) {
            Ok(rate) => return Ok(rate),
            Err(sentence) => writeln!(to, "{sentence}").context(failed)?,
        }
    }
}

fn describe(report: &WordsReport) -> Rows {
    let mut rows = Rows::default();
    rows.add("p, the rate asked for", report.p);
    rows.add("n, different words", report.n);
    rows.add("m, bits", report.m);
    rows.add("k, hash functions", report.k);
    rows.add(
        "random words",
        format!("{}, of which {} were taken for members", report.queries, report.positives),
    );
    rows.add("measured rate", format!("{:.7}", report.measured()));
    rows.add("computed rate", format!("{:.7}", report.computed));
    if let Some((k, rate)) = report.rounded {
        rows.add("better", format!("k = {k}, rounded to the nearest: {rate:.7} computed, and less to do"));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_rate_causes_a_message_and_another_prompt() {
        let mut printed = Vec::new();
        let rate = prompt_rate(&mut &b"0\n2\nx\n\n 4% \nmore"[..], &mut printed).unwrap();
        assert!((rate - 0.04).abs() < 1e-12);
        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(printed.matches("between 0 and 1: ").count(), 5, "{printed}");
        for sentence in ["a rate lies between 0 and 1\n", "2% is 0.02\n", "not a rate: write it as 0.01"] {
            assert!(printed.contains(sentence), "{printed}");
        }
        let error = prompt_rate(&mut &b"1\n"[..], &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "no rate was given");
    }
}
