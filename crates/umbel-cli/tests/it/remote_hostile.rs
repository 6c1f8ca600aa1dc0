//! `umbel push`, `pull` and `shard` against servers that lie: the command ends soon, with one
//! sentence, and nothing is changed here.

use crate::remote::save_filter;
use crate::shell::{Answer, Shell, UMBEL, on_terminal};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A command that a server received.
struct Request {
    /// The words of the command.
    words: Vec<Vec<u8>>,
    /// The number of commands before it.
    number: usize,
    /// The port of the server.
    port: u16,
}

impl Request {
    fn name(&self) -> &str {
        str::from_utf8(&self.words[0]).unwrap()
    }

    /// Returns an argument that is a number.
    fn number_at(&self, place: usize) -> usize {
        str::from_utf8(&self.words[place]).unwrap().parse().unwrap()
    }
}

/// What a server does with a command.
enum Act {
    Send(Vec<u8>),
    /// Sends this, and closes the connection.
    Close(Vec<u8>),
    /// Sends this again and again.
    Repeat(Vec<u8>, Vec<u8>),
    /// Sends this, and then a byte in each interval.
    Drip(Vec<u8>, Duration),
}

fn send(text: impl AsRef<[u8]>) -> Act {
    Act::Send(text.as_ref().to_vec())
}

/// A server on this machine that does as a test says.
struct Hostile {
    port: u16,
    commands: Arc<Mutex<Vec<String>>>,
}

impl Hostile {
    fn start(act: impl Fn(&Request) -> Act + Send + Sync + 'static) -> Hostile {
        Hostile::at("127.0.0.1", act)
    }

    /// Starts a server on an address of this machine.
    fn at(host: &str, act: impl Fn(&Request) -> Act + Send + Sync + 'static) -> Hostile {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let (port, commands) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let (act, log) = (Arc::new(act), Arc::clone(&commands));
        // The threads end with the connections, and with the tests.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (act, log) = (Arc::clone(&act), Arc::clone(&log));
                thread::spawn(move || serve(&stream, port, &*act, &log));
            }
        });
        Hostile { port, commands }
    }

    fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/k", self.port)
    }

    fn commands(&self) -> Vec<String> {
        self.commands.lock().unwrap().clone()
    }
}

fn serve(mut stream: &TcpStream, port: u16, act: &dyn Fn(&Request) -> Act, log: &Mutex<Vec<String>>) {
    let mut input = BufReader::new(stream);
    while let Some(words) = words(&mut input) {
        let name = String::from_utf8_lossy(&words.iter().take(3).cloned().collect::<Vec<_>>().join(&b' '))
            .into_owned();
        let number = {
            let mut log = log.lock().unwrap();
            log.push(name);
            log.len() - 1
        };
        let sent = match act(&Request { words, number, port }) {
            Act::Send(bytes) => stream.write_all(&bytes),
            Act::Close(bytes) => {
                let _ = stream.write_all(&bytes);
                return;
            }
            Act::Repeat(start, bytes) => {
                let many = bytes.repeat((1 << 16) / bytes.len());
                stream.write_all(&start).and_then(|()| {
                    loop {
                        stream.write_all(&many)?;
                    }
                })
            }
            Act::Drip(start, interval) => stream.write_all(&start).and_then(|()| {
                loop {
                    stream.write_all(b"0")?;
                    thread::sleep(interval);
                }
            }),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Reads a command.
fn words(input: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let mut number = |kind: char| {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        line.trim_end().strip_prefix(kind)?.parse::<usize>().ok()
    };
    let count = number('*')?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let mut word = vec![0; line.trim_end().strip_prefix('$')?.parse::<usize>().ok()? + 2];
        input.read_exact(&mut word).ok()?;
        word.truncate(word.len() - 2);
        words.push(word);
    }
    Some(words)
}

/// A folder with a filter `f`, lines, and a file that a transfer would replace.
fn shell() -> Shell {
    let shell = Shell::new();
    shell.write("lines", "apple\npear\n");
    shell.run("build lines -o f").ok();
    shell.write("old", "precious");
    shell
}

/// The commands that talk to a server, with the address in place of ADDRESS.
const COMMANDS: [&str; 8] = [
    "pull ADDRESS -f -o old",
    "pull ADDRESS -o new",
    "push f ADDRESS",
    "push --replace f ADDRESS",
    "shard check ADDRESS lines",
    "shard add ADDRESS lines",
    "shard info ADDRESS",
    "shard create ADDRESS -n 100 --shards 2",
];

/// Asserts that a command fails with one sentence, within bounded memory, and changes no file.
#[track_caller]
fn fails(shell: &Shell, command: &str, address: &str) -> String {
    let arguments = command.replace("ADDRESS", address);
    let start = Instant::now();
    // Half a gigabyte of address space: a process without a bound ends with a signal.
    let answer = shell.script(&format!("ulimit -v 524288; exec {UMBEL} {arguments}")).output().unwrap();
    let answer = Answer {
        code: answer.status.code(),
        signal: None,
        stdout: answer.stdout,
        stderr: String::from_utf8(answer.stderr).unwrap(),
    };
    answer.refused(&[]);
    assert!(start.elapsed() < Duration::from_secs(100), "{command}: {:?}", start.elapsed());
    assert_eq!(shell.read("old"), b"precious", "{command}");
    let others = shell.names(".").into_iter().filter(|name| !["f", "lines", "old"].contains(&name.as_str()));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<String>::new(), "{command}: {}", answer.stderr);
    answer.stderr
}

#[test]
fn a_response_of_the_wrong_kind_is_an_error() {
    let shell = shell();
    for response in [
        "+OK\r\n",
        "+PONG\r\n",
        ":-1\r\n",
        ":9223372036854775807\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "$3\r\nabc\r\n",
        "*2\r\n$1\r\na\r\n:1\r\n",
        "*2\r\n:-5\r\n$1\r\na\r\n",
        "*3\r\n:5\r\n$5\r\nabcde\r\n:1\r\n",
        "*2\r\n:5\r\n$5\r\nabcde\r\n",
        "*2\r\n:5\r\n$3\r\nabc\r\n",
        "*2\r\n:5\r\n$0\r\n\r\n",
        "*2\r\n:0\r\n$0\r\n\r\n",
        "*2\r\n:9223372036854775807\r\n$0\r\n\r\n",
        "*2\r\n:9223372036854775807\r\n$5\r\nabcde\r\n",
        "-ERR no\r\n",
        "-MOVED\r\n",
        "-MOVED 1\r\n",
        "-MOVED 1 127.0.0.1\r\n",
        "-ASK 1 127.0.0.1:99999\r\n",
        "-\r\n",
        "$12\r\numbel-shards\r\n",
        "$18\r\numbel-shards 99999\r\n",
        "$15\r\numbel-shards 24\r\n",
        "$41\r\numbel-shards 2 1025 fast 0000000000000000\r\n",
        "$39\r\numbel-shards 2 2 keyed 0000000000000007\r\n",
        // Not this protocol.
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "%1\r\n+a\r\n+b\r\n",
        "\0\0\0\0\r\n",
        "\r\n",
        "$5\r\nabcdefgh\r\n",
        "$x\r\n",
    ] {
        for command in COMMANDS {
            // Any answer that is not an error creates a shard.
            let creates = command.starts_with("shard create")
                && !response.starts_with(['-', '%', 'H', '\0', '\r'])
                && !response.starts_with("$5")
                && !response.starts_with("$x")
                && !response.starts_with("$-1");
            // A server that claims to have everything cannot be refuted, but this is too much.
            if !creates {
                let server = Hostile::start(move |_| send(response));
                fails(&shell, command, &server.address());
            }
        }
    }
}

#[test]
fn a_connection_that_closes_in_the_middle_is_an_error() {
    let shell = shell();
    for response in ["", "*", "*2\r\n", "*2\r\n:100\r\n$100\r\nabc", "$5\r\nabc", "-ERR", ":1", "+O"] {
        for command in COMMANDS {
            let server = Hostile::start(move |_| Act::Close(response.as_bytes().to_vec()));
            let said = fails(&shell, command, &server.address());
            assert!(
                said.contains("broke") || said.contains("not complete"),
                "{command} {response:?}: {said}"
            );
        }
    }
}

#[test]
fn endless_responses_take_no_memory() {
    let shell = shell();
    for (start, repeated) in [
        ("+", "x"),
        ("-ERR ", "x"),
        (":", "1"),
        ("$9223372036854775807\r\n", "x"),
        ("$536870912\r\n", "x"),
        ("*9223372036854775807\r\n", ":1\r\n"),
        ("*1000000000\r\n", "$0\r\n\r\n"),
        ("*2\r\n:9223372036854775807\r\n$4294967296\r\n", "x"),
        ("", "*1\r\n"),
        ("*60000\r\n", "*60000\r\n"),
    ] {
        for command in ["pull ADDRESS -f -o old", "push f ADDRESS", "shard check ADDRESS lines"] {
            let act = move |_: &Request| Act::Repeat(start.into(), repeated.into());
            let server = Hostile::start(act);
            let said = fails(&shell, command, &server.address());
            assert!(
                said.contains("larger than any that umbel asks for") || said.contains("RESP"),
                "{command} {start:?}: {said}"
            );
        }
    }
}

#[test]
fn a_server_that_is_silent_or_slow_is_left_after_the_timeout() {
    let shell = shell();
    for start in ["", "+", "$1000\r\n", "*2\r\n:1000\r\n$1000\r\n"] {
        for command in COMMANDS {
            let server = Hostile::start(move |_| Act::Drip(start.into(), Duration::from_millis(100)));
            let said = fails(&shell, &format!("{command} --timeout 500ms"), &server.address());
            assert!(
                said.contains("does not respond, or too slowly: --timeout"),
                "{command} {start:?}: {said}"
            );
        }
    }
    // One that accepts connections and does nothing else, also in place of a TLS handshake.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for command in COMMANDS {
        for scheme in ["redis", "rediss"] {
            let insecure = if scheme == "rediss" { "--insecure" } else { "" };
            let command = format!("{command} --timeout 300ms {insecure}");
            let said = fails(&shell, &command, &format!("{scheme}://127.0.0.1:{port}/k"));
            assert!(said.contains("does not respond"), "{command}: {said}");
        }
    }
}

#[test]
fn endless_redirects_end() {
    let shell = shell();
    for (redirect, most) in
        [("MOVED 1 127.0.0.1:PORT", 100), ("ASK 1 127.0.0.1:PORT", 100), ("TRYAGAIN later", 20)]
    {
        for command in ["pull ADDRESS -f -o old", "push f ADDRESS", "shard check ADDRESS lines"] {
            let act = move |request: &Request| match request.name() {
                "ASKING" => send("+OK\r\n"),
                _ => send(format!("-{redirect}\r\n").replace("PORT", &request.port.to_string())),
            };
            let server = Hostile::start(act);
            let said = fails(&shell, command, &server.address());
            assert!(said.contains("from one server to the next"), "{command} {redirect}: {said}");
            let commands = server.commands().len();
            assert!((2..most).contains(&commands), "{commands}");
        }
    }
}

/// Returns the response to UMBEL.EXPORT for a filter.
fn export(filter: &[u8], request: &Request) -> Vec<u8> {
    let (offset, count) = (request.number_at(2), request.number_at(3));
    let piece = &filter[offset.min(filter.len())..(offset + count).min(filter.len())];
    let head = format!("*2\r\n:{}\r\n${}\r\n", filter.len(), piece.len());
    [head.as_bytes(), piece, b"\r\n"].concat()
}

/// Returns two filters of the same length, of several pieces each.
fn two_filters(folder: &Path) -> [Vec<u8>; 2] {
    [10_000, 20_000].map(|keys| {
        let path = folder.join("large");
        save_filter(&path, 9_000_000, keys);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(bytes.len() > 9 << 20);
        bytes
    })
}

#[test]
fn a_filter_that_changes_during_a_pull_is_never_mixed() {
    let shell = shell();
    let [one, two] = two_filters(&shell.path("."));
    let shared = Arc::new([one.clone(), two.clone()]);
    let pull = "pull ADDRESS -f -o old";

    // It changes all the time.
    let filters = Arc::clone(&shared);
    let server = Hostile::start(move |request| send(export(&filters[request.number % 2], request)));
    assert!(fails(&shell, pull, &server.address()).contains("changes while it is fetched"));

    // A bit of it is wrong, always.
    let mut damaged = one.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let server = Hostile::start(move |request| send(export(&damaged, request)));
    assert!(fails(&shell, pull, &server.address()).contains("damaged"));

    // The pieces are exchanged.
    let mut exchanged = one.clone();
    exchanged[4 << 20..].rotate_left(1 << 20);
    let server = Hostile::start(move |request| send(export(&exchanged, request)));
    assert!(fails(&shell, pull, &server.address()).contains("damaged"));

    // The length grows with each piece, and the pieces are longer or shorter than asked for.
    let filters = Arc::clone(&shared);
    let server = Hostile::start(move |request| {
        let head = format!("*2\r\n:{}\r\n$4194304\r\n", filters[0].len() + request.number);
        send([head.as_bytes(), &filters[0][..4 << 20], b"\r\n"].concat())
    });
    fails(&shell, pull, &server.address());
    for length in [0, 1, (4 << 20) - 1, (4 << 20) + 1] {
        let filters = Arc::clone(&shared);
        let server = Hostile::start(move |request| match request.number {
            0 => send(export(&filters[0], request)),
            _ => {
                let head = format!("*2\r\n:{}\r\n${length}\r\n", filters[0].len());
                send([head.as_bytes(), &filters[0][..length], b"\r\n"].concat())
            }
        });
        let answer = shell.run(&["pull", &server.address(), "-f", "-o", "old"]);
        answer.refused(&["instead of"]);
        // What had come before is of use to another attempt.
        std::fs::remove_file(shell.path("old.part")).unwrap();
    }
    assert_eq!(shell.read("old"), b"precious");

    // It changes once.
    let filters = Arc::clone(&shared);
    let server =
        Hostile::start(move |request| send(export(&filters[usize::from(request.number > 1)], request)));
    shell.run(&["pull", &server.address(), "-f", "-o", "old"]).code(0);
    assert!(shell.read("old") == two);
    assert_eq!(shell.names("."), ["f", "lines", "old"]);
}

#[test]
fn a_part_of_another_filter_is_not_continued() {
    let shell = shell();
    let [one, two] = two_filters(&shell.path("."));
    let filter = two.clone();
    let server = Hostile::start(move |request| send(export(&filter, request)));
    for part in [&one[..8 << 20], &one[..100], &[two.clone(), vec![0]].concat(), b"\0\0"] {
        shell.write("new.part", part);
        let answer = shell.run(&["pull", &server.address(), "-f", "-o", "new"]).code(0);
        assert!(
            answer.stderr.contains("another filter") && answer.stderr.contains("the transfer starts again"),
            "{}",
            answer.stderr
        );
        assert!(shell.read("new") == two);
        assert!(!shell.path("new.part").exists());
    }
    // A part of this one is continued.
    shell.write("new.part", &two[..8 << 20]);
    let before = server.commands().len();
    shell.run(&["pull", &server.address(), "-f", "-o", "new"]).ok();
    assert!(shell.read("new") == two);
    assert_eq!(server.commands().len() - before, 1 + two[8 << 20..].len().div_ceil(4 << 20));
}

#[test]
fn a_filter_that_does_not_fit_on_the_disk_is_not_fetched() {
    let shell = shell();
    let filter = shell.read("f");
    let start = filter.clone();
    // The header of a filter of 64 GiB, and nothing of its contents.
    let server = Hostile::start(move |_| {
        let head = format!("*2\r\n:{}\r\n$4194304\r\n", 1u64 << 62);
        send([head.as_bytes(), &start.repeat(1 + (4 << 20) / start.len())[..4 << 20], b"\r\n"].concat())
    });
    let said = fails(&shell, "pull ADDRESS -o new", &server.address());
    assert!(said.contains("not a filter") || said.contains("space"), "{said}");
}

#[test]
fn responses_that_nobody_asked_for_are_an_error() {
    let shell = shell();
    let [one, _] = two_filters(&shell.path("."));
    let server = Hostile::start(move |request| send([export(&one, request), b"+more\r\n".to_vec()].concat()));
    let answer = shell.run(&["pull", &server.address(), "-o", "new"]);
    answer.refused(&["more than it was asked"]);
    std::fs::remove_file(shell.path("new.part")).unwrap();
    let length = shell.read("f").len();
    for response in [format!(":{length}\r\n"), format!(":{}\r\n", length + 1), ":0\r\n:0\r\n".to_owned()] {
        let server = Hostile::start(move |_| send(&response));
        fails(&shell, "push f ADDRESS", &server.address());
    }
}

#[test]
fn a_push_to_a_server_that_counts_wrong_ends() {
    let shell = shell();
    for counts in [[0, 1], [0, 0], [0, i64::MAX], [5, 3]] {
        let server = Hostile::start(move |request| send(format!(":{}\r\n", counts[request.number.min(1)])));
        let said = fails(&shell, "push f ADDRESS", &server.address());
        assert!(said.contains("instead of"), "{said}");
    }
}

/// Returns the responses of a server that redirects to another one, and of that one.
fn redirecting(other_host: &'static str, redirect: &'static str) -> (Hostile, Hostile) {
    let other = Hostile::at(other_host, |request| match request.name() {
        "AUTH" | "ASKING" => send("+OK\r\n"),
        _ => send("-ERR not found\r\n"),
    });
    let port = other.port;
    let first = Hostile::start(move |request| match request.name() {
        "AUTH" => send("+OK\r\n"),
        _ => send(format!("-{redirect} 1 {other_host}:{port}\r\n")),
    });
    (first, other)
}

#[test]
fn a_redirect_to_another_host_does_not_get_the_password() {
    let shell = shell();
    for redirect in ["MOVED", "ASK"] {
        for command in COMMANDS {
            for from_environment in [false, true] {
                let run = |first: &Hostile, options: &str| {
                    let login = if from_environment { "" } else { "me:S3cretPw@" };
                    let address = format!("redis://{login}127.0.0.1:{}/k", first.port);
                    let mut command =
                        shell.command(&format!("{command} {options}").replace("ADDRESS", &address));
                    if from_environment {
                        command.env("REDISCLI_AUTH", "S3cretPw");
                    }
                    command.output().unwrap()
                };
                let (first, other) = redirecting("127.0.0.2", redirect);
                let output = run(&first, "");
                let said = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(2), "{said}");
                assert!(
                    said.contains("does not get the password")
                        && said.contains("--allow-redirect 127.0.0.2")
                        && !said.contains("S3cretPw"),
                    "{said}"
                );
                assert_eq!(other.commands(), Vec::<String>::new(), "{command}");
                // The user allows it.
                for allowed in ["127.0.0.2", "127.0.0.0/30"] {
                    let (first, other) = redirecting("127.0.0.2", redirect);
                    run(&first, &format!("--allow-redirect 10.0.0.1 --allow-redirect {allowed}"));
                    assert!(other.commands()[0].starts_with("AUTH "), "{:?}", other.commands());
                }
                // Another port of the same host.
                let (first, other) = redirecting("127.0.0.1", redirect);
                run(&first, "");
                assert!(other.commands()[0].starts_with("AUTH "), "{:?}", other.commands());
            }
        }
    }
    // Without a password there is nothing to protect.
    let (first, other) = redirecting("127.0.0.2", "MOVED");
    let said = fails(&shell, "pull ADDRESS -o new", &first.address());
    assert!(said.contains("nothing under"), "{said}");
    assert_eq!(other.commands().len(), 1);
}

#[test]
fn a_server_that_repeats_the_password_does_not_have_it_printed() {
    let shell = shell();
    for command in COMMANDS {
        for at_once in [true, false] {
            let server = Hostile::start(move |request| match at_once || request.name() != "AUTH" {
                true => send("-ERR unknown command 'AUTH', with args beginning with: 'S3cretPw' \r\n"),
                false => send("+OK\r\n"),
            });
            let address = format!("redis://me:S3cretP%77@127.0.0.1:{}/k", server.port);
            let said = fails(&shell, command, &address);
            assert!(!said.contains("S3cretPw"), "{said}");
        }
    }
}

#[test]
fn errors_of_servers_cannot_control_a_terminal() {
    let shell = shell();
    for command in COMMANDS {
        for error in
            ["-ERR \u{1b}]0;x\u{7}\u{1b}[31m\u{9b}2J\u{202e}end", "-WRONGTYPE \u{1b}[2J", "+\u{1b}[2J"]
        {
            let server = Hostile::start(move |_| send(format!("{error}\r\n")));
            let arguments = command.replace("ADDRESS", &server.address());
            let mut command = shell.command(&arguments);
            command.env("NO_COLOR", "1");
            let shown = on_terminal(command, Some(Stdio::null()));
            let obeyed = |c: char| c.is_control() && !"\r\n".contains(c) || c == '\u{202e}';
            assert!(!shown.text().contains(obeyed), "{arguments}: {:?}", shown.text());
        }
    }
    // Unchanged in a pipe, but of bounded length.
    let server = Hostile::start(|_| send(format!("-ERR \u{1b}[31m{}\r\n", "x".repeat(50_000))));
    let said = shell.run(&["pull", &server.address(), "-o", "new"]).code(2).stderr;
    assert!(said.contains("\u{1b}[31mxxx") && said.len() < 1000, "{}", said.len());
}

/// Files that another user may have put in the place of an unfinished transfer.
#[test]
fn a_part_that_others_could_have_made_is_refused() {
    let shell = shell();
    let filter = shell.read("f");
    let server = Hostile::start(move |request| send(export(&filter, request)));
    shell.write("victim", "precious");
    let part = shell.path("new.part");
    let script = |script: &str| assert!(shell.script(script).status().unwrap().success(), "{script}");
    let mut attacks = vec![
        ("ln -s victim new.part", "symbolic link"),
        ("ln -s nothing new.part", "symbolic link"),
        ("ln victim new.part", "hard link"),
        ("mkfifo new.part", "not a regular file"),
        ("mkdir new.part", "not a regular file"),
        ("touch new.part; chmod 666 new.part", "by others"),
        ("touch new.part; chmod 620 new.part", "by others"),
    ];
    // Only the administrator can make files of others.
    if rustix::process::geteuid().is_root() {
        attacks.push(("touch new.part; chmod 600 new.part; chown 1 new.part", "another user"));
    }
    for (attack, problem) in attacks {
        script(attack);
        let before = shell.contents(".");
        let start = Instant::now();
        let answer = shell.run(&["pull", &server.address(), "-o", "new"]);
        answer.refused(&["new.part", problem, "so no transfer is continued in it: remove it, or name"]);
        assert!(start.elapsed() < Duration::from_secs(60));
        assert!(shell.contents(".") == before, "{attack}");
        script("rm -rf new.part");
    }
    assert_eq!(shell.read("victim"), b"precious");
    // Nothing of this is in the way of an honest transfer, whose file only its owner can change.
    shell.run(&["pull", &server.address(), "-o", "new"]).ok();
    let mode = |name: &str| {
        std::os::unix::fs::PermissionsExt::mode(&shell.path(name).metadata().unwrap().permissions())
    };
    assert_eq!(mode("new"), mode("f"));
    // A file that is replaced keeps its permissions.
    shell.allow("new", 0o600);
    shell.run(&["pull", &server.address(), "-f", "-o", "new"]).ok();
    assert_eq!(mode("new") & 0o777, 0o600);
    assert!(!part.exists());
}

#[test]
fn only_one_process_writes_to_a_part() {
    let shell = shell();
    let [filter, _] = two_filters(&shell.path("."));
    let whole = filter.clone();
    let server = Hostile::start(move |request| match request.number_at(2) {
        0 => send(export(&filter, request)),
        _ => Act::Drip(Vec::new(), Duration::from_secs(1)),
    });
    let address = server.address();
    let mut first = shell.start(&["pull", &address, "-o", "new"]);
    crate::support::wait_for("the first piece", || {
        shell.path("new.part").metadata().is_ok_and(|part| part.len() > 0)
    });
    let answer = shell.run(&["pull", &address, "-o", "new"]);
    answer.refused(&["another umbel writes to new.part"]);
    first.child().kill().unwrap();
    drop(first);
    assert!(shell.read("new.part") == whole[..4 << 20]);
}

#[test]
fn the_password_of_an_address_is_not_in_the_list_of_processes() {
    let shell = shell();
    let server = Hostile::start(|request| match request.name() {
        "AUTH" => send("+OK\r\n"),
        _ => Act::Drip(Vec::new(), Duration::from_secs(1)),
    });
    let address = format!("redis://me:S3cretPw@127.0.0.1:{}/k", server.port);
    let mut process = shell.start(&["pull", &address, "-o", "new"]);
    crate::support::wait_for("a login", || server.commands().len() > 1);
    assert_eq!(server.commands()[0], "AUTH me S3cretPw");
    let shown = std::fs::read(format!("/proc/{}/cmdline", process.child().id())).unwrap();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(shown.contains("127.0.0.1") && !shown.contains("S3cretPw"), "{shown:?}");
}
