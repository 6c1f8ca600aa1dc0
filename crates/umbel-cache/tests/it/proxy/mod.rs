//! The proxy, as clients, origins and other caches see it.

mod caching;
mod manners;
mod sharing;
mod trouble;
