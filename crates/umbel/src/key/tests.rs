//! Each key has the bytes that the documentation says, alone and in a batch.

use super::*;
use proptest::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

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

proptest! {
    #![proptest_config(crate::fixed_cases())]
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
fn a_pointer_to_a_key_and_a_container_of_keys_are_what_they_hold() {
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
