//! `umbel`: Bloom filters from the shell.
//!
//! The way of a line from input to output:
//!
//! 1. [`cli`] parses the command line; [`args`] parses numbers, names and metadata; [`commands`]
//!    has a file per command.
//! 2. [`filters`] opens or plans the filter, with its secret and its hash.
//! 3. [`input`] reads files and pipes, decompresses them, and cuts them into blocks of whole lines.
//! 4. [`pipeline`] gives each thread a block. The thread splits it into records and takes the key
//!    of each ([`input`]),
//! 5. hashes the keys and queries or fills the filter, a block at a time,
//! 6. and passes the result on when it is the block's turn, so that lines come out in the order of
//!    the input.
//! 7. [`terminal`] prints the lines, warnings and errors; [`report`] describes filters; [`filters`]
//!    saves them.
//! 8. The exit code is that of grep: 0 something was found, 1 nothing was, 2 something went wrong.
//!
//! Beside this way lie [`maps`] (pairs of keys and values), [`packets`] (captures and addresses),
//! [`documents`] (texts, vaults, lists of passwords), [`remote`] (servers) and [`system`] (clock
//! and signals).

mod args;
mod cli;
mod commands;
mod documents;
mod filters;
mod input;
mod maps;
mod packets;
mod pipeline;
mod remote;
mod report;
mod system;
mod terminal;

use std::process::ExitCode;
use terminal::{exit, output};

fn main() -> ExitCode {
    match commands::run(cli::Cli::read().command) {
        Ok(code) => code,
        // The reader of our output has closed it, which is not an error.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(format_args!("{error:#}"));
            ExitCode::from(exit::FAILED)
        }
    }
}
