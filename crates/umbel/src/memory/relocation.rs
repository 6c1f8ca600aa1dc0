//! Memory that moves while what it holds stays the same: for programs whose allocator can fill its pages better.
//!
//! An allocator that gave out memory of many sizes has pages of which little is in use, and cannot give them back. Some
//! can tell what would better be elsewhere, and move it; who holds an address of it has to take the new one. A
//! [`Structure`](crate::Structure) offers every piece of memory that it holds to such a [`Mover`].

use super::{Keep, Words};
use std::alloc::Layout;
use std::ptr::{self, NonNull};

/// Who moves memory elsewhere.
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
/// // SAFETY: the memory is as large and aligned as it was, has the same contents, and comes from the global allocator, to
/// // which the old one was given back.
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
/// What [`relocate`](Mover::relocate) gives has the layout and the contents of what it was given, and belongs to the
/// global allocator as that did, which is given back then. If it gives nothing, nothing has changed. It does not panic.
pub unsafe trait Mover {
    /// Moves memory of this layout, or leaves it.
    ///
    /// # Safety
    ///
    /// The memory was allocated with this layout, which is not empty, by the global allocator, and the caller, who alone
    /// holds its address, uses only what is given back.
    unsafe fn relocate(&mut self, memory: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>>;
}

impl Words {
    /// Lets the memory be moved. What is mapped, or static, stays where it is.
    pub fn relocate(&mut self, mover: &mut dyn Mover) {
        if let Keep::Heap(layout) = self.keep {
            // SAFETY: allocated in `zeroed` with this layout, and borrowed exclusively.
            if let Some(moved) = unsafe { mover.relocate(self.start.cast(), layout) } {
                self.start = moved.cast();
            }
        }
    }
}

/// Lets what is in a box be moved.
pub fn relocate_box<T>(boxed: &mut Box<T>, mover: &mut dyn Mover) {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return;
    }
    // SAFETY: the box is taken out and comes back below, whatever happens: nothing in between panics. It has its memory
    // from the global allocator, with this layout, and is borrowed exclusively; once the value is elsewhere, only the new
    // address is used.
    unsafe {
        let memory = NonNull::new_unchecked(Box::into_raw(ptr::read(boxed)));
        let moved = mover.relocate(memory.cast(), layout).map_or(memory, NonNull::cast);
        ptr::write(boxed, Box::from_raw(moved.as_ptr()));
    }
}

/// Lets the memory of a list be moved.
pub fn relocate_vec<T>(list: &mut Vec<T>, mover: &mut dyn Mover) {
    let (len, capacity) = (list.len(), list.capacity());
    let Ok(layout) = Layout::array::<T>(capacity) else { return };
    let Some(memory) = NonNull::new(list.as_mut_ptr()).filter(|_| layout.size() > 0) else { return };
    // SAFETY: a list has its memory from the global allocator, with this layout, and is borrowed exclusively.
    if let Some(moved) = unsafe { mover.relocate(memory.cast(), layout) } {
        // SAFETY: the values are there now, and the old list, whose memory is gone, is not dropped.
        unsafe { ptr::write(list, Vec::from_raw_parts(moved.cast().as_ptr(), len, capacity)) };
    }
}
