//! `umbel build`: a filter from lines.

use crate::args::{names, number};
use crate::filters::budget::{self, MemoryLimit};
use crate::filters::construct::{append, with_progress};
use crate::filters::{
    DEFAULT_RATE, DistinctCounter, HashArgs, KindOptionArgs, ParallelFill, SaveArgs, capacity_for,
    check_not_fixed, digest_spool, new_distinct, warn_if_overfull,
};
use crate::input::InputArgs;
use crate::pipeline;
use crate::terminal::output::warn;
use anyhow::{Result, bail};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::key::Hashed;
use umbel::kind::Category;
use umbel::literature::{Family, Literature};
use umbel::sizing::KPolicy;
use umbel::sketch::Distinct;
use umbel::spec::{Construction, plan};
use umbel::{AnyFilter, Hasher, Kind, Spec};

/// Build a filter from lines.
///
/// Without -n the filter is made for as many different keys as there turn out to be: small files are read twice, and else
/// the digests of keys, eight bytes each, are kept until the end, on disk beyond 64 MiB. With -n nothing is kept. The same
/// input and options give the same file, whatever the number of threads; and since the seed is fixed, filters built apart
/// can be united. The kind fuse is the smallest, but needs all keys at once, in memory, and takes no more later: with -n
/// too it is made for the keys there are.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  seq 1000000 | umbel build -o million.umbel
  umbel build -p 0.1% -o seen.umbel access.log.gz access.log.1.gz
  umbel build --csv --header -F email --lower --trim -o customers.umbel customers.csv
  umbel build --like june.umbel -o july.umbel july.txt && umbel union june.umbel july.umbel -o both.umbel")]
pub struct Args {
    #[command(flatten)]
    writing: SaveArgs,

    /// Make it for so many keys (default: as many as there are)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count)]
    capacity: Option<u64>,

    /// The share of keys that were never added to which it may say yes [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate)]
    fpr: Option<f64>,

    /// The kind of filter
    #[arg(long, default_value_t, value_parser = names::set_kind())]
    kind: Kind,

    /// How the number of hash functions is rounded; the literature disagrees
    #[arg(long, default_value_t, value_parser = names::policy())]
    policy: KPolicy,

    #[command(flatten)]
    options: KindOptionArgs,

    /// Take no more memory than this; refused if -p asks for more, otherwise the rate is what it allows
    #[arg(long, value_name = "SIZE", value_parser = number::bytes)]
    max_bytes: Option<u64>,

    /// The hash: fast, keyed or sealed; for the kind literature murmur2, murmur3, murmur3-double, murmur3-enhanced,
    /// md5-indexed, md5-slices or sha1-slices
    #[arg(long, value_parser = names::hash(), hide_possible_values = true)]
    hash: Option<String>,

    #[command(flatten)]
    hashing: HashArgs,

    /// The same shape, hash and seed as another filter, so that the two can be united
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["capacity", "fpr", "kind", "policy", "max_bytes", "hash", "seed"])]
    like: Option<PathBuf>,

    #[command(flatten)]
    input: InputArgs,
}

/// The largest filter that is filled on the chance that all lines are different.
const COUNTED: u64 = 32 << 20;

pub fn run(args: &Args) -> Result<ExitCode> {
    let meta = args.writing.check(args.input.files(), &args.hashing.secrets)?;
    let (filter, embed_key) = match &args.like {
        Some(like) => {
            let loaded = args.hashing.secrets.map_verified(like, Category::Set)?;
            check_not_fixed(like, loaded.filter.kind())?;
            args.hashing.check_embedding(loaded.filter.hash_id().map(|id| id.strength))?;
            (args.stream(loaded.filter.try_clone_empty()?)?, args.hashing.embed_key || loaded.embedded_key)
        }
        None => (args.build()?, args.hashing.embed_key),
    };
    warn_if_overfull(&filter);
    args.writing.write(&filter, meta, embed_key)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn build(&self) -> Result<Stored> {
        self.options.for_kind(self.kind)?;
        let function = self.function()?;
        if let Function::Digest(hasher) = &function {
            self.check(hasher)?;
        }
        match (function, self.capacity) {
            (Function::Digest(hasher), _) if self.kind.capabilities().fixed => self.at_once(hasher),
            (Function::Digest(hasher), Some(capacity)) => {
                let filter = self.empty(capacity, hasher)?;
                self.stream(filter)
            }
            (Function::Digest(hasher), None) => self.find_out(hasher),
            (Function::Family(family), Some(capacity)) => {
                if self.max_bytes.is_some() {
                    bail!(
                        "--max-bytes is not for the kind literature, whose size its formulas give: use -n and -p"
                    );
                }
                let rate = self.fpr.unwrap_or(DEFAULT_RATE);
                self.stream(Literature::with_policy(family, capacity, rate, self.policy)?.into())
            }
            (Function::Family(_), None) => {
                bail!(
                    "the kind literature needs -n: it hashes every key itself, so keys cannot be kept as digests until their number is known"
                )
            }
        }
    }

    /// Finds mistaken options before the lines are read, where the filter is planned after them. A window of keys is the
    /// one that depends on how many there are.
    fn check(&self, hasher: &Hasher) -> Result<()> {
        if !self.kind.capabilities().forget {
            plan(self.kind, &self.spec(1, hasher)?)?;
        }
        Ok(())
    }

    /// A filter of a kind that needs all keys at once: their digests take eight bytes each.
    fn at_once(&self, hasher: Hasher) -> Result<Stored> {
        let mut digests = Vec::new();
        pipeline::run(
            self.input.open()?,
            self.input.threads(),
            |_, records| Ok(hasher.digest_batch(&records.keys()?)),
            |piece, _| append(&mut digests, piece).map(ControlFlow::Continue),
        )?;
        if digests.is_empty() {
            warn("there were no lines: the filter is empty, and none can be added to it");
        }
        if self.max_bytes.is_some() {
            // What fits depends on how many different ones there are.
            digests.sort_unstable();
            digests.dedup();
        }
        let count = digests.len() as u64;
        let spec = budget::fit(self.kind, self.spec(count.max(1), &hasher)?, self.limit(), self.fpr)?;
        let build = |construction: &Construction<'_>| {
            AnyFilter::from_digests(self.kind, &spec, digests, construction)
        };
        Ok(with_progress(self.input.threads(), count, build)?.into())
    }

    /// Fills a filter as the lines come.
    fn stream(&self, filter: Stored) -> Result<Stored> {
        let fill = ParallelFill::new(filter, self.input.threads())?;
        fill.fill(&self.input)?;
        fill.into_filter()
    }

    /// A filter that is just large enough for the keys there turn out to be.
    fn find_out(&self, hasher: Hasher) -> Result<Stored> {
        match self.count_first(&hasher)? {
            Some(filter) => Ok(filter),
            None => self.keep_digests(hasher),
        }
    }

    /// Counts the lines of files that can be read again, and fills a filter for so many. If all lines turn out to be
    /// different, as those of lists are, that was it; else they are read once more, into a smaller one. Fresh memory is
    /// dear, and this needs none but the filter's; so it is done if that is not larger than what would be kept.
    fn count_first(&self, hasher: &Hasher) -> Result<Option<Stored>> {
        let threads = self.input.threads();
        // Alone, a thread is faster with the digests: it has to read for itself what several read at the same time.
        // And what depends on the order of keys cannot be filled by several at all.
        if threads == 1
            || !self.kind.capabilities().absorb
            || self.max_bytes.is_some()
            || !self.input.can_be_read_again()?
        {
            return Ok(None);
        }
        let lines = pipeline::count_lines(self.input.files(), self.input.line_end(), threads)?;
        if lines == 0 || plan(self.kind, &self.spec(lines, hasher)?)?.bytes > COUNTED {
            return Ok(None);
        }
        let fill = ParallelFill::new(self.empty(lines, hasher.clone())?, threads)?;
        let counter = DistinctCounter::new(threads, &new_distinct()?)?;
        let counts = pipeline::run(
            self.input.open()?,
            threads,
            |thread, records| {
                let digests = hasher.digest_batch(&records.keys()?);
                counter.insert(thread, &Hashed(&digests));
                fill.insert(thread, &Hashed(&digests))
            },
            |(), _| Ok(ControlFlow::Continue(())),
        )?;
        let capacity = self.room(counts.keys, &counter.finish()?);
        if capacity == lines {
            return fill.into_filter().map(Some);
        }
        drop(fill);
        self.stream(self.empty(capacity, hasher.clone())?).map(Some)
    }

    /// Keeps the digests of all lines, then fills a filter that is just large enough.
    fn keep_digests(&self, hasher: Hasher) -> Result<Stored> {
        let (digests, distinct) = digest_spool::collect(&self.input, &hasher)?;
        if digests.count() == 0 {
            warn(
                "there were no lines: the filter is empty, and made for one key; give -n to add to it later",
            );
        }
        let (capacity, threads) = (self.room(digests.count(), &distinct), self.input.threads());
        let fill = ParallelFill::new(self.empty(capacity, hasher)?, threads)?;
        pipeline::run_unordered(digests.into_pieces()?, fill.threads(threads), |thread, piece| {
            fill.insert(thread, &Hashed(&piece))
        })?;
        fill.into_filter()
    }

    /// Returns the number of keys to plan the filter for, from the number of lines and the sketch of distinct ones.
    fn room(&self, lines: u64, distinct: &Distinct) -> u64 {
        if self.kind.capabilities().multiset { lines.max(1) } else { capacity_for(lines, distinct) }
    }

    /// What a filter for so many keys is to be.
    fn spec(&self, capacity: u64, hasher: &Hasher) -> Result<Spec> {
        let rate = self.fpr.unwrap_or(DEFAULT_RATE);
        let spec = Spec::new(capacity, rate)?.with_policy(self.policy).with_hasher(hasher.clone());
        Ok(spec.with_options(self.options.for_kind(self.kind)?))
    }

    fn limit(&self) -> Option<MemoryLimit> {
        self.max_bytes.map(|bytes| MemoryLimit { bytes, overhead: 0 })
    }

    /// An empty filter for so many keys, within the memory allowed.
    fn empty(&self, capacity: u64, hasher: Hasher) -> Result<Stored> {
        let spec = budget::fit(self.kind, self.spec(capacity, &hasher)?, self.limit(), self.fpr)?;
        Ok(AnyFilter::build(self.kind, &spec)?.into())
    }

    fn function(&self) -> Result<Function> {
        let name = self.hash.as_deref();
        if let Some(family) = name.and_then(|name| name.parse::<Family>().ok()) {
            if self.kind != Kind::Literature {
                bail!("{family} is a hash of the kind literature: add --kind literature");
            }
            let HashArgs { seed, secrets, embed_key } = &self.hashing;
            if secrets.single()?.is_some() || seed.is_some() || *embed_key {
                bail!("{family} has neither secret nor seed: leave out --key-file, --seed and --embed-key");
            }
            return Ok(Function::Family(family));
        }
        if self.kind == Kind::Literature {
            let families = Family::ALL.map(|family| family.to_string()).join(", ");
            bail!("the kind literature needs --hash with one of its families: {families}");
        }
        let strength = name.map(str::parse).transpose()?;
        self.hashing.hasher(strength).map(Function::Digest)
    }
}

/// How keys are hashed.
enum Function {
    Digest(Hasher),
    Family(Family),
}
