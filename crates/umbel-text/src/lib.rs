//! Bloom filters for documents: files, lines, words, passwords and web addresses.
//!
//! Most modules follow the same plan. A small filter answers "certainly not here" for nearly every
//! query, and an exact but slower step, such as reading a file, deals with the rest. The modules
//! differ in the cost of a false positive:
//!
//! | module | question | a false positive costs |
//! | --- | --- | --- |
//! | [`index`] | Which of these files may contain a word? | reading a file or block in vain |
//! | [`search`] | On which lines of these files is it? | nothing: the search is exact |
//! | [`tables`] | Which sorted tables on disk may have a key? | reading a block in vain |
//! | [`guard`] | Is an expensive lookup worth the effort? | a lookup in vain |
//! | [`address`] | Is a web address on a list of unsafe ones? | a query to the exact list |
//! | [`password`] | Is a password weak? | a good password that is refused |
//! | [`spelling`] | Which words are misspelt, and how to correct them? | an unnoticed misspelling |
//! | [`hyphenation`] | Where may a word be broken? | reading the list of exceptions in vain |
//! | [`similarity`] | How much do two documents have in common? | a known error of the estimate |
//! | [`vault`] | Which encrypted files contain a word? | decrypting a file in vain |
//!
//! Four modules serve the others: [`content`] recognises the format of a file and decompresses it,
//! [`tokens`] splits text into words, [`lines`] reads lines that may be secret and wipes them, and
//! [`near_names`] finds names that resemble a wrong one.
//!
//! # Example
//!
//! Search a directory for a word, but read only the files that may contain it:
//!
//! ```
//! use umbel_text::index::{self, Index, Look, Options, Settings};
//! use umbel_text::search::{Pattern, Searcher};
//!
//! let folder = tempfile::tempdir()?;
//! let (logs, file) = (folder.path().join("logs"), folder.path().join("logs.idx"));
//! std::fs::create_dir(&logs)?;
//! std::fs::write(logs.join("monday.log"), "all quiet\ndisk full on node7\n")?;
//! std::fs::write(logs.join("tuesday.log"), "all quiet\n")?;
//!
//! // Build the index once. Files that change later are read until the index is updated.
//! index::build(&file, &[logs.clone()], &Settings::WORDS, &Options::default())?;
//!
//! // The index rules files out. The search reads the others.
//! let look = Look { whole_words: true, ..Look::default() };
//! let index = Index::open(&file)?;
//! let selection = index.select(&index.any_of(&["node7"], look))?;
//! let pattern = Pattern::new(["node7"], look);
//! let mut searcher = Searcher::new(&pattern);
//! let mut found = Vec::new();
//! for file in &selection.files {
//!     searcher.search(file, |line| {
//!         found.push((file.path(), line.number));
//!         true
//!     })?;
//! }
//! assert_eq!(found, [(logs.join("monday.log"), 2)]);
//! assert_eq!(searcher.bytes_read(), 29, "tuesday.log was not read");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Errors and secrets
//!
//! Functions return this crate's [`Error`], or [`std::io::Error`] where only input and output can
//! fail. No error carries a password, a passphrase or a key. New files are written completely or
//! not at all, and damage is detected when a file is read.
//!
//! The command `umbel` offers these modules as `umbel index`, `grep`, `table`, `password`, `url`,
//! `spell`, `hyphenate`, `similar` and `vault`.

pub mod address;
pub mod content;
mod error;
pub mod guard;
pub mod hyphenation;
pub mod index;
pub mod lines;
pub mod near_names;
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
