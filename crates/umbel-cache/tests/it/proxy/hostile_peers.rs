//! Peers that lie: their responses are confirmed by the origin before they are reused, and their
//! summaries cost little.

use crate::client::{Connection, ask, get};
use crate::origin::{Origin, Reply, Request, response};
use crate::proxy::proxy;
use crate::running::Running;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};
use umbel_cache::proxy::{Limits, Options};
use umbel_cache::{CacheDigest, CacheKey, Summary, Update};

fn options(peer: SocketAddr) -> Options {
    Options {
        peers: vec![format!("http://{peer}").parse().unwrap()],
        summary_interval: Duration::from_millis(100),
        limits: Limits { peer_timeout: Duration::from_secs(2), ..Limits::default() },
        ..Options::default()
    }
}

/// Starts a peer with this summary, which answers requests for pages with `does`.
fn peer(summary: Vec<u8>, does: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Origin {
    Origin::start(move |request| match request.path() {
        path if path.starts_with("/umbel/summary") => {
            let kind = format!("Content-Type: {}", Update::MEDIA_TYPE);
            Reply::Send(response("200 OK", &[&kind], &summary))
        }
        CacheDigest::PATH => Reply::Send(response("404 Not Found", &[], b"")),
        _ => does(request),
    })
}

fn summary(urls: &[&str]) -> Vec<u8> {
    let mut summary = Summary::new(100, 16).unwrap();
    urls.iter().for_each(|url| summary.insert(&CacheKey::from_url(url)));
    summary.publish().unwrap();
    summary.update(None).encode()
}

/// Starts an origin that says "honest" and confirms its own entity tag only.
fn honest() -> Origin {
    Origin::start(|request| match request.header("if-none-match") {
        Some("\"honest\"") => Reply::Send(b"HTTP/1.1 304 Not Modified\r\nETag: \"honest\"\r\n\r\n".to_vec()),
        _ => Reply::Send(response("200 OK", &["Cache-Control: max-age=60", "ETag: \"honest\""], b"honest")),
    })
}

#[test]
fn a_response_of_a_peer_is_confirmed_by_the_origin_before_it_is_reused() {
    for tag in [None, Some("ETag: \"forged\""), Some("Last-Modified: Mon, 16 Nov 2026 10:00:00 GMT")] {
        let origin = honest();
        let url = origin.url("/page");
        let liar = peer(summary(&[&url]), move |_| {
            let mut headers = vec!["Cache-Control: public, max-age=31536000, immutable"];
            headers.extend(tag);
            Reply::Send(response("200 OK", &headers, b"forged"))
        });
        let (_folder, proxy) = proxy(options(liar.address));
        proxy.wait_for_documents(1);
        assert_eq!(get(proxy.address, &url).text(), "forged", "the first client trusts the peer");
        proxy.wait(|stats| stats["stored"] == 1);
        // It is not passed on to other caches, and not reused.
        assert_eq!(ask(proxy.address, "GET", &url, &[("Cache-Control", "only-if-cached")]).status, 504);
        for _ in 0..3 {
            assert_eq!(get(proxy.address, &url).text(), "honest", "{tag:?}");
        }
        proxy.wait(|stats| stats["hits"].as_u64() >= Some(1));
        assert_eq!(origin.requests().len(), 1, "{tag:?}");
    }
}

#[test]
fn a_confirmed_response_of_a_peer_is_reused() {
    let origin = honest();
    let url = origin.url("/page");
    let peer = peer(summary(&[&url]), |_| {
        Reply::Send(response("200 OK", &["Cache-Control: max-age=31536000", "ETag: \"honest\""], b"honest"))
    });
    let (folder, proxy) = proxy(options(peer.address));
    proxy.wait_for_documents(1);
    assert!(get(proxy.address, &url).cache().contains("peer"));
    proxy.wait(|stats| stats["stored"] == 1);
    assert_eq!(get(proxy.address, &url).cache(), "umbel;hit;fwd=stale;fwd-status=304");
    for _ in 0..3 {
        let hit = get(proxy.address, &url);
        assert_eq!(hit.cache(), "umbel;hit");
        assert!(remaining(&hit, 31_536_000) <= 600, "{hit:?}");
    }
    assert_eq!(origin.requests().len(), 1);
    // A restart forgets neither the source nor the confirmation.
    drop(proxy);
    let proxy = Running::start(folder.path(), Options::default());
    let hit = get(proxy.address, &url);
    assert_eq!(hit.cache(), "umbel;hit");
    assert!(remaining(&hit, 31_536_000) <= 600, "{hit:?}");
}

/// Returns how long a client may reuse a response with this lifetime.
fn remaining(response: &crate::client::Response, lifetime: u64) -> u64 {
    lifetime.saturating_sub(response.header("age").unwrap().parse::<u64>().unwrap())
}

#[test]
fn a_response_of_a_peer_is_confirmed_after_a_restart_too() {
    let origin = honest();
    let url = origin.url("/page");
    let liar = peer(summary(&[&url]), |_| {
        Reply::Send(response("200 OK", &["Cache-Control: max-age=600", "ETag: \"forged\""], b"forged"))
    });
    let (folder, proxy) = proxy(options(liar.address));
    proxy.wait_for_documents(1);
    assert_eq!(get(proxy.address, &url).text(), "forged");
    proxy.wait(|stats| stats["stored"] == 1);
    drop(proxy);
    let proxy = Running::start(folder.path(), Options::default());
    assert_eq!(proxy.stats()["store"]["documents"], 1);
    assert_eq!(get(proxy.address, &url).text(), "honest");
}

/// A peer cannot make clients keep its responses for years, whatever it says about their age.
#[test]
fn clients_may_reuse_a_response_of_a_peer_for_ten_minutes_at_most() {
    let date = |seconds: i64| {
        let now = SystemTime::now();
        let time = if seconds < 0 {
            now - Duration::from_secs(seconds.unsigned_abs())
        } else {
            now + Duration::from_secs(seconds.unsigned_abs())
        };
        httpdate::fmt_http_date(time)
    };
    let year = 31_536_000;
    for (lifetime, headers) in [
        (year, vec!["Cache-Control: max-age=31536000".to_owned()]),
        (year, vec!["Cache-Control: max-age=31536000, immutable".to_owned(), "Age: 0".to_owned()]),
        (year, vec!["Cache-Control: max-age=31536000, s-maxage=60".to_owned()]),
        (year, vec!["Cache-Control: max-age=31536000".to_owned(), format!("Date: {}", date(86_400))]),
        (year, vec!["Cache-Control: max-age=31536000".to_owned(), "Age: -5".to_owned()]),
        (2 * year, vec![format!("Date: {}", date(-5)), format!("Expires: {}", date(2 * 31_536_000 - 5))]),
        (400, vec!["Cache-Control: max-age=400".to_owned(), "Age: 100".to_owned()]),
    ] {
        let origin = honest();
        let url = origin.url("/page");
        let sent = headers.clone();
        let liar = peer(summary(&[&url]), move |_| {
            let headers: Vec<&str> = sent.iter().map(String::as_str).collect();
            Reply::Send(response("200 OK", &headers, b"forged"))
        });
        let (_folder, proxy) = proxy(options(liar.address));
        proxy.wait_for_documents(1);
        let response = get(proxy.address, &url);
        if response.text() == "forged" {
            assert!(remaining(&response, lifetime) <= 600, "{headers:?}: {response:?}");
        }
        if lifetime == 400 {
            assert_eq!(response.text(), "forged");
            assert!((290..=300).contains(&remaining(&response, lifetime)), "{response:?}");
        }
    }
}

/// Returns a summary in which every bit is set.
fn promises_everything() -> Vec<u8> {
    let mut summary = Summary::new(64, 16).unwrap();
    (0..20_000).for_each(|i| summary.insert(&CacheKey::from_url(&format!("http://x/{i}"))));
    summary.publish().unwrap();
    summary.update(None).encode()
}

#[test]
fn a_summary_that_promises_everything_is_ignored() {
    let origin = honest();
    let liar = peer(promises_everything(), |_| Reply::Send(response("504 Gateway Timeout", &[], b"")));
    let (_folder, proxy) = proxy(options(liar.address));
    proxy.wait(|_| proxy.log().contains("of its bits are set"));
    for i in 0..20 {
        assert_eq!(get(proxy.address, &origin.url(&format!("/{i}"))).text(), "honest");
    }
    assert_eq!(proxy.stats()["peers"][0]["asked"], 0);
}

/// A peer that promises much and has nothing is asked once in a while only.
#[test]
fn false_promises_in_a_row_pause_requests_to_a_peer() {
    let origin = honest();
    let urls: Vec<String> = (0..300).map(|i| origin.url(&format!("/{i}"))).collect();
    let mut promised = Summary::new(1000, 16).unwrap();
    urls.iter().for_each(|url| promised.insert(&CacheKey::from_url(url)));
    promised.publish().unwrap();
    let liar =
        peer(promised.update(None).encode(), |_| Reply::Send(response("504 Gateway Timeout", &[], b"")));
    let (_folder, proxy) = proxy(options(liar.address));
    proxy.wait_for_documents(300);
    let (mut connection, start) = (Connection::open(proxy.address), Instant::now());
    for url in &urls {
        assert_eq!(connection.ask("GET", url, &[], b"").text(), "honest");
    }
    let asked = proxy.stats()["peers"][0]["asked"].as_u64().unwrap();
    // After a hundred the pauses are 1, 2, 4, ... seconds long.
    let pauses = u64::from((start.elapsed().as_secs() + 2).ilog2()) + 1;
    assert!((100..=101 + pauses).contains(&asked), "{asked} requests in {:?}", start.elapsed());
}

/// A summary that claims to be huge is refused before it is received or decompressed.
#[test]
fn huge_summaries_are_refused_before_they_take_memory() {
    let endless = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-umbel-summary\r\nContent-Length: 99999999999\r\n\r\n";
    let mut bomb = Vec::from(*b"UMSU\x01\x02");
    bomb.extend([0; 24]);
    bomb.extend((1u32 << 31).to_le_bytes());
    // Enough bytes for a ratio of 64, although they are not compressed data.
    bomb.resize(bomb.len() + (1 << 22), 0xee);
    bomb.extend(umbel::file::fields::sum(&bomb).to_le_bytes());
    for (bytes, why) in [
        (endless.to_vec(), "it has more than"),
        (
            response("200 OK", &["Content-Type: application/x-umbel-summary"], &bomb),
            "bits, and at most 536870912 are accepted",
        ),
    ] {
        let times = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&times);
        let liar = Origin::start(move |request| match request.path() {
            path if path.starts_with("/umbel/summary") => {
                counted.fetch_add(1, SeqCst);
                Reply::SendAndClose(bytes.clone(), Duration::ZERO)
            }
            _ => Reply::Send(response("404 Not Found", &[], b"")),
        });
        let origin = honest();
        let (_folder, proxy) = proxy(options(liar.address));
        proxy.wait(|_| proxy.log().contains(why));
        assert_eq!(get(proxy.address, &origin.url("/page")).text(), "honest");
        // After some failures the pauses get longer.
        proxy.wait(|_| times.load(SeqCst) >= 10);
        let before = times.load(SeqCst);
        std::thread::sleep(Duration::from_secs(1));
        assert!(times.load(SeqCst) - before <= 4, "{} more", times.load(SeqCst) - before);
    }
}
