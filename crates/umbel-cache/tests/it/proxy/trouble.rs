//! Clients and origins that send invalid, incomplete or too much data, or send it too slowly: the
//! proxy survives and serves others.

use crate::client::{Connection, ask, get};
use crate::origin::{Origin, Reply, chunked, response};
use crate::running::Running;
use std::io::Write;
use std::time::{Duration, Instant};
use umbel_cache::proxy::{Limits, Options};

fn pages() -> Origin {
    Origin::start(|_| Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], b"page")))
}

fn proxy(limits: Limits) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Options { limits, ..Options::default() });
    (folder, running)
}

#[test]
fn invalid_requests_are_refused_and_others_are_answered() {
    let origin = pages();
    let (_folder, proxy) = proxy(Limits::default());
    let flood: String = (0..500).map(|i| format!("X-{i}: {i}\r\n")).collect();
    let url = origin.url("/page");
    for (name, bytes) in [
        ("nonsense", b"\x00\x01\x02\x03\r\n\r\n".to_vec()),
        ("no method", b" / HTTP/1.1\r\n\r\n".to_vec()),
        ("another protocol", b"\x16\x03\x01\x02\x00\x01\x00".repeat(100)),
        ("many headers", format!("GET {url} HTTP/1.1\r\nHost: x\r\n{flood}\r\n").into_bytes()),
        (
            "a long header",
            format!("GET {url} HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(200_000)).into_bytes(),
        ),
        (
            "a long address",
            format!("GET {url}{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(200_000)).into_bytes(),
        ),
        (
            "two lengths",
            format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")
                .into_bytes(),
        ),
        (
            "an invalid length",
            format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n").into_bytes(),
        ),
        (
            "invalid chunks",
            format!("POST {url} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
                .into_bytes(),
        ),
        (
            "an odd coding",
            format!("POST {url} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nabc").into_bytes(),
        ),
        (
            "a line break in a name",
            format!("GET {url} HTTP/1.1\r\nHost: x\r\nA\r\n b: c\r\n\r\n").into_bytes(),
        ),
    ] {
        let mut connection = Connection::open(proxy.address);
        // The request may be refused before all of it was sent.
        let _ = connection.send(&bytes);
        if let Some(response) = connection.receive(false) {
            assert!((400..=502).contains(&response.status), "{name}: {response:?}");
        }
        assert_eq!(get(proxy.address, &url).text(), "page", "after {name}");
    }
    assert!(proxy.log().contains("client 127.0.0.1 sent an invalid HTTP request"), "{}", proxy.log());
}

#[test]
fn slow_clients_are_disconnected() {
    let origin = pages();
    let limits = Limits {
        header_timeout: Duration::from_millis(300),
        stall_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let (_folder, proxy) = proxy(limits);
    for start in ["GET http://127.0", "GET / HTTP/1.1\r\nHost: x\r\nX-Never: en", ""] {
        let began = Instant::now();
        let mut connection = Connection::open(proxy.address);
        connection.send(start.as_bytes()).unwrap();
        let response = connection.receive(false);
        assert!(response.is_none_or(|response| response.status == 408), "{start:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{start:?} had {:?}", began.elapsed());
    }
    assert_eq!(proxy.log().matches("sent half a request").count(), 2, "{}", proxy.log());
    // Only half of the body is sent.
    let url = origin.url("/page");
    let mut connection = Connection::open(proxy.address);
    connection
        .send(format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf").as_bytes())
        .unwrap();
    let began = Instant::now();
    assert!(connection.receive(false).is_none_or(|response| response.status >= 500));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(get(proxy.address, &url).text(), "page");
}

#[test]
fn clients_that_do_not_read_are_disconnected() {
    let origin = Origin::start(|_| {
        Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], &vec![b'x'; 20 << 20]))
    });
    let limits = Limits { stall_timeout: Duration::from_millis(300), max_clients: 2, ..Limits::default() };
    let (_folder, proxy) = proxy(limits);
    let url = origin.url("/large");
    assert_eq!(get(proxy.address, &url).body.len(), 20 << 20);
    let mut lazy: Vec<Connection> = (0..2).map(|_| Connection::open(proxy.address)).collect();
    for connection in &mut lazy {
        connection.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    }
    // Both permits are taken until the clients that do not read are disconnected.
    let began = Instant::now();
    assert_eq!(get(proxy.address, &url).body.len(), 20 << 20);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn errors_name_the_origin_that_failed() {
    let long = Duration::from_secs(10);
    let origin = Origin::start(move |request| match request.path() {
        "/nonsense" => Reply::Send(b"what?\r\n\r\n".to_vec()),
        "/nothing" => Reply::SendAndClose(vec![], Duration::ZERO),
        "/never" => Reply::SendAndClose(vec![], long),
        "/flood" => {
            let flood: String = (0..2000).map(|i| format!("X-{i}: {}\r\n", "x".repeat(100))).collect();
            Reply::Send(format!("HTTP/1.1 200 OK\r\n{flood}\r\n").into_bytes())
        }
        "/stops" => Reply::SendAndClose(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec(), long),
        _ => Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], b"page")),
    });
    let limits = Limits {
        origin_timeout: Duration::from_millis(400),
        stall_timeout: Duration::from_millis(400),
        ..Limits::default()
    };
    let (_folder, proxy) = proxy(limits);
    for (path, status) in [("/nonsense", 502), ("/nothing", 502), ("/never", 504), ("/flood", 502)] {
        let began = Instant::now();
        let response = get(proxy.address, &origin.url(path));
        assert_eq!(response.status, status, "{path}: {}", response.text());
        assert!(response.text().contains(&origin.address.to_string()), "{}", response.text());
        assert!(began.elapsed() < Duration::from_secs(3));
        assert_eq!(get(proxy.address, &origin.url("/page")).text(), "page", "after {path}");
    }
    assert!(!get(proxy.address, &origin.url("/stops")).whole);
    assert_eq!(proxy.stats()["store"]["documents"], 1);
}

#[test]
fn clients_that_disconnect_early_do_no_harm() {
    let origin = Origin::start(|_| {
        let mut bytes =
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 500000\r\n\r\n".to_vec();
        bytes.extend(vec![b'x'; 500_000]);
        Reply::Send(bytes)
    });
    let (_folder, proxy) = proxy(Limits::default());
    for i in 0..50 {
        let mut stream = Connection::open(proxy.address).into_stream();
        let url = origin.url(&format!("/{i}"));
        write!(stream, "GET {url} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        drop(stream);
    }
    // A fetch that was begun is completed for the next request or repeated; the response is
    // complete in any case.
    for i in 0..50 {
        assert_eq!(get(proxy.address, &origin.url(&format!("/{i}"))).body.len(), 500_000);
    }
    assert_eq!(proxy.count("origin_failures"), 0);
}

#[test]
fn clients_beyond_the_limit_wait() {
    let origin = Origin::start(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Reply::Send(response("200 OK", &["Cache-Control: no-store"], b"page"))
    });
    let (_folder, proxy) = proxy(Limits { max_clients: 3, ..Limits::default() });
    let url = origin.url("/page");
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..30).map(|_| scope.spawn(|| get(proxy.address, &url).text())).collect();
        asking.into_iter().for_each(|request| assert_eq!(request.join().unwrap(), "page"));
    });
}

/// Returns a body of some megabytes in which every part shows its offset.
fn large(len: u32) -> Vec<u8> {
    (0..len).map(|i| (i * 7 % 251) as u8).collect()
}

/// Sends a request and does not read the response yet.
fn ask_and_wait(proxy: &Running, origin: &Origin, url: &str) -> Connection {
    let mut slow = Connection::open(proxy.address);
    slow.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    while origin.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    slow
}

/// The first client reads slowly: others do not wait for it, and all get the complete response.
#[test]
fn a_slow_reader_does_not_delay_others() {
    for in_chunks in [false, true] {
        let large = large(20_000_000);
        let document = large.clone();
        let origin = Origin::start(move |_| {
            if !in_chunks {
                return Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], &document));
            }
            Reply::Send(chunked(&["Cache-Control: max-age=60"], document.chunks(100_000)))
        });
        let (_folder, proxy) = proxy(Limits::default());
        let url = origin.url("/large");
        let start = Instant::now();
        let mut slow = ask_and_wait(&proxy, &origin, &url);
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..5).map(|_| scope.spawn(|| get(proxy.address, &url).body)).collect();
            asking.into_iter().for_each(|request| assert!(request.join().unwrap() == large));
        });
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
        assert_eq!(origin.times("/large"), 1);
        let response = slow.receive(false).unwrap();
        assert!(response.whole && response.body == large, "in chunks: {in_chunks}");
    }
}

/// A slow client gets the complete response even if it cannot be stored.
#[test]
fn a_slow_reader_gets_complete_responses_that_cannot_be_stored() {
    for trouble in ["changed", "too large", "too much at once"] {
        let large = large(20_000_000);
        let document = large.clone();
        let origin = Origin::start(move |request| match (request.method.as_str(), trouble) {
            ("POST", _) => Reply::Send(response("200 OK", &[], b"done")),
            (_, "too large") => {
                Reply::Send(chunked(&["Cache-Control: max-age=60"], document.chunks(100_000)))
            }
            _ => Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], &document)),
        });
        let folder = tempfile::tempdir().unwrap();
        let max_object = if trouble == "too large" { 15_000_000 } else { 1 << 30 };
        let max_bytes = if trouble == "too much at once" { 15_000_000 } else { 1 << 30 };
        let options = Options {
            limits: Limits { max_object_bytes: max_object, ..Limits::default() },
            ..Options::default()
        };
        let about = umbel_cache::store::Options { max_bytes, ..Default::default() };
        let proxy = Running::with(folder.path(), &about, options);
        let url = origin.url("/large");
        let mut slow = ask_and_wait(&proxy, &origin, &url);
        if trouble == "changed" {
            assert_eq!(Connection::open(proxy.address).ask("POST", &url, &[], b"x").status, 200);
        }
        proxy.wait(|stats| stats["dropped"] == 1);
        let response = slow.receive(false).unwrap();
        assert!(response.whole && response.body == large, "{trouble}: {} bytes", response.body.len());
        assert_eq!(proxy.stats()["store"]["documents"], 0, "{trouble}");
    }
}

/// Responses that are not stored are fetched for all clients concurrently.
#[test]
fn requests_do_not_wait_for_responses_that_are_not_stored() {
    let origin = Origin::start(|request| {
        std::thread::sleep(Duration::from_millis(500));
        match request.path() {
            "/fails" => Reply::Send(response("503 Later", &[], b"later")),
            "/known" => Reply::Send(b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_vec()),
            _ => Reply::Send(response("200 OK", &["Cache-Control: private"], b"page")),
        }
    });
    let (_folder, proxy) = proxy(Limits::default());
    let kinds: [(&str, &[(&str, &str)]); 5] = [
        ("/own", &[("Authorization", "Basic x")]),
        ("/reload", &[("Cache-Control", "max-age=0")]),
        ("/fails", &[]),
        ("/known", &[("If-None-Match", "\"x\"")]),
        ("/private", &[]),
    ];
    for (path, headers) in kinds {
        let (start, url) = (Instant::now(), origin.url(path));
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| ask(proxy.address, "GET", &url, headers));
            }
        });
        assert!(start.elapsed() < Duration::from_millis(2500), "{path}: {:?}", start.elapsed());
        assert_eq!(origin.times(path), 10, "{path}");
    }
}
