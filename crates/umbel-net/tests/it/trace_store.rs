//! The promises of a traceback store: the true path is always among the answers, false ones are as
//! many as predicted, and damage is noticed.

use std::time::Duration;
use umbel::Digest;
use umbel_net::capture::{Link, Packet, Timestamp};
use umbel_net::topology::Graph;
use umbel_net::traceback::passage::Sighting;
use umbel_net::traceback::spie::{Invariant, Transform, false_branches};
use umbel_net::traceback::store::{self, Page, Recorder, Settings, Store};

const START: u64 = 1_700_000_000;

/// Returns an IPv4 packet for a number, after this many hops.
fn packet(number: u32, hops: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 36, 1, 2, 0, 0, 64 - hops, 17, hops, 9, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0, 1, 0, 2, 0, 16, 0, 0]);
    packet.extend(number.to_be_bytes());
    packet.extend(*b"data");
    // The number takes the place of ports and the identification, too, which are hashed.
    packet[20..24].copy_from_slice(&number.to_be_bytes());
    packet
}

fn digest(number: u32) -> Digest {
    Invariant::from_packet(&packet(number, 0)).unwrap().digest()
}

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_secs(START + seconds)
}

fn forward(recorder: &mut Recorder, number: u32, hops: u8, time: Timestamp) {
    let bytes = packet(number, hops);
    let packet = Packet::from_frame(Link::RAW, &bytes, time, bytes.len() as u32).unwrap();
    recorder.forward(&packet).unwrap();
}

fn folder() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    (folder, store)
}

/// Records packets of a router at one time.
fn record(store: &Store, router: &str, settings: Settings, numbers: impl IntoIterator<Item = u32>) {
    let mut recorder = Recorder::new(store.clone(), router, settings, 7).unwrap();
    numbers.into_iter().for_each(|number| forward(&mut recorder, number, 0, seconds(0)));
    recorder.finish().unwrap();
}

#[test]
fn false_branches_are_as_many_as_predicted_and_the_true_path_is_among_the_answers() {
    const SIDE: usize = 3;
    const RATE: f64 = 0.2;
    const QUESTIONS: u32 = 150;
    // A path of three routers; each has three branches of its own, which branch once more.
    let mut text = String::from("P0 P1\nP1 P2\n");
    for root in 0..3 {
        for branch in 0..SIDE {
            text += &format!("P{root} P{root}-{branch}\n");
            (0..SIDE).for_each(|leaf| text += &format!("P{root}-{branch} P{root}-{branch}-{leaf}\n"));
        }
    }
    let graph = Graph::parse(text.as_bytes()).unwrap();
    let (_folder, store) = folder();
    let settings = Settings { rate: RATE, ..Settings::default() };
    let mut rates = Vec::new();
    for node in 0..graph.len() {
        let name = graph.name(node);
        let own = 1000 * (node as u32 + 1)..;
        let seen = if name.len() == 2 { 0..QUESTIONS } else { 0..0 };
        record(&store, name, settings, seen.chain(own.take(200)));
        rates.push(store::load(store.pages().unwrap().last().unwrap()).unwrap().rate());
    }
    let of = |name: String| rates[graph.find(&name).unwrap()];
    let below = |root: usize| -> f64 {
        let branch = |branch: usize| {
            let leaves = (0..SIDE).map(|leaf| of(format!("P{root}-{branch}-{leaf}"))).sum::<f64>();
            of(format!("P{root}-{branch}")) * (1.0 + leaves)
        };
        (0..SIDE).map(branch).sum()
    };
    let predicted: f64 = (0..3).map(below).sum();
    let victim = graph.find("P2").unwrap();
    let mut counts = Vec::new();
    let mut expected = 0.0;
    for number in 0..QUESTIONS {
        let trace = store.trace(&graph, victim, digest(number), seconds(0)..=seconds(0)).unwrap();
        let names = |path: &Vec<store::PathHop>| {
            path.iter().map(|hop| graph.name(hop.router)).collect::<Vec<_>>().join(" ")
        };
        let paths: Vec<String> = trace.paths.iter().map(names).collect();
        assert!(paths.iter().any(|path| path.starts_with("P2 P1 P0")), "{number}: {paths:?}");
        assert!(trace.is_complete && trace.unread.is_empty() && trace.silent.is_empty());
        counts.push((trace.routers().len() - 3) as f64);
        expected += trace.expected;
    }
    let n = f64::from(QUESTIONS);
    let mean = counts.iter().sum::<f64>() / n;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // With the rates of the pages as they are: by chance once in 15 000 runs, for a fixed seed never.
    assert!((mean - predicted).abs() < 4.0 * (variance / n).sqrt(), "{mean} instead of {predicted}");
    // The formula assumes branches without an end, and a rate that is exactly the one asked for.
    let endless = 3.0 * false_branches(SIDE as u32, RATE).unwrap();
    let cut = 3.0 * (0.6 + 0.36);
    assert!(mean < endless && (predicted / cut - 1.0).abs() < 0.25, "{predicted}, {cut}, {endless}");
    assert!(expected / n >= mean, "the promise is an upper limit");
}

#[test]
fn packets_are_found_hop_by_hop_whatever_their_time_to_live() {
    let graph = Graph::parse(b"R1 R2\nR2 R3\nR3 R4\nR2 R5\nR3 R6\nR5 R6\n").unwrap();
    let (_folder, store) = folder();
    let paths = [["R1", "R2", "R3", "R4"].as_slice(), &["R5", "R2", "R3", "R4"], &["R6", "R3", "R4"]];
    for router in 0..graph.len() {
        let name = graph.name(router);
        let mut recorder = Recorder::new(store.clone(), name, Settings::default(), 7).unwrap();
        for number in 0..300 {
            let path = paths[number as usize % 3];
            if let Some(hop) = path.iter().position(|own| *own == name) {
                forward(&mut recorder, number, hop as u8, seconds(0));
            }
        }
        recorder.finish().unwrap();
    }
    for number in 0..300 {
        let trace = store.trace(&graph, 3, digest(number), seconds(0)..=seconds(1)).unwrap();
        let upstream: Vec<&str> = paths[number as usize % 3].iter().rev().copied().collect();
        let found = |path: &Vec<store::PathHop>| {
            path.iter().zip(&upstream).all(|(hop, name)| graph.name(hop.router) == *name)
                && path.len() >= upstream.len()
        };
        assert!(trace.paths.iter().any(found), "{number}: {:?}", trace.paths);
    }
    let trace = store.trace(&graph, 3, digest(1000), seconds(0)..=seconds(1)).unwrap();
    assert!(trace.paths.is_empty() && trace.questions == 1);
    let trace = store.trace(&graph, 3, digest(0), seconds(100)..=seconds(200)).unwrap();
    assert!(trace.paths.is_empty() && trace.silent == [3], "there are no pages of that time");
}

#[test]
fn pages_end_when_they_are_full_or_their_time_is_over() {
    let (_folder, store) = folder();
    let settings = Settings { packets: 100, length: Duration::from_secs(10), ..Settings::default() };
    let mut recorder = Recorder::new(store.clone(), "R", settings, 7).unwrap();
    // The times begin at a multiple of ten seconds. The clock goes back a little, and later by hours.
    let times = [0, 9, 10, 9, 19, 25, 9, 10_000, 10_000, 3];
    for (number, time) in (0..).zip(times) {
        forward(&mut recorder, number, 0, seconds(time));
    }
    (100..350).for_each(|number| forward(&mut recorder, number, 0, seconds(4)));
    recorder.finish().unwrap();
    let pages = store.contents().unwrap().pages;
    let spans: Vec<(u64, u64, u64)> = pages
        .iter()
        .map(|(_, about)| {
            (about.first.millis() / 1000 - START, about.last.millis() / 1000 - START, about.packets)
        })
        .collect();
    let expected = [
        (0, 9, 2),
        (9, 19, 3),
        (25, 25, 1),
        (9, 9, 1),
        (10_000, 10_000, 2),
        (3, 4, 100),
        (4, 4, 100),
        (4, 4, 51),
    ];
    assert_eq!(spans, expected);
    // No packet is lost.
    for (number, time) in (0..).zip(times).chain((100..350).map(|number| (number, 4))) {
        let holds = |(path, about): &(std::path::PathBuf, store::PageInfo)| {
            about.overlaps(&(seconds(time)..=seconds(time)))
                && store::load(path).unwrap().contains(digest(number))
        };
        assert!(pages.iter().any(holds), "{number}");
    }
    assert_eq!((recorder.totals().packets, recorder.totals().pages), (260, 8));
}

#[test]
fn pages_of_different_routers_and_times_have_different_seeds() {
    let (_folder, store) = folder();
    let settings = Settings { packets: 50, rate: 0.5, ..Settings::default() };
    for router in ["R1", "R2"] {
        record(&store, router, settings, (0..50).chain(0..50));
    }
    let pages: Vec<Page> = store.pages().unwrap().iter().map(|path| store::load(path).unwrap()).collect();
    assert_eq!(pages.len(), 4);
    // The same packets at a rate of one half: pages agree about half of all others.
    let answers = |page: &Page| (1000..3000).map(|number| page.contains(digest(number))).collect::<Vec<_>>();
    let all: Vec<Vec<bool>> = pages.iter().map(answers).collect();
    for one in 0..4 {
        for other in 0..one {
            let equal = all[one].iter().zip(&all[other]).filter(|(a, b)| a == b).count();
            assert!((800..1200).contains(&equal), "pages {other} and {one} agree {equal} times");
        }
    }
}

#[test]
fn recorders_of_one_store_lose_no_page() {
    let (_folder, store) = folder();
    let settings = Settings { packets: 10, ..Settings::default() };
    std::thread::scope(|scope| {
        for router in 0..4u32 {
            let store = &store;
            scope.spawn(move || {
                record(store, &format!("R{router}"), settings, 1000 * router..1000 * router + 100)
            });
        }
    });
    let contents = store.contents().unwrap();
    assert_eq!((contents.pages.len(), contents.unread.len()), (40, 0));
    for router in 0..4 {
        let name = format!("R{router}");
        assert_eq!(contents.pages.iter().filter(|(_, about)| about.router == name).count(), 10);
    }
}

/// Records a router that translates, tunnels, cuts and answers, with some packets that it does not
/// change. Returns the page.
fn page_with_changes() -> Page {
    let (_folder, store) = folder();
    let mut recorder = Recorder::new(store.clone(), "Köln 1", Settings::default(), 7).unwrap();
    let mut pass = |before: &[u8], after: &[u8], millis: u64| {
        let time = Timestamp::from_millis(1000 * START + millis);
        recorder.enter(Sighting::new(before, time).unwrap()).unwrap();
        recorder.leave(Sighting::new(after, time).unwrap()).unwrap();
    };
    (0..20).for_each(|number| pass(&packet(number, 0), &packet(number, 1), number.into()));
    let mut translated = packet(20, 0);
    translated[15] = 99;
    pass(&packet(20, 0), &translated, 20);
    let mut tunnel = vec![0x45, 0, 0, 56, 0, 1, 0, 0, 64, 4, 0, 0, 10, 0, 0, 8, 10, 0, 0, 9];
    tunnel.extend(packet(21, 0));
    pass(&packet(21, 0), &tunnel, 21);
    let mut error =
        vec![0x45, 0, 0, 56, 0, 1, 0, 0, 64, 1, 0, 0, 10, 0, 0, 8, 10, 0, 0, 1, 11, 0, 0, 0, 0, 0, 0, 0];
    error.extend(&packet(22, 0)[..28]);
    pass(&packet(22, 0), &error, 22);
    recorder.finish().unwrap();
    assert_eq!(recorder.totals().changed, [1, 1, 0, 1, 0]);
    assert_eq!((recorder.totals().packets, recorder.totals().left, recorder.totals().appeared), (23, 23, 0));
    store::load(&store.pages().unwrap()[0]).unwrap()
}

#[test]
fn page_format_is_stable() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/router.page");
    let page = page_with_changes();
    let bytes = page.to_bytes().unwrap();
    assert_eq!(bytes, std::fs::read(golden).expect("the golden file"));
    let page = store::load(golden).unwrap();
    assert_eq!(*page.about(), store::inspect(golden).unwrap());
    assert_eq!((page.about().router.as_str(), page.about().packets, page.about().changes), ("Köln 1", 23, 3));
    assert!((0..23).all(|number| page.contains(digest(number))));
    let mut translated = packet(20, 0);
    translated[15] = 99;
    let after = Invariant::from_packet(&translated).unwrap().digest();
    let before = |times| page.before(after, &times).collect::<Vec<_>>();
    assert_eq!(before(seconds(0)..=seconds(1)), [(digest(20), Transform::Translated)]);
    assert_eq!(before(seconds(1)..=seconds(2)), []);
}

#[test]
fn every_truncation_and_every_single_bit_flip_of_a_page_is_detected() {
    let whole = page_with_changes().to_bytes().unwrap();
    for length in 0..whole.len() {
        assert!(Page::from_bytes(&whole[..length]).is_err(), "cut at {length}");
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/router.page");
    assert!(whole == std::fs::read(golden).expect("the golden file"));
    for bit in 0..8 * whole.len() {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Page::from_bytes(&flipped).is_err(), "bit {bit}");
    }
    assert!(Page::from_bytes(&[whole, vec![0]].concat()).is_err());
}

#[test]
fn impossible_pages_are_refused_even_with_valid_checksums() {
    let whole = page_with_changes().to_bytes().unwrap();
    let name = "Köln 1".len();
    let header = 80 + name + 8;
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        for end in [header, whole.len()] {
            let sum = umbel::Hasher::fast(0).digest_bytes(&changed[..end - 8]).get();
            changed[end - 8..end].copy_from_slice(&sum.to_le_bytes());
        }
        Page::from_bytes(&changed).map(drop).map_err(|error| format!("{error:#}"))
    };
    assert_eq!(with(24, &[1; 8]), Ok(()), "another run");
    for (at, bytes, problem) in [
        (8, &[2][..], "version 2"),
        (16, &[0; 8], "appended"),
        (40, &[0xff; 8], "impossible times"),
        (64, &[4], "not valid"),
        (64, &[0xff; 8], "claims more"),
        (72, &[0xff; 8], "claims more"),
        (80, b"\x07", "invalid name"),
        (header, &[0xff; 8], "not in order"),
        (header + 24, &[9], "invalid change"),
    ] {
        let message = with(at, bytes).expect_err(problem);
        assert!(message.contains(problem), "byte {at}: {message}");
    }
}

#[test]
fn store_survives_damaged_and_foreign_files() {
    let graph = Graph::parse(b"R1 R2\n").unwrap();
    let (folder, store) = folder();
    let settings = Settings { packets: 10, ..Settings::default() };
    record(&store, "R1", settings, 0..20);
    record(&store, "R2", settings, 0..20);
    let paths = store.pages().unwrap();
    let whole = std::fs::read(&paths[0]).unwrap();
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for (spoilt, why) in [
        (&whole[..whole.len() / 2], "truncated"),
        (&damaged, "damaged"),
        (&[][..], "truncated"),
        (b"hello, not a page!", "not a page"),
    ] {
        std::fs::write(&paths[0], spoilt).unwrap();
        // The first page has packets 0 to 9; the second one still answers.
        let trace = store.trace(&graph, 1, digest(15), seconds(0)..=seconds(0)).unwrap();
        assert_eq!(trace.paths[0].len(), 2, "{why}");
        let message = format!("{:#}", trace.unread[0].error);
        assert!(message.contains(why) && message.contains("00000001.page"), "{message}");
        // Pages that no question touches are verified, too.
        let trace = store.trace(&graph, 1, digest(999), seconds(0)..=seconds(0)).unwrap();
        assert!(trace.paths.is_empty() && trace.unread.len() == 1, "{why}");
    }
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    std::fs::write(folder.path().join(".umbel-x.part"), "half").unwrap();
    record(&store, "R3", settings, 0..1);
    assert!(store.pages().unwrap().last().unwrap().ends_with("00000005.page"));
    std::fs::write(folder.path().join(format!("{}.page", u64::MAX)), "hello").unwrap();
    let page = page_with_changes();
    assert!(store.add(&page).expect_err("no number").to_string().contains("used up"));
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("thesis.tex"), "mine").unwrap();
    assert!(Store::create(other.path()).expect_err("no store").to_string().contains("not a store"));
    assert!(Store::open(other.path()).expect_err("no store").to_string().contains("no pages"));
}

#[test]
fn invalid_names_and_settings_are_refused() {
    let (_folder, store) = folder();
    let new = |router: &str, settings| Recorder::new(store.clone(), router, settings, 1).map(drop);
    for name in ["", " R1", "R1 ", "R\n1", &"x".repeat(256)] {
        assert!(new(name, Settings::default()).is_err(), "{name:?}");
    }
    assert!(new(&"x".repeat(255), Settings::default()).is_ok());
    let valid = Settings::default();
    for settings in [
        Settings { packets: 0, ..valid },
        Settings { packets: Settings::MAX_PACKETS + 1, ..valid },
        Settings { rate: 0.0, ..valid },
        Settings { rate: 1.0, ..valid },
        Settings { rate: f64::NAN, ..valid },
        Settings { length: Duration::ZERO, ..valid },
    ] {
        assert!(new("R1", settings).is_err(), "{settings:?}");
    }
    assert!(store.pages().unwrap().is_empty());
}
