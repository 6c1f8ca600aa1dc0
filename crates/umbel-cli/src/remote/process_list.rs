//! Passwords in the list of processes, which every user of a machine can read.
//!
//! The arguments of a process are public, its environment is not. A command that was started with a
//! password in an address starts itself again, as the same process, with the password in the
//! environment. For the moment before, only `REDISCLI_AUTH` helps.

use super::percent;
use crate::terminal::redact;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use zeroize::Zeroizing;

/// The environment variable with the password, in the form that it has in an address.
const VARIABLE: &str = "UMBEL_ADDRESS_PASSWORD";

/// The commands that take addresses.
const COMMANDS: [&str; 3] = ["push", "pull", "shard"];

/// Moves the password of an address on the command line to the environment.
pub fn hide_password() {
    let mut arguments: Vec<OsString> = env::args_os().collect();
    let takes_address = arguments.get(1).is_some_and(|command| COMMANDS.iter().any(|name| command == name));
    if !takes_address || env::var_os(VARIABLE).is_some() {
        return;
    }
    let password_of = |argument: &OsString| redact::login(argument.to_str()?).map(|login| login.password);
    let Some((place, password)) = arguments
        .iter()
        .enumerate()
        .skip(2)
        .find_map(|(place, argument)| Some((place, password_of(argument)?)))
    else {
        return;
    };
    // Under a loader or an emulator, the running program is another one.
    let program = env::current_exe().ok();
    let program = program.filter(|path| path.file_name() == Path::new(&arguments[0]).file_name());
    if let (Some(address), Some(program)) = (arguments[place].to_str(), program) {
        arguments[place] = redact::address(address).into();
        let mut again = Command::new(program);
        again.arg0(&arguments[0]).args(&arguments[1..]).env(VARIABLE, password);
        // If the program cannot be started again, the command still works.
        let _ = again.exec();
    }
}

/// Returns the password that stands in the environment for one that is hidden in an address.
pub fn hidden_password(shown: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    if shown != redact::HIDDEN.as_bytes() {
        return None;
    }
    env::var(VARIABLE).ok().map(|password| Zeroizing::new(percent::decode(&password)))
}
