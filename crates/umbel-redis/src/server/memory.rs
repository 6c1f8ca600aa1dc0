//! Memory from the server, so that it counts towards `maxmemory`, and limits for the memory of
//! filters.
//!
//! Filters, and streams that are not complete yet, allocate memory with an alignment of 64 bytes and
//! handle failure; nothing else in the module has that alignment. So this allocator counts and
//! limits the memory of filters of every kind: an allocation beyond a limit fails, and the command
//! replies with an error. The items of lists are small allocations, which a [`Charge`] counts.
//! `RedisModule_Alloc` ends the server when memory runs out; `RedisModule_TryAlloc` does not, and
//! is used where the server has it.

use super::raw::{self, DefragCtx};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use umbel::memory::Mover;

/// The alignment of the memory of filters; all other memory of the module has a smaller one.
const FILTER_ALIGN: usize = 64;

/// The alignment of all memory that the server allocates.
const SERVER_ALIGN: usize = 8;

/// The allocator of the module, which passes every request to the server.
struct ServerAllocator;

#[global_allocator]
static ALLOCATOR: ServerAllocator = ServerAllocator;

/// The bytes of all filters.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The limit for the bytes of all filters together.
static MODULE_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The bytes that the running command may still allocate for filters.
static BUDGET: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Returns the bytes of all filters.
pub fn used() -> usize {
    USED.load(Relaxed)
}

/// Sets the limit for the bytes of all filters together.
pub fn set_module_limit(bytes: usize) {
    MODULE_LIMIT.store(bytes, Relaxed);
}

/// Whether the limits are lifted.
static UNLIMITED: AtomicBool = AtomicBool::new(false);

/// A guard that lifts the limits while it lives. A replica repeats every command of its primary,
/// and a snapshot is loaded even if the limits are lower now.
pub struct Unlimited(bool);

impl Unlimited {
    /// Lifts the limits if `unlimited`.
    pub fn when(unlimited: bool) -> Unlimited {
        Unlimited(UNLIMITED.swap(unlimited, Relaxed))
    }
}

impl Drop for Unlimited {
    fn drop(&mut self) {
        UNLIMITED.store(self.0, Relaxed);
    }
}

/// Returns whether the limits are lifted.
pub fn is_unlimited() -> bool {
    UNLIMITED.load(Relaxed)
}

/// A guard that limits the memory that filters allocate while it lives. One is enough, since
/// commands do not run concurrently.
pub struct Budget(());

impl Budget {
    /// Limits allocations to this many bytes in all.
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

/// The bytes that the running command replaces; see [`Replacement`].
static REPLACED: AtomicUsize = AtomicUsize::new(0);

/// A guard that raises the limit for all filters while it lives, for a value that is built from
/// memory that is freed afterwards.
pub struct Replacement(usize);

impl Replacement {
    /// Raises the limit by the size of memory that will be freed.
    pub fn of(bytes: usize) -> Replacement {
        Replacement(REPLACED.swap(bytes, Relaxed))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        REPLACED.store(self.0, Relaxed);
    }
}

/// Bytes of a value that are in small allocations, such as items. They count towards the limits like
/// the memory of filters.
#[derive(Debug, Default)]
pub struct Charge(usize);

impl Charge {
    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.0
    }

    /// Changes the number of bytes, and returns whether the limits allow it.
    pub fn set(&mut self, bytes: usize) -> bool {
        if bytes > self.0 && !grant(bytes - self.0) {
            return false;
        }
        USED.fetch_sub(self.0.saturating_sub(bytes), Relaxed);
        self.0 = bytes;
        true
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The number of allocations and values that a limit has refused.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of allocations and values that a limit has refused.
pub fn refused() -> u64 {
    REFUSED.load(Relaxed)
}

/// Counts a refusal.
pub fn note_refusal() {
    REFUSED.fetch_add(1, Relaxed);
}

/// Counts this many bytes as used if the limits allow them.
fn grant(bytes: usize) -> bool {
    let budget = BUDGET.load(Relaxed);
    let used = USED.load(Relaxed);
    if is_unlimited() {
        USED.fetch_add(bytes, Relaxed);
        return true;
    }
    let limit = MODULE_LIMIT.load(Relaxed).saturating_add(REPLACED.load(Relaxed));
    if bytes > budget || used.checked_add(bytes).is_none_or(|all| all > limit) {
        note_refusal();
        return false;
    }
    if budget < usize::MAX {
        BUDGET.store(budget - bytes, Relaxed);
    }
    USED.fetch_add(bytes, Relaxed);
    true
}

/// Reverts [`grant`] after a failed allocation.
fn revoke(bytes: usize) {
    USED.fetch_sub(bytes, Relaxed);
    let budget = BUDGET.load(Relaxed);
    if budget < usize::MAX && !is_unlimited() {
        BUDGET.store(budget.saturating_add(bytes), Relaxed);
    }
}

/// Allocates memory from the server. Returns null on failure.
fn obtain(bytes: usize, zeroed: bool) -> *mut u8 {
    let Some(api) = raw::loaded() else { return null_mut() };
    if zeroed && let Some(try_calloc) = api.try_calloc {
        // SAFETY: these take any size.
        return unsafe { try_calloc(1, bytes) }.cast();
    }
    // SAFETY: as above.
    let memory: *mut u8 = unsafe { api.try_alloc.unwrap_or(api.alloc)(bytes) }.cast();
    if zeroed && !memory.is_null() {
        // SAFETY: the memory has this many bytes, and is not used yet.
        unsafe { clear(memory, bytes) };
    }
    memory
}

/// The size from which memory is cleared page by page when it is used.
const LARGE_BYTES: usize = 64 << 20;

/// A multiple of the size of a page on every system.
const PAGES_BYTES: usize = 1 << 16;

/// Fills memory with zeros. Writing gigabytes would block the server, so the inner pages of large
/// memory are returned to the system, which replaces them with empty ones when they are used:
///
/// ```text
/// start ... | pages ...              | ... end
/// written   | returned to the system | written
/// ```
///
/// # Safety
///
/// The memory must have this many bytes and come from the server's allocator.
unsafe fn clear(memory: *mut u8, bytes: usize) {
    let before = memory.align_offset(PAGES_BYTES);
    if bytes < LARGE_BYTES || before >= bytes {
        // SAFETY: promised by the caller.
        return unsafe { memory.write_bytes(0, bytes) };
    }
    let inside = (bytes - before) / PAGES_BYTES * PAGES_BYTES;
    // SAFETY: both parts are within the memory; the pages contain nothing else.
    unsafe {
        let pages = memory.add(before);
        // A system that keeps the contents of the pages shows it here.
        pages.write_volatile(1);
        let returned = libc::madvise(pages.cast(), inside, libc::MADV_DONTNEED) == 0;
        if !returned || pages.read_volatile() != 0 {
            return memory.write_bytes(0, bytes);
        }
        memory.write_bytes(0, before);
        pages.add(inside).write_bytes(0, bytes - before - inside);
    }
}

/// Returns the offset of the first address with this alignment that leaves room for a pointer
/// before it.
fn offset_in(start: NonNull<u8>, align: usize) -> usize {
    // At least 8, since the start is a multiple of 8, and at most `align`.
    align - start.addr().get() % align
}

/// Allocates memory with an alignment. Beyond the server's own, the allocation is larger by the
/// alignment, and a pointer to its start is stored right before the memory that is returned:
///
/// ```text
/// start ... | pointer to start | memory, aligned ...
/// ```
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
            revoke(layout.size());
        }
        return null_mut();
    };
    // SAFETY: the offset is within the allocation, and leaves room for a pointer.
    unsafe {
        let memory = start.add(offset_in(start, layout.align()));
        store_start(memory, start);
        memory.as_ptr()
    }
}

/// Stores the start of an allocation before its memory.
///
/// # Safety
///
/// There must be room for a pointer before the memory.
unsafe fn store_start(memory: NonNull<u8>, start: NonNull<u8>) {
    // SAFETY: promised by the caller.
    unsafe { memory.cast::<NonNull<u8>>().sub(1).write(start) };
}

/// Returns the start of an allocation.
///
/// # Safety
///
/// [`store_start`] must have stored it.
unsafe fn stored_start(memory: NonNull<u8>) -> NonNull<u8> {
    // SAFETY: promised by the caller.
    unsafe { memory.cast::<NonNull<u8>>().sub(1).read() }
}

/// The server's active defragmentation, which decides what to move.
pub struct Defragmenter(*mut DefragCtx);

/// The number of allocations that were moved.
static MOVED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of allocations that were moved.
pub fn moved() -> u64 {
    MOVED.load(Relaxed)
}

impl Defragmenter {
    /// Wraps the context of a defragmentation.
    ///
    /// # Safety
    ///
    /// The context must be valid as long as the result is used.
    pub unsafe fn new(ctx: *mut DefragCtx) -> Defragmenter {
        Defragmenter(ctx)
    }
}

// SAFETY: the server returns a copy of the same size and frees the original, or returns null; the
// contents are then shifted to an aligned address. Nothing panics.
unsafe impl Mover for Defragmenter {
    unsafe fn relocate(&mut self, memory: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
        let relocate = raw::loaded()?.defrag_alloc?;
        // SAFETY: the server allocated it for memory of this layout, and no other pointer to it
        // exists.
        let relocate = |start: NonNull<u8>| NonNull::new(unsafe { relocate(self.0, start.as_ptr().cast()) });
        let moved = if layout.align() <= SERVER_ALIGN {
            relocate(memory)?.cast()
        } else {
            // SAFETY: stored when it was allocated.
            let start = unsafe { stored_start(memory) };
            let before = memory.addr().get() - start.addr().get();
            let start: NonNull<u8> = relocate(start)?.cast();
            // SAFETY: both addresses are within the allocation, as when it was made.
            unsafe {
                let moved = start.add(offset_in(start, layout.align()));
                moved.copy_from(start.add(before), layout.size());
                store_start(moved, start);
                moved
            }
        };
        MOVED.fetch_add(1, Relaxed);
        Some(moved)
    }
}

// SAFETY: memory has the requested size and alignment, is not shared, and is freed by the allocator
// that made it.
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
            // SAFETY: without a server, the system's allocator has made it: nothing is allocated
            // before a server's functions are known.
            return unsafe { System.dealloc(memory, layout) };
        };
        let mut start = memory;
        if layout.align() > SERVER_ALIGN {
            if layout.align() >= FILTER_ALIGN {
                USED.fetch_sub(layout.size(), Relaxed);
            }
            // SAFETY: not null, and stored when it was allocated.
            start = unsafe { stored_start(NonNull::new_unchecked(memory)) }.as_ptr();
        }
        // SAFETY: the server allocated it.
        unsafe { (api.free)(start.cast()) };
    }
}
