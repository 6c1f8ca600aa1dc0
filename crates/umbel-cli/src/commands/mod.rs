//! One file per command: its options and its steps. Code that commands share is in other folders.

pub mod add;
pub mod build;
pub mod check;
pub mod combine;
pub mod compare;
pub mod completions;
pub mod convert;
pub mod count;
pub mod distinct;
pub mod explore;
pub mod fold;
pub mod grep;
pub mod hyphenate;
pub mod index;
pub mod info;
pub mod key;
pub mod lab;
pub mod man;
pub mod map;
pub mod meta;
pub mod net;
pub mod parquet;
pub mod password;
pub mod plan;
pub mod proxy;
pub mod pull;
pub mod push;
pub mod remove;
pub mod resize;
pub mod shard;
pub mod similar;
pub mod spell;
pub mod table;
pub mod top;
pub mod uniq;
pub mod url;
pub mod vault;
pub mod why;

use crate::cli::Command;
use anyhow::Result;
use std::process::ExitCode;

pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Build(args) => build::run(&args),
        Command::Add(args) => add::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Uniq(args) => uniq::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Map(args) => map::run(&args),
        Command::Table(args) => table::run(&args),
        Command::Index(args) => index::run(&args),
        Command::Grep(args) => grep::run(&args),
        Command::Parquet(args) => parquet::run(&args),
        Command::Password(args) => password::run(&args),
        Command::Url(args) => url::run(&args),
        Command::Vault(args) => vault::run(&args),
        Command::Spell(args) => spell::run(&args),
        Command::Hyphenate(args) => hyphenate::run(&args),
        Command::Similar(args) => similar::run(&args),
        Command::Net(args) => net::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Count(args) => count::run(&args),
        Command::Distinct(args) => distinct::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Explore(args) => explore::run(&args),
        Command::Union(args) => combine::union(&args),
        Command::Intersect(args) => combine::intersect(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Fold(args) => fold::run(&args),
        Command::Resize(args) => resize::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Push(args) => push::run(&args),
        Command::Pull(args) => pull::run(&args),
        Command::Shard(args) => shard::run(&args),
        Command::Meta(args) => meta::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
