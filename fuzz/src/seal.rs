//! Sums and lengths that fit, as a hostile writer would make them. Without these nearly all that a fuzzer tries would end at the
//! first sum.

use umbel::Hasher;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Makes the length and the sums of a filter file fit what it holds, as far as they can be found.
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

/// The sums of the body's chunks, which follow parameters, sections, secret and metadata.
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

/// The same for the state of a blocklist, and for the filter in it.
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

/// The same for an epoch of a store, its head, and the digests in it.
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

/// A number of so many bytes; 0 where there are none.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let field = at.checked_add(size).and_then(|end| bytes.get(at..end)).unwrap_or_default();
    field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    if let Some(field) = at.checked_add(8).and_then(|end| bytes.get_mut(at..end)) {
        field.copy_from_slice(&number.to_le_bytes());
    }
}
