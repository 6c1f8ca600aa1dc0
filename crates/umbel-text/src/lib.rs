//! Bloom filters for documents.
//!
//! | room | answers | by |
//! | --- | --- | --- |
//! | [`index`] | which of these files can hold a word? | a filter for each file, side by side |
//! | [`search`] | where in them is it? | reading what the index cannot rule out |
//! | [`password`] | is this password a weak one? | a filter that does not give them away |
//! | [`address`] | is this web address unsafe? | a filter, and an exact list that confirms |
//!
//! [`content`] tells what a file is by its first bytes and decompresses it, [`words`] says what a word is, and [`lines`]
//! reads secrets and wipes them.
//! [`content`] tells what a file is by its first bytes, and decompresses it.
//! [`tables`] is a small store of sorted tables on disk, of which a filter each tells which cannot hold a key.
//! [`guard`] puts a filter in front of any expensive lookup.
//! [`content`] tells what a file is by its first bytes, and decompresses it. [`vault`] keeps encrypted files that can be
//! searched where they lie.
//! [`content`] tells what a file is by its first bytes, and decompresses it. [`spelling`] finds words that are in no
//! dictionary. [`similarity`] tells how much documents have in common.

pub mod address;
pub mod content;
pub mod index;
pub mod lines;
pub mod password;
pub mod search;
mod text;
pub mod words;
mod fields;
pub mod guard;
pub mod tables;
pub mod vault;
pub mod similarity;
pub mod spelling;
