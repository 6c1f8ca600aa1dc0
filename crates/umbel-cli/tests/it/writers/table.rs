//! All commands: those that write files, each with a call to try, and the others.

use super::Whole::{EachFile, Files, Lines, Output};
use super::Writer;

/// Makes a vault with two documents.
const VAULT: &str = "umbel vault init --memory 16MiB --passes 1 --passphrase-file phrase v; \
    umbel vault add --passphrase-file phrase v docs";

/// Lists the names in a vault, and the contents of all documents.
const VAULT_CONTENTS: &str = "umbel vault check --passphrase-file phrase v > /dev/null || echo damaged $?
    for name in docs/a docs/b lines; do
        echo $name: $(umbel vault get --passphrase-file phrase v $name 2> /dev/null)
    done";

/// Tries both passphrases of a vault.
const VAULT_PASSPHRASES: &str = "for phrase in phrase phrase2; do
        umbel vault list --passphrase-file $phrase v > /dev/null 2>&1; echo $phrase $?
    done";

/// Builds a filter with a secret, if there is one, and looks up the lines in it.
const CHECK_KEY: &str = "test ! -e k || umbel build --hash keyed --key-file k -f -o ../keyed.$$ lines
    test ! -e k || umbel check -c --key-file k ../keyed.$$ lines
    rm -f ../keyed.$$";

/// Checks a word of the first list, one of the second and another one.
const CHECK_PASSWORDS: &str =
    "test ! -e weak || for word in 77 333 unknown; do echo $word | umbel password check weak; echo $?; done";

/// Verifies a filter in shards, if it is complete, and looks up two lists in it.
const CHECK_SHARDS: &str =
    "test ! -e d/manifest || { umbel info --verify d; umbel check -c d lines; umbel check -c d more; }";

/// Every way to write a file, at least one for each command that writes. The old state is what
/// `prepare` makes of the inputs of [`super::write_inputs`].
pub const WRITERS: &[Writer] = &[
    Writer::new("build", "", "build -o f lines", Files),
    Writer::new("build", "umbel build -o f more", "build -f -o f lines", Files),
    Writer::new(
        "build",
        "umbel key new k > /dev/null",
        "build --hash keyed --key-file k --embed-key -o f lines",
        Files,
    ),
    Writer::new("build", "", "build -n 300 --kind cuckoo --meta a=b -o f lines", Files),
    Writer::new("build", "umbel build -o f more", "build -f --format dcso -o f lines", Files),
    Writer::new("build", "", "build --shards 3 -n 1000 -o d lines", Output(CHECK_SHARDS)),
    Writer::new(
        "build",
        "umbel build --shards 3 -n 1000 -o d more",
        "build --shards 2 -n 1000 -f -o d lines",
        Output(CHECK_SHARDS),
    ),
    Writer::new(
        "build",
        "umbel build --shards 3 -n 1000 --only 0 -o d lines",
        "build --shards 3 -n 1000 --only 1-2 -o d lines",
        EachFile,
    ),
    Writer::new(
        "build",
        "umbel build --shards 3 -n 1000 --only 0-2 -o d lines",
        "build --shards 3 -n 1000 --complete -o d",
        Files,
    ),
    Writer::new("add", "umbel build -n 1000 -o f lines", "add f more", Files),
    Writer::new("add", "umbel build --shards 3 -n 1000 -o d lines", "add d more", Output(CHECK_SHARDS)),
    Writer::new("remove", "umbel build -n 1000 --kind counting -o f lines", "remove f lines", Files),
    Writer::new("map build", "umbel map build -o m changes", "map build -f -o m pairs", Files),
    Writer::new("map set", "umbel map build --mutable -o m pairs", "map set m changes", Files),
    Writer::new("table put", "umbel table put t pairs", "table put t changes", Lines("umbel table scan t")),
    Writer::new("table put", "", "table put t pairs", Lines("umbel table scan t")),
    Writer::new(
        "table delete",
        "umbel table put t pairs",
        "table delete t more lines",
        Lines("umbel table scan t"),
    ),
    Writer::new(
        "table merge",
        "umbel table put t pairs; umbel table put t changes; head -50 lines | umbel table delete t",
        "table merge t",
        Output("umbel table stats t | grep -c '^0'; umbel table scan t"),
    ),
    Writer::new("count build", "", "count build -o c lines", Files),
    Writer::new("count add", "umbel count build -n 1000 -o c lines", "count add c more", Files),
    Writer::new(
        "count ask",
        "umbel count build -o c lines; umbel count answer --shape c -o shape",
        "count ask --cover 50 --universe lines shape 7 -o question",
        Files,
    ),
    Writer::new(
        "count answer",
        "umbel count build -o c lines; umbel count answer --shape c -o shape
         umbel count ask --cover 50 --universe lines shape 7 -o question 2> /dev/null",
        "count answer -f c question -o answer",
        Files,
    ),
    Writer::new("distinct", "umbel distinct -o d more > /dev/null", "distinct -f -o d lines", Files),
    Writer::new("top", "umbel top -o t more > /dev/null", "top -f -o t lines", Files),
    Writer::new(
        "union",
        "umbel build -n 1000 -o a lines; umbel build -n 1000 -o b more",
        "union a b -o f",
        Files,
    ),
    Writer::new(
        "union",
        "umbel build --shards 3 -n 1000 -o a lines; umbel build --shards 3 -n 1000 -o b more",
        "union a b -o d",
        Output(CHECK_SHARDS),
    ),
    Writer::new(
        "intersect",
        "umbel build -n 1000 -o a lines; umbel build -n 1000 -o b more; cp a f",
        "intersect -f a b -o f",
        Files,
    ),
    Writer::new("convert", "umbel build --kind counting -o c lines", "convert c --kind standard -o f", Files),
    Writer::new(
        "convert",
        "umbel build --format dcso lines | gzip > c; cp c f",
        "convert -f c --to dcso -o f",
        Files,
    ),
    Writer::new("fold", "umbel build -n 1000 -o a lines; cp a f", "fold -f a -o f", Files),
    Writer::new("resize", "umbel build --kind quotient -o q lines", "resize q -n 5000 -o f", Files),
    Writer::new("meta", "umbel build -o f lines", "meta f name=value", Files),
    Writer::new("key new", "", "key new k", Output(CHECK_KEY)),
    Writer::new("index build", "", "index build docs", Output("umbel index which docs.idx two")),
    Writer::new(
        "index update",
        "umbel index build docs; echo two > docs/c",
        "index update docs.idx",
        Output("umbel index info docs.idx --json"),
    ),
    Writer::new("parquet add-filter", "", "parquet add-filter -c prefix lake/a.parquet -o f", Files),
    Writer::new(
        "parquet index",
        "",
        "parquet index -c prefix lake -o x.idx",
        Output("umbel parquet which x.idx common/prefix/00007"),
    ),
    Writer::new(
        "parquet index",
        // The index finds its folder beside itself only if the one that it was made of is gone.
        "mkdir made; cp -r lake made; umbel parquet index -c prefix made/lake -o made/x.idx; mv made moved
         cp lake/a.parquet moved/lake/b.parquet",
        "parquet index -c prefix moved/lake -o moved/x.idx",
        Output("umbel index info moved/x.idx --json"),
    ),
    Writer::new("password build", "", "password build lines -o weak", Output(CHECK_PASSWORDS)),
    Writer::new(
        "password add",
        "umbel password build -n 1000 lines -o weak 2> /dev/null",
        "password add weak more",
        Output(CHECK_PASSWORDS),
    ),
    Writer::new(
        "url build",
        "umbel url build -o bad lists/old",
        "url build -f -o bad lists/new",
        Output("umbel url check bad http://old.example/ http://new.example/"),
    ),
    Writer::new(
        "url build",
        "",
        "url build -o bad lists/new",
        Output("test ! -e bad || umbel url check bad http://old.example/ http://new.example/"),
    ),
    Writer::new(
        "vault init",
        "",
        "vault init --memory 16MiB --passes 1 --passphrase-file phrase v",
        Output("umbel vault info v | head -1"),
    ),
    Writer::new("vault add", VAULT, "vault add --passphrase-file phrase v lines", Lines(VAULT_CONTENTS)),
    Writer::new(
        "vault remove",
        VAULT,
        "vault remove --passphrase-file phrase v docs/a",
        Lines(VAULT_CONTENTS),
    ),
    Writer::new(
        "vault passphrase",
        VAULT,
        "vault passphrase v --passphrase-file phrase --new-passphrase-file phrase2",
        Output(VAULT_PASSPHRASES),
    ),
    Writer::new("vault get", VAULT, "vault get --passphrase-file phrase v docs/a -o got", Files),
    Writer::new("net record", "", "net record --seed 1 c.pcap -o s", Files),
    Writer::new(
        "net record",
        "umbel net record --seed 1 c.pcap -o s > /dev/null",
        "net record --seed 2 c.pcap -o s",
        Files,
    ),
    Writer::new("net block", "", "net block --seed 1 --list drop --at 1000 --state s", Files),
    Writer::new(
        "net block",
        "umbel net block --seed 1 --list drop --at 1000 --state s; echo 203.0.113.9 > drop",
        "net block --seed 1 --list drop --at 1000 --state s",
        Files,
    ),
    Writer::new("net simulate loops", "", "net simulate loops -n 10 --topology net.txt --svg x.svg", Files),
    Writer::new(
        "net simulate routing",
        "",
        "net simulate routing -n 10 --topology net.txt --svg x.svg",
        Files,
    ),
    Writer::new("net simulate header", "", "net simulate header -n 10 --topology net.txt --svg x.svg", Files),
    Writer::new("net trace record", "", "net trace record --router R1 --seed 1 -o s c.pcap", Files),
    Writer::new("lab run", "", "lab run E1 --set n=1000,queries=1000 --out lab", EachFile),
    Writer::new("lab trace", "echo old > y.svg", "lab trace deletion --svg y.svg -f", Files),
    Writer::new("lab trace", "", "lab trace all -f --svg pictures", EachFile),
    Writer::new("man", "mkdir man; echo old > man/umbel.1", "man --dir man", EachFile),
];

/// Commands that write files, but are tried elsewhere: with servers in `proxy.rs` and `remote.rs`, and
/// in `vault_changes.rs`, since ids are random and a copy is made in a new directory.
pub const ELSEWHERE: &[&str] = &["proxy", "pull", "vault adopt", "vault copy"];

/// Commands that write no file.
pub const READERS: &[&str] = &[
    "check",
    "uniq",
    "why",
    "info",
    "plan",
    "explore",
    "map get",
    "table get",
    "table scan",
    "table stats",
    "count get",
    "compare",
    "index which",
    "index info",
    "grep",
    "parquet which",
    "parquet info",
    "spell",
    "hyphenate",
    "similar",
    "password check",
    "password range",
    "url check",
    "vault search",
    "vault list",
    "vault check",
    "vault info",
    "net attribute",
    "net flows",
    "net scan",
    "net trace ask",
    "net trace info",
    "push",
    "shard create",
    "shard add",
    "shard check",
    "shard info",
    "shard delete",
    "lab list",
    "lab words",
    "lab fpr",
    "completions",
];

/// Options with a name of a file or directory that a command writes.
pub const WRITING_OPTIONS: &[&str] = &[
    "--output <",
    "--out <DIR>",
    "--dir <",
    "--svg <",
    "--state <",
    "--cache-dir <",
    "--access-log <",
    "--force",
];
