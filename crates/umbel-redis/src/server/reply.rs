//! The replies of commands.

use super::raw::{self, Ctx};
use crate::error::Error;
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int, c_long};
use std::fmt;
use umbel::hash::HashId;

/// The reply of a command, complete before any of it is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The simple string `OK`.
    Ok,
    /// A number.
    Integer(i64),
    /// A floating-point number.
    Double(f64),
    /// A boolean in RESP3, 1 or 0 in RESP2.
    Bool(bool),
    /// A bulk string.
    Bytes(Vec<u8>),
    /// Null.
    Null,
    /// An array.
    Array(Vec<Reply>),
    /// A map of names and values in RESP3, an array of both in RESP2.
    Map(Vec<(Cow<'static, str>, Reply)>),
    /// An error, as one element of an array.
    Failure(Failure),
}

impl Reply {
    /// An array with one element per item: whether it was added, or its error.
    pub fn from_results(results: Vec<Result<bool>>) -> Reply {
        let reply = |result: Result<bool>| result.map_or_else(Reply::Failure, Reply::Bool);
        Reply::Array(results.into_iter().map(reply).collect())
    }
}

/// Numbers beyond the range of the protocol become the largest one.
impl From<u64> for Reply {
    fn from(number: u64) -> Reply {
        Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Reply {
    fn from(yes: bool) -> Reply {
        Reply::Bool(yes)
    }
}

/// Why a command has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The number of arguments is wrong.
    Arity,
    /// The key holds a value of another type.
    WrongType,
    /// The command needs a secret that this server does not have.
    MissingSecret(HashId),
    /// Any other reason, as clients see it.
    Text(Cow<'static, str>),
}

/// A `Result` with the failure of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Returns a failure with this text, which is sent after `ERR`.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Failure {
        Failure::Text(text.into())
    }

    /// Returns the text as it is sent. Line ends would end the reply, so they become spaces.
    fn text(&self) -> CString {
        let text = match self {
            Failure::Arity => "ERR wrong number of arguments".into(),
            Failure::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value".into(),
            Failure::MissingSecret(id) => format!("ERR {}", Error::MissingSecret { id: *id }),
            Failure::Text(text) => format!("ERR {text}").replace(['\r', '\n', '\0'], " "),
        };
        CString::new(text).unwrap_or_default()
    }
}

impl From<umbel::Error> for Failure {
    fn from(error: umbel::Error) -> Failure {
        match error {
            umbel::Error::OutOfMemory { bytes } => {
                Failure::new(format!("this needs {bytes} more bytes, which exceeds the memory limit"))
            }
            umbel::Error::MissingKey { id, .. } => Failure::MissingSecret(id),
            other => Failure::new(format!("{:#}", Error::from(other))),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Arity => "wrong number of arguments",
            Failure::WrongType => "the key holds the wrong kind of value",
            Failure::MissingSecret(id) => return write!(f, "{}", Error::MissingSecret { id: *id }),
            Failure::Text(text) => text,
        })
    }
}

impl std::error::Error for Failure {}

impl Reply {
    /// Sends the reply.
    ///
    /// # Safety
    ///
    /// The context must be that of the running command.
    pub(super) unsafe fn send(&self, ctx: *mut Ctx) {
        let api = raw::api();
        let map = |len: usize| {
            let api = raw::api();
            match api.reply_with_map {
                // SAFETY: promised by the caller; as many pairs follow.
                Some(map) => unsafe { map(ctx, len as c_long) },
                // SAFETY: as above.
                None => unsafe { (api.reply_with_array)(ctx, 2 * len as c_long) },
            }
        };
        // SAFETY: promised by the caller. The server copies strings, which are zero-terminated
        // where no length is passed.
        unsafe {
            match self {
                Reply::Ok => (api.reply_with_simple_string)(ctx, c"OK".as_ptr()),
                Reply::Integer(number) => (api.reply_with_long_long)(ctx, *number),
                Reply::Double(number) => (api.reply_with_double)(ctx, *number),
                Reply::Bool(yes) => match api.reply_with_bool {
                    Some(bool) => bool(ctx, c_int::from(*yes)),
                    None => (api.reply_with_long_long)(ctx, i64::from(*yes)),
                },
                Reply::Bytes(bytes) => {
                    (api.reply_with_string_buffer)(ctx, bytes.as_ptr().cast(), bytes.len())
                }
                Reply::Null => (api.reply_with_null)(ctx),
                Reply::Array(replies) => {
                    (api.reply_with_array)(ctx, replies.len() as c_long);
                    replies.iter().for_each(|reply| reply.send(ctx));
                    raw::OK
                }
                Reply::Map(pairs) => {
                    map(pairs.len());
                    for (name, value) in pairs {
                        // RedisBloom sends names as simple strings.
                        let name = CString::new(name.as_bytes()).unwrap_or_default();
                        (api.reply_with_simple_string)(ctx, name.as_ptr());
                        value.send(ctx);
                    }
                    raw::OK
                }
                Reply::Failure(failure) => failure.send(ctx),
            };
        }
    }
}

impl Failure {
    /// Sends the failure as an error reply.
    ///
    /// # Safety
    ///
    /// The context must be that of the running command.
    pub(super) unsafe fn send(&self, ctx: *mut Ctx) -> c_int {
        let api = raw::api();
        if *self == Failure::Arity {
            // SAFETY: promised by the caller. The server adds the name of the command.
            return unsafe { (api.wrong_arity)(ctx) };
        }
        let text = self.text();
        let text: &CStr = &text;
        // SAFETY: promised by the caller; the server copies the text.
        unsafe { (api.reply_with_error)(ctx, text.as_ptr()) }
    }
}
