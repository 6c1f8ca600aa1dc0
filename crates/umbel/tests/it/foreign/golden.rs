//! Filters of other libraries: reads the golden files that their original writers left, answers as
//! the originals do, and writes the same bytes.
//!
//! `tests/foreign_writers/write.py` made the files. `NAME.FORMAT` has the lines of `FUNNEL.members`,
//! where `FUNNEL` is how the name begins, and `NAME.FORMAT.yes` the lines of `FUNNEL.questions` that
//! the original accepts: all members and its false positives.

use std::fs;
use std::path::{Path, PathBuf};
use umbel::foreign::{ForeignFilter, Format, Funnel, Given, Options};

/// The parameters of `write.py`.
const KEYS: u64 = 80;
const RATE: f64 = 0.1;
const SEED: u64 = 9001;

/// A golden file.
struct Golden {
    name: String,
    bytes: Vec<u8>,
    format: Format,
    funnel: Funnel,
    members: Vec<Vec<u8>>,
    questions: Vec<Vec<u8>>,
    accepted: Vec<Vec<u8>>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden_foreign")
}

fn lines(name: &str) -> Vec<Vec<u8>> {
    let text = fs::read(folder().join(name)).unwrap();
    let mut lines: Vec<_> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    assert_eq!(lines.pop().as_deref(), Some(&b""[..]), "{name} ends with a line");
    lines
}

fn all() -> Vec<Golden> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let format = name.trim_end_matches(".gz").rsplit('.').next().unwrap();
        let Ok(format) = format.parse::<Format>() else { continue };
        let keys = name.split(['-', '.']).next().unwrap().to_owned();
        all.push(Golden {
            bytes: fs::read(folder().join(&name)).unwrap(),
            format,
            funnel: if keys == "empty" { Funnel::Utf8 } else { keys.parse().unwrap() },
            members: lines(&format!("{keys}.members")),
            questions: lines(&format!("{keys}.questions")),
            accepted: lines(&format!("{name}.yes")),
            name,
        });
    }
    assert!(all.len() > 40, "only {} golden files", all.len());
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

impl Golden {
    /// Returns what has to be known to read the file.
    fn given(&self) -> Given {
        Given { format: Some(self.format), funnel: Some(self.funnel) }
    }

    fn open(&self) -> ForeignFilter {
        ForeignFilter::from_bytes(&self.bytes, self.given())
            .unwrap_or_else(|error| panic!("{}: {error:#}", self.name))
    }

    /// Returns the file without compression.
    fn plain(&self) -> Vec<u8> {
        if self.name.ends_with(".gz") {
            fs::read(folder().join("utf8.dcso")).unwrap()
        } else {
            self.bytes.clone()
        }
    }
}

/// Returns the questions that a filter accepts, one at a time and as a batch.
fn accepted(filter: &ForeignFilter, golden: &Golden) -> Vec<Vec<u8>> {
    let one_by_one = golden.questions.iter().map(|line| filter.contains(line).unwrap());
    let one_by_one: Vec<bool> = one_by_one.collect();
    let batch = filter.contains_batch(&golden.questions[..]).unwrap();
    assert_eq!(
        batch.iter().collect::<Vec<bool>>(),
        one_by_one,
        "{}: the batch answers otherwise",
        golden.name
    );
    golden.questions.iter().zip(one_by_one).filter(|(_, yes)| *yes).map(|(line, _)| line.clone()).collect()
}

#[test]
fn golden_files_answer_as_their_originals_do() {
    for golden in all() {
        assert!(accepted(&golden.open(), &golden) == golden.accepted, "{}", golden.name);
        // No lines are left out but the empty text, which DataSketches does not insert.
        let missing = golden.members.iter().filter(|line| !golden.accepted.contains(line));
        let expected = usize::from(golden.format == Format::DataSketches && golden.funnel == Funnel::Utf8);
        assert_eq!(missing.count(), expected.min(golden.members.len()), "{}", golden.name);
    }
}

#[test]
fn golden_files_are_written_byte_for_byte() {
    for golden in all() {
        assert!(golden.open().to_bytes() == golden.plain(), "{}", golden.name);
    }
}

#[test]
fn filters_of_the_same_keys_are_the_golden_files() {
    let mut compared = 0;
    for golden in all() {
        let mut options = Options { funnel: Some(golden.funnel), ..Options::default() };
        let mut keys = KEYS;
        match golden.name.split_once(['-', '.']).unwrap().1 {
            "datasketches" => options.seed = Some(SEED),
            "seed.spark2" => options.seed = Some(u64::from((-77i32).cast_unsigned())),
            "redisbloom" => options.fixed = true,
            "chain.redisbloom" => keys /= 5,
            // The older strategy is no longer written, and the bare bit set of the Java library is chosen
            // by its size.
            "32.guava" | "java.sbbf" | "data.dcso" | "dcso.gz" => continue,
            _ => {}
        }
        let empty = || ForeignFilter::with_capacity(golden.format, keys, RATE, &options).unwrap();
        let (mut one_by_one, mut batch) = (empty(), empty());
        for line in &golden.members {
            one_by_one.insert(line).unwrap();
        }
        batch.insert_batch(&golden.members[..]).unwrap();
        assert!(one_by_one.to_bytes() == golden.bytes, "{}", golden.name);
        assert!(batch.to_bytes() == golden.bytes, "{}, as a batch", golden.name);
        compared += 1;
    }
    assert!(compared > 30, "only {compared} files were compared");
}

#[test]
fn golden_files_are_recognised_if_they_can_be() {
    for golden in all() {
        let recognised = match golden.format {
            Format::DataSketches | Format::Dcso | Format::Spark | Format::Spark2 => Some(golden.format),
            _ => None,
        };
        assert_eq!(Format::recognize(&golden.bytes), recognised, "{}", golden.name);
    }
    // Version 2 of Spark needs no format of its own to be read.
    let mut given = Given { format: Some(Format::Spark), funnel: None };
    let spark2 = fs::read(folder().join("utf8.spark2")).unwrap();
    assert_eq!(ForeignFilter::from_bytes(&spark2, given).unwrap().format(), Format::Spark2);
    given.format = None;
    assert_eq!(ForeignFilter::from_bytes(&spark2, given).unwrap().format(), Format::Spark2);
}

#[test]
fn golden_files_have_the_facts_of_their_headers() {
    for golden in all() {
        let facts = golden.open().facts();
        let (bits, hashes) = match golden.format {
            Format::DataSketches => (384, 4),
            Format::Dcso => (383, 4),
            Format::Guava | Format::Spark | Format::Spark2 => (384, 3),
            Format::Sbbf => (512, 8),
            _ => continue,
        };
        if golden.name.starts_with("empty") {
            assert_eq!((facts.bits_set, facts.rate_now), (0, 0.0));
            continue;
        }
        assert_eq!(
            (facts.format, facts.bits, facts.hashes),
            (golden.format, bits, hashes),
            "{}",
            golden.name
        );
        let bytes = &golden.plain()[golden.plain().len() - bits as usize / 8..];
        let set: u64 = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
        if golden.format != Format::Dcso {
            assert_eq!(facts.bits_set, set, "{}", golden.name);
        }
    }
    let chain = ForeignFilter::load(
        folder().join("utf8-chain.redisbloom"),
        Given { format: Some(Format::RedisBloom), funnel: None },
    );
    let facts = chain.unwrap().facts();
    let design = facts.design.unwrap();
    assert_eq!((facts.links, design.capacity, design.rate, facts.hashes), (3, KEYS / 5, RATE, 5));
}

#[test]
fn mapped_files_answer_as_loaded_ones() {
    for golden in all() {
        let path = folder().join(&golden.name);
        let mapped = ForeignFilter::map(&path, golden.given()).unwrap();
        assert!(accepted(&mapped, &golden) == golden.accepted, "{}", golden.name);
        let loaded = ForeignFilter::load(&path, golden.given()).unwrap();
        assert!(loaded.to_bytes() == mapped.to_bytes(), "{}", golden.name);
    }
}
