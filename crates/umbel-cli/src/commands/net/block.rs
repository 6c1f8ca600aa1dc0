//! `umbel net block`: who is not let in, until when.

use crate::args::number;
use crate::filters::Secrets;
use crate::input::is_stdin;
use crate::packets::address_lists::{print_blocked, read_addresses, read_lists};
use crate::report::{Rows, percent};
use crate::system::{clock, signals};
use crate::terminal::exit::found;
use crate::terminal::output;
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
/// Lines come from standard input, and each gets one line of answer at once; see below. With --check, the lines of a file
/// whose first word is a blocked address are printed instead. IPv4 and IPv6 addresses and prefixes can be blocked; bits
/// behind the length of a prefix are cleared, and an IPv4 address written as ::ffff:192.0.2.7 is the IPv4 address.
///
/// The exact engine keeps the list behind a counting filter: everything ends at its time, can be unblocked at once, and
/// nobody else is blocked. The aging engine keeps only a ring of filters, in memory that does not grow: what is blocked ends
/// within the last of G parts of its lifetime, nothing can be unblocked (allow it instead), and innocents are blocked with
/// the rate of the filter, once for every length of prefix in use. --clients and --budget see to it that they are few.
///
/// Unless --seed or --key-file says otherwise, keys are hashed with a new secret, so that nobody can choose addresses that
/// block a certain other one. The secret is part of the state, which only its owner can read.
///
/// One process at a time keeps a state: another that would write it waits for five seconds, and then is refused. It is
/// written at the end of the lines, and when SIGTERM or SIGINT ends the conversation. Whoever has to survive SIGKILL or a
/// power failure says `save`: what was told since then is lost with them.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 done or somebody blocked, 1 with --check if nobody is, 2 something went wrong."
)]
#[command(after_long_help = PROTOCOL)]
pub struct Args {
    /// How it forgets: exact or aging [default: exact]
    #[arg(long, value_name = "ENGINE", value_parser = ["exact", "aging"], hide_possible_values = true)]
    engine: Option<String>,

    /// How many may be blocked at once; more are refused [default: 100000, or as many as are in the lists]
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count)]
    capacity: Option<u64>,

    /// The share of strangers that the filter takes for blocked [default: 0.01%, or less if there are many clients]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate)]
    fpr: Option<f64>,

    /// For how long something is blocked: 500ms, 30s, 10m, 2h, 7d [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = number::time)]
    lifetime: Option<Duration>,

    /// aging: forget in so many parts [default: 8]
    #[arg(long, value_name = "G")]
    generations: Option<u32>,

    /// How many innocent clients there are
    #[arg(long, value_name = "N", value_parser = number::count)]
    clients: Option<u64>,

    /// How many of them may be blocked by mistake; a rate that blocks more is refused [default: 1]
    #[arg(long, value_name = "N", requires = "clients")]
    budget: Option<f64>,

    /// Keep the list in this file: it is read at the start if it is there, and written by `save` and at the end
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Block what is in this file: in each line an address or prefix, and the seconds if it likes; after # or ; comments
    /// (repeatable)
    #[arg(long, value_name = "FILE")]
    list: Vec<PathBuf>,

    /// Never block what is in this file (repeatable)
    #[arg(long, value_name = "FILE")]
    allow: Vec<PathBuf>,

    /// Print the lines of this file whose first word is a blocked address; `-` is standard input (repeatable)
    #[arg(long, value_name = "FILE")]
    check: Vec<PathBuf>,

    /// Tell how many addresses of this file, all of them innocent, are blocked (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    innocent: Vec<PathBuf>,

    /// Print what --innocent tells as JSON
    #[arg(long, requires = "innocent", conflicts_with = "check")]
    json: bool,

    /// The time, instead of the system's, in seconds since the start of 1970
    #[arg(long, value_name = "SECONDS", value_parser = number::count)]
    at: Option<u64>,

    /// Hash without a secret, with this seed
    #[arg(long, value_name = "N", conflicts_with = "key_file")]
    seed: Option<u64>,

    #[command(flatten)]
    secrets: Secrets,
}

const PROTOCOL: &str = "Lines, and their answers:
  block ADDRESS|PREFIX [SECONDS]   blocked PREFIX until TIME; what is blocked is refreshed, never shortened
  unblock ADDRESS|PREFIX           unblocked PREFIX, or free PREFIX if it was not blocked
  allow ADDRESS|PREFIX             allowed PREFIX
  disallow ADDRESS|PREFIX          disallowed PREFIX, or unknown PREFIX
  check ADDRESS                    blocked ADDRESS by PREFIX until TIME, allowed ADDRESS by PREFIX, or free ADDRESS
  stats                            stats and figures, name=value
  innocent [KEYS]                  how many keys of nobody the filter takes for blocked ones
  tick [@TIME]                     time TIME
  save                             saved FILE
Whatever is wrong with a line gets `error` and a sentence, and the next line is read. Times are seconds since the start of
1970. The clock is the system's until a line tells the time, as `tick @TIME` or before any other: `@TIME block ADDRESS`.

Examples:
  umbel net block --state blocked.state --lifetime 10m
  umbel net block --list drop.txt --check access.log
  umbel net block --engine aging --clients 1e6 --list drop.txt --innocent clients.txt

Exit codes: 0 done or somebody blocked, 1 with --check if nobody is, 2 something went wrong.";

/// How long to wait for another process that keeps the state.
const STATE_LOCK_TIMEOUT: Duration = Duration::from_secs(5);

pub fn run(args: &Args) -> Result<ExitCode> {
    let files = [&args.list, &args.allow, &args.check, &args.innocent];
    if files.into_iter().flatten().filter(|file| is_stdin(file)).count() > 1 {
        bail!("only one of the files can be standard input");
    }
    let entries = read_lists(&args.list)?;
    let allowed = read_lists(&args.allow)?;
    let batch = !(args.check.is_empty() && args.innocent.is_empty());
    let changed = !(entries.is_empty() && allowed.is_empty());
    // A query does not need the lock on the state.
    let keeper = args.state.as_ref().filter(|_| changed || !batch);
    let mut keeper = keeper.map(|path| Keeper::new(path, STATE_LOCK_TIMEOUT)).transpose()?;
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
        output::warn(format_args!("seconds that mean nothing, since nothing is allowed for a time: {timed}"));
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
        return print_blocked(&list, &args.check).map(|blocked| found(blocked > 0));
    }
    args.report_innocents(&list)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn now(&self) -> Timestamp {
        let given = self.at.map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1000)));
        given.unwrap_or_else(clock::now)
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
        let mut secret = [0; 16];
        let (hasher, embed_key) = match (self.seed, self.secrets.single()?) {
            (Some(seed), _) => (Hasher::fast(seed), false),
            (None, Some(secret)) => (secret, false),
            (None, None) => {
                getrandom::fill(&mut secret).context("the system has no random numbers")?;
                (Hasher::keyed(secret), true)
            }
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

    /// Fails if an option differs from that of the saved list, since options apply to new lists only.
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

    /// Answers lines until the input ends, and saves the list if it has changed, even after an error.
    fn serve(&self, list: Blocklist, keeper: Option<Keeper>) -> Result<ExitCode> {
        let input: Box<dyn Read> = match keeper {
            Some(_) => Box::new(signals::stdin_until_termination().context("cannot watch for signals")?),
            None => Box::new(io::stdin().lock()),
        };
        let mut session = Session::new(list, keeper);
        let end = session.serve(input, io::stdout().lock(), || self.now());
        if self.state.is_some() && session.changed() {
            session.save()?;
        }
        end.context("the conversation has ended")?;
        Ok(ExitCode::SUCCESS)
    }

    fn report_innocents(&self, list: &Blocklist) -> Result<()> {
        let addresses = read_addresses(&self.innocent)?;
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
