//! A folder of epochs.
//!
//! Each epoch is a file that is either complete or absent. So a store survives a crash of its
//! recorder, several recorders can write to one store, and old epochs can be deleted or moved.
//!
//! # The file of an epoch
//!
//! All numbers are little-endian:
//!
//! | bytes | contents |
//! | --- | --- |
//! | 8 | `UMBELPAS` |
//! | 4, 4 | the version, 1, or 2 with a block filter, and the method: 0 block-based, 1 hierarchical, 2 winnowing |
//! | 8 | the length of the file |
//! | 8 each | the run and the number of the epoch in it; the bytes of a block; the number of independent winnowings; 1 if streams were reassembled; the first and the last time, in nanoseconds; the numbers of payloads, bytes, blocks, blocks of the longest payload, and payloads that are not listed |
//! | 8 each | the number of local networks, and the sizes of the list of pairs, the offset filter (0 with winnowing) and the payload filter; in version 2, also that of the block filter |
//! | 8 | XXH3-64 of everything before |
//! | 18 each | local networks: the family, 4 or 6; the length; 16 bytes of address, those of IPv4 first |
//! | | the list of pairs |
//! | | the offset filter, the payload filter and, in version 2, the block filter, as filter files |
//! | 8 | XXH3-64 of everything before |
//!
//! The list of pairs begins with three numbers in LEB128 (seven bits per byte, lowest first): the
//! number of IPv4 addresses, of IPv6 addresses, and of pairs. The addresses follow in order. For
//! each pair, in order, there are: twice the difference of its source's number from that of the
//! pair before, plus 1 if one of its streams continues from an earlier epoch; the number of its
//! destination; and two bytes, the parts of the epoch's span (out of 255) in which the pair
//! communicated first and last. Addresses are numbered from 1; 0 is an address that is not listed.
//!
//! # Records
//!
//! The filters hold records, made with [`Digest::salted`](umbel::Digest::salted) from XXH3-64
//! digests under the seed of the filters.
//!
//! With blocks of equal size, the record of a block (or of a half block in the payload filter) is
//! the digest of its bytes, salted with its number modulo 64 (128 for halves) times 64, plus its
//! level. A group of two on the next level has the digest of the first, salted with that of the
//! second. Records in the payload filter are salted once more, with the digest of the pair. That is
//! the digest of 34 bytes: for the source and the destination, the family (4 or 6, or 0 if not
//! listed) and 16 bytes of address.
//!
//! The block filter holds the digests of blocks as they are.
//!
//! With [winnowing](crate::payload::winnowing), the record is the digest of a block under the seed
//! that is the run, salted with the number of the epoch, and with the pair.

use super::chain::Chain;
use super::format::{EpochHeader, MAX_HEADER_BYTES};
use super::{Epoch, EpochInfo, ExcerptFindings, Parts};
use crate::capture::Timestamp;
use crate::network::Prefix;
use crate::{Error, Result, checked, numbered};
use std::fs;
use std::io;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};

const EXTENSION: &str = "epoch";

/// A folder with epochs.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    /// The folders that [`create`](Store::create) made, the outermost first.
    created: Vec<PathBuf>,
}

/// The answer of a store to a query for an excerpt or a document.
#[derive(Debug)]
pub struct Answer<T> {
    /// The epochs that were searched, by number.
    pub searched: Vec<Searched<T>>,
    /// The epochs that could not be read, or whose blocks are too large for the query. The answer
    /// does not cover them.
    pub unread: Vec<Unread>,
}

/// An epoch that was searched.
#[derive(Debug)]
pub struct Searched<T> {
    /// The file of the epoch.
    pub path: PathBuf,
    /// The description of the epoch.
    pub about: EpochInfo,
    /// The networks that were local when it was recorded.
    pub local: Vec<Prefix>,
    /// The findings.
    pub found: T,
}

/// An epoch that could not be searched.
#[derive(Debug)]
pub struct Unread {
    /// The file of the epoch.
    pub path: PathBuf,
    /// The reason.
    pub error: Error,
}

impl Store {
    /// Returns the store in this folder, and creates the folder if necessary.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be created or read, or holds other files but no epoch.
    pub fn create(folder: impl Into<PathBuf>) -> Result<Store> {
        let mut store = Store { folder: folder.into(), created: Vec::new() };
        let made = create_folders(&store.folder, &mut store.created);
        if made.is_err() {
            store.remove_if_empty();
        }
        made.map_err(Error::io(&store.folder, "create the folder"))?;
        numbered::check_is_store(&store.folder, EXTENSION)?;
        Ok(store)
    }

    /// Opens the store in this folder.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read or holds no epoch.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Store> {
        let store = Store { folder: folder.into(), created: Vec::new() };
        if store.epochs()?.is_empty() {
            return Err(Error::EmptyStore { path: store.folder });
        }
        Ok(store)
    }

    /// Saves an epoch, and returns the path of its file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written, or no epoch number is left.
    pub fn add(&self, epoch: &Epoch) -> Result<PathBuf> {
        // Another recorder may have removed the folder because it had nothing to store; this creates
        // it again.
        numbered::add(&self.folder, EXTENSION, &epoch.to_bytes()?)
    }

    /// Removes the folders that [`create`](Store::create) made, unless something is in them. Folders
    /// that existed before stay.
    pub fn remove_if_empty(&self) {
        // A folder that is in use, or that cannot be removed, does no harm.
        let _ = self.created.iter().rev().try_for_each(fs::remove_dir);
    }

    /// Returns the files of the epochs, ordered by number.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn epochs(&self) -> Result<Vec<PathBuf>> {
        numbered::list(&self.folder, EXTENSION)
    }

    /// Looks up an excerpt in the epochs that overlap these times. For an excerpt of a stream, the
    /// epoch with its end must overlap them; its start is searched for in all earlier epochs.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read, or the excerpt is too short for every epoch.
    pub fn find(
        &self,
        excerpt: &[u8],
        times: impl RangeBounds<Timestamp>,
    ) -> Result<Answer<ExcerptFindings>> {
        let Answer { searched, unread } = self.search(times, &Excerpt(excerpt))?;
        let found = |Searched { path, about, local, found: (mut found, chain) }: Searched<(
            ExcerptFindings,
            Chain,
        )>| {
            found.expected += chain.expected();
            Searched { path, about, local, found }
        };
        Ok(Answer { searched: searched.into_iter().map(found).collect(), unread })
    }

    /// Searches for parts of a document in the epochs that overlap these times.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read, or the document is too short for every epoch.
    pub fn find_parts(&self, document: &[u8], times: impl RangeBounds<Timestamp>) -> Result<Answer<Parts>> {
        self.search(times, &Document(document))
    }

    /// Runs a query on the epochs that overlap these times, latest first. Fails only if every epoch
    /// refuses the query.
    fn search<Q: Query>(&self, times: impl RangeBounds<Timestamp>, query: &Q) -> Result<Answer<Q::Answer>> {
        let mut answer = Answer { searched: Vec::new(), unread: Vec::new() };
        let mut refused = Vec::new();
        for (path, about) in self.descriptions(&mut answer.unread)?.into_iter().rev() {
            let is_within = within(&about, &times);
            if !is_within && !answer.searched.iter().any(|later| query.is_open(&later.found, &about)) {
                continue;
            }
            let epoch = match load(&path) {
                Ok(epoch) => epoch,
                Err(error) => {
                    answer.unread.push(Unread { path, error });
                    continue;
                }
            };
            for later in answer.searched.iter_mut().filter(|later| query.is_open(&later.found, &about)) {
                query.look_back(&epoch, &mut later.found);
            }
            if is_within {
                match query.run(&epoch) {
                    Ok(found) => {
                        let Epoch { about, local, .. } = epoch;
                        answer.searched.push(Searched { path, about, local, found });
                    }
                    // Another epoch may have smaller blocks.
                    Err(error) => refused.push(Unread { path, error }),
                }
            }
        }
        if answer.searched.is_empty()
            && let Some(Unread { error, .. }) = refused.pop()
        {
            return Err(error);
        }
        answer.searched.reverse();
        answer.unread.append(&mut refused);
        Ok(answer)
    }

    /// Returns the descriptions of all epochs.
    fn descriptions(&self, unread: &mut Vec<Unread>) -> Result<Vec<(PathBuf, EpochInfo)>> {
        let mut descriptions = Vec::new();
        for path in self.epochs()? {
            match inspect(&path) {
                Ok(about) => descriptions.push((path, about)),
                Err(error) => unread.push(Unread { path, error }),
            }
        }
        Ok(descriptions)
    }
}

/// Creates a folder and those above it that are missing, and adds them to `created`, the outermost
/// first.
fn create_folders(folder: &Path, created: &mut Vec<PathBuf>) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        create_folders(parent, created)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => created.push(folder.to_owned()),
        // Another process was faster, or the path ends with a dot.
        Err(_) if folder.is_dir() => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// A query that runs on epochs.
trait Query {
    type Answer;

    /// Runs the query on an epoch.
    fn run(&self, epoch: &Epoch) -> Result<Self::Answer>;

    /// Returns whether an earlier epoch could add to an answer.
    fn is_open(&self, _: &Self::Answer, _: &EpochInfo) -> bool {
        false
    }

    /// Adds the findings of an earlier epoch.
    fn look_back(&self, _: &Epoch, _: &mut Self::Answer) {}
}

struct Excerpt<'a>(&'a [u8]);

impl Query for Excerpt<'_> {
    type Answer = (ExcerptFindings, Chain);

    fn run(&self, epoch: &Epoch) -> Result<(ExcerptFindings, Chain)> {
        let mut found = epoch.find(self.0)?;
        let chain = epoch.chain(self.0, &mut found);
        Ok((found, chain))
    }

    fn is_open(&self, (_, chain): &(ExcerptFindings, Chain), earlier: &EpochInfo) -> bool {
        chain.is_open(earlier)
    }

    fn look_back(&self, epoch: &Epoch, (found, chain): &mut (ExcerptFindings, Chain)) {
        chain.look_back(self.0, epoch, found);
    }
}

struct Document<'a>(&'a [u8]);

impl Query for Document<'_> {
    type Answer = Parts;

    fn run(&self, epoch: &Epoch) -> Result<Parts> {
        epoch.find_parts(self.0)
    }
}

/// Returns whether an epoch overlaps these times.
fn within(about: &EpochInfo, times: &impl RangeBounds<Timestamp>) -> bool {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let not_before = match times.start_bound() {
        Included(start) => about.last >= *start,
        Excluded(start) => about.last > *start,
        Unbounded => true,
    };
    let not_after = match times.end_bound() {
        Included(end) => about.first <= *end,
        Excluded(end) => about.first < *end,
        Unbounded => true,
    };
    not_before && not_after
}

/// Returns the description of an epoch's file. Reads and verifies only the header.
///
/// # Errors
///
/// Fails if the file cannot be read, or its header is invalid or damaged.
pub fn inspect(path: impl AsRef<Path>) -> Result<EpochInfo> {
    let path = path.as_ref();
    let start = checked::start(&mut checked::open(path)?, MAX_HEADER_BYTES);
    let (head, length) = start.map_err(Error::io(path, "read"))?;
    Ok(EpochHeader::read(&head, length).map_err(|error| error.at(path))?.about)
}

/// Reads and verifies an epoch's file.
///
/// # Errors
///
/// Fails if the file cannot be read, or is invalid or damaged.
pub fn load(path: impl AsRef<Path>) -> Result<Epoch> {
    let path = path.as_ref();
    let bytes = checked::read(path, "the epoch", MAX_HEADER_BYTES, EpochHeader::read);
    bytes.and_then(|bytes| Epoch::from_bytes(&bytes)).map_err(|error| error.at(path))
}
