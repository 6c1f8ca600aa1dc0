//! Every error is one sentence that names the problem, with exit code 2, and nothing on disk
//! changes.

use crate::shell::{Answer, Process, Shell, UMBEL, Words, lines};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A command, and the fragments that its error must contain.
type Case = (&'static str, &'static [&'static str]);

/// Returns a folder with lines and with intact and damaged filters.
fn prepared() -> Shell {
    let shell = Shell::new();
    shell.write("lines", lines(1, 0..1000));
    shell.write("table", "id\tmail\n1\ta@b.c\n2\td@e.f\n");
    shell.run("build -n 1000 -o filter lines").ok();
    shell.run("build -n 100000 -o large lines").ok();
    for (name, options) in [
        ("bits", "-n 2000"),
        ("partitioned", "-n 1000 --kind partitioned"),
        ("seeded", "-n 1000 --seed 7"),
        ("literature", "-n 1000 --kind literature --hash murmur3"),
    ] {
        shell.run(&format!("build {options} -o {name} lines")).ok();
    }
    for (key, strength) in [("secret", "keyed"), ("other", "keyed"), ("seal", "sealed")] {
        shell.run(&format!("key new {key} --hash {strength}")).ok();
    }
    shell.run("build -n 1000 --key-file secret -o locked lines").ok();

    let filter = shell.read("filter");
    let changed = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = filter.clone();
        change(&mut bytes);
        shell.write(name, bytes);
    };
    changed("empty", &Vec::clear);
    changed("stub", &|bytes| bytes.truncate(10));
    changed("short", &|bytes| bytes.truncate(300));
    changed("longer", &|bytes| bytes.push(0));
    changed("header", &|bytes| bytes[40] ^= 1);
    changed("body", &|bytes| *bytes.last_mut().expect("it is not empty") ^= 0x80);
    changed("newer", &|bytes| {
        bytes[8..10].copy_from_slice(&2u16.to_le_bytes());
        reseal(bytes);
    });
    fs::create_dir(shell.path("directory")).unwrap();
    symlink("loop", shell.path("loop")).unwrap();
    symlink("lines", shell.path("link")).unwrap();
    symlink("nowhere/filter", shell.path("dangling")).unwrap();
    mkfifoat(CWD, shell.path("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    shell
}

/// Writes a valid checksum into a changed header.
fn reseal(bytes: &mut [u8]) {
    let end = u32::from_le_bytes(bytes[20..24].try_into().unwrap()) as usize;
    let sum = xxh3_64_with_seed(&bytes[..end - 8], 0x006c_6562_6d75);
    bytes[end - 8..end].copy_from_slice(&sum.to_le_bytes());
}

/// Asserts that every command is refused with its message and changes nothing.
fn all_are_refused(shell: &Shell, cases: &[Case]) {
    let before = shell.contents(".");
    for &(arguments, says) in cases {
        println!("umbel {arguments}");
        shell.run(arguments).refused(says);
        assert!(shell.contents(".") == before, "`umbel {arguments}` has changed something");
    }
}

#[test]
fn missing_and_unreadable_files_are_named() {
    all_are_refused(
        &prepared(),
        &[
            ("check nothing lines", &["cannot open nothing", "No such file or directory"]),
            ("add nothing lines", &["cannot open nothing", "No such file or directory"]),
            ("info nothing", &["cannot open nothing", "No such file or directory"]),
            ("meta nothing", &["cannot open nothing", "No such file or directory"]),
            ("meta nothing a=b", &["cannot open nothing", "No such file or directory"]),
            ("why nothing key", &["cannot open nothing", "No such file or directory"]),
            ("fold nothing -o new", &["cannot open nothing", "No such file or directory"]),
            ("union filter nothing -o new", &["cannot open nothing", "No such file or directory"]),
            ("build --like nothing -o new lines", &["cannot open nothing", "No such file or directory"]),
            ("build -o new nothing", &["cannot open nothing", "No such file or directory"]),
            // Reported before the first line is read.
            ("check filter lines nothing", &["cannot open nothing", "No such file or directory"]),
            ("add filter lines nothing", &["cannot open nothing", "No such file or directory"]),
            ("uniq lines nothing", &["cannot open nothing", "No such file or directory"]),
            ("build -o new loop", &["cannot open loop", "symbolic links"]),
            ("check loop lines", &["cannot open loop", "symbolic links"]),
            ("add loop lines", &["cannot open loop", "symbolic links"]),
            ("build -o new directory", &["directory is a directory", "give the files in it"]),
            ("check filter directory", &["directory is a directory", "give the files in it"]),
            ("check directory lines", &["cannot open directory/manifest", "not a filter in shards"]),
            ("add directory lines", &["cannot open directory/manifest", "not a filter in shards"]),
            ("info directory", &["cannot open directory/manifest", "not a filter in shards"]),
            ("check fifo lines", &["cannot read fifo", "not a regular file"]),
            ("add fifo lines", &["cannot read fifo", "not a regular file"]),
            ("info fifo", &["cannot read fifo", "not a regular file"]),
            ("meta fifo", &["cannot read fifo", "not a regular file"]),
            ("index info fifo", &["fifo", "not a regular file"]),
            ("index which fifo word", &["fifo", "not a regular file"]),
            ("password check --range fifo", &["fifo", "not a regular file"]),
            ("vault info fifo", &["fifo"]),
        ],
    );
}

#[test]
fn an_error_and_each_of_its_causes_are_printed_once() {
    let shell = prepared();
    let missing = "No such file or directory (os error 2)";
    for (arguments, said) in [
        ("info nothing", format!("cannot open nothing: {missing}")),
        ("index info nothing", format!("cannot open nothing: {missing}")),
        (
            "net attribute nothing --excerpt-hex 00112233445566778899aabbccddeeff",
            format!("cannot open the store nothing: {missing}"),
        ),
        ("password range nothing 00000", format!("cannot open nothing: {missing}")),
        (
            "vault list nothing",
            "there is no vault in nothing: `umbel vault add nothing FILE` makes one".to_string(),
        ),
        (
            "info lines",
            "cannot use lines: this is not a filter file: it does not start with the umbel signature; \
             if another program wrote it, name its format with --format"
                .to_string(),
        ),
    ] {
        println!("umbel {arguments}");
        let answer = shell.run(arguments);
        answer.refused(&[]);
        assert_eq!(answer.stderr, format!("umbel: {said}\n"));
    }
}

#[test]
fn damaged_filters_and_other_files_are_refused() {
    const BAD: &[(&str, &[&str])] = &[
        ("lines", &["lines: this is not a filter file"]),
        ("empty", &["empty: this is not a filter file"]),
        ("stub", &["stub: the file is truncated", "10 of"]),
        ("short", &["short: the file is truncated", "300 of 1408 bytes"]),
        ("longer", &["longer: the file has 1409 bytes instead of 1408"]),
        ("header", &["header: the file is damaged", "the header"]),
        ("body", &["body: the file is damaged", "chunk 0 of 1"]),
        ("newer", &["newer: the file has format version 2", "written by a newer umbel"]),
    ];
    let shell = prepared();
    let before = shell.contents(".");
    for (bad, says) in BAD {
        for arguments in [
            "check BAD table",
            "check filter --with BAD table",
            "add BAD table",
            "add --new BAD table",
            "info BAD",
            "info --verify BAD",
            "info --json BAD",
            "why BAD key",
            "meta BAD name=value",
            "union filter BAD -o new",
            "union BAD filter -o new",
            "intersect filter BAD -o new",
            "compare filter BAD",
            "fold BAD -o new",
            "convert BAD --kind standard -o new",
            "build --like BAD -o new table",
        ] {
            let arguments = arguments.replace("BAD", bad);
            println!("umbel {arguments}");
            shell.run(&arguments).refused(says);
            assert!(shell.contents(".") == before, "`umbel {arguments}` has changed something");
        }
    }
    // The other filters are still described.
    let answer = shell.run("info --verify body filter short");
    assert_eq!((answer.code, answer.text()), (Some(2), "filter: intact, all 2 checksums hold\n"));
    let said: Vec<&str> = answer.stderr.lines().collect();
    assert!(
        said[0].starts_with("umbel: cannot use body:") && said[1].starts_with("umbel: cannot use short:"),
        "{said:?}"
    );
}

#[test]
fn incompatible_filters_are_named_with_the_difference() {
    const BITS: &[&str] =
        &["filter and bits", "the filters cannot be combined: their number of bits is 9600 in one and 19200"];
    all_are_refused(
        &prepared(),
        &[
            ("union filter bits -o new", BITS),
            ("intersect filter bits -o new", BITS),
            ("compare filter bits", BITS),
            ("union filter seeded -o new", &["filter and seeded", "seed is 0 in one and 7"]),
            ("compare filter filter seeded", &["filter and seeded", "seed is 0 in one and 7"]),
            (
                "union filter partitioned -o new",
                &["filter and partitioned", "kind is standard", "partitioned"],
            ),
            ("union filter literature -o new", &["filter and literature", "kind is standard", "literature"]),
            (
                "union --key-file secret filter locked -o new",
                &["filter and locked", "hash is fast in one and keyed"],
            ),
            ("union -f filter filter -o filter", &["filter is both an input and the output"]),
            ("union filter -o new", &["2 values required"]),
            ("convert filter --kind blocked -o new", &["a standard filter cannot become a blocked one"]),
            ("fold -p 1e-6 filter -o new", &["its rate is", "above"]),
            ("remove filter lines", &["filter is a standard filter", "cannot remove"]),
        ],
    );
}

#[test]
fn invalid_numbers_are_refused_with_an_example() {
    all_are_refused(
        &prepared(),
        &[
            ("build -n abc -o new lines", &["'abc'", "--capacity", "not a number", "1e6"]),
            ("build -n 1.5 -o new lines", &["'1.5'", "--capacity", "not a whole number"]),
            ("build -n=-1 -o new lines", &["'-1'", "--capacity", "a number below 0"]),
            ("build -n 1e30 -o new lines", &["--capacity", "too large"]),
            ("build -n 0 -o new lines", &["n = 0", "from 1"]),
            ("build -n 2e14 -o new lines", &["fewer keys or a higher rate"]),
            ("build -n 1e14 -p 1e-9 -o new lines", &["p = 1e-9", "at least"]),
            ("build -p 0 -o new lines", &["'0'", "--fpr", "between 0 and 1"]),
            ("build -p 1 -o new lines", &["'1'", "--fpr", "between 0 and 1"]),
            ("build -p 2 -o new lines", &["'2'", "between 0 and 1", "2% is 0.02"]),
            ("build -p x -o new lines", &["'x'", "not a rate", "1%"]),
            ("build --max-bytes x -o new lines", &["'x'", "--max-bytes", "not a number", "64MiB"]),
            ("build -n 1000 --max-bytes 1 -o new lines", &["--max-bytes 1 is too small"]),
            ("build -n 1000 -p 1% --max-bytes 512 -o new lines", &["need", "--max-bytes allows 512 B"]),
            ("build --seed x -o new lines", &["'x'", "--seed"]),
            ("build -j 0 -o new lines", &["'0'", "--threads", "from 1"]),
            ("build --kind bloom -o new lines", &["'bloom'", "--kind", "blocked"]),
            ("build --policy x -o new lines", &["'x'", "--policy", "round"]),
            ("build --hash md4 -o new lines", &["md4", "fast"]),
            ("uniq --max-bytes 0 lines", &["m = 0"]),
            ("plan", &["n"]),
            ("plan -n 0 -p 1%", &["n = 0"]),
            ("plan -n 1e6 -m 0", &["m = 0"]),
            ("fold --times 60 filter -o new", &["fold"]),
        ],
    );
}

#[test]
fn negative_numbers_are_refused_by_every_option() {
    all_are_refused(
        &prepared(),
        &[
            ("build -n -1 -o new lines", &["'-1'", "--capacity", "a number below 0"]),
            ("build -p -1% -o new lines", &["'-1%'", "--fpr", "between 0 and 1"]),
            ("build -k -1 -o new lines", &["'-1'", "--hashes"]),
            ("build -o -5 lines", &["unexpected argument '-5'"]),
            ("build -5 -o new lines", &["unexpected argument '-5'"]),
        ],
    );
}

#[test]
fn missing_fields_are_named() {
    all_are_refused(
        &prepared(),
        &[
            ("build -F 0 -o new table", &["there is no field 0", "from 1"]),
            ("build -F mail -o new table", &["\"mail\" is a name", "--header"]),
            ("build --header -F phone -o new table", &["table has no field \"phone\"", "id, mail"]),
            ("build -F 3 -o new table", &["all 3 lines lack the field", "-F"]),
            ("check -F 3 filter table", &["all 3 lines lack the field", "-F"]),
            ("add -F 3 filter table", &["all 3 lines lack the field", "-F"]),
            ("build -F 99999999999999999999 -o new table", &["no field 99999999999999999999"]),
            ("build --hex -o new table", &["all 3 lines are not hexadecimal", "--hex"]),
            ("build --csv -o new table", &["--csv needs -F"]),
            ("build -d , -o new table", &["-d needs -F"]),
            ("check --print-field filter table", &["--print-field needs -F"]),
            ("build --csv -0 -F 1 -o new table", &["--csv and -0 exclude each other"]),
            ("build --csv -d ab -F 1 -o new table", &["single byte"]),
            ("build -d \\n -F 1 -o new table", &["-d is the byte that ends a line"]),
            ("build -d \\x -F 1 -o new table", &["--delimiter", "after \\ comes"]),
        ],
    );
}

#[test]
fn an_output_that_cannot_be_written_or_would_overwrite_a_file_is_refused() {
    all_are_refused(
        &prepared(),
        &[
            ("build -o filter lines", &["filter exists", "-f"]),
            ("union bits bits -o filter", &["filter exists", "-f"]),
            ("key new secret", &["secret exists", "never overwritten"]),
            ("build -f -o lines lines", &["lines is both an input and the output"]),
            ("build -f -o lines ./lines", &["lines is both an input and the output"]),
            ("build -f -o directory/../lines table lines", &["lines is both an input and the output"]),
            ("build -f -o link lines", &["lines is both an input and the output"]),
            ("build -f -o lines link", &["link is both an input and the output"]),
            ("add filter filter", &["filter is both an input and the output"]),
            ("fold -f filter -o ./filter", &["filter is both an input and the output"]),
            ("build -o nowhere/new lines", &["cannot write nowhere/new", "no directory nowhere"]),
            ("build -f -o dangling lines", &["dangling", "No such file or directory"]),
            ("build -o directory lines", &["directory is a directory"]),
            ("build -f -o directory lines", &["directory is a directory"]),
            ("build -o fifo lines", &["fifo exists"]),
            // Checked first: the input does not exist either, but that is not the error reported.
            ("build -f -o fifo nothing", &["cannot write to fifo", "not a regular file"]),
            ("build -f -o /dev/null lines", &["cannot write to /dev/null", "not a regular file"]),
            (
                "key new nowhere/key",
                &["cannot create a file beside nowhere/key", "No such file or directory"],
            ),
            ("build --json lines", &["--json", "-o"]),
        ],
    );
}

#[test]
fn mistaken_arguments_are_explained() {
    all_are_refused(
        &prepared(),
        &[
            ("check lines filter", &["the filter comes first", "umbel check FILTER lines"]),
            ("check filter filter", &["filter is a filter, not a list of keys"]),
            ("build -o new filter", &["filter is a filter, not a list of keys", "union"]),
            ("add large filter", &["filter is a filter, not a list of keys", "union"]),
            ("uniq filter", &["filter is a filter, not a list of keys"]),
            ("chekc filter lines", &["unrecognized subcommand 'chekc'", "check"]),
            ("check --cuont filter lines", &["'--cuont'", "--count"]),
            ("check", &["<FILTER>"]),
            ("check -c -q filter lines", &["--count", "--quiet", "cannot be used with"]),
            ("check --any --all filter lines", &["--any", "--all", "cannot be used with"]),
            ("check --label -v filter lines", &["--label", "--invert", "cannot be used with"]),
            ("add --new --json filter lines", &["--new", "--json", "cannot be used with"]),
            ("build --like bits -n 5 -o new lines", &["--like", "--capacity", "cannot be used with"]),
            ("uniq -n 5 --max-bytes 1M lines", &["--capacity", "--max-bytes", "cannot be used with"]),
            ("info --bits --json filter", &["--bits", "--json", "cannot be used with"]),
            ("build --kind literature -o new lines", &["literature needs --hash", "murmur3"]),
            ("build --hash murmur3 -n 5 -o new lines", &["--kind literature"]),
            ("build --meta x -o new lines", &["--meta", "name=value"]),
            ("build --meta a=1 --meta a=2 -o new lines", &["given twice"]),
            ("meta filter a b=c", &["\"a\" sets nothing: write it as name=value"]),
            ("meta filter a b", &["one name at a time"]),
            ("meta filter --unset a", &["no \"a\" to remove"]),
            ("man nothing", &["no command \"nothing\""]),
        ],
    );
}

#[test]
fn missing_and_wrong_secrets_are_named() {
    all_are_refused(
        &prepared(),
        &[
            ("check locked lines", &["locked:", "built with a secret (keyed, key tag", "add its key file"]),
            ("add locked lines", &["locked:", "built with a secret", "add its key file"]),
            ("check --key-file other locked lines", &["locked:", "that is not among the given keys"]),
            ("check --key-file seal locked lines", &["locked:", "that is not among the given keys"]),
            (
                "check --key-file nothing locked lines",
                &["cannot open the key file nothing", "No such file or directory"],
            ),
            (
                "build --key-file nothing -o new lines",
                &["cannot open the key file nothing", "No such file or directory"],
            ),
            ("check --key-file lines locked lines", &["lines is not a key file", "umbel key new"]),
            ("check --key-file filter locked lines", &["filter is not a key file", "umbel key new"]),
            ("check --key-file empty locked lines", &["empty is not a key file", "umbel key new"]),
            ("check --key-file directory locked lines", &["cannot read the key file directory", "directory"]),
            (
                "build --hash keyed -o new lines",
                &["a keyed hash needs its secret", "umbel key new", "--key-file"],
            ),
            ("build --hash sealed -o new lines", &["a sealed hash needs its secret", "--hash sealed"]),
            (
                "build --hash sealed --key-file secret -o new lines",
                &["for a keyed hash, not for a sealed one"],
            ),
            ("build --hash fast --key-file secret -o new lines", &["for a keyed hash, not for a fast one"]),
            ("build --key-file secret --seed 1 -o new lines", &["a secret instead of a seed"]),
            ("build --key-file secret --key-file other -o new lines", &["--key-file once"]),
            (
                "build --key-file seal --embed-key -o new lines",
                &["--embed-key", "sealed secret is never written"],
            ),
            ("build --embed-key -o new lines", &["--embed-key", "has no secret"]),
            ("build --embed-key --like filter -o new lines", &["--embed-key", "has no secret"]),
            ("key new new --hash fast", &["[possible values: keyed, sealed]"]),
            ("union filter locked -o new", &["locked:", "that is not among the given keys"]),
        ],
    );
}

/// Runs the program as a user who is bound by permissions, not as root.
fn as_user(shell: &Shell, arguments: &str) -> Answer {
    let mut command = shell.command(arguments);
    if rustix::process::geteuid().is_root() {
        // Other users may not be able to read the program where root has put it.
        let copy = shell.path("program");
        if !copy.exists() {
            fs::copy(UMBEL, &copy).unwrap();
        }
        command = shell.program(copy);
        command.args(arguments.words()).uid(65534).gid(65534);
    }
    Process::start(&mut command).finish()
}

#[test]
fn files_without_permission_are_named() {
    let shell = prepared();
    for (from, to) in [("lines", "private"), ("filter", "private-filter"), ("filter", "directory/filter")] {
        shell.write(to, shell.read(from));
    }
    shell.allow("private", 0o000);
    shell.allow("private-filter", 0o000);
    shell.allow("directory", 0o555);
    shell.allow(".", 0o755);
    for (arguments, says) in [
        ("build -n 9 private", &["cannot open private", "Permission denied"][..]),
        ("check filter private", &["cannot open private", "Permission denied"]),
        ("check private-filter lines", &["cannot open private-filter", "Permission denied"]),
        ("add private-filter lines", &["cannot open private-filter", "Permission denied"]),
        ("build -o directory/new lines", &["directory/new", "Permission denied"]),
        ("add directory/filter lines", &["directory/filter", "Permission denied"]),
        ("meta directory/filter a=b", &["directory/filter", "Permission denied"]),
        ("key new directory/key", &["directory/key", "Permission denied"]),
    ] {
        println!("umbel {arguments}");
        as_user(&shell, arguments).refused(says);
        assert_eq!(shell.names("directory"), ["filter"]);
    }
    assert!(shell.read("directory/filter") == shell.read("filter"));
    shell.allow("directory", 0o755);
}
