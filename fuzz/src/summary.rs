//! Updates of a cache's summary, and digests of Squid.
//!
//! Whatever the bytes are, reading them ends without a panic. What was read is the same after it was written and read again, and an
//! update that is taken in twice changes nothing the second time.

use umbel::file::fields::sum;
use umbel_cache::{Applied, CacheDigest, CacheKey, Summary, Update, View};

/// Takes any bytes, as they are and with a sum that fits.
pub fn run(bytes: &[u8]) {
    digest(bytes);
    update(bytes);
    let mut sealed = bytes.to_vec();
    if let Some((summed, end)) = sealed.split_last_chunk_mut::<8>() {
        *end = sum(summed).to_le_bytes();
    }
    update(&sealed);
}

/// Tries to read a digest; whether it could.
pub fn digest(bytes: &[u8]) -> bool {
    let Ok(digest) = CacheDigest::decode(bytes) else { return false };
    assert_eq!(CacheDigest::decode(&digest.encode()).ok(), Some(digest.clone()));
    let _ = digest.contains(&CacheKey::from_url("http://example.org/"));
    true
}

/// Tries to read an update, and takes it in; whether it could be read.
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

/// The view of a small summary.
fn known() -> View {
    let mut summary = Summary::new(100, 8).expect("room");
    (0..50).for_each(|i| summary.insert(&CacheKey::from_url(&format!("http://example.org/{i}"))));
    summary.publish().expect("room");
    let mut view = View::default();
    view.apply(&summary.update(None)).expect("it is right");
    view
}
