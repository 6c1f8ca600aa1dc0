//! Detects whether a file has changed since it was read.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// The properties that change with a file. They include the time of the last status change
/// (`ctime`), which, unlike the modification time, no program can set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub size: u64,
    pub inode: u64,
    pub modified: FileTime,
    pub changed: FileTime,
}

/// Seconds since 1970, and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileTime(pub i64, pub u32);

/// An upper bound on the clock tick of a file system. Two writes within one tick get the same time;
/// Linux ticks at least every ten milliseconds.
const TICK: Duration = Duration::from_millis(20);

/// The tick of file systems that store whole seconds, some of them only even ones.
const COARSE: Duration = Duration::from_millis(2100);

impl Stamp {
    pub fn from_metadata(metadata: &Metadata) -> Stamp {
        Stamp {
            size: metadata.len(),
            inode: metadata.ino(),
            modified: FileTime(metadata.mtime(), metadata.mtime_nsec() as u32),
            changed: FileTime(metadata.ctime(), metadata.ctime_nsec() as u32),
        }
    }

    /// Returns how long it takes until any later change shows in the stamp, or `None` if that is
    /// unknown because the change time is in the future.
    fn unsettled(&self) -> Option<Duration> {
        let FileTime(seconds, nanoseconds) = self.changed;
        let tick = if nanoseconds == 0 { COARSE } else { TICK };
        let since_1970 = Duration::new(u64::try_from(seconds).ok()?, nanoseconds);
        let settled = SystemTime::UNIX_EPOCH.checked_add(since_1970)?.checked_add(tick)?;
        let left = settled.duration_since(SystemTime::now()).unwrap_or_default();
        (left <= tick).then_some(left)
    }

    /// Returns the stamp of a file that is about to be read, and whether every later change will
    /// show in it. Waits for one tick if the file has just been written.
    pub fn settled(file: &File) -> io::Result<(Stamp, bool)> {
        let stamp = Stamp::from_metadata(&file.metadata()?);
        match stamp.unsettled() {
            Some(Duration::ZERO) => Ok((stamp, true)),
            Some(left) if left <= TICK => {
                std::thread::sleep(left);
                let stamp = Stamp::from_metadata(&file.metadata()?);
                Ok((stamp, stamp.unsettled() == Some(Duration::ZERO)))
            }
            _ => Ok((stamp, false)),
        }
    }
}
