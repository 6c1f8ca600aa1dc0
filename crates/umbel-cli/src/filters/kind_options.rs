//! Options that only some kinds of filters have.

use super::{DEFAULT_NOISE, DEFAULT_RATE};
use crate::args::{headings, names, number};
use anyhow::{Result, bail};
use clap::Args;
use std::fmt;
use std::str::FromStr;
use umbel::Kind;
use umbel::aging::Window;
use umbel::counting::Overflow;
use umbel::cuckoo::Form;
use umbel::kind::Category;
use umbel::sketch::Distinct;
use umbel::spec::KindOptions;
use umbel::variable_increment::Scheme;

/// The options of filters that only some kinds have.
#[derive(Args, Clone, Debug)]
pub struct KindOptionArgs {
    /// aging: forget a key after this many others (1e6) or after this time (30s, 10m, 2h, 7d)
    /// [default: the capacity]
    #[arg(long, value_name = "KEYS|TIME", value_parser = number::window, help_heading = headings::KINDS)]
    window: Option<Window>,

    /// aging: number of generations that forget in turn; more are more precise and slower
    /// [default: 8]
    #[arg(long, value_name = "G", help_heading = headings::KINDS)]
    generations: Option<u32>,

    /// scalable: rate of each stage relative to the previous one [default: 0.85]
    #[arg(long, value_name = "R", help_heading = headings::KINDS)]
    tightening: Option<f64>,

    /// scalable: size of each stage relative to the previous one [default: 2]
    #[arg(long, value_name = "S", help_heading = headings::KINDS)]
    growth: Option<u32>,

    /// counting: bits per counter, 2 to 16 [default: 4]
    #[arg(long, value_name = "BITS", help_heading = headings::KINDS)]
    counter_bits: Option<u32>,

    /// counting: behaviour of a counter at its maximum; decrement loses keys and is only for
    /// demonstration [default: sticky]
    #[arg(long, value_name = "POLICY", value_parser = names::overflow(), help_heading = headings::KINDS)]
    overflow: Option<Overflow>,

    /// variable-increment: increments of the counters, for instance 8,12,14,15 [default: 4,5,6,7]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = number::increment,
        help_heading = headings::KINDS
    )]
    increments: Option<Vec<u32>>,

    /// variable-increment: contents of a cell. sum: the sum of its increments. bh: also their
    /// number, with increments whose sums of h differ, such as 1,4,8,13; a cell of more than h keys
    /// matches every key. bh-improved: such a cell excludes keys, too [default: sum]
    #[arg(
        long,
        value_name = "SCHEME",
        value_parser = names::cell_scheme(),
        hide_possible_values = true,
        help_heading = headings::KINDS
    )]
    scheme: Option<CellScheme>,

    /// deletable: filter bits per collision bit; with fewer, more keys can be removed [default: 4]
    #[arg(long, value_name = "BITS", value_parser = number::count, help_heading = headings::KINDS)]
    region_bits: Option<u64>,

    /// floom: number of regions, 1 to 24 [default: by the size]
    #[arg(long, value_name = "B", help_heading = headings::KINDS)]
    regions: Option<u32>,

    /// floom: store only patterns that a key can have
    #[arg(long, help_heading = headings::KINDS)]
    ranked: bool,

    /// cuckoo, fuse: bits per fingerprint [default: by the rate]
    #[arg(long, value_name = "BITS", help_heading = headings::KINDS)]
    fingerprint_bits: Option<u32>,

    /// quotient: share of slots in use at capacity; higher is smaller and slower [default: 0.8]
    #[arg(long, value_name = "SHARE", help_heading = headings::KINDS)]
    load: Option<f64>,

    /// cuckoo: sort the fingerprints of a bucket, which saves one bit per key and costs time
    #[arg(long, help_heading = headings::KINDS)]
    semi_sorted: bool,
}

impl KindOptionArgs {
    /// Returns the options of a filter of this kind. Fails if an option is given that the kind does
    /// not have.
    pub fn for_kind(&self, kind: Kind) -> Result<KindOptions> {
        if let Some((option, its)) = self.given().find(|(_, its)| !its.contains(&kind)) {
            let names: Vec<String> = its.iter().map(ToString::to_string).collect();
            bail!("{option} is for the kind {}: add --kind {}, or leave it out", names.join(" or "), its[0]);
        }
        self.for_all_kinds()
    }

    /// Returns one of the options that are given, if there are any.
    pub fn first_given(&self) -> Option<&'static str> {
        self.given().next().map(|(option, _)| option)
    }

    /// Returns the options that are given, each with the kinds that have it.
    fn given(&self) -> impl Iterator<Item = (&'static str, &'static [Kind])> {
        let options = [
            (self.window.is_some(), "--window", &[Kind::Aging][..]),
            (self.generations.is_some(), "--generations", &[Kind::Aging]),
            (self.tightening.is_some(), "--tightening", &[Kind::Scalable]),
            (self.growth.is_some(), "--growth", &[Kind::Scalable]),
            (self.counter_bits.is_some(), "--counter-bits", &[Kind::Counting]),
            (self.overflow.is_some(), "--overflow", &[Kind::Counting]),
            (self.increments.is_some(), "--increments", &[Kind::VariableIncrement]),
            (self.scheme.is_some(), "--scheme", &[Kind::VariableIncrement]),
            (self.region_bits.is_some(), "--region-bits", &[Kind::Deletable]),
            (self.regions.is_some(), "--regions", &[Kind::Floom]),
            (self.ranked, "--ranked", &[Kind::Floom]),
            (self.fingerprint_bits.is_some(), "--fingerprint-bits", &[Kind::Cuckoo, Kind::Fuse]),
            (self.semi_sorted, "--semi-sorted", &[Kind::Cuckoo]),
            (self.load.is_some(), "--load", &[Kind::Quotient]),
        ];
        options.into_iter().filter(|(given, ..)| *given).map(|(_, option, kinds)| (option, kinds))
    }

    /// Returns the options for comparing all kinds; each kind ignores those of others.
    pub fn for_all_kinds(&self) -> Result<KindOptions> {
        let mut options = KindOptions::default();
        options.aging.window = self.window;
        set(&mut options.aging.generations, self.generations);
        set(&mut options.scalable.tightening, self.tightening);
        set(&mut options.scalable.growth, self.growth);
        set(&mut options.counting.counter_bits, self.counter_bits);
        set(&mut options.counting.overflow, self.overflow);
        let increments = self.increments.as_deref();
        match (self.scheme.unwrap_or(CellScheme::Sum), increments) {
            (CellScheme::Sum, None) => {}
            (CellScheme::Sum, Some(increments)) => {
                options.variable_increment.scheme = Scheme::set(increments);
            }
            (scheme, increments) => {
                let improved = scheme == CellScheme::BhImproved;
                let increments = increments.unwrap_or(&B_3_INCREMENTS);
                options.variable_increment.scheme = Scheme::longest_b_h(increments, improved)?;
            }
        }
        set(&mut options.deletable.region_bits, self.region_bits);
        options.floom.regions = self.regions;
        options.floom.ranked = self.ranked;
        set(&mut options.quotient.load, self.load);
        options.cuckoo.fingerprint_bits = self.fingerprint_bits;
        options.fuse.fingerprint_bits = self.fingerprint_bits;
        if self.semi_sorted {
            options.cuckoo.form = Form::SemiSorted;
        }
        Ok(options)
    }
}

/// The increments of a `B_h` filter for which none are given: all sums of three of them differ.
const B_3_INCREMENTS: [u32; 4] = [1, 4, 8, 13];

/// The contents of a cell of a variable-increment filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellScheme {
    Sum,
    Bh,
    BhImproved,
}

impl CellScheme {
    pub const ALL: [CellScheme; 3] = [CellScheme::Sum, CellScheme::Bh, CellScheme::BhImproved];
}

impl fmt::Display for CellScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CellScheme::Sum => "sum",
            CellScheme::Bh => "bh",
            CellScheme::BhImproved => "bh-improved",
        })
    }
}

impl FromStr for CellScheme {
    type Err = umbel::Error;

    fn from_str(text: &str) -> umbel::Result<CellScheme> {
        let found = CellScheme::ALL.into_iter().find(|scheme| scheme.to_string() == text);
        found.ok_or_else(|| umbel::Error::parameter("scheme", text, "sum, bh or bh-improved"))
    }
}

/// Returns the rate of a filter for which none is given; `None` if the length of its fingerprints
/// determines it.
pub fn default_rate(kind: Kind, options: &KindOptions) -> Option<f64> {
    let fingerprint_bits = match kind {
        Kind::Cuckoo => options.cuckoo.fingerprint_bits,
        Kind::Fuse => options.fuse.fingerprint_bits,
        _ => None,
    };
    let default = if kind.category() == Category::Multiset { DEFAULT_NOISE } else { DEFAULT_RATE };
    fingerprint_bits.is_none().then_some(default)
}

/// Returns the number of keys that a filter with a window of keys remembers, for which it is planned
/// unless another number is given.
pub fn window_keys(kind: Kind, options: &KindOptions) -> Option<u64> {
    match options.aging.window {
        Some(Window::Keys(keys)) if kind == Kind::Aging => Some(keys),
        _ => None,
    }
}

/// The options of multisets.
#[derive(Args, Clone, Debug)]
pub struct MultisetArgs {
    /// Maximum number of distinct keys, if known; then fewer bits suffice
    #[arg(long, value_name = "N", value_parser = number::count, help_heading = headings::MULTISETS)]
    keys: Option<u64>,

    /// Groups of hash functions, 1 to 64, or 8 to 64 with several levels; with more, a level counts
    /// further and is larger [default: 32]
    #[arg(long, value_name = "L", help_heading = headings::MULTISETS)]
    groups: Option<u32>,

    /// multi-resolution: levels, 1 to 16; each counts four times as far as the previous one
    /// [default: 9]
    #[arg(long, value_name = "R", help_heading = headings::MULTISETS)]
    levels: Option<u32>,
}

impl MultisetArgs {
    /// Sets the options of a multiset of this kind. Fails if an option is given that the kind does
    /// not have.
    pub fn for_kind(&self, kind: Kind, options: &mut KindOptions) -> Result<()> {
        let given = [
            (self.keys.is_some(), "--keys"),
            (self.groups.is_some(), "--groups"),
            (self.levels.is_some(), "--levels"),
        ];
        if let Some((_, option)) =
            given.iter().find(|(given, _)| *given && kind.category() != Category::Multiset)
        {
            bail!("{option} is for multisets: add --kind multi-resolution, or leave it out");
        }
        if self.levels.is_some() && kind == Kind::SpaceCode {
            bail!("--levels is for the kind multi-resolution: a space-code filter has one level");
        }
        options.space_code.keys = self.keys;
        set(&mut options.space_code.groups, self.groups);
        set(&mut options.space_code.levels, self.levels);
        Ok(())
    }

    /// Fails if there are certainly more distinct keys than `--keys` says: with too few bits every
    /// key is found.
    pub fn check_keys(&self, distinct: &Distinct) -> Result<()> {
        let found = distinct.count();
        match self.keys {
            Some(keys) if found.value - 3.0 * found.standard_error > keys as f64 => bail!(
                "there are about {:.0} different keys, more than --keys {keys} allows for: leave it out, or give as many",
                found.value
            ),
            _ => Ok(()),
        }
    }
}

fn set<T: Copy>(option: &mut T, given: Option<T>) {
    *option = given.unwrap_or(*option);
}
