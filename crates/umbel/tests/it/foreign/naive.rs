//! Plain loops for the bits of a key, written from the documentation of each format.

use umbel::foreign::Format;
use xxhash_rust::xxh64::xxh64;

/// Returns the `k` bits of a key among `m`.
pub fn bits(format: Format, key: &[u8], k: u32, m: u64, seed: u64) -> Vec<u64> {
    match format {
        Format::Dcso => dcso(key, k, m),
        Format::Guava => guava(key, k, m),
        Format::Spark => spark1(key, k, m),
        Format::Spark2 => spark2(key, k, m, seed as u32),
        Format::DataSketches => datasketches(key, k, m, seed),
        Format::RedisBloom => redisbloom(key, k, m),
        Format::Sbbf => sbbf(key, m),
        _ => unreachable!("all formats are known here"),
    }
}

fn dcso(key: &[u8], k: u32, m: u64) -> Vec<u64> {
    let mut h = 0xcbf2_9ce4_8422_2325_u64;
    for byte in key {
        h = h.wrapping_mul(0x100_0000_01b3);
        h ^= u64::from(*byte);
    }
    h %= 18_446_744_073_709_551_557;
    let mut bits = Vec::new();
    for _ in 0..k {
        h = h.wrapping_mul(18_446_744_073_709_550_147) % 18_446_744_073_709_551_557;
        bits.push(h % m);
    }
    bits
}

/// The strategy of 64 bits.
fn guava(key: &[u8], k: u32, m: u64) -> Vec<u64> {
    let (h1, h2) = umbel::literature::murmur::murmur3_x64_128(key, 0);
    (0..u64::from(k)).map(|i| (h1.wrapping_add(i.wrapping_mul(h2)) & (u64::MAX >> 1)) % m).collect()
}

/// The strategy of 32 bits.
pub fn guava32(key: &[u8], k: u32, m: u64) -> Vec<u64> {
    let (h, _) = umbel::literature::murmur::murmur3_x64_128(key, 0);
    (1..=k as i32).map(|i| java_bit(h as i32, (h >> 32) as i32, i, m)).collect()
}

fn java_bit(h1: i32, h2: i32, i: i32, m: u64) -> u64 {
    let combined = h1.wrapping_add(i.wrapping_mul(h2));
    (if combined < 0 { !combined } else { combined }) as u64 % m
}

/// Spark's hash takes the bytes of an incomplete word one by one, with their signs.
fn spark_hash(key: &[u8], seed: u32) -> u32 {
    let whole = key.len() / 4 * 4;
    let mut words = Vec::new();
    for word in key[..whole].chunks(4) {
        words.push(i32::from_le_bytes(word.try_into().unwrap()));
    }
    for byte in &key[whole..] {
        words.push(i32::from(*byte as i8));
    }
    let mut h = seed;
    for word in words {
        let mut x = (word as u32).wrapping_mul(0xcc9e_2d51);
        x = x.rotate_left(15);
        x = x.wrapping_mul(0x1b87_3593);
        h ^= x;
        h = h.rotate_left(13);
        h = h.wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    h ^= key.len() as u32;
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

fn spark1(key: &[u8], k: u32, m: u64) -> Vec<u64> {
    let h1 = spark_hash(key, 0);
    let h2 = spark_hash(key, h1);
    (1..=k as i32).map(|i| java_bit(h1 as i32, h2 as i32, i, m)).collect()
}

fn spark2(key: &[u8], k: u32, m: u64, seed: u32) -> Vec<u64> {
    let h1 = spark_hash(key, seed);
    let h2 = spark_hash(key, h1);
    let mut combined = i64::from(h1 as i32) * 0x7fff_ffff;
    let mut bits = Vec::new();
    for _ in 0..k {
        combined += i64::from(h2 as i32);
        bits.push((if combined < 0 { !combined } else { combined }) as u64 % m);
    }
    bits
}

fn datasketches(key: &[u8], k: u32, m: u64, seed: u64) -> Vec<u64> {
    let h0 = xxh64(key, seed);
    let h1 = xxh64(key, h0);
    (1..=u64::from(k)).map(|i| (h0.wrapping_add(i.wrapping_mul(h1)) >> 1) % m).collect()
}

fn murmur64a(key: &[u8], seed: u64) -> u64 {
    let c = 0xc6a4_a793_5bd1_e995_u64;
    let mut h = seed ^ (key.len() as u64).wrapping_mul(c);
    let mut left = key;
    while left.len() >= 8 {
        let mut word = u64::from_le_bytes(left[..8].try_into().unwrap()).wrapping_mul(c);
        word ^= word >> 47;
        h ^= word.wrapping_mul(c);
        h = h.wrapping_mul(c);
        left = &left[8..];
    }
    for (i, byte) in left.iter().enumerate() {
        h ^= u64::from(*byte) << (8 * i);
    }
    if !left.is_empty() {
        h = h.wrapping_mul(c);
    }
    h ^= h >> 47;
    h = h.wrapping_mul(c);
    h ^ h >> 47
}

fn redisbloom(key: &[u8], k: u32, m: u64) -> Vec<u64> {
    let a = murmur64a(key, 0xc6a4_a793_5bd1_e995);
    let b = murmur64a(key, a);
    (0..u64::from(k)).map(|i| a.wrapping_add(i.wrapping_mul(b)) % m).collect()
}

fn sbbf(key: &[u8], m: u64) -> Vec<u64> {
    let salts = [
        0x47b6_137b_u32,
        0x4497_4d91,
        0x8824_ad5b,
        0xa2b7_289d,
        0x7054_95c7,
        0x2df1_424b,
        0x9efc_4947,
        0x5c6b_fb31,
    ];
    let h = xxh64(key, 0);
    let block = ((h >> 32) * (m / 256)) >> 32;
    let mut bits = Vec::new();
    for (word, salt) in salts.iter().enumerate() {
        bits.push(block * 256 + word as u64 * 32 + u64::from((h as u32).wrapping_mul(*salt) >> 27));
    }
    bits
}
