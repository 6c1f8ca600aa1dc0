//! `umbel push` and `umbel pull`: filters are sent to a real server and come back unchanged, after
//! any interruption. `umbel shard`: one filter on many servers never denies a line that was added.

use crate::shell::on_terminal;
use crate::support::{Answer, Server, items, servers, wait_for};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use umbel::{AnyFilter, Kind, Spec, file};

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_umbel"));
    command.args(arguments).env_remove("REDISCLI_AUTH");
    command
}

pub fn umbel(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

pub fn succeeds(arguments: &[&str]) {
    let output = umbel(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

pub fn fails(arguments: &[&str]) -> String {
    let output = umbel(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Saves a blocked filter for `capacity` keys at 1 %, and returns the `count` keys in it.
pub fn save_filter(path: &Path, capacity: u64, count: u32) -> Vec<String> {
    let mut filter = AnyFilter::build(Kind::Blocked, &Spec::new(capacity, 0.01).unwrap()).unwrap();
    let keys = items("k", 0..count);
    filter.insert_batch(&keys).unwrap();
    file::save(path, &filter, &file::Options::default()).unwrap();
    keys
}

#[test]
fn a_filter_is_sent_to_a_server_and_fetched_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("fruit"), "apple\npear\nplum\n").unwrap();
    succeeds(&["build", text(&at("fruit")), "-o", text(&at("fruit.umbel"))]);
    for program in servers() {
        let server = Server::start(program, &[]);
        let address = format!("redis://127.0.0.1:{}/fruit", server.port);
        succeeds(&["push", text(&at("fruit.umbel")), &address]);
        assert_eq!(server.client().command("BF.MEXISTS fruit apple fig").integers(), [1, 0]);
        succeeds(&["pull", "-f", &address, "-o", text(&at("back.umbel"))]);
        assert_eq!(std::fs::read(at("fruit.umbel")).unwrap(), std::fs::read(at("back.umbel")).unwrap());
        assert!(!at("back.umbel.part").exists());
        // An existing key is replaced only on request.
        assert!(fails(&["push", text(&at("fruit.umbel")), &address]).contains("--replace"));
        succeeds(&["push", "--replace", text(&at("fruit.umbel")), &address]);
        // A filter that was filled on the server can be queried here.
        server.client().command_with("UMBEL.RESERVE many counting 1000 0.001 FAST", &[]);
        server.client().command_with("UMBEL.ADD many", &items("k", 0..100));
        succeeds(&[
            "pull",
            "-f",
            &format!("redis://127.0.0.1:{}/0/many", server.port),
            "-o",
            text(&at("many.umbel")),
        ]);
        std::fs::write(at("asked"), "k7\nstranger\n").unwrap();
        let found = umbel(&["check", text(&at("many.umbel")), text(&at("asked"))]);
        assert_eq!(found.stdout, b"k7\n");
    }
}

#[test]
fn the_secret_is_never_transferred() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    succeeds(&["key", "new", text(&at("key")), "--hash", "keyed"]);
    let server = Server::with_module(&servers()[0], &["KEY-FILE", text(&at("key"))], &[]);
    server.client().command("BF.MADD f apple pear");
    let address = format!("redis://127.0.0.1:{}/f", server.port);
    let pulled = umbel(&["pull", &address, "-o", text(&at("f.umbel"))]);
    assert!(pulled.status.success());
    let said = String::from_utf8(pulled.stderr).unwrap();
    assert!(said.contains("only with the key file") && said.contains("KEY-FILE"), "{said}");
    std::fs::write(at("asked"), "apple\nfig\n").unwrap();
    let found = umbel(&["check", "--key-file", text(&at("key")), text(&at("f.umbel")), text(&at("asked"))]);
    assert_eq!(found.stdout, b"apple\n");
    assert!(fails(&["check", text(&at("f.umbel")), text(&at("asked"))]).contains("key"));
    succeeds(&[
        "build",
        "--key-file",
        text(&at("key")),
        "--embed-key",
        text(&at("asked")),
        "-o",
        text(&at("e.umbel")),
    ]);
    assert!(fails(&["push", text(&at("e.umbel")), &address]).contains("secret"));
    // A server with the key file can use the filter, and the error of another one names the remedy.
    let back = format!("redis://127.0.0.1:{}/back", server.port);
    succeeds(&["push", text(&at("f.umbel")), &back]);
    assert_eq!(server.client().command("BF.MEXISTS back apple fig").integers(), [1, 0]);
    let other = Server::start(&servers()[0], &[]);
    let told = fails(&["push", text(&at("f.umbel")), &format!("redis://127.0.0.1:{}/f", other.port)]);
    assert!(told.contains("does not know the secret") && told.contains("KEY-FILE"), "{told}");
    assert!(!told.contains("goes on"), "{told}");
    assert_eq!(other.client().command("EXISTS f").integer(), 0);
    // A filter without a secret causes no warning.
    other.client().command_with("UMBEL.RESERVE open blocked 1000 0.01 FAST", &[]);
    let pulled = umbel(&["pull", &format!("redis://127.0.0.1:{}/open", other.port), "-o", text(&at("open"))]);
    assert_eq!(String::from_utf8_lossy(&pulled.stderr), "");
}

#[test]
fn errors_of_transfers_name_the_problem() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.umbel");
    std::fs::write(folder.path().join("lines"), "a\n").unwrap();
    succeeds(&["build", text(&folder.path().join("lines")), "-o", text(&file)]);
    let server = Server::start(&servers()[0], &[]);
    let here = format!("redis://127.0.0.1:{}", server.port);
    assert!(fails(&["push", text(&file), "redis://127.0.0.1:1/k"]).contains("cannot reach"));
    assert!(fails(&["push", text(&file), "http://host/key"]).contains("redis://host/key"));
    assert!(fails(&["push", text(&folder.path().join("lines")), &format!("{here}/k")]).contains("lines"));
    assert!(
        fails(&["push", text(&file), &format!("redis://user:wrong@127.0.0.1:{}/k", server.port)])
            .contains("says")
    );
    server.client().command("SET text x");
    assert!(fails(&["push", text(&file), &format!("{here}/text")]).contains("WRONGTYPE"));
    // Nothing was received that a second attempt could continue.
    for (key, says) in [("none", "nothing under"), ("text", "WRONGTYPE")] {
        let said = fails(&["pull", &format!("{here}/{key}"), "-o", text(&folder.path().join("n"))]);
        assert!(said.contains(says) && !said.contains("goes on"), "{said}");
        assert!(!folder.path().join("n.part").exists());
    }
    assert_eq!(server.client().command("GET text"), Answer::Bytes(b"x".to_vec()));
}

#[test]
fn an_existing_file_is_replaced_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let server = Server::start(&servers()[0], &[]);
    server.client().command("UMBEL.RESERVE f blocked 100000 0.01 FAST");
    server.client().command_with("UMBEL.ADD f", &items("k", 0..1000));
    let address = format!("redis://127.0.0.1:{}/f", server.port);
    let (new, old) = (at("new"), at("old"));
    succeeds(&["pull", &address, "-o", text(&new)]);
    let whole = std::fs::read(&new).unwrap();
    std::fs::write(&old, "precious").unwrap();
    assert!(fails(&["pull", &address, "-o", text(&old)]).contains("exists: give -f to replace it"));
    assert_eq!(std::fs::read(&old).unwrap(), b"precious");
    succeeds(&["pull", &address, "--force", "-o", text(&old)]);
    assert_eq!(std::fs::read(&old).unwrap(), whole);
    // An interrupted transfer is resumed, and a part that does not match is fetched again.
    for part in [&whole[..whole.len() / 2], &whole, &[0; 100], &[whole.clone(), vec![0]].concat()] {
        std::fs::write(at("again.part"), part).unwrap();
        succeeds(&["pull", "-f", &address, "-o", text(&at("again"))]);
        assert_eq!(std::fs::read(at("again")).unwrap(), whole);
        assert!(!at("again.part").exists());
    }
    assert!(fails(&["pull", &address, "-o", text(folder.path())]).contains("is a directory"));
    assert!(fails(&["pull", &address, "-o", "-"]).contains("needs a file"));
}

#[test]
fn addresses_are_urls_and_passwords_may_come_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("lines"), "a\n").unwrap();
    succeeds(&["build", text(&at("lines")), "-o", text(&at("f"))]);
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    client.command("ACL SETUSER me on >p:a@s/s%w ~* +@all");
    client.command("ACL SETUSER open on nopass ~* +@all");
    client.command("CONFIG SET requirepass all?");
    let (file, port) = (at("f"), server.port);
    let pushed = |place: &str, password: Option<&str>| {
        let address = format!("redis://{place}");
        let mut command = command(&["push", "--replace", text(&file), &address]);
        command.envs(password.map(|password| ("REDISCLI_AUTH", password)));
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        if output.status.success() { Ok(()) } else { Err(said) }
    };
    let here = format!("127.0.0.1:{port}");
    pushed(&format!("me:p:a@s%2Fs%25w@{here}/a%3Fb%20c"), None).unwrap();
    client.command("AUTH all?");
    assert_eq!(client.call(&[b"BF.EXISTS", b"a?b c", b"a"]).integer(), 1);
    pushed(&format!("m%65:@{here}/2/k"), Some("p:a@s/s%w")).unwrap();
    client.command("SELECT 2");
    assert_eq!(client.command("BF.EXISTS k a").integer(), 1);
    pushed(&format!("{here}/k"), Some("all?")).unwrap();
    pushed(&format!("open:@{here}/k"), None).unwrap();
    // The password in the address has priority.
    pushed(&format!("all%3F@{here}/k"), Some("wrong")).unwrap();
    for (place, password, says) in [
        (format!("{here}/k"), None, "REDISCLI_AUTH"),
        (format!("{here}/k"), Some(""), "wants a password"),
        (format!("{here}/k"), Some("wrong"), "the password of REDISCLI_AUTH: "),
        (format!("me:wrong@{here}/k"), Some("all?"), "the password of the address: "),
        (format!("{here}/k?db=3"), Some("all?"), "%3F"),
        (format!("{here}/50%"), Some("all?"), "hexadecimal"),
    ] {
        let said = pushed(&place, password).unwrap_err();
        assert!(said.contains(says), "{place}: {said}");
    }
    for command in ["push", "pull", "shard create", "shard add", "shard check", "shard info", "shard delete"]
    {
        let help = umbel(&command.split(' ').chain(["--help"]).collect::<Vec<_>>()).stdout;
        let help = String::from_utf8(help).unwrap();
        assert!(help.contains("REDISCLI_AUTH") && help.contains("host:port/database/key"), "{command}");
        assert!(help.contains("%3F"), "{command}");
    }
}

#[test]
fn summaries_are_printed_only_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("lines"), "a\nb\n").unwrap();
    succeeds(&["build", text(&at("lines")), "-o", text(&at("f"))]);
    let server = Server::start(&servers()[0], &[]);
    let address = |key: &str| format!("redis://127.0.0.1:{}/{key}", server.port);
    let (f, s) = (address("f"), address("s"));
    for (arguments, says) in [
        (vec!["push", text(&at("f")), &f], "2 lines, "),
        (vec!["pull", &f, "-o", text(&at("g"))], "2 lines, "),
        (vec!["shard", "create", &s, "-n", "100"], "s, 16 shards "),
        (vec!["shard", "add", &s, text(&at("lines"))], ""),
    ] {
        let told = on_terminal(command(&arguments), Some(Stdio::null())).code(0);
        assert_eq!(told.text().lines().count(), usize::from(!says.is_empty()), "{}", told.text());
        assert!(told.text().starts_with(says), "{}", told.text());
    }
    for arguments in [
        vec!["push", "--replace", text(&at("f")), &f],
        vec!["pull", "-f", &f, "-o", text(&at("g"))],
        vec!["shard", "create", &address("t"), "-n", "100"],
        vec!["shard", "add", &s, text(&at("lines"))],
    ] {
        let output = umbel(&arguments);
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    }
}

/// A filter of a few hundred megabytes, and a server that is killed while it arrives.
#[test]
fn an_interrupted_push_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, back) = (folder.path().join("large.umbel"), folder.path().join("back.umbel"));
    let keys = save_filter(&path, 280_000_000, 10_000);
    let length = path.metadata().unwrap().len();
    assert!(length > 330_000_000, "{length}");
    // Everything that was acknowledged is in the append-only file.
    let mut server = Server::start(&servers()[0], &["--appendonly", "yes", "--appendfsync", "always"]);
    let address = format!("redis://127.0.0.1:{}/large", server.port);
    let pushing = Command::new(env!("CARGO_BIN_EXE_umbel"))
        .args(["push", text(&path), &address])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let arrived = |server: &Server| {
        server.client().command_with(&format!("UMBEL.IMPORT large {length} 0"), &[String::new()])
    };
    wait_for("a third of it", || arrived(&server).integer() > 100_000_000);
    server.kill();
    let output = pushing.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("goes on from there"));
    server.restart();
    let kept = arrived(&server).integer();
    assert!(kept > 100_000_000, "{kept} bytes were kept");
    succeeds(&["push", text(&path), &address]);
    assert_eq!(server.client().command_with("BF.MEXISTS large", &keys).integers(), vec![1; keys.len()]);
    succeeds(&["pull", &address, "-o", text(&back)]);
    let sums = [&path, &back].map(|path| file::examine(path).unwrap().info.chunks);
    assert_eq!(sums[0], sums[1]);
    assert_eq!(length, back.metadata().unwrap().len());
}

/// Starts a cluster of three servers.
pub fn cluster() -> Vec<Server> {
    let arguments = ["--cluster-enabled", "yes"];
    let servers: Vec<Server> = (0..3).map(|_| Server::start(&servers()[0], &arguments)).collect();
    for (server, slots) in servers.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
        server.client().command(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
        servers[0].client().command(&format!("CLUSTER MEET 127.0.0.1 {}", server.port));
    }
    wait_for("the cluster", || {
        servers.iter().all(|server| {
            let info = String::from_utf8(server.client().command("CLUSTER INFO").bytes().to_vec()).unwrap();
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        })
    });
    servers
}

#[test]
fn a_sharded_filter_is_spread_over_a_cluster_and_queried_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let lines =
        |name: &str, range| items(name, range).iter().map(|line| format!("{line}\n")).collect::<String>();
    std::fs::write(at("members"), lines("member", 0..20_000)).unwrap();
    std::fs::write(at("strangers"), lines("stranger", 0..20_000)).unwrap();
    let (one, three) = (vec![Server::start(&servers()[0], &[])], cluster());
    for servers in [&one, &three] {
        let address = format!("redis://127.0.0.1:{}/seen", servers[0].port);
        succeeds(&["shard", "create", &address, "-n", "20000", "-p", "1%", "--shards", "24"]);
        assert!(fails(&["shard", "create", &address, "-n", "20000"]).contains("already"));
        succeeds(&["shard", "add", &address, text(&at("members"))]);
        // Any server of the cluster can be contacted.
        let address = format!("redis://127.0.0.1:{}/seen", servers.last().unwrap().port);
        let found = umbel(&["shard", "check", &address, text(&at("members"))]);
        assert_eq!(found.stdout, std::fs::read(at("members")).unwrap());
        let missing = umbel(&["shard", "check", "-v", &address, text(&at("members"))]);
        assert_eq!((missing.status.code(), missing.stdout.len()), (Some(1), 0));
        let wrong = umbel(&["shard", "check", "-c", &address, text(&at("strangers"))]);
        let wrong: u32 = str::from_utf8(&wrong.stdout).unwrap().trim().parse().unwrap();
        // At most 200 are expected, with a standard deviation of 14.
        assert!(wrong < 270, "{wrong} of 20000");
        let info = String::from_utf8(umbel(&["shard", "info", &address]).stdout).unwrap();
        assert!(info.contains("shards    24\n"), "{info}");
        let has = servers.iter().filter(|server| server.client().command("DBSIZE").integer() > 2).count();
        assert_eq!(has, servers.len(), "every server has its share");
        assert!(
            fails(&["shard", "add", &format!("{address}-none"), text(&at("members"))])
                .contains("nothing under")
        );
        assert!(fails(&["shard", "create", &format!("{address}{{x}}"), "-n", "10"]).contains("braces"));
        // A lost shard is reported, whichever server it was on.
        let lost = |server: &&Server| server.client().command("DEL {seen:7}") == Answer::Integer(1);
        assert_eq!(servers.iter().filter(lost).count(), 1);
        assert!(fails(&["shard", "check", &address, text(&at("members"))]).contains("{seen:7}"));
        let removed = umbel(&["shard", "delete", &address]);
        assert_eq!(removed.stdout, b"removed seen and 23 of its 24 shards: the others were missing\n");
        assert!(servers.iter().all(|server| server.client().command("DBSIZE").integer() == 0));
    }
}

#[test]
fn a_lost_shard_is_never_mistaken_for_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("members");
    std::fs::write(&file, items("member", 0..100).join("\n")).unwrap();
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    let address = format!("redis://127.0.0.1:{}/seen", server.port);
    succeeds(&["shard", "create", &address, "-n", "1000", "--shards", "4"]);
    succeeds(&["shard", "add", &address, text(&file)]);
    client.command("DEL {seen:2}");
    for arguments in [
        vec!["shard", "check", &address, text(&file)],
        vec!["shard", "check", "-v", &address, text(&file)],
        vec!["shard", "add", &address, text(&file)],
        vec!["shard", "info", &address],
    ] {
        let output = umbel(&arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("the shard {seen:2} is missing") && output.stdout.is_empty(), "{said}");
    }
    assert_eq!(client.command("EXISTS {seen:2}").integer(), 0, "nothing was made in its place");
    succeeds(&["shard", "delete", &address]);

    // A shard may also be lost during a command.
    for what in ["add", "check"] {
        succeeds(&["shard", "create", &address, "-n", "1000", "--shards", "1"]);
        client.command("BF.ADD {seen:0} apple");
        let mut running = command(&["shard", what, &address, "-"]);
        running.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = running.spawn().unwrap();
        let mut input = running.stdin.take().unwrap();
        input.write_all(b"apple\npear\n").unwrap();
        let mut output = BufReader::new(running.stdout.take().unwrap());
        let mut line = String::new();
        if what == "check" {
            output.read_line(&mut line).unwrap();
            assert_eq!(line, "apple\n");
        } else {
            wait_for("a line", || server.client().command("BF.EXISTS {seen:0} pear").integer() == 1);
        }
        client.command("DEL {seen:0}");
        input.write_all(b"apple\npear\n").unwrap();
        drop(input);
        let ended = running.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.code() == Some(2) && said.contains("{seen:0} is missing"), "{what}: {said}");
        output.read_to_string(&mut line).unwrap();
        assert_eq!(client.command("EXISTS {seen:0}").integer(), 0);
        succeeds(&["shard", "delete", &address]);
    }
}

#[test]
fn a_sharded_filter_is_created_completely_or_not_at_all_and_deleted_completely() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    let address = format!("redis://127.0.0.1:{}/seen", server.port);
    let create = ["shard", "create", &address, "-n", "1000", "--shards", "8"];
    for nothing in [["-n", "0"], ["-n", "1e300"]] {
        fails(&["shard", "create", &address, nothing[0], nothing[1]]);
        assert_eq!(client.command("DBSIZE").integer(), 0);
    }
    assert!(fails(&["shard", "create", &address, "-n", "0"]).contains("n = 0"));
    // Keys of other users, of the same type or not.
    for make in ["SET {seen:5} x", "BF.ADD {seen:5} x"] {
        client.command(make);
        assert!(fails(&create).contains("{seen:5}"));
        assert_eq!(client.command("KEYS *").array(), [Answer::Bytes(b"{seen:5}".to_vec())]);
        client.command("DEL {seen:5}");
    }
    // The memory does not suffice for all shards.
    let used = client.command("INFO memory").bytes().to_vec();
    let used: u64 = String::from_utf8(used)
        .unwrap()
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"))
        .unwrap()
        .parse()
        .unwrap();
    client.command(&format!("CONFIG SET maxmemory {}", used + (30 << 20)));
    fails(&["shard", "create", &address, "-n", "1e8", "--shards", "8"]);
    assert_eq!(client.command("DBSIZE").integer(), 0);
    client.command("CONFIG SET maxmemory 0");

    succeeds(&create);
    assert!(fails(&create).contains("umbel shard delete"));
    assert_eq!(client.command("DBSIZE").integer(), 9);
    client.command("SET other x");
    client.command("RPUSH list x");
    for key in ["other", "list"] {
        let address = format!("redis://127.0.0.1:{}/{key}", server.port);
        assert!(fails(&["shard", "delete", &address]).contains("is not a filter in shards"));
    }
    assert_eq!(client.command("DBSIZE").integer(), 11);
    assert_eq!(umbel(&["shard", "delete", &address]).stdout, b"removed seen and its 8 shards\n");
    assert_eq!(client.command("EXISTS other list").integer(), 2);
    assert_eq!(client.command("DBSIZE").integer(), 2);
    assert!(fails(&["shard", "delete", &address]).contains("nothing under"));
}

/// The shard of a line follows from its digest in version 2 of the records, and from another one
/// before.
#[test]
fn a_sharded_filter_of_another_version_is_refused_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines");
    std::fs::write(&lines, "apple\n").unwrap();
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    let address = format!("redis://127.0.0.1:{}/seen", server.port);
    for (record, says) in [("umbel-shards 2", "older umbel"), ("umbel-shards 3 2 fast 0", "newer umbel")] {
        client.call(&[b"SET", b"seen", record.as_bytes()]);
        client.command("BF.RESERVE {seen:0} 0.01 100");
        client.command("BF.RESERVE {seen:1} 0.01 100");
        for action in ["add", "check"] {
            let said = fails(&["shard", action, &address, text(&lines)]);
            assert!(said.contains(says), "{action} {record}: {said}");
        }
        assert!(fails(&["shard", "info", &address]).contains(says));
        if says == "older umbel" {
            assert!(fails(&["shard", "info", &address]).contains("umbel shard delete"));
            succeeds(&["shard", "delete", &address]);
            assert_eq!(client.command("DBSIZE").integer(), 0);
        } else {
            assert!(fails(&["shard", "delete", &address]).contains(says));
            assert_eq!(client.command("DBSIZE").integer(), 3);
        }
    }
}

#[test]
fn a_sharded_filter_with_a_secret_needs_its_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, hash) in [("key", "keyed"), ("other", "keyed"), ("sealed", "sealed")] {
        succeeds(&["key", "new", text(&at(name)), "--hash", hash]);
    }
    std::fs::write(at("lines"), items("k", 0..1000).join("\n") + "\n").unwrap();
    let (key, other, sealed, lines) = (at("key"), at("other"), at("sealed"), at("lines"));
    let arguments = ["KEY-FILE", text(&other), "KEY-FILE", text(&key)];
    let server = Server::with_module(&servers()[0], &arguments, &[]);
    let address = format!("redis://127.0.0.1:{}/seen", server.port);
    let create = ["shard", "create", &address, "-n", "1000", "--shards", "4", "--key-file"];
    assert!(fails(&[&create[..], &[text(&sealed)]].concat()).contains("keyed"));
    succeeds(&[&create[..], &[text(&key)]].concat());
    for action in ["add", "check"] {
        let command = ["shard", action, &address, text(&lines)];
        for wrong in [&[][..], &["--key-file", text(&other)]] {
            let said = fails(&[&command[..], wrong].concat());
            assert!(said.contains("--key-file") && said.contains("secret"), "{said}");
        }
        succeeds(&[&command[..], &["--key-file", text(&key)]].concat());
    }
    let found = umbel(&["shard", "check", "-c", &address, text(&lines), "--key-file", text(&key)]);
    assert_eq!(found.stdout, b"1000\n");
    // The filters have the same secret, and no key is needed to see or delete them.
    let info = server.client().command("UMBEL.INFO {seen:2}").array().to_vec();
    let record = String::from_utf8(server.client().command("GET seen").bytes().to_vec()).unwrap();
    let tag = record.split(' ').next_back().unwrap();
    assert!(record.starts_with("umbel-shards 2 4 keyed "), "{record}");
    assert!(String::from_utf8_lossy(info[3].bytes()).contains(tag), "{info:?}");
    succeeds(&["shard", "info", &address]);
    succeeds(&["shard", "delete", &address]);
    // A server without the secret refuses it, and nothing is left.
    let server = Server::start(&servers()[0], &[]);
    let address = format!("redis://127.0.0.1:{}/seen", server.port);
    fails(&["shard", "create", &address, "-n", "1000", "--shards", "4", "--key-file", text(&key)]);
    assert_eq!(server.client().command("DBSIZE").integer(), 0);
}

/// Starts a server that sends `answer` to the command `closes` and then closes the connection.
/// Returns its port and the commands that it received.
fn closing_over(closes: &'static str, answer: &'static str) -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, (sender, commands)) = (listener.local_addr().unwrap().port(), std::sync::mpsc::channel());
    let serve = move |stream: TcpStream, sender: std::sync::mpsc::Sender<String>| {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        while let Some(count) = lines.next().and_then(|line| line.strip_prefix('*')?.parse::<usize>().ok()) {
            let words: Vec<String> = lines.by_ref().take(2 * count).skip(1).step_by(2).collect();
            sender.send(words.join(" ")).unwrap_or_default();
            let over = words[0] == closes;
            let answered = (&stream).write_all(if over { answer } else { "+OK\r\n" }.as_bytes());
            if over || answered.is_err() {
                return;
            }
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || serve(stream, sender));
        }
    });
    (port, commands)
}

/// If the response to a command is lost, it is unknown whether the command was executed.
#[test]
fn a_shard_that_may_exist_can_be_deleted() {
    let (port, commands) = closing_over("BF.RESERVE", "");
    let address = format!("redis://127.0.0.1:{port}/seen");
    let said = fails(&["shard", "create", &address, "-n", "1000", "--shards", "2"]);
    assert!(said.contains("umbel shard delete") && said.contains("broke"), "{said}");
    let commands: Vec<String> = commands.try_iter().collect();
    assert!(commands[0].starts_with("SET seen umbel-shards 2"), "{commands:?}");
    assert!(!commands.iter().any(|command| command.starts_with("UNLINK")), "{commands:?}");
    let (port, _commands) = closing_over("UMBEL.EXPORT", "");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    let said = fails(&["pull", &format!("redis://127.0.0.1:{port}/f"), "-o", text(&file)]);
    assert!(said.contains("broke") && !said.contains("goes on"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The output may be closed early without an error, but a broken connection is one.
#[test]
fn a_connection_that_breaks_during_a_push_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    save_filter(&path, 6_000_000, 0);
    let (port, _commands) = closing_over("UMBEL.IMPORT", ":0\r\n");
    let said = fails(&["push", text(&path), &format!("redis://127.0.0.1:{port}/f")]);
    assert!(said.contains("broke") && !said.contains("goes on"), "{said}");
}
