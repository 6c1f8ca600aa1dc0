//! A second reader, written from docs/format.md alone. It shares no code with the library and
//! explains every byte of the golden files of the kinds 5 to 12; `description_static.rs` continues
//! from there. If the two disagree, either the page or the library is wrong.

use crate::second_reader::{C, bit, bits, empty, packed, position, positions, read, set, stream};

fn cell(section: &[u8], i: usize, width: usize) -> u64 {
    bits(section, i * width, width)
}

/// Returns the section of a filter of kind 1 or 2 that holds these digests.
fn bloom(kind: u64, size: u64, k: u64, digests: &[u64]) -> Vec<u8> {
    let (all, step) = match kind {
        1 => (size, 0),
        2 => (k * size, size as usize),
        other => panic!("no golden file has stages of kind {other}"),
    };
    let mut section = empty(all as usize);
    for digest in digests {
        for (i, p) in positions(*digest, size, k).into_iter().enumerate() {
            set(&mut section, i * step + p);
        }
    }
    section
}

#[test]
fn counters_count_the_positions_of_a_standard_filter() {
    for (name, width, policy) in [("counting", 4, 0), ("counting-other", 3, 1)] {
        let file = read(name, 6);
        let [m, k, w, p] = file.parameters[..] else { panic!("{name}") };
        assert_eq!((file.kind, w, p, file.sections.len()), (5, width, policy, 1), "{name}");
        let mut counters = vec![0; m as usize];
        for p in file.digests().into_iter().flat_map(|digest| positions(digest, m, k)) {
            counters[p] += 1;
        }
        assert!(counters.iter().all(|count| *count < (1 << w) - 1), "{name}: no counter may overflow");
        assert_eq!(file.section(0, 2), packed(&counters, w as usize), "{name}");
    }
}

#[test]
fn cells_of_variable_increment_hold_sums_chosen_by_the_low_halves() {
    for (name, scheme) in [("variable-increment", 1), ("variable-increment-other", 3)] {
        let file = read(name, 6);
        let [m, k, number, h, table, count_bits, sum_bits, ref last @ ..] = file.parameters[..] else {
            panic!()
        };
        assert_eq!((file.kind, number, file.sections.len()), (6, scheme, 1), "{name}");
        let increments: Vec<u64> = match (number, h, table, count_bits, last) {
            (1, 0, 0, 0, [l]) => (*l..2 * l).collect(),
            (3, 3, 1, 4, [1, 4, 8, 13]) => last.to_vec(),
            other => panic!("{name}: {other:?}"),
        };
        let (mut counts, mut sums) = (vec![0u64; m as usize], vec![0u64; m as usize]);
        for x in file.digests().into_iter().flat_map(|digest| stream(digest).take(k as usize)) {
            let (place, low) = (position(x, m) as usize, x.wrapping_mul(m));
            counts[place] += 1;
            sums[place] += increments[position(low, increments.len() as u64) as usize];
        }
        assert!(sums.iter().all(|sum| *sum < (1 << sum_bits) - 1), "{name}: no cell may overflow");
        let cells: Vec<u64> = match count_bits {
            0 => sums,
            _ => counts.iter().zip(&sums).map(|(count, sum)| count << sum_bits | sum).collect(),
        };
        assert!(count_bits == 0 || counts.iter().all(|count| *count < 1 << count_bits), "{name}");
        assert_eq!(file.section(0, 3), packed(&cells, (count_bits + sum_bits) as usize), "{name}");
    }
}

#[test]
fn deletable_marks_the_regions_with_collisions() {
    let file = read("deletable", 6);
    let [m, k, r] = file.parameters[..] else { panic!() };
    assert_eq!((file.kind, file.sections.len()), (7, 2));
    let (mut bits, mut collided) = (empty(m as usize), empty(m.div_ceil(r) as usize));
    for p in file.digests().into_iter().flat_map(|digest| positions(digest, m, k)) {
        if bit(&bits, p) {
            set(&mut collided, p / r as usize);
        }
        set(&mut bits, p);
    }
    assert_eq!(file.section(0, 1), bits);
    assert_eq!(file.section(1, 4), collided);
}

#[test]
fn stages_of_a_scalable_filter_hold_the_keys_in_order() {
    for (name, kind, tightening, growth) in [("scalable", 1, 0.85, 2), ("scalable-other", 2, 0.5, 4)] {
        let file = read(name, 6);
        let [n, p, r, s, stage_type, ref stages @ ..] = file.parameters[..] else { panic!("{name}") };
        assert_eq!((file.kind, n, stage_type, s), (8, file.capacity, kind - 1, growth), "{name}");
        assert_eq!((f64::from_bits(p), f64::from_bits(r)), (file.rate, tightening), "{name}");
        assert_eq!(stages.len(), 4 * file.sections.len(), "{name}");
        let (digests, mut done) = (file.digests(), 0);
        for (i, stage) in stages.chunks(4).enumerate() {
            let [stage_kind, size, k, keys] = *stage else { unreachable!() };
            assert_eq!(stage_kind, kind, "{name} {i}");
            assert!(keys <= n * s.pow(i as u32), "{name} {i}");
            let held = &digests[done..done + keys as usize];
            assert_eq!(file.section(i, 1), bloom(kind, size, k, held), "{name} {i}");
            done += held.len();
        }
        assert_eq!(done, digests.len(), "{name}");
    }
}

#[test]
fn generations_of_an_aging_filter_hold_the_keys_in_order() {
    let now = 1_700_000_000_000;
    // The window, the current time plus 1, the number of the current generation, and that of the
    // first.
    for (name, window, time, next, first) in [
        ("aging", [0, 20], 0, 1, 0),
        ("aging-other", [1, 60_000], now + 1, now * 8 / 60_000, now * 8 / 60_000),
    ] {
        let file = read(name, 6);
        let (fixed, generations) = file.parameters.split_at(9);
        let [kind, size, k, 3, by, length, told, current, newest] = *fixed else { panic!("{name}") };
        assert_eq!((file.kind, [by, length], told, current), (9, window, time, next), "{name}");
        assert_eq!((generations.len(), file.sections.len()), (2 * 8, 8), "{name}");
        assert_eq!(generations[2 * newest as usize], next + 1, "{name}");
        let (digests, mut done) = (file.digests(), 0);
        for (i, generation) in generations.chunks(2).enumerate() {
            let [tag, keys] = *generation else { unreachable!() };
            let expected = if i as u64 <= next - first { first + i as u64 + 1 } else { 0 };
            assert_eq!(tag, expected, "{name} {i}");
            assert!(by == 1 || keys <= length.div_ceil(8), "{name} {i}");
            let held = &digests[done..done + keys as usize];
            assert_eq!(file.section(i, 1), bloom(kind, size, k, held), "{name} {i}");
            done += held.len();
        }
        assert_eq!(done, digests.len(), "{name}");
    }
}

fn binomial(n: u64, k: u64) -> u64 {
    (0..k).fold(1, |product, i| product * n.saturating_sub(i) / (i + 1))
}

/// Returns the rank of a pattern among the non-empty patterns of b regions, those of fewer regions
/// first.
fn rank(pattern: u64, b: u64) -> u64 {
    let fewer: u64 = (1..u64::from(pattern.count_ones())).map(|regions| binomial(b, regions)).sum();
    let hit = (0..b).filter(|region| pattern >> region & 1 == 1);
    fewer + hit.zip(1..).map(|(region, i)| binomial(region, i)).sum::<u64>()
}

#[test]
fn the_table_of_a_floom_filter_holds_the_patterns_of_regions() {
    for (name, regions, expected_flags) in [("floom", 4, 0), ("floom-other", 9, 3)] {
        let file = read(name, 6);
        let [m, k, b, flags] = file.parameters[..] else { panic!("{name}") };
        assert_eq!((file.kind, b, flags, file.sections.len()), (10, regions, expected_flags, 2), "{name}");
        let (ranked, shifted) = (flags & 1 == 1, flags & 2 == 2);
        let size = if ranked { (1..=k.min(b)).map(|j| binomial(b, j)).sum() } else { 1 << b };
        let mut table = empty(size as usize);
        for digest in file.digests() {
            let region = |h: u64| if shifted { (h * b).saturating_sub(1) / m } else { h * b / m };
            let hit = positions(digest, m, k).into_iter().map(|h| region(h as u64));
            let pattern = hit.fold(0u64, |pattern, region| pattern | 1 << region);
            set(&mut table, if ranked { rank(pattern, b) } else { pattern } as usize);
        }
        assert_eq!(file.section(0, 1), bloom(1, m, k, &file.digests()), "{name}");
        assert_eq!(file.section(1, 5), table, "{name}");
    }
}

/// Returns the fingerprint of a digest and its two buckets.
fn cuckoo(digest: u64, buckets: u64, f: u64) -> (u64, [u64; 2]) {
    let fingerprint = 1 + position(digest.wrapping_mul(C), (1 << f) - 1);
    let z = fingerprint.wrapping_mul(C);
    let y = (z ^ z >> 32).wrapping_mul(C);
    let (h, first) = (2 * position(y, buckets / 2) + 1, position(digest, buckets));
    (fingerprint, [first, (h + buckets - first) % buckets])
}

/// Returns all sorted sequences of four 4-bit numbers, in lexicographic order.
fn sorted_fours() -> Vec<[u64; 4]> {
    let all = (0..1u64 << 16).map(|n| [n >> 12, n >> 8 & 15, n >> 4 & 15, n & 15]);
    all.filter(|four| four.is_sorted()).collect()
}

#[test]
fn buckets_of_a_cuckoo_filter_hold_one_fingerprint_of_each_key() {
    let fours = sorted_fours();
    assert_eq!(fours.len(), 3876);
    for (name, expected_form) in [("cuckoo", 0), ("cuckoo-other", 1)] {
        let file = read(name, 6);
        let [b, f, 4, form, 0, 0] = file.parameters[..] else { panic!("{name}") };
        assert_eq!((file.kind, b % 2, form, file.sections.len()), (11, 0, expected_form, 1), "{name}");
        let (section, low) = (file.section(0, 6), f as usize - 4);
        let width = if form == 0 { 4 * f as usize } else { 12 + 4 * low };
        let mut entries = Vec::new();
        for bucket in 0..b as usize {
            let start = bucket * width;
            let slots = match form {
                0 => [0, 1, 2, 3].map(|slot| cell(section, 4 * bucket + slot, f as usize)),
                _ => {
                    let upper = fours[bits(section, start, 12) as usize];
                    [0, 1, 2, 3].map(|slot| upper[slot] << low | bits(section, start + 12 + slot * low, low))
                }
            };
            assert!(slots.is_sorted(), "{name} {bucket}: {slots:?}");
            entries.extend(slots.iter().filter(|slot| **slot != 0).map(|slot| (bucket as u64, *slot)));
        }
        for digest in file.digests() {
            let (fingerprint, buckets) = cuckoo(digest, b, f);
            let own = entries.iter().position(|(at, held)| buckets.contains(at) && *held == fingerprint);
            entries.swap_remove(own.unwrap_or_else(|| panic!("{name}: {fingerprint} in {buckets:?}")));
        }
        assert_eq!(entries, [], "{name}");
        let end = b as usize * width;
        assert_eq!(section.len(), empty(end).len(), "{name}");
        assert!((end..8 * section.len()).all(|i| !bit(section, i)), "{name}");
    }
}

#[test]
fn runs_of_a_quotient_filter_are_the_sorted_fingerprints() {
    let file = read("quotient", 6);
    let [s, r, keys] = file.parameters[..] else { panic!() };
    assert_eq!((file.kind, keys, s % 64, file.sections.len()), (12, 6, 0, 1));
    let (section, slots, width) = (file.section(0, 7), (s + s.min(512)) as usize, r as usize);
    let block = 64 * (3 + width);
    let mark = |which: usize, slot: usize| bit(section, slot / 64 * block + which * 64 + slot % 64);
    let mut quotients = (0..slots).filter(|slot| mark(0, *slot));
    let (mut quotient, mut free, mut held) = (0, 0, Vec::new());
    for slot in 0..slots {
        let [occupied, continuation, shifted] = [0, 1, 2].map(|which| mark(which, slot));
        let remainder = bits(section, slot / 64 * block + 3 * 64 + slot % 64 * width, width);
        if !(occupied || continuation || shifted) {
            assert_eq!(remainder, 0, "slot {slot} is empty");
            continue;
        }
        if !continuation {
            quotient = quotients.next().expect("a quotient for each run");
        }
        assert_eq!(slot, quotient.max(free), "a slot must be as near as the one before allows");
        assert_eq!(shifted, slot != quotient, "slot {slot}");
        free = slot + 1;
        held.push((quotient as u64) << r | remainder);
    }
    assert_eq!(quotients.next(), None);
    let mut expected: Vec<u64> = file.digests().iter().map(|digest| position(*digest, s << r)).collect();
    expected.sort_unstable();
    assert_eq!(held, expected);
    let end = slots / 64 * block;
    assert_eq!(section.len(), empty(end).len());
    assert!((end..8 * section.len()).all(|i| !bit(section, i)));
}
