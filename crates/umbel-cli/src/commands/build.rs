//! `umbel build`: builds a filter from lines.

use crate::args::{headings, names, number};
use crate::filters::{
    DEFAULT_RATE, ForeignArgs, ForeignBuilder, HashArgs, KindOptionArgs, LiteratureBuilder, ParallelFill,
    SaveArgs, SetBuilder, ShardArgs, SizeArgs, check_not_fixed, missing_funnel, warn_if_overfull,
};
use crate::input::InputArgs;
use crate::pipeline;
use anyhow::{Result, bail};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::foreign::{ForeignFilter, Format, Options};
use umbel::kind::Category;
use umbel::literature::Family;
use umbel::sharded::ShardPlan;
use umbel::sizing::KPolicy;
use umbel::{Hasher, Kind, Spec};

/// Build a filter from the lines of files or a pipe.
///
/// Without -n, the filter is sized for the distinct keys in the input: small files are read twice;
/// otherwise the digests of all keys, eight bytes each, are held until the end, on disk beyond 64
/// MiB. With -n, nothing is held. The kind fuse is the smallest, but it holds all keys in memory,
/// is sized for them even with -n, and accepts no more later. The kind literature hashes the keys
/// themselves: files are read twice, and the keys of a pipe are held like digests.
///
/// -m and -k set the bits and the hash functions of a textbook. Together, or -m with -p, they
/// determine the filter, and nothing is held. With -m alone, k follows from the number of keys.
///
/// The same input and options produce the same file with any number of threads. The seed is fixed,
/// so filters that were built separately can be united. It is a public hash: anyone can craft
/// colliding keys; use --key-file for hostile input.
///
/// With --format, the file is one that another program reads, with the size and the bits that this
/// program would give it: guava, spark, spark2 (version 2), dcso, sbbf (Parquet), datasketches or
/// redisbloom.
///
/// With --shards, the filter is a directory with N files and a manifest, for sets too large for one
/// machine or one task; `umbel check` and other commands take it in place of a file. The files do not
/// depend on the order of the keys, nor on the processes that build them. Each process builds some of
/// the shards (--only), or it builds a filter of a part of the keys, and `umbel union` unites these.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  seq 1000000 | umbel build -o million.umbel
  umbel build -p 0.1% -o seen.umbel access.log.gz access.log.1.gz
  umbel build --csv --header -F email --lower -o customers.umbel customers.csv
  printf '2\\n4\\n9\\n' | umbel build -m 10 -k 3 -o ten.umbel   # ten bits
  umbel build --like june.umbel -o july.umbel july.txt   # to unite with june
  umbel build --format guava --funnel utf8 -n 1e6 -o users.bloom users.txt
  umbel build --shards 16 -n 1e6 -p 0.1% -o new.shards new.txt")]
pub struct Args {
    /// Number of keys to size the filter for (default: the number of distinct keys in the input)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    capacity: Option<u64>,

    /// False-positive rate: the share of absent keys that the filter reports as present
    /// [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, help_heading = headings::FILTER)]
    fpr: Option<f64>,

    #[command(flatten)]
    size: SizeArgs,

    /// Kind of filter [default: blocked, or standard below 64 KiB or with -k]
    #[arg(long, value_parser = names::set_kind(), help_heading = headings::FILTER)]
    kind: Option<Kind>,

    /// Maximum size of the filter; an error if -p needs more, otherwise it determines the rate
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = number::bytes,
        conflicts_with_all = ["bits", "hashes"],
        help_heading = headings::FILTER
    )]
    max_bytes: Option<u64>,

    /// Use the size, hash and seed of another filter, so that the two can be united
    #[arg(
        long,
        value_name = "FILTER",
        conflicts_with_all = ["capacity", "fpr", "bits", "hashes", "kind", "policy", "max_bytes", "hash", "seed"],
        help_heading = headings::FILTER
    )]
    like: Option<PathBuf>,

    /// Rounding of the number of hash functions, on which the literature disagrees
    #[arg(long, default_value_t, value_parser = names::policy(), help_heading = headings::FILTER)]
    policy: KPolicy,

    /// Hash: fast, keyed or sealed; for the kind literature murmur2, murmur3, murmur3-double,
    /// murmur3-enhanced, md5-indexed, md5-slices or sha1-slices
    #[arg(long, value_parser = names::hash(), hide_possible_values = true, help_heading = headings::FILTER)]
    hash: Option<String>,

    #[command(flatten)]
    shards: ShardArgs,

    #[command(flatten)]
    options: KindOptionArgs,

    #[command(flatten)]
    foreign: ForeignArgs,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    hashing: HashArgs,

    #[command(flatten)]
    writing: SaveArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(shards) = args.shards.shards {
        args.build_shards(shards)?;
        return Ok(ExitCode::SUCCESS);
    }
    let meta = args.writing.check(args.input.files(), &args.hashing.secrets)?;
    if let Some(format) = args.foreign.format.format {
        args.writing.write_foreign(&args.build_foreign(format)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.foreign.funnel.is_some() {
        bail!("--funnel is for the formats of other programs: add --format, or leave it out");
    }
    let (filter, embed_key) = match &args.like {
        Some(like) => {
            let loaded = args.hashing.secrets.map_verified(like, Category::Set)?;
            check_not_fixed(like, loaded.filter.kind())?;
            args.hashing.check_embedding(loaded.filter.hash_id().map(|id| id.strength))?;
            let empty = loaded.filter.try_clone_empty()?;
            (ParallelFill::filled(empty, &args.input)?, args.hashing.embed_key || loaded.embedded_key)
        }
        None => (args.build()?, args.hashing.embed_key),
    };
    warn_if_overfull(&filter);
    args.writing.write(&filter, meta, embed_key)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn build(&self) -> Result<Stored> {
        let kind = self.kind.unwrap_or_else(|| self.size.default_kind());
        let options = self.options.for_kind(kind)?;
        let Args { fpr: rate, size, policy, max_bytes, ref input, .. } = *self;
        match self.hash_function(kind)? {
            HashFunction::Digest(hasher) => {
                let builder = SetBuilder { kind, rate, size, policy, options, max_bytes, hasher, input };
                builder.build(self.capacity)
            }
            HashFunction::Family(_) if max_bytes.is_some() => {
                bail!("--max-bytes is not for the kind literature, whose size its formulas give: use -m")
            }
            HashFunction::Family(family) => {
                LiteratureBuilder { family, rate, size, policy, input }.build(self.capacity)
            }
        }
    }

    /// Builds a filter in shards, or some of its shards, or completes one.
    fn build_shards(&self, shards: u32) -> Result<()> {
        let kind = self.kind.unwrap_or_else(|| self.size.default_kind());
        let sized = "whose shards are sized from -n and -p";
        let meaningless = [
            (self.size.bits.is_some(), "--bits (-m)", sized),
            (self.max_bytes.is_some(), "--max-bytes", sized),
            (self.like.is_some(), "--like", "which has the form of any other with the same options"),
            (self.foreign.format.format.is_some(), "--format", "which only umbel reads"),
            (self.foreign.funnel.is_some(), "--funnel", "which only umbel reads"),
            (self.writing.has_meta(), "--meta", "which has no metadata"),
        ];
        check_meaningless("a filter in shards", &meaningless)?;
        self.options.for_kind(kind)?;
        let HashFunction::Digest(hasher) = self.hash_function(kind)? else {
            bail!("--shards is not for the kind literature: leave --kind out");
        };
        if let Some(folder) = self.writing.path() {
            self.shards.check_incomplete(folder)?;
        }
        let folder = self.writing.check_shards()?;
        let Some(capacity) = self.capacity else {
            bail!("a filter in shards needs the number of keys for which it is sized: give -n");
        };
        let given = self.size.given(Some(capacity), self.fpr, Some(DEFAULT_RATE));
        let spec = Spec::from_given(given)?.with_policy(self.policy).with_hasher(hasher);
        let plan = ShardPlan::new(kind, &spec, shards)?;
        if self.shards.complete {
            plan.seal(folder)?;
            return Ok(());
        }
        let builder = self.shards.builder(plan)?;
        pipeline::run(
            self.input.open()?,
            self.input.threads(),
            |_, records| Ok(builder.insert_batch(&records.keys()?)?),
            |(), _| Ok(ControlFlow::Continue(())),
        )?;
        if self.shards.is_whole() {
            self.writing.write_shards(&builder, self.hashing.embed_key)
        } else {
            Ok(builder.save_shards(folder, self.hashing.embed_key)?)
        }
    }

    /// Builds a filter in the format of another program. Fails if an option is given that has no
    /// meaning there.
    fn build_foreign(&self, format: Format) -> Result<ForeignFilter> {
        let HashArgs { seed, secrets, embed_key } = &self.hashing;
        let sized = "whose size follows from -n and -p";
        let hashed = "whose hash is fixed and has no secret";
        let (kindless, kind_option) = ("which is not a kind of umbel", self.options.first_given());
        let meaningless = [
            (self.size.bits.is_some(), "--bits (-m)", sized),
            (self.size.hashes.is_some(), "--hashes (-k)", sized),
            (self.max_bytes.is_some(), "--max-bytes", sized),
            (self.policy != KPolicy::default(), "--policy", sized),
            (self.like.is_some(), "--like", sized),
            (self.kind.is_some(), "--kind", kindless),
            (kind_option.is_some(), kind_option.unwrap_or_default(), kindless),
            (self.hash.is_some(), "--hash", hashed),
            (secrets.is_given(), "--key-file", hashed),
            (*embed_key, "--embed-key", hashed),
            (seed.is_some() && !format.has_seed(), "--seed", "whose hash has no seed"),
            (self.writing.has_meta(), "--meta", "which has no room for metadata"),
            (self.foreign.funnel.is_some() && !format.has_funnel(), "--funnel", "whose keys are bytes"),
        ];
        check_meaningless(&format!("the format {format}"), &meaningless)?;
        if format == Format::Guava && self.foreign.funnel.is_none() {
            bail!("{}", missing_funnel("a file of guava"));
        }
        let options = Options { funnel: self.foreign.funnel, seed: *seed, ..Options::default() };
        ForeignBuilder { format, options, rate: self.fpr, input: &self.input }.build(self.capacity)
    }

    fn hash_function(&self, kind: Kind) -> Result<HashFunction> {
        let name = self.hash.as_deref();
        if let Some(family) = name.and_then(|name| name.parse::<Family>().ok()) {
            if kind != Kind::Literature {
                bail!("{family} is a hash of the kind literature: add --kind literature");
            }
            let HashArgs { seed, secrets, embed_key } = &self.hashing;
            if secrets.single()?.is_some() || seed.is_some() || *embed_key {
                bail!("{family} has neither secret nor seed: leave out --key-file, --seed and --embed-key");
            }
            return Ok(HashFunction::Family(family));
        }
        if kind == Kind::Literature {
            let families = Family::ALL.map(|family| family.to_string()).join(", ");
            bail!("the kind literature needs --hash with one of its families: {families}");
        }
        let strength = name.map(str::parse).transpose()?;
        self.hashing.hasher(strength).map(HashFunction::Digest)
    }
}

/// Fails if an option is given that has no meaning for this form of filter.
fn check_meaningless(form: &str, options: &[(bool, &str, &str)]) -> Result<()> {
    match options.iter().find(|(given, ..)| *given) {
        Some((_, option, reason)) => bail!("{option} is not for {form}, {reason}: leave it out"),
        None => Ok(()),
    }
}

/// How keys are hashed.
enum HashFunction {
    /// Once, to a digest.
    Digest(Hasher),
    /// By a family of the literature, in the filter itself.
    Family(Family),
}
