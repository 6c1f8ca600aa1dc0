//! Reads and writes that are short, or interrupted by a signal, change no result.

use crate::captures::{pcap, udp};
use crate::shell::{Answer, Process, Shell, gzip, line, lines};
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use umbel_net::capture::Link;

/// Replaces functions of the C library: every third call is interrupted, and the others transfer as
/// little as they may.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static __thread unsigned calls;

static int interrupted(void) {
    if (++calls % 3) return 0;
    errno = EINTR;
    return 1;
}

static size_t one(size_t n) { return n > 1 ? 1 : n; }
static size_t some(size_t n) { return n - n / 2; }

ssize_t read(int fd, void *to, size_t n) { return interrupted() ? -1 : syscall(SYS_read, fd, to, one(n)); }
ssize_t pread64(int fd, void *to, size_t n, off_t at) { return interrupted() ? -1 : syscall(SYS_pread64, fd, to, one(n), at); }
ssize_t readv(int fd, const struct iovec *to, int count) {
    while (count > 1 && !to->iov_len) to++, count--;
    return count ? read(fd, to->iov_base, to->iov_len) : 0;
}
ssize_t write(int fd, const void *from, size_t n) { return interrupted() ? -1 : syscall(SYS_write, fd, from, some(n)); }
ssize_t pwrite64(int fd, const void *from, size_t n, off_t at) { return interrupted() ? -1 : syscall(SYS_pwrite64, fd, from, some(n), at); }
ssize_t writev(int fd, const struct iovec *from, int count) {
    while (count > 1 && !from->iov_len) from++, count--;
    return count ? write(fd, from->iov_base, from->iov_len) : 0;
}
"#;

/// Compiles the shim; returns `None` without a C compiler.
fn shim(shell: &Shell) -> Option<PathBuf> {
    shell.write("shim.c", SHIM);
    let path = shell.path("shim.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&path).arg(shell.path("shim.c"));
    match cc.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(path)
        }
        Err(error) => {
            println!("skipped: short reads need the C compiler cc: {error}");
            None
        }
    }
}

/// The result of a command: its answer, and all files that it left.
type Trial = (Option<i32>, Vec<u8>, String, BTreeMap<String, Vec<u8>>);

/// Runs a command in a folder with these files, and with short reads and writes if there is a shim.
fn attempt(files: &[(&str, Vec<u8>)], prepare: &[&str], script: &str, shim: Option<&PathBuf>) -> Trial {
    let shell = Shell::new();
    fs::create_dir(shell.path("docs")).unwrap();
    for (name, bytes) in files {
        shell.write(name, bytes);
    }
    for command in prepare {
        shell.run(*command).ok();
    }
    let shim = shim.map(|path| path.display().to_string()).unwrap_or_default();
    let umbel = format!("umbel() {{ LD_PRELOAD='{shim}' command umbel \"$@\"; }}");
    let mut command = shell.script(&format!("{umbel}; {script}"));
    let Answer { code, stdout, stderr, signal } = Process::start(&mut command).finish();
    assert_eq!(signal, None, "{script}: {stderr}");
    (code, stdout, stderr, shell.contents("."))
}

/// Returns a capture with datagrams.
fn capture() -> Vec<u8> {
    let hosts = [[10, 1, 1, 1], [10, 2, 2, 2]].map(IpAddr::from);
    let payload = |number: u64| lines(7, number * 10..number * 10 + 10);
    let datagrams = (0..20).map(|number| udp(hosts[0], hosts[1], (1000, 53), &payload(number)));
    pcap(Link::ETHERNET, datagrams)
}

#[test]
fn short_and_interrupted_reads_change_no_result() {
    let tools = Shell::new();
    let Some(shim) = shim(&tools) else { return };
    let keys = lines(1, 0..3000);
    let sentence = [&line(7, 1)[..], &line(7, 2), &line(7, 3), &line(7, 4)].concat();
    let pairs: Vec<u8> =
        (0..500).flat_map(|number| format!("key{number}\t{}\n", number % 7).into_bytes()).collect();
    let files = [
        ("keys", keys.clone()),
        ("half", lines(1, 0..1500)),
        ("keys.gz", gzip(&keys)),
        ("keys.zst", zstd::encode_all(&keys[..], 1).unwrap()),
        ("csv", b"id,name\n1,\"a\nb\"\n2,\"c\"\"d\"\n".repeat(200)),
        ("pairs", pairs),
        ("capture", capture()),
        ("capture.gz", gzip(capture())),
        ("sentence", sentence),
        ("text", b"The programs of the table, apple and banana.\n".repeat(50)),
        ("words", b"apple\nbanana\nThe\nof\n".to_vec()),
        ("docs/one", b"apple\n".repeat(50)),
        ("docs/two.gz", gzip(b"banana\n".repeat(50))),
        ("urls.txt", b"evil.example\nhost.example/bad/\n".to_vec()),
        ("drop", b"192.0.2.0/24\n".to_vec()),
    ];
    let mut compared = 0;
    for (prepare, script) in [
        (&[][..], "umbel build -o f keys"),
        (&[], "umbel build -n 3000 -o f keys.gz && umbel build --kind fuse -o g keys.zst"),
        (&[], "umbel build -o f < keys && umbel info --json f"),
        (&[], "umbel build --csv -F 2 -o f csv"),
        (&["build -o f half"], "umbel add f keys && umbel meta f name=value && umbel meta f"),
        (&["build -p 1e-9 -o f half"], "umbel check f keys keys.gz keys.zst; cat keys | umbel check -c f"),
        (&[], "umbel uniq -n 3000 -p 1e-9 half keys keys.gz"),
        (&["build --kind counting -o f keys"], "umbel remove f half"),
        (&["build -o f half"], "umbel union f f -o g && umbel compare f g"),
        (&[], "umbel map build -o m pairs && umbel map get m pairs"),
        (&[], "umbel table put t pairs && umbel table get t pairs && umbel table scan t"),
        (&[], "umbel count build -o c keys half && umbel count get c half"),
        (&[], "umbel distinct keys half; umbel top half keys"),
        (
            &[],
            "umbel index build -o docs/index docs && umbel grep --index docs/index -w apple docs; umbel grep --no-index banana docs",
        ),
        (&[], "umbel spell --lang words text"),
        (&[], "umbel hyphenate text"),
        (&[], "umbel similar text keys"),
        (&[], "umbel url build -o u urls.txt && umbel url check u evil.example good.example"),
        (&[], "umbel password build --unsealed -o p words && echo apple | umbel password check p"),
        (&[], "umbel net record capture --seed 2 -o store && umbel net attribute store --excerpt sentence"),
        (&[], "umbel net scan --rules words text capture.gz"),
        (&[], "echo 'check 192.0.2.7' | umbel net block --seed 2 --list drop --at 5"),
    ] {
        let plain = attempt(&files, prepare, script, None);
        let short = attempt(&files, prepare, script, Some(&shim));
        assert_eq!((plain.0, &plain.2), (short.0, &short.2), "{script}");
        assert!(plain.1 == short.1, "{script}: {} and {} bytes", plain.1.len(), short.1.len());
        let names = |trial: &Trial| trial.3.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&plain), names(&short), "{script}");
        for (name, bytes) in &plain.3 {
            assert!(*bytes == short.3[name], "{script}: {name}");
        }
        assert!(matches!(plain.0, Some(0 | 1)), "{script}: {}", plain.2);
        compared += 1;
    }
    assert_eq!(compared, 22);
}
