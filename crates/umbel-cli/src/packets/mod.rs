//! Packets and addresses: captures, lists of addresses and signatures, stores on other machines,
//! and reports of the hosts that exchanged a payload.

pub mod address_lists;
pub mod captures;
pub mod document;
pub mod findings;
pub mod remote_store;
pub mod signatures;
pub mod store_report;
