//! Objects on servers as sources: what to request, how many requests at once, and what to do when one fails.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use twox_hash::XxHash3_64;

use super::answer::{ByteRange, Identity, replaced};
use super::object::Object;
use crate::error::{Error, ErrorKind, Result};
use crate::net::{Attempts, Failure, Limits, run, unless_stalled};
use crate::range;
use crate::source::{ByteSource, Hints, Traffic, checked_len, read_missing};

/// Bytes at the start of an object that are read when it is opened: 16 KiB.
pub const HEAD_BYTES: u64 = 16 << 10;
/// Bytes at the end of an object that are read when it is opened: 64 KiB.
pub const TAIL_BYTES: u64 = 64 << 10;
/// Hints for remote objects. A request costs as much time as a few hundred KiB.
pub const REMOTE_HINTS: Hints = Hints { gap_bytes: 512 << 10, max_request_bytes: 16 << 20, concurrency: 16 };

/// Requests of fewer bytes on average take little more than the latency: more of them run at the same time.
const SMALL_REQUEST_BYTES: u64 = 256 << 10;
/// Number of small requests that run at the same time.
const SMALL_CONCURRENCY: usize = 64;

/// A remote object as a source.
///
/// The version that was opened is pinned by its ETag, or its size and time of change: bytes of another version are
/// never returned, and the error has the kind [`ErrorKind::Changed`]. The source may be used in a forked child.
pub struct RemoteSource {
    object: Arc<Object>,
    name: String,
    limits: Limits,
    identity: Identity,
    version: Option<String>,
    /// Bytes read when the object was opened, by offset.
    kept: Vec<(u64, Bytes)>,
    traffic: Arc<Traffic>,
}

impl RemoteSource {
    /// Opens an object by one round trip, of two requests if `with_head`.
    pub(super) fn open(object: Object, name: String, limits: &Limits, with_head: bool) -> Result<Self> {
        let (object, limits, traffic) = (Arc::new(object), *limits, Arc::default());
        let opened = run(open(Arc::clone(&object), limits, Arc::clone(&traffic), with_head));
        let (identity, kept) = opened.map_err(|failure| failure.into_error("open", &name))?;
        // ETags are unique for one URL only, and may contain what must not be shown.
        let place = XxHash3_64::oneshot(object.place().as_bytes());
        let version = identity.lasting(SystemTime::now()).map(|version| format!("{version} {place:016x}"));
        Ok(Self { object, name, limits, identity, version, kept, traffic })
    }

    /// The bytes of a range, if they were read when the object was opened.
    fn kept(&self, range: &Range<u64>) -> Option<Bytes> {
        self.kept.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
            let to = from.checked_add(usize::try_from(range.end - range.start).ok()?)?;
            (to <= bytes.len()).then(|| bytes.slice(from..to))
        })
    }

    /// Fetches ranges that are not empty and within the object, several at once.
    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            checked_len(range, self, self.identity.size)?;
            parts.push((Arc::clone(&self.object), range.clone()));
        }
        let fetched = fetch_all(parts, Some(self.identity.clone()), self.limits, Arc::clone(&self.traffic));
        let fetched = fetched.map_err(|failure| failure.into_error("read", self))?;
        fetched.map_err(|failed| self.failed(&failed.range, failed.failure))
    }

    #[cold]
    fn failed(&self, range: &Range<u64>, failure: Failure) -> Error {
        failure.into_error(format!("read bytes {}..{} of", range.start, range.end), self)
    }
}

impl fmt::Display for RemoteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for RemoteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteSource({self}, {} bytes)", self.identity.size)
    }
}

impl ByteSource for RemoteSource {
    fn size(&self) -> Result<u64> {
        Ok(self.identity.size)
    }

    fn hints(&self) -> Hints {
        REMOTE_HINTS
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        Some(Arc::clone(&self.traffic))
    }

    fn version(&self) -> Option<String> {
        self.version.clone()
    }

    /// Ranges larger than [`Hints::max_request_bytes`] are read by several requests.
    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        checked_len(&range, self, self.identity.size)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        match self.kept(&range) {
            Some(bytes) => Ok(bytes),
            None => Ok(self.fetch(&[range])?.pop().unwrap_or_default()),
        }
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let kept = || ranges.iter().map(|range| self.kept(range)).collect();
        read_missing(self, ranges, kept, |requests| self.fetch(requests))
    }
}

/// Fetches ranges of objects that are not empty, in large pieces, several at once: of the pinned version, or of the
/// current one if there is none. The outer failure is that of no single range.
pub(super) fn fetch_all(
    ranges: Vec<(Arc<Object>, Range<u64>)>,
    pinned: Option<Identity>,
    limits: Limits,
    traffic: Arc<Traffic>,
) -> std::result::Result<std::result::Result<Vec<Bytes>, FailedRange>, Failure> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(ranges.len());
    let mut counts = Vec::with_capacity(ranges.len());
    for (place, (object, range)) in ranges.into_iter().enumerate() {
        let len = usize::try_from(range.end - range.start).ok();
        // Failure is an error instead of an abort.
        let Some(len) = len.filter(|len| Vec::<u8>::new().try_reserve_exact(*len).is_ok()) else {
            return Ok(Err(FailedRange { place, range, failure: out_of_memory() }));
        };
        let mut rest = BytesMut::with_capacity(len);
        let before = pieces.len();
        for piece in range::split(range.clone(), REMOTE_HINTS.max_request_bytes) {
            // The cast is lossless: the whole range is in memory.
            let after = rest.split_off((piece.end - piece.start) as usize);
            let buffer = std::mem::replace(&mut rest, after);
            pieces.push(Piece { place, object: Arc::clone(&object), range: piece, buffer });
        }
        counts.push(pieces.len() - before);
    }
    let bytes: u64 = pieces.iter().map(|piece| piece.range.end - piece.range.start).sum();
    let concurrency = match bytes < pieces.len() as u64 * SMALL_REQUEST_BYTES {
        true => SMALL_CONCURRENCY,
        false => REMOTE_HINTS.concurrency,
    };
    let fetched = run(async move {
        let one = |Piece { place, object, range, buffer }| {
            let attempts = Attempts::new(&limits.for_bytes(range.end - range.start)).counted_in(&traffic);
            let pinned = &pinned;
            async move {
                let part = ByteRange::Range(Range::clone(&range));
                let fetched = fetch(&object, attempts, part, pinned.as_ref(), buffer).await;
                fetched.and_then(|fetched| fetched.cut(&range)).map_err(|failure| FailedRange { place, range, failure })
            }
        };
        let all = stream::iter(pieces).map(one).buffered(concurrency);
        Ok(all.try_collect::<Vec<BytesMut>>().await)
    });
    let mut fetched = match fetched? {
        Ok(fetched) => fetched.into_iter(),
        Err(failed) => return Ok(Err(failed)),
    };
    let joined = counts.into_iter().map(|count| {
        let mut all = BytesMut::new();
        // Adjacent parts of one buffer are joined without copying.
        fetched.by_ref().take(count).for_each(|piece| all.unsplit(piece));
        all.freeze()
    });
    Ok(Ok(joined.collect()))
}

/// Why a range of [`fetch_all`] was not fetched.
pub(super) struct FailedRange {
    /// The place of the range among all.
    pub(super) place: usize,
    /// The part of it that failed.
    pub(super) range: Range<u64>,
    pub(super) failure: Failure,
}

/// A part of a range, and its place in the result.
struct Piece {
    /// The range.
    place: usize,
    object: Arc<Object>,
    range: Range<u64>,
    buffer: BytesMut,
}

#[cold]
fn out_of_memory() -> Failure {
    Failure::lasting(ErrorKind::Other, "out of memory")
}

/// Gets the end of an object and, at the same time, its start. Each of them reports the size of the object, so an
/// object can be opened if only one is available.
async fn open(
    object: Arc<Object>,
    limits: Limits,
    traffic: Arc<Traffic>,
    with_head: bool,
) -> std::result::Result<(Identity, Vec<(u64, Bytes)>), Failure> {
    let attempts = || Attempts::new(&limits).counted_in(&traffic);
    let first = |bytes| fetch(&object, attempts(), ByteRange::Range(0..bytes), None, BytesMut::new());
    let last = fetch(&object, attempts(), ByteRange::Last(TAIL_BYTES), None, BytesMut::new());
    let (tail, head) = if !object.has_last_part() {
        (None, Some(first(TAIL_BYTES).await))
    } else if with_head {
        let (tail, head) = futures_util::join!(last, first(HEAD_BYTES));
        (Some(tail), Some(head))
    } else {
        match last.await {
            Err(failure) if failure.kind != ErrorKind::NotFound => (Some(Err(failure)), Some(first(HEAD_BYTES).await)),
            tail => (Some(tail), None),
        }
    };
    let is_empty = |failure: &Failure| failure.kind == ErrorKind::OutOfRange;
    match (tail, head) {
        (Some(Ok(tail)), head) => {
            let identity = tail.identity;
            let head = head.and_then(std::result::Result::ok).filter(|head| head.identity.is_same(&identity));
            let kept = [Some(tail.start).zip(Some(tail.bytes)), head.map(|head| (head.start, head.bytes))];
            let kept = kept.into_iter().flatten().map(|(start, bytes)| (start, bytes.freeze())).collect();
            Ok((identity, kept))
        }
        (_, Some(Ok(head))) => Ok((head.identity, vec![(head.start, head.bytes.freeze())])),
        (_, Some(Err(failure))) if is_empty(&failure) => {
            if !attempts().repeat(|| object.is_empty()).await? {
                let reason = "the server rejects every range, but the object is not empty";
                return Err(Failure::lasting(ErrorKind::Other, reason));
            }
            Ok((Identity { size: 0, etag: None, modified: None, modified_at: None, generation: None }, Vec::new()))
        }
        (Some(Err(failure)), _) | (None, Some(Err(failure))) => Err(failure),
        (None, None) => Err(Failure::lasting(ErrorKind::Other, "nothing was requested")),
    }
}

/// A part of an object.
pub(super) struct FetchedPart {
    pub(super) identity: Identity,
    start: u64,
    pub(super) bytes: BytesMut,
}

impl FetchedPart {
    /// The bytes of a range; this begins at or before its start.
    fn cut(mut self, range: &Range<u64>) -> std::result::Result<BytesMut, Failure> {
        let beyond = || Failure::lasting(ErrorKind::OutOfRange, format!("it ends at byte {}", self.identity.size));
        let from = range.start.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let from = from.filter(|from| *from <= self.bytes.len()).ok_or_else(beyond)?;
        if ((self.bytes.len() - from) as u64) < range.end - range.start {
            return Err(beyond());
        }
        self.bytes.advance(from);
        // The cast is lossless: there are as many bytes.
        self.bytes.truncate((range.end - range.start) as usize);
        Ok(self.bytes)
    }
}

/// Gets a part into a buffer, by as many requests as are necessary. After a failure it continues at the byte that was
/// reached.
pub(super) async fn fetch(
    object: &Object,
    mut attempts: Attempts,
    part: ByteRange,
    pinned: Option<&Identity>,
    buffer: BytesMut,
) -> std::result::Result<FetchedPart, Failure> {
    let mut transfer = Transfer { part, version: pinned.cloned(), is_open: pinned.is_none(), start: 0, buffer };
    loop {
        let before = transfer.buffer.len();
        let attempt = attempts.run(transfer.attempt(object, attempts.limits().stall)).await;
        attempts.add_bytes((transfer.buffer.len() - before) as u64);
        match attempt {
            Ok(identity) => return Ok(FetchedPart { identity, start: transfer.start, bytes: transfer.buffer }),
            Err(failure) => attempts.again(failure, transfer.buffer.len() > before).await?,
        }
    }
}

/// The bytes received so far.
struct Transfer {
    /// The bytes still missing.
    part: ByteRange,
    version: Option<Identity>,
    /// Whether this opens the object: the end of the part is not known to be within it.
    is_open: bool,
    /// Offset of the buffer in the object.
    start: u64,
    buffer: BytesMut,
}

impl Transfer {
    /// Requests what is missing and receives it.
    async fn attempt(&mut self, object: &Object, stall: Duration) -> std::result::Result<Identity, Failure> {
        let mut answer = object.get(&self.part, self.version.as_ref()).await.map_err(|failure| {
            // The range was within the version that was opened.
            let is_pinned = !self.is_open || self.version.is_some();
            if failure.kind == ErrorKind::OutOfRange && is_pinned { replaced() } else { failure }
        })?;
        let identity = answer.identity;
        if self.version.as_ref().is_some_and(|version| !version.is_same(&identity)) {
            return Err(replaced());
        }
        let announced = answer.range;
        let is_whole = answer.is_whole;
        let wanted = match &self.part {
            // All of it is kept, because it cannot be requested in parts.
            _ if is_whole && self.is_open && self.buffer.is_empty() => announced.clone(),
            ByteRange::Range(range) => range.start..range.end.min(identity.size),
            ByteRange::Last(len) => identity.size.saturating_sub(*len)..identity.size,
        };
        // A server may send less than requested.
        if !is_whole && (announced.start != wanted.start || announced.end > wanted.end) {
            let reason = format!(
                "the server sent the bytes {}..{}, but {}..{} were requested",
                announced.start, announced.end, wanted.start, wanted.end
            );
            return Err(Failure::lasting(ErrorKind::Other, reason));
        }
        if self.buffer.is_empty() {
            self.start = wanted.start;
        }
        self.version = Some(identity.clone());
        self.part = ByteRange::Range(wanted.clone());
        let mut skip = wanted.start - announced.start;
        let mut missing = wanted.end - wanted.start;
        while missing > 0 {
            let next = unless_stalled(stall, answer.body.next()).await?;
            let Some(chunk) = next else {
                let reason = format!("the connection closed {missing} bytes too early");
                return Err(Failure::transient(ErrorKind::Unavailable, reason));
            };
            let skipped = skip.min(chunk.len() as u64);
            skip -= skipped;
            let chunk = &chunk[skipped as usize..];
            let taken = missing.min(chunk.len() as u64);
            self.buffer.extend_from_slice(&chunk[..taken as usize]);
            missing -= taken;
            self.part = ByteRange::Range(wanted.end - missing..wanted.end);
        }
        Ok(identity)
    }
}
