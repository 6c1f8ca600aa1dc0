//! Lists of passwords, and the metadata that says how they are looked up.
//!
//! No input may cause a panic. Every word of a list that was read is weak. A sorted list of leaked
//! hashes gives the same answers by binary search as by reading it through. A recipe that was
//! parsed can be written and parsed again.

use std::collections::HashSet;
use umbel::file::Meta;
use umbel::{Digest, Hasher};
use umbel_text::password::{Algorithm, Digester, Form, List, Lists, Prefix, Pwned, RangeList, Recipe, scan};

/// Larger than lists that are always read through.
const LARGE: usize = (1 << 20) + 1;

/// Tests any bytes: as metadata, as a list, and as a long list.
pub fn run(bytes: &[u8]) {
    marks(bytes);
    // Wiping the memory afterwards takes most of the time, so each input is read in one way only.
    let algorithm = [Algorithm::Sha1, Algorithm::Ntlm][bytes.len() / 3 % 2];
    let said = [None, Some(Lists::Words), Some(Lists::Hashes(algorithm))][bytes.len() % 3];
    reads(bytes, if said.is_none() { Form::Folded } else { algorithm.form() }, said);
    halves(bytes);
}

/// Returns whether the whole list can be read with its format detected.
pub fn loads(bytes: &[u8]) -> bool {
    reads(bytes, Form::Sha1, None)
}

/// The byte order mark with which some programs start a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty())
}

fn reads(bytes: &[u8], form: Form, said: Option<Lists>) -> bool {
    let mut digester = Digester::new(Recipe { form, ..Recipe::default() }, Hasher::default());
    let Ok(list) = List::open(bytes, said) else { return false };
    let holds = list.holds();
    let mut weak: HashSet<Digest> = HashSet::new();
    let read = list.read(&digester, 0, |digests| {
        weak.extend(digests);
        Ok(())
    });
    let Ok(count) = read else { return false };
    assert_eq!(count, lines(bytes).count() as u64);
    for line in lines(bytes) {
        match holds {
            Lists::Words => {
                let each = digester.each(line, |digest| {
                    assert!(weak.contains(&digest), "{line:?}");
                    Ok(())
                });
                each.expect("no slow hash");
            }
            Lists::Hashes(_) => {
                let line = Pwned::parse(line).expect("a list that was read has nothing else");
                assert!(weak.contains(&digester.digest_hash(&line.hash).expect("no slow hash")));
            }
        }
    }
    true
}

/// Repeats each line so often that the list is not read through. Empty lines and the byte order
/// mark are skipped, as in the library.
fn halves(bytes: &[u8]) {
    let hashes: Vec<Option<Pwned>> = lines(bytes).map(Pwned::parse).collect();
    // Most inputs are not hashes, and end here.
    if hashes.first().is_none_or(Option::is_none) {
        return;
    }
    let times = LARGE.div_ceil(lines(bytes).map(<[u8]>::len).sum());
    let (mut long, mut before) = (Vec::with_capacity(2 * LARGE), &b"none"[..]);
    let mut usual = true;
    let rest = bytes.strip_prefix(MARK).inspect(|_| long.extend(MARK)).unwrap_or(bytes);
    for line in rest.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        (0..if line.len() < 2 { 1 } else { times }).for_each(|_| long.extend([line, b"\n"].concat()));
        // Real lists never have consecutive empty lines, or counts with leading zeros.
        usual &= line.len() <= 62 && (line.len() > 1 || before.len() > 1);
        before = line;
    }
    let folder = crate::folder();
    let path = folder.path().join("leaked");
    std::fs::write(&path, &long).expect("room");
    let algorithm = hashes.first().copied().flatten().map(|line| line.hash.algorithm());
    let ordered = hashes.iter().all(|line| line.map(|line| line.hash.algorithm()) == algorithm)
        && hashes.iter().flatten().is_sorted_by_key(|line| line.hash);
    let mut list = match RangeList::open(&path) {
        Ok(list) => list,
        Err(problem) => return assert!(!(ordered && usual), "{problem}"),
    };
    for line in [hashes.first(), hashes.last()].into_iter().flatten().flatten() {
        let prefix = Prefix::from_hash(&line.hash);
        let found = list.range(prefix);
        if ordered && usual {
            let mut found = found.expect("a list of hashes");
            found.sort_unstable();
            assert_eq!(Some(found), scan(&long[..], prefix).ok(), "{prefix}");
        }
    }
}

/// Tests the first line as the form and the second as the slow hash.
fn marks(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line).into_owned());
    let mut meta = Meta::new();
    for (mark, line) in Recipe::MARKS.iter().zip(&mut lines) {
        meta.insert((*mark).into(), line);
    }
    let Ok(recipe) = Recipe::from_meta(&meta) else { return };
    let mut written = Meta::new();
    recipe.record(&mut written);
    assert_eq!(Recipe::from_meta(&written).ok(), Some(recipe));
}
