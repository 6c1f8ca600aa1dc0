//! Several filters at once. They must be alike: of one kind, size and hash, as those made by one server are.

use super::commands::estimated;
use super::{Held, Structure, Type, put, replace};
use crate::config;
use crate::cuckoo::CuckooChain;
use crate::persist::{Entry, Persist};
use crate::server::{Arguments, Context, Failure, Reply, Result, Text};
use std::collections::HashSet;
use umbel::AnyFilter;
use umbel::any::Stored;

/// How two structures become one.
type Join = fn(&mut Stored, &Stored) -> umbel::Result<()>;

/// All of some filters, as one.
fn together<'a>(
    context: &Context,
    mut keys: impl Iterator<Item = &'a Text>,
    of: impl Fn(&Held<'_>) -> Result<Stored>,
    join: Join,
) -> Result<Stored> {
    let structure = |key: &Text| of(&Held::existing(context, key)?);
    let mut all = structure(keys.next().ok_or(Failure::Arity)?)?;
    for key in keys {
        join(&mut all, &structure(key)?).map_err(other_secret)?;
    }
    Ok(all)
}

/// Every start makes another secret, unless a file has it.
fn other_secret(error: umbel::Error) -> Failure {
    match error {
        umbel::Error::Mismatch(mismatch) if mismatch.what == "key" => Failure::new(
            "they are hashed with different secrets, as filters of different servers or starts are: \
             load the module with KEY-FILE, the same everywhere, before filters are made that are to be joined",
        ),
        error => error.into(),
    }
}

/// `UMBEL.MERGE to from...`: adds all keys of these to `to`, which is made if it is not there.
pub fn merge(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let to = arguments.next_arg()?;
    let from = arguments.rest()?;
    // Each once: a cuckoo filter would have everything twice.
    let mut all: Vec<&Text> = Held::open(context, to)?.map(|_| to).into_iter().collect();
    let mut seen: HashSet<&[u8]> = all.iter().map(|key| key.bytes()).collect();
    all.extend(from.iter().filter(|key| seen.insert(key.bytes())));
    let types = all.iter().map(|key| Ok(Held::existing(context, key)?.type_of()));
    let types = types.collect::<Result<Vec<Type>>>()?;
    if types.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(Failure::new(
            "they are of different kinds, and filters are merged with others of their kind",
        ));
    }
    if types.first() == Some(&Type::Cuckoo) {
        let merged = cuckoos(context, &all)?;
        config::check_memory(merged.memory_bytes() as u64)?;
        replace(context, to, merged)?;
    } else {
        put(context, to, together(context, all.into_iter(), |held| held.cloned(), Stored::union)?)?;
    }
    context.replicate();
    context.notify(c"umbel.merge", to);
    Ok(Reply::Ok)
}

/// Cuckoo filters, as one.
fn cuckoos(context: &Context, keys: &[&Text]) -> Result<CuckooChain> {
    let mut all: Option<CuckooChain> = None;
    for key in keys {
        let entry = context.existing::<Entry<CuckooChain>>(key)?;
        match &mut all {
            None => all = Some(entry.ready()?.copy()?),
            Some(all) => all.merge(entry.ready()?).map_err(other_secret)?,
        }
    }
    all.ok_or(Failure::Arity)
}

/// `UMBEL.INTERSECT to from...`: `to` becomes a filter of the keys that are in all of these, and of a few more. What was
/// there is replaced, if it is a filter.
pub fn intersect(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let to = arguments.next_arg()?;
    let all = together(context, arguments.rest()?.iter(), |held| held.cloned(), Stored::intersect)?;
    Held::open(context, to)?;
    put(context, to, all)?;
    context.replicate();
    context.notify(c"umbel.intersect", to);
    Ok(Reply::Ok)
}

/// `UMBEL.JACCARD one other`: how much of both together both have, from 0 to 1, and the standard deviation of that.
pub fn jaccard(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (one, other) = (arguments.next_arg()?, arguments.next_arg()?);
    arguments.expect_end()?;
    let (one, other) = (Held::existing(context, one)?.cloned()?, Held::existing(context, other)?.cloned()?);
    let overlap = one.overlap(&other).map_err(other_secret)?;
    Ok(Reply::Array(estimated(overlap.map(|overlap| overlap.jaccard)).to_vec()))
}

/// `UMBEL.CARD key...`: how many keys are in these together, and the standard deviation of that.
pub fn card(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let keys = arguments.rest()?;
    let stats = match keys {
        [key] => Held::existing(context, key)?.stats(context)?,
        _ => together(context, keys.iter(), cells, Stored::union)?.stats(),
    };
    Ok(Reply::Array(estimated(stats.estimate.estimate()).to_vec()))
}

/// A copy of a filter whose cells say how many keys it has together with others: in stages they would be counted twice.
fn cells(held: &Held<'_>) -> Result<Stored> {
    match held.structure()? {
        Structure::Set(AnyFilter::Scalable(filter)) => match filter.single() {
            Some(single) => Ok(single.try_clone()?.into()),
            None => Err(Failure::new(
                "a filter that has grown does not show which keys it shares with another: \
                 reserve them for as many keys as they get, or ask each with UMBEL.CARD",
            )),
        },
        _ => held.cloned(),
    }
}
