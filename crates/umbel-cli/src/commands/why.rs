//! `umbel why`: shows how a filter answers for one key.

use crate::args::headings;
use crate::filters::{ForeignArgs, Opening, Secrets, check_plain, is_not_a_filter};
use crate::report::{Columns, Rows, printable};
use crate::system::clock;
use crate::terminal::exit::found;
use crate::terminal::output;
use anyhow::{Result, bail};
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::foreign::{self, ForeignFilter, Format};
use umbel::internals::Probe;
use umbel::kind::Category;
use umbel::sharded::{shard_name, shard_of};
use umbel::{Key, Kind};

/// Show how a filter answers for one key.
///
/// Prints the digest of the key and the cells of the filter that are read for it, in that order.
/// For a filter of bits, these are the bits of the key up to the first zero, which proves that the
/// key was not added. In a filter in shards, the cells are those of the shard that the key belongs
/// to. The exit code is 0 if the key may be in the filter, 1 if it is not.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel why words.umbel banana
  umbel why --json words.umbel banana
  umbel why seen.shards banana
  umbel why --format guava --funnel utf8 users.bloom alice")]
pub struct Args {
    /// Filter to query
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Key, as it would appear on a line
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    key: OsString,

    #[command(flatten)]
    foreign: ForeignArgs,

    #[command(flatten)]
    secrets: Secrets,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The answer of a filter for a key and its reasons, with the field names that scripts rely on.
#[derive(Serialize)]
pub struct Explanation {
    key: String,
    /// The kind of a filter of umbel.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The format of a filter of another program.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The file of the shard that the key belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
    probes: Vec<ProbeRow>,
    member: bool,
    /// The number of the first probe that found a zero, from 1, where cells are bits.
    first_zero: Option<usize>,
    #[serde(skip)]
    decided_by: DecidedBy,
}

/// How the answer follows from the probes.
enum DecidedBy {
    /// All probes must match; the first that does not decides.
    All,
    /// All probes of one of several filters must match.
    AnyFilter,
    /// All probes of one link of a chain must match.
    AnyLink,
    /// One matching probe suffices.
    Any,
    /// The XOR of all probes and a mask of the key must be zero.
    Xor,
}

impl From<Kind> for DecidedBy {
    fn from(kind: Kind) -> DecidedBy {
        match kind {
            Kind::Scalable | Kind::Aging => DecidedBy::AnyFilter,
            Kind::Cuckoo | Kind::Quotient => DecidedBy::Any,
            Kind::Fuse => DecidedBy::Xor,
            _ => DecidedBy::All,
        }
    }
}

#[derive(Serialize)]
struct ProbeRow {
    /// The section of the filter's memory, if there are several.
    #[serde(skip_serializing_if = "is_first")]
    section: usize,
    /// The position in the section, in bits.
    bit: u64,
    /// The number of bits read, if not one.
    #[serde(skip_serializing_if = "is_one")]
    bits: u64,
    /// The cache line of 512 bits that holds the position.
    line: u64,
    value: u64,
}

impl ProbeRow {
    fn from_foreign(probe: &foreign::Probe) -> ProbeRow {
        let foreign::Probe { link, bit, set, .. } = *probe;
        ProbeRow { section: link, bit, bits: 1, line: bit / 512, value: set.into() }
    }
}

fn is_first(section: &usize) -> bool {
    *section == 0
}

fn is_one(bits: &u64) -> bool {
    *bits == 1
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let explanation = explanation(&args.filter, args.key.as_bytes(), &args.foreign, &args.secrets)?;
    if explanation.format.is_none() {
        args.foreign.check_own(&args.filter)?;
    }
    if args.json {
        output::json(&explanation)?;
    } else {
        output::text(&explanation)?;
    }
    Ok(found(explanation.member))
}

/// Explains the answer of a filter, of umbel or of another program.
pub fn explanation(
    filter: &Path,
    key: &[u8],
    foreign: &ForeignArgs,
    secrets: &Secrets,
) -> Result<Explanation> {
    if filter.is_dir() {
        return explain_shard(filter, key, secrets);
    }
    match explain_own(filter, key, secrets) {
        Err(error) if is_not_a_filter(&error) => {
            explain_foreign(&foreign.open_instead(filter, error, Opening::Loaded)?, key)
        }
        explanation => explanation,
    }
}

fn explain_own(filter: &Path, key: &[u8], secrets: &Secrets) -> Result<Explanation> {
    check_plain(filter)?;
    let mut filter = secrets.map_verified(filter, Category::Set)?.filter;
    filter.advance(clock::now())?;
    explain(&filter, key)
}

fn explain_shard(filter: &Path, key: &[u8], secrets: &Secrets) -> Result<Explanation> {
    let filter = secrets.open_shards(filter)?;
    let shard = shard_of(key.digest(filter.hasher()), filter.shards().len());
    let explanation = explain(filter.shards()[shard].verified()?, key)?;
    Ok(Explanation { shard: Some(shard_name(shard)), ..explanation })
}

fn explain(filter: &Stored, key: &[u8]) -> Result<Explanation> {
    let mut probes = Vec::new();
    let (hash, digest, member) = match filter {
        Stored::Set(filter) => {
            let digest = key.digest(filter.hasher());
            let member = filter.trace(digest, &mut |probe| {
                probes.push(probe);
                Ok(())
            })?;
            (filter.hasher().id().to_string(), Some(format!("{:016x}", digest.get())), member)
        }
        Stored::Literature(filter) => {
            for bit in filter.scheme().positions(key) {
                probes.push(Probe { section: 0, bits: bit..bit + 1 });
                if probes.last().is_some_and(|probe| probe.value(filter.words()) == 0) {
                    break;
                }
            }
            (filter.scheme().family().to_string(), None, filter.contains(key))
        }
        _ => bail!("a {} filter cannot explain itself", filter.kind()),
    };
    let sections = filter.sections();
    let row = |probe: &Probe| {
        let Probe { section, bits } = probe;
        let value = probe.value(sections[*section]);
        ProbeRow {
            section: *section,
            bit: bits.start,
            bits: bits.end - bits.start,
            line: bits.start / 512,
            value,
        }
    };
    let probes: Vec<ProbeRow> = probes.iter().map(row).collect();
    let zero = probes.iter().position(|row| row.bits == 1 && row.value == 0);
    let first_zero = zero.filter(|_| !member).map(|row| row + 1);
    Ok(Explanation {
        key: printable(key),
        kind: Some(filter.kind().to_string()),
        format: None,
        hash,
        digest,
        shard: None,
        probes,
        member,
        first_zero,
        decided_by: filter.kind().into(),
    })
}

/// Explains the answer of a filter that another program wrote, with its own numbers of bits.
fn explain_foreign(filter: &ForeignFilter, key: &[u8]) -> Result<Explanation> {
    let member = filter.contains(key)?;
    let (probes, format) = (filter.probes(key)?, filter.format());
    let mut rows = Vec::new();
    for link in probes.chunk_by(|probe, next| probe.link == next.link) {
        let zero = link.iter().position(|probe| !probe.set);
        rows.extend(link[..zero.map_or(link.len(), |zero| zero + 1)].iter().map(ProbeRow::from_foreign));
        if zero.is_none() {
            break;
        }
    }
    let is_chain = format == Format::RedisBloom;
    let first_zero = (!member && !is_chain).then_some(rows.len());
    Ok(Explanation {
        key: printable(key),
        kind: None,
        format: Some(format.to_string()),
        hash: format.hash_name().to_string(),
        digest: None,
        shard: None,
        probes: rows,
        member,
        first_zero,
        decided_by: if is_chain { DecidedBy::AnyLink } else { DecidedBy::All },
    })
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rows = Rows::default();
        rows.add("key", &self.key);
        let name = self.kind.as_ref().or(self.format.as_ref()).map_or("", String::as_str);
        rows.add("filter", format!("{name}, {}", self.hash));
        if let Some(digest) = &self.digest {
            rows.add("digest", digest);
        }
        if let Some(shard) = &self.shard {
            rows.add("shard", shard);
        }
        rows.fmt(f)?;
        let bits = self.probes.iter().all(|row| row.bits == 1 && row.section == 0);
        let heading: &[&str] = if bits {
            &["probe", "bit", "line", "value"]
        } else {
            &["probe", "part", "bit", "bits", "line", "value"]
        };
        let mut table = Columns::new(heading);
        for (number, row) in self.probes.iter().enumerate() {
            let (number, part) = (number as u64 + 1, row.section as u64 + 1);
            let cells = if bits {
                vec![number, row.bit, row.line, row.value]
            } else {
                vec![number, part, row.bit, row.bits, row.line, row.value]
            };
            table.add(cells.iter().map(ToString::to_string).collect());
        }
        table.fmt(f)?;
        let (count, cells) = (self.probes.len(), self.probes.iter().any(|row| row.bits > 1));
        match (&self.decided_by, self.member) {
            (DecidedBy::All, true) if cells => writeln!(f, "may be a member: all {count} cells allow it"),
            (DecidedBy::All, true) => writeln!(f, "may be a member: all {count} bits are set"),
            (DecidedBy::All, false) if cells => {
                writeln!(f, "certainly not a member: the cell of probe {count} excludes it")
            }
            (DecidedBy::All, false) => writeln!(f, "certainly not a member: probe {count} finds a zero"),
            (DecidedBy::AnyFilter, true) => {
                let part = self.probes.last().map_or(1, |row| row.section + 1);
                writeln!(f, "may be a member: all its bits in part {part} are set")
            }
            (DecidedBy::AnyFilter, false) => {
                writeln!(
                    f,
                    "certainly not a member: in every part that is not forgotten, a bit of it is zero"
                )
            }
            (DecidedBy::AnyLink, true) => {
                let link = self.probes.last().map_or(1, |row| row.section + 1);
                writeln!(f, "may be a member: all its bits in link {link} of the chain are set")
            }
            (DecidedBy::AnyLink, false) => {
                writeln!(f, "certainly not a member: in every link of the chain, a bit of it is zero")
            }
            (DecidedBy::Any, true) => writeln!(f, "may be a member, by the last of {count} probes"),
            (DecidedBy::Any, false) => {
                writeln!(f, "certainly not a member: none of the {count} probes fits")
            }
            (DecidedBy::Xor, true) => {
                writeln!(f, "may be a member: its {count} cells and its mask, xored, are 0")
            }
            (DecidedBy::Xor, false) => {
                writeln!(f, "certainly not a member: its {count} cells and its mask, xored, are not 0")
            }
        }
    }
}
