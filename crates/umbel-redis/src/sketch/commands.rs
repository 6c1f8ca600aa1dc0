//! The `CMS.*` commands, compatible with the clients of RedisBloom.

use super::{MAX_DEPTH, Sketch};
use crate::config::{self, next_secret, seed_argument};
use crate::persist::Entry;
use crate::server::{Arguments, Context, Failure, Reply, Result, Text};
use std::collections::BTreeMap;

fn no_key() -> Failure {
    Failure::new("CMS: key does not exist")
}

/// Creates a sketch here and on replicas. Replicas have other default secrets, so the replicated
/// command contains this one.
fn create(
    context: &Context,
    mut arguments: Arguments<'_>,
    key: &Text,
    width: u64,
    depth: u64,
) -> Result<Reply> {
    let mut secret = config::secret();
    if let Some(option) = arguments.next() {
        secret = match option.is("SEED") {
            true => next_secret(&mut arguments)?,
            false => return Err(Failure::Arity),
        };
    }
    arguments.expect_end()?;
    let depth = u32::try_from(depth)
        .ok()
        .filter(|depth| *depth <= MAX_DEPTH)
        .ok_or_else(|| Failure::new(format!("CMS: invalid depth: the maximum is {MAX_DEPTH}")))?;
    if context.read::<Entry<Sketch>>(key)?.is_some() {
        return Err(Failure::new("CMS: key already exists"));
    }
    context.set(key, Entry::Ready(Sketch::new(width, depth, secret)?))?;
    let (width, depth, secret) = (width.to_string(), depth.to_string(), seed_argument(&secret));
    let arguments = [key.bytes(), width.as_bytes(), depth.as_bytes(), b"SEED", secret.as_bytes()];
    context.replicate_as(c"CMS.INITBYDIM", &arguments);
    context.notify(c"cms.initbydim", key);
    Ok(Reply::Ok)
}

/// `CMS.INITBYDIM key width depth [SEED secret]`.
pub fn init_by_dimensions(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let parse_size = |text: &Text, name: &str| {
        let size = text.parse::<u64>().filter(|size| *size > 0);
        size.ok_or_else(|| Failure::new(format!("CMS: invalid {name}")))
    };
    let (width, depth) =
        (parse_size(arguments.next_arg()?, "width")?, parse_size(arguments.next_arg()?, "depth")?);
    create(context, arguments, key, width, depth)
}

/// `CMS.INITBYPROB key error prob [SEED secret]`: sizes the sketch for an overestimate of at most
/// `error` times the total, exceeded with probability `prob`.
pub fn init_by_probability(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let parse_share = |text: &Text, name: &str| {
        let share = text.parse::<f64>().filter(|share| *share > 0.0 && *share < 1.0);
        share.ok_or_else(|| Failure::new(format!("CMS: invalid {name} value")))
    };
    let (error, probability) =
        (parse_share(arguments.next_arg()?, "overestimation")?, parse_share(arguments.next_arg()?, "prob")?);
    let (width, depth) = ((2.0 / error).ceil() as u64, (-probability.log2()).ceil() as u64);
    create(context, arguments, key, width, depth)
}

/// `CMS.INCRBY key item times...`: counts items and replies with their new counts.
pub fn increment(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let (pairs, []) = arguments.rest()?.as_chunks::<2>() else { return Err(Failure::Arity) };
    // Parses every number before the first item is counted.
    let parse_times = |text: &Text| {
        let number = text.parse::<i64>().ok_or_else(|| Failure::new("CMS: Cannot parse number"))?;
        u32::try_from(number)
            .map_err(|_| Failure::new("CMS: Number cannot be negative, nor above 4294967295"))
    };
    let increments =
        pairs.iter().map(|[item, times]| Ok((item, parse_times(times)?))).collect::<Result<Vec<_>>>()?;
    let mut entry = context.write::<Entry<Sketch>>(key)?.ok_or_else(no_key)?;
    let sketch = entry.ready_mut()?;
    let mut counts = Vec::with_capacity(increments.len());
    for (item, times) in increments {
        counts.push(sketch.counts.insert_times(item.bytes(), times.into()).into());
    }
    context.replicate();
    context.notify(c"cms.incrby", key);
    Ok(Reply::Array(counts))
}

/// `CMS.QUERY key item...`: the counts of items.
pub fn query(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let entry = context.read::<Entry<Sketch>>(key)?.ok_or_else(no_key)?;
    let sketch = entry.ready()?;
    Ok(Reply::Array(items.iter().map(|item| sketch.counts.count(item.bytes()).into()).collect()))
}

/// `CMS.MERGE to number from... [WEIGHTS weight...]`: replaces the contents of `to` with the sum.
pub fn merge(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (to, number) = (arguments.next_arg()?, arguments.next_arg()?);
    let number = number.parse::<usize>().filter(|number| *number > 0);
    let number = number.ok_or_else(|| Failure::new("CMS: invalid numkeys"))?;
    let rest = arguments.rest()?;
    let (keys, rest) =
        rest.split_at_checked(number).ok_or_else(|| Failure::new("CMS: wrong number of keys"))?;
    let weights: Vec<i64> = match rest {
        [] => vec![1; keys.len()],
        [word, weights @ ..] if word.is("WEIGHTS") && weights.len() == keys.len() => {
            let weights = weights.iter().map(|weight| weight.parse::<i64>()).collect::<Option<_>>();
            weights.ok_or_else(|| Failure::new("CMS: invalid weight value"))?
        }
        _ => return Err(Failure::new("CMS: wrong number of keys/weights")),
    };
    let entry = context.read::<Entry<Sketch>>(to)?.ok_or_else(no_key)?;
    let mut sum = entry
        .ready()?
        .counts
        .weighted_sum()
        .map_err(|_| Failure::new("CMS: there is no memory for the sum"))?;
    // A source that is named many times is read once.
    let mut sources: BTreeMap<&[u8], (&Text, i64)> = BTreeMap::new();
    for (key, weight) in keys.iter().zip(weights) {
        let source = sources.entry(key.bytes()).or_insert((key, 0));
        source.1 = source.1.saturating_add(weight);
    }
    for (key, weight) in sources.into_values() {
        // The target may be one of the sources.
        let source = context.read::<Entry<Sketch>>(key)?.ok_or_else(no_key)?;
        let (target, source) = (&entry.ready()?.counts, &source.ready()?.counts);
        if (target.width(), target.depth()) != (source.width(), source.depth()) {
            return Err(Failure::new("CMS: width/depth is not equal"));
        }
        sum.add(source, weight).map_err(|_| Failure::new("CMS: seed is not equal"))?;
    }
    drop(entry);
    let mut entry = context.write::<Entry<Sketch>>(to)?.ok_or_else(no_key)?;
    sum.store(&mut entry.ready_mut()?.counts)?;
    context.replicate();
    context.notify(c"cms.merge", to);
    Ok(Reply::Ok)
}

/// `CMS.INFO key`.
pub fn info(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key] = arguments.exactly()?;
    let entry = context.read::<Entry<Sketch>>(key)?.ok_or_else(no_key)?;
    let counts = &entry.ready()?.counts;
    let fields = [("width", counts.width()), ("depth", counts.depth().into()), ("count", counts.total())];
    Ok(Reply::Map(fields.into_iter().map(|(name, number)| (name.into(), number.into())).collect()))
}
