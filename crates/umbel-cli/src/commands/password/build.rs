//! `umbel password build`: builds a filter from lists of weak passwords.

use crate::args::{headings, number};
use crate::documents::word_lists;
use crate::filters::{NewKey, SaveArgs, Secrets, key_file_beside, read_key, warn_if_overfull};
use crate::input::{resolve, total_len};
use crate::terminal::Progress;
use crate::terminal::output::warn;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use umbel::hash::Strength;
use umbel::key::Hashed;
use umbel::{AnyFilter, Digest, Hasher, Kind, Spec};
use umbel_text::password::{Algorithm, Digester, Form, List, Lists, Recipe, Slow};

/// Build a filter of weak passwords from lists.
///
/// A list has one word per line, or a hash with a count per line (`5BAA6...:9659365`), SHA-1 or
/// NTLM, as published by Have I Been Pwned. The first lines decide which, unless --words, --sha1 or
/// --ntlm is given; a line that fits neither is an error. MD5 hashes look like NTLM hashes and cannot
/// be used, so a list of NTLM hashes without counts needs --ntlm. Words are compared in the Unicode form
/// NFKC. Hashes are used as they are: a candidate is then hashed too, as typed and in that form. The
/// filter records these choices, and `check` and `add` follow them.
///
/// The filter is sealed with a secret. Without --key-file the secret is in OUTPUT.key, where
/// `check` and `add` look for it; it is created unless the file exists. Do not store it with copies
/// of the filter. Without -n the filter has room for a tenth more words than the lists, and for at
/// least ten thousand, so that some can be added; digests, eight bytes per word, are held in memory
/// until the end.
///
/// --slow also hashes every word with Argon2id, which protects words that are added later if both
/// filter and secret are stolen. One word takes about 20 milliseconds and 19 MiB, a million words
/// about six hours of one processor; a check takes as long as one word.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel password build common.txt -o weak.umbel
  umbel password build --min-count 10 pwned-passwords.txt -o weak.umbel
  umbel password build --slow -n 1e4 used-before.txt -o used.umbel")]
pub struct Args {
    /// Lists of weak passwords; `-` or no list means standard input. Files compressed with gzip or
    /// zstd are decompressed
    #[arg(value_name = "LIST")]
    lists: Vec<PathBuf>,

    /// Number of words to size the filter for (default: a tenth more than in the lists)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    capacity: Option<u64>,

    /// Maximum share of good passwords that are rejected
    #[arg(
        short = 'p',
        long,
        value_name = "RATE",
        value_parser = number::rate,
        default_value = "0.1%",
        help_heading = headings::FILTER
    )]
    fpr: f64,

    /// Ignore case
    #[arg(long, conflicts_with_all = ["sha1", "ntlm"], help_heading = headings::KEYS)]
    fold_case: bool,

    /// Hash every word with Argon2id too
    #[arg(long, help_heading = headings::KEYS)]
    slow: bool,

    /// Memory of Argon2id, to which its time is proportional [default: 19MiB]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = number::bytes,
        requires = "slow",
        help_heading = headings::KEYS
    )]
    cost: Option<u64>,

    /// Treat every line as a SHA-1 hash, with or without a count
    #[arg(long, conflicts_with_all = ["ntlm", "words"], help_heading = headings::INPUT)]
    sha1: bool,

    /// Treat every line as an NTLM hash, with or without a count
    #[arg(long, conflicts_with = "words", help_heading = headings::INPUT)]
    ntlm: bool,

    /// Treat every line as a word, even if it looks like a hash
    #[arg(long, help_heading = headings::INPUT)]
    words: bool,

    /// Leave out hashes with a lower count
    #[arg(
        long,
        value_name = "N",
        value_parser = number::count,
        default_value_t = 0,
        help_heading = headings::INPUT
    )]
    min_count: u64,

    #[command(flatten)]
    secrets: Secrets,

    /// Use a hash without a secret: anyone who has the filter can test words against it
    #[arg(long, conflicts_with = "key_file", help_heading = headings::SECRETS)]
    unsealed: bool,

    #[command(flatten)]
    writing: SaveArgs,
}

/// The minimum capacity without -n.
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
        // MD5 hashes have as many digits, and a filter of them would accept every password. Lists with
        // counts are those of the service, which has no MD5.
        if list.holds() == Lists::Hashes(Algorithm::Ntlm) && !args.ntlm && !list.has_counts() {
            bail!(
                "cannot use {name}: its lines have the 32 digits of NTLM hashes, but also of MD5 hashes, which cannot be used; give --ntlm if they are NTLM hashes, or --words if they are words"
            );
        }
        let digester = digester.get_or_insert_with(|| {
            if let Lists::Hashes(algorithm) = list.holds()
                && !args.fold_case
            {
                recipe.form = algorithm.form();
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
        bail!("no hash in the list has such a high count: give a lower --min-count");
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
                warn(format_args!("used the secret that was there, {}", path.display()));
            }
            SecretSource::New(_, path) => {
                let path = path.display();
                warn(format_args!("made a new secret, {path}: keep it safe, and apart from the filter"));
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
                "a filter of passwords is sealed: name it with -o, so that its secret can be stored beside it, or give --key-file"
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
        if self.words {
            Some(Lists::Words)
        } else if self.sha1 {
            Some(Lists::Hashes(Algorithm::Sha1))
        } else if self.ntlm {
            Some(Lists::Hashes(Algorithm::Ntlm))
        } else {
            None
        }
    }
}
