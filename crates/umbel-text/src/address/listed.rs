//! Parses lines of published lists: addresses, hosts files, and ad-blocker rules that name a host.

use super::{Address, Invalid};
use std::net::IpAddr;

/// The addresses to which hosts files redirect blocked hosts.
const NOWHERE: [&[u8]; 4] = [b"0.0.0.0", b"127.0.0.1", b"::", b"::1"];

/// The names that hosts files use for the machine itself and for local groups.
const LOCAL: [&[u8]; 16] = [
    b"localhost",
    b"localhost.localdomain",
    b"localhost4",
    b"localhost4.localdomain4",
    b"localhost6",
    b"localhost6.localdomain6",
    b"local",
    b"broadcasthost",
    b"ip6-localhost",
    b"ip6-loopback",
    b"ip6-localnet",
    b"ip6-mcastprefix",
    b"ip6-allnodes",
    b"ip6-allrouters",
    b"ip6-allhosts",
    b"0.0.0.0",
];

impl Address {
    /// Returns the addresses in a line of a list, which are mostly one.
    ///
    /// - An empty line or a comment (after `#`, or a line that starts with `!`) has none.
    /// - A line of a hosts file that blocks hosts has these hosts, except for the names of the
    ///   machine itself.
    /// - `*.host` and `||host^` stand for the host.
    /// - Any other line with blanks inside, or with one of the characters `*|^`, is
    ///   [`Invalid::Line`].
    ///
    /// ```
    /// use umbel_text::address::{Address, Invalid};
    /// let hosts = |line: &str| -> Result<Vec<String>, Invalid> {
    ///     Address::listed(line.as_bytes()).into_iter().map(|address| Ok(address?.host().to_owned())).collect()
    /// };
    /// assert_eq!(hosts("0.0.0.0 ads.example trk.example # two").unwrap(), ["ads.example", "trk.example"]);
    /// assert_eq!(hosts("||evil.example^").unwrap(), ["evil.example"]);
    /// assert!(hosts("127.0.0.1 localhost").unwrap().is_empty());
    /// assert_eq!(hosts("||evil.example^$script"), Err(Invalid::Line));
    /// ```
    pub fn listed(line: &[u8]) -> Vec<Result<Address, Invalid>> {
        let line = line.trim_ascii_start();
        let end = line.iter().position(|byte| *byte == b'#').unwrap_or(line.len());
        let words: Vec<&[u8]> =
            line[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        match &words[..] {
            [] => Vec::new(),
            _ if line.starts_with(b"!") => Vec::new(),
            [word] => vec![address(word)],
            [to, names @ ..] if NOWHERE.contains(to) => {
                names.iter().filter(|name| !is_local(name)).map(|name| host(name)).collect()
            }
            [to, names @ ..] if is_number(to) && names.iter().all(|name| is_local(name)) => Vec::new(),
            _ => vec![Err(Invalid::Line)],
        }
    }
}

fn address(word: &[u8]) -> Result<Address, Invalid> {
    let rule = word.strip_prefix(b"||").and_then(|rest| rest.strip_suffix(b"^"));
    match rule.or(word.strip_prefix(b"*.")) {
        Some(name) => host(name),
        None if word.iter().any(|byte| b"*|^".contains(byte)) => Err(Invalid::Line),
        None => Address::parse(word),
    }
}

/// Parses a host without anything else.
fn host(name: &[u8]) -> Result<Address, Invalid> {
    if name.iter().any(|byte| b"/\\?@:*|^".contains(byte)) {
        return Err(Invalid::Line);
    }
    Address::parse_host(name)
}

fn is_local(name: &[u8]) -> bool {
    LOCAL.iter().any(|local| local.eq_ignore_ascii_case(name))
}

/// Returns whether a word is an IP address, with or without a zone.
fn is_number(word: &[u8]) -> bool {
    let text = str::from_utf8(word).unwrap_or_default();
    text.split('%').next().is_some_and(|number| number.parse::<IpAddr>().is_ok())
}
