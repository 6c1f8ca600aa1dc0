//! The description of a command: everything the server knows about it before it is called.

use super::raw::{self, CommandInfo, Ctx, KeySpec};
use super::{Arguments, Context, Reply, Result, Text};
use crate::error::{self, Error};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{null, null_mut};

/// A command: one row of the module's table of commands.
#[derive(Clone, Copy)]
pub struct CommandSpec {
    /// The name, such as `BF.ADD`.
    pub name: &'static CStr,
    /// The number of arguments, including the name of the command; if negative, the minimum.
    pub arity: c_int,
    /// The arguments that are keys.
    pub keys: Keys,
    /// The properties of the command.
    pub flags: &'static [Flag],
    /// The ACL category of the command's family.
    pub family: &'static CStr,
    /// The purpose of the command, in a sentence.
    pub summary: &'static CStr,
    /// The function that the server calls.
    pub entry_point: raw::Command,
}

/// A property of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The command may change the values of its keys.
    Write,
    /// The command only reads the values of its keys.
    ReadOnly,
    /// The command may allocate memory; a server beyond `maxmemory` refuses it.
    DenyOom,
    /// The time of the command does not grow with its arguments.
    Fast,
    /// The command hands out the contents of its keys.
    Export,
}

/// The handler of a command, as a type: the server calls a plain function, and the compiler makes
/// one for each type.
pub trait Handler {
    /// Runs the command.
    fn run(context: &Context, arguments: Arguments<'_>) -> Result<Reply>;
}

/// The entry point of the command with this handler.
///
/// # Safety
///
/// Only the server may call it, with the arguments of a command.
pub unsafe extern "C" fn entry_point<H: Handler>(
    ctx: *mut Ctx,
    argv: *mut *mut raw::Text,
    argc: c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { super::context::call::<H>(ctx, argv, argc) }
}

/// Makes a table of commands. Each block has the ACL category of a family and its commands: name,
/// arity, keys, flags, handler and summary.
macro_rules! command_table {
    ($($family:literal {
        $($name:literal $arity:literal $keys:ident [$($flag:ident)*] $handler:path, $summary:literal;)*
    })*) => {
        &[$($({
            struct Command;
            impl $crate::server::Handler for Command {
                fn run(
                    context: &$crate::server::Context,
                    arguments: $crate::server::Arguments<'_>,
                ) -> $crate::server::Result<$crate::server::Reply> {
                    $handler(context, arguments)
                }
            }
            $crate::server::CommandSpec {
                name: $name,
                arity: $arity,
                keys: $crate::server::Keys::$keys,
                flags: &[$($crate::server::Flag::$flag),*],
                family: $family,
                summary: $summary,
                entry_point: $crate::server::entry_point::<Command>,
            }
        },)*)*]
    };
}
pub(crate) use command_table;

impl CommandSpec {
    fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Returns the flags as the server spells them.
    pub fn flag_words(&self) -> String {
        let word = |flag: &Flag| match flag {
            Flag::Write => Some("write"),
            Flag::ReadOnly => Some("readonly"),
            Flag::DenyOom => Some("deny-oom"),
            Flag::Fast => Some("fast"),
            // It only has an ACL category.
            Flag::Export => None,
        };
        let get_keys = (self.keys == Keys::Counted).then_some("getkeys-api");
        self.flags.iter().filter_map(word).chain(get_keys).collect::<Vec<_>>().join(" ")
    }

    /// Returns the ACL categories, which follow from the flags and the family.
    pub fn acl_categories(&self) -> String {
        let access = if self.has(Flag::Write) { "write" } else { "read" };
        let speed = if self.has(Flag::Fast) { "fast" } else { "slow" };
        let danger = if self.has(Flag::Export) { " dangerous" } else { "" };
        format!("{access} {speed} {}{danger}", self.family.to_string_lossy())
    }

    /// Registers the command.
    ///
    /// # Safety
    ///
    /// The context must be the one that the server loads the module with.
    pub(super) unsafe fn register(&self, ctx: *mut Ctx) -> error::Result<()> {
        let (api, name, [first, last, step]) = (raw::api(), self.name, self.keys.positions());
        let flags = c_string(self.flag_words());
        // SAFETY: promised by the caller; the strings are copied.
        let created = unsafe {
            (api.create_command)(ctx, name.as_ptr(), self.entry_point, flags.as_ptr(), first, last, step)
        };
        if created != raw::OK {
            let what = format!("the command {name:?} is refused: another module may have it");
            return Err(Error::Refused { what });
        }
        let Some(get) = api.get_command else { return Ok(()) };
        // SAFETY: promised by the caller.
        let command = unsafe { get(ctx, name.as_ptr()) };
        if command.is_null() {
            return Ok(());
        }
        if let Some(set) = api.set_command_acl_categories {
            let categories = c_string(self.acl_categories());
            // SAFETY: the command was just created.
            unsafe { set(command, categories.as_ptr()) };
        }
        self.describe(command)
    }

    /// Passes the arity, the summary and the use of each key to the server. ACL rules for read
    /// access need the uses.
    fn describe(&self, command: *mut c_void) -> error::Result<()> {
        let Some(set_info) = raw::api().set_command_info else { return Ok(()) };
        let mut specs =
            self.keys.specs(if self.has(Flag::ReadOnly) { raw::KEY_READ } else { raw::KEY_CHANGE });
        // SAFETY: all-zero is valid, and ends the list.
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
        // SAFETY: the command was just created, and the server copies everything.
        match unsafe { set_info(command, &info) } {
            raw::OK => Ok(()),
            _ => Err(Error::Refused { what: format!("the description of {:?} is refused", self.name) }),
        }
    }
}

/// Text without zero bytes, such as the words of flags.
fn c_string(text: String) -> CString {
    CString::new(text).unwrap_or_default()
}

/// The arguments of a command that are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// The first.
    One,
    /// The first two.
    Two,
    /// All.
    All,
    /// All; the others are added to the first.
    IntoFirst,
    /// All; a result of the others replaces the first.
    OverFirst,
    /// The first, and those behind the second, which is their number; a result of these replaces
    /// the first. Servers before 7.0 call the command to get their positions.
    Counted,
}

/// Returns the positions of [`Keys::Counted`], where 0 is the name of the command.
pub(super) fn counted_key_positions(mut arguments: Arguments<'_>) -> Vec<usize> {
    let mut positions = vec![1];
    let count = arguments.next_arg().and_then(|_| arguments.next_arg()).ok();
    let count = count.and_then(|count| count.parse::<usize>()).unwrap_or(0);
    let left = arguments.rest().map_or(0, <[Text]>::len);
    positions.extend(3..3 + count.min(left));
    positions
}

impl Keys {
    /// Returns the first position, the last position and the step, for servers before 7.0.
    fn positions(self) -> [c_int; 3] {
        match self {
            Keys::One | Keys::Counted => [1, 1, 1],
            Keys::Two => [1, 2, 1],
            Keys::All | Keys::IntoFirst | Keys::OverFirst => [1, -1, 1],
        }
    }

    /// Returns the uses of the keys; `flags` is the use of all keys that do not have another one
    /// here.
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
