//! Updates of a cache's summary, and digests of Squid.
//!
//! No input may cause a panic. A decoded value is the same after it was encoded and decoded again,
//! and applying an update a second time changes nothing.

use umbel::file::fields::sum;
use umbel_cache::{Applied, CacheDigest, CacheKey, Summary, Update, View};

/// Tests any bytes, as they are and with a matching checksum.
pub fn run(bytes: &[u8]) {
    digest(bytes);
    update(bytes);
    let mut sealed = bytes.to_vec();
    if let Some((summed, end)) = sealed.split_last_chunk_mut::<8>() {
        *end = sum(summed).to_le_bytes();
    }
    update(&sealed);
}

/// Tries to decode a digest, and returns whether it could.
pub fn digest(bytes: &[u8]) -> bool {
    let Ok(digest) = CacheDigest::decode(bytes) else { return false };
    assert_eq!(CacheDigest::decode(&digest.encode()).ok(), Some(digest.clone()));
    let _ = digest.contains(&CacheKey::from_url("http://example.org/"));
    true
}

/// Tries to decode an update and applies it, and returns whether it could be decoded.
pub fn update(bytes: &[u8]) -> bool {
    let Ok(update) = Update::decode(bytes) else { return false };
    assert_eq!(Update::decode(&update.encode()).ok(), Some(update.clone()));
    for mut view in [View::default(), known()] {
        let first = view.apply(&update).expect("it was read");
        let before = view.clone();
        let second = view.apply(&update).expect("it was read");
        assert!(view == before);
        assert!(second == first || second == Applied::Changed(0), "{first:?}, then {second:?}");
        let _ = view.contains(&CacheKey::from_url("http://example.org/"));
    }
    true
}

/// Returns the view of a small summary.
fn known() -> View {
    let mut summary = Summary::new(100, 8).expect("room");
    (0..50).for_each(|i| summary.insert(&CacheKey::from_url(&format!("http://example.org/{i}"))));
    summary.publish().expect("room");
    let mut view = View::default();
    view.apply(&summary.update(None)).expect("it is right");
    view
}
