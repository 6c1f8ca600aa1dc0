//! Collapsed requests: while one request fetches a response, others for the same key wait for it
//! (RFC 9111, section 4).

use crate::CacheKey;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use umbel::internals::sync::lock;

/// The fetches that are under way, by key.
#[derive(Default)]
pub(super) struct InFlight(Mutex<HashMap<CacheKey, watch::Receiver<FetchOutcome>>>);

/// The outcome of a fetch for the requests that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchOutcome {
    /// The fetch is under way, or its leader has given up.
    Pending,
    /// The response is stored.
    Stored,
    /// The response is not stored, so each request has to fetch it itself.
    NotStored,
}

/// The role of a request in a fetch.
pub(super) enum Role {
    /// The request fetches the response. Others wait until the handle is dropped.
    Leader(FetchLead),
    /// Another request fetches the response, and this receiver is notified when that ends.
    Follower(watch::Receiver<FetchOutcome>),
}

/// The handle of the request that leads a fetch. Dropping it wakes the followers.
pub(super) struct FetchLead {
    in_flight: Arc<InFlight>,
    key: CacheKey,
    outcome: watch::Sender<FetchOutcome>,
}

impl InFlight {
    /// Joins the fetch of a key, or starts one.
    pub fn join(self: &Arc<InFlight>, key: &CacheKey) -> Role {
        match lock(&self.0).entry(*key) {
            Entry::Occupied(fetch) => Role::Follower(fetch.get().clone()),
            Entry::Vacant(vacant) => {
                let (outcome, receiver) = watch::channel(FetchOutcome::Pending);
                vacant.insert(receiver);
                Role::Leader(FetchLead { in_flight: Arc::clone(self), key: *key, outcome })
            }
        }
    }
}

impl FetchLead {
    /// Ends a fetch, if this request leads one, and reports its outcome to the followers.
    pub fn end(lead: Option<FetchLead>, outcome: FetchOutcome) {
        if let Some(lead) = lead {
            // An error means that there are no followers.
            let _ = lead.outcome.send(outcome);
        }
    }

    /// Returns whether other requests wait for this fetch.
    pub fn has_followers(&self) -> bool {
        // One receiver is in the table.
        self.outcome.receiver_count() > 1
    }
}

impl Drop for FetchLead {
    fn drop(&mut self) {
        lock(&self.in_flight.0).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_leads_and_others_wait_until_it_ends() {
        let (in_flight, key) = (Arc::new(InFlight::default()), CacheKey::from_url("http://example.org/"));
        let Role::Leader(lead) = in_flight.join(&key) else { panic!("nobody leads yet") };
        assert!(!lead.has_followers());
        let Role::Follower(outcome) = in_flight.join(&key) else { panic!("somebody leads") };
        assert!(lead.has_followers());
        assert!(outcome.has_changed().is_ok());
        drop(lead);
        assert!(outcome.has_changed().is_err() && *outcome.borrow() == FetchOutcome::Pending);
        let Role::Leader(lead) = in_flight.join(&key) else { panic!("nobody leads any more") };
        let Role::Follower(outcome) = in_flight.join(&key) else { panic!("somebody leads") };
        FetchLead::end(Some(lead), FetchOutcome::NotStored);
        assert_eq!(*outcome.borrow(), FetchOutcome::NotStored);
        assert!(matches!(in_flight.join(&key), Role::Leader(_)));
    }
}
