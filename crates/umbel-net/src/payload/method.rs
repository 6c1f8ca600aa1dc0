//! The methods of payload attribution.

use super::winnowing::MAX_WINDOW;
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A method that cuts payloads into blocks and records them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// Blocks of equal size, each with its number.
    #[default]
    BlockBased,
    /// Also aligned pairs of blocks, pairs of pairs, and so on, each with its number on its level.
    /// Holds nearly twice as many records. They expose most texts that were put together from
    /// blocks of other payloads, but are found by chance more often.
    Hierarchical,
    /// Blocks that end at boundaries determined by their content, cut several times independently
    /// (winnowing multi-hashing; Ponec, Giura, Brönnimann and Wein 2007). Takes a fifth of the
    /// memory, for excerpts of some hundred bytes; the position in a payload is not known.
    Winnowing,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 3] = [Method::BlockBased, Method::Hierarchical, Method::Winnowing];

    /// Returns the name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::BlockBased => "block",
            Method::Hierarchical => "hierarchical",
            Method::Winnowing => "winnowing",
        }
    }

    /// Returns whether payloads can be cut into blocks of this size, and blocks of equal size into
    /// halves.
    pub(crate) fn can_cut(self, block: usize) -> bool {
        match self {
            Method::BlockBased | Method::Hierarchical => {
                (4..=1 << 16).contains(&block) && block.is_multiple_of(2)
            }
            Method::Winnowing => (1..=MAX_WINDOW).contains(&block),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Method> {
        let named = Method::ALL.into_iter().find(|method| method.as_str() == name);
        named.ok_or_else(|| Error::parameter("method", name, "block, hierarchical or winnowing"))
    }
}
