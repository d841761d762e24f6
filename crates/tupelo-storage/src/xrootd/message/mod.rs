//! Messages of the XRootD protocol, version 5: requests to bytes, and bytes to responses. No I/O.
//!
//! Everything that a server sends is untrusted: each length is checked before it is used, and a function returns
//! [`Malformed`] for what the protocol does not allow. The layouts are those of the published `XProtocol.hh`:
//! <https://github.com/xrootd/xrootd/blob/v5.8.4/src/XProtocol/XProtocol.hh>.

mod pages;
mod request;
mod response;

#[cfg(test)]
mod tests;

use std::fmt;

pub use pages::{PAGE_BYTES, PageBuffer};
pub use request::{Chunk, HANDSHAKE, Request, Tls, flags};
pub use response::{
    AsyncHeader, Header, Listed, Login, Opened, PageStatus, ProtocolInfo, ReadLimits, Redirect, ServerError, Stat,
    Status, parse_listing, parse_vector, parse_wait, vector_response_bytes,
};

/// The stream id of a request, which its response repeats.
pub type StreamId = u16;

/// Maximum size of a response that carries no data of a file (64 KiB): errors, redirects, parameters.
pub const MAX_CONTROL_BYTES: usize = 64 << 10;

/// The handle of an open file, valid on the connection that it was opened on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(pub [u8; 4]);

/// A message that violates the protocol, or a request that it cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub(crate) String);

impl Malformed {
    #[cold]
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// Reads the fields of a message, from the first to the last byte.
struct Fields<'a> {
    rest: &'a [u8],
    /// What is read, for errors.
    what: &'static str,
}

impl<'a> Fields<'a> {
    fn new(rest: &'a [u8], what: &'static str) -> Self {
        Self { rest, what }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (field, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| Malformed::new(format!("the {} from the server is too short", self.what)))?;
        self.rest = rest;
        Ok(*field)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// A length, which the protocol sends as a signed number.
    fn len(&mut self) -> Result<u32, Malformed> {
        let len = self.i32()?;
        u32::try_from(len).map_err(|_| Malformed::new(format!("the {} has an invalid length: {len}", self.what)))
    }

    /// All that follows, as text up to the first zero byte.
    fn text(self) -> Result<&'a str, Malformed> {
        let end = self.rest.iter().position(|&byte| byte == 0).unwrap_or(self.rest.len());
        let text = self.rest.get(..end).unwrap_or(self.rest);
        str::from_utf8(text).map_err(|_| Malformed::new(format!("the {} from the server is not UTF-8", self.what)))
    }
}
