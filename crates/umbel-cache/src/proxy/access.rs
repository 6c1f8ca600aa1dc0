//! A line for every answer, in the form of Squid's own log, so that whatever reads that reads this.

use super::Options;
use super::service::CACHE_STATUS;
use crate::error::{Error, Result};
use crate::sync::lock;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode, Uri};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

/// Where the lines go. Others may have it open, too, or shorten it, or rename it.
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

    /// Opens the file again by its name, after it was renamed. If that fails the lines go where they went.
    ///
    /// # Errors
    ///
    /// [`Error::AccessLog`] if the file cannot be opened.
    pub fn reopen(&self) -> Result<()> {
        *lock(&self.file) = append(&self.path)?;
        Ok(())
    }
}

fn append(path: &Path) -> Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.map_err(|source| Error::AccessLog { path: path.to_owned(), source })
}

/// An answer on its way, of which a line is written when it has ended.
pub(super) struct Record {
    log: Arc<AccessLog>,
    start: Instant,
    client: IpAddr,
    method: Method,
    url: Uri,
    status: StatusCode,
    code: &'static str,
    from: String,
    kind: String,
    pub bytes: u64,
}

/// A request that is to be recorded.
pub(super) struct Asked {
    pub log: Arc<AccessLog>,
    pub start: Instant,
    pub client: IpAddr,
    pub method: Method,
    pub url: Uri,
}

impl Record {
    pub fn of(asked: Asked, status: StatusCode, headers: &HeaderMap) -> Record {
        let text = |value: Option<&http::HeaderValue>| {
            value.and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        // Others may have said something before.
        let said = text(headers.get_all(CACHE_STATUS).iter().next_back()).unwrap_or_default();
        let direct = || format!("HIER_DIRECT/{}", asked.url.host().unwrap_or("-"));
        let peer = said.split("detail=\"peer ").nth(1).map(|peer| peer.trim_end_matches('"'));
        let (code, from) = match (peer, said.as_str()) {
            _ if asked.method == Method::CONNECT && status.is_success() => ("TCP_TUNNEL", direct()),
            (Some(peer), _) => ("TCP_MISS", format!("CD_SIBLING_HIT/{peer}")),
            (_, said) if said.starts_with("umbel;hit;fwd=stale") => ("TCP_REFRESH_UNMODIFIED", direct()),
            (_, said) if said.starts_with("umbel;hit") => ("TCP_HIT", "HIER_NONE/-".into()),
            (_, said) if said.starts_with("umbel;fwd=stale") => ("TCP_REFRESH_MODIFIED", direct()),
            (_, said) if said.starts_with("umbel;fwd=") => ("TCP_MISS", direct()),
            _ => ("NONE_NONE", "HIER_NONE/-".into()),
        };
        let kind = text(headers.get(CONTENT_TYPE)).unwrap_or_default();
        let kind = kind.split(';').next().map(str::trim).filter(|kind| !kind.is_empty()).unwrap_or("-");
        let kind = kind.replace(char::is_whitespace, "");
        let Asked { log, start, client, method, url } = asked;
        Record { log, start, client, method, url, status, code, from, kind, bytes: 0 }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let Record { client, method, url, code, from, kind, bytes, .. } = self;
        let line = format!(
            "{}.{:03} {:6} {} {code}/{} {bytes} {method} {url} - {from} {kind}\n",
            since.as_secs(),
            since.subsec_millis(),
            self.start.elapsed().as_millis(),
            client.to_canonical(),
            self.status.as_u16(),
        );
        // A disk that is full does not stop the proxy.
        let _ = lock(&self.log.file).write_all(line.as_bytes());
    }
}
