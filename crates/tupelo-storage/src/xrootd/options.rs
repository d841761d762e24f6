//! Options of connections.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default of [`Options::with_connect_timeout`]: 15 seconds.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Default of [`Options::with_request_timeout`]: 30 seconds.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Default of [`Options::with_total_timeout`]: 5 minutes.
pub const DEFAULT_TOTAL_TIMEOUT: Duration = Duration::from_secs(300);
/// The slowest network on which reads of any size finish: 256 KiB in a second.
pub const MIN_BYTES_PER_SECOND: u64 = 256 << 10;
/// Default of [`Options::with_retries`]: 8, which take about 25 seconds if the server refuses connections.
pub const DEFAULT_RETRIES: u32 = 8;

/// How to connect to servers, and how long to try.
#[derive(Clone)]
pub struct Options {
    pub(super) connect_timeout: Duration,
    pub(super) request_timeout: Duration,
    pub(super) total_timeout: Duration,
    pub(super) retries: u32,
    pub(super) token: Option<String>,
    pub(super) certificates: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            request_timeout: DEFAULT_REQUEST_TIMEOUT,
            total_timeout: DEFAULT_TOTAL_TIMEOUT,
            retries: DEFAULT_RETRIES,
            token: None,
            certificates: None,
        }
    }
}

impl Options {
    /// Maximum time of a call that transfers bytes.
    pub(super) fn time_for(&self, bytes: u64) -> Duration {
        self.total_timeout.saturating_add(Duration::from_secs(bytes / MIN_BYTES_PER_SECOND))
    }

    /// Maximum time to connect to a server, until a request can be sent; [`DEFAULT_CONNECT_TIMEOUT`].
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Maximum time that a connection with unfinished requests may be silent; [`DEFAULT_REQUEST_TIMEOUT`]. The requests
    /// are then retried on another connection.
    #[must_use]
    pub fn with_request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Maximum time of a call, with all retries and with the time that a server asks to wait;
    /// [`DEFAULT_TOTAL_TIMEOUT`]. Large reads have more: a second for each [`MIN_BYTES_PER_SECOND`].
    #[must_use]
    pub fn with_total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// Maximum number of retries of a request; [`DEFAULT_RETRIES`].
    #[must_use]
    pub fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// A bearer token, instead of the one that is found as in all tools of WLCG: the environment variables
    /// `BEARER_TOKEN` and `BEARER_TOKEN_FILE`, then the file `bt_u` and the user id in `XDG_RUNTIME_DIR` and in `/tmp`.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// A PEM file of certificate authorities, instead of those of the system and of `/etc/grid-security/certificates`
    /// (or `X509_CERT_DIR`).
    #[must_use]
    pub fn with_certificates(mut self, file: impl AsRef<Path>) -> Self {
        self.certificates = Some(file.as_ref().to_owned());
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("connect_timeout", &self.connect_timeout)
            .field("request_timeout", &self.request_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("retries", &self.retries)
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("certificates", &self.certificates)
            .finish()
    }
}
