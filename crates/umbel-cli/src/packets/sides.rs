//! The captures of the two sides of a router, read in the order of time.

use super::captures::warn_of_losses;
use crate::input::{CountedReader, name, open_raw, total_len};
use crate::system::signals;
use crate::terminal::Progress;
use crate::terminal::output::warn;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use umbel_net::capture::{Counts, Reader};
use umbel_net::traceback::passage::Sighting;

/// A side of a router.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Packets enter.
    In,
    /// Packets leave.
    Out,
}

/// A capture of one side, and its next packet.
struct Feed<'a> {
    path: &'a Path,
    side: Side,
    reader: Reader<'static>,
    next: Option<Sighting>,
}

impl<'a> Feed<'a> {
    fn open(path: &'a Path, side: Side, read: &Arc<AtomicU64>) -> Result<Feed<'a>> {
        let input = CountedReader::new(open_raw(path)?, Arc::clone(read));
        let mut feed = Feed { path, side, reader: Reader::named(input, name(path))?, next: None };
        feed.advance()?;
        Ok(feed)
    }

    fn advance(&mut self) -> Result<()> {
        self.next = match self.reader.next()? {
            Some(packet) => Some(Sighting::new(packet.ip, packet.time)?),
            None => None,
        };
        Ok(())
    }
}

/// Calls `handle` for every packet of the captures in the order of time, until a signal asks the
/// program to end. Warns of packets that could not be read.
pub fn each_sighting(
    entered: &[PathBuf],
    left: &[PathBuf],
    mut handle: impl FnMut(Side, Sighting) -> Result<()>,
) -> Result<Vec<Counts>> {
    let read = Arc::new(AtomicU64::new(0));
    let sides = || {
        let side = |side| move |path| (side, path);
        entered.iter().map(side(Side::In)).chain(left.iter().map(side(Side::Out)))
    };
    let paths: Vec<PathBuf> = sides().map(|(_, path)| path.clone()).collect();
    let progress = Progress::of_bytes(Arc::clone(&read), total_len(&paths));
    let mut feeds =
        sides().map(|(side, path)| Feed::open(path, side, &read)).collect::<Result<Vec<Feed<'_>>>>()?;
    let terminated = signals::termination_flag().context("cannot watch for signals")?;
    // At the same time, a packet enters before it leaves.
    let order = |feed: &Feed<'_>| feed.next.as_ref().map(|next| (next.time(), feed.side));
    while let Some(feed) = feeds.iter_mut().filter(|feed| feed.next.is_some()).min_by_key(|feed| order(feed))
        && let Some(packet) = feed.next.take()
        && !terminated.load(Relaxed)
    {
        handle(feed.side, packet)?;
        feed.advance()?;
    }
    progress.finish();
    if terminated.load(Relaxed) {
        warn("stopped; the packets before were recorded");
    }
    feeds.iter().for_each(|feed| warn_of_losses(feed.path, &feed.reader));
    Ok(feeds.iter().map(|feed| *feed.reader.counts()).collect())
}
