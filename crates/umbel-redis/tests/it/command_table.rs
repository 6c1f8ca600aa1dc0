//! The descriptions of commands do not change: clients, proxies and ACL rules rely on them.

use crate::support::{Answer, Client, Server, servers};

/// A line for each command: name and arity, flags, first and last key and step, ACL categories,
/// uses of keys, summary.
const COMMANDS: &str = include_str!("../golden/commands.txt");

/// The column of the ACL categories.
const CATEGORIES: usize = 3;

/// Returns all words of an answer, in order.
fn words(answer: &Answer) -> Vec<String> {
    match answer {
        Answer::Word(word) => vec![word.clone()],
        Answer::Bytes(bytes) => vec![String::from_utf8(bytes.clone()).unwrap()],
        Answer::Integer(number) => vec![number.to_string()],
        Answer::Array(answers) => answers.iter().flat_map(words).collect(),
        other => panic!("{other:?} in the description of a command"),
    }
}

/// Returns all words of an answer, sorted: the order of flags and categories depends on the server.
fn sorted(answer: &Answer) -> String {
    let mut words = words(answer);
    words.sort();
    words.join(" ")
}

fn describe(client: &mut Client, name: &str) -> String {
    let info = client.command(&format!("COMMAND INFO {name}"));
    let [_, arity, flags, first, last, step, categories, _tips, keys, ..] = info.array()[0].array() else {
        panic!("{info:?}")
    };
    let docs = client.command(&format!("COMMAND DOCS {name}"));
    let summary = docs.array()[1].field("summary").clone();
    let positions = [first, last, step].map(|position| position.integer().to_string()).join(" ");
    let columns = [
        format!("{name} {}", arity.integer()),
        sorted(flags),
        positions,
        sorted(categories),
        words(keys).join(" "),
        words(&summary).join(" "),
    ];
    columns.join(" | ")
}

/// Returns whether commands of modules have ACL categories: Redis has supported them since 7.4.
fn has_categories(client: &mut Client) -> bool {
    words(&client.command("ACL CAT")).iter().any(|category| category == "bloom")
}

#[test]
fn the_descriptions_of_commands_do_not_change() {
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        let mut names = words(&client.command("COMMAND LIST FILTERBY MODULE bf"));
        names.sort();
        assert_eq!(names.len(), 57);
        let has_categories = has_categories(&mut client);
        for (name, line) in names.iter().zip(COMMANDS.lines()) {
            let mut columns: Vec<&str> = line.split(" | ").collect();
            if !has_categories {
                columns[CATEGORIES] = "";
            }
            assert_eq!(describe(&mut client, name), columns.join(" | "), "{}", program.display());
        }
        assert_eq!(COMMANDS.lines().count(), names.len());
    }
}

/// A user with access to a category can run its commands, and no others.
#[test]
fn acl_categories_allow_exactly_their_commands() {
    for program in servers() {
        let server = Server::start(program, &[]);
        let mut client = server.client();
        if !has_categories(&mut client) {
            continue;
        }
        client.command("BF.ADD f x");
        for category in ["read", "cuckoo"] {
            client.command(&format!("ACL SETUSER {category} on nopass ~* -@all +@{category}"));
        }
        let mut reader = server.client();
        reader.command("AUTH read any");
        assert_eq!(reader.command("BF.EXISTS f x").integer(), 1);
        assert!(reader.command("BF.ADD f y").error().starts_with("NOPERM"));
        let mut cuckoo = server.client();
        cuckoo.command("AUTH cuckoo any");
        assert_eq!(cuckoo.command("CF.ADD c x").integer(), 1);
        assert!(cuckoo.command("BF.EXISTS f x").error().starts_with("NOPERM"));
        // Commands that hand out contents are dangerous.
        client.command("ACL SETUSER careful on nopass ~* +@all -@dangerous");
        let mut careful = server.client();
        careful.command("AUTH careful any");
        assert_eq!(careful.command("BF.ADD f z").integer(), 1);
        let exports = ["BF", "CF", "CMS", "TOPK", "UMBEL"].map(|family| format!("{family}.SCANDUMP f 0"));
        for command in exports.into_iter().chain(["UMBEL.EXPORT f 0".to_owned()]) {
            assert!(careful.command(&command).error().starts_with("NOPERM"), "{command}");
        }
    }
}
