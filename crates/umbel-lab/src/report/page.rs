//! The pages of the report: HTML that needs nothing from elsewhere, is read on a phone, and prints.

/// A page with this title and content.
pub fn page(title: &str, content: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{}</title>\
         <style>{STYLE}</style></head><body>{content}</body></html>\n",
        escaped(title)
    )
}

/// A row of a table.
pub fn row<'a>(cell: &str, cells: impl IntoIterator<Item = &'a str>) -> String {
    let cells = cells.into_iter().map(|text| format!("<{cell}>{}</{cell}>", escaped(text)));
    format!("<tr>{}</tr>", cells.collect::<String>())
}

/// Text as it has to stand between tags.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Prose, with powers raised and no line that begins with a per cent sign.
pub fn prose(text: &str) -> String {
    let mut told = String::new();
    let text = code(&escaped(text).replace(" %", "&nbsp;%"));
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('^') {
        let (power, after) = after.split_at(power(after));
        let bare = power.strip_prefix('(').and_then(|power| power.strip_suffix(')')).unwrap_or(power);
        told += &format!("{before}<sup>{bare}</sup>");
        rest = after;
    }
    told + rest
}

/// Marks text between backticks as code.
fn code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let part = |(number, part): (usize, &&str)| match number % 2 {
        0 => (*part).to_string(),
        // The last one may have no end.
        _ if number + 1 == parts.len() => format!("`{part}"),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(part).collect()
}

/// How much of the text is the power: something in parentheses, or a number or name with its sign.
fn power(text: &str) -> usize {
    let mut depth = 0;
    let closes = |(at, letter): (usize, char)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        (depth == 0).then_some(at + 1)
    };
    if text.starts_with('(') {
        return text.char_indices().find_map(closes).unwrap_or(text.len());
    }
    let sign = usize::from(text.starts_with('-'));
    text[sign..].find(|letter: char| !letter.is_alphanumeric()).map_or(text.len(), |end| sign + end)
}

const STYLE: &str = "\
    :root{color-scheme:light}\
    body{font:17px/1.55 system-ui,sans-serif;max-width:48rem;margin:auto;padding:1rem;color:#222;background:#fff}\
    h1{font-size:1.8rem;margin-bottom:.2rem}\
    h2{font-size:1.25rem;margin:3.5rem 0 .3rem;border-top:2px solid #0072b2;padding-top:.6rem}\
    h2 small{font-size:.8rem;font-weight:normal}\
    figure{margin:1.2rem 0;overflow-x:auto}figure svg{display:block;width:100%;min-width:34rem;height:auto}\
    .wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\
    td,th{padding:.15rem .7rem .15rem 0;text-align:left;border-bottom:1px solid #ddd;vertical-align:top}\
    .holds{color:#00734f}.fails{color:#b34000;font-weight:bold}cite,.faint{color:#5a5a5a;font-style:normal}\
    summary{cursor:pointer;color:#00588a}details{margin:.5rem 0}a{color:#00588a}\
    ol{list-style:none;padding:0}dt{margin-top:1.2rem;font-style:italic}dd{margin:0 0 0 1.2rem}\
    sup{white-space:nowrap}\
    @media(max-width:36rem){figure::before{content:\"swipe sideways \\21c4\";font-size:.8rem;color:#5a5a5a}}\
    @media print{body{font-size:11pt;max-width:none}figure,h2,tr{break-inside:avoid}h2{break-after:avoid}\
    figure svg{min-width:0}a{color:inherit;text-decoration:none}}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_raised_and_tags_are_not_made() {
        assert_eq!(prose("(1 - e^(-kn/m))^k."), "(1 - e<sup>-kn/m</sup>)<sup>k</sup>.");
        assert_eq!(prose("n/2^64 < 2^-q, 3 %"), "n/2<sup>64</sup> &lt; 2<sup>-q</sup>, 3&nbsp;%");
        assert_eq!(prose("(1 - (1 - 1/m)^(k(n)))^k"), "(1 - (1 - 1/m)<sup>k(n)</sup>)<sup>k</sup>");
        assert_eq!(prose("x^(open <b>"), "x<sup>(open &lt;b&gt;</sup>");
        assert_eq!(prose("x^"), "x<sup></sup>");
        assert_eq!(
            prose("`umbel lab` and one ` more"),
            "`umbel lab` and one ` more".replace("`umbel lab`", "<code>umbel lab</code>")
        );
    }
}
