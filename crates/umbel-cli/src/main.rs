//! `umbel`: Bloom filters from the shell.
//!
//! [`cli`] declares the commands, [`commands`] holds one file for each. What they share: [`input`] turns files and pipes
//! into keys, [`pipeline`] spreads the work over threads and keeps its order, [`filters`] opens and saves filters,
//! [`report`] describes them, [`terminal`] prints.
//!
//! Exit codes are those of grep: 0 something was found, 1 nothing was, 2 something went wrong.

mod args;
mod cli;
mod commands;
mod documents;
mod filters;
mod hex;
mod input;
mod maps;
mod packets;
mod pipeline;
mod remote;
mod report;
mod sync;
mod system;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(cli::Cli::read().command) {
        Ok(code) => code,
        // Whoever reads our output has seen enough; that is no error of theirs or ours.
        Err(error) if terminal::output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::output::error(format_args!("{error:#}"));
            ExitCode::from(terminal::exit::FAILED)
        }
    }
}
