//! Values of options that are one of a few names: shells complete them, and a wrong one is answered with the list.

use crate::filters::sketch_command;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;
use umbel::Kind;
use umbel::counting::Overflow;
use umbel::hash::Strength;
use umbel::kind::{Capabilities, Category};
use umbel::literature::Family;
use umbel::sizing::KPolicy;
use umbel_net::attribution::Method;
use umbel_net::flows::By;

/// Kinds that are planned for a number of keys: all but sketches.
pub fn planned_kind() -> impl TypedValueParser<Value = Kind> {
    let planned: Vec<Kind> =
        Kind::ALL.iter().copied().filter(|kind| kind.category() != Category::Sketch).collect();
    one_of(&planned)
}

/// Kinds of sets; of the others it is said what makes them.
pub fn set_kind() -> impl TypedValueParser<Value = Kind> {
    kind_of(Category::Set)
}

/// Kinds of maps.
pub fn map_kind() -> impl TypedValueParser<Value = Kind> {
    kind_of(Category::Map)
}

/// Kinds of multisets.
pub fn count_kind() -> impl TypedValueParser<Value = Kind> {
    kind_of(Category::Multiset)
}

/// What the packets of a flow have in common.
pub fn flow_key() -> impl TypedValueParser<Value = By> {
    one_of(&By::ALL)
}

/// What is recorded of payloads.
pub fn method() -> impl TypedValueParser<Value = Method> {
    one_of(&Method::ALL)
}

/// The kinds that hold something.
pub fn kinds_of(holds: Category) -> impl Iterator<Item = Kind> {
    Kind::ALL.iter().copied().filter(move |kind| kind.category() == holds)
}

fn kind_of(wanted: Category) -> impl TypedValueParser<Value = Kind> {
    // The others are understood, so that more can be said than that they are wrong.
    let names = Kind::ALL
        .iter()
        .map(move |kind| PossibleValue::new(kind.to_string()).hide(kind.category() != wanted));
    PossibleValuesParser::new(names).try_map(move |name| {
        let kind: Kind = name.parse().map_err(|error: umbel::Error| error.to_string())?;
        match kind.category() {
            holds if holds == wanted => Ok(kind),
            Category::Map => Err("it is a kind of map, which `umbel map build` builds".to_string()),
            Category::Multiset => {
                Err("it is a kind of multiset, which `umbel count build` builds".to_string())
            }
            Category::Sketch => Err(match sketch_command(kind) {
                Some(command) => format!("it is a kind of sketch, which `{command} -o` makes"),
                None => "it is a kind of sketch, which only the library makes".to_string(),
            }),
            _ => Err("it is a kind of set, which `umbel build` builds".to_string()),
        }
    })
}

/// Returns the names of the kinds with a capability, separated by commas.
pub fn kinds_with(can: impl Fn(&Capabilities) -> bool) -> String {
    let names = Kind::ALL.iter().filter(|kind| can(&kind.capabilities())).map(ToString::to_string);
    names.collect::<Vec<_>>().join(", ")
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

/// The hashes of digests.
pub fn strength() -> impl TypedValueParser<Value = Strength> {
    one_of(&[Strength::Fast, Strength::Keyed, Strength::Sealed])
}

/// The hashes that have a secret.
pub fn secret_hash() -> impl TypedValueParser<Value = Strength> {
    one_of(&[Strength::Keyed, Strength::Sealed])
}

fn one_of<T>(values: &[T]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: Display + FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(values.iter().map(ToString::to_string)).try_map(|name| name.parse())
}
