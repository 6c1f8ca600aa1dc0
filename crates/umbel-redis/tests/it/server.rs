//! The promises of a server hold for filters: replicas are equal, and nothing that was acknowledged
//! is lost.

use crate::support::{Answer, Client, Server, info, items, mixed_load, oldest, servers, wait_for};

fn digest(client: &mut Client) -> Answer {
    client.command("DEBUG DIGEST")
}

#[test]
fn filters_survive_defragmentation() {
    // Only a server with an allocator of its own moves memory.
    let Some(program) = oldest() else { return };
    let mut server = Server::start(
        program,
        &["--active-defrag-ignore-bytes", "1", "--active-defrag-threshold-lower", "1"],
    );
    let mut client = server.client();
    mixed_load(&mut client);
    let kinds =
        ["counting", "variable-increment", "aging", "deletable", "floom", "quotient", "scalable", "cuckoo"];
    for i in 0..3000 {
        // One of four neighbours in memory stays.
        for part in ["gone1", "stays", "gone2", "gone3"] {
            client.command_with(&format!("BF.MADD {part}:bf:{i}"), &items("k", i..i + 150));
            client.command(&format!("CF.RESERVE {part}:cf:{i} 64"));
            client.command(&format!("CF.ADD {part}:cf:{i} k{i}"));
            client.command(&format!(
                "UMBEL.RESERVE {part}:any:{i} {} 50 0.01",
                kinds[i as usize % kinds.len()]
            ));
            client.command(&format!("CMS.INITBYDIM {part}:cms:{i} 20 2"));
            client.command(&format!("TOPK.RESERVE {part}:top:{i} 3 8 2 0.9"));
            client.command(&format!("TOPK.ADD {part}:top:{i} a{i} b{i} c{i}"));
        }
    }
    let gone: Vec<String> = (0..3000)
        .flat_map(|i| {
            ["gone1", "gone2", "gone3"]
                .map(|part| ["bf", "cf", "any", "cms", "top"].map(|kind| format!("{part}:{kind}:{i}")))
        })
        .flatten()
        .collect();
    client.command_with("DEL", &gone);
    let before = digest(&mut client);
    let bytes = info(&mut client, "modules", "bf_filter_bytes");
    assert_eq!(client.command("CONFIG SET activedefrag yes"), Answer::Word("OK".into()));
    wait_for("memory to move", || info(&mut client, "modules", "bf_defrag_moved") > 10_000);
    assert_eq!(digest(&mut client), before);
    assert_eq!(info(&mut client, "modules", "bf_filter_bytes"), bytes);
    for i in (0..3000).step_by(7) {
        let found = client.command_with(&format!("BF.MEXISTS stays:bf:{i}"), &items("k", i..i + 150));
        assert_eq!(found.integers(), [1; 150]);
        client.command_with(&format!("BF.MADD stays:bf:{i}"), &items("more", 0..500));
        assert_eq!(client.command(&format!("CF.DEL stays:cf:{i} k{i}")).integer(), 1);
        client.command(&format!("TOPK.ADD stays:top:{i} a{i}"));
        assert_eq!(client.command(&format!("TOPK.QUERY stays:top:{i} a{i}")).integers(), [1]);
    }
    let before = digest(&mut client);
    client.command("DEBUG RELOAD");
    assert_eq!(digest(&mut client), before);
    client.command("FLUSHALL");
    assert_eq!(info(&mut client, "modules", "bf_filter_bytes"), 0);
    assert_eq!(info(&mut client, "modules", "bf_values"), 0);
    assert!(server.is_alive());
}

/// Returns the value after a name in a list of names and values.
fn behind<'a>(list: &'a [Answer], name: &str) -> &'a Answer {
    let place = list.iter().position(
        |answer| matches!(answer, Answer::Bytes(bytes) if bytes.eq_ignore_ascii_case(name.as_bytes())),
    );
    &list[place.unwrap_or_else(|| panic!("no {name} in {list:?}")) + 1]
}

#[test]
fn read_access_to_keys_allows_exactly_the_commands_that_only_read_them() {
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        client.command("BF.ADD src:a x");
        client.command("BF.ADD dst:a x");
        client.command("CMS.INITBYDIM src:cms 10 2");
        client.command("CMS.INITBYDIM dst:cms 10 2");
        let rules =
            "ACL SETUSER reader on nopass %R~src:* ~dst:* +@all -@dangerous +bf.scandump +umbel.export";
        assert_eq!(client.command(rules), Answer::Word("OK".into()));
        let mut reader = server.client();
        assert_eq!(reader.command("AUTH reader any"), Answer::Word("OK".into()));
        for command in [
            "BF.EXISTS src:a x",
            "BF.INFO src:a",
            "BF.SCANDUMP src:a 0",
            "UMBEL.CARD src:a dst:a",
            "UMBEL.EXPORT src:a 0",
            "UMBEL.MERGE dst:a src:a",
            "UMBEL.INTERSECT dst:both src:a dst:a",
            "CMS.MERGE dst:cms 1 src:cms",
        ] {
            let answer = reader.command(command);
            assert!(!matches!(answer, Answer::Error(_)), "{command}: {answer:?}");
        }
        for command in
            ["BF.ADD src:a x", "UMBEL.MERGE src:a dst:a", "CMS.MERGE src:cms 1 dst:cms", "BF.EXISTS other x"]
        {
            assert!(reader.command(command).error().starts_with("NOPERM"), "{command}");
        }
        // The server knows the arity of a command before the call.
        let described = client.command("COMMAND INFO bf.add umbel.merge");
        assert_eq!([0, 1].map(|i| described.array()[i].array()[1].integer()), [3, -3]);
        let docs = client.command("COMMAND DOCS bf.add");
        let summary = behind(behind(docs.array(), "bf.add").array(), "summary");
        assert!(summary.bytes().starts_with(b"Adds an item"), "{summary:?}");
        client.command("MULTI");
        assert!(client.command("BF.ADD src:a").error().contains("wrong number of arguments"));
        assert!(client.command("EXEC").error().starts_with("EXECABORT"));
        assert_eq!(client.command("COMMAND GETKEYS CMS.MERGE a 2 b c").array().len(), 3);
        assert_eq!(client.command("COMMAND GETKEYS UMBEL.MERGE a b c").array().len(), 3);
    }
}

#[test]
fn the_oldest_server_replicates_and_persists_all_types() {
    let Some(program) = oldest() else { return };
    let (primary, replica) = (Server::start(program, &["--appendonly", "yes"]), Server::start(program, &[]));
    let (mut client, mut follower) = (primary.client(), replica.client());
    follower.command(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
    mixed_load(&mut client);
    wait_for("the last command", || digest(&mut client) == digest(&mut follower));
    let before = digest(&mut client);
    for again in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
        assert_eq!(client.command(again), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before, "{again}");
    }
}

#[test]
fn a_replica_is_equal_to_its_primary() {
    for program in servers() {
        let primary = Server::start(program, &[]);
        let mut client = primary.client();
        // Some values arrive as a snapshot, the rest as commands. The replica has other limits.
        client.command_with("BF.MADD bf:before", &items("k", 0..1000));
        let load = ["--repl-diskless-load", "swapdb"];
        let replica = Server::with_module(program, &["MAX-KEY-BYTES", "100"], &load);
        let mut follower = replica.client();
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        wait_for("the replica", || follower.command("BF.CARD bf:before").integer() > 0);
        mixed_load(&mut client);
        assert_eq!(client.command("WAIT 1 10000").integer(), 1);
        wait_for("the last command", || digest(&mut client) == digest(&mut follower));
        assert_eq!(follower.command_with("BF.MEXISTS bf:grown", &items("r3-", 0..200)).integers(), [1; 200]);
        assert_eq!(follower.command("BF.EXISTS bf:copy only-here").integer(), 1);
    }
}

#[test]
fn snapshots_and_append_only_files_restore_equal_values() {
    for program in servers() {
        let mut server = Server::start(program, &["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
        let mut client = server.client();
        mixed_load(&mut client);
        let before = digest(&mut client);
        assert_eq!(client.command("DEBUG RELOAD"), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before, "from a snapshot");
        assert_eq!(client.command("DEBUG LOADAOF"), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before, "from the append-only file");
        client.command("BGREWRITEAOF");
        wait_for("the rewrite", || {
            let info = client.command("INFO persistence");
            let info = String::from_utf8(info.bytes().to_vec()).unwrap();
            info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
        });
        assert_eq!(client.command("DEBUG LOADAOF"), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before, "from the rewritten append-only file");
        server.kill();
        server.restart();
        assert_eq!(digest(&mut server.client()), before, "after the server was killed");
    }
}

/// A client adds keys until the server is killed: every acknowledged key is in the append-only
/// file.
#[test]
fn no_acknowledged_key_is_lost_when_the_server_is_killed() {
    for program in servers() {
        let mut server = Server::start(program, &["--appendonly", "yes", "--appendfsync", "always"]);
        let mut client = server.client();
        let mut writer = server.client();
        let writing = std::thread::spawn(move || {
            let mut acknowledged = 0;
            while let Ok(answer) = writer.try_call(&[b"BF.ADD", b"f", format!("k{acknowledged}").as_bytes()])
            {
                assert!(answer.integer() <= 1);
                if writer.try_call(&[b"CF.ADD", b"c", format!("k{acknowledged}").as_bytes()]).is_err() {
                    break;
                }
                acknowledged += 1;
            }
            acknowledged
        });
        wait_for("some keys", || client.command("BF.CARD f").integer() > 500);
        server.kill();
        let acknowledged = writing.join().unwrap();
        server.restart();
        let mut client = server.client();
        assert!(acknowledged >= 500, "{acknowledged}");
        let all = items("k", 0..acknowledged);
        assert_eq!(client.command_with("BF.MEXISTS f", &all).integers(), vec![1; all.len()]);
        assert_eq!(client.command_with("CF.MEXISTS c", &all).integers(), vec![1; all.len()]);
    }
}

#[test]
fn keys_can_be_copied_dumped_restored_and_unlinked() {
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        mixed_load(&mut client);
        for key in ["bf:grown", "cf:grown", "cms", "top"] {
            let dumped = client.command(&format!("DUMP {key}"));
            assert_eq!(client.call(&[b"RESTORE", b"back", b"0", dumped.bytes()]), Answer::Word("OK".into()));
            assert_eq!(client.command(&format!("COPY {key} copy")).integer(), 1);
            let digests = client.command(&format!("DEBUG DIGEST-VALUE {key} back copy"));
            let [a, b, c] = digests.array() else { panic!("{digests:?}") };
            assert!(a == b && b == c, "{key}: {digests:?}");
            assert!(client.command("MEMORY USAGE back").integer() > 100);
            assert_eq!(client.command("UNLINK back copy").integer(), 2);
        }
        // A large value is freed in the background.
        let filter_bytes = |client: &mut Client| {
            let info = String::from_utf8(client.command("INFO everything").bytes().to_vec()).unwrap();
            let line = info.lines().find(|line| line.starts_with("bf_filter_bytes:")).unwrap().to_owned();
            line.rsplit(':').next().unwrap().parse::<u64>().unwrap()
        };
        let before = filter_bytes(&mut client);
        client.command("BF.RESERVE large 0.01 100000000");
        assert!(filter_bytes(&mut client) > before + 100_000_000);
        assert!(client.command("MEMORY USAGE large").integer() > 100_000_000);
        client.command("UNLINK large");
        wait_for("the memory", || filter_bytes(&mut client) == before);
    }
}

#[test]
fn memory_limits_hold_for_a_key_and_for_all_keys() {
    let program = &servers()[0];
    let limits = ["MAX-KEY-BYTES", "100k", "MAX-BYTES", "250000"];
    let server = Server::with_module(program, &limits, &[]);
    let mut client = server.client();
    assert!(client.command("BF.RESERVE f 0.01 100000").error().contains("MAX-KEY-BYTES"));
    // A filter that grows stops at the limit, keeps its items, and reports the error.
    let mut refused = 0;
    for start in (0..100_000).step_by(1000) {
        let added = client.command_with("BF.MADD f", &items("k", start..start + 1000));
        refused += added.array().iter().filter(|answer| matches!(answer, Answer::Error(_))).count();
    }
    assert!(refused > 10_000, "{refused}");
    assert!(client.command("MEMORY USAGE f").integer() < 101_000);
    let card = client.command("BF.CARD f").integer();
    assert!(card > 20_000, "{card}");
    assert_eq!(client.command_with("BF.MEXISTS f", &items("k", 0..10_000)).integers(), vec![1; 10_000]);
    // The same holds after a merge, when a stage with room accepts no more keys.
    client.command("DEL f");
    client.command_with("BF.MADD one", &items("one", 0..60));
    client.command_with("BF.MADD f", &items("two", 0..60));
    assert_eq!(client.command("UMBEL.MERGE f one"), Answer::Word("OK".into()));
    for start in (0..100_000).step_by(10) {
        client.command_with("BF.MADD f", &items("k", start..start + 10));
    }
    assert!(client.command("MEMORY USAGE f").integer() < 101_000);
    assert_eq!(client.command_with("BF.MEXISTS f", &items("k", 0..10_000)).integers(), vec![1; 10_000]);
    client.command_with("CF.INSERT cf1 CAPACITY 1000 ITEMS", &items("k", 0..31_000));
    client.command("COPY cf1 cf2");
    client.command("CF.ADD cf1 again");
    for _ in 0..8 {
        client.command("UMBEL.MERGE cf1 cf2");
    }
    assert!(client.command("MEMORY USAGE cf1").integer() < 101_000);
    client.command("DEL one cf1 cf2");
    for key in ["a", "b"] {
        assert_eq!(client.command(&format!("BF.RESERVE {key} 0.01 45000")), Answer::Word("OK".into()));
    }
    assert!(client.command("BF.RESERVE c 0.01 45000").error().contains("memory limit"));
    assert_eq!(client.command("EXISTS c").integer(), 0);
    client.command("DEL a");
    assert_eq!(client.command("BF.RESERVE c 0.01 45000"), Answer::Word("OK".into()));
    // The server's own limit comes first.
    client.command("CONFIG SET maxmemory 1");
    assert!(client.command("BF.ADD g x").error().starts_with("OOM"));
    assert_eq!(client.command("BF.EXISTS f k1").integer(), 1);
}

#[test]
fn a_merge_of_sketches_does_not_count_towards_the_memory_limit() {
    let server = Server::with_module(&servers()[0], &["MAX-BYTES", "1000"], &[]);
    let mut client = server.client();
    // 448 bytes each: there is no room for a third.
    for key in ["a", "b"] {
        assert_eq!(client.command(&format!("CMS.INITBYDIM {key} 50 2")), Answer::Word("OK".into()));
    }
    assert!(client.command("CMS.INITBYDIM c 50 2").error().contains("memory limit"));
    client.command("CMS.INCRBY b x 7");
    assert_eq!(client.command("CMS.MERGE a 2 a b WEIGHTS 1 3"), Answer::Word("OK".into()));
    assert_eq!(client.command("CMS.QUERY a x").integers(), [21]);
}

#[test]
fn changes_publish_keyspace_events() {
    let server = Server::start(&servers()[0], &["--notify-keyspace-events", "AKE"]);
    let mut listener = server.client();
    listener.command("SUBSCRIBE __keyevent@0__:bf.add __keyevent@0__:bf.reserve");
    let mut client = server.client();
    client.command("BF.ADD f x");
    client.command("BF.ADD f x");
    client.command("BF.ADD f y");
    let mut heard = || {
        let message = listener.next_answer();
        String::from_utf8_lossy(message.array()[1].bytes()).into_owned()
    };
    // The second subscription, then the new filter, and each new key.
    heard();
    assert_eq!(
        [heard(), heard(), heard()].map(|channel| channel.rsplit(':').next().unwrap().to_owned()),
        ["bf.reserve", "bf.add", "bf.add"]
    );
}

/// If some items of a command are refused, only the others are replicated.
#[test]
fn a_partially_executed_command_replicates_the_same_part() {
    for program in servers() {
        let limit = ["MAX-KEY-BYTES", "4000"];
        let arguments = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
        let primary = Server::with_module(program, &limit, &arguments);
        let replica = Server::with_module(program, &["MAX-KEY-BYTES", "4000", "MAX-BYTES", "10"], &[]);
        let (mut client, mut follower) = (primary.client(), replica.client());
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        wait_for("the replica", || {
            String::from_utf8_lossy(follower.command("INFO replication").bytes())
                .contains("master_link_status:up")
        });
        // An item that is present changes nothing, and is not replicated.
        client.command("BF.ADD b x");
        client.command("BF.ADD b x");
        let (mut went_in, mut refused) = (0, 0);
        for start in (0..5000).step_by(50) {
            let answers = client.command_with("BF.MADD f", &items("k", start..start + 50));
            for answer in answers.array() {
                match answer {
                    Answer::Error(_) => refused += 1,
                    other => went_in += other.integer(),
                }
            }
        }
        assert!(refused > 1000 && went_in > 500, "{refused} refused, {went_in} went in");
        assert_eq!(client.command("BF.CARD f").integer(), went_in);
        client.command("COPY f copy");
        for name in ["m", "n"] {
            client.command_with(&format!("BF.MADD {name}"), &items(name, 0..60));
        }
        client.command("UMBEL.MERGE m n");
        for start in (0..5000).step_by(50) {
            client.command_with("BF.MADD m", &items("k", start..start + 50));
        }
        // A file does not contain its secret.
        let file = client.command("UMBEL.EXPORT m 0");
        let file = file.array()[1].bytes();
        let length = file.len().to_string();
        let piece = |from: usize| {
            [
                b"UMBEL.IMPORT" as &[u8],
                b"imported",
                length.as_bytes(),
                if from == 0 { b"0" } else { b"500" },
                if from == 0 { &file[..500] } else { &file[500..] },
            ]
        };
        client.call(&piece(0));
        assert_eq!(client.call(&piece(500)).integer(), file.len() as i64);
        client.command("CF.RESERVE c 500 EXPANSION 2");
        let answers = client.command_with("CF.INSERT c ITEMS", &items("k", 0..5000)).integers();
        assert!(answers.contains(&-1));
        let inside = answers.iter().filter(|answer| **answer == 1).count();
        assert_eq!(client.command("CF.INFO c").field("Number of items inserted").integer(), inside as i64);
        client.command("WAIT 1 10000");
        let before = digest(&mut client);
        wait_for("the last command", || digest(&mut follower) == before);
        assert_eq!(client.command("DEBUG LOADAOF"), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before);
    }
}

/// A value that was accepted can be saved and loaded, whatever commands change it.
#[test]
fn a_loaded_value_never_prevents_a_server_from_starting() {
    use umbel::file::fields::sum;
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    client.command("BF.ADD f x");
    let dumped = client.command("BF.SCANDUMP f 0");
    let mut chunk = dumped.array()[1].bytes().to_vec();
    // The second number is the number of items. Set it to the capacity.
    assert_eq!(chunk[13..16], [2, 2, 1]);
    chunk[15] = 100;
    let head = (16..100).find(|at| {
        let sum = sum(&{
            let mut head = chunk[..*at].to_vec();
            head[15] = 1;
            head
        });
        chunk.get(*at..at + 8) == Some(&sum.to_le_bytes()[..])
    });
    let head = head.expect("the header ends somewhere");
    let right = sum(&chunk[..head]).to_le_bytes();
    chunk[head..head + 8].copy_from_slice(&right);
    let cursor = (chunk.len() + 1).to_string();
    client.call(&[b"BF.LOADCHUNK", b"g", cursor.as_bytes(), &chunk]);
    client.command("BF.ADD g y");
    assert_eq!(client.command("DEBUG RELOAD"), Answer::Word("OK".into()));
    assert_eq!(client.command("BF.EXISTS g x").integer(), 1);
}
