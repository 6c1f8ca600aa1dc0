//! Enums over all kinds, so that every application treats them the same way.
//!
//! [`AnyFilter`] is every kind of set that takes digests, [`AnyMap`] every map, [`AnyCount`] every
//! multiset and [`AnySketch`] every sketch. [`Stored`] is anything that a file can hold: one of
//! those, or a filter of the literature, which takes keys.

mod concurrent;

/// Defines a family of kinds that answer the same question: the enum, its conversions, and
/// everything that depends on the kind. Kinds that are `fixed` are built from all their keys at
/// once and cannot be changed.
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

        /// Evaluates the same expression for any kind.
        macro_rules! each {
            ($d any:expr, $d inner:ident => $d action:expr) => {
                match $d any {
                    $($any::$kind($d inner) => $d action,)*
                    $($any::$fixed($d inner) => $d action,)*
                }
            };
        }

        /// Evaluates the same expression for any kind that can be changed; an error for the others.
        #[allow(unused_macros, reason = "not every family is filled")]
        macro_rules! changing {
            ($d any:expr, $d inner:ident => $d action:expr) => {
                match $d any {
                    $($any::$kind($d inner) => $d action,)*
                    $($any::$fixed(_) => Err($crate::any::fixed(Kind::$fixed)),)*
                }
            };
        }

        /// Evaluates the same expression for any kind and wraps the result in the same variant.
        macro_rules! map {
            ($d any:expr, $d inner:ident => $d action:expr) => {
                match $d any {
                    $($any::$kind($d inner) => $any::$kind($d action),)*
                    $($any::$fixed($d inner) => $any::$fixed($d action),)*
                }
            };
        }

        /// Evaluates the same expression for two of one kind, and `else` if the kinds differ.
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

        /// As `both`, for kinds that can be changed.
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

        /// Evaluates the same expression with the type of a kind that can be changed, and `else`
        /// for any other kind.
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
            /// Returns the capabilities of a kind, if it belongs to this family.
            pub(super) const fn capabilities(kind: Kind) -> Option<Capabilities> {
                match kind {
                    $(Kind::$kind => Some(<$type>::CAPABILITIES),)*
                    $(Kind::$fixed => Some(<$fixed_type>::CAPABILITIES),)*
                    _ => None,
                }
            }

            /// Plans a filter from a specification, if the kind belongs to this family.
            pub(super) fn plan(kind: Kind, spec: &Spec) -> Option<Result<Plan>> {
                match kind {
                    $(Kind::$kind => Some(<$type>::plan(spec)),)*
                    $(Kind::$fixed => Some(<$fixed_type>::plan(spec)),)*
                    _ => None,
                }
            }

            /// Restores the contents of a file, if its kind belongs to this family.
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

            /// Allows the memory to be moved.
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

            /// Returns the number of keys inserted, less those removed; `None` after a union, where
            /// it is unknown.
            pub fn inserted(&self) -> Option<u64> {
                each!(self, inner => inner.inserted())
            }

            /// Returns the inner structure, whatever its type.
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
            /// Formats a summary of the inner structure.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                each!(self, inner => inner.fmt(f))
            }
        }

        impl TryFrom<Stored> for $any {
            type Error = Error;

            /// Succeeds if the kind belongs to this family.
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

/// Defines the methods of a family whose kinds are planned for a number of keys and looked up by
/// digest. Must follow [`family`], which defines `each`.
macro_rules! planned {
    ($any:ident) => {
        impl $any {
            /// Looks up a digest cell by cell, and passes each cell to `probe` before reading it.
            ///
            /// # Errors
            ///
            /// Any error of `probe`, which ends the lookup.
            pub fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
                each!(self, inner => inner.trace(digest, probe))
            }

            /// Returns the number of keys and the rate it was planned for; `None` if it was made
            /// without a plan.
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
    /// Returns the operations that this kind supports besides lookups.
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

    /// Plans a filter of exactly this kind, whatever its size, from a specification.
    pub(crate) fn plan(self, spec: &Spec) -> Result<Plan> {
        AnyFilter::plan(self, spec)
            .or_else(|| AnyMap::plan(self, spec))
            .or_else(|| AnyCount::plan(self, spec))
            .or_else(|| AnySketch::plan(self, spec))
            .unwrap_or_else(|| Err(no_set(self)))
    }
}

/// Returns the error for a kind that is not a set of digests.
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

/// Returns the error for changing a structure that is built from all its keys at once.
fn fixed(kind: Kind) -> Error {
    Error::cannot(
        kind,
        "be changed",
        "it is made from all its keys at once: build a new one from the keys you need",
    )
}
