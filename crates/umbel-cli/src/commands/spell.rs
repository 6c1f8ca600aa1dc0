//! `umbel spell`: words that are in no dictionary.

use crate::args::number;
use crate::filters::Secrets;
use crate::input::{is_filter, is_stdin, name, open_bytes, plain_name};
use crate::report::{Rows, percent, printable, size};
use crate::system::signals;
use crate::terminal::exit::FAILED;
use crate::terminal::output::{self, Out};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use umbel::any::Stored;
use umbel::kind::Category;
use umbel_text::content::{self, Format};
use umbel_text::spelling::{Dictionary, LANGUAGES, Language, List, Suggestions, Word, each_word};

/// List the words of a text that are in no dictionary, with what may have been meant.
///
/// Every unknown word is a line: the file, the line, the character at which the word begins, both from 1, the word, and words
/// of the list that are one letter away. A character is a Unicode code point. Editors and compilers' tools know lines of this form.
///
/// The words of the dictionary are in a filter. What it does not know is certainly not in the dictionary, and a misspelling is missed with the
/// rate of the filter (-p). A word with a capital counts as known in small letters too, a word in capitals also with a capital, so
/// that such misspellings are missed twice and three times as often. What is suggested is in the list itself, always.
///
/// Words are letters with apostrophes between them; hyphens part words. Words with digits or underscores, addresses, names of files, and
/// paths are left out. German compounds that are not in the list are listed: they are not taken apart.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel spell README.md
  umbel spell --lang de --add names.txt brief.txt
  git log --format=%B | umbel spell --no-suggest

Exit codes: 0 every word is known, 1 some are not, 2 something went wrong.")]
pub struct Args {
    /// Texts to check; `-`, or no file, is standard input. What is compressed with gzip or zstd is recognised
    #[arg(value_name = "TEXT")]
    texts: Vec<PathBuf>,

    /// The language, en, en-gb, de, fr, it or es, whose word list Debian has in a package; or a file with a word in each line; or a
    /// filter of words, as `umbel build` makes it, which can suggest nothing
    #[arg(short, long, value_name = "LANG|FILE", default_value = "en")]
    lang: String,

    /// These words are known too: a file with a word in each line (repeatable)
    #[arg(short, long, value_name = "FILE")]
    add: Vec<PathBuf>,

    /// The share of misspellings that may be missed [default: 0.1%]
    #[arg(short = 'p', long, value_name = "RATE", alias = "rate", value_parser = number::rate)]
    fpr: Option<f64>,

    /// Suggest nothing
    #[arg(long)]
    no_suggest: bool,

    /// List each unknown word only where it comes first
    #[arg(long)]
    once: bool,

    /// Check addresses, names of files, and paths as well
    #[arg(long)]
    addresses: bool,

    /// Print only how many unknown words there are
    #[arg(short, long, conflicts_with = "quiet")]
    count: bool,

    /// Print nothing, and stop at the first unknown word
    #[arg(short, long)]
    quiet: bool,

    /// Print a line of JSON for each unknown word
    #[arg(long, conflicts_with_all = ["count", "quiet"])]
    json: bool,

    /// Say on standard error how large the filter is, and how often the list was read
    #[arg(long)]
    stats: bool,

    #[command(flatten)]
    secrets: Secrets,
}

/// The rate of misspellings that are missed.
const RATE: f64 = 0.001;

/// So many words are suggested at most.
const MOST: usize = 5;

/// The suggestions for so many different words are remembered.
const REMEMBERED: usize = 1 << 16;

pub fn run(args: &Args) -> Result<ExitCode> {
    let stdin = [PathBuf::from("-")];
    let texts = if args.texts.is_empty() { &stdin[..] } else { &args.texts };
    if args.texts.is_empty() && io::stdin().is_terminal() {
        bail!(
            "there is no text to check: name a file, or send one, as in `umbel spell < letter.txt`; `-` reads the terminal"
        );
    }
    let dictionary = args.dictionary()?;
    let mut check = Check {
        args,
        dictionary: &dictionary,
        out: Out::new(texts.iter().any(|text| is_stdin(text)))?,
        known: HashMap::new(),
        words: 0,
        unknown: 0,
        tried: 0,
        read: 0,
    };
    let mut failed = false;
    for text in texts {
        match check.text(text) {
            Ok(true) => {}
            // One is enough.
            Ok(false) => break,
            // The exit code tells what was found, also when nobody reads it any more.
            Err(error) if output::is_broken_pipe(&error) => break,
            // The others are checked all the same.
            Err(error) => {
                failed = true;
                output::error(format_args!("{error:#}"));
            }
        }
    }
    let unknown = check.finish()?;
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::from(u8::from(unknown > 0)) })
}

impl Args {
    fn dictionary(&self) -> Result<Dictionary> {
        let added = self.add.iter().map(|path| words_of(path)).collect::<Result<Vec<_>>>()?;
        let mut files: Vec<&[u8]> = added.iter().map(Vec::as_slice).collect();
        let path = match Language::of(&self.lang) {
            Some(language) if !language.path().exists() => {
                let Language { code, package, .. } = language;
                bail!(
                    "there is no word list for {code}: {} is missing; `apt-get install {package}` brings it, or --lang FILE names a \
                     list with a word in each line",
                    language.path().display()
                )
            }
            Some(language) => language.path(),
            None => PathBuf::from(&self.lang),
        };
        if !is_stdin(&path) && !path.exists() {
            let known: Vec<&str> = LANGUAGES.iter().map(|language| language.code).collect();
            bail!(
                "{} is neither a file nor one of the languages {}",
                printable(&self.lang),
                known.join(", ")
            );
        }
        if is_filter(&path) {
            if self.fpr.is_some() {
                bail!("-p is for a list of words: the filter {} has its rate already", path.display());
            }
            signals::watch(&path);
            let Stored::Set(filter) = self.secrets.load(&path, Category::Set)?.filter else {
                bail!("{} hashes by a family of the literature: build it without --family", path.display())
            };
            return Dictionary::from_filter(filter, List::parse(&files)?)
                .with_context(|| format!("cannot add words to {}", path.display()));
        }
        let listed = words_of(&path)?;
        files.push(&listed);
        let list = List::parse(&files)?;
        if list.is_empty() {
            bail!("{} has no words: it should have one in each line", name(&path));
        }
        Ok(Dictionary::new(list, self.fpr.unwrap_or(RATE))?)
    }
}

/// The words of a list, decompressed.
fn words_of(path: &Path) -> Result<Vec<u8>> {
    let mut words = Vec::new();
    open_bytes(path)?.read_to_end(&mut words).with_context(|| format!("cannot read {}", name(path)))?;
    if content::format(&words) == Some(Format::Filter) {
        bail!("{} is a filter, and no list of words: give it to --lang, as a file as it is", name(path));
    }
    // Text has no other control characters, in any encoding of a list.
    if words.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
        bail!("{} is no list of words: it is binary", name(path));
    }
    Ok(words)
}

/// Texts on their way through the dictionary.
struct Check<'a> {
    args: &'a Args,
    dictionary: &'a Dictionary,
    out: Out,
    /// What was suggested for words that came before.
    known: HashMap<String, Vec<String>>,
    words: u64,
    unknown: u64,
    tried: u64,
    read: u64,
}

impl Check<'_> {
    /// Checks a text; false if nothing more is wanted.
    fn text(&mut self, path: &Path) -> Result<bool> {
        let text = BufReader::with_capacity(1 << 16, open_bytes(path)?);
        let called = if self.args.json { plain_name } else { name };
        let file = if is_stdin(path) { "-".to_string() } else { called(path) };
        let addresses = self.args.addresses;
        let found = |word: Word<'_>| match self.word(&file, &word) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(Ok(())),
            Err(error) => ControlFlow::Break(Err(error)),
        };
        let (passed, end) =
            each_word(text, addresses, found).with_context(|| format!("cannot check {}", name(path)))?;
        self.words += passed.words;
        if passed.unreadable > 0 {
            let count = passed.unreadable;
            output::warn(format_args!("{}: words left out because they are not UTF-8: {count}", name(path)));
        }
        end.map_or(Ok(true), |end| end.map(|()| false))
    }

    /// Tells of a word if it is unknown; false if that was enough.
    fn word(&mut self, file: &str, word: &Word<'_>) -> Result<bool> {
        if self.dictionary.knows(&word.text) {
            return Ok(true);
        }
        if self.args.once && self.known.contains_key(&*word.text) {
            return Ok(true);
        }
        self.unknown += 1;
        if self.args.quiet {
            return Ok(false);
        }
        let suggestions = self.suggestions(&word.text);
        if self.args.count {
            return Ok(true);
        }
        let Word { text, line, column } = word;
        let mut told = Vec::new();
        if self.args.json {
            let fact = json!({
                "file": file, "line": line, "column": column, "word": text, "suggestions": suggestions,
            });
            serde_json::to_writer(&mut told, &fact)?;
        } else {
            write!(told, "{file}:{line}:{column}: {text}")?;
            if !suggestions.is_empty() {
                write!(told, ": {}", suggestions.join(", "))?;
            }
        }
        told.push(b'\n');
        self.out.write(&told, false)?;
        Ok(true)
    }

    fn suggestions(&mut self, word: &str) -> Vec<String> {
        if let Some(words) = self.known.get(word) {
            return words.clone();
        }
        let Suggestions { words, tried, read } = match self.args.no_suggest || self.args.count {
            true => Suggestions::default(),
            false => self.dictionary.suggest(word, MOST),
        };
        self.tried += tried;
        self.read += read;
        // With --once all have to be remembered.
        if self.known.len() < REMEMBERED || self.args.once {
            self.known.insert(word.to_owned(), words.clone());
        }
        words
    }

    fn finish(mut self) -> Result<u64> {
        if self.args.count {
            self.out.write_answers(format!("{}\n", self.unknown).as_bytes())?;
        }
        self.out
            .finish()
            .or_else(|error| if output::is_broken_pipe(&error) { Ok(()) } else { Err(error) })?;
        if self.args.stats {
            let stats = self.dictionary.filter().stats();
            let mut rows = Rows::default();
            rows.add("words of the list", self.dictionary.list().len());
            rows.add("filter", size(stats.bytes));
            rows.add("misspellings missed", percent(stats.rate_now));
            rows.add("words checked", self.words);
            rows.add("unknown", self.unknown);
            rows.add("words tried as suggestions", self.tried);
            rows.add("of which the list was asked", self.read);
            output::say(rows.to_string().trim_end());
        }
        Ok(self.unknown)
    }
}
