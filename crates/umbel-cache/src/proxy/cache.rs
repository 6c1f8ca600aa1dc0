//! The cache of the proxy: stored responses, and what it remembers of keys and fetches.

use super::in_flight::InFlight;
use super::key_history::{AdmissionPolicy, KeyHistory};
use crate::error::Result;
use crate::store::{Entry, Store};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The most fetches that go on at once for the cache alone, after their clients have left.
const MAX_BACKGROUND_FETCHES: usize = 32;

/// The cache of the proxy.
pub(super) struct Cache {
    pub store: Arc<Store>,
    /// Keys that were requested, could not be stored or were invalidated recently.
    pub history: KeyHistory,
    /// Fetches that other requests can wait for.
    pub in_flight: Arc<InFlight>,
    /// Permits for fetches whose clients have left.
    pub background_fetches: Arc<Semaphore>,
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
    pub async fn remove(&self, entry: Arc<Entry>) {
        let store = Arc::clone(&self.store);
        // The task fails only if the removal panics or the runtime shuts down.
        let _ = tokio::task::spawn_blocking(move || store.remove(&entry)).await;
    }
}
