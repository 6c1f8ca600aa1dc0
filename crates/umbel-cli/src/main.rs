//! `umbel`: Bloom filters from the shell.
//!
//! The path of a line from input to output:
//!
//! 1. [`cli`] parses the command line, and [`args`] its numbers, names and metadata. [`commands`]
//!    has
//!    a file for each command.
//! 2. [`filters`] opens the filter, or plans a new one, with its secret and hash.
//! 3. [`input`] reads files and pipes, decompresses them, and cuts them into blocks of whole lines.
//! 4. [`pipeline`] hands each block to a thread, which splits it into records and extracts the key
//!    of
//!    each ([`input`]).
//! 5. The thread hashes the keys of the block, and queries or fills the filter with all of them.
//! 6. [`pipeline`] passes on the results in the order of the input.
//! 7. [`terminal`] prints lines, warnings and errors; [`report`] describes filters; [`filters`]
//!    saves
//!    them.
//! 8. The exit code is that of grep: 0 something was found, 1 nothing was, 2 an error occurred.
//!
//! Some commands need more: [`maps`] (pairs of keys and values), [`packets`] (captures and
//! addresses), [`columns`] (Parquet files), [`documents`] (texts, vaults, lists of passwords), [`remote`] (servers), [`explore`]
//! (a page in the browser) and [`system`] (clock and signals).

mod args;
mod cli;
mod columns;
mod commands;
mod documents;
mod explore;
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
    remote::hide_password();
    system::signals::report_file_size_limit();
    system::raise_limit_of_files();
    match commands::run(cli::Cli::read().command) {
        Ok(code) => code,
        // The reader of our output has closed it, which is not an error.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(format_args!("{:#}", filters::explain_folder(filters::explain_foreign(error))));
            ExitCode::from(exit::FAILED)
        }
    }
}
