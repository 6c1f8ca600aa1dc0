//! The target of a request: a resource of an origin, a tunnel, or a resource of the proxy itself.

use super::reach::is_local_address;
use crate::CacheKey;
use crate::error::{Error, Result};
use http::uri::{Authority, Scheme};
use http::{Method, Uri, request};
use std::fmt;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HostPort {
    pub host: String,
    pub port: u16,
}

impl HostPort {
    /// Returns whether the host is this machine, or reachable from this machine only.
    pub fn is_local(&self) -> bool {
        self.host == "localhost"
            || self.host.ends_with(".localhost")
            || self.host.parse().is_ok_and(is_local_address)
    }

    /// Parses an authority, whose port is optional if there is a default.
    pub fn from_authority(authority: &Authority, default_port: Option<u16>) -> Result<HostPort> {
        if authority.as_str().contains('@') {
            return Err(Error::InvalidTarget("user names and passwords are not allowed in a URL"));
        }
        let port = authority.as_str()[authority.host().len()..].trim_start_matches(':');
        let port = if port.is_empty() { default_port } else { port.parse().ok() };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        match port {
            Some(port) if port > 0 && !host.is_empty() => Ok(HostPort { host, port }),
            _ => Err(Error::InvalidTarget("this is not a valid host and port")),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The target of a request.
#[derive(Debug)]
pub(super) enum Target {
    /// A resource of an origin.
    Resource(Resource),
    /// A TCP connection (`CONNECT`).
    Tunnel(HostPort),
    /// A page of the proxy itself.
    Internal,
}

/// A resource of an origin.
#[derive(Debug)]
pub(super) struct Resource {
    /// The normalized target URI.
    pub uri: Uri,
    /// The key of a `GET` request for it.
    pub key: CacheKey,
    pub origin: HostPort,
}

/// The default port of `http` URIs.
const HTTP_PORT: u16 = 80;

impl Target {
    /// Returns the target of a request.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidTarget`] if the target is malformed, or neither an `http` URI nor a tunnel.
    pub fn from_request(request: &request::Parts) -> Result<Target> {
        if request.method == Method::CONNECT {
            let nowhere = Error::InvalidTarget("CONNECT needs a host and a port");
            let authority = request.uri.authority().ok_or(nowhere)?;
            return Ok(Target::Tunnel(HostPort::from_authority(authority, None)?));
        }
        let Some(authority) = request.uri.authority() else { return Ok(Target::Internal) };
        if request.uri.scheme() != Some(&Scheme::HTTP) {
            let why = "only http is fetched here; for https ask for a tunnel with CONNECT";
            return Err(Error::InvalidTarget(why));
        }
        Resource::new(authority, request.uri.path_and_query().map_or("/", |path| path.as_str()))
            .map(Target::Resource)
    }
}

impl Resource {
    fn new(authority: &Authority, path: &str) -> Result<Resource> {
        let origin = HostPort::from_authority(authority, Some(HTTP_PORT))?;
        let mut url = String::with_capacity(16 + authority.as_str().len() + path.len());
        url.push_str("http://");
        url.push_str(authority.host());
        url.make_ascii_lowercase();
        if origin.port != HTTP_PORT {
            url.push_str(&format!(":{}", origin.port));
        }
        if !path.starts_with('/') {
            url.push('/');
        }
        url.push_str(path);
        let key = CacheKey::from_url(&url);
        let uri = Uri::try_from(url).map_err(|_| Error::InvalidTarget("this is not a valid URL"))?;
        Ok(Resource { uri, key, origin })
    }

    /// Resolves a `Location` that refers to the same host as this resource.
    pub fn resolve_on_same_host(&self, location: &str) -> Option<Resource> {
        let Ok(uri) = Uri::try_from(location) else { return None };
        let path = uri.path_and_query()?.as_str();
        let authority = self.uri.authority()?;
        let resource = Resource::new(uri.authority().unwrap_or(authority), path).ok()?;
        (resource.origin == self.origin && path.starts_with('/')).then_some(resource)
    }

    /// Returns the path and query, which is the request target that the origin expects.
    pub fn path(&self) -> &str {
        self.uri.path_and_query().map_or("/", |path| path.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(method: &str, uri: &str) -> Result<Target> {
        Target::from_request(
            &http::Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0,
        )
    }

    fn resource(uri: &str) -> Resource {
        match target("GET", uri) {
            Ok(Target::Resource(resource)) => resource,
            other => panic!("{uri}: {other:?}"),
        }
    }

    #[test]
    fn equivalent_urls_have_the_same_key() {
        let key = CacheKey::from_url("http://example.org/a?b=C");
        for uri in ["http://example.org/a?b=C", "HTTP://Example.ORG:80/a?b=C"] {
            assert_eq!(resource(uri).key, key, "{uri}");
        }
        assert_eq!(resource("http://example.org:8080").uri.to_string(), "http://example.org:8080/");
        assert_eq!(resource("http://[::1]:81/x").origin.to_string(), "[::1]:81");
        assert_eq!(resource("http://example.org?a").path(), "/?a");
    }

    #[test]
    fn other_targets_are_tunnels_internal_pages_or_refused() {
        assert!(matches!(target("GET", "/umbel/stats"), Ok(Target::Internal)));
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
    fn a_location_is_resolved_on_the_same_host() {
        let here = resource("http://example.org/a");
        assert_eq!(here.resolve_on_same_host("/b").unwrap().key, resource("http://example.org/b").key);
        assert_eq!(
            here.resolve_on_same_host("http://example.org/c?d").unwrap().key,
            resource("http://example.org/c?d").key
        );
        assert!(here.resolve_on_same_host("http://elsewhere.org/c").is_none());
        assert!(here.resolve_on_same_host("not an address").is_none());
    }
}
