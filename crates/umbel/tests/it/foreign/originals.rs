//! Filters of other libraries against the programs and libraries that write them: the same bytes for
//! the same keys, and the same answers from either side's files.
//!
//! Guava and DCSO's `bloom` come with Debian, and CI installs them. Spark and the Java libraries of
//! DataSketches and Parquet are parts of pyspark, a download of 450 MB: their tests run if Python can
//! import pyspark, or if `UMBEL_SPARK_JARS` names a folder with its jars.

use crate::common::mix;
use datasketches::bloom::{BloomFilter, BloomFilterBuilder};
use parquet::bloom_filter::Sbbf;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use umbel::foreign::{ForeignFilter, Format, Funnel, Given, Options};

/// Keys and rates that filters are made for: from one word of bits to many, with few hashes and many.
const SIZES: [(u64, f64); 5] = [(1, 0.4), (10, 0.03), (300, 0.25), (2000, 0.01), (700, 1e-7)];

/// The number of keys that are asked for.
const QUESTIONS: u64 = 4000;

/// Where Debian's packages put Guava.
const GUAVA: &str = "/usr/share/java/guava.jar";

/// Reports why a test cannot run. In CI, that is a failure.
fn skip(reason: &str) {
    assert!(env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {reason}");
    eprintln!("skipped: {reason}");
}

/// Runs a program to its end, with these bytes as its input.
fn run(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A program that fails may not read everything.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Returns a line for a number: different lines for different numbers of up to 32 bits.
fn line(funnel: Funnel, number: u64) -> Vec<u8> {
    match funnel {
        Funnel::Int => (number as u32).wrapping_mul(0x9e37_79b1).cast_signed().to_string().into_bytes(),
        Funnel::Long => mix(number).cast_signed().to_string().into_bytes(),
        Funnel::Bytes => {
            // Any bytes but the one that ends a line, in all lengths.
            let bytes = (0..number % 40 + 9).map(|i| mix(number << 8 | i) as u8);
            let random = bytes.map(|byte| if byte == b'\n' { 0 } else { byte });
            random.chain(number.to_string().into_bytes()).collect()
        }
        _ => {
            let filling: String = "käse🌼, ".chars().cycle().take((number % 70) as usize).collect();
            format!("{filling}{number}").into_bytes()
        }
    }
}

fn lines(funnel: Funnel, numbers: impl Iterator<Item = u64>) -> Vec<Vec<u8>> {
    numbers.map(|number| line(funnel, number)).collect()
}

fn text(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect()
}

/// One filter that both sides make.
struct Case {
    format: Format,
    funnel: Funnel,
    seed: Option<u64>,
    keys: u64,
    rate: f64,
    members: Vec<Vec<u8>>,
    questions: Vec<Vec<u8>>,
}

impl Case {
    fn new(format: Format, funnel: Funnel, seed: Option<u64>, (keys, rate): (u64, f64)) -> Case {
        let members = lines(funnel, 0..keys);
        Case { format, funnel, seed, keys, rate, members, questions: lines(funnel, 0..QUESTIONS) }
    }

    /// Returns our filter of the members.
    fn build(&self) -> ForeignFilter {
        let options = Options { funnel: Some(self.funnel), seed: self.seed, ..Options::default() };
        let mut filter = ForeignFilter::with_capacity(self.format, self.keys, self.rate, &options).unwrap();
        filter.insert_batch(&self.members[..]).unwrap();
        filter
    }

    fn open(&self, bytes: &[u8]) -> ForeignFilter {
        let given = Given { format: Some(self.format), funnel: Some(self.funnel) };
        ForeignFilter::from_bytes(bytes, given).unwrap()
    }

    /// Returns the lines that a filter accepts.
    fn accepted(&self, filter: &ForeignFilter) -> Vec<u8> {
        let answers = filter.contains_batch(&self.questions[..]).unwrap();
        let accepted = self.questions.iter().zip(answers.iter()).filter(|(_, yes)| *yes);
        text(&accepted.map(|(line, _)| line.clone()).collect::<Vec<_>>())
    }

    /// Compares a file of the original, and the lines that it accepts, with ours.
    fn compare(&self, original: &[u8], accepted: &[u8]) {
        let name = format!("{} {} for {} keys at {}", self.format, self.funnel, self.keys, self.rate);
        assert!(self.accepted(&self.open(original)) == accepted, "{name}: the answers differ");
        assert!(self.build().to_bytes() == original, "{name}: the bytes differ");
    }
}

/// A Java library: its class in `tests/foreign_writers`, and where its jars are.
struct Java {
    class: &'static str,
    path: OsString,
    folder: TempDir,
}

impl Java {
    fn compile(class: &'static str, jars: impl Into<OsString>) -> Java {
        let (folder, jars) = (tempfile::tempdir().unwrap(), jars.into());
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign_writers");
        let mut compiler = Command::new("javac");
        compiler.arg("-d").arg(folder.path()).arg("-cp").arg(&jars);
        run(compiler.arg(sources.join("Writer.java")).arg(sources.join(class).with_extension("java")), b"");
        let mut path = OsString::from(folder.path());
        path.push(":");
        path.push(&jars);
        Java { class, path, folder }
    }

    /// Lets the library make a filter for each case, or read it if it is there, and answer.
    fn run(&self, cases: &[(Case, &str)], file: impl Fn(usize) -> PathBuf) {
        let mut java = Command::new("java");
        java.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp"])
            .arg(&self.path)
            .arg("Writer");
        for (number, (case, argument)) in cases.iter().enumerate() {
            let [members, questions] =
                ["members", "questions"].map(|part| self.folder.path().join(format!("{number}.{part}")));
            fs::write(&members, text(&case.members)).unwrap();
            fs::write(&questions, text(&case.questions)).unwrap();
            java.args([self.class, argument, case.funnel.name()]);
            java.args([case.keys.to_string(), case.rate.to_string()]).args([
                members,
                questions,
                file(number),
            ]);
        }
        run(&mut java, b"");
    }

    /// Compares the library's files with ours, and lets it answer from ours.
    fn compare(&self, cases: &[(Case, &str)]) {
        let theirs = |number| self.folder.path().join(format!("{number}.theirs"));
        let ours = |number| self.folder.path().join(format!("{number}.ours"));
        let answers = |file: PathBuf| {
            fs::read(file.with_extension(format!("{}.yes", file.extension().unwrap().to_str().unwrap())))
                .unwrap()
        };
        self.run(cases, theirs);
        for (number, (case, _)) in cases.iter().enumerate() {
            case.compare(&fs::read(theirs(number)).unwrap(), &answers(theirs(number)));
            fs::write(ours(number), case.build().to_bytes()).unwrap();
        }
        self.run(cases, ours);
        for (number, (case, _)) in cases.iter().enumerate() {
            assert!(
                answers(ours(number)) == case.accepted(&case.build()),
                "{} answers otherwise",
                self.class
            );
        }
    }
}

fn cases<'a>(
    format: Format,
    funnels: &[Funnel],
    argument: &'a str,
    seed: Option<u64>,
) -> Vec<(Case, &'a str)> {
    let sizes = funnels.iter().flat_map(|funnel| SIZES.map(|size| (*funnel, size)));
    sizes.map(|(funnel, size)| (Case::new(format, funnel, seed, size), argument)).collect()
}

#[test]
fn guava_writes_and_reads_the_same_files() {
    if !is_installed("javac") || !Path::new(GUAVA).exists() {
        return skip("Guava: on Debian, `apt-get install libguava-java default-jdk-headless`");
    }
    Java::compile("Guava", GUAVA).compare(&cases(Format::Guava, Funnel::ALL, "1", None));
}

#[test]
fn the_older_strategy_of_guava_answers_the_same() {
    if !is_installed("javac") || !Path::new(GUAVA).exists() {
        return skip("Guava: on Debian, `apt-get install libguava-java default-jdk-headless`");
    }
    let (java, cases) = (Java::compile("Guava", GUAVA), cases(Format::Guava, Funnel::ALL, "0", None));
    let file = |number| java.folder.path().join(format!("{number}.guava"));
    java.run(&cases, file);
    for (number, (case, _)) in cases.iter().enumerate() {
        let original = case.open(&fs::read(file(number)).unwrap());
        let accepted = fs::read(file(number).with_extension("guava.yes")).unwrap();
        assert!(case.accepted(&original) == accepted, "{} for {} keys", case.funnel, case.keys);
    }
}

#[test]
fn dcso_writes_and_reads_the_same_files() {
    if !is_installed("bloom") {
        return skip("DCSO's bloom: on Debian, `apt-get install golang-github-dcso-bloom-cli`");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter.bloom");
    for size in SIZES {
        let case = Case::new(Format::Dcso, Funnel::Utf8, None, size);
        let (members, questions) = (text(&case.members), text(&case.questions));
        for zip in [&[][..], &["--gzip"]] {
            let bloom = || {
                let mut bloom = Command::new("bloom");
                bloom.args(zip);
                bloom
            };
            let size = ["-n".to_owned(), case.keys.to_string(), "-p".to_owned(), case.rate.to_string()];
            run(bloom().arg("create").args(size).arg(&file), &members);
            let accepted = run(bloom().arg("check").arg(&file), &questions).stdout;
            let original = fs::read(&file).unwrap();
            if zip.is_empty() {
                case.compare(&original, &accepted);
                fs::write(&file, case.build().to_bytes()).unwrap();
                assert_eq!(run(bloom().arg("check").arg(&file), &questions).stdout, accepted);
            } else {
                assert!(case.accepted(&case.open(&original)) == accepted, "compressed");
                assert!(case.open(&original).to_bytes() == case.build().to_bytes(), "compressed");
            }
        }
    }
}

/// Returns the class path of pyspark's jars.
fn spark_jars() -> Option<OsString> {
    let folder = env::var_os("UMBEL_SPARK_JARS").map(PathBuf::from).or_else(|| {
        let program = "import os, pyspark; print(os.path.join(os.path.dirname(pyspark.__file__), 'jars'))";
        let python = Command::new("python3").args(["-c", program]).stderr(Stdio::null()).output().ok()?;
        python.status.success().then(|| String::from_utf8(python.stdout).unwrap().trim().into())
    });
    let jars = folder.filter(|_| is_installed("javac"))?.join("*");
    Some(jars.into_os_string())
}

#[test]
fn spark_writes_and_reads_the_same_files() {
    let Some(jars) = spark_jars() else {
        return eprintln!("skipped: Spark, since Python cannot import pyspark, or there is no javac");
    };
    let funnels = [Funnel::Utf8, Funnel::Bytes, Funnel::Long, Funnel::Int];
    let mut all = cases(Format::Spark, &funnels, "1", None);
    all.extend(cases(Format::Spark2, &funnels, "2", None));
    all.extend(cases(Format::Spark2, &funnels, "2,-7", Some(u64::from((-7i32).cast_unsigned()))));
    Java::compile("Spark", jars).compare(&all);
}

#[test]
fn datasketches_for_java_writes_and_reads_the_same_files() {
    let Some(jars) = spark_jars() else {
        return eprintln!("skipped: DataSketches, since Python cannot import pyspark, or there is no javac");
    };
    let funnels = [Funnel::Utf8, Funnel::Bytes, Funnel::Long, Funnel::Int];
    let mut all = cases(Format::DataSketches, &funnels, "9001", Some(9001));
    all.extend(cases(Format::DataSketches, &funnels, "-5", Some((-5i64).cast_unsigned())));
    Java::compile("Datasketches", jars).compare(&all);
}

/// Returns the bytes of a line that the Rust libraries hash.
fn raw(case: &Case, line: &[u8]) -> Vec<u8> {
    let number = |max: i64| -> i64 {
        let number = std::str::from_utf8(line).unwrap().parse().unwrap();
        assert!((-max..=max).contains(&number));
        number
    };
    match (case.funnel, case.format) {
        (Funnel::Long, _) => number(i64::MAX).to_le_bytes().to_vec(),
        (Funnel::Int, Format::Sbbf) => (number(1 << 31) as i32).to_le_bytes().to_vec(),
        (Funnel::Int, _) => number(1 << 31).to_le_bytes().to_vec(),
        _ => line.to_vec(),
    }
}

/// A key of which a hasher sees the bytes alone, without the length that `Hash` adds.
struct Bare(Vec<u8>);

impl Hash for Bare {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

#[test]
fn datasketches_for_rust_writes_and_reads_the_same_files() {
    let funnels = [Funnel::Bytes, Funnel::Long, Funnel::Int];
    for (case, _) in cases(Format::DataSketches, &funnels, "", Some(9001)) {
        let bare = |line: &Vec<u8>| Bare(raw(&case, line));
        let mut original =
            BloomFilterBuilder::with_accuracy(case.keys, case.rate).seed(9001).build().unwrap();
        case.members.iter().for_each(|line| original.insert(bare(line)));
        let accepts = |filter: &BloomFilter| {
            let accepted = case.questions.iter().filter(|line| filter.contains(&bare(line)));
            text(&accepted.cloned().collect::<Vec<_>>())
        };
        let (original_bytes, ours) = (original.serialize(), case.build().to_bytes());
        assert!(case.accepted(&case.open(&original_bytes)) == accepts(&original), "{} keys", case.keys);
        // This library writes the number of bits that are set, where Java leaves it to be counted.
        assert!(
            ours[..24] == original_bytes[..24] && ours[32..] == original_bytes[32..],
            "{} keys",
            case.keys
        );
        assert!(case.open(&original_bytes).to_bytes() == original_bytes);
        assert!(accepts(&BloomFilter::deserialize(&ours).unwrap()) == accepts(&original));
    }
}

#[test]
fn parquet_for_rust_writes_and_reads_the_same_files() {
    let funnels = [Funnel::Utf8, Funnel::Bytes, Funnel::Long, Funnel::Int];
    for (case, _) in cases(Format::Sbbf, &funnels, "", None) {
        let ours = case.build();
        let bits = ours.facts().bits as usize / 8;
        let mut original = Sbbf::new(&vec![0; bits]);
        case.members.iter().for_each(|line| original.insert(&raw(&case, line)[..]));
        let (mut written, mut bare) = (Vec::new(), Vec::new());
        original.write(&mut written).unwrap();
        original.write_bitset(&mut bare).unwrap();
        let accepts = |filter: &Sbbf| {
            let accepted = case.questions.iter().filter(|line| filter.check(&raw(&case, line)[..]));
            text(&accepted.cloned().collect::<Vec<_>>())
        };
        case.compare(&written, &accepts(&original));
        assert!(case.accepted(&case.open(&bare)) == accepts(&original), "without a header");
        assert!(case.open(&bare).to_bytes() == bare, "without a header");
        assert!(accepts(&Sbbf::from_bytes(&ours.to_bytes()).unwrap()) == accepts(&original));
    }
}
