//! Captures for the tests: real ones, and frames to build others.

use crate::debian;
use etherparse::{PacketBuilder, TcpHeader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use umbel_net::capture::{Link, Timestamp, Writer};

/// Returns all captures of two Debian packages: 47 of connections with a web server, small ones of
/// many protocols, and the examples of the pcapng format in both byte orders.
pub fn real_captures() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for package in ["pathspider", "golang-github-gopacket-gopacket-dev"] {
        let before = found.len();
        collect(&debian::unpacked(package, "usr"), &mut found);
        assert!(found.len() > before + 40, "{package} has captures");
    }
    found.sort();
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "pcap" || extension == "pcapng") {
            found.push(path);
        }
    }
}

/// Returns an Ethernet frame with a UDP datagram.
pub fn udp(source: IpAddr, destination: IpAddr, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let ip = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            ethernet.ipv4(source.octets(), destination.octets(), 64)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            ethernet.ipv6(source.octets(), destination.octets(), 64)
        }
        _ => panic!("addresses of one version"),
    };
    let mut frame = Vec::new();
    ip.udp(ports.0, ports.1).write(&mut frame, payload).expect("a datagram");
    frame
}

/// Returns an Ethernet frame with a TCP segment; the flags are S, F and R.
pub fn tcp(
    source: [u8; 4],
    destination: [u8; 4],
    ports: (u16, u16),
    seq: u32,
    flags: &str,
    payload: &[u8],
) -> Vec<u8> {
    let mut header = TcpHeader::new(ports.0, ports.1, seq, 1000);
    (header.syn, header.fin, header.rst) = (flags.contains('S'), flags.contains('F'), flags.contains('R'));
    let ip = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(source, destination, 64);
    let mut frame = Vec::new();
    ip.tcp_header(header).write(&mut frame, payload).expect("a segment");
    frame
}

/// Returns a pcap file of frames that are a millisecond apart.
pub fn pcap(link: Link, frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), link).expect("room");
    for (at, frame) in (1_700_000_000_000_000_000..).step_by(1_000_000).zip(frames) {
        writer.write(Timestamp::from_nanos(at), &frame).expect("room");
    }
    writer.into_inner()
}
