//! The frame and the style of an HTML page that loads nothing, fits on a phone, follows the colour
//! scheme of the reader and prints.

/// Returns a page with this title and content.
pub fn page(title: &str, content: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{}</title>\
         <style>{STYLE}</style></head><body>{content}</body></html>\n",
        escaped(title)
    )
}

/// Returns a row of a table. Numbers are aligned to the right.
pub fn row(cell: &str, cells: impl IntoIterator<Item = String>) -> String {
    let cells = cells.into_iter().map(|text| {
        let class = if text.parse::<f64>().is_ok() { " class=\"n\"" } else { "" };
        format!("<{cell}{class}>{}</{cell}>", escaped(&text))
    });
    format!("<tr>{}</tr>", cells.collect::<String>())
}

/// Escapes the characters that have a meaning in HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns text as HTML: code between backticks is marked, powers are raised, and a per cent sign
/// or a tolerance stays on the line of its number.
pub fn prose(text: &str) -> String {
    let mut html = String::new();
    let text = code(&escaped(text).replace(" %", "&nbsp;%").replace(" ± ", "&nbsp;±&nbsp;"));
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('^') {
        let (power, after) = after.split_at(power(after));
        let bare = power.strip_prefix('(').and_then(|power| power.strip_suffix(')')).unwrap_or(power);
        html += &format!("{before}<sup>{bare}</sup>");
        rest = after;
    }
    html + rest
}

/// Marks text between backticks as code.
fn code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let part = |(number, part): (usize, &&str)| match number % 2 {
        0 => (*part).to_string(),
        // The last backtick may have no partner.
        _ if number + 1 == parts.len() => format!("`{part}"),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Returns the length of the power at the start of the text: an expression in parentheses, or a
/// number or name with its sign.
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
    :root{color-scheme:light dark;--text:#222;--page:#fff;--faint:#5a5a5a;--link:#00588a;--rule:#ddd;\
    --accent:#0072b2;--holds:#00734f;--fails:#b34000;--soft:#eef5fa}\
    @media(prefers-color-scheme:dark){:root{--text:#ddd;--page:#191919;--faint:#a0a0a0;--link:#7cc0ee;\
    --rule:#444;--accent:#56b4e9;--holds:#4cc29a;--fails:#ff9a5c;--soft:#20303a}\
    figure svg,.card svg{filter:invert(.9) hue-rotate(180deg)}}\
    body{font:17px/1.55 system-ui,sans-serif;max-width:64rem;margin:auto;padding:1rem;\
    color:var(--text);background:var(--page)}\
    p,dl,figure,h3,ul{max-width:48rem}\
    h1{font-size:1.8rem;margin:.4rem 0 .2rem}\
    h2{font-size:1.5rem;margin:3.5rem 0 .3rem;border-top:2px solid var(--accent);padding-top:.6rem}\
    nav h2{margin-top:1.6rem;font-size:1.25rem}\
    h3{font-size:1.2rem;margin:3rem 0 .3rem}h3 a{text-decoration:none}h3 small{font-size:.8rem;\
    font-weight:normal;white-space:nowrap}\
    h4{margin:0 0 .2rem;font-size:1rem}\
    .verdict{margin:.3rem 0 .8rem}\
    .cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(10.5rem,1fr));gap:.8rem}\
    .card{display:block;border:1px solid var(--rule);border-radius:.4rem;overflow:hidden;\
    text-decoration:none;font-size:.8rem;line-height:1.3;color:var(--text)}\
    .card:hover{border-color:var(--accent)}.card svg{display:block;width:100%;height:auto}\
    .card span{display:block;padding:.4rem .5rem .5rem}\
    .contents{columns:22rem;column-gap:2rem}.contents>div{break-inside:avoid;margin-bottom:.9rem}\
    .contents ul{margin:0;padding:0;list-style:none;font-size:.95rem}\
    .contents li{padding-left:1.2rem;text-indent:-1.2rem;line-height:1.45}\
    figure{margin:1.2rem 0;overflow-x:auto}figure svg{display:block;width:100%;min-width:34rem;height:auto}\
    .advice{background:var(--soft);border-left:3px solid var(--accent);padding:.5rem .8rem}\
    .wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\
    td,th{padding:.15rem 1rem .15rem 0;text-align:left;border-bottom:1px solid var(--rule);\
    vertical-align:top}td.n{text-align:right}\
    .holds{color:var(--holds)}.fails{color:var(--fails);font-weight:bold}\
    cite,.faint{color:var(--faint);font-style:normal}\
    summary{cursor:pointer;color:var(--link)}details{margin:.5rem 0}a{color:var(--link)}\
    dt{margin-top:1.2rem;font-style:italic}dd{margin:0 0 0 1.2rem}\
    sup{white-space:nowrap}code{overflow-wrap:anywhere}\
    @media(max-width:36rem){figure::before{content:\"swipe sideways \\21c4\";font-size:.8rem;\
    color:var(--faint)}.cards{grid-template-columns:repeat(2,1fr)}}\
    @media print{body{font-size:11pt;max-width:none}figure,h2,h3,tr,.card{break-inside:avoid}\
    h2,h3{break-after:avoid}figure svg{min-width:0}a{color:inherit;text-decoration:none}}";

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
