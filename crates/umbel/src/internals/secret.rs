//! A secret in a structure with a derived `Debug`, which does not show it.

use std::fmt;

/// A value that is never part of a debug output.
///
/// ```
/// use umbel::internals::secret::Secret;
/// assert_eq!(format!("{:?}", Secret([7; 16])), "Secret(..)");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret<T>(pub T);

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
