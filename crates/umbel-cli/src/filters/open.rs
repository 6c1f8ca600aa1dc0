//! Opens filters: loads or maps them with the given secrets, and checks that a command can use
//! them.

use super::Secrets;
use crate::system::signals;
use anyhow::{Result, anyhow, bail};
use std::path::Path;
use umbel::Kind;
use umbel::any::Stored;
use umbel::file::{self, Loaded, Mapped, Meta, ReadOnly};
use umbel::kind::Category;
use umbel_text::address::Screen;
use umbel_text::password::Recipe;

impl Secrets {
    /// Reads a filter into memory and verifies all of it. Fails if it is not of the `wanted`
    /// category.
    pub fn load(&self, path: &Path, wanted: Category) -> Result<Loaded> {
        let loaded = file::load(path, self.ring()?)?;
        check_category(path, loaded.filter.kind(), wanted)?;
        Ok(loaded)
    }

    /// Maps a filter; each part is verified when it is first touched. Fails if the filter is not of
    /// the `wanted` category.
    pub fn map(&self, path: &Path, wanted: Category) -> Result<Mapped> {
        signals::watch_mapped(path);
        let mapped = file::map(path, self.ring()?)?;
        check_category(path, mapped.kind(), wanted)?;
        Ok(mapped)
    }

    /// Maps a set of plain keys, which is opened only once: its metadata is checked after it is
    /// mapped. Only if mapping fails is the file inspected, since a filter of passwords should be
    /// named as such before a missing secret is.
    pub fn map_plain(&self, path: &Path) -> Result<Mapped> {
        match self.map(path, Category::Set) {
            Ok(mapped) => check_plain_meta(path, mapped.meta()).map(|()| mapped),
            Err(error) => check_plain(path).and(Err(error)),
        }
    }

    /// Maps a filter and verifies all of it.
    pub fn map_verified(&self, path: &Path, wanted: Category) -> Result<Loaded<ReadOnly<Stored>>> {
        Ok(self.map(path, wanted)?.verify()?)
    }
}

/// Fails if the file does not hold the category that the command needs.
pub fn check_category(path: &Path, kind: Kind, wanted: Category) -> Result<()> {
    if kind.category() == wanted { Ok(()) } else { Err(wrong_kind(path, kind)) }
}

/// Returns the error for a file of a kind that the command cannot use; it names the command that
/// can.
pub fn wrong_kind(path: &Path, kind: Kind) -> anyhow::Error {
    let holds = kind.category();
    let remedy = match holds {
        Category::Map => "ask it with `umbel map get`".to_string(),
        Category::Multiset => {
            "ask it with `umbel count get`, and add to it with `umbel count add`".to_string()
        }
        Category::Sketch => match sketch_command(kind) {
            Some(command) => format!("`umbel info` describes it, and `{command}` reads it"),
            None => "`umbel info` describes it".to_string(),
        },
        _ => "ask it with `umbel check`".to_string(),
    };
    anyhow!("{} holds a {holds} ({kind}): {remedy}", path.display())
}

/// Returns the command that makes and reads sketches of this kind, if there is one.
pub fn sketch_command(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Distinct => Some("umbel distinct"),
        Kind::Frequent => Some("umbel top"),
        _ => None,
    }
}

/// Fails if the filter holds its keys in a form of their own, as filters of passwords and web
/// addresses do: lines as they are would not be found in it.
///
/// A file that cannot be read passes: opening it reports the error.
pub fn check_plain(path: &Path) -> Result<()> {
    match file::inspect(path) {
        Ok(info) => check_plain_meta(path, &info.meta),
        Err(_) => Ok(()),
    }
}

fn check_plain_meta(path: &Path, meta: &Meta) -> Result<()> {
    let name = path.display();
    if Recipe::is_in(meta) {
        bail!(
            "{name} holds passwords, in a form of their own: add to it with `umbel password add`, and ask it with `umbel password check`"
        );
    }
    if Screen::is_in(meta) {
        bail!(
            "{name} holds web addresses, in a form of their own: make it with `umbel url build`, and ask it with `umbel url check`"
        );
    }
    Ok(())
}

/// Fails if two filters hold passwords in different forms, in which the same word is not the same
/// key.
pub fn check_same_form(left: (&Path, &Meta), right: (&Path, &Meta)) -> Result<()> {
    for mark in Recipe::MARKS {
        let (ours, theirs) = (left.1.get(mark), right.1.get(mark));
        if ours != theirs {
            let shown =
                |value: Option<&String>| value.map_or("missing".to_owned(), |value| format!("{value:?}"));
            bail!(
                "{} and {} do not keep passwords in the same form: {mark} is {} in the first and {} in the second",
                left.0.display(),
                right.0.display(),
                shown(ours),
                shown(theirs)
            );
        }
    }
    Ok(())
}

/// Fails if the file was shortened while it was mapped, since its answers are not reliable.
pub fn check_whole(mapped: &Mapped, path: &Path) -> Result<()> {
    if !mapped.is_whole() {
        bail!(signals::shortened_message(Some(path)));
    }
    Ok(())
}

/// Fails if no keys can be added to the filter, since it was constructed from all its keys at once.
pub fn check_not_fixed(path: &Path, kind: Kind) -> Result<()> {
    if !kind.capabilities().fixed {
        return Ok(());
    }
    bail!(
        "{} is {} {kind} filter, to which no keys can be added: it was made from all its keys at once; build it again from all keys, with `umbel build --kind {kind}`",
        path.display(),
        kind.article()
    )
}
