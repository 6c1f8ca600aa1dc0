//! Filters move here from RedisBloom with `SCANDUMP` and `LOADCHUNK`, and stay what they were there.
//!
//! The golden dumps were written by RedisBloom 2.8.2: the items k0, k1, ... were added, and the
//! replies to `SCANDUMP` written one after the other, each with its iterator and its length.

use crate::support::{Answer, Client, Server, carry, info, items, servers, wait_for};

type Chunk<'a> = (i64, &'a [u8]);

/// A Bloom filter for 10 items at 1 %, with 100 items; and the same after 300 more.
const BLOOM: &[u8] = include_bytes!("../golden/redisbloom/bf.dump");
const BLOOM_MORE: &[u8] = include_bytes!("../golden/redisbloom/bf-more.dump");

/// A Bloom filter for 100 items that does not scale, with 60 items.
const FIXED: &[u8] = include_bytes!("../golden/redisbloom/bf-fixed.dump");

/// A cuckoo filter for 32 items that doubles, with 100 items; the same after 150 more, 60
/// deletions and two repeated items; and the same after `CF.COMPACT`.
const CUCKOO: &[u8] = include_bytes!("../golden/redisbloom/cf.dump");
const CUCKOO_MORE: &[u8] = include_bytes!("../golden/redisbloom/cf-more.dump");
const CUCKOO_COMPACTED: &[u8] = include_bytes!("../golden/redisbloom/cf-compacted.dump");

/// Returns the chunks of a golden dump.
fn chunks(mut dump: &[u8]) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    while let Some((head, rest)) = dump.split_first_chunk::<16>() {
        let [iterator, len] = [0, 8].map(|at| i64::from_le_bytes(head[at..at + 8].try_into().unwrap()));
        let (chunk, rest) = rest.split_at(len as usize);
        chunks.push((iterator, chunk));
        dump = rest;
    }
    chunks
}

fn load_chunk(client: &mut Client, family: &str, key: &str, (iterator, chunk): Chunk<'_>) -> Answer {
    let command = format!("{family}.LOADCHUNK");
    client.call(&[command.as_bytes(), key.as_bytes(), iterator.to_string().as_bytes(), chunk])
}

fn load(client: &mut Client, family: &str, key: &str, dump: &[u8]) {
    for chunk in chunks(dump) {
        assert_eq!(load_chunk(client, family, key, chunk), Answer::Word("OK".into()));
    }
}

/// Returns what SCANDUMP replies, in the form of a golden dump.
fn dump(client: &mut Client, family: &str, key: &str) -> Vec<u8> {
    let (mut all, mut iterator) = (Vec::new(), 0);
    loop {
        let dumped = client.command(&format!("{family}.SCANDUMP {key} {iterator}"));
        iterator = dumped.array()[0].integer();
        if iterator == 0 {
            return all;
        }
        let chunk = dumped.array()[1].bytes();
        all.extend(iterator.to_le_bytes());
        all.extend((chunk.len() as u64).to_le_bytes());
        all.extend(chunk);
    }
}

/// Changes the filters of [`CUCKOO`] as those of [`CUCKOO_MORE`] were changed.
fn change_cuckoo(client: &mut Client, key: &str) {
    client.command_with(&format!("CF.INSERT {key} ITEMS"), &items("k", 100..250));
    for item in items("k", 0..60) {
        assert_eq!(client.command(&format!("CF.DEL {key} {item}")).integer(), 1);
    }
    client.command(&format!("CF.INSERT {key} ITEMS k70 k70"));
}

#[test]
fn a_bloom_filter_of_redisbloom_answers_and_grows_as_it_did_there() {
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        load(&mut client, "BF", "f", BLOOM);
        assert_eq!(client.command_with("BF.MEXISTS f", &items("k", 0..100)).integers(), [1; 100]);
        assert!(dump(&mut client, "BF", "f") == BLOOM);
        client.command_with("BF.MADD f", &items("k", 100..400));
        assert!(dump(&mut client, "BF", "f") == BLOOM_MORE);
        let info = client.command("BF.INFO f");
        let fields = ["Capacity", "Number of filters", "Number of items inserted", "Expansion rate"];
        assert_eq!(fields.map(|name| info.field(name).integer()), [630, 6, 392, 2]);
        assert_eq!(client.command("BF.CARD f").integer(), 392);
        let debug = client.command("BF.DEBUG f");
        assert_eq!(debug.array()[0].bytes(), b"size:392");
        assert_eq!(
            debug.array()[6].bytes(),
            b"bytes:736 bits:5888 hashes:13 hashwidth:64 capacity:320 size:82 ratio:0.00015625"
        );
        load(&mut client, "BF", "fixed", FIXED);
        assert_eq!(client.command("BF.INFO fixed").field("Expansion rate"), &Answer::Null);
        let added = client.command_with("BF.MADD fixed", &items("m", 0..60));
        let last = added.array().last().unwrap();
        assert_eq!(last.error(), "ERR non scaling filter is full");
        assert_eq!(client.command_with("BF.MEXISTS fixed", &items("k", 0..60)).integers(), [1; 60]);
    }
}

#[test]
fn a_cuckoo_filter_of_redisbloom_changes_as_it_did_there() {
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        load(&mut client, "CF", "f", CUCKOO);
        assert_eq!(client.command_with("CF.MEXISTS f", &items("k", 0..100)).integers(), [1; 100]);
        assert!(dump(&mut client, "CF", "f") == CUCKOO);
        assert_eq!(
            client.command("CF.DEBUG f").bytes(),
            b"bktsize:2 buckets:16 items:100 deletes:0 filters:3 max_iterations:20 expansion:2"
        );
        change_cuckoo(&mut client, "f");
        assert!(dump(&mut client, "CF", "f") == CUCKOO_MORE);
        assert!(client.command("CF.COUNT f k70").integer() >= 3);
        assert_eq!(client.command("CF.ADDNX f k70").integer(), 0);
        client.command("CF.COMPACT f");
        assert!(dump(&mut client, "CF", "f") == CUCKOO_COMPACTED);
        assert_eq!(client.command_with("CF.MEXISTS f", &items("k", 60..250)).integers(), [1; 190]);
    }
}

#[test]
fn filters_of_redisbloom_are_persisted_and_replicated_while_they_arrive_and_after() {
    for program in servers() {
        let server = Server::start(program, &["--appendonly", "yes"]);
        let replica = Server::start(program, &[]);
        let (mut client, mut follower) = (server.client(), replica.client());
        load(&mut client, "BF", "before", BLOOM);
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", server.port));
        wait_for("the replica", || follower.command("EXISTS before").integer() == 1);
        load(&mut client, "BF", "bf", BLOOM);
        load(&mut client, "CF", "cf", CUCKOO);
        for (family, golden) in [("BF", BLOOM), ("CF", CUCKOO)] {
            for chunk in &chunks(golden)[..2] {
                load_chunk(&mut client, family, &format!("part:{family}"), *chunk);
            }
            load_chunk(&mut client, family, &format!("header:{family}"), chunks(golden)[0]);
        }
        client.command_with("BF.MADD bf", &items("k", 100..400));
        client.command("COPY bf copy");
        client.command("COPY part:BF part:copy");
        let digest = |client: &mut Client| client.command("DEBUG DIGEST");
        wait_for("the last command", || digest(&mut client) == digest(&mut follower));
        let before = digest(&mut client);
        for command in ["DEBUG RELOAD", "DEBUG LOADAOF", "BGREWRITEAOF"] {
            client.command(command);
            wait_for("the rewrite", || info(&mut client, "persistence", "aof_rewrite_in_progress") == 0);
            assert_eq!(digest(&mut client), before, "{command}");
        }
        assert_eq!(client.command("DEBUG LOADAOF"), Answer::Word("OK".into()));
        assert_eq!(digest(&mut client), before);
        for client in [&mut client, &mut follower] {
            assert!(dump(client, "BF", "bf") == BLOOM_MORE && dump(client, "BF", "copy") == BLOOM_MORE);
            assert!(client.command("BF.EXISTS part:BF x").error().contains("incomplete"));
        }
        // What was missing can still arrive.
        for key in ["part:BF", "part:copy"] {
            chunks(BLOOM)[2..].iter().for_each(|chunk| drop(load_chunk(&mut client, "BF", key, *chunk)));
            assert!(dump(&mut client, "BF", key) == BLOOM, "{key}");
        }
        let dumped = client.command("DUMP cf");
        assert_eq!(client.call(&[b"RESTORE", b"again", b"0", dumped.bytes()]), Answer::Word("OK".into()));
        carry("CF", (&mut follower, "cf"), (&mut client, "carried"));
        change_cuckoo(&mut client, "carried");
        change_cuckoo(&mut client, "again");
        assert!(dump(&mut client, "CF", "again") == CUCKOO_MORE);
        assert!(dump(&mut client, "CF", "carried") == CUCKOO_MORE);
        // Some servers free memory in the background.
        client.command("FLUSHALL");
        wait_for("free memory", || info(&mut client, "modules", "bf_filter_bytes") == 0);
    }
}

/// Returns a header with some of its bytes replaced.
fn patched(dump: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut header = chunks(dump)[0].1.to_vec();
    header[at..at + bytes.len()].copy_from_slice(bytes);
    header
}

#[test]
fn hostile_chunks_of_redisbloom_are_refused_and_take_no_memory() {
    const HUGE: [u8; 8] = (1u64 << 60).to_le_bytes();
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        let bloom = |at, bytes: &[u8]| ("BF", patched(BLOOM, at, bytes));
        let cuckoo = |at, bytes: &[u8]| ("CF", patched(CUCKOO, at, bytes));
        for ((family, header), error) in [
            (("BF", Vec::new()), "received bad data"),
            (("BF", vec![0; 19]), "received bad data"),
            (("CF", vec![0; 37]), "received bad data"),
            // The number of links, and the options.
            (bloom(8, &u32::MAX.to_le_bytes()), "received bad data"),
            (bloom(8, &0u32.to_le_bytes()), "received bad data"),
            (bloom(12, &1u32.to_le_bytes()), "before version 2"),
            // The bytes, the bits and the hashes of the first link.
            (bloom(20, &HUGE), "MAX-KEY-BYTES"),
            (bloom(20, &u64::MAX.to_le_bytes()), "MAX-KEY-BYTES"),
            (bloom(20, &0u64.to_le_bytes()), "128 bits in 0 bytes"),
            (bloom(28, &HUGE), "bits in 16 bytes"),
            (bloom(28, &0u64.to_le_bytes()), "no bits"),
            (bloom(60, &u32::MAX.to_le_bytes()), "hash functions"),
            (bloom(72, &[9]), "not 2^9"),
            // The buckets, levels, slots and expansion.
            (cuckoo(8, &HUGE), "MAX-KEY-BYTES"),
            (cuckoo(8, &(1u64 << 63).to_le_bytes()), "exceed all memory"),
            (cuckoo(8, &0u64.to_le_bytes()), "0 buckets"),
            (cuckoo(8, &24u64.to_le_bytes()), "power of two"),
            (cuckoo(24, &(1u64 << 32).to_le_bytes()), "levels"),
            (cuckoo(24, &0u64.to_le_bytes()), "0 levels"),
            (cuckoo(32, &0u16.to_le_bytes()), "0 slots"),
            (cuckoo(32, &256u16.to_le_bytes()), "256 slots"),
            (cuckoo(36, &3u16.to_le_bytes()), "expansion is 3"),
            (cuckoo(36, &0u16.to_le_bytes()), "does not expand"),
            (cuckoo(36, &32768u16.to_le_bytes()), "MAX-KEY-BYTES"),
        ] {
            let answer = load_chunk(&mut client, family, "x", (1, &header));
            assert!(answer.error().contains(error), "{family} {error}: {answer:?}");
            assert_eq!(client.command("EXISTS x").integer(), 0, "{error}");
        }
        // A header alone takes no memory for the bits it announces.
        let gigabyte = patched(CUCKOO, 8, &(1u64 << 27).to_le_bytes());
        assert_eq!(load_chunk(&mut client, "CF", "big", (1, &gigabyte)), Answer::Word("OK".into()));
        assert_eq!(info(&mut client, "modules", "bf_filter_bytes"), 0);
        client.command("DEL big");
        let all = chunks(BLOOM);
        let end = all.last().unwrap().0;
        for (case, wrong) in [
            ("not the next one", all[2]),
            ("beyond the end", (end + 1, &vec![0; end as usize][..])),
            ("far away", (i64::MAX, all[1].1)),
            ("the header again", all[0]),
            ("empty", (1, &[])),
        ] {
            assert_eq!(load_chunk(&mut client, "BF", "part", all[0]), Answer::Word("OK".into()));
            let answer = load_chunk(&mut client, "BF", "part", wrong);
            assert!(matches!(&answer, Answer::Error(text) if text.contains("order")), "{case}: {answer:?}");
            client.command("DEL part");
        }
        assert!(load_chunk(&mut client, "BF", "x", (-1, &[1])).error().starts_with("ERR"));
        load(&mut client, "BF", "f", BLOOM);
        // A complete filter takes no chunks.
        assert!(load_chunk(&mut client, "BF", "f", all[1]).error().contains("received bad data"));
        // Other types have no such dumps.
        for family in ["CMS", "TOPK", "UMBEL"] {
            assert!(load_chunk(&mut client, family, "x", all[0]).error().contains("received bad data"));
        }
        assert!(load_chunk(&mut client, "CF", "f", chunks(CUCKOO)[0]).error().starts_with("WRONGTYPE"));
        assert!(dump(&mut client, "BF", "f") == BLOOM);
    }
}

#[test]
fn a_filter_of_redisbloom_grows_only_within_the_limits() {
    let server = Server::with_module(&servers()[0], &["MAX-KEY-BYTES", "4096"], &[]);
    let mut client = server.client();
    load(&mut client, "BF", "bf", BLOOM);
    load(&mut client, "CF", "cf", CUCKOO);
    for (add, exists) in [("BF.MADD bf", "BF.MEXISTS bf"), ("CF.INSERT cf ITEMS", "CF.MEXISTS cf")] {
        let all = items("new", 0..10_000);
        let added = client.command_with(add, &all);
        let is_added = |answer: &Answer| !matches!(answer, Answer::Error(_) | Answer::Integer(-1));
        let kept: Vec<String> = all
            .iter()
            .zip(added.array())
            .filter(|(_, answer)| is_added(answer))
            .map(|(item, _)| item.clone())
            .collect();
        assert!(kept.len() < all.len(), "{add}");
        assert!(client.command_with(exists, &kept).integers().iter().all(|found| *found == 1), "{exists}");
    }
    let bytes = info(&mut client, "modules", "bf_filter_bytes");
    assert!(bytes <= 2 * 4096, "{bytes} bytes in two filters");
}

#[test]
fn other_commands_say_why_they_cannot_use_a_filter_of_redisbloom() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    load(&mut client, "BF", "bf", BLOOM);
    load(&mut client, "CF", "cf", CUCKOO);
    client.command("BF.ADD own x");
    for command in [
        "UMBEL.INFO bf",
        "UMBEL.INFO cf",
        "UMBEL.EXPORT bf 0",
        "UMBEL.EXPORT cf 0",
        "UMBEL.MERGE bf own",
        "UMBEL.MERGE own bf",
        "UMBEL.MERGE cf2 cf",
        "UMBEL.CARD bf",
        "UMBEL.JACCARD bf own",
    ] {
        let answer = client.command(command);
        assert!(answer.error().contains("loaded from RedisBloom"), "{command}: {answer:?}");
    }
    assert_eq!(client.command("UMBEL.EXISTS bf k1 k2").integers(), [1, 1]);
    assert_eq!(client.command("UMBEL.EXISTS cf k1 k2").integers(), [1, 1]);
    assert_eq!(client.command("UMBEL.ADD cf one").integers(), [1]);
    assert_eq!(client.command("UMBEL.REMOVE cf one k1").integers(), [1, 1]);
}
