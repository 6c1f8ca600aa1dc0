//! What is kept under a key: how the server writes it, reads it again, copies, measures and frees it.

use super::memory::{Defragmenter, Unlimited};
use super::raw::{self, DefragCtx, DigestCtx, Io, Type, TypeMethods};
use crate::error::{Error, Result};
use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_void};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use umbel::memory::{Mover, relocate_box};

/// A type of values.
pub trait Value: Sized + Send + 'static {
    /// The name of the type: nine letters, digits, `-` or `_`, which no other module uses.
    const NAME: &'static CStr;

    /// Where the server's handle of the type is kept.
    fn type_handle() -> &'static TypeHandle;

    /// Writes the value to a snapshot.
    fn save(&self, to: &mut RdbWriter<'_>) -> Result<()>;

    /// Reads a value from a snapshot, which may hold anything.
    fn load(from: &mut RdbReader<'_>) -> Result<Self>;

    /// Writes the commands that make the value.
    fn rewrite(&self, to: &mut AofWriter<'_>) -> Result<()>;

    /// Adds what makes it different from others.
    fn debug_digest(&self, sum: &mut DebugDigest<'_>);

    /// The bytes it takes.
    fn memory_bytes(&self) -> usize;

    /// Another one like it, if there is memory for it.
    fn copy(&self) -> Option<Self>;

    /// Lets its memory be moved.
    fn relocate(&mut self, mover: &mut dyn Mover);
}

/// The server's handle of a type.
#[derive(Debug)]
pub struct TypeHandle(AtomicPtr<Type>);

impl TypeHandle {
    /// That of a type which is not registered yet.
    pub const fn new() -> TypeHandle {
        TypeHandle(AtomicPtr::new(null_mut()))
    }
}

/// How many values there are.
static VALUES: AtomicU64 = AtomicU64::new(0);

/// How many values there are.
pub fn values() -> u64 {
    VALUES.load(Ordering::Relaxed)
}

/// How many values were not taken in, since they made no sense.
static REJECTED: AtomicU64 = AtomicU64::new(0);

/// How many values, or parts of some, were not taken in, since they made no sense.
pub fn rejected() -> u64 {
    REJECTED.load(Ordering::Relaxed)
}

/// Counts a value that is not taken in.
pub fn note_rejected() {
    REJECTED.fetch_add(1, Ordering::Relaxed);
}

/// Hands a value over to the server.
pub(super) fn hand_over<V: Value>(value: V) -> *mut c_void {
    VALUES.fetch_add(1, Ordering::Relaxed);
    Box::into_raw(Box::new(value)).cast()
}

/// Takes a value back from the server.
///
/// # Safety
///
/// It was handed over as one of this type, and nobody else uses it any more.
pub(super) unsafe fn take_back<V: Value>(value: *mut c_void) -> Box<V> {
    VALUES.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: promised by the caller.
    unsafe { Box::from_raw(value.cast()) }
}

/// The server's handle of a type.
pub(super) fn type_of<V: Value>() -> *mut Type {
    V::type_handle().0.load(Ordering::Relaxed)
}

/// Registers a type.
///
/// # Safety
///
/// The context must be the one that the server loads the module with.
pub(super) unsafe fn register<V: Value>(ctx: *mut raw::Ctx) -> bool {
    let methods = TypeMethods {
        version: raw::TYPE_METHODS_VERSION,
        rdb_load: rdb_load::<V>,
        rdb_save: rdb_save::<V>,
        aof_rewrite: aof_rewrite::<V>,
        mem_usage: mem_usage::<V>,
        debug_digest: debug_digest::<V>,
        free: free::<V>,
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: free_effort::<V>,
        unlink: None,
        copy: copy::<V>,
        defrag: defrag::<V>,
    };
    // SAFETY: promised by the caller; the methods are copied.
    let handle = unsafe { (raw::api().create_data_type)(ctx, V::NAME.as_ptr(), ENCODING_VERSION, &methods) };
    V::type_handle().0.store(handle, Ordering::Relaxed);
    !handle.is_null()
}

/// The version of the encoding in snapshots.
const ENCODING_VERSION: c_int = 1;

/// A snapshot that is written.
pub struct RdbWriter<'a>(*mut Io, PhantomData<&'a ()>);

impl RdbWriter<'_> {
    pub fn number(&mut self, number: u64) {
        // SAFETY: the server lends the stream for the call in which this lives.
        unsafe { (raw::api().save_unsigned)(self.0, number) };
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as above; the bytes are copied.
        unsafe { (raw::api().save_string_buffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// A snapshot that is read.
pub struct RdbReader<'a>(*mut Io, PhantomData<&'a ()>);

impl RdbReader<'_> {
    pub fn number(&mut self) -> Result<u64> {
        // SAFETY: the server lends the stream for the call in which this lives.
        let number = unsafe { (raw::api().load_unsigned)(self.0) };
        self.check(number)
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        let api = raw::api();
        let mut len = 0;
        // SAFETY: as above.
        let start = unsafe { (api.load_string_buffer)(self.0, &mut len) };
        if start.is_null() {
            return Err(Error::CUT);
        }
        let mut bytes = Vec::new();
        let room = bytes.try_reserve_exact(len);
        if room.is_ok() {
            // SAFETY: the server gave so many bytes.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) });
        }
        // SAFETY: they are ours to free, and used no more.
        unsafe { (api.free)(start.cast()) };
        room.map_err(|_| Error::OutOfMemory)?;
        self.check(bytes)
    }

    fn check<T>(&self, read: T) -> Result<T> {
        // SAFETY: as above.
        if unsafe { (raw::api().is_io_error)(self.0) } == 0 { Ok(read) } else { Err(Error::CUT) }
    }
}

/// A log of commands that is written anew.
pub struct AofWriter<'a> {
    io: *mut Io,
    key: *mut raw::Text,
    _lent: PhantomData<&'a ()>,
}

impl AofWriter<'_> {
    /// A command with the key, a number and bytes.
    pub fn command(&mut self, command: &CStr, number: i64, bytes: &[u8]) {
        // SAFETY: the server lends both for the call in which this lives; the format asks for what follows.
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
pub struct DebugDigest<'a>(*mut DigestCtx, PhantomData<&'a ()>);

impl DebugDigest<'_> {
    /// Adds bytes, in this order.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: the server lends it for the call in which this lives.
        unsafe { (raw::api().digest_add_string_buffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

unsafe extern "C" fn rdb_load<V: Value>(io: *mut Io, version: c_int) -> *mut c_void {
    let load = || match version {
        ENCODING_VERSION => V::load(&mut RdbReader(io, PhantomData)),
        _ => Err(Error::UnknownEncoding(version)),
    };
    match catch_unwind(AssertUnwindSafe(load)).unwrap_or(Err(Error::Panicked)) {
        Ok(value) => hand_over(value),
        Err(error) => {
            note_rejected();
            log::<V>(io, c"umbel: a %s cannot be read: %s", &error);
            null_mut()
        }
    }
}

/// Writes an error about a value of this type, and its causes, into the server's log.
fn log<V: Value>(io: *mut Io, format: &CStr, error: &Error) {
    let why = CString::new(format!("{error:#}")).unwrap_or_default();
    // SAFETY: the server lends the stream for the call in which this is called; the format asks for what follows.
    unsafe {
        (raw::api().log_io_error)(io, c"warning".as_ptr(), format.as_ptr(), V::NAME.as_ptr(), why.as_ptr())
    };
}

unsafe extern "C" fn rdb_save<V: Value>(io: *mut Io, value: *mut c_void) {
    // SAFETY: the server gives the value that was put there as one of this type.
    let value = unsafe { &*value.cast::<V>() };
    write::<V>(io, || value.save(&mut RdbWriter(io, PhantomData)));
}

/// Writes a value. A snapshot, or a log, without it must not take the place of the last one; a server that writes it
/// itself, and not by a child, takes no notice.
fn write<V: Value>(io: *mut Io, write: impl FnOnce() -> Result<()>) {
    let written = catch_unwind(AssertUnwindSafe(write));
    if let Err(error) = written.unwrap_or(Err(Error::Panicked)) {
        log::<V>(io, c"umbel: a %s cannot be written: %s", &error);
        let api = raw::api();
        // SAFETY: the server lends the stream, and what it gives for it, for the call in which this is called.
        let flags = unsafe { (api.get_context_flags)((api.get_context_from_io)(io)) };
        if flags & raw::CTX_IS_CHILD != 0 {
            // This process does nothing else, and must not tidy up what belongs to the server, which removes what was
            // written, and says that it has failed.
            // SAFETY: it takes a number.
            unsafe { libc::raise(libc::SIGKILL) };
        }
    }
}

unsafe extern "C" fn aof_rewrite<V: Value>(io: *mut Io, key: *mut raw::Text, value: *mut c_void) {
    // SAFETY: as above.
    let value = unsafe { &*value.cast::<V>() };
    write::<V>(io, || value.rewrite(&mut AofWriter { io, key, _lent: PhantomData }));
}

unsafe extern "C" fn mem_usage<V: Value>(value: *const c_void) -> usize {
    // SAFETY: as above.
    let value = unsafe { &*value.cast::<V>() };
    catch_unwind(AssertUnwindSafe(|| value.memory_bytes())).unwrap_or_default()
}

unsafe extern "C" fn debug_digest<V: Value>(sum: *mut DigestCtx, value: *mut c_void) {
    // SAFETY: as above.
    let value = unsafe { &*value.cast::<V>() };
    let _ = catch_unwind(AssertUnwindSafe(|| value.debug_digest(&mut DebugDigest(sum, PhantomData))));
    // SAFETY: the server lends it for this call.
    unsafe { (raw::api().digest_end_sequence)(sum) };
}

unsafe extern "C" fn free<V: Value>(value: *mut c_void) {
    // SAFETY: as above, and the server is done with it.
    let value = unsafe { take_back::<V>(value) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}

/// Moves what would be better elsewhere, all at once: what is large is not moved, for the server finds pages of its own
/// for it, and of what is small no value has very many pieces.
unsafe extern "C" fn defrag<V: Value>(
    ctx: *mut DefragCtx,
    _key: *mut raw::Text,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server lends the defragmentation for this call; no command runs meanwhile.
    let mut mover = unsafe { Defragmenter::new(ctx) };
    // SAFETY: as above; the value was put there as a box, and the server takes the address that is left there.
    let mut boxed = unsafe { ManuallyDrop::new(Box::from_raw((*value).cast::<V>())) };
    let _ = catch_unwind(AssertUnwindSafe(|| boxed.relocate(&mut mover)));
    relocate_box(&mut boxed, &mut mover);
    // SAFETY: as above.
    unsafe { *value = Box::into_raw(ManuallyDrop::into_inner(boxed)).cast() };
    0
}

/// How much work it is to free: what is more than a little is done in the background after UNLINK. A page is one
/// piece of work.
unsafe extern "C" fn free_effort<V: Value>(_key: *mut raw::Text, value: *const c_void) -> usize {
    // SAFETY: promised by the server, as above.
    1 + unsafe { mem_usage::<V>(value) } / 4096
}

unsafe extern "C" fn copy<V: Value>(
    _from: *mut raw::Text,
    _to: *mut raw::Text,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: as above.
    let value = unsafe { &*value.cast::<V>() };
    // SAFETY: without a command it tells of the server.
    let flags = unsafe { (raw::api().get_context_flags)(null_mut()) };
    let _unlimited = Unlimited::when(flags & (raw::CTX_REPLICA | raw::CTX_LOADING) != 0);
    match catch_unwind(AssertUnwindSafe(|| value.copy())) {
        Ok(Some(copy)) => hand_over(copy),
        _ => null_mut(),
    }
}
