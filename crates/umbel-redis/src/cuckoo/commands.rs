//! The commands, as RedisBloom's clients know them; `FINGERPRINT` and `SEED` are new.

use super::{Cuckoos, Design, MAX_EXPANSION, MAX_KICKS};
use crate::config::{next_secret, secret_to_hex};
use crate::persist::{Entry, Persist};
use crate::server::{AddCommand, Arguments, Context, Failure, Reply, Result, Text};

use umbel::internals::TILE;

type Filters = Entry<Cuckoos>;

/// A number within bounds.
fn number(text: Result<&Text>, what: &str, least: i64, most: i64) -> Result<i64> {
    let bad = || Failure::new(format!("Couldn't parse {what}"));
    let number = text.map_err(|_| bad())?.parse::<i64>().ok_or_else(bad)?;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(Failure::new(format!("{what}: value must be between {least} and {most}")))
}

fn capacity(text: Result<&Text>) -> Result<u64> {
    let number = number(text, "CAPACITY", 1, i64::MAX).map_err(|_| Failure::new("Bad capacity"))?;
    Ok(number as u64)
}

/// Takes an option of a new filter, with its value; whether it is one.
fn option(design: &mut Design, option: &Text, arguments: &mut Arguments<'_>) -> Result<bool> {
    if option.is("BUCKETSIZE") {
        let slots = number(arguments.next_arg(), "BUCKETSIZE", 1, 255)? as u32;
        // Buckets have 1, 2, 4 or 8 slots; more would only make the rate worse.
        design.slots = slots.next_power_of_two().min(8);
    } else if option.is("MAXITERATIONS") {
        design.kicks = number(arguments.next_arg(), "MAXITERATIONS", 1, MAX_KICKS.into())? as u32;
    } else if option.is("EXPANSION") {
        // As RedisBloom does, so that a filter is a multiple of the one before.
        let expansion = number(arguments.next_arg(), "EXPANSION", 0, MAX_EXPANSION.into())? as u32;
        design.expansion = if expansion == 0 { 0 } else { expansion.next_power_of_two() };
    } else if option.is("FINGERPRINT") {
        design.bits = number(arguments.next_arg(), "FINGERPRINT", 4, 32)? as u32;
    } else if option.is("SEED") {
        design.secret = next_secret(arguments)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Makes a filter, here and elsewhere. Other servers have other secrets: they are told the one to use.
fn create(context: &Context, key: &Text, design: &Design) -> Result<()> {
    context.set(key, Entry::Ready(Cuckoos::new(design)?))?;
    let [capacity, slots, kicks, expansion, bits] = [
        design.capacity.to_string(),
        design.slots.to_string(),
        design.kicks.to_string(),
        design.expansion.to_string(),
        design.bits.to_string(),
    ];
    let secret = secret_to_hex(&design.secret);
    let arguments: [&[u8]; 12] = [
        key.bytes(),
        capacity.as_bytes(),
        b"BUCKETSIZE",
        slots.as_bytes(),
        b"MAXITERATIONS",
        kicks.as_bytes(),
        b"EXPANSION",
        expansion.as_bytes(),
        b"FINGERPRINT",
        bits.as_bytes(),
        b"SEED",
        secret.as_bytes(),
    ];
    context.replicate_as(c"CF.RESERVE", &arguments);
    context.notify(c"cf.reserve", key);
    Ok(())
}

pub fn reserve(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let mut design = Design { capacity: capacity(Ok(arguments.next_arg()?))?, ..Design::default() };
    while let Some(name) = arguments.next() {
        if !option(&mut design, name, &mut arguments)? {
            return Err(Failure::new("Unknown argument received"));
        }
    }
    if context.read::<Filters>(key)?.is_some() {
        return Err(Failure::new("item exists"));
    }
    create(context, key, &design)?;
    Ok(Reply::Ok)
}

/// Adds items to a filter, which is made if it is not there; of each, whether it was added, or why not.
pub fn add_all(
    context: &Context,
    key: &Text,
    items: &[Text],
    design: Option<&Design>,
    only_new: bool,
) -> Result<Vec<Result<bool>>> {
    let mut entry = match context.write::<Filters>(key)? {
        Some(entry) => entry,
        None => {
            create(context, key, design.ok_or_else(|| Failure::new("not found"))?)?;
            context.existing_mut(key)?
        }
    };
    let filters = entry.ready_mut()?;
    let mut add = |item: &Text| {
        let digest = filters.digest(item.bytes());
        if only_new && filters.contains(digest) {
            return Ok(false);
        }
        filters.add(digest).map(|()| true)
    };
    let added: Vec<Result<bool>> = items.iter().map(&mut add).collect();
    if added.contains(&Ok(true)) {
        let command = AddCommand { name: c"CF.INSERT", options: &[b"NOCREATE", b"ITEMS"] };
        context.replicate_added(command, key, items, &added);
        context.notify(c"cf.add", key);
    }
    Ok(added)
}

fn add_one(context: &Context, mut arguments: Arguments<'_>, only_new: bool) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let item = arguments.rest()?;
    if item.len() > 1 {
        return Err(Failure::Arity);
    }
    let added = add_all(context, key, item, Some(&Design::default()), only_new)?.pop();
    added.ok_or(Failure::Arity)?.map(Reply::Bool)
}

pub fn add(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    add_one(context, arguments, false)
}

pub fn add_absent(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    add_one(context, arguments, true)
}

/// Whether an item was added is a number here, for a filter that is full says -1.
fn insert_all(context: &Context, mut arguments: Arguments<'_>, only_new: bool) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let (mut design, mut create) = (Design::default(), true);
    loop {
        // Without items there is nothing to do.
        let name = arguments.next_arg()?;
        if name.is("ITEMS") {
            break;
        } else if name.is("CAPACITY") {
            design.capacity = capacity(arguments.next_arg())?;
        } else if name.is("NOCREATE") {
            create = false;
        } else if !option(&mut design, name, &mut arguments)? {
            return Err(Failure::new("Unknown argument received"));
        }
    }
    let added = add_all(context, key, arguments.rest()?, create.then_some(&design), only_new)?;
    Ok(Reply::Array(added.into_iter().map(|added| Reply::Integer(added.map_or(-1, i64::from))).collect()))
}

pub fn insert(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    insert_all(context, arguments, false)
}

pub fn insert_absent(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    insert_all(context, arguments, true)
}

/// A key and one item.
fn key_and_item<'a>(mut arguments: Arguments<'a>) -> Result<(&'a Text, &'a Text)> {
    let pair = (arguments.next_arg()?, arguments.next_arg()?);
    arguments.expect_end()?;
    Ok(pair)
}

pub fn exists(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let (key, item) = key_and_item(arguments)?;
    Ok(Reply::Bool(match context.read::<Filters>(key)? {
        Some(entry) => {
            let filters = entry.ready()?;
            filters.contains(filters.digest(item.bytes()))
        }
        None => false,
    }))
}

pub fn exists_many(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let Some(entry) = context.read::<Filters>(key)? else {
        return Ok(Reply::Array(vec![Reply::Bool(false); items.len()]));
    };
    let filters = entry.ready()?;
    let keys: Vec<&[u8]> = items.iter().map(Text::bytes).collect();
    let digests = filters.first().hasher().digest_batch(&keys[..]);
    let answers = digests.chunks(TILE).flat_map(|tile| {
        let found = filters.contains_tile(tile);
        (0..tile.len()).map(move |i| Reply::Bool(found >> i & 1 > 0))
    });
    Ok(Reply::Array(answers.collect()))
}

pub fn delete(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let (key, item) = key_and_item(arguments)?;
    let mut entry = context.write::<Filters>(key)?.ok_or_else(|| Failure::new("Not found"))?;
    let filters = entry.ready_mut()?;
    let removed = filters.remove(filters.digest(item.bytes()))?;
    if removed {
        context.replicate();
        context.notify(c"cf.del", key);
    }
    Ok(Reply::Bool(removed))
}

pub fn count(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let (key, item) = key_and_item(arguments)?;
    Ok(match context.read::<Filters>(key)? {
        Some(entry) => {
            let filters = entry.ready()?;
            filters.count(filters.digest(item.bytes())).into()
        }
        None => Reply::Integer(0),
    })
}

pub fn info(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    arguments.expect_end()?;
    let entry = context.read::<Filters>(key)?.ok_or_else(|| Failure::new("not found"))?;
    let filters = entry.ready()?;
    let facts: [(&'static str, u64); 9] = [
        ("Size", filters.memory_bytes() as u64),
        ("Number of buckets", filters.filters().map(|filter| filter.table().buckets()).sum()),
        ("Number of filters", filters.levels() as u64),
        ("Number of items inserted", filters.items()),
        ("Number of items deleted", filters.deleted()),
        ("Bucket size", filters.first().table().slots().into()),
        ("Expansion rate", filters.expansion().into()),
        ("Max iterations", filters.kicks().into()),
        ("Fingerprint bits", filters.first().table().fingerprint_bits().into()),
    ];
    Ok(Reply::Map(facts.into_iter().map(|(name, number)| (name.into(), number.into())).collect()))
}

pub fn compact(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    arguments.expect_end()?;
    let mut entry =
        context.write::<Filters>(key)?.ok_or_else(|| Failure::new("Cuckoo filter was not found"))?;
    entry.ready_mut()?.compact()?;
    context.replicate();
    context.notify(c"cf.compact", key);
    Ok(Reply::Ok)
}
