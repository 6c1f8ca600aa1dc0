//! Word lists of Debian, wherever they can be had: installed, or unpacked from their packages into the build folder,
//! which needs no rights.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The word list of a package.
pub fn list(package: &str, name: &str) -> PathBuf {
    let installed = Path::new("/usr/share/dict").join(name);
    if installed.is_file() {
        return installed;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(package);
    let unpacked = folder.join("usr/share/dict").join(name);
    if !unpacked.is_file() {
        std::fs::create_dir_all(&folder).expect("the build folder can be written to");
        // The first try fails where the lists of packages have never been fetched.
        let _ = fetch(package, &folder)
            || (run(Command::new("apt-get").arg("update")) && fetch(package, &folder));
    }
    assert!(unpacked.is_file(), "this test needs a word list: `sudo apt-get install {package}`");
    unpacked
}

fn fetch(package: &str, folder: &Path) -> bool {
    let script = "apt-get download \"$0\" && dpkg-deb -x \"$0\"_*.deb .";
    run(Command::new("sh").args(["-c", script, package]).current_dir(folder))
}

fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
