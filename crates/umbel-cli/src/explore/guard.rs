//! The check that a request comes from the page itself, and not from another web page.
//!
//! Any web page can send requests to this machine. Three checks refuse them:
//!
//! - `Host` has to be an address of this machine, so that a page cannot make its own name resolve to
//!   it (DNS rebinding).
//! - `Origin`, which browsers add to requests of other pages, has to be this server.
//! - Questions carry a random token in a header of their own. Only the address that was printed has
//!   it, and a page of another origin cannot set such a header.

use anyhow::{Context, Result};
use hyper::header::{HOST, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, StatusCode};
use std::net::IpAddr;
use umbel::internals::hex;

/// The header with the token.
const TOKEN: HeaderName = HeaderName::from_static("x-umbel-token");

/// The bytes of a token before they are written as hexadecimal digits.
const TOKEN_BYTES: usize = 16;

/// The reason why a request is refused.
pub type Refusal = (StatusCode, &'static str);

/// The token of a server, and the addresses under which it may be reached.
pub struct Guard {
    token: String,
    /// Whether other machines may use the page.
    is_remote: bool,
}

impl Guard {
    /// Creates a guard with a new token.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn new(is_remote: bool) -> Result<Guard> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).context("the system has no random numbers")?;
        Ok(Guard { token: hex::encode(&bytes), is_remote })
    }

    /// Returns the token, which is part of the address of the page.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Checks the addresses in a request.
    ///
    /// # Errors
    ///
    /// If the request was sent to another name, or by another web page.
    pub fn check_addresses(&self, request: &Parts) -> Result<(), Refusal> {
        let host = single(&request.headers, &HOST).ok_or((StatusCode::BAD_REQUEST, "one Host is needed"))?;
        let authority = host.parse::<Authority>().ok().filter(|host| self.is_own(host));
        let target_is_own = request.uri.authority().is_none_or(|target| target.as_str() == host);
        if authority.is_none() || !target_is_own {
            return Err((StatusCode::FORBIDDEN, "this server is not known by that name; use its IP address"));
        }
        let origin_is_own = match request.headers.get_all(ORIGIN).iter().count() {
            0 => true,
            _ => single(&request.headers, &ORIGIN)
                .and_then(|origin| origin.strip_prefix("http://"))
                .is_some_and(|origin| origin == host),
        };
        if !origin_is_own {
            return Err((StatusCode::FORBIDDEN, "requests of other web pages are refused"));
        }
        Ok(())
    }

    /// Checks the token of a request.
    ///
    /// # Errors
    ///
    /// If it is missing or wrong.
    pub fn check_token(&self, request: &Parts) -> Result<(), Refusal> {
        let given = single(&request.headers, &TOKEN).unwrap_or_default();
        if same(given.as_bytes(), self.token.as_bytes()) {
            return Ok(());
        }
        Err((StatusCode::UNAUTHORIZED, "the token is missing or wrong: open the address that umbel printed"))
    }

    /// Returns whether a host is this machine. Names with dots are not, whatever they resolve to. The
    /// port may be another one, that of a tunnel.
    fn is_own(&self, host: &Authority) -> bool {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        match name.parse::<IpAddr>() {
            Ok(ip) => self.is_remote || ip.to_canonical().is_loopback(),
            Err(_) => name.eq_ignore_ascii_case("localhost") && !host.as_str().contains('@'),
        }
    }
}

/// Returns the value of a header that occurs once, if it is text.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Compares two texts in a time that does not depend on where they differ.
fn same(left: &[u8], right: &[u8]) -> bool {
    let differences = left.iter().zip(right).fold(0, |all, (left, right)| all | (left ^ right));
    left.len() == right.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn request(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::post("/api/plan");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_names_of_this_machine_are_hosts() {
        let guard = Guard::new(false).unwrap();
        let accepts = |guard: &Guard, host| guard.check_addresses(&request(&[("host", host)])).is_ok();
        for own in ["127.0.0.1:80", "127.0.0.1", "[::1]:4000", "localhost:9", "127.0.0.53:1"] {
            assert!(accepts(&guard, own), "{own}");
        }
        let foreign =
            ["evil.example", "evil.example:80", "192.0.2.1", "", "localhost.evil.example", "a@localhost"];
        for foreign in foreign {
            assert!(!accepts(&guard, foreign), "{foreign}");
        }
        let guard = Guard::new(true).unwrap();
        assert!(accepts(&guard, "192.0.2.1:80") && !accepts(&guard, "evil.example"));
        assert!(guard.check_addresses(&request(&[])).is_err(), "no Host");
        let twice = [("host", "127.0.0.1"), ("host", "127.0.0.1")];
        assert!(guard.check_addresses(&request(&twice)).is_err());
    }

    #[test]
    fn only_this_server_is_an_origin() {
        let guard = Guard::new(false).unwrap();
        let accepts =
            |origin| guard.check_addresses(&request(&[("host", "127.0.0.1:80"), ("origin", origin)])).is_ok();
        assert!(accepts("http://127.0.0.1:80"));
        for foreign in ["http://evil.example", "http://127.0.0.1:81", "https://127.0.0.1:80", "null", ""] {
            assert!(!accepts(foreign), "{foreign}");
        }
    }

    #[test]
    fn the_token_is_long_random_and_needed() {
        let (guard, other) = (Guard::new(false).unwrap(), Guard::new(false).unwrap());
        assert!(guard.token().len() >= 16 && guard.token() != other.token());
        let accepts = |token| guard.check_token(&request(&[("x-umbel-token", token)])).is_ok();
        assert!(accepts(guard.token()));
        assert!(!accepts("") && !accepts(other.token()) && !accepts(&guard.token()[1..]));
        assert!(guard.check_token(&request(&[])).is_err());
    }
}
