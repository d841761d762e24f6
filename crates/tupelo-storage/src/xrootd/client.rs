//! Requests for a path: waits, redirects, and retries.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::sleep;

use super::connection::{Connection, Terms};
use super::connection::{Reply, Room};
use super::message::Request;
use super::pool;
use super::url::{Server, Url};
use crate::error::{ErrorKind, Result};
use crate::net::{Attempts, Failure, Limits, Options, display_name, run, run_cleaning};

/// Maximum number of redirects of a request, as in other clients.
const MAX_REDIRECTS: usize = 16;
/// Minimum time to wait where a server asks for it, so that a server cannot keep the client busy.
const MIN_WAIT: Duration = Duration::from_millis(20);

/// A URL and how to reach it. `Display` gives the URL as the caller wrote it, without credentials.
#[derive(Debug)]
pub(super) struct Client {
    uri: String,
    pub(super) url: Url,
    options: Options,
    limits: Limits,
    /// The server that failed last, where a redirect had led.
    failed: Mutex<Option<String>>,
}

/// Where a request was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) connection: Arc<Connection>,
    /// The URL after redirects.
    pub(super) url: Url,
    pub(super) body: BytesMut,
    /// The response to the second request, if there was one and it succeeded.
    pub(super) second: Option<BytesMut>,
}

impl Client {
    /// `action` is what the URL is for, for errors.
    pub(super) fn new(url: &str, options: &Options, action: &'static str) -> Result<Self> {
        let uri = display_name(url);
        match Url::parse(url) {
            Ok(url) => {
                let (options, limits) = (options.clone(), options.limits());
                Ok(Self { uri, url, options, limits, failed: Mutex::new(None) })
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
            let connection = pool::connect(&url.server, &terms, &self.options).await;
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
        Err(Failure::lasting(ErrorKind::Unavailable, reason))
    }
}

/// Calls.
impl Client {
    /// The attempts of a call that transfers at most as many bytes.
    pub(super) fn attempts(&self, bytes: u64) -> Attempts {
        Attempts::new(&self.limits.for_bytes(bytes))
    }

    /// Runs a call on the threads for requests.
    pub(super) fn run<T: Send + 'static>(
        &self,
        action: impl Into<String>,
        call: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> crate::Result<T> {
        run(call).map_err(|failure| failure.into_error(action, self))
    }

    /// As [`run`](Self::run), for what also runs after a cancellation.
    pub(super) fn run_cleaning<T: Send + 'static>(
        &self,
        action: impl Into<String>,
        call: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> crate::Result<T> {
        let cleaned = run_cleaning(self.limits, |limits| async move { Attempts::new(&limits).run(call).await });
        cleaned.map_err(|failure| failure.into_error(action, self))
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

/// As [`settle`], and sends another request right after each that is sent. Gives both replies; that to the other request
/// is [`Reply::Wait`] unless it came last.
pub(super) async fn settle_both(
    connection: &Connection,
    request: &Request,
    mut room: impl FnMut() -> Room,
    other: &Request,
) -> Result<(Reply, Result<Reply, Failure>), Failure> {
    loop {
        let (reply, other) = connection.channel.call_both(request, room(), other).await?;
        match reply? {
            Reply::Wait(time) => sleep(time.max(MIN_WAIT)).await,
            reply => return Ok((reply, other)),
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
