//! The promises of traceback: the path of a packet is found from that packet alone, whatever its
//! sender wrote into it.

use crate::common::real_captures;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel::Digest;
use umbel::Timestamp;
use umbel_net::blocklist::{Backend, Blocklist, Options};
use umbel_net::capture::Reader;
use umbel_net::mask::Mask;
use umbel_net::network::Prefix;
use umbel_net::topology::Graph;
use umbel_net::traceback::generalized::{self, Formulas, Touched, rate_bound};
use umbel_net::traceback::spie::{Agent, Invariant, Span, Transform, trace};
use umbel_net::traceback::{header, walk, walk_paths};

/// Returns an IPv4 packet for a number, with 12 bytes of payload.
fn packet_4(number: u32) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 1, 2, 0, 0, 64, 17, 9, 9, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend(number.to_be_bytes());
    packet.extend(*b"datagram");
    packet
}

/// Returns an IPv6 packet for a number, with 12 bytes of payload.
fn packet_6(number: u32) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 12, 17, 64];
    packet.extend([0x20; 32]);
    packet.extend(number.to_be_bytes());
    packet.extend(*b"datagram");
    packet
}

fn digest(packet: &[u8]) -> Digest {
    Invariant::from_packet(packet).unwrap().digest()
}

#[test]
fn digest_ignores_the_fields_that_routers_change() {
    for (packet, changes) in [(packet_4(7), &[1, 8, 10, 11][..]), (packet_6(7), &[1, 2, 3, 7][..])] {
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x01;
            let counts = !changes.contains(&at) && at < packet.len() - 4;
            // The lowest bits of the first byte are the header's length, or the traffic class.
            let counts = if at == 0 { packet[0] >> 4 == 4 } else { counts };
            match Invariant::from_packet(&changed) {
                Ok(_) => assert_eq!(digest(&changed) != digest(&packet), counts, "byte {at}"),
                Err(_) => assert_eq!(at, 0),
            }
        }
    }
}

#[test]
fn digest_ignores_options_and_padding() {
    let plain = packet_4(7);
    let with = |options: [u8; 4]| {
        let mut packet = plain.clone();
        packet[0] = 0x46;
        packet[3] += 4;
        packet.splice(20..20, options);
        packet
    };
    assert_eq!(digest(&with([7, 3, 4, 0])), digest(&with([0; 4])));
    assert_eq!(Invariant::from_packet(&with([0; 4])).unwrap().bytes()[20..], plain[20..28]);
    let mut hop_by_hop = packet_6(7);
    (hop_by_hop[5], hop_by_hop[6]) = (20, 0);
    let mut other = hop_by_hop.clone();
    hop_by_hop.splice(40..40, [17, 0, 1, 4, 0, 0, 0, 0]);
    other.splice(40..40, [17, 0, 1, 4, 9, 9, 9, 9]);
    assert_eq!(digest(&hop_by_hop), digest(&other));

    let mut short = plain.clone();
    short[3] = 22;
    short.truncate(22);
    let padded = [short.clone(), vec![0xee; 24]].concat();
    assert_eq!(digest(&short), digest(&padded));
}

#[test]
fn invalid_packets_are_refused_and_truncated_ones_accepted() {
    for bad in [&b""[..], b"\x45", &[0x45; 19], &[0x44; 40], &[0x60; 39], &[0x50; 60]] {
        assert!(Invariant::from_packet(bad).is_err(), "{bad:?}");
    }
    // The header alone is enough, whatever length it claims.
    assert_eq!(Invariant::from_packet(&packet_4(1)[..20]).unwrap().bytes().len(), 20);
    assert_eq!(Invariant::from_packet(&packet_6(1)[..40]).unwrap().bytes().len(), 40);
    assert_eq!(Invariant::from_packet(&[0x4f; 20]).unwrap().bytes().len(), 20);
}

fn agent(seed: u64) -> Agent {
    Agent::new(seed, 100, 1e-6, Span { length: 60, pages: 3 }).unwrap()
}

#[test]
fn pages_close_when_full_or_late_and_the_oldest_is_reused() {
    let mut router = agent(1);
    let memory = router.bytes();
    let packets: Vec<Digest> = (0..350).map(|number| digest(&packet_4(number))).collect();
    for packet in &packets {
        router.forward(*packet, 5).unwrap();
    }
    // Four pages of 100 were opened, and three of them are kept.
    assert_eq!(router.pages(), 3);
    let known = packets.iter().filter(|packet| router.query(**packet, 0..=9).is_some()).count();
    assert_eq!(known, 250);
    for now in [65, 125, 185] {
        router.forward(packets[0], now).unwrap();
    }
    assert_eq!(
        (router.pages(), router.bytes()),
        (3, memory),
        "all memory is allocated at the start and reused"
    );
    assert_eq!(router.query(packets[349], 0..=9), None);
    assert_eq!(router.query(packets[0], 60..=70), Some(packets[0]));
    assert_eq!(router.query(packets[0], 70..=100), None, "no page of that time");
}

#[test]
fn clock_that_goes_back_loses_no_packet() {
    let mut router = agent(1);
    for (number, now) in [(1, 1000), (2, 990), (3, 0), (4, 1010)] {
        router.forward(digest(&packet_4(number)), now).unwrap();
        assert!(router.query(digest(&packet_4(number)), now..=now).is_some(), "at {now}");
    }
}

#[test]
fn pages_of_different_routers_and_times_are_independent() {
    // At a rate of one half, a page matches every other packet; two independent pages agree in half
    // of the cases.
    let span = Span { length: 60, pages: 1 };
    let mut routers: Vec<Agent> = (0..2).map(|seed| Agent::new(seed, 50, 0.5, span).unwrap()).collect();
    let fill =
        |router: &mut Agent, now| (0..50).for_each(|n| router.forward(digest(&packet_4(n)), now).unwrap());
    let asked: Vec<Digest> = (1000..5000).map(|number| digest(&packet_4(number))).collect();
    let answers = |router: &Agent| {
        asked.iter().map(|packet| router.query(*packet, 0..=999).is_some()).collect::<Vec<_>>()
    };
    routers.iter_mut().for_each(|router| fill(router, 0));
    let one = answers(&routers[0]);
    let other = answers(&routers[1]);
    fill(&mut routers[0], 100);
    let later = answers(&routers[0]);
    let share = |a: &[bool]| a.iter().filter(|yes| **yes).count() as f64 / asked.len() as f64;
    for second in [other, later] {
        let both: Vec<bool> = one.iter().zip(&second).map(|(a, b)| *a && *b).collect();
        let expected = share(&one) * share(&second);
        assert!((share(&both) - expected).abs() < 4.0 * (expected / asked.len() as f64).sqrt());
        assert!((0.3..0.6).contains(&share(&second)));
    }
}

#[test]
fn packets_are_traced_through_translation_tunnels_and_fragments() {
    // A chain 0 - 1 - 2 - 3, with the victim at 3.
    let graph = Graph::new(4, &[(0, 1, 1), (1, 2, 1), (2, 3, 1)]).unwrap();
    for how in [Transform::Translated, Transform::Tunnelled, Transform::Fragmented] {
        let mut agents: Vec<Agent> = (0..4).map(agent).collect();
        let [before, after, fragment] = [1, 2, 3].map(|number| digest(&packet_4(number)));
        agents[0].forward(before, 10).unwrap();
        agents[1].transform(before, after, how, 10).unwrap();
        agents[1].transform(before, fragment, how, 10).unwrap();
        for packet in [after, fragment] {
            agents[2].forward(packet, 10).unwrap();
            agents[3].forward(packet, 10).unwrap();
            let found = trace(&graph, &agents, 3, packet, 5..=15);
            assert_eq!((found.routers, found.origins, found.complete), (vec![0, 1, 2, 3], vec![0], true));
            assert_eq!(agents[1].transformed(packet, 5..=15), Some((before, how)));
        }
        assert!(trace(&graph, &agents, 3, before, 5..=15).routers.is_empty(), "it never got that far");
        // Transforms are dropped with their page.
        (1..5).for_each(|page| agents[1].forward(before, 60 * page).unwrap());
        assert_eq!(agents[1].transformed(after, 0..=999), None);
    }
}

/// The outer headers of a tunnel may all be alike, and a packet may be sent again.
#[test]
fn transform_is_found_at_its_time_despite_later_ones() {
    let mut router = agent(1);
    let [one, other, after] = [1, 2, 3].map(|number| digest(&packet_4(number)));
    for (before, now) in [(one, 10), (other, 20), (one, 30)] {
        router.transform(before, after, Transform::Tunnelled, now).unwrap();
    }
    for (times, before) in [(5..=15, one), (15..=25, other), (25..=35, one), (0..=25, other)] {
        assert_eq!(router.query(after, times.clone()), Some(before), "{times:?}");
        assert_eq!(router.transformed(after, times), Some((before, Transform::Tunnelled)));
    }
    // The first note is dropped with its page, and the others are not.
    for (number, now) in [(4, 25), (5, 75), (6, 90)] {
        router.forward(digest(&packet_4(number)), now).unwrap();
    }
    assert_eq!(router.query(after, 15..=25), Some(other));
}

/// Changes a packet as routers do: one hop less, and another checksum.
fn hop(packet: &mut [u8]) {
    match packet[0] >> 4 {
        4 => {
            packet[8] = packet[8].wrapping_sub(1);
            packet[10] = packet[10].wrapping_add(1);
        }
        _ => packet[7] = packet[7].wrapping_sub(1),
    }
}

#[test]
fn packets_of_real_captures_are_traced() {
    let graph = Graph::abilene();
    let victim = 10;
    let span = Span { length: 60, pages: 2 };
    let mut agents: Vec<Agent> =
        (0..graph.len()).map(|node| Agent::new(node as u64, 200_000, 1e-5, span).unwrap()).collect();
    let mut sent = Vec::new();
    for capture in real_captures() {
        let mut reader = Reader::open(&capture).unwrap();
        while let Some(packet) = reader.next().unwrap() {
            let mut bytes = packet.ip.to_vec();
            let first = digest(&bytes);
            let from = sent.len() % graph.len();
            for node in graph.path(from, victim) {
                agents[node].forward(digest(&bytes), 10).unwrap();
                hop(&mut bytes);
            }
            assert_eq!(digest(&bytes), first, "{capture:?}");
            sent.push((from, first));
        }
    }
    assert!(sent.len() > 10_000 && agents.iter().all(|agent| agent.pages() == 1));
    // Packets with equal digests, such as retransmissions, have all their paths; most packets have
    // one.
    let mut alone = 0;
    for (from, packet) in &sent {
        let found = trace(&graph, &agents, victim, *packet, 5..=15);
        let path = graph.path(*from, victim);
        assert!(path.iter().all(|node| found.routers.contains(node)));
        alone += u32::from(found.routers.len() == path.len());
    }
    assert!(f64::from(alone) > 0.9 * sent.len() as f64, "{alone} of {}", sent.len());
}

/// The origins found by a walk are blocked: mostly senders, and sometimes an innocent who appears
/// to be one.
#[test]
fn traced_senders_are_blocked_with_few_innocents() {
    let graph = Graph::barabasi_albert(500, 2, 1).unwrap();
    let addresses: Vec<_> = (0..graph.len()).map(|node| graph.address(node)).collect();
    let plain: Vec<_> =
        (0..graph.len()).map(|node| header::Router::<8>::new(&graph.address_bytes(node), 1, 5)).collect();
    let firm: Vec<_> = (0..graph.len())
        .map(|node| generalized::Router::<8>::new(&graph.address_bytes(node), 1, 2, 3))
        .collect();
    let victim = 499;
    let attackers: Vec<usize> = (0..20).map(|number| 100 + 17 * number).collect();
    // The numbers of blocked attackers and innocents, if each attack packet starts with this
    // header.
    let blocked = |start: Mask<8>, generalised: bool, backend: Backend| {
        let options = Options { backend, capacity: 1000, rate: 1e-3, ..Options::default() };
        let mut list = Blocklist::new(&options, Timestamp::from_millis(0)).unwrap();
        for attacker in &attackers {
            let mut filter = start;
            let path = graph.path(*attacker, victim);
            let found = if generalised {
                path.iter().for_each(|node| firm[*node].mark(&mut filter));
                let start = Touched::default();
                walk_paths(&graph, victim, start, 200_000, |node, later| firm[node].trace(&filter, later))
            } else {
                path.iter().for_each(|node| plain[*node].mark(&mut filter));
                walk(&graph, victim, (), |node, ()| plain[node].may_have_marked(&filter).then_some(()))
            };
            found.origins.iter().for_each(|node| {
                list.block(Prefix::host(graph.address(*node)), None).unwrap();
            });
        }
        let verdicts = list.check_all(&addresses);
        let all = verdicts.iter().filter(|verdict| verdict.is_blocked()).count();
        let guilty = attackers.iter().filter(|node| verdicts[**node].is_blocked()).count();
        (guilty, all - guilty)
    };
    for backend in [Backend::Exact, Backend::Aging { generations: 4 }] {
        // An honest header reveals all 20 attackers; the aging list, which stores no addresses,
        // blocks hardly any others.
        let (guilty, innocent) = blocked(Mask::EMPTY, false, backend);
        assert!(guilty == 20 && innocent <= 10, "{backend}: {guilty} and {innocent} innocent");
        // A header full of ones turns the blocklist against the network.
        let (_, innocent) = blocked(Mask::FULL, false, backend);
        assert!(innocent > 200, "{backend}: {innocent} innocent");
        let (guilty, innocent) = blocked(Mask::FULL, true, backend);
        assert!(guilty >= 15 && innocent <= 25, "{backend}: {guilty} and {innocent} innocent");
    }
}

#[test]
fn walk_stops_at_the_limit() {
    let graph = Graph::barabasi_albert(50, 3, 1).unwrap();
    let all = walk_paths(&graph, 0, (), 500, |_, ()| Some(()));
    assert!(!all.complete, "there are far more simple paths");
    let once = walk(&graph, 0, (), |_, ()| Some(()));
    assert_eq!((once.complete, once.routers.len()), (true, 50));
    let none = walk(&graph, 0, (), |_, ()| None);
    assert!(none.complete && none.routers.is_empty() && none == walk_paths(&graph, 0, (), 9, |_, ()| None));
    assert!(walk(&graph, 99, (), |_, ()| Some(())).routers.is_empty(), "no such router");
    assert!(walk_paths(&graph, 99, (), 9, |_, ()| Some(())).routers.is_empty());
}

#[test]
fn all_ones_defeat_the_plain_header_but_not_the_generalized_one() {
    let graph = Graph::barabasi_albert(300, 2, 1).unwrap();
    let nodes = || (0..graph.len()).map(|node| graph.address_bytes(node));
    let plain: Vec<_> = nodes().map(|address| header::Router::<8>::new(&address, 1, 5)).collect();
    assert!(plain.iter().all(|router| router.may_have_marked(&Mask::FULL)));
    let firm: Vec<_> = nodes().map(|address| generalized::Router::<8>::new(&address, 1, 2, 3)).collect();
    assert!(!firm.iter().any(|router| router.may_have_marked(&Mask::FULL)));
    assert!(!firm.iter().any(|router| router.may_have_marked(&Mask::EMPTY)));
}

#[test]
fn reset_wins_and_touched_bits_of_later_routers_are_ignored() {
    let first = generalized::Router::<1>::from_positions(&[0, 1], &[1, 2]);
    let mut filter = Mask::FULL;
    first.mark(&mut filter);
    assert!(!filter.has(0) && !filter.has(1) && filter.has(2) && first.may_have_marked(&filter));
    // A later router sets a bit that the first had reset.
    let second = generalized::Router::<1>::from_positions(&[5], &[0]);
    second.mark(&mut filter);
    assert!(!first.may_have_marked(&filter));
    let later = second.trace(&filter, &Touched::default()).unwrap();
    assert!(first.may_have_marked_before(&filter, &later));
}

#[test]
fn bounds_match_the_published_ones() {
    for (k0, k1, bound) in [(1, 1, 0.25), (2, 2, 0.0625), (2, 3, 0.0346), (4, 4, 0.0039)] {
        assert!((rate_bound(k0, k1) - bound).abs() < 5e-5, "{k0}, {k1}");
    }
}

#[test]
fn false_negatives_of_the_oldest_element_match_the_published_ones() {
    let many = 1 << 20;
    let oldest = |ratio, k0, k1, n: u64| Formulas::new(ratio * n, k0, k1).unwrap().false_negative(n - 1);
    for (ratio, k0, k1, printed) in
        [(128, 2, 2, 0.0601), (256, 2, 3, 0.0456), (512, 2, 3, 0.0231), (512, 2, 2, 0.0155)]
    {
        assert!((oldest(ratio, k0, k1, many) - printed).abs() < 5e-5, "{ratio}, {k0}, {k1}");
    }
    assert!((oldest(128, 2, 2, 16) - 0.0565).abs() < 5e-5);
}

#[test]
fn rates_of_256_bits_and_16_elements_match_published_and_measured_ones() {
    let formulas = Formulas::new(256, 4, 4).unwrap();
    for (zeros, printed) in [(1.0, 0.00071), (0.0, 0.00068), (0.5, 0.0042)] {
        assert!((formulas.false_positives(16, zeros) - printed).abs() < printed * 0.01);
    }
    let mean = formulas.mean_false_negatives(16);
    assert!((mean - 0.516).abs() < 5e-4);
    let builds = 2000u64;
    let mut missed = 0u32;
    for build in 0..builds {
        let routers: Vec<_> = (0..16u8).map(|n| generalized::Router::<8>::new(&[n], build, 4, 4)).collect();
        let mut filter = Mask::FULL;
        routers.iter().for_each(|router| router.mark(&mut filter));
        missed += routers.iter().filter(|router| !router.may_have_marked(&filter)).count() as u32;
    }
    let measured = f64::from(missed) / (builds * 16) as f64;
    // The mean of a build deviates by about an eighth; the formula assumes independent bits.
    assert!((measured - mean).abs() < 4.0 * 0.125 / (builds as f64).sqrt() + 0.005, "{measured}");
}

#[test]
fn formulas_of_invalid_filters_are_refused() {
    assert!(Formulas::new(0, 1, 1).is_err() && Formulas::new(8, 0, 0).is_err());
    assert!(Formulas::new(1, 1, 1).unwrap().false_positives(3, 0.5).is_finite());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(8), failure_persistence: None, ..Default::default() })]

    /// This holds whatever the sender wrote into the header, and however many routers undo the
    /// marks of others.
    #[test]
    fn path_is_never_missed(seed: u64, nodes in 2usize..80, ends: [u16; 2], start: [u32; 2]) {
        let graph = Graph::barabasi_albert(nodes, 1, seed).unwrap();
        let [from, to] = ends.map(|end| usize::from(end) % nodes);
        let path = graph.path(from, to);
        let address = |node| graph.address_bytes(node);

        let routers: Vec<_> = (0..nodes).map(|node| generalized::Router::<2>::new(&address(node), seed, 2, 2)).collect();
        let mut filter = Mask::from_words(start);
        path.iter().for_each(|node| routers[*node].mark(&mut filter));
        let found = walk_paths(&graph, to, Touched::default(), 100_000, |node, later| routers[node].trace(&filter, later));
        prop_assert!(found.complete && path.iter().all(|node| found.routers.contains(node)));

        let routers: Vec<_> = (0..nodes).map(|node| header::Router::<2>::new(&address(node), seed, 3)).collect();
        let mut filter = Mask::from_words(start);
        path.iter().for_each(|node| routers[*node].mark(&mut filter));
        let found = walk(&graph, to, (), |node, ()| routers[node].may_have_marked(&filter).then_some(()));
        prop_assert!(path.iter().all(|node| found.routers.contains(node)));
    }

    #[test]
    fn random_packets_do_not_panic(packet: Vec<u8>, first in prop::sample::select(vec![0x45u8, 0x4f, 0x60, 0x6f])) {
        let _ = Invariant::from_packet(&packet);
        let _ = Invariant::from_packet(&[vec![first], packet].concat());
    }
}
