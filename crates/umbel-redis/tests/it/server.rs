//! The promises of a server hold for filters: replicas are equal, and nothing that was acknowledged is lost.

use crate::support::{Answer, Client, Server, engines, items, oldest, wait_for};

/// Values of every type, made by commands that create, grow, delete and fail.
fn mixed_load(client: &mut Client) {
    client.ask("BF.RESERVE bf:reserved 0.001 1000 EXPANSION 4");
    client.ask("BF.RESERVE bf:fixed 0.01 50 NONSCALING");
    for round in 0..20 {
        client.ask_with("BF.MADD bf:grown", &items(&format!("r{round}-"), 0..200));
        client.ask_with("BF.INSERT bf:reserved ITEMS", &items(&format!("r{round}-"), 0..100));
        client.ask_with("BF.MADD bf:fixed", &items(&format!("r{round}-"), 0..5));
        client.ask_with("CF.INSERT cf:grown CAPACITY 64 ITEMS", &items(&format!("r{round}-"), 0..100));
        client.ask(&format!("CF.ADD cf:auto {round}"));
        client.ask(&format!("CF.DEL cf:grown r{round}-7"));
    }
    client.ask("CF.COMPACT cf:grown");
    client.ask("CMS.INITBYPROB cms 0.01 0.01");
    client.ask("CMS.INCRBY cms a 3 b 4");
    client.ask("TOPK.RESERVE top 3 20 3 0.9");
    client.ask_with("TOPK.ADD top", &items("item", 0..500));
    client.ask("UMBEL.RESERVE any:counting counting 1000 0.01");
    client.ask_with("UMBEL.ADD any:counting", &items("item", 0..500));
    client.ask_with("UMBEL.REMOVE any:counting", &items("item", 0..50));
    client.ask("UMBEL.RESERVE any:aging aging 1000 0.01 WINDOW 1s");
    client.ask_with("UMBEL.ADD any:aging", &items("item", 0..500));
    client.ask("UMBEL.MERGE bf:merged bf:reserved");
    client.ask("MULTI");
    client.ask("BF.ADD bf:transaction x");
    client.ask("CF.ADD cf:transaction x");
    client.ask("EXEC");
    client.ask("EVAL redis.call('BF.ADD','bf:script','x') 0");
    client.ask("COPY bf:grown bf:copy");
    client.ask("BF.ADD bf:copy only-here");
}

fn digest(client: &mut Client) -> Answer {
    client.ask("DEBUG DIGEST")
}

/// Returns a number in a section of `INFO`.
fn info(client: &mut Client, section: &str, name: &str) -> u64 {
    let text = String::from_utf8(client.ask(&format!("INFO {section}")).bytes().to_vec()).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
}

#[test]
fn memory_moves_and_filters_stay_what_they_are() {
    // Only a server with an allocator of its own moves memory.
    let Some(engine) = oldest() else { return };
    let mut server =
        Server::start(engine, &["--active-defrag-ignore-bytes", "1", "--active-defrag-threshold-lower", "1"]);
    let mut client = server.client();
    mixed_load(&mut client);
    let kinds =
        ["counting", "variable-increment", "aging", "deletable", "floom", "quotient", "scalable", "cuckoo"];
    for i in 0..3000 {
        // Of four neighbours in memory, one stays.
        for part in ["gone1", "stays", "gone2", "gone3"] {
            client.ask_with(&format!("BF.MADD {part}:bf:{i}"), &items("k", i..i + 150));
            client.ask(&format!("CF.RESERVE {part}:cf:{i} 64"));
            client.ask(&format!("CF.ADD {part}:cf:{i} k{i}"));
            client.ask(&format!("UMBEL.RESERVE {part}:any:{i} {} 50 0.01", kinds[i as usize % kinds.len()]));
            client.ask(&format!("CMS.INITBYDIM {part}:cms:{i} 20 2"));
            client.ask(&format!("TOPK.RESERVE {part}:top:{i} 3 8 2 0.9"));
            client.ask(&format!("TOPK.ADD {part}:top:{i} a{i} b{i} c{i}"));
        }
    }
    let gone: Vec<String> = (0..3000)
        .flat_map(|i| {
            ["gone1", "gone2", "gone3"]
                .map(|part| ["bf", "cf", "any", "cms", "top"].map(|kind| format!("{part}:{kind}:{i}")))
        })
        .flatten()
        .collect();
    client.ask_with("DEL", &gone);
    let before = digest(&mut client);
    let bytes = info(&mut client, "modules", "bf_filter_bytes");
    assert_eq!(client.ask("CONFIG SET activedefrag yes"), Answer::Word("OK".into()));
    wait_for("memory to move", || info(&mut client, "modules", "bf_defrag_moved") > 10_000);
    assert_eq!(digest(&mut client), before);
    assert_eq!(info(&mut client, "modules", "bf_filter_bytes"), bytes);
    for i in (0..3000).step_by(7) {
        let found = client.ask_with(&format!("BF.MEXISTS stays:bf:{i}"), &items("k", i..i + 150));
        assert_eq!(found.integers(), [1; 150]);
        client.ask_with(&format!("BF.MADD stays:bf:{i}"), &items("more", 0..500));
        assert_eq!(client.ask(&format!("CF.DEL stays:cf:{i} k{i}")).integer(), 1);
        client.ask(&format!("TOPK.ADD stays:top:{i} a{i}"));
        assert_eq!(client.ask(&format!("TOPK.QUERY stays:top:{i} a{i}")).integers(), [1]);
    }
    let before = digest(&mut client);
    client.ask("DEBUG RELOAD");
    assert_eq!(digest(&mut client), before);
    client.ask("FLUSHALL");
    assert_eq!(info(&mut client, "modules", "bf_filter_bytes"), 0);
    assert_eq!(info(&mut client, "modules", "bf_values"), 0);
    assert!(server.is_alive());
}

/// Returns the value behind a name in a list of names and values.
fn behind<'a>(list: &'a [Answer], name: &str) -> &'a Answer {
    let place = list.iter().position(
        |answer| matches!(answer, Answer::Bytes(bytes) if bytes.eq_ignore_ascii_case(name.as_bytes())),
    );
    &list[place.unwrap_or_else(|| panic!("no {name} in {list:?}")) + 1]
}

#[test]
fn who_may_only_read_keys_may_run_what_only_reads_them() {
    for engine in engines() {
        let server = Server::start(engine, &[]);
        let mut client = server.client();
        client.ask("BF.ADD src:a x");
        client.ask("BF.ADD dst:a x");
        client.ask("CMS.INITBYDIM src:cms 10 2");
        client.ask("CMS.INITBYDIM dst:cms 10 2");
        let rules = "ACL SETUSER reader on nopass %R~src:* ~dst:* +@all -@dangerous";
        assert_eq!(client.ask(rules), Answer::Word("OK".into()));
        let mut reader = server.client();
        assert_eq!(reader.ask("AUTH reader any"), Answer::Word("OK".into()));
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
            let answer = reader.ask(command);
            assert!(!matches!(answer, Answer::Error(_)), "{command}: {answer:?}");
        }
        for command in
            ["BF.ADD src:a x", "UMBEL.MERGE src:a dst:a", "CMS.MERGE src:cms 1 dst:cms", "BF.EXISTS other x"]
        {
            assert!(reader.ask(command).error().starts_with("NOPERM"), "{command}");
        }
        // The server knows the arity of a command before the call.
        let described = client.ask("COMMAND INFO bf.add umbel.merge");
        assert_eq!([0, 1].map(|i| described.array()[i].array()[1].integer()), [3, -3]);
        let docs = client.ask("COMMAND DOCS bf.add");
        let summary = behind(behind(docs.array(), "bf.add").array(), "summary");
        assert!(summary.bytes().starts_with(b"Adds an item"), "{summary:?}");
        client.ask("MULTI");
        assert!(client.ask("BF.ADD src:a").error().contains("wrong number of arguments"));
        assert!(client.ask("EXEC").error().starts_with("EXECABORT"));
        assert_eq!(client.ask("COMMAND GETKEYS CMS.MERGE a 2 b c").array().len(), 3);
        assert_eq!(client.ask("COMMAND GETKEYS UMBEL.MERGE a b c").array().len(), 3);
    }
}

#[test]
fn the_oldest_server_has_all_of_it() {
    let Some(engine) = oldest() else { return };
    let (primary, replica) = (Server::start(engine, &["--appendonly", "yes"]), Server::start(engine, &[]));
    let (mut client, mut follower) = (primary.client(), replica.client());
    follower.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
    mixed_load(&mut client);
    wait_for("the last command", || digest(&mut client) == digest(&mut follower));
    let before = digest(&mut client);
    for again in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
        assert_eq!(client.ask(again), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before, "{again}");
    }
}

#[test]
fn a_replica_is_equal_to_its_primary() {
    for engine in engines() {
        let primary = Server::start(engine, &[]);
        let mut client = primary.client();
        // A part arrives as a snapshot, the rest as commands; the replica has another secret and other limits.
        client.ask_with("BF.MADD bf:before", &items("k", 0..1000));
        let load = ["--repl-diskless-load", "swapdb"];
        let replica = Server::with_module(engine, &["MAX-KEY-BYTES", "100"], &load);
        let mut follower = replica.client();
        follower.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        wait_for("the replica", || follower.ask("BF.CARD bf:before").integer() > 0);
        mixed_load(&mut client);
        assert_eq!(client.ask("WAIT 1 10000").integer(), 1);
        wait_for("the last command", || digest(&mut client) == digest(&mut follower));
        assert_eq!(follower.ask_with("BF.MEXISTS bf:grown", &items("r3-", 0..200)).integers(), [1; 200]);
        assert_eq!(follower.ask("BF.EXISTS bf:copy only-here").integer(), 1);
    }
}

#[test]
fn a_snapshot_and_a_log_give_the_same_values_again() {
    for engine in engines() {
        let mut server = Server::start(engine, &["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
        let mut client = server.client();
        mixed_load(&mut client);
        let before = digest(&mut client);
        assert_eq!(client.ask("DEBUG RELOAD"), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before, "from a snapshot");
        assert_eq!(client.ask("DEBUG LOADAOF"), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before, "from the log as it was written");
        client.ask("BGREWRITEAOF");
        wait_for("the new log", || {
            let info = client.ask("INFO persistence");
            let info = String::from_utf8(info.bytes().to_vec()).unwrap();
            info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
        });
        assert_eq!(client.ask("DEBUG LOADAOF"), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before, "from the log that was written anew");
        server.kill();
        server.restart();
        assert_eq!(digest(&mut server.client()), before, "after it was killed");
    }
}

/// A client adds keys until the server is killed: every acknowledged key is in the append-only file.
#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_server_is_killed() {
    for engine in engines() {
        let mut server = Server::start(engine, &["--appendonly", "yes", "--appendfsync", "always"]);
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
        wait_for("some keys", || client.ask("BF.CARD f").integer() > 500);
        server.kill();
        let acknowledged = writing.join().unwrap();
        server.restart();
        let mut client = server.client();
        assert!(acknowledged >= 500, "{acknowledged}");
        let all = items("k", 0..acknowledged);
        assert_eq!(client.ask_with("BF.MEXISTS f", &all).integers(), vec![1; all.len()]);
        assert_eq!(client.ask_with("CF.MEXISTS c", &all).integers(), vec![1; all.len()]);
    }
}

#[test]
fn keys_are_copied_dumped_restored_and_unlinked_as_others() {
    for engine in engines() {
        let server = Server::start(engine, &[]);
        let mut client = server.client();
        mixed_load(&mut client);
        for key in ["bf:grown", "cf:grown", "cms", "top"] {
            let dumped = client.ask(&format!("DUMP {key}"));
            assert_eq!(client.call(&[b"RESTORE", b"back", b"0", dumped.bytes()]), Answer::Word("OK".into()));
            assert_eq!(client.ask(&format!("COPY {key} copy")).integer(), 1);
            let digests = client.ask(&format!("DEBUG DIGEST-VALUE {key} back copy"));
            let [a, b, c] = digests.array() else { panic!("{digests:?}") };
            assert!(a == b && b == c, "{key}: {digests:?}");
            assert!(client.ask("MEMORY USAGE back").integer() > 100);
            assert_eq!(client.ask("UNLINK back copy").integer(), 2);
        }
        // A large value is freed in the background.
        let filter_bytes = |client: &mut Client| {
            let info = String::from_utf8(client.ask("INFO everything").bytes().to_vec()).unwrap();
            let line = info.lines().find(|line| line.starts_with("bf_filter_bytes:")).unwrap().to_owned();
            line.rsplit(':').next().unwrap().parse::<u64>().unwrap()
        };
        let before = filter_bytes(&mut client);
        client.ask("BF.RESERVE large 0.01 100000000");
        assert!(filter_bytes(&mut client) > before + 100_000_000);
        assert!(client.ask("MEMORY USAGE large").integer() > 100_000_000);
        client.ask("UNLINK large");
        wait_for("the memory", || filter_bytes(&mut client) == before);
    }
}

#[test]
fn limits_hold_for_a_key_and_for_all_of_them() {
    let engine = &engines()[0];
    let limits = ["MAX-KEY-BYTES", "100k", "MAX-BYTES", "250000"];
    let server = Server::with_module(engine, &limits, &[]);
    let mut client = server.client();
    assert!(client.ask("BF.RESERVE f 0.01 100000").error().contains("MAX-KEY-BYTES"));
    // A filter that grows stops at the limit, keeps its items, and reports the error.
    let mut refused = 0;
    for start in (0..100_000).step_by(1000) {
        let added = client.ask_with("BF.MADD f", &items("k", start..start + 1000));
        refused += added.array().iter().filter(|answer| matches!(answer, Answer::Error(_))).count();
    }
    assert!(refused > 10_000, "{refused}");
    assert!(client.ask("MEMORY USAGE f").integer() < 101_000);
    let card = client.ask("BF.CARD f").integer();
    assert!(card > 20_000, "{card}");
    assert_eq!(client.ask_with("BF.MEXISTS f", &items("k", 0..10_000)).integers(), vec![1; 10_000]);
    // The same after a merge, when a stage with room accepts no more keys.
    client.ask("DEL f");
    client.ask_with("BF.MADD one", &items("one", 0..60));
    client.ask_with("BF.MADD f", &items("two", 0..60));
    assert_eq!(client.ask("UMBEL.MERGE f one"), Answer::Word("OK".into()));
    for start in (0..100_000).step_by(10) {
        client.ask_with("BF.MADD f", &items("k", start..start + 10));
    }
    assert!(client.ask("MEMORY USAGE f").integer() < 101_000);
    assert_eq!(client.ask_with("BF.MEXISTS f", &items("k", 0..10_000)).integers(), vec![1; 10_000]);
    client.ask_with("CF.INSERT cf1 CAPACITY 1000 ITEMS", &items("k", 0..31_000));
    client.ask("COPY cf1 cf2");
    client.ask("CF.ADD cf1 again");
    for _ in 0..8 {
        client.ask("UMBEL.MERGE cf1 cf2");
    }
    assert!(client.ask("MEMORY USAGE cf1").integer() < 101_000);
    client.ask("DEL one cf1 cf2");
    for key in ["a", "b"] {
        assert_eq!(client.ask(&format!("BF.RESERVE {key} 0.01 45000")), Answer::Word("OK".into()));
    }
    assert!(client.ask("BF.RESERVE c 0.01 45000").error().contains("memory limit"));
    assert_eq!(client.ask("EXISTS c").integer(), 0);
    client.ask("DEL a");
    assert_eq!(client.ask("BF.RESERVE c 0.01 45000"), Answer::Word("OK".into()));
    // The server's own limit comes first.
    client.ask("CONFIG SET maxmemory 1");
    assert!(client.ask("BF.ADD g x").error().starts_with("OOM"));
    assert_eq!(client.ask("BF.EXISTS f k1").integer(), 1);
}

#[test]
fn a_merge_of_sketches_takes_none_of_the_memory_for_filters() {
    let server = Server::with_module(&engines()[0], &["MAX-BYTES", "1000"], &[]);
    let mut client = server.client();
    // 448 bytes each: there is no room for a third.
    for key in ["a", "b"] {
        assert_eq!(client.ask(&format!("CMS.INITBYDIM {key} 50 2")), Answer::Word("OK".into()));
    }
    assert!(client.ask("CMS.INITBYDIM c 50 2").error().contains("memory limit"));
    client.ask("CMS.INCRBY b x 7");
    assert_eq!(client.ask("CMS.MERGE a 2 a b WEIGHTS 1 3"), Answer::Word("OK".into()));
    assert_eq!(client.ask("CMS.QUERY a x").integers(), [21]);
}

#[test]
fn listeners_hear_of_changes() {
    let server = Server::start(&engines()[0], &["--notify-keyspace-events", "AKE"]);
    let mut listener = server.client();
    listener.ask("SUBSCRIBE __keyevent@0__:bf.add __keyevent@0__:bf.reserve");
    let mut client = server.client();
    client.ask("BF.ADD f x");
    client.ask("BF.ADD f x");
    client.ask("BF.ADD f y");
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

/// A command of which some items are refused replicates the others.
#[test]
fn a_command_that_is_done_in_part_is_done_in_the_same_part_elsewhere() {
    for engine in engines() {
        let limit = ["MAX-KEY-BYTES", "4000"];
        let arguments = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
        let primary = Server::with_module(engine, &limit, &arguments);
        let replica = Server::with_module(engine, &["MAX-KEY-BYTES", "4000", "MAX-BYTES", "10"], &[]);
        let (mut client, mut follower) = (primary.client(), replica.client());
        follower.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
        wait_for("the replica", || {
            String::from_utf8_lossy(follower.ask("INFO replication").bytes())
                .contains("master_link_status:up")
        });
        // An item that is present changes nothing, and is not replicated.
        client.ask("BF.ADD b x");
        client.ask("BF.ADD b x");
        let (mut went_in, mut refused) = (0, 0);
        for start in (0..5000).step_by(50) {
            let answers = client.ask_with("BF.MADD f", &items("k", start..start + 50));
            for answer in answers.array() {
                match answer {
                    Answer::Error(_) => refused += 1,
                    other => went_in += other.integer(),
                }
            }
        }
        assert!(refused > 1000 && went_in > 500, "{refused} refused, {went_in} went in");
        assert_eq!(client.ask("BF.CARD f").integer(), went_in);
        client.ask("COPY f copy");
        for name in ["m", "n"] {
            client.ask_with(&format!("BF.MADD {name}"), &items(name, 0..60));
        }
        client.ask("UMBEL.MERGE m n");
        for start in (0..5000).step_by(50) {
            client.ask_with("BF.MADD m", &items("k", start..start + 50));
        }
        // A file has no secret, and that of the replica is another one.
        let file = client.ask("UMBEL.EXPORT m 0");
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
        client.ask("CF.RESERVE c 500 EXPANSION 2");
        let answers = client.ask_with("CF.INSERT c ITEMS", &items("k", 0..5000)).integers();
        assert!(answers.contains(&-1));
        let inside = answers.iter().filter(|answer| **answer == 1).count();
        assert_eq!(client.ask("CF.INFO c").field("Number of items inserted").integer(), inside as i64);
        client.ask("WAIT 1 10000");
        let before = digest(&mut client);
        wait_for("the last command", || digest(&mut follower) == before);
        assert_eq!(client.ask("DEBUG LOADAOF"), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before);
    }
}

/// A value that was accepted can be saved and loaded, whatever commands change it.
#[test]
fn what_was_loaded_never_keeps_a_server_from_starting() {
    use umbel::file::fields::sum;
    let server = Server::start(&engines()[0], &[]);
    let mut client = server.client();
    client.ask("BF.ADD f x");
    let dumped = client.ask("BF.SCANDUMP f 0");
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
    let head = head.expect("the head ends somewhere");
    let right = sum(&chunk[..head]).to_le_bytes();
    chunk[head..head + 8].copy_from_slice(&right);
    let cursor = (chunk.len() + 1).to_string();
    client.call(&[b"BF.LOADCHUNK", b"g", cursor.as_bytes(), &chunk]);
    client.ask("BF.ADD g y");
    assert_eq!(client.ask("DEBUG RELOAD"), Answer::Word("OK".into()));
    assert_eq!(client.ask("BF.EXISTS g x").integer(), 1);
}
