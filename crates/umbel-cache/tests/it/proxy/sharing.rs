//! Proxies that share their responses: a response is always that of the origin, whichever cache
//! sends it, and peers cost little.

use crate::client::{Connection, Response, ask, get};
use crate::origin::{Origin, Reply, Request, chunked, response};
use crate::running::Running;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use umbel_cache::proxy::{Limits, Options};
use umbel_cache::{CacheDigest, CacheKey, Summary, Update};

/// Returns options with short intervals, so that tests are fast.
fn options(peers: &[SocketAddr]) -> Options {
    let peers = peers.iter().map(|peer| format!("http://{peer}").parse().unwrap()).collect();
    let limits = Limits { peer_timeout: LIMIT, ..Limits::default() };
    Options { peers, summary_interval: Duration::from_millis(100), limits, ..Options::default() }
}

const LIMIT: Duration = Duration::from_millis(400);

/// Returns unused addresses.
fn free<const N: usize>() -> [SocketAddr; N] {
    let taken: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    taken.map(|listener| listener.local_addr().unwrap())
}

fn small_pages() -> Origin {
    Origin::start(|request| {
        let headers = ["Cache-Control: max-age=60", "ETag: \"x\""];
        if request.header("if-none-match") == Some("\"x\"") {
            return Reply::Send(b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_vec());
        }
        Reply::Send(response("200 OK", &headers, &request.path().as_bytes().repeat(100)))
    })
}

#[test]
fn responses_that_a_peer_has_are_fetched_from_it() {
    let origin = small_pages();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = Running::start(one.path(), options(&[]));
    let second = Running::start(two.path(), options(&[first.address]));
    let paths: Vec<String> = (0..100).map(|i| format!("/{i}")).collect();
    for path in &paths {
        assert_eq!(get(first.address, &origin.url(path)).text(), path.repeat(100));
    }
    second.wait_for_documents(100);
    for path in &paths {
        let response = get(second.address, &origin.url(path));
        assert_eq!((response.status, response.text()), (200, path.repeat(100)));
        assert!(response.cache().contains("detail=\"peer "), "{}", response.cache());
        assert!(response.header("age").is_some());
    }
    assert_eq!(origin.requests().len(), 100);
    assert_eq!(second.count("peer_hits"), 100);
    // The second proxy has stored the responses itself. The origin confirms each of them once.
    drop(first);
    for _ in 0..2 {
        for path in &paths {
            assert_eq!(get(second.address, &origin.url(path)).text(), path.repeat(100));
        }
    }
    assert_eq!(origin.requests().len(), 200);
    assert!(origin.requests()[100..].iter().all(|request| request.header("if-none-match").is_some()));
    assert_eq!((second.count("revalidated"), second.count("hits")), (100, 100));
    let stats = second.stats();
    assert_eq!(stats["bytes_saved"].as_u64(), Some(3 * (100 * 100 * 3 - 10 * 100)));
}

/// Returns a page with one of all caching rules. Its contents depend on all request headers that
/// they may depend on.
fn page(request: &Request) -> Vec<u8> {
    let path = request.path();
    let number: usize = path.rsplit('/').next().unwrap().parse().unwrap();
    let (said, varies): (&[&str], &[&str]) = match number % 16 {
        0 => (&["Cache-Control: public, max-age=3600"], &[]),
        1 => (&["Cache-Control: no-store"], &["cookie"]),
        2 => (&["Cache-Control: private, max-age=3600"], &["cookie", "authorization"]),
        3 => (&["Cache-Control: max-age=3600", "Vary: Accept-Language"], &["accept-language"]),
        4 => (&["Cache-Control: max-age=0, must-revalidate", "ETag: \"v\""], &[]),
        5 => (&["Cache-Control: no-cache", "ETag: \"v\""], &[]),
        6 => (&["Cache-Control: s-maxage=3600, max-age=0"], &[]),
        7 => (&["Cache-Control: max-age=3600"], &["authorization"]),
        8 => (&["Last-Modified: Mon, 16 Nov 2020 10:00:00 GMT"], &[]),
        9 => (&["Cache-Control: max-age=3600", "Set-Cookie: name=1"], &["cookie"]),
        10 => (&["Cache-Control: max-age=3600", "Vary: *"], &["cookie", "accept-language"]),
        11 => (&["Expires: Thu, 01 Jan 1970 00:00:00 GMT"], &[]),
        12 => (
            &["Cache-Control: max-age=3600", "Vary: Accept-Language, Cookie"],
            &["accept-language", "cookie"],
        ),
        13 => (&["Cache-Control: max-age=3600", "Age: 4000", "ETag: \"v\""], &[]),
        14 => (&["Cache-Control: public, max-age=3600", "ETag: \"v\""], &[]),
        _ => (&["Cache-Control: max-age=1"], &[]),
    };
    if request.header("if-none-match") == Some("\"v\"") && said.contains(&"ETag: \"v\"") {
        let lines: String = said.iter().map(|line| format!("{line}\r\n")).collect();
        return format!("HTTP/1.1 304 Not Modified\r\n{lines}\r\n").into_bytes();
    }
    // A request without credentials gets no page, and no client gets a page of another.
    if number % 16 == 7 && request.header("authorization").is_none() {
        return response("401 Unauthorized", &["WWW-Authenticate: Basic"], b"who are you?");
    }
    let mut body = format!("{path}:{number}\n").repeat(1 + number * 7 % 300);
    for name in varies {
        body.push_str(&format!("{name}: {}\n", request.header(name).unwrap_or("none")));
    }
    match number % 40 {
        39 => response("404 Not Found", said, body.as_bytes()),
        38 => response("301 Moved Permanently", &[said, &["Location: /0"]].concat(), body.as_bytes()),
        37 => {
            // One chunk per line.
            chunked(said, body.as_bytes().split_inclusive(|byte| *byte == b'\n'))
        }
        _ => response("200 OK", said, body.as_bytes()),
    }
}

/// Returns the parts of a response that do not depend on its path through caches.
fn essence(response: Response) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let passing = [
        "via",
        "cache-status",
        "age",
        "date",
        "content-length",
        "transfer-encoding",
        "accept-ranges",
        "connection",
    ];
    let mut headers = response.headers;
    headers.retain(|(name, _)| !passing.contains(&name.to_ascii_lowercase().as_str()));
    headers.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
    headers.sort();
    assert!(response.whole);
    (response.status, headers, response.body)
}

/// Returns pseudo-random numbers, the same in every run.
fn chance(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// Two proxies that share and one that is alone get the same 10 000 requests, for pages with every
/// caching rule and from different clients. Every response must be the one that the origin would
/// send to this client.
#[test]
fn ten_thousand_requests_get_the_same_responses_with_and_without_sharing() {
    let origin = Origin::start(|request| Reply::Send(page(request)));
    let folders: [_; 3] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let [one, two] = free();
    let first = Running::at(one, folders[0].path(), options(&[two]));
    let second = Running::at(two, folders[1].path(), options(&[one]));
    let alone = Running::start(folders[2].path(), options(&[]));
    let mut connections = [&first, &second, &alone].map(|proxy| Connection::open(proxy.address));
    let mut direct = Connection::open(origin.address);
    let mut state = 7;
    for question in 0..10_000 {
        // Some pages are requested often, and all of them sometimes.
        let number = (chance(&mut state) % 640).min(chance(&mut state) % 640);
        let url = origin.url(&format!("/page/{number}"));
        let mut headers = Vec::new();
        let languages = ["de", "en", "pl"];
        for (name, values) in [
            ("Accept-Language", &languages[..]),
            ("Cookie", &["a=1", "a=2"]),
            ("Authorization", &["Basic eA=="]),
        ] {
            let which = chance(&mut state) as usize % (values.len() + 3);
            if let Some(value) = values.get(which) {
                headers.push((name, *value));
            }
        }
        let whom = (chance(&mut state) % 2) as usize;
        let shared = connections[whom].ask("GET", &url, &headers, b"");
        let single = connections[2].ask("GET", &url, &headers, b"");
        let said = direct.ask("GET", &format!("/page/{number}"), &headers, b"");
        let (shared, single, said) = (essence(shared), essence(single), essence(said));
        assert!(shared == single, "question {question}: {url} {headers:?}\n{shared:?}\n{single:?}");
        assert!(shared == said, "question {question}: {url} {headers:?}\n{shared:?}\n{said:?}");
    }
    let (first, second, alone) = (first.stats(), second.stats(), alone.stats());
    let number = |stats: &serde_json::Value, name: &str| stats[name].as_u64().unwrap();
    // Sharing took place: many responses came from the other proxy.
    let shared = number(&first, "peer_hits") + number(&second, "peer_hits");
    assert!(shared > 100, "{first}\n{second}");
    assert_eq!(number(&alone, "peer_hits"), 0);
    for stats in [&first, &second, &alone] {
        assert_eq!((number(stats, "origin_failures"), number(stats, "dropped")), (0, 0), "{stats}");
    }
}

/// Starts a peer whose summary has these keys, and which answers requests for pages with `does`.
fn peer(keys: &[CacheKey], does: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Origin {
    let mut summary = Summary::new(1000, 16).unwrap();
    keys.iter().for_each(|key| summary.insert(key));
    summary.publish().unwrap();
    let bytes = summary.update(None).encode();
    Origin::start(move |request| match request.path() {
        path if path.starts_with("/umbel/summary") => {
            let kind = format!("Content-Type: {}", Update::MEDIA_TYPE);
            Reply::Send(response("200 OK", &[&kind], &bytes))
        }
        _ => does(request),
    })
}

#[test]
fn a_false_hit_costs_one_request_and_never_a_wrong_response() {
    let origin = small_pages();
    let keys: Vec<CacheKey> = (0..50).map(|i| CacheKey::from_url(&origin.url(&format!("/{i}")))).collect();
    let liar = peer(&keys, |_| Reply::Send(response("504 Gateway Timeout", &[], b"not here")));
    let folder = tempfile::tempdir().unwrap();
    let proxy = Running::start(folder.path(), options(&[liar.address]));
    proxy.wait_for_documents(50);
    for i in 0..50 {
        let path = format!("/{i}");
        assert_eq!(get(proxy.address, &origin.url(&path)).text(), path.repeat(100));
        let questions = liar.requests().iter().filter(|request| request.target == origin.url(&path)).count();
        assert_eq!((questions, origin.times(&path)), (1, 1));
    }
    let request = liar.requests().into_iter().rfind(|request| request.target.starts_with("http")).unwrap();
    assert_eq!(request.header("cache-control"), Some("only-if-cached"));
    let stats = proxy.stats();
    let counts = &stats["peers"][0];
    assert_eq!((counts["false_hits"].as_u64(), counts["hits"].as_u64()), (Some(50), Some(0)));
    assert_eq!(stats["false_hits"], 50);
}

/// Whatever a peer does, the response is that of the origin, delayed by at most the time limit.
#[test]
fn a_dead_slow_or_lying_peer_delays_requests_by_at_most_its_time_limit() {
    let whole = |headers: &[&str]| response("200 OK", headers, b"wrong");
    type Peer = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;
    let long = Duration::from_secs(10);
    let kinds: Vec<(&str, Peer)> = vec![
        ("says nothing", Arc::new(move |_| Reply::SendAndClose(vec![], long))),
        ("hangs up", Arc::new(|_| Reply::SendAndClose(vec![], Duration::ZERO))),
        ("talks nonsense", Arc::new(|_| Reply::Send(b"\x00\x01\x02 what\r\n\r\n".to_vec()))),
        (
            "stops in the head",
            Arc::new(move |_| Reply::SendAndClose(b"HTTP/1.1 200 OK\r\nCache-".to_vec(), long)),
        ),
        (
            "stops in the body",
            Arc::new(move |_| {
                let start = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 300\r\n\r\nwro";
                Reply::SendAndClose(start.to_vec(), long)
            }),
        ),
        (
            "ends in the body",
            Arc::new(|_| {
                let start = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 300\r\n\r\nwro";
                Reply::SendAndClose(start.to_vec(), Duration::ZERO)
            }),
        ),
        (
            "never ends",
            Arc::new(|_| {
                let mut endless =
                    b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n"
                        .to_vec();
                (0..5000).for_each(|_| endless.extend(b"400\r\n".iter().chain(&[b'x'; 1024]).chain(b"\r\n")));
                Reply::Send(endless)
            }),
        ),
        (
            "has no end",
            Arc::new(|_| {
                Reply::SendAndClose(
                    b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nwro".to_vec(),
                    Duration::ZERO,
                )
            }),
        ),
        (
            "has another coding",
            Arc::new(|_| {
                let start =
                    b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: identity\r\n\r\nwro";
                Reply::SendAndClose(start.to_vec(), Duration::ZERO)
            }),
        ),
        (
            "has what it must not",
            Arc::new(move |_| Reply::Send(whole(&["Cache-Control: private, max-age=60"]))),
        ),
        (
            "has what was for one",
            Arc::new(move |_| Reply::Send(whole(&["Cache-Control: max-age=60", "Set-Cookie: a=b"]))),
        ),
        (
            "refuses",
            Arc::new(|_| Reply::Send(response("403 Forbidden", &["Cache-Control: max-age=60"], b"wrong"))),
        ),
        ("fails", Arc::new(|_| Reply::Send(response("500 Oops", &["Cache-Control: max-age=60"], b"wrong")))),
    ];
    for (name, does) in kinds {
        let origin = small_pages();
        let keys: Vec<CacheKey> = (0..3).map(|i| CacheKey::from_url(&origin.url(&format!("/{i}")))).collect();
        let liar = peer(&keys, move |request| does(request));
        let folder = tempfile::tempdir().unwrap();
        let proxy = Running::start(folder.path(), options(&[liar.address]));
        proxy.wait_for_documents(3);
        let start = Instant::now();
        for i in 0..3 {
            let path = format!("/{i}");
            let response = get(proxy.address, &origin.url(&path));
            assert_eq!((response.status, response.text()), (200, path.repeat(100)), "{name}");
        }
        // The peer has failed once, and is not used after that.
        assert!(start.elapsed() < LIMIT + Duration::from_millis(600), "{name}: {:?}", start.elapsed());
        let counts = proxy.stats()["peers"][0].clone();
        assert_eq!(
            (counts["failures"].as_u64(), counts["asked"].as_u64()),
            (Some(1), Some(1)),
            "{name}: {counts}"
        );
        assert!(proxy.log().contains("failed and is not used for a while"), "{name}: {}", proxy.log());
        // The response of the peer was not stored.
        assert_eq!(get(proxy.address, &origin.url("/0")).text(), "/0".repeat(100), "{name}");
    }
}

#[test]
fn an_unreachable_peer_does_no_harm_and_is_used_when_it_returns() {
    let origin = small_pages();
    let folders: [_; 2] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let [there] = free();
    let proxy = Running::start(folders[0].path(), options(&[there]));
    assert_eq!(get(proxy.address, &origin.url("/1")).status, 200);
    proxy.wait(|_| proxy.log().contains("cannot get the summary of peer"));
    let other = Running::at(there, folders[1].path(), options(&[]));
    get(other.address, &origin.url("/2"));
    proxy.wait_for_documents(1);
    assert!(get(proxy.address, &origin.url("/2")).cache().contains("detail=\"peer "));
    assert!(proxy.log().contains(&format!("peer {there} (umbel) has")), "{}", proxy.log());
    drop(other);
    get(proxy.address, &origin.url("/3"));
    // The peer restarts, with another summary.
    let other = Running::at(there, folders[1].path(), options(&[]));
    get(other.address, &origin.url("/4"));
    proxy.wait_for_documents(2);
    assert!(get(proxy.address, &origin.url("/4")).cache().contains("detail=\"peer "));
    assert_eq!(origin.requests().len(), 4);
}

/// A large response is forwarded from a peer at once, and the origin completes it if the peer
/// stops.
#[test]
fn the_origin_completes_a_response_that_a_peer_has_begun() {
    let whole: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7 % 251) as u8).collect();
    for (tag, finished) in [("\"same\"", true), ("\"other\"", false)] {
        let document = whole.clone();
        let origin = Origin::start(move |request| {
            let headers = ["Cache-Control: max-age=60", "ETag: \"same\""];
            let range =
                request.header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
            match range.map(|from| from.parse::<usize>().unwrap()) {
                None if request.header("if-none-match") == Some("\"same\"") => {
                    Reply::Send(b"HTTP/1.1 304 Not Modified\r\nETag: \"same\"\r\n\r\n".to_vec())
                }
                Some(from) if request.header("if-range") == Some("\"same\"") => {
                    let range =
                        format!("Content-Range: bytes {from}-{}/{}", document.len() - 1, document.len());
                    Reply::Send(response(
                        "206 Partial Content",
                        &[headers[0], headers[1], &range],
                        &document[from..],
                    ))
                }
                _ => Reply::Send(response("200 OK", &headers, &document)),
            }
        });
        let url = origin.url("/large");
        let mut begun = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: {tag}\r\nContent-Length: 3000000\r\n\r\n"
        )
        .into_bytes();
        begun.extend(&whole[..1_234_567]);
        let lazy = peer(&[CacheKey::from_url(&url)], move |_| {
            Reply::SendAndClose(begun.clone(), Duration::from_secs(10))
        });
        let folder = tempfile::tempdir().unwrap();
        let proxy = Running::start(folder.path(), options(&[lazy.address]));
        proxy.wait_for_documents(1);
        let start = Instant::now();
        let response = get(proxy.address, &url);
        assert!(start.elapsed() < LIMIT * 2 + Duration::from_millis(600), "{:?}", start.elapsed());
        assert_eq!(response.whole, finished);
        if finished {
            assert!(response.body == whole);
            assert_eq!(origin.requests()[0].header("range"), Some("bytes=1234567-"));
        }
        // Only a complete response was stored.
        let again = get(proxy.address, &url);
        assert!(
            again.body == whole && again.cache().starts_with("umbel;hit") == finished,
            "{}",
            again.cache()
        );
    }
}

/// The summary of a peer may contain anything.
#[test]
fn invalid_summaries_are_ignored() {
    let origin = small_pages();
    let key = CacheKey::from_url(&origin.url("/1"));
    let summary = {
        let mut summary = Summary::new(10, 8).unwrap();
        summary.insert(&key);
        summary.publish().unwrap();
        summary.update(None).encode()
    };
    let digest = CacheDigest::from_keys(&[key], 5).unwrap().encode();
    let mut claims = digest.clone();
    claims[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut damaged = summary.clone();
    damaged[40] ^= 1;
    let kinds: [(&str, &str, Vec<u8>); 6] = [
        ("nothing", Update::MEDIA_TYPE, vec![]),
        ("damaged", Update::MEDIA_TYPE, damaged),
        ("another kind", "text/html", b"<html>".to_vec()),
        ("too large a claim", CacheDigest::MEDIA_TYPE, claims),
        ("too short a digest", CacheDigest::MEDIA_TYPE, digest[..100].to_vec()),
        ("a digest with a tail", CacheDigest::MEDIA_TYPE, [&digest[..], b"x"].concat()),
    ];
    for (name, kind, bytes) in kinds {
        let kind = format!("Content-Type: {kind}");
        let liar = Origin::start(move |request| match request.path() {
            CacheDigest::PATH => Reply::Send(response("200 OK", &[&kind], &bytes)),
            path if path.starts_with("/umbel/") && !kind.contains("digest") => {
                Reply::Send(response("200 OK", &[&kind], &bytes))
            }
            path if path.starts_with("/umbel/") => Reply::Send(response("404 Not Found", &[], b"")),
            _ => Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], b"wrong")),
        });
        let folder = tempfile::tempdir().unwrap();
        let proxy = Running::start(folder.path(), options(&[liar.address]));
        proxy.wait(|_| proxy.log().contains("cannot get the summary of peer"));
        assert_eq!(get(proxy.address, &origin.url("/1")).text(), "/1".repeat(100), "{name}");
        assert!(proxy.stats()["peers"][0]["documents"].is_null(), "{name}");
    }
}

#[test]
fn a_peer_gets_changes_and_squid_gets_a_digest() {
    let origin = small_pages();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = options(&[]);
    settings.limits.digest_lifetime = Duration::ZERO;
    let proxy = Running::start(folder.path(), settings);
    let paths: Vec<String> = (0..40).map(|i| format!("/{i}")).collect();
    paths.iter().for_each(|path| drop(get(proxy.address, &origin.url(path))));
    proxy.wait(|stats| stats["store"]["documents"] == 40);
    let digest = CacheDigest::decode(&ask(proxy.address, "GET", CacheDigest::PATH, &[]).body).unwrap();
    assert_eq!(digest.count(), 40);
    assert!(paths.iter().all(|path| digest.contains(&CacheKey::from_url(&origin.url(path)))));
    // Squid requests the digest of its sibling by an absolute URI, like everything else.
    let whole = ask(proxy.address, "GET", &format!("http://{}{}", proxy.address, CacheDigest::PATH), &[]);
    assert_eq!((whole.status, whole.header("content-type")), (200, Some(CacheDigest::MEDIA_TYPE)));
    for wrong in ["?since=x", "?since=1", "?since=1.-1", "?other"] {
        assert_eq!(ask(proxy.address, "GET", &format!("/umbel/summary{wrong}"), &[]).status, 400);
    }
    let start = Instant::now();
    loop {
        let bytes = ask(proxy.address, "GET", "/umbel/summary", &[]).body;
        let mut view = umbel_cache::View::default();
        view.apply(&Update::decode(&bytes).unwrap()).unwrap();
        if paths.iter().all(|path| view.contains(&CacheKey::from_url(&origin.url(path)))) {
            let version = view.version().unwrap();
            let since = format!("/umbel/summary?since={}.{}", version.epoch, version.generation);
            assert!(ask(proxy.address, "GET", &since, &[]).body.len() < 50);
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}

/// A response that is not usable is not always a failure: the peer is not paused for it.
#[test]
fn a_peer_with_an_unusable_response_is_asked_again() {
    let origin = Origin::start(|request| {
        let headers = ["Cache-Control: max-age=60", "Vary: Cookie"];
        Reply::Send(response("200 OK", &headers, request.header("cookie").unwrap_or("none").as_bytes()))
    });
    let keys: Vec<CacheKey> = (0..3).map(|i| CacheKey::from_url(&origin.url(&format!("/{i}")))).collect();
    let peer = peer(&keys, |request| {
        assert_eq!(request.header("cookie"), None, "cookies are for the origin only");
        match request.path() {
            "/0" => Reply::Send(response(
                "200 OK",
                &["Cache-Control: max-age=60", "Age: 61", "ETag: \"x\""],
                b"stale",
            )),
            _ => Reply::Send(response("200 OK", &["Cache-Control: max-age=60", "Vary: Cookie"], b"none")),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let proxy = Running::start(folder.path(), options(&[peer.address]));
    proxy.wait_for_documents(3);
    assert_eq!(get(proxy.address, &origin.url("/0")).text(), "none");
    assert_eq!(ask(proxy.address, "GET", &origin.url("/1"), &[("Cookie", "a=1")]).text(), "a=1");
    assert!(get(proxy.address, &origin.url("/2")).cache().contains("detail=\"peer "));
    let counts = proxy.stats()["peers"][0].clone();
    assert_eq!(
        (&counts["false_hits"], &counts["hits"], &counts["failures"]),
        (&2.into(), &1.into(), &0.into())
    );
    // A client that requests revalidation does not get a response from a peer.
    for line in ["max-age=0", "no-cache", "No-Store"] {
        ask(proxy.address, "GET", &origin.url("/2"), &[("Cache-Control", line)]);
    }
    assert_eq!(proxy.stats()["peers"][0]["asked"], 3);
}

#[test]
fn invalidated_responses_are_not_fetched_from_a_peer() {
    let origin = small_pages();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = Running::start(one.path(), options(&[]));
    let second = Running::start(two.path(), options(&[first.address]));
    get(first.address, &origin.url("/page"));
    second.wait_for_documents(1);
    assert_eq!(ask(second.address, "DELETE", &origin.url("/page"), &[]).status, 200);
    assert!(!get(second.address, &origin.url("/page")).cache().contains("peer"));
}

/// A client that reads slowly does not count as a slow peer.
#[test]
fn a_large_response_of_a_peer_reaches_a_slow_client() {
    let large: Vec<u8> = (0..12_000_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let document = large.clone();
    let origin = Origin::start(move |_| {
        Reply::Send(response("200 OK", &["Cache-Control: max-age=60", "ETag: \"x\""], &document))
    });
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = Running::start(one.path(), options(&[]));
    // The second proxy does not store a response at the first request, so the client gets all of it
    // from the peer.
    let second = Running::start(
        two.path(),
        Options { admission: umbel_cache::proxy::AdmissionPolicy::SecondHit, ..options(&[first.address]) },
    );
    get(first.address, &origin.url("/page"));
    second.wait_for_documents(1);
    let mut slow = Connection::open(second.address);
    slow.send(format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", origin.url("/page")).as_bytes()).unwrap();
    std::thread::sleep(LIMIT * 4);
    let response = slow.receive(false).unwrap();
    assert!(response.whole && response.body == large);
    assert_eq!((origin.requests().len(), &second.stats()["peers"][0]["failures"]), (1, &0.into()));
}
