//! `umbel check`: which lines may be members.

use crate::filters::{Secrets, check_plain, check_whole};
use crate::input::{InputArgs, Records, check_not_swapped};
use crate::pipeline::{Select, bit_runs};
use crate::system::clock;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use umbel::Hasher;
use umbel::file::Mapped;
use umbel::key::Hashed;
use umbel::kind::Category;

/// Print the lines that may be members of a filter.
///
/// Lines come out in the order of the input, whatever the number of threads. A line that is not printed is certainly not
/// a member; one that is may be, with the rate that `umbel info` tells. Exit code 0 if a line was selected, 1 if none.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel check seen.umbel new.txt                      lines that may have been seen
  umbel check -v words.umbel essay.txt                words that are certainly not in the list
  tail -f access.log | umbel check -d ' ' -F 1 bad.umbel
  umbel check --tag bad.umbel --with worse.umbel hosts.txt")]
pub struct Args {
    /// The filter to ask
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Print the lines that are certainly not members instead
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only how many lines there are
    #[arg(short, long)]
    count: bool,

    /// Print nothing; stop at the first line and tell by the exit code
    #[arg(short, long, conflicts_with = "count")]
    quiet: bool,

    /// Ask this filter too (repeatable); see --any, --all and --tag
    #[arg(long = "with", value_name = "FILTER")]
    others: Vec<PathBuf>,

    /// A line is a member if it may be in any of the filters: the default
    #[arg(long, conflicts_with = "all")]
    any: bool,

    /// A line is a member if it may be in all of the filters
    #[arg(long)]
    all: bool,

    /// Add a column with the filters that it may be in
    #[arg(long, conflicts_with_all = ["invert", "count", "quiet"])]
    tag: bool,

    /// Print all lines, with a column that says maybe or no
    #[arg(long, conflicts_with_all = ["invert", "count", "quiet"])]
    label: bool,

    /// Show each line as soon as it is found; automatic when the input has nothing more at the moment
    #[arg(long)]
    line_buffered: bool,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    input: InputArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    check_not_swapped("check FILTER", &args.filter, args.input.files())?;
    let panel = Panel::open(args)?;
    let Args { line_buffered, count, quiet, .. } = *args;
    Select { line_buffered, count, quiet }.run(
        &args.input,
        |records| panel.ask(args, records),
        || panel.filters.iter().try_for_each(|asked| check_whole(&*asked.filter()?, asked.name.as_ref())),
    )
}

/// The filters that are asked.
struct Panel {
    filters: Vec<Asked>,
    /// The hashes that several of them share; a key is hashed once for each.
    hashers: Vec<Hasher>,
}

struct Asked {
    name: String,
    /// Changed only to tell it the time.
    filter: RwLock<Mapped>,
    /// Whether it forgets by itself.
    forgets: bool,
    /// Which of the shared hashes it has.
    hasher: Option<usize>,
}

impl Asked {
    /// The filter as it is now.
    fn filter(&self) -> Result<RwLockReadGuard<'_, Mapped>> {
        if self.forgets {
            self.filter.write().unwrap_or_else(PoisonError::into_inner).advance(clock::now())?;
        }
        Ok(self.filter.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Panel {
    fn open(args: &Args) -> Result<Panel> {
        let mut panel = Panel { filters: Vec::new(), hashers: Vec::new() };
        let several = !args.others.is_empty();
        for path in std::iter::once(&args.filter).chain(&args.others) {
            check_plain(path)?;
            let filter = args.secrets.map(path, Category::Set)?;
            let hasher = filter.hasher().filter(|_| several).map(|hasher| panel.share(hasher));
            let (name, forgets) = (path.display().to_string(), filter.kind().capabilities().forget);
            panel.filters.push(Asked { name, filter: RwLock::new(filter), forgets, hasher });
        }
        Ok(panel)
    }

    fn share(&mut self, hasher: &Hasher) -> usize {
        self.hashers.iter().position(|known| known == hasher).unwrap_or_else(|| {
            self.hashers.push(hasher.clone());
            self.hashers.len() - 1
        })
    }

    /// How many lines are selected, and what is printed for them.
    fn ask(&self, args: &Args, records: &Records) -> Result<(u64, Vec<u8>)> {
        let keys = records.keys()?;
        let digests: Vec<_> = self.hashers.iter().map(|hasher| hasher.digest_batch(&keys)).collect();
        let mut answers = Vec::with_capacity(self.filters.len());
        for asked in &self.filters {
            let filter = asked.filter()?;
            answers.push(match asked.hasher {
                Some(hasher) => filter.contains_batch(&Hashed(&digests[hasher]))?,
                None => filter.contains_batch(&keys)?,
            });
        }
        let Some((first, others)) = answers.split_first() else { return Ok((0, Vec::new())) };
        let mut members = first.as_words().to_vec();
        for other in others {
            for (ours, theirs) in members.iter_mut().zip(other.as_words()) {
                *ours = if args.all { *ours & theirs } else { *ours | theirs };
            }
        }
        if args.invert {
            for (word, start) in members.iter_mut().zip((0..).step_by(64)) {
                let len = records.key_count() - start;
                *word = !*word & if len < 64 { (1 << len) - 1 } else { !0 };
            }
        }
        let mut out = Vec::new();
        let count: u64 = members.iter().map(|word| u64::from(word.count_ones())).sum();
        if args.quiet || args.count {
            return Ok((count, out));
        }
        let is_member = |key: usize| members[key / 64] >> (key % 64) & 1 == 1;
        let column = |key: usize, out: &mut Vec<u8>| {
            args.input.print_with(records, key, out, |out| {
                if args.label {
                    out.extend_from_slice(if is_member(key) { b"maybe" } else { b"no" });
                }
                if args.label && args.tag {
                    out.push(b'\t');
                }
                if args.tag {
                    let names = self
                        .filters
                        .iter()
                        .zip(&answers)
                        .filter(|(_, answers)| answers.get(key) == Some(true));
                    let names: Vec<&str> = names.map(|(asked, _)| &asked.name[..]).collect();
                    out.extend_from_slice(names.join(",").as_bytes());
                }
            });
        };
        if args.label {
            (0..records.key_count()).for_each(|key| column(key, &mut out));
            return Ok((records.key_count() as u64, out));
        }
        for run in bit_runs(&members) {
            if args.tag {
                run.for_each(|key| column(key, &mut out));
            } else {
                records.print_lines(run, &mut out);
            }
        }
        Ok((count, out))
    }
}
