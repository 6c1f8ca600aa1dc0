//! `umbel push` of a filter in shards: a cluster answers as the folder does, and has all of it or nothing.

use crate::remote::{cluster, command, fails, succeeds, text, umbel};
use crate::shell::{Process, on_terminal};
use crate::support::{Answer, Server, items, servers, wait_for};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;
use umbel::sharded::{MANIFEST, ShardPlan, ShardedBuilder, shard_path};
use umbel::{Hasher, Kind, Sharded, Spec};

const LINES: u32 = 30_000;
const SHARDS: u32 = 12;

/// A folder with a filter of lines, and the files of lines to ask.
struct Folder {
    temporary: TempDir,
    path: PathBuf,
}

impl Folder {
    fn new(kind: Kind, hasher: Hasher, capacity: u64) -> Folder {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("filter");
        let spec = Spec::new(capacity, 0.01).unwrap().with_hasher(hasher);
        let builder = ShardedBuilder::new(ShardPlan::new(kind, &spec, SHARDS).unwrap()).unwrap();
        builder.insert_batch(&items("k", 0..LINES)).unwrap();
        builder.save(&path).unwrap();
        let folder = Folder { temporary, path };
        folder.write("members", 0..LINES);
        folder.write("more", LINES..LINES + 300);
        folder.write("all", 0..2 * LINES);
        folder
    }

    fn write(&self, name: &str, range: std::ops::Range<u32>) {
        fs::write(self.at(name), items("k", range).join("\n") + "\n").unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    /// Returns the lines of the file `all` that the filter in the folder may have.
    fn found(&self, hasher: Hasher) -> Vec<u8> {
        let filter = Sharded::open_with(&self.path, &[hasher].into_iter().collect()).unwrap();
        let lines = items("k", 0..2 * LINES);
        let found = filter.contains_batch(&lines).unwrap();
        let found = lines.iter().zip(found.iter()).filter(|(_, found)| *found);
        found.flat_map(|(line, _)| format!("{line}\n").into_bytes()).collect()
    }
}

fn address_on(server: &Server, name: &str) -> String {
    format!("redis://127.0.0.1:{}/{name}", server.port)
}

fn keys(servers: &[Server]) -> i64 {
    servers.iter().map(|server| server.client().command("DBSIZE").integer()).sum()
}

/// Damages a shard in its middle.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 16;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_cluster_answers_as_the_folder_that_was_pushed() {
    let (one, three) = (vec![Server::start(&servers()[0], &[])], cluster());
    for (kind, hasher) in [
        (Kind::Blocked, Hasher::fast(0)),
        (Kind::Standard, Hasher::fast(7)),
        (Kind::Partitioned, Hasher::fast(0)),
    ] {
        let folder = Folder::new(kind, hasher.clone(), 1_000_000);
        let (path, all) = (folder.path.clone(), folder.at("all"));
        for servers in [&one, &three] {
            let (first, last) =
                (address_on(&servers[0], "seen"), address_on(servers.last().unwrap(), "seen"));
            succeeds(&["push", text(&path), &first]);
            assert_eq!(keys(servers), i64::from(SHARDS) + 1);
            let has = servers.iter().filter(|server| keys(std::slice::from_ref(server)) > 0).count();
            assert_eq!(has, servers.len(), "every server has its share");
            let found = umbel(&["shard", "check", &last, text(&all)]);
            assert_eq!(String::from_utf8_lossy(&found.stderr), "");
            assert!(found.stdout == folder.found(hasher.clone()), "{kind}: other answers than the folder");
            let info = String::from_utf8(umbel(&["shard", "info", &last]).stdout).unwrap();
            assert!(info.contains(&format!("shards    {SHARDS}\n")), "{info}");
            // Lines can be added to it.
            succeeds(&["shard", "add", &last, text(&folder.at("more"))]);
            let added = umbel(&["shard", "check", "-c", &first, text(&folder.at("more"))]);
            assert_eq!(added.stdout, b"300\n");
            succeeds(&["shard", "delete", &first]);
            assert_eq!(keys(servers), 0);
        }
    }
}

#[test]
fn a_keyed_folder_is_pushed_without_its_secret() {
    let secrets = tempfile::tempdir().unwrap();
    let key = secrets.path().join("key");
    succeeds(&["key", "new", text(&key), "--hash", "keyed"]);
    let hasher = umbel::internals::key_file::read(&key).unwrap();
    let folder = Folder::new(Kind::Blocked, hasher.clone(), 1_000_000);
    let server = Server::with_module(&servers()[0], &["KEY-FILE", text(&key)], &[]);
    let address = address_on(&server, "seen");
    succeeds(&["push", text(&folder.path), &address]);
    let (all, key) = (folder.at("all"), text(&key));
    assert!(fails(&["shard", "check", &address, text(&all)]).contains("--key-file"));
    let found = umbel(&["shard", "check", &address, text(&all), "--key-file", key]);
    assert!(found.stdout == folder.found(hasher), "other answers than the folder");

    // A server without the secret gets nothing.
    let other = Server::start(&servers()[0], &[]);
    let said = fails(&["push", text(&folder.path), &address_on(&other, "seen")]);
    assert!(said.contains("does not know the secret") && said.contains("KEY-FILE"), "{said}");
    assert_eq!(other.client().command("DBSIZE").integer(), 0);

    // A secret that is sealed, or in the files, does not travel.
    let sealed = Folder::new(Kind::Blocked, Hasher::sealed([7; 32]), 1_000_000);
    assert!(fails(&["push", text(&sealed.path), &address]).contains("sealed"));
    let open = folder.at("open");
    let spec = Spec::new(1000, 0.01).unwrap().with_hasher(Hasher::keyed([5; 16]));
    let builder = ShardedBuilder::new(ShardPlan::new(Kind::Blocked, &spec, 2).unwrap()).unwrap();
    builder.save_with(&open, true).unwrap();
    assert!(fails(&["push", text(&open), &address]).contains("should not travel"));
}

#[test]
fn a_folder_that_is_not_whole_is_not_sent() {
    let folder = Folder::new(Kind::Blocked, Hasher::default(), 1_000_000);
    let server = Server::start(&servers()[0], &[]);
    let address = address_on(&server, "seen");
    let push = ["push", text(&folder.path), &address];
    let victim = shard_path(&folder.path, 11);
    let intact = fs::read(&victim).unwrap();
    damage(&victim);
    assert!(fails(&push).contains("shard-0011.umbel"));
    fs::write(&victim, &intact[..intact.len() - 1]).unwrap();
    assert!(fails(&push).contains("shard-0011.umbel"));
    fs::remove_file(&victim).unwrap();
    assert!(fails(&push).contains("shard-0011.umbel"));
    fs::write(&victim, &intact).unwrap();
    let braces = format!("{address}{{x}}");
    assert!(fails(&["push", text(&folder.path), &braces]).contains("braces"));
    fs::rename(folder.path.join(MANIFEST), folder.at("aside")).unwrap();
    assert!(fails(&push).contains("manifest"));
    assert_eq!(server.client().command("DBSIZE").integer(), 0);
    fs::rename(folder.at("aside"), folder.path.join(MANIFEST)).unwrap();
    succeeds(&push);
}

#[test]
fn a_push_of_shards_takes_nothing_from_others() {
    let folder = Folder::new(Kind::Blocked, Hasher::default(), 1_000_000);
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    let address = address_on(&server, "seen");
    let push = ["push", text(&folder.path), &address];
    let file = fs::read(shard_path(&folder.path, 5)).unwrap();
    let length = file.len().to_string().into_bytes();
    let unfinished: [&[u8]; 5] = [b"UMBEL.IMPORT", b"{seen:5}", &length, b"0", &file[..1000]];
    for make in [&[&b"SET"[..], b"{seen:5}", b"x"][..], &[b"BF.ADD", b"{seen:5}", b"x"], &unfinished] {
        client.call(make);
        assert!(fails(&[&push[..], &["--replace"]].concat()).contains("{seen:5}"));
        assert_eq!(client.command("KEYS *").array(), [Answer::Bytes(b"{seen:5}".to_vec())]);
        client.command("DEL {seen:5}");
    }
    client.command("SET seen x");
    assert!(fails(&push).contains("already"));
    assert!(fails(&[&push[..], &["--replace"]].concat()).contains("is not a filter in shards"));
    assert_eq!(client.command("GET seen"), Answer::Bytes(b"x".to_vec()));
    client.command("DEL seen");

    // A filter in shards is replaced only on request, also by one with fewer shards.
    succeeds(&["shard", "create", &address, "-n", "1000", "--shards", "20"]);
    assert!(fails(&push).contains("already"));
    assert_eq!(client.command("DBSIZE").integer(), 21);
    let told = on_terminal(command(&[&push[..], &["--replace"]].concat()), Some(Stdio::null())).code(0);
    assert!(told.text().starts_with("seen, 12 shards "), "{}", told.text());
    assert_eq!(client.command("DBSIZE").integer(), 13);
}

/// Of a server that has no room, and of one that is killed in the middle.
#[test]
fn a_push_of_shards_that_fails_leaves_nothing_that_looks_whole() {
    let folder = Folder::new(Kind::Blocked, Hasher::default(), 60_000_000);
    let mut three = cluster();
    let address = address_on(&three[0], "seen");
    let used = String::from_utf8(three[2].client().command("INFO memory").bytes().to_vec()).unwrap();
    let used: u64 = used.lines().find_map(|line| line.strip_prefix("used_memory:")?.parse().ok()).unwrap();
    three[2].client().command(&format!("CONFIG SET maxmemory {}", used + (4 << 20)));
    let said = fails(&["push", text(&folder.path), &address]);
    assert!(said.contains("{seen:"), "{said}");
    assert_eq!(keys(&three), 0, "{said}");
    three[2].client().command("CONFIG SET maxmemory 0");

    // Writes wait at one server, which is then killed.
    let slot = three[0].client().command("CLUSTER KEYSLOT seen").integer();
    let of_record = [5461, 10923].partition_point(|first| *first <= slot);
    let (victim, other) = ((of_record + 1) % 3, (of_record + 2) % 3);
    three[victim].client().command("CLIENT PAUSE 100000 WRITE");
    let address = address_on(&three[other], "seen");
    let pushing = Process::start(
        command(&["push", text(&folder.path), &address]).stdout(Stdio::piped()).stderr(Stdio::piped()),
    );
    wait_for("the first shard", || three[other].client().command("DBSIZE").integer() > 0);
    three[victim].kill();
    let ended = pushing.finish();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("umbel shard delete"), "{}", ended.stderr);
    three[victim].restart();
    wait_for("the cluster", || {
        three.iter().all(|server| {
            String::from_utf8_lossy(server.client().command("CLUSTER INFO").bytes())
                .contains("cluster_state:ok")
        })
    });
    for action in ["check", "add"] {
        fails(&["shard", action, &address, text(&folder.at("members"))]);
    }
    succeeds(&["shard", "delete", &address]);
    assert_eq!(keys(&three), 0);
}

/// A line may be in another shard of the filter that replaces the one that was opened.
#[test]
fn a_filter_that_is_replaced_while_it_is_asked_gives_no_answer() {
    let (old, new) = (
        Folder::new(Kind::Blocked, Hasher::default(), 1_000_000),
        Folder::new(Kind::Blocked, Hasher::fast(7), 1_000_000),
    );
    let server = Server::start(&servers()[0], &[]);
    let address = address_on(&server, "seen");
    succeeds(&["push", text(&old.path), &address]);
    let mut asking = command(&["shard", "check", &address, "-"]);
    asking.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut asking = asking.spawn().unwrap();
    let mut input = asking.stdin.take().unwrap();
    let mut output = BufReader::new(asking.stdout.take().unwrap());
    let members = items("k", 0..1000).join("\n") + "\n";
    input.write_all(b"k0\n").unwrap();
    let mut answer = String::new();
    output.read_line(&mut answer).unwrap();
    assert_eq!(answer, "k0\n");

    succeeds(&["push", "--replace", text(&new.path), &address]);
    input.write_all(members.as_bytes()).unwrap();
    drop(input);
    answer.clear();
    output.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "");
    let ended = asking.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(2) && said.contains("replaced in the meantime"), "{said}");
}
