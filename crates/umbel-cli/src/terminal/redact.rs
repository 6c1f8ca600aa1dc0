//! Passwords in addresses on the command line, which no message repeats.
//!
//! Every message passes through [`passwords`], since an address can also be in a message that is
//! not about addresses: after `umbel check redis://:secret@host/key` there is no such file.

use std::ops::Range;
use std::sync::OnceLock;

/// Stands for a password.
pub const HIDDEN: &str = "***";

/// Returns the text of an address, which may be a wrong one, without its password.
pub fn address(text: &str) -> String {
    match password_range(text) {
        Some(range) => replaced(text, &range),
        None => text.to_owned(),
    }
}

/// Returns a message without the passwords of all addresses on the command line.
pub fn passwords(message: &str) -> String {
    static LOGINS: OnceLock<Vec<Login>> = OnceLock::new();
    let logins = LOGINS.get_or_init(|| {
        std::env::args_os().skip(1).filter_map(|argument| login(&argument.to_string_lossy())).collect()
    });
    logins.iter().fold(message.to_owned(), |message, login| login.hide(&message))
}

/// The user and password in an address.
pub struct Login {
    text: String,
    /// The text without the password.
    shown: String,
    pub password: String,
}

impl Login {
    /// Returns a message without the password.
    fn hide(&self, message: &str) -> String {
        let message = message.replace(&self.text, &self.shown);
        // The message may be about the folder of what was taken for a path.
        match (self.text.split_once('/'), self.shown.split_once(HIDDEN)) {
            (Some((folder, _)), Some((user, _))) if folder.len() > user.len() => {
                message.replace(folder, &format!("{user}{HIDDEN}"))
            }
            _ => message,
        }
    }
}

/// Returns the user and password if an argument is an address that has a password.
pub fn login(argument: &str) -> Option<Login> {
    let start = argument.find("://")? + "://".len();
    let range = password_range(argument).filter(|range| !range.is_empty())?;
    // With the @, so that a short password is not replaced in other words.
    let end = (range.end + 1).min(argument.len());
    let password = argument[range.clone()].to_owned();
    let range = range.start - start..range.end - start;
    let text = argument[start..end].to_owned();
    Some(Login { shown: replaced(&text, &range), text, password })
}

fn replaced(text: &str, range: &Range<usize>) -> String {
    format!("{}{HIDDEN}{}", &text[..range.start], &text[range.end..])
}

/// Returns the place of everything in an address that may be a password.
fn password_range(text: &str) -> Option<Range<usize>> {
    let login = text.find("://").map_or(0, |at| at + 3);
    // A password with a slash in it is a mistake, but still a password.
    if let Some(end) = text.rfind('@').filter(|end| *end > login) {
        let start = text[login..end].find(':').map_or(login, |at| login + at + 1);
        return Some(start..end);
    }
    // Without an @ there is no password, unless the host was forgotten: a port is a number.
    let host_end = if text[login..].starts_with('[') { login + text[login..].find(']')? } else { login };
    let start = host_end + text[host_end..].find(':')? + 1;
    let port = text[start..].split('/').next().unwrap_or_default();
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    (!is_port).then_some(start..text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (text, shown) in [
            ("redis://me:secret@h:x/k", "redis://me:***@h:x/k"),
            ("rediss://:secret@h:x/k", "rediss://:***@h:x/k"),
            ("redis://secret@h/k?", "redis://***@h/k?"),
            ("redis://me:sec@r/et@h/k", "redis://me:***@h/k"),
            ("redis+unix://me:%73ecret@%2Frun%2Fs/k", "redis+unix://me:***@%2Frun%2Fs/k"),
            ("me:secret@h/k", "me:***@h/k"),
            ("redis:/me:secret@h", "redis:***@h"),
            // The host was forgotten.
            ("redis://me:secret", "redis://me:***"),
            ("redis://:sec/ret", "redis://:***"),
            ("redis://h:x/k", "redis://h:***"),
            ("redis://h:7000/k", "redis://h:7000/k"),
            ("redis://[::1]:7000/k", "redis://[::1]:7000/k"),
            ("redis://h/a:1", "redis://h/a:1"),
            ("redis:/h/k", "redis:/h/k"),
            ("@", "@"),
            ("", ""),
        ] {
            assert_eq!(address(text), shown);
        }
    }

    #[test]
    fn only_the_login_of_an_address_is_replaced_in_messages() {
        let parts = |text: &str| login(text).map(|login| format!("{} {}", login.text, login.shown));
        assert_eq!(parts("redis://me:secret@h/k").as_deref(), Some("me:secret@ me:***@"));
        assert_eq!(parts("--output=redis://secret@h/k").as_deref(), Some("secret@ ***@"));
        assert_eq!(parts("redis://me:secret").as_deref(), Some("me:secret me:***"));
        let hidden = |text: &str, message: &str| login(text).unwrap().hide(message);
        let said = "cannot write redis://:sec/ret: there is no directory redis://:sec";
        assert_eq!(
            hidden("redis://:sec/ret", said),
            "cannot write redis://:***: there is no directory redis://:***"
        );
        for other in ["me@host:folder", "redis://me:@h/k", "redis://h:7000/k", "a:b@c", "words.umbel"] {
            assert_eq!(parts(other), None);
        }
    }
}
