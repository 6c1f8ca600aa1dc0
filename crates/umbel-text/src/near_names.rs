//! Names that resemble one that does not exist, for the remedy in an error.

/// The number of edits that make two names of this many characters similar.
fn max_edits(chars: usize) -> usize {
    (chars / 4).clamp(1, 3)
}

/// The longest names that are compared letter by letter.
const MAX_COMPARED_CHARS: usize = 256;

/// Returns the names that resemble a wanted one, the most similar first, at most `most`.
///
/// A name is similar if it is the same in another case, ends with the wanted name, contains it, or
/// is a few edits away; its last part, after a slash, counts as a name of its own.
///
/// ```
/// use umbel_text::near_names::near_names;
/// let names = ["deep/GPL-3", "deep/LGPL-3.0", "gpl-3", "GPL-2", "MIT"];
/// assert_eq!(near_names("GPL-3", names, 5), ["gpl-3", "deep/GPL-3", "deep/LGPL-3.0", "GPL-2"]);
/// assert_eq!(near_names("GPL-3", names, 2).len(), 2);
/// assert!(near_names("Apache", names, 5).is_empty());
/// ```
pub fn near_names<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>, most: usize) -> Vec<&'n str> {
    let folded = wanted.to_lowercase();
    let letters: Vec<char> = folded.chars().collect();
    let rank = |name: &'n str| similarity(&folded, &letters, name).map(|rank| (rank, name));
    let mut found: Vec<(Similarity, &str)> = names.into_iter().filter_map(rank).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(most).map(|(_, name)| name).collect()
}

/// How a name resembles the wanted one, from the closest to the most distant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Similarity {
    Case,
    LastPart,
    End,
    Inside,
    Edits(usize),
}

fn similarity(wanted: &str, letters: &[char], name: &str) -> Option<Similarity> {
    let name = name.to_lowercase();
    if name == wanted {
        return Some(Similarity::Case);
    }
    // Every name contains the empty one.
    if !wanted.is_empty() && name.contains(wanted) {
        return Some(match name.strip_suffix(wanted) {
            Some(before) if before.ends_with('/') => Similarity::LastPart,
            Some(_) => Similarity::End,
            None => Similarity::Inside,
        });
    }
    let last_part = name.rsplit('/').next().unwrap_or_default();
    let limit = max_edits(letters.len());
    let near = [&name[..], last_part].into_iter().filter_map(|name| edits(letters, name, limit));
    near.min().map(Similarity::Edits)
}

/// Returns the number of letters to insert, delete or replace to get from one name to the other, if
/// there are at most `limit`.
fn edits(letters: &[char], name: &str, limit: usize) -> Option<usize> {
    let name: Vec<char> = name.chars().take(MAX_COMPARED_CHARS + 1).collect();
    // A name of one or two letters is a few edits from any other.
    let is_short = letters.len() < 3;
    if is_short
        || letters.len().max(name.len()) > MAX_COMPARED_CHARS
        || letters.len().abs_diff(name.len()) > limit
    {
        return None;
    }
    // `row[i]` is the number of edits between the letters so far and the first `i` of the name.
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (at, letter) in letters.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (i, other) in name.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[i + 1];
            row[i + 1] = replaced.min(row[i] + 1).min(diagonal + 1);
        }
        if row.iter().all(|edits| *edits > limit) {
            return None;
        }
    }
    row.last().copied().filter(|edits| *edits <= limit)
}
