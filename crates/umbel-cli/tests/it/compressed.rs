//! Compressed inputs are recognised by their first bytes, whatever their names, and decompressed.

use crate::shell::{self, Shell, gzip};

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Returns every line twice, in several blocks of 256 KiB.
fn plain() -> Vec<u8> {
    let lines = shell::lines(1, 0..20_000);
    [&lines[..], &lines].concat()
}

#[test]
fn every_command_reads_compressed_input() {
    let shell = Shell::new();
    let plain = plain();
    // Cut in the middle of a line: separately compressed pieces are one text.
    let (left, right) = plain.split_at(plain.len() / 3);
    assert_ne!(left.last(), Some(&b'\n'));
    // Names without an extension, and one with a wrong extension.
    let packed = [
        ("one", gzip(&plain)),
        ("members", [gzip(left), gzip(b""), gzip(right)].concat()),
        ("really-gzip.zst", gzip(&plain)),
        ("frame.txt", zstd(&plain)),
        ("frames", [zstd(left), zstd(b""), zstd(right)].concat()),
        ("not-compressed.gz", plain.clone()),
    ];
    let firsts = shell::lines(1, 0..20_000);
    shell.build("half", "-p 1e-9", shell::lines(1, 0..10_000));
    let half = shell.pipe("check half", &plain).ok().stdout;
    shell.build("expected", "-p 1e-9", &plain);
    let capacity = shell.info("expected")["capacity"].to_string();
    for (name, bytes) in &packed {
        shell.write(name, bytes);
        for stdin in [false, true] {
            let run = |args: &[&str]| match stdin {
                false => shell.run(&[args, &[name]].concat()).ok(),
                true => shell.pipe(args, bytes).ok(),
            };
            run(&["build", "-f", "-p", "1e-9", "-o", "f"]);
            assert!(shell.read("f") == shell.read("expected"), "build, {name}");
            shell.build("f", &["-f", "-p", "1e-9", "-n", &capacity], "");
            run(&["add", "f"]);
            assert!(shell.read("f") == shell.read("expected"), "add, {name}");
            assert!(run(&["check", "half"]).stdout == half, "check, {name}");
            assert!(run(&["uniq", "-q"]).stdout == firsts, "uniq, {name}");
        }
    }
}

#[test]
fn inputs_may_be_mixed_and_have_headers() {
    let shell = Shell::new();
    shell.write("a", gzip(b"id\tkey\n1\tapple"));
    shell.write("b", "key\tid\npear\t2\n");
    shell.write("c", zstd(b"x\tkey\ty\n0\tapple\t0\n0\tplum\t0\n"));
    shell.write("d", gzip(b""));
    let args = ["uniq", "-q", "--header", "-F", "key", "--print-field", "a", "b", "c", "d"];
    assert_eq!(shell.run(&args).ok().text(), "apple\npear\nplum\n");
}

#[test]
fn text_that_starts_with_part_of_a_magic_number_is_text() {
    let shell = Shell::new();
    for text in
        [&b"\x1f"[..], b"\x1f\x8b", b"\x1f\x8b\n", b"(", b"(\xb5/", b"(\xb5x\n", b"\x89UMBEL\r", b"\x89PNG\n"]
    {
        let expected = [text.strip_suffix(b"\n").unwrap_or(text), b"\n"].concat();
        assert_eq!(shell.pipe("uniq -q", text).ok().stdout, expected, "{text:?}");
        shell.write("text", text);
        assert_eq!(shell.run("uniq -q text").ok().stdout, expected, "{text:?}");
    }
}
