//! Turns a password into the digests that represent it in a filter.

use super::{Algorithm, PasswordHash};
use crate::vault::Cost;
use crate::{Error, Result};
use argon2::{Argon2, Block, Params, Version};
use std::fmt;
use umbel::file::Meta;
use umbel::internals::hex;
use umbel::{Digest, Filter, Hasher};
use unicode_normalization::UnicodeNormalization;
use zeroize::{Zeroize, Zeroizing};

/// The names of the metadata entries.
const FORM: &str = "password";
const SLOW: &str = "password-slow";

/// The form of a password that is hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Unicode's form NFKC. Bytes that are not UTF-8 stay as they are.
    #[default]
    Words,
    /// Unicode's form NFKC with case folded.
    Folded,
    /// The SHA-1 hash of the bytes, as in leaked lists. If NFKC changes a word, it has two keys: as
    /// typed and normalised.
    Sha1,
    /// The NTLM hash of the password, as in leaked lists, also with two keys if NFKC changes a word.
    Ntlm,
}

impl Form {
    const ALL: [(Form, &str); 4] =
        [(Form::Words, "nfkc"), (Form::Folded, "nfkc fold-case"), (Form::Sha1, "sha1"), (Form::Ntlm, "ntlm")];

    /// Returns the algorithm if passwords are hashed as in leaked lists.
    pub fn algorithm(self) -> Option<Algorithm> {
        match self {
            Form::Words | Form::Folded => None,
            Form::Sha1 => Some(Algorithm::Sha1),
            Form::Ntlm => Some(Algorithm::Ntlm),
        }
    }

    fn name(self) -> &'static str {
        Form::ALL.iter().find(|(form, _)| *form == self).map_or("", |(_, name)| name)
    }
}

/// The cost and the salt of Argon2id, a slow hash, which makes a guess as expensive as checking a
/// password.
#[derive(Clone, PartialEq, Eq)]
pub struct Slow {
    /// The memory in KiB.
    memory: u32,
    /// The number of passes over the memory.
    passes: u32,
    salt: [u8; 16],
}

impl Slow {
    /// The default memory in bytes. With two passes it is the minimum recommended for passwords on
    /// a server.
    pub const MEMORY: u64 = 19 << 20;
    const PASSES: u32 = 2;
    const MIN_MEMORY_KIB: u32 = 64;
    /// The most memory that a file from another source can request.
    const MAX_MEMORY_KIB: u32 = 1 << 20;
    const MAX_PASSES: u32 = 16;

    /// Creates a slow hash with this much memory in bytes, from 64 KiB to 1 GiB, and this salt,
    /// which should be random.
    ///
    /// # Errors
    ///
    /// Fails if the memory is out of range.
    pub fn new(memory: u64, salt: [u8; 16]) -> Result<Slow> {
        let kibibytes = u32::try_from(memory >> 10).unwrap_or(u32::MAX);
        if !(Slow::MIN_MEMORY_KIB..=Slow::MAX_MEMORY_KIB).contains(&kibibytes) {
            return Err(Error::parameter("cost", memory, "from 64 KiB to 1 GiB of memory"));
        }
        Ok(Slow { memory: kibibytes, passes: Slow::PASSES, salt })
    }

    /// Returns the memory in bytes that a caller has to allow for this hash: its memory, or more if
    /// there are more than four passes over it, so that it limits the time, too. The file with the
    /// hash may have been written by an attacker.
    pub fn required_limit(&self) -> u64 {
        u64::from(Cost { memory: self.memory, passes: self.passes, lanes: 1 }.required_limit()) << 10
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

/// The way in which a password becomes the key of a filter. It must be the same when a filter is
/// built and when it is queried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// The form of the password.
    pub form: Form,
    /// The slow hash that is applied before the hash of the filter.
    pub slow: Option<Slow>,
}

impl Recipe {
    /// The names of the metadata entries of a recipe. Two filters are compatible only if all of
    /// them are equal.
    pub const MARKS: [&str; 2] = [FORM, SLOW];

    /// Returns whether the metadata describes a filter of passwords, even if the recipe in it is
    /// unknown.
    pub fn is_in(meta: &Meta) -> bool {
        Recipe::MARKS.iter().any(|mark| meta.contains_key(*mark))
    }

    /// Adds the recipe to the metadata of a filter.
    pub fn record(&self, meta: &mut Meta) {
        meta.insert(FORM.into(), self.form.name().into());
        meta.remove(SLOW);
        if let Some(slow) = &self.slow {
            meta.insert(SLOW.into(), slow.to_string());
        }
    }

    /// Returns the recipe in the metadata of a filter, if its slow hash takes at most this much memory
    /// in bytes, and the time of four passes over it.
    ///
    /// # Errors
    ///
    /// Fails like [`Recipe::from_meta`], or with [`Error::CostlyPasswords`].
    pub fn from_meta_within(meta: &Meta, max_memory: u64) -> Result<Recipe> {
        let recipe = Recipe::from_meta(meta)?;
        match &recipe.slow {
            Some(slow) if slow.required_limit() > max_memory => Err(Error::CostlyPasswords {
                memory: u64::from(slow.memory) << 10,
                passes: slow.passes,
                required: slow.required_limit(),
            }),
            _ => Ok(recipe),
        }
    }

    /// Returns the recipe in the metadata of a filter. It is never guessed, since with a wrong
    /// recipe no password would be found weak.
    ///
    /// # Errors
    ///
    /// Fails if the metadata has no recipe or an unknown one.
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

/// Computes the digests of passwords according to a recipe, with the hash of a filter.
pub struct Digester {
    recipe: Recipe,
    hasher: Hasher,
    /// Key material for the slow hash, derived from the filter's hash and its secret.
    pepper: Zeroizing<Vec<u8>>,
    /// The memory of the slow hash, which is reused.
    blocks: Vec<Block>,
}

impl Digester {
    /// Creates a digester for a filter with this hash.
    pub fn new(recipe: Recipe, hasher: Hasher) -> Digester {
        // Without the secret, an attacker who has the filter cannot even compute slow hashes of
        // words in advance.
        let label = |part: u8| hasher.digest_bytes(&[b"umbel password pepper ", &[part][..]].concat());
        let pepper = (0..4).flat_map(|part| label(part).get().to_le_bytes()).collect::<Vec<u8>>();
        Digester { recipe, hasher, pepper: pepper.into(), blocks: Vec::new() }
    }

    /// Returns the recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Calls `digest` with the one or two digests of a word. To insert a word, insert all of them;
    /// a candidate is weak if the filter has any of them.
    ///
    /// # Errors
    ///
    /// Returns the error of `digest`, or fails if memory for the slow hash is short.
    pub fn each(&mut self, word: &[u8], mut digest: impl FnMut(Digest) -> Result<()>) -> Result<()> {
        let normal = normalised(word, self.recipe.form == Form::Folded);
        let Some(algorithm) = self.recipe.form.algorithm() else { return digest(self.finish(&normal)?) };
        if normal[..] != *word {
            digest(self.digest_hash(&algorithm.hash(word))?)?;
        }
        digest(self.digest_hash(&algorithm.hash(&normal))?)
    }

    /// Returns the digest of a word from its hash, for lists that do not have the word itself. The
    /// algorithm must be that of the recipe.
    ///
    /// # Errors
    ///
    /// Fails if memory for the slow hash is short.
    pub fn digest_hash(&mut self, hash: &PasswordHash) -> Result<Digest> {
        self.finish(hash.as_bytes())
    }

    /// Returns whether a candidate may be in a filter. The empty password is weak.
    ///
    /// # Errors
    ///
    /// Fails if memory for the slow hash is short.
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
        Argon2::new_with_secret(&self.pepper, argon2::Algorithm::Argon2id, Version::V0x13, params)
            .and_then(|argon2| {
                argon2.hash_password_into_with_memory(key, &slow.salt, &mut stretched[..], &mut self.blocks)
            })
            .map_err(refused)?;
        Ok(self.hasher.digest_bytes(&stretched[..]))
    }
}

/// Each clone allocates its own memory for the slow hash.
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

/// Converts an error of Argon2, which refuses only passwords of four gigabytes: everything else is
/// within bounds.
fn refused(error: argon2::Error) -> Error {
    Error::parameter("cost", error, "what Argon2 takes")
}

/// Returns a word in Unicode's form NFKC, with case folded if `fold` is set. Bytes that are not
/// UTF-8 stay as they are.
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
    // Folding may produce text that NFKC changes, and vice versa. The second round leaves nothing
    // to change.
    let mut before = Zeroizing::new(String::new());
    while fold && *before != *normal {
        // Convert to lower case, upper case and lower case again, which unifies letters without a
        // lower-case form and letters with two.
        let small = collected(|| normal.chars().flat_map(char::to_lowercase));
        let large = collected(|| small.chars().flat_map(char::to_uppercase));
        let folded = collected(|| large.chars().flat_map(char::to_lowercase));
        before = normal;
        normal = collected(|| folded.nfkc());
    }
    Zeroizing::new(std::mem::take(&mut *normal).into_bytes())
}

/// Collects characters into memory that is allocated once, so that no copy stays behind when the
/// buffer grows.
fn collected<I: Iterator<Item = char>>(chars: impl Fn() -> I) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(chars().map(char::len_utf8).sum()));
    text.extend(chars());
    text
}
