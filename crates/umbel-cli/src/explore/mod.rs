//! The page of `umbel explore`, and the server on this machine that it talks to.
//!
//! A request passes through the modules in this order:
//!
//! 1. [`server`] accepts the connection if a place is free, limits its headers, its body and its time,
//!    and ends at a signal.
//! 2. [`guard`] refuses requests of other web pages: by `Host`, `Origin` and the token.
//! 3. [`parts`] has the files of the page, which need no token; they are embedded in the program.
//! 4. [`api`] answers the questions of the page with the functions behind `--json`; [`drop`] stores
//!    files that were dropped on it.
//!
//! The page itself is plain HTML, CSS and JavaScript in the folder `page`, without a build step. Its
//! texts, in English and German, are in `page/texts.json`.

mod api;
mod browser;
mod drop;
mod guard;
mod parts;
mod server;

pub use api::Context;
pub use server::{Options, serve};
