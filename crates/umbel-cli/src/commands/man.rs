//! `umbel man`: the manual.

use crate::cli::Cli;
use crate::terminal::output;
use anyhow::{Context, Result, bail};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print a manual page: `umbel man | man -l -`.
///
/// Without a command, the page of umbel itself; with one, that command's. With --dir, all pages are written into a
/// directory, for instance ~/.local/share/man/man1.
#[derive(clap::Args)]
pub struct Args {
    /// The command whose page is wanted
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,

    /// Write all pages into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut umbel = Cli::command();
    umbel.build();
    let umbel = without_help(umbel);
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        clap_mangen::generate_to(umbel, dir).with_context(|| format!("cannot write to {}", dir.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = &umbel;
    for name in &args.command {
        let Some(found) = command.find_subcommand(name) else {
            bail!("there is no command \"{name}\": see `umbel --help`");
        };
        command = found;
    }
    output::bytes(&page(command.clone())?)?;
    Ok(ExitCode::SUCCESS)
}

/// Hides the `help` that clap adds to every command with subcommands, since it has no page.
fn without_help(command: Command) -> Command {
    let hidden = command.get_name() == "help";
    command.hide(hidden).mut_subcommands(without_help)
}

fn page(command: Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
