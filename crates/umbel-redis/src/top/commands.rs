//! The commands, as RedisBloom's clients know them.

use super::{Design, MAX_DEPTH, Top};
use crate::config::{self, next_secret, secret_to_hex};
use crate::persist::Entry;
use crate::server::{Arguments, Context, Declared, Failure, Keys, Reply, Result, Text};
use crate::{command, dump};
use umbel::sketch::TopK;

/// All of them.
pub const COMMANDS: &[Declared] = &[
    command!(
        c"TOPK.RESERVE",
        -3,
        c"write deny-oom",
        Keys::One,
        c"write slow topk",
        c"Makes a list of the most frequent items",
        reserve
    ),
    command!(
        c"TOPK.ADD",
        -3,
        c"write deny-oom",
        Keys::One,
        c"write slow topk",
        c"Adds items, and tells which left the list for them",
        add
    ),
    command!(
        c"TOPK.INCRBY",
        -4,
        c"write deny-oom",
        Keys::One,
        c"write slow topk",
        c"Adds items several times, and tells which left the list for them",
        increase
    ),
    command!(
        c"TOPK.QUERY",
        -3,
        c"readonly",
        Keys::One,
        c"read slow topk",
        c"Tells which items are in the list",
        query
    ),
    command!(
        c"TOPK.COUNT",
        -3,
        c"readonly",
        Keys::One,
        c"read slow topk",
        c"Estimates how often items came",
        count
    ),
    command!(
        c"TOPK.LIST",
        -2,
        c"readonly",
        Keys::One,
        c"read slow topk",
        c"Lists the most frequent items",
        list
    ),
    command!(
        c"TOPK.INFO",
        2,
        c"readonly fast",
        Keys::One,
        c"read fast topk",
        c"Describes a list of the most frequent items",
        info
    ),
    command!(
        c"TOPK.SCANDUMP",
        3,
        c"readonly",
        Keys::One,
        c"read slow topk",
        c"Gives a chunk of a list of the most frequent items",
        dump::scan::<Top>
    ),
    command!(
        c"TOPK.LOADCHUNK",
        4,
        c"write deny-oom",
        Keys::One,
        c"write slow topk",
        c"Takes a chunk of a list of the most frequent items",
        dump::load::<Top>
    ),
];

type Tops = Entry<Top>;

fn missing() -> Failure {
    Failure::new("TopK: key does not exist")
}

fn size(text: &Text, what: &str) -> Result<u64> {
    let size = text.parse::<u64>().filter(|size| (1..=u64::from(u32::MAX)).contains(size));
    size.ok_or_else(|| Failure::new(format!("TopK: invalid {what}")))
}

/// `TOPK.RESERVE key k [width depth decay]`.
fn reserve(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let k = size(arguments.next_arg()?, "k")?;
    let mut design = Design { k, width: 8, depth: 7, decay: 0.9, secret: config::secret() };
    let mut depth = u64::from(design.depth);
    let mut next = arguments.next();
    if let Some(width) = next.filter(|text| !text.is("SEED")) {
        design.width = size(width, "width")?;
        depth = size(arguments.next_arg()?, "depth")?;
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
        .ok_or_else(|| Failure::new(format!("TopK: invalid depth: there are {MAX_DEPTH} at most")))?;
    if context.read::<Tops>(key)?.is_some() {
        return Err(Failure::new("TopK: key already exists"));
    }
    context.set(key, Entry::Ready(Top::new(design)?))?;
    let Design { k, width, depth, decay, secret } = design;
    let numbers =
        [k.to_string(), width.to_string(), depth.to_string(), format!("{decay:?}"), secret_to_hex(&secret)];
    let [k, width, depth, decay, secret] = numbers.each_ref().map(|number| number.as_bytes());
    context.replicate_as(c"TOPK.RESERVE", &[key.bytes(), k, width, depth, decay, b"SEED", secret]);
    context.notify(c"topk.reserve", key);
    Ok(Reply::Ok)
}

/// Counts items, each this many times, and replies with the item that lost its place to each of them, if one did.
fn add_all(context: &Context, key: &Text, items: &[(&Text, u32)]) -> Result<Reply> {
    let mut entry = context.write::<Tops>(key)?.ok_or_else(missing)?;
    let list = &mut entry.ready_mut()?.list;
    let mut gone = Vec::with_capacity(items.len());
    for (item, times) in items {
        gone.push(list.insert_times(item.bytes(), *times).map_or(Reply::Null, Reply::Bytes));
    }
    context.replicate();
    context.notify(c"topk.add", key);
    Ok(Reply::Array(gone))
}

fn add(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items: Vec<(&Text, u32)> = arguments.rest()?.iter().map(|item| (item, 1)).collect();
    add_all(context, key, &items)
}

fn increase(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let (pairs, []) = arguments.rest()?.as_chunks::<2>() else { return Err(Failure::Arity) };
    let number = |text: &Text| {
        let number = text.parse::<u32>().filter(|number| (1..=100_000).contains(number));
        number.ok_or_else(|| {
            Failure::new(
                "TopK: increment must be an integer greater or equal to 1 and smaller or equal to 100000",
            )
        })
    };
    let items = pairs.iter().map(|[item, times]| Ok((item, number(times)?))).collect::<Result<Vec<_>>>()?;
    add_all(context, key, &items)
}

/// Replies with one answer for each item.
fn each(context: &Context, mut arguments: Arguments<'_>, answer: fn(&TopK, &[u8]) -> Reply) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let entry = context.read::<Tops>(key)?.ok_or_else(missing)?;
    let list = &entry.ready()?.list;
    Ok(Reply::Array(items.iter().map(|item| answer(list, item.bytes())).collect()))
}

fn query(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    each(context, arguments, |list, item| Reply::Bool(list.contains(item)))
}

fn count(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    each(context, arguments, |list, item| list.count(item).into())
}

fn list(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let counts = match arguments.next() {
        Some(word) if word.is("WITHCOUNT") => true,
        Some(_) => return Err(Failure::new("WITHCOUNT keyword expected")),
        None => false,
    };
    arguments.expect_end()?;
    let entry = context.read::<Tops>(key)?.ok_or_else(missing)?;
    let mut replies = Vec::new();
    for item in entry.ready()?.list.items() {
        replies.push(Reply::Bytes(item.key.to_vec()));
        if counts {
            replies.push(item.count.into());
        }
    }
    Ok(Reply::Array(replies))
}

fn info(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    arguments.expect_end()?;
    let entry = context.read::<Tops>(key)?.ok_or_else(missing)?;
    let list = &entry.ready()?.list;
    Ok(Reply::Map(vec![
        ("k".into(), list.k().into()),
        ("width".into(), list.width().into()),
        ("depth".into(), u64::from(list.depth()).into()),
        ("decay".into(), Reply::Double(list.decay())),
    ]))
}
