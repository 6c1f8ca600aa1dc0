//! The rolling hash: the hash of any window of the data, whatever its length, in a constant number
//! of steps.
//!
//! A window is a number in base P modulo 2^64 whose digits are its bytes. With the sums S(i) =
//! S(i-1) P + byte(i) from some start on, the window of L bytes after place i is S(i+L) - S(i) P^L
//! (Karp and Rabin 1987). So one sum per byte serves every length. Sums are computed lazily.
//! Windows that differ in one byte never share a number, but its low bits are poor, so it goes
//! through a mixer before it reaches a filter.
//!
//! # References
//!
//! * R. M. Karp and M. O. Rabin. *Efficient randomized pattern-matching algorithms.* IBM Journal of
//!   Research and Development 31(2), 1987. `KR87`

use umbel::Digest;

/// The base P.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base(u64);

impl Base {
    /// Returns a base that depends on the seed. Its last bits make it odd and give it the largest
    /// possible order.
    pub fn new(seed: u64) -> Base {
        Base(Digest::from_hash(seed).salted(0x5ca7).get() & !7 | 5)
    }

    /// Returns P^length.
    pub fn power(self, length: usize) -> u64 {
        // Lengths are 16-bit numbers; a larger one would merely be truncated.
        self.0.wrapping_pow(length as u32)
    }

    /// Returns the number of a whole string.
    pub fn hash(self, bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |sum, byte| self.step(sum, *byte))
    }

    #[inline(always)]
    fn step(self, sum: u64, byte: u8) -> u64 {
        sum.wrapping_mul(self.0).wrapping_add(u64::from(byte))
    }
}

/// The windows of one length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub length: usize,
    power: u64,
    salt: u64,
}

impl Window {
    /// Returns the windows of a length. Their digests differ between lengths and purposes.
    pub fn new(base: Base, length: usize, purpose: u64) -> Window {
        Window { length, power: base.power(length), salt: purpose << 32 | length as u64 }
    }

    /// Returns the digest of a window with this number.
    #[inline(always)]
    pub fn digest(&self, hash: u64) -> Digest {
        Digest::from_hash(hash).salted(self.salt)
    }
}

/// The sums over a part of the data.
#[derive(Clone, Debug)]
pub(super) struct Rolling {
    base: Base,
    start: usize,
    sums: Vec<u64>,
}

impl Rolling {
    pub fn new(base: Base) -> Rolling {
        Rolling { base, start: 0, sums: vec![0] }
    }

    /// Drops all sums, and starts at another place.
    pub fn restart(&mut self, start: usize) {
        self.start = start;
        self.sums.truncate(1);
    }

    /// Moves to a place that is not before the start. Skips sums in between that were never needed.
    #[inline]
    pub fn go_to(&mut self, at: usize) {
        if at - self.start >= self.sums.len() {
            self.restart(at);
        }
    }

    /// Returns the digest of the window at a place not before the start. The window must be inside
    /// the data.
    #[inline]
    pub fn digest(&mut self, data: &[u8], at: usize, window: &Window) -> Digest {
        let from = at - self.start;
        let to = from + window.length;
        if self.sums.len() <= to {
            self.extend(data, to);
        }
        window.digest(self.sums[to].wrapping_sub(self.sums[from].wrapping_mul(window.power)))
    }

    fn extend(&mut self, data: &[u8], to: usize) {
        let done = self.sums.len() - 1;
        let mut sum = self.sums[done];
        let base = self.base;
        self.sums.extend(data[self.start + done..self.start + to].iter().map(|byte| {
            sum = base.step(sum, *byte);
            sum
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_a_window_does_not_depend_on_the_start_of_the_sums() {
        let data: Vec<u8> = (0..2000u32).map(|i| (i * i / 8) as u8).collect();
        let base = Base::new(7);
        let mut rolling = Rolling::new(base);
        for start in [0, 1, 700] {
            rolling.restart(start);
            for length in [1, 2, 3, 8, 64, 300] {
                let window = Window::new(base, length, 0);
                for at in (start..data.len() - length).rev().step_by(13) {
                    let bytes = &data[at..at + length];
                    assert_eq!(
                        rolling.digest(&data, at, &window),
                        window.digest(base.hash(bytes)),
                        "{at} {length}"
                    );
                }
            }
        }
        let window = Window::new(base, 5, 0);
        rolling.restart(0);
        for at in [0, 5, 7, 11, 17, 100, 105, 1995] {
            rolling.go_to(at);
            assert_eq!(
                rolling.digest(&data, at, &window),
                window.digest(base.hash(&data[at..at + 5])),
                "{at}"
            );
        }
    }
}
