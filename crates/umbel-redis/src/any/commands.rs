//! The commands on one filter.

use super::{Any, OpenFilter, ValueType, build, store};
use crate::bloom::BloomValue;
use crate::config::{self, next_secret, seed_argument};
use crate::cuckoo::CuckooValue;
use crate::family::{self, Family};
use crate::persist::{Entry, Persist};
use crate::server::{Arguments, Context, Failure, Reply, Result, Text, memory};
use std::time::Duration;
use umbel::aging::{self, Timestamp, Window};
use umbel::any::Stored;
use umbel::internals::TILE;
use umbel::sizing::Estimate;
use umbel::spec::KindOptions;
use umbel::{AnyFilter, Hasher, Kind, Removed, Spec};

/// `UMBEL.RESERVE key kind capacity rate [WINDOW keys | time] [GENERATIONS number] [FAST | SEED secret]`.
pub fn reserve(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let kind = arguments.next_arg()?.bytes().to_ascii_lowercase();
    let kind: Kind = String::from_utf8_lossy(&kind).parse()?;
    let capacity = arguments.next_arg()?.parse::<u64>().ok_or_else(|| Failure::new("bad capacity"))?;
    let rate = arguments.next_arg()?.parse::<f64>().ok_or_else(|| Failure::new("bad error rate"))?;
    let (mut options, mut secret, mut fast) = (KindOptions::default(), config::secret(), false);
    while let Some(option) = arguments.next() {
        if option.is("WINDOW") {
            options.aging.window = Some(parse_window(arguments.next_arg()?)?);
        } else if option.is("GENERATIONS") {
            let number =
                arguments.next_arg()?.parse::<u32>().ok_or_else(|| Failure::new("bad generations"))?;
            options.aging.generations = number;
        } else if option.is("FAST") {
            fast = true;
        } else if option.is("SEED") {
            secret = next_secret(&mut arguments)?;
        } else {
            return Err(Failure::new("Unknown argument received"));
        }
    }
    let KindOptions { aging, .. } = &options;
    if kind != Kind::Aging && *aging != aging::Options::default() {
        return Err(Failure::new(format!(
            "WINDOW and GENERATIONS are for aging filters, and this is {kind}"
        )));
    }
    let window = match aging.window {
        Some(Window::Time(time)) => format!("{}ms", time.as_millis()),
        Some(Window::Keys(keys)) => keys.to_string(),
        _ => capacity.to_string(),
    };
    let generations = aging.generations.to_string();
    let hasher = if fast { Hasher::default() } else { Hasher::keyed(secret.0) };
    let spec = Spec::new(capacity, rate)?.with_hasher(hasher).with_options(options);
    if OpenFilter::open(context, key)?.is_some() {
        return Err(Failure::new("item exists"));
    }
    store(context, key, build(kind, &spec)?)?;
    let (capacity, rate, secret) = (capacity.to_string(), format!("{rate:?}"), seed_argument(&secret));
    let name = kind.to_string();
    let mut replicated: Vec<&[u8]> = vec![key.bytes(), name.as_bytes(), capacity.as_bytes(), rate.as_bytes()];
    if kind == Kind::Aging {
        replicated.extend([b"WINDOW", window.as_bytes(), b"GENERATIONS", generations.as_bytes()]);
    }
    if fast {
        replicated.push(b"FAST");
    } else {
        replicated.extend([b"SEED" as &[u8], secret.as_bytes()]);
    }
    context.replicate_as(c"UMBEL.RESERVE", &replicated);
    context.notify(c"umbel.reserve", key);
    Ok(Reply::Ok)
}

/// Parses a number of keys, or a time with the unit `ms`, `s`, `m`, `h` or `d`.
fn parse_window(text: &Text) -> Result<Window> {
    let bad =
        || Failure::new("bad window: it should be a number of keys, or a time as 500ms, 30s, 10m, 2h or 7d");
    let (number, unit) = config::parse_number_and_unit(text.bytes()).ok_or_else(bad)?;
    let millis: u64 = match unit.as_str() {
        "" => return Ok(Window::Keys(number)),
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(bad()),
    };
    Ok(Window::Time(Duration::from_millis(number.checked_mul(millis).ok_or_else(bad)?)))
}

/// Returns the bytes of several arguments.
fn all_bytes(items: &[Text]) -> Vec<&[u8]> {
    items.iter().map(Text::bytes).collect()
}

/// `UMBEL.ADD key item...`: adds items and replies whether each was new. A cuckoo filter adds an
/// item again.
pub fn add(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, items) = (arguments.next_arg()?, arguments.rest()?);
    // The type of the filter shows when its key is opened.
    let mut added = add_items(context, key, None, items);
    if let Err(Failure::WrongType) = added {
        added = family::add_items(context, key, items, None, BloomValue::add_items);
    }
    if let Err(Failure::WrongType) = added {
        added = family::add_items(context, key, items, None, CuckooValue::add_items);
    }
    added.map(Reply::from_results)
}

/// `UMBEL.ADDAT key milliseconds item...`: adds items to an aging filter at a time that is not
/// before its latest one.
pub fn add_at(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, time) = (arguments.next_arg()?, arguments.next_arg()?);
    let time = time.parse().ok_or_else(|| Failure::new("bad time: it should be milliseconds since 1970"))?;
    match OpenFilter::existing(context, key)?.value_type() {
        ValueType::Any => {}
        _ => return Err(Failure::new("only an aging filter has times")),
    }
    // A time far in the future would stop the clock of the filter: it would never forget again.
    if time > context.now().millis().saturating_add(MAX_CLOCK_LEAD_MILLIS) && !memory::is_unlimited() {
        return Err(Failure::new("this time is more than a minute after that of the server"));
    }
    add_items(context, key, Some(Timestamp::from_millis(time)), arguments.rest()?).map(Reply::from_results)
}

/// The largest lead of a client's clock over the server's.
const MAX_CLOCK_LEAD_MILLIS: u64 = 60_000;

/// Adds items to a filter of type [`Any`]. A filter with a time window first advances to `time`, or
/// to the time of the server.
fn add_items(
    context: &Context,
    key: &Text,
    time: Option<Timestamp>,
    items: &[Text],
) -> Result<Vec<Result<bool>>> {
    let mut entry = context.existing_mut::<Entry<Any>>(key)?;
    let any = entry.ready_mut()?;
    let _budget = config::budget(any.memory_bytes());
    let filter = any.set()?;
    let time = time.or_else(|| insertion_time(filter, context.now()));
    if let Some(time) = time {
        advance_clock(filter, time)?;
    }
    let digests = filter.hasher().digest_batch(&all_bytes(items)[..]);
    let mut added: Vec<Result<bool>> = Vec::with_capacity(items.len());
    for tile in digests.chunks(TILE) {
        // A quotient filter may get full within a tile, and a failed tile does not show which items
        // were added.
        if filter.kind() == Kind::Quotient {
            added.extend(tile.iter().map(|digest| filter.insert_digest(*digest).map_err(Failure::from)));
            continue;
        }
        match filter.insert_tile_new(tile) {
            Ok(new) => added.extend((0..tile.len()).map(|i| Ok(new >> i & 1 > 0))),
            Err(error) => added.extend(vec![Err(Failure::from(error)); tile.len()]),
        }
    }
    match time {
        // Replicas have other clocks, so they get the time of this one.
        Some(time) => {
            let time = time.millis().to_string();
            let mut arguments = vec![key.bytes(), time.as_bytes()];
            arguments.extend(all_bytes(items));
            context.replicate_as(c"UMBEL.ADDAT", &arguments);
        }
        None => context.replicate(),
    }
    context.notify(c"umbel.add", key);
    Ok(added)
}

/// Returns the time of an insertion, for an aging filter with a time window. The clock of a filter
/// never goes back.
fn insertion_time(filter: &AnyFilter, now: Timestamp) -> Option<Timestamp> {
    match filter {
        AnyFilter::Aging(aging) if matches!(aging.window(), Window::Time(_)) => {
            Some(aging.now().map_or(now, |last| last.max(now)))
        }
        _ => None,
    }
}

/// Advances the clock of an aging filter.
///
/// # Errors
///
/// If the filter has no clock, or its clock is ahead.
fn advance_clock(filter: &mut AnyFilter, time: Timestamp) -> Result<()> {
    match filter {
        AnyFilter::Aging(aging) => Ok(aging.advance(time)?),
        _ => Err(Failure::new(format!("only an aging filter has times, and this is {}", filter.kind()))),
    }
}

/// `UMBEL.EXISTS key item...`: which items a filter may contain, or which keys a map.
pub fn exists(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let Some(filter) = OpenFilter::open(context, key)? else {
        return Ok(Reply::Array(vec![Reply::Bool(false); items.len()]));
    };
    let keys = all_bytes(items);
    let found: Vec<bool> = match &filter {
        OpenFilter::Bloom(entry) => entry.ready()?.contains_many(&keys),
        OpenFilter::Cuckoo(entry) => entry.ready()?.contains_many(&keys),
        OpenFilter::Any(entry) => match entry.ready()?.stored() {
            Stored::Set(AnyFilter::Aging(filter)) => {
                filter.at(context.now()).contains_batch(&keys[..]).iter().collect()
            }
            stored => stored.contains_batch(&keys[..]).iter().collect(),
        },
    };
    Ok(Reply::Array(found.into_iter().map(Reply::Bool).collect()))
}

/// `UMBEL.REMOVE key item...`: for each item, 1 if it was removed, 0 if it was not present, -1 if
/// it cannot be removed.
pub fn remove(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, items) = (arguments.next_arg()?, arguments.rest()?);
    let (kind, value_type) = {
        let filter = OpenFilter::existing(context, key)?;
        (filter.kind()?, filter.value_type())
    };
    if !kind.capabilities().remove {
        return Err(Failure::new(format!("keys cannot be removed from {} {kind}", kind.article())));
    }
    let mut removed = Vec::with_capacity(items.len());
    match value_type {
        ValueType::Cuckoo => {
            let mut entry = context.existing_mut::<Entry<CuckooValue>>(key)?;
            let value = entry.ready_mut()?;
            for item in items {
                let result = value.remove(item.bytes()).inspect_err(|_| context.replicate())?;
                removed.push(Reply::Integer(result.into()));
            }
        }
        _ => {
            let mut entry = context.existing_mut::<Entry<Any>>(key)?;
            let filter = entry.ready_mut()?.set()?;
            for item in items {
                // Removing an absent item would damage others.
                let result = match filter.contains(item.bytes()) {
                    true => filter.remove(item.bytes()).inspect_err(|_| context.replicate())?,
                    false => Removed::NotPresent,
                };
                removed.push(Reply::Integer(match result {
                    Removed::Removed => 1,
                    Removed::NotPresent => 0,
                    Removed::NotDeletable => -1,
                }));
            }
        }
    }
    context.replicate();
    context.notify(c"umbel.remove", key);
    Ok(Reply::Array(removed))
}

/// `UMBEL.GET key item...`: the values of a map, or the counts of a multiset.
pub fn get(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let entry = context.existing::<Entry<Any>>(key)?;
    let value = |item: &Text| match entry.ready()?.stored() {
        Stored::Map(map) => Ok(map.get(item.bytes()).map_or(Reply::Null, Reply::from)),
        Stored::Count(counts) => Ok(Reply::Double(umbel::Count::count(counts, item.bytes()).value)),
        other => Err(Failure::new(format!("{} {} has no values", other.kind().article(), other.kind()))),
    };
    items.iter().map(value).collect::<Result<Vec<Reply>>>().map(Reply::Array)
}

/// Returns an estimate and its standard error, or nulls if the filter is too full for an estimate.
pub fn estimate_replies(estimate: Option<Estimate>) -> [Reply; 2] {
    match estimate {
        Some(estimate) => [Reply::Double(estimate.value), Reply::Double(estimate.standard_error)],
        None => [Reply::Null, Reply::Null],
    }
}

/// `UMBEL.INFO key`: the kind of a filter, its fill, its estimated number of items, and its rates
/// now and as designed.
pub fn info(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key] = arguments.exactly()?;
    let filter = OpenFilter::existing(context, key)?;
    let (stats, hash) = (filter.stats(context)?, filter.hash()?);
    let number = |number: Option<u64>| number.map_or(Reply::Null, Reply::from);
    let [count, standard_error] = estimate_replies(stats.estimate.estimate());
    let fill = stats.used_cells as f64 / (stats.cells as f64).max(1.0);
    // The names are those of `umbel info --json`.
    let mut fields = vec![
        ("kind", Reply::Bytes(stats.kind.to_string().into_bytes())),
        ("hash", hash.map_or(Reply::Null, |id| Reply::Bytes(id.to_string().into_bytes()))),
        ("capacity", number(stats.capacity)),
        ("count", number(stats.inserted)),
        ("estimated_count", count),
        ("estimated_count_error", standard_error),
        ("bytes", stats.bytes.into()),
        ("bits", stats.bits.into()),
        ("fill", Reply::Double(fill)),
        ("fpr_now", Reply::Double(stats.rate_now)),
        ("fpr_target", stats.rate_target.map_or(Reply::Null, Reply::Double)),
    ];
    let is_whole = |number: f64| number.fract() == 0.0 && number.abs() < 1e15;
    fields.extend(stats.details.iter().map(|(name, number)| {
        let value = if is_whole(*number) { Reply::Integer(*number as i64) } else { Reply::Double(*number) };
        (*name, value)
    }));
    Ok(Reply::Map(fields.into_iter().map(|(name, value)| (name.into(), value)).collect()))
}
