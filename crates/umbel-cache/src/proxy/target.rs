//! What a request is for: a page of the web, a tunnel, or something of the proxy's own.

use super::pool::Reach;
use crate::CacheKey;
use crate::error::{Error, Result};
use http::uri::{Authority, Scheme};
use http::{Method, Uri, request};
use std::fmt;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub host: String,
    pub port: u16,
}

impl Address {
    /// Whether it is this machine, for those who are on it.
    pub fn is_here(&self) -> bool {
        self.host == "localhost"
            || self.host.ends_with(".localhost")
            || self.host.parse().is_ok_and(|ip| !Reach::Outside.permits(ip))
    }

    /// The address that is meant by a host and maybe a port.
    pub fn of(authority: &Authority, default: Option<u16>) -> Result<Address> {
        if authority.as_str().contains('@') {
            return Err(Error::InvalidTarget("names and passwords do not belong into an address"));
        }
        let port = authority.as_str()[authority.host().len()..].trim_start_matches(':');
        let port = if port.is_empty() { default } else { port.parse().ok() };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        match port {
            Some(port) if port > 0 && !host.is_empty() => Ok(Address { host, port }),
            _ => Err(Error::InvalidTarget("this is no host and port")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// What a request is for.
#[derive(Debug)]
pub(super) enum Target {
    /// A page.
    Page(Page),
    /// A connection to somewhere, about which nothing else is known.
    Tunnel(Address),
    /// What the proxy itself has to say.
    Own,
}

/// A page of the web.
#[derive(Debug)]
pub(super) struct Page {
    /// Where it is, in one way of writing it.
    pub url: Uri,
    pub key: CacheKey,
    pub address: Address,
}

/// The port of the web.
const HTTP: u16 = 80;

impl Target {
    /// What a request is for, or why that cannot be.
    pub fn of(request: &request::Parts) -> Result<Target> {
        if request.method == Method::CONNECT {
            let nowhere = Error::InvalidTarget("CONNECT needs a host and a port");
            let authority = request.uri.authority().ok_or(nowhere)?;
            return Ok(Target::Tunnel(Address::of(authority, None)?));
        }
        let Some(authority) = request.uri.authority() else { return Ok(Target::Own) };
        if request.uri.scheme() != Some(&Scheme::HTTP) {
            let why = "only http is fetched here; for https ask for a tunnel with CONNECT";
            return Err(Error::InvalidTarget(why));
        }
        Page::new(authority, request.uri.path_and_query().map_or("/", |path| path.as_str())).map(Target::Page)
    }
}

impl Page {
    fn new(authority: &Authority, path: &str) -> Result<Page> {
        let address = Address::of(authority, Some(HTTP))?;
        let mut url = String::with_capacity(16 + authority.as_str().len() + path.len());
        url.push_str("http://");
        url.push_str(authority.host());
        url.make_ascii_lowercase();
        if address.port != HTTP {
            url.push_str(&format!(":{}", address.port));
        }
        if !path.starts_with('/') {
            url.push('/');
        }
        url.push_str(path);
        let key = CacheKey::from_url(&url);
        let url = Uri::try_from(url).map_err(|_| Error::InvalidTarget("this is no address of a page"))?;
        Ok(Page { url, key, address })
    }

    /// The page that another address, maybe relative, means when it stands on this one; only on the same host.
    pub fn beside(&self, location: &str) -> Option<Page> {
        let Ok(uri) = Uri::try_from(location) else { return None };
        let path = uri.path_and_query()?.as_str();
        let here = self.url.authority()?;
        let page = Page::new(uri.authority().unwrap_or(here), path).ok()?;
        (page.address == self.address && path.starts_with('/')).then_some(page)
    }

    /// How the host is asked for it.
    pub fn path(&self) -> &str {
        self.url.path_and_query().map_or("/", |path| path.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(method: &str, uri: &str) -> Result<Target> {
        Target::of(&http::Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0)
    }

    fn page(uri: &str) -> Page {
        match target("GET", uri) {
            Ok(Target::Page(page)) => page,
            other => panic!("{uri}: {other:?}"),
        }
    }

    #[test]
    fn a_page_has_one_key_however_it_is_written() {
        let key = CacheKey::from_url("http://example.org/a?b=C");
        for uri in ["http://example.org/a?b=C", "HTTP://Example.ORG:80/a?b=C"] {
            assert_eq!(page(uri).key, key, "{uri}");
        }
        assert_eq!(page("http://example.org:8080").url.to_string(), "http://example.org:8080/");
        assert_eq!(page("http://[::1]:81/x").address.to_string(), "[::1]:81");
        assert_eq!(page("http://example.org?a").path(), "/?a");
    }

    #[test]
    fn what_is_no_page_is_something_else_or_refused() {
        assert!(matches!(target("GET", "/umbel/stats"), Ok(Target::Own)));
        assert!(matches!(target("CONNECT", "example.org:443"), Ok(Target::Tunnel(_))));
        for (method, uri) in [
            ("GET", "https://example.org/"),
            ("GET", "ftp://example.org/"),
            ("GET", "http://name:word@example.org/"),
            ("GET", "http://example.org:0/"),
            ("GET", "http://example.org:99999/"),
            ("CONNECT", "example.org"),
        ] {
            assert!(target(method, uri).is_err(), "{method} {uri}");
        }
    }

    #[test]
    fn what_stands_beside_a_page_is_on_its_host() {
        let here = page("http://example.org/a");
        assert_eq!(here.beside("/b").unwrap().key, page("http://example.org/b").key);
        assert_eq!(here.beside("http://example.org/c?d").unwrap().key, page("http://example.org/c?d").key);
        assert!(here.beside("http://elsewhere.org/c").is_none());
        assert!(here.beside("not an address").is_none());
    }
}
