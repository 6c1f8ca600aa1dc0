//! Popular keys: the requests of the server that has the most popular one, and what copies of its
//! shard and a cache in front of the servers change.

use super::service::{Requests, Service};
use super::{ABSENT, POPULAR, REPLICAS};
use crate::experiments::prelude::*;
use crate::measure::Rate;
use crate::popularity::Zipf;
use crate::traffic::Dice;

/// Exponents of Zipf's law.
const SKEWS: [f64; 5] = [0.6, 0.8, 0.99, 1.1, 1.2];

/// The deviation of a mean that chance explains, in standard errors. It is more than the four of
/// other experiments, because it is rare that two of the most popular keys share a server, and a
/// mean of rare events is not normally distributed.
const CHANCE: f64 = 5.0;

/// Returns the number of keys in the cache in front of `servers` servers.
pub fn cached(servers: usize) -> usize {
    (servers as f64 * (servers as f64).ln()).ceil() as usize
}

/// Computes the requests of each server for several exponents of Zipf's law.
pub fn balance(lab: &Lab, findings: &mut Findings) {
    let service = Service::new(lab, 1);
    let cached = cached(service.servers);
    let mut sweep = Sweep::new("hot").chart(
        "hot",
        format!("Requests of the server with the most popular key, of {} servers", service.servers),
        Axis::linear("exponent of Zipf's law"),
        Axis::log("requests / mean of all servers"),
    );
    for skew in SKEWS {
        let zipf = Zipf::new(lab.count(&POPULAR) as usize, skew);
        let claim = |what: &str| format!("exponent {skew}: {what}");
        let mut row = sweep.at(skew).cell("skew", skew);
        for replicas in REPLICAS {
            let servers = Servers::new(lab, Service { replicas, ..service }, &zipf, 0);
            let copies = if replicas == 1 { "one copy".into() } else { format!("{replicas} copies") };
            row = row
                .value(&format!("theory_{replicas}"), servers.expected, 3)
                .line(format!("theory, {copies}"), replicas - 1)
                .value(&format!("measured_{replicas}"), servers.hot.mean, 3)
                .dots("measured", 0)
                .near(
                    claim(&format!("requests of the server with the hottest key, {copies}")),
                    servers.expected,
                    CHANCE * servers.error,
                );
        }
        let shards = Service { servers: service.shards, ..service };
        let shards = Servers::new(lab, shards, &zipf, 0);
        let front = Servers::new(lab, service, &zipf, cached);
        row.value("theory_shard", shards.expected, 3)
            .value("measured_shard", shards.hot.mean, 3)
            .near(claim("requests of the shard with the hottest key"), shards.expected, CHANCE * shards.error)
            .value("cached_measured", front.busiest, 3)
            .path(format!("busiest server behind a cache of {cached} keys"), 3)
            .at_most(claim("busiest server behind the cache"), front.bound)
            .value("cache_hits", (1.0 - lab.number(&ABSENT)) * zipf.share_of_first(cached), 4)
            .judge(hits(lab, service, &zipf, cached, claim("share of requests that the cache answers")));
    }
    findings.add(sweep);
}

/// Counts the requests that the cache answers.
fn hits(lab: &Lab, service: Service, zipf: &Zipf, cached: usize, claim: String) -> Criterion {
    let mut requests = Requests::new(lab, service, zipf, cached, 0);
    let mut dice = Dice::new(lab, b"hits", 0);
    let trials = lab.either(100_000, 1_000_000);
    let hits = (0..trials).filter(|_| requests.shard(&mut dice).is_none()).count() as u64;
    let expected = (1.0 - lab.number(&ABSENT)) * zipf.share_of_first(cached);
    Criterion::share(claim, hits, trials, expected, 0.0)
}

/// The requests of servers over many builds, each with its own hash, relative to the mean of all
/// servers.
struct Servers {
    /// Requests of the server that has the most popular key that the cache does not answer, its
    /// expected value, and the standard error.
    hot: Rate,
    expected: f64,
    error: f64,
    /// Mean requests of the busiest server, and a bound of it.
    busiest: f64,
    bound: f64,
}

impl Servers {
    fn new(lab: &Lab, service: Service, zipf: &Zipf, cached: usize) -> Servers {
        let builds = lab.either(200, 1000);
        let (mut hot, mut busiest) = (Vec::new(), 0.0);
        for build in 0..builds {
            let requests = Requests::new(lab, service, zipf, cached, build);
            let shares = requests.shares();
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            hot.push(shares[service.server(requests.home(cached), 0)] / mean);
            busiest += shares.iter().copied().fold(0.0, f64::max) / mean / builds as f64;
        }
        let servers = service.servers as f64;
        let copies = service.replicas as f64;
        let present = 1.0 - lab.number(&ABSENT);
        let total = 1.0 - present * zipf.share_of_first(cached);
        let mut shares = zipf.shares().skip(cached).map(|share| present * share / total);
        let first = shares.next().unwrap_or_default();
        let squares: f64 = shares.map(|share| share * share).sum();
        // A server has one of the copies of another key with the probability r / M.
        let place = copies / servers * (1.0 - copies / servers);
        let deviation = |squares: f64| servers / copies * (squares * place).sqrt();
        let all = deviation(squares + first * first);
        Servers {
            hot: Rate::from_builds(&hot, 1),
            expected: 1.0 + first * (servers / copies - 1.0),
            error: deviation(squares) / (builds as f64).sqrt(),
            busiest,
            // The mean of the largest of M normal variables is below sqrt(2 ln M) deviations.
            bound: 1.0 + (2.0 * servers.ln()).sqrt() * all,
        }
    }
}
