//! The `CF.*` commands, compatible with the clients of RedisBloom; the options `FINGERPRINT` and
//! `SEED` are new.

use super::{CuckooDesign, CuckooValue, MAX_EXPANSION, MAX_KICKS};
use crate::config::next_secret;
use crate::family::{self, Options};
use crate::persist::{Entry, Persist};
use crate::server::{Arguments, Context, Failure, Reply, Result, Text};

/// Parses a number within bounds, the value of the option `name`.
fn parse_number(text: Result<&Text>, name: &str, min: i64, max: i64) -> Result<i64> {
    let bad = || Failure::new(format!("Couldn't parse {name}"));
    let number = text.map_err(|_| bad())?.parse::<i64>().ok_or_else(bad)?;
    if (min..=max).contains(&number) {
        return Ok(number);
    }
    Err(Failure::new(format!("{name}: value must be between {min} and {max}")))
}

fn parse_capacity(text: Result<&Text>) -> Result<u64> {
    let capacity = parse_number(text, "CAPACITY", 1, i64::MAX).map_err(|_| Failure::new("Bad capacity"))?;
    Ok(capacity as u64)
}

impl Options for CuckooDesign {
    type Design = CuckooDesign;

    fn parse_positional(&mut self, arguments: &mut Arguments<'_>) -> Result<()> {
        self.capacity = parse_capacity(Ok(arguments.next_arg()?))?;
        Ok(())
    }

    fn parse_insert_option(&mut self, name: &Text, arguments: &mut Arguments<'_>) -> Result<bool> {
        if name.is("CAPACITY") {
            self.capacity = parse_capacity(arguments.next_arg())?;
            return Ok(true);
        }
        Ok(false)
    }

    fn parse_option(&mut self, name: &Text, arguments: &mut Arguments<'_>) -> Result<bool> {
        if name.is("BUCKETSIZE") {
            let slots = parse_number(arguments.next_arg(), "BUCKETSIZE", 1, 255)? as u32;
            // Buckets have 1, 2, 4 or 8 slots; more would only raise the false positive rate.
            self.slots = slots.next_power_of_two().min(8);
        } else if name.is("MAXITERATIONS") {
            self.kicks = parse_number(arguments.next_arg(), "MAXITERATIONS", 1, MAX_KICKS.into())? as u32;
        } else if name.is("EXPANSION") {
            // RedisBloom rounds up too, so that the size of a level is a multiple of the one
            // before.
            let expansion = parse_number(arguments.next_arg(), "EXPANSION", 0, MAX_EXPANSION.into())? as u32;
            self.expansion = if expansion == 0 { 0 } else { expansion.next_power_of_two() };
        } else if name.is("FINGERPRINT") {
            self.bits = parse_number(arguments.next_arg(), "FINGERPRINT", 4, 32)? as u32;
        } else if name.is("SEED") {
            self.secret = next_secret(arguments)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn design(self, _create: bool) -> Result<CuckooDesign> {
        Ok(self)
    }
}

/// `CF.RESERVE key capacity [BUCKETSIZE slots] [MAXITERATIONS kicks] [EXPANSION factor] [FINGERPRINT bits] [SEED secret]`.
pub fn reserve(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::reserve::<CuckooValue>(context, arguments)
}

/// `CF.ADD key item`.
pub fn add(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::add_one(context, arguments, CuckooValue::add_items)
}

/// `CF.ADDNX key item`: adds the item unless it is present.
pub fn add_absent(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::add_one(context, arguments, CuckooValue::add_absent_items)
}

/// Returns one number per item: 1 if it was added, 0 if it was present, -1 if the filter is full.
fn insert_reply(added: Vec<Result<bool>>) -> Reply {
    Reply::Array(added.into_iter().map(|added| Reply::Integer(added.map_or(-1, i64::from))).collect())
}

/// `CF.INSERT key [CAPACITY number] [NOCREATE] [option of CF.RESERVE...] ITEMS item...`.
pub fn insert(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::insert(context, arguments, CuckooValue::add_items).map(insert_reply)
}

/// `CF.INSERTNX`, which has the arguments of `CF.INSERT`: adds the items that are not present.
pub fn insert_absent(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::insert(context, arguments, CuckooValue::add_absent_items).map(insert_reply)
}

/// `CF.EXISTS key item`.
pub fn exists(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::exists::<CuckooValue>(context, arguments)
}

/// `CF.MEXISTS key item...`.
pub fn exists_many(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    family::exists_many::<CuckooValue>(context, arguments)
}

/// `CF.DEL key item`: deletes one occurrence of the item.
pub fn delete(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key, item] = arguments.exactly()?;
    let mut entry = context.write::<Entry<CuckooValue>>(key)?.ok_or_else(|| Failure::new("Not found"))?;
    let removed = entry.ready_mut()?.remove(item.bytes())?;
    if removed {
        context.replicate();
        context.notify(c"cf.del", key);
    }
    Ok(Reply::Bool(removed))
}

/// `CF.COUNT key item`: how often the item may have been added.
pub fn count(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key, item] = arguments.exactly()?;
    Ok(match context.read::<Entry<CuckooValue>>(key)? {
        Some(entry) => entry.ready()?.count(item.bytes()).into(),
        None => Reply::Integer(0),
    })
}

/// `CF.INFO key`.
pub fn info(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key] = arguments.exactly()?;
    let entry = context.existing::<Entry<CuckooValue>>(key)?;
    let (value, facts) = (entry.ready()?, entry.ready()?.facts());
    let fields: [(&'static str, u64); 9] = [
        ("Size", value.memory_bytes() as u64),
        ("Number of buckets", facts.buckets),
        ("Number of filters", facts.levels),
        ("Number of items inserted", facts.items),
        ("Number of items deleted", facts.deleted),
        ("Bucket size", facts.slots.into()),
        ("Expansion rate", facts.expansion.into()),
        ("Max iterations", facts.kicks.into()),
        ("Fingerprint bits", facts.fingerprint_bits.into()),
    ];
    Ok(Reply::Map(fields.into_iter().map(|(name, number)| (name.into(), number.into())).collect()))
}

/// `CF.DEBUG key`: the settings and counts of the filter in one line. `buckets` is the number in a
/// filter of the first level, and `filters` the number of levels, as in RedisBloom: a level has
/// `expansion` times as many buckets as the one before.
pub fn debug(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key] = arguments.exactly()?;
    let entry = context.existing::<Entry<CuckooValue>>(key)?;
    let facts = entry.ready()?.facts();
    let fields = [
        ("bktsize", facts.slots.into()),
        ("buckets", facts.first_buckets),
        ("items", facts.items),
        ("deletes", facts.deleted),
        ("filters", facts.levels),
        ("max_iterations", facts.kicks.into()),
        ("expansion", facts.expansion.into()),
    ];
    let line = fields.map(|(name, number): (&str, u64)| format!("{name}:{number}")).join(" ");
    Ok(Reply::Bytes(line.into_bytes()))
}

/// `CF.COMPACT key`: moves items into older levels and drops the levels that are then empty.
pub fn compact(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key] = arguments.exactly()?;
    let mut entry = context
        .write::<Entry<CuckooValue>>(key)?
        .ok_or_else(|| Failure::new("Cuckoo filter was not found"))?;
    entry.ready_mut()?.compact()?;
    context.replicate();
    context.notify(c"cf.compact", key);
    Ok(Reply::Ok)
}
