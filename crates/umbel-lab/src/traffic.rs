//! Payloads for experiments about attribution: generated, recorded, and searched exactly, so that
//! the true carriers of an excerpt are known.

use crate::{Error, Lab, Result};
use std::net::{IpAddr, Ipv4Addr};
use umbel_net::attribution::{Epoch, Finding, Pair, Recorder, Settings};
use umbel_net::capture::{Packet, Timestamp};

/// A stream of random numbers. Streams with different names are independent.
pub(crate) struct Dice<'a> {
    lab: &'a Lab,
    stream: u64,
    thrown: u64,
}

impl<'a> Dice<'a> {
    /// Creates the stream with this name for a build.
    pub fn new(lab: &'a Lab, name: &[u8; 4], build: u64) -> Dice<'a> {
        Dice { lab, stream: u64::from(u32::from_le_bytes(*name)) << 32 | build, thrown: 0 }
    }

    /// Returns a number below `range`.
    pub fn below(&mut self, range: usize) -> usize {
        self.thrown += 1;
        self.lab.draw(self.stream, self.thrown, range as u64) as usize
    }

    /// Returns a number from 0 to 1, without 1 itself.
    pub fn fraction(&mut self) -> f64 {
        self.below(1 << 53) as f64 / (1u64 << 53) as f64
    }

    /// Returns `length` random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let words = (0..length.div_ceil(4)).flat_map(|_| (self.below(1 << 32) as u32).to_le_bytes());
        words.take(length).collect()
    }
}

/// A payload, and the pair of hosts between which it was sent.
pub(crate) struct Sent {
    /// Sender and receiver.
    pub pair: Pair,
    /// Content.
    pub payload: Vec<u8>,
}

/// Returns the pair of hosts with this number. No two pairs share a host.
pub(crate) fn pair(number: usize) -> Pair {
    let host = |network: u32| IpAddr::from(Ipv4Addr::from(network + number as u32));
    Pair::new(host(0x0a00_0000), host(0x0b00_0000))
}

/// Records these payloads in a single epoch.
pub(crate) fn record(settings: Settings, seed: u64, sent: &[Sent]) -> Result<Epoch> {
    let bytes: usize = sent.iter().map(|sent| sent.payload.len()).sum();
    let full = settings.full.max(bytes as u64 + 1);
    let mut recorder = Recorder::new(Settings { full, ..settings }, seed)?;
    for (sent, number) in sent.iter().zip(1..) {
        if let (Some(source), Some(destination)) = (sent.pair.source, sent.pair.destination) {
            recorder.record(&Packet {
                number,
                time: Timestamp::from_secs(number),
                source,
                destination,
                protocol: 17,
                ports: None,
                tcp: None,
                fragment: None,
                ip: &[],
                payload: &sent.payload,
                length: sent.payload.len() as u32,
            })?;
        }
    }
    let nothing = || Error::parameter("payloads", sent.len(), "some of at least a block");
    recorder.finish()?.ok_or_else(nothing)
}

/// Returns whether one of the findings names the pair.
pub(crate) fn names(findings: &[Finding], pair: Pair) -> bool {
    findings.iter().any(|finding| finding.listed.pair == pair)
}

/// Returns whether a payload contains an excerpt.
pub(crate) fn contains(payload: &[u8], excerpt: &[u8]) -> bool {
    // Most windows already differ in the first byte.
    payload.windows(excerpt.len().max(1)).any(|window| window.first() == excerpt.first() && window == excerpt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    #[test]
    fn a_recorded_excerpt_is_attributed_to_the_pair_that_sent_it() {
        let lab = Lab::new(Scale::Quick, 1);
        let mut dice = Dice::new(&lab, b"test", 0);
        let mut send = |number| Sent { pair: pair(number), payload: dice.bytes(300) };
        let sent: Vec<Sent> = (0..10).map(&mut send).collect();
        let epoch = record(Settings::default(), 1, &sent).expect("an epoch");
        for (i, one) in sent.iter().enumerate() {
            let excerpt = &one.payload[7 * i..][..150];
            let carriers = sent.iter().filter(|sent| contains(&sent.payload, excerpt));
            assert_eq!(carriers.map(|sent| sent.pair).collect::<Vec<_>>(), [pair(i)]);
            assert!(names(&epoch.find(excerpt).expect("long enough").findings, pair(i)));
        }
    }
}
