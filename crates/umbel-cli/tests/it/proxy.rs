//! `umbel proxy` as a process: it reports its address, shares its cache with peers, stops at a
//! signal, and survives being killed.

use crate::client::{self, Connection, ask, get};
use crate::origin::{Origin, Reply, response};
use crate::shell::{Shell, UMBEL};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use umbel_cache::{CacheKey, Update, View};

/// A proxy process that ends with this value.
struct Proxy {
    address: SocketAddr,
    child: Child,
}

impl Proxy {
    fn start(folder: &Path, arguments: &[&str]) -> Proxy {
        let mut child = Command::new(UMBEL)
            .args(["proxy", "--listen", "127.0.0.1:0", "--summary-every", "100ms", "--cache-dir"])
            .arg(folder)
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = lines
            .by_ref()
            .find_map(|line| Some(line.strip_prefix("umbel: listening at http://")?.to_owned()));
        let address = address.expect("it listens").parse().unwrap();
        // Drain standard error, so that the proxy never blocks on it.
        std::thread::spawn(move || lines.for_each(drop));
        Proxy { address, child }
    }

    fn stats(&self) -> Value {
        serde_json::from_slice(&ask(self.address, "GET", "/umbel/stats", &[]).body).unwrap()
    }

    fn end(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a page that repeats its path, of the length that the path says.
fn page(path: &str) -> Vec<u8> {
    let number: usize = path.trim_start_matches('/').parse().unwrap();
    let length = if number.is_multiple_of(10) { 150_000 } else { number * 37 % 5000 };
    path.as_bytes().iter().cycle().take(length).copied().collect()
}

fn pages() -> Origin {
    Origin::start(|asked| {
        Reply::Send(response("200 OK", &["Cache-Control: max-age=3600"], &page(asked.path())))
    })
}

#[test]
fn proxies_share_pages_and_stop_at_a_signal() {
    let origin = pages();
    let folders: [_; 2] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let first = Proxy::start(folders[0].path(), &["--max-cache", "10MiB", "--allow", "192.0.2.0/24"]);
    let second = Proxy::start(folders[1].path(), &["--peer", &format!("http://{}", first.address)]);
    for number in 0..30 {
        assert!(get(first.address, &origin.url(&format!("/{number}"))).body == page(&format!("/{number}")));
    }
    let start = Instant::now();
    while second.stats()["peers"][0]["documents"] != 30 {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", second.stats());
        std::thread::sleep(Duration::from_millis(10));
    }
    for number in 0..30 {
        assert!(get(second.address, &origin.url(&format!("/{number}"))).body == page(&format!("/{number}")));
    }
    assert_eq!((origin.requests().len(), &second.stats()["peer_hits"]), (30, &30.into()));
    assert_eq!(first.end(Signal::TERM).code(), Some(0));
    assert_eq!(second.end(Signal::INT).code(), Some(0));
}

#[test]
fn requests_in_progress_are_finished_before_the_end() {
    let origin = Origin::start(|_| {
        std::thread::sleep(Duration::from_millis(500));
        Reply::Send(response("200 OK", &[], b"late"))
    });
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(folder.path(), &[]);
    let mut idle = Connection::open(proxy.address);
    assert_eq!(idle.ask("GET", "/umbel/", &[], b"").status, 200);
    let (address, url) = (proxy.address, origin.url("/page"));
    let asking = std::thread::spawn(move || get(address, &url).text());
    let start = Instant::now();
    while origin.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(proxy.end(Signal::TERM).code(), Some(0));
    assert_eq!(asking.join().unwrap(), "late");
    // Idle connections do not delay the end.
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

/// The proxy is killed 50 times during requests: every response afterwards is complete, and the
/// summary describes the stored pages.
#[test]
fn after_a_kill_every_page_is_complete_and_the_summary_matches() {
    let origin = pages();
    let folder = tempfile::tempdir().unwrap();
    let (hits, answers) = (AtomicU64::new(0), AtomicU64::new(0));
    for turn in 0..50u64 {
        let proxy = Proxy::start(folder.path(), &["--max-cache", "4MiB", "--memory", "500KiB"]);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for client in 0..4u64 {
                let (over, hits, answers, address, origin) = (&over, &hits, &answers, proxy.address, &origin);
                scope.spawn(move || {
                    let mut state = 1 + turn * 4 + client;
                    while !over.load(Relaxed) {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        let path = format!("/{}", (state >> 33) % 300);
                        let Some(answer) = try_get(address, &origin.url(&path)) else { continue };
                        assert!(
                            !answer.whole || answer.status == 200 && answer.body == page(&path),
                            "{path}"
                        );
                        answers.fetch_add(1, Relaxed);
                        hits.fetch_add(u64::from(answer.cache().starts_with("umbel;hit")), Relaxed);
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(20 + turn * 7 % 100));
            kill_process(Pid::from_child(&proxy.child), Signal::KILL).unwrap();
            over.store(true, Relaxed);
        });
    }
    assert!(answers.load(Relaxed) > 1000 && hits.load(Relaxed) > 500, "{answers:?} {hits:?}");
    let proxy = Proxy::start(folder.path(), &["--max-cache", "4MiB"]);
    let bytes = ask(proxy.address, "GET", "/umbel/summary", &[]).body;
    let mut view = View::default();
    view.apply(&Update::decode(&bytes).unwrap()).unwrap();
    let before = proxy.stats();
    assert_eq!(view.key_count(), before["store"]["documents"].as_u64().unwrap());
    assert!(view.key_count() > 20);
    let mut here = 0;
    for number in 0..300 {
        let url = origin.url(&format!("/{number}"));
        let answer = ask(proxy.address, "GET", &url, &[("Cache-Control", "only-if-cached")]);
        if answer.status == 200 {
            assert!(answer.body == page(&format!("/{number}")));
            assert!(view.contains(&CacheKey::from_url(&url)), "the summary has what is here");
            here += 1;
        }
    }
    assert_eq!(here, view.key_count());
    // The summary has few false positives: 16 bits per page, one in four hundred.
    let wrong =
        (0..1000).filter(|i| view.contains(&CacheKey::from_url(&origin.url(&format!("/none/{i}"))))).count();
    assert!(wrong <= 10, "{wrong} of 1000");
}

/// Fetches a page from a proxy that may be killed meanwhile.
fn try_get(proxy: SocketAddr, url: &str) -> Option<client::Response> {
    let stream = std::net::TcpStream::connect(proxy).ok()?;
    let mut connection = Connection::of(stream);
    connection.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).ok()?;
    connection.receive(false)
}

#[test]
fn invalid_options_are_refused_with_a_reason() {
    let shell = Shell::new();
    let folder = tempfile::tempdir().unwrap();
    let running = Proxy::start(folder.path(), &[]);
    // A directory with other files is not used and cleaned as a cache.
    std::fs::create_dir_all(shell.path("mail/new")).unwrap();
    shell.write("mail/new/letter", "dear");
    // The store is not reached through a link, nor in a directory of another user.
    drop(umbel_cache::store::Store::open(&shell.path("linked"), &Default::default()).unwrap());
    std::fs::remove_dir(shell.path("linked/new")).unwrap();
    std::os::unix::fs::symlink(shell.path("mail/new"), shell.path("linked/new")).unwrap();
    std::fs::create_dir(shell.path("theirs")).unwrap();
    // Only the administrator can give a directory away.
    let is_given = std::os::unix::fs::chown(shell.path("theirs"), Some(12_345), None).is_ok();
    let reason_for_theirs = if is_given { "belongs to another user" } else { "cannot listen" };
    let taken = running.address.to_string();
    let in_use = folder.path().to_str().unwrap();
    for (arguments, reason) in [
        ("proxy", "--cache-dir"),
        ("proxy --cache-dir x --listen nowhere", "127.0.0.1:3128"),
        ("proxy --cache-dir x --peer ftp://x", "http://HOST:PORT"),
        ("proxy --cache-dir x --peer http://127.0.0.1", "http://HOST:PORT"),
        ("proxy --cache-dir x --allow everybody", "192.0.2.0/24"),
        ("proxy --cache-dir x --summary-every 0s", "--summary-every"),
        ("proxy --cache-dir x --peer-timeout 2d", "--peer-timeout"),
        ("proxy --cache-dir x --max-clients 0", "--max-clients"),
        ("proxy --cache-dir x --max-tunnels 0", "--max-tunnels"),
        ("proxy --cache-dir x --connect-port 0", "--connect-port"),
        ("proxy --cache-dir x --connect-port 65536", "--connect-port"),
        ("proxy --cache-dir x --max-cache 10", "1MiB"),
        ("proxy --cache-dir x --listen 127.0.0.1:1 --manage 127.0.0.1:1", "--manage"),
        ("proxy --cache-dir x --listen 127.0.0.1:1 --peer http://127.0.0.1:1", "this proxy itself"),
        ("proxy --cache-dir x --admit some", "second-hit"),
        (&format!("proxy --cache-dir x --listen {taken}"), "cannot listen"),
        (&format!("proxy --listen 127.0.0.1:0 --cache-dir {in_use}"), "another process"),
        ("proxy --listen 127.0.0.1:0 --cache-dir /dev/null/x", "cannot store responses"),
        ("proxy --listen 127.0.0.1:0 --cache-dir mail", "name an empty folder"),
        ("proxy --listen 127.0.0.1:0 --cache-dir linked", "is a symbolic link, which is not followed"),
        (&format!("proxy --listen {taken} --cache-dir theirs"), reason_for_theirs),
    ] {
        let answer = shell.run(arguments);
        assert_eq!(answer.code, Some(2), "{arguments}: {answer:?}");
        assert!(answer.stderr.contains(reason), "{arguments}: {}", answer.stderr);
    }
    assert_eq!(shell.read("mail/new/letter"), b"dear");
}

/// Idle tunnels take half of the places of tunnels at most, and none of clients.
#[test]
fn tunnels_need_a_permitted_port_and_take_no_places_of_clients() {
    let origin = pages();
    let (folder, log) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let port = origin.address.port().to_string();
    let cache = folder.path().join("cache");
    let arguments = ["--max-clients", "50", "--connect-port", &port, "--connect-port", "22"];
    let proxy =
        Proxy::start(&cache, &[&arguments[..], &["--access-log", log.path().to_str().unwrap()]].concat());
    let target = origin.address.to_string();
    let tunnels: Vec<_> = (0..60)
        .map(|_| {
            let mut connection = Connection::open(proxy.address);
            (connection.ask("CONNECT", &target, &[], b""), connection)
        })
        .collect();
    assert_eq!(tunnels.iter().filter(|(response, _)| response.status == 200).count(), 25);
    let mut refused = tunnels.iter().filter(|(response, _)| response.status != 200);
    assert!(refused.all(|(response, _)| {
        response.status == 503 && response.text().contains("your address has too many tunnels")
    }));
    assert!(get(proxy.address, &origin.url("/7")).body == page("/7"));
    drop(tunnels);
    // Nothing listens at this address.
    for (port, status) in [(443, 502), (22, 502), (25, 403), (80, 403)] {
        let target = format!("127.0.0.77:{port}");
        let start = Instant::now();
        let mut answer = ask(proxy.address, "CONNECT", &target, &[]);
        while answer.status == 503 && start.elapsed() < Duration::from_secs(20) {
            answer = ask(proxy.address, "CONNECT", &target, &[]);
        }
        assert_eq!(answer.status, status, "{target}");
        let reasons = ["tunnels to port", "are not permitted"];
        assert!(status != 403 || reasons.iter().all(|reason| answer.text().contains(reason)), "{answer:?}");
    }
    // Other users see nothing of the cache.
    let mode = std::fs::metadata(&cache).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn foreign_names_and_ambiguous_requests_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(folder.path(), &["--name", "proxy.example.org"]);
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_str().unwrap();
    for (head, status, reason) in [
        ("GET /umbel/ HTTP/1.1\r\nHost: evil.example\r\n", 403, "this proxy is not known by that name"),
        ("GET /umbel/ HTTP/1.1\r\nHost: proxy.example.org:3128\r\n", 200, "umbel proxy"),
        (&format!("GET /umbel/ HTTP/1.1\r\nHost: {machine}\r\n"), 200, "umbel proxy"),
        (
            "GET /umbel/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n",
            400,
            "the request is ambiguous",
        ),
    ] {
        let mut connection = Connection::open(proxy.address);
        connection.send(format!("{head}\r\n").as_bytes()).unwrap();
        let answer = connection.receive(false).unwrap();
        assert_eq!(answer.status, status, "{head:?}");
        assert!(answer.text().contains(reason), "{head:?}: {}", answer.text());
    }
}

#[test]
fn the_access_log_can_be_renamed() {
    let origin = pages();
    let folder = tempfile::tempdir().unwrap();
    let (log, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let proxy = Proxy::start(&folder.path().join("cache"), &["--access-log", log.to_str().unwrap()]);
    let wait_for = |file: &Path, what: &str| {
        let start = Instant::now();
        while !std::fs::read_to_string(file).is_ok_and(|text| text.contains(what)) {
            assert!(start.elapsed() < Duration::from_secs(20), "{what} is not in {file:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    get(proxy.address, &origin.url("/1"));
    wait_for(&log, "/1 - HIER_DIRECT/127.0.0.1");
    std::fs::rename(&log, &old).unwrap();
    kill_process(Pid::from_child(&proxy.child), Signal::HUP).unwrap();
    let start = Instant::now();
    while !log.exists() {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    get(proxy.address, &origin.url("/2"));
    wait_for(&log, "/2 - HIER_DIRECT/127.0.0.1");
    assert!(!std::fs::read_to_string(&old).unwrap().contains("/2 - "));
}
