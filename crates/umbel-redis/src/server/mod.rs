//! The interface to the server, Redis or Valkey. All unsafe code of this crate is in this module.
//!
//! [`raw`] declares the server's functions, and [`memory`] allocates memory from it. The rest of
//! the crate sees safe types: a [`CommandSpec`] describes a command, whose handler gets a
//! [`Context`] and [`Arguments`], opens [keys](Context::read), and returns a [`Reply`] or a
//! [`Failure`]. A key holds a [`Value`], which can be saved and loaded. A panic ends the command,
//! not the server.

#![allow(unsafe_code)]

mod command;
mod context;
mod load;
pub mod memory;
mod raw;
mod reply;
mod value;

pub(crate) use command::command_table;
pub use command::{CommandSpec, Flag, Handler, Keys, entry_point};
pub use context::{AddCommand, Arguments, Context, Key, Text};
pub use load::{Loading, on_load, random};
pub use raw::{Ctx, Text as RawText};
pub use reply::{Failure, Reply, Result};
pub use value::{
    AofWriter, DebugDigest, RdbReader, RdbWriter, TypeHandle, Value, note_rejected, rejected, values,
};
