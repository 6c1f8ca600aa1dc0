//! Files: their facts as `umbel info` prints them, and comparisons.

use super::{Context, fields};
use crate::commands::{compare, info};
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

/// Returns the facts of all files.
pub fn files(context: &Context, _: &Value) -> Result<Value> {
    let facts = context.paths().into_iter().map(|path| {
        facts(context, &path).unwrap_or_else(
            |error| json!({"path": path.display().to_string(), "error": format!("{error:#}")}),
        )
    });
    Ok(json!({"files": facts.collect::<Vec<_>>()}))
}

/// Describes a file as `umbel info --json` does.
pub fn facts(context: &Context, path: &Path) -> Result<Value> {
    info::facts(path, context.foreign.format)
}

/// Two files by their numbers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    left: usize,
    right: usize,
}

/// Compares two files as `umbel compare --json` does.
pub fn compared(context: &Context, asked: &Value) -> Result<Value> {
    let Pair { left, right } = fields(asked)?;
    compare::pair(&[context.path(left)?, context.path(right)?], &context.secrets)
}
