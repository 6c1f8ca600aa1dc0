//! Bloom filters for packets.
//!
//! [`capture`] reads packets from captures, and puts their streams together. [`flows`] counts the packets of flows in a few bits each.
//! [`payload`] keeps digests of payloads in a few bits per block, and tells later whether an excerpt may have been part of one
//! of them, and where. [`signatures`] finds many byte strings in data at once, with filters in front of an exact table.
//!
//! [`blocklist`] blocks addresses and prefixes for a time.
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
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! What packets carry themselves, and what routers remember of them:
//!
//! | room | answers | by |
//! | --- | --- | --- |
//! | [`loops`] | does this packet run in a circle? | a filter in its header |
//! | [`traceback`] | where did this packet come from? | pages of digests in routers, or a filter in its header |
//! | [`routing`] | which neighbour is nearest to this document? | a filter for each link and distance |
//! | [`privacy`] | how often was this seen, without saying what | a cover that shares its cell |
//!
//! [`mask`] is the filter of a few words that headers carry, and [`topology`] has networks to try all of this on.

pub mod capture;
pub mod flows;
pub mod blocklist;
pub mod loops;
pub mod mask;
pub mod payload;
pub mod signatures;
pub mod privacy;
mod random;
pub mod routing;
pub mod topology;
pub mod traceback;
