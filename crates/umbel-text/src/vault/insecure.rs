//! What not to do: a plain filter of a document's words, beside the encrypted document.

use crate::Result;
use umbel::sizing::{KPolicy, Params};
use umbel::{Bloom, Hasher, Standard};

/// **Not secret.** A plain Bloom filter of words, as a server would be given it by the simple scheme: for demonstrations of
/// the attack on it, and for nothing else. No command of umbel uses it.
///
/// Its hash is public, so whoever has the filter can try every word of a dictionary:
///
/// ```
/// use umbel::Filter;
/// use umbel_text::vault::insecure_demo;
/// let filter = insecure_demo(["attack", "at", "dawn"], 1e-6)?;
/// let dictionary = ["attack", "dawn", "defence", "dusk"];
/// let read: Vec<_> = dictionary.into_iter().filter(|word| filter.contains(*word)).collect();
/// assert_eq!(read, ["attack", "dawn"]);
/// # Ok::<(), umbel_text::Error>(())
/// ```
pub fn insecure_demo<'a>(words: impl IntoIterator<Item = &'a str>, rate: f64) -> Result<Bloom<Standard>> {
    let words: Vec<&str> = words.into_iter().collect();
    let Params { bits, hashes, .. } = Params::for_capacity(words.len().max(1) as u64, rate, KPolicy::Round)?;
    let mut filter = Bloom::with_layout(Standard::new(bits, hashes)?, Hasher::fast(0))?;
    for word in words {
        filter.insert(word);
    }
    Ok(filter)
}
