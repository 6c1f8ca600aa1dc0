//! The commands that `BF.*` and `CF.*` share: reserve, add, insert and lookup.
//!
//! A [`Family`] contributes its options, its replicated form and its operations on items. The
//! commands themselves, with creation, replication and events, are here once.

use crate::persist::{Entry, Layout, Persist};
use crate::server::{AddCommand, Arguments, Context, Failure, Reply, Result, Text, memory};
use std::ffi::CStr;
use umbel::foreign::Dump;

/// A type of filters that `RESERVE` creates and that items are added to.
pub trait Family: Persist {
    /// The options of `RESERVE` and `INSERT` as they are parsed.
    type Options: Options<Design = Self::Design>;

    /// The settings of a filter.
    type Design: Default;

    /// The command that creates a filter.
    const RESERVE: &'static CStr;

    /// The command that is replicated if only some items of a command were added.
    const ADD: AddCommand;

    /// The event after a filter was created.
    const RESERVE_EVENT: &'static CStr;

    /// The event after items were added.
    const ADD_EVENT: &'static CStr;

    /// Creates an empty filter.
    fn new(design: &Self::Design) -> Result<Self>;

    /// Returns the arguments of `RESERVE` behind the key that create an equal filter on a server
    /// with other defaults.
    fn reserve_arguments(design: &Self::Design) -> Vec<String>;

    /// Returns whether the filter may contain an item.
    fn contains(&self, item: &[u8]) -> bool;

    /// Returns which of several items the filter may contain.
    fn contains_many(&self, items: &[&[u8]]) -> Vec<bool>;
}

/// A filter of RedisBloom, which commands do not create: it is loaded.
pub trait Lookup: Dump + Send + 'static {
    /// Returns whether the filter may contain an item.
    fn contains(&self, item: &[u8]) -> bool;

    /// Returns which of several items the filter may contain.
    fn contains_many(&self, items: &[&[u8]]) -> Vec<bool> {
        items.iter().map(|item| self.contains(item)).collect()
    }
}

impl<F: Family, R: Lookup> Family for Layout<F, R> {
    type Options = F::Options;
    type Design = F::Design;

    const RESERVE: &'static CStr = F::RESERVE;
    const ADD: AddCommand = F::ADD;
    const RESERVE_EVENT: &'static CStr = F::RESERVE_EVENT;
    const ADD_EVENT: &'static CStr = F::ADD_EVENT;

    fn new(design: &F::Design) -> Result<Self> {
        F::new(design).map(Layout::Own)
    }

    fn reserve_arguments(design: &F::Design) -> Vec<String> {
        F::reserve_arguments(design)
    }

    fn contains(&self, item: &[u8]) -> bool {
        match self {
            Layout::Own(own) => own.contains(item),
            Layout::RedisBloom(filter) => filter.contains(item),
        }
    }

    fn contains_many(&self, items: &[&[u8]]) -> Vec<bool> {
        match self {
            Layout::Own(own) => own.contains_many(items),
            Layout::RedisBloom(filter) => filter.contains_many(items),
        }
    }
}

/// The options of `RESERVE` and `INSERT`.
pub trait Options: Default {
    /// The settings that the options describe.
    type Design;

    /// Parses the arguments of `RESERVE` that have a fixed position.
    fn parse_positional(&mut self, arguments: &mut Arguments<'_>) -> Result<()>;

    /// Parses an option that only `INSERT` has, with its value. Returns whether the name is known.
    fn parse_insert_option(&mut self, name: &Text, arguments: &mut Arguments<'_>) -> Result<bool>;

    /// Parses an option that both commands have, with its value. Returns whether the name is known.
    fn parse_option(&mut self, name: &Text, arguments: &mut Arguments<'_>) -> Result<bool>;

    /// Checks the options against each other and returns the settings; `create` is false with
    /// `NOCREATE`.
    fn design(self, create: bool) -> Result<Self::Design>;
}

fn unknown_argument() -> Failure {
    Failure::new("Unknown argument received")
}

/// `RESERVE key ...`: creates an empty filter.
pub fn reserve<F: Family>(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let mut options = F::Options::default();
    options.parse_positional(&mut arguments)?;
    while let Some(name) = arguments.next() {
        if !options.parse_option(name, &mut arguments)? {
            return Err(unknown_argument());
        }
    }
    let design = options.design(true)?;
    if context.read::<Entry<F>>(key)?.is_some() {
        return Err(Failure::new("item exists"));
    }
    create::<F>(context, key, &design)?;
    Ok(Reply::Ok)
}

/// Creates a filter here and on replicas. Replicas have other default secrets, so the replicated
/// command contains this one.
fn create<F: Family>(context: &Context, key: &Text, design: &F::Design) -> Result<()> {
    context.set(key, Entry::Ready(F::new(design)?))?;
    let settings = F::reserve_arguments(design);
    let mut arguments = vec![key.bytes()];
    arguments.extend(settings.iter().map(String::as_bytes));
    context.replicate_as(F::RESERVE, &arguments);
    context.notify(F::RESERVE_EVENT, key);
    Ok(())
}

/// Adds items with `add` to a filter. Creates the filter with `design` if it does not exist.
///
/// # Errors
///
/// If there is neither a filter nor a design. Errors of single items are elements of the result.
pub fn add_items<F: Family>(
    context: &Context,
    key: &Text,
    items: &[Text],
    design: Option<&F::Design>,
    add: impl FnOnce(&mut F, &[Text]) -> Vec<Result<bool>>,
) -> Result<Vec<Result<bool>>> {
    let mut entry = match context.write::<Entry<F>>(key)? {
        Some(entry) => entry,
        // The command that created it came before, and has failed.
        None if memory::is_unlimited() => return Err(Failure::new("not found")),
        None => {
            create::<F>(context, key, design.ok_or_else(|| Failure::new("not found"))?)?;
            context.existing_mut(key)?
        }
    };
    let added = add(entry.ready_mut()?, items);
    if added.contains(&Ok(true)) {
        context.replicate_added(F::ADD, key, items, &added);
        context.notify(F::ADD_EVENT, key);
    }
    Ok(added)
}

/// `ADD key item`: adds an item to a filter, which is created if it does not exist.
pub fn add_one<F: Family>(
    context: &Context,
    mut arguments: Arguments<'_>,
    add: impl FnOnce(&mut F, &[Text]) -> Vec<Result<bool>>,
) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let item = arguments.rest()?;
    if item.len() > 1 {
        return Err(Failure::Arity);
    }
    let added = add_items(context, key, item, Some(&F::Design::default()), add)?.pop();
    added.ok_or(Failure::Arity)?.map(Reply::Bool)
}

/// `INSERT key [NOCREATE] [option...] ITEMS item...`: adds items to a filter, which is created with
/// the options.
pub fn insert<F: Family>(
    context: &Context,
    mut arguments: Arguments<'_>,
    add: impl FnOnce(&mut F, &[Text]) -> Vec<Result<bool>>,
) -> Result<Vec<Result<bool>>> {
    let key = arguments.next_arg()?;
    let (mut options, mut create) = (F::Options::default(), true);
    loop {
        // The arguments must not end before `ITEMS`.
        let name = arguments.next_arg()?;
        if name.is("ITEMS") {
            break;
        } else if name.is("NOCREATE") {
            create = false;
        } else if !options.parse_insert_option(name, &mut arguments)?
            && !options.parse_option(name, &mut arguments)?
        {
            return Err(unknown_argument());
        }
    }
    let design = options.design(create)?;
    add_items(context, key, arguments.rest()?, create.then_some(&design), add)
}

/// `EXISTS key item`: whether a filter may contain an item. A key that does not exist contains
/// nothing.
pub fn exists<F: Family>(context: &Context, arguments: Arguments<'_>) -> Result<Reply> {
    let [key, item] = arguments.exactly()?;
    Ok(Reply::Bool(match context.read::<Entry<F>>(key)? {
        Some(entry) => entry.ready()?.contains(item.bytes()),
        None => false,
    }))
}

/// `MEXISTS key item...`: which items a filter may contain.
pub fn exists_many<F: Family>(context: &Context, mut arguments: Arguments<'_>) -> Result<Reply> {
    let key = arguments.next_arg()?;
    let items = arguments.rest()?;
    let Some(entry) = context.read::<Entry<F>>(key)? else {
        return Ok(Reply::Array(vec![Reply::Bool(false); items.len()]));
    };
    let items: Vec<&[u8]> = items.iter().map(Text::bytes).collect();
    let found = entry.ready()?.contains_many(&items);
    Ok(Reply::Array(found.into_iter().map(Reply::Bool).collect()))
}
