//! The names of the formats, and how a file is recognised as one of them.

use super::{datasketches, dcso, spark};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A file format of another program.
///
/// ```
/// use umbel::foreign::Format;
/// let format: Format = "dcso".parse()?;
/// assert_eq!((format, format.to_string().as_str()), (Format::Dcso, "dcso"));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The Bloom filter of Apache DataSketches.
    DataSketches,
    /// Version 1 of DCSO's `bloom`, plain or compressed with gzip.
    Dcso,
    /// `BloomFilter.writeTo` of Guava.
    Guava,
    /// The replies to `BF.SCANDUMP` of RedisBloom, as records.
    RedisBloom,
    /// The split-block filter of Parquet: its header and bit set, or the bit set alone.
    Sbbf,
    /// `BloomFilterImpl` of Spark. Files are written in version 1 and read in both versions.
    Spark,
    /// `BloomFilterImplV2` of Spark.
    Spark2,
}

impl Format {
    /// All formats, in the order of their names.
    pub const ALL: &[Format] = &[
        Format::DataSketches,
        Format::Dcso,
        Format::Guava,
        Format::RedisBloom,
        Format::Sbbf,
        Format::Spark,
        Format::Spark2,
    ];

    /// The number of bytes from the start of a file that [`recognize`](Format::recognize) needs.
    pub const RECOGNIZE_BYTES: usize = 4096;

    /// Returns the name, as [`FromStr`] reads it.
    pub fn name(self) -> &'static str {
        match self {
            Format::DataSketches => "datasketches",
            Format::Dcso => "dcso",
            Format::Guava => "guava",
            Format::RedisBloom => "redisbloom",
            Format::Sbbf => "sbbf",
            Format::Spark => "spark",
            Format::Spark2 => "spark2",
        }
    }

    /// Returns the name of the hash that places the bits of a key.
    ///
    /// ```
    /// use umbel::foreign::Format;
    /// assert_eq!(Format::Dcso.hash_name(), "FNV-1");
    /// ```
    pub fn hash_name(self) -> &'static str {
        match self {
            Format::DataSketches | Format::Sbbf => "XXH64",
            Format::Dcso => "FNV-1",
            Format::Guava => "Murmur3-128",
            Format::RedisBloom => "Murmur64A",
            Format::Spark | Format::Spark2 => "Murmur3-32",
        }
    }

    /// Returns whether the programs of this format hash keys of several types, so that the
    /// [`Funnel`](super::Funnel) matters. The others hash bytes.
    pub fn has_funnel(self) -> bool {
        !matches!(self, Format::Dcso | Format::RedisBloom)
    }

    /// Returns whether a new filter may be given a seed for the hash.
    pub fn has_seed(self) -> bool {
        matches!(self, Format::DataSketches | Format::Spark2)
    }

    /// Recognises a format by the first bytes of a file: DCSO, also compressed with gzip, Spark and
    /// DataSketches. The others begin with nothing of their own, so their format has to be given.
    ///
    /// A file that is recognised may still turn out to be invalid.
    ///
    /// ```
    /// use umbel::foreign::{ForeignFilter, Format, Options};
    /// let bytes = ForeignFilter::with_capacity(Format::Dcso, 100, 0.01, &Options::default())?.to_bytes();
    /// assert_eq!(Format::recognize(&bytes), Some(Format::Dcso));
    /// assert_eq!(Format::recognize(b"something else"), None);
    /// # Ok::<(), umbel::Error>(())
    /// ```
    pub fn recognize(start: &[u8]) -> Option<Format> {
        if dcso::is_start(start) {
            Some(Format::Dcso)
        } else if datasketches::is_start(start) {
            Some(Format::DataSketches)
        } else {
            spark::recognize(start)
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Format> {
        let found = Format::ALL.iter().find(|format| format.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
            Error::parameter("format", name, format!("one of {}", names.join(", ")))
        })
    }
}
