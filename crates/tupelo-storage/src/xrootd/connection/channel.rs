//! One connection: requests of many callers, whose responses come in any order.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, timeout_at};

use super::super::message::{
    AsyncHeader, Handle, Header, MAX_CONTROL_BYTES, Malformed, Opened, PAGE_BYTES, PageBuffer, PageStatus, Redirect,
    Request, ServerError, Status, StreamId, parse_wait,
};
use crate::error::ErrorKind;
use crate::net::Failure;

/// Requests that wait to be written.
const QUEUED_REQUESTS: usize = 32;
/// Buffer for headers, small responses, and pages that are checked (256 KiB).
const READ_BUFFER_BYTES: usize = 256 << 10;
/// A response with a part of at least this size (64 KiB) gets its whole buffer at once.
const LARGE_PART_BYTES: usize = 64 << 10;
/// Maximum silence of a server, and maximum time that it may postpone a response: a day, so that sums of times do not
/// overflow.
const MAX_SILENCE: Duration = Duration::from_secs(86_400);
/// Maximum number of unfinished requests on a connection.
const MAX_PENDING: usize = 8192;

/// The other end of a connection, for reading and for writing.
pub(in crate::xrootd) type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// The destination of the response to a request, and its maximum size.
#[derive(Debug)]
pub(in crate::xrootd) enum Room {
    /// Bytes, and how many there may be.
    Bytes(BytesMut, usize),
    /// The pages of a range.
    Pages(PageBuffer),
}

impl Room {
    /// For a response without data of a file.
    pub(in crate::xrootd) fn control() -> Self {
        Self::Bytes(BytesMut::new(), MAX_CONTROL_BYTES)
    }
}

/// The response to a request.
#[derive(Debug)]
pub(in crate::xrootd) enum Reply {
    /// `kXR_ok` and all parts before it.
    Done(BytesMut),
    /// The received part of the pages of a range.
    Pages(PageBuffer),
    /// The authentication continues.
    AuthMore,
    Redirect(Redirect),
    /// Repeat the request after that time.
    Wait(Duration),
}

/// A request without a response.
struct Pending {
    /// Absent while a part of the response is read.
    room: Option<Room>,
    reply: oneshot::Sender<Result<Reply, Failure>>,
    /// Whether it opens a file.
    opens: bool,
    /// The request that the server must execute before it.
    after: Option<StreamId>,
}

/// A request that is registered, but not sent.
struct Prepared {
    stream: StreamId,
    bytes: Vec<u8>,
    reply: oneshot::Receiver<Result<Reply, Failure>>,
}

/// The state that the tasks of a connection share with its callers.
struct Shared {
    state: Mutex<State>,
    /// Small requests without a caller that waits.
    posted: mpsc::UnboundedSender<Vec<u8>>,
    /// When the last byte arrived, in milliseconds since `start`. In the future if the server has said that it needs
    /// more time for a response.
    heard: AtomicU64,
    start: Instant,
}

struct State {
    pending: HashMap<StreamId, Pending>,
    next: StreamId,
    /// Why the connection ended.
    failure: Option<Failure>,
}

/// A connection. Dropping it closes it.
pub(in crate::xrootd) struct Channel {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Vec<u8>>,
    tasks: [AbortHandle; 2],
    /// Maximum silence.
    stall_timeout: Duration,
    /// The process that made it. In a child, nothing sends.
    process: u32,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("failure", &self.shared.state().failure).finish_non_exhaustive()
    }
}

impl Channel {
    /// Starts the tasks of a connection that is ready for requests.
    pub(in crate::xrootd) fn new((reader, writer): Streams, stall_timeout: Duration) -> Self {
        let (outgoing, requests) = mpsc::channel(QUEUED_REQUESTS);
        let (posted, unawaited) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(posted));
        let reading = tokio::spawn(read_all(Arc::clone(&shared), reader));
        let writing = tokio::spawn(write_all(Arc::clone(&shared), writer, requests, unawaited));
        Self {
            shared,
            outgoing,
            tasks: [reading.abort_handle(), writing.abort_handle()],
            stall_timeout: stall_timeout.min(MAX_SILENCE),
            process: std::process::id(),
        }
    }

    /// Sends a request and waits for its response.
    pub(in crate::xrootd) async fn call(&self, request: &Request, room: Room) -> Result<Reply, Failure> {
        let Prepared { bytes, reply, .. } = self.prepare(request, room, None)?;
        self.exchange(bytes, self.reply(reply)).await
    }

    /// Sends two requests at once, and waits for both responses. A response to the second one that comes before that to
    /// the first one is [`Reply::Wait`]: the server may have executed it earlier.
    pub(in crate::xrootd) async fn call_both(
        &self,
        first: &Request,
        room: Room,
        second: &Request,
    ) -> Result<(Result<Reply, Failure>, Result<Reply, Failure>), Failure> {
        let first = self.prepare(first, room, None)?;
        let second = self.prepare(second, Room::control(), Some(first.stream));
        let second = second.inspect_err(|_| self.shared.forget(first.stream))?;
        let bytes = [first.bytes, second.bytes].concat();
        let replies = async { Ok(tokio::join!(self.reply(first.reply), self.reply(second.reply))) };
        self.exchange(bytes, replies).await
    }

    fn prepare(&self, request: &Request, room: Room, after: Option<StreamId>) -> Result<Prepared, Failure> {
        let (sender, reply) = oneshot::channel();
        let opens = matches!(request, Request::Open { .. });
        let stream = self.shared.register(Pending { room: Some(room), reply: sender, opens, after })?;
        let bytes = request.encode(stream).inspect_err(|_| self.shared.forget(stream))?;
        Ok(Prepared { stream, bytes, reply })
    }

    async fn reply(&self, reply: oneshot::Receiver<Result<Reply, Failure>>) -> Result<Reply, Failure> {
        reply.await.unwrap_or_else(|_| Err(self.shared.failure()))
    }

    /// Sends bytes and waits for replies, until the server is silent for too long.
    async fn exchange<T>(
        &self,
        bytes: Vec<u8>,
        replies: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let sent = Instant::now();
        let exchange = async {
            // An error means that the writing task has ended, which has failed all requests.
            let _ = self.outgoing.send(bytes).await;
            replies.await
        };
        tokio::pin!(exchange);
        loop {
            let until = self.shared.heard().max(sent) + self.stall_timeout;
            if let Ok(reply) = timeout_at(until, &mut exchange).await {
                return reply;
            }
            if self.shared.heard().max(sent) + self.stall_timeout <= Instant::now() {
                let reason = format!("the server did not answer for {:?}", self.stall_timeout);
                let failure = Failure::transient(ErrorKind::Timeout, reason);
                self.shared.fail(&failure);
                return Err(failure);
            }
        }
    }

    /// Closes a file without waiting, on any thread.
    pub(in crate::xrootd) fn close(&self, handle: Handle) {
        if self.process == std::process::id() {
            self.shared.close(handle);
        }
    }

    /// Whether no request can succeed any more.
    pub(in crate::xrootd) fn is_closed(&self) -> bool {
        self.shared.state().failure.is_some()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Shared {
    fn new(posted: mpsc::UnboundedSender<Vec<u8>>) -> Self {
        let state = State { pending: HashMap::new(), next: 0, failure: None };
        Self { state: Mutex::new(state), posted, heard: AtomicU64::new(0), start: Instant::now() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self) -> Instant {
        self.start + Duration::from_millis(self.heard.load(Ordering::Relaxed))
    }

    /// Something arrived, and there may be silence for a time.
    fn hear(&self, silence: Duration) {
        let until = self.start.elapsed() + silence.min(MAX_SILENCE);
        self.heard.fetch_max(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn register(&self, request: Pending) -> Result<StreamId, Failure> {
        let mut state = self.state();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if state.pending.len() >= MAX_PENDING {
            return Err(Failure::transient(ErrorKind::Unavailable, "too many open requests"));
        }
        // Zero is the id of asynchronous messages.
        while state.next == 0 || state.pending.contains_key(&state.next) {
            state.next = state.next.wrapping_add(1);
        }
        let stream = state.next;
        state.next = stream.wrapping_add(1);
        state.pending.insert(stream, request);
        Ok(stream)
    }

    fn forget(&self, stream: StreamId) {
        self.state().pending.remove(&stream);
    }

    fn failure(&self) -> Failure {
        let lost = || Failure::transient(ErrorKind::Unavailable, "the connection was closed");
        self.state().failure.clone().unwrap_or_else(lost)
    }

    /// Ends the connection and all its requests.
    fn fail(&self, failure: &Failure) {
        let mut state = self.state();
        state.failure.get_or_insert_with(|| failure.clone());
        state.pending.clear();
    }

    /// Takes the room of a response, to put a part into it.
    fn take(&self, stream: StreamId) -> Result<Room, Malformed> {
        self.state().pending.get_mut(&stream).and_then(|pending| pending.room.take()).ok_or_else(|| unknown(stream))
    }

    /// Puts it back; the last part completes the response.
    fn put(&self, stream: StreamId, room: Room, is_last: bool) -> Result<(), Malformed> {
        if !is_last {
            let mut state = self.state();
            state.pending.get_mut(&stream).ok_or_else(|| unknown(stream))?.room = Some(room);
            return Ok(());
        }
        let reply = match room {
            Room::Bytes(bytes, _) => Reply::Done(bytes),
            Room::Pages(pages) => Reply::Pages(pages),
        };
        self.complete(stream, Ok(reply))
    }

    fn complete(&self, stream: StreamId, reply: Result<Reply, Failure>) -> Result<(), Malformed> {
        let (pending, is_early) = {
            let mut state = self.state();
            let pending = state.pending.remove(&stream).ok_or_else(|| unknown(stream))?;
            let is_early = pending.after.is_some_and(|first| state.pending.contains_key(&first));
            (pending, is_early)
        };
        let reply = if is_early { reply.map(|_| Reply::Wait(Duration::ZERO)) } else { reply };
        // The caller may have timed out, or was cancelled. The file would stay open as long as the connection.
        if let Err(Ok(Reply::Done(body))) = pending.reply.send(reply)
            && pending.opens
        {
            self.close(Opened::parse(&body)?.handle);
        }
        Ok(())
    }

    fn close(&self, handle: Handle) {
        let (reply, _) = oneshot::channel();
        // A connection that has ended needs no requests.
        let Ok(stream) = self.register(Pending { room: Some(Room::control()), reply, opens: false, after: None })
        else {
            return;
        };
        match (Request::Close { handle }).encode(stream) {
            Ok(bytes) => drop(self.posted.send(bytes)),
            Err(_) => self.forget(stream),
        }
    }
}

#[cold]
fn unknown(stream: StreamId) -> Malformed {
    Malformed(format!("the server sent a response to unknown request {stream}"))
}

async fn write_all(
    shared: Arc<Shared>,
    mut writer: Box<dyn AsyncWrite + Send + Unpin>,
    mut requests: mpsc::Receiver<Vec<u8>>,
    mut unawaited: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    // Dropping the connection ends this task, and with it both queues.
    while let Some(request) = tokio::select! {
        request = requests.recv() => request,
        request = unawaited.recv() => request,
    } {
        let written = async {
            writer.write_all(&request).await?;
            // Only encrypted connections have a buffer.
            writer.flush().await
        };
        if let Err(error) = written.await {
            return shared.fail(&error.into());
        }
    }
}

async fn read_all(shared: Arc<Shared>, reader: Box<dyn AsyncRead + Send + Unpin>) {
    let mut incoming = Incoming { reader: BufReader::with_capacity(READ_BUFFER_BYTES, reader), shared: &shared };
    let failure = loop {
        if let Err(failure) = incoming.response().await {
            break failure;
        }
        // The buffer holds tens of thousands of empty responses. Other connections get the thread between them.
        consume_budget().await;
    };
    shared.fail(&failure);
}

/// Reads responses and passes them to their requests.
struct Incoming<'a> {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    shared: &'a Shared,
}

impl Incoming<'_> {
    async fn response(&mut self) -> Result<(), Failure> {
        let header = Header::parse(self.array().await?)?;
        match header.status {
            Status::Attention => {
                let start = AsyncHeader::parse(self.array().await?, header.len)?;
                match start.response {
                    Some(response) => self.body(response).await,
                    None => {
                        let rest = (header.len as usize).saturating_sub(AsyncHeader::BYTES);
                        self.control(rest).await.map(|_message| ())
                    }
                }
            }
            _ => self.body(header).await,
        }
    }

    /// The body of a response to a request.
    async fn body(&mut self, Header { stream, status, len }: Header) -> Result<(), Failure> {
        let len = len as usize;
        match status {
            Status::Ok | Status::OkSoFar => {
                let mut room = self.shared.take(stream)?;
                self.part(&mut room, len).await?;
                self.shared.put(stream, room, status == Status::Ok)?;
            }
            Status::Pages => {
                let Some(0) = len.checked_sub(PageStatus::BYTES) else {
                    return Err(Malformed(format!("the server sent a status response of {len} bytes")).into());
                };
                let part = PageStatus::parse(self.array().await?, stream)?;
                let mut room = self.shared.take(stream)?;
                self.pages(&mut room, part).await?;
                self.shared.put(stream, room, part.last)?;
            }
            Status::AuthMore => {
                self.control(len).await?;
                self.shared.complete(stream, Ok(Reply::AuthMore))?;
            }
            Status::Error => {
                let error = ServerError::parse(&self.control(len).await?)?;
                self.shared.complete(stream, Err(error.into()))?;
            }
            Status::Redirect => {
                let redirect = Redirect::parse(&self.control(len).await?)?;
                self.shared.complete(stream, Ok(Reply::Redirect(redirect)))?;
            }
            Status::Wait => {
                let time = parse_wait(&self.control(len).await?)?;
                self.shared.complete(stream, Ok(Reply::Wait(time)))?;
            }
            Status::WaitResponse => {
                let time = parse_wait(&self.control(len).await?)?;
                self.shared.hear(time);
            }
            Status::Attention => return Err(Malformed("the server sent a nested asynchronous message".into()).into()),
        }
        Ok(())
    }

    /// A part of a response of bytes.
    async fn part(&mut self, room: &mut Room, len: usize) -> Result<(), Failure> {
        let Room::Bytes(bytes, left) = room else {
            return Err(Malformed("the server sent bytes instead of pages".to_owned()).into());
        };
        let Some(rest) = left.checked_sub(len) else {
            return Err(Malformed(format!("the server sent {len} bytes instead of at most {left}")).into());
        };
        // All of the buffer at once where the response is large.
        bytes.reserve(if len >= LARGE_PART_BYTES { *left } else { len });
        *left = rest;
        self.read_into(bytes, len).await
    }

    /// A part of a response of pages. They are checked in the buffer of the connection, which stays in the cache.
    async fn pages(&mut self, room: &mut Room, part: PageStatus) -> Result<(), Failure> {
        let Room::Pages(pages) = room else {
            return Err(Malformed("the server sent pages instead of bytes".to_owned()).into());
        };
        let (mut at, mut left) = (part.offset, part.len as usize);
        let mut unit = [0; PAGE_BYTES as usize + 4];
        while left > 0 {
            let len = PageBuffer::unit_bytes(at, left);
            match self.reader.buffer().get(..len) {
                Some(page) => {
                    pages.add(at, page)?;
                    self.reader.consume(len);
                }
                // It crosses the end of the buffer.
                None => {
                    let (page, _) = unit.split_at_mut(len);
                    self.reader.read_exact(page).await?;
                    self.shared.hear(Duration::ZERO);
                    pages.add(at, page)?;
                }
            }
            at = at.saturating_add(len.saturating_sub(4) as u64);
            left -= len;
        }
        Ok(())
    }

    async fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).await?;
        self.shared.hear(Duration::ZERO);
        Ok(bytes)
    }

    /// A body without data of a file.
    async fn control(&mut self, len: usize) -> Result<Bytes, Failure> {
        if len > MAX_CONTROL_BYTES {
            return Err(Malformed(format!("the server sent a message of {len} bytes")).into());
        }
        let mut bytes = BytesMut::with_capacity(len);
        self.read_into(&mut bytes, len).await?;
        Ok(bytes.freeze())
    }

    /// Appends `len` bytes, for which the buffer has room.
    async fn read_into(&mut self, bytes: &mut BytesMut, mut len: usize) -> Result<(), Failure> {
        while len > 0 {
            let read = (&mut self.reader).take(len as u64).read_buf(bytes).await?;
            if read == 0 {
                return Err(Failure::transient(ErrorKind::Unavailable, "the server closed the connection"));
            }
            len -= read;
            self.shared.hear(Duration::ZERO);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::net::run;
    use crate::xrootd::message::Chunk;

    /// Regression: while one server sent messages without pause, requests to other servers waited for seconds.
    #[test]
    fn a_thread_does_other_work_between_messages() {
        let message = [&[0, 0, 0x0f, 0xa1, 0, 0, 0, 16][..], &5002_u32.to_be_bytes(), &[0; 12]].concat();
        let (posted, _unawaited) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(posted));
        let read = run(async move {
            let messages = std::io::Cursor::new(message.repeat(10_000));
            Ok(read_all(shared, Box::new(messages)).now_or_never())
        });
        assert_eq!(read.unwrap(), None, "all messages were read at once");
    }

    /// Bytes that are often the start of a response.
    fn responses() -> impl Strategy<Value = Vec<u8>> {
        let status = prop_oneof![Just(0_u16), 3999..4009_u16, any::<u16>()];
        let response =
            (0..3_u16, status, 0..40_u32, vec(any::<u8>(), 0..40)).prop_map(|(stream, status, len, body)| {
                [&stream.to_be_bytes()[..], &status.to_be_bytes(), &len.to_be_bytes(), &body].concat()
            });
        vec(response, 0..6).prop_map(|responses| responses.concat())
    }

    proptest! {
        #[test]
        fn any_responses_end_a_request(bytes in responses(), pages: bool) {
            let reply = run(async move {
                let (client, mut server) = tokio::io::duplex(1 << 16);
                let (reader, writer) = tokio::io::split(client);
                let channel = Channel::new((Box::new(reader), Box::new(writer)), Duration::from_secs(5));
                let chunk = Chunk { offset: 0, len: 20 };
                let read = Request::Read { handle: Handle([0; 4]), chunk };
                let room = if pages {
                    Room::Pages(PageBuffer::new(chunk, BytesMut::new()))
                } else {
                    Room::Bytes(BytesMut::new(), 20)
                };
                let respond = async move {
                    server.read_exact(&mut [0; 24]).await.unwrap();
                    server.write_all(&bytes).await.unwrap();
                    drop(server);
                };
                tokio::spawn(respond);
                channel.call(&read, room).await
            });
            if let Ok(Reply::Done(bytes)) = reply {
                prop_assert!(bytes.len() <= 20);
            }
        }
    }
}
