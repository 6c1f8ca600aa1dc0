//! The cache of the proxy: the lookup of stored responses, and the fetch and storing of others.

mod fetch;
mod hit;
mod in_flight;
mod key_history;
mod lookup;
mod pending_entry;
mod transfer;

pub use key_history::AdmissionPolicy;
pub(in crate::proxy) use lookup::CacheRequest;

use crate::error::Result;
use crate::store::{Entry, Store};
use in_flight::InFlight;
use key_history::KeyHistory;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The largest number of fetches that continue at once for the cache alone, after their clients
/// have left.
const MAX_BACKGROUND_FETCHES: usize = 32;

/// The cache of the proxy.
pub(in crate::proxy) struct Cache {
    pub store: Arc<Store>,
    /// Keys that were requested, could not be stored or were invalidated recently.
    history: KeyHistory,
    /// Fetches that other requests can wait for.
    in_flight: Arc<InFlight>,
    /// Permits for fetches whose clients have left.
    background_fetches: Arc<Semaphore>,
}

impl Cache {
    pub fn new(store: Store, policy: AdmissionPolicy) -> Result<Cache> {
        Ok(Cache {
            store: Arc::new(store),
            history: KeyHistory::new(policy)?,
            in_flight: Arc::default(),
            background_fetches: Arc::new(Semaphore::new(MAX_BACKGROUND_FETCHES)),
        })
    }

    /// Removes an entry from the store.
    async fn remove(&self, entry: Arc<Entry>) {
        let store = Arc::clone(&self.store);
        // The task fails only if the removal panics or the runtime shuts down.
        let _ = tokio::task::spawn_blocking(move || store.remove(&entry)).await;
    }
}
