//! Locks on files with a time limit.
//!
//! A process that may read a file may also lock it, so no command waits without a limit.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A kind of lock on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLockKind {
    /// Excludes all other locks.
    Exclusive,
    /// Excludes only exclusive locks.
    Shared,
}

impl FileLockKind {
    fn try_lock(self, file: &File) -> Result<(), TryLockError> {
        match self {
            FileLockKind::Exclusive => file.try_lock(),
            FileLockKind::Shared => file.try_lock_shared(),
        }
    }

    fn lock(self, file: &File) -> io::Result<()> {
        loop {
            let locked = match self {
                FileLockKind::Exclusive => file.lock(),
                FileLockKind::Shared => file.lock_shared(),
            };
            match locked {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                locked => return locked,
            }
        }
    }
}

/// Locks a file, and waits at most this long for other processes to release it.
///
/// # Errors
///
/// [`TryLockError::WouldBlock`] if another process still holds the lock then.
pub fn lock_within(file: &File, kind: FileLockKind, wait: Duration) -> Result<(), TryLockError> {
    match kind.try_lock(file) {
        Err(TryLockError::WouldBlock) if !wait.is_zero() => {}
        result => return result,
    }
    // The system has no lock with a time limit. A thread waits in the queue for the lock, which
    // belongs to all duplicates of the descriptor. If the time is over first, the thread releases
    // the lock as soon as it gets it.
    let duplicate = file.try_clone().map_err(TryLockError::Error)?;
    let (sender, receiver) = mpsc::channel();
    let work = move || sender.send(kind.lock(&duplicate));
    thread::Builder::new().name("lock".to_string()).spawn(work).map_err(TryLockError::Error)?;
    match receiver.recv_timeout(wait) {
        Ok(locked) => locked.map_err(TryLockError::Error),
        Err(_) => Err(TryLockError::WouldBlock),
    }
}

/// Opens the file at a path and locks it, and waits at most this long for other processes to release
/// it.
///
/// Files are replaced, not overwritten. If another process has replaced the file in the meantime, the
/// new one is opened and locked instead. So no lock file is needed, and none is left behind.
///
/// # Errors
///
/// Returns the error of `open`. The inner result is that of [`lock_within`].
pub fn lock_current<E>(
    path: &Path,
    kind: FileLockKind,
    wait: Duration,
    open: impl Fn() -> Result<File, E>,
) -> Result<Result<File, TryLockError>, E> {
    let start = Instant::now();
    loop {
        let file = open()?;
        if let Err(error) = lock_within(&file, kind, wait.saturating_sub(start.elapsed())) {
            return Ok(Err(error));
        }
        if is_named(&file, path) {
            return Ok(Ok(file));
        }
        // A process that replaces the file without end must not keep this one busy.
        if start.elapsed() > wait.max(MIN_REPLACING_TIME) {
            return Ok(Err(TryLockError::WouldBlock));
        }
    }
}

/// The shortest time for which a file is opened again because it was replaced.
const MIN_REPLACING_TIME: Duration = Duration::from_secs(1);

/// Returns whether a path still leads to a file or folder that was opened by it.
pub(crate) fn is_named(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
        file.metadata().map(identity).ok() == path.metadata().map(identity).ok()
    }
    // On other systems an open file cannot be replaced.
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileLockKind::{Exclusive, Shared};

    fn would_block(result: Result<(), TryLockError>) -> bool {
        matches!(result, Err(TryLockError::WouldBlock))
    }

    #[test]
    fn a_lock_is_waited_for_until_the_time_is_over() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(path.path()).unwrap();
        let (first, second) = (open(), open());
        lock_within(&first, Exclusive, Duration::ZERO).unwrap();
        for kind in [Exclusive, Shared] {
            assert!(would_block(lock_within(&second, kind, Duration::ZERO)));
            assert!(would_block(lock_within(&second, kind, Duration::from_millis(50))));
        }
        let waiting = thread::spawn(move || lock_within(&second, Exclusive, Duration::MAX).map(|()| second));
        thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished(), "the lock is held");
        drop(first);
        let second = waiting.join().unwrap().unwrap();
        assert!(would_block(open().try_lock()));
        // Threads whose time was over have released the lock again.
        drop(second);
        lock_within(&open(), Exclusive, Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn readers_share_a_lock() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let files = [(); 2].map(|()| File::open(path.path()).unwrap());
        files.iter().for_each(|file| lock_within(file, Shared, Duration::ZERO).unwrap());
        assert!(would_block(lock_within(&files[0], Exclusive, Duration::ZERO)));
    }

    #[test]
    fn a_file_that_replaced_another_is_locked_instead() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("now"), folder.path().join("next"));
        std::fs::write(&path, "old").unwrap();
        let current = |wait| lock_current(&path, Exclusive, wait, || File::open(&path)).unwrap();
        let old = current(Duration::ZERO).unwrap();
        assert!(matches!(current(Duration::ZERO), Err(TryLockError::WouldBlock)));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| current(Duration::MAX).unwrap());
            thread::sleep(Duration::from_millis(50));
            std::fs::write(&other, "new").unwrap();
            std::fs::rename(&other, &path).unwrap();
            drop(old);
            assert_eq!(io::read_to_string(waiting.join().unwrap()).unwrap(), "new");
        });
        std::fs::remove_file(&path).unwrap();
        let error = lock_current(&path, Shared, Duration::ZERO, || File::open(&path)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_is_replaced_again_and_again_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("now");
        let replace = || {
            let file = tempfile::NamedTempFile::new_in(folder.path())?;
            let opened = file.reopen()?;
            file.persist(&path)?;
            // The name belongs to the next file before this one is locked.
            tempfile::NamedTempFile::new_in(folder.path())?.persist(&path)?;
            io::Result::Ok(opened)
        };
        assert!(would_block(lock_current(&path, Exclusive, Duration::ZERO, replace).unwrap().map(drop)));
    }
}
