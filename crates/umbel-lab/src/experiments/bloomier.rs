//! E10: the Bloomier filter: its worked example, its size, and the purpose of its masks.

use super::prelude::*;
use crate::trace::elements;
use umbel::bloomier::textbook::{Element, fill, lookup, match_in_rounds};
use umbel::hash::reduce;
use umbel::spec::{Construction, KindOptions};
use umbel::{Bloomier, Digest, Hasher, Spec};

pub struct Values;

/// Returns the cells of a digest, one in each of `k` equal segments.
fn neighbours(digest: Digest, k: u64, segment: u64) -> Vec<usize> {
    (0..k).zip(digest.stream()).map(|(i, x)| (i * segment + reduce(x, segment)) as usize).collect()
}

impl Experiment for Values {
    fn about(&self) -> About {
        About {
            id: "E10",
            chapter: Chapter::Counts,
            title: "Maps: their size, and the purpose of masks",
            sources: &[CHAZELLE, MOLLOY, HONOROFF],
            claim: "A table of little more than 1.22 cells per key can be solved with three cells \
                    per key, and one of 1.30 with four; these are the thresholds of random \
                    hypergraphs, and Chazelle et al. ask for more. With masks, a key that is not \
                    in the map finds a value with the probability |R| / 2^q.",
            set_up: "The worked example by hand; sets of 20 000 keys in tables of growing size; \
                     and maps of 5000 keys with four values in cells of eight bits, queried with \
                     strangers.",
            advice: "Give a map 1.25 cells per key with three cells each, and add bits to the \
                     cells until strangers find values as rarely as you need.",
            command: "`umbel map build`",
            seconds: [3, 20],
            timed: false,
            parameters: &[],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        example(&mut findings);
        thresholds(lab, &mut findings);
        strangers(lab, &mut findings)?;
        findings.verdict =
            "The example is reproduced word for word. Tables can always be solved from 1.25 cells \
             per key with three cells, and from 1.32 with four. The rate is that of the formula; \
             without masks it depends on the content of the table."
                .into();
        Ok(findings)
    }
}

fn example(findings: &mut Findings) {
    let elements = elements();
    let order = match_in_rounds(&elements, 10).unwrap_or_default();
    let table = fill(&elements, &order, 10, |element, _| element.value);
    findings.that(
        "the table of the example is 0xa2, 0xc9, 0x43, 0xcf in cells 2, 3, 6 and 7",
        table == [0, 0, 0xa2, 0xc9, 0, 0, 0x43, 0xcf, 0, 0],
    );
    let all = elements.iter().all(|element| lookup(&table, element) == element.value);
    findings.that("all four keys find their values", all);
    // The printed update also adds the key's own cell, which is right only while that holds 0.
    let written_over = |own_cell_too: bool| {
        let mut table = table.clone();
        for matched in &order {
            let element = &elements[matched.element];
            if !own_cell_too {
                table[matched.cell] = 0;
            }
            table[matched.cell] = !element.value & 0xff ^ lookup(&table, element);
        }
        elements.iter().filter(|element| lookup(&table, element) == !element.value & 0xff).count() as f64
    };
    let claim = "keys that find their new values after the table is overwritten, own cells";
    findings.near(format!("{claim} added"), written_over(true), 0.0, 0.0).shows("e52");
    findings.near(format!("{claim} left out"), written_over(false), 4.0, 0.0).shows("e52");
}

fn thresholds(lab: &Lab, findings: &mut Findings) {
    let (keys, tries) = (20_000u64, lab.either(6, 40));
    let mut sweep = Sweep::new("thresholds").chart(
        "thresholds",
        "Tables of 20 000 keys that can be solved",
        Axis::linear("cells per key"),
        Axis::linear("share that can be solved"),
    );
    for (k, ratios) in [
        (3u64, &[1.18, 1.20, 1.21, 1.22, 1.23, 1.24, 1.25, 1.27][..]),
        (4, &[1.25, 1.27, 1.28, 1.29, 1.30, 1.31, 1.32, 1.34]),
    ] {
        for ratio in ratios {
            let segment = (keys as f64 * ratio) as u64 / k;
            let solved = (0..tries).filter(|number| {
                let hasher = lab.hasher(*number);
                let digests = lab.digests(&hasher, &Keys::of_build(*number).members(keys));
                let element =
                    |digest| Element { neighbours: neighbours(digest, k, segment), mask: 0, value: 0 };
                let elements: Vec<Element> = digests.into_iter().map(element).collect();
                match_in_rounds(&elements, (k * segment) as usize).is_some()
            });
            let share = solved.count() as f64 / tries as f64;
            let (none, all) = if k == 3 { (1.20, 1.25) } else { (1.27, 1.32) };
            let claim = format!("k = {k}: share of tables solved with {ratio} cells per key");
            sweep
                .at(*ratio)
                .cell("k", k)
                .value("cells_per_key", *ratio, 2)
                .value("solved", share, 3)
                .line(format!("k = {k}"), k as usize - 3)
                .when(*ratio == none, |point| point.at_most(claim.clone(), 0.0))
                .when(*ratio == all, |point| point.at_least(claim, 1.0));
        }
    }
    findings.add(sweep);
}

fn strangers(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, builds, queries) = (5000u64, 10, lab.either(100_000, 1_000_000));
    let mut options = KindOptions::default();
    options.bloomier.segments = Some(3);
    let (mut masked, mut plain) = (0.0, 0.0);
    for number in 0..builds {
        let (keys, hasher) = (Keys::of_build(100 + number), lab.hasher(number));
        let spec = Spec::new(n, 4.0 / 256.0)?.with_hasher(hasher.clone()).with_options(options.clone());
        let pairs = lab.digests(&hasher, &keys.members(n)).into_iter().zip((0..n).map(|i| i % 4)).collect();
        let map = Bloomier::from_pairs(
            &spec,
            pairs,
            None,
            &Construction { threads: 1, ..Construction::default() },
        )?;
        let strangers = lab.digests(&hasher, &keys.strangers(queries));
        let found = strangers.iter().filter(|digest| map.get_digest(**digest).is_some()).count();
        masked += found as f64 / (queries * builds) as f64;
        plain += without_masks(lab, &hasher, keys, n) / builds as f64;
    }
    let tolerance = 4.0 * (4.0 / 256.0 / (queries * builds) as f64).sqrt() + 1e-4;
    let mut sweep = Sweep::new("strangers");
    sweep
        .row()
        .cell("masks", "with")
        .value("rate", masked, 6)
        .near("share of strangers that get a value, with masks", 4.0 / 256.0, tolerance)
        .shows("e58")
        .hidden(1.0 - masked)
        .near("share of strangers that get none, with masks", 1.0 - 4.0 / 256.0, tolerance)
        .shows("e50");
    // Three empty cells give 0, which is a value; other sums are random.
    let empty = 1.0 - 1.0 / 1.23;
    let expected = 4.0 / 256.0 + 252.0 / 256.0 * f64::powi(empty, 3);
    let chance = 4.0 * (expected / (20_000 * builds) as f64).sqrt();
    let claim = "share of strangers that get a value from the same table without masks";
    // Tables have slightly more than 1.23 cells per key.
    let tolerance = chance + 0.03 * expected;
    sweep.row().cell("masks", "without").value("rate", plain, 6).near(claim, expected, tolerance);
    findings.add(sweep);
    Ok(())
}

/// Returns the share of strangers that get a value if a table that was built with masks is queried
/// without.
fn without_masks(lab: &Lab, hasher: &Hasher, keys: Keys, n: u64) -> f64 {
    let queries = 20_000;
    let strangers = lab.digests(hasher, &keys.strangers(queries));
    let members = lab.digests(hasher, &keys.members(n));
    let segment = (1.23 * n as f64 + 32.0) as u64 / 3;
    // Try other digests until a table can be solved.
    for salt in 0.. {
        let element = |digest: Digest, mask, value| Element {
            neighbours: neighbours(digest.salted(salt), 3, segment),
            mask,
            value,
        };
        let elements: Vec<Element> = members
            .iter()
            .zip(0..)
            .map(|(digest, i)| element(*digest, digest.salted(!0).get() >> 56, i % 4))
            .collect();
        let cells = 3 * segment as usize;
        let Some(order) = match_in_rounds(&elements, cells) else { continue };
        let table = fill(&elements, &order, cells, |element, _| element.value);
        let found = strangers.iter().filter(|digest| lookup(&table, &element(**digest, 0, 0)) < 4).count();
        return found as f64 / queries as f64;
    }
    f64::NAN
}
