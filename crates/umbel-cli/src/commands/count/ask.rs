//! `umbel count ask`: asks for counts without revealing the keys.

use super::get;
use crate::args::{headings, number};
use crate::filters::{MessageTarget, load_public, read_message, read_universe};
use crate::input::LineLimit;
use crate::report::escaped;
use crate::terminal::exit::found;
use crate::terminal::output::{self, warn};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel::AnyCount;
use umbel::space_code::Multiplicity;
use umbel::space_code::private::{Answer, HashedKey, Message, PublicShape, Question, Universe};

/// Ask for counts without revealing which keys are meant.
///
/// FILE is a multiset, its shape, or an answer. Three steps lead to a count. From a shape, which the
/// keeper of the counts writes with `umbel count answer --shape`, `ask -o` makes a question. The
/// keeper answers it with `umbel count answer`. From the answer, `ask` prints the counts that
/// `umbel count get` would print. From a multiset, all three steps are done at once. A question is
/// reported with the number of keys that fit it.
///
/// A question names a class of keys: those whose public hash starts with the same bits. At least N
/// keys are expected to be in it, and fewer than twice as many. One of the two sides lists the keys
/// that exist, with --universe. If it is the one that asks, the question lists the hashes of all
/// keys in the class; otherwise it is the class alone. The class of a key is always the same, so
/// asking again reveals nothing more. The exit code is 0 if a key may have been recorded, 1 if none
/// was.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel count ask --cover 1000 hosts.umbel 192.0.2.7
  umbel count ask --cover 50 --universe hosts.txt shape 192.0.2.7 -o question
  umbel count ask answer 192.0.2.7")]
pub struct Args {
    /// Multiset, its shape, or the answer to a question
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Keys to ask for
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,

    /// Hide each key among about N keys
    #[arg(long, value_name = "N", value_parser = number::count, help_heading = headings::KEYS)]
    cover: Option<u64>,

    /// List of the keys that exist, one per line, among which to hide the keys
    #[arg(long, value_name = "LIST", help_heading = headings::KEYS)]
    universe: Option<PathBuf>,

    #[command(flatten)]
    max_line: LineLimit,

    #[command(flatten)]
    target: MessageTarget,

    #[command(flatten)]
    estimator: get::EstimatorArg,

    /// Print the counts and what the question reveals as JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let output = args.target.check([&args.file].into_iter().chain(&args.universe))?;
    let counts = match read_message(&args.file)? {
        Some(Message::Answer(answer)) => {
            if output.is_some() || args.cover.is_some() || args.universe.is_some() {
                bail!("{} is an answer: give it keys alone, to print their counts", args.file.display());
            }
            return args.print(&answer, None);
        }
        Some(Message::Question(_)) => bail!(
            "{} is a question: the keeper of the counts answers it with `umbel count answer`",
            args.file.display()
        ),
        Some(Message::Shape(shape)) => {
            let Some(path) = output else {
                bail!(
                    "{} is a shape, from which a question is made: name a file for it with -o",
                    args.file.display()
                )
            };
            return args.save(path, &Asked::new(args, shape)?);
        }
        None => load_public(&args.file)?,
    };
    let asked = Asked::new(args, PublicShape::from_counts(&counts)?)?;
    match output {
        Some(path) => args.save(path, &asked),
        None => args.print(&asked.answer(&counts)?, Some(&asked)),
    }
}

impl Args {
    /// Writes the question, and prints what it reveals.
    fn save(&self, path: &Path, asked: &Asked) -> Result<ExitCode> {
        self.target.save(path, &asked.question.clone().into())?;
        if self.json {
            output::json(&json!({ "revealed": asked.to_json() }))?;
        } else {
            asked.report();
        }
        asked.warn_of_cover(self);
        Ok(ExitCode::SUCCESS)
    }

    /// Prints the counts of the keys that the answer has, and what the question revealed.
    fn print(&self, answer: &Answer, asked: Option<&Asked>) -> Result<ExitCode> {
        let estimator = self.estimator.estimator;
        let counts: Vec<(&[u8], Option<Multiplicity>)> = self
            .keys
            .iter()
            .map(|key| (key.as_bytes(), answer.estimate(key.as_bytes(), estimator)))
            .collect();
        if self.json {
            let counts: Vec<Value> = counts.iter().map(|(key, count)| to_json(key, count.as_ref())).collect();
            output::json(&json!({ "counts": counts, "revealed": asked.map(Asked::to_json) }))?;
        } else {
            let mut lines = Vec::new();
            for (key, count) in &counts {
                if let Some(count) = count {
                    lines.extend_from_slice(key);
                    lines.push(b'\t');
                    get::print_count(count, &mut lines);
                    lines.push(b'\n');
                }
            }
            output::bytes(&lines)?;
            if let Some(asked) = asked {
                asked.report();
            }
        }
        if let Some(asked) = asked {
            asked.warn_of_cover(self);
        }
        for (key, _) in counts.iter().filter(|(_, count)| count.is_none()) {
            warn(format_args!(
                "{} is not in the answer: the question was for other keys, or the keeper's list lacks this one",
                escaped(key)
            ));
        }
        Ok(found(counts.iter().any(|(_, count)| count.is_some_and(|count| !get::never(&count)))))
    }
}

fn to_json(key: &[u8], count: Option<&Multiplicity>) -> Value {
    let Some(Multiplicity { value, low, high, saturated }) = count else {
        return json!({ "key": String::from_utf8_lossy(key), "count": null });
    };
    json!({
        "key": String::from_utf8_lossy(key), "count": value, "low": low,
        "high": high.is_finite().then_some(high), "saturated": saturated,
    })
}

/// A question, and the keys among which it hides.
struct Asked {
    question: Question,
    keys: Vec<HashedKey>,
    universe: Option<Universe>,
    /// The number of keys that are known to exist.
    of: u64,
}

impl Asked {
    fn new(args: &Args, shape: PublicShape) -> Result<Asked> {
        let cover =
            args.cover.context("say among how many keys to hide each key, for instance --cover 1000")?;
        let universe =
            args.universe.as_deref().map(|path| read_universe(path, &shape, args.max_line)).transpose()?;
        let keys: Vec<HashedKey> = args.keys.iter().map(|key| shape.hash_key(key.as_bytes())).collect();
        if let (Some(universe), Some(path)) = (&universe, &args.universe)
            && let Some((key, _)) = args.keys.iter().zip(&keys).find(|(_, hash)| !universe.contains(**hash))
        {
            bail!(
                "{} is not in {}: it would stand out among the keys of the list; add it, and use the same list \
                 for every question",
                escaped(key.as_bytes()),
                path.display()
            );
        }
        let of = universe.as_ref().map_or(shape.keys(), |universe| universe.len() as u64);
        let question = Question::new(&shape, cover, &keys, universe.as_ref())?;
        Ok(Asked { question, keys, universe, of })
    }

    /// Returns the answer that the keeper of the counts would give. If no side lists the keys, the
    /// keys asked for stand for the keeper's list.
    fn answer(&self, counts: &AnyCount) -> Result<Answer> {
        let listed: Universe = self.keys.iter().copied().collect();
        Ok(Answer::new(counts, &self.question, Some(&listed), u64::MAX)?)
    }

    /// Reports how many keys fit the question.
    fn report(&self) {
        let (named, classes) = (self.question.classes(), 1u64 << self.question.class_bits());
        let of = self.of;
        let fit = match &self.universe {
            Some(_) => format!("{} of the {of} listed keys fit", self.question.digests().len()),
            None => format!("about {:.0} of {of} keys fit", self.question.expected_keys(of)),
        };
        output::message(match classes {
            1 => "revealed: nothing, since all keys are in one class".to_owned(),
            _ => format!("revealed: {named} of {classes} classes; {fit}"),
        });
    }

    /// Warns of a cover that the known keys cannot give.
    fn warn_of_cover(&self, args: &Args) {
        let of = self.of;
        if let Some(cover) = args.cover.filter(|cover| *cover > of) {
            warn(format_args!(
                "a cover of {cover} is more than the number of keys, of which {of} are known to exist; list all of them \
                 with --universe"
            ));
        }
    }

    fn to_json(&self) -> Value {
        let question = &self.question;
        json!({
            "classes": question.classes(), "class_bits": question.class_bits(), "keys": self.of,
            "expected": question.expected_keys(self.of),
            "listed": self.universe.as_ref().map(|_| question.digests().len()),
        })
    }
}
