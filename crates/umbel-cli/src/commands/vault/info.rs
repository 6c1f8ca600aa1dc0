//! `umbel vault info`: the facts that a vault reveals without its passphrase.

use crate::args::headings;
use crate::documents::vaults::{explain_missing, report_problems};
use crate::report::{Rows, percent, size};
use crate::terminal::output;
use anyhow::Result;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::vault::{Header, Server, Vault};

/// Show everything that a vault reveals without its passphrase.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault info secrets
  umbel vault info --json secrets")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let Header { cost, shape } =
        Vault::header_of(&args.vault).map_err(|error| explain_missing(error, &args.vault))?;
    let (seen, problems) = Server::new(&args.vault).with_shape(shape).seen()?;
    let sum = |of: fn(&umbel_text::vault::Seen) -> u64| seen.iter().map(of).sum::<u64>();
    let (parts, content) = (sum(|seen| seen.parts.into()), sum(|seen| seen.content));
    let [ones, bits] = [sum(|seen| seen.bits[0]), sum(|seen| seen.bits[1])];
    let fill = ones as f64 / bits.max(1) as f64;
    // The number of documents expected for a word that is in none.
    let wrong = parts as f64 * shape.rate();
    let lengths = seen.iter().map(|seen| seen.content);
    let (shortest, longest) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
    if args.json {
        output::json(&json!({
            "documents": seen.len(),
            "damaged": problems.len(),
            "content_bytes": content,
            "shortest": shortest,
            "longest": longest,
            "index_parts": parts,
            "index_bytes": bits / 8,
            "words_per_part": shape.words(),
            "bits_per_part": shape.bits(),
            "hashes": shape.hashes(),
            "fill": fill,
            "rate": shape.rate(),
            "expected_wrong": wrong,
            "kdf_memory": u64::from(cost.memory) * 1024,
            "kdf_passes": cost.passes,
            "kdf_lanes": cost.lanes,
        }))?;
    } else {
        let mut rows = Rows::default();
        rows.add("documents", seen.len());
        rows.add(
            "contents",
            format!(
                "{}, encrypted; the documents take {} to {}",
                size(content),
                size(shortest),
                size(longest)
            ),
        );
        rows.add(
            "indexes",
            format!(
                "{parts} of {} each, for {} words; {:.2} % of their bits are set",
                size(shape.bits() / 8),
                shape.words(),
                100.0 * fill
            ),
        );
        rows.add(
            "rate",
            format!(
                "{}, with {} keys; a word that is nowhere finds {wrong:.4} documents",
                percent(shape.rate()),
                shape.hashes()
            ),
        );
        rows.add(
            "passphrase",
            format!(
                "Argon2id; a guess takes {}, passes: {}",
                size(u64::from(cost.memory) * 1024),
                cost.passes
            ),
        );
        rows.add(
            "can be seen",
            "all of this, when documents came and went, and which of them a search finds",
        );
        rows.add("cannot be seen", "words, names, contents, dates, exact lengths, what is searched for");
        output::text(rows)?;
    }
    Ok(report_problems(problems).unwrap_or(ExitCode::SUCCESS))
}
