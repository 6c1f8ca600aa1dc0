//! Request smuggling: a message whose end is ambiguous is refused, in both directions.

use crate::client::{Connection, get};
use crate::origin::{Origin, Reply, response};
use crate::proxy::{any_port, proxy};
use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;
use umbel_cache::proxy::{Limits, Options};

/// Each request hides another one behind it, for a path that must not be requested.
#[test]
fn ambiguous_requests_are_refused_and_do_not_reach_the_origin() {
    let origin = Origin::start(|_| Reply::Send(response("200 OK", &[], b"page")));
    let (_folder, proxy) = proxy(Options::default());
    let (url, hidden) = (origin.url("/first"), origin.url("/hidden"));
    let smuggled = format!("GET {hidden} HTTP/1.1\r\nHost: x\r\n\r\n");
    for headers in [
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: 5,\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length:\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "X: y\r\n\tfolded\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding: chunked\0\r\n",
        "X: y\0\r\n",
        "X: y\rContent-Length: 5\r\n",
        "X: y\nContent-Length: 5\r\n",
        "Content-Length: 5\n",
        "X\0: y\r\n",
        "Host: other\r\n",
        "no colon\r\n",
        ": no name\r\n",
    ] {
        let mut connection = Connection::open(proxy.address);
        let request = format!("POST {url} HTTP/1.1\r\nHost: x\r\n{headers}\r\n0\r\n\r\n{smuggled}");
        connection.send(request.as_bytes()).unwrap();
        let status = connection.receive(false).map(|response| response.status);
        assert!(status.is_none_or(|status| status == 400), "{headers:?}: {status:?}");
        assert!(connection.receive(false).is_none(), "{headers:?}: the connection is still open");
        assert_eq!(origin.requests().len(), 0, "{headers:?}: {:?}", origin.requests());
    }
    // The same connection, with a clean request first.
    let mut connection = Connection::open(proxy.address);
    assert_eq!(connection.ask("POST", &url, &[], b"body").status, 200);
    assert_eq!(
        connection
            .ask("POST", &url, &[("Transfer-Encoding", "chunked"), ("Content-Length", "4")], b"")
            .status,
        400
    );
    assert!(connection.receive(false).is_none());
    assert_eq!((origin.times("/first"), origin.times("/hidden")), (1, 0));
}

/// Every form of a clean request is understood, also several of them at once.
#[test]
fn clean_requests_are_told_apart() {
    let origin = Origin::start(|request| Reply::Send(response("200 OK", &[], request.path().as_bytes())));
    let (_folder, proxy) = proxy(Options::default());
    let url = |path: &str| origin.url(path);
    let requests = [
        format!("\r\nPOST {} HTTP/1.1\r\nHost: x\r\nContent-Length:\t4 \r\n\r\nbody", url("/1")),
        format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", url("/2")),
        format!("POST {} HTTP/1.1\r\nHost: x\r\ncontent-length: 0\r\n\r\n", url("/3")),
        format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", url("/4")),
    ]
    .concat();
    for piece in [1, 3, 1000] {
        let mut connection = Connection::open(proxy.address);
        for piece in requests.as_bytes().chunks(piece) {
            connection.send(piece).unwrap();
        }
        let paths: Vec<String> = (0..4).map(|_| connection.receive(false).unwrap().text()).collect();
        assert_eq!(paths, ["/1", "/2", "/3", "/4"], "in pieces of {piece}");
    }
}

/// Extensions and trailers of chunks are for the proxy alone.
#[test]
fn chunk_extensions_and_trailers_are_not_forwarded() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let origin = std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"0\r\n\r\n") {
            let mut bytes = [0; 4096];
            match stream.read(&mut bytes) {
                Ok(count) if count > 0 => received.extend(&bytes[..count]),
                _ => break,
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        String::from_utf8(received).unwrap()
    });
    let (_folder, proxy) = proxy(Options::default());
    let mut connection = Connection::open(proxy.address);
    let body = "3;name=\"value\"\r\nabc\r\n4 ; x\r\ndefg\r\n0\r\nX-Trailer: 1\r\nContent-Length: 9\r\n\r\n";
    connection
        .send(
            format!("POST {url} HTTP/1.1\r\nHost: x\r\nTrailer: X-Trailer\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
                .as_bytes(),
        )
        .unwrap();
    assert_eq!(connection.receive(false).unwrap().text(), "ok");
    let received = origin.join().unwrap();
    assert!(received.contains("abc") && received.contains("defg"), "{received}");
    assert!(received.ends_with("0\r\n\r\n"), "{received}");
    for secret in ["name=", "; x", "X-Trailer", "Content-Length"] {
        assert!(!received.contains(secret), "{secret} in {received}");
    }
}

/// The target of a request is its URL, whatever `Host` says.
#[test]
fn the_url_decides_and_not_the_host_header() {
    let origin = Origin::start(|request| {
        let host = request.header("host").unwrap_or("none").to_owned();
        Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], host.as_bytes()))
    });
    let (_folder, proxy) = proxy(Options::default());
    let host = origin.address.to_string();
    for _ in 0..2 {
        let mut connection = Connection::open(proxy.address);
        let request = format!("GET {} HTTP/1.1\r\nHost: evil.example\r\n\r\n", origin.url("/page"));
        connection.send(request.as_bytes()).unwrap();
        assert_eq!(connection.receive(false).unwrap().text(), host);
    }
    assert_eq!(get(proxy.address, &origin.url("/page")).text(), host);
    assert_eq!(origin.requests().len(), 1);
}

/// A client that sends the bytes for its tunnel at once does not have them read as requests.
#[test]
fn a_refused_tunnel_closes_the_connection() {
    let origin = Origin::start(|_| Reply::Send(response("200 OK", &[], b"page")));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hidden = format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", origin.url("/hidden"));
    let (_folder, closed_ports) = proxy(Options::default());
    let (_other_folder, open_ports) = proxy(any_port());
    for (address, target) in [
        (closed_ports.address, closed.to_string()),
        (open_ports.address, closed.to_string()),
        (open_ports.address, open_ports.address.to_string()),
        (open_ports.address, "127.0.0.1".to_owned()),
        (open_ports.address, "name:word@127.0.0.1:443".to_owned()),
    ] {
        let mut connection = Connection::open(address);
        connection.send(format!("CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n{hidden}").as_bytes()).unwrap();
        let refused = connection.receive(false);
        assert!(refused.as_ref().is_none_or(|response| response.status >= 400), "{target}: {refused:?}");
        assert!(connection.receive(false).is_none(), "{target}");
    }
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn ambiguous_responses_are_not_forwarded() {
    let kinds: [(&str, &str); 12] = [
        ("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody"),
        ("different lengths", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody"),
        ("a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\n\r\nbody"),
        ("a sign", "HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\nbody"),
        (
            "length and coding",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        ),
        ("two codings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"),
        (
            "chunked twice",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        ),
        ("an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nbody"),
        ("a folded header", "HTTP/1.1 200 OK\r\nX: y\r\n Content-Length: 4\r\n\r\nbody"),
        ("a space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 4\r\n\r\nbody"),
        ("HTTP/0.9", "<html>body</html>\r\n\r\n"),
        ("another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    ];
    for (name, bytes) in kinds {
        let body = bytes.replace("HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n");
        let origin = Origin::start(move |_| Reply::SendAndClose(body.clone().into_bytes(), Duration::ZERO));
        let (_folder, proxy) = proxy(Options::default());
        for _ in 0..2 {
            let response = get(proxy.address, &origin.url("/page"));
            assert_eq!(response.status, 502, "{name}: {response:?}");
            assert!(!response.text().contains("body"), "{name}: {}", response.text());
        }
        assert_eq!(proxy.stats()["store"]["documents"], 0, "{name}");
    }
}

/// Bytes after a response are not taken for the response to the next request.
#[test]
fn bytes_after_a_response_are_dropped() {
    let origin = Origin::start(|request| {
        let next = response("200 OK", &["Cache-Control: max-age=60"], b"forged");
        let bytes = match request.path() {
            "/empty" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            "/known" => b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_vec(),
            "/page" => response("200 OK", &["Cache-Control: no-store"], b"page"),
            _ => return Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], b"honest")),
        };
        Reply::Send([bytes, next].concat())
    });
    let (_folder, proxy) = proxy(Options::default());
    for path in ["/empty", "/known", "/page"] {
        for i in 0..20 {
            get(proxy.address, &origin.url(path));
            let next = origin.url(&format!("/next{path}/{i}"));
            assert_eq!(get(proxy.address, &next).text(), "honest", "after {path}");
        }
    }
}

/// Informational responses and headers without end are given up.
#[test]
fn responses_that_never_begin_are_given_up() {
    for (name, piece, status) in [
        ("informational responses", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 504),
        ("headers", "X: y\r\n", 502),
        ("a long header", "xxxxxxxx", 502),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let origin = std::thread::spawn(move || {
            use std::io::Write;
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            if name != "informational responses" {
                stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").unwrap();
            }
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_secs(20) && stream.write_all(piece.as_bytes()).is_ok() {
                std::thread::sleep(Duration::from_micros(100));
            }
            start.elapsed()
        });
        let limits = Limits { origin_timeout: Duration::from_millis(500), ..Limits::default() };
        let (_folder, proxy) = proxy(Options { limits, ..Options::default() });
        let given = get(proxy.address, &url).status;
        assert!(given == status || given == 504, "{name}: {given}");
        assert!(origin.join().unwrap() < Duration::from_secs(20), "{name}: the origin could go on");
    }
}
