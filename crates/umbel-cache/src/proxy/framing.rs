//! The framing of HTTP messages: where a body ends.
//!
//! Two programs that disagree about the end of a message take part of one request for another one
//! (request smuggling). A message therefore states its length once: with one `Content-Length`, or
//! with `Transfer-Encoding: chunked` and nothing else. hyper is more lenient, and it removes
//! redundant headers of a request before the proxy sees them. [`RequestFraming`] therefore reads
//! the bytes of a connection before hyper does.

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use std::sync::{Arc, OnceLock};

/// The reason why a message is refused.
pub(super) type Fault = &'static str;

const SEVERAL_LENGTHS: Fault = "it has more than one Content-Length";
const INVALID_LENGTH: Fault = "its Content-Length is not a number";
const LEADING_ZERO: Fault = "its Content-Length starts with a zero";
const LENGTH_AND_CODING: Fault = "it has both a Content-Length and a Transfer-Encoding";
const UNKNOWN_CODING: Fault = "its Transfer-Encoding is not just chunked";
const SEVERAL_HOSTS: Fault = "it has more than one Host";
const BARE_LINE_FEED: Fault = "a line of it does not end with CR LF";
const LONG_LINE: Fault = "a line of it is too long";
const INVALID_CHUNK: Fault = "the size of a chunk is not a number";

/// The statements of a message about the length of its body.
#[derive(Debug, Default)]
struct BodyLength {
    content_length: Option<u64>,
    is_chunked: bool,
}

impl BodyLength {
    fn add_content_length(&mut self, value: &[u8]) -> Result<(), Fault> {
        if self.content_length.is_some() {
            return Err(SEVERAL_LENGTHS);
        }
        let value = value.trim_ascii();
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        // Some programs read such a number as octal.
        if is_number && value.len() > 1 && value.starts_with(b"0") {
            return Err(LEADING_ZERO);
        }
        let number = str::from_utf8(value).ok().filter(|_| is_number).and_then(|digits| digits.parse().ok());
        self.content_length = Some(number.ok_or(INVALID_LENGTH)?);
        self.check_both()
    }

    fn add_transfer_encoding(&mut self, value: &[u8]) -> Result<(), Fault> {
        if self.is_chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(UNKNOWN_CODING);
        }
        self.is_chunked = true;
        self.check_both()
    }

    fn check_both(&self) -> Result<(), Fault> {
        if self.is_chunked && self.content_length.is_some() { Err(LENGTH_AND_CODING) } else { Ok(()) }
    }
}

/// Checks the headers of a response.
pub(super) fn check_response(headers: &HeaderMap) -> Result<(), Fault> {
    let mut length = BodyLength::default();
    for value in headers.get_all(CONTENT_LENGTH) {
        length.add_content_length(value.as_bytes())?;
    }
    for value in headers.get_all(TRANSFER_ENCODING) {
        length.add_transfer_encoding(value.as_bytes())?;
    }
    Ok(())
}

/// The first fault of a connection, once there is one. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct FramingFault(Arc<OnceLock<Fault>>);

impl FramingFault {
    pub fn get(&self) -> Option<Fault> {
        self.0.get().copied()
    }
}

/// Follows the requests of a connection and finds the first one with ambiguous framing.
///
/// From then on, all requests of the connection are refused. Those before it that were read at the
/// same time may be among them.
#[derive(Debug)]
pub(super) struct RequestFraming {
    part: Part,
    /// The beginning of a line whose end was not received yet.
    line: Vec<u8>,
    max_line_bytes: usize,
    fault: FramingFault,
}

/// The part of a request that is received next.
#[derive(Debug)]
enum Part {
    /// The request line, or empty lines before it.
    RequestLine,
    /// The headers, with what they have said so far.
    Headers {
        length: BodyLength,
        is_tunnel: bool,
        has_host: bool,
    },
    /// This number of bytes of the body.
    Body(u64),
    ChunkSize,
    /// This number of bytes of a chunk.
    Chunk(u64),
    /// The line break after a chunk.
    ChunkEnd,
    Trailers,
    /// The bytes of a tunnel, or anything after a fault.
    Opaque,
}

impl RequestFraming {
    pub fn new(max_line_bytes: usize) -> RequestFraming {
        RequestFraming {
            part: Part::RequestLine,
            line: Vec::new(),
            max_line_bytes,
            fault: FramingFault::default(),
        }
    }

    /// Returns the place where the first fault appears.
    pub fn fault(&self) -> FramingFault {
        self.fault.clone()
    }

    /// Reads the next bytes of the connection.
    pub fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match &mut self.part {
                Part::Opaque => return,
                Part::Body(left) | Part::Chunk(left) => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= count as u64;
                    if *left == 0 {
                        let is_chunk = matches!(self.part, Part::Chunk(_));
                        self.part = if is_chunk { Part::ChunkEnd } else { Part::RequestLine };
                    }
                    &bytes[count..]
                }
                _ => self.read_line(bytes),
            };
        }
    }

    /// Reads up to the end of a line, and returns the bytes after it.
    fn read_line<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |position| position + 1);
        let (line, rest) = bytes.split_at(end);
        if self.line.len() + line.len() > self.max_line_bytes {
            self.fail(LONG_LINE);
        } else if !line.ends_with(b"\n") {
            self.line.extend_from_slice(line);
        } else if self.line.is_empty() {
            self.finish_line(line);
        } else {
            let mut whole = std::mem::take(&mut self.line);
            whole.extend_from_slice(line);
            self.finish_line(&whole);
        }
        rest
    }

    fn finish_line(&mut self, line: &[u8]) {
        let result = line.strip_suffix(b"\r\n").ok_or(BARE_LINE_FEED).and_then(|line| self.interpret(line));
        if let Err(fault) = result {
            self.fail(fault);
        }
    }

    /// Interprets a complete line.
    fn interpret(&mut self, line: &[u8]) -> Result<(), Fault> {
        match &mut self.part {
            Part::RequestLine if line.is_empty() => {}
            Part::RequestLine => {
                let is_tunnel = line.starts_with(b"CONNECT ");
                self.part = Part::Headers { length: BodyLength::default(), is_tunnel, has_host: false };
            }
            Part::Headers { length, is_tunnel, .. } if line.is_empty() => {
                self.part = match length.content_length {
                    _ if *is_tunnel => Part::Opaque,
                    _ if length.is_chunked => Part::ChunkSize,
                    Some(length) if length > 0 => Part::Body(length),
                    _ => Part::RequestLine,
                };
            }
            Part::Headers { length, has_host, .. } => {
                let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
                let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
                if name.eq_ignore_ascii_case(b"content-length") {
                    length.add_content_length(value)?;
                } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                    length.add_transfer_encoding(value)?;
                } else if name.eq_ignore_ascii_case(b"host") && std::mem::replace(has_host, true) {
                    return Err(SEVERAL_HOSTS);
                }
            }
            Part::ChunkSize => {
                self.part = match chunk_size(line)? {
                    0 => Part::Trailers,
                    size => Part::Chunk(size),
                };
            }
            Part::ChunkEnd if line.is_empty() => self.part = Part::ChunkSize,
            Part::ChunkEnd => return Err(INVALID_CHUNK),
            Part::Trailers if line.is_empty() => self.part = Part::RequestLine,
            Part::Trailers | Part::Body(_) | Part::Chunk(_) | Part::Opaque => {}
        }
        Ok(())
    }

    fn fail(&mut self, fault: Fault) {
        let _ = self.fault.0.set(fault);
        (self.part, self.line) = (Part::Opaque, Vec::new());
    }
}

/// Parses the line before a chunk, without its extensions.
fn chunk_size(line: &[u8]) -> Result<u64, Fault> {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let is_number = !size.is_empty() && size.iter().all(u8::is_ascii_hexdigit);
    let digits = str::from_utf8(size).ok().filter(|_| is_number);
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or(INVALID_CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fault in the bytes of a connection, which arrive in pieces of this size.
    fn fault(bytes: &[u8], piece: usize) -> Option<Fault> {
        let mut framing = RequestFraming::new(1000);
        bytes.chunks(piece).for_each(|piece| framing.read(piece));
        framing.fault().get()
    }

    #[test]
    fn a_request_states_the_length_of_its_body_once() {
        let good = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let chunks = "3;name=value\r\nabc\r\nA \r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
        for (headers, body, expected) in [
            ("", "", None),
            ("Content-Length: 5\r\n", "GET x", None),
            ("content-length:\t0 \r\n", "", None),
            ("Transfer-Encoding: Chunked\r\n", chunks, None),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", "", Some(SEVERAL_LENGTHS)),
            ("Content-Length: 5, 5\r\n", "", Some(INVALID_LENGTH)),
            ("Content-Length: +5\r\n", "", Some(INVALID_LENGTH)),
            ("Content-Length: -5\r\n", "", Some(INVALID_LENGTH)),
            ("Content-Length: 0x5\r\n", "", Some(INVALID_LENGTH)),
            ("Content-Length: 010\r\n", "", Some(LEADING_ZERO)),
            ("Content-Length: 00\r\n", "", Some(LEADING_ZERO)),
            ("Content-Length:\r\n", "", Some(INVALID_LENGTH)),
            ("Content-Length: 99999999999999999999\r\n", "", Some(INVALID_LENGTH)),
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "", Some(LENGTH_AND_CODING)),
            ("TRANSFER-ENCODING: chunked\r\nCONTENT-LENGTH: 5\r\n", "", Some(LENGTH_AND_CODING)),
            ("Transfer-Encoding: gzip, chunked\r\n", "", Some(UNKNOWN_CODING)),
            ("Transfer-Encoding: chunked, identity\r\n", "", Some(UNKNOWN_CODING)),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "", Some(UNKNOWN_CODING)),
            ("Transfer-Encoding: \x0bchunked\r\n", "", Some(UNKNOWN_CODING)),
            ("Transfer-Encoding: xchunked\r\n", "", Some(UNKNOWN_CODING)),
            ("Host: y\r\n", "", Some(SEVERAL_HOSTS)),
            ("X: y\n", "", Some(BARE_LINE_FEED)),
            ("X: y\r\n\n", "", Some(BARE_LINE_FEED)),
            ("Transfer-Encoding: chunked\r\n", "-1\r\n", Some(INVALID_CHUNK)),
            ("Transfer-Encoding: chunked\r\n", "3\nabc\r\n", Some(BARE_LINE_FEED)),
            ("Transfer-Encoding: chunked\r\n", "3\r\nabcd\r\n", Some(INVALID_CHUNK)),
            ("Transfer-Encoding: chunked\r\n", "10000000000000000\r\n", Some(INVALID_CHUNK)),
        ] {
            let bytes = format!("{good}POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}{good}");
            for piece in [1, 2, 7, 10_000] {
                assert_eq!(fault(bytes.as_bytes(), piece), expected, "{headers:?} {body:?} by {piece}");
            }
            if expected.is_none() {
                // The next request is found at the right place.
                let again = [bytes.as_bytes(), b"\r\nPOST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"].concat();
                assert_eq!(fault(&again, 3), Some(INVALID_LENGTH), "{headers:?}");
            }
        }
    }

    #[test]
    fn the_bytes_of_a_tunnel_are_not_read() {
        let bytes = b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\nany\nthing\n\nContent-Length: x\n\n";
        assert_eq!(fault(bytes, 5), None);
    }

    #[test]
    fn a_line_takes_bounded_memory() {
        let mut framing = RequestFraming::new(1000);
        (0..10_000).for_each(|_| framing.read(&[b'x'; 100]));
        assert_eq!((framing.fault().get(), framing.line.capacity()), (Some(LONG_LINE), 0));
    }

    #[test]
    fn a_response_states_the_length_of_its_body_once() {
        for (headers, expected) in [
            (&[][..], Ok(())),
            (&[("content-length", "5")], Ok(())),
            (&[("transfer-encoding", "chunked")], Ok(())),
            (&[("content-length", "5"), ("content-length", "5")], Err(SEVERAL_LENGTHS)),
            (&[("content-length", "5,5")], Err(INVALID_LENGTH)),
            (&[("content-length", "05")], Err(LEADING_ZERO)),
            (&[("content-length", "5"), ("transfer-encoding", "chunked")], Err(LENGTH_AND_CODING)),
            (&[("transfer-encoding", "identity")], Err(UNKNOWN_CODING)),
            (&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], Err(UNKNOWN_CODING)),
        ] {
            let headers: HeaderMap = headers
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .fold(HeaderMap::new(), |mut map: HeaderMap, (name, value): (http::HeaderName, _)| {
                    map.append(name, value);
                    map
                });
            assert_eq!(check_response(&headers), expected, "{headers:?}");
        }
    }
}
