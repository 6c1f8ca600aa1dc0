//! An epoch of an attribution store.
//!
//! Whatever the bytes are, reading ends without a panic. An epoch that was read answers, for excerpts and for documents, and answers the same
//! after it was written and read again.

use crate::seal;
use umbel_net::attribution::Epoch;

/// Takes any bytes, as they are and with sums that fit.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::epoch(&mut sealed);
    loads(&sealed);
}

/// Tries to read; whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let Ok(epoch) = Epoch::from_bytes(bytes) else { return false };
    let written = epoch.to_bytes().expect("what was read can be written");
    let again = Epoch::from_bytes(&written).expect("what was written can be read");
    assert_eq!(told(&epoch, bytes), told(&again, bytes));
    true
}

/// Figures and answers; as text, since a figure may be none and that equals nothing.
fn told(epoch: &Epoch, bytes: &[u8]) -> String {
    let zeros = [0; 300];
    let answers = [text(), &zeros[..], bytes].map(|asked| {
        // Enough to be judged, and not so much that it takes long.
        let asked = &asked[..asked.len().min(600)];
        (epoch.find(asked), epoch.find_parts(asked))
    });
    let pairs: Vec<_> = epoch.listed().iter().map(|listed| (listed.pair, listed.continued)).collect();
    format!("{:?} {:?} {pairs:?} {answers:?}", epoch.about(), epoch.local())
}

/// What the seeds have recorded.
pub fn text() -> &'static [u8] {
    b"From: the inside. To: the outside. Enclosed are the plans for the next year, as agreed. Burn this. And the rest, too; \
      there is a copy of it in the second drawer from above, behind the letters that nobody answers, and it is enough."
}
