//! The classic first experiment: a list of words, and random words that are certainly not in it.

use crate::Result;
use crate::keys::mix;
use std::collections::HashSet;
use umbel::sizing::{KPolicy, Params, rate};
use umbel::{Bloom, Hasher, Standard};

/// The result of testing a list of words with random words.
#[derive(Clone, Debug, PartialEq)]
pub struct WordsReport {
    /// Requested rate.
    pub p: f64,
    /// Number of different words in the list.
    pub n: u64,
    /// Number of bits: -n ln p / (ln 2)^2, rounded up.
    pub m: u64,
    /// Number of hash functions: (m/n) ln 2, rounded up.
    pub k: u32,
    /// Number of random words that were looked up.
    pub queries: u64,
    /// Number of random words that the filter took for words of the list.
    pub positives: u64,
    /// Rate by the classic formula for m, n and k.
    pub computed: f64,
    /// Number of hash functions and computed rate with k rounded to the nearest number, if that
    /// rate is lower.
    pub rounded: Option<(u32, f64)>,
}

impl WordsReport {
    /// Returns the share of random words that the filter took for words of the list.
    pub fn measured(&self) -> f64 {
        self.positives as f64 / self.queries.max(1) as f64
    }
}

/// Inserts the words into a standard filter for the rate `p`, with m and k both rounded up, and
/// looks up `queries` different random words, none of which is in the list.
///
/// ```
/// let list: Vec<String> = (0..1000).map(|number| format!("word {number}")).collect();
/// let report = umbel_lab::words(&list, 0.01, 100_000, 1)?;
/// assert_eq!((report.n, report.m, report.k), (1000, 9586, 7));
/// assert!((report.computed - 0.010037).abs() < 1e-6);
/// assert!((report.measured() - report.computed).abs() < 0.0013);
/// # Ok::<(), umbel_lab::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Filter`](crate::Error::Filter) if the list is empty or `p` is not between 0 and 1.
pub fn words<W: AsRef<[u8]>>(list: &[W], p: f64, queries: u64, seed: u64) -> Result<WordsReport> {
    let mut known: HashSet<Vec<u8>> = list.iter().map(|word| word.as_ref().to_vec()).collect();
    let n = known.len() as u64;
    let Params { bits: m, hashes: k, .. } = Params::for_capacity(n, p, KPolicy::Ceil)?;
    let mut filter = Bloom::with_layout(Standard::new(m, k)?, Hasher::fast(seed))?;
    for word in &known {
        filter.insert(&word[..]);
    }
    // A word that is new to the set is neither in the list nor was it looked up before.
    let strangers = (0..).map(|number| random_word(seed, number)).filter(|word| known.insert(word.clone()));
    let asked = strangers.take(usize::try_from(queries).unwrap_or(usize::MAX));
    let positives = asked.filter(|word| filter.contains(&word[..])).count() as u64;
    let computed = rate::classic(m, n, k)?;
    let nearest = KPolicy::Round.hashes(m, n)?;
    let better = rate::classic(m, n, nearest)?;
    let rounded = (better < computed).then_some((nearest, better));
    Ok(WordsReport { p, n, m, k, queries, positives, computed, rounded })
}

/// Returns a word of five to twelve lower-case letters.
fn random_word(seed: u64, number: u64) -> Vec<u8> {
    let mut random = mix(mix(seed).wrapping_add(number));
    let mut take = |choices: u64| {
        let taken = random % choices;
        random /= choices;
        taken
    };
    (0..5 + take(8)).map(|_| b'a' + take(26) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: u64) -> Vec<String> {
        (0..count).map(|number| number.to_string()).collect()
    }

    #[test]
    fn the_figures_of_werren_and_suter_are_reproduced() {
        let report = words(&numbers(58_110), 0.04, 100_000, 1).unwrap();
        assert_eq!((report.n, report.m, report.k), (58_110, 389_318, 5));
        assert!((report.computed - 0.040_221_2).abs() < 5e-8);
        assert!((report.measured() - report.computed).abs() < 0.0025, "{}", report.measured());
        assert_eq!(report.rounded, None);
    }

    #[test]
    fn a_report_mentions_where_rounding_up_is_worse() {
        let report = words(&numbers(500), 0.05, 100, 1).unwrap();
        let (k, rate) = report.rounded.unwrap();
        assert_eq!((report.k, k), (5, 4));
        assert!((report.computed - 0.051_034_68).abs() < 1e-8 && (rate - 0.050_274_64).abs() < 1e-8);
    }

    #[test]
    fn repeated_words_count_once_and_the_seed_selects_the_random_words() {
        let twice = [numbers(100), numbers(100)].concat();
        let of = |list: &[String], seed| words(list, 0.2, 20_000, seed).unwrap();
        assert_eq!(of(&twice, 1), of(&numbers(100), 1));
        assert_ne!(of(&twice, 1).positives, of(&twice, 2).positives);
    }

    #[test]
    fn a_random_word_that_is_in_the_list_is_not_looked_up() {
        let list: Vec<Vec<u8>> = (0..1000).map(|number| random_word(7, number)).collect();
        // At this rate only members are found.
        assert_eq!(words(&list, 1e-9, 2000, 7).unwrap().positives, 0);
    }

    #[test]
    fn an_empty_list_and_invalid_rates_are_refused() {
        assert!(words::<&str>(&[], 0.01, 10, 1).is_err());
        assert!([0.0, 1.0, -0.5, f64::NAN].iter().all(|p| words(&["a"], *p, 10, 1).is_err()));
    }
}
