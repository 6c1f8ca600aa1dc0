//! The sharded service: where its keys are, who asks for them, and how its servers queue requests.

use super::{ABSENT, PER_SERVER, POPULAR, SERVERS};
use crate::popularity::Zipf;
use crate::traffic::Dice;
use crate::{Keys, Lab, Result};
use umbel::key::Hashed;
use umbel::sharded::shard_of;
use umbel::{Digest, Hasher, Key};

/// The servers and shards of a service, and the number of copies of each shard.
#[derive(Clone, Copy)]
pub struct Service {
    pub servers: usize,
    pub shards: usize,
    pub replicas: usize,
}

impl Service {
    /// Creates the service of this lab, with this many copies of each shard.
    pub fn new(lab: &Lab, replicas: usize) -> Service {
        let servers = lab.count(&SERVERS) as usize;
        Service { servers, shards: servers * PER_SERVER, replicas }
    }

    /// Returns the server of a copy of a shard. The copies of a shard are on neighbours.
    pub fn server(self, shard: usize, copy: usize) -> usize {
        (shard + copy) % self.servers
    }
}

/// Returns the shards of the popular keys of a build, the most popular key first.
pub fn homes(lab: &Lab, build: u64, shards: usize) -> Vec<usize> {
    let digests = lab.digests(&lab.hasher(build), &lab.keys(build).members(lab.count(&POPULAR)));
    digests.into_iter().map(|digest| shard_of(digest, shards)).collect()
}

/// The requests that reach the servers: popular keys that Zipf's law draws, and absent keys, each of
/// which is requested once. A cache in front of the servers answers for the most popular keys.
pub struct Requests<'a> {
    lab: &'a Lab,
    pub service: Service,
    zipf: &'a Zipf,
    absent: f64,
    cached: usize,
    homes: Vec<usize>,
    keys: Keys,
    hasher: Hasher,
    asked: u64,
}

impl<'a> Requests<'a> {
    /// Creates the requests of a build.
    pub fn new(lab: &'a Lab, service: Service, zipf: &'a Zipf, cached: usize, build: u64) -> Requests<'a> {
        Requests {
            lab,
            service,
            zipf,
            absent: lab.number(&ABSENT),
            cached,
            homes: homes(lab, build, service.shards),
            keys: lab.keys(build),
            hasher: lab.hasher(build),
            asked: 0,
        }
    }

    /// Returns the shard of a popular key, counted from 0.
    pub fn home(&self, key: usize) -> usize {
        self.homes[key]
    }

    /// Returns the same requests, all of which are for absent keys.
    pub fn only_absent(self) -> Requests<'a> {
        Requests { absent: 1.0, cached: 0, ..self }
    }

    /// Draws the shard of a request, or none if the cache answers it.
    pub fn shard(&mut self, dice: &mut Dice) -> Option<usize> {
        if dice.fraction() < self.absent {
            self.asked += 1;
            let digest = (self.lab.spoil)(self.keys.stranger(self.asked).digest(&self.hasher));
            return Some(shard_of(digest, self.service.shards));
        }
        let key = self.zipf.draw(dice);
        (key >= self.cached).then(|| self.homes[key])
    }

    /// Draws the server of a request, or none if the cache answers it.
    pub fn server(&mut self, dice: &mut Dice) -> Option<usize> {
        let shard = self.shard(dice)?;
        Some(self.service.server(shard, dice.below(self.service.replicas)))
    }

    /// Returns the servers that a batch of this many keys reaches, in order.
    pub fn batch(&mut self, keys: u64, dice: &mut Dice) -> Vec<usize> {
        let mut reached: Vec<usize> = (0..keys).filter_map(|_| self.server(dice)).collect();
        reached.sort_unstable();
        reached.dedup();
        reached
    }

    /// Returns the share of all requests that reaches each server.
    pub fn shares(&self) -> Vec<f64> {
        let Service { servers, replicas, .. } = self.service;
        let mut shares = vec![self.absent / servers as f64; servers];
        for (share, home) in self.zipf.shares().zip(&self.homes).skip(self.cached) {
            let each = (1.0 - self.absent) * share / replicas as f64;
            (0..replicas).for_each(|copy| shares[self.service.server(*home, copy)] += each);
        }
        shares
    }
}

/// The queues of servers that serve one request after the other, in the order of arrival, each in an
/// exponentially distributed time with a mean of 1.
pub struct Queues {
    now: f64,
    /// The time at which each server has served all requests that have arrived.
    idle_at: Vec<f64>,
    next_arrival: f64,
    /// Requests per unit of time, those that the cache answers included.
    rate: f64,
}

impl Queues {
    /// Creates empty queues, for this many requests per unit of time.
    pub fn new(servers: usize, rate: f64) -> Queues {
        Queues { now: 0.0, idle_at: vec![0.0; servers], next_arrival: 0.0, rate }
    }

    /// Lets requests arrive for this time.
    pub fn advance(&mut self, time: f64, requests: &mut Requests<'_>, dice: &mut Dice) {
        self.now += time;
        while self.next_arrival < self.now {
            if let Some(server) = requests.server(dice) {
                let idle_at = &mut self.idle_at[server];
                *idle_at = idle_at.max(self.next_arrival) + exponential(dice);
            }
            self.next_arrival += exponential(dice) / self.rate;
        }
    }

    /// Returns the time until a server would have answered a request that arrives now.
    pub fn latency(&self, server: usize, dice: &mut Dice) -> f64 {
        (self.idle_at[server] - self.now).max(0.0) + exponential(dice)
    }
}

/// Draws an exponentially distributed time with a mean of 1.
pub fn exponential(dice: &mut Dice) -> f64 {
    -(1.0 - dice.fraction()).ln()
}

/// Returns, for each number from 0 to `servers`, the probability that a batch of evenly spread keys
/// reaches exactly as many servers.
pub fn reached(servers: usize, keys: u64) -> Vec<f64> {
    let mut shares = vec![0.0; servers + 1];
    shares[0] = 1.0;
    for _ in 0..keys {
        for number in (0..=servers).rev() {
            let first = if number == 0 { 0.0 } else { shares[number - 1] * (servers - number + 1) as f64 };
            shares[number] = (shares[number] * number as f64 + first) / servers as f64;
        }
    }
    shares
}

/// Returns the digests of the members of a build and of as many strangers as asked for.
pub fn digests(lab: &Lab, build: u64, members: u64, strangers: u64) -> [Vec<Digest>; 2] {
    let (keys, hasher) = (lab.keys(build), lab.hasher(build));
    [lab.digests(&hasher, &keys.members(members)), lab.digests(&hasher, &keys.strangers(strangers))]
}

/// Returns which of these digests a filter in shards contains.
pub fn answers(filter: &umbel::Sharded, digests: &[Digest]) -> Result<Vec<bool>> {
    Ok(filter.contains_batch(&Hashed(digests))?.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_reaches_as_many_servers_as_balls_hit_bins() {
        // Three throws of a die: one face in 6 of 216 cases, two in 90, three in 120.
        let shares = reached(6, 3);
        for (number, cases) in [0.0, 6.0, 90.0, 120.0, 0.0].into_iter().enumerate() {
            assert!((shares[number] - cases / 216.0).abs() < 1e-12, "{number}");
        }
        assert_eq!(reached(4, 0)[0], 1.0);
    }
}
