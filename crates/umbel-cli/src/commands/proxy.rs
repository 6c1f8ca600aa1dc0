//! `umbel proxy`: a caching web proxy that shares its cache with peers.

use crate::args::{headings, number};
use crate::system::{raise_limit_of_files, signals};
use crate::terminal::output;
use anyhow::{Context, Result, bail};
use rustix::system::uname;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use umbel_cache::proxy::{AdmissionPolicy, HTTPS_PORT, Limits, Options, PeerUrl, Proxy};
use umbel_cache::store::{self, Store};
use umbel_net::network::Prefix;

/// Run a caching web proxy that shares its cache with peers.
///
/// Programs use the proxy if the environment variable http_proxy is its address. Responses are
/// stored in a directory that survives a restart; only one process at a time can use it. Storage
/// follows the rules of HTTP caching (RFC 9111).
///
/// Peers are other umbel proxies, or Squid proxies that publish cache digests. Every few seconds,
/// peers exchange summaries of their caches, a few bits per stored response, and only the changes.
/// A request that cannot be answered from the cache goes only to peers that may have the response.
/// A peer that does not have it after all costs one request, and a slow one its time limit; then
/// the request goes to the origin, as it does for responses that no peer has.
///
/// Squid can use this proxy as a peer with cache_peer HOST sibling PORT 0 no-query, and both
/// minimum_direct_rtt 0 and minimum_direct_hops 0; otherwise it contacts nearby origins directly.
/// It publishes a digest only if it has a cache_dir, and rebuilds it every digest_rebuild_period,
/// by default an hour.
///
/// Peers are trusted: the first client gets the response of a peer as it is. The origin has to
/// confirm it before it is reused, and it is fresh for ten minutes at most.
///
/// Only this machine can use the proxy, unless --allow is given. Clients on other machines cannot
/// reach services that are only for this machine or its provider, such as loopback, link-local,
/// metadata, unique local (fc00::/7) and carrier-grade NAT (100.64.0.0/10) addresses, nor stored
/// responses of them. CONNECT tunnels lead to port 443 and are forwarded unchanged.
///
/// A client address, or an IPv6 network of 64 bits, gets a place as long as it has fewer than are
/// free: half of them if it is alone. A client without a place waits for three seconds and gets the
/// status 503.
///
/// Statistics are at http://ADDRESS/umbel/, and in JSON at http://ADDRESS/umbel/stats. Errors are
/// printed on standard error. The Cache-Status header explains each response. PURGE removes a
/// stored response, if it comes from this machine. SIGTERM and SIGINT stop the proxy, after at most
/// five seconds for requests in progress; SIGHUP reopens the access log.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel proxy --cache-dir cache
  umbel proxy --cache-dir cache --peer http://10.0.0.2:3128 --max-cache 10GiB
  umbel proxy --cache-dir cache --listen 0.0.0.0:3128 --allow 192.0.2.0/24

Exit codes: 0 stopped by a signal, 2 an error occurred.")]
pub struct Args {
    /// Address to listen on; port 0 means any free port
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:3128",
        value_parser = address,
        help_heading = headings::SERVER
    )]
    listen: SocketAddr,

    /// Network that may use the proxy besides this machine, such as 192.0.2.0/24 or 2001:db8::/32
    /// (repeatable)
    #[arg(long, value_name = "NET", value_parser = network, help_heading = headings::SERVER)]
    allow: Vec<Prefix>,

    /// Port to which CONNECT may open tunnels besides 443 (repeatable)
    #[arg(
        long,
        value_name = "PORT",
        value_parser = clap::value_parser!(u16).range(1..),
        help_heading = headings::SERVER
    )]
    connect_port: Vec<u16>,

    /// Name under which clients and peers reach this proxy, besides its IP addresses, the name of
    /// this machine and names without dots (repeatable); pages of the proxy itself are not served
    /// under other names
    #[arg(long, value_name = "HOST", help_heading = headings::SERVER)]
    name: Vec<String>,

    /// Maximum number of clients at a time, without tunnels; one address gets at most half of them
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        value_parser = number::count,
        help_heading = headings::SERVER
    )]
    max_clients: u64,

    /// Maximum number of tunnels at a time, which are shared in the same way; by default as many as
    /// clients
    #[arg(long, value_name = "N", value_parser = number::count, help_heading = headings::SERVER)]
    max_tunnels: Option<u64>,

    /// Bytes per second, averaged over a minute, below which clients and origins that send or accept
    /// a body are disconnected; 0 limits only pauses, which event streams need
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1KiB",
        value_parser = number::bytes,
        help_heading = headings::SERVER
    )]
    min_rate: u64,

    /// Time limit for the first byte of an origin's response
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        value_parser = number::time,
        help_heading = headings::SERVER
    )]
    origin_timeout: Duration,

    /// Serve /umbel/ and /umbel/stats at this address instead of --listen
    #[arg(long, value_name = "ADDRESS", value_parser = address, help_heading = headings::SERVER)]
    manage: Option<SocketAddr>,

    /// Append a line for every response to FILE, in the format of Squid's access log; sizes are
    /// those of bodies, and a tunnel is logged when it begins
    #[arg(long, value_name = "FILE", help_heading = headings::SERVER)]
    access_log: Option<PathBuf>,

    /// Directory of stored responses
    #[arg(long, value_name = "DIR", help_heading = headings::CACHE)]
    cache_dir: PathBuf,

    /// Maximum bytes of responses on disk; each takes up to one disk block more
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1GiB",
        value_parser = number::bytes,
        help_heading = headings::CACHE
    )]
    max_cache: u64,

    /// Maximum size of a stored response, which is also limited to half of the cache
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256MiB",
        value_parser = number::bytes,
        help_heading = headings::CACHE
    )]
    max_object: u64,

    /// Maximum bytes of responses in memory, besides the headers of all stored ones
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64MiB",
        value_parser = number::bytes,
        help_heading = headings::CACHE
    )]
    memory: u64,

    /// Responses to store: all, or second-hit for those that were requested before
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "all",
        value_parser = ["all", "second-hit"],
        hide_possible_values = true,
        help_heading = headings::CACHE
    )]
    admit: String,

    /// Another proxy, as http://HOST:PORT (repeatable)
    #[arg(long, value_name = "URL", help_heading = headings::PEERS)]
    peer: Vec<PeerUrl>,

    /// Interval at which summaries of peers are fetched
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5s",
        value_parser = number::time,
        help_heading = headings::PEERS
    )]
    summary_every: Duration,

    /// Time limit of all peers together for one request
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1s",
        value_parser = number::time,
        help_heading = headings::PEERS
    )]
    peer_timeout: Duration,
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
        .with_context(|| format!("cannot store responses in {}", args.cache_dir.display()))?;
    let stats = store.stats();
    check_limit_of_files(&options.limits);
    let (terminate, until) = oneshot::channel();
    signals::on_termination(move || {
        // The receiver lives as long as the program.
        let _ = terminate.send(());
    })?;
    let runtime = Runtime::new().context("cannot start threads")?;
    runtime.block_on(async {
        let proxy = Proxy::bind(args.listen, store, options).await?;
        let address = proxy.address();
        output::message(format_args!(
            "umbel: {} stored responses in {}",
            stats.responses,
            args.cache_dir.display()
        ));
        if stats.damaged > 0 {
            output::warn(format_args!("{} damaged responses were removed", stats.damaged));
        }
        if !args.allow.is_empty() && address.ip().is_loopback() {
            output::warn("--allow has no effect: --listen accepts only connections from this machine");
        }
        if let Some(log) = proxy.access_log() {
            signals::on_hangup(move || {
                if let Err(error) = log.reopen().map_err(anyhow::Error::from) {
                    output::warn(format_args!("the access log cannot be reopened: {error:#}"));
                }
            })?;
        }
        if let Some(status) = proxy.status_address() {
            output::message(format_args!("umbel: statistics at http://{status}/umbel/"));
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
                bail!("{name} needs a time above 0, such as 1s, and at most a day");
            }
        }
        if self.max_cache < MIB {
            bail!("--max-cache needs at least 1MiB");
        }
        if self.manage.is_some_and(|manage| manage == self.listen && manage.port() > 0) {
            bail!("--manage needs another address than --listen");
        }
        if let Some(own) = self.peer.iter().find(|peer| peer.is(self.listen)) {
            bail!("--peer {own} is this proxy itself");
        }
        let max_clients = places("--max-clients", self.max_clients)?;
        let max_tunnels = places("--max-tunnels", self.max_tunnels.unwrap_or(self.max_clients))?;
        let machine = uname();
        let machine = machine.nodename().to_str().ok().map(str::to_owned);
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
            connect_ports: self.connect_port.iter().copied().chain([HTTPS_PORT]).collect(),
            names: self.name.iter().cloned().chain(machine).collect(),
            status_address: self.manage,
            access_log: self.access_log.clone(),
            limits: Limits {
                max_object_bytes: self.max_object.min(self.max_cache / 2),
                max_clients,
                max_tunnels,
                min_bytes_per_second: self.min_rate,
                peer_timeout: self.peer_timeout,
                origin_timeout: self.origin_timeout,
                digest_lifetime: self.summary_every,
                ..Limits::default()
            },
            log: Arc::new(|line| output::warn(line)),
        })
    }
}

/// Returns the number of places that an option gives.
fn places(option: &str, count: u64) -> Result<usize> {
    let count = usize::try_from(count).ok().filter(|count| (1..=1 << 20).contains(count));
    count.with_context(|| format!("{option} needs a number from 1 to 1048576"))
}

/// Warns if the limit of open files is too low: clients and tunnels have two ends, and clients may read
/// stored responses, so one client could use up all files.
fn check_limit_of_files(limits: &Limits) {
    let needed = 2 * (limits.max_clients + limits.max_tunnels) as u64 + OTHER_FILES;
    if let Some(files) = raise_limit_of_files()
        && files < needed
    {
        output::warn(format_args!(
            "the limit of open files is {files}, and all clients and tunnels need {needed}; raise it with \
             ulimit -n, or lower --max-clients and --max-tunnels"
        ));
    }
}

/// The files for the store, the logs, peers and clients that wait.
const OTHER_FILES: u64 = 512;
