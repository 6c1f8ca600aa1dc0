//! A folder with the digests of many routers, by time.
//!
//! A [`Recorder`] collects the digests of the packets that a router forwards, as an
//! [`Agent`](super::spie::Agent) does, and saves them page by page. A page is a Bloom filter of the
//! digests of a period of time, under a seed of its own, and the list of packets that the router has
//! changed. It becomes a file that is either complete or absent. So a store survives a crash of its
//! recorder, several recorders can write to one store, and old pages can be deleted.
//!
//! [`Store::trace`] asks the routers of a network, from the victim's upstream. The layout of the
//! files is described in `docs/format.md` in the repository.
//!
//! ```
//! use umbel_net::capture::{Link, Packet, Timestamp};
//! use umbel_net::topology::Graph;
//! use umbel_net::traceback::spie::Invariant;
//! use umbel_net::traceback::store::{Recorder, Settings, Store};
//!
//! let folder = tempfile::tempdir()?;
//! let store = Store::create(folder.path())?;
//! let bytes = b"\x45\0\0\x22\x12\x34\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\x04\xd2\0\x35\0\x0e\0\0secret";
//! let now = Timestamp::from_secs(1_700_000_000);
//! let packet = Packet::from_frame(Link::RAW, bytes, now, bytes.len() as u32)?;
//! for router in ["R1", "R2"] {
//!     let mut recorder = Recorder::new(store.clone(), router, Settings::default(), 7)?;
//!     recorder.forward(&packet)?;
//!     recorder.finish()?;
//! }
//!
//! // R3 is a neighbour of R2, too, but has not recorded anything.
//! let graph = Graph::parse(b"R1 R2\nR2 R3\n")?;
//! let digest = Invariant::from_packet(bytes)?.digest();
//! let trace = store.trace(&graph, 1, digest, now..=now)?;
//! let names: Vec<&str> = trace.paths[0].iter().map(|hop| graph.name(hop.router)).collect();
//! assert_eq!(names, ["R2", "R1"]);
//! assert_eq!(trace.silent, [2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod format;
mod page;
mod recorder;
mod trace;

pub use page::{MAX_NAME_BYTES, Page, PageInfo};
pub use recorder::{Recorded, Recorder, Settings};
pub use trace::{PathHop, StoreTrace};

use crate::{Error, Result, checked, numbered};
use format::{MAX_HEADER_BYTES, PageHeader};
use std::io;
use std::path::{Path, PathBuf};

const EXTENSION: &str = "page";

/// A folder with pages.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A page that could not be read.
#[derive(Debug)]
pub struct Unread {
    /// The file of the page.
    pub path: PathBuf,
    /// The reason.
    pub error: Error,
}

/// The pages of a store, from their headers.
#[derive(Debug, Default)]
pub struct Contents {
    /// The files of the pages by number, and their descriptions.
    pub pages: Vec<(PathBuf, PageInfo)>,
    /// The pages that could not be read.
    pub unread: Vec<Unread>,
}

impl Store {
    /// Returns the store in this folder, which may not exist yet: the first page creates it.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read, or holds other files but no page.
    pub fn create(folder: impl Into<PathBuf>) -> Result<Store> {
        let store = Store { folder: folder.into() };
        match numbered::check_is_store(&store.folder, EXTENSION) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(store),
            checked => checked.map(|()| store),
        }
    }

    /// Opens the store in this folder.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read or holds no page.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Store> {
        let store = Store { folder: folder.into() };
        if store.pages()?.is_empty() {
            return Err(Error::NoPages { path: store.folder });
        }
        Ok(store)
    }

    /// Saves a page, and returns the path of its file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written, or no number is left.
    pub fn add(&self, page: &Page) -> Result<PathBuf> {
        numbered::add(&self.folder, EXTENSION, &page.to_bytes()?)
    }

    /// Returns the files of the pages, ordered by number.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn pages(&self) -> Result<Vec<PathBuf>> {
        numbered::list(&self.folder, EXTENSION)
    }

    /// Returns the descriptions of all pages. Reads and verifies only their headers.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn contents(&self) -> Result<Contents> {
        let mut contents = Contents::default();
        for path in self.pages()? {
            match inspect(&path) {
                Ok(about) => contents.pages.push((path, about)),
                Err(error) => contents.unread.push(Unread { path, error }),
            }
        }
        Ok(contents)
    }
}

/// Returns the description of a page's file. Reads and verifies only the header.
///
/// # Errors
///
/// Fails if the file cannot be read, or its header is invalid or damaged.
pub fn inspect(path: impl AsRef<Path>) -> Result<PageInfo> {
    let path = path.as_ref();
    let start = checked::start(&mut checked::open(path)?, MAX_HEADER_BYTES);
    let (head, length) = start.map_err(Error::io(path, "read"))?;
    Ok(PageHeader::read(&head, length).map_err(|error| error.at(path))?.about)
}

/// Reads and verifies a page's file.
///
/// # Errors
///
/// Fails if the file cannot be read, or is invalid or damaged.
pub fn load(path: impl AsRef<Path>) -> Result<Page> {
    let path = path.as_ref();
    let bytes = checked::read(path, "the page", MAX_HEADER_BYTES, PageHeader::read);
    bytes.and_then(|bytes| Page::from_bytes(&bytes)).map_err(|error| error.at(path))
}
