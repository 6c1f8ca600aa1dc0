//! `umbel count answer`: answers questions of `umbel count ask`.

use crate::args::{headings, number};
use crate::filters::{MessageTarget, load_public, read_message, read_universe};
use crate::input::LineLimit;
use crate::report::count;
use crate::terminal::output;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel::space_code::private::{Answer, Message, PublicShape};

/// Answer a question for counts that does not say which key is meant.
///
/// A question names a class of keys. The answer has the counts of all keys in it: of those that the
/// question lists, or if it lists none, of those in your own list, --universe. Those who asked can
/// read the count of any key among them that they know. The command reports the number of keys.
///
/// With --shape, the command writes the facts that others need for a question: the seed of the hash
/// and the number of keys.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel count answer --shape hosts.umbel -o shape
  umbel count answer hosts.umbel question -o answer")]
pub struct Args {
    /// Multiset to answer from
    #[arg(value_name = "MULTISET")]
    counts: PathBuf,

    /// Question to answer, as `umbel count ask -o` writes it
    #[arg(value_name = "QUESTION", required_unless_present = "shape", conflicts_with = "shape")]
    question: Option<PathBuf>,

    /// Write the shape of the multiset, from which others make questions
    #[arg(long, help_heading = headings::OUTPUT)]
    shape: bool,

    /// List of the keys that exist, one per line, for a question that lists none
    #[arg(long, value_name = "LIST", conflicts_with = "shape", help_heading = headings::KEYS)]
    universe: Option<PathBuf>,

    #[command(flatten)]
    max_line: LineLimit,

    /// Largest number of keys to answer for
    #[arg(
        long,
        value_name = "N",
        value_parser = number::count,
        default_value = "10000",
        help_heading = headings::OUTPUT
    )]
    max_keys: u64,

    #[command(flatten)]
    target: MessageTarget,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let inputs = [&args.counts].into_iter().chain(&args.question).chain(&args.universe);
    let Some(output) = args.target.check(inputs)? else { bail!("name a file for the message with -o") };
    let counts = load_public(&args.counts)?;
    let shape = PublicShape::from_counts(&counts)?;
    let Some(path) = &args.question else {
        args.target.save(output, &shape.into())?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(Message::Question(question)) = read_message(path)? else {
        bail!("{} is not a question: `umbel count ask -o` writes one", path.display())
    };
    let listed =
        args.universe.as_deref().map(|path| read_universe(path, &shape, args.max_line)).transpose()?;
    if question.digests().is_empty() && listed.is_none() {
        bail!(
            "{} names a class of keys and lists none: list the keys that you count with --universe, or hand out the \
             multiset itself, which `umbel count get` asks without a question",
            path.display()
        );
    }
    // Refuse a long list before anything is computed for it.
    args.check_keys(path, question.digests().len())?;
    let answer = Answer::new(&counts, &question, listed.as_ref(), u64::MAX)?;
    let keys = answer.keys();
    args.check_keys(path, keys)?;
    args.target.save(output, &answer.into())?;
    output::message(format_args!(
        "revealed: the counts of {}; the multiset has about {}",
        count(keys, "key"),
        shape.keys()
    ));
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Fails if a question asks for more keys than the limit.
    fn check_keys(&self, question: &Path, keys: usize) -> Result<()> {
        if keys as u64 > self.max_keys {
            bail!(
                "{} asks for {}, and an answer is limited to {}: --max-keys raises the limit, which reveals \
                 more counts",
                question.display(),
                count(keys, "key"),
                self.max_keys
            );
        }
        Ok(())
    }
}
