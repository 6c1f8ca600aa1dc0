//! How values leave a server and come back: to snapshots, logs, and clients that carry them elsewhere.
//!
//! All of these are one stream of bytes, cut into chunks:
//!
//! | bytes | |
//! | --- | --- |
//! | 4 | `UMBL` |
//! | 9 | the name of the type |
//! | | as varints: how many numbers there are and each of them; how many filters there are and their lengths; the length of the rest |
//! | 8 | the sum of all this |
//! | | the filters: files of the library, each with sums of its own |
//! | | the rest, and 8 bytes with its sum; nothing if it is empty |
//!
//! A stream that comes in from a client is kept under its key as it is, until it is complete; only then it is read. So
//! chunks that are damaged, or missing, or make no sense, change nothing.

use crate::config;
use crate::error::{self, Error};
use crate::server::memory::Obeying;
use crate::server::{DebugDigest, Failure, Result, Rewriter, Saver, Source, TypeSlot, Value, note_rejected};
use std::collections::VecDeque;
use std::ffi::CStr;
use std::io::{self, Read};
use umbel::any::Stored;
use umbel::file::fields::{Fields, put_varint, sum};
use umbel::file::{self, Image, Storable};
use umbel::hash::KeyRing;
use umbel::memory::{LINE_BYTES, Mover, Words};

/// A value that consists of a few numbers and of filters.
pub trait Kept: Sized + Send + 'static {
    /// The name of the type: nine letters, digits, `-` or `_`.
    const NAME: &'static CStr;

    /// The command that takes a chunk.
    const LOADER: &'static CStr;

    /// Where the server's handle of the type is kept.
    fn slot() -> &'static TypeSlot;

    /// The numbers.
    fn numbers(&self) -> Vec<u64>;

    /// The filters.
    fn filters(&self) -> Vec<&dyn Storable> {
        Vec::new()
    }

    /// The memory of the filters, and of what is none.
    fn words(&self) -> Vec<&Words>;

    /// What is neither a number nor a filter.
    fn rest(&self) -> umbel::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// The value that has these, if there can be such a one.
    fn restore(numbers: &[u64], filters: Vec<Stored>, rest: &[u8]) -> Option<Self>;

    /// The bytes it takes.
    fn memory(&self) -> usize;

    /// Another one like it.
    fn copy(&self) -> umbel::Result<Self>;

    /// Lets its memory be moved.
    fn relocate(&mut self, mover: &mut dyn Mover);
}

const MAGIC: [u8; 4] = *b"UMBL";

const BAD_HEAD: Error = Error::Malformed("its head makes no sense");

/// How many bytes a chunk has, but for the last one.
pub const CHUNK_BYTES: u64 = 8 << 20;

/// For so much, memory is taken as soon as it is claimed.
const MAX_STREAMED_BYTES: u64 = 64 << 20;

/// No head is longer: the first chunk has all of it.
const MAX_HEADER_BYTES: usize = 1 << 16;

/// The stream of a value.
pub struct Stream<'a> {
    head: Vec<u8>,
    filters: Vec<Image<'a>>,
    /// With its sum.
    rest: Vec<u8>,
}

impl<'a> Stream<'a> {
    /// The secrets of hashes are in it: who may have the value may have those.
    pub fn of<K: Kept>(value: &'a K) -> umbel::Result<Stream<'a>> {
        let [embedded, without] =
            [true, false].map(|embed_key| file::Options { embed_key, ..Default::default() });
        // Sealed ones are never written, and others have none.
        let image = |filter| Image::new(filter, &embedded).or_else(|_| Image::new(filter, &without));
        let filters = value.filters().into_iter().map(image).collect::<umbel::Result<Vec<Image<'a>>>>()?;
        let mut rest = value.rest()?;
        if !rest.is_empty() {
            let end = sum(&rest);
            rest.extend(end.to_le_bytes());
        }
        let lengths: Vec<u64> = filters.iter().map(Image::len).collect();
        let head = head::<K>(&value.numbers(), &lengths, rest.len() as u64);
        Ok(Stream { head, filters, rest })
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        (self.head.len() + self.rest.len()) as u64 + self.filters.iter().map(Image::len).sum::<u64>()
    }

    /// The chunk that starts here; empty at the end.
    pub fn chunk(&self, offset: u64) -> Vec<u8> {
        let mut chunk = vec![0; self.len().saturating_sub(offset).min(CHUNK_BYTES) as usize];
        let (mut start, behind) = (0, offset + chunk.len() as u64);
        // Takes what of the next part is in the chunk, from where on it is in the part.
        let mut part = |len: u64, take: &dyn Fn(u64, &mut [u8])| {
            let (from, until) = (offset.max(start), behind.min(start + len));
            if from < until {
                take(from - start, &mut chunk[(from - offset) as usize..(until - offset) as usize]);
            }
            start += len;
        };
        let copy = |from: &[u8], at: u64, to: &mut [u8]| to.copy_from_slice(&from[at as usize..][..to.len()]);
        part(self.head.len() as u64, &|at, to| copy(&self.head, at, to));
        self.filters.iter().for_each(|filter| part(filter.len(), &|at, to| filter.read(at, to)));
        part(self.rest.len() as u64, &|at, to| copy(&self.rest, at, to));
        chunk
    }

    /// All chunks, each with the offset of its end.
    fn chunks(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        (0..self.len()).step_by(CHUNK_BYTES as usize).map(|offset| {
            let chunk = self.chunk(offset);
            (offset + chunk.len() as u64, chunk)
        })
    }
}

/// The bytes of a head.
fn head<K: Kept>(numbers: &[u64], filters: &[u64], rest: u64) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend(K::NAME.to_bytes());
    for list in [numbers, filters] {
        put_varint(&mut head, list.len() as u64);
        list.iter().for_each(|number| put_varint(&mut head, *number));
    }
    put_varint(&mut head, rest);
    let end = sum(&head);
    head.extend(end.to_le_bytes());
    head
}

/// The head of a stream.
struct Head {
    len: usize,
    numbers: Vec<u64>,
    filters: Vec<u64>,
    rest: u64,
}

impl Head {
    /// Reads one that is at the start of these bytes.
    fn read<K: Kept>(bytes: &[u8]) -> Option<Head> {
        let bytes = &bytes[..bytes.len().min(MAX_HEADER_BYTES)];
        let mut fields = Fields(bytes);
        if fields.array()? != MAGIC || fields.bytes(K::NAME.count_bytes() as u64)? != K::NAME.to_bytes() {
            return None;
        }
        let mut list = || (0..fields.varint()?).map(|_| fields.varint()).collect::<Option<Vec<u64>>>();
        let (numbers, filters) = (list()?, list()?);
        let rest = fields.varint()?;
        let summed = &bytes[..bytes.len() - fields.0.len()];
        let right = fields.u64()? == sum(summed);
        let head = Head { len: summed.len() + 8, numbers, filters, rest };
        (right && head.total().is_some()).then_some(head)
    }

    /// The length of the stream.
    fn total(&self) -> Option<u64> {
        let mut parts = self.filters.iter().chain([&self.rest]);
        parts.try_fold(self.len as u64, |total, part| total.checked_add(*part))
    }

    /// The value of the stream, of which this head has been read.
    fn value<K: Kept>(&self, from: &mut impl Read, ring: &KeyRing) -> error::Result<K> {
        let filter = |len: &u64| file::read(from, *len, ring).map(|loaded| loaded.filter);
        let filters = self.filters.iter().map(filter).collect::<umbel::Result<Vec<Stored>>>()?;
        let rest = read_summed(from, self.rest)?;
        K::restore(&self.numbers, filters, &rest).ok_or(Error::Malformed("its parts do not fit together"))
    }
}

/// Returns memory with the contents that [`bytes_of`] has written, or `None` if there is not enough for it.
pub fn words_of(bytes: &[u8]) -> Option<Words> {
    let mut words = Words::zeroed(bytes.len().div_ceil(LINE_BYTES) as u64).ok()?;
    let numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    words.words_mut().iter_mut().zip(numbers).for_each(|(word, number)| *word = number);
    Some(words)
}

/// The bytes of some memory, if there is room for them.
pub fn bytes_of(words: &Words) -> umbel::Result<Vec<u8>> {
    let words = words.words();
    let mut bytes = Vec::new();
    let out_of_memory = |_| umbel::Error::OutOfMemory { bytes: size_of_val(words) as u64 };
    // What comes behind it is little beside it.
    bytes.try_reserve_exact(size_of_val(words) + 64).map_err(out_of_memory)?;
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    Ok(bytes)
}

/// Bytes and their sum, of this length together; nothing if that is nothing. Memory is taken as they come.
fn read_summed(from: &mut impl Read, len: u64) -> error::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(len).read_to_end(&mut bytes).map_err(Error::Io)?;
    if len == 0 {
        return Ok(bytes);
    }
    let (rest, end) = bytes.split_last_chunk::<8>().ok_or(Error::CUT)?;
    if bytes.len() as u64 != len || sum(rest).to_le_bytes() != *end {
        return Err(Error::Malformed("its end is damaged"));
    }
    bytes.truncate(bytes.len() - 8);
    Ok(bytes)
}

/// What is kept under a key: a value, or as much of its stream as has come.
#[derive(Debug)]
pub enum Slot<K> {
    Ready(K),
    Arriving(Arriving),
}

/// A stream of which the end has not come yet.
#[derive(Debug, Clone)]
pub struct Arriving {
    total: u64,
    received: u64,
    chunks: VecDeque<Vec<u8>>,
}

/// What is wrong with chunks.
fn bad_data() -> Failure {
    note_rejected();
    Failure::new("received bad data")
}

impl<K: Kept> Slot<K> {
    /// The value, which must have arrived.
    pub fn ready(&self) -> Result<&K> {
        match self {
            Slot::Ready(value) => Ok(value),
            Slot::Arriving(_) => Err(incomplete()),
        }
    }

    /// The value, which must have arrived, to be changed.
    pub fn ready_mut(&mut self) -> Result<&mut K> {
        match self {
            Slot::Ready(value) => Ok(value),
            Slot::Arriving(_) => Err(incomplete()),
        }
    }

    /// What a first chunk becomes, which ends at this offset.
    pub fn begin(end: u64, chunk: &[u8]) -> Result<Slot<K>> {
        if end != chunk.len() as u64 {
            return Err(bad_data());
        }
        let total = Head::read::<K>(chunk).and_then(|head| head.total()).ok_or_else(bad_data)?;
        // The stream of a value is a little longer than the value.
        config::check_memory(total - total / 8)?;
        let mut slot = Slot::Arriving(Arriving { total, received: 0, chunks: VecDeque::new() });
        slot.go_on(end, chunk)?;
        Ok(slot)
    }

    /// Takes another chunk, which ends at this offset.
    pub fn go_on(&mut self, end: u64, chunk: &[u8]) -> Result<()> {
        self.take(end, chunk, &config::ring())
    }

    /// Takes another chunk, of filters whose secrets are among these if they do not come with them.
    fn take(&mut self, end: u64, chunk: &[u8], ring: &KeyRing) -> Result<()> {
        let Slot::Arriving(arriving) = self else { return Err(bad_data()) };
        let (received, total) = (arriving.received, arriving.total);
        if chunk.is_empty() || received.checked_add(chunk.len() as u64) != Some(end) || end > total {
            return Err(bad_data());
        }
        arriving.chunks.push_back(chunk.to_vec());
        arriving.received = end;
        if end == total {
            let read = arriving.value(ring);
            match read {
                Ok(value) => *self = Slot::Ready(value),
                Err(error) => {
                    // As it was before, so that the right end may still come.
                    arriving.chunks.pop_back();
                    arriving.received = received;
                    note_rejected();
                    return Err(Failure::new(format!("received bad data: {error:#}")));
                }
            }
        }
        Ok(())
    }
}

/// Files of the library that come without a head, which is made here: a value that consists of one filter.
impl<K: Kept> Slot<K> {
    /// What a file of this length begins as.
    pub fn begin_file(length: u64) -> Result<Slot<K>> {
        config::check_memory(length)?;
        let head = head::<K>(&[], &[length], 0);
        let received = head.len() as u64;
        Ok(Slot::Arriving(Arriving { total: received + length, received, chunks: [head].into() }))
    }

    /// How much of a file has come, and how long it is; a failure if it is not a file that is arriving.
    pub fn arriving(&self) -> Option<Result<(u64, u64)>> {
        let Slot::Arriving(arriving) = self else { return Some(Err(Failure::new("item exists"))) };
        let head = arriving.chunks.front()?.len() as u64;
        Some(Ok((arriving.received - head, arriving.total - head)))
    }

    /// Takes more of a file; the value, when it is complete.
    pub fn take_file(&mut self, bytes: &[u8], ring: &KeyRing) -> Result<Option<K>> {
        let Slot::Arriving(arriving) = self else { return Err(bad_data()) };
        let end = arriving.received.saturating_add(bytes.len() as u64);
        self.take(end, bytes, ring)?;
        if let Slot::Arriving(_) = self {
            return Ok(None);
        }
        let unfinished = Slot::Arriving(Arriving { total: 0, received: 0, chunks: VecDeque::new() });
        match std::mem::replace(self, unfinished) {
            Slot::Ready(value) => Ok(Some(value)),
            Slot::Arriving(_) => Err(bad_data()),
        }
    }
}

fn incomplete() -> Failure {
    Failure::new(
        "the filter has not come to its end: go on with LOADCHUNK or UMBEL.IMPORT, or delete the key",
    )
}

impl Arriving {
    fn value<K: Kept>(&self, ring: &KeyRing) -> error::Result<K> {
        let first = self.chunks.front().map(Vec::as_slice).unwrap_or_default();
        let head = Head::read::<K>(first).ok_or(BAD_HEAD)?;
        let mut reader = Chunks { chunks: self.chunks.iter(), rest: &first[head.len..] };
        reader.chunks.next();
        head.value(&mut reader, ring)
    }
}

/// Chunks, one behind the other.
struct Chunks<'a> {
    chunks: std::collections::vec_deque::Iter<'a, Vec<u8>>,
    rest: &'a [u8],
}

impl Read for Chunks<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            let Some(next) = self.chunks.next() else { return Ok(0) };
            self.rest = next;
        }
        self.rest.read(to)
    }
}

/// The strings of a snapshot, one behind the other, as they are read.
struct Strings<'a, 'b> {
    from: &'a mut Source<'b>,
    chunk: Vec<u8>,
    at: usize,
}

impl Read for Strings<'_, '_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() {
            self.chunk = self.from.bytes().map_err(io::Error::other)?;
            self.at = 0;
        }
        let taken = (&self.chunk[self.at..]).read(to)?;
        self.at += taken;
        Ok(taken)
    }
}

const READY: u64 = 0;
const ARRIVING: u64 = 1;

impl<K: Kept> Value for Slot<K> {
    const NAME: &'static CStr = K::NAME;

    fn slot() -> &'static TypeSlot {
        K::slot()
    }

    fn save(&self, to: &mut Saver<'_>) -> error::Result<()> {
        match self {
            Slot::Ready(value) => {
                to.number(READY);
                let stream = Stream::of(value)?;
                stream.chunks().for_each(|(_, chunk)| to.bytes(&chunk));
            }
            Slot::Arriving(arriving) => {
                to.number(ARRIVING);
                to.number(arriving.chunks.len() as u64);
                arriving.chunks.iter().for_each(|chunk| to.bytes(chunk));
            }
        }
        Ok(())
    }

    fn load(from: &mut Source<'_>) -> error::Result<Self> {
        match from.number()? {
            READY => {
                let chunk = from.bytes()?;
                let head = Head::read::<K>(&chunk).ok_or(BAD_HEAD)?;
                let total = head.total().unwrap_or(u64::MAX);
                let at = head.len;
                let _obeying = Obeying::when(true);
                // What is claimed is little, or it is seen first that it is really there.
                if total <= MAX_STREAMED_BYTES {
                    let mut strings = Strings { from, chunk, at };
                    return Ok(Slot::Ready(head.value(&mut strings, &config::ring())?));
                }
                let mut arriving = Arriving { total, received: chunk.len() as u64, chunks: [chunk].into() };
                while arriving.received < total {
                    let chunk = from.bytes()?;
                    if chunk.is_empty() {
                        return Err(Error::Malformed("it has an empty chunk"));
                    }
                    arriving.received += chunk.len() as u64;
                    arriving.chunks.push_back(chunk);
                }
                Ok(Slot::Ready(arriving.value(&config::ring())?))
            }
            ARRIVING => {
                let _obeying = Obeying::when(true);
                let chunks = from.number()?;
                let mut slot = None::<Slot<K>>;
                let mut end = 0u64;
                for _ in 0..chunks {
                    let chunk = from.bytes()?;
                    end = end.checked_add(chunk.len() as u64).ok_or(Error::Malformed("it is too long"))?;
                    let taken = match &mut slot {
                        None => Slot::begin(end, &chunk).map(|begun| slot = Some(begun)),
                        Some(slot) => slot.go_on(end, &chunk),
                    };
                    taken.map_err(Error::Part)?;
                }
                slot.ok_or(Error::Malformed("it is empty"))
            }
            other => Err(Error::UnknownState(other)),
        }
    }

    fn rewrite(&self, to: &mut Rewriter<'_>) -> error::Result<()> {
        let mut send = |end: u64, chunk: &[u8]| to.command(K::LOADER, cursor(end), chunk);
        match self {
            Slot::Ready(value) => {
                let stream = Stream::of(value)?;
                stream.chunks().for_each(|(end, chunk)| send(end, &chunk));
            }
            Slot::Arriving(arriving) => {
                let mut end = 0;
                for chunk in &arriving.chunks {
                    end += chunk.len() as u64;
                    send(end, chunk);
                }
            }
        }
        Ok(())
    }

    fn debug_digest(&self, sum: &mut DebugDigest<'_>) {
        match self {
            // How often something was inserted that was there already is no difference.
            Slot::Ready(value) => {
                value.numbers().iter().for_each(|number| sum.bytes(&number.to_le_bytes()));
                for words in value.words() {
                    // In pieces, for the server takes no more than so much at once.
                    for piece in words.words().chunks(1 << 16) {
                        let bytes: Vec<u8> = piece.iter().flat_map(|word| word.to_le_bytes()).collect();
                        sum.bytes(&bytes);
                    }
                }
            }
            Slot::Arriving(arriving) => arriving.chunks.iter().for_each(|chunk| sum.bytes(chunk)),
        }
    }

    fn memory(&self) -> usize {
        let inside = match self {
            Slot::Ready(value) => value.memory(),
            Slot::Arriving(arriving) => arriving.received as usize,
        };
        size_of::<Self>() + inside
    }

    fn copy(&self) -> Option<Self> {
        match self {
            Slot::Ready(value) => value.copy().ok().map(Slot::Ready),
            Slot::Arriving(arriving) => Some(Slot::Arriving(arriving.clone())),
        }
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        match self {
            Slot::Ready(value) => value.relocate(mover),
            // It will not be there for long.
            Slot::Arriving(_) => {}
        }
    }
}

/// The number that stands for an offset in the commands that dump and load: 0 is the start, and the end.
pub fn cursor(offset: u64) -> i64 {
    i64::try_from(offset.saturating_add(1)).unwrap_or(i64::MAX)
}
