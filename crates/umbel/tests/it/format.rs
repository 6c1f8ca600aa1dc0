//! Files written by one version are read by the next: tests the golden files, and rebuilds some
//! from the description of the format alone.
//!
//! `UMBEL_BLESS=1 cargo test -p umbel --test it format::` rewrites the golden files. If the format
//! has changed, it needs a new version.

use std::path::PathBuf;
use std::time::Duration;
use umbel::file::{self, Options};
use umbel::literature::{Family, Literature, Scheme};

use umbel::any::Stored;
use umbel::bloomier::CodeBook;
use umbel::hash::KeyRing;
use umbel::internals::Layout;
use umbel::kind::Category;
use umbel::sketch::{CountMin, Distinct, Frequent, TopK};
use umbel::spec::{Construction, KindOptions};
use umbel::{
    AnyCount, AnyFilter, AnyMap, Blocked, Bloom, Digest, Hasher, Key, Kind, Partitioned, Scalable, Spec,
    Standard, aging, bloomier, counting, cuckoo, floom, scalable, space_code, variable_increment,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const FRUIT: [&str; 5] = ["apple", "pear", "quince", "medlar", ""];

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name).with_extension("umbel")
}

fn filled<L: Layout>(layout: L, hasher: Hasher) -> Stored
where
    Stored: From<Bloom<L>>,
{
    let mut filter = Bloom::with_layout(layout, hasher).unwrap();
    filter.insert_batch(&FRUIT[..]);
    filter.insert(&-7i32);
    filter.into()
}

fn literature(family: Family) -> Stored {
    let mut filter = Literature::new(Scheme::new(family, 4, 509).unwrap()).unwrap();
    filter.insert_batch(&FRUIT[..]);
    filter.insert(&-7i32);
    filter.into()
}

fn secrets() -> (Hasher, Hasher) {
    (Hasher::keyed(*b"sixteen letters!"), Hasher::sealed(*b"thirty-two letters make a secret"))
}

/// Returns structures of every kind and every strength, with and without the optional parts.
fn all() -> Vec<(String, Stored, Options)> {
    let (keyed, sealed) = secrets();
    let meta = [("made by", "umbel"), ("köder", "äpfel")];
    let meta = meta.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let plain = Options::default;
    let mut planned = Bloom::<Standard>::with_capacity(40, 0.01).unwrap();
    planned.insert_batch(&FRUIT[..]);
    planned.insert(&-7i32);
    let mut all = vec![
        ("standard".to_owned(), filled(Standard::new(500, 4).unwrap(), Hasher::default()), plain()),
        ("planned".into(), planned.into(), Options { meta, ..plain() }),
        ("partitioned".into(), filled(Partitioned::new(101, 5).unwrap(), Hasher::fast(2)), plain()),
        ("blocked".into(), filled(Blocked::new(8, 1).unwrap(), Hasher::default()), plain()),
        ("blocked-four-lines".into(), filled(Blocked::new(9, 4).unwrap(), Hasher::default()), plain()),
        ("keyed".into(), filled(Standard::new(500, 4).unwrap(), keyed.clone()), plain()),
        (
            "keyed-embedded".into(),
            filled(Standard::new(500, 4).unwrap(), keyed),
            Options { embed_key: true, ..plain() },
        ),
        ("sealed".into(), filled(Blocked::new(8, 1).unwrap(), sealed), plain()),
    ];
    for family in Family::ALL {
        all.push((format!("literature-{family}"), literature(family), plain()));
    }
    for kind in Kind::ALL.iter().copied().filter(|kind| kind.number() > Kind::Literature.number()) {
        let stored = match kind.category() {
            Category::Map => map(kind, &[5, 1, 2, 0, 1, 5], KindOptions::default(), None),
            Category::Multiset => counted(kind, KindOptions::default()),
            Category::Sketch => sketched(kind),
            _ => tuned(kind, KindOptions::default()),
        };
        all.push((kind.to_string(), stored, plain()));
    }
    for kind in [Kind::Counting, Kind::Cuckoo, Kind::Quotient] {
        all.push((format!("{kind}-crowded"), crowded(kind), plain()));
    }
    let mut other = KindOptions::default();
    other.counting = counting::Options { counter_bits: 3, overflow: counting::Overflow::Error };
    other.variable_increment.scheme = variable_increment::Scheme::b_h(&[1, 4, 8, 13], 3, true);
    other.scalable = scalable::Options { tightening: 0.5, growth: 4, stage: scalable::Stage::Partitioned };
    other.aging.window = Some(aging::Window::Time(Duration::from_secs(60)));
    other.floom = floom::Options { regions: Some(9), ranked: true, compat: true };
    other.cuckoo.form = cuckoo::Form::SemiSorted;
    for kind in
        [Kind::Counting, Kind::VariableIncrement, Kind::Scalable, Kind::Aging, Kind::Floom, Kind::Cuckoo]
    {
        all.push((format!("{kind}-other"), tuned(kind, other.clone()), plain()));
    }
    // Names for values, four segments, and cells of more than 64 bits.
    let book = CodeBook::new(&["red", "", "grün"]).ok();
    other.bloomier = bloomier::Options::default();
    other.bloomier.segments = Some(4);
    all.push((
        "bloomier-book".into(),
        map(Kind::Bloomier, &[0, 1, 2, 0, 1, 2], other.clone(), book),
        plain(),
    ));
    other.bloomier.largest = Some(u64::MAX);
    let wide = [u64::MAX, 1, 1 << 63, 0, 77, 1 << 40];
    all.push(("bloomier-wide".into(), map(Kind::Bloomier, &wide, other.clone(), None), plain()));
    all.push(("scalable-united".into(), united_stages(), plain()));
    let book = CodeBook::new(&["red", "", "grün"]).ok();
    let mutable = map(Kind::BloomierMutable, &[0, 1, 2, 0, 1, 2], KindOptions::default(), book);
    all.push(("bloomier-mutable-book".into(), mutable, plain()));
    other.fuse.fingerprint_bits = Some(19);
    all.push(("fuse-other".into(), tuned(Kind::Fuse, other.clone()), plain()));
    other.space_code =
        space_code::Options { groups: 12, levels: 3, keys: Some(6), epoch: 5, seed: 0x0123_4567_89ab_cdef };
    for kind in [Kind::SpaceCode, Kind::MultiResolution] {
        all.push((format!("{kind}-other"), counted(kind, other.clone()), plain()));
    }
    all.push(("top-k-crowded".into(), crowded_top_k(), plain()));
    all.push(("frequent-crowded".into(), crowded_frequent(), plain()));
    all
}

/// Returns the keys of the sets, with their numbers of occurrences in the sketches.
fn weighted() -> impl Iterator<Item = (Vec<u8>, u32)> {
    let keys = FRUIT.iter().map(|key| key.as_bytes().to_vec()).chain([(-7i64).to_le_bytes().to_vec()]);
    keys.zip([1, 2, 3, 5, 8, 13])
}

/// Returns a sketch of these weighted keys.
fn sketched(kind: Kind) -> Stored {
    let mut distinct = Distinct::with_precision(5).unwrap().with_hasher(Hasher::fast(3));
    let mut counts = CountMin::with_dimensions(29, 3).unwrap().with_hasher(Hasher::fast(4));
    let (mut top, mut frequent) = (TopK::builder(7).width(20).build().unwrap(), Frequent::new(4).unwrap());
    for (key, times) in weighted() {
        distinct.insert(&key);
        counts.insert_times(&key, times.into());
        top.insert_times(&key, times);
        frequent.insert_times(&key, times.into());
    }
    match kind {
        Kind::Distinct => distinct.into(),
        Kind::CountMin => counts.into(),
        Kind::TopK => top.into(),
        _ => frequent.into(),
    }
}

/// Returns a list with few cells and places, for which many keys have competed.
fn crowded_top_k() -> Stored {
    let mut top = TopK::builder(8).width(11).depth(3).decay(0.8).build().unwrap();
    for _ in 0..4 {
        top.insert_batch(&(0..20u64).collect::<Vec<_>>());
        for (key, times) in weighted() {
            top.insert_times(&key, 10 + times);
        }
    }
    top.into()
}

/// Returns a sketch with few counters, which have been lowered.
fn crowded_frequent() -> Stored {
    let mut frequent = Frequent::new(6).unwrap();
    for _ in 0..4 {
        frequent.insert_batch(&(0..20u64).collect::<Vec<_>>());
        for (key, times) in weighted() {
            frequent.insert_times(&key, u64::from(10 + times));
        }
    }
    frequent.into()
}

/// Returns the union of two filters that have grown, which has two of each stage.
fn united_stages() -> Stored {
    let spec = Spec::new(2, 0.01).unwrap();
    let [mut filter, mut other] = [(), ()].map(|()| Scalable::build(&spec).unwrap());
    filter.insert_batch(&FRUIT[..]).unwrap();
    filter.insert(&-7i32).unwrap();
    other.insert_batch(&["sloe", "rowan", "service tree"]).unwrap();
    filter.union(&other).unwrap();
    AnyFilter::from(filter).into()
}

/// Returns the digests of the keys in the sets.
fn digests(spec: &Spec) -> Vec<Digest> {
    let mut digests = spec.hasher().digest_batch(&FRUIT[..]);
    digests.push((-7i32).digest(spec.hasher()));
    digests
}

/// Returns a map from these keys to values.
fn map(kind: Kind, values: &[u64; 6], options: KindOptions, book: Option<CodeBook>) -> Stored {
    let spec = Spec::new(6, 0.01).unwrap().with_options(options);
    let pairs = digests(&spec).into_iter().zip(*values).collect();
    AnyMap::from_pairs(kind, &spec, pairs, book, &Construction::default()).unwrap().into()
}

/// Returns a multiset in which some of these keys occur more often.
fn counted(kind: Kind, options: KindOptions) -> Stored {
    let spec = Spec::new(60, 0.005).unwrap().with_options(options);
    let mut counts = AnyCount::build(kind, &spec).unwrap();
    for (digest, times) in digests(&spec).into_iter().zip([1, 2, 3, 5, 8, 13]) {
        (0..times).for_each(|_| counts.insert_digest(digest));
    }
    counts.into()
}

/// Returns a filter at capacity, with one key twice, so that buckets are full and runs are long.
fn crowded(kind: Kind) -> Stored {
    let mut filter = AnyFilter::build(kind, &Spec::new(100, 0.01).unwrap()).unwrap();
    filter.insert_batch(&FRUIT[..]).unwrap();
    filter.insert(&-7i32).unwrap();
    filter.insert("apple").unwrap();
    filter.insert_batch(&(0..93u64).collect::<Vec<_>>()).unwrap();
    filter.into()
}

/// Returns a filter planned for few keys, so that kinds that grow or rotate have done so.
fn tuned(kind: Kind, options: KindOptions) -> Stored {
    let spec =
        Spec::new(if kind.capabilities().multiset { 20 } else { 3 }, 0.01).unwrap().with_options(options);
    if kind.capabilities().fixed {
        let digests = digests(&spec);
        return AnyFilter::from_digests(kind, &spec, digests, &Construction::default()).unwrap().into();
    }
    let mut filter = AnyFilter::build(kind, &spec).unwrap();
    filter.advance(aging::Timestamp::from_millis(1_700_000_000_000)).unwrap();
    filter.insert_batch(&FRUIT[..]).unwrap();
    filter.insert(&-7i32).unwrap();
    filter.into()
}

#[test]
fn golden_files_are_read_and_written_byte_for_byte() {
    let ring = KeyRing::from_iter(<[Hasher; 2]>::from(secrets()));
    for (name, filter, options) in all() {
        let (path, bytes) = (golden(&name), file::to_bytes(&filter, &options).unwrap());
        if std::env::var_os("UMBEL_BLESS").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        let stored = std::fs::read(&path).unwrap();
        assert!(stored == bytes, "{name} must be written as before");
        assert_eq!(file::size(&filter, &options).unwrap(), bytes.len() as u64, "{name}");

        let loaded = file::load(&path, &ring).unwrap();
        assert_eq!(loaded.filter.kind(), filter.kind(), "{name}");
        assert_eq!(loaded.filter.stats(), filter.stats(), "{name}");
        assert_eq!(loaded.meta, options.meta, "{name}");
        let mapped = file::map(&path, &ring).unwrap();
        let verified = file::map(&path, &ring).unwrap().verify().unwrap();
        for key in FRUIT {
            assert!(loaded.filter.contains(key), "{name} {key}");
            let mapped = match filter.kind().category() {
                Category::Map => mapped.get(key).unwrap().is_some(),
                Category::Multiset => mapped.count(key).unwrap().value > 0.0,
                // A sketch answers only after verification.
                Category::Sketch => mapped.contains(key).is_err(),
                _ => mapped.contains(key).unwrap(),
            };
            assert!(mapped, "{name} {key}");
            assert!(verified.filter.contains(key), "{name} {key}");
        }
        assert!(loaded.filter.contains(&-7i64), "{name}");
        assert!(!loaded.filter.contains("durian"), "{name}");
        // Saving it again yields the same file.
        let again = file::to_bytes(&loaded.filter, &Options { meta: loaded.meta, ..options }).unwrap();
        assert!(again == bytes, "{name}");
    }
}

#[test]
fn a_file_can_be_made_from_the_description_alone() {
    // The bits follow the chapters "From a key to a digest" and "From a digest to bits" of
    // docs/format.md, for kind 1 with m = 500, k = 4.
    let mut body = [0u8; 64];
    let keys = FRUIT.iter().map(|text| text.as_bytes().to_vec()).chain([(-7i64).to_le_bytes().to_vec()]);
    for key in keys {
        let mut x = xxh3_64_with_seed(&key, 0);
        for _ in 0..4 {
            let position = ((u128::from(x) * 500) >> 64) as usize;
            body[position / 8] |= 1 << (position % 8);
            x = x.wrapping_mul(0xf135_7aea_2e62_a9c5);
        }
    }
    // The container has 80 fixed bytes, two parameters, one section, one checksum and the header
    // checksum: 136 bytes, so H is 192.
    let mut file = Vec::new();
    file.extend(b"\x89UMBEL\r\n");
    file.extend([1, 0]); // version
    file.extend([1, 0]); // kind
    file.extend([0; 8]); // flags
    file.extend(192u32.to_le_bytes());
    file.extend(256u64.to_le_bytes());
    file.extend([1, 16]); // fast, chunks of 64 KiB
    file.extend([0, 0]); // no metadata
    file.extend(1u32.to_le_bytes()); // one section
    file.extend([0; 8]); // seed
    file.extend([0; 16]); // not planned
    file.extend(6u64.to_le_bytes()); // six insertions
    file.extend(2u32.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    file.extend(500u64.to_le_bytes());
    file.extend(4u64.to_le_bytes());
    file.extend(1u64.to_le_bytes()); // a section of bits
    file.extend(192u64.to_le_bytes());
    file.extend(64u64.to_le_bytes());
    file.extend(xxh3_64_with_seed(&body, 0).to_le_bytes());
    file.resize(184, 0);
    file.extend(xxh3_64_with_seed(&file, 0x006c_6562_6d75).to_le_bytes());
    file.extend(body);
    assert!(file == std::fs::read(golden("standard")).unwrap());
}

#[test]
fn the_bits_of_a_blocked_file_match_the_description() {
    let bytes = std::fs::read(golden("blocked-four-lines")).unwrap();
    let body = &bytes[bytes.len() - 9 * 64..];
    let mut expected = vec![0u8; 9 * 64];
    let keys = FRUIT.iter().map(|text| text.as_bytes().to_vec()).chain([(-7i64).to_le_bytes().to_vec()]);
    for key in keys {
        let mut x = xxh3_64_with_seed(&key, 0);
        let mut draw = || {
            let now = x;
            x = x.wrapping_mul(0xf135_7aea_2e62_a9c5);
            now
        };
        for _ in 0..4 {
            let line = ((u128::from(draw()) * 9) >> 64) as usize;
            let lanes = draw();
            for lane in 0..8 {
                let bit = 512 * line + 64 * lane + (lanes >> (16 + 6 * lane) & 63) as usize;
                expected[bit / 8] |= 1 << (bit % 8);
            }
        }
    }
    assert!(body == expected);
}
