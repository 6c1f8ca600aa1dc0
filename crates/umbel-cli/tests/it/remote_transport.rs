//! `umbel push`, `pull` and `shard` over TLS and Unix sockets, to real servers.

use crate::remote::{command, fails, succeeds, text, umbel};
use crate::support::{Answer, Server, servers};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A certificate authority, and certificates that it has signed.
struct Certificates {
    folder: TempDir,
}

impl Certificates {
    /// Creates an authority, and certificates for a server called localhost and for a client.
    fn create() -> Option<Certificates> {
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("skipped: there is no openssl to make certificates with");
            return None;
        }
        let certificates = Certificates { folder: tempfile::tempdir().unwrap() };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        certificates
            .openssl(&format!("req -x509 {key} -days 2 -subj /CN=authority -keyout ca.key -out ca.crt"));
        for name in ["localhost", "client"] {
            let extensions = format!("subjectAltName=DNS:{name}\n");
            std::fs::write(certificates.path("extensions"), extensions).unwrap();
            certificates.openssl(&format!("req {key} -subj /CN={name} -keyout {name}.key -out {name}.csr"));
            certificates.openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out {name}.crt"
            ));
        }
        Some(certificates)
    }

    fn openssl(&self, arguments: &str) {
        let mut openssl = Command::new("openssl");
        let output = openssl.args(arguments.split(' ')).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Opens a second port of a server, with TLS. Returns `None` if the server was built without it,
/// like Valkey from pip.
fn open_tls_port(server: &Server, certificates: &Certificates, clients: &str) -> Option<u16> {
    let mut client = server.client();
    if client.command("CONFIG GET tls-port").array().is_empty() {
        eprintln!("skipped: this server was built without TLS");
        return None;
    }
    let files = ["tls-cert-file localhost.crt", "tls-key-file localhost.key", "tls-ca-cert-file ca.crt"];
    let files = files.map(|setting| {
        let (name, file) = setting.split_once(' ').unwrap();
        format!("{name} {}", text(&certificates.path(file)))
    });
    // Another program may take the port before the server does.
    let port = (0..5).find_map(|_| {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let set = format!("CONFIG SET {} tls-auth-clients {clients} tls-port {port}", files.join(" "));
        (client.command(&set) == Answer::Word("OK".into())).then_some(port)
    });
    Some(port.unwrap_or_else(|| panic!("no port with TLS: {}", server.log())))
}

/// Builds a filter of three lines.
fn fruit(folder: &Path) -> PathBuf {
    let (lines, filter) = (folder.join("fruit"), folder.join("fruit.umbel"));
    std::fs::write(&lines, "apple\npear\nplum\n").unwrap();
    succeeds(&["build", text(&lines), "-o", text(&filter)]);
    filter
}

#[test]
fn a_filter_is_sent_and_fetched_over_tls() {
    let Some(certificates) = Certificates::create() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (filter, back) = (fruit(folder.path()), folder.path().join("back.umbel"));
    let authority = certificates.path("ca.crt");
    let trusted = ["--cacert", text(&authority)];
    let server = Server::start(&servers()[0], &[]);
    let Some(port) = open_tls_port(&server, &certificates, "no") else { return };
    let address = format!("rediss://localhost:{port}/fruit");
    succeeds(&[&["push", text(&filter), &address], &trusted[..]].concat());
    assert_eq!(server.client().command("BF.MEXISTS fruit apple fig").integers(), [1, 0]);
    succeeds(&[&["pull", "-f", &address, "-o", text(&back)], &trusted[..]].concat());
    assert_eq!(std::fs::read(&filter).unwrap(), std::fs::read(&back).unwrap());

    let shards = format!("rediss://localhost:{port}/seen");
    let lines = folder.path().join("fruit");
    succeeds(&[&["shard", "create", &shards, "-n", "100", "--shards", "2"], &trusted[..]].concat());
    succeeds(&[&["shard", "add", &shards, text(&lines)], &trusted[..]].concat());
    let found = umbel(&[&["shard", "check", &shards, text(&lines)], &trusted[..]].concat());
    assert_eq!(found.stdout, b"apple\npear\nplum\n");
    succeeds(&[&["shard", "info", &shards], &trusted[..]].concat());
    succeeds(&[&["shard", "delete", &shards], &trusted[..]].concat());

    // The authorities that the system trusts are the default.
    let mut by_system = command(&["push", "--replace", text(&filter), &address]);
    assert!(by_system.env("SSL_CERT_FILE", &authority).output().unwrap().status.success());
    succeeds(&["push", "--replace", text(&filter), &address, "--insecure"]);
}

#[test]
fn a_server_that_cannot_prove_its_name_is_refused() {
    let Some(certificates) = Certificates::create() else { return };
    let Some(others) = Certificates::create() else { return };
    let folder = tempfile::tempdir().unwrap();
    let filter = fruit(folder.path());
    let server = Server::start(&servers()[0], &[]);
    let Some(port) = open_tls_port(&server, &certificates, "no") else { return };
    let refused = |address: &str, options: &[&str], says: &[&str]| {
        let said = fails(&[&["push", text(&filter), address], options].concat());
        assert!(says.iter().all(|part| said.contains(part)), "{address} {options:?}: {said}");
        assert!(!said.contains("hunter2"), "{said}");
    };
    let address = format!("rediss://me:hunter2@localhost:{port}/fruit");
    let (authority, other) = (certificates.path("ca.crt"), others.path("ca.crt"));
    refused(&address, &[], &["cannot reach localhost", "UnknownIssuer", "--cacert"]);
    refused(&address, &["--cacert", text(&other)], &["invalid peer certificate"]);
    let by_number = format!("rediss://me:hunter2@127.0.0.1:{port}/fruit");
    refused(&by_number, &["--cacert", text(&authority)], &["invalid peer certificate", "host name"]);
    let plain = format!("rediss://me:hunter2@localhost:{}/fruit", server.port);
    refused(&plain, &["--cacert", text(&authority)], &["cannot reach localhost", "may not speak TLS"]);
    refused(&format!("redis://me:hunter2@localhost:{port}/fruit"), &[], &["localhost"]);
    // The server was reached, and wants another password.
    refused(&address, &["--cacert", text(&authority)], &["the password of the address: ", "WRONGPASS"]);
    // Options without effect, and files that are something else.
    let without = format!("redis://localhost:{}/fruit", server.port);
    refused(&without, &["--cacert", text(&authority)], &["rediss://"]);
    refused(&without, &["--insecure"], &["rediss://"]);
    refused(&address, &["--cacert", text(&filter)], &["fruit.umbel", "CERTIFICATE"]);
    refused(&address, &["--cacert", "no-such-file"], &["cannot read no-such-file"]);
    refused(&address, &["--cert", text(&authority)], &["--key"]);
    assert_eq!(server.client().command("EXISTS fruit").integer(), 0);
}

#[test]
fn a_client_proves_its_name_with_a_certificate() {
    let Some(certificates) = Certificates::create() else { return };
    let folder = tempfile::tempdir().unwrap();
    let filter = fruit(folder.path());
    let server = Server::start(&servers()[0], &[]);
    let Some(port) = open_tls_port(&server, &certificates, "yes") else { return };
    let address = format!("rediss://localhost:{port}/fruit");
    let [authority, cert, key] = ["ca.crt", "client.crt", "client.key"].map(|name| certificates.path(name));
    let push = ["push", text(&filter), &address, "--cacert", text(&authority)];
    assert!(fails(&push).contains("cannot reach localhost"));
    succeeds(&[&push[..], &["--cert", text(&cert), "--key", text(&key)]].concat());
    assert_eq!(server.client().command("BF.MEXISTS fruit apple fig").integers(), [1, 0]);
}

#[test]
fn a_filter_is_sent_and_fetched_through_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let (filter, back) = (fruit(folder.path()), folder.path().join("back.umbel"));
    let socket = folder.path().join("redis.sock");
    for program in servers() {
        let server = Server::start(program, &["--unixsocket", text(&socket), "--unixsocketperm", "700"]);
        let escaped = text(&socket).replace('/', "%2F");
        let address = format!("redis+unix://{escaped}/2/fruit");
        succeeds(&["push", text(&filter), &address]);
        let mut client = server.client();
        client.command("SELECT 2");
        assert_eq!(client.command("BF.MEXISTS fruit apple fig").integers(), [1, 0]);
        client.command("CONFIG SET requirepass hunter2");
        let first = format!("redis+unix://{escaped}/fruit");
        assert!(fails(&["pull", "-f", &first, "-o", text(&back)]).contains("wants a password"));
        let with_password = format!("unix://hunter2@{escaped}/2/fruit");
        succeeds(&["pull", "-f", &with_password, "-o", text(&back)]);
        assert_eq!(std::fs::read(&filter).unwrap(), std::fs::read(&back).unwrap());
    }
    let gone = format!("redis+unix://{}/fruit", text(&folder.path().join("none.sock")).replace('/', "%2F"));
    assert!(fails(&["push", text(&filter), &gone]).contains("none.sock"));
    assert!(fails(&["push", text(&filter), "unix:///run/redis.sock/fruit"]).contains("%2F"));
}

#[test]
fn no_message_contains_a_password() {
    let folder = tempfile::tempdir().unwrap();
    let filter = fruit(folder.path());
    let server = Server::start(&servers()[0], &[]);
    let port = server.port;
    for address in [
        "redis://me:hunter2@127.0.0.1:x/fruit".to_owned(),
        "redis://me:hunter2@127.0.0.1/fruit?".to_owned(),
        "redis://me:hunter2/@127.0.0.1/fruit".to_owned(),
        "http://me:hunter2@127.0.0.1/fruit".to_owned(),
        "redis://me:hunter2@127.0.0.1/50%".to_owned(),
        "redis://me:hunter2@127.0.0.1:1/fruit".to_owned(),
        format!("redis://me:hunter2@127.0.0.1:{port}/fruit"),
        format!("redis://hunter2@127.0.0.1:{port}/fruit"),
    ] {
        for arguments in [
            vec!["push", text(&filter), &address],
            vec!["pull", &address, "-o", "none"],
            vec!["shard", "info", &address],
        ] {
            let said = fails(&arguments);
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
