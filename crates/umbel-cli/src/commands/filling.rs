//! A filter that threads fill together, and what is said when it holds more than it was made for.

use crate::facts::percent;
use crate::output::warn;
use anyhow::Result;
use std::sync::{Mutex, PoisonError};
use umbel::{AnyConcurrent, Batch, Stored};

/// A filter between threads. Whatever the order in which they fill it, the bits are the same in the end.
pub enum Filling {
    Shared(AnyConcurrent),
    /// For one thread, which needs no atomic writes, and for filters that cannot be shared.
    Alone(Mutex<Stored>),
}

impl Filling {
    pub fn new(filter: Stored, threads: usize) -> Result<Filling> {
        Ok(match filter {
            Stored::Set(filter) if threads > 1 => Filling::Shared(AnyConcurrent::new(filter)?),
            filter => Filling::Alone(Mutex::new(filter)),
        })
    }

    pub fn insert(&self, keys: &impl Batch) -> Result<()> {
        match self {
            Filling::Shared(filter) => filter.insert_batch(keys),
            Filling::Alone(filter) => {
                filter.lock().unwrap_or_else(PoisonError::into_inner).insert_batch(keys)?;
            }
        }
        Ok(())
    }

    pub fn into_filter(self) -> Stored {
        match self {
            Filling::Shared(filter) => filter.into_filter().into(),
            Filling::Alone(filter) => filter.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// Says so if a filter holds more keys than it was made for, as far as its bits tell for certain.
pub fn warn_if_overfull(filter: &Stored) {
    let stats = filter.stats();
    let (Some(capacity), Some(target)) = (stats.capacity, stats.rate_target) else { return };
    let holds = match stats.estimate.estimate() {
        Some(keys) if keys.value - 3.0 * keys.standard_error <= capacity as f64 => return,
        Some(keys) => format!("about {:.0} keys", keys.value),
        None => "too many keys to count".to_string(),
    };
    let (now, target) = (percent(stats.rate_now), percent(target));
    warn(format_args!(
        "the filter holds {holds}, more than the {capacity} it was made for: its rate is {now} instead of {target}"
    ));
}
