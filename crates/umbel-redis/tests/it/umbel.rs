//! `UMBEL.*`: every kind of the library under a key, several of them together, and the files of the
//! command line.

use crate::support::{Answer, Client, Server, carry, items, servers, wait_for};
use umbel::aging::Timestamp;
use umbel::any::Stored;
use umbel::hash::KeyRing;
use umbel::kind::Category;
use umbel::{Bloomier, Hasher, Kind, Spec, file};

fn ok() -> Answer {
    Answer::Word("OK".into())
}

fn double(answer: &Answer) -> f64 {
    match answer {
        Answer::Double(number) => *number,
        Answer::Bytes(bytes) => str::from_utf8(bytes).unwrap().parse().unwrap(),
        other => panic!("{other:?} is not a number"),
    }
}

#[test]
fn every_kind_of_set_can_be_reserved_filled_and_dumped() {
    for program in servers() {
        let (server, other) = (Server::start(program, &[]), Server::start(program, &[]));
        let (mut client, mut elsewhere) = (server.client(), other.client());
        let keys = items("k", 0..500);
        let is_fillable = |kind: &&Kind| {
            kind.category() == Category::Set && !kind.capabilities().fixed && **kind != Kind::Literature
        };
        for kind in Kind::ALL.iter().filter(is_fillable) {
            let name = kind.to_string();
            assert_eq!(client.command(&format!("UMBEL.RESERVE {name} {name} 100000 0.01")), ok(), "{name}");
            assert_eq!(
                client.command(&format!("UMBEL.RESERVE {name} {name} 100000 0.01")).error(),
                "ERR item exists"
            );
            let (add, family) = match kind {
                Kind::Scalable | Kind::Blocked | Kind::Standard | Kind::Partitioned => ("BF.MADD", "BF"),
                Kind::Cuckoo => ("CF.INSERT", "CF"),
                _ => ("UMBEL.ADD", "UMBEL"),
            };
            let items = if family == "CF" { " ITEMS" } else { "" };
            client.command_with(&format!("{add} {name}{items}"), &keys);
            assert_eq!(
                client.command_with(&format!("UMBEL.EXISTS {name}"), &keys).integers(),
                [1; 500],
                "{name}"
            );
            let info = client.command(&format!("UMBEL.INFO {name}"));
            assert_eq!(info.field("kind").bytes(), name.as_bytes());
            assert!(double(info.field("fpr_now")) < 0.011, "{info:?}");
            carry(family, (&mut client, &name), (&mut elsewhere, &name));
            assert_eq!(
                elsewhere.command_with(&format!("UMBEL.EXISTS {name}"), &keys).integers(),
                [1; 500],
                "{name}"
            );
        }
        let before = client.command("DEBUG DIGEST");
        assert_eq!(before, elsewhere.command("DEBUG DIGEST"));
        client.command("DEBUG RELOAD");
        assert_eq!(client.command("DEBUG DIGEST"), before);
        let refused = client.command("UMBEL.RESERVE f fuse 100 0.01");
        let refused = refused.error();
        assert!(refused.contains("a fuse filter is built from all its items at once"), "{refused}");
        assert!(refused.contains("`umbel build`") && refused.contains("UMBEL.IMPORT"), "{refused}");
        assert!(client.command("UMBEL.RESERVE f round 100 0.01").error().contains("one of"));
        assert!(
            client.command("UMBEL.RESERVE f counting 99999999999 0.0001").error().contains("MAX-KEY-BYTES")
        );
    }
}

#[test]
fn counting_filters_remove_keys_and_aging_filters_forget_them() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    client.command("UMBEL.RESERVE c counting 1000 0.001");
    client.command_with("UMBEL.ADD c", &items("k", 0..100));
    assert_eq!(client.command("UMBEL.REMOVE c k5 stranger k5").integers(), [1, 0, 0]);
    assert_eq!(client.command("UMBEL.EXISTS c k4 k5 k6").integers(), [1, 0, 1]);
    client.command("UMBEL.RESERVE a aging 1000 0.001 WINDOW 1000 GENERATIONS 4");
    for start in (0..5000).step_by(100) {
        client.command_with("UMBEL.ADD a", &items("k", start..start + 100));
    }
    // The items of three of the four generations are certainly still there.
    assert_eq!(client.command_with("UMBEL.EXISTS a", &items("k", 4250..5000)).integers(), vec![1; 750]);
    let old = client.command_with("UMBEL.EXISTS a", &items("k", 0..3000)).integers().iter().sum::<i64>();
    assert!(old < 20, "{old} of 3000 are remembered");
    // A kind without removal refuses it for present and absent items.
    client.command("BF.ADD b x");
    for item in ["x", "stranger"] {
        assert!(client.command(&format!("UMBEL.REMOVE b {item}")).error().contains("cannot be removed"));
    }
    for option in ["WINDOW 50", "GENERATIONS 3"] {
        let answer = client.command(&format!("UMBEL.RESERVE w counting 100 0.01 {option}"));
        assert!(answer.error().contains("for aging filters"), "{answer:?}");
    }
}

#[test]
fn umbel_commands_accept_bloom_and_cuckoo_filters() {
    for program in servers() {
        let (server, replica) = (Server::start(program, &[]), Server::start(program, &[]));
        let (mut client, mut follower) = (server.client(), replica.client());
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", server.port));
        for kind in ["scalable", "blocked", "standard", "cuckoo"] {
            client.command(&format!("UMBEL.RESERVE {kind} {kind} 1000 0.001"));
            assert_eq!(client.command(&format!("UMBEL.ADD {kind} a b")).integers(), [1, 1], "{kind}");
            assert_eq!(client.command(&format!("UMBEL.EXISTS {kind} a b c")).integers(), [1, 1, 0]);
        }
        assert_eq!(client.command("UMBEL.REMOVE cuckoo a a c").integers(), [1, 0, 0]);
        assert_eq!(client.command("CF.EXISTS cuckoo a").integer(), 0);
        assert!(client.command("UMBEL.ADDAT cuckoo 5 x").error().contains("only an aging filter"));
        assert!(client.command("UMBEL.ADD none x").error().contains("not found"));
        // When a filter gets full, the reply shows for each item whether it was added.
        client.command("UMBEL.RESERVE q quotient 10 0.01");
        let answers = client.command_with("UMBEL.ADD q", &items("k", 0..1000));
        let added = answers.array().iter().take_while(|answer| matches!(answer, Answer::Integer(_))).count();
        assert!((10..200).contains(&added), "{added}");
        assert!(answers.array()[999].error().contains("no more"), "{:?}", answers.array()[999]);
        assert_eq!(
            client.command_with("UMBEL.EXISTS q", &items("k", 0..added as u32)).integers(),
            vec![1; added]
        );
        // `UMBEL.INFO` also describes a cuckoo filter that has grown.
        client.command_with("CF.INSERT grown CAPACITY 64 ITEMS", &items("k", 0..1000));
        let info = client.command("UMBEL.INFO grown");
        assert_eq!(info.field("count").integer(), 1000);
        assert!(info.field("levels").integer() > 5 && double(info.field("fpr_now")) > 0.05, "{info:?}");
        wait_for("the replica", || client.command("DEBUG DIGEST") == follower.command("DEBUG DIGEST"));
    }
}

#[test]
fn grown_filters_merge_and_report_their_new_rate() {
    for program in servers() {
        let (server, replica) = (Server::start(program, &[]), Server::start(program, &[]));
        let (mut client, mut follower) = (server.client(), replica.client());
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", server.port));
        client.command("BF.RESERVE a 0.01 1000");
        client.command("BF.RESERVE b 0.01 1000");
        client.command_with("BF.MADD a", &items("a", 0..800));
        client.command_with("BF.MADD b", &items("b", 0..800));
        client.command_with("BF.MADD grown", &items("g", 0..5000));
        client.command_with("BF.MADD small", &items("s", 0..50));
        let all = |client: &mut Client, key: &str, name: &str, count: u32| {
            let found = client.command_with(&format!("BF.MEXISTS {key}"), &items(name, 0..count)).integers();
            assert_eq!(found, vec![1; count as usize], "{name} in {key}");
        };
        assert_eq!(client.command("UMBEL.MERGE ab a b"), ok());
        all(&mut client, "ab", "a", 800);
        all(&mut client, "ab", "b", 800);
        let promised = double(client.command("UMBEL.INFO ab").field("fpr_target"));
        assert!(promised > 0.01 && promised < 0.02, "{promised}");
        let strangers = client.command_with("BF.MEXISTS ab", &items("no", 0..100_000)).integers();
        assert!((strangers.iter().sum::<i64>() as f64) < 100_000.0 * promised);
        // The destination is one of the sources, and keeps its expiry.
        client.command("EXPIRE small 1000");
        assert_eq!(client.command("UMBEL.MERGE small grown"), ok());
        all(&mut client, "small", "g", 5000);
        all(&mut client, "small", "s", 50);
        assert!(client.command("TTL small").integer() > 900);
        let before = client.command("UMBEL.INFO small");
        assert_eq!(client.command("UMBEL.MERGE small small grown grown"), ok());
        assert_eq!(client.command("UMBEL.INFO small"), before, "all items were present before");
        client.command_with("BF.MADD small", &items("later", 0..20_000));
        all(&mut client, "small", "later", 20_000);

        // The size of a union is estimated unless a filter has grown.
        let [card, deviation] = client.command("UMBEL.CARD a b").array().try_into_pair();
        assert!((card - 1600.0).abs() < 5.0 * deviation, "{card} ± {deviation}");
        assert!(client.command("UMBEL.CARD grown a").error().contains("has grown"));
        let [jaccard, _] = client.command("UMBEL.JACCARD a b").array().try_into_pair();
        assert!(jaccard < 0.05, "{jaccard}");
        assert!(client.command("UMBEL.JACCARD grown small").error().contains("have grown"));

        // Cuckoo filters, also those of several levels.
        client.command_with("CF.INSERT one CAPACITY 500 ITEMS", &items("x", 0..900));
        client.command_with("CF.INSERT two CAPACITY 500 ITEMS", &items("y", 0..900));
        assert_eq!(client.command("UMBEL.MERGE one two one"), ok());
        assert_eq!(client.command("CF.INFO one").field("Number of items inserted").integer(), 1800);
        for item in items("x", 0..900).iter().chain(&items("y", 0..900)) {
            assert_eq!(client.command(&format!("CF.DEL one {item}")).integer(), 1, "{item}");
        }
        assert!(client.command("UMBEL.MERGE one a").error().contains("different kinds"));
        assert!(client.command("UMBEL.MERGE a two").error().contains("different kinds"));
        client.command_with("CF.INSERT wide CAPACITY 64 EXPANSION 4 ITEMS", &items("w", 0..500));
        client.command("COPY wide copy");
        client.command("CF.DEL copy w1");
        assert!(client.command("UMBEL.MERGE wide copy").error().contains("does not fit"));
        client.command("CF.RESERVE empty 64 EXPANSION 4");
        assert_eq!(client.command("UMBEL.MERGE empty wide"), ok());
        assert_eq!(client.command("UMBEL.MERGE wide empty2").error(), "ERR not found");
        client.command("CF.RESERVE empty2 64 EXPANSION 4");
        assert_eq!(client.command("UMBEL.MERGE wide empty2"), ok());
        assert_eq!(client.command_with("CF.MEXISTS empty", &items("w", 0..500)).integers(), vec![1; 500]);
        assert_eq!(client.command("CF.INFO wide").field("Number of items inserted").integer(), 500);

        let before = client.command("DEBUG DIGEST");
        wait_for("the replica", || before == follower.command("DEBUG DIGEST"));
        client.command("DEBUG RELOAD");
        assert_eq!(client.command("DEBUG DIGEST"), before);
    }
}

#[test]
fn an_aging_filter_forgets_by_the_clock_of_its_primary() {
    for program in servers() {
        let (server, replica) = (Server::start(program, &[]), Server::start(program, &[]));
        let (mut client, mut follower) = (server.client(), replica.client());
        follower.command(&format!("REPLICAOF 127.0.0.1 {}", server.port));
        let minutes_ago = |minutes: u64| Timestamp::now().millis() - minutes * 60_000;
        assert_eq!(client.command("UMBEL.RESERVE a aging 1000 0.0001 WINDOW 1h GENERATIONS 6"), ok());
        assert_eq!(client.command(&format!("UMBEL.ADDAT a {} old old", minutes_ago(61))).integers(), [1, 0]);
        client.command(&format!("UMBEL.ADDAT a {} middle", minutes_ago(30)));
        assert_eq!(
            client.command("UMBEL.EXISTS a old middle fresh").integers(),
            [0, 1, 0],
            "old has expired"
        );
        assert_eq!(client.command("UMBEL.ADD a fresh old").integers(), [1, 1]);
        assert_eq!(
            client.command("UMBEL.EXISTS a old middle fresh").integers(),
            [1, 1, 1],
            "old was added again"
        );
        assert!(
            client.command(&format!("UMBEL.ADDAT a {} late", minutes_ago(10))).error().contains("backwards")
        );

        // Items expire without a command that changes the filter.
        client.command("UMBEL.RESERVE soon aging 1000 0.0001 WINDOW 1500ms GENERATIONS 3");
        client.command("UMBEL.ADD soon x");
        wait_for("the window's end", || client.command("UMBEL.EXISTS soon x").integers() == [0]);
        assert_eq!(client.command("UMBEL.INFO soon").field("live generations").integer(), 0);
        wait_for("the replica", || client.command("DEBUG DIGEST") == follower.command("DEBUG DIGEST"));
        assert_eq!(follower.command("UMBEL.EXISTS a old middle fresh late").integers(), [1, 1, 1, 0]);
        assert_eq!(follower.command("UMBEL.EXISTS soon x").integers(), [0]);
        // The filter still works after its items have expired.
        client.command("UMBEL.ADD soon y");
        wait_for("the replica", || client.command("DEBUG DIGEST") == follower.command("DEBUG DIGEST"));

        let far = client.command(&format!("UMBEL.ADDAT a {} x", u64::MAX));
        assert!(far.error().contains("after that of the server"), "{far:?}");

        client.command("UMBEL.RESERVE keys aging 1000 0.01");
        assert!(client.command("UMBEL.ADDAT keys 5 x").error().contains("clock"));
        client.command("UMBEL.RESERVE counting counting 1000 0.01");
        assert!(client.command("UMBEL.ADDAT counting 5 x").error().contains("only an aging filter"));
        for wrong in ["1w", "-5s", "s", "99999999999999999999", "99999999999999999d"] {
            let answer = client.command(&format!("UMBEL.RESERVE w aging 1000 0.01 WINDOW {wrong}"));
            assert!(answer.error().contains("bad window"), "{wrong}: {answer:?}");
        }
        assert!(client.command("UMBEL.ADDAT a soon x").error().contains("bad time"));
    }
}

#[test]
fn filters_of_one_server_can_be_merged_and_compared() {
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        for (key, range) in [("a", 0..600), ("b", 300..900), ("c", 600..900)] {
            client.command(&format!("BF.RESERVE {key} 0.001 5000 NONSCALING"));
            client.command_with(&format!("BF.MADD {key}"), &items("k", range));
        }
        assert_eq!(client.command("UMBEL.MERGE all a b c"), ok());
        assert_eq!(client.command_with("BF.MEXISTS all", &items("k", 0..900)).integers(), vec![1; 900]);
        assert_eq!(client.command("UMBEL.INTERSECT both a b"), ok());
        assert_eq!(client.command_with("BF.MEXISTS both", &items("k", 300..600)).integers(), vec![1; 300]);
        let strangers =
            client.command_with("BF.MEXISTS both", &items("k", 0..300)).integers().iter().sum::<i64>();
        assert!(strangers < 30, "{strangers} of 300");
        let [card, deviation] = client.command("UMBEL.CARD a b c").array().try_into_pair();
        assert!((card - 900.0).abs() < 5.0 * deviation + 1.0, "{card} ± {deviation}");
        let [jaccard, deviation] = client.command("UMBEL.JACCARD a b").array().try_into_pair();
        assert!((jaccard - 300.0 / 900.0).abs() < 5.0 * deviation + 0.001, "{jaccard} ± {deviation}");
        // The destination may be one of the sources.
        assert_eq!(client.command("UMBEL.MERGE a a c"), ok());
        assert_eq!(client.command_with("BF.MEXISTS a", &items("k", 600..900)).integers(), vec![1; 300]);
        // Filters that do not match report the difference, and nothing changes.
        client.command("BF.RESERVE larger 0.001 9000 NONSCALING");
        assert!(client.command("UMBEL.MERGE new a larger").error().contains("bits"));
        client.command("BF.RESERVE other 0.001 5000 NONSCALING SEED 00112233445566778899aabbccddeeff");
        assert!(client.command("UMBEL.MERGE new a other").error().contains("KEY-FILE"));
        client.command("SET text x");
        assert!(client.command("UMBEL.MERGE text a c").error().starts_with("WRONGTYPE"));
        assert_eq!(client.command("EXISTS new").integer(), 0);
    }
}

trait Pair {
    fn try_into_pair(&self) -> [f64; 2];
}

impl Pair for [Answer] {
    fn try_into_pair(&self) -> [f64; 2] {
        let [a, b] = self else { panic!("{self:?} is not a pair") };
        [double(a), double(b)]
    }
}

/// Returns the exported file of a key.
fn export(client: &mut Client, key: &str, piece: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let answer = client.command(&format!("UMBEL.EXPORT {key} {} {piece}", bytes.len()));
        let [len, more] = answer.array() else { panic!("{answer:?}") };
        bytes.extend(more.bytes());
        if more.bytes().is_empty() {
            assert_eq!(bytes.len() as i64, len.integer());
            return bytes;
        }
    }
}

fn import(client: &mut Client, key: &str, bytes: &[u8], piece: usize) -> Answer {
    let length = bytes.len().to_string();
    let mut answer = Answer::Null;
    for (i, part) in bytes.chunks(piece).enumerate() {
        let offset = (i * piece).to_string();
        answer = client.call(&[b"UMBEL.IMPORT", key.as_bytes(), length.as_bytes(), offset.as_bytes(), part]);
        if let Answer::Error(_) = answer {
            return answer;
        }
    }
    answer
}

#[test]
fn files_of_the_command_line_are_imported_and_exported() {
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        let keys = items("k", 0..2000);
        for kind in [Kind::Blocked, Kind::Standard, Kind::Scalable, Kind::Cuckoo, Kind::Fuse, Kind::Counting]
        {
            let spec = Spec::new(2000, 0.001).unwrap();
            let filter = match kind {
                Kind::Fuse => umbel::Fuse::new(&keys, 0.001).unwrap().into(),
                _ => {
                    let mut filter = umbel::AnyFilter::build(kind, &spec).unwrap();
                    filter.insert_batch(&keys).unwrap();
                    filter
                }
            };
            let bytes = file::to_bytes(&filter, &file::Options::default()).unwrap();
            let name = kind.to_string();
            assert_eq!(import(&mut client, &name, &bytes, 1000).integer(), bytes.len() as i64, "{name}");
            assert_eq!(
                client.command_with(&format!("UMBEL.EXISTS {name}"), &keys).integers(),
                vec![1; 2000],
                "{name}"
            );
            assert_eq!(export(&mut client, &name, 700), bytes, "{name}");
        }
        // Imported Bloom and cuckoo filters support `BF.*` and `CF.*`.
        assert_eq!(client.command("BF.MEXISTS blocked k1 k2").integers(), [1, 1]);
        assert_eq!(client.command("BF.ADD scalable another").integer(), 1);
        assert_eq!(client.command("CF.DEL cuckoo k1").integer(), 1);
        let map = Bloomier::new(&["bash", "vim"], &[7, 9], 0.001).unwrap();
        import(&mut client, "map", &file::to_bytes(&map, &file::Options::default()).unwrap(), 100);
        assert_eq!(
            client.command("UMBEL.GET map vim bash stranger").array()[..2].to_vec(),
            [Answer::Integer(9), Answer::Integer(7)]
        );
    }
}

#[test]
fn an_interrupted_import_resumes_and_a_damaged_one_changes_nothing() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    let mut filter = umbel::AnyFilter::build(Kind::Blocked, &Spec::new(10_000, 0.01).unwrap()).unwrap();
    filter.insert("apple").unwrap();
    let bytes = file::to_bytes(&filter, &file::Options::default()).unwrap();
    let length = bytes.len().to_string();
    let mut send = |offset: usize, part: &[u8]| {
        client.call(&[b"UMBEL.IMPORT", b"f", length.as_bytes(), offset.to_string().as_bytes(), part])
    };
    assert_eq!(send(0, &[]).integer(), 0);
    assert_eq!(send(0, &bytes[..5000]).integer(), 5000);
    assert!(send(6000, &bytes[6000..]).error().contains("5000 bytes were received"));
    server.client().command("DEBUG RELOAD");
    assert_eq!(send(0, &[]).integer(), 5000);
    let mut damaged = bytes[5000..].to_vec();
    damaged[1000] ^= 1;
    assert!(send(5000, &damaged).error().contains("bad data"));
    assert!(server.client().command("UMBEL.EXISTS f apple").error().contains("is incomplete"));
    assert_eq!(send(5000, &bytes[5000..]).integer(), bytes.len() as i64);
    assert_eq!(server.client().command("BF.EXISTS f apple").integer(), 1);
    assert_eq!(send(0, &bytes).error(), "ERR item exists");
}

#[test]
fn exported_files_do_not_contain_the_secret() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    std::fs::write(&key_file, "umbel-key keyed 000102030405060708090a0b0c0d0e0f\n").unwrap();
    let program = &servers()[0];
    let server = Server::with_module(program, &["KEY-FILE", key_file.to_str().unwrap()], &[]);
    let mut client = server.client();
    client.command("BF.MADD f a b c");
    let bytes = export(&mut client, "f", 1 << 20);
    let secret: Vec<u8> = (0..16).collect();
    assert!(!bytes.windows(16).any(|window| window == secret));
    assert!(file::from_bytes(&bytes, &KeyRing::new()).is_err());
    let mut ring = KeyRing::new();
    ring.insert(Hasher::keyed(secret.try_into().unwrap()));
    let Stored::Set(filter) = file::from_bytes(&bytes, &ring).unwrap().filter else { panic!("not a set") };
    assert!(filter.contains("a") && !filter.contains("d"));
    // A server with the same key file accepts the file; one without it does not.
    let same = Server::with_module(program, &["KEY-FILE", key_file.to_str().unwrap()], &[]);
    assert_eq!(import(&mut same.client(), "f", &bytes, 1 << 20).integer(), bytes.len() as i64);
    assert_eq!(same.client().command("BF.MEXISTS f a b c d").integers(), [1, 1, 1, 0]);
    let other = Server::without_secret(program, &[]);
    assert!(other.log().contains("KEY-FILE"), "{}", other.log());
    assert!(import(&mut other.client(), "f", &bytes, 1 << 20).error().contains("key"));
    // The first piece of a file is refused, before all of it has been sent.
    let begun = [b"UMBEL.IMPORT" as &[u8], b"f", bytes.len().to_string().as_bytes(), b"0", &bytes[..300]]
        .map(<[u8]>::to_vec);
    let begun: Vec<&[u8]> = begun.iter().map(Vec::as_slice).collect();
    assert!(other.client().call(&begun).error().contains("key"));
    assert_eq!(other.client().command("EXISTS f").integer(), 0);
    assert_eq!(same.client().call(&[begun[0], b"g", begun[2], begun[3], begun[4]]).integer(), 300);
}
