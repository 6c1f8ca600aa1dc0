//! The Python package: builds its wheel, installs it in an environment of its own, and runs the tests in
//! `crates/umbel-py/tests`.
//!
//! The environment stays in the target directory, so that only the first run downloads the libraries.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CRATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../umbel-py");

/// Returns an interpreter that umbel supports and that can make environments.
fn interpreter() -> Option<&'static str> {
    let check = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
    let fits =
        |name: &&str| Command::new(name).args(["-c", check]).output().is_ok_and(|it| it.status.success());
    ["python3", "python3.14", "python3.13", "python3.12", "python3.11"].into_iter().find(fits)
}

/// Reports why the tests cannot run, which is a failure in CI.
fn skip(reason: &str) {
    assert!(env::var("CI").as_deref() != Ok("true"), "in CI, the Python package must be tested: {reason}");
    eprintln!("skipped: the Python package, since {reason}");
}

fn run(program: impl AsRef<OsStr>, args: &[&str]) -> Output {
    let mut command = Command::new(program.as_ref());
    command.args(args).current_dir(CRATE).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("UMBEL_COMMAND", env!("CARGO_BIN_EXE_umbel"));
    command.output().unwrap_or_else(|error| panic!("{:?}: {error}", program.as_ref()))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Returns the only wheel in a folder.
fn wheel_in(folder: &Path) -> PathBuf {
    let mut wheels = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let wheel = wheels.next().expect("a wheel");
    assert_eq!(wheels.next(), None, "one wheel serves all versions of Python");
    wheel
}

#[test]
fn the_wheel_installs_without_cargo_and_passes_its_tests() {
    let Some(python) = interpreter() else {
        return skip("there is no Python 3.11 or later with venv: on Debian, `apt-get install python3-venv`");
    };
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let (environment, wheels, bare) = (home.join("environment"), home.join("wheels"), home.join("bare"));
    for folder in [&wheels, &bare] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).expect("a folder in the target directory");
    }
    let [venv, wheels_name, bare_name] =
        [&environment, &wheels, &bare].map(|it| it.to_str().expect("a UTF-8 path"));
    // A second time, this only checks what is there.
    let made = run(python, &["-m", "venv", venv]);
    assert!(made.status.success(), "{}", text(&made));
    let python = environment.join("bin/python");
    let pip = |args: &[&str]| {
        run(&python, &[&["-m", "pip", "install", "--quiet", "--disable-pip-version-check"], args].concat())
    };
    let installed = pip(&["-r", "tests/requirements.txt"]);
    if !installed.status.success() {
        return skip(&format!("its libraries do not install: {}", text(&installed)));
    }

    let built = run(environment.join("bin/maturin"), &["build", "--release", "--locked", "-o", wheels_name]);
    assert!(built.status.success(), "{}", text(&built));
    let wheel = wheel_in(&wheels);
    let name = wheel.to_str().expect("a UTF-8 path");
    if cfg!(target_os = "linux") {
        assert!(name.contains("-cp311-abi3-manylinux_"), "{name}");
    }
    // Without the site of the environment, no other library can be imported.
    let unpacked = pip(&["--no-index", "--no-deps", "--target", bare_name, name]);
    assert!(unpacked.status.success(), "{}", text(&unpacked));
    let program = "import sys; sys.path.insert(0, sys.argv[1]); import umbel; f = umbel.Bloom(9, 0.01); \
                   f.update(['x']); print(f.contains_many(['x']), 'numpy' in sys.modules)";
    let alone = run(&python, &["-S", "-c", program, bare_name]);
    assert_eq!(text(&alone), "[True] False\n");

    let replaced = pip(&["--no-index", "--no-deps", "--force-reinstall", name]);
    assert!(replaced.status.success(), "{}", text(&replaced));
    let tests = run(&python, &["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]);
    assert!(tests.status.success(), "{}", text(&tests));
    println!("{}", text(&tests));
}
