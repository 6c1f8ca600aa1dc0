//! Parses addresses into the canonical form that all their spellings share, as the Safe Browsing
//! documentation describes it.

use super::host;
use std::fmt;

/// Why a text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// The host is empty.
    NoHost,
    /// The host contains characters that would end a host.
    Host,
    /// The text in brackets is not an IPv6 address.
    Brackets,
    /// The host is followed by a colon, but not by a port number.
    Port,
    /// The scheme is not followed by two slashes, as in `mailto:`.
    Scheme,
    /// There is no scheme, and the text before the first slash does not look like a host.
    Word,
    /// A line of a list has more than an address, or a pattern for several addresses.
    Line,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invalid::NoHost => "there is no host",
            Invalid::Host => "its host has characters that no host has",
            Invalid::Brackets => "what is in brackets is not an IPv6 address",
            Invalid::Port => "its port is not a number",
            Invalid::Scheme => "it is not a web address: after the scheme come two slashes",
            Invalid::Word => "it is not an address: without http:// it needs a host with a dot",
            Invalid::Line => "blanks and the signs * | ^ are not understood in it",
        })
    }
}

impl std::error::Error for Invalid {}

/// A canonical address. It is printable ASCII, regardless of the text that was parsed.
///
/// ```
/// use umbel_text::address::Address;
/// let address = Address::parse(b" HTTP://user@WWW.Example.com:80/a/./b/../%2561#top").unwrap();
/// assert_eq!(address.to_string(), "http://www.example.com/a/a");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    scheme: String,
    pub(super) host: String,
    /// Whether the host is an IP address, which has no parents.
    pub(super) numeric: bool,
    pub(super) path: String,
    pub(super) query: Option<String>,
}

impl Address {
    /// Parses an address and makes it canonical. An address without a scheme gets `http`; its host
    /// must have a dot, so that a word is not taken for an address.
    ///
    /// The Safe Browsing documentation unescapes everything before it looks for the host. This
    /// function finds the host first, as browsers do: the host of
    /// `http://good.example%2F@evil.example/` is `evil.example`.
    ///
    /// # Errors
    ///
    /// Returns the reason why the text is not a web address.
    pub fn parse(text: &[u8]) -> Result<Address, Invalid> {
        Address::parse_where(text, looks_like_address)
    }

    /// Parses a host that stands alone. It may be a single word, as in hosts files.
    pub(super) fn parse_host(name: &[u8]) -> Result<Address, Invalid> {
        Address::parse_where(name, |_| true)
    }

    /// Parses an address, which has to pass `check` if it has no scheme.
    fn parse_where(text: &[u8], check: impl FnOnce(&[u8]) -> bool) -> Result<Address, Invalid> {
        let mut text: Vec<u8> = text.to_vec();
        text.retain(|byte| !matches!(byte, b'\t' | b'\r' | b'\n'));
        if let Some(fragment) = text.iter().position(|byte| *byte == b'#') {
            text.truncate(fragment);
        }
        let trimmed = text.trim_ascii();
        match scheme(trimmed) {
            Some((name, rest)) => Address::from_parts(name, rest),
            None => {
                // Sometimes the whole address is escaped, as in a query.
                let plain = unescaped(trimmed);
                match scheme(&plain) {
                    Some((name, rest)) => Address::from_parts(name, rest),
                    None => {
                        let address = Address::from_parts(b"http", without_scheme(trimmed)?)?;
                        if check(trimmed) { Ok(address) } else { Err(Invalid::Word) }
                    }
                }
            }
        }
    }

    fn from_parts(scheme: &[u8], rest: &[u8]) -> Result<Address, Invalid> {
        // For browsers a backslash ends a host, too.
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'\\' | b'?')).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (host, numeric) = host::canonical(authority)?;
        let mut rest = unescaped(rest);
        if let Some(first @ b'\\') = rest.first_mut() {
            *first = b'/';
        }
        let (path, query) = match rest.iter().position(|byte| *byte == b'?') {
            Some(mark) => (&rest[..mark], Some(escaped(&rest[mark + 1..]))),
            None => (&rest[..], None),
        };
        let scheme = String::from_utf8_lossy(scheme).to_ascii_lowercase();
        Ok(Address { scheme, host, numeric, path: escaped(&resolved(path)), query })
    }

    /// Returns the host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the host, the path and the query, which is the form that lists hold.
    pub fn expression(&self) -> String {
        let Address { host, path, .. } = self;
        match self.query.as_deref() {
            None | Some("") => format!("{host}{path}"),
            Some(query) => format!("{host}{path}?{query}"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { scheme, host, path, query, .. } = self;
        write!(f, "{scheme}://{host}{path}")?;
        query.as_ref().map_or(Ok(()), |query| write!(f, "?{query}"))
    }
}

/// Splits an address into the scheme before `://` and the rest.
fn scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte))?;
    let (name, rest) = text.split_at(end);
    let rest = rest.strip_prefix(b"://")?;
    name.first().is_some_and(u8::is_ascii_alphabetic).then_some((name, rest))
}

/// Checks an address without a scheme. The text before its first colon is a host, so only digits (a
/// port) may follow the colon.
fn without_scheme(text: &[u8]) -> Result<&[u8], Invalid> {
    let end = text.iter().position(|byte| matches!(byte, b'/' | b'\\' | b'?' | b'[')).unwrap_or(text.len());
    let Some(colon) = text[..end].iter().position(|byte| *byte == b':') else { return Ok(text) };
    let web = [&b"http"[..], b"https", b"ftp", b"ws", b"wss"];
    let is_scheme = web.iter().any(|name| text[..colon].eq_ignore_ascii_case(name));
    let is_port = text[colon + 1..end].iter().all(u8::is_ascii_digit);
    if is_port && !is_scheme { Ok(text) } else { Err(Invalid::Scheme) }
}

/// Returns whether a text without a scheme looks like an address: its host has a dot, or is
/// `localhost` or an IPv6 address, and has no blanks or signs.
fn looks_like_address(text: &[u8]) -> bool {
    let end = text.iter().position(|byte| matches!(byte, b'/' | b'\\' | b'?')).unwrap_or(text.len());
    let host = &text[..end];
    if host.starts_with(b"[") {
        return true;
    }
    let name = host.split(|byte| *byte == b':').next().unwrap_or_default();
    // Letters beyond ASCII have dots of their own, and escapes may stand for one.
    let is_foreign = |byte: &u8| *byte >= 0x80 || *byte == b'%';
    host.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._:@".contains(byte) || is_foreign(byte))
        && (host.iter().any(|byte| *byte == b'.' || is_foreign(byte))
            || name.eq_ignore_ascii_case(b"localhost"))
}

/// Decodes percent escapes repeatedly, until none is left.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut plain: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text {
        plain.push(*byte);
        // A decoded byte may complete another escape.
        while let [.., b'%', high, low] = plain[..]
            && let (Some(high), Some(low)) = (digit(high), digit(low))
        {
            plain.truncate(plain.len() - 3);
            plain.push(high << 4 | low);
        }
    }
    plain
}

/// Escapes all characters that are not printable ASCII, and `#` and `%`, which have a meaning.
pub(super) fn escaped(text: &[u8]) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text {
        match byte {
            0..=b' ' | 127.. | b'#' | b'%' => safe.push_str(&format!("%{byte:02X}")),
            byte => safe.push(char::from(*byte)),
        }
    }
    safe
}

/// Returns a path without `.`, `..` and repeated slashes.
fn resolved(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut last: &[u8] = b"";
    for part in path.split(|byte| *byte == b'/') {
        last = part;
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut path = vec![b'/'];
    path.extend(parts.join(&b'/'));
    // A path that ends with a slash, `.` or `..` is a folder.
    if matches!(last, b"" | b"." | b"..") && !parts.is_empty() {
        path.push(b'/');
    }
    path
}
