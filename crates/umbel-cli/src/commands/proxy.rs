//! `umbel proxy`: a web cache that shares what it has with others.

use crate::args::number;
use crate::system::signals;
use crate::terminal::output;
use anyhow::{Context, Result, bail};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use umbel_cache::proxy::{AdmissionPolicy, Limits, Options, PeerUrl, Proxy};
use umbel_cache::store::{self, Store};
use umbel_net::network::Prefix;

/// Run a caching web proxy that shares what it has with others.
///
/// Programs use it when http_proxy says where it is. Pages that may be kept are kept in a folder, which outlives the program;
/// no other process can use it meanwhile. What may be kept, for how long and for whom is what HTTP says (RFC 9111).
///
/// Peers are other proxies of this kind, or Squids that tell what they have by cache digests. They tell each other every few
/// seconds what they have, a few bits for each page, and only what has changed. A page that is not here is asked for only
/// where it may be; a peer that does not have it after all costs a question, and one that is slow its time limit. Then the
/// origin is asked, as it is for pages that nobody has.
///
/// Squid can be a peer the other way round, too: cache_peer HOST sibling PORT 0 no-query, and both minimum_direct_rtt 0 and
/// minimum_direct_hops 0, or it goes straight to every origin that is near. It tells what it has only if it has a cache_dir, and
/// anew every digest_rebuild_period, which is an hour.
///
/// Only this machine can use it, unless --allow says otherwise. Who comes from elsewhere does not reach services that are
/// for this machine only, nor pages of theirs that were kept. Connections that programs make through it, with CONNECT, are
/// passed on as they are.
///
/// What it has done is at http://ADDRESS/umbel/, and in JSON at http://ADDRESS/umbel/stats. What goes wrong is told on
/// standard error. How a page was answered is in its header Cache-Status. PURGE removes a page, for those on this machine.
/// SIGTERM and SIGINT end it, after five seconds at most for those who are being answered; SIGHUP has it open its access log
/// anew.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 told to end, 2 something went wrong.")]
pub struct Args {
    /// Where to listen; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3128", value_parser = address)]
    listen: SocketAddr,

    /// The folder where pages are kept
    #[arg(long, value_name = "DIR")]
    cache_dir: PathBuf,

    /// Another proxy, as http://HOST:PORT (repeatable)
    #[arg(long, value_name = "URL")]
    peer: Vec<PeerUrl>,

    /// How often peers are asked what they have
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = number::time)]
    summary_every: Duration,

    /// The most bytes of pages on disk; each takes up to a block of the disk more
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = number::bytes)]
    max_cache: u64,

    /// No larger page is kept, and none that takes more than half of the cache
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = number::bytes)]
    max_object: u64,

    /// The most bytes of pages in memory, besides the headers of all that are kept
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = number::bytes)]
    memory: u64,

    /// Which pages are kept: all, or second-hit for those that were asked for before
    #[arg(long, value_name = "WHICH", default_value = "all", value_parser = ["all", "second-hit"], hide_possible_values = true)]
    admit: String,

    /// Who may use it besides this machine, as 192.0.2.0/24 or 2001:db8::/32 (repeatable)
    #[arg(long, value_name = "NET", value_parser = network)]
    allow: Vec<Prefix>,

    /// Another address for /umbel/ and /umbel/stats, which are then not where the proxy listens
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    manage: Option<SocketAddr>,

    /// A line for every answer is added to this file, in the form of Squid's access log; bytes are those of bodies, and tunnels
    /// have theirs when they begin
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,

    /// How long all peers together may take for one page
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = number::time)]
    peer_timeout: Duration,

    /// How long an origin may take to begin with its answer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = number::time)]
    origin_timeout: Duration,

    /// The most clients at once
    #[arg(long, value_name = "N", default_value = "1000", value_parser = number::count)]
    max_clients: u64,
}

const MIB: u64 = 1 << 20;
const DAY: Duration = Duration::from_secs(24 * 3600);

fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "an address is a host and a port, as 127.0.0.1:3128";
    text.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(|| wrong.into())
}

fn network(text: &str) -> Result<Prefix, String> {
    Prefix::parse(text).map(|(prefix, _)| prefix).map_err(|error| error.to_string())
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let options = args.options()?;
    let about =
        store::Options { max_bytes: args.max_cache, max_memory: args.memory, ..store::Options::default() };
    let store = Store::open(&args.cache_dir, &about)
        .with_context(|| format!("cannot keep pages in {}", args.cache_dir.display()))?;
    let stats = store.stats();
    raise_limit_of_files();
    let (terminate, until) = oneshot::channel();
    signals::on_termination(move || {
        // The receiver lives as long as the program.
        let _ = terminate.send(());
    })?;
    let runtime = Runtime::new().context("cannot start threads")?;
    runtime.block_on(async {
        let proxy = Proxy::bind(args.listen, store, options).await?;
        let address = proxy.address();
        output::message(format_args!("umbel: {} pages in {}", stats.responses, args.cache_dir.display()));
        if stats.damaged > 0 {
            output::warn(format_args!("{} damaged pages were removed", stats.damaged));
        }
        if !args.allow.is_empty() && address.ip().is_loopback() {
            output::warn("--allow is for those who come from elsewhere, and nobody can: --listen is for this machine only");
        }
        if let Some(log) = proxy.access_log() {
            signals::on_hangup(move || {
                if let Err(error) = log.reopen().map_err(anyhow::Error::from) {
                    output::warn(format_args!("the access log cannot be opened anew: {error:#}"));
                }
            })?;
        }
        if let Some(status) = proxy.status_address() {
            output::message(format_args!("umbel: what it does is shown at http://{status}/umbel/"));
        }
        output::message(format_args!("umbel: listening at http://{address}"));
        proxy
            .run(async {
                let _ = until.await;
            })
            .await;
        anyhow::Ok(())
    })?;
    // Do not wait for a name lookup or a file read in progress.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn options(&self) -> Result<Options> {
        for (name, time) in [
            ("--summary-every", self.summary_every),
            ("--peer-timeout", self.peer_timeout),
            ("--origin-timeout", self.origin_timeout),
        ] {
            if time.is_zero() || time > DAY {
                bail!("{name} needs some time, such as 1s, and a day at most");
            }
        }
        if self.max_cache < MIB {
            bail!("--max-cache needs 1MiB at least");
        }
        if self.manage.is_some_and(|manage| manage == self.listen && manage.port() > 0) {
            bail!("--manage needs another address than --listen");
        }
        if let Some(own) = self.peer.iter().find(|peer| peer.is(self.listen)) {
            bail!("--peer {own} is this proxy itself");
        }
        let max_clients =
            usize::try_from(self.max_clients).ok().filter(|count| (1..=1 << 20).contains(count));
        let max_clients = max_clients.context("--max-clients needs a number from 1 to 1048576")?;
        let allow = self.allow.clone();
        Ok(Options {
            peers: self.peer.clone(),
            summary_interval: self.summary_every,
            admission: if self.admit == "second-hit" {
                AdmissionPolicy::SecondHit
            } else {
                AdmissionPolicy::All
            },
            allow: Arc::new(move |ip| {
                ip.to_canonical().is_loopback() || allow.iter().any(|prefix| prefix.covers(ip))
            }),
            status_address: self.manage,
            access_log: self.access_log.clone(),
            limits: Limits {
                max_object_bytes: self.max_object.min(self.max_cache / 2),
                max_clients,
                peer_timeout: self.peer_timeout,
                origin_timeout: self.origin_timeout,
                digest_lifetime: self.summary_every,
                ..Limits::default()
            },
            log: Arc::new(|line| output::warn(line)),
        })
    }
}

/// Raises the limit of open files: clients, origins and stored responses each need some.
fn raise_limit_of_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without a higher limit, clients wait when there are too many.
    let _ = setrlimit(Resource::Nofile, limit);
}
