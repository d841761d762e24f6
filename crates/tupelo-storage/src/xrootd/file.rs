//! A file that is open on a server.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::client::{Client, settle, unexpected};
use super::connection::Connection;
use super::connection::{Reply, Room};
use super::message::{
    Chunk, Handle, Opened, PageBuffer, ReadLimits, Request, Stat, flags, parse_vector, vector_response_bytes,
};
use super::url::{Server, Url};
use crate::error::ErrorKind;
use crate::net::Failure;

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
        let changed = |reason: String| Err(Failure::lasting(ErrorKind::Changed, reason));
        if now.size_bytes != self.size_bytes {
            return changed(format!("its size changed from {} to {} bytes", self.size_bytes, now.size_bytes));
        }
        if now.server == self.server && now.modified != self.modified {
            return changed("it was modified after it was opened".to_owned());
        }
        Ok(())
    }
}

/// An open file. Dropping it closes it, without waiting.
#[derive(Debug)]
pub(super) struct OpenFile {
    connection: Arc<Connection>,
    handle: Handle,
    pub(super) identity: Identity,
    pub(super) limits: ReadLimits,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // Other files may use the connection for long.
        self.connection.channel.close(self.handle);
    }
}

impl OpenFile {
    /// Opens the file of a client for reading.
    pub(super) async fn open(client: &Client) -> Result<Self, Failure> {
        let options = flags::OPEN_READ | flags::OPEN_STAT | flags::OPEN_ASYNC;
        let open = |url: &Url| Request::Open { path: url.request_path(), options, mode: 0 };
        let answer = client.perform_both(&client.url, open, Room::control, Some(&Request::Limits)).await?;
        let connection = answer.connection;
        let opened = Opened::parse(&answer.body)?;
        let stat = match opened.stat {
            Some(stat) => stat,
            None => stat(&connection, answer.url.request_path()).await?,
        };
        if stat.flags & (flags::STAT_DIRECTORY | flags::STAT_OTHER) != 0 {
            let what = if stat.is_directory() { "it is a directory" } else { "it is not a regular file" };
            return Err(Failure::lasting(ErrorKind::NotSupported, what));
        }
        let limits = answer.second.map_or_else(ReadLimits::default, |body| ReadLimits::parse(&body));
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

    /// Reads one range, by `kXR_pgread` if the server has it. `buffer` is memory for it, if there is any.
    pub(super) async fn read(&self, chunk: Chunk, mut buffer: BytesMut) -> Result<BytesMut, Failure> {
        if self.has_pages() {
            return self.read_pages(chunk, buffer).await;
        }
        let len = chunk.len as usize;
        let request = Request::Read { handle: self.handle, chunk };
        let room = || Room::Bytes(std::mem::take(&mut buffer), len);
        let bytes = self.data(&request, room).await?;
        if bytes.len() < len { Err(short(bytes.len() as u64, chunk)) } else { Ok(bytes) }
    }

    async fn read_pages(&self, chunk: Chunk, buffer: BytesMut) -> Result<BytesMut, Failure> {
        let mut pages = self.fetch_pages(chunk, false, buffer).await?;
        let mut damaged = pages.take_damaged();
        for _ in 0..PAGE_RETRIES {
            for Range { start, end } in std::mem::take(&mut damaged) {
                // A page.
                let chunk = Chunk { offset: start, len: (end - start) as u32 };
                let mut again = self.fetch_pages(chunk, true, BytesMut::new()).await?;
                if again.take_damaged().is_empty()
                    && let Some(page) = again.finish()
                {
                    pages.put(start, &page)?;
                } else {
                    damaged.push(start..end);
                }
            }
        }
        if let Some(page) = damaged.first() {
            let reason = format!("the page at {} has a wrong checksum", page.start);
            return Err(Failure::transient(ErrorKind::Other, reason));
        }
        let received = pages.received_bytes();
        pages.finish().ok_or_else(|| short(received, chunk))
    }

    async fn fetch_pages(&self, chunk: Chunk, retry: bool, mut buffer: BytesMut) -> Result<PageBuffer, Failure> {
        let request = Request::ReadPages { handle: self.handle, chunk, retry };
        let room = || Room::Pages(PageBuffer::new(chunk, std::mem::take(&mut buffer)));
        match settle(&self.connection, &request, room).await? {
            Reply::Pages(pages) => Ok(pages),
            other => Err(self.redirected(&other)),
        }
    }

    /// Reads several ranges by one request.
    pub(super) async fn read_vector(&self, chunks: Vec<Chunk>) -> Result<Vec<Bytes>, Failure> {
        let limit = vector_response_bytes(&chunks);
        let request = Request::ReadVector { handle: self.handle, chunks };
        let body = self.data(&request, || Room::Bytes(BytesMut::new(), limit)).await?;
        let Request::ReadVector { chunks, .. } = request else { return Ok(Vec::new()) };
        Ok(parse_vector(body.freeze(), self.handle, &chunks)?)
    }

    async fn data(&self, request: &Request, room: impl FnMut() -> Room) -> Result<BytesMut, Failure> {
        match settle(&self.connection, request, room).await? {
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
    match settle(connection, &Request::Stat { path }, Room::control).await? {
        Reply::Done(body) => Ok(Stat::parse(&body)?),
        other => Err(unexpected(&other)),
    }
}

/// Fewer bytes than the file had when it was opened.
#[cold]
fn short(received: u64, Chunk { offset, len }: Chunk) -> Failure {
    let reason = format!("the server has only {received} of {len} bytes at {offset}: the file was truncated");
    Failure::lasting(ErrorKind::Changed, reason)
}
