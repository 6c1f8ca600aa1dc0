//! The border to the server, Redis or Valkey: all that is unsafe in this crate is in this room.
//!
//! Inside of it, [`raw`] finds the server's functions and [`memory`] takes memory from it. To the outside it gives a
//! [`Context`] to a command, with [`Arguments`] and the [keys](Context::read) they name; a command returns a [`Reply`] or
//! a [`Failure`]. What is kept under a key is a [`Value`], which says how it is written and read again. A panic ends the
//! command, not the server.

#![allow(unsafe_code)]

mod context;
mod load;
pub mod memory;
mod raw;
mod reply;
mod value;

pub use context::{Arguments, Context, Key, Text};
pub use load::{Declared, Keys, Loading, Run, on_load, random};
pub use raw::{Ctx, Text as RawText};
pub use reply::{Failure, Reply, Result};
pub use value::{
    AofWriter, DebugDigest, RdbReader, RdbWriter, TypeHandle, Value, note_rejected, rejected, values,
};
