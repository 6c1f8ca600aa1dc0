//! No input from a client ends the server, or makes a filter lose items.
//!
//! `HOSTILE_SECONDS=600 cargo test -p umbel-redis --test it hostile::` tries for ten minutes
//! instead of a few seconds.

use crate::support::{Answer, Client, Server, servers};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use umbel::Kind;

/// Pseudo-random numbers, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % end
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(40)).map(|_| self.below(256) as u8).collect()
    }
}

/// All commands of the module, as the server lists them.
fn commands(client: &mut Client) -> Vec<String> {
    let listed = client.command("COMMAND LIST FILTERBY MODULE bf");
    let mut names: Vec<String> =
        listed.array().iter().map(|name| String::from_utf8(name.bytes().to_vec()).unwrap()).collect();
    assert!(names.len() > 50, "{names:?}");
    // The order of the server is arbitrary.
    names.sort();
    names
}

const WORDS: [&str; 41] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "100",
    "0.01",
    "0.5",
    "1e-9",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "4294967296",
    "65536",
    "1000000",
    "EXPANSION",
    "NONSCALING",
    "CAPACITY",
    "ERROR",
    "NOCREATE",
    "ITEMS",
    "SEED",
    "00000000000000000000000000000000",
    "BUCKETSIZE",
    "MAXITERATIONS",
    "FINGERPRINT",
    "WEIGHTS",
    "WITHCOUNT",
    "WINDOW",
    "GENERATIONS",
    "FAST",
    "5ms",
    "1h",
    "99999999999999999d",
    "1700000000000",
    "",
    "\u{0}\r\n",
];

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "text"];

fn time() -> Duration {
    let seconds = std::env::var("HOSTILE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5))
}

#[test]
fn no_command_harms_the_server() {
    for (number, program) in servers().iter().enumerate() {
        let mut server =
            Server::with_module(program, &["MAX-KEY-BYTES", "10000000", "MAX-BYTES", "50000000"], &[]);
        let mut client = server.client();
        let mut chance = Chance(number as u64 + 1);
        // The items of two filters that no random command touches.
        let (mut added, mut present) = (HashSet::new(), HashSet::new());
        let names = commands(&mut client);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let start = Instant::now();
        let mut commands = 0u64;
        while start.elapsed() < time() {
            let name = chance.one(&names);
            let mut command = vec![name.as_bytes().to_vec()];
            command.push(chance.one(&KEYS).as_bytes().to_vec());
            for _ in 0..chance.below(8) {
                command.push(match chance.below(6) {
                    0 => chance.bytes(),
                    1 => chance.one(&KEYS).as_bytes().to_vec(),
                    2 => Kind::ALL[chance.below(Kind::ALL.len())].to_string().into_bytes(),
                    _ => chance.one(&WORDS).as_bytes().to_vec(),
                });
            }
            call(&mut client, &command, &mut server);
            commands += 1;
            let item = format!("item{}", chance.below(5000));
            client.command(&format!("BF.ADD known:bf {item}"));
            assert_eq!(client.command(&format!("BF.EXISTS known:bf {item}")).integer(), 1);
            added.insert(item.clone());
            if present.insert(item.clone()) {
                assert_eq!(client.command(&format!("CF.ADD known:cf {item}")).integer(), 1);
            } else {
                present.remove(&item);
                assert_eq!(client.command(&format!("CF.DEL known:cf {item}")).integer(), 1);
            }
            if commands.is_multiple_of(500) {
                client.command("SET text x");
                let all = |set: &HashSet<String>| set.iter().cloned().collect::<Vec<_>>();
                assert!(
                    client
                        .command_with("BF.MEXISTS known:bf", &all(&added))
                        .integers()
                        .iter()
                        .all(|x| *x == 1)
                );
                assert!(
                    client
                        .command_with("CF.MEXISTS known:cf", &all(&present))
                        .integers()
                        .iter()
                        .all(|x| *x == 1)
                );
                client.command(&format!("DEL {}", chance.one(&KEYS)));
            }
        }
        assert!(commands > 1000, "{commands}");
    }
}

/// Sends a command. Any reply is right, except that of a panic.
fn call(client: &mut Client, command: &[Vec<u8>], server: &mut Server) -> Answer {
    let command: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
    let answer = client.try_call(&command);
    let shown = || command.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>();
    match answer {
        Ok(Answer::Error(text)) if text.contains("mistake in the module") => panic!("{text}: {:?}", shown()),
        Ok(answer) => answer,
        Err(error) => panic!("{error} after {:?}, alive: {}, {}", shown(), server.is_alive(), server.log()),
    }
}

/// Damaged chunks: each is either refused and leaves no key, or loads a value that works.
#[test]
fn damaged_chunks_and_snapshots_are_refused() {
    for program in servers() {
        let mut server = Server::start(program, &[]);
        let mut client = server.client();
        client.command("BF.MADD BF a b c");
        client.command("CF.INSERT CF CAPACITY 8 ITEMS a b c d e f g h i j k l m n o p q r s t u v w x y z");
        client.command("CMS.INITBYDIM CMS 10 3");
        client.command("CMS.INCRBY CMS a 1 b 2");
        client.command("TOPK.RESERVE TOPK 2 3 2 0.9");
        client.command("TOPK.ADD TOPK a b c");
        let mut chance = Chance(7);
        let start = Instant::now();
        let mut tried = 0;
        while start.elapsed() < time() / 2 || tried < 500 {
            tried += 1;
            let family = chance.one(&["BF", "CF", "CMS", "TOPK"]);
            let dumped = client.command(&format!("{family}.SCANDUMP {family} 0"));
            let mut chunk = dumped.array()[1].bytes().to_vec();
            damage(&mut chunk, &mut chance);
            if chance.below(2) == 0 {
                // Make the checksum of the damaged header match.
                reseal(&mut chunk);
            }
            let cursor = (chunk.len() + 1).to_string();
            let command =
                [format!("{family}.LOADCHUNK").into_bytes(), b"x".to_vec(), cursor.into_bytes(), chunk];
            let loaded = call(&mut client, &command, &mut server);
            if let Answer::Error(_) = loaded {
                assert_eq!(client.command("EXISTS x").integer(), 0);
            } else {
                let asked = match family {
                    "CMS" => "CMS.QUERY x a",
                    "TOPK" => "TOPK.LIST x",
                    "CF" => "CF.EXISTS x a",
                    _ => "BF.EXISTS x a",
                };
                call(
                    &mut client,
                    &asked.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>(),
                    &mut server,
                );
                call(&mut client, &[b"DUMP".to_vec(), b"x".to_vec()], &mut server);
                client.command("DEL x");
            }
        }
    }
}

/// Damaged replies of `DUMP`, and damaged files.
#[test]
fn damaged_dumps_and_files_are_refused() {
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    for (number, program) in servers().iter().enumerate() {
        let mut server = Server::start(program, &[]);
        let mut client = server.client();
        client.command("BF.MADD bf a b c");
        client.command("CF.INSERT cf CAPACITY 8 ITEMS a b c d e f g h i j k l m n o p q r s t u v w x y z");
        client.command("CMS.INITBYDIM cms 10 3");
        client.command("TOPK.RESERVE topk 2 3 2 0.9");
        client.command("TOPK.ADD topk a b c");
        let kinds =
            ["counting", "variable-increment", "deletable", "floom", "quotient", "aging", "partitioned"];
        for kind in kinds {
            client.command(&format!("UMBEL.RESERVE {kind} {kind} 20 0.01"));
            client.command(&format!("UMBEL.ADD {kind} a b c"));
        }
        let sets: Vec<&str> = ["bf", "cf"].into_iter().chain(kinds).collect();
        let all: Vec<&str> = ["cms", "topk"].into_iter().chain(sets.clone()).collect();
        let mut chance = Chance(number as u64 + 11);
        let start = Instant::now();
        let (mut tried, mut refused) = (0, 0);
        while start.elapsed() < time() / 2 || tried < 500 {
            tried += 1;
            let command = match chance.below(2) {
                0 => {
                    let mut dump = client.command(&format!("DUMP {}", chance.one(&all))).bytes().to_vec();
                    dump.truncate(dump.len() - 8);
                    damage(&mut dump, &mut chance);
                    // Make the server's checksum of the dump match.
                    let sum = crc64(&dump).to_le_bytes();
                    dump.extend(sum);
                    vec![b"RESTORE".to_vec(), b"x".to_vec(), b"0".to_vec(), dump]
                }
                _ => {
                    // A cuckoo filter of several levels cannot be exported.
                    let exported = client.command(&format!("UMBEL.EXPORT {} 0", chance.one(&sets)));
                    let Answer::Array(exported) = exported else { continue };
                    let mut file = exported[1].bytes().to_vec();
                    damage(&mut file, &mut chance);
                    let length = file.len().to_string().into_bytes();
                    vec![b"UMBEL.IMPORT".to_vec(), b"x".to_vec(), length, b"0".to_vec(), file]
                }
            };
            if let Answer::Error(_) = call(&mut client, &command, &mut server) {
                refused += 1;
                assert_eq!(client.command("EXISTS x").integer(), 0);
            }
            for question in ["UMBEL.INFO x", "UMBEL.EXISTS x a", "UMBEL.ADD x d", "DUMP x", "DEL x"] {
                let words = question.split(' ').map(|word| word.as_bytes().to_vec());
                call(&mut client, &words.collect::<Vec<_>>(), &mut server);
            }
        }
        assert!(refused > tried / 2, "{refused} of {tried}");
    }
}

/// Flips a few bits, and sometimes truncates the bytes.
fn damage(bytes: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..1 + chance.below(3) {
        let at = chance.below(bytes.len());
        bytes[at] ^= 1 << chance.below(8);
    }
    if chance.below(4) == 0 {
        bytes.truncate(chance.below(bytes.len()));
    }
}

/// Returns the checksum of a dump: the 64-bit CRC by Jones, reflected.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u64::from(*byte), |sum, _| (sum >> 1) ^ ((sum & 1) * 0x95ac_9329_ac4b_c9b5))
    })
}

/// Writes the right checksum behind the header of a chunk, whose end is found by parsing it.
fn reseal(chunk: &mut [u8]) {
    use umbel::file::fields::{Fields, sum};
    let mut fields = Fields(chunk);
    let mut head = || {
        fields.bytes(13)?;
        for _ in 0..2 {
            for _ in 0..fields.varint()?.min(100) {
                fields.varint()?;
            }
        }
        fields.varint()?;
        Some(fields.0.len())
    };
    if let Some(left) = head() {
        let end = chunk.len() - left;
        if left >= 8 {
            let right = sum(&chunk[..end]).to_le_bytes();
            chunk[end..end + 8].copy_from_slice(&right);
        }
    }
}
