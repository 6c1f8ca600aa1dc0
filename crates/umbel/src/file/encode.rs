//! Encodes a filter into bytes, and writes files completely or not at all.

use super::header::{ChunkSums, Header, StoredHash};
use super::{FormatError, Options};
#[cfg(feature = "files")]
use super::{Placing, part::Part};
#[cfg(feature = "secrets")]
use crate::hash::Function;
use crate::internals::secret::Secret;
use crate::literature::Literature;
use crate::structure::{BITS, Body, Head};
use crate::{Error, Hasher, Kind, Result, Stored, Structure};
use std::io::{self, Write};
#[cfg(feature = "files")]
use std::{fs::File, io::BufWriter, path::Path};

/// Writes the filter to `path`. An existing file is replaced only once everything is safely on
/// disk. A symbolic link is kept, and the file it points to is replaced.
///
/// # Errors
///
/// If an option does not suit the filter, `path` is not a regular file, or the system cannot write
/// it.
#[cfg(feature = "files")]
pub fn save(path: impl AsRef<Path>, filter: &impl Storable, options: &Options) -> Result<()> {
    let path = path.as_ref();
    let encoder = Encoder::for_filter(filter, options)?;
    let failed = |doing| move |source| Error::io(path, doing, source);
    // Anyone with the secret can construct false positives.
    let placing = Placing { create_new: options.create_new, private: options.embed_key, locked: false };
    let mut part = Part::beside(path, placing)?;
    let mut writer = BufWriter::with_capacity(1 << 20, part.file());
    encoder.write(&mut writer).and_then(|()| writer.flush()).map_err(failed("write to"))?;
    drop(writer);
    part.persist().map(drop)
}

/// Writes any file the way [`save`] writes filters: completely or not at all. Returns the open
/// file.
///
/// ```
/// use umbel::file::{self, Placing};
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("notes");
/// file::save_bytes(&path, b"first", Placing::default())?;
/// let once = Placing { create_new: true, ..Placing::default() };
/// assert!(file::save_bytes(&path, b"second", once).is_err());
/// assert_eq!(std::fs::read(&path)?, b"first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If `path` exists and `placing` forbids replacing it, `path` is not a regular file, or the system
/// cannot write it.
#[cfg(feature = "files")]
pub fn save_bytes(path: impl AsRef<Path>, bytes: &[u8], placing: Placing) -> Result<File> {
    let path = path.as_ref();
    save_with(path, placing, |file| {
        file.write_all(bytes).map_err(|source| Error::io(path, "write to", source))
    })
}

/// Writes a file that is too large for memory the way [`save_bytes`] writes others: completely or
/// not at all. If `write` fails, the new file is discarded and an existing one is unchanged.
///
/// ```
/// use std::io::Write;
/// use umbel::file::{self, Placing};
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("numbers");
/// let failed = file::save_with(&path, Placing::default(), |file| {
///     file.write_all(b"one, two, ").expect("a file that can be written to");
///     Err(umbel::Error::parameter("n", 3, "a number that can be written"))
/// });
/// assert!(failed.is_err() && !path.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`save_bytes`]; also any error of `write`.
#[cfg(feature = "files")]
pub fn save_with<E: From<Error>>(
    path: impl AsRef<Path>,
    placing: Placing,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<File, E> {
    let mut part = Part::beside(path.as_ref(), placing)?;
    write(part.file())?;
    Ok(part.persist()?)
}

/// Writes to a pipe or any other writer the bytes of the file that [`save`] would write, without a
/// copy of them in memory.
///
/// ```
/// use umbel::file::{self, Options};
/// use umbel::{Bloom, Standard};
/// let filter = Bloom::<Standard>::with_capacity(1000, 0.01)?;
/// let mut bytes = Vec::new();
/// file::write(&mut bytes, &filter, &Options::default())?;
/// assert_eq!(bytes, file::to_bytes(&filter, &Options::default())?);
///
/// let no_secret = Options { embed_key: true, ..Options::default() };
/// let error = file::write(&mut bytes, &filter, &no_secret).unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the writer fails. Unsuitable options are reported as
/// [`InvalidInput`](io::ErrorKind::InvalidInput).
pub fn write(to: &mut impl Write, filter: &impl Storable, options: &Options) -> io::Result<()> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
    Encoder::for_filter(filter, options).map_err(invalid)?.write(to)
}

/// Returns the bytes of the file that [`save`] would write.
///
/// # Errors
///
/// If an option does not suit the filter, or there is not enough memory.
///
/// # Panics
///
/// Never: writing to memory cannot fail.
pub fn to_bytes(filter: &impl Storable, options: &Options) -> Result<Vec<u8>> {
    let encoder = Encoder::for_filter(filter, options)?;
    let mut bytes = Vec::new();
    let out_of_memory = |_| Error::OutOfMemory { bytes: encoder.header.file_len };
    bytes.try_reserve_exact(encoder.header.file_len as usize).map_err(out_of_memory)?;
    encoder.write(&mut bytes).expect("writing to memory cannot fail");
    Ok(bytes)
}

/// Returns the length of the file that [`save`] would write.
///
/// # Errors
///
/// If an option does not suit the filter.
pub fn size(filter: &impl Storable, options: &Options) -> Result<u64> {
    Ok(Encoder::for_filter(filter, options)?.header.file_len)
}

/// A structure that can be written to a file: a filter of any kind, or one of the enums over them.
pub trait Storable {
    #[doc(hidden)]
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>>;

    /// Rejects a file that holds another kind.
    #[doc(hidden)]
    fn check_kind(kind: Kind) -> Result<(), FormatError>
    where
        Self: Sized;

    /// Converts the contents of a file, if they are of this kind.
    #[doc(hidden)]
    fn from_stored(stored: Stored) -> Result<Self>
    where
        Self: Sized;
}

/// Returns an error that names both kinds unless `is` is true.
pub(crate) fn expect_kind(is: bool, found: Kind, expected: impl Into<String>) -> Result<(), FormatError> {
    if is { Ok(()) } else { Err(FormatError::wrong_kind(found, expected)) }
}

impl<S: Structure> Storable for S {
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
        let (lengths, sections) = split(self.body()?);
        Ok(Encoder { header: header_of(S::KIND, self.head(), self.params(), &lengths, options)?, sections })
    }

    fn check_kind(kind: Kind) -> Result<(), FormatError> {
        expect_kind(kind == S::KIND, kind, S::KIND.described())
    }

    fn from_stored(stored: Stored) -> Result<S> {
        let kind = stored.kind();
        S::check_kind(kind)?;
        let found = stored.into_any().downcast();
        found
            .map(|structure| *structure)
            .map_err(|_| FormatError::wrong_kind(kind, S::KIND.to_string()).into())
    }
}

impl Storable for Literature {
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
        if options.embed_key {
            return Err(Error::parameter("embed_key", self.scheme().family(), "a filter with a keyed hash"));
        }
        let scheme = self.scheme();
        let hash = StoredHash::Family(scheme.family().id().into());
        let params = vec![scheme.m(), scheme.k().into()];
        let (lengths, sections) = split(vec![(BITS, Body::Held(&self.words))]);
        let mut header = Header::for_body(self.kind(), hash, params, &lengths, options.meta.clone());
        (header.design, header.inserted) = (self.design, self.inserted);
        Ok(Encoder { header, sections })
    }

    fn check_kind(kind: Kind) -> Result<(), FormatError> {
        expect_kind(kind == Kind::Literature, kind, "a filter of the literature")
    }

    fn from_stored(stored: Stored) -> Result<Literature> {
        stored.try_into()
    }
}

impl Storable for Stored {
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
        match self {
            Stored::Set(filter) => filter.encoder(options),
            Stored::Literature(filter) => filter.encoder(options),
            Stored::Map(map) => map.encoder(options),
            Stored::Count(counts) => counts.encoder(options),
            Stored::Sketch(sketch) => sketch.encoder(options),
        }
    }

    fn check_kind(_: Kind) -> Result<(), FormatError> {
        Ok(())
    }

    fn from_stored(stored: Stored) -> Result<Stored> {
        Ok(stored)
    }
}

/// Returns the header of a structure with sections of these types and lengths.
pub(super) fn header_of(
    kind: Kind,
    head: &Head,
    params: Vec<u64>,
    lengths: &[(u32, u64)],
    options: &Options,
) -> Result<Header> {
    let hash = StoredHash::Digest(head.hasher.id());
    let mut header = Header::for_body(kind, hash, params, lengths, options.meta.clone());
    (header.design, header.inserted) = (head.design, head.inserted);
    if options.embed_key {
        header.embedded_key = Some(embeddable(&head.hasher)?);
    }
    Ok(header)
}

/// Returns the type and length of each section, and the sections.
fn split(sections: Vec<(u32, Body<'_>)>) -> (Vec<(u32, u64)>, Vec<Body<'_>>) {
    sections.into_iter().map(|(what, words)| ((what, words.as_bytes().len() as u64), words)).unzip()
}

/// A header and the sections after it, ready to be written.
pub struct Encoder<'a> {
    header: Header,
    sections: Vec<Body<'a>>,
}

impl<'a> Encoder<'a> {
    /// Returns the encoder of a filter, with the lengths and offsets in its header computed.
    pub(super) fn for_filter(filter: &'a (impl Storable + ?Sized), options: &Options) -> Result<Encoder<'a>> {
        let mut encoder = filter.encoder(options)?;
        encoder.header.check_meta()?;
        encoder.header.place();
        Ok(encoder)
    }

    /// Returns the bytes of the header, with the checksums of everything after it.
    pub(super) fn header(&self) -> Vec<u8> {
        let mut sums = ChunkSums::new(self.header.chunk_log2);
        self.sections.iter().for_each(|words| sums.add(&words.to_le_bytes()));
        Header { sums: sums.finish(), ..self.header.clone() }.encode()
    }

    pub(super) fn header_len(&self) -> u64 {
        self.header.header_len
    }

    pub(super) fn file_len(&self) -> u64 {
        self.header.file_len
    }

    /// Returns the sections after the header. They consist of whole lines, so there are no gaps
    /// between them.
    pub(super) fn sections(&self) -> &[Body<'a>] {
        &self.sections
    }

    fn write(self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.header())?;
        self.sections.iter().try_for_each(|words| to.write_all(&words.to_le_bytes()))
    }
}

/// Returns the secret if it may be written into a file.
pub(crate) fn embeddable(hasher: &Hasher) -> Result<Secret<[u8; 16]>> {
    match hasher.0 {
        #[cfg(feature = "secrets")]
        Function::Keyed { key, .. } => Ok(Secret(key)),
        _ => Err(Error::parameter(
            "embed_key",
            hasher.id(),
            "a filter with a keyed hash: no other secret is embedded",
        )),
    }
}
