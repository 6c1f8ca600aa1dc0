//! `umbel explore`: a page in the browser to plan filters, look into them and ask them.

use crate::args::headings;
use crate::explore::{self, Context, Options};
use crate::filters::{ForeignArgs, Secrets};
use anyhow::{Result, bail};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;

/// Plan, see and try filters on a page in the browser.
///
/// The page is served by this program on this machine. It loads nothing from elsewhere, works
/// offline, and computes with the code of the other commands:
///
/// Plan: linked inputs for keys, rate, bits and hash functions, all kinds side by side, their curves,
/// and the commands that build the filter. The part of the address after # is the plan, and can be
/// sent to others. File: the facts of filters, a picture of their bits, and how much two of them
/// share. Ask: the bits that a key reads in each filter, and which of many keys may be members. Toy:
/// a filter small enough to see, with false positives and the keys that cause them. Watch it fill:
/// the measured rate beside theory while keys are inserted.
///
/// The address of the page is printed when it can be opened. It contains a random token, and only
/// questions with the token are answered: give the address only to people who may use the page.
/// Only the files that are named here, or dropped on the page, can be read. SIGINT (Ctrl-C) and
/// SIGTERM end the program.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel explore
  umbel explore june.umbel july.umbel
  umbel explore --no-open --listen 127.0.0.1:8080

Exit codes: 0 stopped by a signal, 2 an error occurred.")]
pub struct Args {
    /// Filters to show
    #[arg(value_name = "FILTER")]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    foreign: ForeignArgs,

    #[command(flatten)]
    secrets: Secrets,

    /// Address to listen on; port 0 means any free port
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0",
        value_parser = address,
        help_heading = headings::SERVER
    )]
    listen: SocketAddr,

    /// Let other machines reach the page if --listen is not a loopback address; they need the token,
    /// which is sent unencrypted
    #[arg(long, help_heading = headings::SERVER)]
    allow_remote: bool,

    /// Print the address only, and do not open it in a browser
    #[arg(long, help_heading = headings::OUTPUT)]
    no_open: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "an address is a host and a port, as 127.0.0.1:8080";
    text.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(|| wrong.into())
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if !args.listen.ip().to_canonical().is_loopback() && !args.allow_remote {
        bail!(
            "other machines can reach --listen {}: add --allow-remote if they may use the page",
            args.listen
        );
    }
    // Pipes with secrets are read once, and files that are not filters are mistakes.
    args.secrets.ring()?;
    let answers = Context::new(args.filters.clone(), args.foreign, args.secrets.clone());
    for path in &args.filters {
        answers.facts(path)?;
    }
    explore::serve(Options { listen: args.listen, answers, opens_browser: !args.no_open })?;
    Ok(ExitCode::SUCCESS)
}
