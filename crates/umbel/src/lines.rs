//! Finds the lines of a text, so that they can be the keys of a batch.

use crate::arch::{Kernel, Simd};
use crate::{Error, Level, Result};

/// Finds the lines of a text: appends the position after every `end` byte to `offsets`. With a zero
/// before them, these are the offsets for [`Arena::separated`](crate::Arena::separated). Bytes
/// after the last `end` belong to no line.
///
/// ```
/// use umbel::key::split_lines;
/// use umbel::{Arena, Batch};
/// let text = b"red\ngreen\nblue\n";
/// let mut offsets = vec![0];
/// split_lines(text, b'\n', &mut offsets)?;
/// let lines = Arena::separated(text, &offsets)?;
/// assert_eq!(lines.len(), 3);
/// assert_eq!(lines.get(1), Some(&b"green"[..]));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If the text has 4 GiB or more, because positions have 32 bits.
pub fn split_lines(text: &[u8], end: u8, offsets: &mut Vec<u32>) -> Result<()> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::parameter("text", format!("{} bytes", text.len()), "less than 4 GiB at once"));
    }
    Level::detect().run(Split { text, end, offsets });
    Ok(())
}

struct Split<'a> {
    text: &'a [u8],
    end: u8,
    offsets: &'a mut Vec<u32>,
}

/// The number of positions written at once, whether or not that many were found.
const AT_ONCE: usize = 8;

/// The number of buffered positions at which they are appended to the result. The buffer has room
/// for the 64 of one more step.
const ROOM: usize = 1024;

impl Kernel for Split<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Split { text, end, offsets } = self;
        let (steps, rest) = text.as_chunks::<64>();
        let mut found = [0; ROOM + 64 + AT_ONCE];
        let mut count = 0;
        for (step, start) in steps.iter().zip((1..).step_by(64)) {
            let mut mask = simd.equal(step, end);
            let next = count + mask.count_ones() as usize;
            // Most steps contain few line ends. Always writing eight positions costs less than a
            // loop whose length the processor cannot predict.
            while count < next {
                let room: &mut [u32; AT_ONCE] =
                    found[count..].first_chunk_mut().expect("there is room behind");
                for position in room {
                    *position = start + mask.trailing_zeros();
                    mask &= mask.wrapping_sub(1);
                }
                count = next.min(count + AT_ONCE);
            }
            if count >= ROOM {
                offsets.extend_from_slice(&found[..count]);
                count = 0;
            }
        }
        offsets.extend_from_slice(&found[..count]);
        let start = text.len() - rest.len() + 1;
        offsets.extend(
            (start..).zip(rest).filter(|(_, byte)| **byte == end).map(|(position, _)| position as u32),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::fixed_cases())]
        #[test]
        fn every_level_finds_every_line(text in proptest::collection::vec(0..4u8, 0..3000), sparse: bool) {
            // Short lines, about 4 bytes long, or long ones, about 300.
            let text: Vec<u8> = text.iter().enumerate().map(|(i, b)| if sparse && i % 80 > 0 { 9 } else { *b }).collect();
            let expected: Vec<u32> = (1..).zip(&text).filter(|(_, byte)| **byte == 0).map(|(i, _)| i).collect();
            for level in Level::available() {
                let mut offsets = vec![7];
                level.run(Split { text: &text, end: 0, offsets: &mut offsets });
                prop_assert_eq!(&offsets[1..], &expected[..], "{}", level);
            }
        }
    }

    #[test]
    fn a_text_of_line_ends_only() {
        let text = [b'\n'; 10_000];
        let mut offsets = vec![0];
        split_lines(&text, b'\n', &mut offsets).unwrap();
        assert!(offsets.iter().copied().eq(0..=10_000));
    }
}
