//! From a filter to bytes, and to a file that is wholly there or not at all.

use super::Options;
use super::decode::regular;
use super::header::{BITS, Header, MOST_ENTRIES, MOST_META, Secret, StoredHash, chunk_sum};
use crate::hash::Function;
use crate::literature::Literature;
use crate::words::Words;
use crate::{AnyFilter, Bloom, Error, Filter, Hasher, Layout, Result, Stored};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes the filter to `path`, replacing what is there only once everything is safely on the disk. A symbolic link
/// stays, and what it points to is replaced; anything but a regular file is refused.
pub fn save(path: impl AsRef<Path>, filter: &impl Storable, options: &Options) -> Result<()> {
    let path = path.as_ref();
    let encoder = Encoder::of(filter, options)?;
    let failed = |doing| move |source| Error::io(path, doing, source);
    let before = fs::metadata(path).ok();
    if let Some(before) = &before {
        regular(before).map_err(failed("write to"))?;
    }
    let target =
        if before.is_some() { fs::canonicalize(path).map_err(failed("find"))? } else { path.to_owned() };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".umbel-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A new file gets the usual permissions, less the umask.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut part = builder.tempfile_in(folder).map_err(failed("create a file beside"))?;
    let mut writer = BufWriter::with_capacity(1 << 20, part.as_file_mut());
    encoder.write(&mut writer).and_then(|()| writer.flush()).map_err(failed("write to"))?;
    drop(writer);
    if let Some(before) = before {
        part.as_file().set_permissions(before.permissions()).map_err(failed("give its permissions to"))?;
    }
    part.as_file().sync_all().map_err(failed("flush"))?;
    part.persist(&target).map_err(|error| Error::io(path, "replace", error.error))?;
    // The new name has to survive a power failure as well as the contents. Some file systems cannot flush a directory;
    // the file itself is complete in any case.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// The bytes of the file that [`save`] would write.
pub fn to_bytes(filter: &impl Storable, options: &Options) -> Result<Vec<u8>> {
    let encoder = Encoder::of(filter, options)?;
    let mut bytes = Vec::new();
    let out_of_memory = |_| Error::OutOfMemory { bytes: encoder.header.file_len };
    bytes.try_reserve_exact(encoder.header.file_len as usize).map_err(out_of_memory)?;
    encoder.write(&mut bytes).expect("writing to memory cannot fail");
    Ok(bytes)
}

/// How long the file will be.
pub fn size(filter: &impl Storable, options: &Options) -> Result<u64> {
    Ok(Encoder::of(filter, options)?.header.file_len)
}

/// Whatever can be written to a file: a filter of any kind, or one of the enums over them.
pub trait Storable {
    #[doc(hidden)]
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>>;
}

impl<L: Layout> Storable for Bloom<L> {
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
        let hash = StoredHash::Digest(self.hasher().id());
        let mut encoder = Encoder::bits(L::KIND, hash, self.layout().params(), self.words(), options);
        (encoder.header.design, encoder.header.inserted) = (self.design(), self.inserted());
        if options.embed_key {
            encoder.header.embedded_key = Some(embeddable(self.hasher())?);
        }
        Ok(encoder)
    }
}

impl Storable for Literature {
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
        if options.embed_key {
            return Err(Error::parameter("embed_key", self.scheme().family(), "a filter with a keyed hash"));
        }
        let scheme = self.scheme();
        let (hash, params) =
            (StoredHash::Family(scheme.family().id().into()), [scheme.m(), scheme.k().into()]);
        let mut encoder = Encoder::bits(self.kind(), hash, params, &self.words, options);
        (encoder.header.design, encoder.header.inserted) = (self.design, self.inserted);
        Ok(encoder)
    }
}

impl Storable for AnyFilter {
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
        match self {
            AnyFilter::Standard(filter) => filter.encoder(options),
            AnyFilter::Partitioned(filter) => filter.encoder(options),
            AnyFilter::Blocked(filter) => filter.encoder(options),
        }
    }
}

impl Storable for Stored {
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
        match self {
            Stored::Set(filter) => filter.encoder(options),
            Stored::Literature(filter) => filter.encoder(options),
        }
    }
}

/// A header and the words behind it, ready to be written.
pub struct Encoder<'a> {
    header: Header,
    words: &'a Words,
}

impl<'a> Encoder<'a> {
    /// The encoder of a filter, with what depends on everything else in the header.
    fn of(filter: &'a impl Storable, options: &Options) -> Result<Encoder<'a>> {
        let mut encoder = filter.encoder(options)?;
        let (entries, bytes) = (encoder.header.meta.len(), encoder.header.meta_len());
        if entries > MOST_ENTRIES || bytes > MOST_META {
            let got = format!("{entries} entries of {bytes} bytes");
            return Err(Error::parameter("metadata", got, "at most 4096 entries and 1 MiB"));
        }
        encoder.header.place();
        Ok(encoder)
    }

    fn bits(
        kind: crate::Kind,
        hash: StoredHash,
        params: [u64; 2],
        words: &'a Words,
        options: &Options,
    ) -> Encoder<'a> {
        let lengths = [(BITS, words.as_bytes().len() as u64)];
        Encoder {
            header: Header::for_body(kind, hash, params.to_vec(), &lengths, options.meta.clone()),
            words,
        }
    }

    fn write(mut self, to: &mut impl Write) -> io::Result<()> {
        let body = self.words.to_le_bytes();
        let chunk = 1usize << self.header.chunk_log2;
        for (index, bytes) in body.chunks(chunk).enumerate() {
            self.header.sums[index] = chunk_sum(index, bytes);
        }
        to.write_all(&self.header.encode())?;
        to.write_all(&body)
    }
}

/// The secret that may be written into a file.
fn embeddable(hasher: &Hasher) -> Result<Secret> {
    match hasher.0 {
        Function::Keyed { key, .. } => Ok(Secret(key)),
        _ => Err(Error::parameter(
            "embed_key",
            hasher.id(),
            "a filter with a keyed hash: no other secret is embedded",
        )),
    }
}
