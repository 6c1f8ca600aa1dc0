//! The commands, as RedisBloom's clients know them.

use super::{Bloom, Design, MAX_EXPANSION};
use crate::config::{self, next_secret, secret_to_hex};
use crate::persist::Entry;
use crate::server::{AddCommand, Arguments, Context, Failure, Reply, Result, Text};
use umbel::AnyFilter;

type Filters = Entry<Bloom>;

/// A rate above 0 and below 1.
fn rate(text: &Text) -> Result<f64> {
    let rate =
        text.parse::<f64>().filter(|rate| !rate.is_nan()).ok_or_else(|| Failure::new("bad error rate"))?;
    if rate > 0.0 && rate < 1.0 {
        return Ok(rate);
    }
    Err(Failure::new("error rate must be in the range (0.000000, 1.000000)"))
}

fn capacity(text: &Text) -> Result<u64> {
    let capacity = text.parse::<i64>().ok_or_else(|| Failure::new("bad capacity"))?;
    u64::try_from(capacity)
        .ok()
        .filter(|capacity| *capacity > 0)
        .ok_or_else(|| Failure::new("capacity must be in the range [1, 9223372036854775807]"))
}

/// The options that come behind what a filter must have.
#[derive(Default)]
struct Options {
    expansion: Option<u32>,
    fixed: bool,
    secret: Option<[u8; 16]>,
}

impl Options {
    /// Takes an option, with its value; whether it is one of these.
    fn take(&mut self, option: &Text, arguments: &mut Arguments<'_>) -> Result<bool> {
        if option.is("EXPANSION") {
            let text = arguments.next_arg().map_err(|_| Failure::new("bad expansion"))?;
            let expansion = text.parse::<i64>().ok_or_else(|| Failure::new("bad expansion"))?;
            let range = || Failure::new(format!("expansion must be in the range [0, {MAX_EXPANSION}]"));
            let expansion = u32::try_from(expansion).map_err(|_| range())?;
            if expansion > MAX_EXPANSION {
                return Err(range());
            }
            self.expansion = Some(expansion);
        } else if option.is("NONSCALING") {
            self.fixed = true;
        } else if option.is("SEED") {
            self.secret = Some(next_secret(arguments)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn design(&self, rate: f64, capacity: u64) -> Result<Design> {
        if self.fixed && self.expansion.is_some_and(|expansion| expansion > 0) {
            return Err(Failure::new("Nonscaling filters cannot expand"));
        }
        let expansion = if self.fixed { 0 } else { self.expansion.unwrap_or(config::get().expansion) };
        Ok(Design { rate, capacity, expansion, secret: self.secret.unwrap_or_else(config::secret) })
    }
}

fn unknown() -> Failure {
    Failure::new("Unknown argument received")
}

/// Makes a filter, here and elsewhere. Other servers have other secrets: they are told the one to use.
fn create(context: &Context, key: &Text, design: &Design) -> Result<()> {
    context.set(key, Entry::Ready(Bloom::new(design)?))?;
    let (rate, capacity) = (format!("{:?}", design.rate), design.capacity.to_string());
    let (expansion, secret) = (design.expansion.to_string(), secret_to_hex(&design.secret));
    let arguments: [&[u8]; 7] = [
        key.bytes(),
        rate.as_bytes(),
        capacity.as_bytes(),
        b"EXPANSION",
        expansion.as_bytes(),
        b"SEED",
        secret.as_bytes(),
    ];
    context.replicate_as(c"BF.RESERVE", &arguments);
    context.notify(c"bf.reserve", key);
    Ok(())
}

pub fn reserve(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let (rate, capacity) = (rate(arguments.next_arg()?)?, capacity(arguments.next_arg()?)?);
    let mut options = Options::default();
    while let Some(option) = arguments.next() {
        if !options.take(option, &mut arguments)? {
            return Err(unknown());
        }
    }
    let design = options.design(rate, capacity)?;
    if context.read::<Filters>(key)?.is_some() {
        return Err(Failure::new("item exists"));
    }
    create(context, key, &design)?;
    Ok(Reply::Ok)
}

/// Adds items to a filter, which is made if it is not there; what came of each.
pub fn add_all(
    context: &Context,
    key: &Text,
    items: &[Text],
    design: Option<&Design>,
) -> Result<Vec<Result<bool>>> {
    let mut filter = match context.write::<Filters>(key)? {
        Some(filter) => filter,
        None => {
            create(context, key, design.ok_or_else(|| Failure::new("not found"))?)?;
            context.existing_mut(key)?
        }
    };
    let keys: Vec<&[u8]> = items.iter().map(Text::bytes).collect();
    let added = filter.ready_mut()?.add(&keys[..]);
    if added.contains(&Ok(true)) {
        let command = AddCommand { name: c"BF.MADD", options: &[] };
        context.replicate_added(command, key, items, &added);
        context.notify(c"bf.add", key);
    }
    Ok(added)
}

pub fn add(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let item = arguments.rest()?;
    if item.len() > 1 {
        return Err(Failure::Arity);
    }
    add_all(context, key, item, Some(&Design::default()))?.pop().ok_or(Failure::Arity)?.map(Reply::Bool)
}

pub fn add_many(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    Ok(Reply::from_results(add_all(context, key, arguments.rest()?, Some(&Design::default()))?))
}

pub fn insert(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let (mut asked_rate, mut asked_capacity, mut create) = (None, None, true);
    let mut options = Options::default();
    loop {
        // Without items there is nothing to do.
        let option = arguments.next_arg()?;
        if option.is("ITEMS") {
            break;
        } else if option.is("CAPACITY") {
            asked_capacity = Some(capacity(arguments.next_arg()?)?);
        } else if option.is("ERROR") {
            asked_rate = Some(rate(arguments.next_arg()?)?);
        } else if option.is("NOCREATE") {
            create = false;
        } else if !options.take(option, &mut arguments)? {
            return Err(unknown());
        }
    }
    if !create && (asked_rate.is_some() || asked_capacity.is_some()) {
        return Err(Failure::new("NOCREATE goes with neither CAPACITY nor ERROR"));
    }
    let Design { rate, capacity, .. } = Design::default();
    let design = options.design(asked_rate.unwrap_or(rate), asked_capacity.unwrap_or(capacity))?;
    Ok(Reply::from_results(add_all(context, key, arguments.rest()?, create.then_some(&design))?))
}

pub fn exists(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, item) = (arguments.next_arg()?, arguments.next_arg()?);
    arguments.expect_end()?;
    Ok(Reply::Bool(match context.read::<Filters>(key)? {
        Some(filter) => filter.ready()?.filter().contains(item.bytes()),
        None => false,
    }))
}

pub fn exists_many(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let Some(filter) = context.read::<Filters>(key)? else {
        return Ok(Reply::Array(vec![Reply::Bool(false); items.len()]));
    };
    let keys: Vec<&[u8]> = items.iter().map(Text::bytes).collect();
    let answers = filter.ready()?.filter().contains_batch(&keys[..]);
    Ok(Reply::Array(answers.iter().map(Reply::Bool).collect()))
}

pub fn info(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let field = arguments.next();
    arguments.expect_end()?;
    let filter = context.existing::<Filters>(key)?;
    let facts = filter.ready()?.facts();
    match field {
        None => Ok(Reply::Map(facts.into_iter().map(|(_, name, value)| (name.into(), value)).collect())),
        Some(field) => {
            let found = facts.into_iter().find(|(word, ..)| field.is(word));
            let (.., value) = found.ok_or_else(|| Failure::new("Invalid information value"))?;
            Ok(Reply::Array(vec![value]))
        }
    }
}

pub fn card(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    arguments.expect_end()?;
    Ok(match context.read::<Filters>(key)? {
        Some(filter) => filter.ready()?.items().into(),
        None => Reply::Integer(0),
    })
}

/// A line for all of it, and one for each of its filters.
pub fn debug(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    arguments.expect_end()?;
    let filter = context.existing::<Filters>(key)?;
    let bloom = filter.ready()?;
    let mut lines = vec![format!("size:{}", bloom.items())];
    match bloom.filter() {
        AnyFilter::Scalable(filter) => lines.extend(filter.stages().map(|stage| {
            let (bits, hashes, rate) = (stage.bits, stage.hashes, stage.rate);
            let (bytes, capacity, size) = (bits / 8, stage.capacity, stage.keys);
            format!("bytes:{bytes} bits:{bits} hashes:{hashes} hashwidth:64 capacity:{capacity} size:{size} ratio:{rate:?}")
        })),
        other => {
            let (stats, capacity, size) = (other.stats(), bloom.capacity(), bloom.items());
            let rate = other.design().map_or(0.0, |design| design.rate);
            let (bits, hashes) = (stats.bits, stats.hashes);
            let bytes = bits / 8;
            lines.push(format!("bytes:{bytes} bits:{bits} hashes:{hashes} hashwidth:64 capacity:{capacity} size:{size} ratio:{rate:?}"));
        }
    }
    Ok(Reply::Array(lines.into_iter().map(|line| Reply::Bytes(line.into_bytes())).collect()))
}
