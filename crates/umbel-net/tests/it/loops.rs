//! The promises of loop detection: the worked example is reproduced, no packet in a loop escapes,
//! and few others are lost.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel_net::loops::{Allowance, Header, Interface, Verdict, dropped, weight};
use umbel_net::mask::Mask;

/// Returns a mask from its picture, with the first bit on the left.
fn bits(picture: &str) -> Mask<1> {
    Mask::from_positions(
        (0..).zip(picture.bytes()).filter(|(_, bit)| *bit == b'1').map(|(position, _)| position),
    )
}

#[test]
fn worked_example_detects_the_loop_at_the_third_hop() {
    let mut header = Header::new(Allowance::default());
    assert_eq!(header.mark(&bits("0000100010"), 0), Verdict::Forward);
    assert_eq!(header.mark(&bits("1000000010"), 0), Verdict::Forward);
    assert_eq!(*header.filter(), bits("1000100010"));
    assert_eq!(header.mark(&bits("0000100010"), 0), Verdict::Drop);
}

#[test]
fn reprieves_are_spent_first_and_restored_by_each_failure() {
    let (mask, allowance) = (bits("111"), Allowance { failures: 1, reprieves: 2 });
    let mut header = Header::new(allowance);
    use Verdict::{Drop, Emptied, Forward, Reprieved};
    let expected = [Forward, Reprieved, Reprieved, Emptied, Forward, Reprieved, Reprieved, Drop, Drop];
    let seen = expected.map(|_| header.mark(&mask, allowance.reprieves));
    assert_eq!(seen, expected);
    let mut emptied = Header::new(allowance);
    (0..4).for_each(|_| assert_ne!(emptied.mark(&mask, 2), Drop));
    assert_eq!((*emptied.filter(), emptied.left()), (Mask::EMPTY, Allowance { failures: 0, reprieves: 2 }));
}

#[test]
fn allowance_of_a_received_header_is_capped() {
    let allowance = Allowance { failures: 2, reprieves: 1 };
    let forged = Header::received([7], Allowance { failures: 255, reprieves: 0 }, allowance);
    assert_eq!(forged.left(), Allowance { failures: 2, reprieves: 0 });
    assert_eq!(*forged.filter(), bits("111"));
}

#[test]
fn one_packet_in_a_thousand_is_lost_at_the_published_hop() {
    let hop = |bits, failures| {
        let shares = dropped(bits, weight(bits), Allowance { failures, reprieves: 1 }, 300).unwrap();
        1 + shares.iter().position(|share| *share >= 0.001).unwrap() as i64
    };
    for (bits, few, many) in [(32, 6, 28), (64, 10, 44), (128, 15, 68), (256, 28, 118)] {
        assert!((hop(bits, 0) - few).abs() <= 3, "{bits} bits: {}", hop(bits, 0));
        assert!((hop(bits, 2) - many).abs() <= 6, "{bits} bits: {}", hop(bits, 2));
    }
}

#[test]
fn measured_loss_matches_the_computed_loss() {
    let allowance = Allowance { failures: 1, reprieves: 1 };
    let (packets, hops) = (20_000u64, 30);
    let lost = |packet: &u64| {
        let mut header = Header::<1>::new(allowance);
        (0..hops).any(|hop| {
            let address = (packet * 100 + hop).to_le_bytes();
            Interface::new(&address, 5, allowance).pass(&mut header) == Verdict::Drop
        })
    };
    let share = (0..packets).filter(lost).count() as f64 / packets as f64;
    let computed = dropped(32, 3, allowance, hops as u32).unwrap()[hops as usize - 1];
    let chance = 4.0 * (computed * (1.0 - computed) / packets as f64).sqrt();
    assert!((share - computed).abs() < chance, "{share} against {computed}");
    assert!(computed > 0.1, "enough to reveal a mistake: {computed}");
}

#[test]
fn masks_have_the_same_weight_for_every_address() {
    let mut set = [0u32; 32];
    for n in 0..3200u32 {
        let mask = *Interface::<1>::new(&n.to_be_bytes(), 9, Allowance::default()).mask();
        assert_eq!(mask.count_ones(), 3);
        (0..32).filter(|position| mask.has(*position)).for_each(|position| set[position as usize] += 1);
    }
    // 300 each, with a deviation of 16.5.
    assert!(set.iter().all(|count| count.abs_diff(300) < 83), "{set:?}");
    assert_eq!(Mask::<2>::from_address(b"all of them", 1, 200), Mask::FULL);
}

#[test]
fn mask_changes_after_a_drop_and_then_rests() {
    let mut interface = Interface::<4>::new(&[2, 0, 0, 0, 0, 1], 1, Allowance::default());
    let first = *interface.mask();
    assert!(interface.redraw(100, 10));
    let second = *interface.mask();
    assert_ne!(first, second);
    assert!(!interface.redraw(109, 10) && *interface.mask() == second);
    assert!(interface.redraw(110, 10) && *interface.mask() != second);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let none = Allowance::default();
    assert!(dropped(0, 1, none, 1).is_err() && dropped(32, 0, none, 1).is_err());
    assert!(dropped(4, 5, none, 1).is_err() && dropped(5000, 5, none, 1).is_err());
}

/// Returns the number of hops that a packet makes in a loop after it came over a path, from its
/// entry on.
fn hops_in_loop<const W: usize>(path: u64, around: u64, seed: u64, allowance: Allowance) -> u32 {
    let interface = |n: u64| Interface::<W>::new(&n.to_le_bytes(), seed, allowance);
    let mut header = Header::new(allowance);
    if (around..around + path).any(|n| interface(n).pass(&mut header) == Verdict::Drop) {
        return 0;
    }
    let circle: Vec<_> = (0..around).map(interface).collect();
    circle.iter().cycle().take_while(|interface| interface.pass(&mut header) != Verdict::Drop).count() as u32
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(8), failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_packet_in_a_loop_escapes(
        path in 0u64..30, around in 1u64..40, seed: u64, failures in 0u8..6, reprieves in 0u8..6,
    ) {
        let allowance = Allowance { failures, reprieves };
        let most = allowance.most_hops(around as u32);
        prop_assert!(hops_in_loop::<1>(path, around, seed, allowance) <= most);
        prop_assert!(hops_in_loop::<8>(path, around, seed, allowance) <= most);
        // In a filter without false positives, a packet that enters at once makes exactly this many
        // hops.
        if around <= 4 {
            prop_assert_eq!(hops_in_loop::<256>(0, around, seed, allowance), most);
        }
    }
}
