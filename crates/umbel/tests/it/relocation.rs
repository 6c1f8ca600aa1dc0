//! Moving the memory of a structure does not change it: every allocation is offered to the mover,
//! and old addresses are not used again.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashSet;
use std::path::Path;
use std::ptr::NonNull;
use umbel::any::Stored;
use umbel::file::{self, Options};
use umbel::hash::KeyRing;
use umbel::memory::Mover;
use umbel::{Hasher, Kind};

/// A mover that moves everything and overwrites the old memory.
#[derive(Default)]
struct Everything {
    bytes: usize,
}

// SAFETY: the new memory has the same size, alignment and contents as the old, and comes from the
// global allocator, which the old memory was returned to.
unsafe impl Mover for Everything {
    unsafe fn relocate(&mut self, memory: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
        self.bytes += layout.size();
        // SAFETY: the caller guarantees a valid, non-empty allocation.
        unsafe {
            let moved = NonNull::new(alloc(layout))?;
            moved.copy_from_nonoverlapping(memory, layout.size());
            memory.write_bytes(0xaa, layout.size());
            dealloc(memory.as_ptr(), layout);
            Some(moved)
        }
    }
}

/// A mover that moves nothing.
struct Nothing;

// SAFETY: nothing is changed.
unsafe impl Mover for Nothing {
    unsafe fn relocate(&mut self, _: NonNull<u8>, _: Layout) -> Option<NonNull<u8>> {
        None
    }
}

fn bytes(stored: &Stored) -> Vec<u8> {
    let options = Options { embed_key: true, ..Options::default() };
    let plain = Options::default();
    file::to_bytes(stored, &options).or_else(|_| file::to_bytes(stored, &plain)).unwrap()
}

#[test]
fn structures_of_every_kind_can_be_moved() {
    let mut ring = KeyRing::new();
    ring.insert(Hasher::keyed(*b"sixteen letters!"));
    ring.insert(Hasher::sealed(*b"thirty-two letters make a secret"));
    let mut kinds = HashSet::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut stored = file::load(&path, &ring).unwrap().filter;
        let (before, held) = (bytes(&stored), stored.stats().bytes);
        stored.relocate(&mut Nothing);
        assert_eq!(bytes(&stored), before);
        let mut everything = Everything::default();
        stored.relocate(&mut everything);
        assert!(everything.bytes as u64 >= held, "{path:?}: {} of {held}", everything.bytes);
        assert_eq!(bytes(&stored), before, "{path:?}");
        kinds.insert(stored.kind());
    }
    assert_eq!(kinds, Kind::ALL.iter().copied().collect());
}
