//! What the proxy reveals: its own pages to foreign names, and passwords and control characters to
//! logs and error pages.

use crate::client::{Connection, ask};
use crate::origin::{Origin, Reply, response};
use crate::proxy::proxy;
use std::os::unix::fs::PermissionsExt;
use umbel_cache::CacheDigest;
use umbel_cache::proxy::Options;

/// A web page whose host name resolves to the proxy (DNS rebinding) gets none of its pages.
#[test]
fn own_pages_are_not_served_under_foreign_names() {
    let names = vec!["Proxy.Example.ORG".to_owned()];
    let (_folder, proxy) = proxy(Options { names, ..Options::default() });
    let port = proxy.address.port();
    let status = |target: &str, host: &str| {
        let mut connection = Connection::open(proxy.address);
        connection.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
        connection.receive(false).unwrap().status
    };
    let pages = ["/umbel", "/umbel/", "/umbel/stats", "/umbel/summary", CacheDigest::PATH, "/none"];
    for page in pages {
        for host in ["evil.example", "evil.example:3128", "127.0.0.1.evil.example", "x@evil.example", "?"] {
            assert_eq!(status(page, host), 403, "{page} {host}");
        }
        // A browser that uses the proxy sends the name as part of the target. This one is resolved.
        if page != "/none" {
            assert_eq!(status(&format!("http://127.1:{port}{page}"), "127.0.0.1"), 403, "{page}");
        }
        for host in ["127.0.0.1", "[::1]:3128", "localhost:3128", "proxy", "proxy.example.org:3128"] {
            assert!(status(page, host) != 403, "{page} {host}");
        }
    }
    // Both names count.
    let named = format!("http://localhost:{port}/umbel/stats");
    assert_eq!(status(&named, "localhost"), 200);
    assert_eq!(status(&named, "evil.example"), 403);
}

#[test]
fn logs_and_error_pages_have_no_passwords_and_no_control_characters() {
    let origin = Origin::start(|_| {
        let headers = ["Cache-Control: max-age=60", "Content-Type: text/\u{9b}31mplain"];
        Reply::Send(response("200 OK", &headers, b"page"))
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let (_folder, proxy) = proxy(Options { access_log: Some(file.clone()), ..Options::default() });
    let host = origin.address;
    let mut pages = Vec::new();
    for target in [
        format!("GET http://alice:S3cretPw@{host}/user"),
        format!("GET http://alice:S3cret%50w@{host}/user"),
        format!("GET http://S3cretPw@{host}/user"),
        format!("GET http://alice:S3cretPw@{host}/umbel/stats"),
        "CONNECT alice:S3cretPw@127.0.0.1:443".to_owned(),
        format!("GET http://{host}/\u{9b}31m\u{202e}"),
        "GET /\u{9b}31m/own".to_owned(),
        "GET http://127.0.0.1:1/\u{9b}31m".to_owned(),
        format!("GET http://{host}/end"),
    ] {
        let mut connection = Connection::open(proxy.address);
        connection.send(format!("{target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        pages.extend(connection.receive(false));
    }
    proxy.wait(|_| std::fs::read_to_string(&file).unwrap().contains("/end "));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.is_ascii() && text.bytes().all(|byte| byte == b'\n' || (b' '..b'\x7f').contains(&byte)));
    assert!(text.contains("/%C2%9B31m%E2%80%AE"), "{text}");
    assert_eq!(text.lines().filter(|line| line.split(' ').any(|word| word.ends_with("/user"))).count(), 3);
    let shown = text + &proxy.log() + &pages.iter().map(|page| page.text()).collect::<String>();
    for secret in ["S3cret", "alice", "\u{9b}", "\u{202e}"] {
        assert!(!shown.contains(secret), "{secret:?} in {shown}");
    }
    // The origin has got none of the credentials.
    assert!(origin.requests().iter().all(|request| !request.target.contains("S3cret")));
    assert_eq!((origin.times("/user"), origin.times("/end")), (0, 1));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o027, 0, "{mode:o}");
}

#[test]
fn the_password_of_a_peer_is_not_shown() {
    for text in ["http://alice:S3cretPw@peer:3128", "http://alice:S3cret@Pw@peer:3128", "alice:S3cretPw@peer"]
    {
        let error = text.parse::<umbel_cache::proxy::PeerUrl>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("S3cret"), "{error:?}");
    }
}

/// Headers that name a URL cannot split a line of the access log.
#[test]
fn every_line_of_the_access_log_has_ten_fields() {
    let origin = Origin::start(|request| {
        let kind = format!("Content-Type: {}", request.header("x-type").unwrap_or("x"));
        Reply::Send(response("200 OK", &[&kind], b"page"))
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let (_folder, proxy) = proxy(Options { access_log: Some(file.clone()), ..Options::default() });
    let types = ["text/html; charset=x", "a b", "", "\ta\tb", "text/plain"];
    for kind in types {
        ask(proxy.address, "GET", &origin.url("/page"), &[("X-Type", kind)]);
    }
    let text = || std::fs::read_to_string(&file).unwrap();
    proxy.wait(|_| text().lines().filter(|line| line.contains("/page ")).count() == types.len());
    for line in text().lines() {
        assert_eq!(line.split_whitespace().count(), 10, "{line}");
    }
}
