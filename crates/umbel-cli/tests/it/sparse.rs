//! The length of a sparse file costs nothing, so a long one takes no memory, whatever it claims.

use crate::shell::{Answer, Shell};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;
use umbel::file::fields::{sum, sum_at};
use umbel::file::{Image, Options, Storable};
use umbel::{Bloom, Counting, Hasher, Standard, counting};

/// The length of the files.
const LENGTH: u64 = 1 << 30;

/// The memory that a process may take for itself, which does not include mapped files.
const MAX_BYTES: u64 = 250 << 20;

/// Runs umbel, and fails if it takes much memory for itself.
#[track_caller]
fn limited(shell: &Shell, arguments: &str) -> Answer {
    let mut process = shell.start(arguments);
    let status = format!("/proc/{}/status", process.child().id());
    let (answer, peak) = thread::scope(|scope| {
        // Until the process ends: from then on there is no such line.
        let peak = scope.spawn(|| {
            let mut peak = 0;
            while let Some(bytes) = anonymous(&status) {
                peak = bytes.max(peak);
                thread::sleep(Duration::from_millis(2));
            }
            peak
        });
        let answer = process.feed(|mut stdin| stdin.write_all(b"key\t1\n"));
        (answer, peak.join().unwrap())
    });
    assert!(peak < MAX_BYTES, "{arguments}: {} MiB", peak >> 20);
    answer
}

/// Returns the bytes of memory of a process that belong to no file.
fn anonymous(status: &str) -> Option<u64> {
    let status = fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(1024 * line.split_ascii_whitespace().next()?.parse::<u64>().ok()?)
}

/// Writes a file that starts with these bytes, and goes on with zeros up to a length.
fn sparse(path: &Path, bytes: &[u8], length: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

fn golden(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).expect("a golden file")
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

#[test]
fn a_filter_of_32_bytes_and_zeros_takes_no_memory() {
    let shell = Shell::new();
    let mut bytes = b"\x89UMBEL\r\n\x01\0\x01\0\0\0\0\0\0\0\0\0\xc0\xff\xff\xff".to_vec();
    bytes.extend((1u64 << 33).to_le_bytes());
    sparse(&shell.path("f"), &bytes, 1 << 33);
    for command in [
        "check f",
        "add f",
        "meta f",
        "meta f name=value",
        "union f f -o u",
        "info f",
        "info --verify f",
        "remove f",
        "map get f",
        "map set f",
        "count get f",
        "count add f",
        "compare f f",
        "why f key",
    ] {
        limited(&shell, command).failed(&["claims 4294967232 bytes of at most 4194304"]);
    }
    assert_eq!(shell.names("."), ["f"]);
}

/// Writes the file of an empty filter, except that its last byte is wrong. Its other checksums are
/// right: anyone can compute those of zeros.
fn nearly_empty(path: &Path, filter: &impl Storable) {
    let image = Image::new(filter, &Options::default()).unwrap();
    let mut header = vec![0; 4 << 20];
    image.read(0, &mut header);
    let length = u32::from_le_bytes(header[20..24].try_into().unwrap()) as usize;
    header.truncate(length);
    sparse(path, &header, image.len() - 1);
    OpenOptions::new().append(true).open(path).unwrap().write_all(&[0x80]).unwrap();
}

#[test]
fn a_filter_of_zeros_takes_no_memory_until_its_damage_is_found() {
    let shell = Shell::new();
    let standard = Standard::new(8 * LENGTH, 3).unwrap();
    nearly_empty(&shell.path("standard"), &Bloom::with_layout(standard, Hasher::default()).unwrap());
    let counting = Counting::new(2 * LENGTH, 3, counting::Options::default(), Hasher::default());
    nearly_empty(&shell.path("counting"), &counting.unwrap());
    for command in [
        "add standard",
        "meta standard name=value",
        "union standard standard -o u",
        "info --verify standard",
        "add counting",
        "remove counting",
        "union counting counting -o u",
        "compare counting counting",
    ] {
        limited(&shell, command).failed(&["damaged", "chunk"]);
    }
    assert_eq!(shell.names("."), ["counting", "standard"]);
}

#[test]
fn other_files_of_zeros_take_no_memory() {
    let shell = Shell::new();
    let mut epoch = golden("umbel-net/tests/golden/block.epoch");
    put(&mut epoch, 16, LENGTH);
    let end = sum(&epoch[..152]);
    put(&mut epoch, 152, end);
    sparse(&shell.path("epochs/00000001.epoch"), &epoch, LENGTH);
    let mut page = golden("umbel-net/tests/golden/router.page");
    put(&mut page, 16, LENGTH);
    let header = 80 + page[12] as usize;
    let end = sum(&page[..header]);
    put(&mut page, header, end);
    sparse(&shell.path("pages/00000001.page"), &page, LENGTH);
    shell.pipe("net block --state blocked", "block 192.0.2.7 600\nsave\n").ok();
    let mut state = shell.read("blocked");
    put(&mut state, 16, LENGTH);
    sparse(&shell.path("blocked"), &state, LENGTH);
    let mut question = b"UMBELASK\x01\0\0\0\x02\0\0\0".to_vec();
    question.extend((LENGTH - 1).to_le_bytes());
    sparse(&shell.path("question"), &question, LENGTH - 1);
    let mut table = golden("umbel-text/tests/golden/words.table");
    put(&mut table, 16, LENGTH);
    let blocks = u64::from_le_bytes(table[56..64].try_into().unwrap());
    put(&mut table, 64, LENGTH - 80 - blocks);
    let end = sum_at(0, &table[..72]);
    put(&mut table, 72, end);
    sparse(&shell.path("table/00000001-00000001.table"), &table, LENGTH);
    // A record whose value is nearly as long as the log.
    let mut log = golden("umbel-text/tests/golden/words.log");
    let at = log.len() as u64;
    let mut head =
        [3u32, (LENGTH - at - 24 - 3 - 8) as u32 + 1].map(u32::to_le_bytes).as_flattened().to_vec();
    head.extend([7; 8]);
    let end = sum_at(at, &head);
    log.extend(head);
    log.extend(end.to_le_bytes());
    sparse(&shell.path("log/00000001.log"), &log, LENGTH);
    for (command, problem) in [
        ("net attribute epochs --excerpt-hex 00112233445566778899aabbccddeeff", "the epoch"),
        ("net trace info pages", "the page"),
        ("net block --state blocked", "the file"),
        ("count ask --cover 10 question key", "the message"),
        ("table scan table", "the index"),
        ("table get table", "the index"),
        ("table scan log", "record 121"),
    ] {
        let answer = limited(&shell, command).code(2);
        let said = format!("the checksum of {problem} does not match");
        assert!(answer.stderr.contains(&said), "{command}: {}", answer.stderr);
    }
    // A log may end with zeros: the disk can have grown it before a crash.
    sparse(&shell.path("log/00000001.log"), &golden("umbel-text/tests/golden/words.log"), LENGTH);
    assert_eq!(limited(&shell, "table scan log").code(0).text().lines().count(), 108);
}
