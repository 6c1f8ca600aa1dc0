//! Keys have the bytes that docs/format.md documents, and filters accept every type of key, alone
//! and in batches.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::num::NonZero;
use std::path::Path;
use umbel::{Batch, BloomFilter, Hashable, Hasher, Key};

const V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const SOCKET_V4: SocketAddrV4 = SocketAddrV4::new(V4, 80);
const SOCKET_V6: SocketAddrV6 = SocketAddrV6::new(V6, 80, 9, 3);

fn bytes(key: &(impl Key + ?Sized)) -> Vec<u8> {
    key.with_bytes(<[u8]>::to_vec)
}

fn hex(key: &(impl Key + ?Sized)) -> String {
    bytes(key).iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Returns the bytes of the path in every type that file names have, and as text.
fn path(path: &str) -> Vec<String> {
    let mut keys = vec![hex(path)];
    #[cfg(unix)]
    {
        let name = std::ffi::OsStr::new(path);
        keys.extend([hex(name), hex(&name.to_owned())]);
        keys.extend([hex(Path::new(path)), hex(&Path::new(path).to_owned())]);
    }
    keys
}

/// The examples of the page: the name of the key, its bytes, and the bytes of the Rust keys that it
/// describes.
fn examples() -> Vec<(&'static str, &'static str, Vec<String>)> {
    let [negative, negative_wide] = [hex(&NonZero::new(-7i16).unwrap()), hex(&NonZero::new(-7i128).unwrap())];
    vec![
        (r#"text "apple""#, "61 70 70 6c 65", vec![hex("apple"), hex(b"apple"), hex(&b"apple".to_vec())]),
        ("character ä", "c3 a4", vec![hex(&'ä'), hex("ä")]),
        ("path /tmp", "2f 74 6d 70", path("/tmp")),
        ("integer 42", "2a 00 00 00 00 00 00 00", vec![hex(&42u8), hex(&42i32), hex(&42usize)]),
        (r#"text "42""#, "34 32", vec![hex("42"), hex(&String::from("42"))]),
        ("integer -7", "f9 ff ff ff ff ff ff ff", vec![hex(&-7i8), hex(&-7i64), negative]),
        (
            "128-bit integer -7",
            "f9 ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff",
            vec![hex(&-7i128), hex(&7u128.wrapping_neg()), negative_wide],
        ),
        ("true", "01 00 00 00 00 00 00 00", vec![hex(&true), hex(&1u8), hex(&NonZero::<u32>::MIN)]),
        ("false", "00 00 00 00 00 00 00 00", vec![hex(&false), hex(&0)]),
        ("192.0.2.1", "c0 00 02 01", vec![hex(&V4), hex(&IpAddr::V4(V4)), hex(&V4.octets())]),
        (
            "2001:db8::1",
            "20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01",
            vec![hex(&V6), hex(&IpAddr::V6(V6)), hex(&V6.octets())],
        ),
        (
            "192.0.2.1:80",
            "04 00 00 00 00 00 00 00 c0 00 02 01 08 00 00 00 00 00 00 00 50 00 00 00 00 00 00 00",
            vec![hex(&SOCKET_V4), hex(&SocketAddr::V4(SOCKET_V4)), hex(&(V4, 80))],
        ),
        (
            "[2001:db8::1%3]:80, flow 9",
            "10 00 00 00 00 00 00 00 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 \
             08 00 00 00 00 00 00 00 50 00 00 00 00 00 00 00 \
             08 00 00 00 00 00 00 00 09 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00",
            vec![hex(&SOCKET_V6), hex(&SocketAddr::V6(SOCKET_V6)), hex(&(V6, 80, 9, 3))],
        ),
        (
            r#"("a", "bc")"#,
            "01 00 00 00 00 00 00 00 61 02 00 00 00 00 00 00 00 62 63",
            vec![hex(&("a", "bc")), hex(&('a', *b"bc"))],
        ),
        (
            r#"("ab", "c")"#,
            "02 00 00 00 00 00 00 00 61 62 01 00 00 00 00 00 00 00 63",
            vec![hex(&("ab", "c"))],
        ),
        (r#"("a",)"#, "01 00 00 00 00 00 00 00 61", vec![hex(&("a",)), hex(&["a"])]),
        (
            r#"(("a", "b"), "c")"#,
            "12 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 61 01 00 00 00 00 00 00 00 62 \
             01 00 00 00 00 00 00 00 63",
            vec![hex(&(("a", "b"), "c"))],
        ),
        (
            r#"("id", 258, true)"#,
            "02 00 00 00 00 00 00 00 69 64 08 00 00 00 00 00 00 00 02 01 00 00 00 00 00 00 \
             08 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00",
            vec![hex(&("id", 258, true)), hex(&(Box::new("id"), &258u16, true))],
        ),
        ("array of the bytes 1, 2", "01 02", vec![hex(&[1u8, 2]), hex(&[1u8, 2][..]), hex("\x01\x02")]),
        (
            "array of the integers 1, 2",
            "08 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00",
            vec![hex(&[1, 2]), hex(&[1i8, 2]), hex(&[1u64, 2]), hex(&(1u8, 2i32))],
        ),
        (
            r#"array of the texts "a", "bc""#,
            "01 00 00 00 00 00 00 00 61 02 00 00 00 00 00 00 00 62 63",
            vec![hex(&["a", "bc"])],
        ),
        ("none", "00", vec![hex(&None::<u64>), hex(&None::<&str>)]),
        (r#"some "a""#, "01 00 00 00 00 00 00 00 61", vec![hex(&Some("a")), hex(&Some('a'))]),
        (r#"some """#, "00 00 00 00 00 00 00 00", vec![hex(&Some(""))]),
        ("some none", "01 00 00 00 00 00 00 00 00", vec![hex(&Some(None::<u64>))]),
        (
            "some some 7",
            "10 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00",
            vec![hex(&Some(Some(7))), hex(&Some(&Some(7u8)))],
        ),
        (
            r#"(none, some "a")"#,
            "01 00 00 00 00 00 00 00 00 09 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 61",
            vec![hex(&(None::<u8>, Some("a")))],
        ),
    ]
}

#[test]
fn keys_have_the_documented_bytes() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, table) =
        page.split_once("For example, in hexadecimal:\n\n| key | bytes |\n| --- | --- |\n").unwrap();
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let examples = examples();
    let expected: Vec<String> =
        examples.iter().map(|(name, bytes, _)| format!("| {name} | `{bytes}` |")).collect();
    assert_eq!(rows, expected);
    for (name, bytes, keys) in examples {
        assert!(keys.iter().all(|key| key == bytes), "{name}: {keys:?}");
    }
}

#[test]
fn the_digests_of_bytes_text_and_integers_do_not_change() {
    let hasher = Hasher::default();
    let apple = "apple".digest(&hasher);
    assert_eq!([b"apple".digest(&hasher), b"apple"[..].digest(&hasher)], [apple; 2]);
    assert_eq!([b"apple".to_vec().digest(&hasher), String::from("apple").digest(&hasher)], [apple; 2]);
    assert_eq!(apple.get(), xxhash_rust::xxh3::xxh3_64(b"apple"));
    assert_eq!(42u8.digest(&hasher).get(), xxhash_rust::xxh3::xxh3_64(&42u64.to_le_bytes()));
    assert_eq!([0u8; 8].digest(&hasher), 0u64.digest(&hasher));
}

#[cfg(unix)]
#[test]
fn paths_are_not_normalised() {
    let (double, single) = (Path::new("a//b"), Path::new("a/b"));
    assert_eq!(double, single);
    assert_ne!(bytes(double), bytes(single));
}

fn hashers() -> [Hasher; 3] {
    [Hasher::default(), Hasher::keyed([1; 16]), Hasher::sealed([2; 32])]
}

/// Inserts the members as a batch, and checks that they and none of the strangers are found.
fn check_batches<B: Batch + ?Sized, C: Batch + ?Sized>(members: &B, strangers: &C) {
    for hasher in hashers() {
        let mut filter = BloomFilter::builder().capacity(10_000).rate(1e-6).hasher(hasher).build().unwrap();
        filter.insert_batch(members);
        assert_eq!(filter.contains_batch(members).count(), members.len() as u64);
        assert_eq!(filter.contains_batch(strangers).count(), 0);
    }
}

#[test]
fn batches_accept_every_type_of_key() {
    check_batches(&[Some(1u64), None], &[Some(2u64)]);
    check_batches(&[("a", 1u64), ("b", 1)], &[("a", 2u64), ("b", 2)][..]);
    check_batches(&[["a", "bc"]], &[["ab", "c"]]);
    check_batches(&vec![true], &vec![false]);
    check_batches(&['x', 'y'], &['z']);
    check_batches(&[IpAddr::V4(V4)], &[IpAddr::V6(V6), IpAddr::V6(V4.to_ipv6_mapped())]);
    check_batches(&[SocketAddr::from((V4, 80))], &[SocketAddr::from((V4, 81)), SocketAddr::from((V6, 80))]);
    check_batches(&[Hashable("a"), Hashable("b")], &[Hashable("c")]);
    let pairs: Vec<(u64, String)> = (0..1000).map(|i| (i, format!("number {i}"))).collect();
    let others: Vec<(u64, String)> = (0..1000).map(|i| (i + 1, format!("number {i}"))).collect();
    check_batches(&pairs, &others);
}

#[derive(Hash)]
struct Visit<'a> {
    user: &'a str,
    pages: Vec<u32>,
}

#[test]
fn hashable_keys_are_found_with_every_hasher_and_after_saving() {
    let visit = |user, last| Visit { user, pages: (0..last).collect() };
    // The pages of the last visit do not fit on the stack.
    let members = [visit("ann", 1), visit("ann", 2), visit("bob", 100)];
    let strangers = [visit("ann", 0), visit("", 1), visit("bob", 101)];
    let [members, strangers] = [&members, &strangers].map(|visits| visits.each_ref().map(Hashable));
    check_batches(&members, &strangers);

    let mut filter = BloomFilter::with_capacity(100, 1e-6).unwrap();
    filter.extend(members);
    let saved = filter.to_bytes().unwrap();
    let filter = BloomFilter::from_bytes(&saved).unwrap();
    assert!(members.iter().all(|visit| filter.contains(visit)));
}

/// A value that writes its bytes in two pieces, and nothing else.
struct Pieces(Vec<u8>);

impl std::hash::Hash for Pieces {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let (first, second) = self.0.split_at(self.0.len() / 2);
        state.write(first);
        state.write(second);
    }
}

#[test]
fn the_hasher_receives_all_bytes_of_a_hashable_key() {
    for hasher in hashers() {
        for length in [0, 1, 100, 128, 129, 5000] {
            let pieces = Pieces((0..length).map(|i| i as u8).collect());
            assert_eq!(Hashable(&pieces).digest(&hasher), hasher.digest_bytes(&pieces.0), "{length}");
        }
        let text = String::from("apple");
        assert_eq!(
            Hashable(&text).digest(&hasher),
            Hashable("apple").digest(&hasher),
            "both types must hash alike"
        );
    }
}

#[test]
fn references_to_keys_are_keys() {
    let mut filter = BloomFilter::with_capacity(1000, 1e-6).unwrap();
    filter.extend([1u64, 2].iter());
    filter.extend(&[(1u64, "a"), (2, "b")]);
    assert!(filter.contains(&2u64) && filter.contains(&(2u64, "b")) && !filter.contains(&(2u64, "a")));
}
