//! The parameters of the textbook: the bits of a filter (m) and its hash functions (k).

use crate::args::{headings, number};
use anyhow::{Result, bail};
use clap::Args;
use umbel::Kind;
use umbel::sizing::Given;

/// The bits and the hash functions of a filter.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct SizeArgs {
    /// Number of bits, or a size in bytes such as 64MiB
    #[arg(short = 'm', long, value_name = "BITS", value_parser = number::bits, help_heading = headings::FILTER)]
    pub bits: Option<u64>,

    /// Number of hash functions, which is the number of bits that a key sets
    #[arg(short = 'k', long, value_name = "K", help_heading = headings::FILTER)]
    pub hashes: Option<u32>,
}

impl SizeArgs {
    /// Returns the kind of a filter for which none is given. The blocked kind has only multiples of
    /// eight hash functions.
    pub fn default_kind(&self) -> Kind {
        if self.hashes.is_some() { Kind::Standard } else { Kind::default() }
    }

    /// Returns the parameters of a filter for `n` keys at rate `p`. If they do not determine it, it
    /// has the default rate.
    pub fn given(&self, n: Option<u64>, p: Option<f64>, default_rate: Option<f64>) -> Given {
        let open = self.bits.is_none() || n.is_none() && self.hashes.is_none();
        let p = p.or(default_rate.filter(|_| open));
        Given { n, p, m: self.bits, k: self.hashes }
    }

    /// Returns whether the number of keys follows from the other parameters.
    pub fn determine_keys(&self, p: Option<f64>) -> bool {
        self.bits.is_some() && (p.is_some() || self.hashes.is_some())
    }

    /// Fails if a filter of this kind has neither bits that keys set nor hash functions.
    pub fn check_for(&self, kind: Kind) -> Result<()> {
        let (cells, instead) = match kind {
            _ if self.bits.is_none() && self.hashes.is_none() => return Ok(()),
            Kind::Cuckoo => ("fingerprints in buckets", "-p or --fingerprint-bits"),
            Kind::Fuse => ("fingerprints in cells", "-p or --fingerprint-bits"),
            Kind::Quotient => ("remainders in slots", "-p or --load"),
            _ => return Ok(()),
        };
        bail!(
            "the kind {kind} has {cells} instead of m bits and k hash functions: use {instead} instead of -m and -k, or --max-bytes to limit its size"
        )
    }
}
