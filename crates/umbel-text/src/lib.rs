//! Bloom filters for documents.
//!
//! | room | answers | by |
//! | --- | --- | --- |
//! | [`index`] | which of these files can hold a word? | a filter for each file, side by side |
//! | [`search`] | where in them is it? | reading what the index cannot rule out |
//! | [`tables`] | what is the value of this key? | sorted tables on disk, and a filter for each in memory |
//! | [`guard`] | is this expensive question worth asking? | a filter in front of any lookup |
//! | [`password`] | is this password a weak one? | a filter that does not give them away |
//! | [`address`] | is this web address unsafe? | a filter, and an exact list that confirms |
//! | [`spelling`] | which words are misspelt, and what was meant? | a filter of a dictionary |
//! | [`similarity`] | how much have these documents in common? | a filter of each, laid over one another |
//! | [`vault`] | which of these encrypted files hold a word? | a blinded filter for each, asked by trapdoors |
//!
//! [`content`] tells what a file is by its first bytes and decompresses it, [`tokens`] cuts text into words, and [`lines`]
//! reads secrets and wipes them.

pub mod address;
pub mod content;
mod error;
pub mod guard;
pub mod index;
pub mod lines;
pub mod password;
pub mod search;
pub mod similarity;
pub mod spelling;
mod stamp;
pub mod tables;
mod text;
pub mod tokens;
pub mod vault;
mod walk;

pub use error::{Error, Result};
