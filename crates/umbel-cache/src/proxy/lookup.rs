//! A page is asked for: it is in the cache, or is fetched by one for all who want it now.

use super::body::Body;
use super::hit;
use super::in_flight::{FetchOutcome, Role};
use super::reach::Reach;
use super::service::{Service, sentence};
use super::target::Resource;
use crate::rules::{Audience, Reuse, StoredHead, has_directive};
use crate::store::{Entry, InvalidationCount};
use http::header::{AUTHORIZATION, PRAGMA, RANGE};
use http::{Method, Response, StatusCode, request};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::{Instant, timeout_at};

/// A question for a page.
pub(super) struct Question {
    pub parts: request::Parts,
    pub resource: Resource,
    pub reach: Reach,
    /// Whether it is one that many may ask: it is about the whole page, and not for somebody himself, nor anew.
    pub common: bool,
    /// What is fetched for it is not kept if the page was changed since.
    pub invalidations: InvalidationCount,
}

/// A document that may be given.
pub(super) struct Found {
    pub entry: Arc<Entry>,
    pub known: Arc<StoredHead>,
}

/// A document of which the origin has to be asked, so, whether it still holds.
pub(super) struct Stale {
    pub found: Found,
    pub asking: Box<request::Parts>,
}

/// What the cache has.
enum Here {
    Fresh(Found),
    Stale(Stale),
    /// Answers to other questions.
    Other,
    /// Nothing, although the filter before the index said yes.
    Absent,
    /// Nothing, says the filter.
    Denied,
}

impl Service {
    /// Answers from the cache, or fetches.
    pub async fn look_up(
        self: &Arc<Service>,
        parts: request::Parts,
        resource: Resource,
        reach: Reach,
    ) -> Response<Body> {
        let plain = parts.method == Method::GET && !parts.headers.contains_key(RANGE);
        let invalidations = self.store.invalidation_count(&resource.key);
        let own = parts.headers.contains_key(AUTHORIZATION)
            || parts.headers.contains_key(PRAGMA)
            || ["no-cache", "no-store", "max-age=0"].iter().any(|what| has_directive(&parts.headers, what));
        let question = Question { parts, resource, reach, common: plain && !own, invalidations };
        let here = self.find(&question);
        match here {
            Here::Denied => self.counters.filter_denied.increment(),
            Here::Absent => self.counters.filter_false_hits.increment(),
            _ => {}
        }
        let mut stale = match self.give_if_fresh(&question, here).await {
            Ok(response) => return response,
            Err(stale) => stale,
        };
        if has_directive(&question.parts.headers, "only-if-cached") {
            self.counters.only_if_cached.increment();
            return sentence(StatusCode::GATEWAY_TIMEOUT, "this is not in the cache");
        }
        let (mut lead, mut waits) = (None, false);
        let until = Instant::now() + self.limits.collapse_timeout;
        while lead.is_none() && question.common && !self.history.is_uncacheable(&question.resource.key) {
            match self.in_flight.join(&question.resource.key) {
                Role::Leader(handle) => lead = Some(handle),
                Role::Follower(mut outcome) => {
                    if !std::mem::replace(&mut waits, true) {
                        self.counters.collapsed.increment();
                    }
                    let late = timeout_at(until, outcome.changed()).await.is_err();
                    if late || *outcome.borrow() == FetchOutcome::NotStored {
                        break;
                    }
                }
            }
            // Somebody may have brought it meanwhile. If he has left, one of those who have waited fetches it.
            stale = match self.give_if_fresh(&question, self.find(&question)).await {
                Ok(response) => return response,
                Err(stale) => stale,
            };
        }
        self.fetch(question, stale, lead).await
    }

    /// What the cache has for a question. The filter is asked before the index.
    fn find(&self, question: &Question) -> Here {
        if !self.store.may_contain(&question.resource.key) {
            return Here::Denied;
        }
        let now = SystemTime::now();
        let (mut here, mut latest) = (Here::Absent, SystemTime::UNIX_EPOCH);
        for entry in self.store.find(&question.resource.key) {
            let Some(known) = entry.head() else {
                self.store.remove(&entry);
                continue;
            };
            let reuse = match (known.audience(), question.reach) {
                // Who comes from elsewhere does not get what is for this machine.
                (Audience::Localhost, Reach::RemoteOnly) => Reuse::Mismatch,
                _ => known.reuse(&question.parts, now),
            };
            // Of several that fit the latest counts.
            let is_latest = known.received_at() >= latest;
            match reuse {
                Reuse::Mismatch if matches!(here, Here::Absent) => here = Here::Other,
                Reuse::Fresh if is_latest => {
                    latest = known.received_at();
                    here = Here::Fresh(Found { entry, known });
                }
                Reuse::Stale(asking) if is_latest => {
                    latest = known.received_at();
                    here = Here::Stale(Stale { found: Found { entry, known }, asking });
                }
                _ => {}
            }
        }
        here
    }

    /// Gives what is fresh, unless it turns out to be damaged; or what is stale.
    async fn give_if_fresh(&self, question: &Question, here: Here) -> Result<Response<Body>, Option<Stale>> {
        match here {
            Here::Fresh(found) => {
                let response = hit::answer(self, question, &found, "umbel;hit").await.ok_or(None)?;
                self.counters.hits.increment();
                Ok(response)
            }
            Here::Stale(stale) => Err(Some(stale)),
            Here::Other | Here::Absent | Here::Denied => Err(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::super::target::Target;
    use super::*;
    use crate::store::{self, Store};
    use http::{Request, Response as Answer};

    /// A page that came from this machine is for those who are on it, also when it was kept.
    #[test]
    fn who_comes_from_elsewhere_does_not_get_what_was_kept_of_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &store::Options::default()).unwrap();
        let service = Service::new(store, &Options::default()).unwrap();
        let ask = |path: &str, reach| {
            let uri = format!("http://127.0.0.1:8080/{path}");
            let parts = Request::get(uri).body(()).unwrap().into_parts().0;
            let Ok(Target::Resource(resource)) = Target::from_request(&parts) else { panic!("a page") };
            let invalidations = service.store.invalidation_count(&resource.key);
            Question { parts, resource, reach, common: true, invalidations }
        };
        let said = Answer::builder().header("cache-control", "max-age=60").body(()).unwrap().into_parts().0;
        for (path, scope) in [("secret", Audience::Localhost), ("public", Audience::Everyone)] {
            let question = ask(path, Reach::Anywhere);
            let known = StoredHead::from_response(&question.parts, &said, SystemTime::now())
                .unwrap()
                .with_audience(scope);
            service.store.begin(&question.resource.key, 0).commit(known.encode()).unwrap();
        }
        let is_given = |path, reach| matches!(service.find(&ask(path, reach)), Here::Fresh(_));
        assert!(is_given("secret", Reach::Anywhere) && is_given("public", Reach::RemoteOnly));
        assert!(!is_given("secret", Reach::RemoteOnly));
    }
}
