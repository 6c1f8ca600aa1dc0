//! A file whose body is written in ranges, by several processes and in any order.

use super::encode::header_of;
use super::header::{Header, chunk_sum};
use super::part::Part;
use super::{FormatError, Options, Placing};
use crate::internals::regular_file;
use crate::memory::LINE_BYTES;
use crate::structure::{BITS, Head};
use crate::{Error, Kind, Result};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file of a filter of one section before its bits are known.
///
/// One process [creates](RangedFile::create) a file with a temporary name beside the target; any
/// number of processes [write](RangedFile::write) ranges of the body to it, and flush them to disk;
/// then one process [finishes](RangedFile::finish) it: it writes the header, flushes it and renames
/// the file.
#[derive(Clone, Debug)]
pub(crate) struct RangedFile {
    header: Header,
}

impl RangedFile {
    /// Computes the shape of the file.
    ///
    /// # Errors
    ///
    /// If an option does not suit the filter.
    pub(crate) fn new(
        kind: Kind,
        head: &Head,
        params: Vec<u64>,
        lines: u64,
        options: &Options,
    ) -> Result<RangedFile> {
        let mut header = header_of(kind, head, params, &[(BITS, lines * LINE_BYTES as u64)], options)?;
        header.place();
        Ok(RangedFile { header })
    }

    /// Returns the length of the file.
    pub fn len(&self) -> u64 {
        self.header.file_len
    }

    /// Creates the file under a temporary name in the folder of its target, and returns its path.
    /// Its owner alone can read it until it is finished. If it never is, it has to be deleted.
    ///
    /// # Errors
    ///
    /// If the target is not a regular file, or the system cannot create a file beside it.
    pub fn create(&self, path: &Path) -> Result<PathBuf> {
        let mut part = Part::named(path, self.placing())?;
        part.file().set_len(self.len()).map_err(|source| Error::io(path, "write to", source))?;
        part.leave()
    }

    /// Writes a range of the body that starts at byte `start`, a multiple of the chunk size. Returns
    /// the checksums of its chunks.
    ///
    /// # Errors
    ///
    /// If the file is not one that [`create`](RangedFile::create) made for the same filter, or the
    /// system cannot write it.
    pub(crate) fn write(&self, partial: &Path, start: u64, bytes: &[u8]) -> Result<Vec<u64>> {
        let mut file = self.open(partial, OpenOptions::new().write(true))?;
        let place = SeekFrom::Start(self.header.header_len + start);
        let written = file.seek(place).and_then(|_| file.write_all(bytes));
        written.map_err(|source| Error::io(partial, "write to", source))?;
        // The process that finishes the file can flush what its own machine has written, no more. And a
        // file system of several machines may report only now that there is no space.
        file.sync_data().map_err(|source| Error::io(partial, "flush", source))?;
        let first = (start >> self.header.chunk_log2) as usize;
        let chunks = bytes.chunks(1 << self.header.chunk_log2);
        Ok((first..).zip(chunks).map(|(index, chunk)| chunk_sum(index, chunk)).collect())
    }

    /// Completes the file and puts it in place of its target. `sums` has for each range that was
    /// written the byte at which it starts, and its checksums; the rest is read from the file.
    ///
    /// # Errors
    ///
    /// If there are checksums that no range has, the partial file is not one of this filter, or the
    /// system cannot write it. The target has not changed then.
    pub fn finish(
        mut self,
        path: &Path,
        partial: &Path,
        inserted: u64,
        sums: &BTreeMap<u64, &[u64]>,
    ) -> Result<()> {
        let mut file = self.open(partial, OpenOptions::new().read(true).write(true))?;
        self.header.inserted = Some(inserted);
        self.header.sums = self.sums(&mut file, partial, sums)?;
        let header = self.header.encode();
        let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&header));
        written.map_err(|source| Error::io(partial, "write to", source))?;
        Part::resume(path, self.placing(), file, partial)?.persist().map(drop)
    }

    /// Returns the checksums of all chunks: those given, and those of the chunks in the file.
    fn sums(&self, file: &mut File, partial: &Path, given: &BTreeMap<u64, &[u64]>) -> Result<Vec<u64>> {
        let (log2, chunks) = (self.header.chunk_log2, self.header.sums.len());
        let mut sums = vec![None; chunks];
        for (start, given) in given {
            let first = usize::try_from(start >> log2).unwrap_or(usize::MAX);
            let places = sums.get_mut(first..).and_then(|places| places.get_mut(..given.len()));
            let (Some(places), true) = (places, start.is_multiple_of(1 << log2)) else {
                let got = format!("{} from byte {start} on", given.len());
                return Err(Error::parameter("sums", got, format!("the {chunks} of this file")));
            };
            places.iter_mut().zip(*given).for_each(|(place, sum)| *place = Some(*sum));
        }
        let mut chunk = Vec::new();
        let mut read = |index: usize| {
            let std::ops::Range { start, end } = self.header.chunk(index);
            chunk.resize((end - start) as usize, 0);
            file.seek(SeekFrom::Start(start))?;
            file.read_exact(&mut chunk)?;
            Ok(chunk_sum(index, &chunk))
        };
        let all = sums.into_iter().enumerate().map(|(index, sum)| sum.map_or_else(|| read(index), Ok));
        all.collect::<std::io::Result<_>>().map_err(|source| Error::io(partial, "read", source))
    }

    /// Opens a partial file of this filter.
    fn open(&self, partial: &Path, options: &mut OpenOptions) -> Result<File> {
        let failed = |doing| move |source| Error::io(partial, doing, source);
        let file = regular_file::open_with(options, partial).map_err(failed("open"))?;
        let found = file.metadata().map_err(failed("examine"))?.len();
        if found != self.len() {
            let problem = FormatError::Length { expected: self.len(), found };
            return Err(Error::from(problem).at(partial));
        }
        Ok(file)
    }

    fn placing(&self) -> Placing {
        // Anyone with the secret can construct false positives.
        Placing { private: self.header.embedded_key.is_some(), ..Placing::default() }
    }
}
