//! The number of threads and the progress callback of a construction.

/// Options for building a static structure.
///
/// ```
/// use umbel::spec::Construction;
/// use umbel::{Fuse, Hasher, Spec};
/// let progress = |done| println!("{done} keys are in place");
/// let construction = Construction { threads: 2, progress: &progress };
/// let digests = Hasher::default().digest_batch(&["apple", "pear"]);
/// let filter = Fuse::from_digests(&Spec::new(2, 0.01)?, digests, &construction)?;
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Construction<'a> {
    /// The number of threads, by default as many as the machine can run at once. It does not change
    /// the result.
    pub threads: usize,
    /// A callback that receives the number of keys that are done.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl Default for Construction<'_> {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Construction { threads, progress: &|_| () }
    }
}

impl std::fmt::Debug for Construction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Construction").field("threads", &self.threads).finish_non_exhaustive()
    }
}
