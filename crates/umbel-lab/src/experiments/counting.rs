//! E3: counting filters: removal, the overflow of counters, and the problems that they do not
//! solve.

use super::prelude::*;
use std::f64::consts::LN_2;
use umbel::counting::{Options, Overflow};
use umbel::hash::reduce;
use umbel::key::Hashed;
use umbel::sizing::{KPolicy, Params, counting};
use umbel::{Counting, Digest, Hasher, Removed};

pub struct Counters;

const HASHES: Parameter = Parameter::count("k", "counters per key", [5; 2], [1, 16]);
const KEYS: Parameter =
    Parameter::count("n", "keys in each filter of the overflow test", [20_000; 2], [1000, 100_000]);
const BUILDS: Parameter =
    Parameter::count("builds", "filters of the overflow test", [40, 16_000], [1, 100_000]);
const MEMBERS: Parameter = Parameter::count(
    "members",
    "keys in the filter from which strangers are removed",
    [10_000; 2],
    [1000, 1_000_000],
);
const RATE: Parameter = Parameter::real("p", "rate of that filter", [0.01; 2], [1e-4, 0.2]);

/// The number of overflowed counters at which four standard errors are 10 %.
const MIN_OVERFLOWS: f64 = 1600.0;

impl Experiment for Counters {
    fn about(&self) -> About {
        About {
            id: "E3",
            chapter: Chapter::Kinds,
            title: "Counting filters: removal, overflow, and what they do not solve",
            sources: &[FAN_CAO, SCHIERZ, UNTITLED, HONOROFF],
            claim: "With counters instead of bits, keys can be removed. Four bits per counter are \
                    enough, as a counter reaches 16 with a probability below 1.37e-15. A removal \
                    is safe if it stops at a counter that is zero.",
            set_up: "Keys are inserted and removed until nothing is left. Sixteen copies of a key \
                     are inserted and fifteen removed, under each rule for full counters. In \
                     filters at half load, the share of counters with 2, 4 and 8 hits is compared \
                     with the Poisson tail, and judged where 10 % is at least four standard \
                     errors. Finally, strangers are removed from a filter at its capacity.",
            advice: "Remove only keys that were certainly inserted, and insert no key more than \
                     fifteen times; no check inside the filter can replace this care.",
            command: "`umbel build --kind counting` and `umbel remove`",
            seconds: [1, 20],
            timed: false,
            parameters: &[HASHES, KEYS, BUILDS, MEMBERS, RATE],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        round_trip(lab, &mut findings)?;
        copies(lab, &mut findings)?;
        overflow(lab, &mut findings)?;
        strangers(lab, &mut findings)?;
        findings.verdict =
            "Removed keys leave no trace, and counters overflow as rarely as the Poisson tail \
             says: for four bits, theory puts the probability twenty times below the published \
             bound. But copies of one key fill its counters in a filter of any size, and a \
             stranger that the filter takes for a member passes every check: its removal makes the \
             filter forget members."
                .into();
        Ok(findings)
    }
}

fn options(overflow: Overflow) -> Options {
    Options { counter_bits: 4, overflow }
}

fn is_empty(filter: &Counting) -> bool {
    filter.values().all(|value| value == 0)
}

/// Inserts and removes all keys; then single keys in a filter so small that probes of a key
/// coincide.
fn round_trip(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (k, hasher) = (lab.count(&HASHES) as u32, lab.hasher(0));
    let keys = Keys::of_build(0).members(lab.count(&MEMBERS));
    let digests = lab.digests(&hasher, &keys);
    let mut filter = Counting::new(20 * keys.len() as u64, k, options(Overflow::Sticky), hasher.clone())?;
    filter.insert_batch(&Hashed(&digests))?;
    // In reverse, since the order must not matter.
    for digest in digests.iter().rev() {
        filter.remove_digest(*digest);
    }
    findings.that("no counter is set after all keys are removed", is_empty(&filter));

    let mut small = Counting::new(10, 3, options(Overflow::Sticky), hasher)?;
    let (mut meet, mut left) = (0, 0);
    for digest in &digests[..1000] {
        small.insert_digest(*digest)?;
        meet += u64::from(small.stats().used_cells < 3);
        small.remove_digest(*digest);
        left += u64::from(!is_empty(&small));
    }
    findings.at_least(
        "of 1000 keys, those whose three probes coincide in a filter of ten counters",
        meet as f64,
        100.0,
    );
    findings.at_most("of 1000 keys, those whose removal leaves a counter set", left as f64, 0.0);
    Ok(())
}

/// Inserts and removes many copies of one key.
fn copies(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (k, hasher) = (lab.count(&HASHES) as u32, lab.hasher(0));
    let mut sweep = Sweep::new("copies");
    for cells in [10_000, 1_000_000] {
        // Take a key whose probes do not coincide; usually the first of a thousand.
        let mut key = Digest::default();
        for digest in lab.digests(&hasher, &Keys::of_build(1).members(1000)) {
            let mut filter = Counting::new(cells, k, options(Overflow::Sticky), hasher.clone())?;
            filter.insert_digest(digest)?;
            key = digest;
            if filter.stats().used_cells == u64::from(k) {
                break;
            }
        }
        for rule in Overflow::ALL {
            let mut filter = Counting::new(cells, k, options(rule), hasher.clone())?;
            let inserted = (0..16).filter(|_| filter.insert_digest(key).is_ok()).count();
            let mut removed = 0;
            for _ in 0..15 {
                removed += u64::from(filter.remove_digest(key) == Removed::Removed);
            }
            let found = filter.contains_digest(key);
            let of = format!("{cells} counters of four bits");
            let row = sweep
                .row()
                .cells([("counters", &cells), ("rule", &rule)])
                .count("inserted", inserted as u64)
                .cells([("removed", &removed), ("found", &found)]);
            match rule {
                Overflow::Sticky => {
                    let claim =
                        "full counters stick: after 16 insertions and 15 removals of a key it is found";
                    row.that(format!("{of}, {claim}"), found).shows("e54")
                }
                Overflow::Decrement => {
                    let claim = "full counters are decremented: after the same the key is forgotten";
                    row.that(format!("{of}, {claim}"), !found).shows("e54")
                }
                Overflow::Error => {
                    let claim = format!("{of}: insertions of one key before a counter would overflow");
                    row.near(claim, 15.0, 0.0).shows("e43")
                }
            };
        }
    }
    findings.add(sweep);
    Ok(())
}

/// Counts the counters with 2, 4 or 8 hits, over many filters.
fn overflow(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, k, builds) = (lab.count(&KEYS), lab.count(&HASHES) as u32, lab.count(&BUILDS));
    let cells = (n as f64 * f64::from(k) / LN_2).round() as u64;
    let load = n as f64 * f64::from(k) / cells as f64;
    // Four bits count to fifteen, which is enough for all three.
    let mut hits = [0u64; 16];
    for build in 0..builds {
        let hasher = lab.hasher(build);
        let mut filter = Counting::new(cells, k, options(Overflow::Sticky), hasher.clone())?;
        filter.insert_batch(&Hashed(&lab.digests(&hasher, &Keys::of_build(build).members(n))))?;
        filter.values().for_each(|value| hits[value as usize & 15] += 1);
    }
    let counters = (builds * cells) as f64;
    let mut sweep = Sweep::new("overflow").chart(
        "overflow",
        "Counters that overflow, with distinct keys at the best k",
        Axis::linear("bits of a counter"),
        Axis::log("share of counters"),
    );
    for bits in 1..=4u32 {
        let share = counting::overflow_share(load, bits)?;
        let above = counting::overflow_bound(1, bits)?;
        // Counters of four bits overflow too rarely to be observed.
        let overflown = (bits < 4).then(|| hits[1 << bits..].iter().sum::<u64>());
        let is_judged = share * counters >= MIN_OVERFLOWS;
        let claim = format!("{bits}-bit counters: share that overflows");
        sweep
            .at(bits.into())
            .cells([("counter_bits", &bits), ("counters", &counters)])
            .with(overflown, |point, overflown| {
                let point = point.cell("overflown", overflown);
                point.scientific("measured", overflown as f64 / counters, 4).dots("measured", 2)
            })
            .when(overflown.is_some() && is_judged, |point| point.near(claim, share, 0.1 * share))
            .scientific("poisson", share, 4)
            .line("Poisson tail", 0)
            .scientific("bound", above, 4)
            .dashes("bound of Fan et al.", 1);
    }
    sweep.near(
        "the bound for a counter of four bits, in units of 1e-15",
        counting::overflow_bound(1, 4)? * 1e15,
        1.3677,
        5e-5,
    );
    findings.add(sweep);
    Ok(())
}

/// A counting filter that checks while it removes: it decrements one counter after the other, and
/// stops at the first that is zero.
struct Hasty {
    counters: Vec<u8>,
    hashes: usize,
}

impl Hasty {
    fn cells(&self, digest: Digest) -> impl Iterator<Item = usize> + use<> {
        let cells = self.counters.len() as u64;
        digest.stream().take(self.hashes).map(move |x| reduce(x, cells) as usize)
    }

    fn insert(&mut self, digest: Digest) {
        self.cells(digest).for_each(|cell| self.counters[cell] = self.counters[cell].saturating_add(1));
    }

    fn remove(&mut self, digest: Digest) {
        for cell in self.cells(digest) {
            match self.counters[cell].checked_sub(1) {
                Some(less) => self.counters[cell] = less,
                None => return,
            }
        }
    }

    fn contains(&self, digest: Digest) -> bool {
        self.cells(digest).all(|cell| self.counters[cell] > 0)
    }
}

/// Removes strangers, as a user does who trusts the check.
fn strangers(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, p) = (lab.count(&MEMBERS), lab.number(&RATE));
    let params = Params::for_capacity(n, p, KPolicy::Round)?;
    let (keys, hasher): (Keys, Hasher) = (Keys::of_build(2), lab.hasher(2));
    let members = lab.digests(&hasher, &keys.members(n));
    // Enough strangers for about forty false positives.
    let strange = lab.digests(&hasher, &keys.strangers((2 * n).max((40.0 / p) as u64)));
    let mut filter = Counting::new(params.bits, params.hashes, options(Overflow::Sticky), hasher)?;
    filter.insert_batch(&Hashed(&members))?;
    let mut hasty = Hasty { counters: vec![0; params.bits as usize], hashes: params.hashes as usize };
    members.iter().for_each(|digest| hasty.insert(*digest));

    let mut sweep = Sweep::new("strangers").chart(
        "strangers",
        "Members lost when strangers are removed",
        Axis::linear("attempted removals of strangers"),
        Axis::linear("share of members lost"),
    );
    let (checked_first, first_zero) = ("checked first", "stopped at the first zero");
    sweep.series(checked_first, Mark::Path, 0, [(0.0, 0.0)]);
    sweep.series(first_zero, Mark::Path, 1, [(0.0, 0.0)]);
    let (mut accepted, mut asked, mut unharmed) = (0u64, 0u64, true);
    for chunk in strange.chunks(strange.len() / 20) {
        for digest in chunk {
            let taken_for_member = filter.contains_digest(*digest);
            let removed = filter.remove_digest(*digest) == Removed::Removed;
            unharmed &= taken_for_member || !removed;
            accepted += u64::from(removed);
            hasty.remove(*digest);
        }
        asked += chunk.len() as u64;
        let lost = members.iter().filter(|digest| !filter.contains_digest(**digest)).count();
        let lost_hastily = members.iter().filter(|digest| !hasty.contains(**digest)).count();
        sweep
            .at(asked as f64)
            .cells([("strangers", &asked), ("accepted", &accepted), ("lost_checked_first", &lost)])
            .hidden(lost as f64 / n as f64)
            .path(checked_first, 0)
            .cell("lost_checked_on_the_way", lost_hastily)
            .hidden(lost_hastily as f64 / n as f64)
            .path(first_zero, 1);
    }
    let last = |label| sweep.points(label).last().map_or(f64::NAN, |point| point.1);
    let (careful, hasty) = (last(checked_first), last(first_zero));
    sweep.that(
        "if all counters are checked first, \
         a removal is refused unless the filter takes the stranger for a member",
        unharmed,
    );
    sweep.at_least("strangers whose removal passes the check", accepted as f64, 1.0).shows("e35");
    sweep
        .at_least("members lost per removed stranger", careful * n as f64 / accepted as f64, 1.0)
        .shows("e35");
    sweep
        .at_least(
            "members lost when counters are checked one by one / when all are checked first",
            hasty / careful,
            // The rarer false positives are, the larger the difference.
            if p <= 0.01 { 2.0 } else { 1.1 },
        )
        .shows("e35");
    findings.add(sweep);
    Ok(())
}
