//! Bloom filters for network traffic: payload attribution, flow sizes, signatures, blocklists, loop
//! detection, traceback and routing.
//!
//! A network sees more packets than anyone can store. The structures in this crate keep a few bits
//! per packet and answer questions about them later. As usual with Bloom filters, there are no
//! false negatives, and the rate of false positives is known; the modules document what a false
//! positive costs and how often to expect one. The one exception is the generalized Bloom filter in
//! [`traceback`], which has false negatives.
//!
//! # Modules
//!
//! | module | question | method |
//! | --- | --- | --- |
//! | [`capture`] | which packets and TCP streams are in this capture? | a reader of pcap and pcapng, and stream reassembly |
//! | [`payload`] | has this excerpt passed, and where in a payload? | block-based, hierarchical and winnowing filters of payloads |
//! | [`attribution`] | which hosts sent this excerpt, to whom, and when? | a store of payload filters, one set per epoch |
//! | [`flows`] | how many packets does this flow have? | a multi-resolution space-code Bloom filter |
//! | [`signatures`] | which of a million byte strings are in this data? | Bloom filters in front of an exact table |
//! | [`blocklist`] | is this address blocked now? | an aging filter, or a counting filter with an exact list |
//! | [`loops`] | is this packet travelling in a loop? | a filter in its header |
//! | [`traceback`] | where did this packet come from? | digests of packets in routers (SPIE), in memory or in a store, or a filter in its header |
//! | [`routing`] | which neighbour is nearest to this document? | attenuated Bloom filters |
//! | [`privacy`] | how often was this seen, without naming it? | a query for something else in the same cell |
//!
//! [`simulate`] tries loop detection, traceback and routing on a whole network, and compares what it
//! counts with theory.
//!
//! Four modules support the others: [`mask`] has the small filter that headers carry, [`network`]
//! the prefixes of addresses, [`rfc3339`] formats and parses times, and [`topology`] reads, draws
//! and pictures networks.
//!
//! # Example
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
//!
//! # The path of a packet
//!
//! With payload attribution, a packet passes through most of the crate:
//!
//! 1. A [`capture::Reader`] reads the next record of a capture, removes the link layer, and decodes
//!    IP and the transport header. The result is a [`capture::Packet`] that borrows from the
//!    reader's buffer. Frames without an IP packet are counted and skipped.
//! 2. An [`attribution::Recorder`] takes the packet. If it reassembles streams, TCP segments first
//!    go through [`capture::streams::Streams`], which delivers the bytes of each stream in order.
//! 3. The payload is cut into blocks: of equal size with [`payload`], or at boundaries determined
//!    by the content with [`payload::winnowing`]. Each block is hashed once. Its records are salted
//!    digests, which bind it to the pair of hosts and, for blocks of equal size, to its number.
//! 4. When the epoch ends, by time or by size, its filters are built from the records. The result
//!    is an [`attribution::Epoch`], which an [`attribution::Store`] writes to a file.
//! 5. Later, [`attribution::Store::find`] cuts an excerpt into blocks in the same way and queries
//!    the filters of each epoch. It returns the pairs that may have carried the excerpt, together
//!    with the number of pairs expected by chance.
//!
//! The other consumers of packets are shorter: [`flows::Meter::record`] counts the packet in its
//! flow, [`signatures::StreamSearch`] searches its payload or its stream, and
//! [`traceback::spie::Agent::forward`] records the digest of its invariant fields.

pub mod attribution;
pub mod blocklist;
pub mod capture;
mod checked;
mod error;
pub mod flows;
pub mod loops;
pub mod mask;
pub mod network;
mod numbered;
pub mod payload;
pub mod privacy;
mod random;
pub mod rfc3339;
pub mod routing;
pub mod signatures;
pub mod simulate;
pub mod topology;
pub mod traceback;

pub use error::{Error, Result};
