//! Files on XRootD servers: `root://` and `roots://`. A client of the published protocol, version 5.
//!
//! | module | what it does |
//! |---|---|
//! | [`message`] | requests to bytes, and bytes to responses, without I/O |
//! | `channel` | one connection: multiplexed requests, bounded responses, silence is an error |
//! | `connection` | handshake, TLS, login |
//! | `auth` | credentials for the authentication protocols `host`, `unix` and `ztn` (tokens) |
//! | `client` | waits, redirects, and retries |
//! | `file` | an open file: reads, vector reads, pages with checksums |
//! | `source` | [`XrootdSource`] |

mod auth;
mod channel;
mod client;
mod connection;
mod failure;
mod file;
pub mod message;
mod options;
mod secret;
mod source;
mod url;

#[cfg(test)]
mod tests;

pub use options::{DEFAULT_CONNECT_TIMEOUT, DEFAULT_REQUEST_TIMEOUT, DEFAULT_RETRIES, DEFAULT_TOTAL_TIMEOUT, Options};
pub use source::{CONCURRENCY, GAP_BYTES, HINTS, MAX_REQUEST_BYTES, XrootdSource};
pub use url::DEFAULT_PORT;

use crate::error::Result;
use client::Client;

/// Opens a file for reading.
///
/// # Errors
/// [`ErrorKind::NotSupported`](crate::ErrorKind::NotSupported) for what is not a URL of XRootD or not a regular file,
/// [`ErrorKind::Denied`](crate::ErrorKind::Denied) with the alternatives if this client has no credentials that the
/// server accepts, and errors of the server and of the network, after retries.
pub fn open(url: &str, options: &Options) -> Result<XrootdSource> {
    XrootdSource::open(Client::new(url, options, "open")?)
}
