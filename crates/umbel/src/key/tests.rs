//! Tests that each key has the documented bytes, alone and in a batch.

use super::*;
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

fn bytes(key: &impl Key) -> Vec<u8> {
    key.with_bytes(<[u8]>::to_vec)
}

fn hashers() -> [Hasher; 3] {
    [Hasher::fast(99), Hasher::keyed([3; 16]), Hasher::sealed([4; 32])]
}

#[test]
fn integers_of_all_widths_are_one_key_and_keep_their_sign() {
    for hasher in hashers() {
        let seven = 7u64.to_le_bytes().digest(&hasher);
        let digests =
            [7u8.digest(&hasher), 7u16.digest(&hasher), 7i32.digest(&hasher), 7usize.digest(&hasher)];
        assert_eq!(digests, [seven; 4]);
        assert_eq!((-7i8).digest(&hasher), (-7i64).digest(&hasher));
        assert_eq!((-7i8).digest(&hasher), (-7i64).to_le_bytes().digest(&hasher));
        assert_eq!((-7i128).digest(&hasher), (-7i128).to_le_bytes().digest(&hasher));
        assert_ne!(7u128.digest(&hasher), seven);
    }
}

/// Byte strings that look like lengths and tags, so that an ambiguous encoding would collide.
fn part() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..3, 0..4)
}

fn many<S: Strategy>(keys: S) -> impl Strategy<Value = Vec<S::Value>> {
    prop::collection::vec(keys, 100)
}

fn have_distinct_bytes<K: Key + Ord>(keys: &[K]) -> bool {
    let different: BTreeSet<&K> = keys.iter().collect();
    let encodings: BTreeSet<Vec<u8>> = keys.iter().map(bytes).collect();
    different.len() == encodings.len()
}

/// Encodes a part of a composite key, shorter than 64 KiB, as documented.
fn with_length_prefix(part: &[u8]) -> Vec<u8> {
    let [low, high] = (part.len() as u16).to_le_bytes();
    [&[low, high, 0, 0, 0, 0, 0, 0], part].concat()
}

proptest! {
    #![proptest_config(crate::fixed_cases())]
    #[test]
    fn different_values_of_one_type_have_different_bytes(
        pairs in many((part(), part())),
        triples in many((part(), part(), part())),
        arrays in many(prop::array::uniform3(part())),
        options in many(prop::option::of(prop::option::of(part()))),
        nested in many((prop::option::of((part(), part())), prop::array::uniform2(prop::option::of(part())))),
        sockets in many((0..3u32, 0..3u16, 0..3u32, 0..3u32)),
    ) {
        prop_assert!(have_distinct_bytes(&pairs));
        prop_assert!(have_distinct_bytes(&triples));
        prop_assert!(have_distinct_bytes(&arrays));
        prop_assert!(have_distinct_bytes(&options));
        prop_assert!(have_distinct_bytes(&nested));
        let sockets: Vec<SocketAddr> = sockets.into_iter().map(|(address, port, flow, scope)| match flow {
            0 => SocketAddrV4::new(address.into(), port).into(),
            _ => SocketAddrV6::new(u128::from(address).into(), port, flow, scope).into(),
        }).collect();
        prop_assert!(have_distinct_bytes(&sockets));
    }

    #[test]
    fn different_characters_and_numbers_have_different_bytes(chars: Vec<char>, ints: Vec<i128>, flags: Vec<bool>) {
        prop_assert!(have_distinct_bytes(&chars));
        prop_assert!(have_distinct_bytes(&ints));
        prop_assert!(have_distinct_bytes(&flags));
    }

    #[test]
    fn each_part_follows_its_length(
        parts in prop::array::uniform4(prop::collection::vec(any::<u8>(), 0..200)),
    ) {
        let encoding: Vec<u8> = parts.iter().flat_map(|part| with_length_prefix(part)).collect();
        let [a, b, c, d] = &parts;
        prop_assert_eq!(bytes(&(a, b, c, d)), &encoding[..]);
        prop_assert_eq!(bytes(&parts), &encoding[..]);
        let nested = [with_length_prefix(&encoding), with_length_prefix(&[0])].concat();
        prop_assert_eq!(bytes(&(&parts, None::<u64>)), nested);
        prop_assert_eq!(bytes(&Some(&parts)), with_length_prefix(&encoding));
    }

    #[test]
    fn a_tile_is_hashed_like_its_keys_one_by_one(ints: Vec<u64>, texts: Vec<String>) {
        let bytes: Vec<u8> = texts.iter().flat_map(|text| text.bytes()).collect();
        let mut offsets = vec![0u32];
        offsets.extend(texts.iter().scan(0, |end, text| { *end += text.len() as u32; Some(*end) }));
        let arena = Arena::new(&bytes, &offsets).unwrap();
        prop_assert_eq!(arena.len(), texts.len());
        for hasher in hashers() {
            let mut tile = vec![Digest::default(); ints.len()];
            ints[..].digest_tile(0..ints.len(), &hasher, &mut tile);
            for (int, digest) in ints.iter().zip(&tile) {
                prop_assert_eq!(*digest, hasher.digest_bytes(&int.to_le_bytes()));
            }
            let mut tile = vec![Digest::default(); texts.len()];
            arena.digest_tile(0..texts.len(), &hasher, &mut tile);
            let mut same = tile.clone();
            texts[..].digest_tile(0..texts.len(), &hasher, &mut same);
            prop_assert_eq!(&tile, &same);
            prop_assert_eq!(&tile, &hasher.digest_batch(&arena));
            prop_assert_eq!(&tile, &hasher.digest_batch(&Hashed(&tile)));
            // The same strings as lines.
            let lines: Vec<u8> = texts.iter().flat_map(|text| text.bytes().chain([b'\n'])).collect();
            let starts: Vec<u32> = offsets.iter().zip(0..).map(|(offset, i)| offset + i).collect();
            let separated = Arena::separated(&lines, &starts).unwrap();
            prop_assert_eq!(&tile, &hasher.digest_batch(&separated));
            for (text, digest) in texts.iter().zip(&tile) {
                prop_assert_eq!(*digest, hasher.digest_bytes(text.as_bytes()));
            }
        }
    }
}

#[test]
fn pointers_and_containers_are_the_keys_they_hold() {
    let hasher = Hasher::fast(5);
    let digest = "key".digest(&hasher);
    let (boxed, shared): (Box<str>, Arc<[u8]>) = ("key".into(), b"key"[..].into());
    assert_eq!(
        [boxed.digest(&hasher), shared.digest(&hasher), Cow::from("key").digest(&hasher)],
        [digest; 3]
    );
    let tile = |batch: &dyn Fn(&mut [Digest])| {
        let mut tile = [Digest::default(); 2];
        batch(&mut tile);
        tile
    };
    let expected = [7u64.digest(&hasher), 8u64.digest(&hasher)];
    assert_eq!(tile(&|out| vec![7u64, 8].digest_tile(0..2, &hasher, out)), expected);
    assert_eq!(tile(&|out| Batch::digest_tile(&[7u64, 8], 0..2, &hasher, out)), expected);
}

#[test]
fn an_arena_refuses_offsets_that_fall_or_leave_the_buffer() {
    assert!(Arena::new(b"abc", &[0u64, 2, 1]).is_err());
    assert!(Arena::new(b"abc", &[0u32, 4]).is_err());
    assert!(Arena::new(b"abc", &[-1i32, 2]).is_err());
    assert_eq!(Arena::new(b"abc", &[0usize, 2, 3]).unwrap().get(1), Some(&b"c"[..]));
    assert_eq!(Arena::<u64>::new(b"abc", &[]).unwrap().len(), 0);
    assert!(Arena::separated(b"a\nb\n", &[0u32, 2, 2]).is_err(), "no room for the byte between");
    assert!(Arena::separated(b"a\nb\n", &[0u32, 2, 5]).is_err());
    assert!(Arena::separated(b"a\nb\n", &[3u64, u64::MAX, 2]).is_err());
    assert_eq!(Arena::separated(b"\nb\n", &[0u32, 1, 3]).unwrap().get(0), Some(&b""[..]));
    assert_eq!(Arena::new(b"abc", &[0u32, 0, 3]).unwrap().get(0), Some(&b""[..]));
}

#[test]
fn tuples_have_up_to_twelve_parts() {
    let twelve = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    let array: [u64; 12] = std::array::from_fn(|i| i as u64 + 1);
    assert_eq!(bytes(&twelve), bytes(&array));
    assert_eq!(bytes(&array).len(), 12 * (8 + 8));
}
