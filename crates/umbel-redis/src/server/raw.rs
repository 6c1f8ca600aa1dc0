//! The server's functions, found by name when the module is loaded.
//!
//! Redis and Valkey pass a module one function that looks up all others by name. So one module
//! serves every version: a function that older servers lack is an `Option`, and callers have a
//! fallback.

use std::ffi::{CStr, c_char, c_double, c_int, c_long, c_longlong, c_uchar, c_ulonglong, c_void};
use std::ptr::null;
use std::sync::OnceLock;

/// Declares types of the server that are only used through pointers.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])* #[repr(C)] pub struct $name { _private: [u8; 0] })*
    };
}

opaque! {
    /// The context of a command.
    Ctx
    /// A string.
    Text
    /// An open key.
    KeyHandle
    /// A type of values.
    Type
    /// An RDB file or AOF that is read or written.
    Io
    /// The checksum of a value in `DEBUG DIGEST`.
    DigestCtx
    /// The output of `INFO`.
    InfoCtx
    /// An active defragmentation.
    DefragCtx
}

pub const OK: c_int = 0;
pub const ERR: c_int = 1;

pub const READ: c_int = 1;
pub const WRITE: c_int = 1 << 1;

pub const KEY_EMPTY: c_int = 0;
pub const KEY_MODULE: c_int = 6;

/// Classes of keyspace events: commands for all types, and modules.
pub const NOTIFY_GENERIC: c_int = 1 << 2;
pub const NOTIFY_MODULE: c_int = 1 << 13;

/// The capabilities of the module. It handles read errors of snapshots, which would otherwise end
/// the server. A replica may load a snapshot beside its present data, since values do not refer to
/// each other. Slots of a cluster may migrate atomically; Redis ignores this last bit.
pub const MODULE_OPTIONS: c_int = 1 | 1 << 2 | 1 << 5;

/// The command comes from the primary or the append-only file: it succeeded there, and has to
/// succeed here.
pub const CTX_REPLICATED: c_int = 1 << 12;
pub const CTX_REPLICA: c_int = 1 << 3;
pub const CTX_LOADING: c_int = 1 << 13;

/// The process is a child of the server that writes a snapshot or an append-only file.
pub const CTX_IS_CHILD: c_int = 1 << 20;

/// The entry point of a command.
pub type Command = unsafe extern "C" fn(*mut Ctx, *mut *mut Text, c_int) -> c_int;

/// The methods of a type of values, in the third version of this structure, which all servers since
/// 6.2 accept.
#[repr(C)]
pub struct TypeMethods {
    pub version: u64,
    pub rdb_load: unsafe extern "C" fn(*mut Io, c_int) -> *mut c_void,
    pub rdb_save: unsafe extern "C" fn(*mut Io, *mut c_void),
    pub aof_rewrite: unsafe extern "C" fn(*mut Io, *mut Text, *mut c_void),
    pub mem_usage: unsafe extern "C" fn(*const c_void) -> usize,
    pub debug_digest: unsafe extern "C" fn(*mut DigestCtx, *mut c_void),
    pub free: unsafe extern "C" fn(*mut c_void),
    pub aux_load: Option<unsafe extern "C" fn(*mut Io, c_int, c_int) -> c_int>,
    pub aux_save: Option<unsafe extern "C" fn(*mut Io, c_int)>,
    pub aux_save_triggers: c_int,
    pub free_effort: unsafe extern "C" fn(*mut Text, *const c_void) -> usize,
    pub unlink: Option<unsafe extern "C" fn(*mut Text, *const c_void)>,
    pub copy: unsafe extern "C" fn(*mut Text, *mut Text, *const c_void) -> *mut c_void,
    pub defrag: unsafe extern "C" fn(*mut DefragCtx, *mut Text, *mut *mut c_void) -> c_int,
}

pub const TYPE_METHODS_VERSION: u64 = 3;

/// Uses of a key by a command: reading its value, changing its value, replacing its value.
pub const KEY_READ: u64 = 1 | 1 << 4;
pub const KEY_CHANGE: u64 = 1 << 1 | 1 << 4 | 1 << 5;
pub const KEY_REPLACE: u64 = 1 << 2 | 1 << 5;

/// The keys among the arguments of a command, and their use. This module starts every search at a
/// position.
#[repr(C)]
pub struct KeySpec {
    pub notes: *const c_char,
    pub flags: u64,
    pub begin_search_type: c_int,
    pub begin_search: BeginSearch,
    pub find_keys_type: c_int,
    /// For a range: the last key relative to the first, the step, and no limit. For counted keys:
    /// the position of the count, the position of the first key, and the step.
    pub find_keys: [c_int; 3],
}

/// A position, or a keyword, which this module does not use.
#[repr(C)]
pub union BeginSearch {
    pub position: c_int,
    pub keyword: Keyword,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Keyword {
    keyword: *const c_char,
    start: c_int,
}

impl KeySpec {
    /// Returns the keys from a position on: `last` more after the first, or all if it is -1.
    pub const fn range(position: c_int, last: c_int, flags: u64) -> KeySpec {
        KeySpec::new(position, 2, [last, 1, 0], flags)
    }

    /// Returns the keys behind a position, which holds their number.
    pub const fn counted(position: c_int, flags: u64) -> KeySpec {
        KeySpec::new(position, 3, [0, 1, 1], flags)
    }

    const fn new(position: c_int, find_keys_type: c_int, find_keys: [c_int; 3], flags: u64) -> KeySpec {
        let begin_search = BeginSearch { position };
        KeySpec { notes: null(), flags, begin_search_type: 2, begin_search, find_keys_type, find_keys }
    }
}

/// The sizes of the structures in a [`CommandInfo`], so that servers can extend them.
#[repr(C)]
pub struct CommandInfoVersion {
    version: c_int,
    history_entry: usize,
    key_spec: usize,
    argument: usize,
}

pub static COMMAND_INFO_VERSION: CommandInfoVersion =
    CommandInfoVersion { version: 1, history_entry: 16, key_spec: size_of::<KeySpec>(), argument: 64 };

/// The description of a command.
#[repr(C)]
pub struct CommandInfo {
    pub version: *const CommandInfoVersion,
    pub summary: *const c_char,
    pub complexity: *const c_char,
    pub since: *const c_char,
    pub history: *mut c_void,
    pub tips: *const c_char,
    pub arity: c_int,
    pub key_specs: *mut KeySpec,
    pub args: *mut c_void,
}

/// Declares the table of functions and the code that fills it.
macro_rules! functions {
    (required { $($need:ident = $need_name:literal: $need_type:ty;)* }
     optional { $($may:ident = $may_name:literal: $may_type:ty;)* }) => {
        /// The functions of the server.
        pub struct Api {
            $(pub $need: $need_type,)*
            $(pub $may: Option<$may_type>,)*
        }

        impl Api {
            /// Looks all functions up; `None` if a required one is missing.
            ///
            /// # Safety
            ///
            /// The context must be the one that the server loads the module with.
            unsafe fn find(ctx: *mut Ctx) -> Option<Api> {
                // SAFETY: by convention, a context begins with the address of this function.
                let get = unsafe { *ctx.cast::<GetApi>() };
                Some(Api {
                    // SAFETY: the server's functions of these names have these types.
                    $($need: unsafe { lookup::<$need_type>(get, $need_name)? },)*
                    // SAFETY: as above.
                    $($may: unsafe { lookup::<$may_type>(get, $may_name) },)*
                })
            }
        }
    };
}

type GetApi = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;

/// Looks a function up by its name.
///
/// # Safety
///
/// `F` must be a function pointer of the right type.
unsafe fn lookup<F: Copy>(get: GetApi, name: &CStr) -> Option<F> {
    let mut found = std::ptr::null_mut();
    // SAFETY: the server writes one address.
    let known = unsafe { get(name.as_ptr(), &mut found) } == OK;
    // SAFETY: a function pointer has the size of an address, and the caller vouches for the type.
    (known && !found.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
}

functions! {
    required {
        set_module_attribs = c"RedisModule_SetModuleAttribs": unsafe extern "C" fn(*mut Ctx, *const c_char, c_int, c_int);
        set_module_options = c"RedisModule_SetModuleOptions": unsafe extern "C" fn(*mut Ctx, c_int);
        is_module_name_busy = c"RedisModule_IsModuleNameBusy": unsafe extern "C" fn(*const c_char) -> c_int;
        create_command = c"RedisModule_CreateCommand": unsafe extern "C" fn(*mut Ctx, *const c_char, Command, *const c_char, c_int, c_int, c_int) -> c_int;
        create_data_type = c"RedisModule_CreateDataType": unsafe extern "C" fn(*mut Ctx, *const c_char, c_int, *const TypeMethods) -> *mut Type;
        alloc = c"RedisModule_Alloc": unsafe extern "C" fn(usize) -> *mut c_void;
        free = c"RedisModule_Free": unsafe extern "C" fn(*mut c_void);
        log = c"RedisModule_Log": unsafe extern "C" fn(*mut Ctx, *const c_char, *const c_char, ...);
        get_random_bytes = c"RedisModule_GetRandomBytes": unsafe extern "C" fn(*mut c_uchar, usize);
        milliseconds = c"RedisModule_Milliseconds": unsafe extern "C" fn() -> c_longlong;
        create_string = c"RedisModule_CreateString": unsafe extern "C" fn(*mut Ctx, *const c_char, usize) -> *mut Text;
        free_string = c"RedisModule_FreeString": unsafe extern "C" fn(*mut Ctx, *mut Text);
        get_context_from_io = c"RedisModule_GetContextFromIO": unsafe extern "C" fn(*mut Io) -> *mut Ctx;
        get_context_flags = c"RedisModule_GetContextFlags": unsafe extern "C" fn(*mut Ctx) -> c_int;
        string_ptr_len = c"RedisModule_StringPtrLen": unsafe extern "C" fn(*const Text, *mut usize) -> *const c_char;
        wrong_arity = c"RedisModule_WrongArity": unsafe extern "C" fn(*mut Ctx) -> c_int;
        is_keys_position_request = c"RedisModule_IsKeysPositionRequest": unsafe extern "C" fn(*mut Ctx) -> c_int;
        key_at_pos = c"RedisModule_KeyAtPos": unsafe extern "C" fn(*mut Ctx, c_int);
        reply_with_long_long = c"RedisModule_ReplyWithLongLong": unsafe extern "C" fn(*mut Ctx, c_longlong) -> c_int;
        reply_with_double = c"RedisModule_ReplyWithDouble": unsafe extern "C" fn(*mut Ctx, c_double) -> c_int;
        reply_with_error = c"RedisModule_ReplyWithError": unsafe extern "C" fn(*mut Ctx, *const c_char) -> c_int;
        reply_with_simple_string = c"RedisModule_ReplyWithSimpleString": unsafe extern "C" fn(*mut Ctx, *const c_char) -> c_int;
        reply_with_string_buffer = c"RedisModule_ReplyWithStringBuffer": unsafe extern "C" fn(*mut Ctx, *const c_char, usize) -> c_int;
        reply_with_array = c"RedisModule_ReplyWithArray": unsafe extern "C" fn(*mut Ctx, c_long) -> c_int;
        reply_with_null = c"RedisModule_ReplyWithNull": unsafe extern "C" fn(*mut Ctx) -> c_int;
        open_key = c"RedisModule_OpenKey": unsafe extern "C" fn(*mut Ctx, *mut Text, c_int) -> *mut KeyHandle;
        close_key = c"RedisModule_CloseKey": unsafe extern "C" fn(*mut KeyHandle);
        key_type = c"RedisModule_KeyType": unsafe extern "C" fn(*mut KeyHandle) -> c_int;
        module_type_get_type = c"RedisModule_ModuleTypeGetType": unsafe extern "C" fn(*mut KeyHandle) -> *mut Type;
        module_type_get_value = c"RedisModule_ModuleTypeGetValue": unsafe extern "C" fn(*mut KeyHandle) -> *mut c_void;
        module_type_set_value = c"RedisModule_ModuleTypeSetValue": unsafe extern "C" fn(*mut KeyHandle, *mut Type, *mut c_void) -> c_int;
        replicate = c"RedisModule_Replicate": unsafe extern "C" fn(*mut Ctx, *const c_char, *const c_char, ...) -> c_int;
        replicate_verbatim = c"RedisModule_ReplicateVerbatim": unsafe extern "C" fn(*mut Ctx) -> c_int;
        notify_keyspace_event = c"RedisModule_NotifyKeyspaceEvent": unsafe extern "C" fn(*mut Ctx, c_int, *const c_char, *mut Text) -> c_int;
        save_unsigned = c"RedisModule_SaveUnsigned": unsafe extern "C" fn(*mut Io, u64);
        load_unsigned = c"RedisModule_LoadUnsigned": unsafe extern "C" fn(*mut Io) -> u64;
        save_string_buffer = c"RedisModule_SaveStringBuffer": unsafe extern "C" fn(*mut Io, *const c_char, usize);
        load_string_buffer = c"RedisModule_LoadStringBuffer": unsafe extern "C" fn(*mut Io, *mut usize) -> *mut c_char;
        is_io_error = c"RedisModule_IsIOError": unsafe extern "C" fn(*mut Io) -> c_int;
        log_io_error = c"RedisModule_LogIOError": unsafe extern "C" fn(*mut Io, *const c_char, *const c_char, ...);
        emit_aof = c"RedisModule_EmitAOF": unsafe extern "C" fn(*mut Io, *const c_char, *const c_char, ...);
        digest_add_string_buffer = c"RedisModule_DigestAddStringBuffer": unsafe extern "C" fn(*mut DigestCtx, *const c_char, usize);
        digest_end_sequence = c"RedisModule_DigestEndSequence": unsafe extern "C" fn(*mut DigestCtx);
        register_info_func = c"RedisModule_RegisterInfoFunc": unsafe extern "C" fn(*mut Ctx, unsafe extern "C" fn(*mut InfoCtx, c_int)) -> c_int;
        info_add_section = c"RedisModule_InfoAddSection": unsafe extern "C" fn(*mut InfoCtx, *const c_char) -> c_int;
        info_add_field_u64 = c"RedisModule_InfoAddFieldULongLong": unsafe extern "C" fn(*mut InfoCtx, *const c_char, c_ulonglong) -> c_int;
    }
    optional {
        // In servers that can move memory.
        defrag_alloc = c"RedisModule_DefragAlloc": unsafe extern "C" fn(*mut DefragCtx, *mut c_void) -> *mut c_void;
        // Since 7.0.
        try_alloc = c"RedisModule_TryAlloc": unsafe extern "C" fn(usize) -> *mut c_void;
        reply_with_map = c"RedisModule_ReplyWithMap": unsafe extern "C" fn(*mut Ctx, c_long) -> c_int;
        reply_with_bool = c"RedisModule_ReplyWithBool": unsafe extern "C" fn(*mut Ctx, c_int) -> c_int;
        get_command = c"RedisModule_GetCommand": unsafe extern "C" fn(*mut Ctx, *const c_char) -> *mut c_void;
        set_command_info = c"RedisModule_SetCommandInfo": unsafe extern "C" fn(*mut c_void, *const CommandInfo) -> c_int;
        // Since 7.4, and in Valkey.
        try_calloc = c"RedisModule_TryCalloc": unsafe extern "C" fn(usize, usize) -> *mut c_void;
        add_acl_category = c"RedisModule_AddACLCategory": unsafe extern "C" fn(*mut Ctx, *const c_char) -> c_int;
        set_command_acl_categories = c"RedisModule_SetCommandACLCategories": unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;
    }
}

// Only addresses of functions, which any thread may call.
static API: OnceLock<Api> = OnceLock::new();

/// Returns the functions of the server, or `None` if no server has loaded the module, as in unit
/// tests.
pub fn loaded() -> Option<&'static Api> {
    API.get()
}

/// Returns the functions of the server.
///
/// # Panics
///
/// If no server has loaded the module.
pub fn api() -> &'static Api {
    API.get().expect("only a server calls this")
}

/// Looks up the functions of the server and returns whether it has all required ones. Nothing may
/// be allocated before, since memory comes from the server too.
///
/// # Safety
///
/// The context must be the one that the server loads the module with.
pub unsafe fn load(ctx: *mut Ctx) -> bool {
    // SAFETY: promised by the caller.
    match unsafe { Api::find(ctx) } {
        Some(api) => API.set(api).is_ok() || API.get().is_some(),
        None => false,
    }
}
