//! Network addresses as keys.

use super::{Key, converted_keys};
use crate::{Digest, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

converted_keys! {
    |address: Ipv4Addr| address.octets();
    |address: Ipv6Addr| address.octets();
    |address: SocketAddrV4| (address.ip(), address.port());
    |address: SocketAddrV6| (address.ip(), address.port(), address.flowinfo(), address.scope_id());
}

/// Implements `Key` for addresses of either version: the key is that of the inner address.
macro_rules! either_version {
    ($($address:ident),*) => {$(
        impl Key for $address {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                match self {
                    $address::V4(address) => address.with_bytes(f),
                    $address::V6(address) => address.with_bytes(f),
                }
            }
        }
    )*};
}
either_version!(IpAddr, SocketAddr);
