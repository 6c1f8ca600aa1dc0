//! Who asks for what is being fetched already waits for it, and does not fetch it once more.

use crate::CacheKey;
use crate::sync::lock;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// What is being fetched.
#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<CacheKey, watch::Receiver<End>>>);

/// How a flight has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It has not, or whoever led it has left.
    Open,
    /// It has brought what others wait for.
    Kept,
    /// It has brought what is not kept: others have to fetch it for themselves.
    NotKept,
}

/// Whether one fetches, or waits.
pub(super) enum Joined {
    /// One fetches it; others wait until this is dropped.
    Leads(Flight),
    /// It is being fetched, and this ends when that does.
    Follows(watch::Receiver<End>),
}

/// What is fetched by one for others, too. Its end wakes them.
pub(super) struct Flight {
    flights: Arc<Flights>,
    key: CacheKey,
    end: watch::Sender<End>,
}

impl Flights {
    pub fn join(self: &Arc<Flights>, key: &CacheKey) -> Joined {
        match lock(&self.0).entry(*key) {
            Entry::Occupied(flight) => Joined::Follows(flight.get().clone()),
            Entry::Vacant(place) => {
                let (end, wait) = watch::channel(End::Open);
                place.insert(wait);
                Joined::Leads(Flight { flights: Arc::clone(self), key: *key, end })
            }
        }
    }
}

impl Flight {
    /// Tells those who wait for a flight, if there is one, how it has ended.
    pub fn end(flight: Option<Flight>, end: End) {
        if let Some(flight) = flight {
            // If nobody waits nobody has to know.
            let _ = flight.end.send(end);
        }
    }

    /// Whether somebody waits for it.
    pub fn has_followers(&self) -> bool {
        // The first is that of the list.
        self.end.receiver_count() > 1
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
        let (flights, key) = (Arc::new(Flights::default()), CacheKey::from_url("http://example.org/"));
        let Joined::Leads(flight) = flights.join(&key) else { panic!("nobody leads yet") };
        assert!(!flight.has_followers());
        let Joined::Follows(end) = flights.join(&key) else { panic!("somebody leads") };
        assert!(flight.has_followers());
        assert!(end.has_changed().is_ok());
        drop(flight);
        assert!(end.has_changed().is_err() && *end.borrow() == End::Open);
        let Joined::Leads(flight) = flights.join(&key) else { panic!("nobody leads any more") };
        let Joined::Follows(end) = flights.join(&key) else { panic!("somebody leads") };
        Flight::end(Some(flight), End::NotKept);
        assert_eq!(*end.borrow(), End::NotKept);
        assert!(matches!(flights.join(&key), Joined::Leads(_)));
    }
}
