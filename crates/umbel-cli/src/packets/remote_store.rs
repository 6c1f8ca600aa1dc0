//! Stores on other machines, which `umbel` searches there: `HOST:PATH`, as scp and rsync write it.

use crate::report::{printable, shell_word};
use anyhow::{Context, Result, bail};
use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::Ipv6Addr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

/// A store on another machine.
#[derive(Debug, PartialEq, Eq)]
pub struct RemoteStore<'a> {
    /// `HOST` or `USER@HOST`, as ssh takes it. No part of it begins with a dash.
    host: String,
    path: Cow<'a, str>,
}

/// The longest answer that is read, so that another machine cannot fill the memory of this one.
const MAX_ANSWER_BYTES: u64 = 1 << 26;
/// The most that is read of the messages of another machine.
const MAX_MESSAGE_BYTES: u64 = 1 << 16;

impl<'a> RemoteStore<'a> {
    /// Parses `HOST:PATH` or `USER@HOST:PATH`. Returns `None` for a path on this machine: one
    /// without a colon before its first slash, or one that exists. An IPv6 address is in brackets.
    ///
    /// # Errors
    ///
    /// Fails if the host or the path after the colon cannot be used.
    pub fn parse(store: &'a Path) -> Result<Option<RemoteStore<'a>>> {
        let Some(text) = store.to_str().filter(|_| !store.exists()) else { return Ok(None) };
        let Some((name, path)) = text.split_once(':').filter(|(name, _)| is_host(name)) else {
            return Ok(None);
        };
        let (user, address) = name.find("@[").map_or(("", text), |at| text.split_at(at + 1));
        let (host, path) = match split_ipv6(address) {
            Some((address, path)) => (format!("{user}{address}"), path),
            None => (name.to_owned(), path),
        };
        if host.contains(['[', ']']) {
            bail!("{} names no host: brackets are for IPv6 addresses alone", printable(text));
        }
        // ssh would take such a host for an option, which can run any command.
        if host.split('@').any(|part| part.starts_with('-')) {
            bail!("{} is not a host: its name begins with a dash", printable(host));
        }
        if path.is_empty() {
            bail!("{} names no store: write HOST:PATH", printable(text));
        }
        // The other machine would take the part before a colon for a host.
        let path = match path.contains(':') && !path.starts_with('/') {
            true => format!("./{path}").into(),
            false => path.into(),
        };
        Ok(Some(RemoteStore { host, path }))
    }

    /// Runs `umbel net attribute` with these arguments on the other machine, sends it `sought` on
    /// standard input, and returns its output and its messages.
    ///
    /// # Errors
    ///
    /// Fails if ssh cannot be started, or if it prints nothing to standard output.
    pub fn attribute(
        &self,
        ssh: &str,
        arguments: &[String],
        sought: &[u8],
    ) -> Result<(Vec<u8>, Vec<String>)> {
        let mut words = ssh.split_ascii_whitespace();
        let program = words.next().context("--ssh names no program")?;
        // No shell runs on this machine, but ssh hands the words to one on the other.
        let remote = ["umbel", "net", "attribute"].into_iter().chain(arguments.iter().map(|word| &word[..]));
        let mut child = Command::new(program)
            .args(words)
            .arg(&self.host)
            .args(remote.chain(["--", &self.path]).map(shell_word))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {program}, the program of --ssh"))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (answer, messages) = thread::scope(|scope| {
            // A command that ends early does not read all of its input.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(sought)));
            let messages = scope.spawn(move || read(stderr, MAX_MESSAGE_BYTES));
            let answer = read(stdout, MAX_ANSWER_BYTES + 1);
            if answer.len() as u64 > MAX_ANSWER_BYTES {
                let _ = child.kill();
            }
            (answer, messages.join().unwrap_or_default())
        });
        let status = child.wait().with_context(|| format!("cannot wait for {program}"))?;
        if answer.len() as u64 > MAX_ANSWER_BYTES {
            bail!("the answer is too long");
        }
        let messages = lines(&messages);
        if answer.is_empty() {
            bail!("there is no answer: {}", reason(status, &messages));
        }
        Ok((answer, messages))
    }
}

/// Tells whether the text before the first colon can be a host, and not a path on this machine.
fn is_host(name: &str) -> bool {
    !name.is_empty() && !name.contains('/')
}

/// Splits `[ADDRESS]:PATH` into an IPv6 address and a path.
fn split_ipv6(text: &str) -> Option<(Ipv6Addr, &str)> {
    let (address, path) = text.strip_prefix('[')?.split_once("]:")?;
    Some((address.parse().ok()?, path))
}

/// Reads to the end, or up to a limit. Text that cannot be read counts as none.
fn read(from: Option<impl Read>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut from = from.map(|from| from.take(limit));
    let _ = from.as_mut().map(|from| from.read_to_end(&mut bytes));
    // The other side would wait for ever for a reader of the rest, and gets an error instead.
    drop(from);
    bytes
}

/// Returns the lines of messages in a printable form, without the name of the program.
fn lines(messages: &[u8]) -> Vec<String> {
    let lines = messages.split(|byte| *byte == b'\n').map(|line| line.trim_ascii());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| printable(line.strip_prefix(b"umbel: ").unwrap_or(line)))
        .collect()
}

/// Returns the last message, or the status if there is none.
fn reason(status: ExitStatus, messages: &[String]) -> String {
    messages.last().cloned().unwrap_or_else(|| format!("ssh ended with {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_end_at_a_colon_before_the_first_slash() {
        let parse = |text| RemoteStore::parse(Path::new(text)).map_err(|error| error.to_string());
        let remote = |host: &str, path: &'static str| {
            Ok(Some(RemoteStore { host: host.to_owned(), path: path.into() }))
        };
        assert_eq!(parse("probe:store"), remote("probe", "store"));
        assert_eq!(parse("ann@probe:/var/store"), remote("ann@probe", "/var/store"));
        assert_eq!(parse("[2001:db8::1]:store"), remote("2001:db8::1", "store"));
        assert_eq!(parse("ann@[::1]:store"), remote("ann@::1", "store"));
        assert_eq!(parse("probe:dir@[x]"), remote("probe", "dir@[x]"));
        for here in ["store", "./a:b", "/a:b", ":store", "../x:y", "a/b@[::1]:store", ""] {
            assert_eq!(parse(here), Ok(None), "{here}");
        }
        for wrong in ["-oProxyCommand=reboot:store", "probe:", "[::1]:"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_host_is_an_option_of_ssh() {
        for wrong in [
            "-oProxyCommand=reboot:store",
            "[-oProxyCommand=reboot]:store",
            "[-oProxyCommand=touch x]:store",
            "[]-oProxyCommand=reboot:store",
            "][-oProxyCommand=reboot:store",
            "-oProxyCommand=reboot@[::1]:store",
            "-oProxyCommand=reboot@probe:store",
            "ann@-oProxyCommand=reboot:store",
            "ann@[-oProxyCommand=reboot]:store",
            "[probe]:store",
            "[::1:store",
            "[::1]x:store",
            "pro[be:store",
        ] {
            let parsed = RemoteStore::parse(Path::new(wrong));
            assert!(parsed.is_err(), "{wrong}: {parsed:?}");
        }
    }

    #[test]
    fn the_other_machine_takes_no_part_of_the_path_for_a_host() {
        for (text, sent) in [
            ("probe:a:b", "./a:b"),
            ("probe:dir@[x]:y", "./dir@[x]:y"),
            ("probe:dir@[::1]:y", "./dir@[::1]:y"),
            ("probe:-oProxyCommand=reboot:y", "./-oProxyCommand=reboot:y"),
            ("[::1]:a:b", "./a:b"),
            ("probe:/a:b", "/a:b"),
        ] {
            let parsed = RemoteStore::parse(Path::new(text)).unwrap().unwrap();
            assert_eq!(parsed.path, sent, "{text}");
            assert!(RemoteStore::parse(Path::new(sent)).unwrap().is_none(), "{sent}");
        }
    }
}
