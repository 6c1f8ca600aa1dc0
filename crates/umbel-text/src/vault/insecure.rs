//! An example of what not to do: a plain filter of a document's words beside the encrypted
//! document.

use crate::Result;
use umbel::sizing::{KPolicy, Params};
use umbel::{Bloom, Hasher, Standard};

/// **Not secret.** Builds a plain Bloom filter of words, as the naive scheme would hand it to a
/// server. It serves only to demonstrate the attack on that scheme. No command of umbel uses it.
///
/// Its hash is public, so anyone who has the filter can try every word of a dictionary:
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
///
/// # Errors
///
/// Fails if the rate is out of range or memory is short.
pub fn insecure_demo<'a>(words: impl IntoIterator<Item = &'a str>, rate: f64) -> Result<Bloom<Standard>> {
    let words: Vec<&str> = words.into_iter().collect();
    let Params { bits, hashes, .. } = Params::for_capacity(words.len().max(1) as u64, rate, KPolicy::Round)?;
    let mut filter = Bloom::with_layout(Standard::new(bits, hashes)?, Hasher::fast(0))?;
    for word in words {
        filter.insert(word);
    }
    Ok(filter)
}
