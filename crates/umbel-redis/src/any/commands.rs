//! The commands.

use super::{Any, Held, Structure, Type, build, put};
use crate::bloom::Bloom;
use crate::config::{self, next_secret, secret_to_hex};
use crate::cuckoo::CuckooChain;
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
    let hasher = if fast { Hasher::default() } else { Hasher::keyed(secret) };
    let spec = Spec::new(capacity, rate)?.with_hasher(hasher).with_options(options);
    if Held::open(context, key)?.is_some() {
        return Err(Failure::new("item exists"));
    }
    put(context, key, build(kind, &spec)?)?;
    let (capacity, rate, secret) = (capacity.to_string(), format!("{rate:?}"), secret_to_hex(&secret));
    let name = kind.to_string();
    let mut told: Vec<&[u8]> = vec![key.bytes(), name.as_bytes(), capacity.as_bytes(), rate.as_bytes()];
    if kind == Kind::Aging {
        told.extend([b"WINDOW", window.as_bytes(), b"GENERATIONS", generations.as_bytes()]);
    }
    if fast {
        told.push(b"FAST");
    } else {
        told.extend([b"SEED" as &[u8], secret.as_bytes()]);
    }
    context.replicate_as(c"UMBEL.RESERVE", &told);
    context.notify(c"umbel.reserve", key);
    Ok(Reply::Ok)
}

/// A number of keys, or a time: a number and `ms`, `s`, `m`, `h` or `d`.
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

fn texts(items: &[Text]) -> Vec<&[u8]> {
    items.iter().map(Text::bytes).collect()
}

/// `UMBEL.ADD key item...`: of each, whether it was new; in a cuckoo filter an item may be several times.
pub fn add(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, items) = (arguments.next_arg()?, arguments.rest()?);
    // Of which type it is shows when it is opened.
    let mut added = add_items(context, key, None, items);
    if let Err(Failure::WrongType) = added {
        added = family::add_items(context, key, items, None, Bloom::add_items);
    }
    if let Err(Failure::WrongType) = added {
        added = family::add_items(context, key, items, None, CuckooChain::add_items);
    }
    added.map(Reply::from_results)
}

/// `UMBEL.ADDAT key milliseconds item...`: adds to a filter that forgets by time, at a time that is not before the last.
pub fn add_at(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, time) = (arguments.next_arg()?, arguments.next_arg()?);
    let time = time.parse().ok_or_else(|| Failure::new("bad time: it should be milliseconds since 1970"))?;
    match Held::existing(context, key)?.type_of() {
        Type::Any => {}
        _ => return Err(Failure::new("only an aging filter has times")),
    }
    // A filter that was told the end of time would never forget again.
    if time > context.now().millis().saturating_add(MAX_CLOCK_LEAD_MILLIS) && !memory::is_unlimited() {
        return Err(Failure::new("this time is more than a minute after that of the server"));
    }
    add_items(context, key, Some(Timestamp::from_millis(time)), arguments.rest()?).map(Reply::from_results)
}

/// The most that the clock of a client may be ahead of the server's.
const MAX_CLOCK_LEAD_MILLIS: u64 = 60_000;

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
    let time = time.or_else(|| time_to_tell(filter, context.now()));
    if let Some(time) = time {
        tell(filter, time)?;
    }
    let digests = filter.hasher().digest_batch(&texts(items)[..]);
    let mut added: Vec<Result<bool>> = Vec::with_capacity(items.len());
    for tile in digests.chunks(TILE) {
        // One that gets full takes some of a tile, and nobody knows which.
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
        // Replicas have clocks of their own: they are told the time of this one.
        Some(time) => {
            let time = time.millis().to_string();
            let mut told = vec![key.bytes(), time.as_bytes()];
            told.extend(texts(items));
            context.replicate_as(c"UMBEL.ADDAT", &told);
        }
        None => context.replicate(),
    }
    context.notify(c"umbel.add", key);
    Ok(added)
}

/// The time that a filter has to be told, if it forgets by it. A clock may be set back; that of a filter stands then.
fn time_to_tell(filter: &AnyFilter, now: Timestamp) -> Option<Timestamp> {
    match filter {
        AnyFilter::Aging(aging) if matches!(aging.window(), Window::Time(_)) => {
            Some(aging.now().map_or(now, |last| last.max(now)))
        }
        _ => None,
    }
}

/// Tells a filter the time; a failure if it has no use for it.
fn tell(filter: &mut AnyFilter, time: Timestamp) -> Result<()> {
    match filter {
        AnyFilter::Aging(aging) => Ok(aging.advance(time)?),
        _ => Err(Failure::new(format!("only an aging filter has times, and this is {}", filter.kind()))),
    }
}

/// `UMBEL.EXISTS key item...`: of each, whether it may be in it. A map has keys too.
pub fn exists(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let Some(held) = Held::open(context, key)? else {
        return Ok(Reply::Array(vec![Reply::Bool(false); items.len()]));
    };
    if let Held::Cuckoo(entry) = &held {
        let filters = entry.ready()?;
        let found = items.iter().map(|item| filters.contains(item.bytes()));
        return Ok(Reply::Array(found.map(Reply::Bool).collect()));
    }
    let keys = texts(items);
    let answers = match held.structure()? {
        Structure::Set(filter) => filter.contains_batch(&keys[..]),
        Structure::Cuckoo(filter) => filter.contains_batch(&keys[..]),
        Structure::Stored(Stored::Set(AnyFilter::Aging(filter))) => {
            filter.at(context.now()).contains_batch(&keys[..])
        }
        Structure::Stored(stored) => stored.contains_batch(&keys[..]),
    };
    Ok(Reply::Array(answers.iter().map(Reply::Bool).collect()))
}

/// `UMBEL.REMOVE key item...`: of each, 1 if it was taken out, 0 if it was not there, -1 if it cannot be taken out.
pub fn remove(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let (key, items) = (arguments.next_arg()?, arguments.rest()?);
    let (kind, held) = {
        let held = Held::existing(context, key)?;
        (held.kind()?, held.type_of())
    };
    if !kind.capabilities().remove {
        return Err(Failure::new(format!("keys cannot be taken out of {} {kind}", kind.article())));
    }
    let mut removed = Vec::with_capacity(items.len());
    match held {
        Type::Cuckoo => {
            let mut entry = context.existing_mut::<Entry<CuckooChain>>(key)?;
            let filters = entry.ready_mut()?;
            for item in items {
                let done =
                    filters.remove(filters.digest(item.bytes())).inspect_err(|_| context.replicate())?;
                removed.push(Reply::Integer(done.into()));
            }
        }
        _ => {
            let mut entry = context.existing_mut::<Entry<Any>>(key)?;
            let filter = entry.ready_mut()?.set()?;
            for item in items {
                // Who takes out what was never in would take something else with it.
                let done = match filter.contains(item.bytes()) {
                    true => filter.remove(item.bytes()).inspect_err(|_| context.replicate())?,
                    false => Removed::NotPresent,
                };
                removed.push(Reply::Integer(match done {
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

/// `UMBEL.GET key item...`: the values of a map, or how often each was recorded.
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

/// An estimate and its standard deviation; nothing if the filter is so full that nothing can be said.
pub fn estimated(estimate: Option<Estimate>) -> [Reply; 2] {
    match estimate {
        Some(estimate) => [Reply::Double(estimate.value), Reply::Double(estimate.standard_error)],
        None => [Reply::Null, Reply::Null],
    }
}

/// `UMBEL.INFO key`: what it is, how full it is, how many keys it seems to have, and its rate now and as promised.
pub fn info(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    arguments.expect_end()?;
    let held = Held::existing(context, key)?;
    let (stats, hash) = (held.stats(context)?, held.hash()?);
    let number = |number: Option<u64>| number.map_or(Reply::Null, Reply::from);
    let [keys, deviation] = estimated(stats.estimate.estimate());
    let fill = stats.used_cells as f64 / (stats.cells as f64).max(1.0);
    // The names are those of `umbel info --json`.
    let mut facts = vec![
        ("kind", Reply::Bytes(stats.kind.to_string().into_bytes())),
        ("hash", hash.map_or(Reply::Null, |id| Reply::Bytes(id.to_string().into_bytes()))),
        ("capacity", number(stats.capacity)),
        ("count", number(stats.inserted)),
        ("estimated_count", keys),
        ("estimated_count_error", deviation),
        ("bytes", stats.bytes.into()),
        ("bits", stats.bits.into()),
        ("fill", Reply::Double(fill)),
        ("fpr_now", Reply::Double(stats.rate_now)),
        ("fpr_target", stats.rate_target.map_or(Reply::Null, Reply::Double)),
    ];
    let whole = |number: f64| number.fract() == 0.0 && number.abs() < 1e15;
    facts.extend(stats.details.iter().map(|(name, number)| {
        let value = if whole(*number) { Reply::Integer(*number as i64) } else { Reply::Double(*number) };
        (*name, value)
    }));
    Ok(Reply::Map(facts.into_iter().map(|(name, value)| (name.into(), value)).collect()))
}
