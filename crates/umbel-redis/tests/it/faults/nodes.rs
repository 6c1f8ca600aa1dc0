//! The servers of the cluster: their roles, their faults and their slots.

use super::ledger::Ledger;
use super::{ANSWER_TIMEOUT, Chance, Fault, SERVERS};
use crate::cluster::Cluster;
use crate::support::{Answer, Client, wait_for};
use std::io;
use std::path::Path;
use std::process::Command;

/// The servers of the cluster.
pub struct Nodes {
    cluster: Cluster,
}

/// A server as `CLUSTER NODES` describes it.
pub struct Described {
    name: String,
    pub index: usize,
    pub is_primary: bool,
    is_well: bool,
}

impl Nodes {
    pub fn start(program: &Path, can_cut: bool) -> Nodes {
        let address = |i: usize| format!("127.0.0.{}", if can_cut { 11 + i } else { 1 });
        let durable =
            ["--appendonly", "yes", "--appendfsync", "always", "--cluster-require-full-coverage", "no"];
        let cluster = Cluster::start_at(program, &std::array::from_fn::<_, SERVERS, _>(address), &durable);
        let nodes = Nodes { cluster };
        nodes.wait_until_whole();
        nodes
    }

    pub fn addresses(&self) -> Vec<(String, u16)> {
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

    pub fn wait_until_whole(&self) {
        wait_for("the cluster to be whole", || self.is_whole().unwrap_or(false));
    }

    /// Returns whether another primary serves the slots of one that has failed.
    pub fn has_taken_over(&self, failed: usize) -> io::Result<bool> {
        let described = self.described_by((failed + 1) % SERVERS)?;
        let serving = |node: &&Described| node.is_primary && node.is_well && node.index != failed;
        Ok(described.iter().filter(serving).count() == SERVERS / 2)
    }

    /// Returns a server to fail: a primary if `primary`, and mostly one otherwise.
    pub fn victim(&self, primary: bool, chance: &mut Chance) -> Described {
        let described = self.described_by(0).expect("the cluster is whole");
        let wanted = primary || chance.below(5) > 0;
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

    pub fn inject(&mut self, fault: Fault, index: usize) {
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

    pub fn heal(&mut self, fault: Fault, index: usize) {
        match fault {
            Fault::Kill => self.cluster.servers[index].restart(),
            Fault::Restart => {}
            Fault::Stop => self.signal("-CONT", index),
            Fault::CutOff => nft("flush chain ip faults input"),
        }
    }

    /// Moves the slot of a key between two primaries that have not failed. Returns whether it moved.
    pub fn move_slot(&self, failed: usize, ledger: &Ledger, chance: &mut Chance) -> bool {
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
