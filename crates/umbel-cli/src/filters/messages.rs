//! The messages of private counts as files: shapes, questions and answers, and the lists of keys
//! that they need.

use super::{check_category, check_writable, explain_exists};
use crate::args::headings;
use crate::input::{LineLimit, check_not_output, name, open_raw, open_whole_lines};
use crate::pipeline;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use umbel::file::fields::read_with_sum;
use umbel::file::{self, FormatError, Placing};
use umbel::hash::KeyRing;
use umbel::kind::Category;
use umbel::space_code::private::{HashedKey, Message, PublicShape, Universe, is_message, public_seed};
use umbel::{AnyCount, Error};

/// The largest file that is read as a message: an answer for ten million keys.
const MAX_MESSAGE_BYTES: u64 = 1 << 30;

/// The largest file that is read before its checksum is verified.
const MAX_UNVERIFIED_BYTES: u64 = 1 << 20;

/// Where a message goes.
#[derive(clap::Args)]
pub struct MessageTarget {
    /// Write the message to FILE
    #[arg(short, long, value_name = "FILE", help_heading = headings::OUTPUT)]
    output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(short, long, help_heading = headings::OUTPUT)]
    force: bool,
}

impl MessageTarget {
    /// Returns the path of the file, if one is given. Fails early if it could not be written later,
    /// or if it is one of the inputs.
    pub fn check<'a>(&self, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<Option<&Path>> {
        let Some(path) = self.output.as_deref() else { return Ok(None) };
        check_not_output(&inputs.into_iter().cloned().collect::<Vec<_>>(), path)?;
        check_writable(path, self.force)?;
        Ok(Some(path))
    }

    /// Writes a message.
    pub fn save(&self, path: &Path, message: &Message) -> Result<()> {
        let placing = Placing { create_new: !self.force, ..Placing::default() };
        let saved = file::save_bytes(path, &message.to_bytes(), placing);
        saved.map(drop).map_err(|error| explain_exists(error, path))
    }
}

/// Reads a message; returns `None` if the file is something else.
pub fn read_message(path: &Path) -> Result<Option<Message>> {
    let name = name(path);
    let failed = || format!("cannot read {name}");
    let mut bytes = Vec::new();
    let mut file = open_raw(path)?;
    file.by_ref().take(8).read_to_end(&mut bytes).with_context(failed)?;
    if !is_message(&bytes) {
        return Ok(None);
    }
    // The length of a sparse file costs nothing, so the checksum of a long one is verified first.
    if file.metadata().with_context(failed)?.len() > MAX_UNVERIFIED_BYTES {
        file.seek_relative(-8).with_context(failed)?;
        bytes = read_long(&mut file).with_context(failed)?;
    } else {
        file.take(MAX_MESSAGE_BYTES - 8).read_to_end(&mut bytes).with_context(failed)?;
    }
    let message = Message::from_bytes(&bytes).map_err(|error| match error {
        // The library has bytes without a name, and would call them a filter.
        Error::Format { problem, .. } => anyhow::Error::new(problem),
        other => other.into(),
    });
    message.map(Some).with_context(|| format!("cannot use {name}"))
}

/// Reads the rest of a regular file after verifying its checksum.
fn read_long(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().saturating_sub(file.stream_position()?).min(MAX_MESSAGE_BYTES);
    match read_with_sum(file, 0, length)? {
        Some(bytes) => Ok(bytes),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            FormatError::Damaged { part: "the message".into() },
        )),
    }
}

/// Loads a multiset that others may ask for counts: its hash has no secret.
pub fn load_public(path: &Path) -> Result<AnyCount> {
    // A missing secret would be reported first, but adding it would not help.
    let info = file::inspect(path)?;
    check_category(path, info.kind, Category::Multiset)?;
    if info.hash.is_some_and(|hash| public_seed(hash).is_err()) {
        bail!(
            "{} was built with a secret, without which nobody can ask for a key: those who have it can use \
             `umbel count get`; to be asked by others, build it with --hash fast",
            path.display()
        );
    }
    Ok(AnyCount::try_from(file::load(path, &KeyRing::new())?.filter)?)
}

/// Reads a list of keys, one in each line.
pub fn read_universe(path: &Path, shape: &PublicShape, max_line: LineLimit) -> Result<Universe> {
    let mut keys: Vec<HashedKey> = Vec::new();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    pipeline::run(
        open_whole_lines(&[path.to_owned()], max_line)?,
        threads,
        |_, records| {
            let lines = (0..records.key_count()).map(|line| records.record(line).1);
            Ok(lines.map(|line| shape.hash_key(line)).collect::<Vec<_>>())
        },
        |more, _| {
            keys.extend(more);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(keys.into_iter().collect())
}
