//! Whether a file is still the one that was read.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// The properties that change with a file. The time of change is one of them: no program can set it back, as it can the
/// time of modification.
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

/// Clocks of file systems tick: what is written within one tick after the other has the same time. Linux ticks every
/// ten milliseconds or faster.
const TICK: Duration = Duration::from_millis(20);

/// Where times are whole seconds, as on some file systems, they may be even ones.
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

    /// How long until a later change must show in the stamp; `None` if that cannot be told, since the time of change is
    /// in the future.
    fn unsettled(&self) -> Option<Duration> {
        let FileTime(seconds, nanoseconds) = self.changed;
        let tick = if nanoseconds == 0 { COARSE } else { TICK };
        let since_1970 = Duration::new(u64::try_from(seconds).ok()?, nanoseconds);
        let settled = SystemTime::UNIX_EPOCH.checked_add(since_1970)?.checked_add(tick)?;
        let left = settled.duration_since(SystemTime::now()).unwrap_or_default();
        (left <= tick).then_some(left)
    }

    /// The stamp of a file that is about to be read, and whether every later change will show in it. For that it waits
    /// a tick if the file has just been written.
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
