//! The commands, as clap sees them. Each command declares its options beside its code.

use crate::args::headings;
use crate::commands::{
    add, build, check, combine, compare, completions, convert, count, distinct, explore, fold, grep,
    hyphenate, index, info, key, lab, man, map, meta, net, parquet, password, plan, proxy, pull, push,
    remove, resize, shard, similar, spell, table, top, uniq, url, vault, why,
};
use crate::terminal::{escape, output, redact};
use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::fmt::Display;

/// Build Bloom filters from lines, and test other lines against them.
///
/// A filter answers "certainly not" or "probably yes" to the question whether a key is in a set,
/// and takes a few bits per key. `umbel build` makes a filter from the lines of files or a pipe,
/// and `umbel check` prints the lines that may be in it. Other commands plan, describe and combine
/// filters. `umbel map` and `umbel table` store values for keys, `umbel count` counts repeated
/// lines, `umbel distinct` and `umbel top` summarise lines, and `umbel net` works on packets. Lines
/// are bytes: a carriage return is part of the key unless --trim removes it.
#[derive(Parser)]
#[command(name = "umbel", version, arg_required_else_help = true, max_term_width = 110, styles = styles())]
#[command(after_help = "Numbers can be written as 1e6, 10M, 1%, 1/1000 or 64MiB.\n\
    Exit codes: 0 done or found, 1 nothing found, 2 an error occurred.")]
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
    Table(table::Args),
    Count(count::Args),
    Distinct(distinct::Args),
    Top(top::Args),
    Info(info::Args),
    Plan(plan::Args),
    Explore(explore::Args),
    Union(combine::UnionArgs),
    Intersect(combine::IntersectArgs),
    Compare(compare::Args),
    Convert(convert::Args),
    Fold(fold::Args),
    Resize(resize::Args),
    Meta(meta::Args),
    Key(key::Args),
    Index(index::Args),
    Grep(grep::Args),
    Parquet(parquet::Args),
    Password(password::Args),
    Url(url::Args),
    Vault(vault::Args),
    Spell(spell::Args),
    Hyphenate(hyphenate::Args),
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

/// The groups of commands in `umbel --help`, the main ones first.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Filters", &["build", "add", "check", "uniq", "remove", "why", "info", "plan", "explore"]),
    ("Several filters", &["union", "intersect", "compare", "fold", "resize", "convert", "meta", "key"]),
    ("Values and counts", &["map", "table", "count", "distinct", "top"]),
    ("Files and text", &["index", "grep", "parquet", "spell", "hyphenate", "similar"]),
    (
        "Security, networks and servers",
        &["password", "url", "vault", "net", "proxy", "push", "pull", "shard"],
    ),
    ("About umbel", &["lab", "completions", "man"]),
];

impl Cli {
    /// Parses the command line. Prints help or an error and exits if there is no command to run.
    pub fn read() -> Cli {
        // Building the options of every command takes a good part of a millisecond, so it is done
        // only for help.
        let matches = Cli::command().try_get_matches().unwrap_or_else(|error| {
            let help = [ErrorKind::DisplayHelp, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
            if help.contains(&error.kind()) {
                Cli::for_help().get_matches()
            } else if is_negative_number(&error) {
                exit(&about_negative_number().unwrap_or(error))
            } else {
                exit(&error)
            }
        });
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| exit(&error))
    }

    /// Returns the commands with the layout of their help.
    fn for_help() -> clap::Command {
        let mut command = Cli::command();
        command.build();
        let template = template(&command);
        command.help_template(template).mut_subcommands(with_help_last)
    }
}

/// Prints an error of clap, or the version, and exits. Errors repeat arguments: those with a password
/// or with control characters are printed without, and without styles.
fn exit(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    let shown = redact::passwords(&text);
    let is_unsafe = |argument: OsString| argument.to_string_lossy().contains(escape::is_unsafe);
    if error.use_stderr() && (shown != text || std::env::args_os().any(is_unsafe)) {
        output::message(shown.trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// Returns whether an argument was taken for an unknown option although it is a number.
fn is_negative_number(error: &clap::Error) -> bool {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return false };
    let number = argument.strip_prefix('-').unwrap_or_default();
    error.kind() == ErrorKind::UnknownArgument && number.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns the error of an option that refuses a negative number as its value. No option has a use
/// for one, but some take any text, such as the name of a file: these have no such error.
fn about_negative_number() -> Option<clap::Error> {
    let mut command = Cli::command();
    command.build();
    let error = with_hyphen_values(command).try_get_matches().err()?;
    (error.kind() == ErrorKind::ValueValidation).then_some(error)
}

/// Lets the options of a built command take values that start with a hyphen.
fn with_hyphen_values(command: clap::Command) -> clap::Command {
    let allow = |arg: clap::Arg| match arg.get_action().takes_values() && !arg.is_positional() {
        true => arg.allow_hyphen_values(true),
        false => arg,
    };
    command.mut_args(allow).mut_subcommands(with_hyphen_values)
}

/// Returns the help of umbel itself. clap has no headings for groups of commands, and prints
/// options on several lines.
fn template(command: &clap::Command) -> String {
    let style = styles();
    let (header, literal) = (style.get_header(), style.get_literal());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\n\n{{usage-heading}} {{usage}}\n\n");
    let line = |name: &str, about: &dyn Display| format!("  {literal}{name:<13}{literal:#}  {about}\n");
    for (title, names) in GROUPS {
        text += &format!("{header}{title}:{header:#}\n");
        for name in names {
            if let Some(about) = command.find_subcommand(name).and_then(clap::Command::get_about) {
                text += &line(name, about);
            }
        }
        text.push('\n');
    }
    // The options belong to the last group, about umbel itself.
    text.truncate(text.trim_end().len());
    text.push('\n');
    text += &line("-h, --help", &"Print this help, or that of a command; -V prints the version");
    text.trim_end().to_owned() + "{after-help}"
}

/// Moves `--help` below the other options of a built command, which are all in groups.
fn with_help_last(command: clap::Command) -> clap::Command {
    let move_help = |arg: clap::Arg| match arg.get_id() == "help" {
        true => arg.help_heading(headings::OPTIONS),
        false => arg,
    };
    command.mut_args(move_help).mut_subcommands(with_help_last)
}

fn styles() -> Styles {
    Styles::styled()
        .header(AnsiColor::Green.on_default().bold())
        .usage(AnsiColor::Green.on_default().bold())
        .literal(AnsiColor::Cyan.on_default().bold())
        .placeholder(AnsiColor::Cyan.on_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with each command and subcommand, and its name with spaces.
    fn for_each_command(check: &mut dyn FnMut(&str, &clap::Command)) {
        fn visit(name: &str, command: &clap::Command, check: &mut dyn FnMut(&str, &clap::Command)) {
            for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
                let name = format!("{name} {}", subcommand.get_name());
                check(name.trim_start(), subcommand);
                visit(&name, subcommand, check);
            }
        }
        visit("", &Cli::for_help(), check);
    }

    /// Returns the arguments of each `umbel` in a shell command, without redirections.
    fn invocations(line: &str) -> Vec<Vec<String>> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for char in line.chars() {
            let last = words.len() - 1;
            match (char, quote) {
                (char, Some(end)) if char == end => quote = None,
                (char, Some(_)) => words[last].push(char),
                ('\'' | '"', None) => quote = Some(char),
                ('#', None) if words[last].is_empty() => break,
                (' ', None) => words.push(String::new()),
                (char, None) => words[last].push(char),
            }
        }
        words.retain(|word| !word.is_empty());
        let commands = words.split(|word| matches!(&word[..], "|" | "||" | "&&"));
        let commands = commands.filter_map(|words| {
            let start = words.iter().position(|word| word == "umbel")?;
            let end = words.iter().position(|word| word == "<" || word == ">").unwrap_or(words.len());
            Some(words[start..end].to_vec())
        });
        commands.collect()
    }

    #[test]
    fn the_examples_of_every_command_parse() {
        for_each_command(&mut |name, command| {
            for help in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
                let help = help.to_string();
                let (_, examples) = help.split_once("Examples:\n").expect(name);
                let mut shows_itself = false;
                for line in examples.lines().take_while(|line| line.starts_with("  ")) {
                    assert!(line.len() <= 80, "{name}: longer than a line of a terminal: {line}");
                    let invocations = invocations(line);
                    assert!(!invocations.is_empty(), "{name}: {line}");
                    for arguments in invocations {
                        shows_itself |= arguments[1..].join(" ").starts_with(name);
                        if let Err(error) = Cli::command().try_get_matches_from(&arguments) {
                            panic!("{name}: {arguments:?}: {error}");
                        }
                    }
                }
                assert!(shows_itself, "no example of {name} is about {name}");
            }
            assert!(command.get_after_help().is_some(), "{name} has no examples");
        });
    }

    #[test]
    fn every_option_is_in_a_group() {
        let groups = [
            headings::FILTER,
            headings::KINDS,
            headings::MULTISETS,
            headings::FOREIGN,
            headings::KEYS,
            headings::SEARCH,
            headings::INPUT,
            headings::OUTPUT,
            headings::SECRETS,
            headings::SERVER,
            headings::CACHE,
            headings::PEERS,
            headings::CONNECTION,
            headings::TLS,
            headings::EXPERIMENT,
            headings::OPTIONS,
        ];
        for_each_command(&mut |name, command| {
            for arg in command.get_arguments() {
                match arg.get_help_heading() {
                    Some(heading) => assert!(groups.contains(&heading), "{name}: {heading}"),
                    None => assert!(arg.is_positional(), "{name}: {} is in no group", arg.get_id()),
                }
            }
        });
    }

    #[test]
    fn the_help_of_umbel_fits_a_screen() {
        let help = Cli::for_help().render_long_help().to_string();
        assert!(help.lines().count() <= 58, "{} lines", help.lines().count());
        for line in help.lines() {
            assert!(line.len() < 80, "{line}");
        }
    }
}
