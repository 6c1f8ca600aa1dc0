//! From a filter to bytes, and to a file that is wholly there or not at all.

use super::Options;
use super::header::{BITS, Header, StoredHash, chunk_sum};
use crate::hash::Function;
use crate::words::Words;
use crate::{AnyFilter, Bloom, Error, Filter, Hasher, Layout, Result, Stored};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes the filter to `path`, replacing what is there only once everything is safely on the disk.
pub fn save(path: impl AsRef<Path>, filter: &Stored, options: &Options) -> Result<()> {
    let path = path.as_ref();
    let encoder = Encoder::new(filter, options)?;
    let failed = |doing| move |source| Error::io(path, doing, source);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(Error::io(path, "write to", io::Error::from(io::ErrorKind::IsADirectory)));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".umbel-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What is replaced keeps its permissions; what is new gets the usual ones, less the umask.
        let mode = fs::metadata(path).map_or(0o666, |metadata| metadata.permissions().mode() & 0o777);
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let mut part = builder.tempfile_in(folder).map_err(failed("create a file beside"))?;
    let mut writer = BufWriter::with_capacity(1 << 20, part.as_file_mut());
    encoder.write(&mut writer).and_then(|()| writer.flush()).map_err(failed("write to"))?;
    drop(writer);
    part.as_file().sync_all().map_err(failed("flush"))?;
    part.persist(path).map_err(|error| Error::io(path, "replace", error.error))?;
    // The new name has to survive a power failure as well as the contents. Some file systems cannot flush a directory;
    // the file itself is complete in any case.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// The bytes of the file that [`save`] would write.
pub fn to_bytes(filter: &Stored, options: &Options) -> Result<Vec<u8>> {
    let encoder = Encoder::new(filter, options)?;
    let mut bytes = Vec::with_capacity(encoder.header.file_len as usize);
    encoder.write(&mut bytes).expect("writing to memory cannot fail");
    Ok(bytes)
}

/// How long the file will be.
pub fn size(filter: &Stored, options: &Options) -> Result<u64> {
    Ok(Encoder::new(filter, options)?.header.file_len)
}

struct Encoder<'a> {
    header: Header,
    words: &'a Words,
}

impl<'a> Encoder<'a> {
    fn new(filter: &'a Stored, options: &Options) -> Result<Encoder<'a>> {
        let mut encoder = match filter {
            Stored::Set(AnyFilter::Standard(filter)) => Encoder::bloom(filter, options),
            Stored::Set(AnyFilter::Partitioned(filter)) => Encoder::bloom(filter, options),
            Stored::Set(AnyFilter::Blocked(filter)) => Encoder::bloom(filter, options),
            Stored::Literature(filter) => {
                let scheme = filter.scheme();
                let (hash, params) =
                    (StoredHash::Family(scheme.family().id().into()), [scheme.m(), scheme.k().into()]);
                let mut encoder = Encoder::bits(filter.kind(), hash, params, &filter.words, options);
                (encoder.header.design, encoder.header.inserted) = (filter.design, filter.inserted);
                Ok(encoder)
            }
        }?;
        encoder.header.place();
        if encoder.header.header_len > u64::from(u32::MAX) {
            return Err(Error::parameter(
                "metadata",
                format!("{} bytes", encoder.header.header_len),
                "less than 4 GiB",
            ));
        }
        Ok(encoder)
    }

    fn bloom<L: Layout>(filter: &'a Bloom<L>, options: &Options) -> Result<Encoder<'a>> {
        let hash = StoredHash::Digest(filter.hasher().id());
        let mut encoder = Encoder::bits(L::KIND, hash, filter.layout().params(), filter.words(), options);
        (encoder.header.design, encoder.header.inserted) = (filter.design(), filter.inserted());
        if options.embed_key {
            encoder.header.embedded_key = Some(embeddable(filter.hasher())?);
        }
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
fn embeddable(hasher: &Hasher) -> Result<[u8; 16]> {
    match hasher.0 {
        Function::Keyed { key, .. } => Ok(key),
        _ => Err(Error::parameter(
            "embed_key",
            hasher.id(),
            "a filter with a keyed hash: no other secret is embedded",
        )),
    }
}
