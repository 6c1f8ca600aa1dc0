//! `umbel net trace info`: describes a store of digests, and verifies it.

use crate::args::headings;
use crate::packets::store_report::whole_seconds;
use crate::report::{Columns, percent, size};
use crate::terminal::exit;
use crate::terminal::output::{self, warn};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_net::capture::Timestamp;
use umbel_net::rfc3339;
use umbel_net::traceback::store::{Store, Unread, load};

/// Describe a store of `umbel net trace record`, and verify its pages.
///
/// Each line is a router: its pages, the packets in them, the packets that it changed, the times of
/// the first and the last packet, the size of its pages, and the highest false-positive rate of one
/// of them. The exit code is 2 if a page is damaged; the other pages are listed still.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net trace info spie
  umbel net trace info spie --json")]
pub struct Args {
    /// Directory of the store
    #[arg(value_name = "STORE")]
    store: PathBuf,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The pages of a router.
struct Summary {
    pages: u64,
    packets: u64,
    changes: u64,
    first: Timestamp,
    last: Timestamp,
    bytes: u64,
    rate: f64,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let contents = Store::open(&args.store)?.contents()?;
    let mut unread = contents.unread;
    let mut routers = BTreeMap::<String, Summary>::new();
    for (path, about) in contents.pages {
        let page = match load(&path) {
            Ok(page) => page,
            Err(error) => {
                unread.push(Unread { path, error });
                continue;
            }
        };
        let bytes = path.metadata().with_context(|| format!("cannot examine {}", path.display()))?.len();
        let empty = Summary {
            pages: 0,
            packets: 0,
            changes: 0,
            first: about.first,
            last: about.last,
            bytes: 0,
            rate: 0.0,
        };
        let router = routers.entry(about.router).or_insert(empty);
        router.pages += 1;
        // Numbers in a file may be anything.
        router.packets = router.packets.saturating_add(about.packets);
        router.changes = router.changes.saturating_add(about.changes);
        router.first = router.first.min(about.first);
        router.last = router.last.max(about.last);
        router.bytes += bytes;
        router.rate = router.rate.max(page.rate());
    }
    if args.json {
        let routers: Vec<Value> = routers.iter().map(|(name, router)| router.to_json(name)).collect();
        output::json(&json!({ "routers": routers, "pages_unread": unread.len() }))?;
    } else {
        let headings = ["router", "pages", "packets", "changed", "from", "to", "size", "rate"];
        let mut table = Columns::new(&headings);
        routers.into_iter().for_each(|(name, router)| table.add(router.columns(name)));
        output::text(table)?;
    }
    for unread in &unread {
        warn(format_args!("a page was left out: {:#}", unread.error));
    }
    Ok(ExitCode::from(if unread.is_empty() { 0 } else { exit::FAILED }))
}

impl Summary {
    fn columns(&self, name: String) -> Vec<String> {
        vec![
            name,
            self.pages.to_string(),
            self.packets.to_string(),
            self.changes.to_string(),
            whole_seconds(self.first, 0),
            whole_seconds(self.last, 999_999_999),
            size(self.bytes),
            percent(self.rate),
        ]
    }

    fn to_json(&self, name: &str) -> Value {
        json!({
            "router": name, "pages": self.pages, "packets": self.packets, "changed": self.changes,
            "from": rfc3339::format(self.first), "to": rfc3339::format(self.last), "bytes": self.bytes,
            "rate": self.rate,
        })
    }
}
