//! The limits of memory hold whatever clients send, and no command takes much longer than its data
//! explains.

use crate::support::{Answer, Client, Server, info, items, servers, wait_for};
use std::time::{Duration, Instant};
use umbel::file::fields::{put_varint, sum};
use umbel::file::{self, MAGIC};
use umbel::{Kind, Spec};

fn filter_bytes(client: &mut Client) -> u64 {
    info(client, "modules", "bf_filter_bytes")
}

/// Deletes all keys. Valkey frees their memory in the background.
fn flush(client: &mut Client) {
    client.command("FLUSHALL");
    wait_for("the memory", || filter_bytes(client) == 0);
}

fn ok() -> Answer {
    Answer::Word("OK".into())
}

/// Returns the file of a filter that was planned for this many keys.
fn filter_file(keys: u64) -> Vec<u8> {
    let filter = umbel::AnyFilter::build(Kind::Blocked, &Spec::new(keys, 0.01).unwrap()).unwrap();
    file::to_bytes(&filter, &file::Options::default()).unwrap()
}

fn import(client: &mut Client, key: &str, length: usize, offset: usize, bytes: &[u8]) -> Answer {
    let (length, offset) = (length.to_string(), offset.to_string());
    client.call(&[b"UMBEL.IMPORT", key.as_bytes(), length.as_bytes(), offset.as_bytes(), bytes])
}

#[test]
fn unfinished_imports_count_towards_the_memory_limit() {
    const LIMIT: u64 = 1_000_000;
    for program in servers() {
        let server = Server::with_module(program, &["MAX-BYTES", "1000000"], &[]);
        let mut client = server.client();
        let file = filter_file(1_000_000);
        // The same stream, as SCANDUMP returns it.
        let mut stream = b"UMBLumbel-any\x00\x01".to_vec();
        put_varint(&mut stream, file.len() as u64);
        stream.push(0);
        let head = sum(&stream);
        stream.extend(head.to_le_bytes());
        stream.extend(&file);
        let send = |client: &mut Client, i: usize| match i % 2 {
            0 => import(client, &format!("import{i}"), file.len(), 0, &file[..90_000]),
            _ => {
                let (key, cursor) = (format!("chunk{i}"), "90001");
                client.call(&[b"UMBEL.LOADCHUNK", key.as_bytes(), cursor.as_bytes(), &stream[..90_000]])
            }
        };
        let answers: Vec<Answer> = (0..50).map(|i| send(&mut client, i)).collect();
        let refused = answers.iter().filter(|answer| matches!(answer, Answer::Error(_))).count();
        assert!((35..48).contains(&refused), "{refused} of 50");
        let texts = answers.iter().filter_map(|answer| match answer {
            Answer::Error(text) => Some(text),
            _ => None,
        });
        texts.for_each(|text| assert!(text.contains("memory limit"), "{text}"));
        assert!((800_000..=LIMIT).contains(&filter_bytes(&mut client)));
        assert_eq!(client.command("DBSIZE").integer(), 50 - refused as i64);
        flush(&mut client);

        // Thousands of keys, in pieces of one byte, some out of order, and never finished.
        let head = stream.len() - file.len();
        let mut refused = 0;
        for i in 0..40_000 {
            let (key, more) = (format!("k{}", i % 8000), i / 8000);
            // The first piece is the header, and each key leaves out another byte.
            let at = (head + more + usize::from(more > i % 7)).saturating_sub(1);
            let (cursor, piece) = match more {
                0 => (head + 1, &stream[..head]),
                _ => (at + 2, &stream[at..=at]),
            };
            let cursor = cursor.to_string();
            let answer = client.call(&[b"UMBEL.LOADCHUNK", key.as_bytes(), cursor.as_bytes(), piece]);
            refused += usize::from(matches!(answer, Answer::Error(_)));
            if i % 1000 == 0 {
                assert!(filter_bytes(&mut client) <= LIMIT);
            }
        }
        assert!(refused > 1000, "{refused}");
        let bytes = filter_bytes(&mut client);
        assert!((400_000..=LIMIT).contains(&bytes), "{bytes}");
        flush(&mut client);

        // A file of more than half of the limit still arrives, in small pieces too, since the filter
        // takes the place of the pieces.
        let large = filter_file(600_000);
        assert!(large.len() as u64 > LIMIT * 6 / 10, "{}", large.len());
        for (key, piece) in [("a", 1 << 20), ("b", 100_000)] {
            for (i, part) in large.chunks(piece).enumerate() {
                let answer = import(&mut client, key, large.len(), i * piece, part);
                assert_eq!(answer, Answer::Integer((i * piece + part.len()) as i64), "{key}");
            }
            assert_eq!(client.command(&format!("BF.EXISTS {key} x")).integer(), 0);
            flush(&mut client);
        }
    }
}

#[test]
fn a_header_that_claims_gigabytes_takes_no_memory() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    let mut start = MAGIC.to_vec();
    start.extend([1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    start.extend(0xffff_ffc0u32.to_le_bytes());
    start.extend((1u64 << 32).to_le_bytes());
    assert_eq!(start.len(), 32);
    let before = info(&mut client, "memory", "used_memory_peak");
    let length = 1 << 32;
    assert!(import(&mut client, "a", length, 0, &start).error().starts_with("ERR"));
    start.resize(5000, 0);
    assert!(import(&mut client, "a", length, 0, &start).error().starts_with("ERR"));
    // A dump is checked when it is complete.
    let mut stream = b"UMBLumbel-any\x00\x01".to_vec();
    put_varint(&mut stream, start.len() as u64);
    stream.push(0);
    let checksum = sum(&stream);
    stream.extend(checksum.to_le_bytes());
    stream.extend(&start);
    let cursor = (stream.len() + 1).to_string();
    let loaded = client.call(&[b"UMBEL.LOADCHUNK", b"c", cursor.as_bytes(), &stream]);
    assert!(loaded.error().starts_with("ERR received bad data"), "{loaded:?}");
    let after = info(&mut client, "memory", "used_memory_peak");
    assert!(after < before + 20_000_000, "{after} bytes, and {before} before");
}

#[test]
fn items_of_a_list_count_towards_the_memory_limits() {
    for program in servers() {
        let limits = ["MAX-BYTES", "300000", "MAX-KEY-BYTES", "200000", "MAX-ITEM-BYTES", "5000"];
        let server =
            Server::with_module(program, &limits, &["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
        let replica = Server::with_module(program, &["MAX-BYTES", "10"], &[]);
        let (mut client, mut follower) = (server.client(), replica.client());
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", server.port));
        wait_for("the replica", || {
            String::from_utf8_lossy(follower.command("INFO replication").bytes())
                .contains("master_link_status:up")
        });
        let long = |i: u32| format!("{i:0>4000}");
        let empty = filter_bytes(&mut client);
        for (key, room) in [("one", 30..50), ("two", 15..30)] {
            assert_eq!(client.command(&format!("TOPK.RESERVE {key} 100 50 3 0.9")), ok());
            let mut refused = 0;
            for start in (0..100).step_by(10) {
                let items: Vec<String> = (start..start + 10).map(long).collect();
                let answers = client.command_with(&format!("TOPK.ADD {key}"), &items);
                refused += answers.array().iter().filter(|answer| matches!(answer, Answer::Error(_))).count();
            }
            assert!(room.contains(&(100 - refused)), "{} items of {key}", 100 - refused);
            assert!(client.command(&format!("MEMORY USAGE {key} SAMPLES 0")).integer() < 210_000);
            // Items in the list, and those that no longer need memory, are still counted.
            let listed = client.command(&format!("TOPK.LIST {key}")).array()[0].bytes().to_vec();
            let listed = vec![String::from_utf8(listed).unwrap(), "7".into()];
            assert_eq!(
                client.command_with(&format!("TOPK.INCRBY {key}"), &listed),
                Answer::Array(vec![Answer::Null])
            );
        }
        assert!((200_000..=300_000).contains(&filter_bytes(&mut client)));
        // A list of long items cannot be copied without room for the copy.
        assert!(matches!(client.command("COPY one three"), Answer::Error(_)));
        let refused = client.command_with("TOPK.ADD two", &["short".into(), "x".repeat(5001)]);
        assert!(refused.error().contains("MAX-ITEM-BYTES"), "{refused:?}");
        assert_eq!(client.command("TOPK.QUERY two short").integers(), [0], "nothing was added");
        // The replica and the append-only file have the items that were accepted.
        let before = client.command("DEBUG DIGEST");
        wait_for("the replica", || follower.command("DEBUG DIGEST") == before);
        assert_eq!(client.command("DEBUG LOADAOF"), ok());
        assert_eq!(client.command("DEBUG DIGEST"), before);
        assert_eq!(client.command("DEL one two").integer(), 2);
        assert_eq!(filter_bytes(&mut client), empty);
    }
}

#[test]
fn items_of_an_imported_sketch_count_towards_the_memory_limit() {
    let server = Server::with_module(&servers()[0], &["MAX-BYTES", "2000000"], &[]);
    let mut client = server.client();
    let mut sketch = umbel::sketch::Frequent::new(5000).unwrap();
    sketch.insert_batch(&items("a-key-of-some-length-", 0..5000));
    let file = sketch.to_bytes().unwrap();
    assert_eq!(import(&mut client, "a", file.len(), 0, &file), Answer::Integer(file.len() as i64));
    let bytes = filter_bytes(&mut client);
    assert!(bytes > 5000 * 70 && client.command("MEMORY USAGE a").integer() > 5000 * 70, "{bytes}");
    let copies = (0..20).filter(|i| client.command(&format!("COPY a copy{i}")) == Answer::Integer(1)).count();
    assert!(copies as u64 <= 2_000_000 / bytes, "{copies} copies");
    assert!(filter_bytes(&mut client) <= 2_000_000);
    flush(&mut client);
}

/// Returns the stream of a list with this many empty places.
fn empty_list(k: u64, item: &[u8]) -> Vec<u8> {
    let mut extra = vec![0; 64];
    for place in 0..k {
        put_varint(&mut extra, u64::from(place + 1 == k && !item.is_empty()));
        put_varint(&mut extra, if place + 1 == k { item.len() as u64 } else { 0 });
    }
    extra.extend(item);
    let checksum = sum(&extra);
    extra.extend(checksum.to_le_bytes());
    let mut stream = b"UMBLumbel-top\x07".to_vec();
    for number in [k, 8, 1, 0.9f64.to_bits(), 0, 1, 2] {
        put_varint(&mut stream, number);
    }
    stream.push(0);
    put_varint(&mut stream, extra.len() as u64);
    let checksum = sum(&stream);
    stream.extend(checksum.to_le_bytes());
    stream.extend(extra);
    stream
}

#[test]
fn a_loaded_list_obeys_the_limits_of_its_contents() {
    let server = Server::with_module(&servers()[0], &["MAX-KEY-BYTES", "10mb"], &[]);
    let mut client = server.client();
    let mut load = |stream: &[u8]| {
        let cursor = (stream.len() + 1).to_string();
        client.call(&[b"TOPK.LOADCHUNK", b"x", cursor.as_bytes(), stream])
    };
    // Two megabytes that would become 64.
    let refused = load(&empty_list(1_000_000, b""));
    assert!(refused.error().contains("MAX-KEY-BYTES"), "{refused:?}");
    let refused = load(&empty_list(10, &[b'x'; 70_000]));
    assert!(refused.error().contains("MAX-ITEM-BYTES"), "{refused:?}");
    assert_eq!(load(&empty_list(1000, b"apple")), ok());
    assert_eq!(client.command("TOPK.QUERY x apple").integers(), [1]);
    assert!(client.command("TOPK.RESERVE y 2000000 8 1 0.9").error().contains("maximum"));
}

#[test]
fn restored_values_obey_the_limits_and_snapshots_do_not() {
    for program in servers() {
        let source = Server::start(program, &[]);
        let mut client = source.client();
        client.command("BF.RESERVE large 0.01 1000000");
        client.command("BF.RESERVE small 0.01 1000");
        let mut server = Server::with_module(program, &["MAX-KEY-BYTES", "100kb"], &["--save", "1000 1000"]);
        let mut limited = server.client();
        let [large, small] = ["large", "small"].map(|key| client.command(&format!("DUMP {key}")));
        assert!(limited.call(&[b"RESTORE", b"large", b"0", large.bytes()]).error().contains("Bad data"));
        assert!(server.log().contains("MAX-KEY-BYTES"), "{}", server.log());
        assert_eq!(limited.call(&[b"RESTORE", b"small", b"0", small.bytes()]), ok());
        client.command("SAVE");
        server.kill();
        std::fs::copy(source.folder.path().join("dump.rdb"), server.folder.path().join("dump.rdb")).unwrap();
        server.restart();
        assert_eq!(server.client().command("EXISTS large small").integer(), 2);
    }
}

/// Returns the shortest time that a command takes.
fn time(client: &mut Client, command: &[&[u8]]) -> Duration {
    let measure = |_| {
        let start = Instant::now();
        client.call(command);
        start.elapsed()
    };
    (0..5).map(measure).min().unwrap()
}

/// Returns a command of words and other arguments.
fn words<'a>(command: &'a str, more: &'a [String]) -> Vec<&'a [u8]> {
    command.split(' ').chain(more.iter().map(String::as_str)).map(str::as_bytes).collect()
}

#[test]
fn huge_increments_of_a_list_take_no_longer_than_small_ones() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    for decay in ["0.9", "0.99", "0.9999", "1"] {
        let key = format!("decay{decay}");
        assert_eq!(client.command(&format!("TOPK.RESERVE {key} 5 2 32 {decay}")), ok());
        // Every cell has an owner with a high count.
        client.command_with(&format!("TOPK.ADD {key}"), &items("owner", 0..2000));
        let pairs = |times: &str| -> Vec<String> {
            (0..10).flat_map(|i| [format!("item{i}"), times.to_owned()]).collect()
        };
        let command = format!("TOPK.INCRBY {key}");
        let small = time(&mut client, &words(&command, &pairs("1")));
        let huge = time(&mut client, &words(&command, &pairs("100000")));
        // A number for each attempt took a thousand times as long.
        assert!(
            huge < 60 * small + Duration::from_millis(20),
            "{huge:?} at {decay}, and {small:?} for single ones"
        );
        let refused = client.command_with(&command, &pairs("9223372036854775807"));
        assert!(refused.error().contains("smaller or equal to 100000"), "{refused:?}");
        let huge = time(&mut client, &words(&command, &pairs("9223372036854775807")));
        assert!(huge < 60 * small + Duration::from_millis(20), "{huge:?}, and {small:?} for single ones");
    }
}

#[test]
fn the_largest_filters_take_no_time_and_no_memory_until_they_are_filled() {
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        let resident = |client: &mut Client| info(client, "memory", "used_memory_rss");
        let before = resident(&mut client);
        for command in [
            "BF.RESERVE a 0.01 300000000 NONSCALING",
            "CMS.INITBYDIM b 10000000 10",
            "TOPK.RESERVE c 10 6000000 7 0.9",
            "UMBEL.RESERVE d counting 50000000 0.01",
        ] {
            assert_eq!(client.command(command), ok());
        }
        assert!(filter_bytes(&mut client) > 1_300_000_000);
        wait_for("a measurement", || info(&mut client, "memory", "used_memory") > 1_300_000_000);
        let after = resident(&mut client);
        assert!(after < before + 300_000_000, "{after} bytes in use, and {before} before");
        // The memory is empty, and can be used.
        assert_eq!(client.command("CMS.INCRBY b x 7").integers(), [7]);
        for (add, asked) in [("BF.ADD a x", "BF.MEXISTS a x y"), ("UMBEL.ADD d x", "UMBEL.EXISTS d x y")] {
            client.command(add);
            assert_eq!(client.command(asked).integers(), [1, 0], "{asked}");
        }
        assert_eq!(client.command("CMS.QUERY b x y").integers(), [7, 0]);
    }
}

#[test]
fn a_source_that_is_named_many_times_is_read_once() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    client.command("CMS.INITBYDIM cms 100000 5");
    client.command("CMS.INCRBY cms x 2");
    client.command("CMS.INITBYDIM sum 100000 5");
    for key in ["a", "b"] {
        client.command(&format!("BF.RESERVE {key} 0.01 500000 NONSCALING"));
        client.command(&format!("BF.ADD {key} x"));
    }
    let many = |key: &str| vec![key.to_owned(); 5000];
    for (once, many) in [
        (words("CMS.MERGE sum 1 cms", &[]), words("CMS.MERGE sum 5000", &many("cms"))),
        (words("UMBEL.MERGE all a b", &[]), words("UMBEL.MERGE all a", &many("b"))),
        (words("UMBEL.INTERSECT both a b", &[]), words("UMBEL.INTERSECT both a", &many("b"))),
        (words("UMBEL.CARD a b", &[]), words("UMBEL.CARD a", &many("b"))),
    ] {
        let (once_time, many_time) = (time(&mut client, &once), time(&mut client, &many));
        let name = String::from_utf8_lossy(once[0]);
        assert!(
            many_time < 50 * once_time + Duration::from_millis(100),
            "{name}: {many_time:?}, and {once_time:?} for one source"
        );
    }
    assert_eq!(client.command("CMS.QUERY sum x").integers(), [10_000]);
    assert_eq!(client.command("BF.EXISTS both x").integer(), 1);
}

#[test]
fn refused_items_of_a_full_cuckoo_filter_do_not_block_the_server() {
    for program in servers() {
        let (server, replica) = (Server::start(program, &[]), Server::start(program, &[]));
        let (mut client, mut follower) = (server.client(), replica.client());
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", server.port));
        client.command("CF.RESERVE patient 1000 EXPANSION 0 MAXITERATIONS 65535");
        client.command("CF.RESERVE hasty 1000 EXPANSION 0 MAXITERATIONS 1");
        for round in 0..3 {
            for key in ["patient", "hasty"] {
                client.command_with(&format!("CF.INSERT {key} ITEMS"), &items(&format!("{round}-"), 0..500));
            }
        }
        let more = items("more", 0..20_000);
        let hasty = time(&mut client, &words("CF.INSERT hasty ITEMS", &more));
        let patient = time(&mut client, &words("CF.INSERT patient ITEMS", &more));
        // Moves for each item would be a thousand million.
        assert!(
            patient < 20 * hasty + Duration::from_millis(500),
            "{patient:?}, and {hasty:?} without moves"
        );
        assert!(client.command_with("CF.INSERT patient ITEMS", &more).integers().contains(&-1));
        let before = client.command("DEBUG DIGEST");
        wait_for("the replica", || follower.command("DEBUG DIGEST") == before);
    }
}
