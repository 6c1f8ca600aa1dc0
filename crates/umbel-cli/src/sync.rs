//! Mutexes without poisoning: a panic is passed on when its thread is joined, and the data are still consistent.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, whether or not it is poisoned.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the value of a mutex, whether or not it is poisoned.
pub fn inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
