//! Routing with attenuated Bloom filters: finding documents in a network by the summaries of the
//! neighbours (Rhea and Kubiatowicz 2002).
//!
//! For each of its links a node keeps an [`Attenuated`] filter: level 1 holds the documents of the
//! neighbour at the other end, level 2 those two hops away through that neighbour, and so on. A
//! query goes where the nearest copy appears to be. If that leads nowhere, because no level promised
//! the document or a false positive did, a slower lookup that is always right takes over: the query
//! climbs to the root of the document, a node that follows from its hash, and meets a pointer on
//! the way ([`Network::lookup`]). When documents are added or removed, neighbours send each other
//! the bits that flipped, each one level further down.
//!
//! ```
//! use umbel::{Hasher, Key};
//! use umbel_net::routing::{Document, Network, FilterShape};
//! use umbel_net::topology::Graph;
//!
//! let shape = FilterShape { bits: 4096, hashes: 3, depth: 3 };
//! let mut network = Network::new(Graph::abilene(), shape)?;
//! let document = Document::from_digest("plans.pdf".digest(&Hasher::default()), shape);
//! network.add(9, document);
//!
//! // From New York, one hop away.
//! let search = network.search(10, document);
//! assert_eq!((search.path, search.found), (vec![10, 9], true));
//! // From Seattle it is too far for a filter of three levels.
//! assert!(!network.search(0, document).found);
//! # Ok::<(), umbel_net::Error>(())
//! ```
//!
//! # References
//!
//! * S. C. Rhea and J. Kubiatowicz. *Probabilistic location and routing.* INFOCOM 2002. `RK02`
//! * C. G. Plaxton, R. Rajaraman and A. W. Richa. *Accessing nearby copies of replicated objects in
//!   a distributed environment.* SPAA 1997, for pointers on the way to a root. `PRR97`

mod attenuated;
mod directory;
mod network;

pub use attenuated::{Attenuated, Document, FilterShape, Flip, MAX_DEPTH, MAX_HASHES};
pub use directory::Climb;
pub use network::{Lookup, Network, Search, reach};
