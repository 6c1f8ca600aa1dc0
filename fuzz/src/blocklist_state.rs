//! The state of a blocklist.
//!
//! No input may cause a panic. A list that was read gives verdicts and figures, gives the same ones
//! after it was written and read again, and keeps working: time can advance, and an address that is
//! blocked is reported as blocked.

use crate::seal;
use std::net::IpAddr;
use std::time::Duration;
use umbel::Timestamp;
use umbel_net::blocklist::{Backend, Blocklist, Verdict, state};
use umbel_net::network::Prefix;

/// Tests any bytes, as they are and with matching checksums.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::blocklist_state(&mut sealed);
    loads(&sealed);
}

/// Tries to read a list, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let Ok(list) = state::from_bytes(bytes, &crate::ring()) else { return false };
    let written = state::to_bytes(&list).expect("what was read can be written");
    let mut again = state::from_bytes(&written, &crate::ring()).expect("what was written can be read");
    assert_eq!(describe(&list), describe(&again));
    assert_eq!(written, state::to_bytes(&again).expect("room"), "the same bytes");
    go_on(&mut again);
    true
}

fn addresses() -> [IpAddr; 4] {
    [[10, 0, 0, 1].into(), [192, 0, 2, 7].into(), [0; 16].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()]
}

/// Returns verdicts and figures as text, because a figure may be NaN, which equals nothing.
fn describe(list: &Blocklist) -> String {
    let verdicts = list.check_all(&addresses());
    assert_eq!(verdicts, addresses().map(|address| list.check(address)), "single and batch lookups agree");
    format!("{verdicts:?} {:?} {:?}", list.figures(), list.innocents(&addresses()))
}

fn go_on(list: &mut Blocklist) {
    for address in addresses() {
        let prefix = Prefix::host(address);
        list.disallow(prefix);
        if list.block(prefix, None).is_ok() {
            assert_ne!(list.check(address), Verdict::Free, "{address} was blocked");
        }
        if list.options().backend == Backend::Exact {
            let _ = list.unblock(prefix);
        }
    }
    let lifetime = u64::try_from(list.options().lifetime.as_millis()).unwrap_or(u64::MAX);
    let now = list.now().millis();
    for later in [now.saturating_add(lifetime / 3), now.saturating_add(lifetime), u64::MAX] {
        let _ = list.advance(Timestamp::from_millis(later));
        let _ = list.block(Prefix::host(addresses()[0]), Some(Duration::from_millis(later)));
        describe(list);
    }
}
