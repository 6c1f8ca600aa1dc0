//! `umbel info`: describes filters.

use crate::args::headings;
use crate::report::FilterReport;
use crate::system::{clock, signals};
use crate::terminal::exit::FAILED;
use crate::terminal::output;
use anyhow::Result;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel::file::{self, Examined};

/// Show the kind, size, keys and rate of a filter or sketch.
///
/// The fill, the hash and the metadata are printed too. No secret is needed. All checksums are
/// verified. A damaged file is reported, the other files are still described, and the exit code is
/// 2.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel info seen.umbel
  umbel info --json june.umbel july.umbel
  umbel info --verify june.umbel july.umbel || echo 'damaged'")]
pub struct Args {
    /// Filters or sketches
    #[arg(value_name = "FILTER", required = true)]
    filters: Vec<PathBuf>,

    /// Verify every checksum and print only whether the files are intact
    #[arg(long, help_heading = headings::OUTPUT)]
    verify: bool,

    /// Show how full each part of the filter is
    #[arg(long, conflicts_with_all = ["json", "verify"], help_heading = headings::OUTPUT)]
    bits: bool,

    /// Print one line of JSON per filter
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for (number, path) in args.filters.iter().enumerate() {
        match report(args, path, number > 0) {
            Err(error) if error.is::<umbel::Error>() => {
                output::error(format_args!("{error:#}"));
                code = ExitCode::from(FAILED);
            }
            result => result?,
        }
    }
    Ok(code)
}

fn report(args: &Args, path: &Path, apart: bool) -> Result<()> {
    signals::watch_mapped(path);
    let mut examined = file::examine(path)?;
    // A filter whose clock is ahead stays there.
    let _ = examined.advance(clock::now());
    let details = FilterReport::from_file(path.display().to_string(), &examined);
    if args.json {
        return output::json(&details);
    }
    if args.verify {
        let checksums = examined.info.chunks + 1;
        return output::text(format_args!("{}: intact, all {checksums} checksums hold\n", path.display()));
    }
    let apart = if apart { "\n" } else { "" };
    let picture = if args.bits { picture(&examined) } else { String::new() };
    output::text(format_args!("{apart}{details}{picture}"))
}

const WIDTH: usize = 64;
const HEIGHT: usize = 16;
/// From empty to full.
const SHADES: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the share of set bits in each part of the filter, from the first to the last.
fn picture(examined: &Examined) -> String {
    let sections = examined.sections();
    let Some(words) = sections.first().map(|section| section.words()) else {
        return "there are no bits to show: it is a list of keys with their counts\n".to_string();
    };
    let words = &words[..words.len().min(examined.stats().bits.div_ceil(64) as usize)];
    let cells = words.len().min(WIDTH * HEIGHT);
    let mut picture = String::new();
    for cell in 0..cells {
        let part = &words[cell * words.len() / cells..(cell + 1) * words.len() / cells];
        let set: u64 = part.iter().map(|word| u64::from(word.count_ones())).sum();
        let fill = set as f64 / (64 * part.len()) as f64;
        picture.push(SHADES[(fill * 8.0).round() as usize]);
        if (cell + 1) % WIDTH == 0 || cell + 1 == cells {
            picture.push('\n');
        }
    }
    let each = words.len() as f64 * 64.0 / cells as f64;
    let _ = writeln!(
        picture,
        "each character stands for about {each:.0} bits, its height for how many of them are set"
    );
    picture
}
