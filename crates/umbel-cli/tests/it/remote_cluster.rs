//! `umbel push`, `pull` and `shard` on a cluster whose slots are moving.

use crate::remote::{cluster, command, fails, save_filter, succeeds, text, umbel};
use crate::shell::Process;
use crate::support::{Answer, Server, items, servers, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A slot on its way from one server to another, in the steps of `redis-cli --cluster reshard`.
struct Migration<'a> {
    slot: i64,
    source: &'a Server,
    target: &'a Server,
    servers: &'a [Server],
}

impl<'a> Migration<'a> {
    /// Announces that the slot of a key will move to the next server.
    fn begin(servers: &'a [Server], key: &str) -> Migration<'a> {
        let slot = servers[0].client().command(&format!("CLUSTER KEYSLOT {key}")).integer();
        let owner = owner(slot);
        let (source, target) = (&servers[owner], &servers[(owner + 1) % servers.len()]);
        let migration = Migration { slot, source, target, servers };
        migration.set_slot(target, &format!("IMPORTING {}", node(source)));
        migration.set_slot(source, &format!("MIGRATING {}", node(target)));
        migration
    }

    /// Moves a key of the slot.
    fn move_key(&self, key: &str) {
        let migrate = format!("MIGRATE 127.0.0.1 {} {key} 0 60000", self.target.port);
        assert_eq!(self.source.client().command(&migrate), Answer::Word("OK".into()));
    }

    /// Assigns the slot to its new server.
    fn finish(self) {
        let owner = format!("NODE {}", node(self.target));
        self.set_slot(self.target, &owner);
        self.servers.iter().for_each(|server| self.set_slot(server, &owner));
    }

    fn set_slot(&self, server: &Server, state: &str) {
        let answer = server.client().command(&format!("CLUSTER SETSLOT {} {state}", self.slot));
        assert_eq!(answer, Answer::Word("OK".into()), "{state}");
    }
}

/// Returns the index of the server that owns a slot in a new cluster.
fn owner(slot: i64) -> usize {
    [5461, 10923].partition_point(|first| *first <= slot)
}

/// Returns the name of a server in its cluster.
fn node(server: &Server) -> String {
    String::from_utf8(server.client().command("CLUSTER MYID").bytes().to_vec()).unwrap()
}

/// Stops a process, or lets it continue.
fn signal(process: &mut Process, signal: Signal) {
    assert_eq!(process.child().try_wait().unwrap(), None, "it has ended too early");
    kill_process(Pid::from_child(process.child()), signal).unwrap();
}

#[test]
fn a_push_continues_while_its_slot_moves() {
    let folder = tempfile::tempdir().unwrap();
    let (path, back) = (folder.path().join("large.umbel"), folder.path().join("back.umbel"));
    let keys = save_filter(&path, 160_000_000, 1000);
    let length = path.metadata().unwrap().len() as i64;
    assert!(length > 180_000_000, "{length}");

    let servers = cluster();
    let address = |server: &Server| format!("redis://127.0.0.1:{}/large", server.port);
    // Queries the server that has the slot, or is about to get it, on a second connection.
    let arrived = |server: &Server| {
        let mut client = server.client();
        client.command("ASKING");
        match client.command_with(&format!("UMBEL.IMPORT large {length} 0"), &[String::new()]) {
            Answer::Integer(bytes) => bytes,
            _ => 0,
        }
    };
    let slot = servers[0].client().command("CLUSTER KEYSLOT large").integer();
    let owner = &servers[owner(slot)];
    let mut pushing = Process::start(
        command(&["push", text(&path), &address(&servers[2])]).stdout(Stdio::piped()).stderr(Stdio::piped()),
    );
    wait_for("the first pieces", || arrived(owner) > 20_000_000);
    signal(&mut pushing, Signal::STOP);
    let migration = Migration::begin(&servers, "large");
    let (source, target) = (migration.source, migration.target);
    migration.move_key("large");
    let before = arrived(target);
    assert!((20_000_000..length).contains(&before), "{before} of {length} bytes before the move");

    // The slot belongs to the source, but the key has moved: ASK.
    signal(&mut pushing, Signal::CONT);
    wait_for("pieces at the new server", || arrived(target) > before + 10_000_000);
    signal(&mut pushing, Signal::STOP);
    let during = arrived(target);
    assert!(during < length, "{during} of {length} bytes during the move");
    migration.finish();

    // The slot belongs to the target: MOVED.
    signal(&mut pushing, Signal::CONT);
    pushing.finish().ok();
    assert_eq!(target.client().command_with("BF.MEXISTS large", &keys).integers(), vec![1; keys.len()]);
    assert!(source.client().command("EXISTS large").error().starts_with("MOVED"));
    succeeds(&["pull", &address(source), "-o", text(&back)]);
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&back).unwrap(), "it came back changed");
}

/// A read with a time limit fails when a process is stopped and continued, as by Ctrl-Z and `fg`.
#[test]
fn a_push_continues_after_it_was_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.umbel");
    let keys = save_filter(&path, 160_000_000, 1000);
    let server = Server::start(&servers()[0], &[]);
    let address = format!("redis://127.0.0.1:{}/large", server.port);
    let mut pushing = Process::start(
        command(&["push", text(&path), &address]).stdout(Stdio::piped()).stderr(Stdio::piped()),
    );
    let length = path.metadata().unwrap().len();
    wait_for("the first pieces", || {
        let import = format!("UMBEL.IMPORT large {length} 0");
        matches!(server.client().command_with(&import, &[String::new()]), Answer::Integer(1..))
    });
    // It may end before all of them: each one catches it at another moment.
    for _ in 0..20 {
        if pushing.child().try_wait().unwrap().is_some() {
            break;
        }
        for signal in [Signal::STOP, Signal::CONT] {
            let _ = kill_process(Pid::from_child(pushing.child()), signal);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    pushing.finish().ok();
    assert_eq!(server.client().command_with("BF.MEXISTS large", &keys).integers(), vec![1; keys.len()]);
}

/// Starts a server with a filter of two shards that has every line, and is slow.
fn slow_shards() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = |stream: TcpStream| {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        while let Some(count) = lines.next().and_then(|line| line.strip_prefix('*')?.parse::<usize>().ok()) {
            let words: Vec<String> = lines.by_ref().take(2 * count).skip(1).step_by(2).collect();
            let found = |keys: usize| format!("*{keys}\r\n{}", ":1\r\n".repeat(keys));
            let response = match &words[0][..] {
                "GET" => "$38\r\numbel-shards 2 2 fast 0000000000000000\r\n".to_owned(),
                "BF.MEXISTS" => found(count - 2),
                "BF.INSERT" => found(count - 4),
                _ => ":1\r\n".to_owned(),
            };
            // In two parts, so that a stop can be between them.
            for part in response.as_bytes().chunks(response.len() / 2 + 1) {
                std::thread::sleep(Duration::from_millis(15));
                (&stream).write_all(part).unwrap_or_default();
            }
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

/// As for a push: the wait for a response of each shard may end when the process is stopped.
#[test]
fn a_sharded_filter_is_used_on_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    std::fs::write(&path, items("k", 0..40_000).join("\n") + "\n").unwrap();
    let address = format!("redis://127.0.0.1:{}/seen", slow_shards());
    for (action, printed) in [("add", Vec::new()), ("check", std::fs::read(&path).unwrap())] {
        let mut running = Process::start(
            command(&["shard", action, &address, text(&path)]).stdout(Stdio::piped()).stderr(Stdio::piped()),
        );
        let mut stops = 0;
        while stops < 1000 && running.child().try_wait().unwrap().is_none() {
            for signal in [Signal::STOP, Signal::CONT] {
                let _ = kill_process(Pid::from_child(running.child()), signal);
                std::thread::sleep(Duration::from_millis(5));
            }
            stops += 1;
        }
        assert!(stops > 5, "{action}: it ended after {stops} stops");
        assert!(running.finish().ok().stdout == printed, "{action}");
    }
}

#[test]
fn a_sharded_filter_is_complete_while_its_slots_move() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |name: &str, range| {
        let path = folder.path().join(name);
        std::fs::write(&path, items("k", range).join("\n") + "\n").unwrap();
        path
    };
    let (first, second, all) = (lines("first", 0..3000), lines("second", 3000..6000), lines("all", 0..6000));
    let servers = cluster();
    let address = format!("redis://127.0.0.1:{}/seen", servers[0].port);
    let whole = || {
        let found = umbel(&["shard", "check", &address, text(&all)]);
        assert_eq!(String::from_utf8_lossy(&found.stderr), "");
        assert_eq!(found.stdout, std::fs::read(&all).unwrap());
        succeeds(&["shard", "info", &address]);
    };
    succeeds(&["shard", "create", &address, "-n", "6000", "--shards", "2"]);
    succeeds(&["shard", "add", &address, text(&first)]);
    let migration = Migration::begin(&servers, "{seen:1}");
    succeeds(&["shard", "add", &address, text(&first)]);
    migration.move_key("{seen:1}");
    succeeds(&["shard", "add", &address, text(&second)]);
    whole();
    migration.finish();
    whole();
    succeeds(&["shard", "delete", &address]);
}

/// Starts a server that responds to each command with the next of these lines, and then always with
/// the last. PORT in a line stands for the port of the server. Returns the port and the names of
/// the commands received.
fn responding(responses: Vec<&'static str>) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, (sender, commands)) = (listener.local_addr().unwrap().port(), channel());
    std::thread::spawn(move || {
        let mut sent = 0;
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            while let Some(count) =
                lines.next().and_then(|line| line.strip_prefix('*')?.parse::<usize>().ok())
            {
                let words: Vec<String> = lines.by_ref().take(2 * count).skip(1).step_by(2).collect();
                sender.send(words[0].clone()).unwrap_or_default();
                let response = responses[sent.min(responses.len() - 1)].replace("PORT", &port.to_string());
                sent += 1;
                (&stream).write_all(format!("{response}\r\n").as_bytes()).unwrap_or_default();
            }
        }
    });
    (port, commands)
}

#[test]
fn a_command_that_a_cluster_postpones_is_repeated() {
    let later = "-TRYAGAIN Multiple keys request during rehashing of slot";
    let (port, commands) = responding(vec![later, later, "-ERR not found"]);
    let said = fails(&["pull", &format!("redis://127.0.0.1:{port}/f"), "-o", "none"]);
    assert!(said.contains("nothing under the key f"), "{said}");
    assert_eq!(commands.try_iter().collect::<Vec<_>>(), ["UMBEL.EXPORT"; 3]);
}

#[test]
fn endless_redirects_of_a_cluster_are_an_error() {
    for redirect in ["-MOVED 1 127.0.0.1:PORT", "-MOVED 1 :PORT"] {
        let (port, commands) = responding(vec![redirect]);
        let said = fails(&["pull", &format!("redis://127.0.0.1:{port}/f"), "-o", "none"]);
        assert!(said.contains("from one server to the next"), "{said}");
        assert!((2..20).contains(&commands.try_iter().count()));
    }
}
