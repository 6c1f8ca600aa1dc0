//! How a module comes to be: its name, its types, its commands, and what `INFO` tells of it.

use super::context::{Text, call};
use super::raw::{self, Command, CommandInfo, Ctx, InfoCtx, KeySpec};
use super::value::{Value, register};
use super::{Arguments, Context, Reply, Result};
use crate::error::{self, Error};
use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};

/// A module that is being loaded.
pub struct Loading(*mut Ctx);

impl Loading {
    /// Adds a type of values.
    pub fn value<V: Value>(&self) -> error::Result<()> {
        // SAFETY: the module is being loaded.
        let done = unsafe { register::<V>(self.0) };
        if done { Ok(()) } else { Err(Error::Refused { what: format!("the type {:?} is refused", V::NAME) }) }
    }

    /// Adds a command, which the server calls by a function of its own; see [`command!`](crate::command).
    pub fn command(&self, declared: &Declared) -> error::Result<()> {
        let Declared { name, flags, keys, category, call, .. } = *declared;
        let (api, [first, last, step]) = (raw::api(), keys.positions());
        // SAFETY: the module is being loaded, and the function is one of a command.
        let done =
            unsafe { (api.create_command)(self.0, name.as_ptr(), call, flags.as_ptr(), first, last, step) };
        if done != raw::OK {
            let what = format!("the command {name:?} is refused: another module may have it");
            return Err(Error::Refused { what });
        }
        let Some(get) = api.get_command else { return Ok(()) };
        // SAFETY: the module is being loaded.
        let command = unsafe { get(self.0, name.as_ptr()) };
        if command.is_null() {
            return Ok(());
        }
        if let Some(set) = api.set_command_acl_categories {
            // SAFETY: the command was just added.
            unsafe { set(command, category.as_ptr()) };
        }
        declared.describe(command)
    }

    /// Adds a category of commands, where the server has such.
    pub fn category(&self, name: &CStr) {
        if let Some(add) = raw::api().add_acl_category {
            // SAFETY: the module is being loaded. One that is there already serves as well.
            unsafe { add(self.0, name.as_ptr()) };
        }
    }

    /// Writes a line into the server's log.
    pub fn log(&self, level: &CStr, line: &str) {
        let line = CString::new(line).unwrap_or_default();
        // SAFETY: the module is being loaded; the format asks for what follows.
        unsafe { (raw::api().log)(self.0, level.as_ptr(), c"%s".as_ptr(), line.as_ptr()) };
    }

    /// Adds what `INFO` tells: names and numbers.
    pub fn info(&self, facts: Facts) {
        // The server calls a function, and there is one module.
        FACTS.get_or_init(|| facts);
        // SAFETY: the module is being loaded.
        unsafe { (raw::api().register_info_func)(self.0, tell) };
    }
}

/// What there is to tell: names and numbers.
type Facts = fn() -> Vec<(&'static CStr, u64)>;

static FACTS: std::sync::OnceLock<Facts> = std::sync::OnceLock::new();

unsafe extern "C" fn tell(info: *mut InfoCtx, crashed: c_int) {
    // A server that has crashed may be in the midst of an allocation.
    let Some(facts) = FACTS.get().filter(|_| crashed == 0) else { return };
    let facts = catch_unwind(facts).unwrap_or_default();
    let api = raw::api();
    // SAFETY: the server lends it for this call.
    unsafe {
        if (api.info_add_section)(info, c"".as_ptr()) == raw::OK {
            for (name, number) in facts {
                (api.info_add_field_u64)(info, name.as_ptr(), number);
            }
        }
    }
}

/// Random bytes, from the server.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: so many bytes are written.
    unsafe { (raw::api().get_random_bytes)(bytes.as_mut_ptr(), N) };
    bytes
}

/// A command as it is declared.
#[derive(Clone, Copy)]
pub struct Declared {
    /// Its name.
    pub name: &'static CStr,
    /// What the server should know of it.
    pub flags: &'static CStr,
    /// How many arguments it takes, with its name; at least so many if this is below 0.
    pub arity: c_int,
    /// Which arguments are keys.
    pub keys: Keys,
    /// To which categories of commands it belongs.
    pub category: &'static CStr,
    /// What it does, in a sentence.
    pub summary: &'static CStr,
    /// What the server calls.
    call: Command,
}

/// A command as a type, for which there is a function that the server can call; see [`command!`](crate::command).
pub trait Run {
    /// What it does.
    fn run(context: &Context, arguments: Arguments<'_>) -> Result<Reply>;

    /// Which arguments are keys, counted from the name of the command on: for one that has declared `getkeys-api`.
    fn keys(_arguments: Arguments<'_>) -> Vec<usize> {
        Vec::new()
    }
}

impl Declared {
    /// Declares a command.
    pub const fn of<R: Run>(
        name: &'static CStr,
        arity: c_int,
        flags: &'static CStr,
        keys: Keys,
        category: &'static CStr,
        summary: &'static CStr,
    ) -> Declared {
        Declared { name, arity, flags, keys, category, summary, call: call_it::<R> }
    }

    /// Tells the server what it has to know besides: who may only read a key may run a command that only reads it.
    fn describe(&self, command: *mut c_void) -> error::Result<()> {
        let Some(set_info) = raw::api().set_command_info else { return Ok(()) };
        let reads = self.flags.to_bytes().starts_with(b"readonly");
        let mut specs = self.keys.specs(if reads { raw::KEY_READ } else { raw::KEY_CHANGE });
        // SAFETY: an empty one is all zero, which ends the list.
        specs.push(unsafe { std::mem::zeroed() });
        let info = CommandInfo {
            version: &raw::COMMAND_INFO_VERSION,
            summary: self.summary.as_ptr(),
            complexity: null(),
            since: null(),
            history: null_mut(),
            tips: null(),
            arity: self.arity,
            key_specs: specs.as_mut_ptr(),
            args: null_mut(),
        };
        // SAFETY: the command was just added, and all of this is copied.
        match unsafe { set_info(command, &info) } {
            raw::OK => Ok(()),
            _ => Err(Error::Refused { what: format!("the description of {:?} is refused", self.name) }),
        }
    }
}

/// Which arguments of a command are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// The first.
    One,
    /// The first two.
    Two,
    /// All.
    All,
    /// All: to the first, the others are added.
    IntoFirst,
    /// All: in place of the first comes something of the others.
    OverFirst,
    /// The first, in place of which something comes of the others, whose number is the second; the command says
    /// which those are, see [`Run::keys`].
    Counted,
}

impl Keys {
    /// The first, the last, and in steps of how many, as servers before 7.0 take it.
    fn positions(self) -> [c_int; 3] {
        match self {
            Keys::One | Keys::Counted => [1, 1, 1],
            Keys::Two => [1, 2, 1],
            Keys::All | Keys::IntoFirst | Keys::OverFirst => [1, -1, 1],
        }
    }

    /// What is done with which, if nothing else is said.
    fn specs(self, flags: u64) -> Vec<KeySpec> {
        match self {
            Keys::One => vec![KeySpec::range(1, 0, flags)],
            Keys::Two => vec![KeySpec::range(1, 1, flags)],
            Keys::All => vec![KeySpec::range(1, -1, flags)],
            Keys::IntoFirst => {
                vec![KeySpec::range(1, 0, raw::KEY_CHANGE), KeySpec::range(2, -1, raw::KEY_READ)]
            }
            Keys::OverFirst => {
                vec![KeySpec::range(1, 0, raw::KEY_REPLACE), KeySpec::range(2, -1, raw::KEY_READ)]
            }
            Keys::Counted => {
                vec![KeySpec::range(1, 0, raw::KEY_REPLACE), KeySpec::counted(2, raw::KEY_READ)]
            }
        }
    }
}

unsafe extern "C" fn call_it<R: Run>(ctx: *mut Ctx, argv: *mut *mut raw::Text, argc: c_int) -> c_int {
    // SAFETY: the server calls this as it calls commands.
    unsafe { call::<R>(ctx, argv, argc) }
}

/// Declares a command: its name, how many arguments it takes, what the server should know of it, which arguments are
/// keys, the categories it belongs to, what it does, and the function that answers it.
#[macro_export]
macro_rules! command {
    (
        $name:literal, $arity:literal, $flags:literal, $keys:expr, $category:literal, $summary:literal, $run:expr
        $(, $which:expr)?
    ) => {{
        struct Command;
        impl $crate::server::Run for Command {
            fn run(
                context: &$crate::server::Context,
                arguments: $crate::server::Arguments<'_>,
            ) -> $crate::server::Result<$crate::server::Reply> {
                $run(context, arguments)
            }

            $(fn keys(arguments: $crate::server::Arguments<'_>) -> Vec<usize> {
                $which(arguments)
            })?
        }
        $crate::server::Declared::of::<Command>($name, $arity, $flags, $keys, $category, $summary)
    }};
}

/// Loads the module: finds the server's functions, then lets it add its types and commands.
///
/// # Safety
///
/// To be called by the server, with what it loads modules with.
pub unsafe fn on_load(
    ctx: *mut Ctx,
    argv: *mut *mut raw::Text,
    argc: c_int,
    (name, version): (&CStr, c_int),
    load: fn(&Loading, &[Text]) -> error::Result<()>,
) -> c_int {
    // SAFETY: promised by the caller. Nothing was allocated before.
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
        // SAFETY: the server gives as many strings as it says.
        _ => unsafe { std::slice::from_raw_parts(argv.cast::<Text>(), argc as usize) },
    };
    let loading = Loading(ctx);
    let done = catch_unwind(AssertUnwindSafe(|| load(&loading, arguments)));
    match done.unwrap_or(Err(Error::Panicked)) {
        Ok(()) => raw::OK,
        Err(error) => {
            loading.log(c"warning", &format!("umbel: {error:#}"));
            raw::ERR
        }
    }
}
