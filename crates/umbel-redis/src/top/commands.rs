//! The `TOPK.*` commands, compatible with the clients of RedisBloom.

use super::{MAX_DEPTH, MAX_K, Top, TopDesign};
use crate::config::{self, next_secret, seed_argument};
use crate::persist::Entry;
use crate::server::{Arguments, Context, Failure, Reply, Result, Text, memory};
use umbel::sketch::TopK;

fn no_key() -> Failure {
    Failure::new("TopK: key does not exist")
}

fn parse_size(text: &Text, name: &str) -> Result<u64> {
    let size = text.parse::<u64>().filter(|size| (1..=u64::from(u32::MAX)).contains(size));
    size.ok_or_else(|| Failure::new(format!("TopK: invalid {name}")))
}

/// `TOPK.RESERVE key k [width depth decay] [SEED secret]`.
pub fn reserve(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let k = parse_size(arguments.next_arg()?, "k")?;
    if k > MAX_K && !memory::is_unlimited() {
        return Err(Failure::new(format!("TopK: invalid k: the maximum is {MAX_K}")));
    }
    let mut design = TopDesign { k, width: 8, depth: 7, decay: 0.9, secret: config::secret() };
    let mut depth = u64::from(design.depth);
    let mut next = arguments.next();
    if let Some(width) = next.filter(|text| !text.is("SEED")) {
        design.width = parse_size(width, "width")?;
        depth = parse_size(arguments.next_arg()?, "depth")?;
        let decay = arguments.next_arg()?.parse::<f64>().filter(|decay| *decay > 0.0 && *decay <= 1.0);
        design.decay =
            decay.ok_or_else(|| Failure::new("TopK: invalid decay value. must be '<= 1' & '> 0'"))?;
        next = arguments.next();
    }
    if let Some(option) = next {
        design.secret = match option.is("SEED") {
            true => next_secret(&mut arguments)?,
            false => return Err(Failure::Arity),
        };
    }
    arguments.expect_end()?;
    design.depth = u32::try_from(depth)
        .ok()
        .filter(|depth| *depth <= MAX_DEPTH)
        .ok_or_else(|| Failure::new(format!("TopK: invalid depth: the maximum is {MAX_DEPTH}")))?;
    if context.read::<Entry<Top>>(key)?.is_some() {
        return Err(Failure::new("TopK: key already exists"));
    }
    context.set(key, Entry::Ready(Top::new(design)?))?;
    let TopDesign { k, width, depth, decay, secret } = design;
    let numbers =
        [k.to_string(), width.to_string(), depth.to_string(), format!("{decay:?}"), seed_argument(&secret)];
    let [k, width, depth, decay, secret] = numbers.each_ref().map(|number| number.as_bytes());
    context.replicate_as(c"TOPK.RESERVE", &[key.bytes(), k, width, depth, decay, b"SEED", secret]);
    context.notify(c"topk.reserve", key);
    Ok(Reply::Ok)
}

/// Counts items, each this many times. Replies with one element per item: the item that it
/// displaced, or null, or an error if a memory limit does not allow it.
fn add_items(context: &Context, key: &Text, items: &[(&Text, u32)]) -> Result<Reply> {
    items.iter().try_for_each(|(item, _)| config::check_item(item.bytes()))?;
    let mut entry = context.write::<Entry<Top>>(key)?.ok_or_else(no_key)?;
    let top = entry.ready_mut()?;
    let displaced: Vec<Result<Option<Vec<u8>>>> =
        items.iter().map(|(item, times)| top.add(item.bytes(), *times)).collect();
    let added = || items.iter().zip(&displaced).filter(|(_, displaced)| displaced.is_ok());
    // Replicas have no limits, so the replicated command omits the items that were refused.
    if displaced.iter().all(Result::is_ok) {
        context.replicate();
    } else if added().next().is_some() {
        let pairs: Vec<(&[u8], String)> =
            added().map(|((item, times), _)| (item.bytes(), times.to_string())).collect();
        let pairs = pairs.iter().flat_map(|(item, times)| [*item, times.as_bytes()]);
        context.replicate_as(c"TOPK.INCRBY", &[key.bytes()].into_iter().chain(pairs).collect::<Vec<_>>());
    }
    if added().next().is_some() {
        context.notify(c"topk.add", key);
    }
    let reply = |displaced: Result<Option<Vec<u8>>>| match displaced {
        Ok(item) => item.map_or(Reply::Null, Reply::Bytes),
        Err(failure) => Reply::Failure(failure),
    };
    Ok(Reply::Array(displaced.into_iter().map(reply).collect()))
}

/// `TOPK.ADD key item...`.
pub fn add(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items: Vec<(&Text, u32)> = arguments.rest()?.iter().map(|item| (item, 1)).collect();
    add_items(context, key, &items)
}

/// `TOPK.INCRBY key item times...`.
pub fn increment(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let (pairs, []) = arguments.rest()?.as_chunks::<2>() else { return Err(Failure::Arity) };
    let parse_times = |text: &Text| {
        let number = text.parse::<u32>().filter(|number| (1..=100_000).contains(number));
        number.ok_or_else(|| {
            Failure::new(
                "TopK: increment must be an integer greater or equal to 1 and smaller or equal to 100000",
            )
        })
    };
    let items =
        pairs.iter().map(|[item, times]| Ok((item, parse_times(times)?))).collect::<Result<Vec<_>>>()?;
    add_items(context, key, &items)
}

/// Replies with the answer for each item.
fn answer_each(
    context: &Context,
    mut arguments: Arguments<'_>,
    answer: fn(&TopK, &[u8]) -> Reply,
) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let entry = context.read::<Entry<Top>>(key)?.ok_or_else(no_key)?;
    let list = &entry.ready()?.list;
    Ok(Reply::Array(items.iter().map(|item| answer(list, item.bytes())).collect()))
}

/// `TOPK.QUERY key item...`: which items are in the list.
pub fn query(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    answer_each(context, arguments, |list, item| Reply::Bool(list.contains(item)))
}

/// `TOPK.COUNT key item...`: the estimated counts of items.
pub fn count(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    answer_each(context, arguments, |list, item| list.count(item).into())
}

/// `TOPK.LIST key [WITHCOUNT]`.
pub fn list(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let counts = match arguments.next() {
        Some(word) if word.is("WITHCOUNT") => true,
        Some(_) => return Err(Failure::new("WITHCOUNT keyword expected")),
        None => false,
    };
    arguments.expect_end()?;
    let entry = context.read::<Entry<Top>>(key)?.ok_or_else(no_key)?;
    let mut replies = Vec::new();
    for item in entry.ready()?.list.items() {
        replies.push(Reply::Bytes(item.key.to_vec()));
        if counts {
            replies.push(item.count.into());
        }
    }
    Ok(Reply::Array(replies))
}

/// `TOPK.INFO key`.
pub fn info(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key] = arguments.exactly()?;
    let entry = context.read::<Entry<Top>>(key)?.ok_or_else(no_key)?;
    let list = &entry.ready()?.list;
    Ok(Reply::Map(vec![
        ("k".into(), list.k().into()),
        ("width".into(), list.width().into()),
        ("depth".into(), u64::from(list.depth()).into()),
        ("decay".into(), Reply::Double(list.decay())),
    ]))
}
