//! Keys given as arguments, for commands where a user often has only one.

use super::{InputArgs, source};
use crate::args::headings;
use crate::report::{escaped, shell_word};
use anyhow::{Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::io;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The options of [`InputArgs`] and `--key`. It dereferences to them, so that a key takes the same
/// way through a command as a line.
#[derive(Clone, Debug)]
pub struct KeyedInputArgs(InputArgs);

/// The option `--key`.
#[derive(Args)]
struct KeyArgs {
    /// Use KEY as a line of the input, and read no other (repeatable)
    #[arg(
        long = "key",
        value_name = "KEY",
        allow_hyphen_values = true,
        conflicts_with_all = ["inputs", "header", "parquet"],
        help_heading = headings::KEYS
    )]
    keys: Vec<OsString>,
}

impl Deref for KeyedInputArgs {
    type Target = InputArgs;

    fn deref(&self) -> &InputArgs {
        &self.0
    }
}

impl Args for KeyedInputArgs {
    fn augment_args(command: Command) -> Command {
        InputArgs::augment_args(KeyArgs::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        InputArgs::augment_args_for_update(KeyArgs::augment_args_for_update(command))
    }
}

impl FromArgMatches for KeyedInputArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<KeyedInputArgs, clap::Error> {
        let keys = Some(KeyArgs::from_arg_matches(matches)?.keys);
        Ok(KeyedInputArgs(InputArgs { keys, ..InputArgs::from_arg_matches(matches)? }))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = KeyedInputArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the lines with these keys. Fails if a key has the byte that ends a line.
pub(super) fn to_lines(keys: &[OsString], line_end: u8) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for key in keys.iter().map(|key| key.as_bytes()) {
        if key.contains(&line_end) {
            bail!(
                "--key {} has several lines: give each as a --key of its own, or add -0 to end lines with a zero byte",
                escaped(key)
            );
        }
        lines.extend_from_slice(key);
        lines.push(line_end);
    }
    Ok(lines)
}

/// Fails with a hint if an input does not exist: the first try is often `umbel check FILTER key`.
pub(super) fn check_not_keys(inputs: &[PathBuf]) -> Result<()> {
    for path in inputs.iter().filter(|path| !source::is_stdin(path)) {
        if let Err(error) = std::fs::metadata(path)
            && error.kind() == io::ErrorKind::NotFound
        {
            bail!(
                "cannot open {}: {error}; if it is a key and not a file of keys, write --key {}",
                source::name(path),
                quoted(path)
            );
        }
    }
    Ok(())
}

/// Returns a path as an argument that a user can copy into a shell.
fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    str::from_utf8(bytes).map_or_else(|_| escaped(bytes), shell_word)
}
