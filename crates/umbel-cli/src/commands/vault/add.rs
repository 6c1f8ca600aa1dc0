//! `umbel vault add`: adds files to a vault.

use crate::args::headings;
use crate::documents::passphrases::PassphraseArgs;
use crate::documents::vaults::{document_json, finish_changes, start_changes};
use crate::filters::LockArgs;
use crate::input::{CountedReader, is_stdin, name, open_raw, total_len};
use crate::report::{printable, size};
use crate::terminal::exit::FAILED;
use crate::terminal::{Progress, output};
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use umbel_text::vault::zidx::Id;
use umbel_text::vault::{Changes, Options, Vault};

/// Encrypt files and add them to a vault.
///
/// A vault that does not exist is created. All files of a directory are added, but no symbolic
/// links. Text that is compressed with gzip or zstd is indexed by its words; a file that is not
/// text is stored too, and can be found only by its name. A file that cannot be read is reported,
/// and the others are added. Each file is added completely or not at all, even if the command is
/// interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault add secrets diary.txt letters/
  umbel vault add --replace secrets diary.txt
  date | umbel vault add --passphrase-file pass.txt --name note secrets -

Exit codes: 0 all files were added, 2 an error occurred.")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Files and directories; `-` means standard input, and needs --name
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Name of the document; only for a single file
    #[arg(long, value_name = "NAME", help_heading = headings::INPUT)]
    name: Option<String>,

    /// Replace documents that have the same names
    #[arg(long, help_heading = headings::INPUT)]
    replace: bool,

    #[command(flatten)]
    secret: PassphraseArgs,

    #[command(flatten)]
    lock: LockArgs,

    /// Print a line of JSON for each added document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.name.is_some() && (args.files.len() > 1 || args.files[0].is_dir()) {
        bail!("--name is for one file");
    }
    if args.name.is_none() && args.files.iter().any(|file| is_stdin(file)) {
        bail!("a document from standard input needs a name: give it with --name");
    }
    if args.secret.is_stdin() && args.files.iter().any(|file| is_stdin(file)) {
        bail!("standard input cannot be both the passphrase and a document");
    }
    if args.vault.is_file() {
        bail!("{} is a file: the vault, which is a directory, comes first", args.vault.display());
    }
    let mut failed = 0;
    let mut report_error = |error: anyhow::Error| {
        output::error(format_args!("{error:#}"));
        failed += 1;
    };
    let mut files = Vec::new();
    for file in &args.files {
        walk(file, fs::metadata(&args.vault).ok().as_ref(), true, &mut files, &mut report_error);
    }
    if files.is_empty() {
        output::error("there is no file to add");
        return Ok(ExitCode::from(FAILED));
    }
    let vault = open(args)?;
    // Under the lock, since two processes that add the same name would not see each other.
    let changes = start_changes(&vault, &args.vault, args.lock)?;
    let mut addition =
        Addition { args, known: names(&vault)?, changes, read: Arc::default(), bytes: 0, count: 0 };
    let progress = Progress::of_bytes(Arc::clone(&addition.read), total_len(&files));
    for file in &files {
        match addition.add(file) {
            Ok(()) => {}
            Err(error) if output::is_broken_pipe(&error) => return Err(error),
            Err(error) => report_error(error),
        }
    }
    progress.finish();
    finish_changes(addition.changes, &args.vault)?;
    args.secret.remember(&vault)?;
    if !args.json && io::stderr().is_terminal() {
        output::message(format_args!("added: {}, of {}", addition.count, size(addition.bytes)));
    }
    Ok(if failed > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Opens the vault, or creates it if it is missing.
fn open(args: &Args) -> Result<Vault> {
    if Vault::exists(&args.vault)? {
        return args.secret.open(&args.vault);
    }
    let passphrase = args.secret.new_passphrase(&args.vault)?;
    let vault = Vault::create(&args.vault, &passphrase, &Options::default())?;
    output::message(format_args!("umbel: made a new vault, {}", args.vault.display()));
    Ok(vault)
}

/// Returns the documents of each name.
fn names(vault: &Vault) -> Result<HashMap<Vec<u8>, Vec<Id>>> {
    let mut names: HashMap<_, Vec<_>> = HashMap::new();
    for entry in vault.entries()?.0 {
        names.entry(entry.head.name).or_default().push(entry.id);
    }
    Ok(names)
}

/// Collects the files of a directory, in the order of their names, or the path itself if it is not
/// a directory.
fn walk(
    path: &Path,
    vault: Option<&Metadata>,
    named: bool,
    files: &mut Vec<PathBuf>,
    report_error: &mut impl FnMut(anyhow::Error),
) {
    if is_stdin(path) {
        return files.push(path.to_owned());
    }
    let failed = || format!("cannot open {}", path.display());
    let found = match if named { fs::metadata(path) } else { fs::symlink_metadata(path) }.with_context(failed)
    {
        Ok(found) => found,
        Err(error) => return report_error(error),
    };
    if !found.is_dir() {
        // Opening a pipe in a directory would wait for its writer.
        if named || found.is_file() {
            files.push(path.to_owned());
        }
        return;
    }
    // Do not add the vault to itself.
    if vault.is_some_and(|vault| (vault.dev(), vault.ino()) == (found.dev(), found.ino())) {
        return;
    }
    let mut inside = Vec::new();
    match fs::read_dir(path).with_context(failed) {
        Ok(entries) => {
            for entry in entries {
                match entry.with_context(failed) {
                    Ok(entry) => inside.push(entry.path()),
                    Err(error) => report_error(error),
                }
            }
        }
        Err(error) => report_error(error),
    }
    inside.sort_unstable();
    inside.iter().for_each(|path| walk(path, vault, false, files, report_error));
}

/// Files added to a vault.
struct Addition<'a> {
    args: &'a Args,
    changes: Changes<'a>,
    known: HashMap<Vec<u8>, Vec<Id>>,
    read: Arc<AtomicU64>,
    bytes: u64,
    count: u64,
}

impl Addition<'_> {
    fn add(&mut self, path: &Path) -> Result<()> {
        let name_in_vault = match &self.args.name {
            Some(name) => name.as_bytes().to_vec(),
            None => path.strip_prefix(".").unwrap_or(path).as_os_str().as_bytes().to_vec(),
        };
        let before = self.known.get(&name_in_vault).cloned().unwrap_or_default();
        if !before.is_empty() && !self.args.replace {
            bail!(
                "{} is in the vault already: --replace takes the new one instead",
                printable(&name_in_vault)
            );
        }
        let file = open_raw(path)?;
        let modified = file.metadata().ok().filter(Metadata::is_file).and_then(|found| found.modified().ok());
        let reader = CountedReader::new(file, Arc::clone(&self.read));
        let failed = || format!("{} was not added", name(path));
        let added = self.changes.replace(&name_in_vault, modified, reader, &before).with_context(failed)?;
        if let Some(why) = &added.cut {
            output::warn(format_args!(
                "{} is in the vault, but cannot be decompressed to its end, and is found by the words before that: {why}",
                name(path)
            ));
        }
        self.bytes += added.entry.head.size;
        self.count += 1;
        self.known.insert(name_in_vault, vec![added.entry.id]);
        if self.args.json { output::json(&document_json(&added.entry)) } else { Ok(()) }
    }
}
