//! Moving memory while its contents stay the same, for programs whose allocator can compact its
//! pages.
//!
//! An allocator that has handed out memory of many sizes has pages that are mostly empty but cannot
//! be returned to the system. Some allocators can tell which allocations should be elsewhere, and
//! move them; the owners then have to use the new addresses. A [`Structure`](crate::Structure)
//! offers every allocation that it owns to such a [`Mover`].

use super::{Keep, Words};
use std::alloc::Layout;
use std::ptr::{self, NonNull};

/// A service that moves allocations.
///
/// ```
/// use std::alloc::{Layout, alloc, dealloc};
/// use std::ptr::NonNull;
/// use umbel::memory::Mover;
/// use umbel::{AnyFilter, Kind, Spec};
///
/// /// Moves everything.
/// struct All(usize);
///
/// // SAFETY: the new memory has the same size, alignment and contents as the old, and comes from
/// // the global allocator, which the old memory was returned to.
/// unsafe impl Mover for All {
///     unsafe fn relocate(&mut self, memory: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
///         self.0 += 1;
///         unsafe {
///             let moved = NonNull::new(alloc(layout))?;
///             moved.copy_from_nonoverlapping(memory, layout.size());
///             dealloc(memory.as_ptr(), layout);
///             Some(moved)
///         }
///     }
/// }
///
/// let mut filter = AnyFilter::build(Kind::Scalable, &Spec::new(1000, 0.01)?)?;
/// filter.insert("apple")?;
/// let mut all = All(0);
/// filter.relocate(&mut all);
/// assert!(all.0 > 0 && filter.contains("apple"));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Safety
///
/// The memory that [`relocate`](Mover::relocate) returns has the layout and the contents of the
/// memory that was passed, and belongs to the global allocator as well; the old memory has been
/// freed. If it returns `None`, nothing has changed. It does not panic.
pub unsafe trait Mover {
    /// Moves memory of this layout and returns its new address, or leaves it where it is and
    /// returns `None`.
    ///
    /// # Safety
    ///
    /// The global allocator allocated the memory with this layout, which is not empty. The caller
    /// is the only owner of the address, and uses only the new one afterwards.
    unsafe fn relocate(&mut self, memory: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>>;
}

impl Words {
    /// Lets `mover` move the memory. Mapped and static memory stays where it is.
    pub fn relocate(&mut self, mover: &mut dyn Mover) {
        if let Keep::Heap(layout) = self.keep {
            // SAFETY: allocated in `zeroed` with this layout, and borrowed exclusively.
            if let Some(moved) = unsafe { mover.relocate(self.start.cast(), layout) } {
                self.start = moved.cast();
            }
        }
    }
}

/// Lets `mover` move the contents of a box.
pub fn relocate_box<T>(boxed: &mut Box<T>, mover: &mut dyn Mover) {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return;
    }
    // SAFETY: the box is read out and always written back below: nothing in between panics. Its
    // memory comes from the global allocator with this layout and is borrowed exclusively. Once the
    // value has moved, only the new address is used.
    unsafe {
        let memory = NonNull::new_unchecked(Box::into_raw(ptr::read(boxed)));
        let moved = mover.relocate(memory.cast(), layout).map_or(memory, NonNull::cast);
        ptr::write(boxed, Box::from_raw(moved.as_ptr()));
    }
}

/// Lets `mover` move the memory of a list.
pub fn relocate_vec<T>(list: &mut Vec<T>, mover: &mut dyn Mover) {
    let (len, capacity) = (list.len(), list.capacity());
    let Ok(layout) = Layout::array::<T>(capacity) else { return };
    let Some(memory) = NonNull::new(list.as_mut_ptr()).filter(|_| layout.size() > 0) else { return };
    // SAFETY: the memory of a list comes from the global allocator with this layout, and is
    // borrowed exclusively.
    if let Some(moved) = unsafe { mover.relocate(memory.cast(), layout) } {
        // SAFETY: the values are now at the new address, and the old list, whose memory is freed,
        // is not dropped.
        unsafe { ptr::write(list, Vec::from_raw_parts(moved.cast().as_ptr(), len, capacity)) };
    }
}
