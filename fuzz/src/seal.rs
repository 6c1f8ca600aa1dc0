//! Makes checksums and lengths match, as a hostile writer would. Without this, nearly all inputs of
//! a fuzzer would fail at the first checksum.

use sha2::{Digest as _, Sha256};
use umbel::Hasher;
use umbel::file::fields::{Fields, sum_at};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Makes the length and the checksums of a filter file match its contents, where they can be
/// located.
pub fn filter_file(bytes: &mut [u8]) {
    let length = bytes.len() as u64;
    put(bytes, 24, length);
    let head = usize::try_from(number(bytes, 20, 4)).unwrap_or(usize::MAX);
    if head < 80 || head > bytes.len() {
        return;
    }
    chunks(bytes, head);
    let sum = xxh3_64_with_seed(&bytes[..head - 8], 0x6c_65_62_6d_75);
    put(bytes, head - 8, sum);
}

/// Sets the checksums of the body's chunks, which follow parameters, sections, secret and metadata.
fn chunks(bytes: &mut [u8], head: usize) {
    let log2 = number(bytes, 33, 1);
    if !(12..=40).contains(&log2) {
        return;
    }
    let secret = 16 * (number(bytes, 12, 4) & 1);
    let mut at = 80 + 8 * number(bytes, 72, 4) + 24 * number(bytes, 36, 4) + secret;
    for _ in 0..number(bytes, 34, 2) {
        let Some(place) = usize::try_from(at).ok().filter(|place| *place < head) else { return };
        at += 8 + number(bytes, place, 4) + number(bytes, place + 4, 4);
    }
    let Ok(mut at) = usize::try_from(at.next_multiple_of(8)) else { return };
    let size = usize::try_from(1u64 << log2).unwrap_or(usize::MAX);
    let sums: Vec<u64> =
        (0..).zip(bytes[head..].chunks(size)).map(|(i, chunk)| xxh3_64_with_seed(chunk, i)).collect();
    let params = number(bytes, 72, 4);
    put(bytes, 72, params | (sums.len() as u64) << 32);
    for sum in sums {
        if at.saturating_add(16) > head {
            return;
        }
        put(bytes, at, sum);
        at += 8;
    }
}

/// As [`filter_file`], for the state of a blocklist and the filter in it.
pub fn blocklist_state(bytes: &mut [u8]) {
    const HEAD: usize = 112;
    let length = bytes.len();
    put(bytes, 16, length as u64);
    let Some(end) = length.checked_sub(8).filter(|end| *end >= HEAD) else { return };
    let timed = number(bytes, 80, 8).saturating_add(number(bytes, 88, 8));
    let before = timed.saturating_mul(26).saturating_add(number(bytes, 96, 8).saturating_mul(18));
    if let Some(start) =
        usize::try_from(before).ok().and_then(|before| before.checked_add(HEAD)).filter(|start| *start <= end)
    {
        put(bytes, 104, (end - start) as u64);
        filter_file(&mut bytes[start..end]);
    }
    let sum = Hasher::fast(0).digest_bytes(&bytes[..end]).get();
    put(bytes, end, sum);
}

/// As [`filter_file`], for a message of a private count.
pub fn private_count(bytes: &mut [u8]) {
    let length = bytes.len();
    put(bytes, 16, length as u64);
    let Some(end) = length.checked_sub(8).filter(|end| *end >= 24) else { return };
    let sum = Hasher::fast(0).digest_bytes(&bytes[..end]).get();
    put(bytes, end, sum);
}

/// As [`filter_file`], for an epoch of a store, its header and the filters in it.
pub fn epoch(bytes: &mut [u8]) {
    const HEAD: usize = 160;
    let length = bytes.len();
    put(bytes, 16, length as u64);
    let Some(end) = length.checked_sub(8).filter(|end| *end >= HEAD) else { return };
    let [local, listed, offsets] = [120, 128, 136].map(|at| number(bytes, at, 8));
    let before = local.saturating_mul(18).saturating_add(listed);
    let start = usize::try_from(before).ok().and_then(|before| before.checked_add(HEAD));
    let middle = |start: usize| usize::try_from(offsets).ok().and_then(|offsets| start.checked_add(offsets));
    if let Some((start, middle)) =
        start.and_then(|start| Some((start, middle(start)?))).filter(|(_, middle)| *middle <= end)
    {
        put(bytes, 144, (end - middle) as u64);
        filter_file(&mut bytes[start..middle]);
        filter_file(&mut bytes[middle..end]);
    }
    for end in [HEAD - 8, end] {
        let sum = Hasher::fast(0).digest_bytes(&bytes[..end]).get();
        put(bytes, end, sum);
    }
}

/// As [`filter_file`], for a page of a traceback store, its header and the filter in it.
pub fn trace_page(bytes: &mut [u8]) {
    const FIXED: usize = 80;
    const CHANGE: u64 = 25;
    let length = bytes.len();
    put(bytes, 16, length as u64);
    let name = usize::try_from(number(bytes, 12, 4)).unwrap_or(usize::MAX);
    let head = name.saturating_add(FIXED + 8);
    let Some(end) = length.checked_sub(8).filter(|end| *end >= head) else { return };
    let changes = usize::try_from(number(bytes, 64, 8).saturating_mul(CHANGE)).unwrap_or(usize::MAX);
    if let Some(start) = head.checked_add(changes).filter(|start| *start <= end) {
        put(bytes, 72, (end - start) as u64);
        filter_file(&mut bytes[start..end]);
    }
    for end in [head - 8, end] {
        let sum = Hasher::fast(0).digest_bytes(&bytes[..end]).get();
        put(bytes, end, sum);
    }
}

/// As [`filter_file`], for an exact list of addresses: whole pages, each with its checksum, and as
/// many hashes as they have room for.
pub fn exact_list(bytes: &mut Vec<u8>) {
    const HEAD: usize = 64;
    let pages = bytes.len().saturating_sub(HEAD).div_ceil(PAGE);
    bytes.resize(HEAD + pages * PAGE, 0);
    let (count, most) = (number(bytes, 48, 8), 127 * pages as u64);
    if count > most || count + 127 <= most {
        put(bytes, 48, most);
    }
    sums(&mut bytes[HEAD..]);
    let sum = sum_at(0, &bytes[..HEAD - 8]);
    put(bytes, HEAD - 8, sum);
}

const PAGE: usize = 4096;

/// Sets the checksums of pages, each at the end of its page.
fn sums(pages: &mut [u8]) {
    for (place, page) in (0..).zip(pages.chunks_exact_mut(PAGE)) {
        let sum = sum_at(place, &page[..PAGE - 8]);
        put(page, PAGE - 8, sum);
    }
}

/// As [`filter_file`], for an index: sets the length of its catalog, and makes room after it for
/// the filters.
pub fn index(bytes: &mut Vec<u8>) {
    const HEAD: usize = 32;
    let mut contents: Vec<u8> =
        bytes.chunks(PAGE).flat_map(|page| &page[..page.len().min(PAGE - 8)]).copied().collect();
    if let Some((catalog, shelves)) = contents.get(HEAD..).and_then(catalog) {
        put(&mut contents, 16, catalog as u64);
        let total = shelves.saturating_add((HEAD + catalog) as u64);
        put(&mut contents, 24, total);
        // Sizes that would be too large are left too short.
        if total <= 1 << 18 {
            contents.resize(total as usize, 0);
        }
    }
    bytes.clear();
    for contents in contents.chunks(PAGE - 8) {
        bytes.extend(contents);
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    }
    sums(bytes);
}

/// Returns the bytes of a catalog and those of the filters of its blocks; `None` if it cannot be
/// parsed.
fn catalog(bytes: &[u8]) -> Option<(usize, u64)> {
    let mut fields = Fields(bytes);
    let name = |fields: &mut Fields<'_>| {
        let length = fields.varint()?;
        fields.bytes(length).map(drop)
    };
    fields.u64()?;
    let [_, _, cells, roots] = [fields.varint()?, fields.varint()?, fields.varint()?, fields.varint()?];
    for _ in 0..roots {
        name(&mut fields)?;
        name(&mut fields)?;
    }
    let mut widths = std::collections::BTreeMap::<u128, u64>::new();
    for _ in 0..fields.varint()? {
        let [_, _] = [fields.varint()?, fields.varint()?];
        name(&mut fields)?;
        fields.array::<1>()?;
        let [_, _] = [fields.varint()?, fields.varint()?];
        fields.array::<24>()?;
        let [blocks, _] = [fields.varint()?, fields.varint()?];
        for _ in 0..blocks {
            let [_, _, keys] = [fields.varint()?, fields.varint()?, fields.varint()?];
            if keys > 0 {
                *widths.entry(filter_bits(keys, cells)?).or_default() += 1;
            }
        }
    }
    // Filters of one size are stored side by side, 512 at a time.
    let shelf = |bits: u128, width: u64| u64::try_from((bits * u128::from(width)).div_ceil(8)).ok();
    let mut shelves = 0u64;
    for (bits, width) in widths {
        let full = shelf(bits, 512)?.checked_mul(width / 512)?;
        shelves = shelves.checked_add(full)?.checked_add(shelf(bits, width % 512)?)?;
    }
    Some((bytes.len() - fields.0.len(), shelves))
}

/// Returns the bits of a filter: 64 times a power of the eighth root of two, rounded down.
fn filter_bits(keys: u64, cells: u64) -> Option<u128> {
    const STEPS: [u128; 8] = [
        4_294_967_296,
        4_683_695_047,
        5_107_605_667,
        5_569_883_475,
        6_074_000_999,
        6_623_745_058,
        7_223_245_205,
        7_877_004_751,
    ];
    let least = (u128::from(keys) * u128::from(cells)).div_ceil(256);
    (0..40).flat_map(|octave| STEPS.map(|step| ((64 * step) << octave) >> 32)).find(|bits| *bits >= least)
}

/// As [`filter_file`], for a table: its blocks, its index and its filter, where they can be
/// located, and the number in its name.
pub fn table(bytes: &mut [u8]) {
    const HEAD: usize = 80;
    let length = bytes.len() as u64;
    for (at, number) in [(16, length), (24, 1), (32, 1)] {
        put(bytes, at, number);
    }
    let [blocks, index] = [56, 64].map(|at| usize::try_from(number(bytes, at, 8)).unwrap_or(usize::MAX));
    let middle = blocks.checked_add(HEAD).filter(|middle| *middle <= bytes.len());
    let end = middle.and_then(|middle| middle.checked_add(index)).filter(|end| *end <= bytes.len());
    if let (Some(middle), Some(end)) = (middle, end.filter(|_| index >= 8)) {
        filter_file(&mut bytes[end..]);
        let places = bytes[middle..end - 8].to_vec();
        let (mut places, mut at) = (Fields(&places), HEAD);
        for place in 0.. {
            let length = places.varint().and_then(|key| places.bytes(key)).and_then(|_| places.varint());
            let next = length.and_then(|length| at.checked_add(usize::try_from(length).ok()?));
            let Some(next) = next.filter(|next| *next <= middle && *next >= at + 8) else { break };
            let sum = sum_at(place, &bytes[at..next - 8]);
            put(bytes, next - 8, sum);
            at = next;
        }
        let sum = sum_at(0, &bytes[middle..end - 8]);
        put(bytes, end - 8, sum);
    }
    if bytes.len() >= HEAD {
        let sum = sum_at(0, &bytes[..HEAD - 8]);
        put(bytes, HEAD - 8, sum);
    }
}

/// As [`filter_file`], for the log of a table and its records up to the first incomplete one.
pub fn log(bytes: &mut [u8]) {
    const HEAD: usize = 32;
    const RECORD: usize = 24;
    put(bytes, 16, 1);
    if bytes.len() < HEAD {
        return;
    }
    let sum = sum_at(0, &bytes[..HEAD - 8]);
    put(bytes, HEAD - 8, sum);
    let mut at = HEAD;
    while at + RECORD <= bytes.len() {
        let size = number(bytes, at, 4) + number(bytes, at + 4, 4).saturating_sub(1);
        let (body, end) = (at + RECORD, at + RECORD + size as usize);
        if let Some(body) = bytes.get(body..end) {
            let sum = sum_at(at as u64, body);
            put(bytes, at + 8, sum);
        }
        let sum = sum_at(at as u64, &bytes[at..at + 16]);
        put(bytes, at + 16, sum);
        at = end;
    }
}

/// As [`filter_file`], for the header of a vault and the document after it, where that is possible
/// without a key.
pub fn vault(bytes: &mut [u8]) {
    let (header, document) = bytes.split_at_mut(bytes.len().min(crate::vault::HEADER));
    if let Some((before, sum)) = header.split_last_chunk_mut::<8>() {
        sum.copy_from_slice(&Sha256::digest(before)[..8]);
    }
    const FRONT: usize = 32;
    const TRAILER: usize = 32;
    let length = document.len();
    let Some(trailer) = length.checked_sub(TRAILER).filter(|trailer| *trailer >= FRONT) else { return };
    let [head, parts] = [8, 12].map(|at| number(document, trailer + at, 4));
    let index = parts.saturating_mul(number(document, trailer + 16, 8) / 8);
    let Some(start) = usize::try_from(index).ok().and_then(|index| trailer.checked_sub(index)) else {
        return;
    };
    if let Some(content) = (start as u64).checked_sub(head + FRONT as u64) {
        put(document, trailer, content);
    }
    let mut front = *b"UMBELDOC\x01\0\0\0\0\0\0\0................";
    front[16..].copy_from_slice(&document[16..FRONT]);
    let sum = Sha256::new().chain_update(front).chain_update(&document[start..length - 8]).finalize();
    document[length - 8..].copy_from_slice(&sum[..8]);
}

/// Returns the little-endian number in `size` bytes; 0 if they do not exist.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let field = at.checked_add(size).and_then(|end| bytes.get(at..end)).unwrap_or_default();
    field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    if let Some(field) = at.checked_add(8).and_then(|end| bytes.get_mut(at..end)) {
        field.copy_from_slice(&number.to_le_bytes());
    }
}
