//! The places of clients: a limited number of connections or tunnels, of which each address gets a
//! fair share.
//!
//! An address gets another place as long as it holds fewer than are free. This is the dynamic
//! threshold of shared-memory switches: one address alone gets half of the places, and two that
//! take them at the same time get a third each. Each further address can take half of the rest, so
//! that the places of *n* clients are full when log2 *n* addresses take all they can.
//!
//! # References
//!
//! A. K. Choudhury and E. L. Hahne. *Dynamic queue length thresholds for shared-memory packet
//! switches.* IEEE/ACM Transactions on Networking 6(2), 1998.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use umbel::internals::sync::lock;

/// A limited number of places. Clones share them.
#[derive(Clone)]
pub(super) struct Places(Arc<Shared>);

struct Shared {
    max: usize,
    taken: Mutex<Taken>,
    /// Notified when a place becomes free.
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    total: usize,
    by_holder: HashMap<Holder, usize>,
}

/// The clients that share a quota: an IPv4 address, or an IPv6 network of 64 bits, since a host can
/// choose its address within it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Holder(IpAddr);

/// A place, which becomes free when this value is dropped.
pub(super) struct Place {
    shared: Arc<Shared>,
    holder: Holder,
}

impl Places {
    pub fn new(max: usize) -> Places {
        Places(Arc::new(Shared { max, taken: Mutex::default(), freed: Notify::new() }))
    }

    /// Takes a place, unless the address has its share already.
    pub fn try_take(&self, address: IpAddr) -> Option<Place> {
        let holder = Holder::new(address);
        let mut taken = lock(&self.0.taken);
        let held = taken.by_holder.get(&holder).copied().unwrap_or(0);
        if held >= self.0.max - taken.total {
            return None;
        }
        taken.total += 1;
        taken.by_holder.insert(holder, held + 1);
        Some(Place { shared: Arc::clone(&self.0), holder })
    }

    /// Takes a place as soon as the address may have one.
    pub async fn take(&self, address: IpAddr) -> Place {
        loop {
            let mut freed = pin!(self.0.freed.notified());
            // A place that is freed after the attempt must not be missed.
            freed.as_mut().enable();
            if let Some(place) = self.try_take(address) {
                return place;
            }
            freed.await;
        }
    }

    /// Waits until all places are free.
    pub async fn all_free(&self) {
        loop {
            let mut freed = pin!(self.0.freed.notified());
            freed.as_mut().enable();
            if lock(&self.0.taken).total == 0 {
                return;
            }
            freed.await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.shared.taken);
        taken.total -= 1;
        if let Some(held) = taken.by_holder.get_mut(&self.holder) {
            *held -= 1;
            if *held == 0 {
                taken.by_holder.remove(&self.holder);
            }
        }
        drop(taken);
        self.shared.freed.notify_waiters();
    }
}

impl Holder {
    fn new(address: IpAddr) -> Holder {
        Holder(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes places until the address gets no more.
    fn take_all(places: &Places, address: &str) -> Vec<Place> {
        std::iter::from_fn(|| places.try_take(address.parse().unwrap())).collect()
    }

    #[test]
    fn no_address_can_take_all_places() {
        for max in [2, 3, 50, 1000] {
            let places = Places::new(max);
            let first = take_all(&places, "192.0.2.1");
            assert_eq!(first.len(), max.div_ceil(2), "of {max}");
            if max >= 3 {
                let second = take_all(&places, "192.0.2.2");
                assert!(second.len() >= max / 4, "{} of {max}", second.len());
            }
            assert!(places.try_take("192.0.2.3".parse().unwrap()).is_some(), "of {max}");
            drop(first);
            assert!(places.try_take("192.0.2.1".parse().unwrap()).is_some(), "of {max}");
        }
        assert_eq!(take_all(&Places::new(1), "192.0.2.1").len(), 1);
    }

    #[test]
    fn a_few_addresses_leave_a_place_for_another() {
        let places = Places::new(1000);
        let held: Vec<Vec<Place>> = (0..9).map(|i| take_all(&places, &format!("198.51.100.{i}"))).collect();
        assert!(held.iter().all(|places| !places.is_empty()));
        assert!(places.try_take("192.0.2.1".parse().unwrap()).is_some());
    }

    #[test]
    fn addresses_that_take_places_in_turns_get_equal_shares() {
        let places = Places::new(1000);
        let mut held = Vec::new();
        for _ in 0..1000 {
            held.extend((1..=9).filter_map(|i| places.try_take(format!("192.0.2.{i}").parse().unwrap())));
        }
        let taken = lock(&places.0.taken);
        assert!(taken.by_holder.values().all(|held| (99..=101).contains(held)), "{}", taken.total);
    }

    #[test]
    fn the_addresses_of_one_host_share_its_places() {
        for (one, other) in [("2001:db8::1", "2001:db8::ffff:2"), ("192.0.2.1", "::ffff:192.0.2.1")] {
            let places = Places::new(10);
            let _held = take_all(&places, one);
            assert!(places.try_take(other.parse().unwrap()).is_none(), "{one} {other}");
        }
        let places = Places::new(10);
        let _held = take_all(&places, "2001:db8::1");
        assert!(places.try_take("2001:db8:0:1::1".parse().unwrap()).is_some());
    }

    #[test]
    fn places_are_forgotten_when_they_are_free() {
        let places = Places::new(10);
        drop(take_all(&places, "192.0.2.1"));
        let taken = lock(&places.0.taken);
        assert_eq!((taken.total, taken.by_holder.len()), (0, 0));
    }
}
