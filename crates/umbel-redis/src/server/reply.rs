//! What a command answers.

use super::raw::{self, Ctx};
use crate::error::Error;
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int, c_long};
use std::fmt;

/// What a command answers, put together before any of it is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// That it was done.
    Ok,
    /// A number.
    Integer(i64),
    /// A number with a fraction.
    Double(f64),
    /// Yes or no: a boolean in RESP3, 1 or 0 in RESP2.
    Bool(bool),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Nothing.
    Null,
    /// A list.
    Array(Vec<Reply>),
    /// Names and values: a map in RESP3, a list of both in RESP2.
    Map(Vec<(Cow<'static, str>, Reply)>),
    /// What could not be done, among what could.
    Failure(Failure),
}

impl Reply {
    /// An array with one element per item: whether it was added, or its error.
    pub fn from_results(results: Vec<Result<bool>>) -> Reply {
        let reply = |result: Result<bool>| result.map_or_else(Reply::Failure, Reply::Bool);
        Reply::Array(results.into_iter().map(reply).collect())
    }
}

/// A number, however large: what is beyond the protocol is as large as it can say.
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

/// Why a command was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It has too few arguments, or too many.
    Arity,
    /// The key holds something else.
    WrongType,
    /// Anything else, as clients see it.
    Text(Cow<'static, str>),
}

/// What a command comes to.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure with this text; `ERR` comes before it.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Failure {
        Failure::Text(text.into())
    }

    /// The text as it is sent. Line ends would end it.
    fn text(&self) -> CString {
        let text = match self {
            Failure::Arity => "ERR wrong number of arguments".into(),
            Failure::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value".into(),
            Failure::Text(text) => format!("ERR {text}").replace(['\r', '\n', '\0'], " "),
        };
        CString::new(text).unwrap_or_default()
    }
}

impl From<umbel::Error> for Failure {
    fn from(error: umbel::Error) -> Failure {
        match error {
            umbel::Error::OutOfMemory { bytes } => {
                Failure::new(format!("this takes {bytes} bytes more, which is beyond the memory limit"))
            }
            other => Failure::new(format!("{:#}", Error::from(other))),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Arity => "wrong number of arguments",
            Failure::WrongType => "the key holds the wrong kind of value",
            Failure::Text(text) => text,
        })
    }
}

impl std::error::Error for Failure {}

impl Reply {
    /// Sends it.
    ///
    /// # Safety
    ///
    /// The context must be that of the command that runs.
    pub(super) unsafe fn send(&self, ctx: *mut Ctx) {
        let api = raw::api();
        let map = |len: usize| {
            let api = raw::api();
            match api.reply_with_map {
                // SAFETY: promised by the caller; of what is announced as much follows.
                Some(map) => unsafe { map(ctx, len as c_long) },
                // SAFETY: as above.
                None => unsafe { (api.reply_with_array)(ctx, 2 * len as c_long) },
            }
        };
        // SAFETY: promised by the caller. Strings are zero-terminated where no length is given, and copied.
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
                        // A simple string, as RedisBloom has it.
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
    /// Sends it.
    ///
    /// # Safety
    ///
    /// The context must be that of the command that runs.
    pub(super) unsafe fn send(&self, ctx: *mut Ctx) -> c_int {
        let api = raw::api();
        if *self == Failure::Arity {
            // SAFETY: promised by the caller. This one knows the name of the command.
            return unsafe { (api.wrong_arity)(ctx) };
        }
        let text = self.text();
        let text: &CStr = &text;
        // SAFETY: promised by the caller; the text is copied.
        unsafe { (api.reply_with_error)(ctx, text.as_ptr()) }
    }
}
