//! The cutter, for many payloads or for a stream that arrives in pieces.

use super::minima::{BATCH_POSITIONS, GRAM, Minima};
use super::{Block, Winnowing};
use umbel::Digest;

/// The part of a piece that is processed together with the bytes kept of the pieces before.
const PART_BYTES: usize = 1 << 15;

/// A cutter of payloads and streams that reuses its memory.
///
/// A stream has the same blocks however it is divided into pieces. The cutter keeps only the last
/// window and the bytes that belong to it, which is less than v + max(8, overlap) bytes.
///
/// ```
/// use umbel::Hasher;
/// use umbel_net::payload::winnowing::Winnowing;
///
/// let winnowing = Winnowing::new(8, 1, 4, Hasher::default())?;
/// let text = b"It does not matter in how many pieces it comes.";
/// let (mut cutter, mut blocks) = (winnowing.cutter(), Vec::new());
/// for piece in text.chunks(5) {
///     cutter.push(piece, |block| blocks.push(block));
/// }
/// assert_eq!(blocks, winnowing.blocks(text));
/// # Ok::<(), umbel_net::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cutter {
    winnowing: Winnowing,
    minima: Minima,
    stream: Stream,
    /// Room for the end of a stream and its next piece together. A suspended stream keeps only its
    /// end.
    bytes: Vec<u8>,
}

/// The state of a stream, which is kept while other streams are being cut.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Empty, or one element for each instance.
    instances: Vec<Progress>,
    /// The last bytes.
    tail: Vec<u8>,
    /// The offset of these bytes in the stream.
    start: u64,
}

/// The state of an instance.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    boundary: Option<u64>,
    /// The distance of the boundary from the one before.
    step: u64,
    reported: Option<Digest>,
}

impl Cutter {
    pub(super) fn new(winnowing: Winnowing) -> Cutter {
        Cutter { winnowing, minima: Minima::default(), stream: Stream::default(), bytes: Vec::new() }
    }

    /// Returns the winnowing.
    pub fn winnowing(&self) -> &Winnowing {
        &self.winnowing
    }

    /// Calls `each` with the blocks of a whole payload. The blocks of an instance come in order,
    /// and a block with the digest of the one before it is left out. Drops a stream that was being
    /// cut.
    pub fn cut(&mut self, payload: &[u8], mut each: impl FnMut(Block)) {
        self.end();
        self.advance(payload, 0, &mut each);
        self.end();
    }

    /// Calls `each` with the blocks of a stream that this piece completes. Their bounds are offsets
    /// in the stream.
    pub fn push(&mut self, piece: &[u8], mut each: impl FnMut(Block)) {
        let mut bytes = std::mem::take(&mut self.bytes);
        for part in piece.chunks(PART_BYTES) {
            bytes.clear();
            bytes.extend_from_slice(&self.stream.tail);
            bytes.extend_from_slice(part);
            self.advance(&bytes, self.stream.start, &mut each);
            let kept = bytes.len().min(self.winnowing.window + self.winnowing.reach() - 1);
            let passed = bytes.len() - kept;
            self.stream.start += passed as u64;
            self.stream.tail.clear();
            self.stream.tail.extend_from_slice(&bytes[passed..]);
        }
        self.bytes = bytes;
    }

    /// Skips this many missing bytes of the stream: no block spans the gap. Offsets are capped at
    /// 2^63.
    pub fn gap(&mut self, bytes: u64) {
        let next = self.stream.start + self.stream.tail.len() as u64;
        self.end();
        self.stream.start = next.saturating_add(bytes).min(1 << 63);
    }

    /// Ends the stream. The next piece begins another one.
    pub fn end(&mut self) {
        self.stream.instances.fill(Progress::default());
        self.stream.tail.clear();
        self.stream.start = 0;
    }

    /// Swaps the stream that is being cut with another, or a new one, so that one cutter serves
    /// many streams.
    ///
    /// ```
    /// use umbel::Hasher;
    /// use umbel_net::payload::winnowing::{Stream, Winnowing};
    ///
    /// let winnowing = Winnowing::new(4, 1, 0, Hasher::default())?;
    /// let texts = [&b"one text in pieces, and"[..], b"another one in its turn"];
    /// let (mut streams, mut blocks) = (<[Stream; 2]>::default(), [Vec::new(), Vec::new()]);
    /// let mut cutter = winnowing.cutter();
    /// for at in 0..23 {
    ///     for i in 0..2 {
    ///         cutter.exchange(&mut streams[i]);
    ///         cutter.push(&texts[i][at..=at], |block| blocks[i].push(block));
    ///         cutter.exchange(&mut streams[i]);
    ///     }
    /// }
    /// assert_eq!(blocks, texts.map(|text| winnowing.blocks(text)));
    /// # Ok::<(), umbel_net::Error>(())
    /// ```
    pub fn exchange(&mut self, stream: &mut Stream) {
        std::mem::swap(&mut self.stream, stream);
    }

    /// Forgets the last digests, so that the next block is reported even if its digest equals that
    /// of the block before. Use this when the next blocks go elsewhere, such as into the filter of
    /// another hour.
    pub fn forget_last(&mut self) {
        self.stream.instances.iter_mut().for_each(|progress| progress.reported = None);
    }

    /// Calls `each` with the blocks that end in these bytes, which begin with the last window so
    /// far.
    fn advance(&mut self, bytes: &[u8], start: u64, each: &mut impl FnMut(Block)) {
        let Cutter { winnowing, minima, stream, .. } = self;
        stream.instances.resize(winnowing.keys.len(), Progress::default());
        let window = winnowing.window;
        let positions = (bytes.len() + 1).saturating_sub(winnowing.reach());
        let windows = (positions + 1).saturating_sub(window);
        let within = |from: u64, to: u64| &bytes[(from - start) as usize..(to - start) as usize];
        let gram = |at: u64| bytes[(at - start) as usize..].first_chunk::<GRAM>();
        for first in (0..windows).step_by(BATCH_POSITIONS - window + 1) {
            let last = positions.min(first + BATCH_POSITIONS);
            minima.load(&bytes[first..last + GRAM - 1], winnowing.shared);
            for (instance, (progress, keys)) in (0..).zip(stream.instances.iter_mut().zip(&winnowing.keys)) {
                minima.each(*keys, window, |boundaries| {
                    let [next, end] =
                        [boundaries.start, boundaries.end].map(|at| start + (first + at) as u64);
                    if end - next > 1
                        && let Some(from) = progress.run(next).filter(|from| *from >= start)
                        && is_one_byte(within(from, end - 1 + GRAM as u64))
                    {
                        progress.boundary = Some(end - 1);
                        return;
                    }
                    for boundary in next..end {
                        let before = progress.boundary.replace(boundary);
                        // The first window may have been processed before.
                        let Some(before) = before.filter(|before| *before != boundary) else { continue };
                        let is_repeated = winnowing.overlap > GRAM && gram(before) == gram(boundary);
                        let end = boundary + if is_repeated { GRAM } else { winnowing.overlap } as u64;
                        let digest = winnowing.digest(within(before, end), instance);
                        progress.step = boundary - before;
                        if progress.reported.replace(digest) != Some(digest) {
                            each(Block { instance, start: before, end, digest });
                        }
                    }
                });
            }
        }
    }
}

impl Progress {
    /// Returns the start of the last block if that block is one byte long, its digest is known, and
    /// the next boundary is one byte further. If all bytes from there on are equal, the next block
    /// has the same digest.
    fn run(&self, next: u64) -> Option<u64> {
        let boundary = self.boundary?;
        (self.reported.is_some() && self.step == 1 && boundary + 1 == next)
            .then(|| boundary.saturating_sub(1))
    }
}

fn is_one_byte(bytes: &[u8]) -> bool {
    bytes.split_first().is_none_or(|(_, rest)| *rest == bytes[..rest.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::Hasher;

    #[test]
    fn suspended_stream_keeps_only_its_end() {
        let winnowing = Winnowing::new(64, 2, 8, Hasher::default()).expect("a winnowing");
        let (mut cutter, mut stream) = (winnowing.cutter(), Stream::default());
        for _ in 0..3 {
            cutter.exchange(&mut stream);
            cutter.push(&[7; 100_000], |_| ());
            cutter.exchange(&mut stream);
        }
        assert!(stream.tail.capacity() < 4 * (64 + 8), "{}", stream.tail.capacity());
    }
}
