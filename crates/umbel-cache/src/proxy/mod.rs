//! A caching HTTP proxy that shares its responses with other caches.
//!
//! A request passes through the modules in this order:
//!
//! 1. `listen` accepts the client if there are `places`, and `framing` checks where its requests
//!    end. `service` finds the `target` of the request: a resource, a `tunnel`, or one of the
//!    proxy's own pages (`internal`).
//! 2. `cache::lookup` searches the store for a response. If there is a fresh one, `cache::hit`
//!    sends it.
//! 3. Otherwise one request leads the fetch and others for the same key wait for it
//!    (`cache::in_flight`). `cache::fetch` revalidates a stale response, asks the `peers` whose
//!    summaries contain the key, or asks the origin (`upstream`).
//! 4. A `cache::transfer` sends the body to the client and stores it at the same time.
//!
//! Meanwhile `peers::summaries` keeps the summaries of the peers up to date, and `internal` serves
//! the own summary to them.
//!
//! The contents of a peer's response are trusted like those of an origin. Its usability is not: it
//! has to be storable, fresh, complete and in time. Otherwise the request goes to the origin. Its
//! freshness is limited, and the origin has to confirm it before it is reused.
//!
//! ```
//! use umbel_cache::proxy::{Options, Proxy};
//! use umbel_cache::store::{self, Store};
//!
//! let folder = tempfile::tempdir()?;
//! let runtime = tokio::runtime::Runtime::new()?;
//! runtime.block_on(async {
//!     let store = Store::open(folder.path(), &store::Options::default())?;
//!     let proxy = Proxy::bind("127.0.0.1:0".parse()?, store, Options::default()).await?;
//!     println!("http_proxy=http://{}", proxy.address());
//!     proxy.run(async { /* until this completes */ }).await;
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access_log;
mod body;
mod cache;
mod counters;
mod framing;
mod internal;
mod listen;
mod log;
mod options;
mod pace;
mod peers;
mod places;
mod reach;
mod rejection;
mod service;
mod target;
mod timed_stream;
mod tunnel;
mod upstream;

pub use access_log::AccessLog;
pub use cache::AdmissionPolicy;
pub use listen::Proxy;
pub use log::LogSink;
pub use options::{Allow, HTTPS_PORT, Limits, Options};
pub use peers::PeerUrl;
