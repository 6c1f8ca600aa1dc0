//! Every answer is that of plain loops over the bits, one key at a time and in batches.

use super::{filter, given, keys, naive, options};
use proptest::prelude::*;
use std::collections::HashSet;
use umbel::foreign::{ForeignFilter, Format, Funnel, Given, Options, sbbf};
use umbel::{Arena, Batch};

/// The bits of a filter by its facts, except for chains.
fn bits(filter: &ForeignFilter, key: &[u8]) -> Vec<u64> {
    let facts = filter.facts();
    naive::bits(facts.format, key, facts.hashes, facts.bits, facts.seed.unwrap_or_default())
}

#[test]
fn bits_and_answers_are_those_of_the_documentation() {
    for &format in Format::ALL {
        for rate in [0.2, 0.01, 1e-7] {
            let options = Options { fixed: true, ..options(format) };
            let mut filter = ForeignFilter::with_capacity(format, 400, rate, &options).unwrap();
            let keys = keys(1200);
            let mut set = HashSet::new();
            for key in &keys[..400] {
                let bits = bits(&filter, key);
                let new = bits.iter().any(|bit| !set.contains(bit));
                assert_eq!(filter.insert(key).unwrap(), new, "{format} {key:?}");
                set.extend(bits);
            }
            assert_eq!(filter.facts().bits_set, set.len() as u64, "{format}");
            for key in &keys {
                let probes = filter.probes(key).unwrap();
                assert!(probes.iter().map(|probe| probe.bit).eq(bits(&filter, key)), "{format} {key:?}");
                assert!(probes.iter().all(|probe| probe.set == set.contains(&probe.bit) && probe.link == 0));
                let expected = probes.iter().all(|probe| probe.set);
                assert_eq!(filter.contains(key).unwrap(), expected, "{format} {key:?}");
            }
        }
    }
}

#[test]
fn the_older_strategy_of_guava_is_answered() {
    let mut file = filter(Format::Guava, 300, 0.01).to_bytes();
    file[0] = 0;
    let mut filter = ForeignFilter::from_bytes(&file, given(Format::Guava)).unwrap();
    let facts = filter.facts();
    for key in keys(300) {
        filter.insert(&key).unwrap();
        let bits = naive::guava32(&key, facts.hashes, facts.bits);
        assert!(filter.probes(&key).unwrap().iter().map(|probe| probe.bit).eq(bits));
    }
    assert_eq!(filter.to_bytes()[..6], file[..6]);
}

#[test]
fn batches_give_the_answers_of_single_keys() {
    for &format in Format::ALL {
        for count in [0, 1, 63, 64, 65, 1000] {
            let keys = keys(2 * count);
            let (mut one, mut many) =
                (filter(format, count.max(1) as u64, 0.1), filter(format, count.max(1) as u64, 0.1));
            let new: Vec<bool> = keys[..count].iter().map(|key| one.insert(key).unwrap()).collect();
            assert!(many.insert_batch(&keys[..count]).unwrap().iter().eq(new), "{format} {count}");
            assert_eq!(one.to_bytes(), many.to_bytes(), "{format} {count}");
            let expected: Vec<bool> = keys.iter().map(|key| one.contains(key).unwrap()).collect();
            assert!(
                many.contains_batch(&keys).unwrap().iter().eq(expected.iter().copied()),
                "{format} {count}"
            );
            // The batches of the command line.
            let joined: Vec<u8> = keys.concat();
            let offsets: Vec<usize> =
                (0..=keys.len()).map(|i| keys[..i].iter().map(Vec::len).sum()).collect();
            let arena = Arena::new(&joined, &offsets).unwrap();
            assert_eq!(arena.len(), expected.len());
            assert!(many.contains_batch(&arena).unwrap().iter().eq(expected), "{format} {count}");
        }
    }
}

#[test]
fn chains_grow_and_answer_from_every_link() {
    let mut chain = filter(Format::RedisBloom, 100, 0.01);
    let keys = keys(3000);
    let unique: HashSet<_> = keys.iter().collect();
    chain.insert_batch(&keys).unwrap();
    let facts = chain.facts();
    assert!(facts.links >= 5, "{} links", facts.links);
    assert!(facts.keys.unwrap() as f64 > 0.95 * unique.len() as f64);
    assert!(chain.contains_batch(&keys).unwrap().iter().all(|member| member));
    let again = ForeignFilter::from_bytes(&chain.to_bytes(), given(Format::RedisBloom)).unwrap();
    assert!(again.contains_batch(&keys).unwrap().iter().all(|member| member));
    let links: HashSet<_> = again.probes(b"a stranger").unwrap().iter().map(|probe| probe.link).collect();
    assert_eq!(links.len(), facts.links);
    let strangers: Vec<String> = (0..20_000).map(|i| format!("stranger {i}")).collect();
    let measured = again.contains_batch(&strangers).unwrap().count() as f64 / 20_000.0;
    assert!(measured < 0.012, "{measured}");
    assert!((measured - facts.rate_now).abs() < 0.003, "{measured} of {}", facts.rate_now);

    let options = Options { fixed: true, ..Options::default() };
    let mut full = ForeignFilter::with_capacity(Format::RedisBloom, 10, 0.0001, &options).unwrap();
    let error = full.insert_batch(&keys).unwrap_err().to_string();
    assert!(error.contains("full"), "{error}");
    assert_eq!(full.facts().keys, Some(10));
}

#[test]
fn funnels_make_the_bytes_that_the_programs_hash() {
    let with = |format, funnel| {
        let options = Options { funnel: Some(funnel), ..Options::default() };
        ForeignFilter::with_capacity(format, 100, 0.001, &options)
    };
    let cases: [(Format, Funnel, &str, &[u8]); 8] = [
        (Format::Guava, Funnel::Long, "-2", &(-2i64).to_le_bytes()),
        (Format::Guava, Funnel::Int, "-2", &(-2i32).to_le_bytes()),
        (Format::Guava, Funnel::Unencoded, "żar", &[0x7c, 1, b'a', 0, b'r', 0]),
        (Format::Sbbf, Funnel::Int, "7", &7i32.to_le_bytes()),
        (Format::Sbbf, Funnel::Long, "7", &7i64.to_le_bytes()),
        (Format::Spark, Funnel::Int, "-2147483648", &i64::from(i32::MIN).to_le_bytes()),
        (Format::Spark2, Funnel::Long, "9223372036854775807", &i64::MAX.to_le_bytes()),
        (Format::DataSketches, Funnel::Bytes, "x", b"x"),
    ];
    for (format, funnel, line, bytes) in cases {
        let mut filter = with(format, funnel).unwrap();
        assert!(filter.insert(line.as_bytes()).unwrap());
        assert!(filter.contains_batch(&[line]).unwrap().iter().eq([true]), "{format} {funnel}");
        let probes = filter.probes(line.as_bytes()).unwrap();
        assert!(probes.iter().map(|probe| probe.bit).eq(bits(&filter, bytes)), "{format} {funnel}");
    }
    for (funnel, line) in
        [(Funnel::Long, "12 "), (Funnel::Long, ""), (Funnel::Int, "2147483648"), (Funnel::Long, "1.5")]
    {
        let filter = with(Format::Guava, funnel).unwrap();
        let error = filter.contains_batch(&["1", line]).unwrap_err().to_string();
        assert!(error.contains(&format!("{line:?}")) && error.contains(funnel.name()), "{error}");
    }
    let not_text = with(Format::Guava, Funnel::Unencoded).unwrap().contains(b"\xff").unwrap_err();
    assert!(not_text.to_string().contains("UTF-8"), "{not_text}");
    for (format, funnel) in [(Format::Dcso, Funnel::Long), (Format::Spark, Funnel::Unencoded)] {
        let error = with(format, funnel).unwrap_err().to_string();
        assert!(error.contains(funnel.name()) && error.contains(format.name()), "{error}");
    }
    let error = ForeignFilter::with_capacity(Format::Guava, 10, 0.01, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("unencoded"), "{error}");
    let missing = Given { format: Some(Format::Guava), funnel: None };
    assert!(ForeignFilter::from_bytes(&[0; 100], missing).unwrap_err().to_string().contains("funnel"));
}

#[test]
fn split_blocks_keep_the_rate_that_they_were_sized_for() {
    for (keys, rate) in [(1000, 0.03), (5000, 0.01), (20_000, 0.001)] {
        let blocks = sbbf::blocks_for(keys, rate).unwrap();
        assert!(sbbf::rate(blocks, keys) <= rate && (blocks == 1 || sbbf::rate(blocks / 2, keys) > rate));
        let mut filter = sbbf::Blocks::new(blocks).unwrap();
        let hashes: Vec<u64> = (0..keys + 400_000).map(|i| sbbf::hash(&i.to_le_bytes())).collect();
        let (members, strangers) = hashes.split_at(keys as usize);
        filter.insert_hashes(members).unwrap();
        assert_eq!(filter.contains_hashes(members).count(), keys);
        let positives = filter.contains_hashes(strangers).count() as f64;
        let (expected, now) = (sbbf::rate(blocks, keys) * 4e5, filter.rate_now() * 4e5);
        // Three standard deviations of the strangers, and the spread of the filters of one size.
        assert!((positives - now).abs() < 3.5 * now.sqrt() + 1.0, "{positives} of {now}");
        assert!(
            (positives - expected).abs() < 4.0 * expected.sqrt() + 0.05 * expected,
            "{positives} of {expected}"
        );
        for hash in &hashes[..2000] {
            let single = filter.contains_hash(*hash);
            assert_eq!(filter.contains_hashes(&[*hash]).get(0), Some(single));
        }
    }
    assert!(sbbf::blocks_for(0, 0.01).unwrap() == 1 && sbbf::blocks_for(u64::MAX, 0.01).is_err());
    assert!(sbbf::blocks_for(10, 0.0).is_err() && sbbf::Blocks::new(0).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_member_is_lost(
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..300),
        format in prop::sample::select(Format::ALL),
        capacity in 1u64..500,
        rate in 1e-9..0.9,
    ) {
        let mut filter = filter(format, capacity, rate);
        let (first, second) = keys.split_at(keys.len() / 2);
        filter.insert_batch(first).unwrap();
        for key in second {
            filter.insert(key).unwrap();
        }
        let file = filter.to_bytes();
        let again = ForeignFilter::from_bytes(&file, given(format)).unwrap();
        prop_assert_eq!(again.contains_batch(&keys).unwrap().count(), keys.len() as u64);
        prop_assert!(keys.iter().all(|key| again.contains(key).unwrap()));
        prop_assert_eq!(again.to_bytes(), file);
        prop_assert_eq!(again.facts(), filter.facts());
    }
}
