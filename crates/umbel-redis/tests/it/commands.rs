//! The commands reply as RedisBloom's do, on every server that the tests find and in both
//! protocols.

use crate::support::{Answer, Client, Server, carry, items, servers};

/// Runs a check on every server, in both protocols.
fn everywhere(check: impl Fn(&mut Client)) {
    for program in servers() {
        let server = Server::start(program, &[]);
        check(&mut server.client());
        server.client().command("FLUSHALL");
        check(&mut server.client().with_resp3());
    }
}

#[test]
fn a_bloom_filter_contains_the_added_items() {
    everywhere(|client| {
        assert_eq!(client.command("BF.RESERVE f 0.001 1000"), Answer::Word("OK".into()));
        assert_eq!(client.command("BF.ADD f apple").integer(), 1);
        assert_eq!(client.command("BF.ADD f apple").integer(), 0);
        assert_eq!(client.command("BF.MADD f apple pear plum").integers(), [0, 1, 1]);
        assert_eq!(client.command("BF.EXISTS f pear").integer(), 1);
        assert_eq!(client.command("BF.MEXISTS f pear fig plum").integers(), [1, 0, 1]);
        assert_eq!(client.command("BF.CARD f").integer(), 3);
        assert_eq!(
            client.command("BF.INSERT g CAPACITY 50 ERROR 0.1 EXPANSION 4 ITEMS a b").integers(),
            [1, 1]
        );
        let info = client.command("BF.INFO g");
        assert_eq!(info.field("Capacity").integer(), 50);
        assert_eq!(info.field("Expansion rate").integer(), 4);
        assert_eq!(info.field("Number of filters").integer(), 1);
        assert_eq!(info.field("Number of items inserted").integer(), 2);
        assert_eq!(client.command("BF.INFO g CAPACITY").integers(), [50]);
        assert_eq!(client.command("TYPE g"), Answer::Word("umbel-bf-".into()));
        // A key that does not exist contains nothing.
        assert_eq!(client.command("BF.EXISTS none x").integer(), 0);
        assert_eq!(client.command("BF.MEXISTS none x y").integers(), [0, 0]);
        assert_eq!(client.command("BF.CARD none").integer(), 0);
    });
}

#[test]
fn errors_are_those_that_clients_expect_and_change_nothing() {
    everywhere(|client| {
        client.command("SET text x");
        client.command("BF.ADD f x");
        for (command, error) in [
            ("BF.RESERVE f 0.01 100", "ERR item exists"),
            ("BF.RESERVE g 0 100", "ERR error rate must be in the range (0.000000, 1.000000)"),
            ("BF.RESERVE g 1 100", "ERR error rate must be in the range (0.000000, 1.000000)"),
            ("BF.RESERVE g nan 100", "ERR bad error rate"),
            ("BF.RESERVE g x 100", "ERR bad error rate"),
            ("BF.RESERVE g 0.01 x", "ERR bad capacity"),
            ("BF.RESERVE g 0.01 100 EXPANSION x", "ERR bad expansion"),
            ("BF.RESERVE g 0.01 100 NONSCALING EXPANSION 2", "ERR Nonscaling filters cannot expand"),
            ("BF.RESERVE g 0.01 100 FASTER", "ERR Unknown argument received"),
            ("BF.INFO none", "ERR not found"),
            ("BF.INFO f colour", "ERR Invalid information value"),
            ("BF.INSERT none NOCREATE ITEMS x", "ERR not found"),
            ("BF.SCANDUMP none 0", "ERR not found"),
            ("BF.LOADCHUNK none 5 data", "ERR received bad data"),
            ("BF.ADD text x", "WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("CF.ADD f x", "WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("CF.RESERVE c 0", "ERR Bad capacity"),
            ("CF.DEL none x", "ERR Not found"),
            ("CF.INSERT none NOCREATE ITEMS x", "ERR not found"),
            ("CMS.QUERY none x", "ERR CMS: key does not exist"),
            ("TOPK.LIST none", "ERR TopK: key does not exist"),
        ] {
            assert_eq!(client.command(command).error(), error, "{command}");
        }
        assert!(client.command("BF.ADD f").error().contains("wrong number of arguments"));
        assert!(client.command("BF.EXISTS f x y").error().contains("wrong number of arguments"));
        assert_eq!(client.command("DBSIZE").integer(), 2);
        assert_eq!(client.command("BF.CARD f").integer(), 1);
    });
}

#[test]
fn absurd_sizes_are_refused_and_do_no_harm() {
    everywhere(|client| {
        for command in [
            "BF.RESERVE h 0.0001 999999999999999",
            "BF.RESERVE h 0.0001 9223372036854775807",
            "BF.RESERVE h 0.0001 3000000000",
            "BF.RESERVE h 0.0001 3000000000 NONSCALING",
            "CF.RESERVE h 9223372036854775807",
            "CF.RESERVE h 9000000000",
            "CMS.INITBYDIM h 9223372036854775807 9223372036854775807",
            "CMS.INITBYDIM h 4000000000 4",
            "TOPK.RESERVE h 4294967295 8 7 0.9",
            "TOPK.RESERVE h 5 4294967295 4294967295 0.9",
        ] {
            assert!(client.command(command).error().starts_with("ERR "), "{command}");
            assert_eq!(client.command("EXISTS h").integer(), 0, "{command}");
        }
        assert_eq!(client.command("PING"), Answer::Word("PONG".into()));
    });
}

#[test]
fn a_filter_that_does_not_scale_is_full_at_its_capacity() {
    everywhere(|client| {
        client.command("BF.RESERVE f 0.001 10 NONSCALING");
        assert_eq!(client.command("BF.INFO f").field("Expansion rate"), &Answer::Null);
        assert_eq!(client.command_with("BF.MADD f", &items("k", 0..10)).integers(), [1; 10]);
        assert_eq!(client.command("BF.ADD f another").error(), "ERR non scaling filter is full");
        let answers = client.command("BF.MADD f k3 other");
        assert_eq!(answers.array()[0].integer(), 0);
        assert_eq!(answers.array()[1].error(), "ERR non scaling filter is full");
        assert_eq!(client.command("BF.CARD f").integer(), 10);
    });
}

/// With a million absent items, the rate is measured to 0.0001 (one standard deviation).
#[test]
fn the_rate_holds_however_much_a_filter_grows() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    client.command("BF.RESERVE f 0.01 100");
    for start in (0..20_000).step_by(500) {
        client.command_with("BF.MADD f", &items("k", start..start + 500));
    }
    for start in (0..20_000).step_by(500) {
        assert_eq!(client.command_with("BF.MEXISTS f", &items("k", start..start + 500)).integers(), [1; 500]);
    }
    let mut wrong = 0;
    for start in (0..1_000_000).step_by(1000) {
        wrong += client
            .command_with("BF.MEXISTS f", &items("no", start..start + 1000))
            .integers()
            .iter()
            .sum::<i64>();
    }
    assert!(wrong <= 10_200, "{wrong} of a million");
    let bits = client.command("MEMORY USAGE f").integer() as f64 * 8.0 / 20_000.0;
    assert!(bits <= 21.0, "{bits} bits for each key");
}

#[test]
fn a_cuckoo_filter_forgets_deleted_items() {
    everywhere(|client| {
        assert_eq!(
            client.command("CF.RESERVE f 1000 BUCKETSIZE 4 FINGERPRINT 16"),
            Answer::Word("OK".into())
        );
        assert_eq!(client.command("CF.ADD f apple").integer(), 1);
        assert_eq!(client.command("CF.ADDNX f apple").integer(), 0);
        assert_eq!(client.command("CF.ADD f apple").integer(), 1);
        assert_eq!(client.command("CF.COUNT f apple").integer(), 2);
        assert_eq!(client.command("CF.INSERT f ITEMS pear plum").integers(), [1, 1]);
        assert_eq!(client.command("CF.INSERTNX f ITEMS pear fig").integers(), [0, 1]);
        assert_eq!(client.command("CF.MEXISTS f apple pear kiwi").integers(), [1, 1, 0]);
        assert_eq!(client.command("CF.DEL f apple").integer(), 1);
        assert_eq!(client.command("CF.EXISTS f apple").integer(), 1);
        assert_eq!(client.command("CF.DEL f apple").integer(), 1);
        assert_eq!(client.command("CF.EXISTS f apple").integer(), 0);
        assert_eq!(client.command("CF.DEL f apple").integer(), 0);
        let info = client.command("CF.INFO f");
        assert_eq!(info.field("Number of items inserted").integer(), 3);
        assert_eq!(info.field("Number of items deleted").integer(), 2);
        assert_eq!(info.field("Bucket size").integer(), 4);
        assert_eq!(info.field("Fingerprint bits").integer(), 16);
        assert_eq!(client.command("CF.COUNT none x").integer(), 0);
    });
}

#[test]
fn a_cuckoo_filter_grows_and_shrinks_again() {
    everywhere(|client| {
        client.command("CF.RESERVE f 100 BUCKETSIZE 4 FINGERPRINT 16");
        let all = items("k", 0..1000);
        assert_eq!(client.command_with("CF.INSERT f ITEMS", &all).integers(), [1; 1000]);
        assert_eq!(client.command_with("CF.MEXISTS f", &all).integers(), [1; 1000]);
        let filters = |client: &mut Client| client.command("CF.INFO f").field("Number of filters").integer();
        assert!(filters(client) >= 4, "{} filters for 1000 items", filters(client));
        for item in &all[50..] {
            assert_eq!(client.command(&format!("CF.DEL f {item}")).integer(), 1);
        }
        assert_eq!(client.command("CF.COMPACT f"), Answer::Word("OK".into()));
        assert!(filters(client) <= 2, "{} filters for 50 items", filters(client));
        assert_eq!(client.command_with("CF.MEXISTS f", &all[..50]).integers(), [1; 50]);
        client.command("CF.RESERVE full 10 EXPANSION 0");
        let full = client.command_with("CF.INSERT full ITEMS", &all).integers();
        assert!(full.contains(&-1) && full.contains(&1));
    });
}

/// Clients of RedisBloom read the numbers by their names and positions.
#[test]
fn the_debug_line_of_a_cuckoo_filter_has_the_numbers_of_its_info() {
    everywhere(|client| {
        client.command("CF.RESERVE f 100 BUCKETSIZE 4 MAXITERATIONS 10 EXPANSION 2");
        client.command_with("CF.INSERT f ITEMS", &items("k", 0..1000));
        assert_eq!(client.command("CF.DEL f k7").integer(), 1);
        let info = client.command("CF.INFO f");
        let [filters, buckets] =
            ["Number of filters", "Number of buckets"].map(|name| info.field(name).integer());
        assert!(filters > 2, "{filters} levels for 1000 items");
        // Each level has twice as many buckets as the one before.
        let first = buckets / ((1 << filters) - 1);
        let line = format!(
            "bktsize:4 buckets:{first} items:999 deletes:1 filters:{filters} max_iterations:10 expansion:2"
        );
        assert_eq!(client.command("CF.DEBUG f").bytes(), line.as_bytes());
        client.command("DEBUG RELOAD");
        assert_eq!(client.command("CF.DEBUG f").bytes(), line.as_bytes());
        assert_eq!(client.command("CF.DEBUG none").error(), "ERR not found");
        client.command("BF.ADD b x");
        assert!(client.command("CF.DEBUG b").error().starts_with("WRONGTYPE"));
    });
}

#[test]
fn a_sketch_never_underestimates() {
    everywhere(|client| {
        client.command("CMS.INITBYDIM s 500 5");
        client.command("CMS.INITBYPROB p 0.001 0.01");
        assert_eq!(client.command("CMS.INFO p").field("width").integer(), 2000);
        assert_eq!(client.command("CMS.INFO p").field("depth").integer(), 7);
        let mut total = 0;
        for i in 1..=300 {
            client.command(&format!("CMS.INCRBY s item{i} {i}"));
            total += i;
        }
        let counts = client.command_with("CMS.QUERY s", &items("item", 1..301)).integers();
        assert!(counts.iter().zip(1..).all(|(count, i)| *count >= i));
        let exact = counts.iter().zip(1..).filter(|(count, i)| **count == *i).count();
        assert!(exact > 280, "{exact} of 300");
        assert_eq!(client.command("CMS.INFO s").field("count").integer(), total);
        client.command("CMS.INITBYDIM t 500 5");
        client.command("CMS.MERGE t 1 s WEIGHTS 3");
        assert_eq!(client.command("CMS.QUERY t item7").integers(), [3 * counts[6]]);
        assert_eq!(client.command("CMS.MERGE t 1 p").error(), "ERR CMS: width/depth is not equal");
    });
}

#[test]
fn the_most_frequent_items_are_listed() {
    everywhere(|client| {
        client.command("TOPK.RESERVE t 5 50 5 0.9");
        // One item in every round, one in every second, among many that occur once.
        for i in 0..1000 {
            client.command(&format!("TOPK.ADD t rare{i} often"));
            if i % 2 == 0 {
                client.command("TOPK.INCRBY t half 1");
            }
        }
        assert_eq!(client.command("TOPK.QUERY t often half").integers(), [1, 1]);
        let list = client.command("TOPK.LIST t WITHCOUNT");
        let [first, count, second, ..] = list.array() else { panic!("{list:?}") };
        assert_eq!((first.bytes(), second.bytes()), (&b"often"[..], &b"half"[..]));
        assert!((900..=1000).contains(&count.integer()), "{count:?}");
    });
}

#[test]
fn a_dumped_value_is_equal_after_loading() {
    for program in servers() {
        // The two servers have different secrets.
        let (from, to) = (Server::start(program, &[]), Server::start(program, &[]));
        let (mut a, mut b) = (from.client(), to.client());
        a.command_with("BF.MADD BF", &items("k", 0..5000));
        a.command_with("CF.INSERT CF CAPACITY 100 ITEMS", &items("k", 0..1000));
        a.command("CMS.INITBYDIM CMS 100 4");
        a.command("CMS.INCRBY CMS x 5 y 7");
        a.command("TOPK.RESERVE TOPK 3");
        a.command("TOPK.ADD TOPK x y z x");
        for family in ["BF", "CF", "CMS", "TOPK"] {
            carry(family, (&mut a, family), (&mut b, family));
            let digest = format!("DEBUG DIGEST-VALUE {family}");
            assert_eq!(a.command(&digest), b.command(&digest));
        }
        assert_eq!(b.command_with("BF.MEXISTS BF", &items("k", 0..5000)).integers(), vec![1; 5000]);
        assert_eq!(b.command("CMS.QUERY CMS x y").integers(), [5, 7]);
    }
}

/// A sketch and a list of known items, as the first version of the module dumped them.
const SKETCH_STREAM: &str = "\
    554d424c756d62656c2d636d730505039da50480828898c0a08183078892a8d8c0a183870f0048c6842125729c94a4701101\
    00000000002c0100000100000000000000000000009c1201000100000000000000000000000100000000000000000000009c\
    1201000000000000000000470c5c00f1bdee20";
const LIST_STREAM: &str = "\
    554d424c756d62656c2d746f7007020302cd99b3e6cc99b3f63fcc0180828898c0a08183078892a8d8c0a183870f00564f3c\
    62afe1f72fa3010000007c8c3e922600000038e801e4010000000bdb2a0a020000002350d245c90000007b27630c28000000\
    38e801e40000000000000000000000000000000028067175696e6365c9010366696762f91c460b8f18a8";

#[test]
fn streams_of_sketches_and_lists_do_not_change() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    let seed = "SEED 000102030405060708090a0b0c0d0e0f";
    client.command(&format!("CMS.INITBYDIM CMS 5 3 {seed}"));
    client.command("CMS.INCRBY CMS apple 300 pear 1 plum 70000");
    client.command(&format!("TOPK.RESERVE TOPK 2 3 2 0.9 {seed}"));
    client.command("TOPK.ADD TOPK apple pear apple plum fig");
    client.command("TOPK.INCRBY TOPK quince 40 fig 200");
    for (family, expected) in [("CMS", SKETCH_STREAM), ("TOPK", LIST_STREAM)] {
        let dumped = client.command(&format!("{family}.SCANDUMP {family} 0"));
        let stream = dumped.array()[1].bytes();
        let hex: String = stream.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected, "{family}");
    }
}

/// A Bloom filter with two stages and a cuckoo filter with several levels, as earlier versions of
/// the module dumped them.
const FILTER_STREAMS: [(&str, &[u8]); 2] =
    [("BF", include_bytes!("../golden/bf.stream")), ("CF", include_bytes!("../golden/cf.stream"))];

#[test]
fn streams_of_filters_do_not_change() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    let seed = "EXPANSION 2 SEED 000102030405060708090a0b0c0d0e0f";
    client.command(&format!("BF.RESERVE BF 0.1 4 {seed}"));
    client.command_with("BF.MADD BF", &items("k", 0..9));
    client.command(&format!("CF.RESERVE CF 8 {seed}"));
    client.command_with("CF.INSERT CF ITEMS", &items("k", 0..30));
    client.command("CF.DEL CF k3");
    for (family, expected) in FILTER_STREAMS {
        let dumped = client.command(&format!("{family}.SCANDUMP {family} 0"));
        assert_eq!(dumped.array()[1].bytes(), expected, "{family}");
        let (command, cursor) = (format!("{family}.LOADCHUNK"), (expected.len() + 1).to_string());
        let loaded = client.call(&[command.as_bytes(), b"copy", cursor.as_bytes(), expected]);
        assert_eq!(loaded, Answer::Word("OK".into()), "{family}");
        let digests = client.command(&format!("DEBUG DIGEST-VALUE {family} copy"));
        assert_eq!(digests.array()[0], digests.array()[1], "{family}");
        client.command("DEL copy");
    }
}

#[test]
fn misordered_and_damaged_chunks_change_nothing() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    client.command("BF.RESERVE f 0.0001 10000000");
    client.command("BF.MADD f a b c");
    let mut chunks = Vec::new();
    let mut cursor = 0;
    loop {
        let dumped = client.command(&format!("BF.SCANDUMP f {cursor}"));
        cursor = dumped.array()[0].integer();
        if cursor == 0 {
            break;
        }
        chunks.push((cursor, dumped.array()[1].bytes().to_vec()));
    }
    assert!(chunks.len() > 2, "{} chunks", chunks.len());
    let mut load = |(cursor, chunk): &(i64, Vec<u8>)| {
        client.call(&[b"BF.LOADCHUNK", b"g", cursor.to_string().as_bytes(), chunk])
    };
    assert_eq!(load(&chunks[1]).error(), "ERR received bad data");
    assert_eq!(load(&chunks[0]), Answer::Word("OK".into()));
    assert_eq!(load(&chunks[2]).error(), "ERR received bad data");
    assert_eq!(load(&chunks[0]).error(), "ERR received bad data");
    for chunk in &chunks[1..chunks.len() - 1] {
        assert_eq!(load(chunk), Answer::Word("OK".into()));
    }
    let last = chunks.last().unwrap();
    let mut damaged = last.clone();
    damaged.1[100] ^= 1;
    assert!(load(&damaged).error().starts_with("ERR received bad data"));
    let unfinished = server.client().command("BF.EXISTS g a");
    assert!(unfinished.error().contains("is incomplete"));
    // The undamaged chunk is still accepted.
    assert_eq!(load(last), Answer::Word("OK".into()));
    assert_eq!(server.client().command("BF.MEXISTS g a b c d").integers(), [1, 1, 1, 0]);
}

/// Fingerprints of 8 bits collide in one of 64 cases, so it must make no difference whose is
/// deleted.
#[test]
fn deleting_an_item_of_a_grown_cuckoo_filter_keeps_all_others() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    for expansion in [1, 2, 4] {
        let (key, all) = (format!("f{expansion}"), items("k", 0..15_000));
        client.command(&format!(
            "CF.RESERVE {key} 1000 EXPANSION {expansion} SEED 00000000000000000000000000000000"
        ));
        assert_eq!(
            client.command_with(&format!("CF.INSERT {key} ITEMS"), &all).integers(),
            vec![1; all.len()]
        );
        for item in &all[..7000] {
            assert_eq!(client.command(&format!("CF.DEL {key} {item}")).integer(), 1, "{item} of {key}");
        }
        assert_eq!(
            client.command_with(&format!("CF.MEXISTS {key}"), &all[7000..]).integers(),
            vec![1; 8000],
            "{key}"
        );
        client.command(&format!("CF.COMPACT {key}"));
        assert_eq!(
            client.command_with(&format!("CF.MEXISTS {key}"), &all[7000..]).integers(),
            vec![1; 8000],
            "{key}"
        );
        let info = client.command(&format!("CF.INFO {key}"));
        assert_eq!(info.field("Number of items inserted").integer(), 8000);
    }
}

/// The sources of a merge are keys, too: a user without read access to them cannot merge them.
#[test]
fn a_merge_needs_read_access_to_its_sources() {
    let server = Server::start(&servers()[0], &[]);
    let mut client = server.client();
    for key in ["my:sum", "secret"] {
        client.command(&format!("CMS.INITBYDIM {key} 10 3"));
    }
    client.command("CMS.INCRBY secret x 42");
    client.command("ACL SETUSER guest on nopass ~my:* +@all");
    let mut guest = server.client();
    guest.command("AUTH guest x");
    assert!(guest.command("CMS.MERGE my:sum 1 secret").error().starts_with("NOPERM"));
    assert_eq!(guest.command("CMS.QUERY my:sum x").integers(), [0]);
    let keys = client.command("COMMAND GETKEYS CMS.MERGE a 2 b c WEIGHTS 1 2");
    assert_eq!(keys.array().iter().map(Answer::bytes).collect::<Vec<_>>(), [b"a", b"b", b"c"]);
    assert_eq!(client.command("CMS.MERGE my:sum 2 secret secret WEIGHTS 1 2"), Answer::Word("OK".into()));
    assert_eq!(guest.command("CMS.QUERY my:sum x").integers(), [126]);
    assert_eq!(client.command("CMS.MERGE my:sum 2 my:sum my:sum"), Answer::Word("OK".into()));
    assert_eq!(guest.command("CMS.QUERY my:sum x").integers(), [252]);
}
