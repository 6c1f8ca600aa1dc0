//! Finding documents in a network by what the neighbours tell (Rhea and Kubiatowicz 2002, "attenuated Bloom filters").
//!
//! For each of its links a node keeps an [`Attenuated`] filter: level 1 holds the documents of the neighbour at its other
//! end, level 2 those that are two hops away through it, and so on. A question goes to where the nearest copy seems to be;
//! if that leads nowhere, a slower lookup that is always right takes over. When documents come and go, neighbours tell each
//! other the bits that flipped, each one level further down.
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

mod attenuated;
mod network;

pub use attenuated::{Attenuated, Document, FilterShape, Flip, MAX_DEPTH, MAX_HASHES};
pub use network::{Network, Search};
