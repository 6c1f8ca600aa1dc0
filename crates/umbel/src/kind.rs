//! The kinds of filter, by the names that files, the command line and people use.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A kind of filter.
///
/// ```
/// use umbel::Kind;
/// assert_eq!("blocked".parse::<Kind>()?, Kind::default());
/// assert_eq!(Kind::Standard.to_string(), "standard");
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `k` bits anywhere: least space, most cache misses.
    Standard = 1,
    /// `k` slices, one bit in each.
    Partitioned = 2,
    /// All bits of a key in one cache line or a few: the default.
    #[default]
    Blocked = 3,
    /// A standard filter whose positions come from one of the literature's hash families.
    Literature = 4,
}

impl Kind {
    /// Every kind, in the order of its number.
    pub const ALL: &[Kind] = &[Kind::Standard, Kind::Partitioned, Kind::Blocked, Kind::Literature];

    /// The number that stands in files; it never changes.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The kind with this number.
    pub fn from_number(number: u16) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.number() == number)
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::Standard => "standard",
            Kind::Partitioned => "partitioned",
            Kind::Blocked => "blocked",
            Kind::Literature => "literature",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Kind> {
        let found = Kind::ALL.iter().copied().find(|kind| kind.name() == text);
        let names = || Kind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| Error::parameter("kind", text, format!("one of {}", names())))
    }
}
