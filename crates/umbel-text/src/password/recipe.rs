//! From a password to the digests by which a filter knows it.

use crate::{Error, Result};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use sha1::{Digest as _, Sha1};
use std::fmt;
use umbel::file::Meta;
use umbel::internals::hex;
use umbel::{Digest, Filter, Hasher};
use unicode_normalization::UnicodeNormalization;
use zeroize::{Zeroize, Zeroizing};

/// The names of the marks in the metadata.
const FORM: &str = "password";
const SLOW: &str = "password-slow";

/// How a password is written before it is hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// In Unicode's form NFKC; bytes that are no UTF-8 as they are.
    #[default]
    Words,
    /// The same, without regard to capital and small letters.
    Folded,
    /// As the SHA-1 of its bytes, as leaked lists have it. Of a word that NFKC changes both forms count, as it is typed
    /// and as it is normalised.
    Sha1,
}

impl Form {
    const ALL: [(Form, &str); 3] =
        [(Form::Words, "nfkc"), (Form::Folded, "nfkc fold-case"), (Form::Sha1, "sha1")];

    fn name(self) -> &'static str {
        Form::ALL.iter().find(|(form, _)| *form == self).map_or("", |(_, name)| name)
    }
}

/// A slow hash, Argon2id, which makes every guess as dear as every password: its cost, and its salt.
#[derive(Clone, PartialEq, Eq)]
pub struct Slow {
    /// The memory it needs, in KiB.
    memory: u32,
    /// How often it goes through that memory.
    passes: u32,
    salt: [u8; 16],
}

impl Slow {
    /// The memory by default, in bytes: with two passes the least that is recommended for passwords on a server.
    pub const MEMORY: u64 = 19 << 20;
    const PASSES: u32 = 2;
    const MIN_MEMORY_KIB: u32 = 64;
    /// The most memory that a file from elsewhere can ask for.
    const MAX_MEMORY_KIB: u32 = 1 << 20;
    const MAX_PASSES: u32 = 16;

    /// With so much memory in bytes, from 64 KiB to 1 GiB, and this salt, which should be random.
    pub fn new(memory: u64, salt: [u8; 16]) -> Result<Slow> {
        let kibibytes = u32::try_from(memory >> 10).unwrap_or(u32::MAX);
        if !(Slow::MIN_MEMORY_KIB..=Slow::MAX_MEMORY_KIB).contains(&kibibytes) {
            return Err(Error::parameter("cost", memory, "from 64 KiB to 1 GiB of memory"));
        }
        Ok(Slow { memory: kibibytes, passes: Slow::PASSES, salt })
    }

    fn parse(text: &str) -> Option<Slow> {
        let words: Vec<&str> = text.split(' ').collect();
        let ["argon2id", memory, passes, "p=1", salt] = words[..] else { return None };
        let memory = memory.strip_prefix("m=")?.parse().ok()?;
        let passes = passes.strip_prefix("t=")?.parse().ok()?;
        let salt = hex::decode_array(salt.strip_prefix("salt=")?.as_bytes())?;
        let sane = (Slow::MIN_MEMORY_KIB..=Slow::MAX_MEMORY_KIB).contains(&memory)
            && (1..=Slow::MAX_PASSES).contains(&passes);
        sane.then_some(Slow { memory, passes, salt })
    }
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let salt = hex::encode(&self.salt);
        write!(f, "argon2id m={} t={} p=1 salt={salt}", self.memory, self.passes)
    }
}

impl fmt::Debug for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How a password becomes the key of a filter: what has to be the same for whoever fills it and whoever asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// How it is written.
    pub form: Form,
    /// What is done to it before the hash of the filter.
    pub slow: Option<Slow>,
}

impl Recipe {
    /// The names of the marks that it leaves in the metadata of a filter: filters are alike only if all of these are.
    pub const MARKS: [&str; 2] = [FORM, SLOW];

    /// Whether the metadata of a filter say that it holds passwords, even if they do not say understandably how.
    pub fn is_in(meta: &Meta) -> bool {
        Recipe::MARKS.iter().any(|mark| meta.contains_key(*mark))
    }

    /// Writes it into the metadata of a filter.
    pub fn record(&self, meta: &mut Meta) {
        meta.insert(FORM.into(), self.form.name().into());
        meta.remove(SLOW);
        if let Some(slow) = &self.slow {
            meta.insert(SLOW.into(), slow.to_string());
        }
    }

    /// Returns the recipe in the metadata of a filter. It is never guessed: a wrong one would find no password weak.
    pub fn from_meta(meta: &Meta) -> Result<Recipe> {
        let mark = |name, value: &String| Error::UnknownMark { name, value: value.clone() };
        let text = meta.get(FORM).ok_or(Error::Unmarked)?;
        let form = Form::ALL.iter().find(|(_, name)| name == text).ok_or_else(|| mark(FORM, text))?.0;
        let slow = match meta.get(SLOW) {
            Some(text) => Some(Slow::parse(text).ok_or_else(|| mark(SLOW, text))?),
            None => None,
        };
        Ok(Recipe { form, slow })
    }
}

/// Follows a recipe, with the hash of a filter.
pub struct Digester {
    recipe: Recipe,
    hasher: Hasher,
    /// The secret's part in the slow hash.
    pepper: Zeroizing<Vec<u8>>,
    /// The memory of the slow hash, used again and again.
    blocks: Vec<Block>,
}

impl Digester {
    /// For a filter with this hash.
    pub fn new(recipe: Recipe, hasher: Hasher) -> Digester {
        // Who has the filter and not the secret cannot even prepare slow hashes of words for the day on which it leaks.
        let label = |part: u8| hasher.digest_bytes(&[b"umbel password pepper ", &[part][..]].concat());
        let pepper = (0..4).flat_map(|part| label(part).get().to_le_bytes()).collect::<Vec<u8>>();
        Digester { recipe, hasher, pepper: pepper.into(), blocks: Vec::new() }
    }

    /// What it follows.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Gives the digests of a word, one or two: all of them go into a filter, and a candidate is weak if any is there.
    pub fn each(&mut self, word: &[u8], mut digest: impl FnMut(Digest) -> Result<()>) -> Result<()> {
        let normal = normalised(word, self.recipe.form == Form::Folded);
        if self.recipe.form != Form::Sha1 {
            return digest(self.finish(&normal)?);
        }
        if normal[..] != *word {
            digest(self.finish(&*sha1(word))?)?;
        }
        digest(self.finish(&*sha1(&normal))?)
    }

    /// Returns the digest of a word of which only the SHA-1 is known.
    pub fn digest_sha1(&mut self, sha1: &[u8; 20]) -> Result<Digest> {
        self.finish(sha1)
    }

    /// Whether a candidate may be in a filter. No password at all is a weak one.
    pub fn is_weak(&mut self, candidate: &[u8], filter: &impl Filter) -> Result<bool> {
        let mut weak = candidate.is_empty();
        self.each(candidate, |digest| {
            weak |= filter.contains_digest(digest);
            Ok(())
        })?;
        Ok(weak)
    }

    fn finish(&mut self, key: &[u8]) -> Result<Digest> {
        let Some(slow) = &self.recipe.slow else { return Ok(self.hasher.digest_bytes(key)) };
        let mut stretched = Zeroizing::new([0; 32]);
        let bytes = u64::from(slow.memory) << 10;
        let params = Params::new(slow.memory, slow.passes, 1, Some(stretched.len())).map_err(refused)?;
        if self.blocks.is_empty() {
            let count = params.block_count();
            self.blocks
                .try_reserve_exact(count)
                .map_err(|_| Error::OutOfMemory { bytes, purpose: "the slow hash" })?;
            self.blocks.resize(count, Block::new());
        }
        Argon2::new_with_secret(&self.pepper, Algorithm::Argon2id, Version::V0x13, params)
            .and_then(|argon2| {
                argon2.hash_password_into_with_memory(key, &slow.salt, &mut stretched[..], &mut self.blocks)
            })
            .map_err(refused)?;
        Ok(self.hasher.digest_bytes(&stretched[..]))
    }
}

/// With memory of its own for the slow hash.
impl Clone for Digester {
    fn clone(&self) -> Digester {
        let Digester { recipe, hasher, pepper, .. } = self;
        Digester {
            recipe: recipe.clone(),
            hasher: hasher.clone(),
            pepper: pepper.clone(),
            blocks: Vec::new(),
        }
    }
}

impl Drop for Digester {
    fn drop(&mut self) {
        self.blocks.iter_mut().for_each(Zeroize::zeroize);
    }
}

/// Only a password of four gigabytes is refused: all else is within bounds.
fn refused(error: argon2::Error) -> Error {
    Error::parameter("cost", error, "what Argon2 takes")
}

/// The SHA-1 of bytes.
pub fn sha1(bytes: &[u8]) -> Zeroizing<[u8; 20]> {
    Zeroizing::new(Sha1::digest(bytes).into())
}

/// A word in Unicode's form NFKC, and in small letters if capitals do not count; bytes that are no UTF-8 as they are.
///
/// ```
/// use umbel_text::password::normalised;
/// assert_eq!(normalised("ﬁne №1".as_bytes(), false)[..], *"fine No1".as_bytes());
/// assert_eq!(normalised("STRASSE".as_bytes(), true), normalised("straße".as_bytes(), true));
/// assert_eq!(normalised(b"\xff\xfe", true)[..], *b"\xff\xfe");
/// ```
pub fn normalised(word: &[u8], fold: bool) -> Zeroizing<Vec<u8>> {
    let mut word = Zeroizing::new(word.to_vec());
    if word.is_ascii() {
        if fold {
            word.make_ascii_lowercase();
        }
        return word;
    }
    let Ok(text) = str::from_utf8(&word) else { return word };
    let mut normal = collected(|| text.nfkc());
    // To fold may leave what NFKC changes, and the other way round; the second time nothing is left.
    let mut before = Zeroizing::new(String::new());
    while fold && *before != *normal {
        // There and back: letters without a small form of their own, and those with two, become the same.
        let small = collected(|| normal.chars().flat_map(char::to_lowercase));
        let large = collected(|| small.chars().flat_map(char::to_uppercase));
        let folded = collected(|| large.chars().flat_map(char::to_lowercase));
        before = normal;
        normal = collected(|| folded.nfkc());
    }
    Zeroizing::new(std::mem::take(&mut *normal).into_bytes())
}

/// Characters in memory that is taken once, so that nothing is left where it was before it grew.
fn collected<I: Iterator<Item = char>>(chars: impl Fn() -> I) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(chars().map(char::len_utf8).sum()));
    text.extend(chars());
    text
}
