//! A real Squid as a sibling: each of the two caches reads the digest of the other and fetches
//! documents from it.

use crate::client::{ask, get};
use crate::debian;
use crate::origin::{Origin, Reply, response};
use crate::running::Running;
use std::ffi::OsString;
use std::fmt::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;
use umbel_cache::proxy::{Limits, Options};
use umbel_cache::{CacheDigest, CacheKey};

/// The number of documents that one cache has and the other requests.
const DOCUMENTS: usize = 50;

#[test]
fn documents_in_the_digest_of_squid_are_fetched_from_squid() {
    let (origin, squid) = (origin(), Squid::start(None));
    fill(&squid, &origin);
    let folder = tempfile::tempdir().unwrap();
    let proxy = sibling_of(&squid, folder.path());
    for path in paths() {
        assert_eq!(get(proxy.address, &origin.url(&path)).body, body(&path));
        assert_eq!(origin.times(&path), 1, "{path}");
    }
    let stats = proxy.stats();
    assert_eq!((&stats["peer_hits"], &stats["misses"]), (&DOCUMENTS.into(), &0.into()), "{stats}");
    assert_eq!(stats["peers"][0]["hits"], DOCUMENTS, "{stats}");
    for path in paths() {
        let lines = squid.logged(&origin.url(&path), 2);
        assert_eq!(lines[0], ["TCP_MISS/200", "HIER_DIRECT/127.0.0.1"], "{path}");
        assert!(["TCP_HIT/200", "TCP_MEM_HIT/200"].contains(&lines[1][0].as_str()), "{path}: {lines:?}");
        assert_eq!(lines[1][1], "HIER_NONE/-", "{path}");
    }
}

#[test]
fn squid_fetches_documents_in_our_digest_from_us() {
    let origin = origin();
    let folder = tempfile::tempdir().unwrap();
    let proxy = filled(&origin, folder.path());
    let squid = Squid::start(Some(proxy.address));
    squid.learn(&origin);
    for path in paths() {
        let response = get(squid.address, &origin.url(&path));
        assert_eq!((response.body, origin.times(&path)), (body(&path), 1), "{path}");
        let lines = squid.logged(&origin.url(&path), 1);
        assert_eq!(lines[0], ["TCP_MISS/200", "CD_SIBLING_HIT/127.0.0.1"], "{path}");
    }
    assert_eq!(proxy.count("hits"), DOCUMENTS as u64);
    // Squid may store the documents, and does not request them again.
    for path in paths() {
        assert_eq!(get(squid.address, &origin.url(&path)).body, body(&path));
    }
    assert_eq!(proxy.count("hits"), DOCUMENTS as u64);
}

#[test]
fn our_false_positive_costs_squid_a_request_and_never_a_wrong_response() {
    let origin = origin();
    let folder = tempfile::tempdir().unwrap();
    let proxy = filled(&origin, folder.path());
    let squid = Squid::start(Some(proxy.address));
    squid.learn(&origin);
    // One absent document in eleven is a false positive of the digest.
    let digest = CacheDigest::decode(&ask(proxy.address, "GET", CacheDigest::PATH, &[]).body).unwrap();
    let promised = |path: &String| digest.contains(&CacheKey::from_url(&origin.url(path)));
    let (promised, denied): (Vec<String>, Vec<String>) = strangers().take(1000).partition(promised);
    let (promised, denied) = (&promised[..10], &denied[..10]);

    let url = origin.url(&promised[0]);
    let refused = ask(proxy.address, "GET", &url, &[("Cache-Control", "only-if-cached")]);
    assert_eq!((refused.status, origin.times(&promised[0])), (504, 0));
    let before = proxy.count("only_if_cached");
    for path in promised.iter().chain(denied) {
        let response = get(squid.address, &origin.url(path));
        assert_eq!((response.status, response.body, origin.times(path)), (200, body(path), 1), "{path}");
        let lines = squid.logged(&origin.url(path), 1);
        assert_eq!(lines[0], ["TCP_MISS/200", "HIER_DIRECT/127.0.0.1"], "{path}");
    }
    assert_eq!(proxy.count("only_if_cached") - before, promised.len() as u64);
    // The proxy fetches nothing for Squid.
    assert_eq!(proxy.count("misses"), DOCUMENTS as u64);
}

#[test]
fn a_false_positive_of_squid_costs_us_a_request_and_never_a_wrong_response() {
    let (origin, squid) = (origin(), Squid::start(None));
    fill(&squid, &origin);
    let folder = tempfile::tempdir().unwrap();
    let proxy = sibling_of(&squid, folder.path());
    let mut fetched = Vec::new();
    // Squid rebuilds its digest meanwhile, so it is not known which documents are false positives.
    for path in strangers().take(1000) {
        assert_eq!(get(proxy.address, &origin.url(&path)).body, body(&path));
        assert_eq!(origin.times(&path), 1, "{path}");
        fetched.push(path);
        if proxy.stats()["peers"][0]["false_hits"].as_u64() >= Some(3) {
            break;
        }
    }
    let stats = proxy.stats();
    let peer = &stats["peers"][0];
    assert_eq!((&peer["false_hits"], &peer["failures"]), (&3.into(), &0.into()), "{stats}");
    assert_eq!((&stats["misses"], &stats["peer_hits"]), (&fetched.len().into(), &0.into()), "{stats}");
    let refused = || fetched.iter().flat_map(|path| squid.log_of(&origin.url(path))).collect::<Vec<_>>();
    wait_for("the log", || refused().len() == 3);
    assert!(refused().iter().all(|line| line[0].ends_with("/504")), "{:?}", refused());
}

/// Returns the paths of the documents that one of the two caches has.
fn paths() -> impl Iterator<Item = String> {
    (0..DOCUMENTS).map(|i| format!("/document{i}"))
}

/// Returns the paths of documents that only the origin has.
fn strangers() -> impl Iterator<Item = String> {
    (0..).map(|i| format!("/stranger{i}"))
}

fn body(path: &str) -> Vec<u8> {
    path.as_bytes().repeat(2000)
}

fn origin() -> Origin {
    Origin::start(|request| {
        // Squid's digest does not contain documents without a date.
        let date = format!("Date: {}", httpdate::fmt_http_date(SystemTime::now()));
        Reply::Send(response("200 OK", &[&date, "Cache-Control: max-age=3600"], &body(request.path())))
    })
}

/// Makes Squid fetch all documents, and waits until its digest contains them.
fn fill(squid: &Squid, origin: &Origin) {
    for path in paths() {
        assert_eq!(get(squid.address, &origin.url(&path)).body, body(&path));
    }
    let keys: Vec<CacheKey> = paths().map(|path| CacheKey::from_url(&origin.url(&path))).collect();
    wait_for("the digest of Squid", || {
        let response = ask(squid.address, "GET", CacheDigest::PATH, &[]);
        let digest = CacheDigest::decode(&response.body).ok().filter(|_| response.status == 200);
        digest.is_some_and(|digest| keys.iter().all(|key| digest.contains(key)))
    });
}

/// Starts a proxy and waits until it has the digest of Squid.
fn sibling_of(squid: &Squid, folder: &Path) -> Running {
    let peers = vec![format!("http://{}", squid.address).parse().unwrap()];
    // This test is not about time, and others may need the processors.
    let limits = Limits { peer_timeout: Duration::from_secs(20), ..Limits::default() };
    let options = Options { peers, summary_interval: Duration::from_secs(1), limits, ..Options::default() };
    let proxy = Running::start(folder, options);
    proxy.wait(|stats| stats["peers"][0]["documents"].as_u64() >= Some(DOCUMENTS as u64));
    proxy
}

/// Starts a proxy and fetches all documents through it.
fn filled(origin: &Origin, folder: &Path) -> Running {
    let proxy = Running::start(folder, Options::default());
    for path in paths() {
        assert_eq!(get(proxy.address, &origin.url(&path)).body, body(&path));
    }
    // The last response may arrive before it is stored.
    proxy.wait(|stats| stats["store"]["documents"] == DOCUMENTS);
    proxy
}

/// Waits for a condition.
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A Squid with its own folder, which is killed when this is dropped.
struct Squid {
    address: SocketAddr,
    name: String,
    folder: TempDir,
    child: Child,
}

impl Squid {
    /// Starts a Squid, optionally as the sibling of another cache.
    fn start(sibling: Option<SocketAddr>) -> Squid {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let mut said = String::new();
        // Another program may take the port before Squid does.
        for _ in 0..5 {
            let name = format!("umbelsibling{}n{}", std::process::id(), STARTED.fetch_add(1, Relaxed));
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let mut squid = Squid::launch(name, free, sibling);
            wait_for("Squid", || squid.is_ready() || squid.child.try_wait().unwrap().is_some());
            if squid.child.try_wait().unwrap().is_none() {
                return squid;
            }
            said = squid.said();
        }
        panic!("Squid does not start: {said}");
    }

    fn launch(name: String, address: SocketAddr, sibling: Option<SocketAddr>) -> Squid {
        let folder = tempfile::tempdir().unwrap();
        let conf = folder.path().join("squid.conf");
        std::fs::write(&conf, configuration(&name, address, sibling, folder.path())).unwrap();
        // Squid runs as this user if root starts it.
        if std::fs::metadata(folder.path()).unwrap().uid() == 0 {
            let (user, group) = proxy_user();
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        // A killed Squid of the same name may have left shared memory that prevents the next one
        // from starting.
        forget_memory(&name);
        let command = || {
            let mut command = Command::new(&installation().program);
            command.env("LD_LIBRARY_PATH", &installation().libraries);
            command.args(["-N", "-n", &name, "-f"]).arg(&conf).stdin(Stdio::null());
            command
        };
        let made = command().arg("-z").output().unwrap();
        assert!(
            made.status.success(),
            "Squid cannot create its folders: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        let said = std::fs::File::create(folder.path().join("said")).unwrap();
        let child = command().stdout(said.try_clone().unwrap()).stderr(said).spawn().unwrap();
        Squid { address, name, folder, child }
    }

    /// Returns whether this Squid listens. Its log proves that it has the port, a moment before it
    /// accepts connections.
    fn is_ready(&self) -> bool {
        self.read("cache.log").contains("Accepting HTTP Socket connections")
            && TcpStream::connect(self.address).is_ok()
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default()
    }

    /// Returns the output and the log of Squid.
    fn said(&self) -> String {
        self.read("said") + &self.read("cache.log")
    }

    /// Waits until Squid has the digest of its sibling, which it fetches when it first needs it.
    fn learn(&self, origin: &Origin) {
        get(self.address, &origin.url("/first"));
        let state = || ask(self.address, "GET", "/squid-internal-mgr/peer_select", &[]).text();
        wait_for("our digest", || state().contains("needed: yes, usable: yes"));
        let all = format!("entries: count: {DOCUMENTS} ");
        assert!(state().contains(&all), "{}", state());
    }

    /// Returns the result and hierarchy codes of each request for a URL in the access log.
    fn log_of(&self, url: &str) -> Vec<[String; 2]> {
        let log = self.read("access.log");
        let lines = log.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let of_it = lines.filter(|words| words.get(6) == Some(&url) && words.len() > 8);
        of_it.map(|words| [words[3].to_owned(), words[8].to_owned()]).collect()
    }

    /// Waits until the access log has this many lines about a URL and returns them. Squid writes a
    /// line after it has answered.
    fn logged(&self, url: &str, count: usize) -> Vec<[String; 2]> {
        wait_for("the log", || self.log_of(url).len() >= count);
        let lines = self.log_of(url);
        assert_eq!(lines.len(), count, "{url}: {lines:?}");
        lines
    }
}

impl Drop for Squid {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        forget_memory(&self.name);
        if std::thread::panicking() {
            eprintln!("The log of Squid:\n{}{}", self.said(), self.read("access.log"));
        }
    }
}

/// Removes the shared memory of a Squid.
fn forget_memory(name: &str) {
    let own = format!("{name}-");
    for file in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if file.file_name().to_string_lossy().starts_with(&own) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

fn configuration(name: &str, address: SocketAddr, sibling: Option<SocketAddr>, folder: &Path) -> String {
    let folder = folder.display();
    // Documents that are only in memory are not in the digest, hence the `cache_dir`.
    let mut text = format!(
        "http_port {address}
icp_port 0
udp_incoming_address 127.0.0.1
dns_nameservers 127.0.0.1
http_access allow localhost
http_access deny all
visible_hostname localhost
unique_hostname {name}
workers 1
pid_filename {folder}/pid
coredump_dir {folder}
cache_dir ufs {folder}/cache 64 1 1
cache_mem 16 MB
memory_cache_shared off
netdb_filename none
pinger_enable off
shutdown_lifetime 1 seconds
access_log stdio:{folder}/access.log squid
buffered_logs off
cache_log {folder}/cache.log
digest_generation on
digest_rebuild_period 3 seconds
digest_rewrite_period 3 seconds
{}",
        installation().settings
    );
    if let Some(sibling) = sibling {
        // Debian's Squid does not ask siblings for documents of an origin within 400 ms or 4 hops,
        // and it assumes that of every origin after the first request to it.
        let (host, port) = (sibling.ip(), sibling.port());
        writeln!(
            text,
            "cache_peer {host} sibling {port} 0 no-query\nminimum_direct_rtt 0\nminimum_direct_hops 0"
        )
        .unwrap();
    }
    text
}

/// Returns the user and the group as which Debian's Squid runs.
fn proxy_user() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let user = users.lines().find(|line| line.starts_with("proxy:")).expect("Debian has a user proxy");
    let number = |at: usize| user.split(':').nth(at).unwrap().parse().unwrap();
    (number(2), number(3))
}

/// An installation of Squid.
struct Installation {
    program: PathBuf,
    libraries: OsString,
    /// The settings that this installation needs.
    settings: String,
}

fn installation() -> &'static Installation {
    static INSTALLATION: OnceLock<Installation> = OnceLock::new();
    INSTALLATION.get_or_init(|| {
        let program = PathBuf::from("/usr/sbin/squid");
        if program.exists() {
            Installation { program, libraries: OsString::new(), settings: String::new() }
        } else {
            unpacked()
        }
    })
}

/// The libraries of Debian's Squid that may be missing.
const LIBRARIES: [&str; 10] = [
    "libecap3",
    "libltdl7",
    "libnetfilter-conntrack3",
    "libnfnetlink0",
    "libmnl0",
    "libgssapi-krb5-2",
    "libkrb5-3",
    "libkrb5support0",
    "libk5crypto3",
    "libkeyutils1",
];

/// Unpacks Debian's Squid, for systems on which it is not installed.
fn unpacked() -> Installation {
    let program = debian::unpacked("squid", "usr/sbin/squid");
    let shared = debian::unpacked("squid-common", "usr/share/squid");
    let pages = debian::unpacked("squid-langpack", "usr/share/squid-langpack/templates");
    let libraries = LIBRARIES.into_iter().flat_map(|package| {
        // Some libraries are in /lib, but all packages have this folder.
        let documents = debian::unpacked(package, "usr/share/doc");
        let folder = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
        [documents.join("../../..").join(&folder), documents.join("../..").join(&folder)]
    });
    let libraries = std::env::join_paths(libraries).unwrap();
    let root = program.ancestors().nth(3).unwrap();
    let mut settings = String::new();
    for (name, path) in [
        ("mime_table", shared.join("mime.conf")),
        ("icon_directory", shared.join("icons")),
        ("error_directory", pages),
        ("err_page_stylesheet", root.join("etc/squid/errorpage.css")),
        ("unlinkd_program", root.join("usr/lib/squid/unlinkd")),
    ] {
        writeln!(settings, "{name} {}", path.display()).unwrap();
    }
    Installation { program, libraries, settings }
}
