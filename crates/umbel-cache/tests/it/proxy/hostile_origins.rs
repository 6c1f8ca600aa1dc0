//! Origins and clients that try to fill or poison the cache.

use crate::client::{Connection, ask, get};
use crate::origin::{Origin, Reply, response};
use crate::proxy::proxy;
use crate::running::Running;
use umbel_cache::proxy::Options;
use umbel_cache::store;

/// Some origins put the values of these headers into their responses, which are then wrong for
/// others.
#[test]
fn headers_outside_the_key_do_not_poison_the_cache() {
    let names = [
        "Forwarded",
        "Front-End-Https",
        "X-Forwarded-Host",
        "X-Forwarded-Path",
        "X-Forwarded-Port",
        "X-Forwarded-Prefix",
        "X-Forwarded-Proto",
        "X-Forwarded-Protocol",
        "X-Forwarded-Scheme",
        "X-Forwarded-Server",
        "X-Forwarded-Ssl",
        "X-Forwarded-URI",
        "X-Host",
        "X-HTTP-Host-Override",
        "X-HTTP-Method",
        "X-HTTP-Method-Override",
        "X-Method-Override",
        "X-Original-Host",
        "X-Original-URI",
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-URL-Scheme",
    ];
    let origin = Origin::start(move |request| {
        let link = names.iter().find_map(|name| request.header(name)).unwrap_or("honest").to_owned();
        let location = format!("Content-Location: /{link}");
        if request.header("if-none-match").is_some() {
            let head = format!("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n{location}\r\n\r\n");
            return Reply::Send(head.into_bytes());
        }
        let lifetime = if request.path().starts_with("/stale") { "max-age=0" } else { "max-age=60" };
        let headers = [&format!("Cache-Control: {lifetime}"), "ETag: \"x\"", &location];
        Reply::Send(response("200 OK", &headers, link.as_bytes()))
    });
    let (_folder, proxy) = proxy(Options::default());
    for (count, name) in names.iter().enumerate() {
        let url = origin.url(&format!("/{name}"));
        assert_eq!(ask(proxy.address, "GET", &url, &[(name, "evil")]).text(), "evil", "{name}");
        assert_eq!(get(proxy.address, &url).text(), "honest", "{name}");
        proxy.wait(|stats| stats["stored"] == 2 * count + 1);
        // A stored response is clean, so it is for everyone.
        let stored = ask(proxy.address, "GET", &url, &[(name, "evil")]);
        assert_eq!((stored.text().as_str(), stored.cache()), ("honest", "umbel;hit"), "{name}");
        // A revalidation does not change its headers.
        let url = origin.url(&format!("/stale/{name}"));
        assert_eq!(get(proxy.address, &url).text(), "honest", "{name}");
        proxy.wait(|stats| stats["stored"] == 2 * count + 2);
        ask(proxy.address, "GET", &url, &[(name, "evil")]);
        let again = get(proxy.address, &url);
        assert_eq!((again.text().as_str(), again.header("content-location")), ("honest", Some("/honest")));
    }
}

/// Tiny responses with different URLs take the space that their files take.
#[test]
fn many_tiny_responses_do_not_take_more_files_than_fit() {
    let origin = Origin::start(|_| Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], b"")));
    let folder = tempfile::tempdir().unwrap();
    let about = store::Options { max_bytes: 1 << 20, ..store::Options::default() };
    let proxy = Running::with(folder.path(), &about, Options::default());
    let mut connection = Connection::open(proxy.address);
    for i in 0..1000 {
        assert_eq!(connection.ask("GET", &origin.url(&format!("/{i}")), &[], b"").status, 200);
    }
    proxy.wait(|stats| stats["stored"] == 1000);
    let stats = proxy.stats();
    assert!(stats["store"]["documents"].as_u64() <= Some(256), "{stats}");
    let files = std::fs::read_dir(folder.path().join("heads")).unwrap();
    let files: usize = files.map(|inner| std::fs::read_dir(inner.unwrap().path()).unwrap().count()).sum();
    assert!(files <= 256, "{files} files");
}

/// A response for one client reaches no other, however its headers are written.
#[test]
fn personal_responses_are_not_stored() {
    let kinds: [&[&str]; 8] = [
        &["Cache-Control: max-age=60", "Set-Cookie: session=1"],
        &["Cache-Control: public, max-age=60, immutable", "Set-Cookie: session=1"],
        &["Cache-Control: max-age=60", "Vary: *"],
        &["Cache-Control: max-age=60", "Vary: Accept, *"],
        &["Cache-Control: max-age=60", "Cache-Control: PRIVATE"],
        &["Cache-Control: max-age=60", "Connection: close, Set-Cookie", "Set-Cookie: session=1"],
        &["Cache-Control: max-age=60, no-store", "Connection: Cache-Control"],
        &["Cache-Control: max-age=60", "Vary: \u{e9}"],
    ];
    let origin = Origin::start(move |request| {
        let kind: usize = request.path()[1..].parse().unwrap();
        Reply::Send(response("200 OK", kinds[kind], request.header("x-client").unwrap_or("none").as_bytes()))
    });
    let (_folder, proxy) = proxy(Options::default());
    for (kind, headers) in kinds.iter().enumerate() {
        let url = origin.url(&format!("/{kind}"));
        for client in ["one", "two"] {
            assert_eq!(
                ask(proxy.address, "GET", &url, &[("X-Client", client)]).text(),
                client,
                "{headers:?}"
            );
        }
    }
    assert_eq!(proxy.stats()["store"]["documents"], 0);
}

/// Ranges that overlap, repeat or are huge cost no more than the whole response.
#[test]
fn ranges_do_not_multiply_a_response() {
    let origin = Origin::start(|_| {
        Reply::Send(response("200 OK", &["Cache-Control: max-age=60", "ETag: \"x\""], &[b'x'; 10_000]))
    });
    let (_folder, proxy) = proxy(Options::default());
    let url = origin.url("/page");
    get(proxy.address, &url);
    proxy.wait(|stats| stats["stored"] == 1);
    let many = format!("bytes={}", vec!["0-"; 1000].join(","));
    for (range, condition, status, len) in [
        (many.as_str(), "\"x\"", 200, 10_000),
        ("bytes=0-18446744073709551615", "\"x\"", 206, 10_000),
        ("bytes=18446744073709551615-", "\"x\"", 416, 0),
        ("bytes=-18446744073709551616", "\"x\"", 206, 10_000),
        ("bytes=5-1", "\"x\"", 200, 10_000),
        ("bytes=0-1", "W/\"x\"", 200, 10_000),
        ("bytes=0-1", "\"y\"", 200, 10_000),
        ("bytes=0-1", "\"x\"", 206, 2),
    ] {
        let response = ask(proxy.address, "GET", &url, &[("Range", range), ("If-Range", condition)]);
        let given = (response.status, response.body.len());
        assert_eq!(given, (status, len), "{} {condition}", &range[..range.len().min(40)]);
    }
    assert_eq!(origin.requests().len(), 1);
}
