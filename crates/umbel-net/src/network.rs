//! Network prefixes: a single address, or all addresses that begin with the same bits.

use crate::{Error, Result};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use umbel::{Digest, Hasher};

/// A network prefix, or a single address: `192.0.2.7`, `192.0.2.0/24`, `2001:db8::/32`.
///
/// Bits after the prefix are cleared, as firewalls do. An IPv4-mapped IPv6 address
/// (`::ffff:192.0.2.7`, as dual-stack sockets report it) counts as the IPv4 address, since it is
/// the same host.
///
/// ```
/// use umbel_net::network::Prefix;
/// let net: Prefix = "192.0.2.77/24".parse()?;
/// assert_eq!(net.to_string(), "192.0.2.0/24");
/// assert!(net.covers("192.0.2.200".parse().unwrap()));
/// assert_eq!("::ffff:192.0.2.7".parse::<Prefix>()?.to_string(), "192.0.2.7");
/// # Ok::<(), umbel_net::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Returns the prefix with the first `length` bits of an address.
    ///
    /// # Errors
    ///
    /// Fails if the address has fewer than `length` bits.
    pub fn new(address: IpAddr, length: u8) -> Result<Prefix> {
        let bits = bits(address);
        if length > bits {
            return Err(Error::parameter("prefix", length, format!("a length of 0 to {bits} bits")));
        }
        let (address, length) = match (address.to_canonical(), length) {
            (IpAddr::V4(v4), 96..) if bits == 128 => (IpAddr::V4(v4), length - 96),
            // A prefix shorter than the 96 bits of the mapping covers IPv6 addresses, too.
            (IpAddr::V4(_), _) if bits == 128 => (address, length),
            (address, _) => (address, length),
        };
        Ok(Prefix::masked(address, length))
    }

    /// Returns the prefix that covers a single address.
    pub fn host(address: IpAddr) -> Prefix {
        let address = address.to_canonical();
        Prefix { address, length: bits(address) }
    }

    /// Parses a prefix, and returns whether bits after it had to be cleared.
    ///
    /// # Errors
    ///
    /// Fails if the text is not an address, optionally with `/` and a length that fits its family.
    pub fn parse(text: &str) -> Result<(Prefix, bool)> {
        let (address, length) = text.split_once('/').map_or((text, None), |(text, rest)| (text, Some(rest)));
        let wrong = || {
            let needs = "an address such as 192.0.2.7 or 2001:db8::7, or a prefix such as 192.0.2.0/24";
            Error::parameter("address", quoted(text), needs)
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let Some(length) = length else { return Ok((Prefix::host(address), false)) };
        // `u8::from_str` accepts a plus sign, too.
        let digits = length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|_| digits).ok_or_else(wrong)?;
        let prefix = Prefix::new(address, length)?;
        let cleared = prefix.address.to_canonical() != address.to_canonical();
        Ok((prefix, cleared))
    }

    /// Returns the address, with the bits after the prefix cleared.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the number of bits in the prefix.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Returns the address, if the prefix covers only one.
    pub fn as_host(&self) -> Option<IpAddr> {
        (self.length == bits(self.address)).then_some(self.address)
    }

    /// Returns whether an address begins with the bits of this prefix.
    pub fn covers(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && Prefix::masked(address, self.length) == *self
    }

    /// Returns the first bits of a canonical address, which must have at least `length` bits.
    pub(crate) fn masked(address: IpAddr, length: u8) -> Prefix {
        let address = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
            }
        };
        Prefix { address, length }
    }

    /// The size of a prefix in files.
    pub(crate) const BYTES: usize = 18;

    /// Returns the bytes stored in a file: the family (4 or 6), the length, and 16 bytes of
    /// address. The octets of an IPv4 address come first.
    pub(crate) fn to_bytes(self) -> [u8; Prefix::BYTES] {
        let mut bytes = [0; Prefix::BYTES];
        bytes[1] = self.length;
        match self.address {
            IpAddr::V4(v4) => {
                bytes[0] = 4;
                bytes[2..6].copy_from_slice(&v4.octets());
            }
            IpAddr::V6(v6) => {
                bytes[0] = 6;
                bytes[2..].copy_from_slice(&v6.octets());
            }
        }
        bytes
    }

    /// Decodes a prefix from a file, or returns `None` if [`to_bytes`](Prefix::to_bytes) would not
    /// have written it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Prefix> {
        let (&[family, length], address) = bytes.split_first_chunk()?;
        let octets: [u8; 16] = address.try_into().ok()?;
        let address: IpAddr = match family {
            4 => Ipv4Addr::from(*octets.first_chunk()?).into(),
            6 => Ipv6Addr::from(octets).into(),
            _ => return None,
        };
        let prefix = Prefix::new(address, length).ok()?;
        // A prefix in any other form would never be found under its name.
        (prefix.address == address && prefix.length == length).then_some(prefix)
    }

    /// Returns the digest of the prefix as a key: 4 or 6, the length, and the octets of the
    /// address.
    pub(crate) fn digest(&self, hasher: &Hasher) -> Digest {
        match self.address {
            IpAddr::V4(v4) => {
                let [a, b, c, d] = v4.octets();
                hasher.digest_bytes(&[4, self.length, a, b, c, d])
            }
            IpAddr::V6(v6) => {
                let mut key = [6; 18];
                key[1] = self.length;
                key[2..].copy_from_slice(&v6.octets());
                hasher.digest_bytes(&key)
            }
        }
    }
}

/// Returns the number of bits of an address of this family.
fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Quotes text from outside for a message: escaped, and cut so that it fits on a line.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_QUOTED_CHARS: usize = 60;
    let start: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    let more = if text.chars().nth(MAX_QUOTED_CHARS).is_some() { "..." } else { "" };
    format!("\"{}{more}\"", start.escape_debug())
}

impl FromStr for Prefix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Prefix> {
        Prefix::parse(text).map(|(prefix, _)| prefix)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_host() {
            Some(address) => write!(f, "{address}"),
            None => write!(f, "{}/{}", self.address, self.length),
        }
    }
}
