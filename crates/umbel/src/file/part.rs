//! A file in progress: without a name, or with a temporary one, until it is complete and replaces
//! its target.

use super::Placing;
use crate::internals::regular_file;
use crate::{Error, Result};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
#[cfg(all(feature = "files", feature = "mmap"))]
use tempfile::TempPath;

/// A new file in the folder of its target.
pub(super) struct Part {
    form: Form,
    /// The path as the caller wrote it, for messages.
    path: PathBuf,
    /// The final path: behind the symbolic link, if there is one.
    target: PathBuf,
    /// The metadata of the file that is replaced.
    before: Option<Metadata>,
    placing: Placing,
}

enum Form {
    /// Linux: a file without a name, which disappears however the process ends.
    #[cfg(target_os = "linux")]
    Nameless(File),
    /// A temporary file, on other systems and on file systems that do not support nameless files,
    /// such as NFS and FUSE. Only its owner can read it until it is complete; then it gets these
    /// permissions, unless it is private or replaces a file.
    Named(NamedTempFile, Permissions),
}

impl Part {
    /// Creates an empty file that can replace `path`. Fails early if it could not.
    pub fn beside(path: &Path, placing: Placing) -> Result<Part> {
        Part::in_form(path, placing, Form::new)
    }

    fn in_form(path: &Path, placing: Placing, form: impl FnOnce(&Path) -> io::Result<Form>) -> Result<Part> {
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
            regular_file::check(before).map_err(failed("write to"))?;
        }
        let target = match &before {
            Some(_) => fs::canonicalize(path).map_err(failed("find"))?,
            // A dangling link counts as an existing file.
            None if create_new => path.to_owned(),
            None => behind_links(path),
        };
        let form = form(folder(&target)).map_err(failed("create a file beside"))?;
        Ok(Part { form, path: path.to_owned(), target, before, placing })
    }

    pub fn file(&mut self) -> &mut File {
        match &mut self.form {
            #[cfg(target_os = "linux")]
            Form::Nameless(file) => file,
            Form::Named(file, _) => file.as_file_mut(),
        }
    }

    /// Flushes the file to disk and puts it in place of the target.
    pub fn persist(mut self) -> Result<File> {
        let path = &self.path.clone();
        let failed = |doing| move |source| Error::io(path, doing, source);
        let permissions = match (self.before.take(), &self.form) {
            (Some(before), _) => {
                keep_owner(self.file(), &before);
                Some(before.permissions())
            }
            (None, _) if self.placing.private => {
                make_private(self.file()).map_err(failed("keep others from"))?;
                None
            }
            (None, Form::Named(_, usual)) => Some(usual.clone()),
            #[cfg(target_os = "linux")]
            (None, Form::Nameless(_)) => None,
        };
        if let Some(permissions) = permissions {
            self.file().set_permissions(permissions).map_err(failed("give its permissions to"))?;
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
            Form::Named(file, _) if create_new => file.persist_noclobber(&target).map_err(io::Error::from),
            Form::Named(file, _) => file.persist(&target).map_err(io::Error::from),
        }
        .map_err(failed(doing))?;
        // The new name must survive a power failure as well as the contents. Some file systems
        // cannot flush a directory; the file itself is complete in any case.
        if let Ok(folder) = File::open(folder(&target)) {
            let _ = folder.sync_all();
        }
        Ok(file)
    }
}

/// Files that several processes write.
#[cfg(all(feature = "files", feature = "mmap"))]
impl Part {
    /// Creates an empty file with a temporary name, which other processes can open.
    pub fn named(path: &Path, placing: Placing) -> Result<Part> {
        Part::in_form(path, placing, Form::named)
    }

    /// Leaves a file with a temporary name to other processes, and returns its path.
    pub fn leave(self) -> Result<PathBuf> {
        let failed = |source| Error::io(&self.path, "create a file beside", source);
        match self.form {
            Form::Named(file, _) => Ok(file.keep().map_err(|error| failed(error.error))?.1),
            #[cfg(target_os = "linux")]
            Form::Nameless(_) => Err(failed(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Takes over a file that another process left under a temporary name.
    pub fn resume(path: &Path, placing: Placing, file: File, name: &Path) -> Result<Part> {
        Part::in_form(path, placing, |folder| {
            let file = NamedTempFile::from_parts(file, TempPath::try_from_path(name)?);
            Ok(Form::Named(file, usual_permissions(folder)?))
        })
    }
}

impl Form {
    fn new(folder: &Path) -> io::Result<Form> {
        #[cfg(target_os = "linux")]
        if let Some(file) = nameless::create(folder) {
            return Ok(Form::Nameless(file));
        }
        Form::named(folder)
    }

    /// Creates a file with a temporary name that only its owner can read. The permissions of
    /// another, empty one are those that the umask and the folder give to new files: to ask for the
    /// umask is to change it, also for other threads.
    fn named(folder: &Path) -> io::Result<Form> {
        let usual = usual_permissions(folder)?;
        Ok(Form::Named(names().tempfile_in(folder)?, usual))
    }
}

/// Returns the permissions that new files of a folder have.
fn usual_permissions(folder: &Path) -> io::Result<Permissions> {
    Ok(usual_names().tempfile_in(folder)?.as_file().metadata()?.permissions())
}

/// Follows links to a file that does not exist yet.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // The number of links that the system follows.
    for _ in 0..40 {
        let Ok(link) = fs::read_link(&path) else { break };
        path = folder(&path).join(link);
    }
    path
}

/// Sets the owner of a file to that of the file it replaces, if the system permits it: only root
/// may change owners.
fn keep_owner(file: &File, before: &Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let _ = fchown(file, Some(before.uid()), Some(before.gid()));
    }
}

/// Makes a file readable by its owner alone.
fn make_private(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Returns the pattern for the names of temporary files, which only their owner can read.
fn names() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".umbel-").suffix(".part");
    builder
}

/// Returns the pattern for temporary files with the usual permissions of new files, as restricted by
/// the umask.
fn usual_names() -> tempfile::Builder<'static, 'static> {
    let mut builder = names();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
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

    /// Creates a file without a name, if it can be named later.
    pub fn create(folder: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
        handle(&file).exists().then_some(file)
    }

    pub fn persist(file: &File, target: &Path, create_new: bool) -> io::Result<()> {
        match name(file, target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !create_new => {
                // A link cannot replace a file, but renaming a file with another name can.
                let named = names().make_in(folder(target), |path| name(file, path))?;
                named.persist(target).map(drop).map_err(io::Error::from)
            }
            other => other,
        }
    }

    fn name(file: &File, path: &Path) -> io::Result<()> {
        Ok(linkat(CWD, handle(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Returns the path under which the system knows an open file.
    fn handle(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// The mode of a named file while it is written, and that of the finished file.
    fn modes(path: &Path, placing: Placing) -> (u32, u32) {
        let mut part = Part::in_form(path, placing, Form::named).unwrap();
        part.file().write_all(b"a secret").unwrap();
        let Form::Named(file, _) = &part.form else { panic!("a file with a name") };
        let folder = path.parent().unwrap();
        let parts = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        assert_eq!(parts.filter(|other| other != path).collect::<Vec<_>>(), [file.path()]);
        let before = mode(file.path());
        part.persist().unwrap();
        assert_eq!(fs::read(path).unwrap(), b"a secret");
        (before, mode(path))
    }

    #[test]
    fn a_file_with_a_name_is_readable_by_its_owner_alone_until_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let usual = folder.path().join("usual");
        fs::write(&usual, b"").unwrap();
        let usual = (mode(&usual), fs::remove_file(&usual).unwrap()).0;
        let path = folder.path().join("new");
        assert_eq!(modes(&path, Placing::default()), (0o600, usual));
        // A file that is replaced passes its permissions on, also to a private one.
        for wide in [0o640, 0o444, 0o666] {
            fs::set_permissions(&path, Permissions::from_mode(wide)).unwrap();
            assert_eq!(modes(&path, Placing { private: true, ..Placing::default() }), (0o600, wide));
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(modes(&path, Placing { private: true, ..Placing::default() }), (0o600, 0o600));
    }

    #[test]
    fn a_private_file_without_a_name_is_private_before_it_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let mut part = Part::beside(&path, Placing { private: true, ..Placing::default() }).unwrap();
        part.file().write_all(b"a secret").unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        assert!(names().all(|name| mode(&name) == 0o600));
        part.persist().unwrap();
        assert_eq!((mode(&path), names().count()), (0o600, 1));
    }
}
