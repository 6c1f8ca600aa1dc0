//! The values of keys: how the server saves, loads, copies, measures and frees them.

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

/// A type of values that keys can hold.
pub trait Value: Sized + Send + 'static {
    /// The name of the type: nine letters, digits, `-` or `_`. No other module may use it.
    const NAME: &'static CStr;

    /// Returns the storage for the server's handle of the type.
    fn type_handle() -> &'static TypeHandle;

    /// Writes the value to a snapshot.
    fn save(&self, to: &mut RdbWriter<'_>) -> Result<()>;

    /// Reads a value from a snapshot, which is not trusted.
    fn load(from: &mut RdbReader<'_>) -> Result<Self>;

    /// Writes the commands that create the value.
    fn rewrite(&self, to: &mut AofWriter<'_>) -> Result<()>;

    /// Adds everything that distinguishes values.
    fn debug_digest(&self, digest: &mut DebugDigest<'_>);

    /// Returns the size of the value in memory.
    fn memory_bytes(&self) -> usize;

    /// Returns a copy of the value, if there is enough memory.
    fn copy(&self) -> Option<Self>;

    /// Lets the server move the memory of the value.
    fn relocate(&mut self, mover: &mut dyn Mover);
}

/// The storage for the server's handle of a type.
#[derive(Debug)]
pub struct TypeHandle(AtomicPtr<Type>);

impl TypeHandle {
    /// Returns the handle of a type that is not registered yet.
    pub const fn new() -> TypeHandle {
        TypeHandle(AtomicPtr::new(null_mut()))
    }
}

/// The number of values.
static VALUES: AtomicU64 = AtomicU64::new(0);

/// Returns the number of values.
pub fn values() -> u64 {
    VALUES.load(Ordering::Relaxed)
}

/// The number of malformed values and chunks.
static REJECTED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of malformed values and chunks.
pub fn rejected() -> u64 {
    REJECTED.load(Ordering::Relaxed)
}

/// Counts a malformed value or chunk.
pub fn note_rejected() {
    REJECTED.fetch_add(1, Ordering::Relaxed);
}

/// Moves a value to the heap and returns the pointer that the server stores.
pub(super) fn into_server<V: Value>(value: V) -> *mut c_void {
    VALUES.fetch_add(1, Ordering::Relaxed);
    Box::into_raw(Box::new(value)).cast()
}

/// Takes a value back from the server.
///
/// # Safety
///
/// The pointer must be from [`into_server`] for this type, and unused from now on.
pub(super) unsafe fn from_server<V: Value>(value: *mut c_void) -> Box<V> {
    VALUES.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: promised by the caller.
    unsafe { Box::from_raw(value.cast()) }
}

/// Returns the server's handle of a type.
pub(super) fn type_of<V: Value>() -> *mut Type {
    V::type_handle().0.load(Ordering::Relaxed)
}

/// Registers a type and returns whether the server has accepted it.
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

/// The writer of a snapshot.
pub struct RdbWriter<'a>(*mut Io, PhantomData<&'a ()>);

impl RdbWriter<'_> {
    /// Writes a number.
    pub fn number(&mut self, number: u64) {
        // SAFETY: the server lends the stream for the call that this lives in.
        unsafe { (raw::api().save_unsigned)(self.0, number) };
    }

    /// Writes a string of bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as above; the bytes are copied.
        unsafe { (raw::api().save_string_buffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// The reader of a snapshot.
pub struct RdbReader<'a>(*mut Io, PhantomData<&'a ()>);

impl RdbReader<'_> {
    /// Reads a number.
    pub fn number(&mut self) -> Result<u64> {
        // SAFETY: the server lends the stream for the call that this lives in.
        let number = unsafe { (raw::api().load_unsigned)(self.0) };
        self.check(number)
    }

    /// Reads a string of bytes.
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
            // SAFETY: the string has this many bytes.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) });
        }
        // SAFETY: the caller frees the string, which is not used any more.
        unsafe { (api.free)(start.cast()) };
        room.map_err(|_| Error::OutOfMemory)?;
        self.check(bytes)
    }

    /// Returns a value that was read, if reading has not failed.
    fn check<T>(&self, read: T) -> Result<T> {
        // SAFETY: as above.
        if unsafe { (raw::api().is_io_error)(self.0) } == 0 { Ok(read) } else { Err(Error::CUT) }
    }
}

/// The writer of an append-only file that is being rewritten.
pub struct AofWriter<'a> {
    io: *mut Io,
    key: *mut raw::Text,
    _lent: PhantomData<&'a ()>,
}

impl AofWriter<'_> {
    /// Writes a command with the key, a number and bytes as arguments.
    pub fn command(&mut self, command: &CStr, number: i64, bytes: &[u8]) {
        // SAFETY: the server lends stream and key for the call that this lives in; the format
        // matches the arguments.
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

/// The checksum of a value in `DEBUG DIGEST`, by which two servers are compared.
pub struct DebugDigest<'a>(*mut DigestCtx, PhantomData<&'a ()>);

impl DebugDigest<'_> {
    /// Adds bytes. Their order matters.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: the server lends it for the call that this lives in.
        unsafe { (raw::api().digest_add_string_buffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// Returns whether the server is a replica or loads a snapshot, and must accept values whatever the
/// limits are. A client can also send one, with `RESTORE`.
fn must_accept() -> bool {
    // SAFETY: without a context, these are the flags of the server.
    let flags = unsafe { (raw::api().get_context_flags)(null_mut()) };
    flags & (raw::CTX_REPLICA | raw::CTX_LOADING) != 0
}

unsafe extern "C" fn rdb_load<V: Value>(io: *mut Io, version: c_int) -> *mut c_void {
    let _unlimited = Unlimited::when(must_accept());
    let load = || match version {
        ENCODING_VERSION => V::load(&mut RdbReader(io, PhantomData)),
        _ => Err(Error::UnknownEncoding(version)),
    };
    match catch_unwind(AssertUnwindSafe(load)).unwrap_or(Err(Error::Panicked)) {
        Ok(value) => into_server(value),
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
    // SAFETY: the server lends the stream for the call that this is part of; the format matches the
    // arguments.
    unsafe {
        (raw::api().log_io_error)(io, c"warning".as_ptr(), format.as_ptr(), V::NAME.as_ptr(), why.as_ptr())
    };
}

unsafe extern "C" fn rdb_save<V: Value>(io: *mut Io, value: *mut c_void) {
    // SAFETY: the server passes a value of this type.
    let value = unsafe { &*value.cast::<V>() };
    write::<V>(io, || value.save(&mut RdbWriter(io, PhantomData)));
}

/// Writes a value to a snapshot or an append-only file. A failure ends the server's child process
/// that writes the file, so that the incomplete file does not replace the last one. A server that
/// writes without a child process cannot be notified.
fn write<V: Value>(io: *mut Io, write: impl FnOnce() -> Result<()>) {
    let written = catch_unwind(AssertUnwindSafe(write));
    if let Err(error) = written.unwrap_or(Err(Error::Panicked)) {
        log::<V>(io, c"umbel: a %s cannot be written: %s", &error);
        let api = raw::api();
        // SAFETY: the server lends the stream and its context for the call that this is part of.
        let flags = unsafe { (api.get_context_flags)((api.get_context_from_io)(io)) };
        if flags & raw::CTX_IS_CHILD != 0 {
            // The server removes the file and logs the failure. A regular exit would run exit
            // handlers of the server. SAFETY: any signal number is valid.
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

unsafe extern "C" fn debug_digest<V: Value>(digest: *mut DigestCtx, value: *mut c_void) {
    // SAFETY: as above.
    let value = unsafe { &*value.cast::<V>() };
    let _ = catch_unwind(AssertUnwindSafe(|| value.debug_digest(&mut DebugDigest(digest, PhantomData))));
    // SAFETY: the server lends it for this call.
    unsafe { (raw::api().digest_end_sequence)(digest) };
}

unsafe extern "C" fn free<V: Value>(value: *mut c_void) {
    // SAFETY: as above, and the server does not use it any more.
    let value = unsafe { from_server::<V>(value) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}

/// Moves the memory of a value, all of it in one call. That is quick enough: large allocations have
/// pages of their own and are not moved, and no value has very many small ones.
unsafe extern "C" fn defrag<V: Value>(
    ctx: *mut DefragCtx,
    _key: *mut raw::Text,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server lends the defragmentation for this call; no command runs meanwhile.
    let mut mover = unsafe { Defragmenter::new(ctx) };
    // SAFETY: as above; the value is a box, and the server stores the pointer that is written back
    // below.
    let mut boxed = unsafe { ManuallyDrop::new(Box::from_raw((*value).cast::<V>())) };
    let _ = catch_unwind(AssertUnwindSafe(|| boxed.relocate(&mut mover)));
    relocate_box(&mut boxed, &mut mover);
    // SAFETY: as above.
    unsafe { *value = Box::into_raw(ManuallyDrop::into_inner(boxed)).cast() };
    0
}

/// Returns the effort to free a value, one unit per page. The server frees large ones in the
/// background after `UNLINK`.
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
    let _unlimited = Unlimited::when(must_accept());
    match catch_unwind(AssertUnwindSafe(|| value.copy())) {
        Ok(Some(copy)) => into_server(copy),
        _ => null_mut(),
    }
}
