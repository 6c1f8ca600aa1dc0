//! `umbel vault`: encrypted files that can be searched by their words.

mod add;
mod adopt;
mod check;
mod copy;
mod get;
mod info;
mod init;
mod list;
mod passphrase;
mod remove;
mod search;

use anyhow::Result;
use std::process::ExitCode;

/// Store encrypted files, and search them by their words.
///
/// A vault is a directory. Without the passphrase it reveals the number of documents and their
/// approximate lengths, but no names, words or contents. It can be stored on an untrusted server:
/// files are encrypted and searched with keys that never leave this computer. `docs/vault.md`
/// describes exactly which facts are visible.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault add secrets diary.txt letters/
  umbel vault search secrets holiday 2023
  umbel vault list secrets
  umbel vault get secrets diary.txt -o diary.copy")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Init(init::Args),
    Add(add::Args),
    Search(search::Args),
    List(list::Args),
    Get(get::Args),
    Remove(remove::Args),
    Check(check::Args),
    Info(info::Args),
    Passphrase(passphrase::Args),
    Adopt(adopt::Args),
    Copy(copy::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Init(args) => init::run(args),
        Command::Add(args) => add::run(args),
        Command::Search(args) => search::run(args),
        Command::List(args) => list::run(args),
        Command::Get(args) => get::run(args),
        Command::Remove(args) => remove::run(args),
        Command::Check(args) => check::run(args),
        Command::Info(args) => info::run(args),
        Command::Passphrase(args) => passphrase::run(args),
        Command::Adopt(args) => adopt::run(args),
        Command::Copy(args) => copy::run(args),
    }
}
