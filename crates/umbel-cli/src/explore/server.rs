//! The HTTP server of the page: connections, limits, and its end.

use super::api::Context as Answers;
use super::drop::Drops;
use super::guard::{Guard, Refusal};
use super::parts::{CONTENT_SECURITY_POLICY, Part};
use super::{api, browser};
use crate::remote::percent;
use crate::system::signals;
use crate::terminal::output;
use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};

/// The largest number of connections at a time. Others wait until one ends.
const MAX_CONNECTIONS: usize = 256;

/// The largest number of questions that are computed at a time. Others wait.
const MAX_COMPUTATIONS: usize = 4;

/// The largest request line with headers.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// The largest number of headers.
const MAX_HEADERS: usize = 64;

/// The largest question.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Time limits for the headers of a request and for its body.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after a connection could not be accepted, for lack of file descriptors, for example.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The time for which the server waits at its end for requests that are being answered.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// The settings of the server.
pub struct Options {
    pub listen: SocketAddr,
    /// The files that the page may ask about, and what opens them.
    pub answers: Answers,
    /// Whether the page is opened in the browser of the user, if there is one.
    pub opens_browser: bool,
}

/// Everything that requests share.
struct State {
    guard: Guard,
    /// The path that leads to the page once, without a token in it.
    door: Door,
    answers: Answers,
    drops: Drops,
    computations: Semaphore,
}

/// Serves the page until SIGINT or SIGTERM.
///
/// # Errors
///
/// If the address is not free, or threads cannot be started.
pub fn serve(options: Options) -> Result<()> {
    let (terminate, until) = oneshot::channel();
    signals::on_termination(move || {
        // The receiver lives as long as the program.
        let _ = terminate.send(());
    })?;
    let (drops, _folder) = Drops::new()?;
    let runtime = Runtime::new().context("cannot start threads")?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(options.listen)
            .await
            .with_context(|| format!("cannot listen at {}", options.listen))?;
        let address = listener.local_addr().context("cannot listen")?;
        let guard = Guard::new(!address.ip().to_canonical().is_loopback())?;
        let door = Door::new(options.opens_browser)?;
        output::text(format_args!("http://{address}/?token={}\n", guard.token()))?;
        if let Some(path) = &door.path {
            browser::open(&format!("http://{address}{path}"));
        }
        let computations = Semaphore::new(MAX_COMPUTATIONS);
        let state = State { guard, door, answers: options.answers, drops, computations };
        accept_until(listener, Arc::new(state), until).await;
        anyhow::Ok(())
    });
    // Do not wait for a computation in progress.
    runtime.shutdown_background();
    served
}

/// Answers clients until `until` completes. Requests that are being answered then get a moment more.
async fn accept_until(listener: TcpListener, state: Arc<State>, until: oneshot::Receiver<()>) {
    let (shutdown_sender, shutdown) = watch::channel(());
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let accept = async {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            };
            let connection = serve_connection(stream, Arc::clone(&state), shutdown.clone());
            tokio::spawn(async move {
                connection.await;
                drop(place);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        _ = until => {}
    }
    drop(shutdown_sender);
    let _ = timeout(SHUTDOWN_GRACE, places.acquire_many(MAX_CONNECTIONS as u32)).await;
}

/// Answers the requests of a connection.
async fn serve_connection(stream: TcpStream, state: Arc<State>, mut shutdown: watch::Receiver<()>) {
    // Responses are sent at once and do not wait for more data.
    let _ = stream.set_nodelay(true);
    let handler = |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(respond(request, &state).await) }
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service_fn(handler));
    tokio::pin!(connection);
    // A client that fails is not an error of the server.
    let _ = tokio::select! {
        result = connection.as_mut() => result,
        _ = shutdown.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}

/// Answers a request: a file of the page, or a question of it.
async fn respond(request: Request<Incoming>, state: &Arc<State>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let result = match head.uri.path().strip_prefix("/api/") {
        Some(question) => answer(question, &head, body, state).await,
        None => file(&head, state),
    };
    result.unwrap_or_else(|(status, why)| {
        let mut response = response("application/json", json!({"error": why}).to_string());
        *response.status_mut() = status;
        response
    })
}

/// Returns a file of the page.
fn file(head: &Parts, state: &State) -> Result<Response<Full<Bytes>>, Refusal> {
    state.guard.check_addresses(head)?;
    if head.method != Method::GET && head.method != Method::HEAD {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here"));
    }
    if state.door.opens(head.uri.path()) {
        let mut response = response("text/plain", String::new());
        *response.status_mut() = StatusCode::SEE_OTHER;
        let page = format!("/?token={}", state.guard.token());
        let page = HeaderValue::try_from(page).expect("a token has digits only");
        response.headers_mut().insert(header::LOCATION, page);
        return Ok(response);
    }
    let part = Part::find(head.uri.path()).ok_or((StatusCode::NOT_FOUND, "there is no such page"))?;
    Ok(response(part.content_type, part.contents().into_owned()))
}

/// Answers a question of the page. Mistakes of the user, such as a rate of 2, are answers.
async fn answer(
    question: &str,
    head: &Parts,
    body: Incoming,
    state: &Arc<State>,
) -> Result<Response<Full<Bytes>>, Refusal> {
    state.guard.check_addresses(head)?;
    state.guard.check_token(head)?;
    if head.method != Method::POST {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "questions are sent with POST"));
    }
    let answered = if question == "drop" {
        let path = state.drops.store(&dropped_name(head), body).await?;
        compute(state, move |state| {
            let facts = state.answers.facts(&path);
            match facts {
                Ok(_) => state.answers.add(path),
                Err(_) => state.drops.remove(&path),
            }
            facts
        })
        .await?
    } else {
        let question = api::find(question).ok_or((StatusCode::NOT_FOUND, "there is no such question"))?;
        let asked = read_json(body).await?;
        compute(state, move |state| question(&state.answers, &asked)).await?
    };
    Ok(response("application/json", answered.to_string()))
}

/// Computes an answer in a thread, when there is a place.
async fn compute(
    state: &Arc<State>,
    answer: impl FnOnce(&State) -> Result<Value> + Send + 'static,
) -> Result<Value, Refusal> {
    let Ok(_permit) = state.computations.acquire().await else {
        return Err((StatusCode::SERVICE_UNAVAILABLE, "the server is ending"));
    };
    let shared = Arc::clone(state);
    let answered = tokio::task::spawn_blocking(move || answer(&shared)).await;
    let answered =
        answered.map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "the answer failed: please report this"))?;
    Ok(answered.unwrap_or_else(|error| json!({"error": format!("{error:#}")})))
}

/// Returns the name of a dropped file, which is written in percent codes.
fn dropped_name(head: &Parts) -> String {
    let name = head.headers.get("x-umbel-name").and_then(|name| name.to_str().ok()).unwrap_or_default();
    String::from_utf8_lossy(&percent::decode(name)).into_owned()
}

/// Reads a question within its limits.
async fn read_json(body: Incoming) -> Result<Value, Refusal> {
    const TOO_LONG: Refusal = (StatusCode::PAYLOAD_TOO_LARGE, "the question is too long");
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(TOO_LONG);
    }
    let body = timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY_BYTES).collect());
    let body =
        body.await.map_err(|_| (StatusCode::REQUEST_TIMEOUT, "the question did not arrive in time"))?;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => TOO_LONG,
        None => (StatusCode::BAD_REQUEST, "the question is incomplete"),
    })?;
    serde_json::from_slice(&body.to_bytes())
        .map_err(|_| (StatusCode::BAD_REQUEST, "the question is not JSON"))
}

/// Returns a response with the headers that protect the page.
fn response(content_type: &'static str, contents: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(contents.into()));
    let headers = response.headers_mut();
    let protection = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The address has the token.
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in protection {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A path that leads to the page once. The address for the browser is visible in the list of
/// processes, so it must not contain the token, which stays valid.
struct Door {
    path: Option<String>,
    is_used: AtomicBool,
}

impl Door {
    fn new(is_needed: bool) -> Result<Door> {
        let path = match is_needed {
            true => Some(format!("/open/{}", Guard::new(false)?.token())),
            false => None,
        };
        Ok(Door { path, is_used: AtomicBool::new(false) })
    }

    /// Returns whether this is the path, for the first time.
    fn opens(&self, path: &str) -> bool {
        self.path.as_deref() == Some(path) && !self.is_used.swap(true, Ordering::SeqCst)
    }
}
