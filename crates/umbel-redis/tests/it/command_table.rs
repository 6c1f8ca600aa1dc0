//! The descriptions of commands, on which clients, proxies and ACL rules rely, stay as they are.

use crate::support::{Answer, Client, Server, engines};

/// A line for each command: name and arity, flags, first and last key and step, ACL categories, uses of keys, summary.
const COMMANDS: &str = include_str!("../golden/commands.txt");

/// The column of the ACL categories.
const CATEGORIES: usize = 3;

/// All words of an answer, in order.
fn words(answer: &Answer) -> Vec<String> {
    match answer {
        Answer::Word(word) => vec![word.clone()],
        Answer::Bytes(bytes) => vec![String::from_utf8(bytes.clone()).unwrap()],
        Answer::Integer(number) => vec![number.to_string()],
        Answer::Array(answers) => answers.iter().flat_map(words).collect(),
        other => panic!("{other:?} in the description of a command"),
    }
}

/// All words of an answer, sorted: servers have flags and categories in an order of their own.
fn sorted(answer: &Answer) -> String {
    let mut words = words(answer);
    words.sort();
    words.join(" ")
}

fn describe(client: &mut Client, name: &str) -> String {
    let info = client.ask(&format!("COMMAND INFO {name}"));
    let [_, arity, flags, first, last, step, categories, _tips, keys, ..] = info.array()[0].array() else {
        panic!("{info:?}")
    };
    let docs = client.ask(&format!("COMMAND DOCS {name}"));
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

/// Whether commands of modules have ACL categories: Redis has them since 7.4.
fn has_categories(client: &mut Client) -> bool {
    words(&client.ask("ACL CAT")).iter().any(|category| category == "bloom")
}

#[test]
fn every_command_is_described_as_before() {
    for engine in engines() {
        let server = Server::start(engine, &[]);
        let mut client = server.client();
        let mut names = words(&client.ask("COMMAND LIST FILTERBY MODULE bf"));
        names.sort();
        assert_eq!(names.len(), 56);
        let has_categories = has_categories(&mut client);
        for (name, line) in names.iter().zip(COMMANDS.lines()) {
            let mut columns: Vec<&str> = line.split(" | ").collect();
            if !has_categories {
                columns[CATEGORIES] = "";
            }
            assert_eq!(describe(&mut client, name), columns.join(" | "), "{}", engine.display());
        }
        assert_eq!(COMMANDS.lines().count(), names.len());
    }
}

/// A user with the rights of a category runs its commands, and no others.
#[test]
fn the_categories_of_commands_grant_and_deny_them() {
    for engine in engines() {
        let server = Server::start(engine, &[]);
        let mut client = server.client();
        if !has_categories(&mut client) {
            continue;
        }
        client.ask("BF.ADD f x");
        for category in ["read", "cuckoo"] {
            client.ask(&format!("ACL SETUSER {category} on nopass ~* -@all +@{category}"));
        }
        let mut reader = server.client();
        reader.ask("AUTH read any");
        assert_eq!(reader.ask("BF.EXISTS f x").integer(), 1);
        assert!(reader.ask("BF.ADD f y").error().starts_with("NOPERM"));
        let mut cuckoo = server.client();
        cuckoo.ask("AUTH cuckoo any");
        assert_eq!(cuckoo.ask("CF.ADD c x").integer(), 1);
        assert!(cuckoo.ask("BF.EXISTS f x").error().starts_with("NOPERM"));
    }
}
