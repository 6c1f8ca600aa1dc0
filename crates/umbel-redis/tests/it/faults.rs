//! A cluster whose servers are killed, stopped and cut off, and whose slots move, while clients add
//! and remove items. Afterwards every acknowledged item is asked for.
//!
//! An item counts as acknowledged if the server has accepted it and `WAIT` has reported a replica
//! that has it: this is what a cluster with `appendfsync always` promises to preserve when one
//! server of each pair fails. Writes without an answer may or may not have happened.
//!
//! As root, the test moves into a network namespace of its own, in which every server has an address
//! in 127.0.0.0/8 and rules that drop packets cut a server off. Otherwise partitions are left out,
//! and the test reports it. `FAULTS_SECONDS=3600 cargo test -p umbel-redis --test it faults:: --
//! --nocapture` continues for an hour, with all servers that are found; `FAULTS_SEED` repeats the
//! choices of a run.

use crate::cluster::Cluster;
use crate::support::{Answer, Client, servers, wait_for};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, RwLock};
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

/// The number of keys of each type that are checked; older ones are deleted.
const MAX_KEYS: usize = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn acknowledged_items_survive_kills_partitions_and_moving_slots() {
    if std::env::var_os(INSIDE).is_some() {
        return check_programs(true);
    }
    let probe = Command::new("unshare").args(["--net", "sh", "-c", NAMESPACE, "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("partitions are not tested: they need root, `unshare`, `ip` and `nft`");
        return check_programs(false);
    }
    // What has to be fetched is fetched out here.
    servers();
    let test = std::env::current_exe().unwrap();
    let name = "faults::acknowledged_items_survive_kills_partitions_and_moving_slots";
    let mut inside = Command::new("unshare");
    inside.args(["--net", "sh", "-c", NAMESPACE]).arg(test).args([name, "--exact", "--nocapture"]);
    let status = inside.env(INSIDE, "1").stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "in a namespace: {status}");
}

/// Checks the first server for a few rounds, or all of them for the requested time.
fn check_programs(can_cut: bool) {
    let Some(seconds) = number("FAULTS_SECONDS") else {
        return check(&servers()[0], can_cut, 4, Duration::ZERO);
    };
    for program in servers() {
        check(program, can_cut, 1, Duration::from_secs(seconds / servers().len() as u64));
    }
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

/// Injects faults for this many rounds and this long.
fn check(program: &Path, can_cut: bool, rounds: u64, time: Duration) {
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
            scope.spawn(move || write(ledger, stop, Router::new(addresses), Chance(seed << 8 | writer)));
        }
        while round < rounds || start.elapsed() < time {
            ledger.create(&mut Router::new(nodes.addresses()), round);
            sleep(Duration::from_millis(500));
            let fault = faults[round as usize % faults.len()];
            let Described { index: victim, is_primary, .. } = nodes.victim(&mut chance);
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
    assert!(moved > 0, "no slot has moved");
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

/// The servers of the cluster.
struct Nodes {
    cluster: Cluster,
}

/// A server as `CLUSTER NODES` describes it.
struct Described {
    name: String,
    index: usize,
    is_primary: bool,
    is_well: bool,
}

impl Nodes {
    fn start(program: &Path, can_cut: bool) -> Nodes {
        let address = |i: usize| format!("127.0.0.{}", if can_cut { 11 + i } else { 1 });
        let durable =
            ["--appendonly", "yes", "--appendfsync", "always", "--cluster-require-full-coverage", "no"];
        let cluster = Cluster::start_at(program, &std::array::from_fn::<_, SERVERS, _>(address), &durable);
        let nodes = Nodes { cluster };
        nodes.wait_until_whole();
        nodes
    }

    fn addresses(&self) -> Vec<(String, u16)> {
        self.cluster.servers.iter().map(|server| (server.address.clone(), server.port)).collect()
    }

    fn client(&self, index: usize) -> io::Result<Client> {
        let server = &self.cluster.servers[index];
        Client::connect_to(&server.address, server.port, ANSWER_TIMEOUT)
    }

    /// Sends a command to a server.
    fn command(&self, index: usize, command: &str) -> io::Result<Answer> {
        self.client(index)?.try_call(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// Returns the servers as one of them sees them.
    fn described_by(&self, index: usize) -> io::Result<Vec<Described>> {
        let Answer::Bytes(text) = self.command(index, "CLUSTER NODES")? else {
            return Err(io::Error::other("no nodes"));
        };
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        let described = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let port = words[1].split('@').next()?.rsplit(':').next()?.parse::<u16>().ok()?;
            let index = self.cluster.servers.iter().position(|server| server.port == port)?;
            let is_well = !words[2].contains("fail") && !words[2].contains("handshake");
            Some(Described {
                name: words[0].to_owned(),
                index,
                is_primary: words[2].contains("master"),
                is_well,
            })
        });
        Ok(described.collect())
    }

    /// Returns whether every server sees all others, and every primary has a replica that follows.
    fn is_whole(&self) -> io::Result<bool> {
        let mut primaries = 0;
        for index in 0..SERVERS {
            let described = self.described_by(index)?;
            let info = self.command(index, "CLUSTER INFO")?;
            let replication = self.command(index, "INFO replication")?;
            let [info, replication] =
                [info, replication].map(|answer| String::from_utf8_lossy(answer.bytes()).into_owned());
            let is_primary = replication.contains("role:master");
            primaries += usize::from(is_primary);
            let follows = match is_primary {
                true => replication.contains("state=online"),
                false => replication.contains("master_link_status:up"),
            };
            let all_well = described.len() == SERVERS && described.iter().all(|node| node.is_well);
            let agreed = described.iter().filter(|node| node.is_primary).count() == SERVERS / 2;
            if !all_well || !agreed || !follows || !info.contains("cluster_state:ok") {
                return Ok(false);
            }
        }
        Ok(primaries == SERVERS / 2)
    }

    fn wait_until_whole(&self) {
        wait_for("the cluster to be whole", || self.is_whole().unwrap_or(false));
    }

    /// Returns whether another primary serves the slots of one that has failed.
    fn has_taken_over(&self, failed: usize) -> io::Result<bool> {
        let described = self.described_by((failed + 1) % SERVERS)?;
        let serving = |node: &&Described| node.is_primary && node.is_well && node.index != failed;
        Ok(described.iter().filter(serving).count() == SERVERS / 2)
    }

    /// Returns a server to fail, which is mostly a primary.
    fn victim(&self, chance: &mut Chance) -> Described {
        let described = self.described_by(0).expect("the cluster is whole");
        let wanted = chance.below(5) > 0;
        let mut choice: Vec<Described> =
            described.into_iter().filter(|node| node.is_primary == wanted).collect();
        choice.swap_remove(chance.below(choice.len() as u64) as usize)
    }

    fn signal(&self, name: &str, index: usize) {
        let process = self.cluster.servers[index].process().to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    }

    /// Drops all packets between a server and the others.
    fn cut_off(&self, index: usize) {
        let address = |index: usize| self.cluster.servers[index].address.as_str();
        let others: Vec<&str> = (0..SERVERS).filter(|other| *other != index).map(address).collect();
        let (victim, others) = (address(index), format!("{{ {} }}", others.join(", ")));
        nft(&format!("add rule ip faults input ip saddr {victim} ip daddr {others} drop"));
        nft(&format!("add rule ip faults input ip saddr {others} ip daddr {victim} drop"));
    }

    fn inject(&mut self, fault: Fault, index: usize) {
        match fault {
            Fault::Kill => self.cluster.servers[index].kill(),
            Fault::Restart => {
                self.cluster.servers[index].kill();
                self.cluster.servers[index].restart();
            }
            Fault::Stop => self.signal("-STOP", index),
            Fault::CutOff => self.cut_off(index),
        }
    }

    fn heal(&mut self, fault: Fault, index: usize) {
        match fault {
            Fault::Kill => self.cluster.servers[index].restart(),
            Fault::Restart => {}
            Fault::Stop => self.signal("-CONT", index),
            Fault::CutOff => nft("flush chain ip faults input"),
        }
    }

    /// Moves the slot of a key between two primaries that have not failed. Returns whether it moved.
    fn move_slot(&self, failed: usize, ledger: &Ledger, chance: &mut Chance) -> bool {
        let key = ledger.any_key(chance);
        self.try_move_slot(failed, &key, chance).unwrap_or(false)
    }

    fn try_move_slot(&self, failed: usize, key: &str, chance: &mut Chance) -> io::Result<bool> {
        let observer = (0..SERVERS).find(|index| *index != failed).unwrap_or_default();
        let described = self.described_by(observer)?;
        let primaries: Vec<&Described> =
            described.iter().filter(|node| node.is_primary && node.is_well && node.index != failed).collect();
        // The owner of the key is the one that does not send a client elsewhere.
        let is_owner = |node: &&&Described| {
            matches!(self.command(node.index, &format!("EXISTS {key}")), Ok(Answer::Integer(1)))
        };
        let Some(source) = primaries.iter().find(is_owner) else { return Ok(false) };
        let targets: Vec<&&Described> = primaries.iter().filter(|node| node.index != source.index).collect();
        if targets.is_empty() {
            return Ok(false);
        }
        let target = targets[chance.below(targets.len() as u64) as usize];
        let slot = self.command(observer, &format!("CLUSTER KEYSLOT {key}"))?.integer();
        let set = |index, state: String| {
            let answer = self.command(index, &format!("CLUSTER SETSLOT {slot} {state}"));
            answer.is_ok_and(|answer| answer == Answer::Word("OK".into()))
        };
        if !set(target.index, format!("IMPORTING {}", source.name))
            || !set(source.index, format!("MIGRATING {}", target.name))
        {
            set(target.index, "STABLE".into());
            return Ok(false);
        }
        let server = &self.cluster.servers[target.index];
        // A move that has begun is completed: clients find the keys meanwhile.
        wait_for("the keys of a slot to move", || {
            let Ok(Answer::Array(keys)) =
                self.command(source.index, &format!("CLUSTER GETKEYSINSLOT {slot} 100"))
            else {
                return false;
            };
            if keys.is_empty() {
                return true;
            }
            let move_keys = || {
                let [port, timeout] = [server.port.to_string(), "1000".to_owned()];
                let mut command =
                    vec![b"MIGRATE" as &[u8], server.address.as_bytes(), port.as_bytes(), b"", b"0"];
                command.extend([timeout.as_bytes(), b"REPLACE", b"KEYS"]);
                command.extend(keys.iter().map(Answer::bytes));
                self.client(source.index)?.try_call(&command)
            };
            let _ = move_keys();
            false
        });
        // The new owner has passed the keys to its replica before it owns the slot.
        self.settle(target.index);
        for node in [target, *source].into_iter().chain(primaries.iter().copied()) {
            set(node.index, format!("NODE {}", target.name));
        }
        Ok(true)
    }

    /// Waits until the replica of a primary has all of its writes.
    fn settle(&self, index: usize) {
        wait_for("a replica to follow", || {
            let settled = || {
                let mut client = self.client(index)?;
                // A write of any key whose slot is here; others are answered with an error.
                for i in 0..1000 {
                    let key = format!("settled{i}");
                    if let Answer::Error(_) = client.try_call(&[b"SET", key.as_bytes(), b"x"])? {
                        continue;
                    }
                    return client.try_call(&[b"WAIT", b"1", b"1000"]).map(|answer| answer.integer() > 0);
                }
                Ok::<bool, io::Error>(false)
            };
            settled().unwrap_or(false)
        });
    }
}

/// Changes the rules for packets in the namespace of this process.
fn nft(rule: &str) {
    assert!(Command::new("nft").arg(rule).status().unwrap().success(), "{rule}");
}

/// A client of the cluster, which follows redirections.
struct Router {
    addresses: Vec<(String, u16)>,
    connections: HashMap<u16, Client>,
    /// The server that had a key the last time.
    owners: HashMap<String, u16>,
    next: usize,
}

impl Router {
    fn new(addresses: Vec<(String, u16)>) -> Router {
        Router { addresses, connections: HashMap::new(), owners: HashMap::new(), next: 0 }
    }

    fn connection(&mut self, port: u16) -> io::Result<&mut Client> {
        if !self.connections.contains_key(&port) {
            let address = self.addresses.iter().find(|(_, known)| *known == port).expect("a server");
            self.connections.insert(port, Client::connect_to(&address.0, port, ANSWER_TIMEOUT)?);
        }
        Ok(self.connections.get_mut(&port).expect("it was just inserted"))
    }

    /// Sends a command about a key, its second word, and returns the answer with the server that has
    /// sent it. After an error the command may or may not have been executed.
    fn call(&mut self, command: &[&[u8]]) -> io::Result<(u16, Answer)> {
        let key = String::from_utf8_lossy(command[1]).into_owned();
        self.next += 1;
        let mut port = self.owners.get(&key).copied().unwrap_or(self.addresses[self.next % SERVERS].1);
        let mut asking = false;
        for _ in 0..16 {
            let mut send = || {
                let client = self.connection(port)?;
                if asking {
                    client.try_call(&[b"ASKING"])?;
                }
                client.try_call(command)
            };
            let answer = send().inspect_err(|_| {
                self.connections.remove(&port);
                self.owners.remove(&key);
            })?;
            let Answer::Error(text) = &answer else {
                return Ok((port, answer));
            };
            let redirected = text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
            asking = text.starts_with("ASK ");
            match redirected {
                Some(to) if asking => port = to,
                Some(to) if text.starts_with("MOVED ") => {
                    self.owners.insert(key.clone(), to);
                    port = to;
                }
                _ => {
                    self.owners.remove(&key);
                    return Err(io::Error::other(text.clone()));
                }
            }
        }
        Err(io::Error::other("too many redirections"))
    }

    /// Sends a write, and returns its answer if a replica has the write too.
    fn write(&mut self, command: &[&[u8]]) -> io::Result<Answer> {
        let (port, answer) = self.call(command)?;
        let replicas = self.connection(port)?.try_call(&[b"WAIT", b"1", b"1000"]);
        match replicas.inspect_err(|_| drop(self.connections.remove(&port)))? {
            Answer::Integer(1..) => Ok(answer),
            other => Err(io::Error::other(format!("no replica has it: {other:?}"))),
        }
    }
}

/// A type of values that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Type {
    Bloom,
    Cuckoo,
    Counting,
    Sketch,
}

impl Type {
    const ALL: [Type; 4] = [Type::Bloom, Type::Cuckoo, Type::Counting, Type::Sketch];

    /// Returns the commands that create, add, remove and ask, without the key and the items.
    fn commands(self) -> [&'static str; 4] {
        match self {
            Type::Bloom => ["BF.RESERVE KEY 0.001 100", "BF.MADD KEY", "", "BF.MEXISTS KEY"],
            Type::Cuckoo => {
                ["CF.RESERVE KEY 500", "CF.INSERT KEY NOCREATE ITEMS", "CF.DEL KEY", "CF.MEXISTS KEY"]
            }
            Type::Counting => [
                "UMBEL.RESERVE KEY counting 20000 0.001",
                "UMBEL.ADD KEY",
                "UMBEL.REMOVE KEY",
                "UMBEL.EXISTS KEY",
            ],
            Type::Sketch => ["CMS.INITBYDIM KEY 2000 4", "CMS.INCRBY KEY", "", "CMS.QUERY KEY"],
        }
    }
}

/// Returns a command with its key and items.
fn with_items(command: &str, key: &str, items: &[String]) -> Vec<Vec<u8>> {
    let words = command.split(' ').map(|word| if word == "KEY" { key } else { word });
    words.chain(items.iter().map(String::as_str)).map(|word| word.as_bytes().to_vec()).collect()
}

fn slices(command: &[Vec<u8>]) -> Vec<&[u8]> {
    command.iter().map(Vec::as_slice).collect()
}

/// A value, and the acknowledged items in it with their counts.
struct Known {
    key: String,
    value_type: Type,
    items: BTreeMap<String, u64>,
}

/// What has happened so far.
#[derive(Default)]
struct Counts {
    acknowledged: AtomicU64,
    uncertain: AtomicU64,
    removed: AtomicU64,
    asked: AtomicU64,
}

/// All that the servers have acknowledged.
#[derive(Default)]
struct Ledger {
    known: RwLock<Vec<Mutex<Known>>>,
    counts: Counts,
}

impl Ledger {
    /// Creates a value of each type, and deletes the oldest ones.
    fn create(&self, router: &mut Router, round: u64) {
        for value_type in Type::ALL {
            let key = format!("{value_type:?}{round}");
            let command = with_items(value_type.commands()[0], &key, &[]);
            wait_for("a new value", || match router.write(&slices(&command)) {
                Ok(answer) => answer == Answer::Word("OK".into()),
                // An earlier attempt has succeeded.
                Err(error) => error.to_string().contains("exists"),
            });
            let known = Known { key, value_type, items: BTreeMap::new() };
            self.known.write().unwrap().push(Mutex::new(known));
        }
        let mut known = self.known.write().unwrap();
        while known.len() > MAX_KEYS * Type::ALL.len() {
            let oldest = known.remove(0).into_inner().unwrap();
            let _ = router.call(&[b"DEL", oldest.key.as_bytes()]);
        }
    }

    fn any_key(&self, chance: &mut Chance) -> String {
        let known = self.known.read().unwrap();
        known[chance.below(known.len() as u64) as usize].lock().unwrap().key.clone()
    }

    /// Asks for every acknowledged item.
    fn check(&self, router: &mut Router, after: &str) {
        // The writers wait.
        for known in self.known.write().unwrap().iter_mut() {
            let Known { key, value_type, items } = known.get_mut().unwrap();
            let items: Vec<(&String, &u64)> = items.iter().collect();
            for part in items.chunks(1000) {
                let names: Vec<String> = part.iter().map(|(item, _)| (*item).clone()).collect();
                let command = with_items(value_type.commands()[3], key, &names);
                let mut found = Vec::new();
                wait_for("an answer", || match router.call(&slices(&command)) {
                    Ok((_, answer)) => {
                        found = answer.integers();
                        true
                    }
                    Err(_) => false,
                });
                let lost: Vec<&String> = part
                    .iter()
                    .zip(&found)
                    .filter(|((_, count), found)| **found < **count as i64)
                    .map(|((item, _), _)| *item)
                    .collect();
                assert!(
                    lost.is_empty(),
                    "{} of {} items of {key} are lost after {after}: {lost:?}",
                    lost.len(),
                    part.len()
                );
                self.counts.asked.fetch_add(part.len() as u64, Relaxed);
            }
        }
    }
}

/// Adds and removes items until it is stopped.
fn write(ledger: &Ledger, stop: &AtomicBool, mut router: Router, mut chance: Chance) {
    let (writer, mut next) = (chance.0, 0u64);
    let counts = &ledger.counts;
    while !stop.load(Relaxed) {
        // The check may have failed.
        let Ok(all) = ledger.known.read() else { return };
        if all.is_empty() {
            drop(all);
            sleep(Duration::from_millis(10));
            continue;
        }
        // Mostly the newest values.
        let choice = if chance.below(4) > 0 { all.len().saturating_sub(4) as u64 } else { 0 };
        let known = &all[(choice + chance.below(all.len() as u64 - choice)) as usize];
        let (key, value_type) = {
            let known = known.lock().unwrap();
            (known.key.clone(), known.value_type)
        };
        let [_, add, remove, _] = value_type.commands();
        let mut new = || {
            next += 1;
            format!("{writer}-{next}")
        };
        if !remove.is_empty() && chance.below(10) == 0 {
            // From now on, the item may be there or not. It is removed at most once: another removal
            // would take the fingerprint of another item.
            let item = known.lock().unwrap().items.pop_first();
            let Some((item, _)) = item else { continue };
            let removed = router.write(&slices(&with_items(remove, &key, &[item])));
            if removed.is_ok() { &counts.removed } else { &counts.uncertain }.fetch_add(1, Relaxed);
            continue;
        }
        let items: Vec<String> = match value_type {
            // The same few items again and again.
            Type::Sketch => vec![format!("item{}", chance.below(50))],
            _ => (0..1 + chance.below(5)).map(|_| new()).collect(),
        };
        let words = match value_type {
            Type::Sketch => vec![items[0].clone(), "1".to_owned()],
            _ => items.clone(),
        };
        match router.write(&slices(&with_items(add, &key, &words))) {
            Ok(answer) => {
                let mut known = known.lock().unwrap();
                for (item, answer) in items.into_iter().zip(answer.array()) {
                    let is_added = match answer {
                        Answer::Integer(number) => *number >= 0,
                        Answer::Error(text) => panic!("{key}: {text}"),
                        _ => false,
                    };
                    if is_added {
                        *known.items.entry(item).or_default() += 1;
                        counts.acknowledged.fetch_add(1, Relaxed);
                    }
                }
            }
            Err(_) => {
                counts.uncertain.fetch_add(items.len() as u64, Relaxed);
                drop(all);
                sleep(Duration::from_millis(20));
            }
        }
    }
}
