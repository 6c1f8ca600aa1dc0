//! A cluster whose servers are killed, stopped and cut off, and whose slots move, while clients add
//! and remove items. Afterwards every acknowledged item is asked for.
//!
//! An item counts as acknowledged if the server has accepted it and `WAIT` has reported a replica
//! that has it: this is what a cluster with `appendfsync always` promises to preserve when one
//! server of each pair fails. Writes without an answer may or may not have happened.
//!
//! As root, the test moves into a network namespace of its own, in which every server has an address
//! in 127.0.0.0/8 and rules that drop packets cut a server off. Otherwise partitions are left out,
//! and the test reports it. `fuzz/soak HOURS cluster` goes on for hours, with all servers that are
//! found; `FAULTS_SEED` repeats the choices of a run.

mod ledger;
mod nodes;
mod router;

use crate::support::{servers, wait_for};
use ledger::{Counts, Ledger};
use nodes::{Described, Nodes};
use router::Router;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The variable that the process in the namespace has.
const INSIDE: &str = "FAULTS_INSIDE";

/// Prepares a namespace in which packets can be dropped. Rules for routes would not do: they are
/// errors to a server that connects, which then tries again from another address.
const NAMESPACE: &str = "ip link set lo up && nft add table ip faults \
    && nft 'add chain ip faults input { type filter hook input priority 0; }' && exec \"$0\" \"$@\"";

/// The longest time that a client waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of servers: three primaries, and a replica of each.
const SERVERS: usize = 6;

/// The number of clients.
const WRITERS: u64 = 3;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn acknowledged_items_survive_kills_partitions_and_moving_slots() {
    let name = "faults::acknowledged_items_survive_kills_partitions_and_moving_slots";
    in_namespace(name, |can_cut| {
        check(&servers()[0], can_cut, 4, Duration::ZERO);
    });
}

#[test]
#[ignore = "runs for as long as `fuzz/soak` asks"]
fn soak_cluster() {
    in_namespace("faults::soak_cluster", |can_cut| {
        let seconds = number("UMBEL_SOAK_SECONDS").expect("UMBEL_SOAK_SECONDS, which fuzz/soak sets");
        let (mut asked, mut faults) = (0, 0);
        for program in servers() {
            let time = Duration::from_secs(seconds / servers().len() as u64);
            let (questions, rounds) = check(program, can_cut, 1, time);
            (asked, faults) = (asked + questions, faults + rounds);
        }
        println!("soak: executions={asked} faults={faults}");
    });
}

/// Calls `check` with whether servers can be cut off: in a namespace of its own if possible, where
/// the test of this name runs again.
fn in_namespace(name: &str, check: fn(bool)) {
    if std::env::var_os(INSIDE).is_some() {
        return check(true);
    }
    let probe = Command::new("unshare").args(["--net", "sh", "-c", NAMESPACE, "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("partitions are not tested: they need root, `unshare`, `ip` and `nft`");
        return check(false);
    }
    // What has to be fetched is fetched out here.
    servers();
    let test = std::env::current_exe().unwrap();
    let mut inside = Command::new("unshare");
    inside.args(["--net", "sh", "-c", NAMESPACE]).arg(test);
    inside.args([name, "--exact", "--nocapture", "--include-ignored"]);
    let status = inside.env(INSIDE, "1").stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "in a namespace: {status}");
}

/// What happens to a server.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It is killed, and started again after another has taken over.
    Kill,
    /// It is killed and started again at once.
    Restart,
    /// It stops and goes on later, as on a machine that is too busy.
    Stop,
    /// The other servers cannot reach it, but clients can.
    CutOff,
}

/// Injects faults for this many rounds and this long. Returns the number of questions and of rounds.
fn check(program: &Path, can_cut: bool, rounds: u64, time: Duration) -> (u64, u64) {
    let (start, seed) = (Instant::now(), number("FAULTS_SEED").unwrap_or(1));
    let faults = match can_cut {
        true => &[Fault::Kill, Fault::CutOff, Fault::Stop, Fault::Restart][..],
        false => &[Fault::Kill, Fault::Stop, Fault::Restart][..],
    };
    let mut nodes = Nodes::start(program, can_cut);
    let (ledger, stop) = (Ledger::default(), AtomicBool::new(false));
    let mut chance = Chance(seed);
    let (mut round, mut moved, mut takeovers) = (0, 0, 0);
    std::thread::scope(|scope| {
        // The writers end even if the check fails.
        let _stopping = OnDrop(|| stop.store(true, Relaxed));
        for writer in 0..WRITERS {
            let (ledger, stop, addresses) = (&ledger, &stop, nodes.addresses());
            scope.spawn(move || {
                ledger::write(ledger, stop, Router::new(addresses), Chance(seed << 8 | writer))
            });
        }
        while round < rounds || start.elapsed() < time {
            ledger.create(&mut Router::new(nodes.addresses()), round);
            sleep(Duration::from_millis(500));
            let fault = faults[round as usize % faults.len()];
            // Every fault first hits a primary.
            let is_first = round < faults.len() as u64;
            let Described { index: victim, is_primary, .. } = nodes.victim(is_first, &mut chance);
            nodes.inject(fault, victim);
            // Another slot moves meanwhile.
            moved += u64::from(nodes.move_slot(victim, &ledger, &mut chance));
            if is_primary && !matches!(fault, Fault::Restart) {
                wait_for("another server to take over", || nodes.has_taken_over(victim).unwrap_or(false));
                takeovers += 1;
            }
            sleep(Duration::from_millis(chance.below(3000)));
            nodes.heal(fault, victim);
            nodes.wait_until_whole();
            moved += u64::from(nodes.move_slot(usize::MAX, &ledger, &mut chance));
            ledger.check(
                &mut Router::new(nodes.addresses()),
                &format!("{fault:?} of server {victim}, seed {seed}"),
            );
            round += 1;
        }
    });
    let Counts { acknowledged, uncertain, removed, asked } = &ledger.counts;
    let [acknowledged, uncertain, removed, asked] =
        [acknowledged, uncertain, removed, asked].map(|count| count.load(Relaxed));
    eprintln!(
        "{}: {round} faults ({}), {takeovers} takeovers, {moved} slots moved; {acknowledged} items acknowledged, {uncertain} without an answer, \
         {removed} removed; asked for {asked}, all found",
        program.display(),
        if can_cut { "kill, stop, partition by a network namespace" } else { "kill, stop" },
    );
    assert!(
        acknowledged > 100 * round && asked >= acknowledged / 2,
        "{acknowledged} items, {asked} asked for"
    );
    assert!(moved > 0 && takeovers > 0, "{moved} slots moved, {takeovers} takeovers");
    (asked, round)
}

/// Runs a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Pseudo-random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}
