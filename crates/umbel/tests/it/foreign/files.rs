//! Files are recognised, opened in every way, and written as the other programs write them.

use super::{filter, given, keys};
use std::fs;
use std::io::Write;
use umbel::file::Placing;
use umbel::foreign::{ForeignFilter, Format, Given, Options};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn every_format_is_loaded_mapped_and_saved_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    for &format in Format::ALL {
        let mut made = filter(format, 500, 0.01);
        let keys = keys(500);
        made.insert_batch(&keys).unwrap();
        let path = folder.path().join(format.name());
        made.save(&path, Placing::default()).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes, made.to_bytes(), "{format}");
        let opened = [
            ForeignFilter::load(&path, given(format)).unwrap(),
            ForeignFilter::map(&path, given(format)).unwrap(),
            ForeignFilter::from_bytes(&bytes, given(format)).unwrap(),
        ];
        for mut filter in opened {
            assert_eq!(filter.facts(), made.facts(), "{format}");
            assert_eq!(filter.contains_batch(&keys).unwrap().count(), 500, "{format}");
            assert_eq!(filter.to_bytes(), bytes, "{format}");
            // Insertions into a mapped file go to a copy.
            filter.insert_batch(&["another", "key"]).unwrap();
            assert!(filter.contains(b"another").unwrap());
            assert_eq!(fs::read(&path).unwrap(), bytes, "{format}");
        }
    }
}

#[test]
fn formats_that_can_be_recognised_need_no_name() {
    for &format in Format::ALL {
        let expected = match format {
            Format::Dcso | Format::Spark | Format::Spark2 | Format::DataSketches => Some(format),
            _ => None,
        };
        for inserted in [0, 50] {
            let mut filter = filter(format, 100, 0.01);
            filter.insert_batch(&keys(inserted)).unwrap();
            let bytes = filter.to_bytes();
            assert_eq!(Format::recognize(&bytes), expected, "{format}");
            assert_eq!(
                ForeignFilter::from_bytes(&bytes, Given::default()).is_ok(),
                expected.is_some(),
                "{format}"
            );
        }
    }
    assert!(
        ForeignFilter::from_bytes(b"umbel or not", Given::default())
            .unwrap_err()
            .to_string()
            .contains("sbbf")
    );
    assert_eq!(
        (Format::recognize(b""), Format::recognize(&[0; 64]), Format::recognize(b"\x1f\x8b")),
        (None, None, None)
    );
}

#[test]
fn gzip_of_dcso_is_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = filter(Format::Dcso, 5000, 0.01);
    made.insert_batch(&keys(5000)).unwrap();
    let (bytes, path) = (made.to_bytes(), folder.path().join("packed"));
    let packed = gzip(&bytes);
    fs::write(&path, &packed).unwrap();
    assert_eq!(Format::recognize(&packed[..packed.len().min(Format::RECOGNIZE_BYTES)]), Some(Format::Dcso));
    for filter in [
        ForeignFilter::load(&path, Given::default()).unwrap(),
        ForeignFilter::map(&path, Given::default()).unwrap(),
        ForeignFilter::from_bytes(&packed, Given::default()).unwrap(),
    ] {
        assert_eq!(filter.to_bytes(), bytes);
    }
}

#[test]
fn spark_is_opened_in_the_version_of_the_file() {
    for (made, named) in [(Format::Spark, Format::Spark2), (Format::Spark2, Format::Spark)] {
        let bytes = filter(made, 100, 0.01).to_bytes();
        let opened = ForeignFilter::from_bytes(&bytes, given(named)).unwrap();
        assert_eq!((opened.format(), opened.facts().format), (made, made));
    }
}

#[test]
fn user_data_of_dcso_is_kept() {
    let data = b"any bytes";
    let mut bytes = filter(Format::Dcso, 100, 0.01).to_bytes();
    bytes.extend(data);
    let mut opened = ForeignFilter::from_bytes(&bytes, given(Format::Dcso)).unwrap();
    assert!(opened.insert(b"key").unwrap());
    assert!(opened.to_bytes().ends_with(data));
    assert_eq!(opened.facts().remark.as_deref(), Some("9 bytes of user data"));
    assert_eq!(ForeignFilter::from_bytes(&gzip(&bytes), Given::default()).unwrap().to_bytes(), bytes);
}

#[test]
fn empty_datasketches_are_short_and_take_bits() {
    let mut empty = filter(Format::DataSketches, 1000, 0.01);
    assert_eq!(empty.to_bytes().len(), 24);
    let again = ForeignFilter::from_bytes(&empty.to_bytes(), given(Format::DataSketches)).unwrap();
    assert_eq!((again.facts(), again.contains(b"x").unwrap()), (empty.facts(), false));
    assert_eq!(again.contains_batch(&["x", "y"]).unwrap().len(), 2);
    empty.insert(b"x").unwrap();
    assert_eq!(empty.to_bytes().len() as u64, 32 + empty.facts().bits / 8);
}

#[test]
fn bare_bit_sets_stay_bare() {
    let bytes = filter(Format::Sbbf, 1000, 0.01).to_bytes();
    let bare = &bytes[bytes.len() % 32..];
    let mut opened = ForeignFilter::from_bytes(bare, given(Format::Sbbf)).unwrap();
    assert_eq!(opened.to_bytes(), bare);
    opened.insert(b"key").unwrap();
    assert_eq!(opened.to_bytes().len(), bare.len());
}

#[test]
fn counts_of_bits_in_datasketches_are_read_and_checked() {
    let mut made = filter(Format::DataSketches, 100, 0.01);
    made.insert_batch(&keys(100)).unwrap();
    let mut bytes = made.to_bytes();
    assert_eq!(bytes[24..32], [0xff; 8], "as Java writes it after an insertion");
    bytes[24..32].copy_from_slice(&made.facts().bits_set.to_le_bytes());
    let counted = ForeignFilter::from_bytes(&bytes, Given::default()).unwrap();
    assert_eq!(counted.to_bytes(), bytes);
    bytes[24] ^= 1;
    let error = ForeignFilter::from_bytes(&bytes, Given::default()).unwrap_err();
    assert!(format!("{error:#}").contains("bits are set"), "{error:#}");
}

#[test]
fn sizes_are_those_of_the_original_formulas() {
    // Computed by hand from -n ln p / (ln 2)^2.
    let sizes = |format, n, p| {
        let facts = filter(format, n, p).facts();
        (facts.bits, facts.hashes)
    };
    assert_eq!(sizes(Format::Dcso, 1000, 0.01), (9585, 7));
    assert_eq!(sizes(Format::Guava, 1000, 0.01), (9600, 7));
    assert_eq!(sizes(Format::Spark, 500, 0.03), (3712, 5));
    assert_eq!(sizes(Format::Spark2, 500, 0.03), (3712, 5));
    assert_eq!(sizes(Format::DataSketches, 1000, 0.05), (6272, 5));
    // A chain that grows has half the rate in its first link: log2(1 / 0.005) is 7.6.
    assert_eq!(sizes(Format::RedisBloom, 1000, 0.01), (11_072, 8));
    let fixed = Options { fixed: true, ..Options::default() };
    let facts = ForeignFilter::with_capacity(Format::RedisBloom, 1000, 0.01, &fixed).unwrap().facts();
    assert_eq!((facts.bits, facts.hashes, facts.design.unwrap().rate), (9600, 7, 0.01));
}

#[test]
fn parameters_that_do_not_suit_are_refused() {
    for &format in Format::ALL {
        for (keys, rate) in
            [(0, 0.01), (10, 0.0), (10, 1.0), (10, f64::NAN), (u64::MAX, 0.01), (1 << 50, 1e-9)]
        {
            let made = ForeignFilter::with_capacity(format, keys, rate, &super::options(format));
            assert!(made.is_err(), "{format} {keys} {rate}");
        }
    }
    let seeded = |seed| Options { seed: Some(seed), ..Options::default() };
    assert!(ForeignFilter::with_capacity(Format::Dcso, 10, 0.01, &seeded(1)).is_err());
    assert!(ForeignFilter::with_capacity(Format::Spark2, 10, 0.01, &seeded(1 << 32)).is_err());
    let made = ForeignFilter::with_capacity(Format::Spark2, 10, 0.01, &seeded(u32::MAX.into())).unwrap();
    assert_eq!(made.facts().seed, Some(u32::MAX.into()));
    assert!("umbel".parse::<Format>().unwrap_err().to_string().contains("redisbloom"));
}
