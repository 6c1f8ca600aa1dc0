//! `umbel net record`: records digests of payloads in a store.

use crate::args::{headings, names, number};
use crate::input::resolve;
use crate::packets::captures::{add_rows, each_packet_until_termination};
use crate::report::{Rows, percent, size};
use crate::system::random_seed;
use crate::terminal::output::{self, warn};
use anyhow::{Context, Result};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use umbel_net::attribution::{Epoch, Method, Recorded, Recorder, Settings, Store};
use umbel_net::capture::Counts;
use umbel_net::network::Prefix;

/// Record digests of payloads, so that their senders can be found later.
///
/// Payloads are cut into blocks, and digests of the blocks are stored in Bloom filters, with a list
/// of the pairs of hosts: usually less than a tenth of the payload. The payloads themselves are not
/// stored and cannot be restored. Each epoch becomes a file in the directory STORE, completely or
/// not at all; recording into an existing store adds epochs. `umbel net attribute` searches the
/// store.
///
/// A payload shorter than a block is not recorded. --streams reassembles TCP streams first, so that
/// text that was split into small packets is found too.
///
/// The first Ctrl-C or SIGTERM ends the recording after the current packet and saves it; a second
/// one ends the program at once.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net record capture.pcap -o store
  umbel net record --streams monday.pcapng.gz tuesday.pcapng.gz -o store
  tcpdump -w - | umbel net record - -o store --epoch 60s --local 192.0.2.0/24")]
pub struct Args {
    /// Captures in pcap or pcapng format, may be compressed with gzip; `-` means standard input
    #[arg(value_name = "CAPTURE", required = true)]
    captures: Vec<PathBuf>,

    /// `block` records blocks of equal size with their numbers; `hierarchical` also pairs of
    /// blocks, pairs of pairs and so on; `winnowing` records blocks whose ends depend on the
    /// content, in a fifth of the memory, for excerpts of 400 bytes and more
    #[arg(
        long,
        value_name = "METHOD",
        default_value_t = Method::default(),
        value_parser = names::method(),
        help_heading = headings::FILTER
    )]
    method: Method,

    /// Bytes per block; the maximum for winnowing [default: 32, or 64 for winnowing]
    #[arg(long, value_name = "BYTES", value_parser = number::bytes, help_heading = headings::FILTER)]
    block: Option<u64>,

    /// Stored bits per block, including the list of pairs [default: 25, or 2.5 for winnowing]
    #[arg(long, value_name = "BITS", help_heading = headings::FILTER)]
    bits_per_block: Option<f64>,

    /// winnowing: number of independent divisions into blocks [default: 2]
    #[arg(long, value_name = "N", help_heading = headings::FILTER)]
    instances: Option<u32>,

    /// Begin a new epoch after this time, such as 60s, 10m or 1h; `full` means only when one is
    /// full
    #[arg(
        long,
        value_name = "TIME",
        default_value = "full",
        value_parser = epoch_length,
        help_heading = headings::FILTER
    )]
    epoch: EpochLength,

    /// Bytes of payload that fill an epoch
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "64MiB",
        value_parser = number::bytes,
        help_heading = headings::FILTER
    )]
    full: u64,

    /// Maximum number of pairs listed in an epoch; more are recorded by their destination alone, so
    /// that a flood of forged sources does no harm
    #[arg(
        long,
        value_name = "N",
        default_value = "65536",
        value_parser = number::count,
        help_heading = headings::FILTER
    )]
    pairs: u64,

    /// Also record each block without its number, in an eighth of the filters' memory, so that
    /// `attribute` excludes most texts that were not sent with fewer lookups
    #[arg(long, help_heading = headings::FILTER)]
    block_digest: bool,

    /// Derive all seeds from this number [default: random]
    #[arg(long, value_name = "N", help_heading = headings::FILTER)]
    seed: Option<u64>,

    /// Reassemble TCP streams
    #[arg(long, help_heading = headings::INPUT)]
    streams: bool,

    /// Local network, whose addresses cannot be forged from outside; findings then include how far
    /// their source can be trusted (repeatable)
    #[arg(long, value_name = "NET", help_heading = headings::INPUT)]
    local: Vec<Prefix>,

    /// Directory of the store, created if it does not exist
    #[arg(short, long, value_name = "STORE", help_heading = headings::OUTPUT)]
    output: PathBuf,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The length of an epoch; `None` if it ends only when it is full.
#[derive(Clone, Copy)]
struct EpochLength(Option<Duration>);

fn epoch_length(text: &str) -> Result<EpochLength, String> {
    if text == "full" {
        return Ok(EpochLength(None));
    }
    let time = number::time(text).map_err(|error| format!("{error}, or as full"))?;
    Ok(EpochLength(Some(time)))
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let captures = resolve(&args.captures)?;
    let mut recorder = Recorder::new(args.settings(), args.seed.map_or_else(random_seed, Ok)?)?;
    let mut writer =
        EpochWriter { store: Store::create(&args.output)?, epochs: 0, bytes: 0, block_digest_bytes: 0 };
    let read = each_packet_until_termination(&captures, |packet| writer.save(recorder.record(packet)?));
    // Save the epoch at hand even after an error.
    let saved = recorder.finish().map_err(Into::into).and_then(|epoch| writer.save(epoch));
    if writer.epochs > 0 && read.is_err() {
        warn(format_args!("what was recorded before is in {}", args.output.display()));
    } else if saved.is_err()
        || !read.as_ref().is_ok_and(|counts| counts.iter().any(|counts| counts.frames > 0))
    {
        writer.store.remove_if_empty();
    }
    let counts = read?;
    saved?;
    report(args, &recorder, &writer, &counts)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn settings(&self) -> Settings {
        let settings = Settings::for_method(self.method);
        let usable = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Settings {
            block: self.block.map_or(settings.block, usable),
            bits_per_block: self.bits_per_block.unwrap_or(settings.bits_per_block),
            epoch: self.epoch.0,
            full: self.full,
            pairs: usable(self.pairs),
            streams: self.streams,
            local: self.local.clone(),
            instances: self.instances.unwrap_or(settings.instances),
            method: self.method,
            block_digest: self.block_digest,
        }
    }
}

/// Saves epochs to the store, and counts them.
struct EpochWriter {
    store: Store,
    epochs: u64,
    bytes: u64,
    /// The size of the block filters.
    block_digest_bytes: u64,
}

impl EpochWriter {
    fn save(&mut self, epoch: Option<Epoch>) -> Result<()> {
        let Some(epoch) = epoch else { return Ok(()) };
        let path = self.store.add(&epoch)?;
        self.epochs += 1;
        self.bytes += path.metadata().with_context(|| format!("cannot examine {}", path.display()))?.len();
        self.block_digest_bytes += epoch.block_filter().map_or(0, |filter| filter.stats().bytes);
        let unlisted = epoch.about().unlisted;
        if unlisted > 0 {
            warn(format_args!(
                "{}: {unlisted} payloads are of pairs that are too many to be listed, and are kept under their destination \
                 alone: forged sources, or see --pairs",
                path.display()
            ));
        }
        Ok(())
    }
}

fn report(args: &Args, recorder: &Recorder, writer: &EpochWriter, counts: &[Counts]) -> Result<()> {
    let Recorded { payloads, bytes, blocks, short, unlisted, backwards, .. } = *recorder.totals();
    let packets: u64 = counts.iter().map(|counts| counts.packets).sum();
    let skipped: u64 = counts.iter().map(|counts| counts.skipped.total()).sum();
    let share = if bytes > 0 { writer.bytes as f64 / bytes as f64 } else { 0.0 };
    let streams = recorder.streams();
    if args.json {
        return output::json(&json!({
            "packets": packets, "skipped": skipped, "payloads": payloads, "payload_bytes": bytes, "blocks": blocks,
            "short_payloads": short, "unlisted_payloads": unlisted, "clock_backwards": backwards,
            "epochs": writer.epochs, "store_bytes": writer.bytes, "share": share,
            "block_digest_bytes": args.block_digest.then_some(writer.block_digest_bytes),
            "streams": streams.map(|counts| json!({
                "streams": counts.streams, "gaps": counts.gaps, "missing_bytes": counts.missing,
                "repeated_bytes": counts.repeated, "evicted": counts.evicted,
            })),
        }));
    }
    let mut rows = Rows::default();
    add_rows(&mut rows, counts);
    rows.add("payload", format!("{} in {payloads}", size(bytes)));
    if short > 0 {
        rows.add("too short", format!("{short}, which leave nothing behind"));
    }
    if let Some(counts) = streams {
        rows.add("streams", counts.streams);
        rows.add("missing in them", format!("{} at {} places", size(counts.missing), counts.gaps));
    }
    rows.add("blocks", blocks);
    rows.add("epochs", writer.epochs);
    rows.add("store", format!("{}, {} of the payload", size(writer.bytes), percent(share)));
    if args.block_digest {
        rows.add("block digest", format!("{} of the store", size(writer.block_digest_bytes)));
    }
    output::text(rows)
}
