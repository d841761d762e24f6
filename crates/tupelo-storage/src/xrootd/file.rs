//! A file that is open on a server.

use std::ops::Range;

use bytes::Bytes;

use super::channel::Reply;
use super::client::{Client, settle, unexpected};
use super::connection::Connection;
use super::failure::Failure;
use super::message::{
    Chunk, Handle, MAX_CONTROL_BYTES, Opened, PageBuffer, ReadLimits, Request, Stat, flags, max_page_response_bytes,
    parse_vector, vector_response_bytes,
};
use super::url::{Server, Url};
use crate::error::ErrorKind;

/// Maximum number of times that pages with wrong checksums are read again.
const PAGE_RETRIES: u32 = 4;

/// What must not change while a file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) size_bytes: u64,
    pub(super) modified: i64,
    /// The server that has the file. Copies on other servers have another time.
    pub(super) server: String,
}

impl Identity {
    /// Whether this is the same file as when it was opened first.
    pub(super) fn check(&self, now: &Self) -> Result<(), Failure> {
        let changed = |reason: String| Err(Failure::new(ErrorKind::Changed, reason));
        if now.size_bytes != self.size_bytes {
            return changed(format!("its size changed from {} to {} bytes", self.size_bytes, now.size_bytes));
        }
        if now.server == self.server && now.modified != self.modified {
            return changed("it was modified after it was opened".to_owned());
        }
        Ok(())
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile {
    connection: Connection,
    handle: Handle,
    pub(super) identity: Identity,
    pub(super) limits: ReadLimits,
}

impl OpenFile {
    /// Opens the file of a client for reading.
    pub(super) async fn open(client: &Client) -> Result<Self, Failure> {
        let options = flags::OPEN_READ | flags::OPEN_STAT | flags::OPEN_ASYNC;
        let open = |url: &Url| Request::Open { path: url.request_path(), options, mode: 0 };
        let answer = client.perform(&client.url, open, MAX_CONTROL_BYTES).await?;
        let connection = answer.connection;
        let opened = Opened::parse(&answer.body)?;
        let stat = match opened.stat {
            Some(stat) => stat,
            None => stat(&connection, answer.url.request_path()).await?,
        };
        if stat.flags & (flags::STAT_DIRECTORY | flags::STAT_OTHER) != 0 {
            let what = if stat.is_directory() { "it is a directory" } else { "it is not a regular file" };
            return Err(Failure::new(ErrorKind::NotSupported, what));
        }
        // What is not known has defaults.
        let limits = match settle(&connection, &Request::Limits, MAX_CONTROL_BYTES).await {
            Ok(Reply::Done(body)) => ReadLimits::parse(&body),
            Err(failure) if connection.channel.is_closed() => return Err(failure),
            _ => ReadLimits::default(),
        };
        let server = connection.server.to_string();
        let identity = Identity { size_bytes: stat.size_bytes, modified: stat.modified, server };
        Ok(Self { connection, handle: opened.handle, identity, limits })
    }

    /// The server that has the file.
    pub(super) fn server(&self) -> &Server {
        &self.connection.server
    }

    /// Whether the connection still accepts requests.
    pub(super) fn is_usable(&self) -> bool {
        !self.connection.channel.is_closed()
    }

    /// Whether large reads come with checksums. Encrypted connections detect changes themselves.
    fn has_pages(&self) -> bool {
        self.connection.has_pages && !self.connection.is_encrypted
    }

    /// Reads one range, by `kXR_pgread` if the server has it.
    pub(super) async fn read(&self, chunk: Chunk) -> Result<Bytes, Failure> {
        if self.has_pages() {
            return self.read_pages(chunk).await;
        }
        let request = Request::Read { handle: self.handle, chunk };
        let bytes = self.data(&request, chunk.len as usize).await?;
        if bytes.len() < chunk.len as usize { Err(short(bytes.len() as u64, chunk)) } else { Ok(bytes) }
    }

    async fn read_pages(&self, chunk: Chunk) -> Result<Bytes, Failure> {
        let mut buffer = PageBuffer::new(chunk);
        self.fetch_pages(chunk, false, &mut buffer).await?;
        let mut damaged = buffer.take_damaged();
        for _ in 0..PAGE_RETRIES {
            for Range { start, end } in std::mem::take(&mut damaged) {
                // A page.
                let chunk = Chunk { offset: start, len: (end - start) as u32 };
                self.fetch_pages(chunk, true, &mut buffer).await?;
            }
            damaged = buffer.take_damaged();
        }
        if let Some(page) = damaged.first() {
            let reason = format!("the page at {} has a wrong checksum", page.start);
            return Err(Failure::transient(ErrorKind::Other, reason));
        }
        let received = buffer.received_bytes();
        buffer.finish().map(Bytes::from).ok_or_else(|| short(received, chunk))
    }

    async fn fetch_pages(&self, chunk: Chunk, retry: bool, buffer: &mut PageBuffer) -> Result<(), Failure> {
        let request = Request::ReadPages { handle: self.handle, chunk, retry };
        match settle(&self.connection, &request, max_page_response_bytes(chunk)).await? {
            Reply::Pages(parts) => Ok(parts.iter().try_for_each(|(offset, wire)| buffer.add(*offset, wire))?),
            other => Err(self.redirected(&other)),
        }
    }

    /// Reads several ranges by one request.
    pub(super) async fn read_vector(&self, chunks: Vec<Chunk>) -> Result<Vec<Bytes>, Failure> {
        let limit = vector_response_bytes(&chunks);
        let request = Request::ReadVector { handle: self.handle, chunks };
        let body = self.data(&request, limit).await?;
        let Request::ReadVector { chunks, .. } = request else { return Ok(Vec::new()) };
        Ok(parse_vector(body, self.handle, &chunks)?)
    }

    async fn data(&self, request: &Request, limit: usize) -> Result<Bytes, Failure> {
        match settle(&self.connection, request, limit).await? {
            Reply::Done(bytes) => Ok(bytes),
            other => Err(self.redirected(&other)),
        }
    }

    /// A response that does not have the data. A server that redirects a read has lost the file: it is opened again.
    fn redirected(&self, reply: &Reply) -> Failure {
        match reply {
            Reply::Redirect(_) => Failure::transient(ErrorKind::Unavailable, "the server no longer has the file"),
            other => unexpected(other),
        }
    }
}

/// The size and time of a path.
pub(super) async fn stat(connection: &Connection, path: String) -> Result<Stat, Failure> {
    match settle(connection, &Request::Stat { path }, MAX_CONTROL_BYTES).await? {
        Reply::Done(body) => Ok(Stat::parse(&body)?),
        other => Err(unexpected(&other)),
    }
}

/// Fewer bytes than the file had when it was opened.
#[cold]
fn short(received: u64, Chunk { offset, len }: Chunk) -> Failure {
    let reason = format!("the server has only {received} of {len} bytes at {offset}: the file was truncated");
    Failure::new(ErrorKind::Changed, reason)
}
