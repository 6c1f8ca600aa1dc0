//! Memory moves, and every structure stays what it was: each piece of it is offered, and none is used where it was.

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

/// Moves everything, and spoils what was there.
#[derive(Default)]
struct Everything {
    bytes: usize,
}

// SAFETY: the memory is as large and aligned as it was, has the same contents, and comes from the global allocator, to
// which the old one was given back.
unsafe impl Mover for Everything {
    unsafe fn relocate(&mut self, memory: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
        self.bytes += layout.size();
        // SAFETY: as promised by the caller, and nothing is empty.
        unsafe {
            let moved = NonNull::new(alloc(layout))?;
            moved.copy_from_nonoverlapping(memory, layout.size());
            memory.write_bytes(0xaa, layout.size());
            dealloc(memory.as_ptr(), layout);
            Some(moved)
        }
    }
}

/// Moves nothing.
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
