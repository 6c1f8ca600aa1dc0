//! The exchange of summaries: each peer is polled for the changes of its summary, or for its cache
//! digest.

use super::{ExchangeHealth, PeerGroup, SummaryFormat};
use crate::error::{Error, Result, chain};
use crate::proxy::body::read_to_end;
use crate::proxy::internal::SUMMARY_PATH;
use crate::rules::StoredHead;
use crate::{Applied, CacheDigest, PeerId, Update, View};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, IF_MODIFIED_SINCE, LAST_MODIFIED};
use http::{HeaderValue, Request, StatusCode, response};
use std::time::{Duration, Instant, SystemTime};
use tokio::time::{sleep, timeout};

/// The largest summary or digest that is received.
const MAX_SUMMARY_BYTES: usize = 64 << 20;
/// The largest number of bits of a summary after decompression, enough for 33 million keys.
const MAX_SUMMARY_BITS: u32 = 1 << 29;

/// The largest share of set bits. Full digests of Squid have 0.55; from here on, more than half of
/// all keys would be false positives.
const MAX_FILL: f64 = 0.85;

/// The time in which a peer must send its summary.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest lifetime of a cache digest that is accepted. Squid rebuilds its digest every hour.
const MAX_DIGEST_LIFETIME: Duration = Duration::from_secs(3600);
/// The longest pause between two requests for a digest, as a Squid that restarts rebuilds it
/// earlier.
const MAX_DIGEST_INTERVAL: Duration = Duration::from_secs(60);

/// The longest pause after exchanges that have failed. It doubles with each of them.
const MAX_FAILURE_PAUSE: Duration = Duration::from_secs(60);

/// The number of failures in a row after which the pauses become longer.
const MAX_SHORT_PAUSES: u32 = 10;

/// The number of intervals after which a view expires if it is not updated.
const VIEW_LIFETIME_INTERVALS: u32 = 3;

impl PeerGroup {
    /// Keeps the view of a peer up to date, as long as the proxy runs.
    pub async fn follow(&self, id: PeerId, interval: Duration) {
        let mut failures = 0;
        loop {
            let next = match timeout(SUMMARY_TIMEOUT, self.update_view(id, interval)).await {
                Ok(Ok(next)) => {
                    let peer = self.endpoint(id);
                    if peer.set_health(ExchangeHealth::Healthy) {
                        let responses = self.views.view(id).map_or(0, |view| view.key_count());
                        let (address, kind) = (&peer.address, peer.kind());
                        self.log
                            .line(format_args!("peer {address} ({kind}) has {responses} stored responses"));
                    }
                    failures = 0;
                    next
                }
                result => {
                    match result {
                        Ok(Err(error)) => self.report_failed_exchange(id, &chain(&error)),
                        _ => self.report_failed_exchange(id, "it is too slow"),
                    }
                    failures += 1;
                    pause_after_failures(failures, interval)
                }
            };
            sleep(next).await;
        }
    }

    fn report_failed_exchange(&self, id: PeerId, why: &str) {
        let peer = self.endpoint(id);
        if peer.set_health(ExchangeHealth::Failing) {
            self.log.line(format_args!("cannot get the summary of peer {}: {why}", peer.address));
        }
    }

    /// Requests the summary or digest of a peer and returns the time until the next request.
    async fn update_view(&self, id: PeerId, interval: Duration) -> Result<Duration> {
        match self.endpoint(id).summary_format() {
            SummaryFormat::Squid { last_modified } => self.fetch_digest(id, interval, last_modified).await,
            SummaryFormat::Umbel => match self.fetch_summary(id, interval).await {
                Ok(next) => Ok(next),
                Err(summary) => self.fetch_digest(id, interval, None).await.map_err(|digest| {
                    // An unreachable peer fails both requests with the same error; report it once.
                    if chain(&digest) == chain(&summary) {
                        return digest;
                    }
                    Error::NoSummary { summary: summary.into(), digest: digest.into() }
                }),
            },
        }
    }

    async fn fetch_summary(&self, id: PeerId, interval: Duration) -> Result<Duration> {
        let view = self.views.view(id);
        let path = match view.as_ref().and_then(|view| view.version()) {
            Some(version) => format!("{SUMMARY_PATH}?since={}.{}", version.epoch, version.generation),
            None => SUMMARY_PATH.to_owned(),
        };
        let (parts, bytes) = self.get(id, &path, None).await?;
        let content_type = parts.headers.get(CONTENT_TYPE);
        if parts.status != StatusCode::OK || content_type.is_none_or(|text| text != Update::MEDIA_TYPE) {
            return Err(Error::UnexpectedStatus { status: parts.status.as_u16(), wanted: "summary" });
        }
        let length = bytes.len() as u64;
        // Decoding a large summary takes a moment. Lookups use the previous view meanwhile.
        let decoded = tokio::task::spawn_blocking(move || {
            let update = Update::decode_bounded(&bytes, MAX_SUMMARY_BITS)?;
            let mut next = view.map_or_else(View::default, |view| (*view).clone());
            let applied = next.apply(&update)?;
            check_fill(&next)?;
            Ok::<_, Error>((applied, next))
        });
        let (applied, next) = decoded.await??;
        let expires = Instant::now() + interval * VIEW_LIFETIME_INTERVALS;
        match applied {
            Applied::Unchanged => self.views.renew_view(id, length, expires),
            Applied::Replaced | Applied::Changed(_) => self.views.set_view(id, next, length, expires),
            Applied::NeedsAllBits => {
                // The peer has restarted, or its changes do not reach back to this view. Request
                // all bits next time.
                self.views.remove_view(id);
                return Ok(interval / 10);
            }
        }
        Ok(interval)
    }

    async fn fetch_digest(
        &self,
        id: PeerId,
        interval: Duration,
        last_modified: Option<HeaderValue>,
    ) -> Result<Duration> {
        let (parts, bytes) = match self.get(id, CacheDigest::PATH, last_modified.as_ref()).await {
            Ok(response) => response,
            Err(error) => {
                // Other software may run at this address next time.
                self.endpoint(id).set_summary_format(SummaryFormat::Umbel);
                return Err(error);
            }
        };
        let now = SystemTime::now();
        let request = Request::new(()).into_parts().0;
        let head = StoredHead::from_response(&request, &parts, now);
        let lifetime = head.map_or(interval, |head| head.remaining_lifetime(now));
        let next = lifetime.clamp(interval, MAX_DIGEST_INTERVAL.max(interval));
        let view_lifetime = (lifetime.min(MAX_DIGEST_LIFETIME) + interval) * VIEW_LIFETIME_INTERVALS;
        let (length, expires) = (bytes.len() as u64, Instant::now() + view_lifetime);
        if parts.status == StatusCode::NOT_MODIFIED && last_modified.is_some() {
            self.views.renew_view(id, length, expires);
            return Ok(interval);
        }
        if parts.status != StatusCode::OK {
            self.endpoint(id).set_summary_format(SummaryFormat::Umbel);
            return Err(Error::UnexpectedStatus { status: parts.status.as_u16(), wanted: "digest" });
        }
        let view = View::from_digest(&CacheDigest::decode(&bytes)?);
        check_fill(&view)?;
        self.views.set_view(id, view, length, expires);
        let last_modified = parts.headers.get(LAST_MODIFIED).cloned();
        self.endpoint(id).set_summary_format(SummaryFormat::Squid { last_modified });
        Ok(next)
    }

    /// Sends a `GET` to a peer, with `If-Modified-Since` if there is a date, and reads the whole
    /// response.
    async fn get(
        &self,
        id: PeerId,
        path: &str,
        modified_since: Option<&HeaderValue>,
    ) -> Result<(response::Parts, Bytes)> {
        let address = &self.endpoint(id).address;
        let mut parts = Request::new(()).into_parts().0;
        parts.uri = path.parse().map_err(|_| Error::InvalidTarget("this is not a valid path"))?;
        let host =
            address.to_string().parse().map_err(|_| Error::InvalidTarget("this is not a valid host"))?;
        parts.headers.insert(HOST, host);
        if let Some(date) = modified_since {
            parts.headers.insert(IF_MODIFIED_SINCE, date.clone());
        }
        let mut response = self.upstream.send_to_peer(address, &parts).await?;
        if response.len().is_some_and(|len| len > MAX_SUMMARY_BYTES as u64) {
            return Err(Error::TooLarge { max: MAX_SUMMARY_BYTES as u64 });
        }
        let body = read_to_end(&mut response.incoming, MAX_SUMMARY_BYTES).await?;
        response.lease.give_back();
        Ok((response.parts, body))
    }
}

/// Fails if a view contains so many keys that it is useless: nearly every request would be sent to
/// the peer in vain.
fn check_fill(view: &View) -> Result<()> {
    let Some(filter) = view.filter() else { return Ok(()) };
    let fill = filter.words().count_ones() as f64 / filter.scheme().m() as f64;
    if fill <= MAX_FILL {
        return Ok(());
    }
    Err(Error::malformed("summary", format!("{:.0} % of its bits are set", 100.0 * fill)))
}

/// Returns the pause after this number of failures in a row. The first few are short: the peer may
/// be starting.
fn pause_after_failures(failures: u32, interval: Duration) -> Duration {
    let doublings = failures.saturating_sub(MAX_SHORT_PAUSES).min(16);
    interval.saturating_mul(1 << doublings).min(MAX_FAILURE_PAUSE.max(interval))
}
