//! Filters on disk: opened with the secrets at hand by whoever wants what they hold, locked while they are changed, never overwritten by mistake.

use crate::hex;
use crate::input::check_not_output;
use crate::system::signals;
use crate::terminal::output;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use std::error::Error;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use umbel::any::Stored;
use umbel::file::{self, Loaded, Mapped, Meta, Options, ReadOnly, Storable};
use umbel::hash::{KeyRing, Strength};
use umbel::kind::Category;
use umbel::{Hasher, Kind};
use umbel_text::address::Screen;
use umbel_text::password::Recipe;
use zeroize::Zeroizing;

/// The rate of a filter unless the user asks for another.
pub const DEFAULT_RATE: f64 = 0.01;

/// The noise of a multiset unless the user asks for another.
pub const DEFAULT_NOISE: f64 = 0.005;

/// The secrets that open filters.
#[derive(Args, Clone, Debug)]
pub struct Secrets {
    /// A file with the secret of a keyed or sealed hash, as `umbel key new` makes it, or just the 32 bytes of a sealed one
    /// (repeatable)
    #[arg(long, value_name = "FILE")]
    key_file: Vec<PathBuf>,

    /// What was read from the files: they may be pipes, which can be read only once.
    #[arg(skip)]
    ring: OnceLock<KeyRing>,
}

impl Secrets {
    pub fn ring(&self) -> Result<&KeyRing> {
        if let Some(ring) = self.ring.get() {
            return Ok(ring);
        }
        let ring = self.key_file.iter().map(|path| read_key(path)).collect::<Result<_>>()?;
        Ok(self.ring.get_or_init(|| ring))
    }

    /// The secret to build with, if one is given.
    pub fn single(&self) -> Result<Option<Hasher>> {
        match &self.key_file[..] {
            [] => Ok(None),
            [path] => read_key(path).map(Some),
            _ => bail!("a filter is built with one secret: give --key-file once"),
        }
    }

    /// These, or if there are none, the one in a file beside the filter.
    pub fn or_beside(&self, filter: &Path) -> Secrets {
        let beside = beside(filter);
        if self.key_file.is_empty() && beside.exists() {
            return Secrets { key_file: vec![beside], ring: OnceLock::new() };
        }
        self.clone()
    }

    /// A filter in memory, wholly verified; one that holds something else than wanted is refused.
    pub fn load(&self, path: &Path, wanted: Category) -> Result<Loaded> {
        let loaded = file::load(path, self.ring()?)?;
        check_holds(path, loaded.filter.kind(), wanted)?;
        Ok(loaded)
    }

    /// A filter where it lies, verified as far as it is touched; one that holds something else than wanted is refused.
    pub fn map(&self, path: &Path, wanted: Category) -> Result<Mapped> {
        signals::watch(path);
        let mapped = file::map(path, self.ring()?)?;
        check_holds(path, mapped.kind(), wanted)?;
        Ok(mapped)
    }

    /// A filter where it lies, wholly verified.
    pub fn map_verified(&self, path: &Path, wanted: Category) -> Result<Loaded<ReadOnly<Stored>>> {
        Ok(self.map(path, wanted)?.verify()?)
    }
}

/// Fails if the file does not hold the category that the command needs.
pub fn check_holds(path: &Path, kind: Kind, wanted: Category) -> Result<()> {
    if kind.category() == wanted { Ok(()) } else { Err(wrong_kind(path, kind)) }
}

/// Returns the error for a file of a kind that the command cannot use; it names the command that can.
pub fn wrong_kind(path: &Path, kind: Kind) -> anyhow::Error {
    let holds = kind.category();
    let remedy = match holds {
        Category::Map => "ask it with `umbel map get`".to_string(),
        Category::Multiset => {
            "ask it with `umbel count get`, and add to it with `umbel count add`".to_string()
        }
        Category::Sketch => match sketch_command(kind) {
            Some(command) => format!("`umbel info` describes it, and `{command}` reads it"),
            None => "`umbel info` describes it".to_string(),
        },
        _ => "ask it with `umbel check`".to_string(),
    };
    anyhow!("{} holds a {holds} ({kind}): {remedy}", path.display())
}

/// Returns the command that makes and reads sketches of this kind, if there is one.
pub fn sketch_command(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Distinct => Some("umbel distinct"),
        Kind::Frequent => Some("umbel top"),
        _ => None,
    }
}

/// Refuses to take lines as they are to a filter that keeps them in another form: what is asked would not be found, and
/// what is added would not be found by whoever knows that form.
pub fn check_plain(path: &Path) -> Result<()> {
    // Before anybody asks for its secret. What is wrong with the file is told by whoever opens it.
    let Ok(file::Info { meta, .. }) = file::inspect(path) else { return Ok(()) };
    let name = path.display();
    if Recipe::is_in(&meta) {
        bail!(
            "{name} holds passwords, in a form of their own: add to it with `umbel password add`, and ask it with `umbel password check`"
        );
    }
    if Screen::is_in(&meta) {
        bail!(
            "{name} holds web addresses, in a form of their own: make it with `umbel url build`, and ask it with `umbel url check`"
        );
    }
    Ok(())
}

/// Refuses to take filters together that do not keep passwords in the same form: the same word is not the same in both.
pub fn check_same_form(left: (&Path, &Meta), right: (&Path, &Meta)) -> Result<()> {
    for mark in Recipe::MARKS {
        let (ours, theirs) = (left.1.get(mark), right.1.get(mark));
        if ours != theirs {
            let said =
                |value: Option<&String>| value.map_or("missing".to_owned(), |value| format!("{value:?}"));
            bail!(
                "{} and {} do not keep passwords in the same form: {mark} is {} in the first and {} in the second",
                left.0.display(),
                right.0.display(),
                said(ours),
                said(theirs)
            );
        }
    }
    Ok(())
}

/// Refuses answers from a file that was shortened while it was asked.
pub fn check_whole(mapped: &Mapped, path: &Path) -> Result<()> {
    if !mapped.is_whole() {
        bail!(signals::sentence(Some(path)));
    }
    Ok(())
}

/// Refuses to add keys to a filter that was made from all its keys at once.
pub fn check_takes_keys(path: &Path, kind: Kind) -> Result<()> {
    if !kind.capabilities().fixed {
        return Ok(());
    }
    bail!(
        "{} is {} {kind} filter, to which no keys can be added: it was made from all its keys at once; build it anew from those it shall have, with `umbel build --kind {kind}`",
        path.display(),
        kind.article()
    )
}

/// What a key file starts with, before the strength and the secret in hexadecimal.
const KEY: &str = "umbel-key";

/// The secret in a file.
pub fn read_key(path: &Path) -> Result<Hasher> {
    let name = path.display();
    let failed = |doing: &str| format!("cannot {doing} the key file {name}");
    let file = File::open(path).with_context(|| failed("open"))?;
    let mode = file.metadata().with_context(|| failed("examine"))?.permissions().mode();
    let mut text = Zeroizing::new(Vec::with_capacity(1024));
    file.take(1024).read_to_end(&mut text).with_context(|| failed("read"))?;
    let secret =
        parse_key(&text).with_context(|| format!("{name} is not a key file: `umbel key new` makes one"))?;
    // Not before it is known to be one: nobody should change the permissions of something else.
    if mode & 0o077 != 0 {
        output::warn(format_args!("others may read the key file {name}: `chmod 600 {name}` keeps it secret"));
    }
    Ok(secret)
}

fn parse_key(text: &[u8]) -> Option<Hasher> {
    // Such as `head -c 32 /dev/urandom` makes; other programs keep theirs so too.
    if !text.starts_with(KEY.as_bytes())
        && let Ok(secret) = <[u8; 32]>::try_from(text)
    {
        return Some(Hasher::sealed(secret));
    }
    let words: Vec<&str> = str::from_utf8(text).ok()?.split_ascii_whitespace().collect();
    let [KEY, strength, secret] = words[..] else { return None };
    match strength.parse().ok()? {
        Strength::Keyed => decode(secret).map(Hasher::keyed),
        Strength::Sealed => decode(secret).map(Hasher::sealed),
        _ => None,
    }
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = Vec::new();
    hex::decode(text.as_bytes(), &mut bytes)?;
    bytes.try_into().ok()
}

/// Where the secret of a filter is kept if nobody says where.
pub fn beside(filter: &Path) -> PathBuf {
    let mut name = filter.as_os_str().to_owned();
    name.push(".key");
    name.into()
}

/// A new secret, and the contents of the file that keeps it.
pub struct NewKey {
    pub hasher: Hasher,
    contents: Zeroizing<String>,
}

impl NewKey {
    pub fn random(strength: Strength) -> Result<NewKey> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret).context("the system has no random numbers")?;
        let (keyed, _) = secret.split_first_chunk().context("a secret of 32 bytes")?;
        let contents = |secret: &[u8]| format!("{KEY} {strength} {}\n", hex::encode(secret)).into();
        Ok(match strength {
            Strength::Keyed => NewKey { hasher: Hasher::keyed(*keyed), contents: contents(keyed) },
            Strength::Sealed => NewKey { hasher: Hasher::sealed(*secret), contents: contents(&*secret) },
            _ => bail!("a {strength} hash has no secret: keyed and sealed have"),
        })
    }

    /// Writes it to a new file that only its owner can read.
    pub fn write(&self, path: &Path) -> Result<()> {
        let name = path.display();
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut created = match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                bail!(
                    "{name} exists: a secret is never overwritten, since filters may depend on it; give another name"
                )
            }
            result => result.with_context(|| format!("cannot create {name}"))?,
        };
        let written = created.write_all(self.contents.as_bytes()).and_then(|()| created.sync_all());
        if let Err(error) = written {
            // Half a secret is none, and would stand in the way of the next attempt. What went wrong first is what is told.
            let _ = fs::remove_file(path);
            return Err(error).with_context(|| format!("cannot write to {name}"));
        }
        Ok(())
    }
}

/// Where a new filter goes.
#[derive(Args, Clone, Debug)]
pub struct Target {
    /// The file to write; without it, or with `-`, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace FILE if it is there
    #[arg(short, long)]
    force: bool,
}

impl Target {
    /// Returns the target that is this file; `force` replaces one that is there.
    pub fn file(path: PathBuf, force: bool) -> Target {
        Target { output: Some(path), force }
    }

    /// The file, unless it is standard output.
    pub fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Refuses before the work what would be refused after it, and to write over a file that is read meanwhile.
    pub fn check(&self, inputs: &[PathBuf], secrets: &Secrets) -> Result<()> {
        let Some(path) = self.path() else {
            if io::stdout().is_terminal() {
                bail!("a filter is not for a terminal: name a file with -o, or redirect the output");
            }
            return Ok(());
        };
        check_not_output(inputs, path)?;
        // Without its secret nothing that was built with it could be opened again.
        if !secrets.key_file.is_empty() {
            check_not_output(&secrets.key_file, path)?;
        }
        check_place(path, self.force)
    }

    pub fn save(&self, filter: &impl Storable, options: Options) -> Result<()> {
        let Some(path) = self.path() else {
            let mut out = io::stdout().lock();
            return file::write(&mut out, filter, &options)
                .and_then(|()| out.flush())
                .context(output::FAILED);
        };
        // Whoever is adding to the file that is replaced finishes first, and does not undo this.
        let _lock = if self.force && path.is_file() { Some(Lock::take(path)?) } else { None };
        file::save(path, filter, &Options { create_new: !self.force, ..options })
            .map_err(|error| unless_exists(error, path))
    }
}

/// Refuses a place where no file can be made, or where there is one that is not to be replaced.
pub fn check_place(path: &Path, force: bool) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            bail!("{} is a directory: name a file in it with -o", path.display())
        }
        _ if !force && fs::symlink_metadata(path).is_ok() => bail!("{}", exists(path)),
        Ok(found) if !found.is_file() => {
            bail!("cannot write to {}: it is not a regular file; `-o -` is standard output", path.display())
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot write {}", path.display()));
        }
        _ => {}
    }
    let folder = folder(path);
    if !folder.is_dir() {
        bail!("cannot write {}: there is no directory {}", path.display(), folder.display());
    }
    // It will be written beside its place first.
    tempfile::tempfile_in(folder)
        .with_context(|| format!("cannot create a file beside {}", path.display()))?;
    Ok(())
}

/// Names the option that replaces a file if the error is that the file exists already.
pub fn unless_exists(error: impl Error + Send + Sync + 'static, path: &Path) -> anyhow::Error {
    match error.source().and_then(|cause| cause.downcast_ref::<io::Error>()) {
        Some(cause) if cause.kind() == io::ErrorKind::AlreadyExists => anyhow!("{}", exists(path)),
        _ => error.into(),
    }
}

pub fn exists(path: &Path) -> String {
    format!("{} exists: give -f to replace it, or another name", path.display())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The right to replace a file, held until it is dropped.
///
/// The lock is on the file that the name stands for. When another process has replaced it meanwhile, the name stands for
/// a new file, whose lock is then taken instead; so no other file is needed, and nothing is left behind.
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// The right to make several files in the folder of one that need not be there yet. Only those who ask for it are kept
    /// out; and where a folder cannot be locked, nobody is.
    pub fn take_folder(path: &Path) -> Option<Lock> {
        let folder = File::open(folder(path)).ok()?;
        folder.lock().ok()?;
        Some(Lock(folder))
    }

    pub fn take(path: &Path) -> Result<Lock> {
        let failed = |doing: &str| format!("cannot {doing} {}", path.display());
        loop {
            let found = fs::metadata(path).with_context(|| failed("open"))?;
            if !found.is_file() {
                bail!(
                    "cannot read {}: it is {}",
                    path.display(),
                    if found.is_dir() { "a directory" } else { "not a regular file" }
                );
            }
            let file = File::open(path).with_context(|| failed("open"))?;
            if let Err(TryLockError::WouldBlock) = file.try_lock()
                && io::stderr().is_terminal()
            {
                output::warn(format_args!("waiting for another umbel that changes {}", path.display()));
            }
            file.lock().with_context(|| failed("lock"))?;
            let (locked, named) = (file.metadata(), fs::metadata(path));
            let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            if locked.map(identity).ok() == named.map(identity).ok() {
                return Ok(Lock(file));
            }
        }
    }
}
