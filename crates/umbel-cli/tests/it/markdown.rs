//! As much of Markdown as the tests of the pages need: fenced blocks, code spans, tables, links, and
//! the anchors that GitHub gives to headings.

use std::collections::{BTreeSet, HashMap};

/// The fence that opens or closes a block of code on this line: its character and length.
fn fence(line: &str) -> Option<(char, usize)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|character| *character == mark).count();
    (length >= 3).then_some((mark, length))
}

/// The lines of each block of code in this language, for fences that are not indented.
pub fn blocks<'a>(text: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    let opening = format!("```{language}");
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while lines.by_ref().any(|line| line == opening) {
        blocks.push(lines.by_ref().take_while(|line| *line != "```").collect());
    }
    blocks
}

/// The lines outside of fenced blocks and HTML comments.
fn prose(text: &str) -> Vec<&str> {
    let (mut open, mut comment) = (None, false);
    text.lines()
        .filter(|line| {
            let inside = open.is_some() || comment;
            match (open, fence(line)) {
                (None, Some(fence)) if !comment => open = Some(fence),
                (Some((mark, length)), Some((closing, closing_length)))
                    if mark == closing && closing_length >= length =>
                {
                    open = None;
                }
                (None, _) if line.contains("<!--") || comment => comment = !line.contains("-->"),
                _ => {}
            }
            !inside && open.is_none() && !comment
        })
        .collect()
}

/// The contents of the code spans of a text, outside of fenced blocks.
pub fn code_spans(text: &str) -> Vec<&str> {
    prose(text).into_iter().flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// The rows of each table, its header and the line below it first.
pub fn tables(text: &str) -> Vec<Vec<&str>> {
    let lines = prose(text);
    let groups = lines.chunk_by(|one, next| one.starts_with('|') == next.starts_with('|'));
    groups.filter(|rows| rows[0].starts_with('|') && rows.len() > 2).map(<[&str]>::to_vec).collect()
}

/// The cells of a row of a table.
pub fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// The paragraphs of a text without their code spans, which may run over several lines.
fn paragraphs_without_code(text: &str) -> Vec<String> {
    let lines = prose(text);
    let paragraphs = lines.split(|line| line.trim().is_empty());
    paragraphs.map(|lines| lines.join("\n").split('`').step_by(2).collect()).collect()
}

/// Whether a link leaves the repository.
pub fn is_external(link: &str) -> bool {
    let scheme = link.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// The targets of all links and images: inline, in definitions, and in HTML.
pub fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for paragraph in paragraphs_without_code(text) {
        let mut add = |target: &str| {
            let target = target.trim_start().trim_start_matches('<');
            let end = target.find(|end: char| end.is_whitespace() || matches!(end, ')' | '>' | '"' | '\''));
            links.push(target[..end.unwrap_or(target.len())].to_owned());
        };
        paragraph.split("](").skip(1).for_each(&mut add);
        paragraph.split("src=\"").skip(1).chain(paragraph.split("href=\"").skip(1)).for_each(&mut add);
        for line in paragraph.lines() {
            if let Some((_, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
                add(target);
            }
        }
    }
    links
}

/// The text of a heading without the targets of its links.
fn without_targets(heading: &str) -> String {
    let mut parts = heading.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// The anchors of a page by the rules of GitHub: headings in lower case, without punctuation, with
/// hyphens for spaces, and numbered if they come again; and the ids of HTML elements.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let lines = prose(text);
    for (number, line) in lines.iter().enumerate() {
        for attribute in ["id=\"", "name=\""] {
            let ids = line.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
            anchors.extend(ids.map(str::to_owned));
        }
        let title = line.trim_start_matches('#');
        let underlined = |next: &&str| {
            let next = next.trim_end();
            next.len() >= 3
                && (next.bytes().all(|byte| byte == b'=') || next.bytes().all(|byte| byte == b'-'))
        };
        let heading = if line.starts_with('#') && title.starts_with(' ') {
            title.trim().trim_end_matches('#').trim_end()
        } else if !line.trim().is_empty() && lines.get(number + 1).is_some_and(underlined) {
            line.trim()
        } else {
            continue;
        };
        let kept = |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_');
        let slug: String = without_targets(heading).to_lowercase().chars().filter(kept).collect();
        let slug = slug.replace(' ', "-");
        let times = seen.entry(slug.clone()).or_default();
        anchors.insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
        *times += 1;
    }
    anchors
}

#[test]
fn anchors_follow_the_rules_of_github() {
    let text = "# On a server: Redis & *Valkey*\n## `umbel` [here](x.md#y)\n## Again\n## Again\nOld\n---\n```sh\n# not this\n```\n<a id=\"by-hand\"></a>\n";
    let expected = ["again", "again-1", "by-hand", "old", "on-a-server-redis--valkey", "umbel-here"];
    assert!(anchors(text).iter().eq(expected), "{:?}", anchors(text));
}

#[test]
fn links_in_code_and_comments_do_not_count() {
    let text = "[a](b.md) `[c](d.md)` ![e](<f.svg>)\n```text\n[g](h.md)\n```\n<!--\n[i](j.md)\n-->\n[k]: l.md \"m\"\n";
    assert_eq!(links(text), ["b.md", "f.svg", "l.md"]);
}
