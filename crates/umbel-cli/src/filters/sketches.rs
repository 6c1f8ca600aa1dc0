//! Sketches of lines: saved ones are recognised among the inputs, united with the lines, and saved
//! again.

use super::{LockArgs, Secrets, Target, wrong_kind};
use crate::args::headings;
use crate::input::{InputArgs, plain_name};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use umbel::any::Stored;
use umbel::file::{self, Options, Storable};
use umbel::{Hasher, Kind};

/// The options of every command that makes a sketch.
#[derive(Args)]
pub struct SketchArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    secrets: Secrets,

    /// Save the sketch to FILE, which can later be an input in place of the lines
    #[arg(short, long, value_name = "FILE", help_heading = headings::OUTPUT)]
    output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(short, long, requires = "output", help_heading = headings::OUTPUT)]
    force: bool,

    #[command(flatten)]
    lock: LockArgs,

    /// Print the result as JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    pub json: bool,
}

/// The inputs of a command that makes a sketch of type `S`.
pub struct SketchInputs<S> {
    /// The saved sketches, with the names of their files.
    saved: Vec<(String, S)>,
    /// The inputs that have lines; `None` if all inputs are saved sketches.
    pub lines: Option<InputArgs>,
}

impl SketchArgs {
    /// Loads the saved sketches of this kind. Fails early if the output could not be written later.
    pub fn open<S: TryFrom<Stored, Error = umbel::Error>>(&self, kind: Kind) -> Result<SketchInputs<S>> {
        if let Some(target) = self.target()? {
            target.check(self.input.files(), &self.secrets)?;
        }
        let (paths, lines) = self.input.split_saved();
        let mut saved = Vec::new();
        for path in paths {
            let found = file::inspect(&path)?.kind;
            if found != kind {
                return Err(wrong_kind(&path, found));
            }
            let sketch = self.secrets.load(&path, kind.category())?.filter;
            saved.push((plain_name(&path), S::try_from(sketch)?));
        }
        Ok(SketchInputs { saved, lines })
    }

    /// Returns the hash for lines if there is no saved sketch: that of the key file, or else the
    /// fast one.
    pub fn hasher(&self) -> Result<Hasher> {
        Ok(self.secrets.single()?.unwrap_or_default())
    }

    /// Returns the hash for lines if there is no saved sketch and the result does not depend on the
    /// hash: as [`hasher`](SketchArgs::hasher), but with a random secret if nothing is saved. Lines
    /// that are crafted to collide could make the sketch slow.
    pub fn transient_hasher(&self) -> Result<Hasher> {
        match self.secrets.single()? {
            None if self.output.is_none() => Ok(Hasher::random()?),
            given => Ok(given.unwrap_or_default()),
        }
    }

    /// Returns the byte that ends a line, in and out.
    pub fn line_end(&self) -> u8 {
        self.input.line_end()
    }

    /// Saves the sketch if `--output` is given.
    pub fn save(&self, sketch: &impl Storable) -> Result<()> {
        match self.target()? {
            Some(target) => target.save(sketch, Options::default()),
            None => Ok(()),
        }
    }

    fn target(&self) -> Result<Option<Target>> {
        if self.output.as_deref() == Some(Path::new("-")) {
            bail!("the answer goes to standard output: name a file with -o");
        }
        Ok(self.output.clone().map(|path| Target::file(path, self.force, self.lock)))
    }
}

impl<S> SketchInputs<S> {
    /// Returns the first saved sketch, whose shape and hash the others must share.
    pub fn first(&self) -> Option<&S> {
        self.saved.first().map(|(_, sketch)| sketch)
    }

    /// Unites all saved sketches with `whole`, whose shape comes from `--error`, or else from the
    /// first saved sketch.
    pub fn unite(
        &self,
        whole: &mut S,
        error: Option<f64>,
        union: impl Fn(&mut S, &S) -> umbel::Result<()>,
    ) -> Result<()> {
        for (name, sketch) in &self.saved {
            union(whole, sketch).with_context(|| match error {
                Some(error) => format!("--error {error} and {name}"),
                None => format!("{} and {name}", self.saved[0].0),
            })?;
        }
        Ok(())
    }
}
