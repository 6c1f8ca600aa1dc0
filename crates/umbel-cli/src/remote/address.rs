//! Addresses of filters on servers: `redis://[[user:]password@]host[:port][/database]/key`.

use super::percent;
use super::process_list::hidden_password;
use super::server::Server;
use crate::terminal::redact;
use anyhow::{Context, Error, Result, bail};
use bstr::ByteSlice;
use clap::builder::{StringValueParser, TypedValueParser, ValueParserFactory};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::str::FromStr;
use zeroize::Zeroizing;

/// A key on a server. Users, passwords and keys are arbitrary bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub user: Option<Vec<u8>>,
    pub password: Option<Zeroizing<Vec<u8>>>,
    pub server: Server,
    pub database: Option<u32>,
    pub key: Vec<u8>,
}

/// The port of Redis and Valkey.
const DEFAULT_PORT: u16 = 6379;

/// The syntax of an address, for error messages.
const SYNTAX: &str = "an address is redis://host/key, or redis://user:password@host:port/database/key";

/// The syntax of the address of a Unix socket, for error messages.
const SOCKET_SYNTAX: &str =
    "the address of a Unix socket has %2F for each / of its path, as in redis+unix://%2Frun%2Fredis.sock/key";

/// The syntax of addresses, for the help of every command that takes one.
pub const HELP: &str = "A key on a server: redis://host/key, or redis://user:password@host:port/database/key. \
    Only a number before another slash is a database, so the key 3/x of the first database is written 0/3/x. \
    In a user, a password and a key, %41 stands for the byte 41 in hexadecimal: / in a password is written %2F, \
    and anywhere ? is %3F, # is %23 and % is %25. \
    A password that is not in the address is taken from the environment variable REDISCLI_AUTH, as redis-cli does; \
    there it never shows in lists of processes. \
    rediss:// is for TLS. redis+unix://%2Frun%2Fredis.sock/key is for a Unix socket, whose path has %2F for each /";

/// How a server is reached, by the scheme of its address.
#[derive(Clone, Copy)]
enum Transport {
    Tcp,
    Tls,
    Unix,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { user, password, server, database, key } = self;
        let (user, key) = (user.as_ref().map(|user| user.as_bstr()), key.as_bstr());
        f.debug_struct("Address")
            .field("user", &user)
            .field("password", &password.as_ref().map(|_| "***"))
            .field("server", server)
            .field("database", database)
            .field("key", &key)
            .finish()
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address> {
        let (scheme, rest) = text.split_once("://").context(SYNTAX)?;
        let transport = match scheme {
            "redis" | "valkey" => Transport::Tcp,
            "rediss" | "valkeys" => Transport::Tls,
            "unix" | "redis+unix" | "valkey+unix" => Transport::Unix,
            _ => bail!(SYNTAX),
        };
        for (mark, what, written) in [('?', "query", "%3F"), ('#', "fragment", "%23")] {
            if rest.contains(mark) {
                bail!(
                    "an address has no {what}: a {mark} in a user, a password or a key is written {written}"
                );
            }
        }
        percent::check(text)?;
        let syntax = if let Transport::Unix = transport { SOCKET_SYNTAX } else { SYNTAX };
        let (authority, path) = rest.split_once('/').context(syntax)?;
        // The last one, so that an @ in a password need not be written %40.
        let (login, server) =
            authority.rsplit_once('@').map_or((None, authority), |(login, server)| (Some(login), server));
        let (user, password) = match login.map(|login| login.split_once(':')) {
            None => (None, None),
            Some(None) => (None, login),
            Some(Some((user, password))) => (Some(user), Some(password)),
        };
        let nonempty = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(percent::decode);
        let server = parse_server(transport, server)?;
        // A number before another slash is a database.
        let (database, key) = match path.split_once('/').map(|(number, key)| (number.parse::<u32>(), key)) {
            Some((Ok(database), key)) => (Some(database), key),
            _ => (None, path),
        };
        if key.is_empty() {
            bail!(syntax);
        }
        let (user, password, key) =
            (nonempty(user), nonempty(password).map(Zeroizing::new), percent::decode(key));
        Ok(Address { user, password, server, database, key })
    }
}

/// Parses a host and port, or the path of a socket.
fn parse_server(transport: Transport, text: &str) -> Result<Server> {
    if let Transport::Unix = transport {
        let path = OsString::from_vec(percent::decode(text));
        if path.is_empty() {
            bail!(SOCKET_SYNTAX);
        }
        return Ok(Server::Unix(path.into()));
    }
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port
        .map_or(Ok(DEFAULT_PORT), str::parse)
        .with_context(|| format!("a port is a number, and a / in a password is written %2F: {SYNTAX}"))?;
    if host.is_empty() {
        bail!(SYNTAX);
    }
    let host = String::from_utf8(percent::decode(host)).context("the name of a host is text")?;
    Ok(match transport {
        Transport::Tls => Server::Tls { host, port },
        _ => Server::Tcp { host, port },
    })
}

/// Parses addresses on the command line. Its errors show them without their passwords.
#[derive(Clone)]
pub struct AddressParser;

impl ValueParserFactory for Address {
    type Parser = AddressParser;

    fn value_parser() -> AddressParser {
        AddressParser
    }
}

impl TypedValueParser for AddressParser {
    type Value = Address;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Address, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, argument, value)?;
        let parsed = text.parse().map(|mut address: Address| {
            let hidden = address.password.as_ref().and_then(|shown| hidden_password(shown));
            address.password = hidden.or(address.password);
            address
        });
        parsed.or_else(|error: Error| {
            let message = error.to_string();
            let fail = move |_| Err::<Address, String>(message.clone());
            let shown = redact::address(&text);
            StringValueParser::new().try_map(fail).parse_ref(command, argument, shown.as_ref())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    fn password(address: &Address) -> Option<&[u8]> {
        address.password.as_ref().map(|password| &password[..])
    }

    fn tcp(host: &str, port: u16) -> Server {
        Server::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn an_address_has_a_host_and_a_key_and_optional_parts() {
        let plain = address("redis://example/fruit");
        assert_eq!((plain.server, &*plain.key), (tcp("example", 6379), &b"fruit"[..]));
        assert_eq!((plain.user, plain.password, plain.database), (None, None, None));
        let full = address("valkey://me:p@ss:word@[::1]:7000/3/{fruit}/all");
        assert_eq!((full.user.as_deref(), password(&full)), (Some(&b"me"[..]), Some(&b"p@ss:word"[..])));
        assert_eq!(
            (full.server, &*full.key, full.database),
            (tcp("::1", 7000), &b"{fruit}/all"[..], Some(3))
        );
        assert_eq!(password(&address("redis://:secret@h/k")), Some(&b"secret"[..]));
        assert_eq!(password(&address("redis://secret@h/k")), Some(&b"secret"[..]));
        assert_eq!(address("redis://h/a/b").key, b"a/b");
        for wrong in ["", "redis://", "redis://h", "redis://h/", "http://h/k", "redis://h:x/k", "redis:///k"]
        {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn escaped_bytes_are_decoded() {
        let full = address("redis://m%65%3A:p%40%2f%25@h%6Fst/1/a%3Fb%2F%00%ff");
        assert_eq!(full.user.as_deref(), Some(&b"me:"[..]));
        assert_eq!(password(&full), Some(&b"p@/%"[..]));
        assert_eq!((full.server, &*full.key), (tcp("host", 6379), &b"a?b/\0\xff"[..]));
        // An escaped slash is not a separator.
        let one = address("redis://h/3%2Fx");
        assert_eq!((one.database, &*one.key), (None, &b"3/x"[..]));
        let none = address("redis://me:@h/k");
        assert_eq!((none.user.as_deref(), none.password), (Some(&b"me"[..]), None));
    }

    #[test]
    fn invalid_parts_of_an_address_are_named() {
        for (wrong, says) in [
            ("redis://h/k?x=1", "%3F"),
            ("redis://h/k#x", "%23"),
            ("redis://a:b?c@h/k", "%3F"),
            ("redis://h/50%", "character 13 "),
            ("redis://a:%zz@h/k", "character 11 "),
            ("redis://a:b/c@h/k", "%2F"),
            ("redis://%ff/k", "host"),
        ] {
            let error = format!("{:#}", wrong.parse::<Address>().unwrap_err());
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_scheme_chooses_tls_or_a_socket() {
        for text in ["rediss://me:pass@example/2/fruit", "valkeys://me:pass@example/2/fruit"] {
            let tls = address(text);
            let (host, port) = ("example".to_owned(), 6379);
            assert_eq!(tls.server, Server::Tls { host, port });
            assert_eq!((tls.database, &*tls.key), (Some(2), &b"fruit"[..]));
        }
        for scheme in ["unix", "redis+unix", "valkey+unix"] {
            let socket = address(&format!("{scheme}://me:p%2Fass@%2Frun%2Fa%20b:1.sock/2/fruit"));
            assert_eq!(socket.server, Server::Unix("/run/a b:1.sock".into()));
            assert_eq!(password(&socket), Some(&b"p/ass"[..]));
            assert_eq!((socket.database, &*socket.key), (Some(2), &b"fruit"[..]));
        }
        for wrong in ["unix:///run/redis.sock/key", "redis+unix://%2Frun%2Fredis.sock", "unix://me@/key"] {
            let error = wrong.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("redis+unix://%2Frun%2Fredis.sock/key"), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_password_is_not_part_of_a_debug_output() {
        let shown = format!("{:?}", address("rediss://me:secret@h/k"));
        assert!(shown.contains("me") && !shown.contains("secret") && !shown.contains("115"), "{shown}");
    }
}
