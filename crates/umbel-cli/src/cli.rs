//! The commands, as clap sees them. Each declares its own options beside its code.

use crate::commands::{
    add, build, check, combine, compare, completions, convert, count, distinct, fold, grep, index, info, key,
    lab, man, map, meta, net, password, plan, proxy, pull, push, remove, shard, similar, spell, top, uniq,
    url, vault, why,
};
use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::fmt::Write;

/// Bloom filters from the shell: build one from lines, then ask it.
///
/// A filter answers "certainly not" or "probably yes" about membership, in a few bits per key. `umbel build` makes one
/// from the lines of a file or a pipe, `umbel check` prints the lines that may be in it, and other commands plan, describe
/// and combine filters. `umbel map` gives keys values, `umbel count` tells how often lines came, `umbel distinct` and `umbel top` summarise them, `umbel net` works on packets. Lines are bytes; a
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
#[command(defer = true)]
pub enum Command {
    Build(Box<build::Args>),
    Add(add::Args),
    Check(check::Args),
    Why(why::Args),
    Uniq(uniq::Args),
    Remove(remove::Args),
    Map(map::Args),
    Count(count::Args),
    Distinct(distinct::Args),
    Top(top::Args),
    Info(info::Args),
    Plan(plan::Args),
    Union(combine::UnionArgs),
    Intersect(combine::IntersectArgs),
    Compare(compare::Args),
    Convert(convert::Args),
    Fold(fold::Args),
    Meta(meta::Args),
    Key(key::Args),
    Index(index::Args),
    Grep(grep::Args),
    Password(password::Args),
    Url(url::Args),
    Vault(vault::Args),
    Spell(spell::Args),
    Similar(similar::Args),
    Net(net::Args),
    Proxy(proxy::Args),
    Push(push::Args),
    Pull(pull::Args),
    Shard(shard::Args),
    Lab(lab::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// How `umbel --help` arranges the commands: the main job first.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Filters", &["build", "add", "check", "why", "uniq", "remove", "info", "plan"]),
    ("Filters together", &["union", "intersect", "compare", "convert", "fold", "meta", "key"]),
    ("Values and counts", &["map", "count", "distinct", "top"]),
    ("Files and documents", &["index", "grep", "spell", "similar"]),
    ("Passwords, addresses, secrets", &["password", "url", "vault"]),
    ("Packets", &["net"]),
    ("Servers", &["proxy", "push", "pull", "shard"]),
    ("About umbel", &["lab", "completions", "man", "help"]),
];

impl Cli {
    /// Parses the command line; prints help or an error and exits if there is no command to run.
    pub fn read() -> Cli {
        // Building the options of every command takes a good part of a millisecond, so it is done only for help.
        let matches = Cli::command().try_get_matches().unwrap_or_else(|error| {
            let help = [ErrorKind::DisplayHelp, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
            if help.contains(&error.kind()) { Cli::grouped().get_matches() } else { error.exit() }
        });
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Returns the commands with help that shows them in groups, for which clap has no headings.
    fn grouped() -> clap::Command {
        let mut command = Cli::command();
        command.build();
        let style = styles();
        let (header, literal) = (style.get_header(), style.get_literal());
        let mut groups = String::new();
        for (title, names) in GROUPS {
            let _ = writeln!(groups, "{header}{title}:{header:#}");
            for name in names {
                if let Some(about) = command.find_subcommand(name).and_then(clap::Command::get_about) {
                    let _ = writeln!(groups, "  {literal}{name:<12}{literal:#} {about}");
                }
            }
            groups.push('\n');
        }
        let template = format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\
             {header}Options:{header:#}\n{{options}}{{after-help}}"
        );
        command.help_template(template)
    }
}

fn styles() -> Styles {
    Styles::styled()
        .header(AnsiColor::Green.on_default().bold())
        .usage(AnsiColor::Green.on_default().bold())
        .literal(AnsiColor::Cyan.on_default().bold())
        .placeholder(AnsiColor::Cyan.on_default())
}
