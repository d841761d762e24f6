//! Requests for a path: waits, redirects, and retries.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::future::Future;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::{Instant, sleep, timeout_at};

use super::connection::{Connection, Terms, Trust};
use super::connection::{Reply, Room};
use super::failure::Failure;
use super::message::Request;
use super::options::Options;
use super::secret::hide;
use super::url::{Server, Url};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime;

/// Maximum number of redirects of a request, as in other clients.
const MAX_REDIRECTS: usize = 16;
/// Time before the first retry; it doubles with each one.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// Maximum time between two retries.
const MAX_BACKOFF: Duration = Duration::from_secs(15);
/// Minimum time to wait where a server asks for it, so that a server cannot keep the client busy.
const MIN_WAIT: Duration = Duration::from_millis(20);

/// A URL and how to reach it. `Display` gives the URL as the caller wrote it, without credentials.
#[derive(Debug)]
pub(super) struct Client {
    uri: String,
    pub(super) url: Url,
    pub(super) options: Options,
    trust: Trust,
    /// The server that failed last, where a redirect had led.
    failed: Mutex<Option<String>>,
    /// Why the last attempt failed that was repeated, for calls that end by their time.
    last_failure: Mutex<Option<String>>,
}

/// Where a request was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) connection: Connection,
    /// The URL after redirects.
    pub(super) url: Url,
    pub(super) body: BytesMut,
    /// The response to the second request, if there was one and it succeeded.
    pub(super) second: Option<BytesMut>,
}

impl Client {
    /// `action` is what the URL is for, for errors.
    pub(super) fn new(url: &str, options: &Options, action: &'static str) -> Result<Self> {
        let uri = hide(url);
        match Url::parse(url) {
            Ok(url) => {
                let (failed, last_failure) = (Mutex::new(None), Mutex::new(None));
                Ok(Self { uri, url, options: options.clone(), trust: Trust::default(), failed, last_failure })
            }
            Err(failure) => Err(failure.into_error(action, uri)),
        }
    }

    /// The next requests ask redirectors for another server than this one.
    pub(super) fn avoid(&self, server: &Server) {
        if *server != self.url.server {
            *lock(&self.failed) = Some(server.host.clone());
        }
    }

    /// Sends a request for a path to the server of the URL, and to where that redirects it.
    pub(super) async fn perform(
        &self,
        url: &Url,
        request: impl Fn(&Url) -> Request,
        room: impl Fn() -> Room + Copy,
    ) -> Result<Answer, Failure> {
        self.perform_both(url, request, room, None).await
    }

    /// As [`perform`](Self::perform), with a second request that does not wait for the response to the first one.
    pub(super) async fn perform_both(
        &self,
        url: &Url,
        request: impl Fn(&Url) -> Request,
        room: impl Fn() -> Room + Copy,
        second: Option<&Request>,
    ) -> Result<Answer, Failure> {
        let mut url = url.clone();
        if let Some(host) = &*lock(&self.failed) {
            let tried = format!("tried={host}");
            url.opaque = Some(url.opaque.map_or(tried.clone(), |opaque| format!("{opaque}&{tried}")));
        }
        let mut terms = Terms { tls: url.tls, is_trusted: true, user: url.user.clone(), login_token: None };
        for _ in 0..=MAX_REDIRECTS {
            let connection = Connection::open(&url.server, &terms, &self.options, &self.trust).await;
            let connection = connection.inspect_err(|_| self.avoid(&url.server))?;
            let first = request(&url);
            let second = async {
                match connection.channel.call(second?, Room::control()).await {
                    Ok(Reply::Done(body)) => Some(body),
                    _ => None,
                }
            };
            let (reply, second) = tokio::join!(settle(&connection, &first, room), second);
            match reply.inspect_err(|_| self.avoid(&url.server))? {
                Reply::Done(body) => return Ok(Answer { connection, url, body, second }),
                Reply::Redirect(redirect) => {
                    let next = url.redirected(&redirect, connection.is_encrypted && url.tls)?;
                    let is_trusted =
                        connection.is_trusted && (connection.is_encrypted || next.server == connection.server);
                    terms = Terms { tls: next.tls, is_trusted, user: next.user.clone(), login_token: redirect.token };
                    url = next;
                }
                other => return Err(unexpected(&other)),
            }
        }
        let reason = format!("more than {MAX_REDIRECTS} redirects, the last one to {}", url.server);
        Err(Failure::new(ErrorKind::Unavailable, reason))
    }
}

/// Calls.
impl Client {
    /// Repeats an attempt until it succeeds, fails finally, or the retries are used up.
    pub(super) async fn retry<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        let mut count = 0;
        loop {
            match attempt().await {
                Err(failure) if failure.is_retryable && count < self.options.retries => {
                    *lock(&self.last_failure) = Some(failure.reason);
                    sleep(backoff(count)).await;
                    count += 1;
                }
                Err(failure) if count > 0 => {
                    let attempts = count + 1;
                    return Err(failure.remark(format_args!("{attempts} attempts in {:.1?}", start.elapsed())));
                }
                result => return result,
            }
        }
    }

    /// Runs a call on the runtime, within a time.
    pub(super) fn run<T: Send + 'static>(
        &self,
        total: Duration,
        action: impl Into<String>,
        call: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> crate::Result<T> {
        *lock(&self.last_failure) = None;
        let limited = async move { timeout_at(Instant::now() + total, call).await };
        match runtime::block_on(limited) {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(failure))) => Err(failure.into_error(action, self)),
            Ok(Err(_)) => {
                let late = Failure::new(ErrorKind::Timeout, format!("not finished within {total:?}"));
                let last = lock(&self.last_failure).take();
                let late = match last {
                    Some(last) => late.remark(format_args!("the last failure: {last}")),
                    None => late,
                };
                Err(late.into_error(action, self))
            }
            Err(error) => Err(Error::from_io(action.into(), self, error)),
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri)
    }
}

/// Sends a request until the server no longer asks to wait. The caller limits the time.
pub(super) async fn settle(
    connection: &Connection,
    request: &Request,
    mut room: impl FnMut() -> Room,
) -> Result<Reply, Failure> {
    loop {
        match connection.channel.call(request, room()).await? {
            Reply::Wait(time) => sleep(time.max(MIN_WAIT)).await,
            reply => return Ok(reply),
        }
    }
}

#[cold]
pub(super) fn unexpected(reply: &Reply) -> Failure {
    let what = match reply {
        Reply::Done(_) => "data",
        Reply::Pages(_) => "pages",
        Reply::AuthMore => "a request for credentials",
        Reply::Redirect(_) => "a redirect",
        Reply::Wait(_) => "a wait",
    };
    Failure::transient(ErrorKind::Other, format!("the server unexpectedly sent {what}"))
}

/// The time before a retry: doubled with each one, and between half and all of it at random, so that the clients of a
/// server that restarts do not come back at once.
fn backoff(count: u32) -> Duration {
    let full = FIRST_BACKOFF.saturating_mul(1 << count.min(16)).min(MAX_BACKOFF);
    // The keys of each state are random.
    let random = RandomState::new().hash_one(count) % 512;
    full / 2 + full.mul_f64(random as f64 / 1024.0)
}
