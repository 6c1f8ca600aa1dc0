//! Filters that other programs wrote: the options that describe them, and the messages about them.
//!
//! A command first opens its filter as one of umbel. If that fails because the file does not start
//! with umbel's signature, [`ForeignArgs::open_instead`] opens it in the format of another program.

use crate::args::{headings, names};
use crate::input::recognized;
use crate::system::signals;
use anyhow::{Result, anyhow, bail};
use std::fmt::Display;
use std::path::Path;
use umbel::error::FormatError;
use umbel::foreign::{ForeignFilter, Format, Funnel, Given};

/// The options that describe a filter of another program.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct ForeignArgs {
    #[command(flatten)]
    pub format: FormatArg,

    /// How the other program hashes a line: as text (utf8), UTF-16 (unencoded), bytes, or a number
    /// of 64 bits (long) or 32 bits (int); a filter of guava needs it [default: utf8]
    #[arg(
        long,
        value_parser = names::funnel(),
        hide_possible_values = true,
        help_heading = headings::FOREIGN
    )]
    pub funnel: Option<Funnel>,
}

/// The option that names the format of another program.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct FormatArg {
    /// Format of a filter that another program wrote: guava, redisbloom or sbbf (Parquet); and
    /// datasketches, dcso or spark, which are recognised without it
    #[arg(
        long,
        value_parser = names::format(),
        hide_possible_values = true,
        help_heading = headings::FOREIGN
    )]
    pub format: Option<Format>,
}

/// How a filter of another program is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Read into memory and checked as far as it can be.
    Loaded,
    /// Used where it lies, without reading all of it first.
    Mapped,
}

impl FormatArg {
    /// Loads a filter of another program that is not asked for keys, after `error` has shown that
    /// the file is not a filter of umbel.
    pub fn load_instead(self, path: &Path, error: anyhow::Error) -> Result<ForeignFilter> {
        // Without questions, the funnel does not matter, and this one suits all formats.
        ForeignArgs { format: self, funnel: Some(Funnel::Utf8) }.open_instead(path, error, Opening::Loaded)
    }

    /// Returns the option for one of several filters: it describes those that are not recognised.
    pub fn for_one_of_several(self, path: &Path) -> FormatArg {
        FormatArg { format: recognized(path).or(self.format) }
    }

    /// Fails if a format is given for a filter of umbel.
    pub fn check_own(self, path: &Path) -> Result<()> {
        ForeignArgs { format: self, funnel: None }.check_own(path)
    }
}

impl ForeignArgs {
    /// Opens a filter of another program, after `error` has shown that the file is not a filter of
    /// umbel. Returns other errors unchanged.
    pub fn open_instead(&self, path: &Path, error: anyhow::Error, opening: Opening) -> Result<ForeignFilter> {
        if !is_not_a_filter(&error) {
            return Err(error);
        }
        let recognized = recognized(path);
        let Some(format) = self.format.format.or(recognized) else {
            bail!("{error:#}; if another program wrote it, name its format with --format");
        };
        let opened = self.open_as(path, format, opening);
        match recognized.filter(|recognized| !is_same_program(*recognized, format)) {
            Some(recognized) if opened.is_err() => bail!(
                "{} is a filter in the format {recognized}, not {format}: leave --format out",
                path.display()
            ),
            _ => opened,
        }
    }

    fn open_as(&self, path: &Path, format: Format, opening: Opening) -> Result<ForeignFilter> {
        if self.funnel.is_none() && format == Format::Guava {
            bail!("{}", missing_funnel(path.display()));
        }
        if let Some(funnel) = self.funnel.filter(|_| !format.has_funnel())
            && funnel != Funnel::Utf8
        {
            bail!("--funnel is not for the format {format}, whose keys are bytes: leave it out");
        }
        let given = Given { format: Some(format), funnel: self.funnel };
        if opening == Opening::Loaded {
            return Ok(ForeignFilter::load(path, given)?);
        }
        signals::watch_mapped(path);
        Ok(ForeignFilter::map(path, given)?)
    }

    /// Returns the options for one of several filters, of which some may be in a format without a
    /// funnel.
    pub fn for_one_of_several(&self, path: &Path) -> ForeignArgs {
        let format = self.format.for_one_of_several(path);
        let funnel = self.funnel.filter(|_| format.format.is_none_or(Format::has_funnel));
        ForeignArgs { format, funnel }
    }

    /// Fails if a format or a funnel is given for a filter of umbel.
    pub fn check_own(&self, path: &Path) -> Result<()> {
        let option = match (self.format.format, self.funnel) {
            (None, None) => return Ok(()),
            (Some(_), _) => "--format",
            (None, Some(_)) => "--funnel",
        };
        bail!(
            "{option} is for filters that other programs wrote, and {} is one of umbel: leave it out",
            path.display()
        )
    }
}

/// Returns the message for a filter whose funnel has to be given.
pub fn missing_funnel(filter: impl Display) -> String {
    format!(
        "{filter} does not store how keys are hashed: name the funnel of the other program with --funnel, which is utf8, unencoded, bytes, long or int"
    )
}

/// Returns whether opening failed because the file does not start as a filter of umbel.
pub fn is_not_a_filter(error: &anyhow::Error) -> bool {
    not_a_filter(error).is_some()
}

/// Explains the error of a command that does not take the filters of other programs, if that is the
/// reason. Returns other errors unchanged.
pub fn explain_foreign(error: anyhow::Error) -> anyhow::Error {
    match not_a_filter(&error).and_then(|path| Some((path, recognized(path)?))) {
        Some((path, format)) => anyhow!(
            "{} is a filter in the format {format}, which this command does not take: `umbel check` and `umbel why` ask it for keys, `umbel info` describes it, and `umbel build --format {format}` builds another one",
            path.display()
        ),
        None => error,
    }
}

/// Returns the path of the file that does not start as a filter of umbel, if that is the error.
fn not_a_filter(error: &anyhow::Error) -> Option<&Path> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(umbel::Error::Format { path, problem: FormatError::NotAFilter }) => Some(path.as_path()),
        _ => None,
    })
}

/// Returns whether a file in one format may be read as the other, which names the same program.
fn is_same_program(one: Format, other: Format) -> bool {
    let is_spark = |format| matches!(format, Format::Spark | Format::Spark2);
    one == other || is_spark(one) && is_spark(other)
}
