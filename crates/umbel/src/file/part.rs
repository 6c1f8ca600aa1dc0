//! A file on its way: invisible, or under a name of its own, until it is complete and takes the place of its target.

use super::Placing;
use super::decode::regular;
use crate::{Error, Result};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file in the folder of its target.
pub(super) struct Part {
    form: Form,
    /// As the caller wrote it, for messages.
    path: PathBuf,
    /// Where it will be: behind the symbolic link, if there is one.
    target: PathBuf,
    /// The file it replaces.
    before: Option<Metadata>,
    placing: Placing,
}

enum Form {
    /// Linux: a file without a name, of which nothing is left however the process ends.
    #[cfg(target_os = "linux")]
    Nameless(File),
    /// Elsewhere, and on file systems that do not know such files.
    Named(NamedTempFile),
}

impl Part {
    /// An empty file that can take the place of `path`; refuses to begin if it could not.
    pub fn beside(path: &Path, placing: Placing) -> Result<Part> {
        let create_new = placing.create_new;
        let failed = |doing| move |source| Error::io(path, doing, source);
        let before = match fs::metadata(path) {
            Ok(before) => Some(before),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(path, "find", error)),
        };
        if let Some(before) = &before {
            if create_new {
                return Err(Error::io(path, "create", io::ErrorKind::AlreadyExists.into()));
            }
            regular(before).map_err(failed("write to"))?;
        }
        let target = match &before {
            Some(_) => fs::canonicalize(path).map_err(failed("find"))?,
            // A link that leads nowhere counts as something that is there.
            None if create_new => path.to_owned(),
            None => behind_links(path),
        };
        let form = Form::new(folder(&target)).map_err(failed("create a file beside"))?;
        Ok(Part { form, path: path.to_owned(), target, before, placing })
    }

    pub fn file(&mut self) -> &mut File {
        match &mut self.form {
            #[cfg(target_os = "linux")]
            Form::Nameless(file) => file,
            Form::Named(file) => file.as_file_mut(),
        }
    }

    /// Takes the place of the target, once everything is on the disk.
    pub fn persist(mut self) -> Result<File> {
        let path = &self.path.clone();
        let failed = |doing| move |source| Error::io(path, doing, source);
        match self.before.take() {
            Some(before) => {
                keep_owner(self.file(), &before);
                let permissions = before.permissions();
                self.file().set_permissions(permissions).map_err(failed("give its permissions to"))?;
            }
            None if self.placing.private => make_private(self.file()).map_err(failed("keep others from"))?,
            None => {}
        }
        self.file().sync_all().map_err(failed("flush"))?;
        if self.placing.locked {
            self.file().lock().map_err(failed("lock"))?;
        }
        let Part { form, target, placing: Placing { create_new, .. }, .. } = self;
        let doing = if create_new { "create" } else { "replace" };
        let file = match form {
            #[cfg(target_os = "linux")]
            Form::Nameless(file) => nameless::persist(&file, &target, create_new).map(|()| file),
            Form::Named(file) if create_new => file.persist_noclobber(&target).map_err(io::Error::from),
            Form::Named(file) => file.persist(&target).map_err(io::Error::from),
        }
        .map_err(failed(doing))?;
        // The new name has to survive a power failure as well as the contents. Some file systems cannot flush a
        // directory; the file itself is complete in any case.
        if let Ok(folder) = File::open(folder(&target)) {
            let _ = folder.sync_all();
        }
        Ok(file)
    }
}

impl Form {
    fn new(folder: &Path) -> io::Result<Form> {
        #[cfg(target_os = "linux")]
        if let Some(file) = nameless::create(folder) {
            return Ok(Form::Nameless(file));
        }
        names().tempfile_in(folder).map(Form::Named)
    }
}

/// The file that links lead to, though it is not there yet.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many as the system follows.
    for _ in 0..40 {
        let Ok(link) = fs::read_link(&path) else { break };
        path = folder(&path).join(link);
    }
    path
}

/// Gives a file the owner of the one it replaces, as far as the system lets us: only root may give files away.
fn keep_owner(file: &File, before: &Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let _ = fchown(file, Some(before.uid()), Some(before.gid()));
    }
}

/// For its owner alone.
fn make_private(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// How files on their way are called where they need a name.
fn names() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".umbel-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A new file gets the usual permissions, less the umask.
        builder.permissions(Permissions::from_mode(0o666));
    }
    builder
}

fn folder(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(target_os = "linux")]
mod nameless {
    use super::{folder, names};
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    /// A file without a name, if it can be given one later.
    pub fn create(folder: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
        handle(&file).exists().then_some(file)
    }

    pub fn persist(file: &File, target: &Path, create_new: bool) -> io::Result<()> {
        match name(file, target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !create_new => {
                // A link cannot replace a file, but a file with another name can.
                let named = names().make_in(folder(target), |path| name(file, path))?;
                named.persist(target).map(drop).map_err(io::Error::from)
            }
            other => other,
        }
    }

    fn name(file: &File, path: &Path) -> io::Result<()> {
        Ok(linkat(CWD, handle(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// The path under which the system knows an open file.
    fn handle(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }
}
