//! Bloom filters for documents.
//!
//! | room | answers | by |
//! | --- | --- | --- |
//! | [`index`] | which of these files can hold a word? | a filter for each file, side by side |
//! | [`search`] | where in them is it? | reading what the index cannot rule out |
//!
//! [`content`] tells what a file is by its first bytes and decompresses it, and [`words`] says what a word is.

pub mod content;
pub mod index;
pub mod search;
mod text;
pub mod words;
