//! `umbel net attribute`: finds the hosts that exchanged an excerpt, or parts of a document.

use crate::args::headings;
use crate::input;
use crate::packets::document;
use crate::packets::findings::{self, count};
use crate::report::size;
use crate::terminal::exit;
use crate::terminal::output::warn;
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::ops::Bound;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::internals::hex;
use umbel_net::Error;
use umbel_net::attribution::{Answer, Store, Unread};
use umbel_net::capture::Timestamp;
use umbel_net::network::Prefix;
use umbel_net::rfc3339;

/// Find the hosts that exchanged an excerpt, in a store of `umbel net record`.
///
/// Each line is a pair of hosts: source, destination, the times between which the pair was active
/// in that epoch, the byte of the payload at which the excerpt begins, the number of whole blocks
/// that match, the number of bytes of the excerpt that could not be compared because they are not
/// part of a whole block, and the number of pairs that would match like this one by chance. Pairs
/// that carried the excerpt are always among them. In streams and long payloads the byte is known
/// up to a multiple, as in `96 mod 2048`. Pairs that were too many to be listed are shown as
/// `unlisted`.
///
/// --document reports which bytes of a file each pair carried, however the file was cut into
/// payloads. If the local networks are known, only destinations outside of them are reported: the
/// parts that left the network.
///
/// Only whole blocks are compared, so an excerpt must contain about two of them, and each further
/// block makes a match by chance a thousand times less likely. An excerpt that is too short is an
/// error. The exit code is 0 if a pair was found, 1 if none was, 2 after an error, or if none was
/// found and some epochs could not be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net attribute store --excerpt sentence.txt
  umbel net attribute store --excerpt sentence.txt --from 2001-09-09T01:00:00Z
  umbel net attribute store --document plans.pdf --local 192.0.2.0/24")]
pub struct Args {
    /// Directory of the store
    #[arg(value_name = "STORE")]
    store: PathBuf,

    /// Excerpt: the contents of FILE; `-` means standard input
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present_any = ["excerpt_hex", "document"],
        help_heading = headings::SEARCH
    )]
    excerpt: Option<PathBuf>,

    /// Excerpt in hexadecimal
    #[arg(long, value_name = "HEX", conflicts_with = "excerpt", help_heading = headings::SEARCH)]
    excerpt_hex: Option<String>,

    /// Report which parts of FILE were transferred; `-` means standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["excerpt", "excerpt_hex"],
        help_heading = headings::SEARCH
    )]
    document: Option<PathBuf>,

    /// Search only epochs that end at this time or later: 2026-01-31T12:00:00Z, 2026-01-31, or
    /// seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = rfc3339::parse, help_heading = headings::SEARCH)]
    from: Option<Timestamp>,

    /// Search only epochs that begin at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = rfc3339::parse, help_heading = headings::SEARCH)]
    to: Option<Timestamp>,

    /// Local network, whose addresses cannot be forged from outside (repeatable) [default: as
    /// recorded]
    #[arg(long, value_name = "NET", help_heading = headings::SEARCH)]
    local: Vec<Prefix>,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The maximum number of bytes read, so that an endless file does not fill the memory.
const MAX_EXCERPT_BYTES: u64 = 1 << 28;

pub fn run(args: &Args) -> Result<ExitCode> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        bail!("--from {from} is after --to {to}");
    }
    let bound = |time: Option<Timestamp>| time.map_or(Bound::Unbounded, Bound::Included);
    let times = (bound(args.from), bound(args.to));
    let sought = args.sought()?;
    let store = Store::open(&args.store)?;
    if args.document.is_some() {
        let answer = store.find_parts(&sought, times)?;
        let any = document::print(&answer, sought.len(), &args.local, args.json)?;
        return Ok(verdict(any, &answer));
    }
    let answer = store.find(&sought, times)?;
    let any = findings::print(&answer, &args.local, args.json)?;
    Ok(verdict(any, &answer))
}

/// Warns of epochs that could not be searched, and returns the exit code. If some could not be, a
/// search without a finding fails.
fn verdict<T>(any: bool, answer: &Answer<T>) -> ExitCode {
    let is_refusal = |unread: &&Unread| matches!(unread.error, Error::Filter(umbel::Error::Parameter { .. }));
    for unread in answer.unread.iter().filter(|unread| !is_refusal(unread)) {
        warn(format_args!("an epoch was left out: {:#}", unread.error));
    }
    let refused = answer.unread.iter().filter(is_refusal);
    if let Some(last) = refused.clone().next_back() {
        // All epochs that were recorded in the same way refuse with the same error.
        warn(format_args!("{} left out: {:#}", count(refused.count(), "epoch"), last.error));
    }
    if any || answer.unread.is_empty() { exit::found(any) } else { ExitCode::from(exit::FAILED) }
}

impl Args {
    /// Returns the bytes to search for.
    fn sought(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(path) = self.excerpt.as_ref().or(self.document.as_ref()) {
            let failed = || format!("cannot read {}", input::name(path));
            input::open_raw(path)?
                .take(MAX_EXCERPT_BYTES + 1)
                .read_to_end(&mut bytes)
                .with_context(failed)?;
            if bytes.len() as u64 > MAX_EXCERPT_BYTES {
                bail!("{} is too long: it has more than {}", input::name(path), size(MAX_EXCERPT_BYTES));
            }
        } else {
            let text = self.excerpt_hex.iter().flat_map(|text| text.bytes());
            let digits: Vec<u8> = text.filter(|byte| !byte.is_ascii_whitespace()).collect();
            let wrong = "--excerpt-hex is not hexadecimal: write two digits for each byte, as 0a1b2c";
            hex::decode(&digits, &mut bytes).context(wrong)?;
        }
        Ok(bytes)
    }
}
