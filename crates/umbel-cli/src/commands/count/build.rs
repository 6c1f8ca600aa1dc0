//! `umbel count build`: builds a multiset from lines.

use crate::args::{headings, names, number};
use crate::filters::{
    DEFAULT_NOISE, HashArgs, MultisetArgs, SaveArgs, SizeArgs, capacity_for, digest_spool, record,
    warn_if_noisy,
};
use crate::input::InputArgs;
use crate::terminal::output::warn;
use anyhow::Result;
use std::process::ExitCode;
use umbel::hash::Strength;
use umbel::key::Hashed;
use umbel::spec::KindOptions;
use umbel::{AnyCount, Hasher, Kind, Spec};

/// Build a multiset that counts repeated lines.
///
/// Without -n, the multiset is sized for the lines and the distinct lines in the input: the digests
/// of all lines, eight bytes each, are held until the end, on disk beyond 64 MiB. With -n, nothing
/// is held. The same lines in the same order produce the same file with any number of threads.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cut -d ' ' -f 1 access.log | umbel count build -o hosts.umbel
  umbel count build -n 1e6 --keys 1e4 -d ' ' -F 1 -o hosts.umbel access.log.gz")]
pub struct Args {
    /// Number of lines to size the multiset for, with repetitions (default: the lines in the input)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    capacity: Option<u64>,

    /// Noise: the share of groups that are found without having been recorded [default: 0.5%]
    #[arg(short = 'p', long, value_name = "NOISE", value_parser = number::rate, help_heading = headings::FILTER)]
    noise: Option<f64>,

    /// Number of bits, or a size in bytes such as 64MiB, which determines the noise
    #[arg(short = 'm', long, value_name = "BITS", value_parser = number::bits, help_heading = headings::FILTER)]
    bits: Option<u64>,

    /// Kind of multiset; space-code counts only to about a hundred and takes a quarter less memory
    #[arg(
        long,
        default_value_t = Kind::MultiResolution,
        value_parser = names::count_kind(),
        help_heading = headings::FILTER
    )]
    kind: Kind,

    /// Hash of the keys
    #[arg(long, value_parser = names::strength(), help_heading = headings::FILTER)]
    hash: Option<Strength>,

    #[command(flatten)]
    options: MultisetArgs,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    hashing: HashArgs,

    #[command(flatten)]
    writing: SaveArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let meta = args.writing.check(args.input.files(), &args.hashing.secrets)?;
    let hasher = args.hashing.hasher(args.hash)?;
    let counts = match args.capacity {
        Some(capacity) => {
            let mut counts = args.empty(capacity, None, hasher)?;
            record(&mut counts, &args.input)?;
            counts
        }
        None => args.spool_first(hasher)?,
    };
    warn_if_noisy(&counts);
    args.writing.write(&counts.into(), meta, args.hashing.embed_key)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Returns an empty multiset for `recordings` of `keys` distinct keys, or of as many as --keys
    /// gives.
    fn empty(&self, recordings: u64, keys: Option<u64>, hasher: Hasher) -> Result<AnyCount> {
        let mut options = KindOptions::default();
        self.options.for_kind(self.kind, &mut options)?;
        options.space_code.keys = options.space_code.keys.or(keys);
        let size = SizeArgs { bits: self.bits, hashes: None };
        let given = size.given(Some(recordings), self.noise, Some(DEFAULT_NOISE));
        let spec = Spec::from_given(given)?.with_hasher(hasher).with_options(options);
        Ok(AnyCount::build(self.kind, &spec)?)
    }

    /// Stores the digests of all lines, then records them in a multiset that is just large enough.
    fn spool_first(&self, hasher: Hasher) -> Result<AnyCount> {
        // Fail for mistaken options before the lines are read.
        self.empty(1, None, hasher.clone())?;
        let (digests, distinct) = digest_spool::collect(&self.input, &hasher)?;
        if digests.count() == 0 {
            warn("there were no lines: the multiset is empty, and made for one; give -n to add to it later");
        }
        self.options.check_keys(&distinct)?;
        let keys = capacity_for(digests.count(), &distinct);
        let mut counts = self.empty(digests.count().max(1), Some(keys), hasher)?;
        for piece in digests.into_pieces()? {
            counts.insert_batch(&Hashed(&piece?));
        }
        Ok(counts)
    }
}
