//! `umbel net attribute`: finds the hosts that exchanged an excerpt, or parts of a document.

use crate::args::headings;
use crate::input;
use crate::packets::document::PartsReport;
use crate::packets::findings::ExcerptReport;
use crate::packets::remote_store::RemoteStore;
use crate::packets::store_report::StoreReport;
use crate::report::{count, size};
use crate::terminal::exit;
use crate::terminal::output::{self, warn};
use anyhow::{Context, Result, bail};
use clap::ArgGroup;
use serde_json::{Value, json};
use std::io::Read;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel::internals::hex;
use umbel_net::Error;
use umbel_net::attribution::{Answer, Store, Unread};
use umbel_net::capture::Timestamp;
use umbel_net::network::Prefix;
use umbel_net::rfc3339;

/// Find the hosts that exchanged an excerpt, in stores of `umbel net record`.
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
/// Give the excerpt with --excerpt, --excerpt-hex or --document.
///
/// Several stores are searched one after the other, and a column names the store of each finding. A
/// store that cannot be searched is reported, and the others are searched nevertheless. HOST:PATH is
/// a store on another machine, where `umbel` searches it: ssh logs in, and the excerpt is sent
/// through its standard input.
///
/// Only whole blocks are compared, so an excerpt must contain about two of them, and each further
/// block makes a match by chance a thousand times less likely. An excerpt that is too short is an
/// error. The exit code is 0 if a pair was found, 1 if none was, 2 after an error, or if none was
/// found and some epochs could not be read. With several stores it is 2 if any of them could not be
/// searched completely.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("sought").required(true).args(["excerpt", "excerpt_hex", "document"])))]
#[command(after_help = "Examples:
  umbel net attribute store --excerpt sentence.txt
  umbel net attribute store --excerpt sentence.txt --from 2001-09-09T01:00:00Z
  umbel net attribute store --document plans.pdf --local 192.0.2.0/24
  umbel net attribute store probe.example:store --excerpt sentence.txt")]
pub struct Args {
    /// Directories of stores; HOST:PATH is a store on another machine
    #[arg(value_name = "STORE", required = true)]
    stores: Vec<PathBuf>,

    /// Excerpt: the contents of FILE; `-` means standard input
    #[arg(long, value_name = "FILE", help_heading = headings::SEARCH)]
    excerpt: Option<PathBuf>,

    /// Excerpt in hexadecimal
    #[arg(long, value_name = "HEX", help_heading = headings::SEARCH)]
    excerpt_hex: Option<String>,

    /// Report which parts of FILE were transferred; `-` means standard input
    #[arg(long, value_name = "FILE", help_heading = headings::SEARCH)]
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

    /// Program that runs a command on another machine, and its options, separated by spaces
    #[arg(long, value_name = "COMMAND", default_value = "ssh", help_heading = headings::SEARCH)]
    ssh: String,

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
    if args.document.is_some() {
        return search(args, &sought, |store| {
            let answer = Store::open(store)?.find_parts(&sought, times)?;
            args.warn_of_unread(store, &answer);
            Ok(PartsReport::new(&answer, &args.local))
        });
    }
    search(args, &sought, |store| {
        let answer = Store::open(store)?.find(&sought, times)?;
        args.warn_of_unread(store, &answer);
        Ok(ExcerptReport::new(&answer, &args.local))
    })
}

/// Searches all stores, those on this machine with `search_here`, and prints their findings.
fn search<R: StoreReport>(
    args: &Args,
    sought: &[u8],
    search_here: impl Fn(&Path) -> Result<R>,
) -> Result<ExitCode> {
    let (mut all, mut searched, mut is_complete) = (R::default(), Vec::new(), true);
    for store in &args.stores {
        let report = match RemoteStore::parse(store) {
            Ok(None) => search_here(store),
            Ok(Some(remote)) => search_there(args, store, &remote, sought),
            Err(error) => Err(error),
        };
        let (epochs, unread, error) = match report {
            Ok(mut report) => {
                if args.has_several() {
                    let name = store.display().to_string();
                    report.pairs().for_each(|pair| pair.store = Some(name.clone()));
                }
                let (epochs, unread) = report.epochs();
                all.merge(report);
                (epochs, unread, None)
            }
            Err(error) if args.has_several() => {
                output::error(format_args!("{error:#}"));
                (0, 0, Some(format!("{error:#}")))
            }
            Err(error) => return Err(error),
        };
        is_complete &= unread == 0 && error.is_none();
        searched.push(json!({
            "store": store.display().to_string(), "epochs_searched": epochs, "epochs_unread": unread, "error": error,
        }));
    }
    if args.json {
        let mut report = all.to_json(sought.len())?;
        if let (true, Value::Object(report)) = (args.has_several(), &mut report) {
            report.insert("stores".to_string(), searched.into());
        }
        output::json(&report)?;
    } else if searched.iter().any(|store| store["error"].is_null()) {
        all.print(sought.len())?;
    }
    // A finding in one store says nothing about the others.
    let is_answered = is_complete || all.any() && !args.has_several();
    Ok(if is_answered { exit::found(all.any()) } else { ExitCode::from(exit::FAILED) })
}

/// Searches a store on another machine.
fn search_there<R: StoreReport>(
    args: &Args,
    store: &Path,
    remote: &RemoteStore<'_>,
    sought: &[u8],
) -> Result<R> {
    let name = input::name(store);
    let failed = || format!("cannot search {name}");
    let (answer, messages) =
        remote.attribute(&args.ssh, &args.remote_arguments(), sought).with_context(failed)?;
    for message in messages {
        warn(format_args!("{name}: {message}"));
    }
    let report: R =
        serde_json::from_slice(&answer).context("the answer is not that of umbel").with_context(failed)?;
    report.check(sought.len()).with_context(failed)?;
    Ok(report)
}

impl Args {
    fn has_several(&self) -> bool {
        self.stores.len() > 1
    }

    /// Returns the arguments of the same search on another machine, with the excerpt on standard
    /// input.
    fn remote_arguments(&self) -> Vec<String> {
        let sought = if self.document.is_some() { "--document" } else { "--excerpt" };
        let mut arguments = vec!["--json".to_owned(), sought.to_owned(), "-".to_owned()];
        for (option, time) in [("--from", self.from), ("--to", self.to)] {
            arguments.extend(time.into_iter().flat_map(|time| [option.to_owned(), rfc3339::format(time)]));
        }
        arguments.extend(self.local.iter().flat_map(|net| ["--local".to_owned(), net.to_string()]));
        arguments
    }

    /// Warns of epochs that could not be searched.
    fn warn_of_unread<T>(&self, store: &Path, answer: &Answer<T>) {
        let is_refusal =
            |unread: &&Unread| matches!(unread.error, Error::Filter(umbel::Error::Parameter { .. }));
        for unread in answer.unread.iter().filter(|unread| !is_refusal(unread)) {
            warn(format_args!("an epoch was left out: {:#}", unread.error));
        }
        let refused = answer.unread.iter().filter(is_refusal);
        if let Some(last) = refused.clone().next_back() {
            // All epochs that were recorded in the same way refuse with the same error.
            let place =
                if self.has_several() { format!(" of {}", input::name(store)) } else { String::new() };
            warn(format_args!("{}{place} left out: {:#}", count(refused.count(), "epoch"), last.error));
        }
    }

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
