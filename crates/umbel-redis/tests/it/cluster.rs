//! On a cluster of three primaries and three replicas, filters survive the migration of keys and
//! the death of a primary.

use crate::support::{Answer, Client, Server, items, servers, wait_for};
use std::collections::BTreeMap;
use std::path::Path;

pub struct Cluster {
    pub servers: Vec<Server>,
    clients: BTreeMap<u16, Client>,
}

impl Cluster {
    /// Starts a cluster of servers with the same address.
    fn start(program: &Path) -> Cluster {
        Cluster::start_at(program, &["127.0.0.1"; 6].map(String::from), &[])
    }

    /// Starts a cluster of servers with these addresses: three primaries, then a replica of each.
    pub fn start_at(program: &Path, addresses: &[String; 6], more: &[&str]) -> Cluster {
        let arguments = [
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "2000",
            "--cluster-replica-validity-factor",
            "0",
        ];
        let start = |address: &String| {
            let arguments = [&arguments[..], &["--cluster-announce-ip", address], more].concat();
            Server::start_at(program, address, &arguments)
        };
        let servers: Vec<Server> = addresses.iter().map(start).collect();
        let mut clients: Vec<Client> = servers.iter().map(Server::client).collect();
        for server in &servers[1..] {
            clients[0].command(&format!("CLUSTER MEET {} {}", server.address, server.port));
        }
        for (client, slots) in clients.iter_mut().zip(["0 5460", "5461 10922", "10923 16383"]) {
            assert_eq!(client.command(&format!("CLUSTER ADDSLOTSRANGE {slots}")), Answer::Word("OK".into()));
        }
        wait_for("the cluster", || clients.iter_mut().all(|client| nodes(client).len() == 6));
        for i in 0..3 {
            let primary = name(&mut clients[i]);
            wait_for("the primary", || {
                clients[i + 3].command(&format!("CLUSTER REPLICATE {primary}")) == Answer::Word("OK".into())
            });
        }
        wait_for("all slots and replicas", || {
            let whole = |client: &mut Client| text(client, "CLUSTER INFO").contains("cluster_state:ok");
            clients.iter_mut().all(whole)
                && clients[3..]
                    .iter_mut()
                    .all(|client| text(client, "INFO replication").contains("master_link_status:up"))
        });
        let clients = servers.iter().map(|server| server.port).zip(clients).collect();
        Cluster { servers, clients }
    }

    /// Sends a command to the node that has the key.
    fn command(&mut self, command: &str, items: &[String]) -> Answer {
        let mut port = *self.clients.keys().next().unwrap();
        let mut tries = 0;
        loop {
            let words = command.split(' ').map(str::as_bytes).chain(items.iter().map(String::as_bytes));
            let client = self.clients.get_mut(&port).unwrap();
            let answer = client.try_call(&words.collect::<Vec<_>>());
            tries += 1;
            assert!(tries < 1000, "{command}: {answer:?}");
            match answer {
                Ok(Answer::Error(text)) if text.starts_with("MOVED") => {
                    port = text.rsplit(':').next().unwrap().parse().unwrap();
                    // This node does not know yet that the other one is down.
                    if !self.clients.contains_key(&port) {
                        std::thread::sleep(std::time::Duration::from_millis(50));
                        port = *self.clients.keys().next().unwrap();
                    }
                }
                Ok(Answer::Error(text)) if text.starts_with("CLUSTERDOWN") => {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                other => return other.unwrap(),
            }
        }
    }
}

fn text(client: &mut Client, command: &str) -> String {
    String::from_utf8(client.command(command).bytes().to_vec()).unwrap()
}

fn nodes(client: &mut Client) -> Vec<String> {
    let nodes = text(client, "CLUSTER NODES");
    nodes.lines().filter(|line| !line.contains("handshake")).map(str::to_owned).collect()
}

fn name(client: &mut Client) -> String {
    text(client, "CLUSTER MYID")
}

#[test]
fn filters_survive_migration_and_the_death_of_a_primary() {
    for program in servers() {
        let mut cluster = Cluster::start(program);
        let filters: Vec<String> = (0..30).map(|i| format!("filter{i}")).collect();
        for filter in &filters {
            let keys = items(&format!("{filter}-"), 0..500);
            assert_eq!(cluster.command(&format!("BF.MADD {filter}"), &keys).array().len(), 500);
            cluster.command(&format!("CF.INSERT cf:{filter} CAPACITY 64 ITEMS"), &keys[..100]);
        }
        let check = |cluster: &mut Cluster| {
            for filter in &filters {
                let keys = items(&format!("{filter}-"), 0..500);
                assert_eq!(
                    cluster.command(&format!("BF.MEXISTS {filter}"), &keys).integers(),
                    [1; 500],
                    "{filter}"
                );
                assert_eq!(
                    cluster.command(&format!("CF.MEXISTS cf:{filter}"), &keys[..100]).integers(),
                    [1; 100]
                );
            }
        };
        check(&mut cluster);
        // Move every slot with keys from the first primary to the second.
        let (from, to) = (cluster.servers[0].port, cluster.servers[1].port);
        let mut moved = 0;
        for slot in 0..=5460 {
            let source = cluster.clients.get_mut(&from).unwrap();
            let keys = source.command(&format!("CLUSTER GETKEYSINSLOT {slot} 100"));
            if keys.array().is_empty() {
                continue;
            }
            let (source_name, mut target) = (name(source), Client::connect(to));
            let target_name = name(&mut target);
            assert_eq!(
                target.command(&format!("CLUSTER SETSLOT {slot} IMPORTING {source_name}")),
                Answer::Word("OK".into())
            );
            assert_eq!(
                source.command(&format!("CLUSTER SETSLOT {slot} MIGRATING {target_name}")),
                Answer::Word("OK".into())
            );
            let names: Vec<String> =
                keys.array().iter().map(|key| String::from_utf8(key.bytes().to_vec()).unwrap()).collect();
            moved += names.len();
            let migrated = source.command_with(&format!("MIGRATE 127.0.0.1 {to}  0 10000 KEYS"), &names);
            assert_eq!(migrated, Answer::Word("OK".into()));
            for client in cluster.clients.values_mut() {
                client.command(&format!("CLUSTER SETSLOT {slot} NODE {target_name}"));
            }
        }
        assert!(moved > 5, "{moved} keys moved");
        check(&mut cluster);
        // Valkey can also migrate slots with all of their keys.
        let (third, first) = (cluster.servers[2].port, name(cluster.clients.get_mut(&from).unwrap()));
        let source = cluster.clients.get_mut(&third).unwrap();
        let before = source.command("DBSIZE").integer();
        let answer = source.command(&format!("CLUSTER MIGRATESLOTS SLOTSRANGE 10923 13653 NODE {first}"));
        if program.ends_with("valkey-server") {
            assert_eq!(answer, Answer::Word("OK".into()));
            wait_for("the slots", || {
                cluster.clients.get_mut(&third).unwrap().command("DBSIZE").integer() < before
            });
            check(&mut cluster);
        }
        // The data of the second primary is lost with it, so its replica must have all of it.
        wait_for("the replica", || {
            let offsets = |text: String| {
                let number =
                    |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                number("master_repl_offset:")
            };
            let replica = cluster.servers[4].port;
            let ours = offsets(text(cluster.clients.get_mut(&to).unwrap(), "INFO replication"));
            let theirs = offsets(text(cluster.clients.get_mut(&replica).unwrap(), "INFO replication"));
            ours == theirs
        });
        cluster.servers[1].kill();
        cluster.clients.remove(&to);
        wait_for("the replica to take over", || {
            let replica = cluster.servers[4].port;
            text(cluster.clients.get_mut(&replica).unwrap(), "INFO replication").contains("role:master")
        });
        check(&mut cluster);
        assert_eq!(cluster.command("BF.ADD filter0 another", &[]).integer(), 1);
    }
}
