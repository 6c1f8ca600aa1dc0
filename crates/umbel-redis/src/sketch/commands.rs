//! The commands, as RedisBloom's clients know them.

use super::{MAX_DEPTH, Sketch};
use crate::config::{self, next_secret, secret_to_hex};
use crate::persist::Entry;
use crate::server::{Arguments, Context, Declared, Failure, Keys, Reply, Result, Text};
use crate::{command, dump};

/// All of them.
pub const COMMANDS: &[Declared] = &[
    command!(
        c"CMS.INITBYDIM",
        -4,
        c"write deny-oom",
        Keys::One,
        c"write slow cms",
        c"Makes a count-min sketch of a width and a depth",
        by_dimensions
    ),
    command!(
        c"CMS.INITBYPROB",
        -4,
        c"write deny-oom",
        Keys::One,
        c"write slow cms",
        c"Makes a count-min sketch with an error",
        by_probability
    ),
    command!(
        c"CMS.INCRBY",
        -4,
        c"write deny-oom",
        Keys::One,
        c"write slow cms",
        c"Counts items in a count-min sketch",
        increase
    ),
    command!(
        c"CMS.QUERY",
        -3,
        c"readonly",
        Keys::One,
        c"read slow cms",
        c"Estimates how often items were counted",
        query
    ),
    command!(
        c"CMS.MERGE",
        -4,
        c"write deny-oom getkeys-api",
        Keys::Counted,
        c"write slow cms",
        c"Adds up count-min sketches",
        merge,
        merged
    ),
    command!(
        c"CMS.INFO",
        2,
        c"readonly fast",
        Keys::One,
        c"read fast cms",
        c"Describes a count-min sketch",
        info
    ),
    command!(
        c"CMS.SCANDUMP",
        3,
        c"readonly",
        Keys::One,
        c"read slow cms",
        c"Gives a chunk of a count-min sketch",
        dump::scan::<Sketch>
    ),
    command!(
        c"CMS.LOADCHUNK",
        4,
        c"write deny-oom",
        Keys::One,
        c"write slow cms",
        c"Takes a chunk of a count-min sketch",
        dump::load::<Sketch>
    ),
];

type Sketches = Entry<Sketch>;

fn missing() -> Failure {
    Failure::new("CMS: key does not exist")
}

/// Makes a sketch, here and on replicas. Since they have secrets of their own, the command that they get names this one.
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
        .ok_or_else(|| Failure::new(format!("CMS: invalid depth: there are {MAX_DEPTH} at most")))?;
    if context.read::<Sketches>(key)?.is_some() {
        return Err(Failure::new("CMS: key already exists"));
    }
    context.set(key, Entry::Ready(Sketch::new(width, depth, secret)?))?;
    let (width, depth, secret) = (width.to_string(), depth.to_string(), secret_to_hex(&secret));
    let arguments = [key.bytes(), width.as_bytes(), depth.as_bytes(), b"SEED", secret.as_bytes()];
    context.replicate_as(c"CMS.INITBYDIM", &arguments);
    context.notify(c"cms.initbydim", key);
    Ok(Reply::Ok)
}

fn by_dimensions(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let size = |text: &Text, what: &str| {
        let size = text.parse::<u64>().filter(|size| *size > 0);
        size.ok_or_else(|| Failure::new(format!("CMS: invalid {what}")))
    };
    let (width, depth) = (size(arguments.next_arg()?, "width")?, size(arguments.next_arg()?, "depth")?);
    create(context, arguments, key, width, depth)
}

/// Sizes the sketch for an overestimate of at most `error` times the total, exceeded with probability `prob`.
fn by_probability(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let share = |text: &Text, what: &str| {
        let share = text.parse::<f64>().filter(|share| *share > 0.0 && *share < 1.0);
        share.ok_or_else(|| Failure::new(format!("CMS: invalid {what} value")))
    };
    let (error, probability) =
        (share(arguments.next_arg()?, "overestimation")?, share(arguments.next_arg()?, "prob")?);
    let (width, depth) = ((2.0 / error).ceil() as u64, (-probability.log2()).ceil() as u64);
    create(context, arguments, key, width, depth)
}

fn increase(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let (pairs, []) = arguments.rest()?.as_chunks::<2>() else { return Err(Failure::Arity) };
    // Parses every number before the first item is counted.
    let number = |text: &Text| {
        let number = text.parse::<i64>().ok_or_else(|| Failure::new("CMS: Cannot parse number"))?;
        u32::try_from(number)
            .map_err(|_| Failure::new("CMS: Number cannot be negative, nor above 4294967295"))
    };
    let increments =
        pairs.iter().map(|[item, times]| Ok((item, number(times)?))).collect::<Result<Vec<_>>>()?;
    let mut entry = context.write::<Sketches>(key)?.ok_or_else(missing)?;
    let sketch = entry.ready_mut()?;
    let mut counts = Vec::with_capacity(increments.len());
    for (item, times) in increments {
        counts.push(sketch.counts.insert_times(item.bytes(), times.into()).into());
    }
    context.replicate();
    context.notify(c"cms.incrby", key);
    Ok(Reply::Array(counts))
}

fn query(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let entry = context.read::<Sketches>(key)?.ok_or_else(missing)?;
    let sketch = entry.ready()?;
    Ok(Reply::Array(items.iter().map(|item| sketch.counts.count(item.bytes()).into()).collect()))
}

/// `CMS.MERGE to number from... [WEIGHTS weight...]`: replaces the contents of `to` by the sum.
fn merge(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
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
    let entry = context.read::<Sketches>(to)?.ok_or_else(missing)?;
    let mut sum = entry
        .ready()?
        .counts
        .weighted_sum()
        .map_err(|_| Failure::new("CMS: there is no memory for the sum"))?;
    for (key, weight) in keys.iter().zip(weights) {
        // The target may be one of the sources.
        let source = context.read::<Sketches>(key)?.ok_or_else(missing)?;
        let (target, source) = (&entry.ready()?.counts, &source.ready()?.counts);
        if (target.width(), target.depth()) != (source.width(), source.depth()) {
            return Err(Failure::new("CMS: width/depth is not equal"));
        }
        sum.add(source, weight).map_err(|_| Failure::new("CMS: seed is not equal"))?;
    }
    drop(entry);
    let mut entry = context.write::<Sketches>(to)?.ok_or_else(missing)?;
    sum.store(&mut entry.ready_mut()?.counts)?;
    context.replicate();
    context.notify(c"cms.merge", to);
    Ok(Reply::Ok)
}

/// Which arguments of a merge are keys, the name of the command being the first argument.
fn merged(mut arguments: Arguments<'_>) -> Vec<usize> {
    let mut keys = vec![1];
    let number = arguments
        .next_arg()
        .and_then(|_| arguments.next_arg())
        .ok()
        .and_then(|number| number.parse::<usize>());
    let there = arguments.rest().map_or(0, <[Text]>::len);
    keys.extend(3..3 + number.unwrap_or(0).min(there));
    keys
}

fn info(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    arguments.expect_end()?;
    let entry = context.read::<Sketches>(key)?.ok_or_else(missing)?;
    let counts = &entry.ready()?.counts;
    let facts = [("width", counts.width()), ("depth", counts.depth().into()), ("count", counts.total())];
    Ok(Reply::Map(facts.into_iter().map(|(name, number)| (name.into(), number.into())).collect()))
}
