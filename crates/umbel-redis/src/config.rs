//! What is settled when the module is loaded: secrets, limits, and what filters are like that nobody describes.
//!
//! ```text
//! loadmodule /path/libumbel_redis.so KEY-FILE /etc/umbel.key MAX-KEY-BYTES 1073741824
//! ```

use crate::error::{Error, Result};
use crate::server::memory::Budget;
use crate::server::{Arguments, Failure, Loading, Text, memory, random};
use std::sync::OnceLock;
use umbel::Hasher;
use umbel::hash::KeyRing;

/// What is settled when the module is loaded.
#[derive(Debug)]
pub struct Config {
    /// The secret with which filters hash that are made here; unless a file has it, a new one for every start.
    secret: [u8; 16],
    /// The most bytes a key may take.
    pub max_key_bytes: u64,
    /// The rate of a Bloom filter that an ADD makes.
    pub error_rate: f64,
    /// Its capacity.
    pub initial_size: u64,
    /// By which it grows.
    pub expansion: u32,
    /// The capacity of a cuckoo filter that an ADD makes.
    pub cuckoo_size: u64,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// What is settled.
pub fn get() -> &'static Config {
    CONFIG.get_or_init(|| Config::new([0; 16]))
}

impl Config {
    fn new(secret: [u8; 16]) -> Config {
        Config {
            secret,
            max_key_bytes: 4 << 30,
            error_rate: 0.01,
            initial_size: 100,
            expansion: 2,
            cuckoo_size: 1024,
        }
    }
}

/// Reads the arguments that the module is loaded with: names and values.
pub fn load(loading: &Loading, arguments: &[Text]) -> Result<()> {
    let (mut config, mut secret_is_kept) = (Config::new(random()), false);
    let (pairs, rest) = arguments.as_chunks::<2>();
    if let [name, ..] = rest {
        return Err(Error::NoValue { name: shown(name) });
    }
    for [name, value] in pairs {
        let wrong = |needs| Error::BadValue { name: shown(name), value: shown(value), needs };
        let size = || value.parse::<u64>().filter(|size| *size > 0).ok_or_else(|| wrong("a number above 0"));
        let bytes = || bytes(value.bytes()).ok_or_else(|| wrong("a number of bytes above 0, as 1gb or 64mb"));
        if name.is("KEY-FILE") {
            let path = value.parse::<String>().ok_or_else(|| wrong("the name of a file"))?;
            config.secret = read_secret(&path)?;
            secret_is_kept = true;
        } else if name.is("MAX-KEY-BYTES") {
            config.max_key_bytes = bytes()?;
        } else if name.is("MAX-BYTES") {
            memory::set_module_limit(usize::try_from(bytes()?).unwrap_or(usize::MAX));
        } else if name.is("ERROR_RATE") {
            let rate = value.parse::<f64>().filter(|rate| *rate > 0.0 && *rate < 1.0);
            config.error_rate = rate.ok_or_else(|| wrong("a rate above 0 and below 1"))?;
        } else if name.is("INITIAL_SIZE") {
            config.initial_size = size()?;
        } else if name.is("EXPANSION") {
            let expansion =
                value.parse::<u32>().filter(|expansion| *expansion <= crate::bloom::MAX_EXPANSION);
            config.expansion = expansion.ok_or_else(|| wrong("a factor from 0 to 32768"))?;
        } else if name.is("CF_INITIAL_SIZE") {
            config.cuckoo_size = size()?;
        } else {
            return Err(Error::UnknownArgument { name: shown(name) });
        }
    }
    CONFIG.set(config).map_err(|_| Error::LoadedTwice)?;
    if !secret_is_kept {
        loading.log(
            c"notice",
            "umbel: filters hash with a secret that is made anew at every start; \
             those that are to be merged across starts, or fetched with `umbel pull`, need KEY-FILE",
        );
    }
    Ok(())
}

/// Returns an argument as it can be printed.
fn shown(argument: &Text) -> String {
    argument.bytes().escape_ascii().to_string()
}

/// A number of bytes, as servers take them elsewhere: `1k` is a thousand, `1kb` is 1024.
fn bytes(text: &[u8]) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
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

/// A whole number, and what stands behind it in small letters.
pub fn number_and_unit(text: &[u8]) -> Option<(u64, String)> {
    let text = str::from_utf8(text).ok()?;
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    Some((number.parse().ok()?, unit.to_ascii_lowercase()))
}

/// The secret in a file that `umbel key new --hash keyed` has made.
pub(crate) fn read_secret(path: &str) -> Result<[u8; 16]> {
    let failed = |source| Error::KeyFile { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let secret = match words[..] {
        ["umbel-key", "keyed", secret] => parse_secret(secret.as_bytes()),
        _ => None,
    };
    secret.ok_or_else(|| Error::NoSecret { path: path.to_owned() })
}

/// The secret that comes behind `SEED`.
pub fn take_secret(arguments: &mut Arguments<'_>) -> Result<[u8; 16], Failure> {
    let secret = arguments.next().and_then(|text| parse_secret(text.bytes()));
    secret.ok_or_else(|| Failure::new("bad seed: it should be 32 hexadecimal digits"))
}

/// A secret in 32 hexadecimal digits.
fn parse_secret(text: &[u8]) -> Option<[u8; 16]> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let mut secret = [0; 16];
    if pairs.len() != secret.len() {
        return None;
    }
    for (byte, pair) in secret.iter_mut().zip(pairs) {
        let digits = str::from_utf8(pair).ok().filter(|digits| !digits.starts_with('+'))?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(secret)
}

/// A secret in hexadecimal digits.
pub fn write_secret(secret: &[u8; 16]) -> String {
    secret.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A secret as two numbers, as values keep it that are no filters of the library.
pub fn as_numbers(secret: &[u8; 16]) -> (u64, u64) {
    let number = u128::from_le_bytes(*secret);
    (number as u64, (number >> 64) as u64)
}

/// A secret from its two numbers.
pub fn from_numbers(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

/// The secret of filters that are made here.
pub fn secret() -> [u8; 16] {
    get().secret
}

/// The secrets that are known, for filters that come without theirs.
pub fn ring() -> KeyRing {
    let mut ring = KeyRing::new();
    ring.insert(Hasher::keyed(secret()));
    ring
}

/// While this lives, a key that has so many bytes gets as many more as it may have.
pub fn budget(bytes: usize) -> Budget {
    let left = get().max_key_bytes.saturating_sub(bytes as u64);
    Budget::new(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Refuses what is too large for a key.
pub fn check_memory(bytes: u64) -> Result<(), Failure> {
    let most = get().max_key_bytes;
    if bytes > most && !memory::is_obeying() {
        memory::note_refusal();
        let text = format!("this takes {bytes} bytes, and a key may take {most}: see MAX-KEY-BYTES");
        return Err(Failure::new(text));
    }
    Ok(())
}
