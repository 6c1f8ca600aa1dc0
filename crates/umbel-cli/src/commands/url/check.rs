//! `umbel url check`: checks whether addresses are unsafe.

use super::{exact_list_beside, next_exact_list_beside};
use crate::args::headings;
use crate::filters::Secrets;
use crate::input::{LineLimit, check_not_swapped, is_stdin, open_list, read_failed, resolve};
use crate::report::printable;
use crate::terminal::exit::{FAILED, NOT_FOUND};
use crate::terminal::output::{self, Out};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use umbel::AnyFilter;
use umbel::kind::Category;
use umbel_text::address::{Address, Exact, Screen, ScreenStats, Verdict};
use umbel_text::lines::Lines;

/// Check whether web addresses are unsafe.
///
/// Prints a line for each address, separated by tabs: `clear`, `unsafe`, `unconfirmed` or
/// `invalid`, the address in canonical form, and for an unsafe one the list entry that covers it.
/// An address is clear if the filter excludes it, which is certain, or if the exact list does not
/// contain it. It is unsafe only if the exact list contains it. Without that list, a match of the
/// filter is unconfirmed.
///
/// The exit code is 0 if all addresses are clear, 1 if one is unsafe, 3 if none is but one is
/// unconfirmed, and 2 if one is invalid, none was given, or another error occurred.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel url check bad.urls http://www.evil.example/page
  umbel url check bad.urls --stats < visited.txt")]
pub struct Args {
    /// Filter to query
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Addresses; `-` or none means standard input, with one per line
    #[arg(value_name = "URL")]
    urls: Vec<OsString>,

    /// Exact list [default: FILTER.exact]
    #[arg(long, value_name = "FILE", help_heading = headings::SEARCH)]
    confirm: Option<PathBuf>,

    #[command(flatten)]
    max_line: LineLimit,

    #[command(flatten)]
    secrets: Secrets,

    /// Print nothing and stop at the first address that is not clear; only the exit code matters
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Report at the end how often the exact list was read, and how often in vain
    #[arg(long, help_heading = headings::OUTPUT)]
    stats: bool,
}

/// No address is unsafe, but one may be.
const UNCONFIRMED: u8 = 3;

/// The verdicts on the addresses so far, from which the exit code follows.
#[derive(Default)]
struct Verdicts {
    any: bool,
    invalid: bool,
    listed: bool,
    unconfirmed: bool,
}

/// Opens the exact list beside a filter, if there is one. The list of an interrupted build, or of one
/// that is still running, may have its temporary name.
fn open_beside(filter: &Path, screen: &Screen) -> Result<Option<Exact>> {
    let beside = exact_list_beside(filter);
    let open = || if beside.exists() { Exact::open(&beside).map(Some) } else { Ok(None) };
    let fits = |exact: &Exact| screen.fits(exact);
    let exact = open()?;
    if exact.as_ref().is_some_and(fits) {
        return Ok(exact);
    }
    match Exact::open(next_exact_list_beside(filter)) {
        Ok(next) if fits(&next) => Ok(Some(next)),
        // A build may have renamed it meanwhile.
        _ => Ok(open()?),
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let named: Vec<PathBuf> = args.urls.iter().map(PathBuf::from).collect();
    check_not_swapped("url check FILTER", &args.filter, &named)?;
    if let Some(file) = named.iter().find(|named| !is_stdin(named) && named.is_file()) {
        let (filter, file) = (args.filter.display(), file.display());
        bail!(
            "{file} is a file: send its lines with `umbel url check {filter} < {file}`, or write http://{file} if that is the address"
        );
    }
    let loaded = args.secrets.load(&args.filter, Category::Set)?;
    let screen = Screen::from_filter(AnyFilter::try_from(loaded.filter)?, &loaded.meta);
    let mut screen = screen.with_context(|| {
        format!("{} is not a filter of addresses: `umbel url build` makes one", args.filter.display())
    })?;
    let mut exact = match &args.confirm {
        Some(path) => Some(Exact::open(path)?),
        None => open_beside(&args.filter, &screen)?,
    };
    if exact.as_ref().is_some_and(|exact| !screen.fits(exact)) {
        bail!(
            "{} was built with another exact list: build both again, or name the right one with --confirm",
            args.filter.display()
        );
    }
    let mut out = Out::new(false)?;
    let mut verdicts = Verdicts::default();
    let mut check = |line: &[u8], lines_out: &mut Vec<u8>| -> Result<bool> {
        verdicts.any = true;
        let answer = match Address::parse(line) {
            Err(why) => {
                verdicts.invalid = true;
                format!("invalid\t{}\t{why}\n", printable(line))
            }
            Ok(address) => match screen.check(&address, exact.as_mut())? {
                Verdict::Clear => format!("clear\t{address}\n"),
                Verdict::Unsafe(expression) => {
                    verdicts.listed = true;
                    format!("unsafe\t{address}\t{expression}\n")
                }
                Verdict::Unconfirmed => {
                    verdicts.unconfirmed = true;
                    format!("unconfirmed\t{address}\n")
                }
            },
        };
        lines_out.extend(answer.bytes());
        Ok(!args.quiet || !(verdicts.invalid || verdicts.listed || verdicts.unconfirmed))
    };
    let mut print_lines = |lines_out: &mut Vec<u8>| -> Result<()> {
        if !args.quiet {
            out.write_answers(lines_out)?;
        }
        lines_out.clear();
        Ok(())
    };
    let mut lines_out = Vec::new();
    // Without addresses, standard input is read, unless it is a terminal.
    let inputs = if named.is_empty() { resolve(&named)? } else { named };
    'inputs: for input in inputs {
        if !is_stdin(&input) {
            let go_on = check(input.as_os_str().as_bytes(), &mut lines_out)?;
            print_lines(&mut lines_out)?;
            if !go_on {
                break;
            }
            continue;
        }
        let mut lines = Lines::with_max_line(open_list(&input, Arc::default())?, args.max_line.bytes());
        while lines.more().map_err(|error| read_failed(error, &input))? {
            for line in lines.lot().filter(|line| !line.trim_ascii().is_empty()) {
                if !check(line, &mut lines_out)? {
                    break 'inputs;
                }
            }
            print_lines(&mut lines_out)?;
        }
    }
    if !verdicts.any {
        bail!("there was no address to check");
    }
    if args.stats {
        let ScreenStats { addresses, expressions, asked, in_vain, .. } = screen.stats();
        output::message(format_args!(
            "{addresses} addresses, {expressions} expressions, exact list asked {asked} times, {in_vain} in vain"
        ));
    }
    Ok(match verdicts {
        Verdicts { invalid: true, .. } => ExitCode::from(FAILED),
        Verdicts { listed: true, .. } => ExitCode::from(NOT_FOUND),
        Verdicts { unconfirmed: true, .. } => ExitCode::from(UNCONFIRMED),
        _ => ExitCode::SUCCESS,
    })
}
