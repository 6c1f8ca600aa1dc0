//! The arguments that the module is loaded with: a secret, limits, and the defaults of new filters.
//!
//! The secret of a key file does not leave the server: values that it hashes are written with its
//! tag, and another server needs the same file to read them. A random secret, and one that a client
//! has chosen with `SEED`, is written with the value, which could not be read otherwise.
//!
//! ```text
//! loadmodule /path/libumbel_redis.so KEY-FILE /etc/umbel.key MAX-KEY-BYTES 1073741824
//! ```

use crate::error::{Error, Result};
use crate::server::memory::Budget;
use crate::server::{Arguments, Failure, Loading, Text, memory, random};
use std::io::Read;
use std::path::PathBuf;
use std::sync::OnceLock;
use umbel::Hasher;
use umbel::hash::{HashId, KeyRing, Strength};
use umbel::internals::secret::Secret;
use umbel::internals::secret_file::SecretFile;

/// The secret of a keyed hash.
pub type HashSecret = Secret<[u8; 16]>;

/// The settings of the module.
#[derive(Debug)]
pub struct Config {
    /// The hash secret of new filters: from the first key file, or random and different after every
    /// start.
    secret: HashSecret,
    /// The secrets of all key files.
    key_files: Vec<HashSecret>,
    /// The largest size of a value, in bytes.
    pub max_key_bytes: u64,
    /// The largest size of an item that a value stores, in bytes.
    pub max_item_bytes: u64,
    /// The false positive rate of a Bloom filter that is created without one.
    pub error_rate: f64,
    /// The capacity of a Bloom filter that is created without one.
    pub initial_size: u64,
    /// The growth factor of a Bloom filter that is created without one.
    pub expansion: u32,
    /// The capacity of a cuckoo filter that is created without one.
    pub cuckoo_size: u64,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// Returns the settings of the module.
pub fn get() -> &'static Config {
    CONFIG.get_or_init(|| Config::new(Secret([0; 16])))
}

impl Config {
    fn new(secret: HashSecret) -> Config {
        Config {
            secret,
            key_files: Vec::new(),
            max_key_bytes: 4 << 30,
            max_item_bytes: 64 << 10,
            error_rate: 0.01,
            initial_size: 100,
            expansion: 2,
            cuckoo_size: 1024,
        }
    }
}

/// Parses the arguments of the module, which are pairs of a name and a value.
pub fn load(loading: &Loading, arguments: &[Text]) -> Result<()> {
    let mut config = Config::new(Secret(random()));
    let (pairs, rest) = arguments.as_chunks::<2>();
    if let [name, ..] = rest {
        return Err(Error::NoValue { name: printable(name) });
    }
    for [name, value] in pairs {
        let bad_value = |needs| Error::BadValue { name: printable(name), value: printable(value), needs };
        let size =
            || value.parse::<u64>().filter(|size| *size > 0).ok_or_else(|| bad_value("a number above 0"));
        let bytes = || {
            parse_bytes(value.bytes()).ok_or_else(|| bad_value("a number of bytes above 0, as 1gb or 64mb"))
        };
        if name.is("KEY-FILE") {
            let path = value.parse::<String>().ok_or_else(|| bad_value("the name of a file"))?;
            config.key_files.push(read_secret(&path)?);
            config.secret = config.key_files[0];
        } else if name.is("MAX-KEY-BYTES") {
            config.max_key_bytes = bytes()?;
        } else if name.is("MAX-ITEM-BYTES") {
            config.max_item_bytes = bytes()?;
        } else if name.is("MAX-BYTES") {
            memory::set_module_limit(usize::try_from(bytes()?).unwrap_or(usize::MAX));
        } else if name.is("ERROR_RATE") {
            let rate = value.parse::<f64>().filter(|rate| *rate > 0.0 && *rate < 1.0);
            config.error_rate = rate.ok_or_else(|| bad_value("a rate above 0 and below 1"))?;
        } else if name.is("INITIAL_SIZE") {
            config.initial_size = size()?;
        } else if name.is("EXPANSION") {
            let expansion =
                value.parse::<u32>().filter(|expansion| *expansion <= crate::bloom::MAX_EXPANSION);
            config.expansion = expansion.ok_or_else(|| bad_value("a factor from 0 to 32768"))?;
        } else if name.is("CF_INITIAL_SIZE") {
            config.cuckoo_size = size()?;
        } else {
            return Err(Error::UnknownArgument { name: printable(name) });
        }
    }
    if config.key_files.is_empty() {
        loading.log(
            c"notice",
            "umbel: filters are hashed with a random secret that changes at every start and that \
             snapshots and dumps contain; use KEY-FILE to keep it out of them, to merge filters across \
             starts, or to fetch filters with `umbel pull`",
        );
    }
    CONFIG.set(config).map_err(|_| Error::LoadedTwice)
}

/// Returns an argument as printable text.
fn printable(argument: &Text) -> String {
    argument.bytes().escape_ascii().to_string()
}

/// Parses a number of bytes in the notation of `redis.conf`: `1k` is a thousand, `1kb` is 1024.
fn parse_bytes(text: &[u8]) -> Option<u64> {
    let (number, unit) = parse_number_and_unit(text)?;
    let unit = match unit.as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit).filter(|bytes| *bytes > 0)
}

/// Splits text such as `64MB` into its number and its unit, in lower case.
pub fn parse_number_and_unit(text: &[u8]) -> Option<(u64, String)> {
    let text = str::from_utf8(text).ok()?;
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    Some((number.parse().ok()?, unit.to_ascii_lowercase()))
}

/// The longest key file; more is not read.
const MAX_KEY_FILE_BYTES: u64 = 1024;

/// Reads the secret in a file that `umbel key new --hash keyed` has written.
pub(crate) fn read_secret(path: &str) -> Result<HashSecret> {
    let failed = |source| Error::KeyFile { path: path.to_owned(), source };
    // The arguments name it, but a pipe without a writer must not keep the server from starting.
    let file = SecretFile::open(path.as_ref()).map_err(failed)?;
    let mut text = String::new();
    file.take(MAX_KEY_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let secret = match words[..] {
        ["umbel-key", "keyed", secret] => secret_from_hex(secret.as_bytes()),
        _ => None,
    };
    secret.ok_or_else(|| Error::NoSecret { path: path.to_owned() })
}

/// The word before the tag of a secret in the option `SEED`.
const TAG: &[u8] = b"tag:";

/// Parses the argument of the option `SEED`: a secret, or the tag of one that this server has.
pub fn next_secret(arguments: &mut Arguments<'_>) -> Result<HashSecret, Failure> {
    let text = arguments.next().map(Text::bytes).unwrap_or_default();
    let bad = || Failure::new("bad seed: it should be 32 hexadecimal digits, or `tag:` and 16");
    match text.strip_prefix(TAG) {
        None => secret_from_hex(text).ok_or_else(bad),
        Some(tag) => {
            let tag = umbel::internals::hex::decode_array(tag).map(u64::from_be_bytes).ok_or_else(bad)?;
            Ok(secret_with_tag(tag)?)
        }
    }
}

/// Returns the argument of the option `SEED` for a secret. That of a key file is named by its tag,
/// since replicas and append-only files do not contain it.
pub fn seed_argument(secret: &HashSecret) -> String {
    match get().key_files.contains(secret) {
        true => format!("tag:{:016x}", id_of(secret).value),
        false => umbel::internals::hex::encode(&secret.0),
    }
}

/// Returns the strength of a keyed hash and the tag of its secret.
fn id_of(secret: &HashSecret) -> HashId {
    Hasher::keyed(secret.0).id()
}

/// Returns the secret of a key file with this tag.
fn secret_with_tag(tag: u64) -> umbel::Result<HashSecret> {
    let id = HashId { strength: Strength::Keyed, value: tag };
    let secret = get().key_files.iter().find(|secret| id_of(secret) == id);
    secret.copied().ok_or(umbel::Error::MissingKey { path: PathBuf::new(), id })
}

/// Returns whether a value with this hash function is written with its secret: whether no key file
/// has it.
pub fn embeds(id: HashId) -> bool {
    !get().key_files.iter().any(|secret| id_of(secret) == id)
}

/// Parses a secret of 32 hexadecimal digits.
fn secret_from_hex(text: &[u8]) -> Option<HashSecret> {
    umbel::internals::hex::decode_array(text).map(Secret)
}

/// Returns a secret as the numbers that the streams of sketches and lists store: two, or one that is
/// the tag of a key file's secret.
pub fn secret_to_numbers(secret: &HashSecret) -> Vec<u64> {
    let id = id_of(secret);
    match embeds(id) {
        true => secret.0.as_chunks().0.iter().map(|half| u64::from_le_bytes(*half)).collect(),
        false => vec![id.value],
    }
}

/// Returns the secret with these numbers.
///
/// # Errors
///
/// If it is that of a key file that this server does not have.
pub fn secret_from_numbers(numbers: &[u64]) -> Result<HashSecret> {
    match *numbers {
        [low, high] => Ok(Secret((u128::from(high) << 64 | u128::from(low)).to_le_bytes())),
        [tag] => Ok(secret_with_tag(tag)?),
        _ => Err(Error::CONTRADICTORY),
    }
}

/// Returns the hash secret of new filters.
pub fn secret() -> HashSecret {
    get().secret
}

/// Returns the secrets for filters that arrive without their own.
pub fn ring() -> KeyRing {
    let secrets = get().key_files.iter().copied().chain([secret()]);
    secrets.map(|secret| Hasher::keyed(secret.0)).collect()
}

/// Limits the growth of a value of this size to the maximum size of a key, as long as the returned
/// guard lives.
pub fn budget(bytes: usize) -> Budget {
    let left = get().max_key_bytes.saturating_sub(bytes as u64);
    Budget::new(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Checks that a value of this size is allowed under a key.
pub fn check_memory(bytes: u64) -> Result<(), Failure> {
    let max_key_bytes = get().max_key_bytes;
    if bytes > max_key_bytes && !memory::is_unlimited() {
        memory::note_refusal();
        let text = format!("this takes {bytes} bytes, and a key may take {max_key_bytes}: see MAX-KEY-BYTES");
        return Err(Failure::new(text));
    }
    Ok(())
}

/// Checks the length of an item that a value would store.
pub fn check_item(item: &[u8]) -> Result<(), Failure> {
    let (bytes, max_item_bytes) = (item.len() as u64, get().max_item_bytes);
    if bytes > max_item_bytes && !memory::is_unlimited() {
        memory::note_refusal();
        let text = format!("an item has {bytes} bytes, and may have {max_item_bytes}: see MAX-ITEM-BYTES");
        return Err(Failure::new(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bloom::BloomDesign;
    use crate::cuckoo::CuckooDesign;
    use crate::top::TopDesign;

    #[test]
    fn no_debug_output_shows_the_secret() {
        let secret = Secret([197; 16]);
        let config = Config { key_files: vec![secret], ..Config::new(secret) };
        let bloom = BloomDesign { rate: 0.01, capacity: 100, expansion: 2, secret };
        let cuckoo = CuckooDesign { capacity: 100, slots: 2, kicks: 20, expansion: 1, bits: 8, secret };
        let top = TopDesign { k: 1, width: 1, depth: 1, decay: 0.5, secret };
        let shown = format!("{config:?} {bloom:?} {cuckoo:?} {top:?}");
        assert!(!shown.contains("197") && !shown.to_lowercase().contains("c5c5"), "{shown}");
    }
}
