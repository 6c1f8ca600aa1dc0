//! The passage of packets through a router: which packet that left is which packet that entered.
//!
//! A router that translates addresses, cuts packets, or puts them into tunnels knows what it does.
//! Captures of its two sides do not say it, so a [`Passage`] derives it. A packet that left is
//! compared with those that entered shortly before:
//!
//! 1. It entered as it left, apart from the fields that every router changes.
//! 2. It carries a packet that entered: in IP, GRE, VXLAN, Geneve or GTP, in IPsec without
//!    encryption, or as the quotation of an ICMP error message.
//! 3. It was carried by a packet that entered.
//! 4. It or the packet that entered is a fragment, and both have the same identification, protocol
//!    and an address in common. Later fragments of a packet that was changed before it was cut are
//!    recognised by its first fragment.
//! 5. Its contents entered under other addresses or ports: TCP with the same numbers and flags, UDP
//!    or ICMP with the same payload; of packets with equal contents, those with the same
//!    identification.
//! 6. It is encrypted, or a packet that entered is, and they fit in time and length.
//!
//! The first rule that applies decides. If several packets fit equally well, all of them count, up
//! to sixteen, so that the true one is among them. The last rule is a guess, since encryption leaves
//! nothing else to compare. A router that changes the contents as well, such as a proxy, or that
//! holds a packet back for more than [`MAX_STAY`], is not seen through: its packets seem to begin
//! there.
//!
//! ```
//! use umbel_net::capture::Timestamp;
//! use umbel_net::traceback::passage::{Passage, Sighting};
//! use umbel_net::traceback::spie::Transform;
//!
//! // UDP from 10.0.0.1 to 10.0.0.2, which leaves with the source address 192.0.2.1.
//! let inside = b"\x45\0\0\x22\x12\x34\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\x04\xd2\0\x35\0\x0e\0\0secret";
//! let mut outside = *inside;
//! outside[12..16].copy_from_slice(&[192, 0, 2, 1]);
//! let mut passage = Passage::default();
//! passage.enter(Sighting::new(inside, Timestamp::from_secs(1))?);
//! passage.leave(Sighting::new(&outside, Timestamp::from_secs(1))?);
//! passage.finish();
//! let left = passage.next().expect("the packet that left");
//! assert_eq!(left.changes.len(), 1);
//! assert_eq!(left.changes[0].how, Transform::Translated);
//! # Ok::<(), umbel_net::Error>(())
//! ```

mod layers;

use super::spie::{Invariant, Transform};
use crate::Result;
use crate::capture::Timestamp;
use layers::Layers;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;
use umbel::{Digest, Hasher};

/// The longest time between the arrival of a packet and its departure.
pub const MAX_STAY: Duration = Duration::from_secs(2);

/// The time by which the clocks of the two sides may differ.
const MAX_SKEW: Duration = Duration::from_millis(10);

/// The largest number of packets that wait for their departure, so that a flood of packets cannot
/// take all memory.
const MAX_WAITING: usize = 1 << 16;

/// The largest number of packets that one packet may have come from.
const MAX_CANDIDATES: usize = 16;

/// The number of packets that are compared with an encrypted one.
const MAX_COMPARED: usize = 256;

/// The bytes that IPsec adds to a packet: headers, initial value, padding and check value.
const SECURED_BYTES: Range<u32> = 20..129;

/// The features of a packet at one side of a router.
#[derive(Clone, Debug)]
pub struct Sighting {
    time: Timestamp,
    digest: Digest,
    length: u32,
    /// A packet inside this one, and the transformation that put it there.
    inner: Option<(Digest, Transform)>,
    /// Digests of the contents with and without the identification.
    contents: Option<[Digest; 2]>,
    /// Digests of the identification with the source and with the destination.
    identity: Option<[Digest; 2]>,
    range: Range<u32>,
    is_fragment: bool,
    is_encrypted: bool,
    is_secured: bool,
}

impl Sighting {
    /// Returns the features of a packet that begins with its IP header. It may be truncated after
    /// the header.
    ///
    /// # Errors
    ///
    /// Fails if the packet does not begin with a complete IPv4 or IPv6 header.
    pub fn new(packet: &[u8], time: Timestamp) -> Result<Sighting> {
        let digest = Invariant::from_packet(packet)?.digest();
        let mut sighting = Sighting {
            time,
            digest,
            length: 0,
            inner: None,
            contents: None,
            identity: None,
            range: 0..0,
            is_fragment: false,
            is_encrypted: false,
            is_secured: false,
        };
        // A packet whose other headers are incomplete still has a digest.
        if let Some(layers) = Layers::from_packet(packet) {
            let id = layers.id.unwrap_or(u32::MAX).to_be_bytes();
            sighting.length = layers.length;
            sighting.inner = layers.inner();
            sighting.contents = layers.untranslated().map(|contents| {
                let contents = Hasher::default().digest_bytes(&contents);
                [contents.salted(u32::from_be_bytes(id).into()), contents]
            });
            sighting.identity = layers.id.map(|_| {
                [layers.source, layers.destination]
                    .map(|address| Hasher::default().digest_bytes(&[address, &id].concat()))
            });
            sighting.range = layers.range.clone();
            sighting.is_fragment = layers.is_fragment;
            sighting.is_encrypted = layers.is_encrypted();
            sighting.is_secured = layers.is_secured();
        }
        Ok(sighting)
    }

    /// Returns the time at which the packet was seen.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Returns the digest of the packet's invariant part.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the keys under which the packet is found by those that leave.
    fn keys(&self) -> impl Iterator<Item = Digest> {
        let carried = self.inner.filter(|(_, how)| *how != Transform::Quoted);
        let [identified, contents] = self.contents.map_or([None, None], |both| both.map(Some));
        let [source, destination] = self.identity.map_or([None, None], |both| both.map(Some));
        let keys = [
            (Some(self.digest), Relation::Same),
            (carried.map(|(inner, _)| inner), Relation::Carried),
            (identified, Relation::IdentifiedContents),
            (contents, Relation::Contents),
            (source, Relation::Source),
            (destination, Relation::Destination),
        ];
        keys.into_iter().filter_map(|(digest, relation)| Some(relation.key(digest?)))
    }

    /// Returns whether the contents of both are parts of one packet.
    fn overlaps(&self, other: &Sighting) -> bool {
        self.range.start < other.range.end && other.range.start < self.range.end
    }

    /// Returns the key of the fragments of one packet.
    fn siblings(&self) -> Option<Digest> {
        let [source, destination] = self.identity.filter(|_| self.is_fragment)?;
        Some(source.salted(destination.get()))
    }
}

/// What a packet that left has in common with one that entered.
#[derive(Clone, Copy)]
enum Relation {
    Same = 1,
    Carried,
    IdentifiedContents,
    Contents,
    Source,
    Destination,
}

impl Relation {
    fn key(self, digest: Digest) -> Digest {
        digest.salted(self as u64)
    }
}

/// A packet that became another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The packet that entered.
    pub before: Digest,
    /// Its transformation.
    pub how: Transform,
}

/// A packet that left, and the packets that it may have been when it entered.
#[derive(Clone, Debug)]
pub struct Departure {
    /// The packet that left.
    pub packet: Sighting,
    /// Whether it entered as it left.
    pub is_unchanged: bool,
    /// The packets that it may have been. If there are none, and it is not unchanged, the router
    /// has sent it by itself, or has changed it beyond recognition.
    pub changes: Vec<Change>,
}

/// The packets inside a router.
#[derive(Debug, Default)]
pub struct Passage {
    entered: VecDeque<Entered>,
    /// The number of the first of them.
    first: u64,
    /// The keys of the packets that entered, with their numbers.
    keys: BTreeSet<(Digest, u64)>,
    /// Packets that left, which wait for those that entered at the same time by a later clock.
    left: VecDeque<Sighting>,
    /// The changes of packets that left in fragments, and the times at which they did.
    cut: HashMap<Digest, Vec<Change>>,
    cut_times: VecDeque<(Timestamp, Digest)>,
    now: Timestamp,
    is_finished: bool,
}

#[derive(Debug)]
struct Entered {
    packet: Sighting,
    has_left: bool,
}

impl Passage {
    /// Notes a packet that entered the router. Packets of both sides must come in the order of their
    /// times.
    pub fn enter(&mut self, packet: Sighting) {
        self.advance(packet.time);
        let number = self.first + self.entered.len() as u64;
        self.keys.extend(packet.keys().map(|key| (key, number)));
        self.entered.push_back(Entered { packet, has_left: false });
    }

    /// Notes a packet that left the router.
    pub fn leave(&mut self, packet: Sighting) {
        self.advance(packet.time);
        self.left.push_back(packet);
    }

    /// Makes [`next`](Passage::next) return all packets that left, even if later ones could still
    /// enter.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Returns the next packet that left, once all packets that it may have been have entered.
    #[expect(clippy::should_implement_trait, reason = "more packets may leave after there was none")]
    pub fn next(&mut self) -> Option<Departure> {
        let is_due = |packet: &Sighting| since(self.now, packet.time) >= MAX_SKEW;
        if !self.is_finished && self.left.len() <= MAX_WAITING && !self.left.front().is_some_and(is_due) {
            return None;
        }
        let packet = self.left.pop_front()?;
        let mut is_unchanged = false;
        let changes = match self.candidates(Some(packet.digest), Relation::Same, &packet) {
            same if same.is_empty() => self.changes(&packet),
            same => {
                is_unchanged = true;
                same.into_iter().for_each(|number| self.mark(number));
                Vec::new()
            }
        };
        if let Some(siblings) = packet.siblings().filter(|_| !changes.is_empty()) {
            self.cut.insert(siblings, changes.clone());
            self.cut_times.push_back((packet.time, siblings));
        }
        Some(Departure { packet, is_unchanged, changes })
    }

    /// Returns the packets that a packet may have been, by the first rule that applies.
    fn changes(&mut self, packet: &Sighting) -> Vec<Change> {
        let rules = [Passage::carrying, Passage::carried, Passage::fragments, Passage::translated];
        let found = rules.iter().map(|rule| rule(self, packet)).find(|found| !found.is_empty());
        let siblings = || packet.siblings().and_then(|siblings| self.cut.get(&siblings)).cloned();
        let found = match found {
            Some(found) => found,
            None => match siblings() {
                Some(changes) => return changes,
                None => self.encrypted(packet),
            },
        };
        found.iter().for_each(|(number, _)| self.mark(*number));
        found
            .iter()
            .filter_map(|(number, how)| Some(Change { before: self.at(*number)?.packet.digest, how: *how }))
            .collect()
    }

    /// Returns the packets that this one carries.
    fn carrying(&self, packet: &Sighting) -> Vec<(u64, Transform)> {
        let Some((inner, how)) = packet.inner else { return Vec::new() };
        self.candidates(Some(inner), Relation::Same, packet).into_iter().map(|number| (number, how)).collect()
    }

    /// Returns the packets that carried this one.
    fn carried(&self, packet: &Sighting) -> Vec<(u64, Transform)> {
        let carriers = self.candidates(Some(packet.digest), Relation::Carried, packet);
        let how = |number: &u64| Some((*number, self.at(*number)?.packet.inner?.1));
        carriers.iter().filter_map(how).collect()
    }

    /// Returns the packets of which this one is a part, or that are parts of it.
    fn fragments(&self, packet: &Sighting) -> Vec<(u64, Transform)> {
        let [source, destination] = packet.identity.map_or([None, None], |both| both.map(Some));
        let mut numbers = self.candidates(source, Relation::Source, packet);
        numbers.extend(self.candidates(destination, Relation::Destination, packet));
        let is_part = |number: &u64| {
            self.at(*number).is_some_and(|Entered { packet: other, .. }| {
                (packet.is_fragment || other.is_fragment) && packet.overlaps(other)
            })
        };
        numbers.retain(is_part);
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| (number, Transform::Fragmented)).collect()
    }

    /// Returns the packets with the same contents.
    fn translated(&self, packet: &Sighting) -> Vec<(u64, Transform)> {
        let [identified, contents] = packet.contents.map_or([None, None], |both| both.map(Some));
        let mut numbers = self.candidates(identified, Relation::IdentifiedContents, packet);
        if numbers.is_empty() {
            numbers = self.candidates(contents, Relation::Contents, packet);
        }
        // A packet that has left by itself is less likely to have left as another one, too.
        let stays = |number: &u64| self.at(*number).is_some_and(|entered| !entered.has_left);
        if numbers.iter().any(stays) {
            numbers.retain(stays);
        }
        let how = |number: u64| {
            let was_secured = self.at(number).is_some_and(|entered| entered.packet.is_secured);
            let how =
                if was_secured == packet.is_secured { Transform::Translated } else { Transform::Secured };
            (number, how)
        };
        numbers.into_iter().map(how).collect()
    }

    /// Returns the packets that may have been encrypted or decrypted: those that have not left, with
    /// a length that fits.
    fn encrypted(&self, packet: &Sighting) -> Vec<(u64, Transform)> {
        let fits = |entered: &Entered| {
            let other = &entered.packet;
            let (inner, outer) = match (packet.is_encrypted, other.is_encrypted) {
                (true, false) => (other, packet),
                (false, true) => (packet, other),
                _ => return false,
            };
            let added = outer.length.checked_sub(inner.length);
            added.is_some_and(|added| SECURED_BYTES.contains(&added))
        };
        let numbered = self.entered.iter().enumerate().rev().take(MAX_COMPARED);
        numbered
            .filter(|(_, entered)| !entered.has_left && is_near(&entered.packet, packet) && fits(entered))
            .take(MAX_CANDIDATES)
            .map(|(place, _)| (self.first + place as u64, Transform::Secured))
            .collect()
    }

    /// Returns the packets that entered under this key shortly before another one left, the last
    /// first.
    fn candidates(&self, digest: Option<Digest>, relation: Relation, left: &Sighting) -> Vec<u64> {
        let Some(key) = digest.map(|digest| relation.key(digest)) else { return Vec::new() };
        let numbers = self.keys.range((key, 0)..=(key, u64::MAX)).rev().map(|(_, number)| *number);
        let is_candidate =
            |number: &u64| self.at(*number).is_some_and(|entered| is_near(&entered.packet, left));
        numbers.filter(is_candidate).take(MAX_CANDIDATES).collect()
    }

    fn at(&self, number: u64) -> Option<&Entered> {
        self.entered.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn mark(&mut self, number: u64) {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some(entered) = place.and_then(|place| self.entered.get_mut(place)) {
            entered.has_left = true;
        }
    }

    /// Sets the time, and forgets the packets of long ago.
    fn advance(&mut self, now: Timestamp) {
        self.now = now;
        // Packets that left may wait for as long as the clocks differ.
        let patience = 2 * MAX_SKEW + MAX_STAY;
        let is_old = |time: Timestamp| since(now, time) > patience;
        while self.entered.len() >= MAX_WAITING
            || self.entered.front().is_some_and(|entered| is_old(entered.packet.time))
        {
            let Some(Entered { packet, .. }) = self.entered.pop_front() else { break };
            for key in packet.keys() {
                self.keys.remove(&(key, self.first));
            }
            self.first += 1;
        }
        while self.cut_times.len() >= MAX_WAITING
            || self.cut_times.front().is_some_and(|(time, _)| is_old(*time))
        {
            let Some((_, siblings)) = self.cut_times.pop_front() else { break };
            self.cut.remove(&siblings);
        }
    }
}

/// Returns whether the times fit a packet that entered and left.
fn is_near(entered: &Sighting, left: &Sighting) -> bool {
    since(left.time, entered.time) <= MAX_STAY && since(entered.time, left.time) <= MAX_SKEW
}

fn since(later: Timestamp, earlier: Timestamp) -> Duration {
    Duration::from_nanos(later.nanos_since(earlier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_packets_and_fragments_takes_limited_memory() {
        let mut passage = Passage::default();
        let now = Timestamp::from_secs(1);
        let mut packet = *b"\x45\0\0\x1c\x12\x34\x20\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02abcdefgh";
        for number in 0..MAX_WAITING as u32 + 5000 {
            packet[12..16].copy_from_slice(&number.to_be_bytes());
            passage.enter(Sighting::new(&packet, now).expect("a header"));
            // Another destination: a fragment that was translated.
            packet[16] ^= 1;
            passage.leave(Sighting::new(&packet, now).expect("a header"));
            packet[16] ^= 1;
            while let Some(departure) = passage.next() {
                assert!(!departure.changes.is_empty());
            }
        }
        let Passage { entered, keys, left, cut, cut_times, .. } = &passage;
        assert!(
            entered.len() <= MAX_WAITING && keys.len() <= 6 * MAX_WAITING && left.len() <= MAX_WAITING + 1
        );
        assert!(cut.len() <= MAX_WAITING && cut_times.len() <= MAX_WAITING);
        let later = Sighting::new(&packet, Timestamp::from_secs(10)).expect("a header");
        passage.finish();
        while passage.next().is_some() {}
        passage.enter(later);
        assert_eq!((passage.entered.len(), passage.cut.len()), (1, 0));
    }
}
