//! Files on XRootD servers: `root://` and `roots://`. A client of the published protocol, version 5.
//!
//! | module | what it does |
//! |---|---|
//! | [`message`] | requests to bytes, and bytes to responses, without I/O |
//! | `connection` | handshake, TLS, login with `host`, `unix` and tokens (`ztn`); multiplexed requests, bounded responses |
//! | `pool` | connections that files on the same server share |
//! | `client` | waits, redirects, and retries |
//! | `file` | an open file: reads, vector reads, pages with checksums |
//! | `source` | [`XrootdSource`] |
//! | `sink` | [`XrootdSink`] |
//! | `list` | directories |

mod client;
mod connection;
mod failure;
mod file;
mod list;
pub mod message;
mod pool;
mod sink;
mod source;
mod url;

#[cfg(test)]
mod tests;

pub use list::MAX_LISTING_BYTES;
pub use sink::{WRITE_BUFFER_BYTES, WRITE_CONCURRENCY, XrootdSink};
pub use source::{CONCURRENCY, GAP_BYTES, HINTS, MAX_REQUEST_BYTES, XrootdSource};
pub use url::DEFAULT_PORT;

use crate::error::Result;
use crate::net::{Entry, Options, XROOTD};
use client::Client;

/// Whether [`open`] supports the scheme of a name: `root`, `roots`, `xroot` or `xroots`.
pub fn is_xrootd(name: &str) -> bool {
    name.split_once("://").is_some_and(|(scheme, _)| XROOTD.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// Opens a file for reading.
///
/// # Errors
/// [`ErrorKind::NotSupported`](crate::ErrorKind::NotSupported) for what is not a URL of XRootD or not a regular file,
/// [`ErrorKind::Denied`](crate::ErrorKind::Denied) with the alternatives if this client has no credentials that the
/// server accepts, and errors of the server and of the network, after retries.
pub fn open(url: &str, options: &Options) -> Result<XrootdSource> {
    XrootdSource::open(Client::new(url, options, "open")?)
}

/// Creates or replaces a file; it appears when the sink is committed.
///
/// # Errors
/// As [`open`].
pub fn create(url: &str, options: &Options) -> Result<XrootdSink> {
    XrootdSink::create(Client::new(url, options, "create")?)
}

/// The entries of a directory, ordered by name; for the URL of a file, the file. `.` and `..` are not among them. The
/// URLs have user and parameters of the one that is listed.
///
/// # Errors
/// As [`open`], and [`ErrorKind::NoSpace`](crate::ErrorKind::NoSpace) for a listing larger than
/// [`MAX_LISTING_BYTES`].
pub fn list(url: &str, options: &Options) -> Result<Vec<Entry>> {
    list::list(Client::new(url, options, "list")?, url)
}
