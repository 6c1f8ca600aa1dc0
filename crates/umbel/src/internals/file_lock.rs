//! Locks on files with a time limit.
//!
//! A process that may read a file may also lock it, so no command waits without a limit.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

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
}
