//! Memory from the server, so that it counts towards `maxmemory`, and bounds for that of filters.
//!
//! Filters ask for their memory in lines of 64 bytes and take a refusal; nothing else asks for lines. So lines are
//! counted and bounded here, once for every kind: what would be too much is refused before it is allocated, and the
//! client is told. Redis' own function ends the server when there is no memory; the one that does not is used where the
//! server has it.

use super::raw::{self, DefragCtx};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use umbel::memory::Mover;

/// The alignment of the memory of filters; all other memory of the module has a smaller one.
const FILTER_ALIGN: usize = 64;

/// The alignment of all memory that the server allocates.
const SERVER_ALIGN: usize = 8;

/// Asks the server.
struct ServerAllocator;

#[global_allocator]
static ALLOCATOR: ServerAllocator = ServerAllocator;

/// The lines in use, in bytes.
static USED: AtomicUsize = AtomicUsize::new(0);

/// What all filters together may take.
static MODULE_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// What the command that runs may still take.
static BUDGET: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The bytes that filters take.
pub fn used() -> usize {
    USED.load(Relaxed)
}

/// Sets what all filters together may take.
pub fn set_module_limit(bytes: usize) {
    MODULE_LIMIT.store(bytes, Relaxed);
}

/// Whether what runs was done elsewhere before, and has to be done here too.
static UNLIMITED: AtomicBool = AtomicBool::new(false);

/// While this lives, there are no limits: a replica does what its primary did, and a snapshot is read whatever is allowed
/// now.
pub struct Unlimited(bool);

impl Unlimited {
    /// No limits if so.
    pub fn when(unlimited: bool) -> Unlimited {
        Unlimited(UNLIMITED.swap(unlimited, Relaxed))
    }
}

impl Drop for Unlimited {
    fn drop(&mut self) {
        UNLIMITED.store(self.0, Relaxed);
    }
}

/// Whether there are no limits now.
pub fn is_unlimited() -> bool {
    UNLIMITED.load(Relaxed)
}

/// While this lives, filters get so much memory and no more. Commands run one after the other.
pub struct Budget(());

impl Budget {
    pub fn new(bytes: usize) -> Budget {
        BUDGET.store(bytes, Relaxed);
        Budget(())
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        BUDGET.store(usize::MAX, Relaxed);
    }
}

/// How often filters would have been too large.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// How often filters would have been too large.
pub fn refused() -> u64 {
    REFUSED.load(Relaxed)
}

/// Counts a filter that would have been too large.
pub fn note_refusal() {
    REFUSED.fetch_add(1, Relaxed);
}

/// Whether so many bytes more are allowed, and counts them.
fn grant(bytes: usize) -> bool {
    let budget = BUDGET.load(Relaxed);
    let used = USED.load(Relaxed);
    if is_unlimited() {
        USED.fetch_add(bytes, Relaxed);
        return true;
    }
    if bytes > budget || used.checked_add(bytes).is_none_or(|all| all > MODULE_LIMIT.load(Relaxed)) {
        note_refusal();
        return false;
    }
    if budget < usize::MAX {
        BUDGET.store(budget - bytes, Relaxed);
    }
    USED.fetch_add(bytes, Relaxed);
    true
}

/// What was granted is not taken after all.
fn take_back(bytes: usize) {
    USED.fetch_sub(bytes, Relaxed);
    let budget = BUDGET.load(Relaxed);
    if budget < usize::MAX && !is_unlimited() {
        BUDGET.store(budget.saturating_add(bytes), Relaxed);
    }
}

/// Memory from the server, or none.
fn obtain(bytes: usize, zeroed: bool) -> *mut u8 {
    let Some(api) = raw::loaded() else { return null_mut() };
    if zeroed && let Some(try_calloc) = api.try_calloc {
        // SAFETY: these take any size.
        return unsafe { try_calloc(1, bytes) }.cast();
    }
    // SAFETY: as above.
    let memory: *mut u8 = unsafe { api.try_alloc.unwrap_or(api.alloc)(bytes) }.cast();
    if zeroed && !memory.is_null() {
        // SAFETY: so many bytes were just given.
        unsafe { memory.write_bytes(0, bytes) };
    }
    memory
}

/// Where in a piece of memory an address with this alignment is: there is room for another address before it.
fn offset_in(start: NonNull<u8>, align: usize) -> usize {
    // 8 at least, since the start is a multiple of that, and `align` at most.
    align - start.addr().get() % align
}

/// Memory with an alignment. Where the server gives less, more is taken, and its start noted before what is handed out.
fn allocate(layout: Layout, zeroed: bool) -> *mut u8 {
    if layout.align() <= SERVER_ALIGN {
        return obtain(layout.size(), zeroed);
    }
    let Some(bytes) = layout.size().checked_add(layout.align()) else { return null_mut() };
    if layout.align() >= FILTER_ALIGN && !grant(layout.size()) {
        return null_mut();
    }
    let Some(start) = NonNull::new(obtain(bytes, zeroed)) else {
        if layout.align() >= FILTER_ALIGN {
            take_back(layout.size());
        }
        return null_mut();
    };
    // SAFETY: it stays inside, and there is room for an address before it.
    unsafe {
        let memory = start.add(offset_in(start, layout.align()));
        note_start(memory, start);
        memory.as_ptr()
    }
}

/// Notes where a piece of memory starts.
///
/// # Safety
///
/// There is room for an address before it.
unsafe fn note_start(memory: NonNull<u8>, start: NonNull<u8>) {
    // SAFETY: promised by the caller.
    unsafe { memory.cast::<NonNull<u8>>().sub(1).write(start) };
}

/// Where a piece of memory starts.
///
/// # Safety
///
/// It was noted there.
unsafe fn noted_start(memory: NonNull<u8>) -> NonNull<u8> {
    // SAFETY: promised by the caller.
    unsafe { memory.cast::<NonNull<u8>>().sub(1).read() }
}

/// The server's active defragmentation, which knows what would better be elsewhere.
pub struct Defragmenter(*mut DefragCtx);

/// How often memory was moved.
static MOVED: AtomicU64 = AtomicU64::new(0);

/// How often memory was moved.
pub fn moved() -> u64 {
    MOVED.load(Relaxed)
}

impl Defragmenter {
    /// # Safety
    ///
    /// The server lends this for as long as it is used.
    pub unsafe fn new(ctx: *mut DefragCtx) -> Defragmenter {
        Defragmenter(ctx)
    }
}

// SAFETY: the server gives memory of the same size with the same contents and takes the old one, or gives nothing; what
// is in it is brought to where it is aligned. Nothing panics.
unsafe impl Mover for Defragmenter {
    unsafe fn relocate(&mut self, memory: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
        let relocate = raw::loaded()?.defrag_alloc?;
        // SAFETY: this is what the server gave for memory of such a layout, and nobody else holds its address.
        let relocate = |start: NonNull<u8>| NonNull::new(unsafe { relocate(self.0, start.as_ptr().cast()) });
        let moved = if layout.align() <= SERVER_ALIGN {
            relocate(memory)?.cast()
        } else {
            // SAFETY: noted there when it was allocated.
            let start = unsafe { noted_start(memory) };
            let before = memory.addr().get() - start.addr().get();
            let start: NonNull<u8> = relocate(start)?.cast();
            // SAFETY: both places are inside of the memory, as when it was allocated.
            unsafe {
                let moved = start.add(offset_in(start, layout.align()));
                moved.copy_from(start.add(before), layout.size());
                note_start(moved, start);
                moved
            }
        };
        MOVED.fetch_add(1, Relaxed);
        Some(moved)
    }
}

// SAFETY: what is handed out is as large and aligned as asked, belongs to nobody else, and is given back as it was taken.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if raw::loaded().is_none() {
            // SAFETY: promised by the caller.
            return unsafe { System.alloc(layout) };
        }
        allocate(layout, false)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if raw::loaded().is_none() {
            // SAFETY: promised by the caller.
            return unsafe { System.alloc_zeroed(layout) };
        }
        allocate(layout, true)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let Some(api) = raw::loaded() else {
            // SAFETY: nothing is allocated before the server's functions are known, but where they never are.
            return unsafe { System.dealloc(memory, layout) };
        };
        let mut start = memory;
        if layout.align() > SERVER_ALIGN {
            if layout.align() >= FILTER_ALIGN {
                USED.fetch_sub(layout.size(), Relaxed);
            }
            // SAFETY: noted there when it was allocated, and not null.
            start = unsafe { noted_start(NonNull::new_unchecked(memory)) }.as_ptr();
        }
        // SAFETY: this is what the server gave.
        unsafe { (api.free)(start.cast()) };
    }
}
