//! `umbel count build`: a multiset from lines.

use crate::args::{names, number};
use crate::filters::{
    DEFAULT_NOISE, HashArgs, MultisetArgs, SaveArgs, capacity_for, digest_spool, record, warn_if_noisy,
};
use crate::input::InputArgs;
use crate::terminal::output::warn;
use anyhow::Result;
use std::process::ExitCode;
use umbel::hash::Strength;
use umbel::key::Hashed;
use umbel::spec::KindOptions;
use umbel::{AnyCount, Hasher, Kind, Spec};

/// Count repeated lines into a multiset.
///
/// Without -n it is made for as many lines, and as many different ones, as there turn out to be: the digests of lines, eight
/// bytes each, are kept until the end, on disk beyond 64 MiB. With -n nothing is kept. The same lines in the same order give
/// the same file, whatever the number of threads.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cut -d ' ' -f 1 access.log | umbel count build -o hosts.umbel
  umbel count build -n 1e8 --keys 1e6 -d ' ' -F 1 -o hosts.umbel access.log.gz")]
pub struct Args {
    #[command(flatten)]
    writing: SaveArgs,

    /// Make it for so many lines, repeated ones included (default: as many as there are)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count)]
    capacity: Option<u64>,

    /// The noise: the share of groups that are found without having been hit
    #[arg(short = 'p', long, value_name = "NOISE", value_parser = number::rate, default_value_t = DEFAULT_NOISE)]
    noise: f64,

    /// The kind of multiset: space-code counts up to about a hundred and takes a fourth less memory
    #[arg(long, default_value_t = Kind::MultiResolution, value_parser = names::count_kind())]
    kind: Kind,

    #[command(flatten)]
    options: MultisetArgs,

    /// The hash
    #[arg(long, value_parser = names::strength())]
    hash: Option<Strength>,

    #[command(flatten)]
    hashing: HashArgs,

    #[command(flatten)]
    input: InputArgs,
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
    /// Returns an empty multiset for `recordings` of `keys` distinct keys, or of as many as --keys gives.
    fn empty(&self, recordings: u64, keys: Option<u64>, hasher: Hasher) -> Result<AnyCount> {
        let mut options = KindOptions::default();
        self.options.for_kind(self.kind, &mut options)?;
        options.space_code.keys = options.space_code.keys.or(keys);
        let spec = Spec::new(recordings, self.noise)?.with_hasher(hasher).with_options(options);
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
