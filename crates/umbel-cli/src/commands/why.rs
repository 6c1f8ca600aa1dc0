//! `umbel why`: how a filter comes to its answer.

use super::found;
use crate::facts::{Columns, Rows, shown};
use crate::filters::Secrets;
use crate::output;
use anyhow::Result;
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::{Filter, Key, Stored};

/// Show how a filter comes to its answer for one key.
///
/// The digest of the key, the bits that belong to it in the order in which they are probed, their values, and the first
/// zero, if there is one: a single zero means that the key is certainly not a member. Exit code 0 if the key may be a
/// member, 1 if it is not.
#[derive(clap::Args)]
pub struct Args {
    /// The filter to ask
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// The key, as it would stand in a line
    #[arg(value_name = "KEY")]
    key: OsString,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    secrets: Secrets,
}

#[derive(Serialize)]
struct Explanation {
    key: String,
    kind: String,
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    probes: Vec<Probe>,
    member: bool,
    /// The number of the first probe that found a zero, from 1.
    first_zero: Option<usize>,
}

#[derive(Serialize)]
struct Probe {
    /// The position in the filter, in bits.
    bit: u64,
    /// The cache line of 512 bits that holds it.
    line: u64,
    value: u8,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let filter = args.secrets.map_verified(&args.filter)?.filter;
    let explanation = explain(&filter, args.key.as_bytes());
    if args.json {
        output::json(&explanation)?;
    } else {
        output::text(&explanation)?;
    }
    Ok(found(explanation.member))
}

fn explain(filter: &Stored, key: &[u8]) -> Explanation {
    let mut bits = Vec::new();
    let (hash, digest) = match filter {
        Stored::Set(filter) => {
            let digest = key.digest(filter.hasher());
            filter.visit(digest, &mut |bit| bits.push(bit));
            (filter.hasher().id().to_string(), Some(format!("{:016x}", digest.get())))
        }
        Stored::Literature(filter) => {
            bits.extend(filter.scheme().positions(key));
            (filter.scheme().family().to_string(), None)
        }
        _ => (String::new(), None),
    };
    let words = filter.words().words();
    let value = |bit: u64| (words[(bit / 64) as usize] >> (bit % 64) & 1) as u8;
    let probes: Vec<Probe> =
        bits.iter().map(|&bit| Probe { bit, line: bit / 512, value: value(bit) }).collect();
    Explanation {
        key: shown(key),
        kind: filter.kind().to_string(),
        hash,
        digest,
        first_zero: probes.iter().position(|probe| probe.value == 0).map(|probe| probe + 1),
        member: filter.contains(key),
        probes,
    }
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rows = Rows::default();
        rows.add("key", &self.key);
        rows.add("filter", format!("{}, {}", self.kind, self.hash));
        if let Some(digest) = &self.digest {
            rows.add("digest", digest);
        }
        rows.fmt(f)?;
        let mut table = Columns::new(&["probe", "bit", "line", "value"]);
        for (number, probe) in self.probes.iter().enumerate() {
            let cells = [number as u64 + 1, probe.bit, probe.line, probe.value.into()];
            table.add(cells.map(|cell| cell.to_string()).to_vec());
        }
        table.fmt(f)?;
        match self.first_zero {
            Some(probe) => writeln!(f, "certainly not a member: probe {probe} finds a zero"),
            None => writeln!(f, "may be a member: all {} bits are set", self.probes.len()),
        }
    }
}
