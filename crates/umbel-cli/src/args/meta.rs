//! Metadata on the command line: `name=value`.

use anyhow::{Result, bail};
use umbel::file::Meta;

/// Parses an entry of metadata, `name=value`.
pub fn entry(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as name=value".to_string()),
    }
}

/// Collects entries. Fails if a name is given twice.
pub fn collect(entries: &[(String, String)]) -> Result<Meta> {
    let meta: Meta = entries.iter().cloned().collect();
    if meta.len() < entries.len() {
        bail!("a name of the metadata is given twice");
    }
    Ok(meta)
}
