//! A page of a traceback store.
//!
//! No input may cause a panic. A page that was read gives the same answers after it was written and
//! read again. The same bytes, taken as packets that pass through a router, are recognised when they
//! leave as they entered.

use crate::seal;
use umbel::Digest;
use umbel::file::fields::Fields;
use umbel_net::capture::Timestamp;
use umbel_net::traceback::passage::{Passage, Sighting};
use umbel_net::traceback::store::Page;

/// Tests any bytes, as they are and with matching checksums.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::trace_page(&mut sealed);
    loads(&sealed);
    passes(bytes);
}

/// Tries to read a page, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let Ok(page) = Page::from_bytes(bytes) else { return false };
    let written = page.to_bytes().expect("what was read can be written");
    let again = Page::from_bytes(&written).expect("what was written can be read");
    assert_eq!(describe(&page, bytes), describe(&again, bytes));
    true
}

/// Returns figures and answers as text, because a figure may be NaN, which equals nothing.
fn describe(page: &Page, bytes: &[u8]) -> String {
    let always = Timestamp::from_nanos(0)..=Timestamp::from_nanos(u64::MAX);
    let mut fields = Fields(bytes);
    let numbers = std::iter::from_fn(|| fields.u64()).take(600);
    let answers: Vec<_> = numbers
        .map(Digest::from_hash)
        .map(|packet| (page.contains(packet), page.before(packet, &always).collect::<Vec<_>>()))
        .collect();
    format!("{:?} {} {answers:?}", page.about(), page.rate())
}

/// Passes pieces of the input through a router.
fn passes(bytes: &[u8]) {
    let mut passage = Passage::default();
    let sightings: Vec<Sighting> =
        bytes.chunks(150).filter_map(|packet| Sighting::new(packet, Timestamp::from_secs(1)).ok()).collect();
    for packet in &sightings {
        passage.enter(packet.clone());
    }
    // Those of a second router, which the first has not seen.
    for packet in bytes.chunks(90).filter_map(|packet| Sighting::new(packet, Timestamp::from_secs(2)).ok()) {
        passage.leave(packet);
    }
    let count = sightings.len();
    sightings.into_iter().for_each(|packet| passage.leave(packet));
    passage.finish();
    let departures: Vec<_> = std::iter::from_fn(|| passage.next()).collect();
    assert!(departures[departures.len() - count..].iter().all(|departure| departure.is_unchanged));
}
