//! The headers by which a proxy identifies itself: `Via` and `Cache-Status`.

use http::header::{HeaderName, VIA};
use http::{HeaderMap, HeaderValue};
use std::hash::{BuildHasher, RandomState};

/// The header that describes how caches have handled a request (RFC 9211).
pub(in crate::proxy) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// The random name of this proxy in `Via`, by which it recognizes requests that come back to it.
pub(in crate::proxy) struct Via {
    name: String,
    value: HeaderValue,
}

impl Via {
    pub fn new() -> Via {
        let name = format!("umbel-{:08x}", RandomState::new().hash_one(0) as u32);
        let value =
            HeaderValue::try_from(format!("1.1 {name}")).unwrap_or(HeaderValue::from_static("1.1 umbel"));
        Via { name, value }
    }

    /// Adds this proxy to the `Via` of a request or response.
    pub fn append_to(&self, headers: &mut HeaderMap) {
        headers.append(VIA, self.value.clone());
    }

    /// Returns whether a request has passed through this proxy before.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(VIA).iter().filter_map(|via| via.to_str().ok());
        values.any(|via| via.split([',', ' ']).any(|word| word == self.name))
    }
}
