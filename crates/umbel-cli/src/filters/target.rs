//! Where a new filter goes: a file that is replaced only on request, or standard output.

use super::{LockArgs, Secrets};
use crate::args::headings;
use crate::input::check_not_output;
use crate::terminal::output;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use std::error::Error;
use std::fs;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use umbel::file::{self, Options, Placing, Storable};
use umbel::foreign::ForeignFilter;
use umbel::sharded::{FolderLock, Manifest, is_sharded};

/// The options of commands that write a filter: where it goes.
#[derive(Args, Clone, Debug)]
pub struct Target {
    /// Write to FILE; without this option, or with `-`, write to standard output
    #[arg(short, long, value_name = "FILE", help_heading = headings::OUTPUT)]
    output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(short, long, help_heading = headings::OUTPUT)]
    force: bool,

    #[command(flatten)]
    lock: LockArgs,
}

impl Target {
    /// Returns the target that is this file; with `force` an existing file is replaced.
    pub fn file(path: PathBuf, force: bool, lock: LockArgs) -> Target {
        Target { output: Some(path), force, lock }
    }

    /// Returns the path of the file; `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Fails early if the file could not be written later, or if it is one of the inputs or key
    /// files.
    pub fn check(&self, inputs: &[PathBuf], secrets: &Secrets) -> Result<()> {
        let Some(path) = self.path() else {
            if io::stdout().is_terminal() {
                bail!("a filter is not for a terminal: name a file with -o, or redirect the output");
            }
            return Ok(());
        };
        check_not_output(inputs, path)?;
        // Without its secret, no filter that was built with it could be opened again.
        if secrets.is_given() {
            check_not_output(&secrets.key_file, path)?;
        }
        check_writable(path, self.force)
    }

    /// Returns the directory of a filter in shards. Fails early if it could not be written later, or
    /// if it is a filter already and may not be replaced.
    pub fn check_shards(&self) -> Result<&Path> {
        let Some(path) = self.path() else {
            bail!("a filter in shards is a directory: name it with -o");
        };
        let name = path.display();
        let folder = match fs::metadata(path) {
            Ok(found) if !found.is_dir() => {
                bail!("{name} is not a directory, as a filter in shards is: give another name")
            }
            Ok(_) if is_sharded(path) && !self.force => bail!("{}", already_exists(path)),
            Ok(_) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder(path),
            Err(error) => return Err(error).with_context(|| format!("cannot write {name}")),
        };
        check_folder(path, folder)?;
        Ok(path)
    }

    /// Writes a filter in shards to the directory, which is created if it does not exist, with a
    /// function that is passed the locked directory.
    pub fn save_shards(&self, write: impl FnOnce(FolderLock) -> Result<Manifest>) -> Result<Manifest> {
        let path = self.check_shards()?;
        let is_new = !path.exists();
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
        let saved = self.lock.lock_shards(path).and_then(|lock| {
            // Another process may have written it in the meantime.
            if lock.replaces() && !self.force {
                bail!("{}", already_exists(path));
            }
            write(lock)
        });
        // If that fails, nothing is left.
        saved.inspect_err(|_| drop(is_new.then(|| fs::remove_dir(path))))
    }

    /// Writes the filter to the file, or to standard output.
    pub fn save(&self, filter: &impl Storable, options: Options) -> Result<()> {
        self.write(
            |out| file::write(out, filter, &options),
            |path, create_new| file::save(path, filter, &Options { create_new, ..options.clone() }),
        )
    }

    /// Writes a filter in the format of another program.
    pub fn save_foreign(&self, filter: &ForeignFilter) -> Result<()> {
        self.write(
            |out| filter.write(out),
            |path, create_new| filter.save(path, Placing { create_new, ..Placing::default() }),
        )
    }

    /// Writes to standard output with the first function, or to the file with the second one, which
    /// is passed whether the file must not exist.
    fn write(
        &self,
        to_stdout: impl FnOnce(&mut StdoutLock<'_>) -> io::Result<()>,
        to_file: impl FnOnce(&Path, bool) -> umbel::Result<()>,
    ) -> Result<()> {
        let Some(path) = self.path() else {
            let mut out = io::stdout().lock();
            return to_stdout(&mut out).and_then(|()| out.flush()).context(output::WRITE_FAILED);
        };
        // Wait for a process that is adding to the old file, which would otherwise undo this.
        let _lock = if self.force && path.is_file() { Some(self.lock.lock(path)?) } else { None };
        to_file(path, !self.force).map_err(|error| explain_exists(error, path))
    }
}

/// Fails if no file can be created at this path, or if there is one and `force` is not set.
pub fn check_writable(path: &Path, force: bool) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            bail!("{} is a directory: name a file in it with -o", path.display())
        }
        _ if !force && fs::symlink_metadata(path).is_ok() => bail!("{}", already_exists(path)),
        Ok(found) if !found.is_file() => {
            bail!("cannot write to {}: it is not a regular file; `-o -` is standard output", path.display())
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot write {}", path.display()));
        }
        _ => {}
    }
    check_folder(path, folder(path))
}

/// Fails if no file for `path` can be created in this folder.
fn check_folder(path: &Path, folder: &Path) -> Result<()> {
    if !folder.is_dir() {
        bail!("cannot write {}: there is no directory {}", path.display(), folder.display());
    }
    // The file is first written under a temporary name beside its final place.
    tempfile::tempfile_in(folder)
        .with_context(|| format!("cannot create a file beside {}", path.display()))?;
    Ok(())
}

/// Explains the error that a file exists, with the option to replace it. Returns other errors
/// unchanged.
pub fn explain_exists(error: impl Error + Send + Sync + 'static, path: &Path) -> anyhow::Error {
    match error.source().and_then(|cause| cause.downcast_ref::<io::Error>()) {
        Some(cause) if cause.kind() == io::ErrorKind::AlreadyExists => anyhow!("{}", already_exists(path)),
        _ => error.into(),
    }
}

/// Returns the message for a file that exists.
pub fn already_exists(path: &Path) -> String {
    format!("{} exists: give -f to replace it, or another name", path.display())
}

/// Returns the folder that holds a file.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
