//! Latency: a batch waits for the slowest of the servers that it reaches.

use super::service::{Queues, Requests, Service, reached};
use super::{POPULAR, SKEW, hot};
use crate::experiments::prelude::*;
use crate::measure::Rate;
use crate::popularity::Zipf;
use crate::traffic::Dice;

/// Keys of a batch.
const BATCHES: [u64; 6] = [1, 4, 16, 64, 256, 1024];
/// Keys of the batches that are asked while popular keys are.
const BATCH: u64 = 64;
/// Share of the time in which each server is busy, and in which the busiest one is.
const BUSY: f64 = 0.5;
const BUSIEST: f64 = 0.7;
/// The quantile that is judged.
const TAIL: f64 = 0.99;

/// Returns the time after which a queue with this utilisation has forgotten its state.
fn pause(utilisation: f64) -> f64 {
    5.0 / (1.0 - utilisation.sqrt()).powi(2)
}

/// Measures batches of several sizes while all servers are equally busy.
pub fn fan_out(lab: &Lab, findings: &mut Findings) {
    let service = Service::new(lab, 1);
    let servers = service.servers;
    let probes = lab.either(4000, 20_000);
    let zipf = Zipf::new(1, 0.0);
    let mut requests = Requests::new(lab, service, &zipf, 0, 0).only_absent();
    let mut dice = Dice::new(lab, b"fans", 0);
    let mut queues = Queues::new(servers, BUSY * servers as f64);
    let mut numbers = vec![Vec::new(); BATCHES.len()];
    let mut latencies = numbers.clone();
    for _ in 0..probes {
        queues.advance(pause(BUSY), &mut requests, &mut dice);
        for (i, keys) in BATCHES.into_iter().enumerate() {
            let batch = requests.batch(keys, &mut dice);
            numbers[i].push(batch.len() as f64);
            latencies[i].push(slowest(&queues, &batch, &mut dice));
        }
    }
    let mut sweep = Sweep::new("batches").chart(
        "batches",
        format!("Latency of a batch on {servers} servers that are busy half of the time"),
        Axis::log("keys of the batch"),
        Axis::linear("latency / time to serve a request"),
    );
    let one = Batches::new(servers, 1);
    for (i, keys) in BATCHES.into_iter().enumerate() {
        let theory = Batches::new(servers, keys);
        let (number, latency) = (Rate::from_builds(&numbers[i], 1), Rate::from_builds(&latencies[i], 1));
        let slower = |than: f64| latencies[i].iter().filter(|latency| **latency > than).count() as u64;
        let (slow, tail) = (one.quantile(TAIL), theory.quantile(TAIL));
        let measured_tail = quantile(&latencies[i], TAIL);
        // Large batches hardly ever miss a server; chance explains a few of them.
        let rare = 4.0 / probes as f64;
        let keys_text = if keys == 1 { "1 key".into() } else { format!("{keys} keys") };
        let claim = |what: &str| format!("batch of {keys_text}: {what}");
        sweep
            .at(keys as f64)
            .cell("keys", keys)
            .value("servers_theory", theory.servers_reached(), 3)
            .value("servers", number.mean, 3)
            .near(claim("servers reached"), theory.servers_reached(), number.error() + rare)
            .value("mean_theory", theory.mean(), 3)
            .line("mean, theory", 0)
            .value("mean", latency.mean, 3)
            .dots("mean, measured", 0)
            .near(claim("mean latency"), theory.mean(), latency.error())
            .value("p99_theory", tail, 3)
            .line("99th percentile, theory", 1)
            .value("p99", measured_tail, 3)
            .dots("99th percentile, measured", 1)
            .judge(Criterion::share(
                claim("share slower than the 99th percentile of the theory"),
                slower(tail),
                probes,
                1.0 - TAIL,
                0.0,
            ))
            .value("slow", slower(slow) as f64 / probes as f64, 4)
            .judge(Criterion::share(
                claim("share slower than 99 of 100 single keys"),
                slower(slow),
                probes,
                1.0 - theory.at_most(slow),
                0.0,
            ));
    }
    let printed = "of requests to 100 servers, each slow in one of 100 cases: share that is slow";
    sweep.near(printed, 1.0 - TAIL.powi(100), 0.63, 0.005);
    findings.add(sweep);
}

/// Measures requests for popular keys, with one copy of each shard, with several, and behind a
/// cache.
pub fn popular(lab: &Lab, findings: &mut Findings) {
    let zipf = Zipf::new(lab.count(&POPULAR) as usize, lab.number(&SKEW));
    let probes = lab.either(2000, 10_000);
    let single = Service::new(lab, 1);
    // All set-ups get the requests that keep the busiest server as busy as it may be.
    let shares = Requests::new(lab, single, &zipf, 0, 0).shares();
    let rate = BUSIEST / shares.iter().copied().fold(0.0, f64::max);
    let cached = hot::cached(single.servers);
    let mut sweep = Sweep::new("popular");
    for (name, replicas, cached) in [
        ("one copy".to_string(), 1, 0),
        ("3 copies".to_string(), 3, 0),
        (format!("a cache of {cached} keys"), 1, cached),
    ] {
        let mut requests = Requests::new(lab, Service { replicas, ..single }, &zipf, cached, 0);
        let busy: Vec<f64> = requests.shares().iter().map(|share| share * rate).collect();
        let busiest = busy.iter().copied().fold(0.0, f64::max);
        let mut dice = Dice::new(lab, b"wait", 4 * replicas as u64 + u64::from(cached > 0));
        let mut queues = Queues::new(single.servers, rate);
        let (mut singles, mut batches, mut slow) = (Vec::new(), Vec::new(), 0);
        for _ in 0..probes {
            queues.advance(pause(BUSIEST), &mut requests, &mut dice);
            let server = requests.server(&mut dice);
            singles.push(server.map_or(0.0, |server| queues.latency(server, &mut dice)));
            let batch = requests.batch(BATCH, &mut dice);
            let latency = slowest(&queues, &batch, &mut dice);
            batches.push(latency);
            // The theory for exactly these servers.
            let faster: f64 =
                batch.iter().map(|server| 1.0 - (-(1.0 - busy[*server]) * latency).exp()).product();
            slow += u64::from(faster > TAIL);
        }
        let mean: f64 = busy.iter().map(|busy| busy / rate / (1.0 - busy)).sum();
        let singles = Rate::from_builds(&singles, 1);
        let claim = |what: &str| format!("{name}: {what}");
        sweep
            .row()
            .cell("set_up", &name)
            .value("busiest", busiest, 4)
            .value("mean_theory", mean, 3)
            .value("mean", singles.mean, 3)
            .near(claim("mean latency of single keys"), mean, singles.error())
            .value("batch_mean", Rate::from_builds(&batches, 1).mean, 3)
            .value("batch_p99", quantile(&batches, TAIL), 3)
            .judge(Criterion::share(
                claim(&format!(
                    "share of batches of {BATCH} keys slower than the 99th percentile of the theory"
                )),
                slow,
                probes,
                1.0 - TAIL,
                0.0,
            ));
        if replicas > 1 || cached > 0 {
            sweep.at_most(claim("share of the time in which the busiest server is busy"), busiest, BUSIEST);
        }
    }
    findings.add(sweep);
}

/// Returns the latency of a batch that reaches these servers now.
fn slowest(queues: &Queues, servers: &[usize], dice: &mut Dice) -> f64 {
    servers.iter().map(|server| queues.latency(*server, dice)).fold(0.0, f64::max)
}

/// Returns a quantile of measured values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

/// The theory of batches of evenly spread keys: each server answers in an exponentially distributed
/// time, as a queue with random arrivals does.
struct Batches {
    /// Probability of each number of servers.
    reached: Vec<f64>,
}

impl Batches {
    fn new(servers: usize, keys: u64) -> Batches {
        Batches { reached: reached(servers, keys) }
    }

    fn servers_reached(&self) -> f64 {
        self.reached.iter().enumerate().map(|(number, share)| number as f64 * share).sum()
    }

    /// Returns the mean latency: the largest of d such times has a mean of 1 + 1/2 + ... + 1/d of
    /// theirs.
    fn mean(&self) -> f64 {
        let mut harmonic = 0.0;
        let mut sum = 0.0;
        for (number, share) in self.reached.iter().enumerate().skip(1) {
            harmonic += 1.0 / number as f64;
            sum += share * harmonic;
        }
        sum / (1.0 - BUSY)
    }

    /// Returns the probability of a latency of at most `time`.
    fn at_most(&self, time: f64) -> f64 {
        let one = 1.0 - (-(1.0 - BUSY) * time).exp();
        self.reached.iter().enumerate().map(|(number, share)| share * one.powi(number as i32)).sum()
    }

    /// Returns the latency that this share of the batches does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1000.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.at_most(middle) < share { low = middle } else { high = middle }
        }
        high
    }
}
