//! Flow sizes: the tolerances of the space-code filters, on generated and on real packets.

use crate::common::real_captures;
use std::collections::HashMap;
use std::net::IpAddr;
use umbel::spec::KindOptions;
use umbel::{Digest, MultiResolution, SpaceCode, Spec};
use umbel_net::capture::{Flow, Packet, Reader, Timestamp};
use umbel_net::flows::{By, Comparison, Meter};

fn packet(flow: u32) -> Packet<'static> {
    Packet {
        number: 1,
        time: Timestamp::default(),
        source: IpAddr::from(flow.to_be_bytes()),
        destination: [10, 0, 0, 2].into(),
        protocol: 17,
        ports: Some((9, 53)),
        tcp: None,
        fragment: None,
        ip: &[],
        payload: &[],
        length: 60,
    }
}

/// Returns the packets of flows 1, 2, ..., as many of each as `sizes` has, in random order.
fn shuffled(sizes: &[u32], seed: u64) -> Vec<u32> {
    let all = (1u32..).zip(sizes).flat_map(|(flow, size)| std::iter::repeat_n(flow, *size as usize));
    let mut packets: Vec<u32> = all.collect();
    for at in (1..packets.len()).rev() {
        let other = Digest::from_hash(at as u64).salted(seed).get() % (at as u64 + 1);
        packets.swap(at, other as usize);
    }
    packets
}

/// Returns the sizes of a hundred thousand flows with about a million packets: flow i has 83 000/i.
fn zipf() -> Vec<u32> {
    (1..=100_000).map(|flow| (83_000 / flow).max(1)).collect()
}

/// Returns a specification with a noise of half a percent.
fn spec(packets: u64, flows: Option<u64>, seed: u64) -> Spec {
    let mut options = KindOptions::default();
    options.space_code.keys = flows;
    options.space_code.seed = seed;
    Spec::new(packets, 0.005).unwrap().with_options(options)
}

/// The relative errors of flows by their size, over several builds, and the final noise.
struct Errors {
    of: HashMap<u64, Vec<f64>>,
    inside: (u64, u64),
    noise: f64,
}

/// The expected figures by flow size, at a noise of half a percent: the bias, the standard
/// deviation, and the shares of flows within a quarter and within half.
const EXPECTED: [(u64, [f64; 4]); 7] = [
    (1, [-0.01, 0.39, 0.86, 0.86]),
    (5, [0.0, 0.15, 0.88, 0.995]),
    (20, [0.0, 0.14, 0.91, 1.0]),
    (100, [0.02, 0.23, 0.76, 0.97]),
    (1000, [0.02, 0.27, 0.61, 0.92]),
    (10_000, [0.02, 0.24, 0.76, 0.98]),
    (100_000, [0.0, 0.25, 0.64, 0.96]),
];

fn errors(sizes: &[u32], planned: u64, flows: Option<u64>, builds: u64) -> Errors {
    let mut errors = Errors { of: HashMap::new(), inside: (0, 0), noise: 0.0 };
    for seed in 0..builds {
        let packets = shuffled(sizes, seed);
        let mut meter = Meter::new(By::Source, &spec(planned, flows, seed)).unwrap();
        for flow in &packets {
            meter.record(&packet(*flow)).unwrap();
        }
        assert_eq!(meter.packets(), packets.len() as u64);
        errors.noise += meter.filter().levels().next().unwrap().noise / builds as f64;
        for (flow, exact) in (1..).zip(sizes) {
            // A tenth of the single packets is enough.
            if *exact == 1 && flow % 10 > 0 {
                continue;
            }
            // Sizes within 15 %, since there are few large flows.
            let near = |size: u64| u64::from(*exact).abs_diff(size) * 100 <= size * 15;
            let Some((size, ..)) = EXPECTED.iter().find(|(size, ..)| near(*size)) else { continue };
            let estimate = meter.estimate(&By::Source.flow(&packet(flow)));
            let exact = f64::from(*exact);
            errors.of.entry(*size).or_default().push(estimate.value / exact - 1.0);
            errors.inside.0 += u64::from(estimate.low <= exact && exact <= estimate.high);
            errors.inside.1 += 1;
        }
    }
    errors
}

impl Errors {
    /// Checks that all figures are within 0.04, plus four standard errors where there are few
    /// flows.
    fn check(&self, quiet: bool) {
        for (size, expected) in EXPECTED {
            let Some(errors) = self.of.get(&size) else { continue };
            let n = errors.len() as f64;
            let mean = errors.iter().sum::<f64>() / n;
            let deviation = (errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / n).sqrt();
            let within = |share: f64| errors.iter().filter(|error| error.abs() <= share).count() as f64 / n;
            let found = [mean, deviation, within(0.25), within(0.5)];
            println!("size {size}: {n} flows, {found:.3?}, expected {expected:?}");
            // Without noise, small flows are counted better than that, and single packets exactly.
            let better = quiet && size <= 5;
            let [_, spread, quarter, half] = expected;
            let of_share = |share: f64| (share * (1.0 - share) / n).sqrt();
            let chance = [spread / n.sqrt(), spread / n.sqrt(), of_share(quarter), of_share(half)];
            for (i, (found, expected)) in found.into_iter().zip(expected).enumerate() {
                let off = match i {
                    1 if better => found - expected,
                    2.. if better => expected - found,
                    _ => (found - expected).abs(),
                };
                assert!(off <= 0.04 + 4.0 * chance[i], "{size}: {found} instead of {expected}");
            }
        }
        let share = self.inside.0 as f64 / self.inside.1 as f64;
        println!("noise {}, {share} of {} inside", self.noise, self.inside.1);
        assert!(share >= 0.94, "{share} are within their 95 % intervals");
    }
}

#[test]
fn million_packets_at_the_planned_noise() {
    // Mostly single packets, which fill the filter as planned.
    let mut sizes = vec![1; 900_000];
    for (size, count) in [(5, 4000), (20, 1000), (100, 200), (1000, 100), (10_000, 20), (100_000, 4)] {
        sizes.extend(vec![size; count]);
    }
    // The plan leaves out the packets of large flows that set no new bits, since each flow has at
    // most 32 groups.
    let errors = errors(&sizes, 940_000, None, 4);
    assert!((0.0045..0.0055).contains(&errors.noise), "{}", errors.noise);
    errors.check(false);
}

#[test]
fn million_packets_with_zipf_sizes() {
    let sizes = zipf();
    let errors = errors(&sizes, 1_010_000, Some(sizes.len() as u64), 6);
    assert!(errors.noise < 0.001, "large flows have at most 32 groups each: {}", errors.noise);
    errors.check(true);
}

#[test]
fn several_resolutions_distinguish_200_from_400_packets_and_one_does_not() {
    let pairs = 200;
    let mut one = SpaceCode::with_capacity(200_000, 0.005).unwrap();
    let mut several = MultiResolution::with_capacity(200_000, 0.005).unwrap();
    for flow in 0..2 * pairs {
        let flow = By::Source.flow(&packet(flow));
        for _ in 0..if flow.source < By::Source.flow(&packet(pairs)).source { 200 } else { 400 } {
            one.insert(&flow);
            several.insert(&flow);
        }
    }
    // The number of pairs in which the larger flow has the larger estimate.
    let right = |count: &dyn Fn(&Flow) -> f64| {
        let count = |flow| count(&By::Source.flow(&packet(flow)));
        (0..pairs).filter(|flow| count(*flow) < count(flow + pairs)).count()
    };
    let saturated = |flow: u32| one.count(&By::Source.flow(&packet(flow))).saturated;
    assert!((0..2 * pairs).filter(|flow| saturated(*flow)).count() > 370, "both sizes fill all 32 groups");
    let (blind, seeing) = (right(&|flow| one.count(flow).value), right(&|flow| several.count(flow).value));
    println!("{blind} and {seeing} of {pairs} pairs");
    // 6 % of the flows with 200 packets miss a group; the others cannot be distinguished.
    assert!(blind < 30, "{blind}");
    assert!(seeing > 180, "{seeing}");
    let value = |from: u32| {
        (from..from + pairs).map(|flow| several.count(&By::Source.flow(&packet(flow))).value).sum::<f64>()
            / 200.0
    };
    assert!((180.0..220.0).contains(&value(0)), "{}", value(0));
    assert!((360.0..440.0).contains(&value(pairs)), "{}", value(pairs));
}

fn measure(sizes: &[u32], bytes: u64) -> (Meter, Comparison) {
    let given = umbel::sizing::Given {
        n: Some(sizes.iter().map(|size| u64::from(*size)).sum()),
        m: Some(bytes * 8),
        ..Default::default()
    };
    let mut meter = Meter::new(By::Source, &Spec::from_given(given).unwrap()).unwrap().with_exact();
    for flow in shuffled(sizes, 5) {
        meter.record(&packet(flow)).unwrap();
    }
    let comparison = meter.comparison().unwrap();
    (meter, comparison)
}

#[test]
fn comparison_is_by_decade_and_at_equal_memory() {
    // 300 000 flows of few packets and some large ones, in a megabyte: a table of counters has room
    // for 65 536.
    let mut sizes = vec![2; 300_000];
    sizes.extend(vec![50; 2000]);
    sizes.extend(vec![3000; 100]);
    let (meter, comparison) = measure(&sizes, 1 << 20);
    assert_eq!(comparison.flows, 302_100);
    assert!(comparison.filter_bytes <= 1 << 20);
    assert_eq!(comparison.counters, comparison.filter_bytes / 16);
    assert!(comparison.exact_bytes > 10 * comparison.filter_bytes, "{comparison:?}");
    let decades: Vec<(u64, u64)> =
        comparison.decades.iter().map(|decade| (decade.from, decade.flows)).collect();
    assert_eq!(decades, [(1, 300_000), (10, 2000), (100, 0), (1000, 100)]);
    let [few, tens, none, thousands] = comparison.decades[..] else { panic!("{comparison:?}") };
    // The filter covers all flows. The table has a counter for only one small flow in five, and the
    // sample for hardly any.
    for decade in [few, tens, thousands] {
        assert!(decade.filter.bias.abs() < 0.15, "{decade:?}");
        assert!(decade.inside > 0.9, "{decade:?}");
    }
    assert!(tens.filter.spread < 0.4 && thousands.filter.spread < 0.4, "{comparison:?}");
    assert!((few.counted - 0.2).abs() < 0.05 && (few.table.bias + 0.8).abs() < 0.05, "{few:?}");
    assert!(few.sample.spread > 6.0 && few.sample.bias.abs() < 0.15, "{few:?}");
    assert!(tens.sample.spread > 1.2 && thousands.sample.spread < 0.25, "{comparison:?}");
    assert!(thousands.counted > 0.99 && thousands.table.bias > -0.1, "large flows come early: {thousands:?}");
    assert_eq!(none.flows, 0);

    let largest = meter.largest(150);
    assert_eq!(largest.len(), 150);
    assert!(largest[..100].iter().all(|flow| flow.exact == Some(3000)));
    assert!(largest[100..].iter().all(|flow| flow.exact == Some(50)));
    let expected: Vec<IpAddr> = (302_001..=302_100u32).map(|flow| flow.to_be_bytes().into()).collect();
    let found: Vec<IpAddr> = largest[..100].iter().map(|flow| flow.flow.source).collect();
    assert_eq!(found, expected);
}

#[test]
fn largest_flows_are_found_without_exact_counts() {
    let sizes = zipf();
    let mut meter = Meter::new(By::Source, &spec(1_010_000, None, 1)).unwrap();
    for flow in shuffled(&sizes, 3) {
        meter.record(&packet(flow)).unwrap();
    }
    let largest = meter.largest(20);
    assert!(largest.iter().all(|flow| flow.exact.is_none()));
    let numbers: Vec<u32> = largest
        .iter()
        .map(|flow| match flow.flow.source {
            IpAddr::V4(address) => u32::from(address),
            IpAddr::V6(_) => panic!("IPv4 was recorded"),
        })
        .collect();
    // They are ordered by estimate, so neighbours may change places, but no small flow is among
    // them.
    assert_eq!(numbers[0], 1);
    assert!(numbers.iter().all(|number| *number <= 40), "{numbers:?}");
    assert!((1..=8).all(|number| numbers.contains(&number)), "{numbers:?}");
    assert!(meter.comparison().is_none());
}

#[test]
fn every_flow_with_more_than_one_packet_in_1024_is_listed() {
    // Ten flows with one packet in 1000 each, all at the beginning, before a long series of new
    // flows.
    let packets = 400_000;
    let mut meter = Meter::new(By::Source, &spec(packets.into(), None, 1)).unwrap();
    for number in 0..packets {
        let flow = if number < packets / 100 { number % 10 } else { number };
        meter.record(&packet(flow)).unwrap();
    }
    let listed = meter.largest(usize::MAX);
    assert!(listed.len() <= 2048, "{}", listed.len());
    for number in 0..10 {
        let flow = By::Source.flow(&packet(number));
        assert!(listed.iter().any(|measured| measured.flow == flow), "{number}");
    }
}

#[test]
fn flows_are_defined_by_the_chosen_fields() {
    let packet = packet(0x0a00_0001);
    let names = By::NAMED.map(|by| by.name(&by.flow(&packet)));
    assert_eq!(names, ["10.0.0.1:9 10.0.0.2:53 udp", "10.0.0.1", "10.0.0.2", "10.0.0.1 10.0.0.2"]);
    let six = Packet { source: "fd00::1".parse().unwrap(), protocol: 58, ports: None, ..packet };
    assert_eq!(By::FiveTuple.name(&By::FiveTuple.flow(&six)), "fd00::1 10.0.0.2 icmp6");
    let six = Packet { source: "fd00::1".parse().unwrap(), protocol: 6, ..packet };
    assert_eq!(By::FiveTuple.name(&By::FiveTuple.flow(&six)), "[fd00::1]:9 10.0.0.2:53 tcp");
    // Other ports make another flow by five-tuple, but the same flow by addresses.
    let other = Packet { ports: Some((10, 53)), ..packet };
    for by in By::NAMED {
        assert_eq!(by.flow(&packet) == by.flow(&other), by != By::FiveTuple);
    }
}

#[test]
fn packets_share_a_flow_exactly_if_they_share_the_chosen_features() {
    // A naive oracle: the text of each feature.
    type Feature = fn(&Packet<'_>) -> String;
    let features: [(&str, Feature); 5] = [
        ("src", |packet| packet.source.to_string()),
        ("dst", |packet| packet.destination.to_string()),
        ("proto", |packet| packet.protocol.to_string()),
        ("sport", |packet| packet.ports.unwrap_or_default().0.to_string()),
        ("dport", |packet| packet.ports.unwrap_or_default().1.to_string()),
    ];
    let packets: Vec<Packet<'_>> = (0..64u8)
        .map(|bits| {
            let bit = |place: u8| bits >> place & 1;
            let six = |place: u8| format!("fd00::{}", bit(place)).parse().unwrap();
            let source = if bit(5) == 1 { six(0) } else { [10, 0, 0, bit(0)].into() };
            let ports = (bit(5) == 0).then_some((bit(3).into(), bit(4).into()));
            let destination = [10, 0, 1, bit(1)].into();
            Packet { source, destination, protocol: 6 + bit(2), ports, ..packet(0) }
        })
        .collect();
    for mask in 1..32usize {
        let chosen = || (0..5).filter(|place| mask >> place & 1 == 1).map(|place| features[place]);
        let by: By = chosen().map(|(name, _)| name).collect::<Vec<_>>().join(",").parse().unwrap();
        for (a, b) in packets.iter().flat_map(|a| packets.iter().map(move |b| (a, b))) {
            let same = chosen().all(|(_, text)| text(a) == text(b));
            let flows = (by.flow(a), by.flow(b));
            assert_eq!(flows.0 == flows.1, same, "{by}");
            assert_eq!(by.name(&flows.0) == by.name(&flows.1), same, "{by}");
        }
    }
}

#[test]
fn the_name_of_a_flow_shows_exactly_the_chosen_features() {
    let packet = Packet { protocol: 6, ports: Some((4711, 53)), ..packet(0x0a00_0107) };
    let six = Packet { source: "2001:db8:1:2:3::4".parse().unwrap(), ..packet };
    for (list, name, name_of_six) in [
        ("src", "10.0.1.7", "2001:db8:1:2:3::4"),
        ("dst", "10.0.0.2", "10.0.0.2"),
        ("src/24", "10.0.1.0/24", "2001:db8:1:2:3::4"),
        ("src/64", "10.0.1.7", "2001:db8:1:2::/64"),
        ("src/0/48", "0.0.0.0/0", "2001:db8:1::/48"),
        ("dst/31,proto", "-> 10.0.0.2/31 tcp", "-> 10.0.0.2/31 tcp"),
        ("proto", "tcp", "tcp"),
        ("sport", "4711:", "4711:"),
        ("dport", ":53", ":53"),
        ("src,dst", "10.0.1.7 -> 10.0.0.2", "2001:db8:1:2:3::4 -> 10.0.0.2"),
        ("dst,dport", "-> 10.0.0.2 :53", "-> 10.0.0.2 :53"),
        (
            "src,dst,proto,sport,dport",
            "10.0.1.7 -> 10.0.0.2 tcp 4711:53",
            "2001:db8:1:2:3::4 -> 10.0.0.2 tcp 4711:53",
        ),
    ] {
        let by: By = list.parse().unwrap();
        assert_eq!([packet, six].map(|packet| by.name(&by.flow(&packet))), [name, name_of_six], "{list}");
    }
}

#[test]
fn real_captures_are_counted_within_the_tolerances() {
    // All captures together, each with its own flows; several seeds, since there are few large
    // flows.
    let mut errors: Vec<(u64, f64)> = Vec::new();
    for seed in 0..20 {
        let by = if seed % 2 == 0 { By::FiveTuple } else { By::Source };
        let mut meter = Meter::new(by, &spec(80_000, None, seed)).unwrap().with_exact();
        for path in real_captures() {
            let mut reader = Reader::open(path).unwrap();
            while let Some(packet) = reader.next().unwrap() {
                meter.record(&packet).unwrap();
            }
        }
        assert!((60_000..80_000).contains(&meter.packets()), "{}", meter.packets());
        let flows = meter.largest(usize::MAX);
        errors.extend(flows.iter().map(|flow| {
            let exact = flow.exact.expect("counted");
            (exact, flow.estimate.value / exact as f64 - 1.0)
        }));
    }
    // From five packets on, use the worst figures of the specification for any size, with their
    // tolerance.
    for (from, to) in [(5, 9), (10, 99), (100, 999), (1000, u64::MAX)] {
        let errors: Vec<f64> =
            errors.iter().filter(|(exact, _)| (from..=to).contains(exact)).map(|(_, error)| *error).collect();
        let n = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / n;
        let deviation = (errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / n).sqrt();
        println!("from {from}: {n} flows, bias {mean:.3}, spread {deviation:.3}");
        assert!(n > 15.0, "{from}: {n}");
        let few = 4.0 * 0.27 / n.sqrt();
        assert!((-0.04 - few..=0.06 + few).contains(&mean), "{from}: {mean}");
        assert!((0.10 - few..=0.31 + few).contains(&deviation), "{from}: {deviation}");
    }
}
