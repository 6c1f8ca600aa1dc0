//! Who asks for what is being fetched already waits for it, and does not fetch it once more.

use crate::Key;
use crate::sync::lock;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// What is being fetched.
#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<Key, Known>>);

/// A flight, to those who do not lead it.
struct Known {
    end: watch::Receiver<()>,
    void: Arc<AtomicBool>,
}

/// Whether one fetches, or waits.
pub(super) enum Joined {
    /// One fetches it; others wait until this is dropped.
    Leads(Flight),
    /// It is being fetched, and this ends when that does.
    Follows(watch::Receiver<()>),
}

/// What is fetched by one for others, too. Its end wakes them.
pub(super) struct Flight {
    flights: Arc<Flights>,
    key: Key,
    end: watch::Sender<()>,
    void: Arc<AtomicBool>,
}

impl Flights {
    pub fn join(self: &Arc<Flights>, key: &Key) -> Joined {
        match lock(&self.0).entry(*key) {
            Entry::Occupied(flight) => Joined::Follows(flight.get().end.clone()),
            Entry::Vacant(place) => {
                let (end, wait) = watch::channel(());
                let void = Arc::new(AtomicBool::new(false));
                place.insert(Known { end: wait, void: Arc::clone(&void) });
                Joined::Leads(Flight { flights: Arc::clone(self), key: *key, end, void })
            }
        }
    }

    /// Notes that what is being fetched may have changed meanwhile, and is not to be kept.
    pub fn void(&self, key: &Key) {
        if let Some(known) = lock(&self.0).get(key) {
            known.void.store(true, Relaxed);
        }
    }
}

impl Flight {
    /// Whether somebody waits for it.
    pub fn has_followers(&self) -> bool {
        // The first is that of the list.
        self.end.receiver_count() > 1
    }

    /// Whether what it brings may have changed meanwhile.
    pub fn is_void(&self) -> bool {
        self.void.load(Relaxed)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        lock(&self.flights.0).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leads_and_others_wait_until_it_ends() {
        let (flights, key) = (Arc::new(Flights::default()), Key::get("http://example.org/"));
        let Joined::Leads(flight) = flights.join(&key) else { panic!("nobody leads yet") };
        assert!(!flight.has_followers() && !flight.is_void());
        let Joined::Follows(end) = flights.join(&key) else { panic!("somebody leads") };
        assert!(flight.has_followers());
        flights.void(&Key::get("http://example.org/other"));
        assert!(!flight.is_void());
        flights.void(&key);
        assert!(flight.is_void() && end.has_changed().is_ok());
        drop(flight);
        assert!(end.has_changed().is_err());
        assert!(matches!(flights.join(&key), Joined::Leads(_)));
    }
}
