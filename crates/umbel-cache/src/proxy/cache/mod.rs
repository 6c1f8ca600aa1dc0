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
use tokio::sync::{RwLock, Semaphore};

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
    /// Read-locked by each task that writes to the store.
    writes: Arc<RwLock<()>>,
}

impl Cache {
    pub fn new(store: Store, policy: AdmissionPolicy) -> Result<Cache> {
        Ok(Cache {
            store: Arc::new(store),
            history: KeyHistory::new(policy)?,
            in_flight: Arc::default(),
            background_fetches: Arc::new(Semaphore::new(MAX_BACKGROUND_FETCHES)),
            writes: Arc::default(),
        })
    }

    /// Spawns a task that writes a response to the store. It may outlive the response to the client,
    /// which is complete before the last bytes are on disk.
    fn spawn_write(&self, write: impl Future<Output = ()> + Send + 'static) {
        // The lock is not free if the proxy is about to end. The task then has the time that is left.
        let lock = Arc::clone(&self.writes).try_read_owned();
        tokio::spawn(async move {
            write.await;
            drop(lock);
        });
    }

    /// Completes when no task writes to the store.
    pub async fn all_written(&self) {
        drop(self.writes.write().await);
    }

    /// Removes an entry from the store.
    async fn remove(&self, entry: Arc<Entry>) {
        let store = Arc::clone(&self.store);
        // The task fails only if the removal panics or the runtime shuts down.
        let _ = tokio::task::spawn_blocking(move || store.remove(&entry)).await;
    }
}
