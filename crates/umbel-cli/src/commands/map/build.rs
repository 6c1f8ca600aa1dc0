//! `umbel map build`: builds a map from pairs of keys and values.

use crate::args::{headings, names, number};
use crate::filters::budget::{self, MemoryLimit};
use crate::filters::construct::{append, with_progress};
use crate::filters::{DEFAULT_RATE, HashArgs, SaveArgs, SizeArgs};
use crate::input::PairArgs;
use crate::maps::{KeptInput, ValueSpec, Values, explain_conflict, read_pairs, value_spec};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::bloomier::CodeBook;
use umbel::hash::Strength;
use umbel::spec::{Construction, KindOptions, plan};
use umbel::{AnyMap, Hasher, Kind, Spec};

/// Build a map from lines with a key, a tab and a value.
///
/// The value is the rest of the line after the first tab. Repeated lines count once; a key with two
/// different values is an error that names it, and nothing is written. Non-negative integers
/// without leading zeros are stored as integers, unless they are few and long; any other value is
/// stored once and numbered. All pairs are held in memory, 16 bytes each, until the map is built.
/// No key can be added later; with --mutable, values can be changed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel map build -o countries.umbel addresses.tsv    # 192.0.2.7<tab>NL
  umbel map build --values 0..255 -p 0.1% -o scores.umbel scores.tsv.gz
  umbel map build --mutable --values free,taken -o seats.umbel < seats.tsv")]
pub struct Args {
    /// Share of absent keys that get a value nevertheless [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, help_heading = headings::FILTER)]
    fpr: Option<f64>,

    /// Number of bits, or a size in bytes such as 64MiB, which determines the rate
    #[arg(short = 'm', long, value_name = "BITS", value_parser = number::bits, help_heading = headings::FILTER)]
    bits: Option<u64>,

    /// Kind of map
    #[arg(
        long,
        default_value_t = Kind::Bloomier,
        value_parser = names::map_kind(),
        help_heading = headings::FILTER
    )]
    kind: Kind,

    /// Allow `umbel map set` to change values; the same as --kind bloomier-mutable
    #[arg(long, conflicts_with = "kind", help_heading = headings::FILTER)]
    mutable: bool,

    /// All possible values: a list such as red,green,blue, or @FILE with one per line, or 0..N for
    /// the integers up to N. A mutable map can only be set to these later (default: the values in
    /// the input)
    #[arg(long, value_name = "LIST|@FILE|0..N", value_parser = value_spec, help_heading = headings::FILTER)]
    values: Option<ValueSpec>,

    /// Maximum size of the map; an error if -p needs more, otherwise it determines the rate
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = number::bytes,
        conflicts_with = "bits",
        help_heading = headings::FILTER
    )]
    max_bytes: Option<u64>,

    /// Hash of the keys
    #[arg(long, value_parser = names::strength(), help_heading = headings::FILTER)]
    hash: Option<Strength>,

    #[command(flatten)]
    input: PairArgs,

    #[command(flatten)]
    hashing: HashArgs,

    #[command(flatten)]
    writing: SaveArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let inputs = args.input.keys();
    let values = args.values.as_ref().and_then(ValueSpec::file);
    let inputs: Vec<PathBuf> = inputs.files().iter().cloned().chain(values).collect();
    let meta = args.writing.check(&inputs, &args.hashing.secrets)?;
    args.writing.write(&args.build()?, meta, args.hashing.embed_key)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Returns the limit of --max-bytes, and the part of it that the names of values take.
    fn limit(&self, book: Option<&CodeBook>) -> Option<MemoryLimit> {
        let names: u64 = book.map_or(0, |book| book.iter().map(|name| name.len() as u64 + 8).sum());
        self.max_bytes.map(|bytes| MemoryLimit { bytes, overhead: names.next_multiple_of(64) })
    }

    /// Returns the spec of a map with `count` keys and values up to `largest`.
    fn spec(&self, count: u64, largest: Option<u64>, hasher: &Hasher) -> Result<Spec> {
        let mut options = KindOptions::default();
        options.bloomier.largest = largest;
        let size = SizeArgs { bits: self.bits, hashes: None };
        let spec = Spec::from_given(size.given(Some(count), self.fpr, Some(DEFAULT_RATE)))?;
        Ok(spec.with_hasher(hasher.clone()).with_options(options))
    }

    fn build(&self) -> Result<Stored> {
        let hasher = self.hashing.hasher(self.hash)?;
        let kind = if self.mutable { Kind::BloomierMutable } else { self.kind };
        let (input, mut values) = (self.input.keys(), Values::new(self.values.as_ref())?);
        // Fail for mistaken options before the lines are read.
        plan(kind, &self.spec(1, Some(values.largest()), &hasher)?)?;
        let kept = KeptInput::new(&input);
        let mut pairs = Vec::new();
        read_pairs(
            input.open()?,
            &self.input,
            &hasher,
            &mut values,
            |records| kept.copy(records),
            |values, block, copy, _| {
                kept.keep(copy);
                let numbers = values.numbers(block, &mut pairs);
                append(&mut pairs, block.pairs(&numbers))
            },
        )?;
        if pairs.is_empty() {
            bail!("there are no pairs: a map is made from lines of a key, a tab and a value");
        }
        let (largest, book) = values.finish(&mut pairs)?;
        if self.max_bytes.is_some() {
            // The rate that fits depends on the number of distinct pairs.
            pairs.sort_unstable();
            pairs.dedup();
        }
        let named = book.as_ref().map(|book| book.len() - 1);
        let found = || pairs.iter().map(|(_, value)| *value).max();
        let count = pairs.len() as u64;
        let spec = self.spec(count, largest.or(named).or_else(found), &hasher)?;
        let spec = budget::fit(kind, spec, self.limit(book.as_ref()), self.fpr)?;
        let build =
            |construction: &Construction<'_>| AnyMap::from_pairs(kind, &spec, pairs, book, construction);
        match with_progress(input.threads(), count, build) {
            Err(umbel::Error::Conflict { digest, values: numbers }) => {
                let values = numbers.map(|number| values.name(number));
                Err(explain_conflict(&self.input, &hasher, digest, &kept, values)?)
            }
            map => Ok(map?.into()),
        }
    }
}
