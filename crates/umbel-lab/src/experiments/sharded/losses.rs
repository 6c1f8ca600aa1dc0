//! Lost servers: the requests that end in an error while shards are rebuilt, and what copies change.

use super::service::{Requests, Service, exponential, reached};
use super::{POPULAR, REPLICAS, SERVERS, SKEW, SPEED};
use crate::experiments::prelude::*;
use crate::popularity::Zipf;
use crate::traffic::Dice;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Mean times between two failures of a server, in units of the time of a rebuild. Real servers fail
/// more rarely, but then a simulation sees nothing.
const UPTIMES: [f64; 4] = [4.0, 9.0, 19.0, 49.0];
/// Keys of a batch that needs all its servers.
const BATCH: u64 = 64;
/// Time between two requests, after which failures are independent of those before.
const PAUSE: f64 = 3.0;
/// Days between two failures of a real server.
const DAYS: f64 = 90.0;

/// Simulates servers that fail and are rebuilt.
pub fn errors(lab: &Lab, findings: &mut Findings) {
    let probes = lab.either(40_000, 400_000);
    let zipf = Zipf::new(lab.count(&POPULAR) as usize, lab.number(&SKEW));
    let mut sweep = Sweep::new("errors").chart(
        "errors",
        "Requests that end in an error",
        Axis::log("time between two failures of a server / time of a rebuild"),
        Axis::log("share of requests"),
    );
    for (number, uptime) in (0..).zip(UPTIMES) {
        let down = 1.0 / (uptime + 1.0);
        let mut row = sweep.at(uptime).cell("uptime", uptime);
        for replicas in REPLICAS {
            let service = Service::new(lab, replicas);
            let copies = if replicas == 1 { "one copy".into() } else { format!("{replicas} copies") };
            let claim = |what: &str| {
                format!("up for {uptime} times a rebuild, {copies}: share of {what} that end in an error")
            };
            let mut dice = Dice::new(lab, b"fail", 4 * number + replicas as u64);
            let mut requests = Requests::new(lab, service, &zipf, 0, 0);
            let mut batches = Requests::new(lab, service, &zipf, 0, 0).only_absent();
            let mut servers = Servers::new(service.servers, uptime, &mut dice);
            let (mut errors, mut broken) = (0, 0);
            for _ in 0..probes {
                servers.advance(PAUSE, &mut dice);
                if let Some(shard) = requests.shard(&mut dice) {
                    let is_lost = |copy| servers.is_down(service.server(shard, copy));
                    errors += u64::from((0..replicas).all(is_lost));
                }
                if replicas == 1 {
                    let batch = batches.batch(BATCH, &mut dice);
                    broken += u64::from(batch.into_iter().any(|server| servers.is_down(server)));
                }
            }
            let expected = down.powi(replicas as i32);
            row = row
                .value(&format!("theory_{replicas}"), expected, 6)
                .line(format!("theory, {copies}"), replicas - 1)
                .value(&format!("measured_{replicas}"), errors as f64 / probes as f64, 6)
                .dots("measured", 0)
                .judge(Criterion::share(claim("single keys"), errors, probes, expected, 0.0));
            if replicas == 1 {
                let up = |(number, share)| share * (1.0 - down).powi(number as i32);
                let expected =
                    1.0 - reached(service.servers, BATCH).into_iter().enumerate().map(up).sum::<f64>();
                row = row
                    .value("theory_batch", expected, 5)
                    .line(format!("theory, batches of {BATCH} keys, one copy"), 4)
                    .value("measured_batch", broken as f64 / probes as f64, 5)
                    .dots("measured", 0)
                    .judge(Criterion::share(
                        claim(&format!("batches of {BATCH} keys")),
                        broken,
                        probes,
                        expected,
                        0.0,
                    ));
            }
        }
    }
    findings.add(sweep);
}

/// Computes the time of a rebuild and the share of errors for lakes of several sizes.
pub fn rebuilds(lab: &Lab, findings: &mut Findings) {
    let (speed, servers) = (lab.number(&SPEED), lab.count(&SERVERS) as f64);
    let mut sweep = Sweep::new("rebuilds");
    for keys in [1e9, 1e10, 1e11] {
        let seconds = keys / servers / speed;
        let down = seconds / (seconds + DAYS * 86_400.0);
        let mut row = sweep
            .row()
            .cells([("keys", &keys), ("servers", &servers)])
            .value("seconds_own_keys", seconds, 0)
            .value("seconds_whole_lake", keys / speed, 0);
        for replicas in REPLICAS {
            row = row.scientific(&format!("errors_{replicas}"), down.powi(replicas as i32), 1);
        }
    }
    findings.add(sweep);
}

/// Servers that fail after an exponentially distributed time, and are back after a rebuild, which
/// takes a time of 1.
struct Servers {
    now: f64,
    down: Vec<bool>,
    /// The next time at which a server fails or is back, and its number; the earliest comes first.
    events: BinaryHeap<Reverse<Event>>,
    uptime: f64,
}

impl Servers {
    /// Creates servers that are all up, and lets them fail for a while.
    fn new(count: usize, uptime: f64, dice: &mut Dice) -> Servers {
        let events = (0..count).map(|server| Reverse(Event { time: uptime * exponential(dice), server }));
        let mut servers = Servers { now: 0.0, down: vec![false; count], events: events.collect(), uptime };
        servers.advance(4.0 * PAUSE, dice);
        servers
    }

    /// Lets time pass.
    fn advance(&mut self, time: f64, dice: &mut Dice) {
        self.now += time;
        while let Some(mut first) = self.events.peek_mut().filter(|first| first.0.time <= self.now) {
            let down = &mut self.down[first.0.server];
            *down = !*down;
            first.0.time += if *down { 1.0 } else { self.uptime * exponential(dice) };
        }
    }

    fn is_down(&self, server: usize) -> bool {
        self.down[server]
    }
}

/// The time at which a server fails or is back.
#[derive(PartialEq)]
struct Event {
    time: f64,
    server: usize,
}

impl Eq for Event {}

impl Ord for Event {
    fn cmp(&self, other: &Event) -> Ordering {
        self.time.total_cmp(&other.time).then(self.server.cmp(&other.server))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
