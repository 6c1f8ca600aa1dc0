//! [`Shared`]: a value that Python threads share.
//!
//! A filter is used in two ways. One key at a time takes a few nanoseconds, during which the thread
//! stays attached to the interpreter. A batch takes longer, so the thread detaches from the
//! interpreter, and others run on. `Shared` keeps the two apart:
//!
//! | operation | attached | takes |
//! | --- | --- | --- |
//! | [`read_now`](Shared::read_now), [`write_now`](Shared::write_now) | from start to end | no guard: with a global interpreter lock, no other thread can begin anything meanwhile |
//! | [`read`](Shared::read), [`write`](Shared::write) | when it begins | a guard, which excludes writers or everybody |
//!
//! An interpreter without a global lock gives the short operations a guard, too.
//!
//! Nobody waits while attached, and no guard is held while Python code runs: neither an iterator
//! that uses the filter it is fed into nor two threads that unite two filters crosswise can
//! deadlock.

use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// No guard exists.
const FREE: isize = 0;
/// A [`WriteGuard`] exists; positive states are the number of [`ReadGuard`]s.
const WRITING: isize = -1;

/// A value that Python threads share; see the [module](self).
#[derive(Debug)]
pub struct Shared<T> {
    state: AtomicIsize,
    /// Threads that wait for a guard to be dropped.
    waiting: Mutex<()>,
    dropped: Condvar,
    value: UnsafeCell<T>,
}

// SAFETY: as for `RwLock`. A `&mut T` exists only in `write_now` and in a `WriteGuard`, which exclude
// each other and all `&T`; see there.
#[allow(unsafe_code, reason = "sound for the reason above")]
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T: Send + Sync> Shared<T> {
    pub fn new(value: T) -> Shared<T> {
        let (waiting, dropped) = (Mutex::new(()), Condvar::new());
        Shared { state: AtomicIsize::new(FREE), waiting, dropped, value: UnsafeCell::new(value) }
    }

    /// Calls `f` with the value, without detaching. `f` must be short. It is `Send`, so it cannot
    /// hold a `Python` token and run Python code.
    #[inline(always)]
    pub fn read_now<R>(&self, py: Python<'_>, f: impl FnOnce(&T) -> R + Send) -> R {
        #[cfg(not(Py_GIL_DISABLED))]
        if self.state.load(Ordering::Acquire) >= FREE {
            // SAFETY: there is no `WriteGuard`. None is made before `f` returns, and `write_now`
            // does not run, since both need the interpreter lock, which this thread has: `py`
            // proves it, and `f` cannot release it.
            #[allow(unsafe_code, reason = "sound for the reason above")]
            return f(unsafe { &*self.value.get() });
        }
        f(&self.read(py))
    }

    /// Calls `f` with the value, which it may change, without detaching; see
    /// [`read_now`](Shared::read_now).
    #[inline(always)]
    pub fn write_now<R>(&self, py: Python<'_>, f: impl FnOnce(&mut T) -> R + Send) -> R {
        #[cfg(not(Py_GIL_DISABLED))]
        if self.state.load(Ordering::Acquire) == FREE {
            // SAFETY: there is no guard, and as in `read_now`, no other access begins before `f`
            // returns. `f` has no reference to this `Shared` through which it could begin one,
            // since that takes a `Python` token.
            #[allow(unsafe_code, reason = "sound for the reason above")]
            return f(unsafe { &mut *self.value.get() });
        }
        f(&mut self.write(py))
    }

    /// Excludes writers until the guard is dropped. Waits, detached, for a writer.
    #[cold]
    pub fn read(&self, py: Python<'_>) -> ReadGuard<'_, T> {
        while !self.try_begin(|state| (state >= FREE).then_some(state + 1)) {
            self.wait(py, |state| state >= FREE);
        }
        ReadGuard(self)
    }

    /// Excludes everybody until the guard is dropped. Waits, detached, for all others.
    #[cold]
    pub fn write(&self, py: Python<'_>) -> WriteGuard<'_, T> {
        while !self.try_begin(|state| (state == FREE).then_some(WRITING)) {
            self.wait(py, |state| state == FREE);
        }
        WriteGuard(self)
    }

    /// Guards this value for writing and another for reading. Neither is held while the other is
    /// waited for, so that threads that combine the same two values in either order cannot
    /// deadlock.
    ///
    /// The two must be different objects.
    pub fn write_with<'a>(
        &'a self,
        py: Python<'_>,
        other: &'a Shared<T>,
    ) -> (WriteGuard<'a, T>, ReadGuard<'a, T>) {
        loop {
            let ours = self.write(py);
            if other.try_begin(|state| (state >= FREE).then_some(state + 1)) {
                return (ours, ReadGuard(other));
            }
            drop(ours);
            other.wait(py, |state| state >= FREE);
        }
    }

    fn try_begin(&self, next: impl Fn(isize) -> Option<isize>) -> bool {
        self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, next).is_ok()
    }

    /// Waits, detached, until the state is acceptable. It may have changed again by then.
    fn wait(&self, py: Python<'_>, acceptable: fn(isize) -> bool) {
        py.detach(|| {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            while !acceptable(self.state.load(Ordering::Acquire)) {
                waiting = self.dropped.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        });
    }

    fn end(&self, change: impl FnOnce(&AtomicIsize)) {
        change(&self.state);
        // Under the lock, so that no thread that has just seen the old state misses the signal.
        let _waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.dropped.notify_all();
    }
}

/// Excludes writers; see [`Shared::read`].
#[derive(Debug)]
pub struct ReadGuard<'a, T: Send + Sync>(&'a Shared<T>);

/// Excludes everybody; see [`Shared::write`].
#[derive(Debug)]
pub struct WriteGuard<'a, T: Send + Sync>(&'a Shared<T>);

impl<T: Send + Sync> Deref for ReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the state is positive until this guard is dropped, so nothing makes a `&mut T`.
        #[allow(unsafe_code, reason = "sound for the reason above")]
        unsafe {
            &*self.0.value.get()
        }
    }
}

impl<T: Send + Sync> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the state is `WRITING` until this guard is dropped, so nothing else has access.
        #[allow(unsafe_code, reason = "sound for the reason above")]
        unsafe {
            &*self.0.value.get()
        }
    }
}

impl<T: Send + Sync> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and `&mut self` makes this the only reference from the guard.
        #[allow(unsafe_code, reason = "sound for the reason above")]
        unsafe {
            &mut *self.0.value.get()
        }
    }
}

impl<T: Send + Sync> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        self.0.end(|state| {
            state.fetch_sub(1, Ordering::Release);
        });
    }
}

impl<T: Send + Sync> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        self.0.end(|state| state.store(FREE, Ordering::Release));
    }
}
