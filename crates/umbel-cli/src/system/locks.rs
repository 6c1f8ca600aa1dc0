//! The processes that hold locks on files.

use rustix::fs::{major, minor};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process that holds a lock on a file.
#[derive(Debug, PartialEq, Eq)]
pub struct LockHolder {
    pub pid: u32,
    /// The name of the program, unless the process is not visible.
    pub program: Option<String>,
}

/// Returns the process that holds the lock on a file, if the system reports it. A process in
/// another container or on another machine is not reported.
pub fn lock_holder(path: &Path) -> Option<LockHolder> {
    let found = fs::metadata(path).ok()?;
    let (device, inode) = (found.dev(), found.ino());
    let file = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    let pid = holder_in(&fs::read_to_string("/proc/locks").ok()?, &file)?;
    let program = fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    Some(LockHolder { pid, program: program.map(|name| name.trim_end().to_string()) })
}

/// Finds the holder of a lock on a file in the contents of `/proc/locks`:
///
/// ```text
/// 1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF
/// 1: -> FLOCK  ADVISORY  WRITE 1235 fe:01:5678 0 EOF     (waits for it)
/// ```
fn holder_in(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, "FLOCK", _, _, pid, place, ..] if place == file => pid.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_waits_is_not_the_holder() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:01:5678 0 EOF\n2: FLOCK  ADVISORY  WRITE 12 fe:01:567 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 13 fe:01:5678 0 EOF\n3: FLOCK  ADVISORY  READ 14 fe:01:5678 0 EOF\n";
        assert_eq!(holder_in(locks, "fe:01:5678"), Some(14));
        assert_eq!(holder_in(locks, "fe:01:56789"), None);
    }

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(lock_holder(file.path()), None);
        file.as_file().lock().unwrap();
        // Some file systems do not report the device that they lock.
        if let Some(holder) = lock_holder(file.path()) {
            assert_eq!(holder.pid, std::process::id());
            assert!(holder.program.is_some());
        }
    }
}
