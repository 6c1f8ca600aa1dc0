//! The questions of the page. Each is answered by the functions behind the `--json` of a command.

mod ask;
mod code;
mod curves;
mod file;
mod picture;
mod plan;
mod toy;
mod watch;

use crate::filters::{ForeignArgs, Secrets};
use anyhow::{Context as _, Result};
use clap::FromArgMatches;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use umbel::internals::sync::lock;

/// What answers depend on besides the question: the files, of which the page knows only the numbers.
pub struct Context {
    files: Mutex<Vec<PathBuf>>,
    foreign: ForeignArgs,
    secrets: Secrets,
    /// The filters that fill while the page watches.
    runs: Mutex<watch::Runs>,
}

impl Context {
    pub fn new(files: Vec<PathBuf>, foreign: ForeignArgs, secrets: Secrets) -> Context {
        Context { files: Mutex::new(files), foreign, secrets, runs: Mutex::default() }
    }

    /// Returns the paths of all files.
    fn paths(&self) -> Vec<PathBuf> {
        lock(&self.files).clone()
    }

    /// Returns the path of a file.
    fn path(&self, number: usize) -> Result<PathBuf> {
        lock(&self.files).get(number).cloned().context("there is no file with this number")
    }

    /// Returns the options for a file, which are for those of other programs.
    fn foreign(&self, path: &Path) -> ForeignArgs {
        match umbel::file::inspect(path) {
            Ok(_) => ForeignArgs::default(),
            Err(_) => self.foreign.for_one_of_several(path),
        }
    }

    /// Adds a file.
    pub fn add(&self, path: PathBuf) {
        lock(&self.files).push(path);
    }

    /// Describes a file as `umbel info --json` does.
    ///
    /// # Errors
    ///
    /// If the file is not a filter, or is damaged.
    pub fn facts(&self, path: &Path) -> Result<Value> {
        file::facts(self, path)
    }
}

/// Answers a question. Errors are mistakes of the user, which the page shows.
pub type Question = fn(&Context, &Value) -> Result<Value>;

/// Returns the question with this name.
pub fn find(name: &str) -> Option<Question> {
    Some(match name {
        "plan" => plan::plan,
        "curves" => curves::curves,
        "files" => file::files,
        "picture" => picture::picture,
        "fill-start" => watch::start,
        "fill-step" => watch::step,
        "compare" => file::compared,
        "why" => ask::why,
        "check" => ask::check,
        "toy" => toy::toy,
        _ => return None,
    })
}

/// Reads the fields of a question.
fn fields<T: DeserializeOwned>(asked: &Value) -> Result<T> {
    T::deserialize(asked).context("the question has other fields than expected")
}

/// Returns the arguments of a command with these options, as its command line would have them.
fn arguments<A: clap::Args + FromArgMatches>(options: &[String]) -> Result<A> {
    let command = A::augment_args(clap::Command::new("umbel").no_binary_name(true));
    let matches = command.try_get_matches_from(options)?;
    Ok(A::from_arg_matches(&matches)?)
}
