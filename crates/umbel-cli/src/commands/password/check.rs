//! `umbel password check`: checks whether passwords are weak.

use crate::args::headings;
use crate::documents::passphrases::HashMemoryArgs;
use crate::documents::word_lists;
use crate::filters::{Secrets, check_whole};
use crate::terminal::exit::NOT_FOUND;
use crate::terminal::output::Out;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::kind::Category;
use umbel_text::lines::Lines;
use umbel_text::password::{Algorithm, Digester, Prefix, RangeList, Recipe, normalised};

/// Check whether passwords are weak, without ever printing one.
///
/// On a terminal, one password is prompted for without being shown. Otherwise every line of
/// standard input is a candidate, and `1: weak`, `2: ok` and so on is printed for each as soon as
/// its line arrives. An empty line is a weak password.
///
/// The exit code is 0 if no candidate is weak, 1 if one is, and 2 after an error or without any
/// candidate, so `if umbel password check -q weak.umbel; then` accepts only a password that was
/// really checked.
///
/// --range uses a list of SHA-1 or NTLM hashes instead, in the way of the service Have I Been Pwned: only
/// the first five digits of a candidate's hash are looked up, and the rest is compared here. This
/// is exact and uses no Bloom filter, but needs the whole list.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel password check weak.umbel
  umbel password check weak.umbel < candidates.txt
  umbel password check --range pwned-passwords.txt < candidates.txt")]
pub struct Args {
    /// Filter to query; the default key file is FILTER.key
    #[arg(value_name = "FILTER", required_unless_present = "range", conflicts_with = "range")]
    filter: Option<PathBuf>,

    /// Look up the first five digits of hashes in LIST instead
    #[arg(long, value_name = "LIST", help_heading = headings::SEARCH)]
    range: Option<PathBuf>,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    max_memory: HashMemoryArgs,

    /// Print nothing and stop at the first weak password; only the exit code matters
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    /// A word given as an argument by mistake: it is accepted here, since clap would print it in an
    /// error.
    #[arg(hide = true)]
    given: Vec<OsString>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if !args.given.is_empty() {
        bail!(
            "a password is not an argument, where others can see it: type it at the prompt, or send it through a pipe"
        );
    }
    match (&args.filter, &args.range) {
        (_, Some(list)) => {
            let failed = || format!("cannot ask {}", list.display());
            if list.is_dir() {
                bail!("{} is a directory: name the list in it", list.display());
            }
            let named = |error| word_lists::with_list_name(error, failed());
            let mut list = RangeList::open(list).map_err(named)?;
            let algorithm =
                list.algorithm().with_context(|| format!("{}: there is no hash in it", failed()))?;
            check_candidates(args, |candidate| {
                is_in_range_list(&mut list, algorithm, candidate).map_err(named)
            })
        }
        (Some(path), None) => {
            let filter = args.secrets.or_beside(path).map(path, Category::Set)?;
            let failed = || format!("cannot ask {}", path.display());
            let recipe =
                Recipe::from_meta_within(filter.meta(), args.max_memory.bytes()).with_context(failed)?;
            let hasher = filter.hasher().context("a filter of passwords has a hash of umbel")?;
            let mut digester = Digester::new(recipe, hasher.clone());
            check_candidates(args, |candidate| {
                let mut weak = false;
                digester
                    .each(candidate, |digest| {
                        weak |= filter.contains_tile(&[digest])? & 1 == 1;
                        Ok(())
                    })
                    .with_context(failed)?;
                check_whole(&filter, path)?;
                Ok(weak)
            })
        }
        (None, None) => bail!("name the filter to query"),
    }
}

/// Returns whether a candidate is in a list of hashes, as typed or normalised. Only five digits of
/// its hash are looked up.
fn is_in_range_list(
    list: &mut RangeList,
    algorithm: Algorithm,
    candidate: &[u8],
) -> umbel_text::Result<bool> {
    let forms = [algorithm.hash(candidate), algorithm.hash(&normalised(candidate, false))];
    let distinct = if forms[0] == forms[1] { &forms[..1] } else { &forms[..] };
    for form in distinct {
        if list.range(Prefix::from_hash(form))?.iter().any(|suffix| suffix.is_of(form)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks every candidate, and prints the answers in order.
fn check_candidates(args: &Args, mut is_weak: impl FnMut(&[u8]) -> Result<bool>) -> Result<ExitCode> {
    let alone = std::io::stdin().is_terminal();
    let mut lines = Lines::new(word_lists::open_stdin_or_prompt("Password")?);
    let mut out = Out::new(false)?;
    let (mut checked, mut weak) = (0, 0);
    while lines.more().context("cannot read standard input")? {
        let mut lines_out = Vec::new();
        for (number, candidate) in (lines.number()..).zip(lines.lot()) {
            let is_weak = candidate.is_empty() || is_weak(candidate)?;
            (checked, weak) = (number, weak + u64::from(is_weak));
            if args.quiet && is_weak {
                return Ok(ExitCode::from(NOT_FOUND));
            }
            let word = if is_weak { "weak" } else { "ok" };
            // Writing to memory cannot fail.
            let _ =
                if alone { writeln!(lines_out, "{word}") } else { writeln!(lines_out, "{number}: {word}") };
        }
        if !args.quiet {
            out.write_answers(&lines_out)?;
        }
    }
    if checked == 0 {
        bail!("there was no password to check");
    }
    Ok(if weak > 0 { ExitCode::from(NOT_FOUND) } else { ExitCode::SUCCESS })
}
