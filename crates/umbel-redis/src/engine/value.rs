//! What is kept under a key: how the engine writes it, reads it again, copies, measures and frees it.

use super::raw::{self, Io, Sum, Type, TypeMethods};
use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A type of values.
pub trait Value: Sized + Send + 'static {
    /// The name of the type: nine letters, digits, `-` or `_`, which no other module uses.
    const NAME: &'static CStr;

    /// Where the engine's handle of the type is kept.
    fn slot() -> &'static TypeSlot;

    /// Writes it to a snapshot.
    fn save(&self, to: &mut Saver<'_>);

    /// Reads it from a snapshot, which may hold anything.
    fn load(from: &mut Source<'_>) -> Result<Self, String>;

    /// Writes the commands that make it.
    fn rewrite(&self, to: &mut Rewriter<'_>);

    /// Adds what makes it different from others.
    fn digest(&self, sum: &mut Digest<'_>);

    /// The bytes it takes.
    fn memory(&self) -> usize;

    /// Another one like it, if there is memory for it.
    fn copy(&self) -> Option<Self>;
}

/// The engine's handle of a type.
#[derive(Debug)]
pub struct TypeSlot(AtomicPtr<Type>);

impl TypeSlot {
    /// That of a type which is not registered yet.
    pub const fn new() -> TypeSlot {
        TypeSlot(AtomicPtr::new(null_mut()))
    }
}

/// The engine's handle of a type.
pub(super) fn type_of<V: Value>() -> *mut Type {
    V::slot().0.load(Ordering::Relaxed)
}

/// Registers a type.
///
/// # Safety
///
/// The context must be the one that the engine loads the module with.
pub(super) unsafe fn register<V: Value>(ctx: *mut raw::Ctx) -> bool {
    let methods = TypeMethods {
        version: raw::TYPE_METHODS_VERSION,
        rdb_load: rdb_load::<V>,
        rdb_save: rdb_save::<V>,
        aof_rewrite: aof_rewrite::<V>,
        mem_usage: mem_usage::<V>,
        digest: digest::<V>,
        free: free::<V>,
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: free_effort::<V>,
        unlink: None,
        copy: copy::<V>,
        defrag: None,
    };
    // SAFETY: promised by the caller; the methods are copied.
    let handle = unsafe { (raw::api().create_data_type)(ctx, V::NAME.as_ptr(), ENCODING, &methods) };
    V::slot().0.store(handle, Ordering::Relaxed);
    !handle.is_null()
}

/// The version of what is written to snapshots.
const ENCODING: c_int = 1;

/// A snapshot that is written.
pub struct Saver<'a>(*mut Io, PhantomData<&'a ()>);

impl Saver<'_> {
    pub fn number(&mut self, number: u64) {
        // SAFETY: the engine lends the stream for the call in which this lives.
        unsafe { (raw::api().save_unsigned)(self.0, number) };
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as above; the bytes are copied.
        unsafe { (raw::api().save_string_buffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// A snapshot that is read.
pub struct Source<'a>(*mut Io, PhantomData<&'a ()>);

impl Source<'_> {
    pub fn number(&mut self) -> Result<u64, String> {
        // SAFETY: the engine lends the stream for the call in which this lives.
        let number = unsafe { (raw::api().load_unsigned)(self.0) };
        self.check(number)
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>, String> {
        let api = raw::api();
        let mut len = 0;
        // SAFETY: as above.
        let start = unsafe { (api.load_string_buffer)(self.0, &mut len) };
        if start.is_null() {
            return Err("it ends too early".into());
        }
        let mut bytes = Vec::new();
        let room = bytes.try_reserve_exact(len);
        if room.is_ok() {
            // SAFETY: the engine gave so many bytes.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) });
        }
        // SAFETY: they are ours to free, and used no more.
        unsafe { (api.free)(start.cast()) };
        room.map_err(|_| "there is no memory for it".to_string())?;
        self.check(bytes)
    }

    fn check<T>(&self, read: T) -> Result<T, String> {
        // SAFETY: as above.
        if unsafe { (raw::api().is_io_error)(self.0) } == 0 {
            Ok(read)
        } else {
            Err("it ends too early".into())
        }
    }
}

/// A log of commands that is written anew.
pub struct Rewriter<'a> {
    io: *mut Io,
    key: *mut raw::Text,
    _lent: PhantomData<&'a ()>,
}

impl Rewriter<'_> {
    /// A command with the key, a number and bytes.
    pub fn command(&mut self, command: &CStr, number: i64, bytes: &[u8]) {
        // SAFETY: the engine lends both for the call in which this lives; the format asks for what follows.
        unsafe {
            (raw::api().emit_aof)(
                self.io,
                command.as_ptr(),
                c"slb".as_ptr(),
                self.key,
                number as c_longlong,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len(),
            );
        }
    }
}

/// The sum of a value, by which two servers are compared.
pub struct Digest<'a>(*mut Sum, PhantomData<&'a ()>);

impl Digest<'_> {
    /// Adds bytes, in this order.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: the engine lends it for the call in which this lives.
        unsafe { (raw::api().digest_add_string_buffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

unsafe extern "C" fn rdb_load<V: Value>(io: *mut Io, version: c_int) -> *mut c_void {
    let load = || match version {
        ENCODING => V::load(&mut Source(io, PhantomData)),
        _ => Err(format!("version {version} of its encoding is not known: a newer module wrote it")),
    };
    match catch_unwind(AssertUnwindSafe(load))
        .unwrap_or_else(|_| Err("this is a mistake in the module".into()))
    {
        Ok(value) => Box::into_raw(Box::new(value)).cast(),
        Err(why) => {
            let why = CString::new(why).unwrap_or_default();
            // SAFETY: the engine lends the stream for this call; the format asks for what follows.
            unsafe {
                (raw::api().log_io_error)(
                    io,
                    c"warning".as_ptr(),
                    c"umbel: a %s cannot be read: %s".as_ptr(),
                    V::NAME.as_ptr(),
                    why.as_ptr(),
                );
            }
            null_mut()
        }
    }
}

unsafe extern "C" fn rdb_save<V: Value>(io: *mut Io, value: *mut c_void) {
    // SAFETY: the engine gives the value that was put there as one of this type.
    let value = unsafe { &*value.cast::<V>() };
    // What is missing shows when it is read again.
    let _ = catch_unwind(AssertUnwindSafe(|| value.save(&mut Saver(io, PhantomData))));
}

unsafe extern "C" fn aof_rewrite<V: Value>(io: *mut Io, key: *mut raw::Text, value: *mut c_void) {
    // SAFETY: as above.
    let value = unsafe { &*value.cast::<V>() };
    let _ = catch_unwind(AssertUnwindSafe(|| value.rewrite(&mut Rewriter { io, key, _lent: PhantomData })));
}

unsafe extern "C" fn mem_usage<V: Value>(value: *const c_void) -> usize {
    // SAFETY: as above.
    let value = unsafe { &*value.cast::<V>() };
    catch_unwind(AssertUnwindSafe(|| value.memory())).unwrap_or_default()
}

unsafe extern "C" fn digest<V: Value>(sum: *mut Sum, value: *mut c_void) {
    // SAFETY: as above.
    let value = unsafe { &*value.cast::<V>() };
    let _ = catch_unwind(AssertUnwindSafe(|| value.digest(&mut Digest(sum, PhantomData))));
    // SAFETY: the engine lends it for this call.
    unsafe { (raw::api().digest_end_sequence)(sum) };
}

unsafe extern "C" fn free<V: Value>(value: *mut c_void) {
    // SAFETY: as above, and the engine is done with it.
    let value = unsafe { Box::from_raw(value.cast::<V>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}

/// How much work it is to free: what is more than a little is done in the background after UNLINK. A page is one
/// piece of work.
unsafe extern "C" fn free_effort<V: Value>(_key: *mut raw::Text, value: *const c_void) -> usize {
    // SAFETY: promised by the engine, as above.
    1 + unsafe { mem_usage::<V>(value) } / 4096
}

unsafe extern "C" fn copy<V: Value>(
    _from: *mut raw::Text,
    _to: *mut raw::Text,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: as above.
    let value = unsafe { &*value.cast::<V>() };
    match catch_unwind(AssertUnwindSafe(|| value.copy())) {
        Ok(Some(copy)) => Box::into_raw(Box::new(copy)).cast(),
        _ => null_mut(),
    }
}
