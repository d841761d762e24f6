//! A file that is open on a server.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};

use super::client::{Client, settle, settle_both, unexpected};
use super::connection::Connection;
use super::connection::{Reply, Room};
use super::message::{
    Chunk, Handle, Opened, PageBuffer, ReadLimits, Request, Stat, flags, parse_vector, vector_response_bytes,
};
use super::url::{Server, Url};
use crate::error::ErrorKind;
use crate::net::{Failure, is_settled};
use crate::source::Traffic;

/// Maximum number of times that pages with wrong checksums are read again.
const PAGE_RETRIES: u32 = 4;

/// Properties that must not change while a file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) size_bytes: u64,
    /// In seconds.
    pub(super) modified: i64,
    /// The server that has the file.
    pub(super) server: String,
}

impl Identity {
    fn new(stat: &Stat, server: &Server) -> Self {
        Self { size_bytes: stat.size_bytes, modified: stat.modified, server: server.to_string() }
    }

    /// The version of a file that is opened now; none if the time of its change does not identify it.
    pub(super) fn version(&self) -> Option<String> {
        // Zero is what servers send that know no time.
        let modified = u64::try_from(self.modified).ok().filter(|&seconds| seconds > 0)?;
        let modified = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(modified))?;
        is_settled(modified, SystemTime::now()).then(|| format!("{} {}", self.size_bytes, self.modified))
    }

    /// Whether this is the same file as when it was opened first.
    pub(super) fn check(&self, now: &Self) -> Result<(), Failure> {
        let changed = |reason: String| Err(Failure::lasting(ErrorKind::Changed, reason));
        if now.size_bytes != self.size_bytes {
            return changed(format!("its size changed from {} to {} bytes", self.size_bytes, now.size_bytes));
        }
        if now.modified == self.modified {
            return Ok(());
        }
        if now.server == self.server {
            return changed("it was modified after it was opened".to_owned());
        }
        // Most copies on other servers are equal and differ in their times, but so do copies of different versions.
        changed(format!(
            "it was opened on the server {}, but its modification time differs on the server {}: it may be another \
             version; open it again",
            self.server, now.server
        ))
    }
}

/// An open file. Dropping it closes it, without waiting.
#[derive(Debug)]
pub(super) struct OpenFile {
    connection: Arc<Connection>,
    handle: Handle,
    pub(super) identity: Identity,
    pub(super) limits: ReadLimits,
    /// Counts the checks of reads.
    traffic: Arc<Traffic>,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // Other files may use the connection for long.
        self.connection.channel.close(self.handle);
    }
}

impl OpenFile {
    /// Opens the file of a client for reading.
    pub(super) async fn open(client: &Client, traffic: &Arc<Traffic>) -> Result<Self, Failure> {
        // Without `kXR_async`, which would allow a server to read after it has executed the check that follows the read.
        let options = flags::OPEN_READ | flags::OPEN_STAT;
        let open = |url: &Url| Request::Open { path: url.request_path(), options, mode: 0 };
        let answer = client.perform_both(&client.url, open, Room::control, Some(&Request::Limits)).await?;
        let connection = answer.connection;
        let opened = Opened::parse(&answer.body)?;
        let stat = match opened.stat {
            Some(stat) => stat,
            None => stat(&connection, &Request::StatOpen { handle: opened.handle }).await?,
        };
        if stat.flags & (flags::STAT_DIRECTORY | flags::STAT_OTHER) != 0 {
            let what = if stat.is_directory() { "it is a directory" } else { "it is not a regular file" };
            return Err(Failure::lasting(ErrorKind::NotSupported, what));
        }
        let limits = answer.second.map_or_else(ReadLimits::default, |body| ReadLimits::parse(&body));
        let identity = Identity::new(&stat, &connection.server);
        Ok(Self { connection, handle: opened.handle, identity, limits, traffic: Arc::clone(traffic) })
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
        match self.exchange(&request, room).await? {
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
        match self.exchange(request, room).await? {
            Reply::Done(bytes) => Ok(bytes),
            other => Err(self.redirected(&other)),
        }
    }

    /// Sends a read, and checks after it that the file is still the one that was opened.
    ///
    /// The server must execute the check after the read. Servers of XRootD 5, which have pages, execute the requests of
    /// a connection one after another if the file was not opened with `kXR_async`, and copy what they read: the check
    /// is sent together with the read, and adds no latency. The protocol does not guarantee that order. So a
    /// response to the check that comes first does not count (the server has postponed the read); and on older servers,
    /// which send the pages of the operating system as they are when the network takes them, the check is sent when the
    /// read is complete. Only the setting `xrootd.async force` of a server can reorder both unnoticed.
    async fn exchange(&self, request: &Request, room: impl FnMut() -> Room) -> Result<Reply, Failure> {
        let check = Request::StatOpen { handle: self.handle };
        let (reply, first) = if self.connection.has_pages {
            settle_both(&self.connection, request, room, &check).await?
        } else {
            (settle(&self.connection, request, room).await?, Ok(Reply::Wait(Duration::ZERO)))
        };
        if !matches!(reply, Reply::Done(_) | Reply::Pages(_)) {
            return Ok(reply);
        }
        let now = match first? {
            Reply::Done(body) => Stat::parse(&body)?,
            Reply::Wait(_) => {
                self.traffic.add_request();
                stat(&self.connection, &check).await?
            }
            other => return Err(self.redirected(&other)),
        };
        self.identity.check(&Identity::new(&now, &self.connection.server))?;
        Ok(reply)
    }

    /// A response that does not have the data. A server that redirects a read has lost the file: it is opened again.
    fn redirected(&self, reply: &Reply) -> Failure {
        match reply {
            Reply::Redirect(_) => Failure::transient(ErrorKind::Unavailable, "the server no longer has the file"),
            other => unexpected(other),
        }
    }
}

/// The size and time of a path or an open file, by the request for it.
pub(super) async fn stat(connection: &Connection, request: &Request) -> Result<Stat, Failure> {
    match settle(connection, request, Room::control).await? {
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
