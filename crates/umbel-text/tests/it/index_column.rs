//! The index of a column answers as that of words does: it never misses a file, and is never stale.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;
use tempfile::TempDir;
use umbel_text::Error;
use umbel_text::index::{self, Column, ColumnReader, ColumnValues, Index, Look, Options, Part, Query, Why};

/// Tables of this test: the first line is `name:type`, and the others are values of this column.
#[derive(Default)]
struct Tables {
    read: AtomicUsize,
}

impl ColumnReader for Tables {
    fn read(&self, file: &File, column: &str, values: &mut ColumnValues) -> io::Result<Option<String>> {
        self.read.fetch_add(1, Relaxed);
        let mut lines = BufReader::new(file).lines();
        let Some(head) = lines.next().transpose()? else { return Ok(None) };
        if head == "damaged" {
            return Err(io::Error::other("damaged"));
        }
        let Some((name, column_type)) = head.split_once(':').filter(|(name, _)| *name == column) else {
            return Ok(None);
        };
        lines.try_for_each(|line| line.map(|line| values.add(line.as_bytes())))?;
        Ok(Some(format!("{name} {column_type}")))
    }
}

/// A directory of tables, and its index.
struct Lake(TempDir);

impl Lake {
    fn new() -> Lake {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("lake")).unwrap();
        Lake(folder)
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("lake")
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("word.idx")
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn build(&self) -> index::BuildSummary {
        let word = Column { name: "word".into(), rate: 0.01 };
        let options = Options::default();
        index::build_column(&self.path(), &[self.root()], &word, &Tables::default(), &options).unwrap()
    }

    fn open(&self) -> Index {
        Index::open(self.path()).unwrap()
    }
}

/// Returns the names of the files that may have one of these values, and why a file has to be read.
fn named(index: &Index, values: &[&str]) -> Vec<(PathBuf, Option<Why>)> {
    let query = Query::any_key(values.iter().map(|value| index::key(value.as_bytes())));
    let selection = index.select(&query).unwrap();
    assert!(selection.failed.is_empty(), "{selection:?}");
    let why = |part: &Part| match part {
        Part::All(why) => Some(*why),
        _ => None,
    };
    let named = selection.files.iter().filter(|file| file.part != Part::Nothing);
    named.map(|file| (file.name(), why(&file.part))).collect()
}

fn only(path: &Path, why: Option<Why>) -> Vec<(PathBuf, Option<Why>)> {
    vec![(path.to_owned(), why)]
}

#[test]
fn only_files_that_may_have_the_value_are_named() {
    let lake = Lake::new();
    let first = lake.write("1", "word:text\nalpha beta\ngamma\n");
    let second = lake.write("sub/2", "word:bytes\nBETA\ngamma\n");
    lake.write("other", "number:int\n7\n");
    lake.write("empty", "");
    let made = lake.build();
    assert_eq!((made.files, made.read, made.failed.len()), (4, 4, 0));
    let index = lake.open();
    assert_eq!(index.column().unwrap().name, "word");
    assert_eq!(index.column_types(), ["word text", "word bytes"]);
    // A value is a whole, and its case matters.
    assert_eq!(named(&index, &["alpha beta"]), only(&first, None));
    assert_eq!(named(&index, &["BETA"]), only(&second, None));
    assert_eq!(named(&index, &["alpha", "beta"]), []);
    assert_eq!(named(&index, &["gamma"]).len(), 2);
    assert_eq!(named(&index, &["alpha beta", "BETA"]).len(), 2);
    let facts: Vec<_> = index.files().map(|file| (file.column_type, file.text, file.keys)).collect();
    let typed = |name: &str| Some(format!("word {name}"));
    assert_eq!(facts, [(typed("text"), 2, 2), (None, 0, 0), (None, 0, 0), (typed("bytes"), 2, 2)]);
}

#[test]
fn a_changed_file_is_never_ruled_out_even_with_its_old_times_and_size() {
    let lake = Lake::new();
    let path = lake.write("1", "word:text\nalpha\n");
    lake.write("2", "word:text\nbeta\n");
    lake.build();
    let before = fs::metadata(&path).unwrap();
    lake.write("1", "word:text\nomega\n");
    File::options().append(true).open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((before.len(), before.mtime_nsec()), (after.len(), after.mtime_nsec()));
    assert_eq!(named(&lake.open(), &["omega"]), only(&path, Some(Why::Changed)));

    let new = lake.write("3", "word:text\nomega\n");
    fs::remove_file(&path).unwrap();
    assert_eq!(named(&lake.open(), &["omega"]), only(&new, Some(Why::New)));
}

#[test]
fn an_update_reads_only_what_changed_and_equals_a_new_build() {
    let lake = Lake::new();
    for i in 0..40 {
        let column_type = if i < 3 { "old" } else { "new" };
        let values: Vec<String> = (0..i * i).map(|j| format!("{i}-{j}\n")).collect();
        lake.write(&format!("{}/{i}", i % 3), format!("word:{column_type}\n{}", values.concat()));
    }
    lake.write("readme", "not a table\n");
    lake.build();
    // The files that introduced the first type are gone, so the other types have new numbers.
    (0..3).for_each(|i| fs::remove_file(lake.root().join(format!("{}/{i}", i % 3))).unwrap());
    lake.write("1/changed", "word:newest\nomega\n");
    let tables = Tables::default();
    let made = index::update_column(&lake.path(), &tables, &Options::default()).unwrap();
    assert_eq!((made.files, made.read, made.dropped), (39, 1, 3));
    assert_eq!(tables.read.load(Relaxed), 1);
    let updated = fs::read(lake.path()).unwrap();
    assert_eq!(named(&lake.open(), &["omega"]).len(), 1);
    assert_eq!(lake.open().column_types(), ["word new", "word newest"]);
    lake.build();
    assert!(updated == fs::read(lake.path()).unwrap());
}

#[test]
fn a_damaged_table_is_reported_and_never_ruled_out() {
    let lake = Lake::new();
    let bad = lake.write("bad", "damaged\n");
    lake.write("good", "word:text\nalpha\n");
    let made = lake.build();
    assert_eq!(made.failed.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&bad]);
    assert_eq!(named(&lake.open(), &["nowhere"]), only(&bad, Some(Why::New)));
}

#[test]
fn millions_of_values_have_several_filters_and_none_is_lost() {
    let lake = Lake::new();
    let count = (1 << 22) + 1000;
    let values: String = (0..count).map(|i| format!("{i:x}\n")).collect();
    let path = lake.write("large", format!("word:text\n{values}{values}"));
    lake.build();
    let index = lake.open();
    assert!(index.filters() > 1, "{} filters", index.filters());
    for i in (0..count).step_by(40_009).chain([count - 1]) {
        assert_eq!(named(&index, &[&format!("{i:x}")]), only(&path, None));
    }
}

#[test]
fn words_and_columns_are_not_taken_for_each_other() {
    let lake = Lake::new();
    lake.write("1", "word:text\nalpha\n");
    lake.build();
    let index = lake.open();
    assert!(matches!(index.text(), Err(Error::ColumnIndex { column, .. }) if column == "word"));
    assert!(!index.any_of(&["alpha"], Look::default()).is_decided());
    let options = Options::default();
    assert!(matches!(index::update(&lake.path(), &options), Err(Error::ColumnIndex { .. })));
    index::build(&lake.path(), &[lake.root()], &index::Settings::WORDS, &options).unwrap();
    assert!(matches!(lake.open().column(), Err(Error::TextIndex { .. })));
    let update = index::update_column(&lake.path(), &Tables::default(), &options);
    assert!(matches!(update, Err(Error::TextIndex { .. })));
}

/// No answer depends on a damaged byte.
#[test]
fn a_flipped_bit_is_detected_before_it_affects_an_answer() {
    let lake = Lake::new();
    let path = lake.write("1", "word:text\nalpha\nbeta\n");
    lake.write("2", "word:bytes\ngamma\n");
    lake.build();
    let good = fs::read(lake.path()).unwrap();
    let query = Query::any_key([index::key(b"alpha")]);
    for at in (0..good.len()).step_by(3) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(lake.path(), bad).unwrap();
        let named = Index::open(lake.path()).and_then(|index| index.recall(&query));
        assert!(named.is_err(), "byte {at}: {named:?}");
    }
    fs::write(lake.path(), good).unwrap();
    assert_eq!(lake.open().recall(&query).unwrap(), [path]);
}

#[test]
fn times_in_the_future_are_not_trusted() {
    let lake = Lake::new();
    let path = lake.write("1", "word:text\nalpha\n");
    let later = SystemTime::now() + std::time::Duration::from_secs(3600);
    File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
    lake.build();
    // The modification time can be set, and the change time shows it.
    assert_eq!(named(&lake.open(), &["alpha"]), only(&path, None));
    lake.write("1", "word:text\nomega\n");
    File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
    assert_eq!(named(&lake.open(), &["omega"]), only(&path, Some(Why::Changed)));
}
