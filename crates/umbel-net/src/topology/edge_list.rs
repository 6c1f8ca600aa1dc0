//! Edge lists: a line for each link, with the names of two nodes and perhaps a length.

use super::draft::{Draft, Mistake, parse_length};

/// Reads an edge list.
pub(super) fn parse(text: &str) -> Result<Draft, Mistake> {
    let mut draft = Draft::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        match words[..] {
            [] => {}
            [node] => {
                draft.node(node, at)?;
            }
            [a, b] | [a, b, _] => {
                let length = words.get(2).map_or(Ok(1.0), |length| parse_length(length, at))?;
                let ends = [draft.node(a, at)?, draft.node(b, at)?];
                draft.link(text, ends, length, at)?;
            }
            _ => {
                let problem = format!(
                    "{} words, where a line has two names and perhaps a length; use GraphML for names with spaces",
                    words.len()
                );
                return Err(Mistake::at(at, problem));
            }
        }
        at += line.len();
    }
    Ok(draft)
}
