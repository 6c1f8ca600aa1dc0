//! Flows that may be among the largest.

use crate::capture::Flow;
use std::collections::HashMap;

/// How many counters are kept after a purge, and at most.
const KEPT: usize = 1024;
const MOST: usize = 2 * KEPT;

/// The counters of Misra and Gries (1982). When there are too many, all are lowered by what the 1025th largest has, and those with
/// nothing left go. Each purge takes that much from at least 1025 counters, so that together they lower a flow by less than one packet in
/// 1024: whoever has more is here.
#[derive(Debug, Default)]
pub struct Heavy {
    counters: HashMap<Flow, u64>,
}

impl Heavy {
    /// Counts a packet.
    pub fn record(&mut self, flow: Flow) {
        *self.counters.entry(flow).or_insert(0) += 1;
        if self.counters.len() > MOST {
            self.purge();
        }
    }

    /// The flows that are left.
    pub fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.counters.keys()
    }

    fn purge(&mut self) {
        let mut counts: Vec<u64> = self.counters.values().copied().collect();
        let place = counts.len() - 1 - KEPT;
        let (_, lower, _) = counts.select_nth_unstable(place);
        let lower = *lower;
        self.counters.retain(|_, count| {
            *count = count.saturating_sub(lower);
            *count > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_more_than_one_packet_in_1024_is_kept() {
        let flow = |number: u32| Flow {
            source: number.to_be_bytes().into(),
            destination: [0; 4].into(),
            protocol: 0,
            ports: (0, 0),
        };
        let mut heavy = Heavy::default();
        // Ten flows that have one packet in 1000 each, all of them at the beginning, among ever new ones.
        let packets = 400_000;
        for number in 0..packets {
            heavy.record(if number < packets / 100 { flow(number % 10) } else { flow(number) });
            assert!(heavy.counters.len() <= MOST);
        }
        for number in 0..10 {
            assert!(heavy.counters.contains_key(&flow(number)), "{number}");
        }
    }
}
