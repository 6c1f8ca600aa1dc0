//! Which responses may be stored and reused, case by case (RFC 9111).

use http::{HeaderMap, Request, Response, request, response};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::time::{Duration, SystemTime};
use umbel_cache::rules::{Reuse, Revalidated, Source, StoredHead, variant};

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    headers
}

fn ask(method: &str, lines: &[(&str, &str)]) -> request::Parts {
    let request = Request::builder().method(method).uri("http://example.org/page");
    let mut parts = request.body(()).unwrap().into_parts().0;
    parts.headers = headers(lines);
    parts
}

fn answer(status: u16, lines: &[(&str, &str)]) -> response::Parts {
    let mut parts = Response::builder().status(status).body(()).unwrap().into_parts().0;
    parts.headers = headers(lines);
    parts
}

const MINUTE: (&str, &str) = ("cache-control", "max-age=60");

fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

#[test]
fn only_permitted_responses_are_stored() {
    let plain = ask("GET", &[]);
    let signed = ask("GET", &[("authorization", "Basic c2VjcmV0")]);
    let part = ask("GET", &[("range", "bytes=0-9")]);
    let never = ask("GET", &[("cache-control", "no-store")]);
    for (request, status, lines, kept) in [
        (&plain, 200, &[MINUTE][..], true),
        // A response that could never be reused.
        (&plain, 200, &[], false),
        (&plain, 200, &[("cache-control", "max-age=0")], false),
        (&plain, 200, &[("cache-control", "max-age=0"), ("etag", "\"x\"")], true),
        (&plain, 200, &[("last-modified", "Mon, 16 Nov 2020 10:00:00 GMT")], true),
        // Directives in any spelling.
        (&plain, 200, &[("cache-control", "No-Store, max-age=60")], false),
        (&plain, 200, &[("cache-control", "max-age=60"), ("cache-control", "PRIVATE")], false),
        (&plain, 200, &[("cache-control", "max-age=60, x=\"\u{e9}\"")], false),
        (&plain, 200, &[("cache-control", "no-store")], false),
        (&plain, 200, &[("cache-control", "private, max-age=60")], false),
        (&plain, 200, &[("cache-control", "max-age=60"), ("vary", "*")], false),
        (&plain, 200, &[("cache-control", "max-age=60"), ("vary", "accept-encoding, cookie")], true),
        (&plain, 200, &[MINUTE, ("set-cookie", "a=b")], false),
        (&plain, 200, &[("cache-control", "public, max-age=60"), ("set-cookie", "a=b")], false),
        (&plain, 206, &[MINUTE, ("content-range", "bytes 0-9/100")], false),
        (&plain, 200, &[MINUTE, ("content-range", "bytes 0-9/100")], false),
        (&plain, 304, &[MINUTE], false),
        (&plain, 404, &[MINUTE], true),
        (&plain, 301, &[MINUTE], true),
        (&plain, 500, &[MINUTE], false),
        (&part, 200, &[MINUTE], false),
        (&never, 200, &[MINUTE], false),
        (&signed, 200, &[MINUTE], false),
        (&signed, 200, &[("cache-control", "public, max-age=60")], true),
        (&signed, 200, &[("cache-control", "s-maxage=60")], true),
        // Contradictory directives permit nothing.
        (&signed, 200, &[("cache-control", "max-age=60"), ("cache-control", "max-age=30")], false),
        (&signed, 200, &[("cache-control", "max-age=60, foo=1, foo=2")], false),
        (&plain, 200, &[MINUTE, ("connection", "cache-control")], true),
        (
            &plain,
            200,
            &[
                ("cache-control", "private"),
                ("connection", "cache-control"),
                ("expires", "Fri, 15 Jan 2027 09:00:00 GMT"),
            ],
            false,
        ),
        (&ask("POST", &[]), 200, &[MINUTE], false),
        (&ask("HEAD", &[]), 200, &[MINUTE], false),
    ] {
        let head = StoredHead::from_response(request, &answer(status, lines), start());
        assert_eq!(head.is_some(), kept, "{status} {lines:?} to {request:?}");
    }
}

#[test]
fn fresh_responses_are_reused_and_stale_ones_revalidated() {
    let head = StoredHead::from_response(
        &ask("GET", &[]),
        &answer(200, &[MINUTE, ("etag", "\"x\""), ("age", "20")]),
        start(),
    )
    .unwrap();
    let after = |seconds: u64| start() + Duration::from_secs(seconds);
    assert!(matches!(head.reuse(&ask("GET", &[]), after(30)), Reuse::Fresh));
    let given = head.response(after(30));
    assert_eq!(
        (given.status.as_u16(), &given.headers["age"]),
        (200, &"50".parse::<http::HeaderValue>().unwrap())
    );
    let Reuse::Stale(question) = head.reuse(&ask("GET", &[]), after(41)) else { panic!() };
    assert_eq!(question.headers["if-none-match"], "\"x\"");
    assert_eq!(question.headers.get("host"), None);
    let Reuse::Stale(question) = head.reuse(&ask("GET", &[("host", "example.org")]), after(41)) else {
        panic!()
    };
    assert_eq!(question.headers["host"], "example.org");
    // A client can tighten or relax freshness.
    for (line, fresh) in [
        ("no-cache", false),
        ("No-Cache", false),
        ("max-age=10", false),
        ("min-fresh=30", false),
        ("max-age=100", true),
        ("only-if-cached", true),
    ] {
        let request = ask("GET", &[("cache-control", line), ("host", "example.org")]);
        let at = after(20);
        assert_eq!(matches!(head.reuse(&request, at), Reuse::Fresh), fresh, "{line}");
    }
    let strict = StoredHead::from_response(
        &ask("GET", &[]),
        &answer(200, &[("cache-control", "max-age=60, must-revalidate")]),
        start(),
    );
    let request = ask("GET", &[("cache-control", "max-stale=100")]);
    assert!(matches!(strict.unwrap().reuse(&request, after(70)), Reuse::Stale(_)));
    // In a shared cache, `s-maxage` overrides `max-age`.
    let shared = StoredHead::from_response(
        &ask("GET", &[]),
        &answer(200, &[("cache-control", "max-age=10, s-maxage=100")]),
        start(),
    );
    assert!(matches!(shared.unwrap().reuse(&ask("GET", &[]), after(90)), Reuse::Fresh));
}

#[test]
fn the_origin_decides_whether_a_stale_response_is_still_valid() {
    let head = StoredHead::from_response(
        &ask("GET", &[]),
        &answer(200, &[MINUTE, ("etag", "\"x\""), ("x-color", "red")]),
        start(),
    )
    .unwrap();
    let later = start() + Duration::from_secs(100);
    let Reuse::Stale(question) = head.reuse(&ask("GET", &[]), later) else { panic!() };
    let same = answer(304, &[("cache-control", "max-age=500"), ("etag", "\"x\"")]);
    let Revalidated::NotModified(head) = head.revalidate(&question, &same, later) else { panic!() };
    let given = head.response(later);
    assert_eq!(
        (given.status.as_u16(), &given.headers["x-color"]),
        (200, &"red".parse::<http::HeaderValue>().unwrap())
    );
    assert!(matches!(head.reuse(&ask("GET", &[]), later + Duration::from_secs(400)), Reuse::Fresh));
    let changed = answer(200, &[MINUTE, ("etag", "\"y\"")]);
    assert!(matches!(head.revalidate(&question, &changed, later), Revalidated::Modified(Some(_))));
    let forbidden = answer(200, &[("cache-control", "no-store")]);
    assert!(matches!(head.revalidate(&question, &forbidden, later), Revalidated::Modified(None)));
}

#[test]
fn variants_differ_by_the_headers_that_vary_lists() {
    let response = |vary: &str| headers(&[("vary", vary)]);
    let (german, english) = (headers(&[("accept-language", "de")]), headers(&[("accept-language", "en")]));
    assert_eq!(variant(&german, &HeaderMap::new()), Some(0));
    assert_ne!(
        variant(&german, &response("Accept-Language")),
        variant(&english, &response("accept-language"))
    );
    assert_eq!(
        variant(&german, &response("Accept-Language, Cookie")),
        variant(&german, &response("cookie,accept-language"))
    );
    assert_eq!(
        variant(&german, &response("accept-encoding")),
        variant(&english, &response("accept-encoding"))
    );
    assert_eq!(variant(&german, &response("accept-language, *")), None);
}

#[test]
fn secrets_of_a_request_are_not_stored() {
    let request = ask(
        "GET",
        &[("cookie", "session=secret"), ("authorization", "Basic secret"), ("accept-language", "de")],
    );
    let response = answer(200, &[("cache-control", "public, max-age=60"), ("vary", "accept-language")]);
    let head = StoredHead::from_response(&request, &response, start()).unwrap();
    let bytes = head.encode();
    assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
    let again = StoredHead::decode(&bytes).unwrap();
    assert!(matches!(again.reuse(&request, start()), Reuse::Fresh));
    assert!(matches!(again.reuse(&ask("GET", &[("accept-language", "en")]), start()), Reuse::Mismatch));
    assert!(StoredHead::decode(&bytes[..bytes.len() / 2]).is_none());
}

#[test]
fn headers_are_reused_exactly_and_updated_by_a_304() {
    let lines = [
        ("cache-control", "public"),
        ("cache-control", "max-age=60"),
        ("etag", "\"x\""),
        ("link", "<a>; rel=prev"),
        ("link", "<b>; rel=next"),
        ("date", "Fri, 15 Jan 2027 07:59:50 GMT"),
        ("age", "30"),
        ("x-other", "caf\u{e9}"),
        ("connection", "close, x-hop"),
        ("x-hop", "1"),
        ("content-length", "5"),
    ];
    let head = StoredHead::from_response(&ask("GET", &[]), &answer(200, &lines), start()).unwrap();
    let head = StoredHead::decode(&head.encode()).unwrap();
    let given = head.response(start()).headers;
    let values = |name: &str| given.get_all(name).iter().collect::<Vec<_>>();
    assert_eq!(values("link"), ["<a>; rel=prev", "<b>; rel=next"]);
    assert_eq!(values("date"), ["Fri, 15 Jan 2027 07:59:50 GMT"]);
    assert_eq!(given["x-other"].as_bytes(), "caf\u{e9}".as_bytes());
    assert!(!given.contains_key("x-hop") && !given.contains_key("connection"));

    let later = start() + Duration::from_secs(100);
    let Reuse::Stale(question) = head.reuse(&ask("GET", &[]), later) else { panic!() };
    let news = answer(
        304,
        &[("etag", "\"x\""), ("cache-control", "max-age=500"), ("x-new", "1"), ("content-type", "no")],
    );
    let Revalidated::NotModified(renewed) = head.revalidate(&question, &news, later) else { panic!() };
    let given = renewed.response(later).headers;
    let values = |name: &str| given.get_all(name).iter().collect::<Vec<_>>();
    assert_eq!(values("cache-control"), ["max-age=500"]);
    assert_eq!((values("link").len(), values("content-type").len()), (2, 0));
    assert_eq!((given["x-new"].as_bytes(), given["age"].as_bytes()), (&b"1"[..], &b"0"[..]));
    assert_eq!(given["date"], "Fri, 15 Jan 2027 08:01:40 GMT");
    // A 304 without a validator refers to the response that the request named.
    assert!(matches!(head.revalidate(&question, &answer(304, &[]), later), Revalidated::NotModified(_)));
    // The 304 refers to another response than the stored one.
    let other = answer(304, &[("etag", "\"y\"")]);
    assert!(matches!(head.revalidate(&question, &other, later), Revalidated::Mismatch));
}

#[test]
fn absurd_numbers_do_no_harm() {
    for age in ["18446744073709551615", "99999999999999999999999", "-1", "x", ""] {
        for life in ["max-age=18446744073709551615", "s-maxage=99999999999999999999999", "max-age=60"] {
            let response = answer(200, &[("age", age), ("cache-control", life), ("etag", "\"x\"")]);
            let Some(head) = StoredHead::from_response(&ask("GET", &[]), &response, start()) else {
                continue;
            };
            let later = start() + Duration::from_secs(1 << 33);
            for line in
                ["max-stale=18446744073709551615", "min-fresh=18446744073709551615", "max-age=0", "max-stale"]
            {
                let _ = head.reuse(&ask("GET", &[("cache-control", line)]), later);
            }
            let _ = (head.response(later), head.remaining_lifetime(later));
        }
    }
}

/// This version reads heads that an earlier version wrote.
#[test]
fn the_format_on_disk_does_not_change() {
    let golden = include_bytes!("../golden/answer-1.txt");
    let request = ask("GET", &[("accept-language", "de"), ("cookie", "secret")]);
    let response =
        answer(200, &[("cache-control", "max-age=60"), ("vary", "accept-language"), ("etag", "\"x\"")]);
    let head = StoredHead::from_response(&request, &response, start()).unwrap();
    assert_eq!(String::from_utf8(head.encode()).unwrap(), String::from_utf8_lossy(golden));
    let read = StoredHead::decode(golden).unwrap();
    assert!(matches!(read.reuse(&request, start()), Reuse::Fresh));
}

/// Heads say where a response came from; those without it came from the origin.
#[test]
fn the_source_of_a_response_is_stored_with_it() {
    let golden = include_str!("../golden/answer-1.txt");
    assert_eq!(StoredHead::decode(golden.as_bytes()).unwrap().source(), Source::Origin);
    for (line, source) in [("all peer", Source::Peer), ("here confirmed-peer", Source::ConfirmedPeer)] {
        let text = golden.replacen("\nall\n", &format!("\n{line}\n"), 1);
        let head = StoredHead::decode(text.as_bytes()).unwrap();
        assert_eq!((head.source(), String::from_utf8(head.encode()).unwrap()), (source, text));
    }
    for line in ["all ", "all origin", "all peer ", "peer", "all  peer"] {
        let text = golden.replacen("\nall\n", &format!("\n{line}\n"), 1);
        let head = StoredHead::decode(text.as_bytes());
        assert!(head.is_none_or(|head| line == "all " && head.source() == Source::Origin), "{line:?}");
    }
}

/// A response of a peer is stale until the origin has confirmed it, and then fresh for ten minutes.
#[test]
fn a_response_of_a_peer_has_to_be_confirmed() {
    let (plain, hour) = (ask("GET", &[]), ("cache-control", "max-age=3600"));
    let seconds = |count| start() + Duration::from_secs(count);
    let response = answer(200, &[hour, ("etag", "\"x\"")]);
    let head = StoredHead::from_response(&plain, &response, start()).unwrap().with_source(Source::Peer);
    assert!(head.is_storable() && !head.is_stale(start()));
    let Reuse::Stale(conditional) = head.reuse(&plain, start()) else { panic!("it is reused") };
    assert_eq!(conditional.headers["if-none-match"], "\"x\"");
    assert_eq!(head.age(start()), 3000);
    let confirmed = head.revalidate(&conditional, &answer(304, &[]), seconds(5));
    let Revalidated::NotModified(head) = confirmed else { panic!("{confirmed:?}") };
    assert_eq!(head.source(), Source::ConfirmedPeer);
    assert!(matches!(head.reuse(&plain, seconds(604)), Reuse::Fresh));
    assert!(matches!(head.reuse(&plain, seconds(605)), Reuse::Stale(_)));
    assert_eq!(head.response(seconds(5)).headers["age"], "3000");
    // A new response of the origin is like any other.
    let modified = head.revalidate(&conditional, &response, seconds(5));
    let Revalidated::Modified(Some(head)) = modified else { panic!("{modified:?}") };
    assert_eq!((head.source(), head.age(seconds(5))), (Source::Origin, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    /// Arbitrary bytes are refused, or decode to a head that survives another round trip.
    #[test]
    fn arbitrary_bytes_are_refused_or_survive_a_round_trip(
        cut in 0..200usize,
        changes in proptest::collection::vec((0..200usize, any::<u8>()), 0..4),
    ) {
        let mut bytes = include_bytes!("../golden/answer-1.txt").to_vec();
        for (at, byte) in changes {
            let len = bytes.len();
            bytes[at % len] = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(150)));
        if let Some(head) = StoredHead::decode(&bytes) {
            let again = StoredHead::decode(&head.encode()).unwrap();
            prop_assert_eq!(again.encode(), head.encode());
            let _ = (head.reuse(&ask("GET", &[]), start()), head.response(start()));
        }
    }

    /// No headers make the rules panic.
    #[test]
    fn arbitrary_headers_do_no_harm(
        asked in proptest::collection::vec((0..8usize, "[ -~]{0,30}"), 0..4),
        said in proptest::collection::vec((0..12usize, "[ -~]{0,30}"), 0..6),
        later in 0..100_000_000_000u64,
    ) {
        let of_questions = ["cache-control", "pragma", "authorization", "range", "if-none-match", "accept", "host", "cookie"];
        let of_answers = [
            "cache-control", "expires", "age", "date", "vary", "etag", "last-modified", "set-cookie", "content-range", "pragma",
            "connection", "content-length",
        ];
        let mut request = ask("GET", &[]);
        for (name, value) in &asked {
            request.headers.append(of_questions[*name], value.parse().unwrap());
        }
        let mut response = answer(200, &[]);
        for (name, value) in &said {
            response.headers.append(of_answers[*name], value.parse().unwrap());
        }
        let now = start() + Duration::from_secs(later);
        if let Some(head) = StoredHead::from_response(&request, &response, start()) {
            if let Reuse::Stale(question) = head.reuse(&request, now) {
                response.status = http::StatusCode::NOT_MODIFIED;
                let _ = head.revalidate(&question, &response, now);
            }
            let _ = (variant(&request.headers, &response.headers), head.remaining_lifetime(now));
            let again = StoredHead::decode(&head.encode()).unwrap();
            prop_assert_eq!(again.encode(), head.encode());
        }
    }
}

#[test]
fn stale_responses_are_never_reused_and_age_counts_from_the_origin() {
    let later = |seconds: u64| start() + Duration::from_secs(seconds);
    let plain = ask("GET", &[]);
    // Whatever the origin allows, a client that accepts stale responses does not get one.
    for life in [
        "no-cache",
        "s-maxage=10",
        "max-age=10, proxy-revalidate",
        "max-age=10, must-revalidate",
        "max-age=10",
    ] {
        let head = StoredHead::from_response(
            &plain,
            &answer(200, &[("cache-control", life), ("etag", "\"x\"")]),
            start(),
        )
        .unwrap();
        let question = ask("GET", &[("cache-control", "max-stale")]);
        assert!(matches!(head.reuse(&question, later(20)), Reuse::Stale(_)), "{life}");
    }
    // Its date says that the response was on the way for an hour.
    let late = answer(
        200,
        &[("cache-control", "max-age=60"), ("etag", "\"x\""), ("date", "Fri, 15 Jan 2027 07:00:00 GMT")],
    );
    let head = StoredHead::from_response(&plain, &late, start()).unwrap();
    assert!(matches!(head.reuse(&plain, start()), Reuse::Stale(_)));
    assert_eq!(head.response(start()).headers["age"], "3600");
    // Without an explicit lifetime, a response is not fresh for years.
    let ancient = answer(200, &[("last-modified", "Thu, 01 Jan 1970 00:00:00 GMT")]);
    let head = StoredHead::from_response(&plain, &ancient, start()).unwrap();
    assert!(matches!(head.reuse(&plain, later(86_000)), Reuse::Fresh));
    assert!(matches!(head.reuse(&plain, later(86_401)), Reuse::Stale(_)));
    assert!(matches!(
        head.reuse(&ask("GET", &[("cache-control", "max-age=999999")]), later(86_401)),
        Reuse::Stale(_)
    ));
}

#[test]
fn a_revalidation_has_the_headers_of_the_client() {
    let head =
        StoredHead::from_response(&ask("GET", &[]), &answer(200, &[MINUTE, ("etag", "\"x\"")]), start())
            .unwrap();
    let request =
        ask("GET", &[("x-a", "1"), ("x-a", "2"), ("if-none-match", "\"z\""), ("range", "bytes=0-1")]);
    let Reuse::Stale(question) = head.reuse(&request, start() + Duration::from_secs(61)) else { panic!() };
    assert_eq!(question.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(question.headers.get_all("if-none-match").iter().collect::<Vec<_>>(), ["\"x\""]);
    assert!(!question.headers.contains_key("range"));
}

#[test]
fn secrets_are_stored_as_hashes() {
    let of = |cookie: &str| ask("GET", &[("cookie", cookie)]);
    let head =
        StoredHead::from_response(&of("sid=secret"), &answer(200, &[MINUTE, ("vary", "cookie")]), start())
            .unwrap();
    let bytes = head.encode();
    assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
    let head = StoredHead::decode(&bytes).unwrap();
    assert!(matches!(head.reuse(&of("sid=secret"), start()), Reuse::Fresh));
    assert!(matches!(head.reuse(&of("sid=other"), start()), Reuse::Mismatch));
    assert!(matches!(head.reuse(&ask("GET", &[]), start()), Reuse::Mismatch));
}
