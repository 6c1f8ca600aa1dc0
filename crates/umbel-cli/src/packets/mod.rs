//! Packets and addresses: captures read, lists of addresses and signatures, and reports of who
//! carried what.

pub mod address_lists;
pub mod captures;
pub mod document;
pub mod findings;
pub mod signatures;
