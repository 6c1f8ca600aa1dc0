//! `umbel net attribute`: who carried an excerpt, or parts of a document.

use super::document;
use crate::report::{Columns, size};
use crate::terminal::exit::{FAILED, found};
use crate::terminal::output::{self, warn};
use crate::{hex, input};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::Read;
use std::net::IpAddr;
use std::ops::Bound;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_net::Error;
use umbel_net::attribution::{Answer, Finding, Found, Listed, Pair, Searched, Store, Trust, Unread, WINDOW};
use umbel_net::blocklist::Prefix;
use umbel_net::capture::Time;

/// Find out which pairs carried an excerpt, and when, in what `umbel net record` has recorded.
///
/// Each line is a pair: source, destination, the times between which it spoke in that epoch, the byte of the payload at which the
/// excerpt begins, how many whole blocks agree, how many bytes of the excerpt could not be compared because they are part of no
/// whole block, and how many pairs would be named by chance like this one. Pairs that carried the excerpt are always among
/// them. In streams and in long payloads the byte is known up to a multiple, as in `96 mod 2048`. Pairs that
/// were too many to be listed are `unlisted`.
///
/// With --document, the parts of a file that passed are reported, however it was cut into payloads: for each pair, which bytes of the
/// file it carried. If it is known which networks are local, only what went to a destination outside of them: what left the network.
///
/// What is compared are whole blocks, so an excerpt has to have about two of them, and each further one makes an error by chance a
/// thousand times less likely. Too short an excerpt is refused. Exit code 0 if a pair was found, 1 if none was, 2 if something
/// went wrong, also if none was found and some epochs could not be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net attribute store --excerpt sentence.txt
  umbel net attribute store --excerpt-hex 5468652071756963... --from 2026-01-31T12:00:00Z
  umbel net attribute store --excerpt worm.bin --local 192.0.2.0/24
  umbel net attribute store --document plans.pdf --local 192.0.2.0/24")]
pub struct Args {
    /// The folder of the store
    #[arg(value_name = "STORE")]
    store: PathBuf,

    /// The excerpt is all that is in this file; `-` is standard input
    #[arg(long, value_name = "FILE", required_unless_present_any = ["excerpt_hex", "document"])]
    excerpt: Option<PathBuf>,

    /// The excerpt, in hexadecimal
    #[arg(long, value_name = "HEX", conflicts_with = "excerpt")]
    excerpt_hex: Option<String>,

    /// Report what passed of this file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["excerpt", "excerpt_hex"])]
    document: Option<PathBuf>,

    /// Only epochs that end at this time or later: 2026-01-31T12:00:00Z, 2026-01-31, or seconds since 1970
    #[arg(long, value_name = "TIME")]
    from: Option<Time>,

    /// Only epochs that begin at this time or before
    #[arg(long, value_name = "TIME")]
    to: Option<Time>,

    /// A network in whose name nobody outside can send (repeatable) [default: as recorded]
    #[arg(long, value_name = "NET")]
    local: Vec<Prefix>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        bail!("--from {from} is after --to {to}");
    }
    let bound = |time: Option<Time>| time.map_or(Bound::Unbounded, Bound::Included);
    let times = (bound(args.from), bound(args.to));
    let sought = args.sought()?;
    let store = Store::open(&args.store)?;
    if args.document.is_some() {
        let answer = store.find_parts(&sought, times)?;
        let any = document::tell(&answer, sought.len(), &args.local, args.json)?;
        return Ok(verdict(any, &answer));
    }
    let answer = store.find(&sought, times)?;
    let mut lines: Vec<Line<'_>> = lines(args, &answer).collect();
    lines.sort_by(|one, other| one.finding.chance.total_cmp(&other.finding.chance));
    let expected = sum(answer.searched.iter().map(|searched| searched.found.expected));
    if args.json {
        output::json(&json!({
            "findings": lines.iter().map(Line::to_json).collect::<Vec<_>>(), "expected_by_chance": expected,
            "epochs_searched": answer.searched.len(), "epochs_unread": answer.unread.len(),
        }))?;
    } else {
        print(&lines, &answer, expected)?;
    }
    Ok(verdict(!lines.is_empty(), &answer))
}

/// Names the epochs that could not be read or asked. Without them nobody can say that there is nothing.
fn verdict<T>(any: bool, answer: &Answer<T>) -> ExitCode {
    let is_refusal = |unread: &&Unread| matches!(unread.error, Error::Filter(umbel::Error::Parameter { .. }));
    for unread in answer.unread.iter().filter(|unread| !is_refusal(unread)) {
        warn(format_args!("an epoch was left out: {:#}", unread.error));
    }
    let refused = answer.unread.iter().filter(is_refusal);
    if let Some(last) = refused.clone().next_back() {
        // All that were recorded in the same way say the same.
        warn(format_args!("{} left out: {:#}", count(refused.count(), "epoch"), last.error));
    }
    if any || answer.unread.is_empty() { found(any) } else { ExitCode::from(FAILED) }
}

impl Args {
    /// The bytes that are looked for.
    fn sought(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(path) = self.excerpt.as_ref().or(self.document.as_ref()) {
            let failed = || format!("cannot read {}", input::name(path));
            input::open_raw(path)?.take(LONGEST + 1).read_to_end(&mut bytes).with_context(failed)?;
            if bytes.len() as u64 > LONGEST {
                bail!("{} is too long: it has more than {}", input::name(path), size(LONGEST));
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

/// More than that is not read, so that a file without an end does not fill the memory.
const LONGEST: u64 = 1 << 28;

/// A line of the answer.
struct Line<'a> {
    searched: &'a Searched<Found>,
    finding: &'a Finding,
    /// If it is known which networks are local.
    trust: Option<Trust>,
}

fn lines<'a>(args: &'a Args, answer: &'a Answer<Found>) -> impl Iterator<Item = Line<'a>> {
    answer.searched.iter().flat_map(|searched| {
        let local = if args.local.is_empty() { &searched.local } else { &args.local };
        searched.found.findings.iter().map(move |finding| {
            let trust = (!local.is_empty()).then(|| Trust::of(&finding.listed.pair, local));
            Line { searched, finding, trust }
        })
    })
}

fn print(lines: &[Line<'_>], answer: &Answer<Found>, expected: f64) -> Result<()> {
    let told = lines.iter().any(|line| line.trust.is_some());
    let mut headings =
        vec!["source", "destination", "from", "to", "offset", "blocks", "not compared", "by chance"];
    headings.extend(told.then_some("trust"));
    let mut table = Columns::new(&headings);
    for line in lines {
        let Finding { listed, blocks, not_compared, chance, .. } = line.finding;
        let mut row = who(listed);
        row.extend([
            line.offset(),
            blocks.to_string(),
            format!("{not_compared} bytes"),
            probability(*chance),
        ]);
        row.extend(told.then(|| line.trust.map_or("?".into(), |trust| trust.to_string())));
        table.add(row);
    }
    if !lines.is_empty() {
        output::text(table)?;
    }
    let epochs = answer.searched.len();
    if expected >= 0.5 {
        warn(format_args!("the excerpt is short: about {expected:.0} pairs are named by chance alone"));
    }
    output::say(format_args!(
        "{} in {}; {} to be expected by chance",
        count(lines.len(), "finding"),
        count(epochs, "epoch"),
        probability(expected)
    ));
    Ok(())
}

impl Line<'_> {
    fn is_cyclic(&self) -> bool {
        self.searched.about.longest > WINDOW
    }

    fn cycle(&self) -> u64 {
        WINDOW * self.searched.about.block as u64
    }

    fn offset(&self) -> String {
        match self.finding.position() {
            Some(position) if self.is_cyclic() => format!("{position} mod {}", self.cycle()),
            Some(position) => position.to_string(),
            None => "?".into(),
        }
    }

    fn to_json(&self) -> Value {
        let Finding { listed, blocks, not_compared, places, chance, .. } = self.finding;
        json!({
            "source": listed.pair.source, "destination": listed.pair.destination,
            "from": listed.first.to_string(), "to": listed.last.to_string(),
            "offset": self.finding.position(), "modulo": self.is_cyclic().then(|| self.cycle()), "places": places,
            "blocks": blocks, "not_compared": not_compared, "by_chance": chance,
            "trust": self.trust.map(|trust| trust.to_string()),
            "epoch": self.searched.path.file_name().map(|name| name.to_string_lossy()),
        })
    }
}

/// The first columns of a line: source, destination, and from when to when they spoke.
pub fn who(listed: &Listed) -> Vec<String> {
    let host = |host: Option<IpAddr>| host.map_or("unlisted".into(), |host| host.to_string());
    let Pair { source, destination } = listed.pair;
    vec![host(source), host(destination), second(listed.first, 0), second(listed.last, 999_999_999)]
}

/// A time without decimals, which would pretend to more than is known.
fn second(time: Time, up: u64) -> String {
    let text = Time::from_nanos(time.nanos().saturating_add(up)).to_string();
    format!("{}Z", text.split('.').next().unwrap_or_default())
}

/// The sum of numbers; of none it is 0, and not -0 as that of an iterator.
pub fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |sum, number| sum + number)
}

pub fn probability(chance: f64) -> String {
    match chance {
        0.0 => "0".into(),
        chance if chance < 1e-3 => format!("{chance:.1e}"),
        chance if chance < 10.0 => format!("{chance:.3}"),
        chance => format!("{chance:.0}"),
    }
}

pub fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
