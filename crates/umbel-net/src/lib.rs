//! Bloom filters for packets.
//!
//! | room | answers | by |
//! | --- | --- | --- |
//! | [`capture`] | what is in this capture? | reading pcap and pcapng, and putting streams together |
//! | [`payload`] | has this excerpt passed, and where in a payload? | filters of blocks |
//! | [`attribution`] | who sent this excerpt, to whom, and when? | epochs of such filters, in a store |
//! | [`flows`] | how many packets has this flow? | a few bits for each of them |
//! | [`signatures`] | which of a million byte strings are in this data? | filters in front of an exact table |
//! | [`blocklist`] | is this address blocked at this time? | an aging filter, or a counting filter with its list |
//! | [`loops`] | does this packet run in a circle? | a filter in its header |
//! | [`traceback`] | where did this packet come from? | pages of digests in routers, or a filter in its header |
//! | [`routing`] | which neighbour is nearest to this document? | a filter for each link and distance |
//! | [`privacy`] | how often was this seen, without saying what? | a cover that shares its cell |
//!
//! [`mask`] is the filter of a few words that headers carry, [`network`] has prefixes of addresses, [`rfc3339`]
//! formats and parses times, and [`topology`] has graphs to try all of this on.
//!
//! ```
//! use umbel::{Bloom, Standard};
//! use umbel_net::payload::{Method, PayloadFilter};
//!
//! let mut seen = PayloadFilter::new(Bloom::<Standard>::with_capacity(1000, 0.001)?, 4, Method::BlockBased)?;
//! seen.record(b"GET /secret/plans.pdf HTTP/1.1")?;
//! let hits = seen.find(b"secret/plans")?;
//! assert!(hits.iter().any(|hit| hit.position == 5));
//! assert!(seen.find(b"public/plans")?.is_empty());
//! # Ok::<(), umbel_net::Error>(())
//! ```

pub mod attribution;
pub mod blocklist;
pub mod capture;
mod error;
pub mod flows;
pub mod loops;
pub mod mask;
pub mod network;
pub mod payload;
pub mod privacy;
mod random;
pub mod rfc3339;
pub mod routing;
pub mod signatures;
pub mod topology;
pub mod traceback;

pub use error::{Error, Result};
