//! `umbel password build`: a filter from lists of weak passwords.

use crate::args::number;
use crate::documents::word_lists;
use crate::filters::{NewKey, SaveArgs, Secrets, key_file_beside, read_key, warn_if_overfull};
use crate::input::{resolve, total_len};
use crate::terminal::Progress;
use crate::terminal::output::warn;
use anyhow::{Context, Result, bail};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use umbel::hash::Strength;
use umbel::key::Hashed;
use umbel::{AnyFilter, Digest, Hasher, Kind, Spec};
use umbel_text::password::{Digester, Form, List, Lists, Recipe, Slow};

/// Build a filter of weak passwords from lists.
///
/// A list has a word in each line, or a SHA-1 hash with a count (`5BAA6...:9659365`) as Have I Been Pwned publishes them; its
/// first lines tell which, unless --words or --sha1 does, and what looks like neither is refused. Words are compared in Unicode's form NFKC. Hashes have to be taken
/// as they are: then a candidate is hashed too, as it is typed and in that form. How it was done is written into the filter,
/// and `check` and `add` do the same.
///
/// The filter is sealed with a secret. Without --key-file one is made and kept in OUTPUT.key, where `check` and `add` look for
/// it; one that is there already is used. Keep it apart from copies of the filter. Without -n it is made for a tenth more
/// words than there are, and for ten thousand at least, so that some can be added; digests, eight bytes for each word, are
/// kept in memory until then.
///
/// --slow hashes every word with Argon2id as well. It protects words that are added later if filter and secret are stolen
/// together. One word takes about 20 milliseconds and 19 MiB, a million take some six hours of one processor; a
/// check takes as long as one word.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel password build common.txt -o weak.umbel
  umbel password build -p 1e-4 --min-count 10 pwned-passwords-sha1-ordered-by-hash.txt -o weak.umbel
  umbel password build --slow used-before.txt -n 1e4 -o used.umbel")]
pub struct Args {
    /// Lists of weak passwords; `-`, or no list, is standard input. What is compressed with gzip or zstd is recognised
    #[arg(value_name = "LIST")]
    lists: Vec<PathBuf>,

    #[command(flatten)]
    writing: SaveArgs,

    /// Make it for so many words (default: a tenth more than there are)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count)]
    capacity: Option<u64>,

    /// The share of good passwords that may be refused
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, default_value = "0.1%")]
    fpr: f64,

    /// Make no difference between capital and small letters
    #[arg(long, conflicts_with = "sha1")]
    fold_case: bool,

    /// Every line is a SHA-1 hash, with or without a count
    #[arg(long, conflicts_with = "words")]
    sha1: bool,

    /// Every line is a word, even if it looks like a hash
    #[arg(long)]
    words: bool,

    /// Leave out hashes that were found less often
    #[arg(long, value_name = "N", value_parser = number::count, default_value_t = 0)]
    min_count: u64,

    /// Hash every word slowly as well, with Argon2id
    #[arg(long)]
    slow: bool,

    /// The memory of the slow hash, to which its time is proportional [default: 19MiB]
    #[arg(long, value_name = "SIZE", value_parser = number::bytes, requires = "slow")]
    cost: Option<u64>,

    #[command(flatten)]
    secrets: Secrets,

    /// Use a hash without a secret: whoever sees the filter can test words against it
    #[arg(long, conflicts_with = "key_file")]
    unsealed: bool,
}

/// The smallest capacity unless -n is given.
const MIN_CAPACITY: u64 = 10_000;

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut meta = args.writing.check(&args.lists, &args.secrets)?;
    let lists = resolve(&args.lists)?;
    let (hasher, secret) = args.hasher()?;
    // Fail for a wrong rate before the work.
    let spec = |capacity| Ok::<_, umbel::Error>(Spec::new(capacity, args.fpr)?.with_hasher(hasher.clone()));
    let mut filter =
        args.capacity.map(|capacity| AnyFilter::build(Kind::Blocked, &spec(capacity)?)).transpose()?;
    spec(MIN_CAPACITY)?;
    let slow = args.slow()?;
    let mut recipe = Recipe { form: if args.fold_case { Form::Folded } else { Form::Words }, slow };

    let mut digests_held: Vec<Digest> = Vec::new();
    let count = Arc::new(AtomicU64::new(0));
    let progress = Progress::of_bytes(Arc::clone(&count), total_len(&lists));
    let mut digester = None;
    let (mut total, mut inserted) = (0, 0);
    for list in word_lists::open_lists(&lists, &count) {
        let (name, reader) = list?;
        let in_list = |error| word_lists::with_list_name(error, format!("cannot use {name}"));
        let list = List::open(reader, args.list_format()).map_err(in_list)?;
        if list.holds() == Lists::Words && args.min_count > 0 {
            bail!("{name} has no counts: --min-count is for lists of hashes");
        }
        let digester = digester.get_or_insert_with(|| {
            if list.holds() == Lists::Hashes && !args.fold_case {
                recipe.form = Form::Sha1;
            }
            Digester::new(recipe.clone(), hasher.clone())
        });
        let read = list.read(digester, args.min_count, |digests| {
            inserted += digests.len();
            match &mut filter {
                Some(filter) => filter.insert_batch(&Hashed(&digests))?,
                None => {
                    let bytes = 8 * (digests_held.len() + digests.len()) as u64;
                    digests_held
                        .try_reserve(digests.len())
                        .map_err(|_| umbel::Error::OutOfMemory { bytes })?;
                    digests_held.extend(digests);
                }
            }
            Ok(())
        });
        total += read.map_err(in_list)?;
    }
    progress.finish();
    // An empty filter would accept every password.
    if total == 0 {
        bail!("there is no word in the list");
    }
    if inserted == 0 {
        bail!("no hash in the list was found so often: give a lower --min-count");
    }
    let filter = match filter {
        Some(filter) => filter,
        None => {
            digests_held.sort_unstable();
            digests_held.dedup();
            let words = digests_held.len() as u64;
            let mut filter = AnyFilter::build(Kind::Blocked, &spec((words + words / 10).max(MIN_CAPACITY))?)?;
            filter.insert_batch(&Hashed(&digests_held))?;
            filter
        }
    }
    .into();
    warn_if_overfull(&filter);
    recipe.record(&mut meta);
    // The secret first: without it, the filter would be useless.
    if let SecretSource::New(key, path) = &secret {
        key.write(path)?;
    }
    let placed = args.writing.save(&filter, meta.clone(), false);
    if let (Err(_), SecretSource::New(_, path)) = (&placed, &secret) {
        let _ = std::fs::remove_file(path);
    }
    placed?;
    secret.report();
    args.writing.report(&filter, meta)?;
    Ok(ExitCode::SUCCESS)
}

/// The origin of the secret.
enum SecretSource {
    /// The user named the key file, or asked for none.
    Given,
    /// The key file beside the filter existed.
    Existing(PathBuf),
    /// A new secret, for this key file.
    New(NewKey, PathBuf),
}

impl SecretSource {
    /// Reports a secret that the user did not name.
    fn report(&self) {
        match self {
            SecretSource::Given => {}
            SecretSource::Existing(path) => {
                let owner = std::fs::metadata(path).map(|found| found.uid()).ok();
                let strange = owner.is_some_and(|owner| owner != rustix::process::geteuid().as_raw());
                let known = if strange { ", which belongs to another user, who may know it" } else { "" };
                warn(format_args!("used the secret that was there, {}{known}", path.display()));
            }
            SecretSource::New(_, path) => {
                let path = path.display();
                warn(format_args!(
                    "made a new secret, {path}: keep it, and not where others find the filter"
                ));
            }
        }
    }
}

impl Args {
    /// Returns the hash, and the origin of its secret.
    fn hasher(&self) -> Result<(Hasher, SecretSource)> {
        if self.unsealed {
            return Ok((Hasher::default(), SecretSource::Given));
        }
        if let Some(hasher) = self.secrets.single()? {
            return Ok((hasher, SecretSource::Given));
        }
        let Some(output) = self.writing.path() else {
            bail!(
                "a filter of passwords is sealed: say with -o where it goes, so that its secret goes beside it, or give --key-file"
            );
        };
        let path = key_file_beside(output);
        if path.exists() {
            return Ok((read_key(&path)?, SecretSource::Existing(path)));
        }
        let key = NewKey::random(Strength::Sealed)?;
        Ok((key.hasher.clone(), SecretSource::New(key, path)))
    }

    fn slow(&self) -> Result<Option<Slow>> {
        if !self.slow {
            return Ok(None);
        }
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).context("the system has no random numbers")?;
        Ok(Some(Slow::new(self.cost.unwrap_or(Slow::MEMORY), salt)?))
    }

    /// Returns the format of the lists, if the user gives it.
    fn list_format(&self) -> Option<Lists> {
        match (self.words, self.sha1) {
            (true, _) => Some(Lists::Words),
            (_, true) => Some(Lists::Hashes),
            _ => None,
        }
    }
}
