//! E23: a filter in shards as a service: the balance of keys and requests, the latency of batches,
//! and the answers while shards are lost.

mod hot;
mod keys;
mod latency;
mod losses;
mod service;

use super::prelude::*;

pub struct ShardedService;

const SERVERS: Parameter = Parameter::count("servers", "servers of the service", [16, 64], [4, 64]);
const KEYS: Parameter =
    Parameter::count("n", "keys of the filter in shards", [1_000_000, 10_000_000], [100_000, 100_000_000]);
const RATE: Parameter = Parameter::real("p", "rate of the filter in shards", [0.01, 0.01], [1e-4, 0.1]);
const POPULAR: Parameter =
    Parameter::count("popular", "keys that are requested", [20_000, 100_000], [10_000, 1_000_000]);
const SKEW: Parameter = Parameter::real("skew", "exponent of Zipf's law", [0.99, 0.99], [0.0, 1.2]);
const ABSENT: Parameter =
    Parameter::real("absent", "share of requests for absent keys", [0.2, 0.2], [0.0, 0.9]);
const SPEED: Parameter =
    Parameter::real("speed", "keys that a server reads and inserts in a second", [5e6, 5e6], [1e3, 1e9]);

/// Shards on each server.
const PER_SERVER: usize = 16;
/// Numbers of copies of each shard.
const REPLICAS: [usize; 3] = [1, 2, 3];

impl Experiment for ShardedService {
    fn about(&self) -> About {
        About {
            id: "E23",
            chapter: Chapter::Caches,
            title: "A filter in shards on many servers: popular keys, slow batches and lost shards",
            sources: &[ZIPF, RAAB, DEAN, FAN_LIM],
            claim: "Shards get nearly equal numbers of keys, but not of requests: according to \
                    Fan et al. 2011, a cache of the M ln M most popular keys balances M servers. \
                    According to Dean and Barroso 2013, a request that waits for a hundred \
                    servers is slow in 63 of 100 cases if each server is slow in one of a \
                    hundred. Copies on r servers are all lost with the r-th power of the \
                    probability for one.",
            set_up: "Keys are assigned to shards as in a folder of shards, and shards to servers \
                     in turn. The counts of keys are compared with the law of balls in bins, the \
                     rates of real shards with their plan, and the requests of servers with \
                     Zipf's law. Queues with random arrivals serve single keys and batches, \
                     whose latency is compared with that of independent queues. Servers fail at \
                     random times and are back after a rebuild; a request is an error if all \
                     copies of its shard are lost.",
            advice: "Keep a small cache of popular keys in front of the servers and two copies of \
                     each shard, and let a lost shard be an error, not a maybe.",
            command: "`umbel shard`",
            seconds: [5, 60],
            timed: false,
            parameters: &[SERVERS, KEYS, RATE, POPULAR, SKEW, ABSENT, SPEED],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        keys::count(lab, &mut findings)?;
        keys::build(lab, &mut findings)?;
        hot::balance(lab, &mut findings);
        latency::fan_out(lab, &mut findings);
        latency::popular(lab, &mut findings);
        losses::errors(lab, &mut findings);
        losses::rebuilds(lab, &mut findings);
        findings.verdict =
            "Shards get equal shares of the keys but for a few standard deviations, so room for \
             five keeps the rate of each. A hot key makes a hot server: r copies divide its excess \
             by a little more than r, and a cache of M ln M keys removes most of it. A batch of \
             many keys waits for all servers, so the latency that is rare for a single key is \
             common for a batch. A lost shard that answers \"maybe\" adds 1/S to the rate, \
             several times the rate itself, so it should be an error. With one copy, the share of \
             keys that end in an error is the share of the time in which a server is rebuilt, and \
             that of large batches is nearly M times as high; r copies raise the former to the \
             r-th power."
                .into();
        Ok(findings)
    }
}
