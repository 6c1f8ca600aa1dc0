//! Bloom filters and their relatives inside Redis and Valkey.
//!
//! `libumbel_redis.so` is a module that a server loads: filters are then values under keys, which it replicates, shards,
//! persists and protects as all others. Clients of RedisBloom find its commands; see the README for what is new.
//!
//! | room | has |
//! | --- | --- |
//! | `server` | the border to the server, and all that is unsafe |
//! | `config` | what is settled when the module is loaded |
//! | `error` | the error type of loading, and of values in snapshots and streams |
//! | `kept` | how values go to snapshots, logs and clients, and come back |
//! | `bloom` | `BF.*` |
//! | `cuckoo` | `CF.*` |
//! | `sketch` | `CMS.*` |
//! | `top` | `TOPK.*` |
//! | `any` | `UMBEL.*`: every kind, and what can be done with several |
//! | `dump` | `SCANDUMP` and `LOADCHUNK` of all of them |

mod any;
mod bloom;
mod config;
mod cuckoo;
mod dump;
mod error;
mod persist;
mod server;
mod sketch;
mod top;

use error::Result;
use server::{Ctx, Loading, RawText, Text, memory};
use std::ffi::{CStr, c_int};

/// Adds everything that the module has.
fn load(loading: &Loading, arguments: &[Text]) -> Result<()> {
    config::load(loading, arguments)?;
    // Of the server, which counts it.
    umbel::memory::take_from_allocator();
    loading.value::<persist::Entry<bloom::Bloom>>()?;
    loading.value::<persist::Entry<cuckoo::Cuckoos>>()?;
    loading.value::<persist::Entry<any::Any>>()?;
    loading.value::<persist::Entry<sketch::Sketch>>()?;
    loading.value::<persist::Entry<top::Top>>()?;
    [c"bloom", c"cuckoo", c"cms", c"topk"].into_iter().for_each(|name| loading.category(name));
    let commands = [bloom::COMMANDS, cuckoo::COMMANDS, sketch::COMMANDS, top::COMMANDS, any::COMMANDS];
    commands.iter().flat_map(|commands| commands.iter()).try_for_each(|command| loading.command(command))?;
    loading.info(facts);
    Ok(())
}

/// What `INFO` tells.
fn facts() -> Vec<(&'static CStr, u64)> {
    vec![
        (c"values", server::values()),
        (c"filter_bytes", memory::used() as u64),
        (c"refused_for_memory", memory::refused()),
        (c"rejected_payloads", server::rejected()),
        (c"defrag_moved", memory::moved()),
    ]
}

/// Clients ask by this name for a module that has `BF.*`, and by this number for what it can do: as much as RedisBloom
/// 2.8.
const MODULE_VERSION: c_int = 20_800;

/// What the server calls to load the module.
///
/// # Safety
///
/// To be called by a server, with what it loads modules with.
#[unsafe(no_mangle)]
#[allow(unsafe_code, non_snake_case)]
pub unsafe extern "C" fn RedisModule_OnLoad(ctx: *mut Ctx, argv: *mut *mut RawText, argc: c_int) -> c_int {
    // SAFETY: the server calls this with what it loads modules with.
    unsafe { server::on_load(ctx, argv, argc, (c"bf", MODULE_VERSION), load) }
}
