//! An epoch of an attribution store.
//!
//! No input may cause a panic. An epoch that was read answers queries for excerpts and for
//! documents, and gives the same answers after it was written and read again.

use crate::seal;
use umbel_net::attribution::Epoch;

/// Tests any bytes, as they are and with matching checksums.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::epoch(&mut sealed);
    loads(&sealed);
}

/// Tries to read an epoch, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let Ok(epoch) = Epoch::from_bytes(bytes) else { return false };
    let written = epoch.to_bytes().expect("what was read can be written");
    let again = Epoch::from_bytes(&written).expect("what was written can be read");
    assert_eq!(describe(&epoch, bytes), describe(&again, bytes));
    true
}

/// Returns figures and answers as text, because a figure may be NaN, which equals nothing.
fn describe(epoch: &Epoch, bytes: &[u8]) -> String {
    let zeros = [0; 300];
    let answers = [text(), &zeros[..], bytes].map(|asked| {
        // Long enough to be judged, and short enough to be fast.
        let asked = &asked[..asked.len().min(600)];
        (epoch.find(asked), epoch.find_parts(asked))
    });
    let pairs: Vec<_> = epoch.listed().iter().map(|listed| (listed.pair, listed.continued)).collect();
    format!("{:?} {:?} {pairs:?} {answers:?}", epoch.about(), epoch.local())
}

/// The payload that the seeds have recorded.
pub fn text() -> &'static [u8] {
    b"From: the inside. To: the outside. Enclosed are the plans for the next year, as agreed. Burn this. And the rest, too; \
      there is a copy of it in the second drawer from above, behind the letters that nobody answers, and it is enough."
}
