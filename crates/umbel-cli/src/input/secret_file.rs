//! Files with secrets: key files and passphrases, which only their owner may have access to.

use anyhow::{Result, bail};
use rustix::process::geteuid;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Fails if other users own a file with a secret, or can read or change it. `found` is the metadata
/// of the open file. A pipe is as private as its writer.
///
/// Files of root pass, since root can read everything.
pub fn check_private(found: &Metadata, kind: &str, name: &str) -> Result<()> {
    if !found.is_file() {
        return Ok(());
    }
    let owner = found.uid();
    if owner != 0 && owner != geteuid().as_raw() {
        bail!(
            "the {kind} {name} belongs to another user, who may know the secret: make one that is your own"
        );
    }
    if found.permissions().mode() & 0o077 != 0 {
        bail!("others have access to the {kind} {name}: `chmod 600 {name}` keeps it secret");
    }
    Ok(())
}
