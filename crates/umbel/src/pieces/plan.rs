//! The shape of a filter that is built in pieces.

use super::piece::Content;
use crate::file::{self, Options, RangedFile};
use crate::hash::Strength;
use crate::memory::LINE_BYTES;
use crate::sharded::ShardPlan;
use crate::structure::{Head, MAX_INSERTED};
use crate::{
    AnyFilter, Blocked, BloomFilter, Error, Hasher, Kind, Layout, Partitioned, Plan, Result, Spec, Standard,
    plan,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The shape of a filter that is built in pieces: how it is cut into parts, and which keys a part
/// has.
///
/// Every process of a job starts from an equal plan; [`PiecePlan::to_bytes`] takes one to another
/// process. See the [module](super) for an example.
#[derive(Clone, Debug)]
pub struct PiecePlan {
    kind: Kind,
    spec: Spec,
    embed_key: bool,
    parts: Parts,
    fingerprint: u64,
}

/// The parts of a filter.
#[derive(Clone, Debug)]
pub(super) enum Parts {
    Ranges(Ranges),
    Shards(Box<ShardPlan>),
}

/// A filter that is cut into ranges of `2^log2` bytes; the last may be shorter.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    pub layout: BitLayout,
    pub log2: u32,
    head: Head,
}

/// A mapping from digests to bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum BitLayout {
    Standard(Standard),
    Partitioned(Partitioned),
    Blocked(Blocked),
}

/// Evaluates the same expression for any layout.
macro_rules! each {
    ($any:expr, $layout:ident => $action:expr) => {
        match $any {
            BitLayout::Standard($layout) => $action,
            BitLayout::Partitioned($layout) => $action,
            BitLayout::Blocked($layout) => $action,
        }
    };
}

/// The largest number of ranges of a filter of up to 256 GiB. A task has a piece for each range, so
/// more would make them small.
const MAX_RANGES: u64 = 1 << 10;
/// The largest range: its bits have positions of 32 bits, with room to spare.
const MAX_RANGE_LOG2: u32 = 28;

const KINDS: [Kind; 3] = [Kind::Blocked, Kind::Standard, Kind::Partitioned];
/// "layout" as a little-endian number.
const FINGERPRINT_SEED: u64 = 0x74_75_6f_79_61_6c;

impl PiecePlan {
    /// Plans a filter of this kind; in `shards`, if there is a number of them. With `embed_key`, its
    /// files contain the secret of a `keyed` hash, as in [`Options`].
    ///
    /// # Errors
    ///
    /// If the kind is not an array of bits, no filter can be built to the specification, there is no
    /// secret to embed, or the number of shards is not one that [`ShardPlan::new`] accepts.
    pub fn new(kind: Kind, spec: &Spec, shards: Option<u32>, embed_key: bool) -> Result<PiecePlan> {
        if !KINDS.contains(&kind) {
            let why = "the bits of a piece must not depend on the order of the keys; kinds that can be built in \
                       pieces are blocked, standard and partitioned";
            return Err(Error::cannot(kind, "be built in pieces", why));
        }
        if embed_key {
            file::embeddable(spec.hasher())?;
        }
        let parts = match shards {
            Some(shards) => Parts::Shards(Box::new(ShardPlan::new(kind, spec, shards)?)),
            None => Parts::Ranges(Ranges::new(kind, spec)?),
        };
        let mut plan = PiecePlan { kind, spec: spec.clone(), embed_key, parts, fingerprint: 0 };
        plan.fingerprint = plan.compute_fingerprint();
        Ok(plan)
    }

    /// Returns the number of parts: ranges or shards.
    pub fn parts(&self) -> u32 {
        match &self.parts {
            Parts::Ranges(ranges) => ranges.count(),
            Parts::Shards(plan) => plan.shards() as u32,
        }
    }

    /// Returns the plan of a filter in shards.
    pub fn shard_plan(&self) -> Option<&ShardPlan> {
        match &self.parts {
            Parts::Ranges(_) => None,
            Parts::Shards(plan) => Some(plan),
        }
    }

    /// Returns the function that turns keys into digests.
    pub fn hasher(&self) -> &Hasher {
        self.spec.hasher()
    }

    /// Creates a file of the right length under a temporary name in the folder of its target, and
    /// returns its path. Merges [write](super::Merge::write) their ranges to it. If the file is never
    /// finished, it has to be deleted.
    ///
    /// # Errors
    ///
    /// If the filter is built in shards, the target is not a regular file, or the system cannot
    /// create a file beside it.
    pub fn create_file(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        self.file()?.create(path.as_ref())
    }

    /// Completes a file that merges have written, flushes it to disk and puts it in place of its
    /// target. `inserted` is the sum over all merges. `sums` has the checksums of ranges, as
    /// [`Merge::write`](super::Merge::write) returned them; the other ranges are read from the file.
    ///
    /// # Errors
    ///
    /// If there are checksums that no range has, the partial file is not one of this filter, or the
    /// system cannot write it. The target has not changed then.
    pub fn finish_file(
        &self,
        path: impl AsRef<Path>,
        partial: impl AsRef<Path>,
        inserted: u64,
        sums: &BTreeMap<u32, Vec<u64>>,
    ) -> Result<()> {
        let ranges = self.ranges()?;
        sums.keys().try_for_each(|range| self.check_part(*range))?;
        let sums = sums.iter().map(|(range, sums)| (ranges.range(*range).start, &sums[..])).collect();
        self.file()?.finish(path.as_ref(), partial.as_ref(), inserted.min(MAX_INSERTED), &sums)
    }

    pub(super) fn file(&self) -> Result<RangedFile> {
        let ranges = self.ranges()?;
        let params = each!(&ranges.layout, layout => layout.params().to_vec());
        let kind = each!(&ranges.layout, layout => kind_of(layout));
        RangedFile::new(kind, &ranges.head, params, ranges.lines(), &self.options())
    }

    /// Returns the number of bytes in all files of the filter, without a manifest.
    ///
    /// # Errors
    ///
    /// None for the kinds that can be built in pieces.
    pub fn file_bytes(&self) -> Result<u64> {
        match &self.parts {
            Parts::Ranges(_) => Ok(self.file()?.len()),
            Parts::Shards(plan) => {
                let shard = PiecePlan::new(plan.kind(), plan.shard_spec(), None, self.embed_key)?;
                Ok(shard.file()?.len() * plan.shards() as u64)
            }
        }
    }

    /// Returns the options that files of this filter are written with.
    pub(super) fn options(&self) -> Options {
        Options { embed_key: self.embed_key, ..Options::default() }
    }

    pub(super) fn all_parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns the ranges, or the error for a filter in shards.
    pub(super) fn ranges(&self) -> Result<&Ranges> {
        match &self.parts {
            Parts::Ranges(ranges) => Ok(ranges),
            Parts::Shards(plan) => {
                let needs = "a plan without shards: each shard is a file of its own";
                Err(Error::parameter("shards", plan.shards(), needs))
            }
        }
    }

    /// Creates an empty filter: the whole one, or a shard.
    pub(super) fn build(&self) -> Result<BloomFilter> {
        match &self.parts {
            Parts::Ranges(_) => AnyFilter::build(self.kind, &self.spec)?.try_into(),
            Parts::Shards(plan) => plan.build_shard()?.try_into(),
        }
    }

    /// Checks the number of a part.
    pub(super) fn check_part(&self, part: u32) -> Result<()> {
        if part < self.parts() {
            return Ok(());
        }
        Err(Error::parameter("range", part, format!("one of the {} parts of the filter", self.parts())))
    }

    /// Returns the content of pieces with the entries of keys.
    pub(super) fn entries(&self) -> Content {
        match &self.parts {
            Parts::Ranges(Ranges { layout: BitLayout::Blocked(_), .. }) | Parts::Shards(_) => {
                Content::Numbers
            }
            Parts::Ranges(_) => Content::Positions,
        }
    }

    /// Returns a number that plans share only if they describe the same filter.
    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn compute_fingerprint(&self) -> u64 {
        let params = match &self.parts {
            Parts::Ranges(ranges) => each!(&ranges.layout, layout => (kind_of(layout), layout.params())),
            Parts::Shards(plan) => (plan.kind(), [plan.shards() as u64, 0]),
        };
        let (given, hash) = (self.spec.given(), self.hasher().id());
        let text = format!("{params:?} {given:?} {hash:?} {} {}", self.parts(), self.shard_plan().is_some());
        xxh3_64_with_seed(text.as_bytes(), FINGERPRINT_SEED)
    }
}

/// Returns the kind of filter with this layout.
fn kind_of<L: Layout>(_: &L) -> Kind {
    L::KIND
}

impl Ranges {
    fn new(kind: Kind, spec: &Spec) -> Result<Ranges> {
        fn planned<L: Layout>(spec: &Spec, wrap: fn(L) -> BitLayout) -> Result<(BitLayout, Plan)> {
            let (layout, plan) = <L as Layout>::plan(spec)?;
            Ok((wrap(layout), plan))
        }
        let (layout, plan) = match plan(kind, spec)?.kind {
            Kind::Blocked => planned(spec, BitLayout::Blocked)?,
            Kind::Partitioned => planned(spec, BitLayout::Partitioned)?,
            _ => planned(spec, BitLayout::Standard)?,
        };
        let mut ranges = Ranges { layout, log2: 0, head: Head::planned(spec, &plan) };
        let chunk = file::chunk_log2(ranges.bytes());
        let fits = |log2: &u32| ranges.bytes().div_ceil(1 << log2) <= MAX_RANGES;
        // Whole chunks, so that the process that writes a range also computes its checksums.
        ranges.log2 = (chunk..MAX_RANGE_LOG2).find(fits).unwrap_or(MAX_RANGE_LOG2.max(chunk));
        Ok(ranges)
    }

    fn lines(&self) -> u64 {
        each!(&self.layout, layout => layout.lines())
    }

    /// Returns the number of bytes of all ranges.
    pub fn bytes(&self) -> u64 {
        self.lines() * LINE_BYTES as u64
    }

    fn count(&self) -> u32 {
        self.bytes().div_ceil(1 << self.log2) as u32
    }

    /// Returns a range as a range of bytes.
    pub fn range(&self, range: u32) -> std::ops::Range<u64> {
        let start = u64::from(range) << self.log2;
        start..self.bytes().min(start + (1 << self.log2))
    }

    /// Returns a range as a range of lines.
    pub fn lines_of(&self, range: u32) -> std::ops::Range<usize> {
        let std::ops::Range { start, end } = self.range(range);
        (start / LINE_BYTES as u64) as usize..(end / LINE_BYTES as u64) as usize
    }

    /// Returns the number of bits from the start of a range on that keys can set.
    pub fn bits_of(&self, range: u32) -> u64 {
        let (bits, bytes) = (each!(&self.layout, layout => layout.bits()), self.range(range));
        bits.saturating_sub(bytes.start * 8).min((bytes.end - bytes.start) * 8)
    }

    /// Returns the number of bytes of a key in pieces that list entries.
    pub fn bytes_per_key(&self) -> u64 {
        match &self.layout {
            BitLayout::Blocked(layout) => 8 * u64::from(layout.lines_per_key()),
            BitLayout::Standard(layout) => 4 * u64::from(layout.hashes()),
            BitLayout::Partitioned(layout) => 4 * u64::from(layout.hashes()),
        }
    }
}

/// The first byte of an encoded plan.
const VERSION: u8 = 1;
/// The length of an encoded plan without its secret.
const PLAIN_BYTES: usize = 25;

impl PiecePlan {
    /// Encodes the plan for another process of the same version. The bytes contain the secret of the
    /// hash, if it has one.
    ///
    /// # Errors
    ///
    /// If the specification is not by a number of keys and a rate alone.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let given = self.spec.given();
        let missing = |name| Error::parameter(name, "nothing", "a value in a plan for another process");
        let (n, p) = (given.n.ok_or_else(|| missing("n"))?, given.p.ok_or_else(|| missing("p"))?);
        let shards = self.shard_plan().map_or(0, |plan| plan.shards() as u32);
        let kind = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or_default();
        let strength = self.hasher().id().strength as u8;
        let mut bytes = vec![VERSION, kind as u8, strength, self.embed_key.into()];
        bytes.extend(n.to_le_bytes());
        bytes.extend(p.to_le_bytes());
        bytes.extend(shards.to_le_bytes());
        bytes.push(0);
        bytes.extend(self.hasher().seed_or_secret());
        Ok(bytes)
    }

    /// Decodes a plan.
    ///
    /// # Errors
    ///
    /// If these are not the bytes of a plan.
    pub fn from_bytes(bytes: &[u8]) -> Result<PiecePlan> {
        let refused = || Error::parameter("plan", format!("{} bytes", bytes.len()), "the bytes of a plan");
        let (plain, secret) = bytes.split_at_checked(PLAIN_BYTES).ok_or_else(refused)?;
        let [VERSION, kind, strength, embed_key @ 0..=1] = plain[..4] else { return Err(refused()) };
        let number = |at: usize| u64::from_le_bytes(*plain[at..].first_chunk().expect("within the plan"));
        let shards = u32::from_le_bytes(*plain[20..].first_chunk().expect("within the plan"));
        let kind = KINDS.get(usize::from(kind)).ok_or_else(refused)?;
        let strength = [Strength::Fast, Strength::Keyed, Strength::Sealed]
            .into_iter()
            .find(|known| *known as u8 == strength)
            .ok_or_else(refused)?;
        let hasher = Hasher::from_seed_or_secret(strength, secret).ok_or_else(refused)?;
        let spec = Spec::new(number(4), f64::from_bits(number(12)))?.with_hasher(hasher);
        PiecePlan::new(*kind, &spec, (shards > 0).then_some(shards), embed_key == 1)
    }
}
