//! The Python package: builds its wheel, installs it in environments of its own, and runs the tests in
//! `crates/umbel-py/tests`.
//!
//! The environments stay in the target directory, so that only the first run downloads the libraries.
//! That of Spark is separate: Spark needs other versions of some libraries, Java, and 450 MB.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

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

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("python").join(name)
}

fn new_folder(name: &str) -> PathBuf {
    let folder = folder(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder in the target directory");
    folder
}

/// An environment of Python.
struct Environment {
    python: PathBuf,
}

impl Environment {
    /// Makes an environment with these libraries, or returns why there is none. A second time, this
    /// only checks what is there.
    fn new(name: &str, requirements: &str) -> Result<Environment, String> {
        let python = interpreter()
            .ok_or("there is no Python 3.11 or later with venv: on Debian, `apt-get install python3-venv`")?;
        let path = folder(name);
        let made = run(python, &["-m", "venv", path.to_str().expect("a UTF-8 path")]);
        assert!(made.status.success(), "{}", text(&made));
        let environment = Environment { python: path.join("bin/python") };
        let installed = environment.pip(&["-r", requirements]);
        match installed.status.success() {
            true => Ok(environment),
            false => Err(format!("its libraries do not install: {}", text(&installed))),
        }
    }

    fn pip(&self, args: &[&str]) -> Output {
        run(
            &self.python,
            &[&["-m", "pip", "install", "--quiet", "--disable-pip-version-check"], args].concat(),
        )
    }

    fn install(&self, wheel: &str) {
        let replaced = self.pip(&["--no-index", "--no-deps", "--force-reinstall", wheel]);
        assert!(replaced.status.success(), "{}", text(&replaced));
    }

    fn test(&self, args: &[&str]) {
        let tests = run(&self.python, &[&["-m", "pytest", "-q", "-p", "no:cacheprovider"], args].concat());
        assert!(tests.status.success(), "{}", text(&tests));
        println!("{}", text(&tests));
    }
}

/// Returns the environment in which the wheel is built and tested, or why there is none.
fn environment() -> Result<&'static Environment, &'static str> {
    static ENVIRONMENT: OnceLock<Result<Environment, String>> = OnceLock::new();
    let made = ENVIRONMENT.get_or_init(|| Environment::new("environment", "tests/requirements.txt"));
    made.as_ref().map_err(String::as_str)
}

/// Builds the wheel once for all tests, and returns its path.
fn wheel(environment: &Environment) -> &'static str {
    static WHEEL: OnceLock<String> = OnceLock::new();
    WHEEL.get_or_init(|| {
        let wheels = new_folder("wheels");
        let name = wheels.to_str().expect("a UTF-8 path");
        let maturin = environment.python.with_file_name("maturin");
        let built = run(maturin, &["build", "--release", "--locked", "-o", name]);
        assert!(built.status.success(), "{}", text(&built));
        wheel_in(&wheels).to_str().expect("a UTF-8 path").to_owned()
    })
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
    let environment = match environment() {
        Ok(environment) => environment,
        Err(reason) => return skip(reason),
    };
    let wheel = wheel(environment);
    if cfg!(target_os = "linux") {
        assert!(wheel.contains("-cp311-abi3-manylinux_"), "{wheel}");
    }
    // Without the site of the environment, no other library can be imported.
    let bare = new_folder("bare");
    let bare = bare.to_str().expect("a UTF-8 path");
    let unpacked = environment.pip(&["--no-index", "--no-deps", "--target", bare, wheel]);
    assert!(unpacked.status.success(), "{}", text(&unpacked));
    let program = "import sys; sys.path.insert(0, sys.argv[1]); import umbel; f = umbel.Bloom(9, 0.01); \
                   f.update(['x']); print(f.contains_many(['x']), 'numpy' in sys.modules)";
    let alone = run(&environment.python, &["-S", "-c", program, bare]);
    assert_eq!(text(&alone), "[True] False\n");

    environment.install(wheel);
    environment.test(&["tests", "--ignore", "tests/spark"]);
}

/// Returns the environment with Spark and the wheel, or why there is none.
fn spark() -> Result<Environment, String> {
    // Outside of CI, nobody downloads Spark who cannot run it.
    let java = Command::new("java").arg("-version").output();
    if !java.is_ok_and(|it| it.status.success()) {
        return Err(
            "there is no Java, which Spark needs: on Debian, `apt-get install default-jdk-headless`".into()
        );
    }
    let wheel = wheel(environment()?);
    let spark = Environment::new("spark", "tests/spark/requirements.txt")?;
    spark.install(wheel);
    Ok(spark)
}

#[test]
fn filters_are_built_and_queried_on_spark() {
    match spark() {
        Ok(spark) => spark.test(&["tests/spark/test_spark.py"]),
        Err(reason) => skip(&reason),
    }
}

/// The long form of the test above.
#[test]
#[ignore = "takes several minutes; fuzz/soak runs it"]
fn soak_spark() {
    let spark = spark().unwrap_or_else(|reason| panic!("Spark cannot be tested: {reason}"));
    spark.test(&["tests/spark/test_long.py"]);
    println!("soak: executions=3 faults=0");
}
