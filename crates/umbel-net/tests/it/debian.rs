//! Files of Debian packages, unpacked into the build folder without privileges.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of a file or folder of a package.
pub fn unpacked(package: &str, inside: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(package);
    let wanted = folder.join(inside);
    if !wanted.exists() {
        // Unpack aside and rename, since tests run concurrently.
        let thread = format!("{:?}", std::thread::current().id());
        let aside = folder.with_extension(format!("{}.{thread}", std::process::id()));
        std::fs::create_dir_all(&aside).expect("the build folder can be written to");
        // The first attempt fails if the package lists were never fetched.
        let _ =
            fetch(package, &aside) || (run(Command::new("apt-get").arg("update")) && fetch(package, &aside));
        if std::fs::rename(&aside, &folder).is_err() {
            let _ = std::fs::remove_dir_all(&aside);
        }
    }
    assert!(wanted.exists(), "this test needs {inside} of the Debian package {package}");
    wanted
}

fn fetch(package: &str, folder: &Path) -> bool {
    let script = "apt-get download \"$0\" && dpkg-deb -x \"$0\"_*.deb .";
    run(Command::new("sh").args(["-c", script, package]).current_dir(folder))
}

fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
