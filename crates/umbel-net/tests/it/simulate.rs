//! The promises of simulations: what they count agrees with exact theory, no loop escapes, no
//! document is lost, and the seed determines the report.
//!
//! Deviations are limited to 4.5 standard errors. A correct simulation exceeds that in 7 of a
//! million comparisons, and the seeds are fixed.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel_net::loops::Allowance;
use umbel_net::mask::Mask;
use umbel_net::routing::FilterShape;
use umbel_net::simulate::header::{self, Way};
use umbel_net::simulate::loops::{self, Route};
use umbel_net::simulate::{Comparison, routing};
use umbel_net::topology::Graph;
use umbel_net::traceback::chance::{bits_set, generalized_match, generalized_miss, plain_match};
use umbel_net::traceback::generalized::{Formulas, Router, Touched};

const MOST_DEVIATIONS: f64 = 4.5;

fn agrees(name: &str, comparison: &Comparison) {
    let (measured, expected) = (comparison.measured(), comparison.expected());
    let deviations = comparison.deviations();
    assert!(deviations.abs() < MOST_DEVIATIONS, "{name}: {measured} for {expected}, {deviations}");
}

/// Returns a network with long paths.
fn chain(nodes: usize) -> Graph {
    let links: Vec<_> = (1..nodes).map(|node| (node - 1, node, 1)).collect();
    Graph::new(nodes, &links).unwrap()
}

/// Returns networks of several kinds; the last one is not connected.
fn networks() -> [Graph; 5] {
    [
        Graph::abilene(),
        Graph::barabasi_albert(30, 2, 5).unwrap(),
        Graph::tree(3, 3).unwrap(),
        chain(25),
        Graph::parse(b"a b\nb c\nc d\nd e\ne a\nx y\ny z\nalone\n").unwrap(),
    ]
}

#[test]
fn false_alarms_and_drops_agree_with_the_markov_chain() {
    let mut alarms = 0.0;
    for (seed, graph) in (1..).zip(networks()) {
        for allowance in [Allowance::default(), Allowance { failures: 1, reprieves: 1 }] {
            let options = loops::Options { bits: 32, allowance, packets: 4000, seed };
            let report = loops::run(&graph, &options).unwrap();
            agrees("alarms", &report.alarms);
            agrees("drops", &report.dropped);
            alarms += report.alarms.measured() * 4000.0;
            assert_eq!((report.hops.paths(), report.alarms.trials()), (4000, 4000));
            assert_eq!(report.header_bits, 32 + u32::from(allowance.failures + allowance.reprieves));
            assert_eq!(report.memory_bytes, 8 * graph.links() as u64);
        }
    }
    assert!(alarms > 1000.0, "enough to reveal a mistake: {alarms}");
}

#[test]
fn every_packet_in_a_loop_is_caught_within_the_bound() {
    for graph in networks() {
        let report = loops::run(&graph, &loops::Options { packets: 10, ..Default::default() }).unwrap();
        let loops = report.loops;
        assert!(loops.packets > 50, "a network that makes {} loops", loops.packets);
        assert_eq!(loops.caught, loops.packets);
        assert!(loops.within.most() <= u64::from(loops.bound));
        let example = report.example.unwrap();
        assert_eq!(example.route.loop_length().map(|length| length as u64), Some(loops.lengths.most()));
        assert!(!example.route.nodes.contains(&example.target));
    }
}

#[test]
fn routes_end_or_return_to_where_they_were() {
    let next = [Some(1), Some(2), Some(3), Some(1), None];
    let route = Route::follow(0, 9, |node| next[node]);
    assert_eq!(
        (route.nodes.as_slice(), route.entry, route.loop_length()),
        (&[0, 1, 2, 3][..], Some(1), Some(3))
    );
    let links: Vec<_> = route.links().take(8).collect();
    assert_eq!(links, [[0, 1], [1, 2], [2, 3], [3, 1], [1, 2], [2, 3], [3, 1], [1, 2]]);
    let arrived = Route::follow(0, 2, |node| next[node]);
    assert_eq!((arrived.nodes.len(), arrived.entry, arrived.links().count()), (3, None, 2));
    assert_eq!(Route::follow(4, 0, |node| next[node]).nodes, [4]);
    // A loop of one link, back to itself, and of two.
    let two = Route::follow(0, 9, |node| Some(1 - node));
    assert_eq!(two.links().take(3).collect::<Vec<_>>(), [[0, 1], [1, 0], [0, 1]]);
}

#[test]
fn every_document_is_found_and_none_that_is_missing() {
    for graph in networks() {
        for bits in [16, 1024] {
            let shape = FilterShape { bits, hashes: 3, depth: 3 };
            let options = routing::Options { shape, documents: 4, queries: 300, seed: 3 };
            let report = routing::run(&graph, &options).unwrap();
            let present = report.present;
            assert_eq!((present.queries, present.found), (300, 300));
            assert_eq!(present.by_filters + present.false_promises + present.too_far, 300);
            assert!(present.filter_hops.mean() >= present.filter_shortest.mean());
            assert!(present.fallback_hops.mean() >= present.fallback_shortest.mean());
            assert_eq!((report.absent.queries, report.absent.found), (300, 0));
            assert_eq!(report.documents, 4 * graph.len() as u64);
        }
    }
}

#[test]
fn fill_and_false_matches_of_levels_agree_with_theory() {
    let mut wrong = 0.0;
    for (seed, graph) in (1..).zip(networks()) {
        for bits in [40, 300] {
            let shape = FilterShape { bits, hashes: 2, depth: 4 };
            let options = routing::Options { shape, documents: 5, queries: 1500, seed };
            let report = routing::run(&graph, &options).unwrap();
            assert_eq!(report.levels.len(), 4);
            for level in report.levels {
                agrees(&format!("level {} fill", level.level), &level.fill);
                agrees(&format!("level {} false matches", level.level), &level.wrong);
                wrong += level.wrong.measured() * 1500.0;
            }
        }
    }
    assert!(wrong > 1000.0, "enough to reveal a mistake: {wrong}");
}

#[test]
fn spread_of_the_fill_is_the_computed_one() {
    // The share of deviations beyond one standard error shows whether the error is right.
    let graph = Graph::barabasi_albert(40, 2, 5).unwrap();
    let shape = FilterShape { bits: 200, hashes: 3, depth: 3 };
    let squares: Vec<f64> = (0..60)
        .flat_map(|seed| {
            let options = routing::Options { shape, documents: 3, queries: 1, seed };
            let report = routing::run(&graph, &options).unwrap();
            report.levels.into_iter().map(|level| level.fill.deviations().powi(2))
        })
        .collect();
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    // The mean of 180 squares of a normal variable is within 4.5 sqrt(2 / 180) of 1; levels of the
    // same network are correlated, so at most sqrt(3) times that.
    assert!((mean - 1.0).abs() < 4.5 * (2.0f64 / 60.0).sqrt(), "{mean}");
}

#[test]
fn header_filters_agree_with_theory_and_ones_defeat_only_the_plain_one() {
    let mut wrong = 0.0;
    for (seed, graph) in (1..).zip(networks()) {
        let nodes = graph.len() as u64;
        for bits in [64, 128] {
            let options = header::Options { bits, packets: 200, seed, ..Default::default() };
            let report = header::run(&graph, &options).unwrap();
            agrees("bits set", &report.bits_set);
            agrees("forgotten", &report.forgotten);
            let [plain, full, simple, in_order] = report.ways[..] else { panic!() };
            for way in [plain, full, simple, in_order] {
                agrees(way.way.as_str(), &way.wrong);
                assert_eq!(way.packets, 200);
            }
            assert_eq!(plain.paths_found, 200);
            assert!(in_order.paths_found + in_order.unfinished >= 200);
            assert!(full.false_routers >= simple.false_routers);
            // All routers that are connected, but those of the path itself.
            if graph.parts().iter().all(|part| *part == 0) {
                assert_eq!(
                    full.false_routers + report.hops.paths() + (report.hops.mean() * 200.0).round() as u64,
                    200 * nodes
                );
            }
            wrong += [plain, simple, in_order]
                .map(|way| way.wrong.measured() * way.wrong.trials() as f64)
                .iter()
                .sum::<f64>();
            let example = report.example.unwrap();
            assert!(example.path.iter().all(|node| example.trace.routers.contains(node)));
            assert_eq!(example.false_routers().count() + example.path.len(), example.trace.routers.len());
        }
    }
    assert!(wrong > 200.0, "enough to reveal a mistake: {wrong}");
    assert_eq!(Way::ALL.map(Way::as_str).len(), 4);
}

#[test]
fn seed_determines_the_report() {
    let graph = Graph::nsfnet();
    let all = |seed| {
        let of_loops = loops::run(&graph, &loops::Options { packets: 200, seed, ..Default::default() });
        let of_routing = routing::run(&graph, &routing::Options { queries: 100, seed, ..Default::default() });
        let of_header = header::run(&graph, &header::Options { packets: 50, seed, ..Default::default() });
        [format!("{of_loops:?}"), format!("{of_routing:?}"), format!("{of_header:?}")]
    };
    let [first, again, other] = [1, 1, 2].map(all);
    assert_eq!(first, again);
    assert!(first.iter().zip(&other).all(|(first, other)| first != other));
}

#[test]
fn invalid_parameters_and_networks_without_links_are_refused() {
    let graph = Graph::abilene();
    let (l, r, h) = (loops::Options::default(), routing::Options::default(), header::Options::default());
    let many = Allowance { failures: 16, reprieves: 0 };
    assert!(loops::run(&graph, &loops::Options { bits: 100, ..l }).is_err());
    assert!(loops::run(&graph, &loops::Options { allowance: many, ..l }).is_err());
    assert!(header::run(&graph, &header::Options { bits: 0, ..h }).is_err());
    assert!(header::run(&graph, &header::Options { k0: 0, ..h }).is_err());
    assert!(header::run(&graph, &header::Options { k1: 99, ..h }).is_err());
    let shape = |bits, hashes, depth| routing::Options { shape: FilterShape { bits, hashes, depth }, ..r };
    assert!(
        routing::run(&graph, &shape(0, 3, 3)).is_err() && routing::run(&graph, &shape(64, 0, 3)).is_err()
    );
    assert!(routing::run(&graph, &shape(64, 3, 99)).is_err());
    assert!(routing::run(&graph, &shape(u32::MAX, 3, u32::MAX)).is_err(), "more memory than allowed");
    for documents in [0, u64::MAX] {
        assert!(routing::run(&graph, &routing::Options { documents, ..r }).is_err());
    }
    for text in ["a", "a\nb\nc"] {
        let lonely = Graph::parse(text.as_bytes()).unwrap();
        for message in [
            loops::run(&lonely, &l).unwrap_err().to_string(),
            routing::run(&lonely, &r).unwrap_err().to_string(),
            header::run(&lonely, &h).unwrap_err().to_string(),
        ] {
            assert!(message.contains("no links"), "{message}");
        }
    }
}

#[test]
fn forgetting_is_exact_where_the_formula_is_near() {
    for (bits, k0, k1) in [(256, 4, 4), (256, 2, 3), (64, 2, 2)] {
        let formulas = Formulas::new(bits.into(), k0, k1).unwrap();
        for later in [1, 5, 15] {
            let (exact, near) =
                (generalized_miss(bits, k0, k1, later), formulas.false_negative(later.into()));
            assert!((exact - near).abs() < 0.02, "{bits} {k0} {k1} {later}: {exact}, {near}");
        }
    }
    // If nobody resets, nothing is lost.
    assert_eq!([0, 1, 2].map(|later| generalized_miss(2, 0, 1, later)), [0.0; 3]);
    // A reset bit, and with probability 1/2 a set one. Both survive if the next router resets the
    // same bit. If it resets the other, a set bit is lost, and without one, the reset bit is lost if
    // the router does not set the bit that it also resets: 1/2 (1/2 + 1/4).
    assert!((generalized_miss(2, 1, 1, 1) - 0.375).abs() < 1e-12, "{}", generalized_miss(2, 1, 1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, rng_seed: RngSeed::Fixed(8), failure_persistence: None, ..Default::default() })]

    /// The chances of filters with any bits are those of routers with random addresses.
    #[test]
    fn chances_are_those_of_random_routers(words: [u32; 2], set: [u32; 2], k in prop::array::uniform2(1u32..4)) {
        let filter = Mask::<2>::from_words(words);
        let trials = 2000u32;
        let within = |count: u32, chance: f64| {
            let (count, trials) = (f64::from(count), f64::from(trials));
            (count - trials * chance).abs() <= 5.0 * (trials * chance * (1.0 - chance)).sqrt() + 1.0
        };
        // A router that came later and touched some bits.
        let positions: Vec<u32> = (0..64).filter(|bit| Mask::<2>::from_words(set).has(*bit)).take(12).collect();
        let (resets, sets) = positions.split_at(positions.len() / 2);
        let later_router = Router::<2>::from_positions(resets, sets);
        let mut marked = filter;
        later_router.mark(&mut marked);
        let later = later_router.trace(&marked, &Touched::default()).unwrap();
        let routers = || (0..trials).map(|n| Router::<2>::new(&n.to_le_bytes(), 7, k[0], k[1]));
        for touched in [Touched::default(), later] {
            let count = routers().filter(|router| router.may_have_marked_before(&marked, &touched)).count();
            prop_assert!(within(count as u32, generalized_match(&marked, &touched, k[0], k[1])));
        }
        let covered = (0..trials).filter(|n| filter.covers(&Mask::from_address(&n.to_le_bytes(), 7, k[0]))).count();
        prop_assert!(within(covered as u32, plain_match(&filter, k[0])));
    }
}

#[test]
fn number_of_set_bits_has_the_computed_mean_and_spread() {
    let (mean, variance) = bits_set(64, 4, 6);
    let counts: Vec<f64> = (0..4000u32)
        .map(|build| {
            let mut filter = Mask::<2>::EMPTY;
            (0..6u32).for_each(|router| {
                filter |= Mask::from_address(&[build, router].map(u32::to_le_bytes).concat(), 3, 4)
            });
            f64::from(filter.count_ones())
        })
        .collect();
    let measured = counts.iter().sum::<f64>() / 4000.0;
    let spread = counts.iter().map(|count| (count - measured).powi(2)).sum::<f64>() / 3999.0;
    assert!((measured - mean).abs() < 4.5 * (variance / 4000.0).sqrt(), "{measured} {mean}");
    assert!((spread / variance - 1.0).abs() < 4.5 * (2.0f64 / 4000.0).sqrt(), "{spread} {variance}");
}
