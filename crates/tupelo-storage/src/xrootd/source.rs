//! Files on XRootD servers as sources.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::JoinSet;

use super::client::Client;
use super::file::{Identity, OpenFile};
use super::message::{Chunk, ReadLimits};
use crate::error::{ErrorKind, Result};
use crate::net::{Attempts, Failure};
use crate::source::{ByteSource, Hints, Traffic, checked_len, plan_requests};

/// Ranges at most this many bytes apart (128 KiB) are merged: less than the round trip to a server would cost.
pub const GAP_BYTES: u64 = 128 << 10;
/// Maximum size of a request (16 MiB). A vector read requests as much at once.
pub const MAX_REQUEST_BYTES: u64 = 16 << 20;
/// Parts of large ranges end at multiples of this many bytes: those that servers have checksums for.
const PAGE_BYTES: u64 = 4 << 10;
/// Number of concurrent requests on a connection that give the best throughput.
pub const CONCURRENCY: usize = 8;
/// Hints for files on XRootD servers.
pub const HINTS: Hints = Hints { gap_bytes: GAP_BYTES, max_request_bytes: MAX_REQUEST_BYTES, concurrency: CONCURRENCY };

/// A file on an XRootD server as a source.
///
/// Size and modification time are pinned when the file is opened. Each read is followed by a check of both, and reads of
/// a file that was modified meanwhile are errors of kind [`ErrorKind::Changed`]. Servers send the time in whole seconds:
/// a file that was modified in the second before it was opened may be modified again in that second without notice.
/// [`version`](ByteSource::version) is therefore `None` for files that were modified less than 10 seconds ago.
///
/// A lost connection is replaced by another one, to the same server or to another one that has the file. If its copy
/// has another size or time, reads are errors of kind [`ErrorKind::Changed`], because it may be another version: servers
/// that do not keep the times of their copies equal cannot replace each other while a file is read. Copies with equal
/// size and time are taken for the same file. After a fork, the child opens a new connection.
#[derive(Debug)]
pub struct XrootdSource {
    inner: Arc<Inner>,
    identity: Identity,
    version: Option<String>,
}

#[derive(Debug)]
struct Inner {
    client: Arc<Client>,
    session: Mutex<Arc<Session>>,
    traffic: Arc<Traffic>,
}

/// The state of one process: a child cannot use the connections of its parent.
#[derive(Debug)]
struct Session {
    process: u32,
    /// Locked while the file is opened, so that it is opened once.
    file: AsyncMutex<Option<Arc<OpenFile>>>,
}

impl Session {
    fn new(file: Option<OpenFile>) -> Arc<Self> {
        Arc::new(Self { process: std::process::id(), file: AsyncMutex::new(file.map(Arc::new)) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // Closing the connections of the parent would disturb it.
            std::mem::forget(std::mem::take(self.file.get_mut()));
        }
    }
}

impl XrootdSource {
    pub(super) fn open(client: Client) -> Result<Self> {
        let client = Arc::new(client);
        let traffic = Arc::default();
        let (shared, attempts) = (Arc::clone(&client), client.attempts(0).counted_in(&traffic));
        let counts = Arc::clone(&traffic);
        let file = client.run("open", async move { attempts.repeat(|| OpenFile::open(&shared, &counts)).await })?;
        let identity = file.identity.clone();
        let version = identity.version();
        let session = Session::new(Some(file));
        Ok(Self { inner: Arc::new(Inner { client, session: Mutex::new(session), traffic }), identity, version })
    }

    /// Reads consecutive and separate ranges, none of them empty, within the size of the file.
    fn fetch(&self, action: String, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        let client = &self.inner.client;
        let reading = fetch(Arc::clone(&self.inner), self.identity.clone(), client.attempts(bytes), ranges);
        client.run(action, reading)
    }
}

impl Inner {
    fn session(&self) -> Arc<Session> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if session.process != std::process::id() {
            *session = Session::new(None);
        }
        Arc::clone(&session)
    }

    /// The open file; it is opened again if the connection was lost, within the time of a call.
    async fn file(&self, identity: &Identity, call: &Attempts) -> Result<Arc<OpenFile>, Failure> {
        let session = self.session();
        let mut current = session.file.lock().await;
        if let Some(file) = current.as_ref().filter(|file| file.is_usable()) {
            return Ok(Arc::clone(file));
        }
        if let Some(lost) = current.take() {
            self.client.avoid(lost.server());
        }
        // All attempts are made here: those of other requests would only repeat them.
        let attempts = call.of_same_call().counted_in(&self.traffic);
        let file = attempts.repeat(|| OpenFile::open(&self.client, &self.traffic)).await;
        let file = file.map_err(|failure| Failure { is_transient: false, ..failure })?;
        identity.check(&file.identity)?;
        Ok(Arc::clone(current.insert(Arc::new(file))))
    }

    /// Forgets a file that a request failed on, unless another request has already replaced it.
    async fn forget(&self, file: &Arc<OpenFile>) {
        let session = self.session();
        let mut current = session.file.lock().await;
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, file)) {
            self.client.avoid(file.server());
            *current = None;
        }
    }
}

/// The reads of one request, as indices of ranges and as chunks of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Job {
    /// A part of a range.
    Read { range: usize, chunk: Chunk },
    /// Whole ranges.
    Vector { ranges: Vec<usize>, chunks: Vec<Chunk> },
}

/// Divides ranges into requests: small ranges into vectors, large ones into parts.
fn jobs(ranges: &[Range<u64>], limits: ReadLimits) -> Vec<Job> {
    let chunk = |range: Range<u64>| Chunk { offset: range.start, len: (range.end - range.start) as u32 };
    let mut jobs = Vec::new();
    let (mut indices, mut chunks, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (index, range) in ranges.iter().enumerate() {
        let len = range.end - range.start;
        if len > limits.chunk_bytes.into() {
            let end = |at: u64| match range.end - at {
                ..=MAX_REQUEST_BYTES => range.end,
                _ => (at + MAX_REQUEST_BYTES) / PAGE_BYTES * PAGE_BYTES,
            };
            let mut at = range.start;
            while at < range.end {
                jobs.push(Job::Read { range: index, chunk: chunk(at..end(at)) });
                at = end(at);
            }
            continue;
        }
        if chunks.len() >= limits.chunks || bytes + len > MAX_REQUEST_BYTES {
            jobs.push(vector(std::mem::take(&mut indices), std::mem::take(&mut chunks)));
            bytes = 0;
        }
        indices.push(index);
        chunks.push(chunk(range.clone()));
        bytes += len;
    }
    if !chunks.is_empty() {
        jobs.push(vector(indices, chunks));
    }
    jobs
}

/// A vector of one range is a plain read, which may have checksums.
fn vector(ranges: Vec<usize>, chunks: Vec<Chunk>) -> Job {
    match (&ranges[..], &chunks[..]) {
        (&[range], &[chunk]) => Job::Read { range, chunk },
        _ => Job::Vector { ranges, chunks },
    }
}

/// The bytes of each range.
async fn fetch(
    inner: Arc<Inner>,
    identity: Identity,
    call: Attempts,
    ranges: Vec<Range<u64>>,
) -> Result<Vec<Bytes>, Failure> {
    let limits = call.run(inner.file(&identity, &call)).await?.limits;
    let running = Arc::new(Semaphore::new(CONCURRENCY));
    let mut requests = JoinSet::new();
    let mut memory: Vec<BytesMut> = vec![BytesMut::new(); ranges.len()];
    for job in jobs(&ranges, limits) {
        let mut buffer = BytesMut::new();
        if let Job::Read { range, chunk } = &job {
            let memory = &mut memory[*range];
            if memory.capacity() == 0 {
                memory.reserve((ranges[*range].end - ranges[*range].start) as usize);
            }
            let rest = memory.split_off(memory.capacity().min(chunk.len as usize));
            buffer = std::mem::replace(memory, rest);
        }
        let (inner, identity, running) = (Arc::clone(&inner), identity.clone(), Arc::clone(&running));
        let (call, attempts) = (call.of_same_call(), call.of_same_call().counted_in(&inner.traffic));
        requests.spawn(async move {
            // Never closed.
            let _permit = running.acquire().await;
            let answers =
                attempts.repeat(|| attempt(&inner, &identity, &call, &job, std::mem::take(&mut buffer))).await?;
            Ok::<_, Failure>((job, answers))
        });
    }
    inner.traffic.add_bytes(ranges.iter().map(|range| range.end - range.start).sum());
    let mut answers = vec![Bytes::new(); ranges.len()];
    let mut parts: Vec<Vec<(u64, BytesMut)>> = vec![Vec::new(); ranges.len()];
    while let Some(finished) = requests.join_next().await {
        match finished.map_err(|error| Failure::lasting(ErrorKind::Other, error.to_string()))?? {
            (Job::Read { range, chunk }, JobResult::Range(bytes)) => parts[range].push((chunk.offset, bytes)),
            (Job::Vector { ranges, .. }, JobResult::Vector(found)) => {
                ranges.into_iter().zip(found).for_each(|(range, bytes)| answers[range] = bytes);
            }
            // An attempt finds what its job is for.
            _ => {}
        }
    }
    for (answer, parts) in answers.iter_mut().zip(parts).filter(|(_, parts)| !parts.is_empty()) {
        *answer = join(parts);
    }
    Ok(answers)
}

/// The parts of a range as one piece; without copying if they are in one piece of memory.
fn join(mut parts: Vec<(u64, BytesMut)>) -> Bytes {
    parts.sort_unstable_by_key(|(offset, _)| *offset);
    let join = |mut whole: BytesMut, (_, part)| {
        whole.unsplit(part);
        whole
    };
    parts.into_iter().fold(BytesMut::new(), join).freeze()
}

/// The result of a job.
enum JobResult {
    Range(BytesMut),
    Vector(Vec<Bytes>),
}

async fn attempt(
    inner: &Inner,
    identity: &Identity,
    call: &Attempts,
    job: &Job,
    buffer: BytesMut,
) -> Result<JobResult, Failure> {
    let file = inner.file(identity, call).await?;
    let result = match job {
        Job::Read { chunk, .. } => file.read(*chunk, buffer).await.map(JobResult::Range),
        Job::Vector { chunks, .. } => file.read_vector(chunks.clone()).await.map(JobResult::Vector),
    };
    match result {
        // A server reports a file that was truncated like a broken disk: opening it again shows which it is.
        Err(failure) if failure.is_transient || failure.kind == ErrorKind::Other => {
            inner.forget(&file).await;
            Err(Failure { is_transient: true, ..failure })
        }
        result => result,
    }
}

impl fmt::Display for XrootdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.client.fmt(f)
    }
}

impl ByteSource for XrootdSource {
    fn size(&self) -> Result<u64> {
        Ok(self.identity.size_bytes)
    }

    fn hints(&self) -> Hints {
        HINTS
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        Some(Arc::clone(&self.inner.traffic))
    }

    fn version(&self) -> Option<String> {
        self.version.clone()
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        if checked_len(&range, self, self.identity.size_bytes)? == 0 {
            return Ok(Bytes::new());
        }
        let action = format!("read bytes {}..{} of", range.start, range.end);
        let mut answers = self.fetch(action, vec![range])?;
        Ok(answers.pop().unwrap_or_default())
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().try_for_each(|range| checked_len(range, self, self.identity.size_bytes).map(|_| ()))?;
        let plan = plan_requests(self, ranges)?;
        if plan.requests().is_empty() {
            return Ok(plan.cut(&[]));
        }
        let answers = self.fetch(format!("read {} ranges of", ranges.len()), plan.requests().to_vec())?;
        Ok(plan.cut(&answers))
    }
}
