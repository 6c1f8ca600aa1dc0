//! A page is asked for: it is in the cache, or is fetched by one for all who want it now.

use super::body::Body;
use super::flights::Joined;
use super::hit;
use super::pool::Reach;
use super::service::{Service, sentence};
use super::target::Page;
use crate::rules::{Known, Reuse};
use crate::store::Entry;
use http::header::{CACHE_CONTROL, RANGE};
use http::{HeaderMap, Method, Response, StatusCode, request};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::timeout;

/// A question for a page.
pub(super) struct Question {
    pub parts: request::Parts,
    pub page: Page,
    pub reach: Reach,
    /// Whether the answer may be that of somebody else's question: it is about the whole page.
    pub plain: bool,
}

/// A document that may be given.
pub(super) struct Found {
    pub entry: Arc<Entry>,
    pub known: Arc<Known>,
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
        page: Page,
        reach: Reach,
    ) -> Response<Body> {
        let plain = parts.method == Method::GET && !parts.headers.contains_key(RANGE);
        let question = Question { parts, page, reach, plain };
        let here = self.find(&question);
        match here {
            Here::Denied => self.counts.filter_denied.one(),
            Here::Absent => self.counts.filter_false_hits.one(),
            _ => {}
        }
        let mut stale = match self.give_if_fresh(&question, here).await {
            Ok(response) => return response,
            Err(stale) => stale,
        };
        if is_told(&question.parts.headers, "only-if-cached") {
            self.counts.only_if_cached.one();
            return sentence(StatusCode::GATEWAY_TIMEOUT, "this is not in the cache");
        }
        let mut flight = None;
        if question.plain && !self.admission.is_passed(&question.page.key) {
            let joined = self.flights.join(&question.page.key);
            let waits = matches!(joined, Joined::Follows(_));
            match joined {
                Joined::Leads(lead) => flight = Some(lead),
                Joined::Follows(mut end) => {
                    self.counts.collapsed.one();
                    // It ends with an error, since nothing is ever sent, or is not waited for any longer.
                    let _ = timeout(self.limits.patience, end.changed()).await;
                }
            }
            // Somebody may have brought it meanwhile.
            stale = match self.give_if_fresh(&question, self.find(&question)).await {
                Ok(response) => return response,
                Err(stale) => stale,
            };
            // Nobody waits twice, but others may wait for whoever has waited in vain.
            if waits && let Joined::Leads(lead) = self.flights.join(&question.page.key) {
                flight = Some(lead);
            }
        }
        self.fetch(question, stale, flight).await
    }

    /// What the cache has for a question. The filter is asked before the index.
    fn find(&self, question: &Question) -> Here {
        if !self.store.may_have(&question.page.key) {
            return Here::Denied;
        }
        let now = SystemTime::now();
        let mut here = Here::Absent;
        for entry in self.store.find(&question.page.key) {
            let Some(known) = entry.known() else {
                self.store.remove(&entry);
                continue;
            };
            match known.reuse(&question.parts, now) {
                Reuse::Fresh => return Here::Fresh(Found { entry, known }),
                Reuse::Stale(asking) => here = Here::Stale(Stale { found: Found { entry, known }, asking }),
                Reuse::Other if matches!(here, Here::Absent) => here = Here::Other,
                Reuse::Other => {}
            }
        }
        here
    }

    /// Gives what is fresh, unless it turns out to be damaged; or what is stale.
    async fn give_if_fresh(&self, question: &Question, here: Here) -> Result<Response<Body>, Option<Stale>> {
        match here {
            Here::Fresh(found) => {
                let response = hit::answer(self, question, &found, "umbel;hit").await.ok_or(None)?;
                self.counts.hits.one();
                Ok(response)
            }
            Here::Stale(stale) => Err(Some(stale)),
            Here::Other | Here::Absent | Here::Denied => Err(None),
        }
    }
}

/// Whether whoever asks says this about the cache.
pub(super) fn is_told(headers: &HeaderMap, what: &str) -> bool {
    let mut values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.split(',').any(|word| word.trim().eq_ignore_ascii_case(what)))
}
