//! Where a filter is: `redis://[[user:]password@]host[:port][/database]/key`.

use super::percent;
use anyhow::{Context, Result, bail};
use std::str::FromStr;

/// A key on a server. Names, passwords and keys are any bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
    pub host: String,
    pub port: u16,
    pub database: Option<u32>,
    pub key: Vec<u8>,
}

/// The port of Redis and Valkey.
const PORT: u16 = 6379;

/// How addresses are written, for the help of every command that takes one.
pub const HELP: &str = "A key on a server: redis://host/key, or redis://user:password@host:port/database/key. \
    Only a number before another slash is a database, so the key 3/x of the first database is written 0/3/x. \
    In a user, a password and a key, %41 stands for the byte 41 in hexadecimal: / in a password is written %2F, \
    and anywhere ? is %3F, # is %23 and % is %25. \
    A password that is not in the address is taken from the environment variable REDISCLI_AUTH, as redis-cli does; \
    there it does not show in lists of processes";

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Address> {
        let form = "an address is redis://host/key, or redis://user:password@host:port/database/key";
        let rest = text.strip_prefix("redis://").or_else(|| text.strip_prefix("valkey://")).context(form)?;
        for (mark, what, written) in [('?', "query", "%3F"), ('#', "fragment", "%23")] {
            if rest.contains(mark) {
                bail!(
                    "an address has no {what}: a {mark} in a user, a password or a key is written {written}"
                );
            }
        }
        percent::check(text)?;
        let (place, path) = rest.split_once('/').context(form)?;
        // Who has not written the @ in a password as %40 is understood too.
        let (secrets, place) =
            place.rsplit_once('@').map_or((None, place), |(secrets, place)| (Some(secrets), place));
        let (user, password) = match secrets.map(|secrets| secrets.split_once(':')) {
            None => (None, None),
            Some(None) => (None, secrets),
            Some(Some((user, password))) => (Some(user), Some(password)),
        };
        let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(percent::decode);
        let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port = port
            .map_or(Ok(PORT), str::parse)
            .with_context(|| format!("a port is a number, and a / in a password is written %2F: {form}"))?;
        // A number before another slash is a database.
        let (database, key) = match path.split_once('/').map(|(number, key)| (number.parse::<u32>(), key)) {
            Some((Ok(database), key)) => (Some(database), key),
            _ => (None, path),
        };
        if host.is_empty() || key.is_empty() {
            bail!(form);
        }
        let host = String::from_utf8(percent::decode(host)).context("the name of a host is text")?;
        let (user, password, key) = (given(user), given(password), percent::decode(key));
        Ok(Address { user, password, host, port, database, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_a_host_and_a_key_and_may_have_more() {
        let plain = address("redis://example/fruit");
        assert_eq!((&*plain.host, plain.port, &*plain.key), ("example", 6379, &b"fruit"[..]));
        assert_eq!((plain.user, plain.password, plain.database), (None, None, None));
        let full = address("valkey://me:p@ss:word@[::1]:7000/3/{fruit}/all");
        assert_eq!(
            (full.user.as_deref(), full.password.as_deref()),
            (Some(&b"me"[..]), Some(&b"p@ss:word"[..]))
        );
        assert_eq!(
            (&*full.host, full.port, &*full.key, full.database),
            ("::1", 7000, &b"{fruit}/all"[..], Some(3))
        );
        assert_eq!(address("redis://:secret@h/k").password.as_deref(), Some(&b"secret"[..]));
        assert_eq!(address("redis://secret@h/k").password.as_deref(), Some(&b"secret"[..]));
        assert_eq!(address("redis://h/a/b").key, b"a/b");
        for wrong in ["", "redis://", "redis://h", "redis://h/", "http://h/k", "redis://h:x/k", "redis:///k"]
        {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_escaped_is_taken_for_what_it_stands_for() {
        let full = address("redis://m%65%3A:p%40%2f%25@h%6Fst/1/a%3Fb%2F%00%ff");
        assert_eq!(full.user.as_deref(), Some(&b"me:"[..]));
        assert_eq!(full.password.as_deref(), Some(&b"p@/%"[..]));
        assert_eq!((&*full.host, &*full.key), ("host", &b"a?b/\0\xff"[..]));
        // An escaped slash ends nothing.
        let one = address("redis://h/3%2Fx");
        assert_eq!((one.database, &*one.key), (None, &b"3/x"[..]));
        let none = address("redis://me:@h/k");
        assert_eq!((none.user.as_deref(), none.password), (Some(&b"me"[..]), None));
    }

    #[test]
    fn what_an_address_cannot_have_is_named() {
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
}
