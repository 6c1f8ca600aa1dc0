//! The library that makes the system calls of a process fail: `shim.c`, built with the C compiler
//! of the system.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A failure of system calls, as `shim.c` describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The N-th call that needs room on the disk fails, and all after it.
    NoSpace(u64),
    /// Files grow by at most this many bytes in total.
    Room(u64),
    /// The N-th call on a file fails, once.
    Input(u64),
    /// The process is killed before the N-th call that changes the disk.
    Kill(u64),
    /// Signals interrupt N of N + 1 calls.
    Interrupted(u64),
    /// Reads and writes transfer only a part.
    Short(u64),
}

impl Fault {
    pub fn setting(self) -> String {
        match self {
            Fault::NoSpace(n) => format!("enospc:{n}"),
            Fault::Room(n) => format!("room:{n}"),
            Fault::Input(n) => format!("eio:{n}"),
            Fault::Kill(n) => format!("kill:{n}"),
            Fault::Interrupted(n) => format!("eintr:{n}"),
            Fault::Short(n) => format!("short:{n}"),
        }
    }
}

/// The built library, in a folder that ends with the tests.
struct Shim {
    _folder: TempDir,
    library: PathBuf,
}

/// Returns the library, which is built once; `None`, with a message, if that is impossible here.
pub fn shim() -> Option<&'static Path> {
    static SHIM: OnceLock<Option<Shim>> = OnceLock::new();
    SHIM.get_or_init(build).as_ref().map(|shim| &*shim.library)
}

fn build() -> Option<Shim> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        eprintln!("skipped: failing system calls, which need Linux on x86-64");
        return None;
    }
    if !Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: failing system calls, since there is no C compiler (cc) to build their source");
        return None;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = folder.path().join("shim.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/writers/shim.c");
    let mut command = Command::new("cc");
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    let built = command.output().expect("it could be asked for its version");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(Shim { _folder: folder, library })
}
