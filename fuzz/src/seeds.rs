//! Inputs to begin with: the golden files of the repository, and small things of every sort that the library itself writes.

use flate2::Compression;
use flate2::read::GzEncoder;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;
use umbel::Hasher;
use umbel::aging::Timestamp;
use umbel_net::attribution::{Method, Recorder, Settings};
use umbel_net::blocklist::{Blocklist, Engine, Options, state};
use umbel_net::capture::{Link, Packet, Time, Writer};

/// An input with its name.
pub type Seed = (String, Vec<u8>);

/// The seeds of every target.
pub fn all() -> io::Result<Vec<(&'static str, Vec<Seed>)>> {
    Ok(vec![
        ("blocklist_state", blocklists().map_err(io::Error::other)?),
        ("capture", captures()?),
        ("filter_file", filters()?),
        ("store", epochs()?),
    ])
}

/// The golden files.
fn filters() -> io::Result<Vec<Seed>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/umbel/tests/golden");
    let files = std::fs::read_dir(folder)?.map(|entry| {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, std::fs::read(path)?))
    });
    files.collect()
}

/// Small lists of both engines, with and without a secret.
fn blocklists() -> umbel::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for engine in [Engine::Exact, Engine::Aging { generations: 3 }] {
        for (hasher, embed_key) in [(Hasher::default(), false), (Hasher::keyed(*b"sixteen letters!"), true)] {
            let options =
                Options { engine, capacity: 8, rate: 0.01, hasher, embed_key, ..Options::default() };
            let mut list = Blocklist::new(&options, Timestamp::from_millis(1_000_000))?;
            seeds.push((format!("{engine}-{embed_key}-empty"), state::to_bytes(&list)?));
            for prefix in ["10.0.0.1", "192.0.2.0/24", "2001:db8::/32"] {
                list.block(prefix.parse()?, None)?;
            }
            if engine == Engine::Exact {
                list.block("10.0.0.9".parse()?, Some(Duration::from_secs(5)))?;
            }
            list.allow("192.0.2.7".parse()?);
            list.allow("2001:db8::1".parse()?);
            list.advance(Timestamp::from_millis(2_500_000))?;
            seeds.push((format!("{engine}-{embed_key}"), state::to_bytes(&list)?));
        }
    }
    Ok(seeds)
}

/// Epochs of every method, of packets and of streams.
fn epochs() -> io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    let text = crate::store::text();
    for method in Method::ALL {
        for streams in [false, true] {
            let local = vec!["10.0.0.0/24".parse().map_err(io::Error::other)?];
            let settings = Settings { streams, local, pairs: 2, full: 1024, ..Settings::of(method) };
            let mut recorder = Recorder::new(settings, 1).map_err(io::Error::other)?;
            let mut frames: Vec<Vec<u8>> = (1..6).map(|host| tcp(host, 99, 0, text)).collect();
            frames.extend((1..3).map(|host| udp(2 + 2 * host, 17, text)));
            for (number, frame) in frames.iter().enumerate() {
                let time = Time::from_secs(1_700_000_000 + number as u64);
                let packet = Packet::from_frame(Link::RAW, frame, time, 0).map_err(io::Error::other)?;
                recorder.record(&packet).map_err(io::Error::other)?;
            }
            if let Some(epoch) = recorder.finish().map_err(io::Error::other)? {
                seeds.push((format!("{method}-{streams}"), epoch.to_bytes().map_err(io::Error::other)?));
            }
        }
    }
    Ok(seeds)
}

/// Connections with all that can happen to them, in every format and link type.
fn captures() -> io::Result<Vec<Seed>> {
    const SYN: u8 = 2;
    let connection = [
        tcp(1, 99, SYN, b""),
        tcp(1, 105, 0, b"plans"),
        tcp(1, 100, 0, b"the "),
        tcp(1, 102, 0, b"EX"),
        tcp(2, 7, 0, b"start"),
        tcp(2, 40, 0, &[b'y'; 150]),
        tcp(2, 200, 0, &[b'z'; 150]),
        tcp(1, 110, 1, b"end"),
        tcp(1, 113, 4, b""),
    ];
    let strangers = [
        udp(4, 17, b"query"),
        udp(6, 17, b"query"),
        udp(4, 132, b"\x00\x00\x00\x00some"),
        // A header of IPv6 between, and a fragment.
        [
            &[0x60, 0, 0, 0, 0, 16, 44, 64],
            &[0; 32][..],
            &[17, 0, 0, 1, 0, 0, 0, 9],
            &[0, 1, 0, 2, 0, 8, 0, 0],
        ]
        .concat(),
        vec![0x99; 20],
    ];
    let mut seeds =
        vec![("empty".into(), pcap(Link::RAW, &[])?), ("pcap".into(), pcap(Link::RAW, &connection)?)];
    seeds.push(("packets".into(), pcap(Link::RAW, &strangers)?));
    for (name, link, head) in [
        ("ethernet", Link::ETHERNET, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 5, 8, 0][..]),
        ("cooked", Link::LINUX_SLL, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
        ("loopback", Link::NULL, &[2, 0, 0, 0]),
    ] {
        let frames: Vec<_> = connection.iter().map(|packet| [head, packet].concat()).collect();
        seeds.push((name.into(), pcap(link, &frames)?));
    }
    seeds.push(("pcapng".into(), pcapng(&connection)));
    for place in [1, seeds.len() - 1] {
        let (name, plain) = &seeds[place];
        let (name, mut packed) = (format!("{name}-gz"), Vec::new());
        GzEncoder::new(plain.as_slice(), Compression::default()).read_to_end(&mut packed)?;
        seeds.push((name, packed));
    }
    Ok(seeds)
}

fn pcap(link: Link, frames: &[Vec<u8>]) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), link)?;
    for (frame, second) in frames.iter().zip(1_700_000_000..) {
        writer.write(Time::from_secs(second), frame)?;
    }
    Ok(writer.into_inner())
}

/// A section, an interface with a resolution, and enhanced, simple and old packets in turn.
fn pcapng(frames: &[Vec<u8>]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &body, &length].concat()
    };
    let mut bytes =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    bytes
        .extend(block(1, &[&101u32.to_le_bytes()[..], &[0; 4], &[9, 0, 1, 0, 9, 0, 0, 0], &[0; 4]].concat()));
    for (frame, number) in frames.iter().zip(0u32..) {
        let length = (frame.len() as u32).to_le_bytes();
        let fields = [[0; 4], 400_000_000u32.to_le_bytes(), number.to_le_bytes(), length, length].concat();
        bytes.extend(match number % 3 {
            0 => block(6, &[&fields[..], frame].concat()),
            1 => block(3, &[&length[..], frame].concat()),
            _ => block(2, &[&fields[..], frame].concat()),
        });
    }
    bytes
}

/// An IPv4 packet with a segment from a host.
fn tcp(host: u8, seq: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let header = [0, 5, 0, 80, 0, 0, 0, seq, 0, 0, 0, 0, 0x50, flags, 1, 1, 0, 0, 0, 0];
    ip(4, host, 6, &[&header[..], payload].concat())
}

/// A packet of either version with a datagram.
fn udp(version: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [_, length] = (8 + payload.len() as u16).to_be_bytes();
    ip(version, 3, protocol, &[&[0, 53, 0, 99, 0, length, 0, 0], payload].concat())
}

fn ip(version: u8, host: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16;
    let header = if version == 4 {
        let [high, low] = (20 + length).to_be_bytes();
        vec![0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, host, 10, 0, 0, 9]
    } else {
        let [high, low] = length.to_be_bytes();
        let mut header = vec![0x60, 0, 0, 0, high, low, protocol, 64];
        header.extend([[0xfd; 15].as_slice(), &[host], &[0xfd; 15], &[9]].concat());
        header
    };
    [header, payload.to_vec()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel_net::attribution::Epoch;

    /// A seed that is refused would begin nothing.
    #[test]
    fn seeds_are_taken() -> io::Result<()> {
        for (target, seeds) in all()? {
            for (name, bytes) in seeds {
                match target {
                    "filter_file" => assert!(crate::filter_file::loads(&bytes), "{name}"),
                    "blocklist_state" => assert!(crate::blocklist_state::loads(&bytes), "{name}"),
                    "store" => assert!(crate::store::loads(&bytes), "{name}"),
                    _ => assert!(crate::capture::loads(&bytes), "{name}"),
                }
            }
        }
        Ok(())
    }

    /// What was changed at its head or at its end and then sealed is not damaged: it is fine, or refused for what it says.
    #[test]
    fn seals_fit() -> io::Result<()> {
        for (target, seeds) in all()?.into_iter().filter(|(target, _)| *target != "capture") {
            for (name, mut bytes) in seeds {
                bytes[48] ^= 1;
                let last = bytes.len() - 9;
                bytes[last] ^= 1;
                let problem = match target {
                    "filter_file" => {
                        crate::seal::filter_file(&mut bytes);
                        umbel::file::from_bytes(&bytes, &crate::ring()).err()
                    }
                    "store" => {
                        crate::seal::epoch(&mut bytes);
                        Epoch::from_bytes(&bytes).err()
                    }
                    _ => {
                        crate::seal::blocklist_state(&mut bytes);
                        state::from_bytes(&bytes, &crate::ring()).err()
                    }
                };
                let damaged = problem.filter(|problem| problem.to_string().contains("damaged"));
                assert!(damaged.is_none(), "{name}: {damaged:?}");
            }
        }
        Ok(())
    }
}
