//! The status page: the statistics as a single HTML page without other resources.

use serde_json::Value;
use std::fmt::Write;

/// The sources of responses: the field of the statistics, the label and the colour.
const SOURCES: [(&str, &str, &str); 4] = [
    ("hits", "hits", "#2a7f62"),
    ("revalidated", "hits, after the origin was asked", "#7bb661"),
    ("peer_hits", "peer hits", "#3f6fb5"),
    ("misses", "misses, from origins", "#b9770e"),
];

/// Renders the status page.
pub(super) fn status_page(stats: &Value) -> String {
    let mut page = String::from(START);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let counts = SOURCES.map(|(name, _, _)| number(&stats[name]));
    let responses: u64 = counts.iter().sum();
    let bytes = &stats["bytes"];
    let _ = write!(
        page,
        "<h1>umbel proxy</h1>\n<p>{} answered in {}, {} of them without an origin; {} saved.</p>\n",
        counted(responses, "page"),
        duration(number(&stats["uptime_seconds"])),
        share(counts[0] + counts[2], responses),
        size(number(&stats["bytes_saved"])),
    );
    page.push_str("<div class=\"bar\">");
    for ((_, label, colour), count) in SOURCES.iter().zip(counts).filter(|(_, count)| *count > 0) {
        let of = share(count, responses);
        let _ =
            write!(page, "<span style=\"flex:{count};background:{colour}\" title=\"{label}: {of}\"></span>");
    }
    page.push_str("</div>\n");
    let sizes = [&bytes["from_cache"], &Value::Null, &bytes["from_peers"], &bytes["from_origins"]];
    let rows = SOURCES.iter().zip(counts).zip(sizes).map(|(((_, label, colour), count), size_of)| {
        let label = format!("<i style=\"background:{colour}\"></i>{label}");
        let size_of = size_of.as_u64().map_or_else(String::new, size);
        vec![label, grouped(count), share(count, responses), size_of]
    });
    table(&mut page, "Sources of responses", &["", "responses", "share", "bytes"], rows);

    let (store, filter) = (&stats["store"], &stats["filter"]);
    let facts = |rows: &[(&str, String)]| -> Vec<Vec<String>> {
        rows.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect()
    };
    let plain = |value: &Value| grouped(number(value));
    let rows = facts(&[
        ("documents", plain(&store["documents"])),
        ("on disk", size(number(&store["bytes"]))),
        ("in memory", size(number(&store["memory"]))),
        ("kept since the start", plain(&stats["stored"])),
        ("had to go for others", plain(&store["evicted"])),
        ("asked for the first time, and not kept", plain(&stats["not_admitted"])),
        ("too large or cut short, and not kept", plain(&stats["dropped"])),
        ("found damaged, and removed", plain(&store["damaged"])),
    ]);
    table(&mut page, "The cache", &[], rows);
    let lookups = number(&filter["denied"]) + number(&filter["false_hits"]);
    let rows = facts(&[
        ("misses known from the filter alone", plain(&filter["denied"])),
        ("misses found in the index only: false hits of the filter", plain(&filter["false_hits"])),
        ("rate of false hits of the filter", share(number(&filter["false_hits"]), lookups)),
        ("false hits of peers, which cost a question", plain(&stats["false_hits"])),
        ("waited for what another fetched", plain(&stats["collapsed"])),
        ("wanted only what is here, which was not", plain(&stats["only_if_cached"])),
        ("tunnels", plain(&stats["tunnels"])),
        ("refused", plain(&stats["refused"])),
        ("turned away for lack of a place", plain(&stats["turned_away"])),
        ("origins that failed", plain(&stats["origin_failures"])),
    ]);
    table(&mut page, "Requests and failures", &[], rows);

    let peers = stats["peers"].as_array().map_or(&[][..], Vec::as_slice);
    if !peers.is_empty() {
        let columns = [
            "address",
            "documents",
            "asked",
            "hits",
            "false hits",
            "failed",
            "updates",
            "bytes of updates",
            "state",
        ];
        let rows = peers.iter().map(|peer| {
            let state = match (peer["documents"].is_null(), peer["resting"] == true) {
                (true, _) => "unknown",
                (false, true) => "paused",
                (false, false) => "well",
            };
            vec![
                escaped(peer["address"].as_str().unwrap_or_default()),
                plain(&peer["documents"]),
                plain(&peer["asked"]),
                plain(&peer["hits"]),
                plain(&peer["false_hits"]),
                plain(&peer["failures"]),
                plain(&peer["updates"]),
                size(number(&peer["update_bytes"])),
                state.to_owned(),
            ]
        });
        table(&mut page, "Peers", &columns, rows);
    }
    page.push_str("<p><a href=\"stats\">All of this as JSON</a></p>\n</body>\n</html>\n");
    page
}

const START: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<meta http-equiv=\"refresh\" content=\"5\">
<title>umbel proxy</title>
<style>
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 56rem; padding: 0 1rem }
h1 { margin: 0 }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .3rem }
.bar { display: flex; height: 1.2rem; border-radius: .3rem; overflow: hidden; background: #8883 }
table { border-collapse: collapse }
th, td { border-bottom: 1px solid #8884; padding: .15rem 1.2rem .15rem 0; text-align: right; font-weight: normal }
th { color: GrayText }
td { font-variant-numeric: tabular-nums }
th:first-child, td:first-child { text-align: left }
i { display: inline-block; width: .8em; height: .8em; border-radius: .2em; margin-right: .5em }
</style>
</head>
<body>
";

/// Writes a table. The cells are HTML.
fn table(page: &mut String, title: &str, columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let _ = write!(page, "<h2>{title}</h2>\n<table>\n");
    if !columns.is_empty() {
        let cells: String = columns.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
        let _ = writeln!(page, "<tr>{cells}</tr>");
    }
    for row in rows {
        let cells: String = row.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        let _ = writeln!(page, "<tr>{cells}</tr>");
    }
    page.push_str("</table>\n");
}

/// Formats a number in groups of three digits: 1 234 567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with a noun in the singular or plural.
fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Formats a share of a total in percent.
fn share(part: u64, total: u64) -> String {
    if total == 0 { "\u{2013}".into() } else { format!("{:.1}\u{202f}%", 100.0 * part as f64 / total as f64) }
}

/// Formats a number of bytes with a binary unit.
fn size(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (bytes.max(1).ilog2() / 10) as usize;
    match power {
        0 => format!("{bytes} bytes"),
        _ => format!("{:.1} {}", bytes as f64 / 1024f64.powi(power as i32), units[power]),
    }
}

/// Formats a duration in its largest suitable unit.
fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_formatted_for_people() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1_234_567)),
            ("0".into(), "999".into(), "1\u{202f}234\u{202f}567".into())
        );
        assert_eq!(
            (size(1023), size(1536), size(u64::MAX)),
            ("1023 bytes".into(), "1.5 KiB".into(), "16.0 EiB".into())
        );
        assert_eq!((share(1, 3), share(0, 0)), ("33.3\u{202f}%".into(), "\u{2013}".into()));
        assert_eq!(
            (duration(119), duration(120), duration(900_000)),
            ("119 s".into(), "2 min".into(), "10 days".into())
        );
    }

    #[test]
    fn the_name_of_a_peer_is_escaped() {
        let page = status_page(&json!({ "peers": [{ "address": "<script>:1", "documents": null }] }));
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>") && page.contains("unknown"));
    }
}
