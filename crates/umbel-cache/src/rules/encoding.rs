//! The form in which the head of a response is stored: its time, request and response as lines of
//! text.

use super::{Audience, Source, StoredHead};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::time::{Duration, SystemTime};

/// The first line, with the version of the format.
const FIRST_LINE: &str = "umbel answer 1";

impl StoredHead {
    /// Serializes the head.
    pub fn encode(&self) -> Vec<u8> {
        let since_epoch = self.received_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let audience = match self.audience {
            Audience::Everyone => "all",
            Audience::Localhost => "here",
        };
        // Versions that know no source skip the responses of peers.
        let source = match self.source {
            Source::Origin => "",
            Source::Peer => " peer",
            Source::ConfirmedPeer => " confirmed-peer",
        };
        let millis = since_epoch.as_millis();
        let start = format!("{FIRST_LINE}\n{millis}\n{audience}{source}\n{}\n", self.request.uri);
        let mut bytes = start.into_bytes();
        write_headers(&mut bytes, &self.request.headers);
        bytes.extend(format!("{}\n", self.response.status.as_u16()).into_bytes());
        write_headers(&mut bytes, &self.response.headers);
        bytes
    }

    /// Parses a head, or returns `None` if the bytes are not one.
    pub fn decode(bytes: &[u8]) -> Option<StoredHead> {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let mut text = || lines.next().and_then(|line| str::from_utf8(line).ok());
        if text()? != FIRST_LINE {
            return None;
        }
        let received_at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(text()?.parse().ok()?))?;
        let line = text()?;
        let (audience, source) = line.split_once(' ').unwrap_or((line, ""));
        let audience = match audience {
            "all" => Audience::Everyone,
            "here" => Audience::Localhost,
            _ => return None,
        };
        let source = match source {
            "" => Source::Origin,
            "peer" => Source::Peer,
            "confirmed-peer" => Source::ConfirmedPeer,
            _ => return None,
        };
        let mut request = http::Request::new(()).into_parts().0;
        request.uri = text()?.parse().ok()?;
        request.headers = read_headers(&mut lines)?;
        let mut response = Response::new(()).into_parts().0;
        response.status = StatusCode::from_bytes(lines.next()?).ok()?;
        response.headers = read_headers(&mut lines)?;
        let head = StoredHead::new(request, &response, received_at);
        Some(head.with_audience(audience).with_source(source))
    }
}

fn write_headers(bytes: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        bytes.extend(name.as_str().as_bytes());
        bytes.extend(b": ");
        bytes.extend(value.as_bytes());
        bytes.push(b'\n');
    }
    bytes.push(b'\n');
}

/// Reads headers up to an empty line.
fn read_headers<'a>(lines: &mut impl Iterator<Item = &'a [u8]>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    loop {
        let line = lines.next()?;
        if line.is_empty() {
            return Some(headers);
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line.get(colon + 2..)?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        headers.append(name, HeaderValue::from_bytes(value).ok()?);
    }
}
