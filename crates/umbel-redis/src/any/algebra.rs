//! Commands on several filters. The filters must have the same kind, size and hash function, as
//! those that one server creates with the same settings do.

use super::commands::estimate_replies;
use super::{OpenFilter, StructureRef, ValueType, replace, store};
use crate::config;
use crate::cuckoo::{CuckooChain, CuckooValue};
use crate::persist::{Entry, Persist};
use crate::server::{Arguments, Context, Failure, Reply, Result, Text};
use std::collections::HashSet;
use umbel::AnyFilter;
use umbel::any::Stored;

/// Combines two structures into the first.
type Join = fn(&mut Stored, &Stored) -> umbel::Result<()>;

/// Returns the combination of several filters; `to_stored` copies the structure of one.
fn combine<'a>(
    context: &Context,
    mut keys: impl Iterator<Item = &'a Text>,
    to_stored: impl Fn(&OpenFilter<'_>) -> Result<Stored>,
    join: Join,
) -> Result<Stored> {
    let structure = |key: &Text| to_stored(&OpenFilter::existing(context, key)?);
    let mut combined = structure(keys.next().ok_or(Failure::Arity)?)?;
    for key in keys {
        join(&mut combined, &structure(key)?).map_err(join_failure)?;
    }
    Ok(combined)
}

/// Returns each key once, in order. A cuckoo filter would otherwise get every item twice, and a
/// command with one key many times would take as long as one with many filters.
fn distinct<'a>(keys: impl IntoIterator<Item = &'a Text>) -> Vec<&'a Text> {
    let mut seen = HashSet::new();
    keys.into_iter().filter(|key| seen.insert(key.bytes())).collect()
}

/// Returns the failure for an error of [`Join`]. Without a key file, filters from before a restart
/// have another secret.
fn join_failure(error: umbel::Error) -> Failure {
    match error {
        umbel::Error::Mismatch(mismatch) if mismatch.what == "key" => Failure::new(
            "the filters are hashed with different secrets, as on different servers or after a restart: \
             load the module with the same KEY-FILE everywhere before creating filters to combine",
        ),
        error => error.into(),
    }
}

/// `UMBEL.MERGE to from...`: adds all items of these filters to `to`, which is created if it does
/// not exist.
pub fn merge(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let to = arguments.next_arg()?;
    let from = arguments.rest()?;
    let target = OpenFilter::open(context, to)?.map(|_| to);
    let keys = distinct(target.into_iter().chain(from));
    let types = keys.iter().map(|key| Ok(OpenFilter::existing(context, key)?.value_type()));
    let types = types.collect::<Result<Vec<ValueType>>>()?;
    if types.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(Failure::new(
            "the filters are of different kinds: only filters of the same kind can be merged",
        ));
    }
    if types.first() == Some(&ValueType::Cuckoo) {
        let merged = merge_cuckoos(context, &keys)?;
        config::check_memory(merged.memory_bytes() as u64)?;
        replace(context, to, CuckooValue::Own(merged))?;
    } else {
        store(context, to, combine(context, keys.into_iter(), |filter| filter.to_stored(), Stored::union)?)?;
    }
    context.replicate();
    context.notify(c"umbel.merge", to);
    Ok(Reply::Ok)
}

/// Returns all items of several chains of cuckoo filters in one.
fn merge_cuckoos(context: &Context, keys: &[&Text]) -> Result<CuckooChain> {
    let mut merged: Option<CuckooChain> = None;
    for key in keys {
        let entry = context.existing::<Entry<CuckooValue>>(key)?;
        match &mut merged {
            None => merged = Some(entry.ready()?.own()?.copy()?),
            Some(merged) => merged.merge(entry.ready()?.own()?).map_err(join_failure)?,
        }
    }
    merged.ok_or(Failure::Arity)
}

/// `UMBEL.INTERSECT to from...`: replaces `to` with a filter of the items that all of these
/// contain, and a few others.
pub fn intersect(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let to = arguments.next_arg()?;
    let from = distinct(arguments.rest()?).into_iter();
    let common = combine(context, from, |filter| filter.to_stored(), Stored::intersect)?;
    // Fails if the destination holds a value of another type.
    OpenFilter::open(context, to)?;
    store(context, to, common)?;
    context.replicate();
    context.notify(c"umbel.intersect", to);
    Ok(Reply::Ok)
}

/// `UMBEL.JACCARD one other`: the estimated Jaccard similarity, from 0 to 1, and its standard
/// error.
pub fn jaccard(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [one, other] = arguments.exactly()?;
    let (one, other) = (
        OpenFilter::existing(context, one)?.to_stored()?,
        OpenFilter::existing(context, other)?.to_stored()?,
    );
    let overlap = one.overlap(&other).map_err(join_failure)?;
    Ok(Reply::Array(estimate_replies(overlap.map(|overlap| overlap.jaccard)).to_vec()))
}

/// `UMBEL.CARD key...`: the estimated number of items in the union of these filters, and its
/// standard error.
pub fn card(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let keys = distinct(arguments.rest()?);
    let stats = match keys[..] {
        [key] => OpenFilter::existing(context, key)?.stats(context)?,
        _ => combine(context, keys.into_iter(), to_countable, Stored::union)?.stats(),
    };
    Ok(Reply::Array(estimate_replies(stats.estimate.estimate()).to_vec()))
}

/// Returns a copy of a filter whose union with others can be counted. In stages, shared items would
/// count twice.
fn to_countable(filter: &OpenFilter<'_>) -> Result<Stored> {
    match filter.structure()? {
        StructureRef::Set(AnyFilter::Scalable(scalable)) => match scalable.single() {
            Some(single) => Ok(single.try_clone()?.into()),
            None => Err(Failure::new(
                "a filter that has grown does not show which keys it shares with another: \
                 reserve filters large enough for all their keys, or run UMBEL.CARD on each",
            )),
        },
        _ => filter.to_stored(),
    }
}
