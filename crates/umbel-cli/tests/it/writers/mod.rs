//! Every way to write a file, tried from the same old state again and again: the process is killed,
//! or its system calls fail. Afterwards the files have to be the old or the new ones, and the next
//! call has to work.

mod shim;
mod soak;
mod table;

use crate::captures::{pcap, udp};
use crate::shell::{Answer, Process, Shell, UMBEL, Words, mix};
pub use shim::{Fault, shim};
pub use soak::{Random, Soak};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
pub use table::{ELSEWHERE, READERS, WRITERS, WRITING_OPTIONS};
use umbel_net::capture::Link;

/// A call of a command that writes files.
pub struct Writer {
    /// The command as `umbel --help` names it.
    pub command: &'static str,
    /// A shell script that makes the old state.
    prepare: &'static str,
    arguments: &'static str,
    whole: Whole,
}

/// The unit that has to be old or new as a whole.
enum Whole {
    /// All files together, byte by byte.
    Files,
    /// Each file by itself, byte by byte: they do not depend on each other.
    EachFile,
    /// The output of a script, for files with random numbers or times.
    Output(&'static str),
    /// Each line in the output of a script, for a command that does one thing after the other.
    Lines(&'static str),
}

/// How far a command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    Old,
    /// Some of its independent steps are done.
    Partway,
    New,
}

/// The state of a folder.
#[derive(Debug, PartialEq)]
struct State {
    /// The files by path, with identifiers left out.
    files: BTreeMap<String, Vec<u8>>,
    /// The output of the writer's script, if it has one.
    output: String,
}

/// A writer with its old and its new state.
pub struct Trial {
    writer: &'static Writer,
    /// The folder in its old state.
    before: Shell,
    old: State,
    new: State,
    /// The result of the command if nothing fails.
    answer: Answer,
    /// The time that the command takes if nothing fails.
    pub duration: Duration,
}

/// Returns whether a file is in progress by its name: without its final name, or a list of
/// addresses or a shard that is valid, but has not replaced the old one yet.
fn is_in_progress(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_part = name.starts_with(".umbel-") && name.ends_with(".part");
    is_part || [".exact.new", ".umbel.new", "manifest.next"].iter().any(|end| name.ends_with(end))
}

impl Writer {
    const fn new(
        command: &'static str,
        prepare: &'static str,
        arguments: &'static str,
        whole: Whole,
    ) -> Writer {
        Writer { command, prepare, arguments, whole }
    }

    fn state(&self, shell: &Shell) -> State {
        let mut files = BTreeMap::new();
        collect(&shell.path("."), "", &mut files);
        let output = match self.whole {
            Whole::Output(script) | Whole::Lines(script) => {
                let answer = Process::start(&mut shell.script(script)).finish();
                String::from_utf8_lossy(&answer.stdout).into_owned()
            }
            Whole::Files | Whole::EachFile => String::new(),
        };
        State { files, output }
    }
}

/// Adds the files below a folder, with identifiers of 128 bits in their names left out.
fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name of ours");
        let is_id = |part: &str| part.len() == 32 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parts: Vec<&str> = name.split('.').map(|part| if is_id(part) { "ID" } else { part }).collect();
        let path = format!("{prefix}{}", parts.join("."));
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{path}/"), files);
        } else {
            files.insert(path, fs::read(entry.path()).expect("a file of ours"));
        }
    }
}

/// Copies the contents of a folder, with their modes.
pub fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder can be listed") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&to).expect("a folder in a new one");
            copy(&entry.path(), &to);
            let mode = entry.metadata().expect("a folder of ours").permissions();
            fs::set_permissions(&to, mode).expect("a folder of ours");
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

/// Writes the inputs of the table.
fn write_inputs(shell: &Shell) {
    let numbered = |numbers: Range<u32>, line: fn(u32) -> String| -> String { numbers.map(line).collect() };
    shell.write("lines", numbered(1..301, |number| format!("{number}\n")));
    shell.write("more", numbered(301..401, |number| format!("{number}\n")));
    shell.write("pairs", numbered(1..301, |number| format!("{number}\tv{}\n", number % 7)));
    shell.write("changes", numbered(1..51, |number| format!("{number}\tv{}\n", number % 5)));
    shell.write("net.txt", "A B\nB C\nC A\nC D\n");
    for (name, phrase) in [("phrase", "correct horse\n"), ("phrase2", "battery staple\n")] {
        shell.write(name, phrase);
        shell.allow(name, 0o600);
    }
    shell.write("drop", "192.0.2.1 600\n198.51.100.0/24\n");
    for (folder, name, text) in [
        ("docs", "a", "one two three\n"),
        ("docs", "b", "two four\n"),
        ("lists", "old", "http://old.example/\n"),
        ("lists", "new", "http://new.example/\n"),
    ] {
        fs::create_dir_all(shell.path(folder)).expect("a folder");
        shell.write(&format!("{folder}/{name}"), text);
    }
    let frame = |number: u8| {
        let payload: Vec<u8> = (0..100).map(|at| mix(u64::from(number) << 32 | at) as u8).collect();
        udp([10, 0, 0, number].into(), [192, 0, 2, 1].into(), (1000, 53), &payload)
    };
    let table: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "../umbel-parquet/tests/golden/pages_zstd.parquet"].iter().collect();
    fs::create_dir(shell.path("lake")).expect("a folder");
    fs::copy(table, shell.path("lake/a.parquet")).expect("a golden file");
    shell.write("c.pcap", pcap(Link::ETHERNET, (0..200).map(frame)));
}

impl Trial {
    /// Makes the old and the new state of a writer.
    pub fn new(writer: &'static Writer) -> Trial {
        let before = Shell::new();
        write_inputs(&before);
        let prepared = Process::start(&mut before.script(&format!("set -e\n{}", writer.prepare))).finish();
        assert_eq!(prepared.code, Some(0), "{}: {}", writer.prepare, prepared.stderr);
        let copied = Shell::new();
        copy(&before.path("."), &copied.path("."));
        let start = Instant::now();
        let answer = copied.run(writer.arguments);
        let duration = start.elapsed();
        assert!(matches!(answer.code, Some(0 | 1)), "{}: {}", writer.arguments, answer.stderr);
        let (old, new) = (writer.state(&before), writer.state(&copied));
        let differ = match writer.whole {
            Whole::Files | Whole::EachFile => old.files != new.files,
            Whole::Output(_) | Whole::Lines(_) => old.output != new.output,
        };
        assert!(differ, "umbel {} changes nothing that is looked at: {:?}", writer.arguments, new.output);
        Trial { writer, before, old, new, answer, duration }
    }

    /// Returns a new folder in the old state.
    pub fn folder(&self) -> Shell {
        let shell = Shell::new();
        copy(&self.before.path("."), &shell.path("."));
        shell
    }

    /// Starts the command.
    pub fn start(&self, folder: &Shell) -> Process {
        folder.start(self.writer.arguments)
    }

    /// Returns a program that starts the command; its own arguments are already there.
    pub fn command_in(&self, mut program: Command) -> Command {
        program.arg(UMBEL).args(self.writer.arguments.words());
        program
    }

    /// Runs the command with failing calls. Returns the name of the first call that failed, if
    /// there was one.
    pub fn fail(&self, folder: &Shell, shim: &Path, fault: Fault) -> (Answer, Option<String>) {
        let log = tempfile::tempdir().expect("a temporary folder");
        let mut command = folder.command(self.writer.arguments);
        command.env("LD_PRELOAD", shim).env("UMBEL_FAULT", fault.setting());
        command.env("UMBEL_FAULT_LOG", log.path().join("call"));
        let answer = Process::start(&mut command).finish();
        (answer, fs::read_to_string(log.path().join("call")).ok())
    }

    /// Judges a folder after the command has ended, and the answer if it was not killed. Runs the
    /// command again if it has not done its work. Returns how far it came before.
    pub fn judge(&self, folder: &Shell, answer: &Answer) -> Result<Reached, String> {
        let killed = answer.signal == Some(9);
        let (found, left) = self.examine(folder);
        let reached = self.reached(&found)?;
        if !killed {
            self.judge_answer(answer, reached)?;
        }
        // A list of addresses, or shards that a manifest has made valid.
        let is_valid = |path: &String| path.ends_with("/manifest.next");
        let may_be_left = killed
            || answer.stderr.contains("cannot rename bad.exact.new")
            || left.iter().any(is_valid) && answer.code == self.answer.code;
        let parts = left.iter().filter(|path| path.ends_with(".part")).count();
        if parts > usize::from(killed) || left.len() > parts && !may_be_left {
            return Err(format!("files in progress were left: {left:?}"));
        }
        let found = match reached {
            Reached::New => found,
            Reached::Old | Reached::Partway => {
                let again = folder.run(self.writer.arguments);
                let found = self.examine(folder).0;
                if again.code != self.answer.code || self.reached(&found)? != Reached::New {
                    return Err(format!("the next call does not do its work: {}", again.stderr));
                }
                found
            }
        };
        match found.files.into_keys().find(|path| !self.new.files.contains_key(path)) {
            // A merge removes the files that it has covered, also the next time.
            Some(stray) if !self.old.files.contains_key(&stray) => Err(format!("{stray} is left")),
            _ => Ok(reached),
        }
    }

    /// Judges a run in which every call succeeded in the end: its result is that of any other run.
    pub fn judge_undisturbed(&self, folder: &Shell, answer: &Answer) -> Result<(), String> {
        let outcome = format!("it ended with {:?} {:?}: {}", answer.code, answer.signal, answer.stderr);
        if answer.code != self.answer.code || self.judge(folder, answer)? != Reached::New {
            return Err(outcome);
        }
        let repeats = matches!(self.writer.whole, Whole::Files);
        if repeats && (&answer.stdout, &answer.stderr) != (&self.answer.stdout, &self.answer.stderr) {
            return Err(format!("another output: {:?}, {outcome}", String::from_utf8_lossy(&answer.stdout)));
        }
        Ok(())
    }

    /// Returns the number of bytes of the files that the command writes.
    pub fn written_bytes(&self) -> u64 {
        let is_new = |(path, bytes): &(&String, &Vec<u8>)| self.old.files.get(*path) != Some(bytes);
        self.new.files.iter().filter(is_new).map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Returns the state of a folder, and the files in progress, which are not part of it.
    fn examine(&self, folder: &Shell) -> (State, Vec<String>) {
        let mut found = self.writer.state(folder);
        let left: Vec<String> = found.files.keys().filter(|path| is_in_progress(path)).cloned().collect();
        found.files.retain(|path, _| !is_in_progress(path));
        (found, left)
    }

    /// Returns how far the command came, or an error if the state is neither old nor new.
    fn reached(&self, found: &State) -> Result<Reached, String> {
        let (old, new) = (&self.old, &self.new);
        match self.writer.whole {
            Whole::Files if found.files == new.files => Ok(Reached::New),
            Whole::Files if found.files == old.files => Ok(Reached::Old),
            Whole::Files => Err(format!("neither old nor new: {}", self.mixture(found))),
            Whole::EachFile => {
                if let Some((path, _)) = found.files.iter().find(|(path, bytes)| {
                    old.files.get(*path) != Some(bytes) && new.files.get(*path) != Some(bytes)
                }) {
                    return Err(format!("{path} is neither old nor new"));
                }
                if let Some(path) = old.files.keys().find(|path| !found.files.contains_key(*path)) {
                    return Err(format!("{path} is gone"));
                }
                Ok(if found.files == new.files { Reached::New } else { Reached::Partway })
            }
            Whole::Output(_) | Whole::Lines(_) if found.output == new.output => Ok(Reached::New),
            Whole::Output(_) | Whole::Lines(_) if found.output == old.output => Ok(Reached::Old),
            Whole::Output(_) => Err(format!("neither old nor new: {:?}", found.output)),
            Whole::Lines(_) => {
                let has = |state: &State, line: &str| state.output.lines().any(|other| other == line);
                let is_known = |line: &&str| has(old, line) || has(new, line);
                if let Some(line) = found.output.lines().find(|line| !is_known(line)) {
                    return Err(format!("neither old nor new: {line:?}"));
                }
                match old.output.lines().find(|line| has(new, line) && !has(found, line)) {
                    Some(line) => Err(format!("{line:?} is gone")),
                    None => Ok(Reached::Partway),
                }
            }
        }
    }

    /// Describes files that are neither all old nor all new.
    fn mixture(&self, found: &State) -> String {
        let paths: BTreeSet<&String> =
            [found, &self.old, &self.new].into_iter().flat_map(|state| state.files.keys()).collect();
        let describe = |path: &String| {
            let [found, old, new] = [found, &self.old, &self.new].map(|state| state.files.get(path));
            let is = match found {
                found if old == new && found == old => return None,
                None => "absent",
                found if found == old => "old",
                found if found == new => "new",
                _ => "another one",
            };
            Some(format!("{path} is {is}"))
        };
        paths.into_iter().filter_map(describe).collect::<Vec<_>>().join(", ")
    }

    /// Judges the exit code and the messages of a command that was not killed.
    fn judge_answer(&self, answer: &Answer, reached: Reached) -> Result<(), String> {
        let said = &answer.stderr;
        let is_done = answer.code == self.answer.code;
        if !is_done && answer.code != Some(2) {
            return Err(format!("it ended with {:?} {:?}: {said}", answer.code, answer.signal));
        }
        if is_done && reached != Reached::New {
            return Err(format!("it reports success, but came only to {reached:?}: {said}"));
        }
        // An input that cannot be read to its end is reported after the rest was written.
        let is_about_input =
            ["cannot read", "umbel: docs", "umbel: lake"].iter().any(|part| said.contains(part));
        // A list of addresses is in use before it gets its final name.
        let is_about_name = said.contains("cannot rename bad.exact.new");
        // The documents of a vault are changed before its list of them is complete.
        let is_about_list = said.contains("done, but the list of documents in v could not be completed");
        let is_excused = is_about_input || is_about_name || is_about_list;
        if !is_done && reached == Reached::New && !is_excused {
            return Err(format!("it has done everything, but fails: {said}"));
        }
        // Reports of what was done may come before the error.
        let ends_with_error = said.lines().last().is_some_and(|line| line.starts_with("umbel: "));
        if said.contains("panicked") || !(is_done || ends_with_error) {
            return Err(format!("not a message: {said:?}"));
        }
        Ok(())
    }
}

impl Display for Trial {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "umbel {}", self.writer.arguments)
    }
}
