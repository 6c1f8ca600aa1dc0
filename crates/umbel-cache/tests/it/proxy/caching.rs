//! Storing and reusing responses, as a client and an origin see it.

use crate::client::{Connection, ask, get};
use crate::origin::{Origin, Reply, Request, response};
use crate::running::Running;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use umbel_cache::proxy::{AdmissionPolicy, Limits, Options};

/// Starts an origin that sends the path as the body, with headers that depend on the request.
fn origin(headers: impl Fn(&Request) -> Vec<&'static str> + Send + Sync + 'static) -> Origin {
    Origin::start(move |request| {
        Reply::Send(response("200 OK", &headers(request), request.path().as_bytes()))
    })
}

fn proxy() -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Options::default());
    (folder, running)
}

#[test]
fn storable_responses_are_fetched_once_and_others_each_time() {
    let origin = origin(|request| match request.path() {
        "/kept" => vec!["Cache-Control: max-age=60"],
        "/never" => vec!["Cache-Control: no-store"],
        "/private" => vec!["Cache-Control: private, max-age=60"],
        "/cookie" => vec!["Cache-Control: max-age=60", "Set-Cookie: a=b"],
        "/everything" => vec!["Cache-Control: max-age=60", "Vary: *"],
        "/stale" => vec!["Cache-Control: max-age=60", "Age: 61"],
        "/expired" => vec!["Expires: Thu, 01 Jan 1970 00:00:00 GMT"],
        "/signed" => vec!["Cache-Control: max-age=60"],
        "/signed-for-all" => vec!["Cache-Control: public, max-age=60"],
        _ => vec![],
    });
    let (_folder, proxy) = proxy();
    for (path, times) in [
        ("/kept", 1),
        ("/never", 3),
        ("/private", 3),
        ("/cookie", 3),
        ("/everything", 3),
        ("/stale", 3),
        ("/expired", 3),
        ("/signed", 3),
        ("/signed-for-all", 1),
    ] {
        for _ in 0..3 {
            let headers: &[_] =
                if path.starts_with("/signed") { &[("Authorization", "Basic x")] } else { &[] };
            let response = ask(proxy.address, "GET", &origin.url(path), headers);
            assert_eq!((response.status, response.text()), (200, path.to_owned()));
            if path == "/signed-for-all" {
                // Requests with credentials do not wait until the response is stored.
                proxy.wait(|stats| stats["stored"] == 2);
            }
        }
        assert_eq!(origin.times(path), times, "{path}");
    }
    assert_eq!(proxy.count("hits"), 4);
    // `no-cache` bypasses the stored response.
    assert_eq!(ask(proxy.address, "GET", &origin.url("/kept"), &[("Cache-Control", "no-cache")]).status, 200);
    assert_eq!(origin.times("/kept"), 2);
}

#[test]
fn responses_with_vary_are_selected_by_request_headers() {
    let origin = Origin::start(|request| {
        let language = request.header("accept-language").unwrap_or("none").to_owned();
        let headers = ["Cache-Control: max-age=60", "Vary: Accept-Language"];
        Reply::Send(response("200 OK", &headers, language.as_bytes()))
    });
    let (_folder, proxy) = proxy();
    let url = origin.url("/page");
    for _ in 0..3 {
        for language in ["de", "en", "pl"] {
            assert_eq!(ask(proxy.address, "GET", &url, &[("Accept-Language", language)]).text(), language);
        }
        assert_eq!(get(proxy.address, &url).text(), "none");
    }
    assert_eq!(origin.times("/page"), 4);
}

#[test]
fn stale_responses_are_revalidated() {
    let origin = Origin::start(|request| match (request.path(), request.header("if-none-match")) {
        ("/same", Some("\"x\"")) => {
            Reply::Send(b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nX-Turn: 2\r\n\r\n".to_vec())
        }
        ("/other", Some("\"x\"")) => {
            Reply::Send(response("200 OK", &["Cache-Control: max-age=60", "ETag: \"y\""], b"new"))
        }
        _ => Reply::Send(response("200 OK", &["Cache-Control: max-age=0", "ETag: \"x\""], b"old")),
    });
    let (_folder, proxy) = proxy();
    // Requests for a response that is stale at once do not wait for it, so it may arrive before it
    // is stored.
    let kept = |count: u64| proxy.wait(|stats| stats["stored"] == count);
    for _ in 0..3 {
        assert_eq!(get(proxy.address, &origin.url("/same")).text(), "old");
        kept(1);
    }
    let last = get(proxy.address, &origin.url("/same"));
    assert_eq!((last.header("x-turn"), last.status), (Some("2"), 200));
    assert_eq!(proxy.count("revalidated"), 3);
    // The client has another version, and the cache revalidates its own.
    let response = ask(proxy.address, "GET", &origin.url("/same"), &[("If-None-Match", "\"z\"")]);
    assert_eq!((response.status, response.text().as_str()), (200, "old"));
    let response = ask(proxy.address, "GET", &origin.url("/same"), &[("If-None-Match", "\"x\"")]);
    assert_eq!((response.status, response.text().as_str()), (304, ""));
    assert_eq!(get(proxy.address, &origin.url("/other")).text(), "old");
    kept(2);
    assert_eq!(get(proxy.address, &origin.url("/other")).text(), "new");
    kept(3);
    assert_eq!(get(proxy.address, &origin.url("/other")).text(), "new");
    assert_eq!(origin.times("/other"), 2);
}

#[test]
fn ranges_conditions_and_head_requests_are_answered_from_the_cache() {
    let origin = Origin::start(|_| {
        let headers =
            ["Cache-Control: max-age=60", "ETag: \"x\"", "Last-Modified: Mon, 16 Nov 2026 10:00:00 GMT"];
        Reply::Send(response("200 OK", &headers, b"0123456789"))
    });
    let (_folder, proxy) = proxy();
    let url = origin.url("/page");
    let ask = |method: &str, headers: &[(&str, &str)]| ask(proxy.address, method, &url, headers);
    assert_eq!(ask("GET", &[]).text(), "0123456789");
    proxy.wait(|stats| stats["stored"] == 1);
    let head = ask("HEAD", &[]);
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("10"), 0));
    let part = ask("GET", &[("Range", "bytes=2-4")]);
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
    assert_eq!(ask("GET", &[("Range", "bytes=20-")]).status, 416);
    assert_eq!(ask("GET", &[("Range", "bytes=2-4"), ("If-Range", "\"y\"")]).text(), "0123456789");
    assert_eq!(ask("GET", &[("If-None-Match", "\"x\"")]).status, 304);
    assert_eq!(ask("GET", &[("If-Modified-Since", "Mon, 16 Nov 2026 10:00:00 GMT")]).status, 304);
    assert_eq!(ask("GET", &[("If-Modified-Since", "Mon, 16 Nov 2026 09:00:00 GMT")]).status, 200);
    assert_eq!(ask("GET", &[("If-None-Match", "\"y\"")]).text(), "0123456789");
    assert_eq!(origin.times("/page"), 1);
    assert_eq!(ask("GET", &[("Cache-Control", "only-if-cached")]).status, 200);
    let other = crate::client::ask(
        proxy.address,
        "GET",
        &origin.url("/other"),
        &[("Cache-Control", "only-if-cached")],
    );
    assert_eq!((other.status, origin.times("/other")), (504, 0));
}

#[test]
fn concurrent_requests_for_the_same_response_are_collapsed() {
    static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
    let origin = Origin::start(|request| {
        AT_ONCE.fetch_add(1, SeqCst);
        std::thread::sleep(Duration::from_millis(300));
        let kept =
            if request.path() == "/kept" { "Cache-Control: max-age=60" } else { "Cache-Control: no-store" };
        Reply::Send(response("200 OK", &[kept], &request.path().as_bytes().repeat(10_000)))
    });
    let (_folder, proxy) = proxy();
    let all = |path: &str| {
        let url = origin.url(path);
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..30).map(|_| scope.spawn(|| get(proxy.address, &url))).collect();
            for response in asking {
                assert_eq!(response.join().unwrap().body, path.as_bytes().repeat(10_000));
            }
        });
        origin.times(path)
    };
    assert_eq!(all("/kept"), 1);
    assert_eq!(proxy.count("hits"), 29);
    // A response that cannot be stored is fetched for each request. Once that is known, requests do
    // not wait for each other.
    assert_eq!(all("/never"), 30);
    let before = AT_ONCE.load(SeqCst);
    let start = std::time::Instant::now();
    assert_eq!(all("/never"), 60);
    assert_eq!(AT_ONCE.load(SeqCst) - before, 30);
    assert!(start.elapsed() < Duration::from_millis(1500), "{:?}", start.elapsed());
}

#[test]
fn incomplete_responses_are_not_stored_or_sent_as_complete() {
    let origin = Origin::start(|request| {
        match request.path() {
        "/cut" => Reply::SendAndClose(
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1000\r\n\r\nhalf".to_vec(),
            Duration::ZERO,
        ),
        "/cut-chunks" => Reply::SendAndClose(
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n".to_vec(),
            Duration::ZERO,
        ),
        "/endless" => Reply::SendAndClose(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nmaybe".to_vec(), Duration::ZERO),
        "/chunks" => Reply::Send(
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n"
                .to_vec(),
        ),
        _ => Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], &vec![b'x'; 300_000])),
    }
    });
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { max_object_bytes: 250_000, ..Limits::default() };
    let proxy = Running::start(folder.path(), Options { limits, ..Options::default() });
    for path in ["/cut", "/cut-chunks"] {
        for turn in 1..=2 {
            assert!(!get(proxy.address, &origin.url(path)).whole, "{path}");
            assert_eq!(origin.times(path), turn);
        }
    }
    for (path, text, times) in [("/endless", "maybe", 2), ("/chunks", "whole", 1)] {
        for _ in 0..2 {
            let response = get(proxy.address, &origin.url(path));
            assert_eq!((response.text().as_str(), response.whole), (text, true), "{path}");
        }
        assert_eq!(origin.times(path), times, "{path}");
    }
    for _ in 0..2 {
        assert_eq!(get(proxy.address, &origin.url("/large")).body.len(), 300_000);
    }
    assert_eq!(origin.times("/large"), 2);
    assert_eq!(proxy.stats()["store"]["documents"], 1);
    assert!(proxy.log().contains("/cut ended too early"), "{}", proxy.log());
}

#[test]
fn unsafe_requests_invalidate_stored_responses() {
    let origin = origin(|_| vec!["Cache-Control: max-age=60", "Location: /named"]);
    let (_folder, proxy) = proxy();
    for path in ["/page", "/named", "/other"] {
        get(proxy.address, &origin.url(path));
    }
    proxy.wait(|stats| stats["stored"] == 3);
    let posted = Connection::open(proxy.address).ask("POST", &origin.url("/page"), &[], b"something");
    assert_eq!(posted.status, 200);
    let request = origin.requests().pop().unwrap();
    assert_eq!((request.method.as_str(), &request.body[..]), ("POST", &b"something"[..]));
    for (path, times) in [("/page", 3), ("/named", 2), ("/other", 1)] {
        get(proxy.address, &origin.url(path));
        assert_eq!(origin.times(path), times, "{path}");
    }
    // The operator can purge a response.
    for status in [200, 404] {
        assert_eq!(ask(proxy.address, "PURGE", &origin.url("/other"), &[]).status, status);
    }
    get(proxy.address, &origin.url("/other"));
    assert_eq!(origin.times("/other"), 2);
}

#[test]
fn stored_responses_survive_a_restart() {
    let origin = Origin::start(|request| {
        let count: usize = request.path()[1..].parse().unwrap();
        Reply::Send(response(
            "200 OK",
            &["Cache-Control: max-age=60"],
            &request.path().as_bytes().repeat(count * count * 50),
        ))
    });
    let folder = tempfile::tempdir().unwrap();
    for turn in 0..3 {
        let proxy = Running::start(folder.path(), Options::default());
        for count in 0..50 {
            let path = format!("/{count}");
            let response = get(proxy.address, &origin.url(&path));
            assert!(response.text() == path.repeat(count * count * 50), "{path}");
        }
        assert_eq!(origin.requests().len(), 50);
        assert_eq!(proxy.count("hits"), if turn == 0 { 0 } else { 50 });
    }
}

#[test]
fn a_response_that_a_client_has_received_is_stored_before_the_proxy_ends() {
    let body = vec![b'x'; 3 << 20];
    let origin =
        Origin::start(move |_| Reply::Send(response("200 OK", &["Cache-Control: max-age=600"], &body)));
    let folder = tempfile::tempdir().unwrap();
    for turn in 0..20 {
        let proxy = Running::start(folder.path(), Options::default());
        get(proxy.address, &origin.url(&format!("/{turn}")));
    }
    let proxy = Running::start(folder.path(), Options::default());
    for turn in 0..20 {
        get(proxy.address, &origin.url(&format!("/{turn}")));
    }
    assert_eq!((proxy.count("hits"), origin.requests().len()), (20, 20));
}

#[test]
fn responses_requested_only_once_are_not_stored() {
    let origin = origin(|_| vec!["Cache-Control: max-age=60"]);
    let folder = tempfile::tempdir().unwrap();
    let proxy = Running::start(
        folder.path(),
        Options { admission: AdmissionPolicy::SecondHit, ..Options::default() },
    );
    (0..100).for_each(|i| drop(get(proxy.address, &origin.url(&format!("/{i}")))));
    proxy.wait(|stats| stats["stored"].as_u64().unwrap() + stats["not_admitted"].as_u64().unwrap() == 100);
    let kept = proxy.stats()["store"]["documents"].as_u64().unwrap();
    assert!(kept <= 5, "{kept} of 100 were admitted by false positives");
    for turn in 2..=3 {
        (0..10).for_each(|i| drop(get(proxy.address, &origin.url(&format!("/{i}")))));
        assert!(origin.requests().len() <= 110, "turn {turn}");
    }
    assert!(proxy.stats()["store"]["documents"].as_u64().unwrap() >= 10);
}

#[test]
fn the_filter_answers_misses_before_the_index() {
    let origin = origin(|_| vec!["Cache-Control: max-age=60"]);
    let (_folder, proxy) = proxy();
    (0..100).for_each(|i| drop(get(proxy.address, &origin.url(&format!("/{i}")))));
    let filter = proxy.stats()["filter"].clone();
    let (denied, wrong) = (filter["denied"].as_u64().unwrap(), filter["false_hits"].as_u64().unwrap());
    assert_eq!(denied + wrong, 100);
    assert!(wrong <= 3, "{wrong}");
}

/// A response is requested, its resource is changed, and only then the old response arrives.
#[test]
fn responses_from_before_an_invalidation_are_not_stored() {
    static VERSION: AtomicUsize = AtomicUsize::new(0);
    let origin = Origin::start(|request| {
        if request.method == "POST" {
            VERSION.fetch_add(1, SeqCst);
            return Reply::Send(response("200 OK", &[], b"done"));
        }
        let version = VERSION.load(SeqCst);
        let slow = request.header("x-slow").is_some();
        std::thread::sleep(Duration::from_millis(if slow { 500 } else { 0 }));
        let tag = format!("ETag: \"{version}\"");
        if request.header("if-none-match").is_some_and(|known| known == format!("\"{version}\"")) {
            return Reply::Send(
                format!("HTTP/1.1 304 Not Modified\r\n{tag}\r\nCache-Control: max-age=60\r\n\r\n")
                    .into_bytes(),
            );
        }
        let life = if request.header("x-stale").is_some() {
            "Cache-Control: max-age=0"
        } else {
            "Cache-Control: max-age=60"
        };
        Reply::Send(response("200 OK", &[life, &tag], version.to_string().as_bytes()))
    });
    let (_folder, proxy) = proxy();
    for (path, first) in [("/fetched", None), ("/asked-about", Some(("x-stale", "1")))] {
        let url = origin.url(path);
        if let Some(header) = first {
            ask(proxy.address, "GET", &url, &[header]);
            proxy.wait(|stats| stats["stored"] == 1 + stats["dropped"].as_u64().unwrap());
        }
        std::thread::scope(|scope| {
            let late = scope.spawn(|| ask(proxy.address, "GET", &url, &[("x-slow", "1")]));
            let before = origin.requests().len();
            while origin.requests().len() == before {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(Connection::open(proxy.address).ask("POST", &url, &[], b"").status, 200);
            late.join().unwrap();
        });
        std::thread::sleep(Duration::from_millis(100));
        let now = VERSION.load(SeqCst).to_string();
        assert_eq!(get(proxy.address, &url).text(), now, "{path}");
    }
}

#[test]
fn the_latest_of_several_matching_responses_is_used() {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let origin = Origin::start(|_| {
        let turn = TURN.fetch_add(1, SeqCst);
        let vary = if turn == 0 { "Vary: Accept-Language" } else { "X: 1" };
        Reply::Send(response("200 OK", &["Cache-Control: max-age=60", vary], turn.to_string().as_bytes()))
    });
    let (_folder, proxy) = proxy();
    let url = origin.url("/page");
    assert_eq!(get(proxy.address, &url).text(), "0");
    std::thread::sleep(Duration::from_millis(10));
    proxy.wait(|stats| stats["stored"] == 1);
    assert_eq!(ask(proxy.address, "GET", &url, &[("Cache-Control", "no-cache")]).text(), "1");
    proxy.wait(|stats| stats["stored"] == 2);
    for _ in 0..3 {
        assert_eq!(get(proxy.address, &url).text(), "1");
    }
    assert_eq!(origin.requests().len(), 2);
}

#[test]
fn when_the_leader_disconnects_another_request_fetches_for_all() {
    let origin = Origin::start(|_| {
        std::thread::sleep(Duration::from_millis(400));
        Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], b"page"))
    });
    let (_folder, proxy) = proxy();
    let url = origin.url("/page");
    let mut first = Connection::open(proxy.address);
    first.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    while origin.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..20).map(|_| scope.spawn(|| get(proxy.address, &url).text())).collect();
        while proxy.count("collapsed") < 20 {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(first);
        others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), "page"));
    });
    assert!(origin.requests().len() <= 2, "{}", origin.requests().len());
}

#[test]
fn the_number_of_variants_is_limited() {
    let origin = Origin::start(|request| {
        let headers = ["Cache-Control: max-age=60", "Vary: Accept-Language"];
        Reply::Send(response("200 OK", &headers, request.header("accept-language").unwrap().as_bytes()))
    });
    let (_folder, proxy) = proxy();
    let mut connection = Connection::open(proxy.address);
    for i in 0..200 {
        let language = format!("x{i}");
        let response = connection.ask("GET", &origin.url("/page"), &[("Accept-Language", &language)], b"");
        assert_eq!(response.text(), language);
    }
    proxy.wait(|stats| stats["stored"] == 200);
    assert_eq!(proxy.stats()["store"]["documents"], 32);
    // The latest variants are stored.
    let last = connection.ask("GET", &origin.url("/page"), &[("Accept-Language", "x199")], b"");
    assert!(last.cache().starts_with("umbel;hit"));
}

/// A request that may already have been executed is not sent again.
#[test]
fn unsafe_requests_are_sent_only_once() {
    let origin = Origin::start(|request| match request.method.as_str() {
        "POST" => Reply::SendAndClose(vec![], Duration::ZERO),
        _ => Reply::Send(response("200 OK", &["Cache-Control: no-store"], b"page")),
    });
    let (_folder, proxy) = proxy();
    get(proxy.address, &origin.url("/page"));
    assert_eq!(ask(proxy.address, "POST", &origin.url("/page"), &[("Content-Length", "0")]).status, 502);
    assert_eq!(origin.requests().iter().filter(|request| request.method == "POST").count(), 1);
}
