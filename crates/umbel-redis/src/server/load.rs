//! Loading the module: its name, its types, its commands and its section of `INFO`.

use super::command::CommandSpec;
use super::context::Text;
use super::raw::{self, Ctx, InfoCtx};
use super::value::{Value, register};
use crate::error::{self, Error};
use std::ffi::{CStr, CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A module that is being loaded.
pub struct Loading(*mut Ctx);

impl Loading {
    /// Registers a type of values.
    pub fn register_type<V: Value>(&self) -> error::Result<()> {
        // SAFETY: the module is being loaded.
        let registered = unsafe { register::<V>(self.0) };
        if registered {
            Ok(())
        } else {
            Err(Error::Refused { what: format!("the type {:?} is refused", V::NAME) })
        }
    }

    /// Registers a command.
    pub fn register_command(&self, command: &CommandSpec) -> error::Result<()> {
        // SAFETY: the module is being loaded.
        unsafe { command.register(self.0) }
    }

    /// Adds an ACL category, if the server supports categories of modules.
    pub fn add_acl_category(&self, name: &CStr) {
        if let Some(add) = raw::api().add_acl_category {
            // SAFETY: the module is being loaded. The call fails if the category exists, which does
            // no harm.
            unsafe { add(self.0, name.as_ptr()) };
        }
    }

    /// Writes a line into the server's log.
    pub fn log(&self, level: &CStr, line: &str) {
        let line = CString::new(line).unwrap_or_default();
        // SAFETY: the module is being loaded; the format matches the argument.
        unsafe { (raw::api().log)(self.0, level.as_ptr(), c"%s".as_ptr(), line.as_ptr()) };
    }

    /// Registers the section of `INFO`.
    pub fn register_info(&self, fields: InfoFields) {
        // The server calls a plain function without data, so the fields are global.
        INFO_FIELDS.get_or_init(|| fields);
        // SAFETY: the module is being loaded.
        unsafe { (raw::api().register_info_func)(self.0, write_info) };
    }
}

/// Returns the fields of the module in `INFO`.
type InfoFields = fn() -> Vec<(&'static CStr, u64)>;

static INFO_FIELDS: std::sync::OnceLock<InfoFields> = std::sync::OnceLock::new();

unsafe extern "C" fn write_info(info: *mut InfoCtx, for_crash_report: c_int) {
    // A server that has crashed may be in the middle of an allocation.
    let Some(fields) = INFO_FIELDS.get().filter(|_| for_crash_report == 0) else { return };
    let fields = catch_unwind(fields).unwrap_or_default();
    let api = raw::api();
    // SAFETY: the server lends the context for this call.
    unsafe {
        if (api.info_add_section)(info, c"".as_ptr()) == raw::OK {
            for (name, number) in fields {
                (api.info_add_field_u64)(info, name.as_ptr(), number);
            }
        }
    }
}

/// Returns random bytes from the server.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the server writes N bytes.
    unsafe { (raw::api().get_random_bytes)(bytes.as_mut_ptr(), N) };
    bytes
}

/// Loads the module: finds the server's functions, then calls `load` to register types and
/// commands.
///
/// # Safety
///
/// Only the server may call it, with the arguments of `RedisModule_OnLoad`.
pub unsafe fn on_load(
    ctx: *mut Ctx,
    argv: *mut *mut raw::Text,
    argc: c_int,
    (name, version): (&CStr, c_int),
    load: fn(&Loading, &[Text]) -> error::Result<()>,
) -> c_int {
    // SAFETY: promised by the caller. Nothing has been allocated before.
    if !unsafe { raw::load(ctx) } {
        return raw::ERR;
    }
    let api = raw::api();
    // SAFETY: the module is being loaded.
    unsafe {
        if (api.is_module_name_busy)(name.as_ptr()) != 0 {
            return raw::ERR;
        }
        (api.set_module_attribs)(ctx, name.as_ptr(), version, 1);
        (api.set_module_options)(ctx, raw::MODULE_OPTIONS);
    }
    let arguments = match argc {
        0 => &[],
        // SAFETY: the server passes `argc` strings.
        _ => unsafe { std::slice::from_raw_parts(argv.cast::<Text>(), argc as usize) },
    };
    let loading = Loading(ctx);
    let loaded = catch_unwind(AssertUnwindSafe(|| load(&loading, arguments)));
    match loaded.unwrap_or(Err(Error::Panicked)) {
        Ok(()) => raw::OK,
        Err(error) => {
            loading.log(c"warning", &format!("umbel: {error:#}"));
            raw::ERR
        }
    }
}
