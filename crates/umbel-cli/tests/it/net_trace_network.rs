//! `umbel net trace` in a network of namespaces: packets that the kernel has forwarded, translated,
//! cut and refused are traced to the router where they entered.

use crate::shell::{Process, Shell};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use umbel_net::capture::Reader;

/// Builds the network, and captures the packets of each router.
const SCRIPT: &str = include_str!("trace_network.sh");

/// Returns the reason why the network cannot be built here.
fn obstacle(shell: &Shell) -> Option<String> {
    let says = |script: &str| {
        let answer = Process::start(&mut shell.script(script)).finish();
        (answer.code == Some(0), answer.stderr)
    };
    if !says("[ \"$(id -u)\" = 0 ]").0 {
        return Some("only root can create network namespaces".into());
    }
    let tools = ["ip", "nft", "tcpdump", "bash"];
    if let Some(tool) = tools.iter().find(|tool| !says(&format!("command -v {tool}")).0) {
        return Some(format!("{tool} is not installed"));
    }
    // The system may forbid it nevertheless, in a container for instance.
    let (can, why) = says(
        "name=umbelprobe$$; ip netns add $name && ip netns exec $name nft list ruleset; code=$?; \
         ip netns del $name; exit $code",
    );
    (!can).then(|| format!("no network namespaces: {why}"))
}

#[test]
fn packets_that_the_kernel_forwards_are_traced_to_the_router_where_they_entered() {
    let shell = Shell::new();
    if let Some(obstacle) = obstacle(&shell) {
        eprintln!("skipped: {obstacle}");
        return;
    }
    shell.write("network.sh", SCRIPT);
    Process::start(&mut shell.script("bash network.sh .")).finish().ok();
    shell.write("net.txt", "R1 R2\nR2 R3\nR3 R4\nR2 R5\nR3 R6\n");
    for router in 1..=6 {
        let sides = format!("--in R{router}-in.pcap --out R{router}-out.pcap");
        shell.run(&format!("net trace record --router R{router} -o spie {sides}")).ok();
    }
    let ask = |capture: &str, number: u64, at: &str| {
        let packet = format!("--packet {capture} --number {number}");
        let answer = shell.run(&format!("net trace ask spie {packet} --topology net.txt --at {at}")).code(0);
        answer.text().lines().map(str::to_owned).collect::<Vec<_>>()
    };

    let mut reader = Reader::open(shell.path("V-in.pcap")).unwrap();
    // Only the first fragment of a packet has the port, which shows the sender.
    let mut ports = HashMap::new();
    let mut traced = BTreeMap::<_, u64>::new();
    while let Some(packet) = reader.next().unwrap() {
        if packet.protocol != 17 {
            continue;
        }
        let id = packet.fragment.map(|fragment| fragment.id);
        let port = packet.ports.map(|(_, port)| port).or_else(|| ports.get(&id).copied());
        let port = port.expect("the first fragment comes first");
        ports.insert(id, port);
        let changed = match (packet.destination, id) {
            (IpAddr::V6(_), _) => "",
            (_, Some(_)) => " (fragmented)",
            (_, None) => " (translated)",
        };
        let path = match port {
            9001 => format!("R4 <- R3 <- R2{changed} <- R1"),
            9002 => format!("R4 <- R3 <- R2{changed} <- R5"),
            9003 => "R4 <- R3 <- R6".to_owned(),
            port => panic!("port {port}"),
        };
        let found = ask("V-in.pcap", packet.number, "R4");
        assert!(found.contains(&path), "packet {}: {found:?} instead of {path}", packet.number);
        *traced.entry(path).or_default() += 1;
    }
    // Each host has sent three small packets, three large ones and three of IPv6. Large ones arrive
    // in two parts from A and B, of which the first large one was refused.
    let counts: Vec<u64> = traced.values().copied().collect();
    assert_eq!(counts, [6, 4, 3, 3, 3, 3, 9], "{traced:?}");

    // The router that could not forward the packet of B has answered.
    let mut reader = Reader::open(shell.path("B-in.pcap")).unwrap();
    let mut errors = 0;
    while let Some(packet) = reader.next().unwrap() {
        if packet.protocol == 1 {
            let found = ask("B-in.pcap", packet.number, "R5");
            assert!(found.contains(&"R5 <- R2 (quoted) <- R5".to_owned()), "{found:?}");
            errors += 1;
        }
    }
    assert_eq!(errors, 1);
}
