//! Truncated, damaged and hostile files: a sentence, and neither a panic nor memory.

use super::{filter, given, keys};
use std::io::Write;
use umbel::foreign::{ForeignFilter, Format};

/// The error of a file, with its cause.
fn refused(format: Format, bytes: &[u8]) -> String {
    match ForeignFilter::from_bytes(bytes, given(format)) {
        Ok(_) => {
            panic!("{format}: {} bytes were accepted: {:x?}", bytes.len(), &bytes[..bytes.len().min(40)])
        }
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn every_truncation_is_refused() {
    for &format in Format::ALL {
        let mut made = filter(format, 100, 0.05);
        made.insert_batch(&keys(150)).unwrap();
        let bytes = made.to_bytes();
        for cut in 0..bytes.len() {
            // What is left of a header and its bits may be a bare bit set, but its header shows.
            let error = refused(format, &bytes[..cut]);
            assert!(error.len() > 20, "{format} cut at {cut}: {error}");
        }
        if format != Format::Dcso {
            assert!(refused(format, &[&bytes[..], b"x"].concat()).len() > 20, "{format}");
        }
    }
}

#[test]
fn damage_never_panics() {
    for &format in Format::ALL {
        let mut made = filter(format, 40, 0.05);
        made.insert_batch(&keys(60)).unwrap();
        let bytes = made.to_bytes();
        for at in 0..bytes.len().min(200) {
            for byte in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1] {
                let mut damaged = bytes.clone();
                damaged[at] = byte;
                if let Ok(mut filter) = ForeignFilter::from_bytes(&damaged, given(format)) {
                    let again = filter.to_bytes();
                    assert_eq!(ForeignFilter::from_bytes(&again, given(format)).unwrap().to_bytes(), again);
                    filter.contains_batch(&keys(70)).unwrap();
                    filter.probes(b"key").unwrap();
                    filter.facts();
                    drop(filter.insert(b"key"));
                }
            }
        }
    }
}

/// A file of these numbers in little-endian order, with some bytes after them.
fn dcso(version: u64, k: u64, m: u64) -> Vec<u8> {
    let numbers = [version, 100, 0.01f64.to_bits(), k, m, 5];
    let header = numbers.iter().flat_map(|number| number.to_le_bytes());
    header.chain([0xff; 800]).collect()
}

fn java(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).chain([0xff; 800]).collect()
}

fn guava(strategy: u8, k: u8, longs: i32) -> Vec<u8> {
    [&[strategy, k][..], &java(&[longs])].concat()
}

fn datasketches(k: u16, longs: i32, flags: u8) -> Vec<u8> {
    let mut bytes = vec![if flags == 4 { 3 } else { 4 }, 1, 21, flags];
    bytes.extend(k.to_le_bytes());
    bytes.extend([0; 10]);
    bytes.extend(longs.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes.extend([0xff; 800]);
    bytes
}

fn redisbloom(links: u32, options: u32, bytes: u64, bits: u64, k: u32, log2: u8) -> Vec<u8> {
    let mut chunk = 5u64.to_le_bytes().to_vec();
    [links, options, 2].iter().for_each(|number| chunk.extend(number.to_le_bytes()));
    [bytes, bits, 5, 0.01f64.to_bits(), 9.6f64.to_bits()]
        .iter()
        .for_each(|number| chunk.extend(number.to_le_bytes()));
    chunk.extend(k.to_le_bytes());
    chunk.extend(1000u64.to_le_bytes());
    chunk.push(log2);
    [&record(1, &chunk)[..], &record(2, &[0xff; 64])].concat()
}

fn record(iterator: i64, chunk: &[u8]) -> Vec<u8> {
    [&iterator.to_le_bytes()[..], &(chunk.len() as u64).to_le_bytes(), chunk].concat()
}

#[test]
fn absurd_headers_are_refused_with_a_reason() {
    let cases = [
        (Format::Guava, "truncated", guava(1, 5, i32::MAX)),
        (Format::Guava, "-1 words", guava(1, 5, -1)),
        (Format::Guava, "0 words", guava(1, 5, 0)),
        (Format::Guava, "0 hash functions", guava(1, 0, 100)),
        (Format::Guava, "strategy 9", guava(9, 5, 100)),
        (Format::Dcso, "truncated", dcso(1, 7, 1 << 46)),
        (Format::Dcso, "no bits", dcso(1, 7, 0)),
        (Format::Dcso, "truncated", dcso(1, 7, u64::MAX)),
        (Format::Dcso, "hash functions", dcso(1, 1 << 60, 6400)),
        (Format::Dcso, "hash functions", dcso(1, 0, 6400)),
        (Format::Dcso, "version 9", dcso(9, 7, 6400)),
        (Format::Spark, "truncated", java(&[1, 5, i32::MAX])),
        (Format::Spark, "hash functions", java(&[1, i32::MAX, 100])),
        (Format::Spark, "hash functions", java(&[1, -1, 100])),
        (Format::Spark, "0 words", java(&[2, 5, 7, 0])),
        (Format::Spark, "version 3", java(&[3, 5, 7, 100])),
        (Format::DataSketches, "truncated", datasketches(5, i32::MAX, 0)),
        (Format::DataSketches, "hash functions", datasketches(0, 100, 0)),
        (Format::DataSketches, "-5 words", datasketches(5, -5, 0)),
        (Format::DataSketches, "flags", datasketches(5, 100, 1)),
        (Format::DataSketches, "appended", datasketches(5, 100, 4)),
        (Format::RedisBloom, "truncated", redisbloom(1, 5, 1 << 60, 1 << 63, 7, 0)),
        (Format::RedisBloom, "no bits", redisbloom(1, 5, 0, 0, 7, 0)),
        (Format::RedisBloom, "hash functions", redisbloom(1, 5, 64, 512, u32::MAX, 0)),
        (Format::RedisBloom, "chain of 4294967295 links", redisbloom(u32::MAX, 5, 64, 512, 7, 0)),
        (Format::RedisBloom, "in 64 bytes", redisbloom(1, 5, 64, 513, 7, 0)),
        (Format::RedisBloom, "2^8", redisbloom(1, 5, 64, 512, 7, 8)),
        (Format::RedisBloom, "32-bit", redisbloom(1, 1, 64, 512, 7, 0)),
        (Format::RedisBloom, "more chunks", redisbloom(1, 5, 60, 480, 7, 0)),
        (
            Format::RedisBloom,
            "truncated",
            [&1i64.to_le_bytes()[..], &(1u64 << 63).to_le_bytes(), &[0xff; 800]].concat(),
        ),
        (Format::Sbbf, "0 bytes", b"\x15\0\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0".to_vec()),
        (Format::Sbbf, "multiple of 32", vec![0xff; 33]),
        (Format::Sbbf, "multiple of 32", Vec::new()),
    ];
    for (format, reason, bytes) in cases {
        let error = refused(format, &bytes);
        assert!(error.contains(reason), "{format}: {error:?} does not say {reason:?}");
    }
    // The limits themselves are fine.
    for (format, bytes) in [
        (Format::Guava, guava(0, 255, 100)),
        (Format::Dcso, dcso(1, 1075, 6400)),
        (Format::Spark, java(&[1, 1075, 100])),
        (Format::DataSketches, datasketches(5, 100, 0)),
        (Format::RedisBloom, redisbloom(1, 5, 64, 512, 7, 9)),
    ] {
        ForeignFilter::from_bytes(&bytes, given(format)).unwrap();
    }
}

#[test]
fn chunks_out_of_order_are_refused() {
    let mut made = filter(Format::RedisBloom, 100, 0.05);
    made.insert_batch(&keys(400)).unwrap();
    let bytes = made.to_bytes();
    let (mut records, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let len = 16 + u64::from_le_bytes(rest[8..16].try_into().unwrap()) as usize;
        records.push(&rest[..len]);
        rest = &rest[len..];
    }
    assert!(records.len() > 2);
    records.swap(1, 2);
    assert!(refused(Format::RedisBloom, &records.concat()).contains("iterator"));
    // The end of a dump is a reply without bytes, which may be stored, too.
    ForeignFilter::from_bytes(&[&bytes[..], &[0; 16]].concat(), given(Format::RedisBloom)).unwrap();
}

#[test]
fn gzip_takes_no_more_memory_than_its_header_justifies() {
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    // 64 MiB of zeros behind a filter of 800 bytes.
    let bomb = gzip(&[&dcso(1, 7, 6400)[..], &vec![0; 64 << 20]].concat());
    assert!(bomb.len() < 100_000);
    assert!(refused(Format::Dcso, &bomb).contains("packed"));
    assert!(refused(Format::Dcso, &gzip(&dcso(1, 7, 1 << 46))).contains("more than gzip can pack"));
    let packed = gzip(&filter(Format::Dcso, 1000, 0.01).to_bytes());
    for cut in 2..packed.len() {
        assert!(refused(Format::Dcso, &packed[..cut]).len() > 20);
    }
    for at in 0..packed.len() {
        let mut damaged = packed.clone();
        damaged[at] ^= 0x10;
        // Some bytes of its header mean nothing to the contents.
        drop(ForeignFilter::from_bytes(&damaged, given(Format::Dcso)));
    }
}
