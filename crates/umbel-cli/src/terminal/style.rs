//! Styles of text, which are never part of it.
//!
//! A styled value prints like its contents. Only [`super::output`] sees the style, while it formats
//! for a terminal. Text that looks like a style is therefore escaped like any other, and a style
//! cannot get into a pipe.

use anstyle::{AnsiColor, Style};
use std::cell::Cell;
use std::fmt;

/// The style of names and headings.
pub const DIM: Style = Style::new().dimmed();
/// The style of titles.
pub const BOLD: Style = Style::new().bold();
/// The style of the name of the program before a warning.
pub const WARNING: Style = AnsiColor::Yellow.on_default();
/// The style of the name of the program before an error.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();

thread_local! {
    /// The style of the text that is being formatted.
    static CURRENT: Cell<Style> = const { Cell::new(Style::new()) };
}

/// Returns the style of the text that is being formatted on this thread.
pub fn current() -> Style {
    CURRENT.get()
}

/// Text with a style.
pub struct Styled<T>(pub Style, pub T);

impl<T: fmt::Display> fmt::Display for Styled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outer = CURRENT.replace(self.0);
        let result = self.1.fmt(f);
        CURRENT.set(outer);
        result
    }
}
