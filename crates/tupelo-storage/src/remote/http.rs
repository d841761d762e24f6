//! Objects on HTTP servers, by range requests.
//!
//! The URL is sent as it is, with its query string, so pre-signed URLs and tokens in URLs work. No `HEAD` request is
//! sent, since such URLs often forbid it: the size is in the first answer. Servers without range requests are read as a
//! whole, up to [`MAX_WHOLE_BYTES`].
//!
//! Credentials are the user name and password of the URL, the option `bearer_token`, or a token that is found as WLCG
//! defines it (`BEARER_TOKEN`, `BEARER_TOKEN_FILE`, `bt_u<UID>` in `XDG_RUNTIME_DIR` or `/tmp`). A token is sent to
//! `https` only. A token that was found is sent only to a server that refused a request without it. Redirects are followed
//! within HTTP, without credentials if they lead to another host.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use chrono::DateTime;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, EXPECT, HeaderValue,
    IF_MATCH, IF_UNMODIFIED_SINCE, LAST_MODIFIED, LOCATION, RANGE,
};
use http::{HeaderMap, StatusCode};
use reqwest::{Response, Url};

use super::answer::{Answer, Body, ByteRange, Identity, replaced};
use super::client::{MAX_REDIRECTS, Purpose, Transport, client, error_body, header, refusal, sending};
use crate::error::ErrorKind;
use crate::net::{Failure, Limits, Options, bearer_token, unless_stalled};

/// Maximum size of an object on a server without range requests, which is read as a whole: 64 MiB.
pub const MAX_WHOLE_BYTES: u64 = 64 << 20;

/// Minimum size of an upload for which the server is asked first whether it accepts the body: 1 MiB, as in curl.
const EXPECT_BYTES: u64 = 1 << 20;
/// How long the body waits for a redirect or a refusal: 1 second, as in curl.
const EXPECT_WAIT: Duration = Duration::from_secs(1);

/// An object on an HTTP server.
pub(super) struct HttpObject {
    url: Url,
    transport: Transport,
    /// Sent with each request.
    authorization: Option<HeaderValue>,
    /// Sent after a refusal; an error where the token of the user cannot be read.
    found_token: Result<Option<HeaderValue>, Failure>,
    was_refused: Arc<AtomicBool>,
    /// Where the last request was redirected to.
    target: Mutex<Option<Url>>,
    /// Whether a request to such a place failed: each request must be redirected then.
    is_target_lost: AtomicBool,
}

impl fmt::Debug for HttpObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpObject({}{})", self.url.host_str().unwrap_or_default(), self.url.path())
    }
}

impl HttpObject {
    /// The object at a URL.
    pub(super) fn new(url: &str, options: &Options) -> Result<Self, Failure> {
        let invalid = |error| Failure::lasting(ErrorKind::NotSupported, format!("the URL is invalid: {error}"));
        let mut url = Url::parse(url).map_err(invalid)?;
        url.set_fragment(None);
        let is_secure = url.scheme() == "https";
        // The client makes basic authorization of it.
        let has_user = !url.username().is_empty() || url.password().is_some();
        let has_query = url.query().is_some();
        let authorization = match options.get("bearer_token") {
            _ if options.is_anonymous() => None,
            Some(_) if !is_secure => {
                let reason = "the option bearer_token requires https: http would expose the token";
                return Err(Failure::lasting(ErrorKind::NotSupported, reason));
            }
            Some(token) => Some(bearer(token)?),
            None => None,
        };
        // A query string may be an authorization, and servers refuse two of them.
        let may_find = is_secure && authorization.is_none() && !has_user && !has_query && !options.is_anonymous();
        let found = if may_find { bearer_token() } else { Ok(None) };
        let found_token = found.and_then(|token| token.map(|token| bearer(&token)).transpose());
        Ok(Self {
            url,
            transport: Transport::new(options),
            authorization,
            found_token,
            was_refused: Arc::default(),
            target: Mutex::new(None),
            is_target_lost: AtomicBool::new(false),
        })
    }

    /// The object with this key in the folder that is this one. It has the same credentials.
    pub(super) fn with_key(&self, key: &str) -> Result<Self, Failure> {
        let mut url = self.url.clone();
        let no_folder = |()| Failure::lasting(ErrorKind::NotSupported, "the URL contains no folder");
        url.path_segments_mut().map_err(no_folder)?.pop_if_empty().extend(key.split('/'));
        Ok(Self {
            url,
            transport: self.transport.clone(),
            authorization: self.authorization.clone(),
            found_token: self.found_token.clone(),
            // A server refuses all of them or none.
            was_refused: Arc::clone(&self.was_refused),
            target: Mutex::new(None),
            is_target_lost: AtomicBool::new(false),
        })
    }

    /// Requests a part, of the pinned version if there is one.
    pub(super) async fn get(&self, part: &ByteRange, pinned: Option<&Identity>) -> Result<Answer, Failure> {
        let range = match part {
            ByteRange::Range(range) => format!("bytes={}-{}", range.start, range.end.saturating_sub(1)),
            ByteRange::Last(len) => format!("bytes=-{len}"),
        };
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, value(&range)?);
        // Ranges of compressed bytes would be of no use.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        match pinned.map(|pinned| (pinned.strong_etag(), pinned.modified.as_deref())) {
            Some((Some(etag), _)) => drop(headers.insert(IF_MATCH, value(etag)?)),
            Some((None, Some(modified))) => drop(headers.insert(IF_UNMODIFIED_SINCE, value(modified)?)),
            _ => {}
        }
        let response = self.get_redirected(headers).await?;
        if let Some(encoding) = header(response.headers(), CONTENT_ENCODING.as_str())
            && !encoding.eq_ignore_ascii_case("identity")
        {
            let reason = format!("the server sends it with the encoding {encoding:.40}, which does not support ranges");
            return Err(Failure::lasting(ErrorKind::NotSupported, reason));
        }
        if response.status() != StatusCode::PARTIAL_CONTENT {
            return match pinned {
                Some(pinned) => whole_again(response, pinned),
                None => self.whole(response).await,
            };
        }
        let text = header(response.headers(), CONTENT_RANGE.as_str()).unwrap_or_default();
        let Some((range, size)) = content_range(&text) else {
            let reason = format!("the server sent an invalid Content-Range: '{text:.80}'");
            return Err(Failure::lasting(ErrorKind::Other, reason));
        };
        // A server that does not know the size must be one that was asked before.
        let Some(size) = size.or(pinned.map(|pinned| pinned.size)) else {
            return Err(Failure::lasting(ErrorKind::NotSupported, "the server does not report the size of the object"));
        };
        let identity = identity(&response, size);
        Ok(Answer { range, identity, is_whole: false, body: Body::Http(response) })
    }

    /// Reads a whole object, from a server that does not send a part of it.
    async fn whole(&self, mut response: Response) -> Result<Answer, Failure> {
        let too_large = |size: &str| {
            let limit = MAX_WHOLE_BYTES >> 20;
            let reason = format!(
                "the server does not support range requests, and the object of {size} bytes exceeds the {limit} MiB \
                 that are read as a whole; download it first"
            );
            Failure::lasting(ErrorKind::NotSupported, reason)
        };
        let announced = response.content_length();
        if let Some(size) = announced.filter(|size| *size > MAX_WHOLE_BYTES) {
            return Err(too_large(&size.to_string()));
        }
        let mut bytes = BytesMut::new();
        while let Some(chunk) =
            unless_stalled(self.transport.limits.stall, async { response.chunk().await.map_err(sending) }).await?
        {
            if (bytes.len() + chunk.len()) as u64 > MAX_WHOLE_BYTES {
                return Err(too_large("more"));
            }
            bytes.extend_from_slice(&chunk);
        }
        let identity = identity(&response, bytes.len() as u64);
        let body = Body::Bytes(Some(bytes.freeze()));
        Ok(Answer { range: 0..identity.size, identity, is_whole: true, body })
    }

    /// Whether a request without a range gets an empty body.
    pub(super) async fn is_empty(&self) -> Result<bool, Failure> {
        let mut response = self.send(HeaderMap::new()).await?;
        let first = unless_stalled(self.transport.limits.stall, async { response.chunk().await.map_err(sending) });
        let is_end = first.await?.is_none();
        Ok(is_end && response.status() == StatusCode::OK)
    }

    /// Query strings choose among objects.
    pub(super) fn place(&self) -> String {
        self.url.query().unwrap_or_default().to_owned()
    }

    /// Creates or replaces the object. `body` makes its content, which is held back for a time so that a server that
    /// redirects the request does not get it; it counts the bytes that were taken from it.
    pub(super) async fn put(
        &self,
        body: &(dyn Fn(Duration, Arc<AtomicU64>) -> reqwest::Body + Sync),
        len: u64,
    ) -> Result<(), Failure> {
        let wait = if len < EXPECT_BYTES { Duration::ZERO } else { EXPECT_WAIT };
        let limit = self.transport.limits.stall + Limits::slowest(len) + wait;
        let client = client(&self.transport, Purpose::Store)?;
        let mut url = self.url.clone();
        let mut redirects = 0;
        loop {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
            if !wait.is_zero() {
                headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
            }
            let is_own = url.origin() == self.url.origin();
            let was_refused = self.was_refused.load(Ordering::Relaxed);
            if let Some(authorization) = self.authorization(was_refused).filter(|_| is_own) {
                headers.insert(AUTHORIZATION, authorization.clone());
            }
            let taken = Arc::<AtomicU64>::default();
            let request = client.put(url.clone()).headers(headers).body(body(wait, Arc::clone(&taken)));
            let response = unless_stalled(limit, async { request.send().await.map_err(sending) }).await?;
            match response.status().as_u16() {
                200..=299 if taken.load(Ordering::Relaxed) == len => return Ok(()),
                200..=299 => {
                    let reason = "the server reported success before it had received everything";
                    return Err(Failure::lasting(ErrorKind::Other, reason));
                }
                301 | 302 | 307 | 308 if redirects == MAX_REDIRECTS => {
                    return Err(Failure::lasting(ErrorKind::NotSupported, "too many redirects"));
                }
                301 | 302 | 307 | 308 => url = redirected(&url, &response)?,
                _ => self.refused(response, was_refused || !is_own).await?,
            }
            redirects += 1;
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.transport.limits
    }

    /// Gets a part directly from where the request before was redirected to, which saves a round trip.
    async fn get_redirected(&self, headers: HeaderMap) -> Result<Response, Failure> {
        let target = self.target().clone();
        if let Some(target) = target {
            // Without credentials, which are for the host of the URL.
            let request = client(&self.transport, Purpose::Web)?.get(target).headers(headers.clone());
            let sent = unless_stalled(self.transport.limits.stall, async { request.send().await.map_err(sending) });
            match sent.await {
                Ok(response) if response.status().is_success() => return Ok(response),
                _ => {
                    self.is_target_lost.store(true, Ordering::Relaxed);
                    *self.target() = None;
                }
            }
        }
        let response = self.send(headers).await?;
        let is_elsewhere = response.url().host() != self.url.host() || response.url().port() != self.url.port();
        if is_elsewhere && !self.is_target_lost.load(Ordering::Relaxed) {
            *self.target() = Some(response.url().clone());
        }
        Ok(response)
    }

    fn target(&self) -> MutexGuard<'_, Option<Url>> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request for a part, with a token if the server requires one. Returns a successful response.
    async fn send(&self, headers: HeaderMap) -> Result<Response, Failure> {
        loop {
            let was_refused = self.was_refused.load(Ordering::Relaxed);
            let mut headers = headers.clone();
            if let Some(authorization) = self.authorization(was_refused) {
                headers.insert(AUTHORIZATION, authorization.clone());
            }
            let request = client(&self.transport, Purpose::Web)?.get(self.url.clone()).headers(headers);
            let sent = unless_stalled(self.transport.limits.stall, async { request.send().await.map_err(sending) });
            let response = sent.await?;
            if response.status().is_success() {
                return Ok(response);
            }
            self.refused(response, was_refused).await?;
        }
    }

    /// The authorization of a request to the host of the URL.
    fn authorization(&self, was_refused: bool) -> Option<&HeaderValue> {
        let found = self.found_token.as_ref().ok().and_then(Option::as_ref).filter(|_| was_refused);
        self.authorization.as_ref().or(found)
    }

    /// The failure of a refused request; `None` to repeat it with the token that was found.
    async fn refused(&self, mut response: Response, was_refused: bool) -> Result<(), Failure> {
        let status = response.status();
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_denied && !was_refused && self.found_token.as_ref().is_ok_and(Option::is_some) {
            self.was_refused.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let body = error_body(&mut response, self.transport.limits.stall).await;
        let mut refusal = refusal(status, response.headers(), &body);
        // A server may repeat what it got.
        for secret in [self.url.password(), self.url.query()].into_iter().flatten().filter(|text| text.len() > 2) {
            refusal.reason = refusal.reason.replace(secret, "***");
        }
        Err(match &self.found_token {
            Err(failure) if is_denied => refusal.remark(failure),
            _ => refusal,
        })
    }
}

/// An answer with the whole object to a request for a part of a version that is known. Nothing of it is kept in memory
/// but the part.
fn whole_again(response: Response, pinned: &Identity) -> Result<Answer, Failure> {
    let Some(size) = response.content_length() else {
        let reason = "expected a part of the object, but the server sends all of it without its size";
        return Err(Failure::lasting(ErrorKind::Other, reason));
    };
    let identity = identity(&response, size);
    if !pinned.is_same(&identity) {
        return Err(replaced());
    }
    Ok(Answer { range: 0..size, identity, is_whole: true, body: Body::Http(response) })
}

/// The version of an answer about an object of `size` bytes.
fn identity(response: &Response, size: u64) -> Identity {
    let modified = header(response.headers(), LAST_MODIFIED.as_str());
    let modified_at = modified.as_deref().and_then(|text| DateTime::parse_from_rfc2822(text).ok());
    let etag = header(response.headers(), ETAG.as_str());
    Identity { size, etag, modified, modified_at: modified_at.map(SystemTime::from), generation: None }
}

/// Where an upload is redirected to: within HTTP, and not out of HTTPS.
fn redirected(from: &Url, response: &Response) -> Result<Url, Failure> {
    let refused = |reason: &str| Failure::lasting(ErrorKind::NotSupported, reason);
    let location = header(response.headers(), LOCATION.as_str()).and_then(|location| from.join(&location).ok());
    let to = location.ok_or_else(|| refused("the server redirects to an invalid address"))?;
    match (to.scheme(), from.scheme()) {
        ("https", _) | ("http", "http") => Ok(to),
        ("http", _) => Err(refused("redirect from https to http")),
        _ => Err(refused("redirect to another protocol")),
    }
}

/// The range and the size in a `Content-Range`; the size may be unknown.
fn content_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (unit, rest) = text.split_once(' ')?;
    let (range, size) = rest.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let range = first.trim().parse().ok()?..last.trim().parse::<u64>().ok()?.checked_add(1)?;
    let size = match size.trim() {
        "*" => None,
        size => Some(size.parse().ok()?),
    };
    let fits =
        unit.eq_ignore_ascii_case("bytes") && range.start < range.end && size.is_none_or(|size| range.end <= size);
    fits.then_some((range, size))
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    let invalid = || Failure::lasting(ErrorKind::Other, "a header would contain an invalid character");
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    HeaderValue::from_bytes(&bytes.ok_or_else(invalid)?).map_err(|_| invalid())
}

fn secret(text: &str, what: &str) -> Result<HeaderValue, Failure> {
    let invalid = |_| Failure::lasting(ErrorKind::NotSupported, format!("the {what} contains an invalid character"));
    let mut value = HeaderValue::from_str(text).map_err(invalid)?;
    value.set_sensitive(true);
    Ok(value)
}

fn bearer(token: &str) -> Result<HeaderValue, Failure> {
    secret(&format!("Bearer {}", token.trim()), "bearer token")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::run;
    use crate::remote::tests::server::{Fault, Server};

    #[test]
    fn content_ranges_are_parsed_strictly() {
        assert_eq!(content_range("bytes 0-9/10"), Some((0..10, Some(10))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5..10, None)));
        for bad in ["", "bytes", "bytes */10", "bytes 5-4/10", "bytes 0-10/10", "items 0-9/10", "bytes a-b/c"] {
            assert_eq!(content_range(bad), None, "{bad}");
        }
        assert_eq!(content_range(&format!("bytes 0-{}/*", u64::MAX)), None);
    }

    #[test]
    fn secrets_of_urls_are_not_shown() {
        let object = HttpObject::new("http://ann:p%40ss@host/x?sig=abc#part", &Options::default()).unwrap();
        assert_eq!(format!("{object:?}"), "HttpObject(host/x)");
    }

    #[test]
    fn a_found_token_is_sent_after_a_refusal_only() {
        let server = Server::with(vec![1; 1000]);
        let mut object = HttpObject::new(&server.url("/x"), &Options::default()).unwrap();
        object.found_token = Ok(Some(bearer("token").unwrap()));
        server.fault(|seen, _| {
            let is_authorized = seen.header("authorization") == Some("Bearer token");
            (!is_authorized).then(|| Fault::Status(401, String::new(), String::new()))
        });
        let got = run(async move {
            let part = ByteRange::Range(0..10);
            object.get(&part, None).await?;
            object.get(&part, None).await
        });
        assert_eq!(got.unwrap().range, 0..10);
        let sent: Vec<bool> = server.seen().iter().map(|seen| seen.header("authorization").is_some()).collect();
        assert_eq!(sent, [false, true, true]);
    }

    #[test]
    fn tokens_need_https() {
        let options = Options::new([("bearer_token", "hidden")]).unwrap();
        assert!(HttpObject::new("https://host/x", &options).unwrap().authorization.is_some());
        let failure = HttpObject::new("http://host/x", &options).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::NotSupported);
        assert!(!failure.reason.contains("hidden"));
    }
}
