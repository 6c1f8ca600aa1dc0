//! Continues `description.rs` for the kinds 13 to 17: static sets, maps and multisets, read from
//! docs/format.md alone. The format leaves open how a table is solved, but not what each key finds
//! in it, nor any bit that no key needs.

use crate::second_reader::{
    C, File, bit, bits, empty, packed, parse, position, positions, read, set, stream,
};
use umbel::any::Stored;
use umbel::spec::{Construction, KindOptions};
use umbel::{AnyMap, Kind, Spec, file};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The table of a file of the kinds 13 to 15.
struct Table<'a> {
    shards: u64,
    arrangement: u64,
    a: u64,
    b: u64,
    width: usize,
    seed: u64,
    section: &'a [u8],
}

impl<'a> Table<'a> {
    /// Returns the table of a file and the parameters after those of the table, after every check
    /// that needs no key.
    fn of(file: &'a File) -> (Self, &'a [u64]) {
        let [shards, arrangement, a, b, width, seed, ref others @ ..] = file.parameters[..] else { panic!() };
        let width = width as usize;
        let table = Self { shards, arrangement, a, b, width, seed, section: file.section(0, 8) };
        match arrangement {
            0 => assert!(b >= 3 && (2..=18).contains(&a)),
            1 => assert!(a == 3 || a == 4),
            other => panic!("arrangement {other}"),
        }
        assert!(if file.kind == 13 { (4..=32).contains(&width) } else { (1..=96).contains(&width) });
        assert_eq!(table.section.len(), empty(table.cells() * width).len());
        let unused = |c: usize| shards > 1 && c as u64 % table.stride() >= table.shard();
        let unused = (0..table.cells()).filter(|c| unused(*c)).flat_map(|c| c * width..(c + 1) * width);
        let mut zero = unused.chain(table.cells() * width..8 * table.section.len());
        assert!(zero.all(|i| !bit(table.section, i)));
        (table, others)
    }

    /// Returns the number of used cells in a shard.
    fn shard(&self) -> u64 {
        if self.arrangement == 0 { self.b << self.a } else { self.a * self.b }
    }

    /// Returns the number of cells from one shard to the next.
    fn stride(&self) -> u64 {
        if self.shards > 1 { self.shard().next_multiple_of(64) } else { self.shard() }
    }

    /// Returns the number of all cells.
    fn cells(&self) -> usize {
        (self.shards * self.stride()) as usize
    }

    /// Returns the cells of a digest, numbered from the first of the table, and its mask.
    fn places(&self, digest: u64) -> (Vec<usize>, u128) {
        let (low, y) = (digest.wrapping_mul(self.shards), (digest ^ self.seed).wrapping_mul(C));
        let cells: Vec<u64> = if self.arrangement == 0 {
            let (segment, first) = (1 << self.a, position(low, (self.b - 2) << self.a));
            let upper = [y >> (64 - self.a), y >> (64 - 2 * self.a) & (segment - 1)];
            vec![first, (first + segment) ^ upper[0], (first + 2 * segment) ^ upper[1]]
        } else {
            let others = stream(y).zip(1..self.a).map(|(x, i)| i * self.b + position(x, self.b));
            [position(low, self.b)].into_iter().chain(others).collect()
        };
        let mut behind = stream(y).skip(cells.len() - 1).map(u128::from);
        let mask = behind.next().unwrap() << 64 | behind.next().unwrap();
        let start = position(digest, self.shards) * self.stride();
        (cells.iter().map(|c| (start + c) as usize).collect(), mask >> (128 - self.width))
    }

    fn cell(&self, c: usize) -> u128 {
        let (start, low) = (c * self.width, self.width.min(64));
        let upper = u128::from(bits(self.section, start + low, self.width - low));
        u128::from(bits(self.section, start, low)) | upper << low
    }

    /// Returns the value that a digest finds.
    fn found(&self, digest: u64) -> u128 {
        let (cells, mask) = self.places(digest);
        cells.into_iter().fold(mask, |found, c| found ^ self.cell(c))
    }

    /// Checks that all cells are zero except those of these digests, which are all in the table.
    fn assert_others_are_zero(&self, digests: &[u64]) {
        let mut used = vec![false; self.cells()];
        digests.iter().flat_map(|digest| self.places(*digest).0).for_each(|c| used[c] = true);
        assert!((0..self.cells()).all(|c| used[c] || self.cell(c) == 0));
    }

    /// Returns the values that the strangers find.
    fn strangers(&self) -> Vec<u128> {
        (1..=STRANGERS).map(|key| self.found(digest(key))).collect()
    }
}

/// The keys from 1 to this number are in no golden file.
const STRANGERS: u64 = 20_000;

/// Returns the digest of an integer with the seed of all these files.
fn digest(key: u64) -> u64 {
    xxh3_64_with_seed(&key.to_le_bytes(), 0)
}

/// Reads a golden file of the six keys.
fn read_static(name: &str, kind: u64) -> File {
    let file = read(name, 6);
    assert_eq!((file.kind, file.seed, file.capacity, file.rate), (kind, 0, 6, 0.01), "{name}");
    file
}

/// Checks that the number of strangers with an answer is explained by chance, where `each` is the
/// expected number per stranger.
fn assert_chance(answered: usize, each: f64, name: &str) {
    let expected = STRANGERS as f64 * each;
    assert!((answered as f64 - expected).abs() < 5.0 * expected.sqrt(), "{name}: {answered}, not {expected}");
}

#[test]
fn members_of_a_fuse_filter_find_zero() {
    for (name, expected_width) in [("fuse", 7), ("fuse-other", 19)] {
        let file = read_static(name, 13);
        let (table, []) = Table::of(&file) else { panic!("{name}") };
        assert_eq!((table.width, file.sections.len()), (expected_width, 1), "{name}");
        table.assert_others_are_zero(&file.digests());
        assert_eq!(file.digests().map(|digest| table.found(digest)), [0; 6], "{name}");
        let answered = table.strangers().into_iter().filter(|found| *found == 0).count();
        assert_chance(answered, 0.5f64.powi(table.width as i32), name);
    }
}

/// Encodes the code book of these names.
fn book(names: &[&str]) -> Vec<u8> {
    let ends = names.iter().scan(0, |end, name| {
        *end += name.len() as u64;
        Some(*end)
    });
    let mut section: Vec<u8> = ends.flat_map(u64::to_le_bytes).collect();
    section.extend(names.concat().bytes());
    section.resize(section.len().next_multiple_of(64), 0);
    section
}

#[test]
fn a_code_book_has_the_ends_of_the_names_and_the_names() {
    for (name, place) in [("bloomier-book", 1), ("bloomier-mutable-book", 2)] {
        let file = read_static(name, 13 + place as u64);
        let (_, [2, 3]) = Table::of(&file) else { panic!("{name}") };
        assert_eq!(file.section(place, 10), book(&["red", "", "grün"]), "{name}");
        assert_eq!(file.sections.len(), place + 1, "{name}");
    }
}

#[test]
fn keys_of_a_bloomier_filter_find_their_values() {
    for (name, arrangement, values) in [
        ("bloomier", 0, [5, 1, 2, 0, 1, 5]),
        ("bloomier-book", 1, [0, 1, 2, 0, 1, 2]),
        ("bloomier-wide", 1, [u64::MAX, 1, 1 << 63, 0, 77, 1 << 40]),
    ] {
        let file = read_static(name, 14);
        let (table, [largest, names]) = Table::of(&file) else { panic!("{name}") };
        assert_eq!((table.arrangement, Some(largest)), (arrangement, values.iter().max()), "{name}");
        assert_eq!(file.sections.len(), 1 + usize::from(*names > 0), "{name}");
        assert_eq!(file.digests().map(|digest| table.found(digest)), values.map(u128::from), "{name}");
        table.assert_others_are_zero(&file.digests());
        let found = table.strangers();
        let answered = found.into_iter().filter(|found| *found <= u128::from(*largest)).count();
        assert_chance(answered, (*largest as f64 + 1.0) / 2f64.powi(table.width as i32), name);
    }
}

/// Checks that the second table has the value of each digest in a different cell, and nothing else.
fn assert_values(file: &File, table: &Table<'_>, largest: u64, pairs: impl Iterator<Item = (u64, u64)>) {
    let mut cells = vec![None; table.cells()];
    for (digest, value) in pairs {
        let own = table.places(digest).0[table.found(digest) as usize];
        assert_eq!(cells[own].replace(value), None, "two keys share cell {own}");
    }
    let cells: Vec<u64> = cells.into_iter().map(Option::unwrap_or_default).collect();
    assert!(file.section(1, 9) == packed(&cells, largest.max(1).ilog2() as usize + 1));
}

#[test]
fn keys_of_a_mutable_map_find_the_cell_of_their_value() {
    for (name, values) in
        [("bloomier-mutable", [5, 1, 2, 0, 1, 5]), ("bloomier-mutable-book", [0, 1, 2, 0, 1, 2])]
    {
        let file = read_static(name, 15);
        let (table, [largest, names]) = Table::of(&file) else { panic!("{name}") };
        assert_eq!((table.arrangement, Some(largest)), (0, values.iter().max()), "{name}");
        assert_eq!(file.sections.len(), 2 + usize::from(*names > 0), "{name}");
        assert_values(&file, &table, *largest, file.digests().into_iter().zip(values));
        table.assert_others_are_zero(&file.digests());
        let answered = table.strangers().into_iter().filter(|found| *found < 3).count();
        assert_chance(answered, 3.0 / 2f64.powi(table.width as i32), name);
    }
}

/// Makes a mutable map of integers with the library, for cases that need too many keys, or rare
/// ones, for a golden file.
fn written(keys: std::ops::Range<u64>, segments: Option<u32>) -> File {
    let (count, mut options) = (keys.end - keys.start, KindOptions::default());
    options.bloomier.segments = segments;
    let spec = Spec::new(count, 0.01).unwrap().with_options(options);
    let digests = spec.hasher().digest_batch(&keys.clone().collect::<Vec<_>>());
    let pairs = digests.into_iter().zip(keys.map(|key| key % 7)).collect();
    let map =
        AnyMap::from_pairs(Kind::BloomierMutable, &spec, pairs, None, &Construction::default()).unwrap();
    parse(&file::to_bytes(&Stored::from(map), &file::Options::default()).unwrap(), count)
}

#[test]
fn a_table_of_several_shards_has_unused_cells_between_them() {
    let keys = 0..2_100_000;
    let file = written(keys.clone(), Some(4));
    let (table, [largest, 0]) = Table::of(&file) else { panic!() };
    assert!(table.shards > 1 && table.stride() > table.shard(), "the test needs more keys");
    assert_values(&file, &table, *largest, keys.map(|key| (digest(key), key % 7)));
}

#[test]
fn a_seed_changes_all_cells_except_the_first() {
    for segments in [None, Some(3), Some(4)] {
        let keys = (0..).map(|i| 100 * i..100 * i + 5);
        let mut files = keys.map(|keys| (written(keys.clone(), segments), keys));
        let (file, keys) = files.find(|(file, _)| Table::of(file).0.seed != 0).unwrap();
        let (table, [largest, 0]) = Table::of(&file) else { panic!() };
        assert_values(&file, &table, *largest, keys.map(|key| (digest(key), key % 7)));
    }
}

/// Returns the salted number or digest.
fn salted(x: u64, salt: u64) -> u64 {
    xxh3_64_with_seed(&x.to_le_bytes(), salt)
}

/// The parameters of a file of kind 16 or 17.
struct Multiset {
    groups: u64,
    epoch: u64,
    seed: u64,
    /// The m and k of each level.
    levels: Vec<(u64, u64)>,
}

impl Multiset {
    fn of(file: &File, expected: [u64; 4]) -> Self {
        let (fixed, levels) = file.parameters.split_at(4);
        assert_eq!(fixed, expected);
        let levels: Vec<_> = levels.chunks(2).map(|level| (level[0], level[1])).collect();
        assert_eq!(levels.len(), file.sections.len());
        Self { groups: fixed[0], epoch: fixed[1], seed: fixed[2], levels }
    }

    /// Returns the bits of a digest's group on a level.
    fn group(&self, digest: u64, level: usize, group: u64) -> Vec<usize> {
        let (m, k) = self.levels[level];
        positions(salted(digest, salted(self.epoch, 256 * level as u64 + group)), m, k)
    }

    /// Returns the levels that recording j hits, and the group on each.
    fn hits(&self, j: u64) -> Vec<(usize, u64)> {
        let t = salted(j, salted(self.seed, self.epoch));
        let mut numbers = (1..).map(|i| salted(t, i));
        let (mut choice, mut left, mut hits) = (0, 0, Vec::new());
        for level in 0..self.levels.len() {
            let need = 2 * level;
            if need > left {
                (choice, left) = (numbers.next().unwrap(), 64);
            }
            let hit = choice & ((1 << need) - 1) == 0;
            (choice, left) = (choice >> need, left - need);
            if hit {
                hits.push((level, position(numbers.next().unwrap(), self.groups)));
            }
        }
        hits
    }
}

#[test]
fn levels_of_a_multiset_hold_the_groups_of_its_recordings() {
    let other = [12, 5, 0x0123_4567_89ab_cdef, 6];
    for (name, kind, fixed, levels) in [
        ("space-code", 16, [32, 0, 0, 0], 1),
        ("space-code-other", 16, other, 1),
        ("multi-resolution", 17, [32, 0, 0, 0], 9),
        ("multi-resolution-other", 17, other, 3),
    ] {
        let file = read(name, 32);
        let multiset = Multiset::of(&file, fixed);
        assert_eq!((file.kind, file.seed, multiset.levels.len()), (kind, 0, levels), "{name}");
        assert_eq!((file.capacity, file.rate), (60, 0.005), "{name}: recordings");
        let mut sections: Vec<_> = multiset.levels.iter().map(|(m, _)| empty(*m as usize)).collect();
        let recordings = file.digests().into_iter().zip([1, 2, 3, 5, 8, 13]);
        let recordings = recordings.flat_map(|(digest, times)| std::iter::repeat_n(digest, times));
        for (digest, j) in recordings.zip(0..) {
            for (level, group) in multiset.hits(j) {
                multiset.group(digest, level, group).into_iter().for_each(|i| set(&mut sections[level], i));
            }
        }
        for (level, section) in sections.iter().enumerate() {
            assert_eq!(file.section(level, 1), section, "{name} {level}");
        }

        // A stranger finds a whole group if all its positions happen to be set.
        let (m, k) = multiset.levels[0];
        let set = (0..m as usize).filter(|i| bit(&sections[0], *i)).count() as f64 / m as f64;
        let whole =
            |digest, group| multiset.group(digest, 0, group).into_iter().all(|i| bit(&sections[0], i));
        let all = |key| (0..multiset.groups).filter(|group| whole(digest(key), *group)).count();
        assert_chance((1..=STRANGERS).map(all).sum(), multiset.groups as f64 * set.powi(k as i32), name);
    }
}
