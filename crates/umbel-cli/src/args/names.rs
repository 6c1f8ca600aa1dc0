//! Options that take one of a few names: shells complete them, and the error for a wrong name lists
//! them.

use crate::filters::{CellScheme, sketch_command};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;
use umbel::Kind;
use umbel::counting::Overflow;
use umbel::foreign::{Format, Funnel};
use umbel::hash::Strength;
use umbel::kind::{Capabilities, Category};
use umbel::literature::Family;
use umbel::sizing::KPolicy;
use umbel::space_code::Estimator;
use umbel_net::attribution::Method;
use umbel_text::hyphenation::Language;

/// Parses a kind that is planned for a number of keys: any but a sketch.
pub fn planned_kind() -> impl TypedValueParser<Value = Kind> {
    let planned: Vec<Kind> =
        Kind::ALL.iter().copied().filter(|kind| kind.category() != Category::Sketch).collect();
    one_of(&planned)
}

/// Parses a kind of set; the error for another kind names the command that makes it.
pub fn set_kind() -> impl TypedValueParser<Value = Kind> {
    kind_of(Category::Set)
}

/// Parses a kind of set that a trace of a user's own keys can show.
pub fn traced_kind() -> impl TypedValueParser<Value = Kind> {
    one_of(&[Kind::Standard, Kind::Counting])
}

/// Parses a kind of map.
pub fn map_kind() -> impl TypedValueParser<Value = Kind> {
    kind_of(Category::Map)
}

/// Parses a kind of multiset.
pub fn count_kind() -> impl TypedValueParser<Value = Kind> {
    kind_of(Category::Multiset)
}

/// Parses the method of recording payloads.
pub fn method() -> impl TypedValueParser<Value = Method> {
    one_of(&Method::ALL)
}

/// Parses a language whose words can be hyphenated.
pub fn hyphenated_language() -> impl TypedValueParser<Value = Language> {
    one_of(&Language::ALL)
}

/// Returns the kinds of a category.
pub fn kinds_of(category: Category) -> impl Iterator<Item = Kind> {
    Kind::ALL.iter().copied().filter(move |kind| kind.category() == category)
}

fn kind_of(wanted: Category) -> impl TypedValueParser<Value = Kind> {
    // Kinds of other categories are parsed too, for a better error.
    let names = Kind::ALL
        .iter()
        .map(move |kind| PossibleValue::new(kind.to_string()).hide(kind.category() != wanted));
    PossibleValuesParser::new(names).try_map(move |name| {
        let kind: Kind = name.parse().map_err(|error: umbel::Error| error.to_string())?;
        match kind.category() {
            category if category == wanted => Ok(kind),
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

/// Parses the rounding of the number of hash functions.
pub fn policy() -> impl TypedValueParser<Value = KPolicy> {
    one_of(&KPolicy::ALL)
}

/// Parses the policy for counters that overflow.
pub fn overflow() -> impl TypedValueParser<Value = Overflow> {
    one_of(&Overflow::ALL)
}

/// Parses the contents of a cell with increments.
pub fn cell_scheme() -> impl TypedValueParser<Value = CellScheme> {
    one_of(&CellScheme::ALL)
}

/// Parses the estimator of a multiset.
pub fn estimator() -> impl TypedValueParser<Value = Estimator> {
    one_of(&Estimator::ALL)
}

/// Parses any hash: a strength, or a family of the literature.
pub fn hash() -> PossibleValuesParser {
    let strengths = [Strength::Fast, Strength::Keyed, Strength::Sealed].map(|strength| strength.to_string());
    PossibleValuesParser::new(strengths.into_iter().chain(Family::ALL.map(|family| family.to_string())))
}

/// Parses the strength of a hash.
pub fn strength() -> impl TypedValueParser<Value = Strength> {
    one_of(&[Strength::Fast, Strength::Keyed, Strength::Sealed])
}

/// Parses the strength of a hash with a secret.
pub fn secret_hash() -> impl TypedValueParser<Value = Strength> {
    one_of(&[Strength::Keyed, Strength::Sealed])
}

/// Parses the format of a filter that another program wrote.
pub fn format() -> impl TypedValueParser<Value = Format> {
    one_of(Format::ALL)
}

/// Parses the form in which another program takes its keys.
pub fn funnel() -> impl TypedValueParser<Value = Funnel> {
    one_of(Funnel::ALL)
}

fn one_of<T>(values: &[T]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: Display + FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(values.iter().map(ToString::to_string)).try_map(|name| name.parse())
}
