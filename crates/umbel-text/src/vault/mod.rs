//! A vault is a directory of encrypted files on an untrusted server, which can still search them
//! for words.
//!
//! The server sees neither words nor names nor contents. Files are encrypted before they are
//! uploaded, and each has an index that can be queried only with the trapdoor of a word (Goh 2003),
//! which only the owner can create.
//!
//! ```
//! use umbel_text::vault::{Cost, Options, Passphrase, Server, Vault};
//!
//! let folder = tempfile::tempdir()?;
//! let place = folder.path().join("vault");
//! let passphrase = Passphrase::new(b"correct horse battery staple".to_vec().into()).ok_or("none")?;
//! # let options = Options { cost: Cost::WEAKEST, ..Options::default() };
//! # let _ = "
//! let options = Options::default();
//! # ";
//!
//! // The owner has the passphrase.
//! let vault = Vault::create(&place, &passphrase, &options)?;
//! vault.add(b"plan.txt", None, &b"We attack at dawn."[..])?;
//! vault.add(b"menu.txt", None, &b"Soup and bread."[..])?;
//! let query = vault.query(&["attack", "DAWN"])?;
//!
//! // The server has the directory, and is sent the trapdoors.
//! let answer = Server::new(&place).search(query.trapdoors())?;
//! assert_eq!(answer.hits.len(), 1);
//!
//! // Only the owner can read the hits.
//! let found = vault.reveal(&query, answer, true)?;
//! assert_eq!(found.hits[0].head.name, b"plan.txt");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | item | role |
//! | --- | --- |
//! | [`zidx`] | the index by itself |
//! | [`tokens`] | the words of documents and queries |
//! | [`Vault`] | the owner's half, with the keys |
//! | [`Changes`] | several changes, recorded together |
//! | [`State`] | a state of the whole vault, to be remembered where the server cannot change it |
//! | [`Server`] | the server's half, without keys |
//! | [`insecure_demo`] | the attack on an index without a key |
//!
//! `docs/vault.md` in the repository describes the file formats, and what a server can and cannot
//! learn.

mod changes;
mod client;
mod document;
mod header;
mod insecure;
mod inventory;
mod keys;
mod server;
mod state;
mod tee;
pub mod tokens;
pub mod zidx;

pub use changes::Changes;
pub use client::{Added, Entry, Options, Query, SearchResult, Vault};
pub use document::{CHUNK, DocumentHead, MAX_PARTS, padded};
pub use header::Header;
pub use insecure::insecure_demo;
pub use keys::{Cost, Passphrase};
pub use server::{Answer, Seen, Server};
pub use state::State;
