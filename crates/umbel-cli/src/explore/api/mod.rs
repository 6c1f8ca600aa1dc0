//! The questions of the page. Each is answered by the functions behind the `--json` of a command.

mod code;
mod curves;
mod plan;

use anyhow::{Context, Result};
use clap::FromArgMatches;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Answers a question. Errors are mistakes of the user, which the page shows.
pub type Question = fn(&Value) -> Result<Value>;

/// Returns the question with this name.
pub fn find(name: &str) -> Option<Question> {
    Some(match name {
        "plan" => plan::plan,
        "curves" => curves::curves,
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
