//! E8d: methods of attribution in the same memory, for excerpts that were not sent and excerpts
//! that were spliced.

use super::prelude::*;
use crate::measure::Rate;
use crate::traffic::{Dice, Sent, names, pair, record};
use umbel_net::attribution::{Epoch, Method, Settings};

pub struct Methods;

const PAIRS: Parameter = Parameter::count("pairs", "pairs that send payloads", [100; 2], [10, 10_000]);
const PAYLOADS: Parameter = Parameter::count("payloads", "payloads per pair", [8, 20], [2, 1000]);
const EXCERPTS: Parameter =
    Parameter::count("excerpts", "excerpts of each kind and length in each trace", [40, 1000], [10, 100_000]);

/// Number of traces, each recorded with its own seed.
const TRACES: u64 = 5;
/// The smallest number of bytes of a payload, and the largest number that is added to it.
const MIN_PAYLOAD_BYTES: usize = 1000;
const MAX_EXTRA_BYTES: usize = 400;
/// The bytes of a block of equal size.
const BLOCK: usize = 32;
/// The lengths of excerpts.
const LENGTHS: [usize; 9] = [100, 150, 200, 250, 300, 400, 600, 800, 1000];
/// The length from which on winnowing has to be reliable.
const LONG_EXCERPT: usize = 400;
/// Sizes of an epoch, as shares of the payload's bytes.
const LITTLE_MEMORY: f64 = 0.02;
const MUCH_MEMORY: f64 = 0.1;
/// Smaller predictions are neither drawn nor compared.
const MIN_NOTICEABLE: f64 = 1e-6;

impl Experiment for Methods {
    fn about(&self) -> About {
        About {
            id: "E8d",
            chapter: Chapter::Networks,
            title: "Methods of attribution in the same memory",
            sources: &[SHANMUGASUNDARAM, PONEC],
            claim: "Hierarchical filters recognise excerpts that are spliced from payloads of one \
                    pair; block-based ones do not. Winnowing needs much less memory: with a \
                    fiftieth of the payload it decides excerpts of 400 bytes. Several instances of \
                    it name fewer wrong pairs than one in the same memory.",
            set_up: "Random payloads of 100 pairs, recorded by each method in epochs of the same \
                     size, 2 % and 10 % of the payload. Queries are for excerpts of 100 to 1000 \
                     bytes that were sent, that were not sent, and that are spliced: up to the end \
                     of some block from one payload, and from there on from another one of the \
                     same pair, at the places that both had. Then winnowing with one to four \
                     instances, in 2 %.",
            advice: "With little memory take winnowing and excerpts of at least 400 bytes; with a \
                     tenth of the payload take blocks, unless splicing is a threat.",
            command: "`umbel net record --method winnowing`",
            seconds: [4, 120],
            timed: false,
            parameters: &[PAIRS, PAYLOADS, EXCERPTS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let traces: Vec<Vec<Sent>> = (0..TRACES).map(|build| trace(lab, build)).collect();
        for memory in [LITTLE_MEMORY, MUCH_MEMORY] {
            methods(lab, &traces, memory, &mut findings)?;
        }
        instances(lab, &traces, &mut findings)?;
        findings.verdict =
            "In 2 % of the payload, winnowing names the fewest wrong pairs below 400 bytes, once \
             an excerpt is long enough for it. From 400 bytes on, hardly any wrong pair is \
             expected. In 10 %, block-based filters are better, and can judge 100 bytes. \
             Hierarchical ones are worse than those at each length if nobody sent the excerpt. But \
             block-based filters always name the pair of a spliced excerpt; hierarchical ones do \
             so more rarely the longer it is; and winnowing does so rarely, since a block that \
             contains the splice was never sent. Several instances name fewer wrong pairs than \
             one, although the same number is predicted for the usual excerpt: excerpts with few \
             blocks go wrong, and with several instances fewer excerpts have few blocks."
                .into();
        Ok(findings)
    }
}

/// Returns random payloads: the first one of each pair, then the second ones, and so on.
fn trace(lab: &Lab, build: u64) -> Vec<Sent> {
    let mut dice = Dice::new(lab, b"send", build);
    let pairs = lab.count(&PAIRS) as usize;
    let all = 0..pairs * lab.count(&PAYLOADS) as usize;
    let mut send = |number| {
        let length = MIN_PAYLOAD_BYTES + dice.below(MAX_EXTRA_BYTES + 1);
        Sent { pair: pair(number % pairs), payload: dice.bytes(length) }
    };
    all.map(&mut send).collect()
}

/// Records an epoch that takes this share of the payload's bytes.
fn record_in(settings: &Settings, memory: f64, seed: u64, sent: &[Sent]) -> Result<Epoch> {
    // The number of blocks is known only after recording.
    let about = *record(settings.clone(), seed, sent)?.about();
    let bits_per_block = 8.0 * memory * about.bytes as f64 / about.blocks as f64;
    record(Settings { bits_per_block, ..settings.clone() }, seed, sent)
}

/// Counts for excerpts of one length.
#[derive(Clone, Default)]
struct Counts {
    /// Excerpts that were attributed to their senders.
    found: u64,
    /// Spliced excerpts that were attributed to the pair that sent both parts.
    spliced: u64,
    /// Pairs named for excerpts that nobody sent, and their predicted number.
    wrong: u64,
    predicted: f64,
    /// The logarithm of the prediction for each excerpt.
    logarithms: Vec<f64>,
}

impl Counts {
    /// Returns the law of the wrong pairs. The filters of an epoch name each pair independently,
    /// with a small probability that is known for each excerpt.
    fn law(&self) -> Law {
        Law::Poisson { mean: self.predicted }
    }

    /// Returns the geometric mean of the predictions, and its relative standard error.
    fn usual(&self) -> (f64, f64) {
        let Rate { mean, deviation, .. } = Rate::from_builds(&self.logarithms, 1);
        (mean.exp(), deviation / (self.logarithms.len() as f64).sqrt())
    }
}

/// Queries excerpts of every kind, except those that are too short for the method. Also returns the
/// largest share of the payload's bytes that an epoch takes.
fn query(
    lab: &Lab,
    settings: &Settings,
    memory: f64,
    traces: &[Vec<Sent>],
) -> Result<(Vec<(usize, Counts)>, f64)> {
    let mut all = vec![Counts::default(); LENGTHS.len()];
    let (mut needed, mut kept) = (0, 0.0f64);
    let excerpts = lab.count(&EXCERPTS);
    for (sent, build) in traces.iter().zip(0..) {
        let mut dice = Dice::new(lab, b"find", build);
        let epoch = record_in(settings, memory, dice.below(1 << 40) as u64, sent)?;
        kept = kept.max(epoch.to_bytes()?.len() as f64 / epoch.about().bytes as f64);
        needed = epoch.needed();
        for (length, counts) in LENGTHS.into_iter().zip(&mut all).filter(|(length, _)| *length >= needed) {
            for _ in 0..excerpts {
                let (one, other) = two_of_a_pair(lab, sent, &mut dice);
                let from = dice.below(MIN_PAYLOAD_BYTES - length + 1);
                let excerpt = &one.payload[from..from + length];
                counts.found += u64::from(names(&epoch.find(excerpt)?.findings, one.pair));
                let spliced = spliced(excerpt, &other.payload[from..from + length], from, &mut dice);
                counts.spliced += u64::from(names(&epoch.find(&spliced)?.findings, one.pair));
                let found = epoch.find(&dice.bytes(length))?;
                counts.wrong += found.findings.len() as u64;
                counts.predicted += found.expected;
                counts.logarithms.push(found.expected.ln());
            }
        }
    }
    let asked = LENGTHS.into_iter().zip(all).filter(|(length, _)| *length >= needed);
    Ok((asked.collect(), kept))
}

/// Returns two payloads that one pair sent.
fn two_of_a_pair<'a>(lab: &Lab, sent: &'a [Sent], dice: &mut Dice<'_>) -> (&'a Sent, &'a Sent) {
    let (pairs, payloads) = (lab.count(&PAIRS) as usize, lab.count(&PAYLOADS) as usize);
    let (pair, one) = (dice.below(pairs), dice.below(payloads));
    let other = (one + 1 + dice.below(payloads - 1)) % payloads;
    (&sent[one * pairs + pair], &sent[other * pairs + pair])
}

/// Joins the first excerpt, up to the end of some block, and the rest of the other. Both begin at
/// this byte of their payloads, and each contributes a whole block.
fn spliced(one: &[u8], other: &[u8], from: usize, dice: &mut Dice<'_>) -> Vec<u8> {
    let first = (from + BLOCK).next_multiple_of(BLOCK);
    let last = (from + one.len() - BLOCK) / BLOCK * BLOCK;
    let cut = first + BLOCK * dice.below((last - first) / BLOCK + 1) - from;
    [&one[..cut], &other[cut..]].concat()
}

const NAMES: [&str; 3] = ["block-based", "hierarchical", "winnowing"];

/// Compares all methods in the same memory.
fn methods(lab: &Lab, traces: &[Vec<Sent>], memory: f64, findings: &mut Findings) -> Result<()> {
    let percent = 100.0 * memory;
    let excerpts = lab.count(&EXCERPTS);
    let asked = (excerpts * TRACES) as f64;
    let x = || Axis::linear("bytes of the excerpt");
    let sweep = Sweep::new(&format!("memory_{percent:.0}"));
    let is_little = memory == LITTLE_MEMORY;
    let mut sweep = match is_little {
        true => sweep.chart(
            "unrelated",
            "Pairs named for an excerpt that nobody sent, memory: 2 % of the payload",
            x(),
            Axis::log(&format!("pairs of {}", lab.count(&PAIRS))),
        ),
        false => sweep.chart(
            "spliced",
            "Spliced excerpts that are attributed, memory: 10 % of the payload",
            x(),
            Axis::linear("share of excerpts"),
        ),
    };
    let mut results = Vec::new();
    for (colour, (method, name)) in Method::ALL.into_iter().zip(NAMES).enumerate() {
        let (counts, kept) = query(lab, &Settings::for_method(method), memory, traces)?;
        let claim = format!("{name}, {percent:.0} %: memory per byte of payload");
        sweep.near(claim, kept, memory, 0.02 * memory);
        for (length, counts) in &counts {
            let (wrong, predicted) = (counts.wrong as f64 / asked, counts.predicted / asked);
            let claim = format!("{name}, {percent:.0} %, {length} bytes: wrong pairs");
            // A pair can be predicted at several places, but is named once.
            let drawn = predicted.min(lab.count(&PAIRS) as f64);
            sweep
                .at(*length as f64)
                .cells([("method", &name), ("bytes", &length)])
                .value("found", counts.found as f64 / asked, 4)
                .scientific("predicted", predicted, 3)
                .hidden(drawn)
                .when(is_little && drawn >= MIN_NOTICEABLE, |point| {
                    point.line(format!("{name}, predicted"), colour)
                })
                .value("wrong", wrong, 4)
                .judge(Criterion::count_at_most(claim, counts.wrong, counts.law()))
                // A few events are chance, and are not drawn.
                .when(is_little && counts.wrong >= 5, |point| point.dots(format!("{name}, counted"), colour))
                .value("spliced_found", counts.spliced as f64 / asked, 4)
                .when(!is_little, |point| point.path(name, colour));
        }
        let found: u64 = counts.iter().map(|(_, counts)| counts.found).sum();
        let claim = format!("{name}, {percent:.0} %: share of excerpts whose senders are found");
        let all = excerpts * TRACES * counts.len() as u64;
        sweep.near(claim, found as f64 / all as f64, 1.0, 0.0);
        results.push(counts);
    }
    compare(lab, &results, percent, &mut sweep);
    findings.add(sweep);
    Ok(())
}

/// Compares the results of the methods: block-based, hierarchical, winnowing.
fn compare(lab: &Lab, results: &[Vec<(usize, Counts)>], percent: f64, sweep: &mut Sweep) {
    let asked = (lab.count(&EXCERPTS) * TRACES) as f64;
    let [blocks, hierarchical, winnowing] = results else { return };
    let predicted = |counts: &Counts| counts.predicted / asked;
    // Which of two predictions is smaller means nothing where neither is ever seen.
    let noticeable = |counts: &Counts| predicted(counts).max(MIN_NOTICEABLE);
    let better =
        blocks.iter().zip(hierarchical).all(|(one, other)| noticeable(&one.1) <= noticeable(&other.1));
    sweep.that(
        format!(
            "{percent:.0} %, excerpts that nobody sent: \
         block-based is predicted to name fewer pairs than hierarchical at each length"
        ),
        better,
    );
    // Skip the lengths that are too short for winnowing, which come first.
    let judged = blocks.iter().skip(blocks.len() - winnowing.len()).zip(winnowing);
    if percent < 5.0 {
        let mut judged = judged.filter(|((length, _), _)| *length < LONG_EXCERPT);
        sweep.that(
            format!(
                "{percent:.0} %, below {LONG_EXCERPT} bytes: \
         winnowing is predicted to name fewer pairs than block-based, where it can judge"
            ),
            judged.all(|(one, other)| predicted(&other.1) < predicted(&one.1)),
        );
    } else {
        let mut judged = judged;
        sweep.that(
            format!(
                "{percent:.0} %: block-based is predicted to name fewer pairs than winnowing at each length"
            ),
            judged.all(|(one, other)| noticeable(&one.1) <= noticeable(&other.1)),
        );
    }
    let spliced = |of: &[(usize, Counts)]| {
        let sum: u64 = of.iter().map(|(_, counts)| counts.spliced).sum();
        sum as f64 / (of.len() as f64 * asked)
    };
    let claim = |name: &str| format!("{percent:.0} %: share of spliced excerpts that are attributed, {name}");
    sweep.near(claim("block-based"), spliced(blocks), 1.0, 0.0);
    sweep.at_most(claim("hierarchical"), spliced(hierarchical), 0.75);
    sweep.at_most(claim("winnowing"), spliced(winnowing), 0.2);
    if let (Some((_, shortest)), Some((_, longest))) = (hierarchical.first(), hierarchical.last()) {
        let ratio = longest.spliced as f64 / shortest.spliced as f64;
        sweep.at_most(claim("hierarchical, longest / shortest excerpts"), ratio, 0.6);
    }
    for (length, counts) in winnowing.iter().filter(|(length, _)| *length >= LONG_EXCERPT) {
        let claim = format!("{percent:.0} %, {length} bytes, winnowing: wrong pairs predicted per excerpt");
        sweep.at_most(claim, predicted(counts), 1e-4);
    }
}

/// Compares winnowing with one to four instances in the same memory.
fn instances(lab: &Lab, traces: &[Vec<Sent>], findings: &mut Findings) -> Result<()> {
    let asked = (lab.count(&EXCERPTS) * TRACES) as f64;
    let mut sweep = Sweep::new("instances").chart(
        "instances",
        "Winnowing with several instances, memory: 2 % of the payload",
        Axis::linear("bytes of the excerpt"),
        Axis::log("predicted wrong pairs / those of one instance"),
    );
    let mut single = Vec::new();
    for instances in 1..=4 {
        let settings = Settings { instances, ..Settings::for_method(Method::Winnowing) };
        let (counts, _) = query(lab, &settings, LITTLE_MEMORY, traces)?;
        for (at, (length, counts)) in counts.iter().enumerate() {
            let (wrong, predicted) = (counts.wrong as f64 / asked, counts.predicted / asked);
            let (usual, error) = counts.usual();
            let claim = |what: &str| format!("instances: {instances}, {length} bytes: {what}");
            let to_one = |what: &str| claim(&format!("predicted {what} / those of one instance"));
            let row = sweep
                .at(*length as f64)
                .cells([("instances", &instances), ("bytes", &length)])
                .scientific("usual", usual, 3)
                .scientific("predicted", predicted, 3)
                .value("wrong", wrong, 4)
                .when(at == 0, |point| {
                    point.judge(Criterion::count(claim("wrong pairs"), counts.wrong, counts.law(), 0.0))
                })
                .value("spliced_found", counts.spliced as f64 / asked, 4);
            if instances == 1 {
                single.push((usual, error, predicted));
            } else if *length <= LONG_EXCERPT {
                // Among longer excerpts, a single one with few blocks would dominate the mean.
                let (usual_one, error_one, predicted_one) = single[at];
                // The measured share, and four standard errors of the two means it is made of.
                let tolerance = 0.4 + 4.0 * usual / usual_one * error.hypot(error_one);
                row.hidden(predicted / predicted_one)
                    .path(format!("instances: {instances}"), instances as usize - 2)
                    .at_most(to_one("wrong pairs"), 0.9)
                    .hidden(usual / usual_one)
                    .when(*length == 200, |point| {
                        point.near(to_one("wrong pairs for the usual excerpt"), 1.0, tolerance)
                    });
            }
        }
    }
    findings.add(sweep);
    Ok(())
}
