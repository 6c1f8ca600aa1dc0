//! `umbel build`: a filter from lines.

use super::filling::{Filling, warn_if_overfull};
use super::{DEFAULT_RATE, entries, entry};
use crate::digests::{self, Digests};
use crate::distinct::Distinct;
use crate::engine;
use crate::facts::{Facts, percent};
use crate::filters::{Secrets, Target};
use crate::input::InputArgs;
use crate::names;
use crate::number;
use crate::output::{self, warn};
use crate::progress::size;
use crate::sync::{inner, lock};
use crate::tuning::TuningArgs;
use anyhow::{Context, Result, bail};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use umbel::file::Options;
use umbel::literature::{Family, Literature};
use umbel::sizing::{KPolicy, Known};
use umbel::{AnyFilter, Hashed, Hasher, Kind, Plan, Spec, Stored, Strength, plan};

/// Build a filter from lines.
///
/// Without -n the filter is made for as many different keys as there turn out to be: small files are read twice, and else
/// the digests of keys, eight bytes each, are kept until the end, on disk beyond 64 MiB. With -n nothing is kept. The same
/// input and options give the same file, whatever the number of threads; and since the seed is fixed, filters built apart
/// can be united.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  seq 1000000 | umbel build -o million.umbel
  umbel build -p 0.1% -o seen.umbel access.log.gz access.log.1.gz
  umbel build --csv --header -F email --lower --trim -o customers.umbel customers.csv
  umbel build --like june.umbel -o july.umbel july.txt && umbel union june.umbel july.umbel -o both.umbel")]
pub struct Args {
    #[command(flatten)]
    target: Target,

    /// Make it for so many keys (default: as many as there are)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count)]
    capacity: Option<u64>,

    /// The share of keys that were never added to which it may say yes [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate)]
    fpr: Option<f64>,

    /// The kind of filter
    #[arg(long, default_value_t, value_parser = names::kind())]
    kind: Kind,

    /// How the number of hash functions is rounded; the literature disagrees
    #[arg(long, default_value_t, value_parser = names::policy())]
    policy: KPolicy,

    #[command(flatten)]
    tuning: TuningArgs,

    /// Take no more memory than this; refused if -p asks for more, otherwise the rate is what it allows
    #[arg(long, value_name = "SIZE", value_parser = number::bytes)]
    max_bytes: Option<u64>,

    /// The hash: fast, keyed or sealed; for the kind literature murmur2, murmur3, murmur3-double, murmur3-enhanced,
    /// md5-indexed, md5-slices or sha1-slices
    #[arg(long, value_parser = names::hash(), hide_possible_values = true)]
    hash: Option<String>,

    /// The seed of the fast hash; only filters with the same seed can be united [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    #[command(flatten)]
    secrets: Secrets,

    /// Write the secret of a keyed hash into the file, so that it can be used without the key file
    #[arg(long)]
    embed_key: bool,

    /// The same shape, hash and seed as another filter, so that the two can be united
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["capacity", "fpr", "kind", "policy", "max_bytes", "hash", "seed"])]
    like: Option<PathBuf>,

    /// Metadata that travels with the filter (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = entry)]
    meta: Vec<(String, String)>,

    /// Print the facts of the filter as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

/// The largest filter that is filled on the chance that all lines are different.
const COUNTED: u64 = 32 << 20;

/// A filter with a higher rate than this is of no use to anyone.
const USELESS: f64 = 0.5;

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.json && args.target.path().is_none() {
        bail!("--json prints to standard output, where the filter would go: name a file with -o");
    }
    args.target.check(args.input.files())?;
    let meta = entries(&args.meta)?;
    let (filter, embed_key) = match &args.like {
        Some(like) => {
            let loaded = args.secrets.map_verified(like)?;
            args.check_embedding(loaded.filter.hash_id().map(|id| id.strength))?;
            (args.stream(loaded.filter.try_clone_empty()?)?, args.embed_key || loaded.embedded_key)
        }
        None => (args.build()?, args.embed_key),
    };
    warn_if_overfull(&filter);
    args.target.save(&filter, Options { meta: meta.clone(), embed_key, create_new: false })?;
    if args.json {
        output::json(&Facts::of_filter(&filter, meta))?;
    } else if std::io::stderr().is_terminal() {
        let facts = Facts::of_filter(&filter, meta);
        output::say(format_args!(
            "{} lines, {} filter of {}, rate {}",
            facts.count.unwrap_or_default(),
            facts.kind,
            size(facts.bytes),
            percent(facts.fpr_now)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn build(&self) -> Result<Stored> {
        self.tuning.of_kind(self.kind)?;
        match (self.function()?, self.capacity) {
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

    /// Fills a filter as the lines come.
    fn stream(&self, filter: Stored) -> Result<Stored> {
        let filling = Filling::new(filter, self.input.threads())?;
        filling.fill(&self.input)?;
        filling.into_filter()
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
            || !self.kind.can().absorb
            || self.max_bytes.is_some()
            || !self.input.can_be_read_again()?
        {
            return Ok(None);
        }
        let lines = engine::count(self.input.files(), self.input.line_end(), threads)?;
        if lines == 0 || plan(self.kind, &self.spec(lines, hasher)?)?.bytes > COUNTED {
            return Ok(None);
        }
        let filling = Filling::new(self.empty(lines, hasher.clone())?, threads)?;
        let sketches: Vec<Mutex<Distinct>> = (0..threads).map(|_| Mutex::default()).collect();
        let tally = engine::run(
            self.input.open()?,
            threads,
            |thread, lot| {
                let digests = hasher.digest_batch(&lot.keys()?);
                lock(&sketches[thread]).add(&digests);
                filling.insert(thread, &Hashed(&digests))
            },
            |(), _| Ok(ControlFlow::Continue(())),
        )?;
        let capacity = self.room(tally.keys, sketches);
        if capacity == lines {
            return filling.into_filter().map(Some);
        }
        drop(filling);
        self.stream(self.empty(capacity, hasher.clone())?).map(Some)
    }

    /// Keeps the digests of all lines, then fills a filter that is just large enough.
    fn keep_digests(&self, hasher: Hasher) -> Result<Stored> {
        let threads = self.input.threads();
        let sketches: Vec<Mutex<Distinct>> = (0..threads).map(|_| Mutex::default()).collect();
        let mut digests = Digests::default();
        engine::run(
            self.input.open()?,
            threads,
            |thread, lot| {
                let piece = hasher.digest_batch(&lot.keys()?);
                lock(&sketches[thread]).add(&piece);
                Ok(piece)
            },
            |piece, _| digests.push(&piece).map(ControlFlow::Continue),
        )?;
        if digests.count() == 0 {
            warn(
                "there were no lines: the filter is empty, and made for one key; give -n to add to it later",
            );
        }
        let capacity = self.room(digests.count(), sketches);
        let filling = Filling::new(self.empty(capacity, hasher)?, threads)?;
        engine::spread(digests.into_pieces()?, filling.threads(threads), |thread, piece| {
            filling.insert(thread, &Hashed(&piece))
        })?;
        filling.into_filter()
    }

    /// For how many keys a filter is made, of so many lines of which threads have seen so many different ones.
    fn room(&self, lines: u64, sketches: Vec<Mutex<Distinct>>) -> u64 {
        if self.kind.can().multiset {
            return lines.max(1);
        }
        let mut distinct = Distinct::default();
        sketches.into_iter().for_each(|sketch| distinct.merge(&inner(sketch)));
        digests::capacity(lines, &distinct)
    }

    /// What a filter for so many keys is to be.
    fn spec(&self, capacity: u64, hasher: &Hasher) -> Result<Spec> {
        let rate = self.fpr.unwrap_or(DEFAULT_RATE);
        let spec = Spec::new(capacity, rate)?.with_policy(self.policy).with_hasher(hasher.clone());
        Ok(spec.with_tuning(self.tuning.of_kind(self.kind)?))
    }

    /// An empty filter for so many keys, within the memory allowed.
    fn empty(&self, capacity: u64, hasher: Hasher) -> Result<Stored> {
        let wanted = self.spec(capacity, &hasher)?;
        let planned = plan(self.kind, &wanted)?;
        let Some(most) = self.max_bytes.filter(|most| planned.bytes > *most) else {
            return Ok(AnyFilter::build(self.kind, &wanted)?.into());
        };
        let within = |bits| {
            let known = Known { n: Some(capacity), m: Some(bits), ..Known::default() };
            let spec = Spec::from_known(known)?.with_policy(self.policy).with_hasher(hasher.clone());
            let spec = spec.with_tuning(wanted.tuning().clone());
            Ok::<_, umbel::Error>((plan(self.kind, &spec)?, spec))
        };
        // Memory comes in lines of 512 bits, and some kinds round up.
        let (best, spec) = (0..4u64)
            .filter_map(|less| within((most / 64).checked_sub(less)?.checked_mul(512)?).ok())
            .find(|(plan, _)| plan.bytes <= most)
            .with_context(|| format!("--max-bytes {most} is too small for a filter of {capacity} keys"))?;
        let Plan { bytes, rate, .. } = best;
        if let Some(asked) = self.fpr {
            bail!(
                "{capacity} keys at a rate of {} need {}, and --max-bytes allows {}: with so much the rate is {}; leave -p out to accept it",
                percent(asked),
                size(planned.bytes),
                size(most),
                percent(rate)
            );
        }
        if rate > USELESS {
            bail!("--max-bytes {most} is too small: {capacity} keys in it have a rate of {}", percent(rate));
        }
        warn(format_args!("within {} the rate is {}", size(bytes), percent(rate)));
        Ok(AnyFilter::build(self.kind, &spec)?.into())
    }

    /// Refuses before the work to write a secret that is never written.
    fn check_embedding(&self, strength: Option<Strength>) -> Result<()> {
        match strength {
            Some(Strength::Keyed) => Ok(()),
            _ if !self.embed_key => Ok(()),
            Some(Strength::Sealed) => {
                bail!("--embed-key is for a keyed hash: a sealed secret is never written to a file")
            }
            _ => bail!("--embed-key is for a keyed hash: this one has no secret"),
        }
    }

    fn function(&self) -> Result<Function> {
        let secret = self.secrets.single()?;
        let name = self.hash.as_deref();
        if let Some(family) = name.and_then(|name| name.parse::<Family>().ok()) {
            if self.kind != Kind::Literature {
                bail!("{family} is a hash of the kind literature: add --kind literature");
            }
            if secret.is_some() || self.seed.is_some() || self.embed_key {
                bail!("{family} has neither secret nor seed: leave out --key-file, --seed and --embed-key");
            }
            return Ok(Function::Family(family));
        }
        if self.kind == Kind::Literature {
            let families = Family::ALL.map(|family| family.to_string()).join(", ");
            bail!("the kind literature needs --hash with one of its families: {families}");
        }
        let strength = match (name, &secret) {
            (Some(name), _) => name.parse()?,
            (None, Some(secret)) => secret.id().strength,
            (None, None) => Strength::Fast,
        };
        self.check_embedding(Some(strength))?;
        if self.seed.is_some() && strength != Strength::Fast {
            bail!("a {strength} hash has a secret instead of a seed: leave out --seed");
        }
        match secret {
            None if strength == Strength::Fast => Ok(Function::Digest(Hasher::fast(self.seed.unwrap_or(0)))),
            None => bail!(
                "a {strength} hash needs its secret: make one with `umbel key new FILE --hash {strength}`, and give it with --key-file FILE"
            ),
            Some(secret) if secret.id().strength == strength => Ok(Function::Digest(secret)),
            Some(secret) => {
                bail!("the key file is for a {} hash, not for a {strength} one", secret.id().strength)
            }
        }
    }
}

/// How keys are hashed.
enum Function {
    Digest(Hasher),
    Family(Family),
}
