//! Files on XRootD servers as sinks.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::future::Future;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use tokio::task::JoinSet;

use super::client::{Client, settle, unexpected};
use super::connection::Connection;
use super::connection::{Reply, Room};
use super::message::{Handle, Opened, Request, flags};
use super::url::{Url, with_opaque};
use crate::error::{Error, ErrorKind, Result};
use crate::net::Failure;
use crate::sink::{ByteSink, check_patch, poisoned};

/// Appended bytes that are collected before they are sent (4 MiB).
pub const WRITE_BUFFER_BYTES: usize = 4 << 20;
/// Number of concurrent write requests. Each has two buffers in memory: its own, and that of the connection.
pub const WRITE_CONCURRENCY: usize = 4;

/// Permissions of new files: read and write for the owner, read for all others.
const MODE: u16 = 0o644;

/// A file on an XRootD server as a sink: a new one, or one that is replaced.
///
/// It is written under a temporary name in the same directory, and renamed at commit. Missing directories are created.
/// A lost connection ends the upload: the server may have lost bytes that it has not yet stored durably.
pub struct XrootdSink {
    client: Arc<Client>,
    /// Where the file is written, with the temporary path.
    temporary: Url,
    file: Arc<OpenSink>,
    position: u64,
    buffer: BytesMut,
    running: JoinSet<Result<(), Failure>>,
    patches: Vec<(u64, Bytes)>,
    /// The size at the last checkpoint.
    kept_bytes: Option<u64>,
    poisoned: bool,
    finished: bool,
    /// The process that made it. A child of that process must not remove the file.
    process: u32,
}

/// A file that is open for writing.
#[derive(Debug)]
struct OpenSink {
    connection: Arc<Connection>,
    handle: Handle,
    is_closed: AtomicBool,
}

impl Drop for OpenSink {
    fn drop(&mut self) {
        // Other files may use the connection for long.
        if !self.is_closed.load(Ordering::Relaxed) {
            self.connection.channel.close(self.handle);
        }
    }
}

impl OpenSink {
    /// A request whose response has no content.
    async fn request(&self, request: Request) -> Result<(), Failure> {
        match settle(&self.connection, &request, Room::control).await? {
            Reply::Done(_) => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    async fn write(&self, offset: u64, bytes: Bytes) -> Result<(), Failure> {
        self.request(Request::Write { handle: self.handle, offset, bytes }).await
    }

    /// Closes the file, once: the server may give its handle to the next one.
    async fn close(&self) -> Result<(), Failure> {
        self.is_closed.store(true, Ordering::Relaxed);
        self.request(Request::Close { handle: self.handle }).await
    }

    async fn sync(&self) -> Result<(), Failure> {
        self.request(Request::Sync { handle: self.handle }).await
    }
}

impl XrootdSink {
    pub(super) fn create(client: Client) -> Result<Self> {
        let client = Arc::new(client);
        // The keys of each state are random.
        let random = RandomState::new().hash_one(std::process::id()) >> 24;
        let temporary = Url { path: format!("{}.tmp-{random:010x}", client.url.path), ..client.url.clone() };
        let opening = {
            let (client, temporary, attempts) = (Arc::clone(&client), temporary.clone(), client.attempts(0));
            async move { attempts.repeat(|| open(&client, &temporary)).await }
        };
        let file = client.run("create", opening)?;
        Ok(Self {
            client,
            temporary,
            file: Arc::new(file),
            position: 0,
            buffer: BytesMut::new(),
            running: JoinSet::new(),
            patches: Vec::new(),
            kept_bytes: None,
            poisoned: false,
            finished: false,
            process: std::process::id(),
        })
    }

    /// Runs an action that sends as many bytes of the file, and poisons the sink if it fails.
    fn guarded<T: Send + 'static>(
        &mut self,
        action: &'static str,
        bytes: usize,
        call: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T> {
        self.poisoned = true;
        let attempts = self.client.attempts(bytes as u64);
        let value = self.client.run(action, async move { attempts.run(call).await })?;
        self.poisoned = false;
        Ok(value)
    }

    fn check(&self) -> Result<()> {
        if self.poisoned { Err(poisoned(&self.client)) } else { Ok(()) }
    }

    /// Sends what is buffered, and waits until at most `left` requests are unfinished.
    fn flush(&mut self, left: usize) -> Result<()> {
        let bytes = self.buffer.split().freeze();
        let offset = self.position - bytes.len() as u64;
        let (file, mut running) = (Arc::clone(&self.file), std::mem::take(&mut self.running));
        // All that run have full buffers.
        let unfinished = running.len() * WRITE_BUFFER_BYTES + bytes.len();
        self.running = self.guarded("write", unfinished, async move {
            if !bytes.is_empty() {
                running.spawn(async move { file.write(offset, bytes).await });
            }
            while running.len() > left {
                let Some(finished) = running.join_next().await else { break };
                finished.map_err(|error| Failure::lasting(ErrorKind::Other, error.to_string()))??;
            }
            Ok(running)
        })?;
        Ok(())
    }

    /// Makes everything durable: appended bytes, then patches in their order.
    fn settle(&mut self) -> Result<()> {
        self.check()?;
        self.flush(0)?;
        let (file, patches) = (Arc::clone(&self.file), std::mem::take(&mut self.patches));
        let patched = patches.iter().map(|(_, bytes)| bytes.len()).sum();
        self.guarded("write", patched, async move {
            file.sync().await?;
            if patches.is_empty() {
                return Ok(());
            }
            for (offset, bytes) in patches {
                file.write(offset, bytes).await?;
            }
            file.sync().await
        })
    }

    /// Goes back to the last checkpoint, whose name it returns.
    fn roll_back(&mut self) -> Result<Option<String>> {
        self.finished = true;
        let mut running = std::mem::take(&mut self.running);
        let (client, file) = (Arc::clone(&self.client), Arc::clone(&self.file));
        let (temporary, kept_bytes) = (self.temporary.clone(), self.kept_bytes);
        let name = kept_bytes.map(|_| temporary.to_string());
        let rolling_back = async move {
            // Their writes would come after the truncation.
            running.shutdown().await;
            let handle = file.handle;
            if let Some(size_bytes) = kept_bytes {
                file.request(Request::Truncate { handle, size_bytes }).await?;
                return file.close().await;
            }
            // A file that cannot be closed can still be removed.
            let _ = file.close().await;
            let remove = |url: &Url| Request::Remove { path: url.request_path() };
            client.perform(&temporary, remove, Room::control).await.map(|_| ())
        };
        self.client.run_cleaning("remove the temporary file of", rolling_back)?;
        Ok(name)
    }
}

async fn open(client: &Client, temporary: &Url) -> Result<OpenSink, Failure> {
    let options = flags::OPEN_UPDATE | flags::OPEN_NEW | flags::OPEN_MAKE_PATH;
    let open = |url: &Url| Request::Open { path: url.request_path(), options, mode: MODE };
    let answer = client.perform(temporary, open, Room::control).await?;
    let handle = Opened::parse(&answer.body)?.handle;
    Ok(OpenSink { connection: answer.connection, handle, is_closed: AtomicBool::new(false) })
}

impl ByteSink for XrootdSink {
    fn position(&self) -> u64 {
        self.position
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.check()?;
        while !bytes.is_empty() {
            if self.buffer.capacity() < WRITE_BUFFER_BYTES {
                self.buffer.reserve(WRITE_BUFFER_BYTES - self.buffer.len());
            }
            let (now, later) = bytes.split_at(bytes.len().min(WRITE_BUFFER_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            self.position += now.len() as u64;
            if self.buffer.len() == WRITE_BUFFER_BYTES {
                self.flush(WRITE_CONCURRENCY)?;
            }
            bytes = later;
        }
        Ok(())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check()?;
        if let Err(error) = check_patch(offset, bytes.len(), self.position, &self.client) {
            self.poisoned = true;
            return Err(error);
        }
        if !bytes.is_empty() {
            self.patches.push((offset, Bytes::copy_from_slice(bytes)));
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.settle()?;
        self.kept_bytes = Some(self.position);
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.settle()?;
        let (client, file) = (Arc::clone(&self.client), Arc::clone(&self.file));
        let temporary = self.temporary.clone();
        let aside = temporary.to_string();
        let ending = async move {
            file.close().await?;
            let path = client.url.path.clone();
            let rename = move |url: &Url| Request::Rename {
                from: url.request_path(),
                to: with_opaque(&path, url.opaque.as_deref()),
            };
            client.perform(&temporary, rename, Room::control).await.map(|_| ())
        };
        self.guarded("finish", 0, ending).map_err(|error| {
            let advice = if error.kind() == ErrorKind::Changed { "the server cannot replace files; " } else { "" };
            // It may have been renamed, if only the response was lost.
            let kept =
                if self.kept_bytes.is_some() { format!("the content is kept in {aside}") } else { String::new() };
            with_remark(error, &format!("{advice}{kept}"))
        })?;
        self.finished = true;
        Ok(())
    }

    fn abort(mut self: Box<Self>) -> Result<Option<String>> {
        self.roll_back()
    }
}

/// An error with a remark, if there is one.
fn with_remark(error: Error, remark: &str) -> Error {
    let remark = remark.trim_end_matches("; ");
    if remark.is_empty() { error } else { error.with_reason(remark) }
}

impl Drop for XrootdSink {
    fn drop(&mut self) {
        if !self.finished && self.process == std::process::id() {
            // The remaining file is the only way to report it.
            let _ = self.roll_back();
        }
    }
}

impl fmt::Debug for XrootdSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XrootdSink")
            .field("client", &self.client)
            .field("position", &self.position)
            .field("poisoned", &self.poisoned)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for XrootdSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
