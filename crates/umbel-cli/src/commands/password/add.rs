//! `umbel password add`: adds words to a filter of passwords.

use crate::args::headings;
use crate::documents::passphrases::HashMemoryArgs;
use crate::documents::word_lists;
use crate::filters::{LockArgs, Secrets, warn_if_overfull};
use crate::input::{check_not_output, is_stdin};
use crate::terminal::output::warn;
use anyhow::{Context, Result, bail};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use umbel::any::Stored;
use umbel::hash::Strength;
use umbel::key::Hashed;
use umbel::kind::Category;
use umbel::{AnyFilter, file};
use umbel_text::password::{Digester, List, Lists, Recipe};

/// Add words to a password filter, such as passwords that were used before.
///
/// Words are processed as they were when the filter was built. The file is replaced as a whole;
/// until then, and after any error, it is unchanged. Without a list, one word is prompted for on a
/// terminal without being shown; if standard input is not a terminal, words are read from it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel password add weak.umbel
  umbel password add weak.umbel company-words.txt")]
pub struct Args {
    /// Filter to add to
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Lists of words, or of hashes if the filter was built from hashes
    #[arg(value_name = "LIST")]
    lists: Vec<PathBuf>,

    /// Treat every line as a word, even if it looks like a hash
    #[arg(long, help_heading = headings::INPUT)]
    words: bool,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    max_memory: HashMemoryArgs,

    #[command(flatten)]
    lock: LockArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    // The error does not name it, since it may be a word that was given as an argument by mistake.
    if args.lists.iter().any(|list| !is_stdin(list) && !list.exists()) {
        bail!(
            "a list does not exist: words are not arguments, where others can see them; type them, or send them through a pipe"
        );
    }
    if !args.lists.is_empty() {
        check_not_output(&args.lists, &args.filter)?;
    }
    let name = args.filter.display();
    let lock = args.lock.lock(&args.filter)?;
    let loaded = args.secrets.or_beside(&args.filter).load(&args.filter, Category::Set)?;
    let options = loaded.options();
    let mut filter = AnyFilter::try_from(loaded.filter)?;
    let recipe = Recipe::from_meta_within(&options.meta, args.max_memory.bytes())
        .with_context(|| format!("cannot add to {name}"))?;
    if filter.hasher().id().strength == Strength::Fast {
        warn(format_args!(
            "{name} is not sealed: anyone who sees it before and after can find out which words were added"
        ));
    }
    let digester = Digester::new(recipe, filter.hasher().clone());
    let readers: Vec<_> = match args.lists[..] {
        [] => vec![("standard input".to_owned(), word_lists::open_stdin_or_prompt("Password to add")?)],
        _ => word_lists::open_lists(&args.lists, &Arc::default()).collect::<Result<_>>()?,
    };
    // A typed line is a word, even if it looks like a hash.
    let typed = args.lists.is_empty() && std::io::stdin().is_terminal();
    let list_format = (args.words || typed).then_some(Lists::Words);
    let mut total = 0;
    for (list, reader) in readers {
        let read = List::open(reader, list_format)
            .and_then(|list| list.read(&digester, 0, |digests| Ok(filter.insert_batch(&Hashed(&digests))?)));
        total += read.map_err(|error| word_lists::with_list_name(error, format!("cannot use {list}")))?;
    }
    if total == 0 {
        warn(format_args!("there were no words: {name} stays as it was"));
        return Ok(ExitCode::SUCCESS);
    }
    let filter = Stored::from(filter);
    file::save(&args.filter, &filter, &options)?;
    drop(lock);
    warn_if_overfull(&filter);
    Ok(ExitCode::SUCCESS)
}
