//! A buffer for the bytes of keys that must be assembled before they are hashed.

use super::Key;

/// The number of bytes that fit on the stack: eight numbers, or a long path and a number.
pub(super) const STACK_BYTES: usize = 128;

/// Bytes on the stack, or on the heap if there are more than [`STACK_BYTES`].
pub(super) struct Buffer {
    stack: [u8; STACK_BYTES],
    /// All bytes, if they do not fit on the stack.
    heap: Vec<u8>,
    /// The number of bytes.
    len: usize,
}

impl Buffer {
    #[inline(always)]
    pub(super) const fn new() -> Buffer {
        Buffer { stack: [0; STACK_BYTES], heap: Vec::new(), len: 0 }
    }

    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        self.stack.get(..self.len).unwrap_or(&self.heap)
    }

    #[inline(always)]
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.append([], bytes);
    }

    /// Appends a part of a composite key: the length of its bytes as 8 bytes little-endian, then
    /// the bytes.
    ///
    /// A shorter length would put numbers at odd offsets. The hash function then reads words that
    /// span two recent stores, and waits for both to leave the processor's store buffer.
    #[inline(always)]
    pub(super) fn push_part<K: Key>(&mut self, part: &K) {
        part.with_bytes(|bytes| self.append((bytes.len() as u64).to_le_bytes(), bytes));
    }

    #[inline(always)]
    fn append<const N: usize>(&mut self, head: [u8; N], bytes: &[u8]) {
        let end = self.len + N + bytes.len();
        match self.stack.get_mut(self.len..end).and_then(|room| room.split_first_chunk_mut()) {
            Some((room_of_head, room)) => {
                *room_of_head = head;
                room.copy_from_slice(bytes);
            }
            None => self.append_to_heap(&head, bytes),
        }
        self.len = end;
    }

    #[cold]
    fn append_to_heap(&mut self, head: &[u8], bytes: &[u8]) {
        if let Some(first) = self.stack.get(..self.len) {
            self.heap.reserve(self.len + head.len() + bytes.len());
            self.heap.extend_from_slice(first);
        }
        self.heap.extend_from_slice(head);
        self.heap.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_the_stack_when_they_no_longer_fit() {
        let mut buffer = Buffer::new();
        let bytes: Vec<u8> = (0..=255).collect();
        buffer.extend(&bytes[..STACK_BYTES]);
        buffer.extend(&[]);
        assert_eq!(buffer.heap.capacity(), 0, "nothing is allocated while the bytes fit on the stack");
        assert_eq!(buffer.bytes(), &bytes[..STACK_BYTES]);
        buffer.extend(&bytes[STACK_BYTES..STACK_BYTES + 1]);
        assert_eq!(buffer.bytes(), &bytes[..STACK_BYTES + 1]);
        buffer.extend(&bytes[STACK_BYTES + 1..]);
        assert_eq!(buffer.bytes(), bytes);
    }
}
