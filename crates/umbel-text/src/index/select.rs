//! Selects the files that may contain a text: combines the answers of the filters with the state of
//! the files on disk.

use super::Index;
use super::catalog::{Catalog, Entry};
use super::query::{Look, keys};
use crate::Result;
use crate::stamp::Stamp;
use crate::walk::{FoundFile, Walked, identity, join, walk};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use umbel::Digest;

/// A query to an index.
#[derive(Clone, Debug)]
pub struct Query {
    /// Sets of keys. A file matches if it has all keys of one set.
    pub(super) alternatives: Vec<Vec<Digest>>,
}

impl Query {
    /// Returns whether the index can rule files out. If not, every file matches.
    pub fn is_decided(&self) -> bool {
        self.alternatives.iter().all(|keys| !keys.is_empty())
    }
}

/// The files on disk, and the part of each that has to be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Selection {
    /// All files, in the order of their names.
    pub files: Vec<Selected>,
    /// Paths that could not be examined.
    pub failed: Vec<(PathBuf, io::Error)>,
}

/// A file, and the part of it that has to be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Selected {
    /// The directory that the file is under.
    under: Arc<Under>,
    /// The path from there; empty if `under` is the file itself.
    path: PathBuf,
    /// The part that has to be read.
    pub part: Part,
    pub(crate) stamp: Stamp,
    /// Whether the file is compressed, so that the blocks refer to its decompressed text.
    pub(crate) compressed: bool,
}

/// A directory: its name as the user wrote it, and its path.
#[derive(Debug)]
struct Under {
    name: PathBuf,
    path: PathBuf,
}

impl Under {
    /// Creates a directory whose name is its path.
    fn its_name(path: &Path) -> Under {
        Under { name: path.to_owned(), path: path.to_owned() }
    }
}

impl Selected {
    /// Returns the name of the file, which begins as the directory was written.
    pub fn name(&self) -> PathBuf {
        join(&self.under.name, &self.path)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> PathBuf {
        join(&self.under.path, &self.path)
    }

    /// Returns the length of the file.
    pub fn bytes(&self) -> u64 {
        self.stamp.size
    }

    /// Returns the inode of the file.
    pub fn inode(&self) -> u64 {
        self.stamp.inode
    }

    /// Returns whether an open file is the one that was selected, unchanged.
    pub(crate) fn is_still(&self, file: &File) -> io::Result<bool> {
        Ok(Stamp::from_metadata(&file.metadata()?) == self.stamp)
    }
}

/// The part of a file that may match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Nothing: the text is certainly not in the file.
    Nothing,
    /// These blocks, in order.
    Blocks(Vec<Piece>),
    /// All of it, because the index has no current entry for the file.
    All(Why),
}

/// Why an index has no current entry for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The file is not in the index.
    New,
    /// The file has changed since it was read.
    Changed,
}

/// A block of a file's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The offset of the block in the text.
    pub start: u64,
    /// The length of the block.
    pub bytes: u64,
    /// The number of lines before the block.
    pub lines_before: u64,
    /// Whether there is a zero byte in or before the block, which means that the file is not text.
    pub binary: bool,
}

impl Selection {
    /// Replaces the directory at the start of all names.
    #[must_use]
    pub fn named_from(mut self, name: &Path) -> Selection {
        for file in &mut self.files {
            file.under = Arc::new(Under { name: name.to_owned(), path: file.under.path.clone() });
        }
        self
    }

    /// Returns the names of the files that may match.
    pub fn named(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.files.iter().filter(|file| file.part != Part::Nothing).map(Selected::name)
    }
}

impl Index {
    /// Returns the query for files with at least one of these texts.
    pub fn any_of(&self, texts: &[impl AsRef<[u8]>], look: Look) -> Query {
        // The index of a column rules out no file that has a word.
        let keys =
            |text: &[u8]| self.source().text().map_or_else(Vec::new, |settings| keys(text, look, settings));
        Query { alternatives: texts.iter().map(|text| keys(text.as_ref())).collect() }
    }

    /// Returns the query for files with all of these texts.
    pub fn all_of(&self, texts: &[impl AsRef<[u8]>], look: Look) -> Query {
        Query { alternatives: vec![self.any_of(texts, look).alternatives.concat()] }
    }

    /// Returns the files that match according to the index alone, without examining them, for an
    /// index that is stored away from its files. Later changes of the files are not noticed.
    ///
    /// # Errors
    ///
    /// Fails if the index is damaged or cannot be read.
    pub fn recall(&self, query: &Query) -> Result<Vec<PathBuf>> {
        let matching = self.matching(query)?;
        let may = |entry: &&Entry| self.part(entry, &matching) != Part::Nothing;
        Ok(self.catalog.entries.iter().filter(may).map(|entry| self.catalog.name(entry)).collect())
    }

    /// Runs a query and examines the files of the index. Files that have changed or are new have to
    /// be read.
    ///
    /// # Errors
    ///
    /// Fails if the index is damaged or cannot be read. Paths that cannot be examined are in
    /// [`Selection::failed`].
    pub fn select(&self, query: &Query) -> Result<Selection> {
        // One thread reads the index while the others examine the files.
        let look = |number| {
            let path = self.root_path(number);
            let walked = walk(&path, identity(self.path()));
            (path, walked)
        };
        let roots = 0..self.catalog.roots.len() as u32;
        let (matching, found) = rayon::join(|| self.matching(query), || roots.map(look).collect::<Vec<_>>());
        let matching = matching?;
        let mut selection = Selection { files: Vec::new(), failed: Vec::new() };
        for (number, (path, walked)) in found.into_iter().enumerate() {
            // A root that was moved is named by its current path.
            let given = &self.catalog.roots[number].given;
            let unmoved = std::path::absolute(given).is_ok_and(|given| given == path);
            let name = if unmoved { given.clone() } else { path.clone() };
            let within = Some((number as u32, Path::new("")));
            self.judge(&mut selection, walked, &matching, within, Under { name, path });
        }
        Ok(selection)
    }

    /// Runs a query on the files under a directory. Files that the index does not cover have to be
    /// read.
    ///
    /// # Errors
    ///
    /// Fails if the index is damaged or cannot be read.
    pub fn select_under(&self, query: &Query, directory: &Path) -> Result<Selection> {
        let look = || walk(directory, identity(self.path()));
        let (matching, walked) = rayon::join(|| self.matching(query), look);
        let mut selection = Selection { files: Vec::new(), failed: Vec::new() };
        let within = self.locate(directory);
        let within = within.as_ref().map(|(root, path)| (*root, path.as_path()));
        self.judge(&mut selection, walked, &matching?, within, Under::its_name(directory));
        Ok(selection)
    }

    /// Returns whether a directory or file is one of the roots, or under one.
    pub fn covers(&self, directory: &Path) -> bool {
        self.locate(directory).is_some()
    }

    /// Returns the root that contains a directory, and the path from there.
    fn locate(&self, directory: &Path) -> Option<(u32, PathBuf)> {
        let directory = fs::canonicalize(directory).ok()?;
        let roots = self.catalog.roots.iter().enumerate();
        let mut places = roots.flat_map(|(number, root)| {
            let places = [Some(root.absolute.clone()), self.sibling(number as u32)];
            places.into_iter().flatten().map(move |place| (number as u32, place))
        });
        places.find_map(|(number, place)| {
            let root = fs::canonicalize(place).ok()?;
            directory.strip_prefix(root).ok().map(|path| (number, path.to_owned()))
        })
    }

    /// Returns the path of a root: its original path, or the path beside the index if both were
    /// moved together.
    ///
    /// # Panics
    ///
    /// Panics if there are fewer [`roots`](Index::roots).
    pub fn root_path(&self, root: u32) -> PathBuf {
        let absolute = &self.catalog.roots[root as usize].absolute;
        match self.sibling(root) {
            Some(sibling) if !absolute.exists() && sibling.exists() => sibling,
            _ => absolute.clone(),
        }
    }

    fn sibling(&self, root: u32) -> Option<PathBuf> {
        let name = self.catalog.roots[root as usize].absolute.file_name()?;
        Some(std::path::absolute(self.path()).ok()?.with_file_name(name))
    }

    /// Returns, for each block, whether its filter has the keys of the query.
    fn matching(&self, query: &Query) -> Result<Vec<bool>> {
        // A block without keys has no words, but it may have punctuation, which only an undecided
        // query can ask for.
        let mut matching = vec![!query.is_decided(); self.catalog.blocks.len()];
        if query.is_decided() {
            for keys in &query.alternatives {
                self.each_match(keys, |block| matching[block as usize] = true)?;
            }
        }
        Ok(matching)
    }

    /// Returns the entry of a file, if the file has certainly not changed since it was read.
    pub(super) fn unchanged(&self, root: u32, found: &FoundFile) -> Option<Entry> {
        let entry = self.catalog.entry(root, &found.path)?;
        (entry.certain && entry.stamp == found.stamp).then(|| entry.clone())
    }

    /// Returns the number of files of this index that a newer catalog does not have.
    pub(super) fn gone(&self, newer: &Catalog) -> u64 {
        self.catalog.entries.iter().filter(|entry| newer.entry(entry.root, &entry.path).is_none()).count()
            as u64
    }

    /// Adds the files found by a walk to a selection. `within` is the root and the path under it,
    /// if the walk was inside a root.
    fn judge(
        &self,
        selection: &mut Selection,
        walked: Walked,
        matching: &[bool],
        within: Option<(u32, &Path)>,
        under: Under,
    ) {
        selection.failed.extend(walked.failed);
        selection.files.reserve(walked.files.len());
        let under = Arc::new(under);
        let mut known = &self.catalog.entries[..];
        for found in walked.files {
            let entry = within.and_then(|(root, within)| {
                // Both lists are sorted: an entry that is before this file is also before the next
                // one.
                let path = match within.as_os_str().is_empty() {
                    true => Cow::Borrowed(&*found.path),
                    false => Cow::Owned(join(within, &found.path)),
                };
                known = &known[known.iter().take_while(|entry| entry.order(root, &path).is_lt()).count()..];
                known.first().filter(|entry| entry.order(root, &path).is_eq())
            });
            let part = match entry {
                None => Part::All(Why::New),
                Some(entry) if !entry.certain || entry.stamp != found.stamp => Part::All(Why::Changed),
                Some(entry) => self.part(entry, matching),
            };
            let compressed = entry.is_some_and(|entry| entry.compressed);
            let (under, FoundFile { path, stamp }) = (Arc::clone(&under), found);
            selection.files.push(Selected { under, path, part, stamp, compressed });
        }
    }

    /// Returns the matching blocks of a file.
    fn part(&self, entry: &Entry, matching: &[bool]) -> Part {
        let (mut start, mut lines_before) = (0, 0);
        let mut pieces = Vec::new();
        for (place, number) in entry.blocks.clone().enumerate() {
            let block = &self.catalog.blocks[number as usize];
            if matching[number as usize] {
                let binary = place >= entry.texts as usize;
                pieces.push(Piece { start, bytes: block.bytes, lines_before, binary });
            }
            start += block.bytes;
            lines_before += block.lines;
        }
        if pieces.is_empty() { Part::Nothing } else { Part::Blocks(pieces) }
    }
}

/// Returns all files under a directory, or the file itself, to be read without an index.
pub fn everything(directory: &Path) -> Selection {
    let Walked { files, failed } = walk(directory, None);
    let under = Arc::new(Under::its_name(directory));
    let unknown = |FoundFile { path, stamp }| {
        let part = Part::All(Why::New);
        Selected { under: Arc::clone(&under), path, part, stamp, compressed: false }
    };
    Selection { files: files.into_iter().map(unknown).collect(), failed }
}

impl Catalog {
    /// Returns the entry of a file.
    pub(super) fn entry(&self, root: u32, path: &Path) -> Option<&Entry> {
        let found = self.entries.binary_search_by(|entry| entry.order(root, path)).ok()?;
        Some(&self.entries[found])
    }
}
