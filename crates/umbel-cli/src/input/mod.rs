//! Lines in, keys out: the options that all commands with lines share, and the way from files to
//! keys.
//!
//! ```text
//! files, pipes, gz, zst  ->  blocks of whole records  ->  records  ->  keys
//!       [source]                 [blocks, csv]           [records]   [key_spec]
//! ```
//!
//! One thread at a time reads a block, and many threads work on blocks; nothing is allocated per
//! line.

mod blocks;
mod csv;
mod key_spec;
mod keys;
mod line_limit;
mod pairs;
mod records;
mod source;

pub use blocks::{Block, Blocks};
pub use keys::KeyedInputArgs;
pub use line_limit::{LineLimit, LongLine, max_line_hint, read_failed};
pub use pairs::PairArgs;
pub use records::{OutputLines, Records, Scratch, Skipped};
pub use source::{
    CountedReader, check_not_output, check_not_stdout, check_not_swapped, explain_swapped, is_filter,
    is_output_file, is_stdin, may_wait, name, open_bytes, open_list, open_raw, plain_name, read_whole,
    recognized, resolve, total_len,
};

use crate::args::{headings, number};
use anyhow::{Result, bail};
use clap::Args;
use key_spec::{Field, KeySpec};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use umbel::foreign::Funnel;

/// Where lines come from, and which part of a line is the key.
#[derive(Args, Clone, Debug)]
pub struct InputArgs {
    /// Files with one key per line; `-` or no file means standard input. Files compressed with gzip
    /// or zstd are decompressed
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// The keys of `--key`, which replace the inputs if there are any; `None` if the command does
    /// not have that option.
    #[arg(skip)]
    keys: Option<Vec<OsString>>,

    /// The form that every key must have, if the filter of another program needs one.
    #[arg(skip)]
    funnel: Option<Funnel>,

    /// Use this field of each line as the key: its number, from 1, or with --header its name
    #[arg(short = 'F', long, value_name = "N|NAME", help_heading = headings::KEYS)]
    field: Option<String>,

    /// Separate fields by TEXT (default: a tab; \t, \n, \0 and \\ are understood)
    #[arg(short, long, value_name = "TEXT", value_parser = separator, help_heading = headings::KEYS)]
    delimiter: Option<Separator>,

    /// Remove white space, including a carriage return, from both ends of the key
    #[arg(long, help_heading = headings::KEYS)]
    trim: bool,

    /// Convert the key to lower case
    #[arg(long, help_heading = headings::KEYS)]
    lower: bool,

    /// Decode the key from hexadecimal
    #[arg(long, help_heading = headings::KEYS)]
    hex: bool,

    /// Print the field instead of the whole line
    #[arg(long, help_heading = headings::KEYS)]
    print_field: bool,

    /// Read CSV records with quotes; fields are separated by a comma, or by -d
    #[arg(long, help_heading = headings::INPUT)]
    csv: bool,

    /// Read Parquet files: the key is a value of this column, as text. The path of a nested column is
    /// dotted
    #[arg(
        long,
        value_name = "COLUMN",
        conflicts_with_all = ["field", "delimiter", "hex", "print_field", "csv", "header", "null"],
        help_heading = headings::INPUT
    )]
    parquet: Option<String>,

    /// Take the names of fields from the first line of each file, which is not printed
    #[arg(long, help_heading = headings::INPUT)]
    header: bool,

    /// End lines with a zero byte instead of a newline, in input and output
    #[arg(short = '0', long, help_heading = headings::INPUT)]
    null: bool,

    #[command(flatten)]
    max_line: LineLimit,

    /// Number of threads (default: all processors)
    #[arg(short = 'j', long, value_name = "N", value_parser = number::threads, help_heading = headings::INPUT)]
    threads: Option<usize>,
}

/// Opens files whose keys are whole lines.
pub fn open_whole_lines(files: &[PathBuf], max_line: LineLimit) -> Result<Blocks> {
    Blocks::open(files, KeySpec { max_line: max_line.bytes(), ..KeySpec::whole_line() })
}

/// The bytes between two fields. (A type of its own, since clap takes a vector for a repeated
/// option.)
#[derive(Clone, Debug)]
struct Separator(Vec<u8>);

impl InputArgs {
    /// Returns the same inputs, in which records are skipped whose keys the funnel does not take.
    pub fn with_funnel(&self, funnel: Option<Funnel>) -> InputArgs {
        let demanding = funnel.filter(|funnel| !matches!(funnel, Funnel::Utf8 | Funnel::Bytes));
        InputArgs { funnel: demanding, ..self.clone() }
    }

    /// Opens the inputs, or the lines of `--key`.
    pub fn open(&self) -> Result<Blocks> {
        let key_spec = self.key_spec()?;
        match self.keys.as_deref() {
            None => {}
            Some([]) => keys::check_not_keys(&self.inputs)?,
            Some(keys) => return Ok(Blocks::from_bytes(keys::to_lines(keys, self.line_end())?, key_spec)),
        }
        Blocks::open(&self.inputs, key_spec)
    }

    /// Returns whether lines come from `--key`, so that nothing is read.
    fn has_keys(&self) -> bool {
        self.keys.as_ref().is_some_and(|keys| !keys.is_empty())
    }

    /// Fails if this file, which will be written, is one of the inputs, by whatever name.
    pub fn check_not_output(&self, output: &Path) -> Result<()> {
        if self.has_keys() { Ok(()) } else { check_not_output(&self.inputs, output) }
    }

    /// Returns whether the inputs are uncompressed files whose keys are whole lines, so that
    /// reading them twice is cheap.
    pub fn can_be_read_again(&self) -> Result<bool> {
        let plain = self.inputs.iter().all(|input| source::is_plain(input));
        Ok(!self.inputs.is_empty()
            && plain
            && self.parquet.is_none()
            && !self.header
            && self.key_spec()?.is_plain())
    }

    /// Separates saved sketches from inputs with lines. The latter are `None` if all inputs are
    /// sketches, so that standard input is not read instead.
    pub fn split_saved(&self) -> (Vec<PathBuf>, Option<InputArgs>) {
        let is_saved = |path: &PathBuf| !source::is_stdin(path) && source::is_filter(path);
        let (saved, inputs): (Vec<_>, Vec<_>) = self.inputs.iter().cloned().partition(is_saved);
        let has_lines = saved.is_empty() || !inputs.is_empty();
        (saved, has_lines.then(|| InputArgs { inputs, ..self.clone() }))
    }

    pub fn files(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// Returns the name of the input with this index, for messages.
    pub fn name(&self, input: usize) -> String {
        if self.has_keys() {
            return "--key".to_string();
        }
        source::name(self.inputs.get(input).map_or(Path::new("-"), PathBuf::as_path))
    }

    /// Returns whether all inputs are files, compressed or not, so that they can be read again.
    pub fn are_files(&self) -> bool {
        !self.inputs.is_empty()
            && !self.inputs.iter().any(|input| source::may_wait(input) || source::is_stdin(input))
    }

    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Appends the printed form of a key's record, with one more column.
    pub fn print_with(
        &self,
        records: &Records,
        key: usize,
        out: &mut Vec<u8>,
        column: impl FnOnce(&mut Vec<u8>),
    ) {
        records.print(key, out);
        // The carriage return is part of the end of a CSV record, so the new column comes before
        // it.
        let carriage_return = self.csv && out.pop_if(|byte| *byte == b'\r').is_some();
        out.push(b'\t');
        column(out);
        out.extend(carriage_return.then_some(b'\r'));
        out.push(self.line_end());
    }

    /// Returns the byte that ends a line, in and out.
    pub fn line_end(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    fn key_spec(&self) -> Result<KeySpec> {
        if self.csv && self.null {
            bail!("--csv and -0 exclude each other: a CSV record ends with a newline");
        }
        let separator = match (&self.delimiter, self.csv) {
            (Some(Separator(bytes)), true)
                if bytes.len() != 1 || matches!(bytes[0], b'"' | b'\n' | b'\r') =>
            {
                bail!("CSV fields end with a single byte that is not a quote: give -d one, or leave it out")
            }
            (Some(Separator(bytes)), _) if bytes[..] == [self.line_end()] => {
                bail!("-d is the byte that ends a line: fields have to end with another one")
            }
            (Some(Separator(bytes)), _) => bytes.clone(),
            (None, _) if self.parquet.is_some() => b",".to_vec(),
            (None, true) => b",".to_vec(),
            (None, false) => b"\t".to_vec(),
        };
        let field = match &self.field {
            Some(field) => Some(self.parse_field(field)?),
            None if self.parquet.is_some() => Some(Field::Number(0)),
            None if self.csv || self.delimiter.is_some() || self.print_field => {
                let option = if self.csv {
                    "--csv"
                } else if self.print_field {
                    "--print-field"
                } else {
                    "-d"
                };
                bail!("{option} needs -F: say which field is the key, for instance -F 1")
            }
            None => None,
        };
        Ok(KeySpec {
            line_end: self.line_end(),
            separator,
            field,
            header: self.header,
            print_field: self.print_field || self.parquet.is_some(),
            csv: self.csv || self.parquet.is_some(),
            parquet: self.parquet.clone(),
            trim: self.trim,
            lower: self.lower,
            hex: self.hex,
            funnel: self.funnel,
            max_line: self.max_line.bytes(),
        })
    }

    fn parse_field(&self, field: &str) -> Result<Field> {
        match field.parse::<usize>() {
            Ok(0) => bail!("there is no field 0: fields are counted from 1"),
            Ok(number) => Ok(Field::Number(number - 1)),
            Err(_) if !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit()) => {
                bail!("there is no field {field}: that is more than any line has")
            }
            Err(_) if self.header => Ok(Field::Name(field.to_owned())),
            Err(_) => bail!(
                "field \"{field}\" is a name: add --header if the first line names the fields, or give its number"
            ),
        }
    }
}

fn separator(text: &str) -> Result<Separator, String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match (byte, byte == b'\\') {
            (_, true) => match rest.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(b'0') => 0,
                Some(b'\\') => b'\\',
                _ => return Err(r"after \ comes t, n, 0 or another \".to_string()),
            },
            (byte, false) => byte,
        });
    }
    if bytes.is_empty() { Err("it cannot be empty".to_string()) } else { Ok(Separator(bytes)) }
}
