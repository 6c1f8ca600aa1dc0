//! The whole report: every experiment holds, and in a browser every chart has a size, nothing else
//! is loaded, and the page fits a phone.
//!
//! Times are measured meanwhile, so this file has one test alone.

use crate::chromium;
use crate::shell::Shell;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The script that inspects a page: the size of each chart, the loaded resources, and the width of
/// the page in a narrow frame.
const QUESTIONS: &str = r#"<script>
const frame = document.createElement("iframe");
frame.style.width = "360px";
frame.style.border = "0";
frame.srcdoc = document.documentElement.outerHTML.replace(/<script>[^]*<\/script>/, "");
frame.onload = () => {
  const narrow = frame.contentDocument.documentElement;
  const answer = {
    charts: [...document.querySelectorAll("section figure svg")].map(svg => {
      const box = svg.getBoundingClientRect();
      return {width: box.width, height: box.height, drawn: svg.querySelectorAll("polyline,circle,polygon,line,rect,path").length,
              words: svg.querySelectorAll("text").length, section: svg.closest("section").id};
    }),
    loaded: performance.getEntriesByType("resource").map(entry => entry.name),
    narrow: {page: narrow.scrollWidth, frame: narrow.clientWidth},
  };
  frame.remove();
  document.body.innerHTML = "";
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify(answer);
  document.body.append(told);
};
document.body.append(frame);
</script>"#;

/// Returns the result of the script for a page.
fn seen(shell: &Shell, browser: &str, page: &Path) -> Value {
    let content = fs::read_to_string(page).expect("a page");
    let asked = shell.path("asked.html");
    fs::write(&asked, content.replace("</body>", &format!("{QUESTIONS}</body>"))).expect("room for a page");
    let mut command = shell.program(browser);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--virtual-time-budget=20000",
        ])
        .args(["--window-size=1000,800", "--dump-dom"])
        .arg(format!("--user-data-dir={}", shell.path("browser").display()))
        .arg(format!("file://{}", asked.display()));
    let answer = command.output().expect("the browser starts");
    let dom = String::from_utf8_lossy(&answer.stdout);
    let told = dom.split_once("<pre id=\"told\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (told, _) = told.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&answer.stderr)));
    serde_json::from_str(told).unwrap_or_else(|error| panic!("{error}: {told}"))
}

#[test]
fn every_experiment_holds_and_a_browser_sees_every_chart_of_the_report() {
    let shell = Shell::new();
    // This takes up to three minutes, longer than the time limit of other commands.
    let answer = shell.command("lab run all --quick --out report").output().expect("umbel starts");
    let told = String::from_utf8_lossy(&answer.stdout);
    assert!(answer.status.success(), "{told}");
    assert!(told.lines().filter(|line| line.contains(" holds, ")).count() >= 15, "{told}");

    let folder = shell.path("report");
    let mut pictures = 0;
    for entry in fs::read_dir(&folder).expect("a report") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            let files = fs::read_dir(&path).expect("a folder").map(|file| file.expect("a file").path());
            pictures += files.filter(|file| file.extension().is_some_and(|ending| ending == "svg")).count();
        }
    }
    assert!(pictures >= 15, "{pictures} pictures");

    let shown = fs::read_to_string(folder.join("E21/space_1e-2.svg")).expect("the chart of all kinds");
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab.svg");
    let readme = fs::read_to_string(readme).expect("the picture of the README");
    assert!(shown == readme, "docs/lab.svg is not E21/space_1e-2.svg of a quick run any more: copy it");

    let textbooks = fs::read_to_string(folder.join("textbooks.html")).expect("the page of slips");
    let slips: Vec<&str> = textbooks.split("<dt id=\"").skip(1).collect();
    let unshown: Vec<&str> =
        slips.iter().filter(|slip| !slip.contains("index.html#")).map(|slip| &slip[..3]).collect();
    assert_eq!(
        unshown,
        ["e05", "e06", "e22", "e32", "e51"],
        "these are matters of wording; all others are shown"
    );

    let Some(browser) = chromium::program() else {
        eprintln!("no browser, so nobody has looked at the report: `apt-get install chromium`");
        return;
    };
    let answer = seen(&shell, browser, &folder.join("index.html"));
    let charts = answer["charts"].as_array().expect("a list");
    assert_eq!(charts.len(), pictures, "every picture is on the page");
    let index = fs::read_to_string(folder.join("index.html")).expect("the page");
    assert_eq!(index.matches("<a class=\"card\"").count(), 10, "the first screen has ten small pictures");
    for chart in charts {
        let number = |name: &str| chart[name].as_f64().unwrap_or_default();
        assert!(number("width") > 300.0 && number("height") > 100.0, "{chart}");
        assert!(number("drawn") > 5.0 && number("words") > 2.0, "{chart}");
    }
    assert_eq!(answer["loaded"], serde_json::json!([]), "the page loads nothing");
    assert_eq!(
        answer["narrow"]["page"], answer["narrow"]["frame"],
        "a phone need not scroll the page sideways"
    );
    let answer = seen(&shell, browser, &folder.join("textbooks.html"));
    assert_eq!(answer["loaded"], serde_json::json!([]));
    assert_eq!(answer["narrow"]["page"], answer["narrow"]["frame"]);
}
