//! The secret of a key file does not leave the server, and what the server writes can be read only
//! with the same key file.

use crate::support::{Answer, Client, Server, items, key_file, mixed_load, servers, wait_for};
use std::path::Path;
use umbel::file::fields::put_varint;

/// The secret of most tests.
const SECRET: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;

/// A key of each type after [`mixed_load`], with the prefix of its commands and a question about an
/// item in it.
const VALUES: [(&str, &str, &str); 5] = [
    ("bf:grown", "BF", "BF.EXISTS KEY r3-7"),
    ("cf:grown", "CF", "CF.EXISTS KEY r3-8"),
    ("cms", "CMS", "CMS.QUERY KEY a"),
    ("top", "TOPK", "TOPK.LIST KEY"),
    ("any:counting", "UMBEL", "UMBEL.EXISTS KEY item77"),
];

/// Returns the start of a server with these secrets in its key files.
fn with_secrets(program: &Path, secrets: &[u128], arguments: &[&str]) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let mut module = Vec::new();
    for (i, secret) in secrets.iter().enumerate() {
        let path = folder.path().join(format!("key{i}"));
        std::fs::write(&path, key_file(*secret)).unwrap();
        module.extend(["KEY-FILE".to_owned(), path.to_str().unwrap().to_owned()]);
    }
    let module: Vec<&str> = module.iter().map(String::as_str).collect();
    let server = Server::with_module(program, &module, arguments);
    (folder, server)
}

fn ok() -> Answer {
    Answer::Word("OK".into())
}

/// Returns the forms in which a secret could be written: as bytes, as digits, and as the numbers in
/// the streams of sketches.
fn forms(secret: u128) -> Vec<Vec<u8>> {
    let bytes = secret.to_be_bytes();
    let digits = format!("{secret:032x}");
    let halves = bytes.as_chunks::<8>().0.iter().map(|half| {
        let mut varint = Vec::new();
        put_varint(&mut varint, u64::from_le_bytes(*half));
        varint
    });
    let texts = [bytes.to_vec(), digits.clone().into_bytes(), digits.to_uppercase().into_bytes()];
    texts.into_iter().chain(halves).collect()
}

fn contains(bytes: &[u8], secret: u128) -> bool {
    forms(secret).iter().any(|form| bytes.windows(form.len()).any(|window| window == form))
}

/// Returns all that a client or a file of the server shows of its values.
fn everything_written(server: &Server) -> Vec<(String, Vec<u8>)> {
    let mut client = server.client();
    let mut written = Vec::new();
    for (key, family, _) in VALUES {
        let dumped = client.command(&format!("{family}.SCANDUMP {key} 0"));
        written.push((format!("SCANDUMP of {key}"), dumped.array()[1].bytes().to_vec()));
        written.push((format!("DUMP of {key}"), client.command(&format!("DUMP {key}")).bytes().to_vec()));
    }
    let exported = client.command("UMBEL.EXPORT any:counting 0");
    written.push(("the file".into(), exported.array()[1].bytes().to_vec()));
    assert_eq!(client.command("SAVE"), ok());
    let mut folders = vec![server.folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.ends_with("secret") => {}
                false => written.push((path.display().to_string(), std::fs::read(path).unwrap())),
            }
        }
    }
    written
}

fn rewrite_append_only_file(client: &mut Client) {
    client.command("BGREWRITEAOF");
    wait_for("the rewrite", || {
        let info = client.command("INFO persistence");
        let info = String::from_utf8(info.bytes().to_vec()).unwrap();
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
}

const PLAIN_FILES: [&str; 6] =
    ["--appendonly", "yes", "--aof-use-rdb-preamble", "no", "--rdbcompression", "no"];

#[test]
fn no_dump_snapshot_or_append_only_file_contains_the_secret_of_a_key_file() {
    for program in servers() {
        let (_keys, server) = with_secrets(program, &[SECRET], &PLAIN_FILES);
        let mut client = server.client();
        mixed_load(&mut client);
        for round in ["after commands", "after a rewrite"] {
            let written = everything_written(&server);
            assert!(written.len() > 12, "{}", written.len());
            for (what, bytes) in &written {
                assert!(!contains(bytes, SECRET), "{what} {round}");
            }
            rewrite_append_only_file(&mut client);
        }
        let before = client.command("DEBUG DIGEST");
        for again in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
            assert_eq!(client.command(again), ok());
            assert_eq!(client.command("DEBUG DIGEST"), before, "{again}");
        }
        // A secret that a client has chosen for a filter of its own is in its dump.
        client.command(&format!("BF.RESERVE chosen 0.01 100 SEED {:032x}", SECRET + 1));
        let dumped = client.command("BF.SCANDUMP chosen 0");
        assert!(contains(dumped.array()[1].bytes(), SECRET + 1));
    }
}

/// Loads a dumped stream under another key.
fn load(client: &mut Client, family: &str, key: &str, stream: &[u8]) -> Answer {
    let cursor = (stream.len() + 1).to_string();
    client.call(&[format!("{family}.LOADCHUNK").as_bytes(), key.as_bytes(), cursor.as_bytes(), stream])
}

#[test]
fn a_dump_is_restored_only_by_a_server_with_the_same_key_file() {
    for program in servers() {
        let (_keys, server) = with_secrets(program, &[SECRET], &[]);
        let (_same_keys, same) = with_secrets(program, &[SECRET], &[]);
        let (_other_keys, other) = with_secrets(program, &[SECRET + 1], &[]);
        let none = Server::without_secret(program, &[]);
        let mut client = server.client();
        mixed_load(&mut client);
        for (key, family, question) in VALUES {
            let answer = client.command(&question.replace("KEY", key));
            let dump = client.command(&format!("DUMP {key}"));
            let dumped = client.command(&format!("{family}.SCANDUMP {key} 0"));
            let stream = dumped.array()[1].bytes();
            let mut friend = same.client();
            assert_eq!(friend.call(&[b"RESTORE", b"restored", b"0", dump.bytes()]), ok());
            assert_eq!(load(&mut friend, family, "loaded", stream), ok());
            // The name of a key does not matter.
            assert_eq!(friend.command("RENAME loaded elsewhere:renamed"), ok());
            assert_eq!(friend.command("COPY restored copied").integer(), 1);
            for key in ["restored", "elsewhere:renamed", "copied"] {
                assert_eq!(friend.command(&question.replace("KEY", key)), answer, "{family}");
            }
            friend.command("FLUSHALL");
            for stranger in [&other, &none] {
                let mut stranger_client = stranger.client();
                let loaded = load(&mut stranger_client, family, "x", stream);
                let error = loaded.error();
                assert!(error.contains("KEY-FILE") && error.contains("key tag"), "{family}: {error}");
                let restored = stranger_client.call(&[b"RESTORE", b"x", b"0", dump.bytes()]);
                assert!(restored.error().contains("Bad data format"), "{family}: {restored:?}");
                assert_eq!(stranger_client.command("EXISTS x").integer(), 0);
                assert!(stranger.log().contains("with the KEY-FILE that it was written with"), "{family}");
            }
        }
    }
}

#[test]
fn a_server_with_another_key_file_refuses_to_start_and_loses_nothing() {
    for program in servers() {
        for arguments in [&PLAIN_FILES[..], &["--appendonly", "yes"], &["--save", "1000 1000"]] {
            for rewrite in [false, true] {
                let mut server = Server::start(program, arguments);
                let mut client = server.client();
                mixed_load(&mut client);
                match arguments[0] {
                    "--appendonly" if rewrite => rewrite_append_only_file(&mut client),
                    "--appendonly" => {}
                    _ => assert_eq!(client.command("SAVE"), ok()),
                }
                let before = client.command("DEBUG DIGEST");
                server.kill();
                let path = server.folder.path().join("secret");
                let key = std::fs::read(&path).unwrap();
                std::fs::write(&path, key_file(SECRET)).unwrap();
                assert!(!server.starts_again(), "{arguments:?}");
                assert!(
                    server.log().contains("with the KEY-FILE that it was written with"),
                    "{}",
                    server.log()
                );
                std::fs::write(&path, key).unwrap();
                server.restart();
                assert_eq!(server.client().command("DEBUG DIGEST"), before, "{arguments:?}");
            }
        }
    }
}

#[test]
fn a_replica_with_another_key_file_reports_it_and_answers_nothing_wrong() {
    for program in servers() {
        let (_keys, primary) = with_secrets(program, &[SECRET], &[]);
        let (_other_keys, replica) = with_secrets(program, &[SECRET + 1], &[]);
        let (mut client, mut follower) = (primary.client(), replica.client());
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        wait_for("the replica", || {
            String::from_utf8_lossy(follower.command("INFO replication").bytes())
                .contains("master_link_status:up")
        });
        client.command_with("BF.MADD f", &items("k", 0..100));
        client.command("SET text x");
        wait_for("the last command", || follower.command("EXISTS text").integer() == 1);
        // No filter of another size or secret takes its place.
        assert_eq!(follower.command("EXISTS f").integer(), 0);
        let log = replica.log();
        assert!(log.contains("KEY-FILE that it was written with"), "{log}");
    }
}

#[test]
fn servers_without_a_key_file_replicate_persist_and_exchange_values() {
    for program in servers() {
        let primary =
            Server::without_secret(program, &["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
        let replica = Server::without_secret(program, &[]);
        let mut other = Server::without_secret(program, &["--save", "1000 1000"]);
        let (mut client, mut follower) = (primary.client(), replica.client());
        // Some values arrive as a snapshot, the rest as commands.
        client.command_with("BF.MADD bf:before", &items("k", 0..1000));
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        wait_for("the replica", || follower.command("BF.CARD bf:before").integer() > 0);
        mixed_load(&mut client);
        wait_for("the last command", || client.command("DEBUG DIGEST") == follower.command("DEBUG DIGEST"));
        for (key, family, question) in VALUES {
            let dumped = client.command(&format!("{family}.SCANDUMP {key} 0"));
            let mut elsewhere = other.client();
            assert_eq!(load(&mut elsewhere, family, key, dumped.array()[1].bytes()), ok());
            let question = question.replace("KEY", key);
            assert_eq!(elsewhere.command(&question), client.command(&question));
        }
        // The next start has another secret.
        let before = other.client().command("DEBUG DIGEST");
        assert_eq!(other.client().command("SAVE"), ok());
        other.kill();
        other.restart();
        assert_eq!(other.client().command("DEBUG DIGEST"), before);
        rewrite_append_only_file(&mut client);
        let before = client.command("DEBUG DIGEST");
        assert_eq!(client.command("DEBUG LOADAOF"), ok());
        assert_eq!(client.command("DEBUG DIGEST"), before);
    }
}

/// The secret of the server that wrote [`OLD_SNAPSHOT`].
const OLD_SECRET: u128 = 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f;

/// A snapshot of the first version of the module, which wrote the secret into every value.
const OLD_SNAPSHOT: &[u8] = include_bytes!("../golden/values.rdb");

#[test]
fn old_snapshots_stay_loadable_and_lose_their_secret() {
    assert!(contains(OLD_SNAPSHOT, OLD_SECRET));
    for program in servers() {
        for secret in [OLD_SECRET, SECRET] {
            let (_keys, mut server) =
                with_secrets(program, &[secret], &["--rdbcompression", "no", "--save", "1000 1000"]);
            server.kill();
            std::fs::write(server.folder.path().join("dump.rdb"), OLD_SNAPSHOT).unwrap();
            server.restart();
            let mut client = server.client();
            assert_eq!(client.command_with("BF.MEXISTS bf", &items("k", 0..9)).integers(), [1; 9]);
            assert_eq!(client.command("BF.EXISTS other apple").integer(), 1);
            assert_eq!(client.command_with("CF.MEXISTS cf", &items("k", 0..20)).integers(), [1; 20]);
            assert_eq!(client.command("CMS.QUERY cms apple").integers(), [300]);
            assert_eq!(client.command("TOPK.COUNT topk apple pear").integers(), [2, 1]);
            assert_eq!(client.command("UMBEL.EXISTS counting a b c d").integers(), [1, 1, 1, 0]);
            // An import that had begun.
            assert_eq!(client.call(&[b"UMBEL.IMPORT", b"begun", b"320", b"0", b""]).integer(), 150);
            assert_eq!(client.command("SAVE"), ok());
            let snapshot = std::fs::read(server.folder.path().join("dump.rdb")).unwrap();
            // The secret of the key file is not written again. Any other one is part of its value.
            assert_eq!(contains(&snapshot, OLD_SECRET), secret != OLD_SECRET);
            server.kill();
            server.restart();
            assert_eq!(server.client().command("TOPK.COUNT topk apple pear").integers(), [2, 1]);
        }
    }
}

#[test]
fn a_secret_can_be_replaced_while_old_values_stay_readable() {
    let program = &servers()[0];
    let (_keys, before) = with_secrets(program, &[SECRET], &[]);
    let (_more_keys, server) = with_secrets(program, &[SECRET + 1, SECRET], &PLAIN_FILES);
    let (mut old, mut client) = (before.client(), server.client());
    mixed_load(&mut old);
    for (key, _, question) in VALUES {
        let dump = old.command(&format!("DUMP {key}"));
        assert_eq!(client.call(&[b"RESTORE", key.as_bytes(), b"0", dump.bytes()]), ok());
        let question = question.replace("KEY", key);
        assert_eq!(client.command(&question), old.command(&question));
    }
    // New filters have the first secret, unless a client names the other one by its tag.
    let hash = |client: &mut Client, key: &str| {
        let info = client.command(&format!("UMBEL.INFO {key}"));
        String::from_utf8(info.field("hash").bytes().to_vec()).unwrap()
    };
    let old_hash = hash(&mut client, "bf:grown");
    let tag = old_hash.rsplit(' ').next().unwrap().to_owned();
    client.command("BF.ADD new x");
    assert_ne!(hash(&mut client, "new"), old_hash);
    assert_eq!(client.command(&format!("BF.RESERVE named 0.01 100 SEED tag:{tag}")), ok());
    assert_eq!(hash(&mut client, "named"), old_hash);
    for wrong in ["tag:", "tag:0123456789abcdef", "tag:xyz", &format!("tag:{tag}0")] {
        let answer = client.command(&format!("BF.RESERVE wrong 0.01 100 SEED {wrong}"));
        assert!(answer.error().contains("KEY-FILE") || answer.error().contains("bad seed"), "{answer:?}");
    }
    for (what, bytes) in everything_written(&server) {
        assert!(!contains(&bytes, SECRET) && !contains(&bytes, SECRET + 1), "{what}");
    }
}
