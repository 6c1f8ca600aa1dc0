//! Initial inputs: the golden files of the repository, and small examples of every format, written
//! by the library itself.

use flate2::Compression;
use flate2::read::GzEncoder;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;
use umbel::Hasher;
use umbel::foreign::{self, ForeignFilter, Format, Funnel};
use umbel::space_code::private::{Answer, Message, PublicShape, Question, Universe};
use umbel_cache::{CacheKey, Summary};
use umbel_net::attribution::{Method, Recorder, Settings};
use umbel_net::blocklist::{Backend, Blocklist, Options, state};
use umbel_net::capture::{Link, Packet, Timestamp, Writer};
use umbel_net::traceback::passage::Sighting;
use umbel_net::traceback::store as traceback;
use umbel_text::address::{Exact, Screen};
use umbel_text::index;
use umbel_text::password::sha1;
use umbel_text::tables::{self, Store};
use umbel_text::vault::{self, Cost, Vault};

/// An input with its name.
pub type Seed = (String, Vec<u8>);

/// Returns the seeds of every target.
pub fn all() -> io::Result<Vec<(&'static str, Vec<Seed>)>> {
    Ok(vec![
        ("address", addresses()),
        ("blocklist_state", blocklists().map_err(io::Error::other)?),
        ("capture", captures()?),
        ("exact_list", exact_lists()?),
        ("filter_file", filters()?),
        ("foreign", foreign_filters().map_err(io::Error::other)?),
        ("index", indexes()?),
        ("parquet", parquet_files()?),
        ("password", passwords()),
        ("private_count", private_counts().map_err(io::Error::other)?),
        ("store", epochs()?),
        ("summary", summaries()?),
        ("tables", tables()?),
        ("topology", topologies()),
        ("trace_page", trace_pages().map_err(io::Error::other)?),
        ("vault", vaults().map_err(io::Error::other)?),
    ])
}

/// An empty filter and one with lines, of every format; a chain of several links, and gzip.
fn foreign_filters() -> umbel::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for (number, format) in (0u8..).zip(Format::ALL) {
        let options = foreign::Options { funnel: Some(Funnel::Utf8), ..foreign::Options::default() };
        let mut filter = ForeignFilter::with_capacity(*format, 20, 0.1, &options)?;
        for lines in [0, 10, 100] {
            let lines: Vec<String> = (0..lines).map(|i| i.to_string()).collect();
            filter.insert_batch(&lines)?;
            seeds.push((format!("{format}-{}", lines.len()), [&[number][..], &filter.to_bytes()].concat()));
        }
        if *format == Format::Dcso {
            let mut packed = vec![number];
            let bytes = filter.to_bytes();
            let mut from = GzEncoder::new(&bytes[..], Compression::best());
            from.read_to_end(&mut packed)
                .map_err(|source| umbel::Error::parameter("gzip", source, "memory"))?;
            seeds.push((format!("{format}-gzip"), packed));
        }
    }
    Ok(seeds)
}

/// A shape, questions with and without a list of keys, and an answer.
fn private_counts() -> umbel::Result<Vec<Seed>> {
    let counts = crate::private_count::counts();
    let shape = PublicShape::from_counts(&counts)?;
    let universe: Universe = (0..50u64).map(|key| shape.hash_key(&key)).collect();
    let ask = |universe| Question::new(&shape, 5, &[shape.hash_key(&7u64)], universe);
    let question = ask(Some(&universe))?;
    let answer = Answer::new(&counts, &question, None, 100)?;
    let messages: [(&str, Message); 4] = [
        ("shape", shape.into()),
        ("class", ask(None)?.into()),
        ("question", question.into()),
        ("answer", answer.into()),
    ];
    Ok(messages.map(|(name, message)| (name.into(), message.to_bytes())).into())
}

/// Updates with all bits of a summary, compressed and not, with changes, and with nothing new; and
/// a digest of a real Squid.
fn summaries() -> io::Result<Vec<Seed>> {
    let mut summary = Summary::new(100, 16).map_err(io::Error::other)?;
    let key = |i: u32| CacheKey::from_url(&format!("http://example.org/{i}"));
    let empty = summary.update(None).encode();
    (0..50).for_each(|i| summary.insert(&key(i)));
    summary.publish().map_err(io::Error::other)?;
    let (version, all) = (summary.version(), summary.update(None).encode());
    (50..52).for_each(|i| summary.insert(&key(i)));
    summary.publish().map_err(io::Error::other)?;
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/umbel-cache/tests/golden/squid-5.7.digest");
    Ok(vec![
        ("empty".into(), empty),
        ("all".into(), all),
        ("changes".into(), summary.update(Some(version)).encode()),
        ("nothing".into(), summary.update(Some(summary.version())).encode()),
        ("squid".into(), std::fs::read(golden)?),
    ])
}

/// Networks in both formats, with everything that a file may have.
fn topologies() -> Vec<Seed> {
    let edges = "# routers\nR1 R2\nR2 R3 4 # fibre\nR3 R1 0.25\nR9\n";
    let xml = "<?xml version='1.0'?><graphml xmlns='urn:g' xmlns:y='urn:y'>\
               <key id='l' for='node' attr.name='label'/><key id='w' for='edge' attr.name='weight'><default>2</default></key>\
               <graph edgedefault='undirected'><node id='a'><data key='l'>A &amp; B</data></node>\
               <node id='b'><data key='g'><y:NodeLabel>Rome</y:NodeLabel></data></node>\
               <edge source='a' target='b'><data key='w'>7</data></edge></graph></graphml>";
    vec![("edges".into(), edges.into()), ("graphml".into(), xml.into())]
}

/// Reads a golden file of `umbel-text`.
fn golden(name: &str) -> io::Result<Seed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/umbel-text/tests/golden");
    Ok((name.into(), std::fs::read(folder.join(name))?))
}

/// Files of pyarrow and DuckDB, with filters and without.
fn parquet_files() -> io::Result<Vec<Seed>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/umbel-parquet/tests/golden");
    let names = ["types", "decimals", "nested", "sizes", "bare", "duckdb"];
    let read = |name| Ok((String::from(name), std::fs::read(folder.join(format!("{name}.parquet")))?));
    names.into_iter().map(read).collect()
}

/// Addresses in many spellings, each as a seed of its own.
fn addresses() -> Vec<Seed> {
    const ALL: [&str; 14] = [
        " HTTP://user:secret@WWW.Example.com:80/a/./b/../%2561#top",
        "http://a.b.c.d.e.f.g/1/2/3/4/5.html?param=1",
        "http://3279880203/blah",
        "http://0x7f.1/",
        "[::ffff:192.0.2.1]:8080/x",
        "https://[2001:db8::1]/?q",
        "http%3A//host%252Eexample/",
        "b\u{fc}cher.example/\u{fc}",
        "http://\u{ff21}\u{3002}example/",
        "http://host\\path\\more?x=%zz%25#y",
        "http://..a...b../..//.//",
        "evil.example",
        "0.0.0.0",
        "xn--bcher-kva.example:443/a;b?c?d",
    ];
    (0..).zip(ALL).map(|(number, address): (u8, _)| (format!("{number}"), address.into())).collect()
}

/// Exact lists: empty, with slightly more than a page, and with many hashes that share a prefix.
fn exact_lists() -> io::Result<Vec<Seed>> {
    let folder = crate::folder();
    let mut seeds = vec![golden("addresses.exact")?];
    let all =
        [b"evil.example".as_slice(), b"http://host.example/bad/?q"].map(umbel_text::address::Address::parse);
    let all = all.into_iter().collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    let (_, few) = Screen::build(&all, 0.01).map_err(io::Error::other)?;
    let many: Vec<_> =
        (0..128).map(|last| std::array::from_fn(|at| if at == 31 { last } else { 7 })).collect();
    for (name, hashes) in [("empty", &[][..]), ("few", &few), ("alike", &many)] {
        let path = folder.path().join(name);
        Exact::save(&path, hashes, false).map_err(io::Error::other)?;
        seeds.push((name.into(), std::fs::read(path)?));
    }
    Ok(seeds)
}

/// Indexes of words and of substrings, of small files and of one in blocks.
fn indexes() -> io::Result<Vec<Seed>> {
    let folder = crate::folder();
    let (logs, path) = (folder.path().join("logs"), folder.path().join("of.idx"));
    std::fs::create_dir(&logs)?;
    let mut seeds = vec![golden("words.idx")?, golden("substrings.idx")?];
    for (name, block) in [("nothing", 1 << 20), ("small", 1 << 20), ("blocks", 1 << 10)] {
        for (kind, settings) in
            [("words", index::Settings::WORDS), ("substrings", index::Settings::SUBSTRINGS)]
        {
            let settings = index::Settings { block, ..settings };
            index::build(&path, std::slice::from_ref(&logs), &settings, &index::Options::default())
                .map_err(io::Error::other)?;
            seeds.push((format!("{name}-{kind}"), std::fs::read(&path)?));
            std::fs::remove_file(&path)?;
        }
        for (name, text) in
            [("a.log", "disk full on node7\n"), ("ab.log", ""), ("b.log", "Error_log na\u{ef}ve\0")]
        {
            std::fs::write(logs.join(name), text.repeat(1 + usize::from(name == "a.log") * 150))?;
        }
    }
    Ok(seeds)
}

/// Words, sorted hashes with counts and without, hashes with empty lines between them, and
/// metadata.
fn passwords() -> Vec<Seed> {
    let words = "letmein\r\nPa\u{df}wort\n\n\u{2167}th-floor\n\u{fb01}ne";
    let mut hashes: Vec<String> = ["password", "letmein", "dragon"]
        .map(|word| sha1(word.as_bytes()).iter().map(|byte| format!("{byte:02X}")).collect())
        .into();
    hashes.sort_unstable();
    let counted: Vec<String> = hashes.iter().map(|hash| format!("{hash}:17\r\n")).collect();
    let marks = "nfkc fold-case\nargon2id m=64 t=2 p=1 salt=000102030405060708090a0b0c0d0e0f";
    let marked = format!("\u{feff}{}\n\n", hashes.join("\n\n"));
    let hashes = hashes.join("\n");
    let seeds = [
        ("words", words),
        ("hashes", &hashes),
        ("counted", &counted.concat()),
        ("marked", &marked),
        ("marks", marks),
    ];
    seeds.map(|(name, text)| (name.into(), text.into())).into()
}

/// Tables and logs, with deleted keys and without.
fn tables() -> io::Result<Vec<Seed>> {
    let mut seeds = vec![golden("words.table")?, golden("words.log")?];
    for keys in [1, 40] {
        let folder = crate::folder();
        let mut store = Store::open(folder.path(), tables::Options::default()).map_err(io::Error::other)?;
        for key in 0..keys {
            store.put(format!("key {key:04}").as_bytes(), b"value").map_err(io::Error::other)?;
        }
        store.delete(b"").map_err(io::Error::other)?;
        seeds.push((format!("{keys}.log"), std::fs::read(folder.path().join("00000001.log"))?));
        store.flush().map_err(io::Error::other)?;
        seeds.push((format!("{keys}.table"), std::fs::read(folder.path().join("00000001-00000001.table"))?));
    }
    Ok(seeds)
}

/// Each document in its own vault, after the header.
fn vaults() -> umbel_text::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for (name, _, contents) in crate::vault::documents() {
        let folder = crate::folder();
        let options = vault::Options { cost: Cost::WEAKEST, words: 8, rate: 0.01 };
        let vault = Vault::create(folder.path(), &crate::vault::passphrase(), &options)?;
        let added = vault.add(name.as_bytes(), None, &contents[..])?;
        let paths = [Vault::header_path(folder.path()), vault.server().path(&added.entry.id)];
        let bytes = paths.iter().map(std::fs::read).collect::<io::Result<Vec<_>>>();
        let failed = |source| umbel_text::Error::Io { path: folder.path().to_owned(), doing: "read", source };
        seeds.push((name.into(), bytes.map_err(failed)?.concat()));
    }
    Ok(seeds)
}

/// The golden filter files.
fn filters() -> io::Result<Vec<Seed>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/umbel/tests/golden");
    let files = std::fs::read_dir(folder)?.map(|entry| {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, std::fs::read(path)?))
    });
    files.collect()
}

/// Small lists of both backends, with and without a secret.
fn blocklists() -> umbel_net::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for backend in [Backend::Exact, Backend::Aging { generations: 3 }] {
        for (hasher, embed_key) in [(Hasher::default(), false), (Hasher::keyed(*b"sixteen letters!"), true)] {
            let options =
                Options { backend, capacity: 8, rate: 0.01, hasher, embed_key, ..Options::default() };
            let mut list = Blocklist::new(&options, Timestamp::from_millis(1_000_000))?;
            seeds.push((format!("{backend}-{embed_key}-empty"), state::to_bytes(&list)?));
            for prefix in ["10.0.0.1", "192.0.2.0/24", "2001:db8::/32"] {
                list.block(prefix.parse()?, None)?;
            }
            if backend == Backend::Exact {
                list.block("10.0.0.9".parse()?, Some(Duration::from_secs(5)))?;
            }
            list.allow("192.0.2.7".parse()?);
            list.allow("2001:db8::1".parse()?);
            list.advance(Timestamp::from_millis(2_500_000))?;
            seeds.push((format!("{backend}-{embed_key}"), state::to_bytes(&list)?));
        }
    }
    Ok(seeds)
}

/// Epochs of every method, of packets and of streams.
fn epochs() -> io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    let text = crate::store::text();
    for method in Method::ALL {
        for streams in [false, true] {
            let local = vec!["10.0.0.0/24".parse().map_err(io::Error::other)?];
            let settings = Settings { streams, local, pairs: 2, full: 1024, ..Settings::for_method(method) };
            let mut recorder = Recorder::new(settings, 1).map_err(io::Error::other)?;
            let mut frames: Vec<Vec<u8>> = (1..6).map(|host| tcp(host, 99, 0, text)).collect();
            frames.extend((1..3).map(|host| udp(2 + 2 * host, 17, text)));
            for (number, frame) in frames.iter().enumerate() {
                let time = Timestamp::from_secs(1_700_000_000 + number as u64);
                let packet = Packet::from_frame(Link::RAW, frame, time, 0).map_err(io::Error::other)?;
                recorder.record(&packet).map_err(io::Error::other)?;
            }
            if let Some(epoch) = recorder.finish().map_err(io::Error::other)? {
                seeds.push((format!("{method}-{streams}"), epoch.to_bytes().map_err(io::Error::other)?));
            }
        }
    }
    Ok(seeds)
}

/// Pages of a router that forwards packets, and of one that translates their addresses.
fn trace_pages() -> umbel_net::Result<Vec<Seed>> {
    let folder = crate::folder();
    let store = traceback::Store::create(folder.path())?;
    let new = |name| traceback::Recorder::new(store.clone(), name, traceback::Settings::default(), 1);
    let (mut plain, mut translating) = (new("R1")?, new("R2")?);
    let now = Timestamp::from_secs(1_700_000_000);
    for payload in [&b"one"[..], b"two", b"three"] {
        let mut frame = udp(4, 17, payload);
        plain.enter(Sighting::new(&frame, now)?)?;
        translating.enter(Sighting::new(&frame, now)?)?;
        frame[15] ^= 1;
        translating.leave(Sighting::new(&frame, now)?)?;
    }
    plain.finish()?;
    translating.finish()?;
    let pages = ["forwarded", "translated"].into_iter().zip(store.pages()?);
    pages.map(|(name, path)| Ok((name.to_owned(), traceback::load(path)?.to_bytes()?))).collect()
}

/// Connections with every event that can occur, in every format and link type.
fn captures() -> io::Result<Vec<Seed>> {
    const SYN: u8 = 2;
    let connection = [
        tcp(1, 99, SYN, b""),
        tcp(1, 105, 0, b"plans"),
        tcp(1, 100, 0, b"the "),
        tcp(1, 102, 0, b"EX"),
        tcp(2, 7, 0, b"start"),
        tcp(2, 40, 0, &[b'y'; 150]),
        tcp(2, 200, 0, &[b'z'; 150]),
        tcp(1, 110, 1, b"end"),
        tcp(1, 113, 4, b""),
    ];
    let strangers = [
        udp(4, 17, b"query"),
        udp(6, 17, b"query"),
        udp(4, 132, b"\x00\x00\x00\x00some"),
        // An IPv6 extension header, and a fragment.
        [
            &[0x60, 0, 0, 0, 0, 16, 44, 64],
            &[0; 32][..],
            &[17, 0, 0, 1, 0, 0, 0, 9],
            &[0, 1, 0, 2, 0, 8, 0, 0],
        ]
        .concat(),
        vec![0x99; 20],
    ];
    let mut seeds =
        vec![("empty".into(), pcap(Link::RAW, &[])?), ("pcap".into(), pcap(Link::RAW, &connection)?)];
    seeds.push(("packets".into(), pcap(Link::RAW, &strangers)?));
    for (name, link, head) in [
        ("ethernet", Link::ETHERNET, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 5, 8, 0][..]),
        ("cooked", Link::LINUX_SLL, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
        ("loopback", Link::NULL, &[2, 0, 0, 0]),
    ] {
        let frames: Vec<_> = connection.iter().map(|packet| [head, packet].concat()).collect();
        seeds.push((name.into(), pcap(link, &frames)?));
    }
    seeds.push(("pcapng".into(), pcapng(&connection)));
    for place in [1, seeds.len() - 1] {
        let (name, plain) = &seeds[place];
        let (name, mut packed) = (format!("{name}-gz"), Vec::new());
        GzEncoder::new(plain.as_slice(), Compression::default()).read_to_end(&mut packed)?;
        seeds.push((name, packed));
    }
    Ok(seeds)
}

fn pcap(link: Link, frames: &[Vec<u8>]) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), link)?;
    for (frame, second) in frames.iter().zip(1_700_000_000..) {
        writer.write(Timestamp::from_secs(second), frame)?;
    }
    Ok(writer.into_inner())
}

/// Returns a capture with a section, an interface with a resolution, and enhanced, simple and old
/// packets in turn.
fn pcapng(frames: &[Vec<u8>]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &body, &length].concat()
    };
    let mut bytes =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    bytes
        .extend(block(1, &[&101u32.to_le_bytes()[..], &[0; 4], &[9, 0, 1, 0, 9, 0, 0, 0], &[0; 4]].concat()));
    for (frame, number) in frames.iter().zip(0u32..) {
        let length = (frame.len() as u32).to_le_bytes();
        let fields = [[0; 4], 400_000_000u32.to_le_bytes(), number.to_le_bytes(), length, length].concat();
        bytes.extend(match number % 3 {
            0 => block(6, &[&fields[..], frame].concat()),
            1 => block(3, &[&length[..], frame].concat()),
            _ => block(2, &[&fields[..], frame].concat()),
        });
    }
    bytes
}

/// Returns an IPv4 packet with a TCP segment from a host.
fn tcp(host: u8, seq: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let header = [0, 5, 0, 80, 0, 0, 0, seq, 0, 0, 0, 0, 0x50, flags, 1, 1, 0, 0, 0, 0];
    ip(4, host, 6, &[&header[..], payload].concat())
}

/// Returns a packet of either version with a UDP datagram.
fn udp(version: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [_, length] = (8 + payload.len() as u16).to_be_bytes();
    ip(version, 3, protocol, &[&[0, 53, 0, 99, 0, length, 0, 0], payload].concat())
}

fn ip(version: u8, host: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16;
    let header = if version == 4 {
        let [high, low] = (20 + length).to_be_bytes();
        vec![0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, host, 10, 0, 0, 9]
    } else {
        let [high, low] = length.to_be_bytes();
        let mut header = vec![0x60, 0, 0, 0, high, low, protocol, 64];
        header.extend([[0xfd; 15].as_slice(), &[host], &[0xfd; 15], &[9]].concat());
        header
    };
    [header, payload.to_vec()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel_net::attribution::Epoch;

    /// The functions of a target: whether it accepts bytes, and its run.
    type Target = (fn(&[u8]) -> bool, fn(&[u8]));

    fn target(name: &str) -> Target {
        match name {
            "address" => (crate::address::loads, crate::address::run),
            "blocklist_state" => (crate::blocklist_state::loads, crate::blocklist_state::run),
            "capture" => (crate::capture::loads, crate::capture::run),
            "exact_list" => (crate::exact_list::loads, crate::exact_list::run),
            "filter_file" => (crate::filter_file::loads, crate::filter_file::run),
            "foreign" => (crate::foreign::loads, crate::foreign::run),
            "index" => (crate::index::loads, crate::index::run),
            "parquet" => (crate::parquet::loads, crate::parquet::run),
            "password" => (crate::password::loads, crate::password::run),
            "private_count" => (crate::private_count::loads, crate::private_count::run),
            "store" => (crate::store::loads, crate::store::run),
            "tables" => (crate::tables::loads, crate::tables::run),
            "trace_page" => (crate::trace_page::loads, crate::trace_page::run),
            "summary" => {
                (|bytes| crate::summary::update(bytes) || crate::summary::digest(bytes), crate::summary::run)
            }
            "topology" => (crate::topology::loads, crate::topology::run),
            "vault" => (crate::vault::loads, crate::vault::run),
            other => panic!("no target {other}"),
        }
    }

    /// A rejected seed would be useless.
    #[test]
    fn seeds_are_accepted() -> io::Result<()> {
        for (name, seeds) in all()? {
            let (loads, run) = target(name);
            for (seed, bytes) in seeds {
                assert!(loads(&bytes), "{name}: {seed}");
                run(&bytes);
            }
        }
        Ok(())
    }

    /// A seal leaves a valid file unchanged, and a file that was changed and then sealed is
    /// accepted.
    #[test]
    fn seals_of_documents_match() -> io::Result<()> {
        for (name, seeds) in all()? {
            let seal: fn(&mut Vec<u8>) = match name {
                "exact_list" => crate::seal::exact_list,
                "index" => crate::seal::index,
                "tables" => |bytes| {
                    if bytes.starts_with(b"UMBELLOG") {
                        crate::seal::log(bytes)
                    } else {
                        crate::seal::table(bytes)
                    }
                },
                "vault" => |bytes| crate::seal::vault(bytes),
                _ => continue,
            };
            for (seed, bytes) in seeds {
                let mut sealed = bytes.clone();
                seal(&mut sealed);
                assert!(sealed == bytes, "{name}: {seed}");
                // The seals inside a vault cannot be forged.
                if name != "vault" {
                    let last = bytes.len() - 9;
                    sealed[48] ^= 1;
                    sealed[last] ^= 1;
                    seal(&mut sealed);
                    assert!(target(name).0(&sealed), "{name}: {seed}, changed");
                }
            }
        }
        Ok(())
    }

    /// A file that was changed at its head or end and then sealed is not reported as damaged: it is
    /// accepted, or rejected for its contents.
    #[test]
    fn seals_match() -> io::Result<()> {
        let sealed = ["blocklist_state", "filter_file", "store", "trace_page"];
        for (target, seeds) in all()?.into_iter().filter(|(target, _)| sealed.contains(target)) {
            for (name, mut bytes) in seeds {
                bytes[48] ^= 1;
                let last = bytes.len() - 9;
                bytes[last] ^= 1;
                let problem = match target {
                    "filter_file" => {
                        crate::seal::filter_file(&mut bytes);
                        umbel::file::from_bytes(&bytes, &crate::ring())
                            .err()
                            .map(|error| format!("{error:#}"))
                    }
                    "store" => {
                        crate::seal::epoch(&mut bytes);
                        Epoch::from_bytes(&bytes).err().map(|error| format!("{error:#}"))
                    }
                    "trace_page" => {
                        crate::seal::trace_page(&mut bytes);
                        traceback::Page::from_bytes(&bytes).err().map(|error| format!("{error:#}"))
                    }
                    _ => {
                        crate::seal::blocklist_state(&mut bytes);
                        state::from_bytes(&bytes, &crate::ring()).err().map(|error| format!("{error:#}"))
                    }
                };
                let damaged = problem.filter(|problem| problem.contains("damaged"));
                assert!(damaged.is_none(), "{name}: {damaged:?}");
            }
        }
        Ok(())
    }
}
