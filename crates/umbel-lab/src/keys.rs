//! The keys of experiments: disjoint members and strangers, the same in every run.

/// A bijection of the 64-bit numbers (the "moremur" variant of the Murmur finaliser) that is
/// unrelated to the hashes of the library. A filter must not be measured with keys that its own
/// hash has made uniform.
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 27).wrapping_mul(0x3c79_ac49_2ba7_b653);
    let x = (x ^ x >> 33).wrapping_mul(0x1c69_b3f7_4ac4_ae35);
    x ^ x >> 27
}

/// Two disjoint families of keys for each build.
///
/// ```
/// use umbel_lab::Keys;
/// let keys = Keys::of_build(3);
/// assert_ne!(keys.members(1), keys.strangers(1));
/// assert_eq!(keys.members(5), Keys::of_build(3).members(5));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    build: u64,
}

impl Keys {
    /// Returns the keys of a build, whose number is taken modulo 2^23.
    pub fn of_build(build: u64) -> Keys {
        Keys { build: build % (1 << 23) }
    }

    /// Returns keys to insert.
    pub fn members(self, count: u64) -> Vec<u64> {
        (0..count).map(|number| mix(self.build << 41 | 1 << 40 | number)).collect()
    }

    /// Returns keys that are never inserted.
    pub fn strangers(self, count: u64) -> Vec<u64> {
        (0..count).map(|number| self.stranger(number)).collect()
    }

    /// Returns one of the keys that are never inserted.
    pub fn stranger(self, number: u64) -> u64 {
        mix(self.build << 41 | number)
    }
}
