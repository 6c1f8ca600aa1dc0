//! `umbel info`: describes filters.

use crate::args::headings;
use crate::filters::{FormatArg, report_shards};
use crate::report::{FilterReport, ForeignReport, ShardsReport};
use crate::system::{clock, signals};
use crate::terminal::exit::FAILED;
use crate::terminal::output;
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel::file::{self, Examined};
use umbel::foreign::ForeignFilter;
use umbel::sharded::shard_path;

/// Show the kind, size, keys and rate of a filter or sketch.
///
/// The fill, the hash and the metadata are printed too. No secret is needed. All checksums are
/// verified; the filters of other programs have none, so only their lengths and counts are checked.
/// A damaged file is reported, the other files are still described, and the exit code is 2. A filter
/// in shards is given by its directory; below the figures of the whole filter, each shard has a row.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel info seen.umbel
  umbel info --json june.umbel july.umbel
  umbel info --verify june.umbel july.umbel || echo 'damaged'
  umbel info --format guava users.bloom
  umbel info seen.shards")]
pub struct Args {
    /// Filters or sketches
    #[arg(value_name = "FILTER", required = true)]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    format: FormatArg,

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
        match Opened::new(args, path) {
            Ok(opened) => opened.print(args, path, number > 0)?,
            Err(error) => {
                output::error(format_args!("{error:#}"));
                code = ExitCode::from(FAILED);
            }
        }
    }
    Ok(code)
}

/// Describes one of several files, as `--json` does.
pub fn facts(path: &Path, format: FormatArg) -> Result<Value> {
    let name = path.display().to_string();
    Ok(match Opened::read(path, format, false)? {
        Opened::Own(examined) => json!(FilterReport::from_file(name, &examined)),
        Opened::Shards(report) => json!(report),
        Opened::Foreign(filter) => json!(ForeignReport::from_file(name, &filter)),
    })
}

enum Opened {
    Own(Box<Examined>),
    Shards(Box<ShardsReport>),
    Foreign(Box<ForeignFilter>),
}

impl Opened {
    /// Reads and verifies one of the files of the command.
    fn new(args: &Args, path: &Path) -> Result<Opened> {
        let opened = Opened::read(path, args.format, args.filters.len() == 1)?;
        match &opened {
            Opened::Foreign(filter) if args.bits => bail!(
                "--bits draws filters of umbel only, and {} is in the format {}: leave it out",
                path.display(),
                filter.format()
            ),
            Opened::Shards(_) if args.bits => {
                let shard = shard_path(path, 0);
                bail!("--bits draws a single file: name a shard, such as {}", shard.display())
            }
            _ => Ok(opened),
        }
    }

    /// Reads and verifies a file. The format is for it alone, or for one of several files.
    fn read(path: &Path, format: FormatArg, is_alone: bool) -> Result<Opened> {
        if path.is_dir() {
            if is_alone {
                format.check_own(path)?;
            }
            return Ok(Opened::Shards(Box::new(report_shards(path)?)));
        }
        signals::watch_mapped(path);
        match file::examine(path).map_err(anyhow::Error::new) {
            Ok(mut examined) => {
                if is_alone {
                    format.check_own(path)?;
                }
                // A filter whose clock is ahead stays there.
                let _ = examined.advance(clock::now());
                Ok(Opened::Own(Box::new(examined)))
            }
            Err(error) => {
                let format = if is_alone { format } else { format.for_one_of_several(path) };
                Ok(Opened::Foreign(Box::new(format.load_instead(path, error)?)))
            }
        }
    }

    /// Prints what the options ask for; `apart` from the text before it, if there is any.
    fn print(&self, args: &Args, path: &Path, apart: bool) -> Result<()> {
        let name = path.display();
        let apart = if apart { "\n" } else { "" };
        match self {
            Opened::Own(examined) => {
                let details = FilterReport::from_file(name.to_string(), examined);
                if args.json {
                    return output::json(&details);
                }
                if args.verify {
                    let checksums = examined.info.chunks + 1;
                    return output::text(format_args!("{name}: intact, all {checksums} checksums hold\n"));
                }
                let picture = if args.bits { picture(examined) } else { String::new() };
                output::text(format_args!("{apart}{details}{picture}"))
            }
            Opened::Shards(details) => {
                if args.json {
                    return output::json(details);
                }
                if args.verify {
                    let checksums = details.checksums();
                    return output::text(format_args!("{name}: intact, all {checksums} checksums hold\n"));
                }
                output::text(format_args!("{apart}{details}"))
            }
            Opened::Foreign(filter) => {
                let details = ForeignReport::from_file(name.to_string(), filter);
                if args.json {
                    return output::json(&details);
                }
                if args.verify {
                    let format = filter.format();
                    return output::text(format_args!("{name}: valid as {format}, which has no checksums\n"));
                }
                output::text(format_args!("{apart}{details}"))
            }
        }
    }
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
