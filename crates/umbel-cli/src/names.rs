//! Values of options that are one of a few names: shells complete them, and a wrong one is answered with the list.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::fmt::Display;
use std::str::FromStr;
use umbel::counting::Overflow;
use umbel::literature::Family;
use umbel::sizing::KPolicy;
use umbel::{Kind, Strength};

pub fn kind() -> impl TypedValueParser<Value = Kind> {
    one_of(Kind::ALL)
}

pub fn policy() -> impl TypedValueParser<Value = KPolicy> {
    one_of(&KPolicy::ALL)
}

pub fn overflow() -> impl TypedValueParser<Value = Overflow> {
    one_of(&Overflow::ALL)
}

/// Every hash: of digests, and the families of the literature.
pub fn hash() -> PossibleValuesParser {
    let strengths = [Strength::Fast, Strength::Keyed, Strength::Sealed].map(|strength| strength.to_string());
    PossibleValuesParser::new(strengths.into_iter().chain(Family::ALL.map(|family| family.to_string())))
}

/// The hashes that have a secret.
pub fn secret_hash() -> impl TypedValueParser<Value = Strength> {
    one_of(&[Strength::Keyed, Strength::Sealed])
}

fn one_of<T>(values: &[T]) -> impl TypedValueParser<Value = T>
where
    T: Display + FromStr<Err = umbel::Error> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(values.iter().map(ToString::to_string)).try_map(|name| name.parse())
}
