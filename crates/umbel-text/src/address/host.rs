//! The canonical host of an address: a name in ASCII, or an IP address in its usual form.

use super::Invalid;
use super::canonical::{escaped, unescaped};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns the host of an authority, without user and port, and whether it is an IP address.
pub(super) fn canonical(authority: &[u8]) -> Result<(String, bool), Invalid> {
    let at = authority.iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
    let host = &authority[at..];
    if let Some(bracketed) = host.strip_prefix(b"[") {
        let end = bracketed.iter().position(|byte| *byte == b']').ok_or(Invalid::Brackets)?;
        check_port(&bracketed[end + 1..])?;
        let address = str::from_utf8(&bracketed[..end]).ok().and_then(|text| text.parse().ok());
        return address.map(|address| (ipv6_host(address), true)).ok_or(Invalid::Brackets);
    }
    let colon = host.iter().position(|byte| *byte == b':').unwrap_or(host.len());
    check_port(&host[colon..])?;
    let name = name(&host[..colon]);
    if name.is_empty() {
        return Err(Invalid::NoHost);
    }
    if name.iter().any(|byte| b"/\\?@:[]\0".contains(byte)) {
        return Err(Invalid::Host);
    }
    match ipv4(&name) {
        Some(address) => Ok((address.to_string(), true)),
        None => Ok((escaped(&name), false)),
    }
}

fn check_port(text: &[u8]) -> Result<(), Invalid> {
    match text {
        [] => Ok(()),
        [b':', port @ ..] if port.iter().all(u8::is_ascii_digit) => Ok(()),
        _ => Err(Invalid::Port),
    }
}

/// Returns a name unescaped, in lower-case ASCII, with single dots between its parts.
fn name(text: &[u8]) -> Vec<u8> {
    let mut name = unescaped(text);
    // Characters that Unicode maps to ASCII may form another escape or a dot. Each round leaves
    // fewer characters that are not ASCII.
    while let Ok(text) = str::from_utf8(&name)
        && !text.is_ascii()
        && let Ok(ascii) = idna::domain_to_ascii(text)
    {
        name = unescaped(ascii.as_bytes());
    }
    name.make_ascii_lowercase();
    let parts: Vec<&[u8]> = name.split(|byte| *byte == b'.').filter(|part| !part.is_empty()).collect();
    parts.join(&b'.')
}

/// Parses an IPv4 address in any form that the C library accepts: one to four decimal, octal or
/// hexadecimal numbers, the last of which fills the remaining bytes.
fn ipv4(name: &[u8]) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = name.split(|byte| *byte == b'.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last().filter(|(_, first)| first.len() <= 3)?;
    let mut address = 0;
    for (place, part) in first.iter().enumerate() {
        address |= u32::from(u8::try_from(*part).ok()?) << (24 - 8 * place);
    }
    let left = 32 - 8 * first.len() as u32;
    (*last < 1 << left).then(|| Ipv4Addr::from(address | *last as u32))
}

fn number(part: &[u8]) -> Option<u64> {
    let text = str::from_utf8(part).ok()?;
    let (digits, radix) = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(""), _) | (None, Some("")) => return Some(0),
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) => (digits, 8),
        (None, None) => (text, 10),
    };
    // `from_str_radix` accepts a sign.
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { u64::from_str_radix(digits, radix).ok() } else { None }
}

/// Returns the host of an IPv6 address. Two forms stand for an IPv4 address: the mapped form and
/// the NAT64 form.
fn ipv6_host(address: Ipv6Addr) -> String {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)).to_string()
        }
        _ => format!("[{address}]"),
    }
}
