//! A response that is being stored while it is sent to the client.

use crate::error::{Error, Result};
use crate::store::{Body, EntryWriter};

/// The number of bytes that are written to disk at a time.
const WRITE_BATCH_BYTES: usize = 256 << 10;

/// A response that is being stored.
pub(super) struct PendingEntry {
    writer: EntryWriter,
    /// The encoded head.
    head: Vec<u8>,
    /// The bytes that are not written yet. They are copied, since a small frame can keep a large
    /// receive buffer alive.
    buffer: Vec<u8>,
}

/// The failure to store a response.
pub(super) struct StoreFailure {
    pub error: Error,
    pub received: Box<ReceivedBody>,
}

/// The part of a body that was received before a failure or the end, for a client that has not got
/// it yet.
#[derive(Default)]
pub(super) struct ReceivedBody {
    /// The part in the store, or `None` if it cannot be read.
    pub stored: Option<Body>,
    /// The part after it, which was not written yet.
    pub buffer: Vec<u8>,
}

impl ReceivedBody {
    /// Returns a body that was written completely.
    pub fn from_stored(stored: Option<Body>) -> ReceivedBody {
        ReceivedBody { stored, ..ReceivedBody::default() }
    }
}

impl PendingEntry {
    pub fn new(writer: EntryWriter, head: Vec<u8>) -> PendingEntry {
        PendingEntry { writer, head, buffer: Vec::new() }
    }

    /// Returns the length of the body received so far.
    pub fn len(&self) -> u64 {
        self.writer.len() + self.buffer.len() as u64
    }

    /// Gives up storing the response.
    pub fn fail(self, error: Error) -> StoreFailure {
        let received = ReceivedBody { stored: self.writer.read_back().ok(), buffer: self.buffer };
        StoreFailure { error, received: received.into() }
    }

    /// Appends to the body.
    pub async fn append(mut self, bytes: &[u8]) -> Result<PendingEntry, StoreFailure> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() < WRITE_BATCH_BYTES { Ok(self) } else { self.flush().await }
    }

    async fn flush(mut self) -> Result<PendingEntry, StoreFailure> {
        let flushed = tokio::task::spawn_blocking(move || match self.writer.write(&self.buffer) {
            Ok(()) => {
                self.buffer.clear();
                Ok(self)
            }
            Err(error) => Err(self.fail(error)),
        });
        flushed
            .await
            .unwrap_or_else(|error| Err(StoreFailure { error: error.into(), received: Box::default() }))
    }

    /// Stores the complete response. With `read_back`, returns the body as well, which stays
    /// readable whatever becomes of the stored response.
    pub async fn commit(self, read_back: bool) -> Result<Option<Body>, StoreFailure> {
        let PendingEntry { writer, head, .. } = self.flush().await?;
        let body = read_back.then(|| writer.read_back());
        let committed = tokio::task::spawn_blocking(move || writer.commit(head)).await;
        match committed.map_err(Error::from).flatten() {
            Ok(_) => body.transpose().map_err(|error| StoreFailure { error, received: Box::default() }),
            Err(error) => {
                let received = ReceivedBody::from_stored(body.and_then(Result::ok));
                Err(StoreFailure { error, received: received.into() })
            }
        }
    }
}
