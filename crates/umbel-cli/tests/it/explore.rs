//! `umbel explore`: the page in a real browser shows what the commands print, and the server answers
//! only to the page.

use crate::chromium::Browser;
use crate::client::{Connection, Response};
use crate::shell::{Process, Shell};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A server with its address and token.
pub struct Explorer {
    pub process: Process,
    /// The address of the page, with the token.
    pub url: String,
    pub address: SocketAddr,
    token: String,
}

impl Explorer {
    #[track_caller]
    pub fn start(shell: &Shell, arguments: &[&str]) -> Explorer {
        let mut process = shell.start(&[&["explore", "--no-open"], arguments].concat());
        let line = process.next_line(Duration::from_secs(60)).expect("the address is printed");
        let url = String::from_utf8(line).expect("an address").trim_end().to_owned();
        let (address, token) =
            url.strip_prefix("http://").and_then(|rest| rest.split_once("/?token=")).expect(&url);
        let (address, token) = (address.parse().expect(&url), token.to_owned());
        Explorer { process, url, address, token }
    }

    /// Sends a request with these headers, as an attacker may write them.
    fn send(&self, request: &str, headers: &[(&str, &str)], body: &str) -> Option<Response> {
        let mut connection = Connection::open(self.address);
        let mut head = format!("{request} HTTP/1.1\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        // The server may have closed the connection before all was sent.
        let _ = connection.send(format!("{head}\r\n{body}").as_bytes());
        connection.receive(false)
    }

    /// Asks as the page does.
    #[track_caller]
    pub fn ask(&self, question: &str, fields: &Value) -> Value {
        let (host, request) = (self.address.to_string(), format!("POST /api/{question}"));
        let headers = [("Host", &host[..]), ("X-Umbel-Token", &self.token)];
        let response = self.send(&request, &headers, &fields.to_string()).expect("an answer");
        assert_eq!(response.status, 200, "{}", response.text());
        serde_json::from_slice(&response.body).expect("JSON")
    }

    /// Sends a file as the page does, with its name in percent codes.
    #[track_caller]
    pub fn drop_file(&self, name: &str, bytes: &[u8]) -> Value {
        let host = self.address.to_string();
        let mut connection = Connection::open(self.address);
        let head = format!(
            "POST /api/drop HTTP/1.1\r\nHost: {host}\r\nX-Umbel-Token: {}\r\nX-Umbel-Name: {name}\r\n\
             Content-Length: {}\r\n\r\n",
            self.token,
            bytes.len()
        );
        connection.send(&[head.as_bytes(), bytes].concat()).expect("a server that reads");
        serde_json::from_slice(&connection.receive(false).expect("an answer").body).expect("JSON")
    }

    /// Ends the server as Ctrl-C does.
    #[track_caller]
    pub fn end(mut self, signal: Signal) {
        kill_process(Pid::from_child(self.process.child()), signal).expect("a process of our own");
        self.process.finish().ok();
    }

    fn status(&self, request: &str, headers: &[(&str, &str)], body: &str) -> u16 {
        self.send(request, headers, body).map_or(0, |response| response.status)
    }
}

/// Returns what `umbel plan --compare` prints.
fn compared(shell: &Shell, options: &[&str]) -> Vec<Value> {
    let plans = shell.run(&[&["plan", "--compare", "--json"], options].concat()).ok().json();
    plans.as_array().expect("a list").clone()
}

#[test]
fn plans_are_those_of_the_command() {
    let shell = Shell::new();
    let explorer = Explorer::start(&shell, &[]);
    for given in [
        &[("n", "1e6"), ("p", "1%")][..],
        &[("n", "5000"), ("p", "1/1000")],
        &[("n", "1e6"), ("m", "1MiB")],
        &[("m", "8388608"), ("k", "5")],
        &[("p", "0.1%"), ("m", "64MiB")],
        &[("n", "1e6"), ("p", "2%"), ("k", "8")],
    ] {
        let fields: Value = given.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let options: Vec<String> =
            given.iter().flat_map(|(name, value)| [format!("-{name}"), (*value).to_string()]).collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let answer = explorer.ask("plan", &fields);
        let mut kinds = answer["kinds"].as_array().expect("a list").clone();
        for kind in &mut kinds {
            kind.as_object_mut().expect("a report").remove("asked");
        }
        assert_eq!(kinds, compared(&shell, &options), "{given:?}");
    }
}

#[test]
fn the_command_of_a_plan_builds_exactly_this_filter() {
    let shell = Shell::new();
    let explorer = Explorer::start(&shell, &[]);
    shell.write("keys.txt", "rose\nlily\n");
    let mut built = 0;
    for fields in
        [json!({"n": "5000", "p": "1%"}), json!({"n": "5e5", "m": "1e7"}), json!({"m": "1e6", "k": "5"})]
    {
        for row in explorer.ask("plan", &fields)["kinds"].as_array().expect("a list") {
            let mut fields = fields.clone();
            fields["kind"] = row["asked"].clone();
            let answer = explorer.ask("plan", &fields);
            // A fuse filter is sized for the keys in the file, whatever is planned.
            if !row["error"].is_null() || row["kind"] == "fuse" {
                continue;
            }
            if let Some(error) = answer["code"]["error"].as_str() {
                assert!(error.contains(row["asked"].as_str().expect("a kind")), "{error}");
                continue;
            }
            let command = answer["code"]["command"].as_str().expect("a command");
            Process::start(&mut shell.script(command)).finish().ok();
            let facts = shell.info("keys.umbel");
            assert_eq!(facts["kind"], row["kind"], "{command}");
            assert_eq!(facts["hashes"], row["hashes"], "{command}");
            assert_eq!(facts["bytes"], row["bytes"], "{command}");
            std::fs::remove_file(shell.path("keys.umbel")).expect("a filter");
            built += 1;
        }
    }
    assert!(built > 20, "{built}");
}

#[test]
fn mistakes_are_answers_that_name_the_input() {
    let shell = Shell::new();
    let explorer = Explorer::start(&shell, &[]);
    for (fields, input) in [
        (json!({"n": "many", "p": "1%"}), "n"),
        (json!({"n": "1e6", "p": "200%"}), "p"),
        (json!({"n": "1e6", "m": "-5"}), "m"),
        (json!({"m": "1e6", "k": "2.5"}), "k"),
    ] {
        let answer = explorer.ask("plan", &fields);
        assert_eq!((&answer["input"], answer["error"].is_string()), (&json!(input), true), "{answer}");
    }
    for fields in
        [json!({}), json!({"k": "3"}), json!({"kind": "rose"}), json!({"other": 1}), json!([1]), json!("n")]
    {
        let answer = explorer.ask("plan", &fields);
        let rows = answer["kinds"].as_array().map_or(&[][..], Vec::as_slice);
        let fails = answer["error"].is_string() || rows.iter().all(|row| row["error"].is_string());
        assert!(fails, "{fields}: {answer}");
        explorer.ask("curves", &fields);
    }
}

#[test]
fn requests_of_other_pages_are_refused() {
    let shell = Shell::new();
    let explorer = Explorer::start(&shell, &[]);
    let (host, token) = (explorer.address.to_string(), explorer.token.clone());
    let body = r#"{"n":"1e6","p":"1%"}"#;
    let own = [("Host", &host[..]), ("X-Umbel-Token", &token[..])];
    assert_eq!(explorer.status("POST /api/plan", &own, body), 200);
    let origin = format!("http://{host}");
    assert_eq!(explorer.status("POST /api/plan", &[&own[..], &[("Origin", &origin)]].concat(), body), 200);

    let port = explorer.address.port();
    for host in
        ["evil.example".to_owned(), format!("evil.example:{port}"), "192.0.2.1".to_owned(), String::new()]
    {
        for request in ["GET /", "GET /app.js", "POST /api/plan"] {
            let headers = [("Host", &host[..]), ("X-Umbel-Token", &token)];
            assert!((400..500).contains(&explorer.status(request, &headers, "")), "{request} {host}");
        }
    }
    for origin in
        ["http://evil.example", "null", &format!("http://127.0.0.1:{}", port ^ 1), &format!("https://{host}")]
    {
        let headers = [&own[..], &[("Origin", origin)]].concat();
        assert_eq!(explorer.status("POST /api/plan", &headers, body), 403, "{origin}");
    }
    for wrong in ["", "0", &"0".repeat(token.len()), &token[..token.len() - 1], &format!("{token}0")] {
        let headers = [("Host", &host[..]), ("X-Umbel-Token", wrong)];
        assert_eq!(explorer.status("POST /api/plan", &headers, body), 401, "{wrong}");
    }
    // A token elsewhere is none: pages of others can make browsers send cookies and queries.
    let headers = [("Host", &host[..]), ("Cookie", &format!("x-umbel-token={token}"))];
    assert_eq!(explorer.status("POST /api/plan", &headers, body), 401);
    assert_eq!(explorer.status(&format!("POST /api/plan?token={token}"), &headers[..1], body), 401);
    assert_eq!(explorer.status("GET /", &[], ""), 400, "without Host");
    assert_eq!(explorer.status("GET http://evil.example/", &own, ""), 403);
    assert_eq!(explorer.status("GET /api/plan", &own, ""), 405);
    assert_eq!(explorer.status("POST /", &own, ""), 405);
    for path in ["/nothing", "/../Cargo.toml", "/%2e%2e/etc/passwd", "/open/", "/texts.json"] {
        assert_eq!(explorer.status(&format!("GET {path}"), &own, ""), 404, "{path}");
    }
    assert_eq!(explorer.status("POST /api/nothing", &own, "{}"), 404);
    assert_eq!(explorer.status("POST /api/plan", &own, "{"), 400);
}

#[test]
fn the_page_may_load_only_its_own_parts() {
    let shell = Shell::new();
    let explorer = Explorer::start(&shell, &[]);
    let host = explorer.address.to_string();
    for path in ["/", "/style.css", "/app.js", "/texts.js"] {
        let response = explorer.send(&format!("GET {path}"), &[("Host", &host)], "").expect("a file");
        assert_eq!(response.status, 200, "{path}");
        let policy = response.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"), "the address has the token");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert!(!response.text().contains(&explorer.token), "{path}");
    }
}

#[test]
fn large_and_slow_requests_hold_up_nobody() {
    let shell = Shell::new();
    let explorer = Explorer::start(&shell, &[]);
    let (host, token) = (explorer.address.to_string(), explorer.token.clone());
    let own = [("Host", &host[..]), ("X-Umbel-Token", &token[..])];
    let much = "x".repeat(4_000_000);
    let status = explorer.status("GET /", &[&own[..], &[("X-Much", &much)]].concat(), "");
    assert!(status == 0 || (400..500).contains(&status), "{status}");
    let length = [&own[..], &[("Content-Length", "99999999999999")]].concat();
    assert_eq!(explorer.status("POST /api/plan", &length, ""), 413);
    // A body of unknown length is cut off, too.
    let chunked = [&own[..], &[("Transfer-Encoding", "chunked")]].concat();
    let mut connection = Connection::open(explorer.address);
    let head: String = chunked.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, "x".repeat(1 << 16)).repeat(40);
    let _ = connection.send(format!("POST /api/plan HTTP/1.1\r\n{head}\r\n{chunk}").as_bytes());
    let status = connection.receive(false).map_or(0, |response| response.status);
    assert!([0, 413].contains(&status), "{status}");

    let halves: Vec<Connection> = (0..50)
        .map(|_| {
            let mut half = Connection::open(explorer.address);
            half.send(b"POST /api/plan HTTP/1.1\r\nHost:").expect("half a request");
            half
        })
        .collect();
    let asked = json!({"n": "1e6", "p": "1%"});
    std::thread::scope(|scope| {
        let answers: Vec<_> = (0..100).map(|_| scope.spawn(|| explorer.ask("plan", &asked))).collect();
        for answer in answers {
            assert!(answer.join().expect("an answer")["kinds"].is_array());
        }
    });
    drop(halves);
}

#[test]
fn a_signal_ends_it_while_clients_are_connected() {
    let shell = Shell::new();
    for signal in [Signal::INT, Signal::TERM] {
        let explorer = Explorer::start(&shell, &[]);
        let _idle = Connection::open(explorer.address);
        let start = Instant::now();
        explorer.end(signal);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}

#[test]
fn only_with_a_flag_other_machines_can_reach_it() {
    let shell = Shell::new();
    for listen in ["192.0.2.1:0", "0.0.0.0:0", "[::]:8080"] {
        shell.run(&["explore", "--no-open", "--listen", listen]).refused(&["--allow-remote", listen]);
    }
    let explorer = Explorer::start(&shell, &[]);
    let taken = explorer.address.to_string();
    shell.run(&["explore", "--no-open", "--listen", &taken]).refused(&["cannot listen", &taken]);
    shell.run("explore --no-open --listen nowhere").refused(&["127.0.0.1:8080"]);
    let mut remote = Explorer::start(&shell, &["--listen", "0.0.0.0:0", "--allow-remote"]);
    remote.address.set_ip([127, 0, 0, 1].into());
    assert_eq!(remote.status("GET /", &[("Host", "192.0.2.1:80")], ""), 200);
    assert_eq!(remote.status("GET /", &[("Host", "evil.example:80")], ""), 403);
}

/// Returns the fields of a kind in the table of the page.
const ROW: &str = "Object.fromEntries([...document.querySelectorAll('[data-panel=plan] [data-kind=KIND] \
    [data-field]')].map(e => [e.dataset.field, Number(e.dataset.value)]))";

#[test]
fn a_browser_shows_the_plan_in_both_languages_and_at_every_width() {
    let Some(mut browser) = Browser::start() else { return };
    let shell = Shell::new();
    let explorer = Explorer::start(&shell, &[]);
    let own = format!("http://{}/", explorer.address);

    let mut page = browser.open(&format!("{}#n=1e6&p=1%", explorer.url), "en-US,en", 1600);
    page.wait_for("document.querySelectorAll('[data-kind] [data-field=fpr]').length === 13");
    for kind in compared(&shell, &["-n", "1e6", "-p", "1%"]) {
        let shown = page.evaluate(&ROW.replace("KIND", kind["kind"].as_str().expect("a name")));
        for field in ["bits", "bytes", "hashes", "fpr", "lines_touched", "bits_per_key"] {
            assert_eq!(shown[field].as_f64(), kind[field].as_f64(), "{field} of {kind}");
        }
    }
    // The inputs changed last decide, and the address follows.
    page.enter("m", "8388608");
    page.enter("n", "2e6");
    page.wait_for("location.hash === '#n=2e6&m=8388608'");
    let plan = &compared(&shell, &["-n", "2e6", "-m", "8388608"])[2];
    let shown = format!(
        "{} === {}",
        "Number(document.querySelector('[data-kind=blocked] [data-field=fpr]')?.dataset.value)", plan["fpr"]
    );
    page.wait_for(&shown);
    page.wait_for("document.querySelector('[data-field=command]').textContent === 'umbel build -n 2e6 -m 8388608 -o keys.umbel keys.txt'");
    page.click("[data-kind=cuckoo] input");
    page.wait_for("location.hash.endsWith('&kind=cuckoo') && document.querySelector('#plan-result').textContent.includes('more bits')");
    page.click("[data-kind=standard] input");
    page.enter("n", "");
    page.wait_for("document.querySelector('[data-input=n]').getAttribute('aria-invalid') === 'false'");
    page.enter("n", "two");
    page.wait_for("document.querySelector('#plan-n-note').textContent.startsWith('not a number')");
    page.assert_clean(&own);

    let mut page = browser.open(&explorer.url, "de-DE,de", 900);
    page.wait_for("document.documentElement.lang === 'de' && document.body.innerText.includes('Schlüssel')");
    page.wait_for("document.querySelectorAll('.chart path').length > 10");
    page.enter("language", "en");
    page.wait_for("document.documentElement.lang === 'en' && !document.body.innerText.includes('Schlüssel')");
    page.assert_clean(&own);

    let mut page = browser.open(&explorer.url, "en", 360);
    page.wait_for("document.querySelectorAll('[data-kind] [data-field=fpr]').length === 13");
    assert_eq!(
        page.evaluate("document.scrollingElement.scrollWidth"),
        360,
        "a phone need not scroll sideways"
    );
    page.assert_clean(&own);

    let mut page = browser.open(&own, "en", 900);
    page.wait_for("document.querySelector('#trouble').textContent.includes('token')");
}
