//! Packets and addresses: captures, lists of addresses and signatures, networks, stores on other
//! machines, and reports of the hosts that exchanged a payload and of the routers that forwarded a
//! packet.

pub mod address_lists;
pub mod captures;
pub mod document;
pub mod findings;
pub mod network;
pub mod paths;
pub mod remote_store;
pub mod sides;
pub mod signatures;
pub mod store_report;
