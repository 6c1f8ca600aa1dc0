//! Enums over all kinds, so that every face of the product treats them the same way.
//!
//! [`AnyFilter`] is every kind of set that takes digests, [`AnyMap`] every map, [`AnyCount`] every multiset and
//! [`AnySketch`] every sketch. [`Stored`] is whatever a file can hold: those, and the filters of the literature, which take
//! keys.

mod concurrent;

/// A family of kinds that answer the same question. From each line follow the enum, its conversions, and what is done by
/// kind. Kinds that are `fixed` are made from all their keys at once and cannot be changed.
macro_rules! family {
    (
        $d:tt $(#[$about:meta])* $any:ident, Stored::$stored:ident, $what:literal,
        changing { $($(#[$doc:meta])* $kind:ident($type:ty),)* }
        fixed { $($(#[$fixed_doc:meta])* $fixed:ident($fixed_type:ty),)* }
    ) => {
        $(#[$about])*
        #[non_exhaustive]
        pub enum $any {
            $($(#[$doc])* $kind($type),)*
            $($(#[$fixed_doc])* $fixed($fixed_type),)*
        }

        /// Does the same with whatever kind it is.
        macro_rules! each {
            ($d any:expr, $d inner:ident => $d action:expr) => {
                match $d any {
                    $($any::$kind($d inner) => $d action,)*
                    $($any::$fixed($d inner) => $d action,)*
                }
            };
        }

        /// Does the same with whatever kind it is, if it can be changed; an error if it cannot.
        #[allow(unused_macros, reason = "not every family is filled")]
        macro_rules! changing {
            ($d any:expr, $d inner:ident => $d action:expr) => {
                match $d any {
                    $($any::$kind($d inner) => $d action,)*
                    $($any::$fixed(_) => Err($crate::any::fixed(Kind::$fixed)),)*
                }
            };
        }

        /// Makes the same of whatever kind it is.
        macro_rules! map {
            ($d any:expr, $d inner:ident => $d action:expr) => {
                match $d any {
                    $($any::$kind($d inner) => $any::$kind($d action),)*
                    $($any::$fixed($d inner) => $any::$fixed($d action),)*
                }
            };
        }

        /// Does the same with two of one kind; `else` when the kinds differ.
        #[allow(unused_macros, reason = "not every family can be combined")]
        macro_rules! both {
            ($d ours:expr, $d theirs:expr, $d a:ident, $d b:ident => $d action:expr, else $d other:expr) => {
                match ($d ours, $d theirs) {
                    $(($any::$kind($d a), $any::$kind($d b)) => $d action,)*
                    $(($any::$fixed($d a), $any::$fixed($d b)) => $d action,)*
                    _ => $d other,
                }
            };
        }

        /// The same, if they can be changed.
        #[allow(unused_macros, reason = "not every family can be combined")]
        macro_rules! both_changing {
            ($d ours:expr, $d theirs:expr, $d a:ident, $d b:ident => $d action:expr, else $d other:expr) => {
                match ($d ours, $d theirs) {
                    $(($any::$kind($d a), $any::$kind($d b)) => $d action,)*
                    $(($any::$fixed(_), $any::$fixed(_)) => Err($crate::any::fixed(Kind::$fixed)),)*
                    _ => $d other,
                }
            };
        }

        /// Does the same with the type of a kind that can be changed; `else` with any other.
        #[allow(unused_macros, reason = "not every family starts empty")]
        macro_rules! of_kind {
            ($d kind:expr, $d type:ident => $d action:expr, else $d other:expr) => {
                match $d kind {
                    $(Kind::$kind => {
                        type $d type = $type;
                        $d action
                    })*
                    $(Kind::$fixed => Err($crate::any::fixed(Kind::$fixed)),)*
                    _ => $d other,
                }
            };
        }

        impl $any {
            /// What a kind can do, if it is one of these.
            pub(super) const fn capabilities(kind: Kind) -> Option<Capabilities> {
                match kind {
                    $(Kind::$kind => Some(<$type>::CAPABILITIES),)*
                    $(Kind::$fixed => Some(<$fixed_type>::CAPABILITIES),)*
                    _ => None,
                }
            }

            /// What a specification leads to, for a kind of these.
            pub(super) fn plan(kind: Kind, spec: &Spec) -> Option<Result<Plan>> {
                match kind {
                    $(Kind::$kind => Some(<$type>::plan(spec)),)*
                    $(Kind::$fixed => Some(<$fixed_type>::plan(spec)),)*
                    _ => None,
                }
            }

            /// What a file holds, if its kind is one of these.
            pub(crate) fn restore(kind: Kind, parts: Parts) -> Result<$any> {
                match kind {
                    $(Kind::$kind => Ok($any::$kind(<$type>::restore(parts)?)),)*
                    $(Kind::$fixed => Ok($any::$fixed(<$fixed_type>::restore(parts)?)),)*
                    _ => Err(Error::parameter("kind", kind, concat!("one of `", stringify!($any), "`"))),
                }
            }

            /// Returns the memory, section by section.
            #[doc(hidden)]
            pub fn sections(&self) -> Vec<&Words> {
                each!(self, inner => inner.sections()).into_iter().map(|(_, words)| words).collect()
            }

            /// Lets the memory be moved.
            #[doc(hidden)]
            pub fn relocate(&mut self, mover: &mut dyn Mover) {
                each!(self, inner => inner.relocate(mover));
            }

            /// Returns a copy that owns its memory.
            ///
            /// # Errors
            ///
            /// If there is not enough memory for it.
            pub fn try_clone(&self) -> Result<$any> {
                Ok(map!(self, inner => inner.try_clone()?))
            }

            /// Returns how many keys were inserted, less those removed; `None` after a union, which does not know.
            pub fn inserted(&self) -> Option<u64> {
                each!(self, inner => inner.inserted())
            }

            /// What is inside, of whatever type.
            pub(super) fn into_any(self) -> Box<dyn std::any::Any> {
                each!(self, inner => Box::new(inner))
            }

            pub(crate) fn check_contents(&self) -> Result<(), FormatError> {
                each!(self, inner => inner.check_contents())
            }
        }

        impl Storable for $any {
            fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
                each!(self, inner => inner.encoder(options))
            }

            fn check_kind(kind: Kind) -> Result<(), FormatError> {
                $crate::file::expect_kind($any::capabilities(kind).is_some(), kind, $what)
            }

            fn from_stored(stored: Stored) -> Result<$any> {
                stored.try_into()
            }
        }

        $crate::methods::file_methods!([] $any);

        impl std::fmt::Debug for $any {
            /// Formats a summary of what is inside.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                each!(self, inner => inner.fmt(f))
            }
        }

        impl TryFrom<Stored> for $any {
            type Error = Error;

            /// Succeeds if it is one of these kinds.
            fn try_from(stored: Stored) -> Result<$any> {
                match stored {
                    Stored::$stored(any) => Ok(any),
                    other => Err(FormatError::wrong_kind(other.kind(), $what).into()),
                }
            }
        }

        impl From<$any> for Stored {
            fn from(any: $any) -> Stored {
                Stored::$stored(any)
            }
        }

        family! { @convert $any $($kind($type),)* $($fixed($fixed_type),)* }
    };
    (@convert $any:ident $($kind:ident($type:ty),)*) => {
        $(
            impl From<$type> for $any {
                fn from(inner: $type) -> $any {
                    $any::$kind(inner)
                }
            }

            impl From<$type> for Stored {
                fn from(inner: $type) -> Stored {
                    $any::from(inner).into()
                }
            }

            impl TryFrom<$any> for $type {
                type Error = Error;

                /// Succeeds if it is of this kind.
                fn try_from(any: $any) -> Result<$type> {
                    match any {
                        $any::$kind(inner) => Ok(inner),
                        other => {
                            Err(FormatError::wrong_kind(other.kind(), Kind::$kind.described()).into())
                        }
                    }
                }
            }

            impl TryFrom<Stored> for $type {
                type Error = Error;

                /// Succeeds if it is of this kind.
                fn try_from(stored: Stored) -> Result<$type> {
                    Storable::from_stored(stored)
                }
            }
        )*
    };
}

/// Methods of a family whose kinds are planned for a number of keys and looked up by digest. It comes after [`family`],
/// which defines `each`.
macro_rules! planned {
    ($any:ident) => {
        impl $any {
            /// Looks a digest up cell by cell, and passes each to `probe` before it is read. An error of `probe` ends it.
            pub fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
                each!(self, inner => inner.trace(digest, probe))
            }

            /// Returns the number of keys and the rate it was planned for; `None` if it was made without a plan.
            pub fn design(&self) -> Option<Design> {
                each!(self, inner => inner.design())
            }

            /// Computes the rate of wrong answers that the theory predicts with `n` distinct keys.
            ///
            /// # Errors
            ///
            /// If `n` is more than the theory covers.
            pub fn predicted_rate(&self, n: u64) -> Result<f64> {
                each!(self, inner => inner.predicted_rate(n))
            }
        }
    };
}

mod count;
mod filter;
mod map;
mod sketch;
mod stored;

pub use concurrent::AnyConcurrent;
pub use count::AnyCount;
pub use filter::AnyFilter;
pub use map::AnyMap;
pub use sketch::AnySketch;
pub use stored::Stored;

use crate::{Capabilities, Error, Kind, Plan, Result, Spec};

impl Kind {
    /// What this kind can do beside being asked.
    pub const fn capabilities(self) -> Capabilities {
        if let Some(can) = AnyFilter::capabilities(self) {
            return can;
        }
        if let Some(can) = AnyMap::capabilities(self) {
            return can;
        }
        if let Some(can) = AnyCount::capabilities(self) {
            return can;
        }
        if let Some(can) = AnySketch::capabilities(self) {
            return can;
        }
        Capabilities { union: true, intersect: true, ..Capabilities::NOTHING }
    }

    /// What filter of this kind, whatever its size, a specification leads to.
    pub(crate) fn plan(self, spec: &Spec) -> Result<Plan> {
        AnyFilter::plan(self, spec)
            .or_else(|| AnyMap::plan(self, spec))
            .or_else(|| AnyCount::plan(self, spec))
            .or_else(|| AnySketch::plan(self, spec))
            .unwrap_or_else(|| Err(no_set(self)))
    }
}

/// Why a kind is not among the sets of digests.
fn no_set(kind: Kind) -> Error {
    let needs = match kind {
        Kind::Literature => "a kind that takes digests; a literature filter is made from its family",
        _ => {
            "a kind of set; maps are made by `AnyMap::from_pairs`, multisets by `AnyCount::build`, and sketches in \
             module `sketch`"
        }
    };
    Error::parameter("kind", kind, needs)
}

/// Why something that is made from all its keys at once does not change.
fn fixed(kind: Kind) -> Error {
    Error::cannot(
        kind,
        "be changed",
        "it is made from all its keys at once: build it anew from those it shall have",
    )
}
