//! Bloom filters and their relatives inside Redis and Valkey.
//!
//! A server loads the module `libumbel_redis.so`. Filters are then values of keys, which the server
//! replicates, shards, persists and protects like all others. The module has the commands of
//! RedisBloom, with the same replies, and `UMBEL.*` for filters of every kind; the README lists
//! them.
//!
//! # The path of a command
//!
//! A client sends `BF.MADD key item...`:
//!
//! 1. The server looks up the command, which `commands` has registered, and calls its entry point.
//!    `server` wraps the raw pointers in a `Context` and `Arguments`, and catches panics.
//! 2. The handler in `bloom::commands` parses the arguments and calls `family::add_items`, which
//!    opens the key and creates the filter if it does not exist.
//! 3. `bloom::Bloom` hashes the items with the secret of the filter and inserts them, 64 at a time,
//!    into a filter of the library. If that has to grow, a budget limits the memory it allocates.
//! 4. `family` replicates the command, without items that were refused, and publishes a keyspace
//!    event. `server` sends the reply that the handler returns.
//!
//! A command that fails returns a `Failure`, which is sent as an error reply.
//!
//! # Modules
//!
//! | module | contents |
//! | --- | --- |
//! | `commands` | the table of all commands |
//! | `family` | the commands that `BF.*` and `CF.*` share |
//! | `bloom` | `BF.*` |
//! | `cuckoo` | `CF.*` |
//! | `sketch` | `CMS.*` |
//! | `top` | `TOPK.*` |
//! | `any` | `UMBEL.*`: filters of every kind, and operations on several of them |
//! | `dump` | `SCANDUMP` and `LOADCHUNK` of all types |
//! | `persist` | the streams of values in snapshots, append-only files and dumps |
//! | `config` | the arguments that the module is loaded with |
//! | `error` | the error type of loading, and of values in snapshots and streams |
//! | `server` | the interface to the server, and all unsafe code |

mod any;
mod bloom;
mod commands;
mod config;
mod cuckoo;
mod dump;
mod error;
mod family;
mod persist;
mod server;
mod sketch;
mod top;

use error::Result;
use persist::Entry;
use server::{Ctx, Loading, RawText, Text, memory};
use std::ffi::{CStr, c_int};

/// Registers the types and commands of the module.
fn load(loading: &Loading, arguments: &[Text]) -> Result<()> {
    config::load(loading, arguments)?;
    // Filters use the module's allocator, so that the server counts their memory.
    umbel::memory::take_from_allocator();
    loading.register_type::<Entry<bloom::BloomValue>>()?;
    loading.register_type::<Entry<cuckoo::CuckooValue>>()?;
    loading.register_type::<Entry<any::Any>>()?;
    loading.register_type::<Entry<sketch::Sketch>>()?;
    loading.register_type::<Entry<top::Top>>()?;
    commands::ACL_CATEGORIES.iter().for_each(|name| loading.add_acl_category(name));
    commands::COMMANDS.iter().try_for_each(|command| loading.register_command(command))?;
    loading.register_info(info_fields);
    Ok(())
}

/// Returns the fields of the module in `INFO`.
fn info_fields() -> Vec<(&'static CStr, u64)> {
    vec![
        (c"values", server::values()),
        (c"filter_bytes", memory::used() as u64),
        (c"refused_for_memory", memory::refused()),
        (c"rejected_payloads", server::rejected()),
        (c"defrag_moved", memory::moved()),
    ]
}

/// The name of RedisBloom, by which clients detect `BF.*`.
const MODULE_NAME: &CStr = c"bf";

/// The version of RedisBloom with the same features, 2.8, by which clients detect those.
const MODULE_VERSION: c_int = 20_800;

/// The entry point of the module.
///
/// # Safety
///
/// Only a server may call it, to load the module.
#[unsafe(no_mangle)]
#[allow(unsafe_code, non_snake_case)]
pub unsafe extern "C" fn RedisModule_OnLoad(ctx: *mut Ctx, argv: *mut *mut RawText, argc: c_int) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { server::on_load(ctx, argv, argc, (MODULE_NAME, MODULE_VERSION), load) }
}
