//! A file is written completely or not at all. Every flipped bit and every truncation is detected
//! before the damaged part is used for an answer. A hostile file costs no more memory than its own
//! length.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::path::Path;
use std::time::{Duration, Instant};
use umbel::any::Stored;
use umbel::file::{self, FormatError, Options};
use umbel::hash::KeyRing;
use umbel::{Blocked, Bloom, Error, Hasher, Standard};
use xxhash_rust::xxh3::xxh3_64_with_seed;

fn small() -> Vec<u8> {
    let mut filter = Bloom::<Standard>::with_capacity(20, 0.01).unwrap();
    filter.insert_batch(&["a", "b", "c"][..]);
    let meta = [("name".to_owned(), "value".to_owned())].into();
    file::to_bytes(&filter, &Options { meta, ..Options::default() }).unwrap()
}

/// Returns a filter of about a megabyte, so that it has many chunks.
fn large() -> (Stored, Vec<u64>) {
    let keys: Vec<u64> = (0..800_000).collect();
    let mut filter = Bloom::<Blocked>::with_capacity(800_000, 0.01).unwrap();
    filter.insert_batch(&keys[..]);
    (filter.into(), keys)
}

fn load(bytes: &[u8]) -> umbel::Result<file::Loaded> {
    file::from_bytes(bytes, &KeyRing::new())
}

/// Returns the problem with the contents.
fn problem<T>(result: umbel::Result<T>) -> FormatError {
    match result {
        Err(Error::Format { problem, .. }) => problem,
        Err(other) => panic!("not a format error: {other}"),
        Ok(_) => panic!("the problem was not detected"),
    }
}

/// Writes a valid header checksum, as a hostile writer would.
fn reseal(bytes: &mut [u8]) {
    let Some(len) = bytes.get(20..24) else { return };
    let len = u32::from_le_bytes(len.try_into().unwrap()) as usize;
    if let Some(content) = len.checked_sub(8).filter(|_| len <= bytes.len()) {
        let sum = xxh3_64_with_seed(&bytes[..content], 0x006c_6562_6d75);
        bytes[content..len].copy_from_slice(&sum.to_le_bytes());
    }
}

#[test]
fn every_single_bit_flip_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped");
    // With every secret, so that a file is not refused for the lack of one.
    let ring = || {
        let sealed = Hasher::sealed(*b"thirty-two letters make a secret");
        KeyRing::from_iter([Hasher::keyed(*b"sixteen letters!"), sealed])
    };
    let load = |bytes: &[u8]| file::from_bytes(bytes, &ring());
    for bytes in golden_files().into_iter().chain([small()]) {
        let kind = load(&bytes).expect("an intact file").filter.kind();
        std::fs::write(&path, &bytes).unwrap();
        assert!(file::examine(&path).is_ok(), "{kind}");
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(load(&flipped).is_err(), "{kind}, bit {bit}, loaded");
            // Map only one in eleven, so that every bit of a byte is covered in less time.
            if bit % 11 == 0 {
                std::fs::write(&path, &flipped).unwrap();
                let mapped = file::map(&path, &ring()).and_then(file::Mapped::verify);
                assert!(mapped.is_err(), "{kind}, bit {bit}, mapped");
                assert!(file::examine(&path).is_err(), "{kind}, bit {bit}, examined");
            }
        }
        assert!((0..bytes.len()).all(|len| load(&bytes[..len]).is_err()), "{kind}, cut");
    }
}

#[test]
fn every_truncation_and_every_extension_is_detected() {
    let (bytes, folder) = (small(), tempfile::tempdir().unwrap());
    let path = folder.path().join("cut");
    for len in 0..bytes.len() {
        assert!(load(&bytes[..len]).is_err(), "{len} bytes, loaded");
        std::fs::write(&path, &bytes[..len]).unwrap();
        assert!(file::map(&path, &KeyRing::new()).is_err(), "{len} bytes, mapped");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(problem(load(&longer)), FormatError::Length { .. }));
    assert!(problem(load(&bytes[..bytes.len() - 1])).to_string().contains("truncated"));
}

#[test]
fn swapped_chunks_are_detected() {
    let mut bytes = file::to_bytes(&large().0, &Options::default()).unwrap();
    let chunk = 1 << 16;
    // Two whole chunks of the body, which follows the header, are swapped.
    let header = u32::from_le_bytes(bytes[20..24].try_into().unwrap()) as usize;
    let (left, right) = bytes[header..].split_at_mut(chunk);
    left.swap_with_slice(&mut right[..chunk]);
    assert!(problem(load(&bytes)).to_string().contains("chunk 0"));
}

#[test]
fn a_mapped_file_answers_from_intact_parts_and_refuses_the_damaged_one() {
    let (filter, keys) = large();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    let mut bytes = file::to_bytes(&filter, &Options::default()).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let mapped = file::map(&path, &KeyRing::new()).unwrap();
    let (mut found, mut refused) = (0, 0);
    for key in &keys[..20_000] {
        match mapped.contains(key) {
            Ok(present) => {
                assert!(present);
                found += 1;
            }
            Err(error) => {
                assert!(format!("{error:#}").contains("damaged"), "{error:#}");
                refused += 1;
            }
        }
    }
    // One chunk of sixteen.
    assert!(found > 15_000 && refused > 200, "{found} {refused}");
    assert!(problem(mapped.contains_batch(&keys[..])).to_string().contains("damaged"));
    assert!(problem(mapped.verified()).to_string().contains("damaged"));
    assert!(problem(mapped.verify()).to_string().contains("damaged"));
    assert!(problem(file::load(&path, &KeyRing::new())).to_string().contains("damaged"));
}

#[test]
fn an_intact_mapped_file_answers_like_the_original_filter() {
    let (filter, keys) = large();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    file::save(&path, &filter, &Options::default()).unwrap();
    let queries: Vec<u64> = (700_000..1_000_000).collect();
    let mapped = file::map(&path, &KeyRing::new()).unwrap();
    // The first time, parts are verified when they are used; the second time, all of them have
    // been.
    for _ in 0..2 {
        assert_eq!(mapped.contains_batch(&queries[..]).unwrap(), filter.contains_batch(&queries[..]));
        assert_eq!(mapped.contains_batch(&keys[..]).unwrap().count(), keys.len() as u64);
    }
    assert_eq!(mapped.verified().unwrap().stats(), filter.stats());
    let verified = mapped.verify().unwrap().filter;
    assert_eq!(verified.contains_batch(&queries[..]), filter.contains_batch(&queries[..]));
    let mut copy = verified.try_clone().unwrap();
    assert!(copy.insert(&u64::MAX).unwrap() && !verified.contains(&u64::MAX), "the file must not change");
}

#[test]
fn a_header_that_claims_2_to_the_60_bits_is_refused_immediately() {
    let mut bytes = small();
    bytes[80..88].copy_from_slice(&(1u64 << 60).to_le_bytes());
    reseal(&mut bytes);
    let start = Instant::now();
    let message = problem(load(&bytes)).to_string();
    assert!(message.contains("1152921504606846976"), "{message}");
    assert!(start.elapsed() < Duration::from_secs(1));
    // The section claims as much as the parameters.
    bytes[80 + 16 + 16..80 + 16 + 24].copy_from_slice(&(1u64 << 57).to_le_bytes());
    reseal(&mut bytes);
    assert!(problem(load(&bytes)).to_string().contains("the file has only"));
}

/// A reader that counts the bytes that were read from it, and returns zeros after its own.
struct Counted<'a> {
    bytes: &'a [u8],
    read: usize,
}

impl std::io::Read for Counted<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        to.fill(0);
        let _ = self.bytes.read(to)?;
        self.read += to.len();
        Ok(to.len())
    }
}

/// Returns the problem of a file of length `len` that starts with `bytes`, and the number of bytes
/// read until it was found.
fn problem_of_start(bytes: &[u8], len: u64) -> (FormatError, usize) {
    let mut reader = Counted { bytes, read: 0 };
    let problem = problem(file::read(&mut reader, len, &KeyRing::new()));
    (problem, reader.read)
}

#[test]
fn a_header_longer_than_any_file_needs_is_refused_before_it_is_read() {
    let len = 1u64 << 33;
    for header in [file::MAX_HEADER_BYTES + 64, 1 << 30, 0xffff_ffc0] {
        let mut bytes = small();
        bytes[20..24].copy_from_slice(&(header as u32).to_le_bytes());
        bytes[24..32].copy_from_slice(&len.to_le_bytes());
        let (problem, read) = problem_of_start(&bytes, len);
        assert!(problem.to_string().contains(&format!("claims {header} bytes")), "{problem}");
        assert!(read <= 32, "{read} bytes were read");
    }
    // The largest header that this version writes: all of the metadata and all of the sums.
    let meta = (0..4096).map(|i| (format!("{i:06}"), "x".repeat(250))).collect();
    let bytes = file::to_bytes(&load(&small()).unwrap().filter, &Options { meta, ..Options::default() });
    let header = u32::from_le_bytes(bytes.unwrap()[20..24].try_into().unwrap());
    assert!(u64::from(header) + (1 << 20) < file::MAX_HEADER_BYTES, "{header}");
}

#[test]
fn nothing_is_read_after_a_damaged_chunk() {
    let bytes = file::to_bytes(&large().0, &Options::default()).unwrap();
    let header = u32::from_le_bytes(bytes[20..24].try_into().unwrap()) as usize;
    let mut damaged = bytes.clone();
    damaged[header + 70_000] ^= 1;
    let (problem, read) = problem_of_start(&damaged, bytes.len() as u64);
    assert!(problem.to_string().contains("chunk 1 of"), "{problem}");
    assert_eq!(read, header + (2 << 16));
    // A chunk as large as the file would have to be read before its checksum is known to be wrong.
    let mut coarse = bytes.clone();
    coarse[33] = 20;
    reseal(&mut coarse);
    let (problem, read) = problem_of_start(&coarse, bytes.len() as u64);
    assert!(problem.to_string().contains("chunks of 2^20 bytes"), "{problem}");
    assert_eq!(read, header);
}

#[test]
fn other_files_and_versions_are_named() {
    assert_eq!(problem(load(b"")), FormatError::NotAFilter);
    assert_eq!(
        problem(load(b"PK\x03\x04 and much more text than a header would need")),
        FormatError::NotAFilter
    );
    let mut newer = small();
    newer[8] = 2;
    assert!(matches!(problem(load(&newer)), FormatError::Damaged { .. }), "a flipped bit is damage");
    reseal(&mut newer);
    assert_eq!(problem(load(&newer)), FormatError::Newer { version: 2 });
    let mut unknown = small();
    unknown[15] = 0x80;
    reseal(&mut unknown);
    assert!(problem(load(&unknown)).to_string().contains("newer"));
    let mut compatible = small();
    compatible[19] = 0x80;
    reseal(&mut compatible);
    assert!(load(&compatible).is_ok(), "compatible flags are ignored");
    for (offset, value) in [(10, 99), (32, 9), (33, 60), (34, 2), (36, 2), (63, 0x7f), (72, 3)] {
        let mut odd = small();
        odd[offset] = value;
        reseal(&mut odd);
        assert!(load(&odd).is_err(), "byte {offset}");
    }
}

#[test]
fn bits_beyond_the_filter_are_refused_even_with_valid_checksums() {
    let filter = Bloom::with_layout(Standard::new(65, 3).unwrap(), Hasher::default()).unwrap();
    let bytes = file::to_bytes(&filter, &Options::default()).unwrap();
    let header = u32::from_le_bytes(bytes[20..24].try_into().unwrap()) as usize;
    let folder = tempfile::tempdir().unwrap();
    for bit in [64, 65, 127, 128, 511] {
        let mut bytes = bytes.clone();
        bytes[header + bit / 8] |= 1 << (bit % 8);
        // The only chunk checksum follows 80 fixed bytes, two parameters and a section.
        let sum = xxh3_64_with_seed(&bytes[header..], 0);
        bytes[120..128].copy_from_slice(&sum.to_le_bytes());
        reseal(&mut bytes);
        let path = folder.path().join("tail");
        std::fs::write(&path, &bytes).unwrap();
        let verified = file::map(&path, &KeyRing::new()).and_then(file::Mapped::verify);
        if bit == 64 {
            assert!(load(&bytes).is_ok() && verified.is_ok(), "the last bit of the filter");
        } else {
            assert!(problem(load(&bytes)).to_string().contains("beyond"), "bit {bit}");
            assert!(problem(verified).to_string().contains("beyond"), "bit {bit}");
        }
    }
}

#[test]
fn the_size_of_metadata_is_limited() {
    let filter = load(&small()).unwrap().filter;
    let entries = |count: usize, len: usize| {
        let meta = (0..count).map(|i| (format!("{i:06}"), "x".repeat(len))).collect();
        file::to_bytes(&filter, &Options { meta, ..Options::default() })
    };
    assert_eq!(load(&entries(4096, 200).unwrap()).unwrap().meta.len(), 4096);
    assert!(entries(4097, 1).unwrap_err().to_string().contains("metadata"));
    assert!(entries(2, 600_000).unwrap_err().to_string().contains("metadata"));
}

#[test]
fn a_file_can_be_inspected_without_its_secret_and_never_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keyed");
    let secret = Hasher::keyed([0x5a; 16]);
    let filter = Bloom::with_layout(Standard::new(100, 3).unwrap(), secret.clone()).unwrap();
    file::save(&path, &filter, &Options { embed_key: true, ..Options::default() }).unwrap();
    let mapped = file::map(&path, &KeyRing::new()).unwrap();
    for shown in [format!("{mapped:?}"), format!("{filter:?}")] {
        assert!(!shown.contains("90, 90") && !shown.contains("5a5a"), "{shown}");
    }
    file::save(&path, &filter, &Options::default()).unwrap();
    let info = file::inspect(&path).unwrap();
    assert_eq!((info.kind, info.hash), (umbel::Kind::Standard, Some(secret.id())));
    assert!(matches!(file::load(&path, &KeyRing::new()), Err(Error::MissingKey { .. })));
}

#[test]
fn a_file_can_be_examined_and_its_metadata_replaced_without_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keyed");
    let secret = Hasher::keyed([3; 16]);
    let mut filter = Bloom::with_layout(Standard::new(1000, 3).unwrap(), secret.clone()).unwrap();
    filter.insert("apple");
    for embed_key in [false, true] {
        file::save(&path, &filter, &Options { embed_key, ..Options::default() }).unwrap();
        let meta = file::Meta::from([("name".into(), "x".repeat(5000))]);
        file::set_meta(&path, meta.clone()).unwrap();
        let examined = file::examine(&path).unwrap();
        assert_eq!((&examined.info.meta, examined.info.embedded_key), (&meta, embed_key));
        assert_eq!((examined.info.hash, examined.stats()), (Some(secret.id()), filter.stats()));
        let loaded = file::load(&path, &KeyRing::from_iter([secret.clone()])).unwrap();
        assert!(loaded.filter.contains("apple"));
        // The loaded filter must be written as it was.
        let bytes = file::to_bytes(&loaded.filter, &loaded.options()).unwrap();
        assert_eq!(bytes, std::fs::read(&path).unwrap());
        assert!(file::set_meta(&path, [("x".into(), "y".repeat(2 << 20))].into()).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "a refusal must not change the file");
    }
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(problem(file::examine(&path)).to_string().contains("damaged"));
    assert!(problem(file::set_meta(&path, file::Meta::new())).to_string().contains("damaged"));
}

#[test]
fn create_new_does_not_replace_an_existing_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.umbel");
    let filter = load(&small()).unwrap().filter;
    let options = Options { create_new: true, ..Options::default() };
    file::save(&path, &filter, &options).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = file::save(&path, &filter, &Options { meta: [("a".into(), "b".into())].into(), ..options });
    assert!(error.unwrap_err().to_string().starts_with("cannot create"));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no other file may be left");
}

#[test]
fn a_missing_secret_is_named_by_its_tag() {
    let secret = Hasher::sealed([9; 32]);
    let filter = Bloom::with_layout(Standard::new(100, 3).unwrap(), secret.clone()).unwrap();
    let bytes = file::to_bytes(&filter, &Options::default()).unwrap();
    let message = load(&bytes).unwrap_err().to_string();
    assert!(message.contains(&format!("{:016x}", secret.id().value)), "{message}");
    assert!(file::from_bytes(&bytes, &KeyRing::from_iter([secret])).is_ok());
    let refused = file::to_bytes(&filter, &Options { embed_key: true, ..Options::default() });
    assert!(refused.unwrap_err().to_string().contains("keyed"), "a sealed secret is never written");
}

#[test]
fn errors_name_the_unusable_path() {
    let folder = tempfile::tempdir().unwrap();
    let filter = load(&small()).unwrap().filter;
    let missing = folder.path().join("missing.umbel");
    let below_a_file = {
        std::fs::write(folder.path().join("plain"), "text").unwrap();
        folder.path().join("plain/x.umbel")
    };
    for path in [folder.path(), &missing, &below_a_file] {
        let message = file::load(path, &KeyRing::new()).unwrap_err().to_string();
        assert!(message.contains(path.to_str().unwrap()), "{message}");
        assert!(file::map(path, &KeyRing::new()).is_err());
    }
    for path in [folder.path(), &below_a_file, Path::new("/nonexistent/x.umbel")] {
        let message = file::save(path, &filter, &Options::default()).unwrap_err().to_string();
        assert!(message.contains(path.to_str().unwrap()), "{message}");
    }
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["plain"], "no partial file may be left");
}

#[test]
fn saving_replaces_a_file_completely_and_existing_readers_continue() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.umbel");
    let with = |key: &str| {
        let mut filter = Bloom::with_layout(Standard::new(1000, 3).unwrap(), Hasher::default()).unwrap();
        filter.insert(key);
        Stored::from(filter)
    };
    file::save(&path, &with("old"), &Options::default()).unwrap();
    let reader = file::map(&path, &KeyRing::new()).unwrap();
    file::save(&path, &with("new"), &Options::default()).unwrap();
    assert!(reader.contains("old").unwrap() && !reader.contains("new").unwrap());
    assert!(file::load(&path, &KeyRing::new()).unwrap().filter.contains("new"));
}

#[test]
#[cfg(unix)]
fn saving_keeps_links_and_permissions_and_refuses_special_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let [target, link, pipe] = ["target", "link", "pipe"].map(|name| folder.path().join(name));
    let filter = load(&small()).unwrap().filter;
    file::save(&target, &filter, &Options::default()).unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o666)).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    file::save(&link, &filter, &Options::default()).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o666);
    // This also holds if the target of the link does not exist yet. A link that leads back to
    // itself has no target.
    std::fs::remove_file(&target).unwrap();
    let create_new = Options { create_new: true, ..Options::default() };
    assert!(file::save(&link, &filter, &create_new).is_err() && !target.exists());
    file::save(&link, &filter, &Options::default()).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink() && target.is_file());
    let circle = folder.path().join("circle");
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    assert!(file::save(&circle, &filter, &Options::default()).is_err());
    assert!(std::fs::symlink_metadata(&circle).unwrap().is_symlink());
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let saved = file::save(&pipe, &filter, &Options::default()).unwrap_err();
    assert!(format!("{saved:#}").contains("regular file"), "{saved:#}");
    let loaded = file::load(&pipe, &KeyRing::new()).unwrap_err();
    assert!(format!("{loaded:#}").contains("regular file"), "{loaded:#}");
}

/// Run again by [`a_full_disk_leaves_the_old_file`] in a process that may write only a few bytes.
#[test]
fn save_with_limited_space() {
    let Some(path) = std::env::var_os("UMBEL_LIMITED_SPACE") else { return };
    let error = file::save(&path, &large().0, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("cannot write to"), "{error}");
    println!("refused as it should be");
}

#[test]
#[cfg(unix)]
fn a_full_disk_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.umbel");
    std::fs::write(&path, small()).unwrap();
    // A limit on the size of files simulates the full disk. Its signal is ignored, so that the
    // write fails.
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact damage::save_with_limited_space --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .env("UMBEL_LIMITED_SPACE", &path)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("refused as it should be"), "{printed}");
    assert!(std::fs::read(&path).unwrap() == small(), "the old file must not change");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no partial file may be left");
}

/// Returns files of every kind.
fn golden_files() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Default::default()
    })]
    #[test]
    fn hostile_headers_never_panic(
        which: prop::sample::Index,
        edits in prop::collection::vec((0..256usize, prop_oneof![Just(0u8), Just(0xff), Just(1), any::<u8>()]), 1..8),
        cut in 0..3000usize,
    ) {
        thread_local!(static FILES: Vec<Vec<u8>> = golden_files());
        let mut bytes = FILES.with(|files| which.get(files).clone());
        for (at, value) in edits {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        // One in ten is truncated.
        bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(2700)));
        reseal(&mut bytes);
        let ring = KeyRing::from_iter([Hasher::keyed(*b"sixteen letters!")]);
        // Any answer is valid, as long as there is one.
        if let Ok(loaded) = file::from_bytes(&bytes, &ring) {
            loaded.filter.contains("apple");
            loaded.filter.stats();
            file::to_bytes(&loaded.filter, &Options::default()).unwrap();
        }
    }
}
