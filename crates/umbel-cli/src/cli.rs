//! The commands, as clap sees them. Each declares its own options beside its code.

use crate::commands::{
    add, build, check, combine, compare, completions, convert, count, fold, info, key, lab, man, map, meta,
    net, plan, remove, uniq, why,
};
use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{Parser, Subcommand};

/// Bloom filters from the shell: build one from lines, then ask it.
///
/// A filter answers "certainly not" or "probably yes" about membership, in a few bits per key. `umbel build` makes one
/// from the lines of a file or a pipe, `umbel check` prints the lines that may be in it, and other commands plan, describe
/// and combine filters. `umbel map` gives keys values, `umbel count` tells how often lines came, `umbel net` works on packets. Lines are bytes; a
/// carriage return is part of the key unless --trim removes it.
#[derive(Parser)]
#[command(name = "umbel", version, arg_required_else_help = true, max_term_width = 110, styles = styles())]
#[command(after_help = "Exit codes: 0 done or something found, 1 nothing found, 2 something went wrong.\n\
    Numbers may be written as 1e6, 10M, 1%, 1/1000 or 64MiB.")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Build(Box<build::Args>),
    Add(add::Args),
    Check(check::Args),
    Why(why::Args),
    Uniq(uniq::Args),
    Remove(remove::Args),
    Map(map::Args),
    Count(count::Args),
    Info(info::Args),
    Plan(plan::Args),
    Union(combine::UnionArgs),
    Intersect(combine::IntersectArgs),
    Compare(compare::Args),
    Convert(convert::Args),
    Fold(fold::Args),
    Meta(meta::Args),
    Key(key::Args),
    Net(net::Args),
    Lab(lab::Args),
    Completions(completions::Args),
    Man(man::Args),
}

fn styles() -> Styles {
    Styles::styled()
        .header(AnsiColor::Green.on_default().bold())
        .usage(AnsiColor::Green.on_default().bold())
        .literal(AnsiColor::Cyan.on_default().bold())
        .placeholder(AnsiColor::Cyan.on_default())
}
