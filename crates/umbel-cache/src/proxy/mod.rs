//! A caching proxy for the web, which shares what it has with others.
//!
//! A request goes through these rooms: what it is for (`target`); whether the cache has it (`lookup`), then it is a `hit`;
//! otherwise one of `flights` fetches it for all who want it now, from `siblings` that promise it or from the origin, which
//! `fetch` asks over a `pool` of connections; and a `pump` brings it to whoever asked and into the store. `neighbours` are asked
//! meanwhile what they have, and `manage` tells them what is here.
//!
//! What is in a document is believed of a peer as it is of an origin, but not that it is a document to be given: it has to be one
//! that a cache may have, fresh, whole and in time; if not, the origin is asked.
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
//!     proxy.run(async { /* until this ends */ }).await;
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access_log;
mod body;
mod connector;
mod counters;
mod fetch;
mod hit;
mod in_flight;
mod key_history;
mod listen;
mod log;
mod lookup;
mod manage;
mod neighbours;
mod options;
mod page;
mod peer_url;
mod pool;
mod pump;
mod reach;
mod service;
mod siblings;
mod target;
mod timed_stream;
mod tunnel;

pub use access_log::AccessLog;
pub use key_history::AdmissionPolicy;
pub use listen::Proxy;
pub use log::LogSink;
pub use options::{Allow, Limits, Options};
pub use peer_url::PeerUrl;
