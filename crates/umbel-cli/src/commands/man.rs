//! `umbel man`: prints manual pages.

use crate::args::headings;
use crate::cli::Cli;
use crate::terminal::output;
use anyhow::{Context, Result, bail};
use clap::builder::Resettable;
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel::file::{self, Placing};

/// Print the manual page of umbel or of a command.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel man | man -l -
  umbel man map build | man -l -
  umbel man --dir ~/.local/share/man/man1     # write all pages")]
pub struct Args {
    /// Command to describe
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,

    /// Write the pages of all commands into DIR
    #[arg(long, value_name = "DIR", conflicts_with = "command", help_heading = headings::OUTPUT)]
    dir: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut umbel = Cli::command();
    umbel.build();
    let umbel = umbel.mut_subcommands(without_help);
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        write_pages(&umbel, dir)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = &umbel;
    for name in &args.command {
        let Some(found) = command.find_subcommand(name) else {
            bail!("there is no command \"{name}\": see `umbel --help`");
        };
        command = found;
    }
    output::bytes(&page(command)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Hides `--help`, and the command `help` that clap adds to every command with subcommands.
fn without_help(command: Command) -> Command {
    let is_help = command.get_name() == "help";
    let hide_help = |arg: Arg| {
        let is_help = arg.get_id() == "help";
        arg.hide(is_help)
    };
    command.hide(is_help).mut_args(hide_help).mut_subcommands(without_help)
}

/// Writes the pages of a command and its subcommands into a directory.
fn write_pages(command: &Command, dir: &Path) -> Result<()> {
    let path = dir.join(Man::new(command.clone()).get_filename());
    file::save_bytes(&path, &page(command)?, Placing::default())?;
    let mut visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    visible.try_for_each(|command| write_pages(command, dir))
}

/// Renders the page of a command.
fn page(command: &Command) -> Result<Vec<u8>> {
    // clap_mangen would fill the lines of the examples like text.
    let end = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let command = command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    let mut page = String::from_utf8(page)?;
    if !page.contains("\\fB\\-h\\fR") {
        // Without --help, only arguments are outside of the groups.
        page = page.replacen("\n.SH OPTIONS\n", "\n.SH ARGUMENTS\n", 1);
    }
    page += &sections(&end.unwrap_or_default());
    Ok(page.into_bytes())
}

/// Renders the text at the end of the help: each paragraph with a title, such as "Examples:",
/// becomes a section.
fn sections(text: &str) -> String {
    let mut roff = Roff::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let (title, rest) = paragraph.split_once(':').unwrap_or(("", paragraph));
        if let Some(lines) = rest.strip_prefix('\n') {
            roff.control("SH", [&*title.to_uppercase()]).control("nf", []);
            for line in lines.lines() {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            roff.control("fi", []);
        } else if title == "Exit codes" {
            roff.control("SH", ["EXIT CODES"]).text([roman(rest.trim_start())]);
        } else {
            roff.control("PP", []).text([roman(paragraph)]);
        }
    }
    roff.to_roff()
}
