//! The minima of all windows, computed for many windows at once.
//!
//! These are branch-free loops over 16-bit numbers, which compilers vectorize to eight numbers per
//! instruction even for the baseline processor. 16-bit hashes suffice: different content with the
//! same hash is a tie like any other, and a tie is broken in the same way in every window.

use std::ops::Range;

/// The number of bytes that determine the hash of a position.
pub const GRAM: usize = 8;

/// The number of positions that are processed together: their data stays in the nearest cache.
pub const BATCH_POSITIONS: usize = 4096;

/// The keys that make a hash function unpredictable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys([u16; 2]);

impl Keys {
    pub fn new(bits: u64) -> Keys {
        Keys([bits as u16, (bits >> 16) as u16])
    }

    /// Adds a key to each number, multiplies them, and folds the halves of the product onto each
    /// other.
    #[inline(always)]
    fn mix(self, left: u16, right: u16) -> u16 {
        let (left, right) = (left.wrapping_add(self.0[0]), right.wrapping_add(self.0[1]));
        left.wrapping_mul(right) ^ ((u32::from(left) * u32::from(right)) >> 16) as u16
    }
}

/// Buffers for a batch of positions.
#[derive(Clone, Debug, Default)]
pub struct Minima {
    /// For every position, a hash of four bytes, which all instances share.
    halves: Vec<u16>,
    /// For every position, a hash of eight bytes.
    hashes: Vec<i16>,
    /// The smallest hash of every window.
    minima: Vec<i16>,
    spare: Vec<i16>,
    /// For every window, whether its boundary differs from that of the window before.
    changed: Vec<u8>,
}

impl Minima {
    /// Loads bytes. All but the last seven of them are positions.
    pub fn load(&mut self, bytes: &[u8], keys: Keys) {
        let halves = (bytes.len() + 1).saturating_sub(GRAM / 2);
        self.halves.resize(halves, 0);
        // Slices of equal length avoid bounds checks inside the loop.
        let [a, b, c, d] = [0, 1, 2, 3].map(|ahead| &bytes[ahead.min(bytes.len())..][..halves]);
        for (i, half) in self.halves.iter_mut().enumerate() {
            *half = keys.mix(u16::from_le_bytes([a[i], b[i]]), u16::from_le_bytes([c[i], d[i]]));
        }
    }

    /// Calls `each` with the boundaries in ascending order: every position that is the minimum of a
    /// window of `window` positions, the last one among equals. They are passed as ranges, since in
    /// a run of equal bytes many are adjacent.
    pub fn each(&mut self, keys: Keys, window: usize, mut each: impl FnMut(Range<usize>)) {
        let positions = self.halves.len().saturating_sub(GRAM / 2);
        if positions < window {
            return;
        }
        self.hash(keys, positions);
        self.slide(window);
        self.compare(window);
        let Minima { hashes, minima, changed, .. } = self;
        for (group, flags) in changed.as_chunks::<64>().0.iter().enumerate() {
            let mut flags = packed(flags);
            if flags == u64::MAX {
                let newest = group * 64 + window - 1..group * 64 + window + 63;
                if hashes[newest.clone()] == minima[group * 64..][..64] {
                    each(newest);
                    continue;
                }
            }
            while flags != 0 {
                let from = group * 64 + flags.trailing_zeros() as usize;
                flags &= flags - 1;
                let (all, least) = (&hashes[from..from + window], minima[from]);
                let is_newest = all[window - 1] == least;
                let position = from + if is_newest { window - 1 } else { last_of(all, least) };
                each(position..position + 1);
            }
        }
    }

    fn hash(&mut self, keys: Keys, positions: usize) {
        self.hashes.resize(positions, 0);
        let (left, right) = (&self.halves[..positions], &self.halves[GRAM / 2..][..positions]);
        for (i, hash) in self.hashes.iter_mut().enumerate() {
            *hash = keys.mix(left[i], right[i]) as i16;
        }
    }

    /// Computes the minima of windows from those of narrower ones, up to four of which cover a
    /// wider one and may overlap.
    fn slide(&mut self, window: usize) {
        let mut width = window.min(4);
        widen(&self.hashes, 1, width, &mut self.minima);
        while width < window {
            let wider = window.min(4 * width);
            widen(&self.minima, width, wider, &mut self.spare);
            std::mem::swap(&mut self.minima, &mut self.spare);
            width = wider;
        }
    }

    /// Marks the windows whose boundary differs from that of the window before. It differs if the
    /// newest position is as small as any, or if the minimum has left the window. An equal position
    /// that took its place would have been the boundary before, unless it is the newest.
    fn compare(&mut self, window: usize) {
        let count = self.minima.len();
        // Flags are read 64 at a time.
        self.changed.clear();
        self.changed.resize(count.next_multiple_of(64), 0);
        self.changed[0] = 1;
        let (before, now) = (&self.minima[..count - 1], &self.minima[1..]);
        let newest = &self.hashes[window..][..count - 1];
        for (i, changed) in self.changed[1..count].iter_mut().enumerate() {
            *changed = u8::from((newest[i] == now[i]) | (now[i] > before[i]));
        }
    }
}

/// Computes the minima of windows from those of windows up to four times narrower.
fn widen(minima: &[i16], width: usize, wider: usize, wide: &mut Vec<i16>) {
    let more = wider - width;
    let count = minima.len() - more;
    wide.resize(count, 0);
    let [a, b, c, d] = [0, 1, 2, 3].map(|step| &minima[more.min(step * width)..][..count]);
    for (i, least) in wide.iter_mut().enumerate() {
        *least = a[i].min(b[i]).min(c[i].min(d[i]));
    }
}

/// Packs flags that are 0 or 1 into bits.
fn packed(flags: &[u8; 64]) -> u64 {
    let (groups, _) = flags.as_chunks::<8>();
    // The highest byte of the product is the sum of all flags, each shifted to its own bit.
    let bits =
        groups.iter().map(|flags| u64::from_le_bytes(*flags).wrapping_mul(0x0102_0408_1020_4080) >> 56);
    bits.enumerate().fold(0, |all, (group, bits)| all | bits << (8 * group))
}

/// Returns the last index of a hash.
fn last_of(hashes: &[i16], hash: i16) -> usize {
    // An early exit would prevent vectorization. There are never more than `BATCH_POSITIONS`
    // hashes.
    let places = hashes.iter().zip(0i16..).map(|(other, place)| if *other == hash { place } else { 0 });
    places.fold(0, i16::max) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    /// Computes the hash of eight bytes by its definition.
    fn hash(gram: &[u8], shared: Keys, own: Keys) -> i16 {
        let pair = |i: usize| u16::from_le_bytes([gram[i], gram[i + 1]]);
        own.mix(shared.mix(pair(0), pair(2)), shared.mix(pair(4), pair(6))) as i16
    }

    /// Computes the boundaries by their definition.
    fn naive(bytes: &[u8], window: usize, shared: Keys, own: Keys) -> Vec<usize> {
        let hashes: Vec<i16> = bytes.windows(GRAM).map(|gram| hash(gram, shared, own)).collect();
        let windows = hashes.windows(window).enumerate();
        let mut least: Vec<usize> = windows
            .map(|(from, all)| {
                from + (0..window).rev().min_by_key(|i| all[*i]).expect("a window has a position")
            })
            .collect();
        least.dedup();
        least
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(87), failure_persistence: None, ..Default::default() })]

        /// The content ranges from a single byte value, where all hashes tie, to all 256 values.
        #[test]
        fn boundaries_match_the_definition(
            (kinds, bytes) in (1u16..=256).prop_flat_map(|kinds| {
                (Just(kinds), prop::collection::vec((0..kinds).prop_map(|byte| byte as u8), 0..300))
            }),
            window in 1usize..40,
            seeds: [u64; 2],
        ) {
            let [shared, own] = seeds.map(Keys::new);
            let (mut minima, mut found) = (Minima::default(), Vec::new());
            // Leave other data in the buffers first.
            minima.load(&[7; 500], own);
            minima.each(shared, 3, |_| ());
            minima.load(&bytes, shared);
            minima.each(own, window, |positions| found.extend(positions));
            prop_assert_eq!(found, naive(&bytes, window, shared, own), "{} kinds", kinds);
        }
    }
}
