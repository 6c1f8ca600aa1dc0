//! Places: no client keeps others out, however many connections and tunnels it opens and however
//! slowly it sends and reads.

use crate::client::{Connection, ask, get};
use crate::origin::{Origin, Reply, response};
use crate::proxy::{any_port, connect_from, proxy};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use umbel_cache::proxy::{Limits, Options};

fn pages() -> Origin {
    Origin::start(|_| Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], b"page")))
}

#[test]
fn idle_connections_of_one_address_do_not_keep_others_out() {
    let origin = pages();
    let limits = Limits { max_clients: 8, place_timeout: Duration::from_millis(300), ..Limits::default() };
    let (_folder, proxy) = proxy(Options { limits, ..Options::default() });
    let mut crowd: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(proxy.address).unwrap()).collect();
    crowd.iter_mut().for_each(|stream| stream.write_all(b"GET http://").unwrap());
    let url = origin.url("/page");
    for source in ["127.0.0.8", "127.0.0.9"] {
        let other = connect_from(source, proxy.address);
        assert_eq!(Connection::of(other).ask("GET", &url, &[], b"").text(), "page");
    }
    // The address that has its share waits for a moment, and then learns why it is not served.
    let response = get(proxy.address, &url);
    assert_eq!(response.status, 503);
    assert_eq!((response.header("retry-after"), response.header("connection")), (Some("5"), Some("close")));
    assert!(response.text().contains("--max-clients"), "{}", response.text());
    let stats: serde_json::Value = {
        let mut other = Connection::of(connect_from("127.0.0.9", proxy.address));
        serde_json::from_slice(&other.ask("GET", "/umbel/stats", &[], b"").body).unwrap()
    };
    assert!(stats["turned_away"].as_u64() >= Some(1), "{stats}");
    // Its places are free again when it closes its connections.
    drop(crowd);
    let start = Instant::now();
    while get(proxy.address, &url).status == 503 {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

/// A flood of connections gets responses, or is disconnected. None of them waits for ever.
#[test]
fn no_connection_of_a_flood_is_left_without_an_answer() {
    let limits = Limits {
        max_clients: 4,
        place_timeout: Duration::from_millis(300),
        header_timeout: Duration::from_millis(500),
        ..Limits::default()
    };
    let (_folder, proxy) = proxy(Options { limits, ..Options::default() });
    let crowd: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(proxy.address).unwrap()).collect();
    let other = connect_from("127.0.0.9", proxy.address);
    assert_eq!(Connection::of(other).ask("GET", "/umbel/stats", &[], b"").status, 200);
    let mut turned_away = 0;
    for mut stream in crowd {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut bytes = Vec::new();
        if let Err(error) = stream.read_to_end(&mut bytes) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        turned_away += usize::from(bytes.starts_with(b"HTTP/1.1 503 "));
    }
    assert!(turned_away > 100, "{turned_away} of 300 got the status 503");
}

#[test]
fn idle_tunnels_do_not_keep_clients_out() {
    let origin = pages();
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = sink.local_addr().unwrap().to_string();
    let limits = Limits { max_clients: 4, max_tunnels: 6, ..Limits::default() };
    let (_folder, proxy) = proxy(Options { limits, ..any_port() });
    let open = |source: &str| {
        let mut connection = Connection::of(connect_from(source, proxy.address));
        let response = connection.ask("CONNECT", &there, &[], b"");
        (response, connection)
    };
    let mut tunnels: Vec<_> = (0..12).map(|_| open("127.0.0.1")).collect();
    let statuses: Vec<u16> = tunnels.iter().map(|(response, _)| response.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 3, "{statuses:?}");
    let refused = &tunnels.iter().find(|(response, _)| response.status != 200).unwrap().0;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    assert_eq!(refused.header("connection"), Some("close"));
    assert!(refused.text().contains("--max-tunnels"), "{}", refused.text());
    // Tunnels take no places of clients, not even of their own address.
    assert_eq!(get(proxy.address, &origin.url("/page")).text(), "page");
    let other = open("127.0.0.9");
    assert_eq!(other.0.status, 200);
    assert_eq!(proxy.stats()["tunnels"], 4);
    // The place of a tunnel is free again when the tunnel ends.
    tunnels.clear();
    drop(sink);
    let start = Instant::now();
    while ask(proxy.address, "CONNECT", &there, &[]).status == 503 {
        assert!(start.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(10));
    }
}

/// Limits with a lowest rate of 1000 bytes in half a second.
fn paced() -> Limits {
    Limits { stall_timeout: Duration::from_millis(500), min_bytes_per_second: 2000, ..Limits::default() }
}

/// Far longer than the proxy waits, and shorter than the trickle lasts.
const LATEST: Duration = Duration::from_secs(15);

#[test]
fn an_upload_that_trickles_is_ended() {
    let origin = pages();
    let (_folder, proxy) = proxy(Options { limits: paced(), ..Options::default() });
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    let url = origin.url("/upload");
    write!(stream, "POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n").unwrap();
    let start = Instant::now();
    // No pause is as long as the limit, but there are far too few bytes.
    while stream.write_all(b"x").is_ok() {
        assert!(start.elapsed() < LATEST, "the upload is still accepted");
        thread::sleep(Duration::from_millis(50));
    }
    let pace = b"a body at a sufficient pace ".repeat(10);
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    write!(stream, "POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 40 * pace.len()).unwrap();
    for _ in 0..40 {
        thread::sleep(Duration::from_millis(25));
        stream.write_all(&pace).unwrap();
    }
    assert_eq!(Connection::of(stream).receive(false).unwrap().text(), "page");
}

/// Starts an origin that sends this head to its first client, and then pieces of a body until the
/// client leaves or the trickle ends.
fn trickle(head: &'static str, piece: Vec<u8>, pause: Duration) -> (SocketAddr, JoinHandle<Duration>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let origin = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let start = Instant::now();
        while start.elapsed() < LATEST && stream.write_all(&piece).is_ok() {
            thread::sleep(pause);
        }
        start.elapsed()
    });
    (address, origin)
}

#[test]
fn an_origin_that_trickles_is_given_up() {
    for head in [
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 100000\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    ] {
        let (_folder, proxy) = proxy(Options { limits: paced(), ..Options::default() });
        let (address, origin) = trickle(head, b"x".to_vec(), Duration::from_millis(50));
        let mut connection = Connection::open(proxy.address);
        connection.send(format!("GET http://{address}/ HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        let response = connection.receive(false).unwrap();
        assert!(!response.whole && response.body.len() < 1000, "{head}: {} bytes", response.body.len());
        assert!(origin.join().unwrap() < LATEST, "{head}: the origin could trickle on");
        assert_eq!(proxy.stats()["store"]["documents"], 0);
    }
}

#[test]
fn an_origin_at_a_sufficient_pace_is_not_given_up() {
    let (_folder, proxy) = proxy(Options { limits: paced(), ..Options::default() });
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100000\r\n\r\n";
    let (address, origin) = trickle(head, vec![b'x'; 4000], Duration::from_millis(80));
    let response = get(proxy.address, &format!("http://{address}/"));
    assert!(response.whole && response.body.len() == 100_000);
    drop(proxy);
    origin.join().unwrap();
}

/// A client that reads a few bytes now and then does not hold its connection for ever.
#[test]
fn a_reader_that_trickles_is_disconnected() {
    let origin = Origin::start(|_| {
        Reply::Send(response("200 OK", &["Cache-Control: max-age=60"], &vec![b'x'; 30 << 20]))
    });
    let limits = Limits { max_clients: 1, ..paced() };
    let (_folder, proxy) = proxy(Options { limits, ..Options::default() });
    let url = origin.url("/large");
    assert_eq!(get(proxy.address, &url).body.len(), 30 << 20);
    let mut slow = TcpStream::connect(proxy.address).unwrap();
    write!(slow, "GET {url} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let reader = thread::spawn(move || {
        let start = Instant::now();
        while start.elapsed() < LATEST && slow.read(&mut [0; 16]).is_ok_and(|count| count > 0) {
            thread::sleep(Duration::from_millis(20));
        }
    });
    // The only place is free when the slow client was disconnected.
    let start = Instant::now();
    while get(proxy.address, &url).status != 200 {
        assert!(start.elapsed() < LATEST, "the slow client still has its place");
    }
    drop(proxy);
    reader.join().unwrap();
}
