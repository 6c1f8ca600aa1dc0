//! Where a filter is: `redis://[[user:]password@]host[:port][/database]/key`.

use anyhow::{Context, Result, bail};
use std::str::FromStr;

/// A key on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub user: Option<String>,
    pub password: Option<String>,
    pub host: String,
    pub port: u16,
    pub database: Option<u32>,
    pub key: String,
}

/// The port of Redis and Valkey.
const PORT: u16 = 6379;

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Address> {
        let form = "an address is redis://host/key, or redis://user:password@host:port/database/key";
        let rest = text.strip_prefix("redis://").or_else(|| text.strip_prefix("valkey://")).context(form)?;
        let (place, path) = rest.split_once('/').context(form)?;
        // A password may have any character in it but a slash.
        let (secrets, place) =
            place.rsplit_once('@').map_or((None, place), |(secrets, place)| (Some(secrets), place));
        let (user, password) = match secrets.map(|secrets| secrets.split_once(':')) {
            None => (None, None),
            Some(None) => (None, secrets.map(str::to_owned)),
            Some(Some((user, password))) => {
                (Some(user).filter(|user| !user.is_empty()).map(str::to_owned), Some(password.to_owned()))
            }
        };
        let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port =
            port.map_or(Ok(PORT), str::parse).with_context(|| format!("a port is a number: {form}"))?;
        // A number before another slash is a database.
        let (database, key) = match path.split_once('/').map(|(number, key)| (number.parse::<u32>(), key)) {
            Some((Ok(database), key)) => (Some(database), key),
            _ => (None, path),
        };
        if host.is_empty() || key.is_empty() {
            bail!(form);
        }
        Ok(Address { user, password, host: host.to_owned(), port, database, key: key.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_key_and_may_have_more() {
        let address = |text: &str| text.parse::<Address>().unwrap();
        let plain = address("redis://example/fruit");
        assert_eq!((&*plain.host, plain.port, &*plain.key, plain.database), ("example", 6379, "fruit", None));
        let full = address("valkey://me:p@ss:word@[::1]:7000/3/{fruit}/all");
        assert_eq!((full.user.as_deref(), full.password.as_deref()), (Some("me"), Some("p@ss:word")));
        assert_eq!(
            (&*full.host, full.port, &*full.key, full.database),
            ("::1", 7000, "{fruit}/all", Some(3))
        );
        assert_eq!(address("redis://:secret@h/k").password.as_deref(), Some("secret"));
        assert_eq!(address("redis://secret@h/k").password.as_deref(), Some("secret"));
        assert_eq!(address("redis://h/a/b").key, "a/b");
        for wrong in ["", "redis://", "redis://h", "redis://h/", "http://h/k", "redis://h:x/k", "redis:///k"]
        {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
