//! Signatures from a file, and how they are printed.

use crate::input::{name, read_whole};
use crate::report::printable;
use crate::system::random_seed;
use crate::terminal::output::warn;
use anyhow::{Result, bail};
use bstr::ByteSlice;
use std::borrow::Cow;
use std::path::Path;
use umbel::internals::hex;
use umbel::internals::text::is_control;
use umbel_net::signatures::{MAX_LENGTH, Scanner, Settings};

/// Reads the signatures of a file, one in each line, into a scanner. Empty lines are ignored.
pub fn read(path: &Path, in_hex: bool) -> Result<Scanner> {
    let file = name(path);
    let text = read_whole(path)?;
    let lines = text.lines_with_terminator().map(|line| line.strip_suffix(b"\n").unwrap_or(line));
    let mut signatures = Vec::new();
    for (line, number) in lines.zip(1u64..) {
        let signature = if in_hex {
            let line = line.trim_ascii();
            let mut bytes = Vec::new();
            if hex::decode(line, &mut bytes).is_none() {
                bail!("line {number} of {file} is not pairs of hexadecimal digits: {}", printable(line));
            }
            Cow::from(bytes)
        } else {
            Cow::from(line)
        };
        if signature.len() > MAX_LENGTH {
            let length = signature.len();
            bail!("line {number} of {file} has {length} bytes: a signature has at most {MAX_LENGTH}");
        }
        if !signature.is_empty() {
            signatures.push(signature);
        }
    }
    if signatures.is_empty() {
        bail!("{file} has no signature: there should be one in each line");
    }
    if signatures.iter().all(|signature| signature.ends_with(b"\r")) && !in_hex {
        warn(format_args!(
            "every signature of {file} ends with a carriage return, which is searched for too"
        ));
    }
    // Senders who know the seed could choose data that passes the filters, which takes longer.
    let settings = Settings { seed: random_seed()?, ..Settings::default() };
    Ok(Scanner::with(signatures, &settings)?)
}

/// Appends a signature, as text if all of it is printable.
pub fn print(signature: &[u8], in_hex: bool, out: &mut Vec<u8>) {
    let printable = || signature.to_str().is_ok_and(|text| !text.contains(is_control));
    if in_hex {
        out.extend_from_slice(hex::encode(signature).as_bytes());
    } else if printable() {
        out.extend_from_slice(signature);
    } else {
        out.extend_from_slice(format!("hex:{}", hex::encode(signature)).as_bytes());
    }
}
