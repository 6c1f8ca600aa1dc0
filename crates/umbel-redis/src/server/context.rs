//! A running command: its arguments, and the keys they name.

use super::command::{Handler, counted_key_positions};
use super::memory::Unlimited;
use super::raw::{self, Ctx, KeyHandle};
use super::reply::{Failure, Result};
use super::value::{Value, from_server, into_server, type_of};
use std::cell::Cell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use umbel::aging::Timestamp;

/// An argument: a string of the server, valid while the command runs.
#[repr(transparent)]
pub struct Text(*mut raw::Text);

impl Text {
    /// Returns the bytes of the argument.
    pub fn bytes(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: the string outlives the command, and references to a `Text` do not.
        unsafe {
            let start = (raw::api().string_ptr_len)(self.0, &mut len);
            std::slice::from_raw_parts(start.cast(), len)
        }
    }

    /// Returns whether the argument is this word, ignoring case.
    pub fn is(&self, word: &str) -> bool {
        self.bytes().eq_ignore_ascii_case(word.as_bytes())
    }

    /// Parses the argument.
    pub fn parse<T: std::str::FromStr>(&self) -> Option<T> {
        str::from_utf8(self.bytes()).ok()?.parse().ok()
    }
}

/// The arguments of a command that are not parsed yet, without the name of the command.
#[derive(Clone, Copy)]
pub struct Arguments<'a>(&'a [Text]);

impl<'a> Arguments<'a> {
    /// Returns the next argument.
    ///
    /// # Errors
    ///
    /// [`Failure::Arity`] if no argument is left.
    pub fn next_arg(&mut self) -> Result<&'a Text> {
        let (first, rest) = self.0.split_first().ok_or(Failure::Arity)?;
        self.0 = rest;
        Ok(first)
    }

    /// Returns the next argument, if one is left.
    pub fn next(&mut self) -> Option<&'a Text> {
        self.next_arg().ok()
    }

    /// Returns all arguments that are left.
    ///
    /// # Errors
    ///
    /// [`Failure::Arity`] if no argument is left.
    pub fn rest(self) -> Result<&'a [Text]> {
        if self.0.is_empty() { Err(Failure::Arity) } else { Ok(self.0) }
    }

    /// Returns exactly this many arguments.
    ///
    /// # Errors
    ///
    /// [`Failure::Arity`] if fewer or more are left.
    pub fn exactly<const N: usize>(self) -> Result<&'a [Text; N]> {
        self.0.try_into().map_err(|_| Failure::Arity)
    }

    /// Checks that no argument is left.
    ///
    /// # Errors
    ///
    /// [`Failure::Arity`] if one is.
    pub fn expect_end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Failure::Arity) }
    }
}

/// A command that adds items to a filter.
#[derive(Clone, Copy)]
pub struct AddCommand {
    pub name: &'static CStr,
    /// The arguments between the key and the items.
    pub options: &'static [&'static [u8]],
}

/// A running command: opens keys, replicates and publishes events.
pub struct Context {
    ctx: *mut Ctx,
    loans: Cell<[Option<Loan>; MAX_LOANS]>,
}

/// A borrowed value, and whether it is borrowed mutably.
type Loan = (NonNull<c_void>, bool);

/// The largest number of values that a command borrows at once.
const MAX_LOANS: usize = 4;

impl Context {
    /// Returns the value of a key, if the key exists.
    ///
    /// # Errors
    ///
    /// [`Failure::WrongType`] if the key holds another type.
    pub fn read<V: Value>(&self, name: &Text) -> Result<Option<Key<'_, V>>> {
        self.open(name, raw::READ)
    }

    /// Returns the value of a key, to be changed; see [`Context::read`].
    pub fn write<V: Value>(&self, name: &Text) -> Result<Option<KeyMut<'_, V>>> {
        Ok(self.open(name, raw::READ | raw::WRITE)?.map(KeyMut))
    }

    /// Returns the value of a key that must exist; see [`Context::read`].
    pub fn existing<V: Value>(&self, name: &Text) -> Result<Key<'_, V>> {
        self.read(name)?.ok_or_else(|| Failure::new("not found"))
    }

    /// Returns the value of a key that must exist, to be changed; see [`Context::read`].
    pub fn existing_mut<V: Value>(&self, name: &Text) -> Result<KeyMut<'_, V>> {
        self.write(name)?.ok_or_else(|| Failure::new("not found"))
    }

    /// Returns whether the command comes from a primary or an append-only file, and must succeed
    /// whatever the limits are.
    fn is_replayed(&self) -> bool {
        // SAFETY: the command runs.
        let flags = unsafe { (raw::api().get_context_flags)(self.ctx) };
        flags & (raw::CTX_REPLICATED | raw::CTX_LOADING) != 0
    }

    /// Ends a server that loads an append-only file with values that it has no secret for. It would
    /// ignore the failure, and the next rewrite of the file would lose the values.
    fn abandon_loading(&self, failure: &Failure) {
        let api = raw::api();
        // SAFETY: the command runs.
        if unsafe { (api.get_context_flags)(self.ctx) } & raw::CTX_LOADING == 0 {
            return;
        }
        let line = CString::new(format!("umbel: the append-only file cannot be loaded: {failure}"));
        let line = line.unwrap_or_default();
        // SAFETY: the command runs, and the format matches the argument. The process ends as a
        // server does that cannot read its file, without exit handlers.
        unsafe {
            (api.log)(self.ctx, c"warning".as_ptr(), c"%s".as_ptr(), line.as_ptr());
            libc::_exit(1);
        }
    }

    /// Stores a value under a key and frees the previous one.
    pub fn set<V: Value>(&self, name: &Text, value: V) -> Result<()> {
        let api = raw::api();
        let handle = Handle::open(self, name, raw::READ | raw::WRITE);
        // SAFETY: the handle is open; the value is null unless the key holds a type of a module.
        if let Some(old) = NonNull::new(unsafe { (api.module_type_get_value)(handle.0) }) {
            // The server frees it, so it must not be borrowed.
            drop(self.borrow(old, true)?);
        }
        let value = into_server(value);
        // SAFETY: the key is open for writing, and the value is of this type.
        let set = unsafe { (api.module_type_set_value)(handle.0, type_of::<V>(), value) };
        if set != raw::OK {
            // SAFETY: the server has not stored it.
            drop(unsafe { from_server::<V>(value) });
            return Err(Failure::new("the server refused the value"));
        }
        Ok(())
    }

    /// Opens a key and borrows its value.
    fn open<V: Value>(&self, name: &Text, mode: c_int) -> Result<Option<Key<'_, V>>> {
        let api = raw::api();
        let handle = Handle::open(self, name, mode);
        // SAFETY: the handle is open.
        let (kind, value_type) = unsafe { ((api.key_type)(handle.0), (api.module_type_get_type)(handle.0)) };
        match kind {
            raw::KEY_EMPTY => Ok(None),
            raw::KEY_MODULE if value_type == type_of::<V>() => {
                // SAFETY: the handle is open.
                let value = NonNull::new(unsafe { (api.module_type_get_value)(handle.0) });
                let value = value.ok_or(Failure::WrongType)?;
                let loan = self.borrow(value, mode & raw::WRITE != 0)?;
                Ok(Some(Key { value: value.cast(), _loan: loan, _handle: handle }))
            }
            _ => Err(Failure::WrongType),
        }
    }

    /// Borrows a value: any number of times to read it, or once to change it.
    fn borrow(&self, value: NonNull<c_void>, mutably: bool) -> Result<LoanGuard<'_>> {
        let mut loans = self.loans.get();
        let conflicts = |(other, other_mutably): &Loan| *other == value && (mutably || *other_mutably);
        let is_free = !loans.iter().flatten().any(conflicts);
        let index = loans.iter().position(Option::is_none).filter(|_| is_free);
        let index =
            index.ok_or_else(|| Failure::new("this is a mistake in the module: a value is used twice"))?;
        loans[index] = Some((value, mutably));
        self.loans.set(loans);
        Ok(LoanGuard { context: self, index })
    }

    /// Returns the time of the server.
    pub fn now(&self) -> Timestamp {
        // SAFETY: the function has no preconditions.
        let millis = unsafe { (raw::api().milliseconds)() };
        Timestamp::from_millis(millis.try_into().unwrap_or_default())
    }

    /// Sends the command as it is to replicas and the append-only file.
    pub fn replicate(&self) {
        // SAFETY: the command runs.
        unsafe { (raw::api().replicate_verbatim)(self.ctx) };
    }

    /// Sends another command to replicas and the append-only file.
    pub fn replicate_as(&self, command: &CStr, arguments: &[&[u8]]) {
        let api = raw::api();
        // SAFETY: the command runs; the strings are valid until they are freed, and the format is
        // that of a list of strings.
        unsafe {
            let text = |bytes: &&[u8]| (api.create_string)(self.ctx, bytes.as_ptr().cast(), bytes.len());
            let mut texts: Vec<*mut raw::Text> = arguments.iter().map(text).collect();
            (api.replicate)(self.ctx, command.as_ptr(), c"v".as_ptr(), texts.as_mut_ptr(), texts.len());
            texts.into_iter().for_each(|text| (api.free_string)(self.ctx, text));
        }
    }

    /// Sends the added items to replicas and the append-only file. Replicas have no limits, so if
    /// items were refused here, the replicated command omits them.
    pub fn replicate_added(&self, command: AddCommand, key: &Text, items: &[Text], added: &[Result<bool>]) {
        if added.iter().all(Result::is_ok) {
            return self.replicate();
        }
        let added = items.iter().zip(added).filter(|(_, added)| **added == Ok(true));
        let mut arguments = vec![key.bytes()];
        arguments.extend(command.options);
        arguments.extend(added.map(|(item, _)| item.bytes()));
        self.replicate_as(command.name, &arguments);
    }

    /// Publishes a keyspace event.
    pub fn notify(&self, event: &CStr, key: &Text) {
        // SAFETY: the command runs, and the key is one of its arguments.
        unsafe {
            (raw::api().notify_keyspace_event)(
                self.ctx,
                raw::NOTIFY_MODULE | raw::NOTIFY_GENERIC,
                event.as_ptr(),
                key.0,
            )
        };
    }
}

/// An open key, which is closed when this is dropped.
struct Handle(*mut KeyHandle);

impl Handle {
    fn open(context: &Context, name: &Text, mode: c_int) -> Handle {
        // SAFETY: the command runs, and the name is one of its arguments.
        Handle(unsafe { (raw::api().open_key)(context.ctx, name.0, mode) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the key is open, and is closed only here.
            unsafe { (raw::api().close_key)(self.0) };
        }
    }
}

/// A borrowed value, which is returned when this is dropped.
struct LoanGuard<'a> {
    context: &'a Context,
    /// The index in `Context::loans`.
    index: usize,
}

impl Drop for LoanGuard<'_> {
    fn drop(&mut self) {
        let mut loans = self.context.loans.get();
        loans[self.index] = None;
        self.context.loans.set(loans);
    }
}

/// The value of an open key.
pub struct Key<'a, V> {
    value: NonNull<V>,
    _loan: LoanGuard<'a>,
    _handle: Handle,
}

/// The value of an open key, to be changed.
pub struct KeyMut<'a, V>(Key<'a, V>);

impl<V> Deref for Key<'_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        // SAFETY: the value has this type, and is borrowed: it is not changed meanwhile.
        unsafe { self.value.as_ref() }
    }
}

impl<V> Deref for KeyMut<'_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

impl<V> DerefMut for KeyMut<'_, V> {
    fn deref_mut(&mut self) -> &mut V {
        // SAFETY: as above, and there is no other loan.
        unsafe { self.0.value.as_mut() }
    }
}

/// Runs a command and sends its reply.
///
/// # Safety
///
/// Only the server may call it, with the arguments of a command.
pub unsafe fn call<H: Handler>(ctx: *mut Ctx, argv: *mut *mut raw::Text, argc: c_int) -> c_int {
    // SAFETY: the server passes `argc` strings, and a `Text` is the address of one.
    let arguments = unsafe { std::slice::from_raw_parts(argv.cast::<Text>(), argc as usize) };
    let context = Context { ctx, loans: Cell::default() };
    let arguments = Arguments(arguments.get(1..).unwrap_or_default());
    // SAFETY: the context is that of a command.
    if unsafe { (raw::api().is_keys_position_request)(ctx) } != 0 {
        for position in
            catch_unwind(AssertUnwindSafe(|| counted_key_positions(arguments))).unwrap_or_default()
        {
            // SAFETY: as above.
            unsafe { (raw::api().key_at_pos)(ctx, position as c_int) };
        }
        return raw::OK;
    }
    let _unlimited = Unlimited::when(context.is_replayed());
    let result = catch_unwind(AssertUnwindSafe(|| H::run(&context, arguments)));
    let result =
        result.unwrap_or_else(|_| Err(Failure::new("this is a mistake in the module: please report it")));
    if let Err(failure @ Failure::MissingSecret(_)) = &result {
        context.abandon_loading(failure);
    }
    // SAFETY: the command still runs.
    unsafe {
        match result {
            Ok(reply) => reply.send(ctx),
            Err(failure) => {
                failure.send(ctx);
            }
        }
    }
    raw::OK
}
