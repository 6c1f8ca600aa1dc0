//! `umbel net trace ask`: traces a packet upstream.

use crate::args::{headings, number};
use crate::input::name;
use crate::packets::captures::one_packet;
use crate::packets::paths::{self, Inquiry};
use crate::packets::store_report::whole_seconds;
use crate::report::other_names;
use crate::terminal::exit;
use crate::terminal::output::warn;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use umbel_net::capture::Timestamp;
use umbel_net::rfc3339;
use umbel_net::topology::Graph;
use umbel_net::traceback::store::{Contents, Store};

/// Find the routers that a packet came through, in a store of `umbel net trace record`.
///
/// Each line is a path, from the router of the victim upstream to the router where the packet may
/// have entered the network: `R4 <- R3 <- R1` means from R1 over R3 to R4. A router that changed the
/// packet is followed by the change: `R3 (translated)`. The true path is always among the lines, if
/// its routers recorded all packets. Routers that match by chance open further paths; the last
/// message has the expected number of them.
///
/// The packet is searched for around its time of capture, since clocks differ. A router without
/// pages of that time cannot answer, and is named in a message.
///
/// The topology is an edge list (`A B` in each line, `#` begins a comment) or GraphML, with the names
/// that the routers have in the store. The exit code is 0 if a path was found, 1 if no router
/// forwarded the packet, 2 after an error, or if a page is damaged.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net trace ask spie --packet attack.pcap --topology net --at R4
  umbel net trace ask spie --packet all.pcap --number 17 --topology net --at R4
  umbel net trace ask spie --packet r1.pcap --topology net --at R4 --within 5m
  umbel net trace ask spie --packet r1.pcap --topology net --at R4 --json")]
pub struct Args {
    /// Directory of the store
    #[arg(value_name = "STORE")]
    store: PathBuf,

    /// Capture that has the packet: its first one, or see --number
    #[arg(long, value_name = "CAPTURE", help_heading = headings::SEARCH)]
    packet: PathBuf,

    /// Number of the packet's frame in the capture, from 1
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = headings::SEARCH
    )]
    number: Option<u64>,

    /// Links between the routers: an edge list or GraphML
    #[arg(long, value_name = "FILE", help_heading = headings::SEARCH)]
    topology: PathBuf,

    /// Router of the victim, which is asked first
    #[arg(long, value_name = "ROUTER", help_heading = headings::SEARCH)]
    at: String,

    /// Time of the packet: 2026-01-31T12:00:00Z, or seconds since 1970 [default: time of capture]
    #[arg(long, value_name = "TIME", value_parser = rfc3339::parse, help_heading = headings::SEARCH)]
    time: Option<Timestamp>,

    /// Search pages up to this long before and after the time of the packet
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        value_parser = number::time,
        help_heading = headings::SEARCH
    )]
    within: Duration,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let packet = one_packet(&args.packet, args.number)?;
    let graph = Graph::open(&args.topology)?;
    let store = Store::open(&args.store)?;
    let victim = args.victim(&graph, &store)?;
    let time = args.time.unwrap_or(packet.time).nanos();
    let within = u64::try_from(args.within.as_nanos()).unwrap_or(u64::MAX);
    let times = Timestamp::from_nanos(time.saturating_sub(within))
        ..=Timestamp::from_nanos(time.saturating_add(within));
    let trace = store.trace(&graph, victim, packet.digest, times.clone())?;
    if trace.silent.contains(&victim) && trace.unread.is_empty() {
        bail!(
            "{} recorded nothing from {} to {}, so nothing is known of the packet: give its time with --time, or a \
             longer --within",
            args.at,
            whole_seconds(*times.start(), 0),
            whole_seconds(*times.end(), 999_999_999)
        );
    }
    let inquiry = Inquiry { graph: &graph, victim, packet: &packet, times, trace: &trace };
    let any = paths::print(&inquiry, args.json)?;
    for unread in &trace.unread {
        warn(format_args!("a page was left out: {:#}", unread.error));
    }
    Ok(if trace.unread.is_empty() { exit::found(any) } else { ExitCode::from(exit::FAILED) })
}

impl Args {
    /// Returns the router of the victim. Fails if the names in the store and in the topology differ,
    /// since the trace would then end too early.
    fn victim(&self, graph: &Graph, store: &Store) -> Result<usize> {
        let topology = name(&self.topology);
        let names: Vec<&str> = (0..graph.len()).map(|node| graph.name(node)).collect();
        let Contents { pages, unread } = store.contents()?;
        let routers: BTreeSet<&str> = pages.iter().map(|(_, about)| about.router.as_str()).collect();
        let Some(victim) = graph.find(&self.at) else {
            bail!("--at: {topology} has no router {}; {}", self.at, other_names(&self.at, &names));
        };
        if let Some(unknown) = routers.iter().find(|router| graph.find(router).is_none()) {
            bail!(
                "{topology} has no router {unknown}, which has recorded into {}: use the same names in both; {}",
                name(&self.store),
                other_names(unknown, &names)
            );
        }
        // A page that cannot be read may be one of this router; the trace reports it.
        if !routers.contains(self.at.as_str()) && unread.is_empty() {
            bail!(
                "--at: {} has recorded nothing into {}; {}",
                self.at,
                name(&self.store),
                other_names(&self.at, &Vec::from_iter(routers))
            );
        }
        Ok(victim)
    }
}
