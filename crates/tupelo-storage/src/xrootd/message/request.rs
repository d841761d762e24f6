//! Requests to bytes.

use std::fmt;

use bytes::Bytes;

use super::{Handle, Malformed, StreamId};

/// The protocol version that this client speaks, 5.1.1: TLS, and pages with checksums.
const VERSION: u32 = 0x511;

/// The first bytes that a client sends on a connection, before its first request.
pub const HANDSHAKE: [u8; 20] = {
    let mut bytes = [0; 20];
    bytes[15] = 4;
    // 2012 in two bytes.
    bytes[18] = 7;
    bytes[19] = 220;
    bytes
};

/// Bits in requests and responses.
pub mod flags {
    /// `kXR_open_read`.
    pub const OPEN_READ: u16 = 0x0010;
    /// `kXR_open_updt`: read and write.
    pub const OPEN_UPDATE: u16 = 0x0020;
    /// `kXR_new`: create a file that does not exist.
    pub const OPEN_NEW: u16 = 0x0008;
    /// `kXR_mkpath`: create missing directories.
    pub const OPEN_MAKE_PATH: u16 = 0x0100;
    /// `kXR_posc`: the server removes the file if it is not closed.
    pub const OPEN_PERSIST_ON_CLOSE: u16 = 0x1000;
    /// `kXR_retstat`: the response to an open includes size and time.
    pub const OPEN_STAT: u16 = 0x0400;

    /// `kXR_isServer`: a server with data, not a redirector.
    pub const IS_SERVER: u32 = 0x0000_0001;
    /// `kXR_suppgrw`: pages with checksums.
    pub const PAGES: u32 = 0x0020_0000;
    /// `kXR_haveTLS`.
    pub const HAVE_TLS: u32 = 0x8000_0000;
    /// `kXR_gotoTLS`: the next byte on the connection belongs to TLS.
    pub const GOTO_TLS: u32 = 0x4000_0000;
    /// `kXR_tlsData`, `kXR_tlsLogin` and `kXR_tlsSess`: what the server demands TLS for, of what this client does.
    pub const NEED_TLS: u32 = 0x0d00_0000;

    /// `kXR_isDir` in the flags of a stat.
    pub const STAT_DIRECTORY: u32 = 2;
    /// `kXR_other` in the flags of a stat: neither a file nor a directory.
    pub const STAT_OTHER: u32 = 4;
}

/// Whether a connection is to become encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// If the server demands it.
    Able,
    /// Always.
    Want,
}

/// A range of a file that is read as a part of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u32,
}

/// A request of a client. Paths may end with opaque information: `?` and parameters.
#[derive(Clone, PartialEq, Eq)]
pub enum Request {
    /// `kXR_protocol`: versions and TLS.
    Protocol {
        /// Whether to encrypt.
        tls: Tls,
    },
    /// `kXR_login`.
    Login {
        /// Name of the user; only the first 8 bytes count.
        user: String,
        /// Process id.
        process: u32,
        /// Parameters, among them the token of a redirect.
        parameters: String,
    },
    /// `kXR_auth`.
    Auth {
        /// Name of the authentication protocol, at most 4 bytes.
        protocol: String,
        /// The bytes that this protocol sends.
        credentials: Vec<u8>,
    },
    /// `kXR_open`.
    Open {
        /// Path and opaque information.
        path: String,
        /// Bits of [`flags`].
        options: u16,
        /// Permissions of a new file.
        mode: u16,
    },
    /// `kXR_stat`.
    Stat {
        /// Path and opaque information.
        path: String,
    },
    /// `kXR_stat` of an open file.
    StatOpen {
        /// The open file.
        handle: Handle,
    },
    /// `kXR_read`.
    Read {
        /// The open file.
        handle: Handle,
        /// What to read.
        chunk: Chunk,
    },
    /// `kXR_readv`.
    ReadVector {
        /// The open file.
        handle: Handle,
        /// What to read.
        chunks: Vec<Chunk>,
    },
    /// `kXR_pgread`.
    ReadPages {
        /// The open file.
        handle: Handle,
        /// What to read.
        chunk: Chunk,
        /// Whether an earlier response had a wrong checksum.
        retry: bool,
    },
    /// `kXR_query` for the limits of vector reads.
    Limits,
    /// `kXR_dirlist` with the size of each entry.
    List {
        /// Path and opaque information.
        path: String,
    },
    /// `kXR_close`.
    Close {
        /// The open file.
        handle: Handle,
    },
    /// `kXR_write`.
    Write {
        /// The open file.
        handle: Handle,
        /// Where to.
        offset: u64,
        /// What to write.
        bytes: Bytes,
    },
    /// `kXR_truncate`.
    Truncate {
        /// The open file.
        handle: Handle,
        /// Its new size in bytes.
        size_bytes: u64,
    },
    /// `kXR_sync`.
    Sync {
        /// The open file.
        handle: Handle,
    },
    /// `kXR_mv`.
    Rename {
        /// Old path and opaque information.
        from: String,
        /// New path and opaque information.
        to: String,
    },
    /// `kXR_rm`.
    Remove {
        /// Path and opaque information.
        path: String,
    },
}

/// Only the name: paths and credentials may be secret.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Request {
    /// The name of the protocol's specification.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Protocol { .. } => "kXR_protocol",
            Self::Login { .. } => "kXR_login",
            Self::Auth { .. } => "kXR_auth",
            Self::Open { .. } => "kXR_open",
            Self::Stat { .. } | Self::StatOpen { .. } => "kXR_stat",
            Self::Read { .. } => "kXR_read",
            Self::ReadVector { .. } => "kXR_readv",
            Self::ReadPages { .. } => "kXR_pgread",
            Self::Limits => "kXR_query",
            Self::List { .. } => "kXR_dirlist",
            Self::Close { .. } => "kXR_close",
            Self::Write { .. } => "kXR_write",
            Self::Truncate { .. } => "kXR_truncate",
            Self::Sync { .. } => "kXR_sync",
            Self::Rename { .. } => "kXR_mv",
            Self::Remove { .. } => "kXR_rm",
        }
    }

    fn code(&self) -> u16 {
        match self {
            Self::Auth { .. } => 3000,
            Self::Limits => 3001,
            Self::Close { .. } => 3003,
            Self::List { .. } => 3004,
            Self::Protocol { .. } => 3006,
            Self::Login { .. } => 3007,
            Self::Rename { .. } => 3009,
            Self::Open { .. } => 3010,
            Self::Read { .. } => 3013,
            Self::Remove { .. } => 3014,
            Self::Sync { .. } => 3016,
            Self::Stat { .. } | Self::StatOpen { .. } => 3017,
            Self::Write { .. } => 3019,
            Self::ReadVector { .. } => 3025,
            Self::Truncate { .. } => 3028,
            Self::ReadPages { .. } => 3030,
        }
    }

    /// The bytes of the request.
    ///
    /// # Errors
    /// [`Malformed`] for offsets, lengths and paths that the protocol cannot express.
    pub fn encode(&self, stream: StreamId) -> Result<Vec<u8>, Malformed> {
        let mut body = Body::default();
        let mut payload = Vec::new();
        match self {
            Self::Protocol { tls } => {
                // kXR_ableTLS, kXR_wantTLS; the next request is kXR_login.
                let tls = if *tls == Tls::Want { 0x06 } else { 0x02 };
                body.put(&VERSION.to_be_bytes()).put(&[tls, 0x03]);
            }
            Self::Login { user, process, parameters } => {
                let mut name = [0; 8];
                name.iter_mut().zip(user.bytes()).for_each(|(to, from)| *to = from);
                // Abilities kXR_fullurl, kXR_readrdok, kXR_hasipv64; version kXR_ver005 with kXR_asyncap.
                body.put(&process.to_be_bytes()).put(&name).put(&[0, 1 | 4 | 8, 128 | 5, 0]);
                payload = text(parameters)?;
            }
            Self::Auth { protocol, credentials } => {
                let mut name = [0; 4];
                name.iter_mut().zip(protocol.bytes()).for_each(|(to, from)| *to = from);
                body.skip(12).put(&name);
                payload.clone_from(credentials);
            }
            Self::Open { path, options, mode } => {
                body.put(&mode.to_be_bytes()).put(&options.to_be_bytes());
                payload = text(path)?;
            }
            Self::Stat { path } | Self::Remove { path } => payload = text(path)?,
            Self::StatOpen { handle } => {
                body.skip(12).put(&handle.0);
            }
            Self::Read { handle, chunk } => {
                body.put(&handle.0).put(&offset(chunk.offset)?).put(&len(chunk.len as usize)?);
            }
            Self::ReadVector { handle, chunks } => {
                payload.reserve(16 * chunks.len());
                for chunk in chunks {
                    payload.extend_from_slice(&handle.0);
                    payload.extend_from_slice(&len(chunk.len as usize)?);
                    payload.extend_from_slice(&offset(chunk.offset)?);
                }
            }
            Self::ReadPages { handle, chunk, retry } => {
                body.put(&handle.0).put(&offset(chunk.offset)?).put(&len(chunk.len as usize)?);
                if *retry {
                    // On this connection; kXR_pgRetry.
                    payload = vec![0, 1];
                }
            }
            Self::Limits => {
                // kXR_Qconfig.
                body.put(&7_u16.to_be_bytes());
                payload = text("readv_iov_max readv_ior_max")?;
            }
            Self::List { path } => {
                // kXR_dstat.
                body.skip(15).put(&[2]);
                payload = text(path)?;
            }
            Self::Close { handle } | Self::Sync { handle } => {
                body.put(&handle.0);
            }
            Self::Write { handle, offset: at, bytes } => {
                body.put(&handle.0).put(&offset(*at)?);
                payload = bytes.to_vec();
            }
            Self::Truncate { handle, size_bytes } => {
                body.put(&handle.0).put(&offset(*size_bytes)?);
            }
            Self::Rename { from, to } => {
                let from_len = i16::try_from(from.len()).map_err(|_| Malformed::new("the path is too long"))?;
                body.skip(14).put(&from_len.to_be_bytes());
                payload = [text(from)?, b" ".to_vec(), text(to)?].concat();
            }
        }
        let mut bytes = Vec::with_capacity(24 + payload.len());
        bytes.extend_from_slice(&stream.to_be_bytes());
        bytes.extend_from_slice(&self.code().to_be_bytes());
        bytes.extend_from_slice(&body.bytes);
        bytes.extend_from_slice(&len(payload.len())?);
        bytes.append(&mut payload);
        Ok(bytes)
    }
}

/// The 16 bytes between the request code and the length of the payload.
#[derive(Default)]
struct Body {
    bytes: [u8; 16],
    at: usize,
}

impl Body {
    fn put(&mut self, field: &[u8]) -> &mut Self {
        self.bytes.iter_mut().skip(self.at).zip(field).for_each(|(to, from)| *to = *from);
        self.skip(field.len())
    }

    fn skip(&mut self, bytes: usize) -> &mut Self {
        self.at += bytes;
        self
    }
}

/// Offsets are signed.
fn offset(offset: u64) -> Result<[u8; 8], Malformed> {
    match i64::try_from(offset) {
        Ok(offset) => Ok(offset.to_be_bytes()),
        Err(_) => Err(Malformed::new(format!("offset {offset} exceeds the limit of the protocol"))),
    }
}

/// Lengths are signed.
fn len(len: usize) -> Result<[u8; 4], Malformed> {
    match i32::try_from(len) {
        Ok(len) => Ok(len.to_be_bytes()),
        Err(_) => Err(Malformed::new(format!("length {len} exceeds the limit of the protocol"))),
    }
}

/// A text that the server reads up to a zero byte or a line feed.
fn text(text: &str) -> Result<Vec<u8>, Malformed> {
    if text.chars().any(char::is_control) {
        return Err(Malformed::new("the path contains a control character"));
    }
    Ok(text.as_bytes().to_vec())
}
