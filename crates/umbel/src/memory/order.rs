//! The byte order. Files are little-endian, and words in memory have the order of the machine.
//! Numbers in files are always converted, so only structures of bytes in words depend on the order.

/// Returns the place in memory of a byte of a file.
#[inline(always)]
pub(crate) const fn byte_place(byte: usize) -> usize {
    place_in_words(byte, cfg!(target_endian = "big"))
}

/// Returns the place of a byte on a machine that stores the highest byte of a word first, or last.
#[inline(always)]
const fn place_in_words(byte: usize, big_endian: bool) -> usize {
    if big_endian { byte ^ 7 } else { byte }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of machines of both byte orders, with the words of a file.
    fn memories(file: &[u8]) -> [(bool, Vec<u8>); 2] {
        let words = file.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let little = words.clone().flat_map(u64::to_le_bytes).collect();
        [(false, little), (true, words.flat_map(u64::to_be_bytes).collect())]
    }

    #[test]
    fn bytes_of_a_file_are_found_on_machines_of_both_byte_orders() {
        let file: Vec<u8> = (0..64u8).map(|byte| byte.wrapping_mul(37)).collect();
        for (big_endian, memory) in memories(&file) {
            for (byte, expected) in file.iter().enumerate() {
                assert_eq!(memory[place_in_words(byte, big_endian)], *expected, "{big_endian}");
            }
        }
        // This machine is one of the two.
        let mut words = crate::memory::Words::zeroed(1).unwrap();
        words.as_bytes_mut().copy_from_slice(&file);
        words.convert_from_le();
        assert!((0..64).all(|byte| words.as_bytes()[byte_place(byte)] == file[byte]));
        assert_eq!(&words.to_le_bytes()[..], &file[..]);
    }

    #[test]
    fn bytes_written_on_one_machine_are_read_on_the_other() {
        for big_endian in [false, true] {
            let mut memory = [0u8; 64];
            (0..64).for_each(|byte| memory[place_in_words(byte, big_endian)] = byte as u8);
            // As `to_le_bytes` writes words, whatever the order of their bytes in memory.
            let word = |bytes: &[u8; 8]| match big_endian {
                true => u64::from_be_bytes(*bytes),
                false => u64::from_le_bytes(*bytes),
            };
            let file: Vec<u8> =
                memory.as_chunks().0.iter().flat_map(|bytes| word(bytes).to_le_bytes()).collect();
            assert!(file.iter().enumerate().all(|(byte, value)| byte == usize::from(*value)));
        }
    }
}
