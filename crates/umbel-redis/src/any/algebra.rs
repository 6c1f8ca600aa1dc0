//! Several filters at once. They must be alike: of one kind, size and hash, as those made by one server are.

use super::commands::estimated;
use super::{Held, put};
use crate::engine::{Arguments, Context, Reply, Result, Text};
use umbel::Stored;

/// All of some filters, as one.
fn together(
    context: &Context,
    keys: &[Text],
    join: fn(&mut Stored, &Stored) -> umbel::Result<()>,
) -> Result<Stored> {
    let (first, rest) = keys.split_first().ok_or(crate::engine::Failure::Arity)?;
    let mut all = Held::existing(context, first)?.cloned()?;
    for key in rest {
        join(&mut all, &Held::existing(context, key)?.cloned()?)?;
    }
    Ok(all)
}

fn into_key(
    context: &Context,
    mut arguments: Arguments<'_>,
    join: fn(&mut Stored, &Stored) -> umbel::Result<()>,
) -> Result<Reply> {
    let to = arguments.take()?;
    let all = together(context, arguments.rest()?, join)?;
    // What is there is replaced, if it is a filter.
    Held::open(context, to)?;
    put(context, to, all)?;
    context.replicate();
    context.notify(c"umbel.merge", to);
    Ok(Reply::Ok)
}

/// `UMBEL.MERGE to from...`: a filter of all keys of these; `to` may be among them.
pub fn merge(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    into_key(context, arguments, Stored::union)
}

/// `UMBEL.INTERSECT to from...`: a filter of the keys that are in all of these, and of a few more.
pub fn intersect(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    into_key(context, arguments, Stored::intersect)
}

/// `UMBEL.JACCARD one other`: how much of both together both have, from 0 to 1, and the standard deviation of that.
pub fn jaccard(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (one, other) = (arguments.take()?, arguments.take()?);
    arguments.end()?;
    let (one, other) = (Held::existing(context, one)?.cloned()?, Held::existing(context, other)?.cloned()?);
    let overlap = one.overlap(&other)?;
    Ok(Reply::Array(estimated(overlap.map(|overlap| overlap.jaccard)).to_vec()))
}

/// `UMBEL.CARD key...`: how many keys are in these together, and the standard deviation of that.
pub fn card(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let stats = together(context, arguments.rest()?, Stored::union)?.stats();
    Ok(Reply::Array(estimated(stats.estimate.estimate()).to_vec()))
}
