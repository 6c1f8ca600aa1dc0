//! Packets and addresses: captures, lists of addresses and signatures, networks, and reports of the
//! hosts that exchanged a payload and of the routers that forwarded a packet.

pub mod address_lists;
pub mod captures;
pub mod document;
pub mod findings;
pub mod network;
pub mod paths;
pub mod sides;
pub mod signatures;
