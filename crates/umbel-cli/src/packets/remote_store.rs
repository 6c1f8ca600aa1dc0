//! Stores on other machines, which `umbel` searches there: `HOST:PATH`, as scp and rsync write it.

use crate::report::{printable, shell_word};
use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

/// A store on another machine.
#[derive(Debug, PartialEq, Eq)]
pub struct RemoteStore<'a> {
    host: &'a str,
    path: &'a str,
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
        let bracket = text.find("@[").map_or(0, |at| at + 1);
        let (host, path) = match text[bracket..].strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
            Some((_, path)) => text.split_at(text.len() - path.len() - 1),
            None => match text.split_once(':') {
                Some((host, _)) if !host.is_empty() && !host.contains('/') => text.split_at(host.len()),
                _ => return Ok(None),
            },
        };
        let path = &path[path.len().min(1)..];
        // A host that begins with a dash would be an option of ssh, which can run any command.
        if host.starts_with('-') {
            bail!("{} is not a host: its name begins with a dash", printable(host));
        }
        if path.is_empty() {
            bail!("{} names no store: write HOST:PATH", printable(text));
        }
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
            .arg(self.host.replace(['[', ']'], ""))
            .args(remote.chain(["--", self.path]).map(shell_word))
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
        let remote = |host, path| Ok(Some(RemoteStore { host, path }));
        assert_eq!(parse("probe:store"), remote("probe", "store"));
        assert_eq!(parse("ann@probe:/var/store"), remote("ann@probe", "/var/store"));
        assert_eq!(parse("probe:a:b"), remote("probe", "a:b"));
        assert_eq!(parse("[2001:db8::1]:store"), remote("[2001:db8::1]", "store"));
        assert_eq!(parse("ann@[::1]:store"), remote("ann@[::1]", "store"));
        for here in ["store", "./a:b", "/a:b", ":store", "../x:y", ""] {
            assert_eq!(parse(here), Ok(None), "{here}");
        }
        for wrong in ["-oProxyCommand=reboot:store", "probe:", "[::1]:"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
