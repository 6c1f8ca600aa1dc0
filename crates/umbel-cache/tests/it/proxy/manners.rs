//! Access and forwarding: tunnels, loops, restricted addresses, and the pages that caches serve to
//! each other.

use crate::client::{Connection, ask, get};
use crate::origin::{Origin, Reply, response};
use crate::proxy::{any_port, connect_from, proxy};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use umbel_cache::proxy::{Limits, Options};

fn pages() -> Origin {
    Origin::start(|_| Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], b"page")))
}

#[test]
fn a_tunnel_relays_bytes_both_ways_and_is_never_stored() {
    let echo = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = echo.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = echo.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    let (_folder, proxy) = proxy(any_port());
    let mut connection = Connection::open(proxy.address);
    // Some clients do not wait until the tunnel is open.
    connection.send(format!("CONNECT {there} HTTP/1.1\r\nHost: {there}\r\n\r\nearly ").as_bytes()).unwrap();
    assert_eq!(connection.receive(true).unwrap().status, 200);
    let mut stream = connection.into_stream();
    let bytes: Vec<u8> = (0..500_000u32).map(|i| i as u8).collect();
    stream.write_all(&bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert!(back == [b"early ", &bytes[..]].concat());
    server.join().unwrap();
    proxy.wait(|stats| stats["bytes"]["tunnelled"] == 2 * 500_006);
    let stats = proxy.stats();
    assert_eq!((&stats["tunnels"], &stats["store"]["documents"]), (&1.into(), &0.into()));
    // No server listens here.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(ask(proxy.address, "CONNECT", &free.to_string(), &[]).status, 502);
}

/// A tunnel to any port would let clients speak to mail servers, for example.
#[test]
fn tunnels_lead_to_permitted_ports_only() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = listener.local_addr().unwrap();
    let (_folder, closed) = proxy(Options::default());
    let refused = ask(closed.address, "CONNECT", &there.to_string(), &[]);
    assert_eq!((refused.status, refused.header("connection")), (403, Some("close")));
    assert!(refused.text().contains("--connect-port"), "{}", refused.text());
    // Nothing listens at this port, so an attempt was made.
    assert_eq!(ask(closed.address, "CONNECT", "127.0.0.1:443", &[]).status, 502);
    let (_folder, open) = proxy(Options { connect_ports: vec![there.port()], ..Options::default() });
    assert_eq!(Connection::open(open.address).ask("CONNECT", &there.to_string(), &[], b"").status, 200);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_ok() && listener.accept().is_err(), "only one connection was opened");
}

#[test]
fn internal_pages_of_other_caches_are_not_forwarded() {
    let origin = pages();
    let (_folder, proxy) = proxy(any_port());
    for path in [
        "/umbel/stats",
        "/umbel/",
        "/umbel",
        "/umbel/summary",
        "/squid-internal-periodic/store_digest",
        "/squid-internal-mgr/info",
    ] {
        assert_eq!(get(proxy.address, &origin.url(path)).status, 403, "{path}");
    }
    assert_eq!(origin.requests().len(), 0);
    // Other paths with this prefix are ordinary resources.
    assert_eq!(get(proxy.address, &origin.url("/umbel/page.html")).text(), "page");
    // The proxy also serves its own pages to clients that use it as a proxy, under any of its
    // names.
    for host in [proxy.address.to_string(), format!("localhost:{}", proxy.address.port())] {
        assert_eq!(get(proxy.address, &format!("http://{host}/umbel/stats")).status, 200, "{host}");
    }
    let page = ask(proxy.address, "GET", "/umbel/", &[]);
    assert!(page.text().contains("<title>umbel proxy</title>") && page.text().contains("1 page answered"));
    assert_eq!(ask(proxy.address, "HEAD", "/umbel/", &[]).status, 200);
    assert_eq!(ask(proxy.address, "POST", "/umbel/stats", &[]).status, 405);
    assert_eq!(ask(proxy.address, "GET", "/other", &[]).status, 404);
    // A web page whose host name resolves to this machine gets nothing (DNS rebinding).
    let mut rebound = Connection::open(proxy.address);
    rebound.send(b"GET /umbel/stats HTTP/1.1\r\nHost: evil.example:3128\r\n\r\n").unwrap();
    assert_eq!(rebound.receive(false).unwrap().status, 403);
    // Tunnels to the proxy itself or to a peer are refused, too.
    assert_eq!(ask(proxy.address, "CONNECT", &proxy.address.to_string(), &[]).status, 403);
    let peers = vec![format!("http://localhost:{}", proxy.address.port()).parse().unwrap()];
    let (_folder, other) = self::proxy(Options { peers, ..any_port() });
    assert_eq!(ask(other.address, "CONNECT", &proxy.address.to_string(), &[]).status, 403);
}

#[test]
fn statistics_can_have_an_address_of_their_own() {
    let origin = pages();
    let status_address = Some("127.0.0.1:0".parse().unwrap());
    let (_folder, proxy) = proxy(Options { status_address, ..Options::default() });
    assert_ne!(proxy.status_address, proxy.address);
    assert_eq!(ask(proxy.address, "GET", "/umbel/stats", &[]).status, 404);
    assert_eq!(ask(proxy.address, "GET", "/umbel/summary", &[]).status, 200);
    assert_eq!(ask(proxy.status_address, "GET", "/umbel/stats", &[]).status, 200);
    assert_eq!(get(proxy.status_address, &origin.url("/page")).status, 403);
    // The status page of a full proxy stays reachable.
    let limits = Limits { max_clients: 1, ..Limits::default() };
    let (_folder, full) = self::proxy(Options { status_address, limits, ..Options::default() });
    let mut only = Connection::open(full.address);
    assert_eq!(only.ask("GET", "/umbel/summary", &[], b"").status, 200);
    assert_eq!(ask(full.status_address, "GET", "/umbel/stats", &[]).status, 200);
}

#[test]
fn a_request_that_loops_back_is_refused() {
    let origin = pages();
    let (_folder, proxy) = proxy(Options::default());
    let via = get(proxy.address, &origin.url("/page")).header("via").unwrap().to_owned();
    let chain = format!("1.0 other, {via}, 1.1 another");
    assert_eq!(ask(proxy.address, "GET", &origin.url("/page"), &[("Via", &chain)]).status, 508);
    assert_eq!(ask(proxy.address, "GET", &origin.url("/page"), &[("Via", "1.1 umbel-other")]).status, 200);
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn only_allowed_clients_are_served() {
    let origin = pages();
    let (_folder, proxy) = proxy(Options { allow: Arc::new(|_| false), ..Options::default() });
    let refused = get(proxy.address, &origin.url("/page"));
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("--allow"), "{}", refused.text());
    assert_eq!(ask(proxy.address, "CONNECT", &origin.address.to_string(), &[]).status, 403);
    assert_eq!(ask(proxy.address, "GET", "/umbel/stats", &[]).status, 403);
    assert_eq!(origin.requests().len(), 0);
    assert!(proxy.log().contains("127.0.0.1 is not allowed here"));
    // Rejected clients do not count towards the limit of clients.
    let limits = Limits { max_clients: 1, ..Limits::default() };
    let elsewhere: IpAddr = "127.0.0.2".parse().unwrap();
    let (_folder, proxy) =
        self::proxy(Options { limits, allow: Arc::new(move |ip| ip != elsewhere), ..Options::default() });
    let _strangers: Vec<TcpStream> = (0..40).map(|_| connect_from("127.0.0.2", proxy.address)).collect();
    assert_eq!(get(proxy.address, &origin.url("/page")).text(), "page");
}

#[test]
fn hop_by_hop_headers_are_not_forwarded() {
    let origin = Origin::start(|_| {
        let headers = [
            "Cache-Control: max-age=60",
            "Connection: keep-alive, X-Hop",
            "X-Hop: 1",
            "Keep-Alive: timeout=5",
            "X-End: 2",
        ];
        Reply::Send(response("200 OK", &headers, b"page"))
    });
    let (_folder, proxy) = proxy(Options::default());
    let sent = [
        ("Proxy-Connection", "keep-alive"),
        ("Proxy-Authorization", "Basic secret"),
        ("Connection", "X-Mine"),
        ("X-Mine", "1"),
        ("TE", "trailers"),
        ("X-Other", "2"),
    ];
    for _ in 0..2 {
        let response = ask(proxy.address, "GET", &origin.url("/page"), &sent);
        assert_eq!(
            (response.header("x-hop"), response.header("keep-alive"), response.header("x-end")),
            (None, None, Some("2"))
        );
    }
    let request = &origin.requests()[0];
    for name in ["proxy-connection", "proxy-authorization", "x-mine", "te"] {
        assert_eq!(request.header(name), None, "{name}");
    }
    assert_eq!((request.target.as_str(), request.header("x-other")), ("/page", Some("2")));
    assert_eq!(request.header("host"), Some(origin.address.to_string().as_str()));
    assert!(request.header("via").unwrap().starts_with("1.1 umbel-"));
}

#[test]
fn requests_that_cannot_be_forwarded_get_an_error_with_a_reason() {
    let (_folder, proxy) = proxy(Options::default());
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (method, target, status, reason) in [
        ("GET", "https://example.org/", 400, "CONNECT"),
        ("GET", "ftp://example.org/", 400, "http"),
        ("GET", "http://name:word@127.0.0.1/", 400, "passwords"),
        ("CONNECT", "127.0.0.1", 400, "port"),
        ("TRACE", "http://127.0.0.1:1/", 405, "TRACE"),
        ("GET", &format!("http://{free}/"), 502, "cannot be reached"),
        ("GET", "http://name.invalid/", 502, "cannot be reached"),
    ] {
        let response = ask(proxy.address, method, target, &[]);
        assert_eq!(response.status, status, "{method} {target}: {}", response.text());
        assert!(response.text().contains(reason), "{method} {target}: {}", response.text());
    }
}

#[test]
fn every_response_is_logged_in_the_format_of_squid() {
    let origin = Origin::start(|request| match (request.path(), request.header("if-none-match")) {
        ("/stale", Some(_)) => Reply::Send(b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_vec()),
        ("/stale", None) => {
            Reply::Send(response("200 OK", &["Cache-Control: max-age=0", "ETag: \"x\""], b"old"))
        }
        _ => Reply::Send(response(
            "200 OK",
            &["Cache-Control: max-age=60", "Content-Type: text/plain; charset=x"],
            b"page",
        )),
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let (_folder, proxy) = proxy(Options { access_log: Some(file.clone()), ..Options::default() });
    let (page, stale) = (origin.url("/page"), origin.url("/stale"));
    let none = origin.url("/none");
    for (url, expected, kept) in [(&page, 1, 1), (&page, 2, 1), (&stale, 1, 2), (&stale, 2, 2), (&none, 1, 2)]
    {
        let only: &[_] = if *url == none { &[("Cache-Control", "only-if-cached")] } else { &[] };
        ask(proxy.address, "GET", url, only);
        // The line is written at the end of the response, which the client sees a little earlier.
        let lines = || std::fs::read_to_string(&file).unwrap().matches(url.as_str()).count();
        proxy.wait(|stats| lines() == expected && stats["stored"] == kept);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let of = |url: &str| lines.iter().filter(|words| words[6] == url).collect::<Vec<_>>();
    for (url, codes) in
        [(&page, ["TCP_MISS/200", "TCP_HIT/200"]), (&stale, ["TCP_MISS/200", "TCP_REFRESH_UNMODIFIED/200"])]
    {
        let found = of(url);
        assert_eq!(found.iter().map(|words| words[3]).collect::<Vec<_>>(), codes, "{text}");
        assert!(
            found.iter().all(|words| words.len() == 10 && words[2] == "127.0.0.1" && words[5] == "GET"),
            "{text}"
        );
    }
    assert_eq!((of(&page)[1][4], of(&page)[1][8], of(&page)[1][9]), ("4", "HIER_NONE/-", "text/plain"));
    assert_eq!(of(&none)[0][3], "NONE_NONE/504");
}

#[test]
fn max_forwards_is_respected() {
    let origin = pages();
    let (_folder, proxy) = proxy(Options::default());
    for (left, told) in [("2", Some("1")), ("0", None), ("x", None)] {
        let before = origin.requests().len();
        assert_eq!(ask(proxy.address, "OPTIONS", &origin.url("/"), &[("Max-Forwards", left)]).status, 200);
        let requests = origin.requests();
        assert_eq!(
            requests[before..].first().and_then(|request| request.header("max-forwards")),
            told,
            "{left}"
        );
    }
    let condition = [("If-Match", "\"x\""), ("Cache-Control", "only-if-cached")];
    assert_eq!(ask(proxy.address, "GET", &origin.url("/"), &condition).status, 504);
}
