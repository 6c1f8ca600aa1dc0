//! `umbel completions`: so that the shell can complete commands and options.

use crate::cli::Cli;
use crate::terminal::output;
use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print what a shell needs to complete commands and options.
///
/// For bash: `umbel completions bash > ~/.local/share/bash-completion/completions/umbel`. For zsh put it as `_umbel` into
/// a directory of `$fpath`, for fish into `~/.config/fish/completions/umbel.fish`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "umbel", &mut script);
    output::bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}
