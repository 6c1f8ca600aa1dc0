//! The access log: a line for every response, in the format of Squid's, so that the usual tools can
//! read it.

use super::Options;
use super::upstream::CACHE_STATUS;
use crate::error::{Error, Result};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode, Uri};
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};
use umbel::internals::sync::lock;

/// The access log. Lines are appended, so that other programs may truncate or rename the file.
pub struct AccessLog {
    path: PathBuf,
    file: Mutex<File>,
}

impl AccessLog {
    pub(super) fn open(options: &Options) -> Result<Option<Arc<AccessLog>>> {
        let Some(path) = options.access_log.clone() else { return Ok(None) };
        let file = Mutex::new(append(&path)?);
        Ok(Some(Arc::new(AccessLog { path, file })))
    }

    /// Opens the file again by its name, after it was renamed. If that fails, lines go to the
    /// renamed file.
    ///
    /// # Errors
    ///
    /// [`Error::AccessLog`] if the file cannot be opened.
    pub fn reopen(&self) -> Result<()> {
        *lock(&self.file) = append(&self.path)?;
        Ok(())
    }
}

/// The permissions of a new log: it shows which client has requested which URL.
const FILE_MODE: u32 = 0o640;

fn append(path: &Path) -> Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(path);
    file.map_err(|source| Error::AccessLog { path: path.to_owned(), source })
}

/// The access log record of a response. It is written when it is dropped, at the end of the body.
pub(super) struct AccessRecord {
    log: Arc<AccessLog>,
    start: Instant,
    client: IpAddr,
    method: Method,
    url: Uri,
    status: StatusCode,
    /// Squid's result code, such as `TCP_HIT`.
    result: &'static str,
    /// Squid's hierarchy code and the host that answered.
    hierarchy: String,
    media_type: String,
    pub bytes: u64,
}

/// The part of an access log record that is known when a request arrives.
pub(super) struct LoggedRequest {
    pub log: Arc<AccessLog>,
    pub start: Instant,
    pub client: IpAddr,
    pub method: Method,
    pub url: Uri,
}

impl AccessRecord {
    pub fn new(request: LoggedRequest, status: StatusCode, headers: &HeaderMap) -> AccessRecord {
        let text = |value: Option<&http::HeaderValue>| {
            value.and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        // Other caches on the way may have added theirs before.
        let cache_status = text(headers.get_all(CACHE_STATUS).iter().next_back()).unwrap_or_default();
        let direct = || format!("HIER_DIRECT/{}", request.url.host().unwrap_or("-"));
        let peer = cache_status.split("detail=\"peer ").nth(1).map(|peer| peer.trim_end_matches('"'));
        let (result, hierarchy) = match (peer, cache_status.as_str()) {
            _ if request.method == Method::CONNECT && status.is_success() => ("TCP_TUNNEL", direct()),
            (Some(peer), _) => ("TCP_MISS", format!("CD_SIBLING_HIT/{peer}")),
            (_, text) if text.starts_with("umbel;hit;fwd=stale") => ("TCP_REFRESH_UNMODIFIED", direct()),
            (_, text) if text.starts_with("umbel;hit") => ("TCP_HIT", "HIER_NONE/-".into()),
            (_, text) if text.starts_with("umbel;fwd=stale") => ("TCP_REFRESH_MODIFIED", direct()),
            (_, text) if text.starts_with("umbel;fwd=") => ("TCP_MISS", direct()),
            _ => ("NONE_NONE", "HIER_NONE/-".into()),
        };
        let content_type = text(headers.get(CONTENT_TYPE)).unwrap_or_default();
        let media_type = content_type.split(';').next().map(str::trim).filter(|text| !text.is_empty());
        let media_type = media_type.unwrap_or("-").replace(char::is_whitespace, "");
        let LoggedRequest { log, start, client, method, url } = request;
        AccessRecord { log, start, client, method, url, status, result, hierarchy, media_type, bytes: 0 }
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let AccessRecord { client, method, url, result, hierarchy, media_type, bytes, .. } = self;
        let line = format!(
            "{}.{:03} {:6} {} {result}/{} {bytes} {method} {} - {} {}\n",
            since.as_secs(),
            since.subsec_millis(),
            self.start.elapsed().as_millis(),
            client.to_canonical(),
            self.status.as_u16(),
            escaped(&without_userinfo(url)),
            escaped(hierarchy),
            escaped(media_type),
        );
        // A full disk must not stop the proxy.
        let _ = lock(&self.log.file).write_all(line.as_bytes());
    }
}

/// Returns a URL without a user name and password.
fn without_userinfo(url: &Uri) -> String {
    let text = url.to_string();
    let authority = url.authority().map_or("", |authority| authority.as_str());
    match authority.rsplit_once('@') {
        Some((_, host)) => text.replacen(authority, host, 1),
        None => text,
    }
}

/// Returns a field of the log with all but printable ASCII characters percent-encoded, so that
/// nothing in it ends the field, the line, or controls the terminal on which the log is read.
fn escaped(field: &str) -> Cow<'_, str> {
    if field.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Cow::Borrowed(field);
    }
    let mut text = String::with_capacity(field.len() + 16);
    for byte in field.bytes() {
        if byte.is_ascii_graphic() {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_no_passwords_and_no_control_characters() {
        for (url, logged) in [
            ("http://example.org/a?b@c", "http://example.org/a?b@c"),
            ("http://alice:secret@example.org/a", "http://example.org/a"),
            (
                "http://alice:se%40cret@example.org:8080/alice:se%40cret@",
                "http://example.org:8080/alice:se%40cret@",
            ),
            ("alice:secret@example.org:443", "example.org:443"),
            ("/umbel/", "/umbel/"),
        ] {
            assert_eq!(without_userinfo(&url.parse().unwrap()), logged, "{url}");
        }
        for (field, logged) in [
            ("http://example.org/\u{9b}31m", "http://example.org/%C2%9B31m"),
            ("a b\n\t\u{7f}\0\u{202e}é", "a%20b%0A%09%7F%00%E2%80%AE%C3%A9"),
            ("text/plain", "text/plain"),
        ] {
            assert_eq!(escaped(field), logged);
        }
    }
}
