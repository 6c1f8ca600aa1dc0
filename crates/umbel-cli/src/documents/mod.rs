//! Documents: files searched and compared, words checked and hyphenated, vaults and lists of
//! passwords opened.

pub mod hyphenation;
pub mod passphrases;
pub mod search;
pub mod similarity;
pub mod spelling;
pub mod vaults;
pub mod word_lists;

use crate::input::max_line_hint;
use crate::terminal::output;
use std::io;
use std::path::PathBuf;

/// Reports files that could not be read, as grep does; the others are processed all the same.
pub fn report_unreadable(failed: &[(PathBuf, io::Error)]) {
    for (path, error) in failed {
        output::error(format_args!("{}: {error}{}", path.display(), max_line_hint(error)));
    }
}
