//! Bytes to responses.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::{Chunk, Fields, Handle, MAX_CONTROL_BYTES, Malformed, StreamId, flags};

/// Bytes before the data of each chunk in the response to a vector read.
const CHUNK_HEADER_BYTES: usize = 16;
/// Characters of a server's error message that are shown.
const MAX_SHOWN_CHARS: usize = 500;
/// Maximum number of entries of a directory: they take ten times the memory of their names.
const MAX_ENTRIES: usize = 1 << 20;
/// Limits of vector reads where the server does not report its own: `maxRvecsz` and `maxRVdsz`.
const DEFAULT_LIMITS: ReadLimits = ReadLimits { chunks: 1024, chunk_bytes: (2 << 20) - 16 };

/// Kinds of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// `kXR_ok`: the last part, or the only one.
    Ok,
    /// `kXR_oksofar`: more parts follow.
    OkSoFar,
    /// `kXR_attn`: not the response to a request, but it may contain one.
    Attention,
    /// `kXR_authmore`: the authentication continues.
    AuthMore,
    /// `kXR_error`.
    Error,
    /// `kXR_redirect`: repeat the request at another server.
    Redirect,
    /// `kXR_wait`: repeat the request later.
    Wait,
    /// `kXR_waitresp`: the response follows later.
    WaitResponse,
    /// `kXR_status`: pages with checksums.
    Pages,
}

/// The header of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The stream id of the request.
    pub stream: StreamId,
    /// The kind of response.
    pub status: Status,
    /// Length of the body in bytes.
    pub len: u32,
}

impl Header {
    /// Size of a header in bytes.
    pub const BYTES: usize = 8;

    /// Reads a header.
    ///
    /// # Errors
    /// [`Malformed`] for an unknown kind and a negative length.
    pub fn parse(bytes: [u8; Self::BYTES]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(&bytes, "response header");
        let stream = fields.u16()?;
        let status = match fields.u16()? {
            0 => Status::Ok,
            4000 => Status::OkSoFar,
            4001 => Status::Attention,
            4002 => Status::AuthMore,
            4003 => Status::Error,
            4004 => Status::Redirect,
            4005 => Status::Wait,
            4006 => Status::WaitResponse,
            4007 => Status::Pages,
            other => return Err(Malformed::new(format!("the server sent a response of unknown kind {other}"))),
        };
        Ok(Self { stream, status, len: fields.len()? })
    }
}

/// The start of the body of [`Status::Attention`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncHeader {
    /// `kXR_asynresp`: the header of a response to a request. Its body follows.
    pub response: Option<Header>,
}

impl AsyncHeader {
    /// Its size in bytes.
    pub const BYTES: usize = 16;

    /// Reads the start of a body of `len` bytes.
    ///
    /// # Errors
    /// [`Malformed`] if the response in it has another length, or is itself asynchronous.
    pub fn parse(bytes: [u8; Self::BYTES], len: u32) -> Result<Self, Malformed> {
        let mut fields = Fields::new(&bytes, "asynchronous message");
        let action = fields.u32()?;
        fields.u32()?;
        // All others are messages to the user, or obsolete.
        if action != 5008 {
            return Ok(Self { response: None });
        }
        let header = Header::parse(fields.array()?)?;
        let fits = len.checked_sub(Self::BYTES as u32) == Some(header.len);
        let nested = matches!(header.status, Status::Attention | Status::WaitResponse | Status::Pages);
        if !fits || nested {
            return Err(Malformed::new("the server sent an invalid asynchronous response"));
        }
        Ok(Self { response: Some(header) })
    }
}

/// The response to [`Request::Protocol`](super::Request::Protocol).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolInfo {
    /// Version of the protocol, one hexadecimal digit for each part.
    pub version: u32,
    /// Bits of [`flags`].
    pub flags: u32,
}

impl ProtocolInfo {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Malformed`] if it is too short.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body, "protocol response");
        Ok(Self { version: fields.u32()?, flags: fields.u32()? })
    }
}

/// The response to [`Request::Login`](super::Request::Login).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// Authentication protocols that the server accepts, in its order, and their parameters. Empty if none is needed.
    pub protocols: Vec<(String, String)>,
}

impl Login {
    /// Reads a body: a session id and `&P=name,parameters` for each protocol.
    ///
    /// # Errors
    /// [`Malformed`] if it is too short or has no protocol that could be used.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body, "login response");
        // Old servers of another implementation send nothing.
        if !body.is_empty() {
            fields.array::<16>()?;
        }
        let text = fields.text()?;
        let named = |entry: &str| {
            let entry = entry.strip_prefix("P=")?;
            let (name, parameters) = entry.split_once(',').unwrap_or((entry, ""));
            let valid = (1..=4).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric());
            valid.then(|| (name.to_owned(), parameters.trim_end().to_owned()))
        };
        let protocols: Vec<_> = text.split('&').filter_map(named).collect();
        if protocols.is_empty() && !text.trim().is_empty() {
            return Err(Malformed::new("the server requires authentication without naming a method"));
        }
        Ok(Self { protocols })
    }
}

/// `kXR_error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// The error code, of 3000 and more.
    pub code: u32,
    /// The message, shortened and without control characters.
    pub message: String,
}

impl ServerError {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Malformed`] if it is too short.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body, "error response");
        let code = fields.u32()?;
        let text = String::from_utf8_lossy(fields.rest);
        let text = text.trim_end_matches(['\0', '\n']);
        let mut message: String =
            text.chars().take(MAX_SHOWN_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
            message.push('…');
        }
        Ok(Self { code, message })
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() { write!(f, "server error {}", self.code) } else { f.write_str(&self.message) }
    }
}

/// `kXR_redirect`. `Debug` shows only the host.
#[derive(Clone, PartialEq, Eq)]
pub struct Redirect {
    /// A host, or with a negative port a URL.
    pub target: String,
    /// The port; negative if `target` is a URL; zero for the default port.
    pub port: i32,
    /// Opaque information for the request at that server.
    pub opaque: Option<String>,
    /// A token for the login at that server.
    pub token: Option<String>,
}

impl Redirect {
    /// Reads a body: a port, then `target?opaque?token`.
    ///
    /// # Errors
    /// [`Malformed`] if it names no host, or is not text.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body, "redirect");
        let port = fields.i32()?;
        let text = fields.text()?;
        if text.chars().any(char::is_control) {
            return Err(Malformed::new("the server redirected to a name that contains a control character"));
        }
        let mut parts = text.splitn(3, '?');
        let target = parts.next().filter(|target| !target.is_empty());
        let target = target.ok_or_else(|| Malformed::new("the server redirected without naming a host"))?.to_owned();
        let mut parameters = || parts.next().filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Self { target, port, opaque: parameters(), token: parameters() })
    }
}

impl fmt::Debug for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redirect({}:{})", self.target, self.port)
    }
}

/// Reads the body of `kXR_wait` and `kXR_waitresp`.
///
/// # Errors
/// [`Malformed`] if it is too short.
pub fn parse_wait(body: &[u8]) -> Result<Duration, Malformed> {
    let seconds = Fields::new(body, "wait response").i32()?;
    Ok(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// The status of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bits of [`flags`].
    pub flags: u32,
    /// Time of the last change, in seconds.
    pub modified: i64,
}

impl Stat {
    /// Reads a body: `id size flags mtime`, and more in later versions.
    ///
    /// # Errors
    /// [`Malformed`] for anything else.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        Self::of_text(Fields::new(body, "stat response").text()?)
    }

    fn of_text(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed::new("the server sent an invalid stat response");
        let mut words = text.split_ascii_whitespace().skip(1);
        let mut word = || words.next().ok_or_else(malformed);
        Ok(Self {
            size_bytes: word()?.parse().ok().filter(|&size| i64::try_from(size).is_ok()).ok_or_else(malformed)?,
            flags: word()?.parse().map_err(|_| malformed())?,
            modified: word()?.parse().map_err(|_| malformed())?,
        })
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.flags & flags::STAT_DIRECTORY != 0
    }
}

/// The response to [`Request::Open`](super::Request::Open).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// The handle for reads.
    pub handle: Handle,
    /// If it was requested, and the server can.
    pub stat: Option<Stat>,
}

impl Opened {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Malformed`] if it is too short, or its stat is invalid.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body, "open response");
        let handle = Handle(fields.array()?);
        if fields.rest.len() <= 8 {
            return Ok(Self { handle, stat: None });
        }
        // Compression, which no server has.
        fields.array::<8>()?;
        Ok(Self { handle, stat: Some(Stat::of_text(fields.text()?)?) })
    }
}

/// Limits of a server for vector reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Number of chunks in one request.
    pub chunks: usize,
    /// Size of a chunk in bytes.
    pub chunk_bytes: u32,
}

impl Default for ReadLimits {
    fn default() -> Self {
        DEFAULT_LIMITS
    }
}

impl ReadLimits {
    /// Reads a body: one value in each line. A server that does not know a name repeats it.
    pub fn parse(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let mut values = text.split(['\n', '\0']).map(|line| line.trim().parse::<u32>().ok().filter(|&n| n > 0));
        let chunks = values.next().flatten().map_or(DEFAULT_LIMITS.chunks, |n| n as usize);
        let chunk_bytes = values.next().flatten().unwrap_or(DEFAULT_LIMITS.chunk_bytes);
        Self { chunks: chunks.min(DEFAULT_LIMITS.chunks), chunk_bytes: chunk_bytes.min(i32::MAX as u32) }
    }
}

/// The size of the response to a vector read.
pub fn vector_response_bytes(chunks: &[Chunk]) -> usize {
    chunks.iter().map(|chunk| CHUNK_HEADER_BYTES + chunk.len as usize).sum()
}

/// The data of each chunk in the response to a vector read, without copying.
///
/// # Errors
/// [`Malformed`] if the response has other chunks than the request.
pub fn parse_vector(mut body: Bytes, handle: Handle, chunks: &[Chunk]) -> Result<Vec<Bytes>, Malformed> {
    if body.len() != vector_response_bytes(chunks) {
        return Err(Malformed::new(format!("the server returned {} bytes for {} chunks", body.len(), chunks.len())));
    }
    let mut one = |chunk: &Chunk| {
        let header = body.split_to(CHUNK_HEADER_BYTES);
        let mut fields = Fields::new(&header, "vector response");
        let found = (Handle(fields.array()?), fields.u32()?, fields.u64()?);
        if found != (handle, chunk.len, chunk.offset) {
            let Chunk { offset, len } = chunk;
            return Err(Malformed::new(format!(
                "expected a chunk of {len} bytes at {offset}, the server sent another"
            )));
        }
        Ok(body.split_to(chunk.len as usize))
    };
    chunks.iter().map(&mut one).collect()
}

/// The body of [`Status::Pages`]: what data follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageStatus {
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Length of the data that follow the body, checksums included.
    pub len: u32,
    /// Whether this is the last part.
    pub last: bool,
}

impl PageStatus {
    /// Size of the body in bytes.
    pub const BYTES: usize = 24;

    /// Reads a body.
    ///
    /// # Errors
    /// [`Malformed`] for a wrong checksum, and for a response to another request.
    pub fn parse(bytes: [u8; Self::BYTES], stream: StreamId) -> Result<Self, Malformed> {
        let mut fields = Fields::new(&bytes, "status response");
        let checksum = fields.u32()?;
        if crc32c::crc32c(fields.rest) != checksum {
            return Err(Malformed::new("checksum mismatch in a status response"));
        }
        let (found, request, part) = (fields.u16()?, fields.array::<1>()?, fields.array::<1>()?);
        fields.array::<4>()?;
        // kXR_pgread; kXR_FinalResult or kXR_PartialResult.
        if found != stream || request != [30] || part[0] > 1 {
            return Err(Malformed::new("the server sent a status response to another request"));
        }
        let len = fields.len()?;
        Ok(Self { offset: fields.u64()?, len, last: part == [0] })
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name, without a slash.
    pub name: String,
    /// Absent if the server does not return it with the name.
    pub stat: Option<Stat>,
}

/// Reads the body of the response to [`Request::List`](super::Request::List).
///
/// # Errors
/// [`Malformed`] if it is not text, has an invalid stat, or a name that leads to another directory.
pub fn parse_listing(body: &[u8]) -> Result<Vec<Listed>, Malformed> {
    let text = Fields::new(body, "directory").text()?;
    let mut lines = text.lines().filter(|line| !line.is_empty()).peekable();
    // The first entry says whether stats follow.
    let has_stats = lines.next_if_eq(&".").is_some();
    if has_stats {
        lines.next();
    }
    let mut entries = Vec::new();
    while let Some(name) = lines.next() {
        if name.contains('/') || name == "." || name == ".." || name.len() > MAX_CONTROL_BYTES {
            return Err(Malformed::new("the server sent an invalid name of a directory entry"));
        }
        if entries.len() >= MAX_ENTRIES {
            return Err(Malformed::new(format!("the directory has more than {MAX_ENTRIES} entries")));
        }
        let missing = || Malformed::new("the server sent a directory entry without its size");
        let stat = has_stats.then(|| lines.next().ok_or_else(missing).and_then(Stat::of_text)).transpose()?;
        entries.push(Listed { name: name.to_owned(), stat });
    }
    Ok(entries)
}
