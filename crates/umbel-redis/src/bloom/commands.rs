//! The `BF.*` commands, compatible with the clients of RedisBloom; the option `SEED` is new.

use super::{BloomDesign, BloomValue, MAX_EXPANSION};
use crate::config::{HashSecret, next_secret};
use crate::family::{self, Options};
use crate::persist::Entry;
use crate::server::{Arguments, Context, Failure, Reply, Result, Text};

/// Parses a rate above 0 and below 1.
fn parse_rate(text: &Text) -> Result<f64> {
    let rate =
        text.parse::<f64>().filter(|rate| !rate.is_nan()).ok_or_else(|| Failure::new("bad error rate"))?;
    if rate > 0.0 && rate < 1.0 {
        return Ok(rate);
    }
    Err(Failure::new("error rate must be in the range (0.000000, 1.000000)"))
}

fn parse_capacity(text: &Text) -> Result<u64> {
    let capacity = text.parse::<i64>().ok_or_else(|| Failure::new("bad capacity"))?;
    u64::try_from(capacity)
        .ok()
        .filter(|capacity| *capacity > 0)
        .ok_or_else(|| Failure::new("capacity must be in the range [1, 9223372036854775807]"))
}

fn parse_expansion(text: &Text) -> Result<u32> {
    let expansion = text.parse::<i64>().ok_or_else(|| Failure::new("bad expansion"))?;
    u32::try_from(expansion)
        .ok()
        .filter(|expansion| *expansion <= MAX_EXPANSION)
        .ok_or_else(|| Failure::new(format!("expansion must be in the range [0, {MAX_EXPANSION}]")))
}

/// The options of `BF.RESERVE` and `BF.INSERT`.
#[derive(Default)]
pub struct BloomOptions {
    rate: Option<f64>,
    capacity: Option<u64>,
    expansion: Option<u32>,
    nonscaling: bool,
    secret: Option<HashSecret>,
}

impl Options for BloomOptions {
    type Design = BloomDesign;

    fn parse_positional(&mut self, arguments: &mut Arguments<'_>) -> Result<()> {
        self.rate = Some(parse_rate(arguments.next_arg()?)?);
        self.capacity = Some(parse_capacity(arguments.next_arg()?)?);
        Ok(())
    }

    fn parse_insert_option(&mut self, name: &Text, arguments: &mut Arguments<'_>) -> Result<bool> {
        if name.is("CAPACITY") {
            self.capacity = Some(parse_capacity(arguments.next_arg()?)?);
        } else if name.is("ERROR") {
            self.rate = Some(parse_rate(arguments.next_arg()?)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn parse_option(&mut self, name: &Text, arguments: &mut Arguments<'_>) -> Result<bool> {
        if name.is("EXPANSION") {
            let text = arguments.next_arg().map_err(|_| Failure::new("bad expansion"))?;
            self.expansion = Some(parse_expansion(text)?);
        } else if name.is("NONSCALING") {
            self.nonscaling = true;
        } else if name.is("SEED") {
            self.secret = Some(next_secret(arguments)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn design(self, create: bool) -> Result<BloomDesign> {
        if !create && (self.rate.is_some() || self.capacity.is_some()) {
            return Err(Failure::new("NOCREATE cannot be combined with CAPACITY or ERROR"));
        }
        if self.nonscaling && self.expansion.is_some_and(|expansion| expansion > 0) {
            return Err(Failure::new("Nonscaling filters cannot expand"));
        }
        let default = BloomDesign::default();
        Ok(BloomDesign {
            rate: self.rate.unwrap_or(default.rate),
            capacity: self.capacity.unwrap_or(default.capacity),
            expansion: if self.nonscaling { 0 } else { self.expansion.unwrap_or(default.expansion) },
            secret: self.secret.unwrap_or(default.secret),
        })
    }
}

/// `BF.RESERVE key rate capacity [EXPANSION factor] [NONSCALING] [SEED secret]`.
pub fn reserve(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::reserve::<BloomValue>(context, arguments)
}

/// `BF.ADD key item`.
pub fn add(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::add_one(context, arguments, BloomValue::add_items)
}

/// `BF.MADD key item...`.
pub fn add_many(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, design) = (arguments.next_arg()?, BloomDesign::default());
    let added = family::add_items(context, key, arguments.rest()?, Some(&design), BloomValue::add_items)?;
    Ok(Reply::from_results(added))
}

/// `BF.INSERT key [CAPACITY number] [ERROR rate] [NOCREATE] [option of BF.RESERVE...] ITEMS item...`.
pub fn insert(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::insert(context, arguments, BloomValue::add_items).map(Reply::from_results)
}

/// `BF.EXISTS key item`.
pub fn exists(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::exists::<BloomValue>(context, arguments)
}

/// `BF.MEXISTS key item...`.
pub fn exists_many(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::exists_many::<BloomValue>(context, arguments)
}

/// `BF.INFO key [field]`.
pub fn info(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let field = arguments.next();
    arguments.expect_end()?;
    let entry = context.existing::<Entry<BloomValue>>(key)?;
    let fields = entry.ready()?.info_fields();
    match field {
        None => Ok(Reply::Map(fields.into_iter().map(|(_, name, value)| (name.into(), value)).collect())),
        Some(field) => {
            let named = fields.into_iter().find(|(word, ..)| field.is(word));
            let (.., value) = named.ok_or_else(|| Failure::new("Invalid information value"))?;
            Ok(Reply::Array(vec![value]))
        }
    }
}

/// `BF.CARD key`: the number of items that were new when they were added.
pub fn card(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key] = arguments.exactly()?;
    Ok(match context.read::<Entry<BloomValue>>(key)? {
        Some(entry) => entry.ready()?.items().into(),
        None => Reply::Integer(0),
    })
}

/// `BF.DEBUG key`: a line for the whole filter, and one for each of its stages.
pub fn debug(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key] = arguments.exactly()?;
    let entry = context.existing::<Entry<BloomValue>>(key)?;
    let lines = entry.ready()?.debug_lines();
    Ok(Reply::Array(lines.into_iter().map(|line| Reply::Bytes(line.into_bytes())).collect()))
}
