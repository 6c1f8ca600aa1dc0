//! Texts checked against a dictionary: unknown words are printed with suggestions.

use crate::filters::Secrets;
use crate::input::{is_filter, is_stdin, name, open_bytes, plain_name, read_whole};
use crate::report::{Rows, percent, printable, size};
use crate::system::signals;
use crate::terminal::output::{self, Out};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use umbel::any::Stored;
use umbel::kind::Category;
use umbel_text::content::{self, Format};
use umbel_text::spelling::{Dictionary, LANGUAGES, Language, List, Suggestions, Word, each_word};

/// The default share of misspellings that are missed.
const DEFAULT_MISS_RATE: f64 = 0.001;

/// The maximum number of suggestions for an unknown word.
const MAX_SUGGESTIONS: usize = 5;

/// The maximum number of unknown words whose suggestions are remembered.
const MAX_REMEMBERED_WORDS: usize = 1 << 16;

/// The length of the longest word that is remembered.
const MAX_REMEMBERED_BYTES: usize = 1 << 10;

/// Opens the dictionary of a language, a list of words or a filter, together with added lists of
/// words.
pub fn open_dictionary(
    lang: &str,
    added: &[PathBuf],
    rate: Option<f64>,
    secrets: &Secrets,
) -> Result<Dictionary> {
    let added = added.iter().map(|path| read_words(path)).collect::<Result<Vec<_>>>()?;
    let mut files: Vec<&[u8]> = added.iter().map(Vec::as_slice).collect();
    let path = match Language::from_code(lang) {
        Some(language) if !language.path().exists() => {
            let Language { code, package, .. } = language;
            bail!(
                "there is no word list for {code}: {} is missing; `apt-get install {package}` brings it, or --lang FILE names a \
                     list with a word in each line",
                language.path().display()
            )
        }
        Some(language) => language.path(),
        None => PathBuf::from(lang),
    };
    if !is_stdin(&path) && !path.exists() {
        let known: Vec<&str> = LANGUAGES.iter().map(|language| language.code).collect();
        bail!("{} is neither a file nor one of the languages {}", printable(lang), known.join(", "));
    }
    if is_filter(&path) {
        if rate.is_some() {
            bail!("-p is for a list of words: the filter {} has its rate already", path.display());
        }
        signals::watch_mapped(&path);
        let Stored::Set(filter) = secrets.load(&path, Category::Set)?.filter else {
            bail!("{} hashes by a family of the literature: build it without --family", path.display())
        };
        return Dictionary::from_filter(filter, List::parse(&files)?)
            .with_context(|| format!("cannot add words to {}", path.display()));
    }
    let listed = read_words(&path)?;
    files.push(&listed);
    let list = List::parse(&files)?;
    if list.is_empty() {
        bail!("{} has no words: it should have one in each line", name(&path));
    }
    Ok(Dictionary::new(list, rate.unwrap_or(DEFAULT_MISS_RATE))?)
}

/// Reads a list of words, decompressed.
fn read_words(path: &Path) -> Result<Vec<u8>> {
    let words = read_whole(path)?;
    if content::format(&words) == Some(Format::Filter) {
        bail!("{} is a filter, and no list of words: give it to --lang, as a file as it is", name(path));
    }
    // A list of words has no other control characters, in any encoding.
    if words.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
        bail!("{} is not a list of words: it is binary", name(path));
    }
    Ok(words)
}

/// The output for unknown words.
pub struct Options {
    /// Suggest known words.
    pub suggest: bool,
    /// Print each unknown word only once.
    pub once: bool,
    /// Check addresses, names of files and paths as well.
    pub addresses: bool,
    /// Print only the number of unknown words.
    pub count: bool,
    /// Print nothing, and stop at the first unknown word.
    pub quiet: bool,
    pub json: bool,
}

/// Checks texts against a dictionary.
pub struct Checker<'a> {
    dictionary: &'a Dictionary,
    options: Options,
    out: Out,
    /// The suggestions for unknown words so far.
    suggested: HashMap<String, Vec<String>>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    words: u64,
    unknown: u64,
    /// The number of words tried as suggestions.
    tried: u64,
    /// The number of tried words that the filter knew, so that the list was read.
    list_reads: u64,
}

impl<'a> Checker<'a> {
    /// Creates a checker that prints to standard output, with `eager` each word at once.
    pub fn new(dictionary: &'a Dictionary, options: Options, eager: bool) -> Result<Checker<'a>> {
        let (suggested, counts) = Default::default();
        Ok(Checker { dictionary, options, out: Out::new(eager)?, suggested, counts })
    }

    /// Checks a text; breaks if no more texts have to be checked.
    pub fn check(&mut self, path: &Path) -> Result<ControlFlow<()>> {
        let text = BufReader::with_capacity(1 << 16, open_bytes(path)?);
        let called = if self.options.json { plain_name } else { name };
        let file = if is_stdin(path) { "-".to_string() } else { called(path) };
        let addresses = self.options.addresses;
        let check_word = |word: Word<'_>| match self.check_word(&file, &word) {
            Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
            Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
            Err(error) => ControlFlow::Break(Err(error)),
        };
        let (passed, end) =
            each_word(text, addresses, check_word).with_context(|| format!("cannot check {}", name(path)))?;
        self.counts.words += passed.words;
        if passed.unreadable > 0 {
            let count = passed.unreadable;
            output::warn(format_args!("{}: words left out because they are not UTF-8: {count}", name(path)));
        }
        end.map_or(Ok(ControlFlow::Continue(())), |end| end.map(ControlFlow::Break))
    }

    /// Prints a word if it is unknown; breaks if one is enough.
    fn check_word(&mut self, file: &str, word: &Word<'_>) -> Result<ControlFlow<()>> {
        if self.dictionary.knows(&word.text) {
            return Ok(ControlFlow::Continue(()));
        }
        if self.options.once && self.suggested.contains_key(&*word.text) {
            return Ok(ControlFlow::Continue(()));
        }
        self.counts.unknown += 1;
        if self.options.quiet {
            return Ok(ControlFlow::Break(()));
        }
        let suggestions = self.suggestions(&word.text);
        if self.options.count {
            return Ok(ControlFlow::Continue(()));
        }
        let Word { text, line, column } = word;
        let mut line_out = Vec::new();
        if self.options.json {
            let value = json!({
                "file": file, "line": line, "column": column, "word": text, "suggestions": suggestions,
            });
            serde_json::to_writer(&mut line_out, &value)?;
        } else {
            write!(line_out, "{file}:{line}:{column}: {text}")?;
            if !suggestions.is_empty() {
                write!(line_out, ": {}", suggestions.join(", "))?;
            }
        }
        line_out.push(b'\n');
        self.out.write(&line_out, false)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the suggestions for an unknown word.
    fn suggestions(&mut self, word: &str) -> Vec<String> {
        if let Some(words) = self.suggested.get(word) {
            return words.clone();
        }
        let Suggestions { words, tried, read } = match self.options.suggest && !self.options.count {
            true => self.dictionary.suggest(word, MAX_SUGGESTIONS),
            false => Suggestions::default(),
        };
        self.counts.tried += tried;
        self.counts.list_reads += read;
        // With --once all words have to be remembered.
        let fits = self.suggested.len() < MAX_REMEMBERED_WORDS || self.options.once;
        if fits && word.len() <= MAX_REMEMBERED_BYTES {
            self.suggested.insert(word.to_owned(), words.clone());
        }
        words
    }

    /// Prints the count and the statistics, if they are wanted; returns the number of unknown
    /// words.
    pub fn finish(mut self, stats: bool) -> Result<u64> {
        if self.options.count {
            self.out.write_answers(format!("{}\n", self.counts.unknown).as_bytes())?;
        }
        self.out
            .finish()
            .or_else(|error| if output::is_broken_pipe(&error) { Ok(()) } else { Err(error) })?;
        if stats {
            let stats = self.dictionary.filter().stats();
            let mut rows = Rows::default();
            rows.add("words of the list", self.dictionary.list().len());
            rows.add("filter", size(stats.bytes));
            rows.add("misspellings missed", percent(stats.rate_now));
            rows.add("words checked", self.counts.words);
            rows.add("unknown", self.counts.unknown);
            rows.add("words tried as suggestions", self.counts.tried);
            rows.add("of which the list was asked", self.counts.list_reads);
            output::message(rows.to_string().trim_end());
        }
        Ok(self.counts.unknown)
    }
}
