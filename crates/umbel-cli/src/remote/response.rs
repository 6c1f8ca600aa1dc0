//! Commands and responses in the Redis serialization protocol (RESP 2).
//!
//! A server is not trusted with our memory: the length that a response announces is only a limit,
//! memory is allocated as bytes arrive, and a response that is larger than any command of umbel can
//! cause is an error.
//!
//! # References
//!
//! - Redis: *Redis serialization protocol specification*.

use std::fmt::{self, Write as _};
use std::io::{self, BufRead, Read};

/// Maximum size of a response. The largest one is a piece of a filter, of
/// [`super::PIECE_BYTES`].
pub const MAX_RESPONSE_BYTES: u64 = 16 << 20;

/// Maximum number of values in a response. The largest array has an answer for each line of a
/// command, of which there are a thousand.
const MAX_RESPONSE_VALUES: u64 = 1 << 16;

/// Maximum size of a line: an error, a status, a number or a length.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Maximum depth of arrays in arrays.
const MAX_DEPTH: u32 = 8;

/// A command and its arguments, as they are sent.
#[derive(Clone)]
pub struct Command {
    parts: usize,
    bytes: Vec<u8>,
}

/// Returns a command without arguments.
pub fn command(name: &str) -> Command {
    Command { parts: 0, bytes: Vec::new() }.arg(name)
}

impl Command {
    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<[u8]>) -> Command {
        let argument = argument.as_ref();
        self.parts += 1;
        self.bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        self.bytes.extend_from_slice(argument);
        self.bytes.extend_from_slice(b"\r\n");
        self
    }

    /// Adds several arguments.
    pub fn args(self, arguments: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Command {
        arguments.into_iter().fold(self, Command::arg)
    }

    /// Adds a number as an argument.
    pub fn number(self, number: u64) -> Command {
        self.arg(number.to_string())
    }

    /// Appends the command in the form in which it is sent.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(format!("*{}\r\n", self.parts).as_bytes());
        to.extend_from_slice(&self.bytes);
    }
}

/// A response of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Nil,
    Integer(i64),
    /// A status, such as OK.
    Status(String),
    Bytes(Vec<u8>),
    Array(Vec<Value>),
    Error(ServerError),
}

impl fmt::Display for Value {
    /// Describes the type of the value: its contents are the server's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nil => f.write_str("nothing"),
            Value::Integer(number) => write!(f, "the number {number}"),
            Value::Status(_) => f.write_str("a status"),
            Value::Bytes(bytes) => write!(f, "a text of {} bytes", bytes.len()),
            Value::Array(values) => write!(f, "an array of {} values", values.len()),
            Value::Error(_) => f.write_str("an error"),
        }
    }
}

/// An error that a server sent, such as `ERR not found`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    pub text: String,
    /// The text without the password, which the server may repeat.
    shown: String,
}

impl ServerError {
    pub fn new(text: &str) -> ServerError {
        ServerError { text: text.to_owned(), shown: text.to_owned() }
    }

    /// Returns the first word.
    pub fn code(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// Removes a password from the text that is printed.
    pub fn hide(&mut self, password: &[u8]) {
        if !password.is_empty() {
            self.shown = self.text.replace(&*String::from_utf8_lossy(password), "***");
        }
    }
}

impl fmt::Display for ServerError {
    /// Writes the beginning of the text, which a server may make as long as it likes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_CHARS: usize = 300;
        let mut characters = self.shown.chars();
        characters.by_ref().take(MAX_CHARS).try_for_each(|c| f.write_char(c))?;
        if characters.next().is_some() { f.write_char('…') } else { Ok(()) }
    }
}

/// Why there is no response.
#[derive(Debug)]
pub enum Failure {
    Io(io::Error),
    /// The bytes are not a response.
    NotResp,
    /// The response is larger than any that umbel asks for.
    TooLarge,
    /// There are bytes after the last response.
    Unexpected,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

/// Reads a response.
pub fn read(from: &mut impl BufRead) -> Result<Value, Failure> {
    Reader { from, bytes_left: MAX_RESPONSE_BYTES, values_left: MAX_RESPONSE_VALUES }.value(0)
}

/// What is left of the limits of a response.
struct Reader<'a, R> {
    from: &'a mut R,
    bytes_left: u64,
    values_left: u64,
}

impl<R: BufRead> Reader<'_, R> {
    fn value(&mut self, depth: u32) -> Result<Value, Failure> {
        if depth > MAX_DEPTH {
            return Err(Failure::TooLarge);
        }
        self.values_left = self.values_left.checked_sub(1).ok_or(Failure::TooLarge)?;
        let line = self.line()?;
        let (kind, text) = line.split_first().ok_or(Failure::NotResp)?;
        let text = || String::from_utf8_lossy(text).into_owned();
        let number = || text().parse::<i64>().map_err(|_| Failure::NotResp);
        let length = || match number()? {
            -1 => Ok(None),
            number => u64::try_from(number).map(Some).map_err(|_| Failure::NotResp),
        };
        match kind {
            b'+' => Ok(Value::Status(text())),
            b'-' => Ok(Value::Error(ServerError::new(&text()))),
            b':' => number().map(Value::Integer),
            b'$' => length()?.map_or(Ok(Value::Nil), |length| self.bytes(length).map(Value::Bytes)),
            b'*' => length()?.map_or(Ok(Value::Nil), |length| self.array(length, depth)),
            _ => Err(Failure::NotResp),
        }
    }

    fn array(&mut self, length: u64, depth: u32) -> Result<Value, Failure> {
        if length > self.values_left {
            return Err(Failure::TooLarge);
        }
        // Not with the capacity for all of them, of which the server has sent none yet.
        let mut values = Vec::new();
        for _ in 0..length {
            values.push(self.value(depth + 1)?);
        }
        Ok(Value::Array(values))
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, Failure> {
        if length > self.bytes_left {
            return Err(Failure::TooLarge);
        }
        let mut bytes = Vec::new();
        self.from.take(length).read_to_end(&mut bytes)?;
        self.bytes_left -= bytes.len() as u64;
        if (bytes.len() as u64) < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if self.line()?.is_empty() { Ok(bytes) } else { Err(Failure::NotResp) }
    }

    /// Reads a line, and returns it without its end.
    fn line(&mut self) -> Result<Vec<u8>, Failure> {
        let limit = self.bytes_left.min(MAX_LINE_BYTES);
        let mut line = Vec::new();
        self.from.take(limit).read_until(b'\n', &mut line)?;
        self.bytes_left -= line.len() as u64;
        match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(text.to_vec()),
            None if line.ends_with(b"\n") => Err(Failure::NotResp),
            None if line.len() as u64 == limit => Err(Failure::TooLarge),
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: impl AsRef<[u8]>) -> Result<Value, Failure> {
        read(&mut bytes.as_ref())
    }

    #[test]
    fn commands_and_responses_are_those_of_the_protocol() {
        let mut sent = Vec::new();
        command("SET").arg("k\r\n").args(["", "NX"]).number(7).write(&mut sent);
        assert_eq!(sent, b"*5\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n$2\r\nNX\r\n$1\r\n7\r\n");
        for (bytes, value) in [
            ("+OK\r\n", Value::Status("OK".into())),
            ("-ERR no\r\n", Value::Error(ServerError::new("ERR no"))),
            (":-7\r\n", Value::Integer(-7)),
            ("$-1\r\n", Value::Nil),
            ("*-1\r\n", Value::Nil),
            ("$0\r\n\r\n", Value::Bytes(Vec::new())),
            ("$4\r\na\r\nb\r\n", Value::Bytes(b"a\r\nb".into())),
            ("*0\r\n", Value::Array(Vec::new())),
            (
                "*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
                Value::Array(vec![Value::Array(vec![Value::Integer(1)]), Value::Bytes(b"x".into())]),
            ),
        ] {
            assert_eq!(parse(bytes).unwrap(), value);
        }
    }

    #[test]
    fn an_error_is_shown_without_the_password_and_not_in_full_length() {
        let mut error = ServerError::new("ERR unknown command 'AUTH', with args beginning with: 'S3cretPw'");
        error.hide(b"S3cretPw");
        assert_eq!(error.to_string(), "ERR unknown command 'AUTH', with args beginning with: '***'");
        // Its meaning is that of the text.
        let mut error = ServerError::new("ERR not found");
        error.hide(b"not");
        assert_eq!((error.to_string().as_str(), error.text.as_str()), ("ERR *** found", "ERR not found"));
        assert!(ServerError::new(&"x".repeat(60_000)).to_string().len() < 400);
    }

    #[test]
    fn what_is_not_a_response_is_refused() {
        for bytes in [
            "\r\n",
            "hello\r\n",
            "+OK\n",
            ":x\r\n",
            "$x\r\n",
            "$-2\r\n",
            "*-2\r\n",
            "$1\r\nab\r\n",
            "HTTP/1.1 400 Bad Request\r\n",
            "_\r\n",
        ] {
            assert!(matches!(parse(bytes), Err(Failure::NotResp)), "{bytes:?}");
        }
        for bytes in ["", "+OK", "$3\r\nab", "$2\r\nab", "$1\r\nabcd", "*2\r\n:1\r\n"] {
            let end = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
            assert!(matches!(parse(bytes), Err(Failure::Io(error)) if end(&error)), "{bytes:?}");
        }
    }

    /// An endless input that starts with some bytes, and counts how many are read.
    struct Endless<'a> {
        start: &'a [u8],
        rest: &'a [u8],
        read: u64,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let from = if self.start.is_empty() { &self.rest } else { &mut self.start };
            let count = from.len().min(to.len());
            to[..count].copy_from_slice(&from[..count]);
            if !self.start.is_empty() {
                self.start = &self.start[count..];
            }
            self.read += count as u64;
            Ok(count)
        }
    }

    #[test]
    fn a_response_has_bounded_memory_whatever_it_announces() {
        let zeros = [b'0'; 1 << 16];
        let numbers = b":1\r\n".repeat(1 << 14);
        let arrays = b"*1\r\n".repeat(1 << 14);
        let empty = b"$0\r\n\r\n".repeat(1 << 13);
        for (start, rest) in [
            (&b"+"[..], &zeros[..]),
            (b"-ERR ", &zeros),
            (b":", &zeros),
            (b"$", &zeros),
            (b"$9223372036854775807\r\n", &zeros),
            (b"$536870912\r\n", &zeros),
            (b"$16777217\r\n", &zeros),
            (b"*9223372036854775807\r\n", &numbers),
            (b"*1000000\r\n", &numbers),
            (b"*65536\r\n", &numbers),
            (b"*60000\r\n*60000\r\n", &empty),
            (b"*4\r\n$9000000\r\n", &zeros),
            (b"", &arrays),
        ] {
            let mut from = io::BufReader::new(Endless { start, rest, read: 0 });
            let result = read(&mut from);
            assert!(matches!(result, Err(Failure::TooLarge | Failure::NotResp)), "{start:?}: {result:?}");
            assert!(
                from.get_ref().read < MAX_RESPONSE_BYTES + (1 << 17),
                "{start:?}: {}",
                from.get_ref().read
            );
        }
    }
}
