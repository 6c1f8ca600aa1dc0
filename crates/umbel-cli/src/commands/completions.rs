//! `umbel completions`: scripts that complete commands and options in a shell.

use crate::cli::Cli;
use crate::terminal::output;
use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print a script for completing commands and options.
///
/// For zsh, save the script as `_umbel` in a directory of `$fpath`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel completions bash > ~/.local/share/bash-completion/completions/umbel
  umbel completions fish > ~/.config/fish/completions/umbel.fish")]
pub struct Args {
    /// Shell to complete in
    shell: Shell,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "umbel", &mut script);
    output::bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}
