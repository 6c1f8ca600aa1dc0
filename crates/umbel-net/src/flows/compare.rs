//! A comparison of the estimates with exact counts, a sample, and a table of counters of the same
//! size.

use crate::capture::Flow;
use std::collections::HashMap;
use umbel::space_code::Multiplicity;
use umbel::{Digest, Hasher, Key};

/// The smallest size of an exact counter: a digest that identifies the flow, and a number.
const COUNTER_BYTES: u64 = 16;

/// The number of packets per packet in the sample.
const PACKETS_PER_SAMPLE: u64 = 100;

/// The accuracy of the counts, by the number of packets of a flow.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The number of flows.
    pub flows: u64,
    /// The memory of the filter.
    pub filter_bytes: u64,
    /// The memory of the exact counts, in a hash table keyed by flow.
    pub exact_bytes: u64,
    /// The number of flows in the sample, and their memory at 16 bytes each.
    pub sampled: (u64, u64),
    /// The number of exact counters that fit in the filter's memory, at 16 bytes each: a digest and
    /// a number.
    pub counters: u64,
    /// The errors by size: 1 to 9 packets, 10 to 99, and so on up to the largest flow.
    pub decades: Vec<Decade>,
}

/// The flows of 10^i to 10^(i+1) - 1 packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Decade {
    /// The smallest number of packets.
    pub from: u64,
    /// The number of flows of this size.
    pub flows: u64,
    /// The errors of the filter's estimates.
    pub filter: Errors,
    /// The share of flows whose true number lies within the filter's 95 % interval.
    pub inside: f64,
    /// The errors of a sample of 1 % of all packets, times 100.
    pub sample: Errors,
    /// The errors of a table of exact counters with the filter's memory. Flows that arrive when it
    /// is full are not counted.
    pub table: Errors,
    /// The share of flows with a counter in that table.
    pub counted: f64,
}

/// Errors relative to the true number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// The mean error.
    pub bias: f64,
    /// The standard deviation of the errors.
    pub spread: f64,
}

/// Other methods of counting.
#[derive(Debug)]
pub struct Rivals {
    exact: HashMap<Flow, u64>,
    sample: HashMap<Digest, u64>,
    /// Counters, assigned first come, first served.
    table: HashMap<Digest, u64>,
    counters: u64,
    seed: u64,
}

impl Rivals {
    /// Returns empty counts, with a table of this many bytes.
    pub fn new(bytes: u64, seed: u64) -> Rivals {
        let counters = bytes / COUNTER_BYTES;
        Rivals { exact: HashMap::new(), sample: HashMap::new(), table: HashMap::new(), counters, seed }
    }

    /// Counts the packet with this number.
    pub fn record(&mut self, flow: Flow, digest: Digest, number: u64) {
        *self.exact.entry(flow).or_insert(0) += 1;
        // Sample at random: of every hundredth packet, flows with a regular rhythm would have all
        // or none.
        if Digest::from_hash(number).salted(self.seed).get() < u64::MAX / PACKETS_PER_SAMPLE {
            *self.sample.entry(digest).or_insert(0) += 1;
        }
        if let Some(count) = self.table.get_mut(&digest) {
            *count += 1;
        } else if (self.table.len() as u64) < self.counters {
            self.table.insert(digest, 1);
        }
    }

    /// Returns all flows and their numbers of packets.
    pub fn exact(&self) -> impl Iterator<Item = (&Flow, u64)> {
        self.exact.iter().map(|(flow, count)| (flow, *count))
    }

    /// Compares the estimates of all flows with the other methods.
    pub fn compare(
        &self,
        estimate: impl Fn(Digest) -> Multiplicity,
        hasher: &Hasher,
        filter_bytes: u64,
    ) -> Comparison {
        let mut decades: Vec<DecadeSums> = Vec::new();
        for (flow, exact) in self.exact() {
            let digest = flow.digest(hasher);
            let decade = exact.max(1).ilog10() as usize;
            if decades.len() <= decade {
                decades.resize_with(decade + 1, DecadeSums::default);
            }
            let sampled = self.sample.get(&digest).map_or(0, |count| count * PACKETS_PER_SAMPLE);
            decades[decade].add(exact, estimate(digest), sampled, self.table.get(&digest).copied());
        }
        // The number of buckets in std's table is a power of two, filled to 7/8; each has a control
        // byte beside its entry.
        let buckets = (self.exact.capacity() as u64 * 8 / 7).next_power_of_two();
        let sampled = self.sample.len() as u64;
        Comparison {
            flows: self.exact.len() as u64,
            filter_bytes,
            exact_bytes: buckets * (size_of::<(Flow, u64)>() as u64 + 1),
            sampled: (sampled, sampled * COUNTER_BYTES),
            counters: self.counters,
            decades: (0..).zip(&decades).map(|(decade, sums)| sums.decade(10u64.pow(decade))).collect(),
        }
    }
}

/// The sums of a decade.
#[derive(Default)]
struct DecadeSums {
    flows: u64,
    filter: Sums,
    inside: u64,
    sample: Sums,
    table: Sums,
    counted: u64,
}

/// The sum of numbers, and of their squares.
#[derive(Default)]
struct Sums(f64, f64);

impl DecadeSums {
    fn add(&mut self, exact: u64, estimate: Multiplicity, sampled: u64, counted: Option<u64>) {
        let x = exact as f64;
        self.flows += 1;
        self.filter.add(estimate.value / x - 1.0);
        self.inside += u64::from(estimate.low <= x && x <= estimate.high);
        self.sample.add(sampled as f64 / x - 1.0);
        self.table.add(counted.unwrap_or(0) as f64 / x - 1.0);
        self.counted += u64::from(counted.is_some());
    }

    fn decade(&self, from: u64) -> Decade {
        let share = |count: u64| count as f64 / self.flows.max(1) as f64;
        let errors = |sums: &Sums| sums.errors(self.flows);
        Decade {
            from,
            flows: self.flows,
            filter: errors(&self.filter),
            inside: share(self.inside),
            sample: errors(&self.sample),
            table: errors(&self.table),
            counted: share(self.counted),
        }
    }
}

impl Sums {
    fn add(&mut self, x: f64) {
        self.0 += x;
        self.1 += x * x;
    }

    fn errors(&self, count: u64) -> Errors {
        let n = count.max(1) as f64;
        let bias = self.0 / n;
        Errors { bias, spread: (self.1 / n - bias * bias).max(0.0).sqrt() }
    }
}
