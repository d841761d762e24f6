//! The HTTP client, for our own requests and for those of `object_store`.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpService};
use object_store::client::{HttpRequest, HttpResponse, HttpResponseBody};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Body, Certificate, Client, Request, Response, Url};

use super::explanation::{element, json_message};
use crate::error::ErrorKind;
use crate::net::{Failure, Limits, Options, authorities, hide_in_message, unless_stalled, variable};

/// Maximum number of redirects of one request.
pub(super) const MAX_REDIRECTS: usize = 10;
/// Bytes of an error response that are read.
const MAX_ERROR_BYTES: usize = 16 << 10;
/// Maximum size of a response that is not a range of an object, such as one page of a listing.
const MAX_DOCUMENT_BYTES: usize = 32 << 20;
/// Hosts of instance metadata, which exist only inside a cloud.
const METADATA_HOSTS: &[&str] = &["169.254.169.254", "169.254.170.2", "metadata.google.internal", "metadata"];
/// Maximum time to connect to these.
const METADATA_TIMEOUT: Duration = Duration::from_secs(2);

/// Access to servers.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    pub(super) limits: Limits,
    authorities: Option<PathBuf>,
}

impl Transport {
    pub(super) fn new(options: &Options) -> Self {
        Self { limits: options.limits(), authorities: options.authorities().map(PathBuf::from) }
    }
}

/// The state shared by requests of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    connect: Duration,
    authorities: Option<PathBuf>,
    purpose: Purpose,
}

/// The purpose of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Web servers, which may redirect.
    Web,
    /// Stores, whose signatures are valid for one host, and uploads, which follow redirects themselves.
    Store,
    /// Instance metadata, which no proxy can reach.
    Metadata,
}

/// The clients and the process that they belong to: a forked child must not use connections of its parent.
static CLIENTS: Mutex<(u32, Vec<(Kind, Client)>)> = Mutex::new((0, Vec::new()));

/// The client of this process.
pub(super) fn client(transport: &Transport, purpose: Purpose) -> Result<Client, Failure> {
    let Transport { limits, authorities: file } = transport;
    let kind = Kind { connect: limits.connect, authorities: file.clone(), purpose };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if clients.0 != process {
        // Dropping them would close connections of the parent.
        std::mem::forget(std::mem::replace(&mut *clients, (process, Vec::new())));
    }
    if let Some((_, client)) = clients.1.iter().find(|(other, _)| *other == kind) {
        return Ok(client.clone());
    }
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("tupelo/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(kind.connect)
        // The address of the page before a redirect may have a token.
        .referer(false)
        .redirect(if purpose == Purpose::Web { Policy::custom(redirect) } else { Policy::none() });
    let mut builder = if purpose == Purpose::Metadata { builder.no_proxy() } else { builder };
    if let Some(file) = file {
        let invalid = |error| failure_of(error, "invalid certificate authority");
        let all = authorities(file)?.into_iter().map(|found| Certificate::from_der(&found).map_err(invalid));
        builder = builder.tls_certs_only(all.collect::<Result<Vec<_>, _>>()?);
    }
    let client = builder.build().map_err(|error| failure_of(error, "cannot start the HTTP client"))?;
    clients.1.push((kind, client.clone()));
    Ok(client)
}

/// Redirects stay within HTTP, and do not leave HTTPS. The client removes credentials when the host changes.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let was_secure = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error("too many redirects");
    }
    match attempt.url().scheme() {
        "https" => attempt.follow(),
        "http" if !was_secure => attempt.follow(),
        "http" => attempt.error("redirect from https to http"),
        _ => attempt.error("redirect to another protocol"),
    }
}

/// The failure of a request that got no response, or only a part of it.
#[cold]
pub(super) fn failure_of(error: reqwest::Error, what: &str) -> Failure {
    let error = error.without_url();
    if let Some(failure) = Failure::of_tls(&error) {
        return failure.context(what);
    }
    let mut cause: &(dyn StdError + 'static) = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let reason = format!("{what}: {}", hide_in_message(&cause.to_string()));
    // Certificates, names of hosts, and proxies of a kind that the client does not have.
    let lasting = ["certificate", "unknown", "unsupported scheme"];
    let is_final = lasting.iter().any(|text| reason.contains(text)) || error.is_builder();
    if error.is_redirect() {
        Failure::lasting(ErrorKind::NotSupported, reason)
    } else if error.is_timeout() {
        Failure::transient(ErrorKind::Timeout, reason)
    } else if is_final {
        Failure::lasting(ErrorKind::Other, reason)
    } else {
        Failure::transient(ErrorKind::Unavailable, reason)
    }
}

/// The failure of a request without a response.
pub(super) fn sending(error: reqwest::Error) -> Failure {
    if !error.is_connect() {
        return failure_of(error, "no response");
    }
    let url = error.url().cloned();
    let server = url.as_ref().and_then(server_of).map_or_else(String::new, |server| format!(" to {server}"));
    let failure = failure_of(error, &format!("cannot connect{server}"));
    match url.and_then(|url| proxy_variable(url.scheme(), &variable)) {
        Some(name) => failure.remark(format_args!("the proxy from {name} may be in use")),
        None => failure,
    }
}

/// Host and port of a URL.
fn server_of(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

/// The variable that names a proxy for a scheme. `NO_PROXY` may exclude the host.
fn proxy_variable(scheme: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let upper = [format!("{}_PROXY", scheme.to_ascii_uppercase()), "ALL_PROXY".to_owned()];
    let names = upper.into_iter().flat_map(|name| [name.to_ascii_lowercase(), name]);
    names.into_iter().find(|name| variable(name).is_some())
}

/// The failure of a response of a web server, with what it may need.
#[cold]
pub(super) fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
    let failure = store_refusal(status, headers, body);
    match status {
        StatusCode::UNAUTHORIZED => failure.remark(
            "pass credentials by the option bearer_token or the variable BEARER_TOKEN, both for https only, or as user \
             and password in the URL",
        ),
        _ => failure,
    }
}

/// The failure of a response with a status that is not a success, from its header and the start of its body.
#[cold]
fn store_refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
    let body = String::from_utf8_lossy(body);
    let code = element(&body, "Code").or_else(|| header(headers, "x-ms-error-code")).unwrap_or_default();
    let mut reason = format!("HTTP status {}", status.as_u16());
    if let Some(name) = status.canonical_reason() {
        reason += &format!(" {name}");
    }
    if status.is_redirection() {
        reason += ", a redirect that is not followed";
    }
    let message = element(&body, "Message").or_else(|| json_message(&body)).unwrap_or_default();
    for explanation in [&code, &message].into_iter().filter(|text| !text.is_empty()) {
        reason += &format!(": {}", hide_in_message(explanation));
    }
    if let Some(region) = header(headers, "x-amz-bucket-region").filter(|_| !status.is_server_error()) {
        reason += &format!(" (the bucket is in region {region}: set the option aws_region)");
    }
    if status.as_u16() == 412 {
        reason += ": the object was replaced after it was opened";
    }
    let (kind, is_transient) = match (status.as_u16(), code.as_str()) {
        (_, "RequestTimeout") | (408, _) => (ErrorKind::Timeout, true),
        (_, "SlowDown" | "InternalError" | "ServiceUnavailable") | (425 | 429, _) => (ErrorKind::Unavailable, true),
        (_, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") | (401 | 403 | 407, _) => {
            (ErrorKind::Denied, false)
        }
        // Another request for the object, whose result is not known yet.
        (_, "ConditionalRequestConflict") => (ErrorKind::Changed, true),
        (404 | 410, _) => (ErrorKind::NotFound, false),
        (409 | 412, _) => (ErrorKind::Changed, false),
        (416, _) => (ErrorKind::OutOfRange, false),
        (413 | 507, _) => (ErrorKind::NoSpace, false),
        (405 | 501 | 505, _) => (ErrorKind::NotSupported, false),
        (500.., _) => (ErrorKind::Unavailable, true),
        _ => (ErrorKind::Other, false),
    };
    let wait = header(headers, RETRY_AFTER.as_str()).and_then(|text| text.parse().ok()).map(Duration::from_secs);
    Failure { kind, reason, is_transient, wait: wait.filter(|_| is_transient) }
}

/// The text of a header. Bytes that are not ASCII are taken for Latin-1, as in HTTP.
pub(super) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let text: String = headers.get(name)?.as_bytes().iter().copied().map(char::from).collect();
    Some(text.trim().to_owned())
}

/// The start of the body of an error response.
pub(super) async fn error_body(response: &mut Response, stall: Duration) -> Bytes {
    let mut body = BytesMut::new();
    let next = async |response: &mut Response| {
        unless_stalled(stall, async { response.chunk().await.map_err(sending) }).await.ok().flatten()
    };
    while let Some(chunk) = next(response).await {
        body.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR_BYTES - body.len())]);
        if body.len() >= MAX_ERROR_BYTES {
            break;
        }
    }
    body.freeze()
}

/// Gives `object_store` our client.
#[derive(Debug)]
pub(super) struct Connector(pub(super) Transport);

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service(self.0.clone())))
    }
}

#[derive(Debug)]
struct Service(Transport);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.send(request).await.map_err(|failure| HttpError::new(HttpErrorKind::Unknown, failure))
    }
}

impl Service {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, Failure> {
        let (parts, body) = request.into_parts();
        let is_listing = parts.uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "list-type=2"));
        let invalid = |_| Failure::lasting(ErrorKind::Other, "the endpoint is not a valid URL");
        let mut request = Request::new(parts.method, parts.uri.to_string().parse().map_err(invalid)?);
        *request.headers_mut() = parts.headers;
        let is_metadata = request.url().host_str().is_some_and(|host| METADATA_HOSTS.contains(&host));
        let limits = &self.0.limits;
        let upload = Limits::slowest(body.content_length() as u64);
        *request.body_mut() = Some(match body.as_bytes() {
            Some(bytes) => Body::from(bytes.clone()),
            None => Body::wrap(body),
        });
        let client = client(&self.0, if is_metadata { Purpose::Metadata } else { Purpose::Store })?;
        let limit = if is_metadata { METADATA_TIMEOUT } else { limits.stall + upload };
        let sent = unless_stalled(limit, async { client.execute(request).await.map_err(sending) }).await;
        let mut response = match sent {
            Err(_) if is_metadata => return Err(no_credentials()),
            sent => sent?,
        };
        let status = response.status();
        if status.is_success() {
            let response: http::Response<Body> = response.into();
            let (parts, body) = response.into_parts();
            let is_range = status == StatusCode::PARTIAL_CONTENT;
            let body = if is_listing {
                let body = Limited::new(body, MAX_DOCUMENT_BYTES).collect().await;
                let body = body.map_err(document_failure)?.to_bytes();
                check_listing(&body)?;
                HttpResponseBody::from(body)
            } else if is_range {
                HttpResponseBody::new(body.map_err(interrupted))
            } else {
                HttpResponseBody::new(Limited::new(body, MAX_DOCUMENT_BYTES).map_err(too_large))
            };
            return Ok(HttpResponse::from_parts(parts, body));
        }
        let body = error_body(&mut response, limits.stall).await;
        let failure = store_refusal(status, response.headers(), &body);
        Err(if is_metadata { no_credentials() } else { failure })
    }
}

#[cold]
fn no_credentials() -> Failure {
    let reason = "found no credentials in options, environment, profile or instance metadata; for public objects, use \
                  the option anonymous=true";
    Failure::lasting(ErrorKind::Denied, reason)
}

fn interrupted(error: reqwest::Error) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, failure_of(error, "the connection was lost"))
}

fn too_large(error: Box<dyn StdError + Send + Sync>) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, document_failure(error))
}

/// Why a document could not be read.
#[cold]
fn document_failure(error: Box<dyn StdError + Send + Sync>) -> Failure {
    match error.downcast::<reqwest::Error>() {
        Ok(error) => failure_of(*error, "the connection was lost"),
        Err(error) => Failure::lasting(ErrorKind::Other, format!("the response is too large: {error}")),
    }
}

/// Refuses a page of a listing of S3 that says that there are more, but not how to get them: `object_store` takes it for the
/// last one.
fn check_listing(page: &[u8]) -> Result<(), Failure> {
    let page = String::from_utf8_lossy(page);
    let is_truncated = element(&page, "IsTruncated").is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
    if is_truncated && element(&page, "NextContinuationToken").is_none_or(|token| token.trim().is_empty()) {
        let reason = "the server says that its listing continues (IsTruncated), but sends no NextContinuationToken";
        return Err(Failure::lasting(ErrorKind::Other, reason));
    }
    Ok(())
}

/// The failure for an error of `object_store`.
#[cold]
pub(super) fn store_failure(error: object_store::Error) -> Failure {
    let mut cause: &(dyn StdError + 'static) = &error;
    loop {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.clone();
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => break,
        }
    }
    let kind = match &error {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => ErrorKind::Denied,
        object_store::Error::Precondition { .. } | object_store::Error::AlreadyExists { .. } => ErrorKind::Changed,
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
            ErrorKind::NotSupported
        }
        _ => ErrorKind::Other,
    };
    let text = cause.to_string();
    if text.contains("<Code>") {
        // S3 may report a failure after the header of a success.
        return store_refusal(StatusCode::OK, &HeaderMap::new(), text.as_bytes());
    }
    // Some servers answer with no bytes to a range that begins at the end; this error of the crate is private.
    let is_beyond = text.starts_with("Wanted range starting at");
    Failure::lasting(if is_beyond { ErrorKind::OutOfRange } else { kind }, hide_in_message(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_codes_say_whether_to_try_again() {
        let none = HeaderMap::new();
        for (status, body, kind, is_transient) in [
            (404, "", ErrorKind::NotFound, false),
            (403, "<Error><Code>AccessDenied</Code></Error>", ErrorKind::Denied, false),
            (400, "<Code>RequestTimeout</Code>", ErrorKind::Timeout, true),
            (400, "<Code>ExpiredToken</Code>", ErrorKind::Denied, false),
            (200, "<Code>SlowDown</Code>", ErrorKind::Unavailable, true),
            (412, "", ErrorKind::Changed, false),
            (429, "", ErrorKind::Unavailable, true),
            (501, "", ErrorKind::NotSupported, false),
            (503, "", ErrorKind::Unavailable, true),
            (507, "", ErrorKind::NoSpace, false),
        ] {
            let failure = refusal(StatusCode::from_u16(status).unwrap(), &none, body.as_bytes());
            assert_eq!((failure.kind, failure.is_transient), (kind, is_transient), "{status} {body}");
        }
    }

    #[test]
    fn explanations_are_bounded_and_printable() {
        let body = format!("<Code>Odd\u{1b}[31m</Code><Message>{}</Message>", "x".repeat(10_000));
        let failure = refusal(StatusCode::BAD_REQUEST, &HeaderMap::new(), body.as_bytes());
        assert!(failure.reason.starts_with("HTTP status 400 Bad Request: Odd[31m: xxx"), "{failure}");
        assert!(failure.reason.len() < 400);
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-bucket-region", "eu-west-3".parse().unwrap());
        headers.insert("retry-after", "7".parse().unwrap());
        let failure = refusal(StatusCode::MOVED_PERMANENTLY, &headers, b"");
        assert!(
            failure.reason.ends_with("(the bucket is in region eu-west-3: set the option aws_region)"),
            "{failure}"
        );
        assert_eq!(failure.wait, None);
        let failure = refusal(StatusCode::SERVICE_UNAVAILABLE, &headers, b"");
        assert_eq!(failure.wait, Some(Duration::from_secs(7)));
    }

    #[test]
    fn explanations_are_read_as_text() {
        let none = HeaderMap::new();
        let xml = b"<Error><Code>NoSuchKey</Code><Message>no &#34;x&#34;\nRequestId:1\nTime:2</Message></Error>";
        let json = br#"{"error": {"code": 404, "message": "no such object: b/x?token=abc"}}"#;
        for (body, text) in [
            (&xml[..], "HTTP status 404 Not Found: NoSuchKey: no \"x\""),
            (json, "HTTP status 404 Not Found: no such object: b/x?token=***"),
            (b"<html>\"message\": \"x\"</html>", "HTTP status 404 Not Found"),
        ] {
            assert_eq!(refusal(StatusCode::NOT_FOUND, &none, body).reason, text);
        }
    }

    #[test]
    fn web_servers_that_need_credentials_are_explained() {
        let none = HeaderMap::new();
        let web = refusal(StatusCode::UNAUTHORIZED, &none, b"");
        assert_eq!(
            web.reason,
            "HTTP status 401 Unauthorized; pass credentials by the option bearer_token or the variable BEARER_TOKEN, \
             both for https only, or as user and password in the URL"
        );
        assert_eq!(store_refusal(StatusCode::UNAUTHORIZED, &none, b"").reason, "HTTP status 401 Unauthorized");
    }

    #[test]
    fn a_proxy_is_named_by_its_variable() {
        let set = |known: &'static str| move |name: &str| (name == known).then(|| "http://u:p@h:1".to_owned());
        assert_eq!(proxy_variable("http", &set("HTTP_PROXY")).as_deref(), Some("HTTP_PROXY"));
        assert_eq!(proxy_variable("https", &set("https_proxy")).as_deref(), Some("https_proxy"));
        assert_eq!(proxy_variable("https", &set("ALL_PROXY")).as_deref(), Some("ALL_PROXY"));
        assert_eq!(proxy_variable("https", &set("HTTP_PROXY")), None);
    }

    #[test]
    fn servers_are_named_without_credentials() {
        let server = |url: &str| server_of(&url.parse().unwrap()).unwrap();
        assert_eq!(server("https://ann:hidden@host/x?token=1"), "host:443");
        assert_eq!(server("http://[::1]:80/x"), "[::1]:80");
    }

    #[test]
    fn a_forked_child_makes_its_own_client() {
        let transport = Transport::new(&Options::new([("connect_timeout", "1.234")]).unwrap());
        let connect = transport.limits.connect;
        client(&transport, Purpose::Web).unwrap();
        // As it looks in a child.
        CLIENTS.lock().unwrap().0 = 1;
        client(&transport, Purpose::Web).unwrap();
        let clients = CLIENTS.lock().unwrap();
        assert_eq!(clients.0, std::process::id());
        assert_eq!(clients.1.iter().filter(|(kind, _)| kind.connect == connect).count(), 1);
    }
}
