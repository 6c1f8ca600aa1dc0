//! `umbel net block`: blocks addresses for a time.

use crate::args::{headings, number};
use crate::filters::{LockArgs, Secrets};
use crate::input::{LineLimit, is_stdin};
use crate::packets::address_lists::{print_blocked, read_addresses, read_lists};
use crate::report::{Rows, percent};
use crate::system::{clock, signals};
use crate::terminal::exit::found;
use crate::terminal::output::{self, Out};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use umbel::Hasher;
use umbel::aging::Timestamp;
use umbel_net::blocklist::protocol::{Entry, Session};
use umbel_net::blocklist::state::{self, Keeper};
use umbel_net::blocklist::{Backend, Blocklist, Options};

/// Block addresses and prefixes for a time, and answer a firewall line by line.
///
/// Each line of standard input is a command and gets one line of response at once; see below. With
/// --check, the lines of a file whose first word is a blocked address are printed instead. IPv4 and
/// IPv6 addresses and prefixes can be blocked. Bits beyond the length of a prefix are cleared, and
/// ::ffff:192.0.2.7 means the IPv4 address.
///
/// The exact engine stores the list behind a counting filter: every entry expires on time, can be
/// unblocked at once, and no other address is blocked. The aging engine stores only a ring of
/// filters in constant memory: an entry expires within the last of G parts of its lifetime, nothing
/// can be unblocked (allow it instead), and other clients are blocked at the rate of the filter,
/// once for every prefix length in use. --clients and --budget keep their number small.
///
/// Unless --seed or --key-file is given, keys are hashed with a new secret, so that no one can
/// choose addresses that collide with a certain other one. The secret is part of the state, which
/// only its owner can read.
///
/// Only one process at a time can use a state file for writing: another one waits for the time of
/// --wait and then fails. The state is written at the end of the input, and at SIGTERM or SIGINT.
/// After SIGKILL or a power failure, changes since the last `save` are lost.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(after_long_help = PROTOCOL)]
pub struct Args {
    /// How entries are stored: exact or aging [default: exact]
    #[arg(
        long,
        value_name = "ENGINE",
        value_parser = ["exact", "aging"],
        hide_possible_values = true,
        help_heading = headings::FILTER
    )]
    engine: Option<String>,

    /// Maximum number of entries; more are refused [default: 100000, or the number in the lists]
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    capacity: Option<u64>,

    /// Share of other addresses that the filter reports as blocked [default: 0.01%, or less if
    /// there are many clients]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, help_heading = headings::FILTER)]
    fpr: Option<f64>,

    /// Lifetime of an entry: 500ms, 30s, 10m, 2h, 7d [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = number::time, help_heading = headings::FILTER)]
    lifetime: Option<Duration>,

    /// aging: number of generations that forget in turn [default: 8]
    #[arg(long, value_name = "G", help_heading = headings::FILTER)]
    generations: Option<u32>,

    /// Number of innocent clients
    #[arg(long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    clients: Option<u64>,

    /// Number of innocent clients that may be blocked by mistake; a rate that blocks more is an
    /// error [default: 1]
    #[arg(long, value_name = "N", requires = "clients", help_heading = headings::FILTER)]
    budget: Option<f64>,

    /// Hash without a secret, with this seed
    #[arg(long, value_name = "N", conflicts_with = "key_file", help_heading = headings::FILTER)]
    seed: Option<u64>,

    /// Store the entries in FILE: it is read at the start if it exists, and written by `save` and
    /// at the end
    #[arg(long, value_name = "FILE", help_heading = headings::INPUT)]
    state: Option<PathBuf>,

    /// Block the entries of FILE: on each line an address or prefix, optionally a lifetime in
    /// seconds, and comments after # or ; (repeatable)
    #[arg(long, value_name = "FILE", help_heading = headings::INPUT)]
    list: Vec<PathBuf>,

    /// Never block the entries of FILE (repeatable)
    #[arg(long, value_name = "FILE", help_heading = headings::INPUT)]
    allow: Vec<PathBuf>,

    /// Print the lines of FILE whose first word is a blocked address; `-` means standard input
    /// (repeatable)
    #[arg(long, value_name = "FILE", help_heading = headings::INPUT)]
    check: Vec<PathBuf>,

    /// Report how many of the innocent addresses in FILE are blocked (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "check", help_heading = headings::INPUT)]
    innocent: Vec<PathBuf>,

    /// Use this time instead of the system clock, in seconds since 1970
    #[arg(long, value_name = "SECONDS", value_parser = number::count, help_heading = headings::INPUT)]
    at: Option<u64>,

    #[command(flatten)]
    max_line: LineLimit,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    lock: LockArgs,

    /// Print the report of --innocent as JSON
    #[arg(long, requires = "innocent", conflicts_with = "check", help_heading = headings::OUTPUT)]
    json: bool,
}

/// The end of the short help.
const EXAMPLES: &str = "Examples:
  umbel net block --list drop.txt --check access.log

Exit codes: 0 done or an address is blocked, 1 none is (--check), 2 an error occurred.";

/// The end of the long help.
const PROTOCOL: &str = "Commands and their responses:
  block ADDRESS|PREFIX [SECONDS]   blocked PREFIX until TIME; never shortens an entry
  unblock ADDRESS|PREFIX           unblocked PREFIX, or free PREFIX if it was not blocked
  allow ADDRESS|PREFIX             allowed PREFIX
  disallow ADDRESS|PREFIX          disallowed PREFIX, or unknown PREFIX
  check ADDRESS                    blocked ADDRESS by PREFIX until TIME,
                                   allowed ADDRESS by PREFIX, or free ADDRESS
  stats                            stats, and figures as name=value
  innocent [KEYS]                  the number of random keys that the filter reports
  tick [@TIME]                     time TIME
  save                             saved FILE

A line that is wrong gets the response `error` with a sentence, and the next line is read. Times are
in seconds since 1970. The system clock is used until a line sets the time, with `tick @TIME` or
before any other command: `@TIME block ADDRESS`.

Examples:
  echo 'block 192.0.2.7 600' | umbel net block --state blocked.state
  umbel net block --list drop.txt --check access.log
  umbel net block --engine aging --list drop.txt --innocent clients.txt

Exit codes: 0 done or an address is blocked, 1 none is (--check), 2 an error occurred.";

pub fn run(args: &Args) -> Result<ExitCode> {
    let files = [&args.list, &args.allow, &args.check, &args.innocent];
    if files.into_iter().flatten().filter(|file| is_stdin(file)).count() > 1 {
        bail!("only one of the files can be standard input");
    }
    let entries = read_lists(&args.list, args.max_line)?;
    let allowed = read_lists(&args.allow, args.max_line)?;
    let batch = !(args.check.is_empty() && args.innocent.is_empty());
    let changed = !(entries.is_empty() && allowed.is_empty());
    // A query does not need the lock on the state.
    let keeper = args.state.as_ref().filter(|_| changed || !batch);
    let mut keeper = keeper.map(|path| args.keeper(path)).transpose()?;
    let mut list = args.open(entries.len() as u64)?;
    let now = args.now();
    if list.now() > now {
        let ahead = (list.now().millis() - now.millis()) as f64 / 1000.0;
        output::warn(format_args!(
            "the state is {ahead} s ahead of the clock: time stands still until the clock has caught up"
        ));
    }
    // In a session without lists, lines may set another time than the system's.
    if batch || changed {
        list.advance(now.max(list.now()))?;
    }
    for Entry { prefix, lifetime, .. } in &entries {
        list.block(*prefix, *lifetime).with_context(|| format!("cannot block {prefix}"))?;
    }
    for entry in &allowed {
        list.allow(entry.prefix);
    }
    let timed = allowed.iter().filter(|entry| entry.lifetime.is_some()).count();
    if timed > 0 {
        output::warn(format_args!("ignored lifetimes of allowed entries, which do not expire: {timed}"));
    }
    // Save a new state at once, to see whether it can be written and to mark it as kept.
    let is_new = args.state.as_ref().is_some_and(|path| !path.exists());
    if let Some(keeper) = keeper.as_mut().filter(|_| changed || is_new) {
        keeper.save(&list)?;
    }
    if !batch {
        return args.serve(list, keeper);
    }
    if args.innocent.is_empty() {
        return print_blocked(&list, &args.check, args.max_line).map(|blocked| found(blocked > 0));
    }
    args.report_innocents(&list)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn now(&self) -> Timestamp {
        let given = self.at.map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1000)));
        given.unwrap_or_else(clock::now)
    }

    /// Locks the state file, and waits for another process that has.
    fn keeper(&self, path: &Path) -> Result<Keeper> {
        self.lock.wait(path, |wait| match Keeper::new(path, wait) {
            Err(umbel_net::Error::Locked { .. }) => Ok(None),
            keeper => Ok(Some(keeper?)),
        })
    }

    /// Opens the list in the state file, or creates a new one.
    fn open(&self, listed: u64) -> Result<Blocklist> {
        match &self.state {
            Some(path) if path.try_exists().with_context(|| format!("cannot find {}", path.display()))? => {
                let list = state::load(path, self.secrets.ring()?)?;
                self.check_options_agree(path, list.options())?;
                Ok(list)
            }
            _ => Ok(Blocklist::new(&self.options(listed)?, Timestamp::from_millis(0))?),
        }
    }

    fn options(&self, listed: u64) -> Result<Options> {
        let plain = Options::default();
        let engine = self.engine()?.unwrap_or(plain.backend);
        let (clients, budget) = (self.clients.unwrap_or(0), self.budget.unwrap_or(plain.budget));
        let default_rate = match engine {
            Backend::Aging { .. } if clients > 0 => plain.rate.min(budget / clients as f64),
            _ => plain.rate,
        };
        let (hasher, embed_key) = match (self.seed, self.secrets.single()?) {
            (Some(seed), _) => (Hasher::fast(seed), false),
            (None, Some(secret)) => (secret, false),
            (None, None) => (Hasher::random()?, true),
        };
        Ok(Options {
            backend: engine,
            capacity: self.capacity.unwrap_or(plain.capacity.max(listed)),
            rate: self.fpr.unwrap_or(default_rate),
            lifetime: self.lifetime.unwrap_or(plain.lifetime),
            hasher,
            embed_key,
            clients,
            budget,
        })
    }

    fn engine(&self) -> Result<Option<Backend>> {
        let engine = self.engine.as_deref().map(str::parse).transpose()?;
        match (engine, self.generations) {
            (Some(Backend::Aging { .. }), Some(generations)) => Ok(Some(Backend::Aging { generations })),
            (_, Some(_)) => bail!("--generations is for the aging engine: add --engine aging"),
            (engine, None) => Ok(engine),
        }
    }

    /// Fails if an option differs from that of the saved list, since options apply to new lists
    /// only.
    fn check_options_agree(&self, path: &Path, kept: &Options) -> Result<()> {
        let engine = self.engine()?.is_some_and(|engine| match (engine, kept.backend) {
            (Backend::Aging { .. }, Backend::Aging { .. }) if self.generations.is_none() => false,
            (given, kept) => given != kept,
        });
        let differs = [
            ("--engine", engine),
            ("--capacity", self.capacity.is_some_and(|given| given != kept.capacity)),
            ("--fpr", self.fpr.is_some_and(|given| given != kept.rate)),
            ("--lifetime", self.lifetime.is_some_and(|given| given != kept.lifetime)),
            ("--clients", self.clients.is_some_and(|given| given != kept.clients)),
            ("--budget", self.budget.is_some_and(|given| given != kept.budget)),
            ("--seed", self.seed.is_some_and(|given| Hasher::fast(given) != kept.hasher)),
        ];
        match differs.iter().find(|(_, differs)| *differs) {
            Some((option, _)) => {
                bail!("{} was made with another {option}: leave it out, or name a new file", path.display())
            }
            None => Ok(()),
        }
    }

    /// Answers lines until the input ends, and saves the list if it has changed, even after an
    /// error.
    fn serve(&self, list: Blocklist, keeper: Option<Keeper>) -> Result<ExitCode> {
        let input: Box<dyn Read> = match keeper {
            Some(_) => Box::new(signals::stdin_until_termination().context("cannot watch for signals")?),
            None => Box::new(io::stdin().lock()),
        };
        let mut session = Session::new(list, keeper);
        let mut out = Out::new(true)?;
        let end = session.serve(input, &mut out, || self.now());
        if self.state.is_some() && session.changed() {
            session.save()?;
        }
        end.context("the conversation has ended")?;
        Ok(ExitCode::SUCCESS)
    }

    fn report_innocents(&self, list: &Blocklist) -> Result<()> {
        let addresses = read_addresses(&self.innocent, self.max_line)?;
        let asked = list.innocents(&addresses);
        let figures = list.figures();
        if self.json {
            output::json(&json!({
                "engine": figures.backend.to_string(),
                "innocents": asked.asked,
                "blocked": asked.blocked,
                "blocked_by_filter": asked.by_filter,
                "expected_by_filter": asked.expected,
                "rate": figures.rate,
                "lengths_v4": figures.lengths_v4,
                "lengths_v6": figures.lengths_v6,
                "clients": list.options().clients,
                "expected_clients": figures.innocents,
                "over_budget": figures.over_budget,
            }))?;
        } else {
            let mut rows = Rows::default();
            rows.add("innocent addresses", asked.asked);
            rows.add("blocked", asked.blocked);
            rows.add("by the filter alone", format!("{}, {:.2} expected", asked.by_filter, asked.expected));
            rows.add("rate of the filter", percent(figures.rate));
            rows.add(
                "lengths of prefixes",
                format!("{} IPv4, {} IPv6", figures.lengths_v4.len(), figures.lengths_v6.len()),
            );
            if list.options().clients > 0 {
                rows.add(
                    "clients",
                    format!("{}, {:.2} of them expected", list.options().clients, figures.innocents),
                );
            }
            output::text(rows)?;
        }
        if figures.over_budget {
            output::warn(format_args!(
                "{:.1} clients are expected to be blocked, and {} may be: use fewer lengths of prefixes, or a lower rate",
                figures.innocents,
                list.options().budget
            ));
        }
        Ok(())
    }
}
