//! Work whose order does not matter: threads do not wait for each other.

use anyhow::{Context, Result};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use umbel::internals::sync::lock;

/// Calls `work` for every item, with the number of the thread, in any order, until one call fails.
pub fn run_unordered<I: Send>(
    items: impl Iterator<Item = Result<I>> + Send,
    threads: usize,
    work: impl Fn(usize, I) -> Result<()> + Sync,
) -> Result<()> {
    let items = Mutex::new(items);
    let worker = |thread: usize| {
        loop {
            // Not in the loop's head, where the lock would be held while the item is worked on.
            let item = lock(&items).next();
            match item {
                Some(item) => work(thread, item?)?,
                None => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let worker = &worker;
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || worker(thread))).collect();
        let own = worker(0);
        let results =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        results.fold(own, |all, one| all.and(one))
    })
}

/// Reads from a position, again if a signal interrupts it.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Counts the lines of files. No line has to be whole for that, so the files are cut into pieces of
/// equal size.
pub fn count_lines(files: &[PathBuf], line_end: u8, threads: usize) -> Result<u64> {
    const PIECE_BYTES: u64 = 4 << 20;
    let total = AtomicU64::new(0);
    let mut pieces = Vec::new();
    for path in files {
        let failed = || format!("cannot read {}", path.display());
        let file = Arc::new(File::open(path).with_context(failed)?);
        let len = file.metadata().with_context(failed)?.len();
        // The last line may lack its end.
        let mut last = [line_end];
        read_at(&file, &mut last, len.saturating_sub(1)).with_context(failed)?;
        total.fetch_add(u64::from(last != [line_end]), Relaxed);
        let starts = (0..len).step_by(PIECE_BYTES as usize);
        pieces.extend(starts.map(|start| Ok((path, Arc::clone(&file), start))));
    }
    run_unordered(pieces.into_iter(), threads, |_, (path, file, start)| {
        let mut buffer = vec![0; 1 << 17];
        let end = start + PIECE_BYTES;
        let mut at = start;
        while at < end {
            // A piece is a whole number of buffers; after a short read, the next one continues
            // there.
            let most = buffer.len().min((end - at) as usize);
            let read = read_at(&file, &mut buffer[..most], at);
            let read = read.with_context(|| format!("cannot read {}", path.display()))?;
            if read == 0 {
                break;
            }
            at += read as u64;
            total.fetch_add(memchr::memchr_iter(line_end, &buffer[..read]).count() as u64, Relaxed);
        }
        Ok(())
    })?;
    Ok(total.into_inner())
}
