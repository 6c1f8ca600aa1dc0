//! A call of a command: its arguments, and the keys they name.

use super::load::Run;
use super::memory::Unlimited;
use super::raw::{self, Ctx, KeyHandle};
use super::reply::{Failure, Result};
use super::value::{Value, hand_over, take_back, type_of};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use umbel::aging::Timestamp;

/// An argument: bytes that belong to the server while the command runs.
#[repr(transparent)]
pub struct Text(*mut raw::Text);

impl Text {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: the server keeps its strings while the command runs, and a `Text` is only lent for as long.
        unsafe {
            let start = (raw::api().string_ptr_len)(self.0, &mut len);
            std::slice::from_raw_parts(start.cast(), len)
        }
    }

    /// Whether it is this word, in capital or small letters.
    pub fn is(&self, word: &str) -> bool {
        self.bytes().eq_ignore_ascii_case(word.as_bytes())
    }

    /// A number or whatever else can be read from text.
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

    /// Checks that no argument is left.
    ///
    /// # Errors
    ///
    /// [`Failure::Arity`] if one is.
    pub fn expect_end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Failure::Arity) }
    }
}

/// A call of a command.
pub struct Context {
    ctx: *mut Ctx,
    lent: Cell<[Option<Loan>; MAX_LOANS]>,
}

/// A value that is lent now, and whether to be changed.
type Loan = (NonNull<c_void>, bool);

/// The most values that a command borrows at once.
const MAX_LOANS: usize = 4;

impl Context {
    /// The value of a key, if there is one.
    pub fn read<V: Value>(&self, name: &Text) -> Result<Option<Key<'_, V>>> {
        self.open(name, raw::READ)
    }

    /// The value of a key, to be changed.
    pub fn write<V: Value>(&self, name: &Text) -> Result<Option<KeyMut<'_, V>>> {
        Ok(self.open(name, raw::READ | raw::WRITE)?.map(KeyMut))
    }

    /// The value of a key that must be there.
    pub fn existing<V: Value>(&self, name: &Text) -> Result<Key<'_, V>> {
        self.read(name)?.ok_or_else(|| Failure::new("not found"))
    }

    /// The value of a key that must be there, to be changed.
    pub fn existing_mut<V: Value>(&self, name: &Text) -> Result<KeyMut<'_, V>> {
        self.write(name)?.ok_or_else(|| Failure::new("not found"))
    }

    /// Whether the command was done elsewhere before, and has to be done here whatever the limits are.
    fn must_obey(&self) -> bool {
        // SAFETY: the command runs.
        let flags = unsafe { (raw::api().get_context_flags)(self.ctx) };
        flags & (raw::CTX_REPLICATED | raw::CTX_LOADING) != 0
    }

    /// Puts a value under a key, in place of what was there.
    pub fn set<V: Value>(&self, name: &Text, value: V) -> Result<()> {
        let api = raw::api();
        let handle = Handle::open(self, name, raw::READ | raw::WRITE);
        // SAFETY: the handle is open; of what is no module's value there is none.
        if let Some(old) = NonNull::new(unsafe { (api.module_type_get_value)(handle.0) }) {
            // It will be freed.
            drop(self.lend(old, true)?);
        }
        let value = hand_over(value);
        // SAFETY: the key is open for writing, and the type's functions expect such a value.
        let set = unsafe { (api.module_type_set_value)(handle.0, type_of::<V>(), value) };
        if set != raw::OK {
            // SAFETY: the server did not take it.
            drop(unsafe { take_back::<V>(value) });
            return Err(Failure::new("the engine refused the value"));
        }
        Ok(())
    }

    fn open<V: Value>(&self, name: &Text, mode: c_int) -> Result<Option<Key<'_, V>>> {
        let api = raw::api();
        let handle = Handle::open(self, name, mode);
        // SAFETY: the handle is open.
        let (kind, of) = unsafe { ((api.key_type)(handle.0), (api.module_type_get_type)(handle.0)) };
        match kind {
            raw::KEY_EMPTY => Ok(None),
            raw::KEY_MODULE if of == type_of::<V>() => {
                // SAFETY: the handle is open.
                let value = NonNull::new(unsafe { (api.module_type_get_value)(handle.0) });
                let value = value.ok_or(Failure::WrongType)?;
                let lent = self.lend(value, mode & raw::WRITE != 0)?;
                Ok(Some(Key { value: value.cast(), _lent: lent, _handle: handle }))
            }
            _ => Err(Failure::WrongType),
        }
    }

    /// Lends a value: to many who read it, or to one who changes it.
    fn lend(&self, value: NonNull<c_void>, changing: bool) -> Result<Lent<'_>> {
        let mut lent = self.lent.get();
        let taken = lent.iter().flatten().any(|(other, also)| *other == value && (changing || *also));
        let place = lent.iter().position(Option::is_none).filter(|_| !taken);
        let place =
            place.ok_or_else(|| Failure::new("this is a mistake in the module: a value is used twice"))?;
        lent[place] = Some((value, changing));
        self.lent.set(lent);
        Ok(Lent { context: self, place })
    }

    /// The time of the server.
    pub fn now(&self) -> Timestamp {
        // SAFETY: it takes nothing.
        let millis = unsafe { (raw::api().milliseconds)() };
        Timestamp::from_millis(millis.try_into().unwrap_or_default())
    }

    /// Has replicas, and the log, do what was done here.
    pub fn replicate(&self) {
        // SAFETY: the command runs.
        unsafe { (raw::api().replicate_verbatim)(self.ctx) };
    }

    /// Has replicas, and the log, do something: a command and its arguments.
    pub fn replicate_as(&self, command: &CStr, arguments: &[&[u8]]) {
        let api = raw::api();
        // SAFETY: the command runs; the strings are ours until they are freed, and the format asks for a list of them.
        unsafe {
            let text = |bytes: &&[u8]| (api.create_string)(self.ctx, bytes.as_ptr().cast(), bytes.len());
            let mut texts: Vec<*mut raw::Text> = arguments.iter().map(text).collect();
            (api.replicate)(self.ctx, command.as_ptr(), c"v".as_ptr(), texts.as_mut_ptr(), texts.len());
            texts.into_iter().for_each(|text| (api.free_string)(self.ctx, text));
        }
    }

    /// Has replicas, and the log, add the items that were added here. They have no limits: if some were refused, they are
    /// told of the others only, by a command with these first arguments.
    pub fn replicate_added(&self, command: &CStr, first: &[&[u8]], items: &[Text], added: &[Result<bool>]) {
        if added.iter().all(Result::is_ok) {
            return self.replicate();
        }
        let went_in = items.iter().zip(added).filter(|(_, added)| **added == Ok(true));
        let told: Vec<&[u8]> = first.iter().copied().chain(went_in.map(|(item, _)| item.bytes())).collect();
        self.replicate_as(command, &told);
    }

    /// Tells whoever listens what happened to a key.
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

/// An open key, which has to be closed.
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
            // SAFETY: it was opened, and is closed once.
            unsafe { (raw::api().close_key)(self.0) };
        }
    }
}

/// A value that is lent, until this is dropped.
struct Lent<'a> {
    context: &'a Context,
    place: usize,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut lent = self.context.lent.get();
        lent[self.place] = None;
        self.context.lent.set(lent);
    }
}

/// The value of an open key.
pub struct Key<'a, V> {
    value: NonNull<V>,
    _lent: Lent<'a>,
    _handle: Handle,
}

/// The value of an open key, to be changed.
pub struct KeyMut<'a, V>(Key<'a, V>);

impl<V> Deref for Key<'_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        // SAFETY: a value of this type is what was put there as one; it is lent, and nobody changes it meanwhile.
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
        // SAFETY: as above, and it is lent to nobody else.
        unsafe { self.0.value.as_mut() }
    }
}

/// Runs a command, and sends what it answers.
///
/// # Safety
///
/// To be called by the server, with what it calls commands with.
pub unsafe fn call<R: Run>(ctx: *mut Ctx, argv: *mut *mut raw::Text, argc: c_int) -> c_int {
    // SAFETY: the server gives as many strings as it says, and a `Text` is nothing but the address of one.
    let arguments = unsafe { std::slice::from_raw_parts(argv.cast::<Text>(), argc as usize) };
    let context = Context { ctx, lent: Cell::default() };
    let arguments = Arguments(arguments.get(1..).unwrap_or_default());
    // SAFETY: the command is called, if only to be asked for its keys.
    if unsafe { (raw::api().is_keys_position_request)(ctx) } != 0 {
        for position in catch_unwind(AssertUnwindSafe(|| R::keys(arguments))).unwrap_or_default() {
            // SAFETY: as above.
            unsafe { (raw::api().key_at_pos)(ctx, position as c_int) };
        }
        return raw::OK;
    }
    let _unlimited = Unlimited::when(context.must_obey());
    let done = catch_unwind(AssertUnwindSafe(|| R::run(&context, arguments)));
    let done =
        done.unwrap_or_else(|_| Err(Failure::new("this is a mistake in the module: please report it")));
    // SAFETY: the command still runs.
    unsafe {
        match done {
            Ok(reply) => reply.send(ctx),
            Err(failure) => {
                failure.send(ctx);
            }
        }
    }
    raw::OK
}
