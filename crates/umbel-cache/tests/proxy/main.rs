//! The proxy, as clients, origins and other caches see it.

mod caching;
mod client;
mod manners;
mod origin;
mod running;
mod sharing;
mod trouble;
