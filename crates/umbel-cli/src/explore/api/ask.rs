//! Questions to the files: one key as `umbel why` explains it, and many keys as `umbel check` answers.

use super::{Context, fields};
use crate::commands::why;
use crate::filters::FilterGroup;
use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    key: String,
}

/// Explains the answer of each file for a key.
pub fn why(context: &Context, asked: &Value) -> Result<Value> {
    let One { key } = fields(asked)?;
    let paths = context.paths();
    let answers = paths.iter().map(|path| {
        let foreign = context.foreign(path);
        let mut answer = match why::explanation(path, key.as_bytes(), &foreign, &context.secrets) {
            Ok(explanation) => json!(explanation),
            Err(error) => json!({"error": format!("{error:#}")}),
        };
        answer["path"] = path.display().to_string().into();
        answer
    });
    Ok(json!({"files": answers.collect::<Vec<_>>()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Many {
    /// One key on each line.
    keys: String,
}

/// Counts the keys that may be in each file, and says of each key in which.
pub fn check(context: &Context, asked: &Value) -> Result<Value> {
    let Many { keys } = fields(asked)?;
    let keys: Vec<&[u8]> = lines(&keys).collect();
    let paths = context.paths();
    let answers = paths.iter().map(|path| {
        let path_name = path.display().to_string();
        let foreign = context.foreign(path);
        let answered =
            FilterGroup::open(&context.secrets, &foreign, std::iter::once(path)).and_then(|group| {
                let answers = group.query(&keys)?.remove(0);
                group.check_whole()?;
                Ok(answers)
            });
        match answered {
            Ok(answers) => {
                let found: Vec<bool> = (0..keys.len()).map(|key| answers.get(key) == Some(true)).collect();
                json!({"path": path_name, "members": answers.count(), "found": found})
            }
            Err(error) => json!({"path": path_name, "error": format!("{error:#}")}),
        }
    });
    Ok(json!({"keys": keys.len(), "files": answers.collect::<Vec<_>>()}))
}

/// Returns the lines of a text as `umbel check` reads them: the last one may have no end.
fn lines(text: &str) -> impl Iterator<Item = &[u8]> {
    let whole = text.strip_suffix('\n').unwrap_or(text);
    whole.split('\n').map(str::as_bytes).take(if text.is_empty() { 0 } else { usize::MAX })
}
