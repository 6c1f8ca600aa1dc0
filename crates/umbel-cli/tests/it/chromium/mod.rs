//! A real browser without a window, driven by the DevTools protocol over a pipe: no port, and no
//! program besides the browser.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time limit for an answer of the browser, and for a page to become what a test waits for.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The options of a browser that shows nothing and contacts nobody.
const OPTIONS: &str = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --remote-debugging-pipe";

/// Returns Debian's browser, or another one of its family.
pub fn program() -> Option<&'static str> {
    let works = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|answer| answer.status.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works)
}

/// A browser, which ends with this value.
pub struct Browser {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
    /// Events that were read before the answer to a call.
    events: VecDeque<Value>,
    calls: u64,
    _profile: TempDir,
}

impl Browser {
    /// Starts the browser. There has to be one where everything is tested.
    pub fn start() -> Option<Browser> {
        let Some(program) = program() else {
            assert!(std::env::var_os("CI").is_none(), "no browser: `apt-get install chromium`");
            eprintln!("skipped, since there is no browser: `apt-get install chromium`");
            return None;
        };
        let profile = tempfile::tempdir().expect("a temporary folder");
        // The protocol uses the files 3 and 4.
        let script = "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null";
        let mut child = Command::new("sh")
            .args(["-c", script, "sh", program])
            .args(OPTIONS.split_whitespace())
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in BufReader::new(stdout).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("the browser sends JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Some(Browser { child, stdin, messages, events: VecDeque::new(), calls: 0, _profile: profile })
    }

    /// Calls a method of the protocol, of the browser or of a page.
    #[track_caller]
    fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        self.stdin.write_all(format!("{message}\0").as_bytes()).expect("the browser reads");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.next(deadline) {
                Some(answer) if answer["id"] == self.calls => {
                    assert!(answer["error"].is_null(), "{method}: {answer}");
                    return answer["result"].clone();
                }
                Some(event) => self.events.push_back(event),
                None => panic!("no answer to {method}"),
            }
        }
    }

    /// Returns the next message, if one arrives in time.
    #[track_caller]
    fn next(&mut self, deadline: Instant) -> Option<Value> {
        match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the browser has ended"),
        }
    }

    /// Opens an address in a new window with this language and width.
    #[track_caller]
    pub fn open(&mut self, address: &str, language: &str, width: u32) -> Page<'_> {
        let context = self.call(None, "Target.createBrowserContext", json!({}))["browserContextId"].clone();
        let target = json!({"url": "about:blank", "browserContextId": context});
        let target = self.call(None, "Target.createTarget", target)["targetId"].clone();
        let target = json!({"targetId": target, "flatten": true});
        let session =
            self.call(None, "Target.attachToTarget", target)["sessionId"].as_str().unwrap().to_owned();
        self.events.clear();
        let mut page = Page { browser: self, session, errors: Vec::new(), requests: Vec::new() };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        let agent = json!({"userAgent": "test", "acceptLanguage": language});
        page.call("Emulation.setUserAgentOverride", agent);
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        page.call("Emulation.setDeviceMetricsOverride", size);
        page.call("Page.navigate", json!({"url": address}));
        page.wait_for("document.readyState === 'complete'");
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A window with a page.
pub struct Page<'a> {
    browser: &'a mut Browser,
    session: String,
    /// The errors on the console.
    errors: Vec<String>,
    /// The addresses that were requested.
    requests: Vec<String>,
}

impl Page<'_> {
    #[track_caller]
    fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.browser.call(Some(&self.session), method, params);
        while let Some(event) = self.browser.events.pop_front() {
            self.note(&event);
        }
        answer
    }

    fn note(&mut self, event: &Value) {
        if event["sessionId"] != self.session {
            return;
        }
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.errors.push(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if params["type"] == "error" => self.errors.push(params.to_string()),
            "Log.entryAdded" if params["entry"]["level"] == "error" => self.errors.push(params.to_string()),
            "Network.requestWillBeSent" => {
                self.requests.push(params["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }

    /// Returns the value of an expression in the page.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression in the page is true.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while self.evaluate(expression) != true {
            assert!(Instant::now() < deadline, "not true: {expression}; {:?}", self.errors);
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Writes into an input as a user does, in one step.
    #[track_caller]
    pub fn enter(&mut self, input: &str, text: &str) {
        let script = format!(
            "(field => {{ field.focus(); field.value = {}; for (const type of ['input', 'change']) \
             field.dispatchEvent(new Event(type, {{bubbles: true}})) }})(document.querySelector('[data-input=\"{input}\"]'))",
            json!(text)
        );
        self.evaluate(&script);
    }

    /// Clicks on an element.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        self.evaluate(&format!("document.querySelector({}).click()", json!(selector)));
    }

    /// Asserts that the page caused no error, and requested nothing but addresses that begin so.
    #[track_caller]
    pub fn assert_clean(&mut self, own: &str) {
        self.evaluate("new Promise(done => setTimeout(done, 100))");
        assert_eq!(self.errors, [""; 0], "errors on the console");
        assert!(!self.requests.is_empty());
        for request in &self.requests {
            assert!(request.starts_with(own) || request.starts_with("data:"), "{request} was requested");
        }
    }
}
