//! The value of `BF.*`: a filter of this module, or one that was loaded from RedisBloom.

use super::Bloom;
use crate::config;
use crate::family::Lookup;
use crate::persist::{Layout, Persist};
use crate::server::{Failure, Reply, Result, Text};
use umbel::AnyFilter;
use umbel::foreign::RedisBloomChain;

/// A Bloom filter under a key.
pub type BloomValue = Layout<Bloom, RedisBloomChain>;

impl Lookup for RedisBloomChain {
    fn contains(&self, item: &[u8]) -> bool {
        self.contains(item)
    }

    fn contains_many(&self, items: &[&[u8]]) -> Vec<bool> {
        self.contains_batch(items).iter().collect()
    }
}

/// A stage of a filter, as `BF.DEBUG` describes it.
struct Stage {
    bytes: u64,
    bits: u64,
    hashes: u32,
    capacity: u64,
    items: u64,
    rate: f64,
}

impl Stage {
    fn line(&self) -> String {
        let Stage { bytes, bits, hashes, capacity, items, rate } = self;
        let rate = six_digits(*rate);
        format!(
            "bytes:{bytes} bits:{bits} hashes:{hashes} hashwidth:64 capacity:{capacity} size:{items} ratio:{rate}"
        )
    }
}

/// Returns a rate with at most six digits, as the `%g` of C prints it: clients compare the text.
fn six_digits(rate: f64) -> String {
    let scientific = format!("{rate:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific.to_lowercase() };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trim = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    match exponent {
        -4..6 => trim(&format!("{rate:.*}", (5 - exponent) as usize)),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trim(digits), exponent.abs())
        }
    }
}

impl BloomValue {
    /// Returns the filter of the library.
    ///
    /// # Errors
    ///
    /// If it was loaded from RedisBloom.
    pub fn filter(&self) -> Result<&AnyFilter> {
        self.own().map(Bloom::filter)
    }

    /// Returns the number of items that were new when they were added.
    pub fn items(&self) -> u64 {
        match self {
            Layout::Own(bloom) => bloom.items(),
            Layout::RedisBloom(chain) => chain.keys(),
        }
    }

    /// Adds items. Returns one element per item: whether it was new, or its error.
    pub fn add_items(&mut self, items: &[Text]) -> Vec<Result<bool>> {
        match self {
            Layout::Own(bloom) => bloom.add_items(items),
            Layout::RedisBloom(chain) => {
                let bytes = chain.links().map(|link| link.bytes).sum::<u64>();
                let _budget = config::budget(bytes as usize);
                items.iter().map(|item| add_to_chain(chain, item.bytes())).collect()
            }
        }
    }

    /// Returns the fields of `BF.INFO`: the argument that selects it, the name, and the value.
    pub fn info_fields(&self) -> [(&'static str, &'static str, Reply); 5] {
        let (capacity, stages, growth) = match self {
            Layout::Own(bloom) => (bloom.capacity(), bloom.stages(), bloom.expansion),
            Layout::RedisBloom(chain) => {
                let capacity = chain.links().fold(0u64, |sum, link| sum.saturating_add(link.capacity));
                (capacity, chain.links().count() as u64, chain.growth())
            }
        };
        let expansion = match growth {
            0 => Reply::Null,
            factor => Reply::from(u64::from(factor)),
        };
        [
            ("CAPACITY", "Capacity", capacity.into()),
            ("SIZE", "Size", (self.memory_bytes() as u64).into()),
            ("FILTERS", "Number of filters", stages.into()),
            ("ITEMS", "Number of items inserted", self.items().into()),
            ("EXPANSION", "Expansion rate", expansion),
        ]
    }

    /// Returns the lines of `BF.DEBUG`: one for the whole filter, and one for each of its stages.
    pub fn debug_lines(&self) -> Vec<String> {
        let stages: Vec<Stage> = match self {
            Layout::Own(bloom) => own_stages(bloom),
            Layout::RedisBloom(chain) => chain
                .links()
                .map(|link| Stage {
                    bytes: link.bytes,
                    bits: link.bits,
                    hashes: link.hashes,
                    capacity: link.capacity,
                    items: link.keys,
                    rate: link.rate,
                })
                .collect(),
        };
        let first = format!("size:{}", self.items());
        [first].into_iter().chain(stages.iter().map(Stage::line)).collect()
    }
}

fn own_stages(bloom: &Bloom) -> Vec<Stage> {
    let stage =
        |bits, hashes, capacity, items, rate| Stage { bytes: bits / 8, bits, hashes, capacity, items, rate };
    match bloom.filter() {
        AnyFilter::Scalable(filter) => {
            let stages = filter.stages();
            stages.map(|one| stage(one.bits, one.hashes, one.capacity, one.keys, one.rate)).collect()
        }
        other => {
            let (stats, rate) = (other.stats(), other.design().map_or(0.0, |design| design.rate));
            vec![stage(stats.bits, stats.hashes, bloom.capacity(), bloom.items(), rate)]
        }
    }
}

/// Adds an item to a chain, and returns whether it was new.
fn add_to_chain(chain: &mut RedisBloomChain, item: &[u8]) -> Result<bool> {
    if chain.is_full() && !chain.contains(item) {
        return Err(Failure::new("non scaling filter is full"));
    }
    Ok(chain.insert(item)?)
}

#[cfg(test)]
mod tests {
    use super::six_digits;

    #[test]
    fn rates_have_the_digits_that_c_prints() {
        for (rate, text) in [
            (0.005, "0.005"),
            (0.0015000000000000002, "0.0015"),
            (6.25e-5, "6.25e-05"),
            (0.0001, "0.0001"),
            (0.99999999, "1"),
            (3.0517578125e-8, "3.05176e-08"),
            (0.0, "0"),
            (123456.7, "123457"),
            (1234567.0, "1.23457e+06"),
            (1e-300, "1e-300"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(six_digits(rate), text);
        }
    }
}
