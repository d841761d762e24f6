//! The trait of objects that bytes are read from.

use std::fmt::{Debug, Display};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::range;

/// Tuning parameters of a back end for planning requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Ranges at most this many bytes apart are merged.
    pub gap_bytes: u64,
    /// Maximum size of a merged request, in bytes.
    pub max_request_bytes: u64,
    /// Number of concurrent requests that give the best throughput.
    pub concurrency: usize,
}

/// Requests of one source or namespace to its server since it was opened, opening included. A request that is redirected
/// counts once.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: AtomicU64,
    retries: AtomicU64,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
    puts: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Traffic {
    /// Number of requests, retries included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Number of requests that repeat one that failed.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Number of received bytes of the object.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Time from each request to its complete answer, summed. Requests of one batch are answered together.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    /// Number of objects that were written to a namespace. A large one is written by several requests.
    pub fn puts(&self) -> u64 {
        self.puts.load(Ordering::Relaxed)
    }

    /// Number of bytes of the objects that were written, without repetitions.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_time(&self, time: Duration) {
        self.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn add_put(&self, bytes: u64) {
        self.puts.fetch_add(1, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// An object of fixed size with random access, from any number of threads.
///
/// `Display` gives the URI or path that it was opened by. A read returns exactly the requested number of bytes, or an
/// error. `laws::source_laws` (feature `testing`) is the contract in code.
pub trait ByteSource: Debug + Display + Send + Sync {
    /// The size in bytes when the object was opened; every byte below it can be read.
    ///
    /// # Errors
    /// Errors of the back end.
    fn size(&self) -> Result<u64>;

    /// Tuning parameters of the back end.
    fn hints(&self) -> Hints;

    /// Whether a read of this range costs little more than copying its bytes, as from the page cache of this machine.
    /// Decoders then read by [`read_into`](Self::read_into) when they need the bytes, without prefetching. The default
    /// implementation returns false.
    fn reads_in_place(&self, _range: &Range<u64>) -> bool {
        false
    }

    /// Counts of the requests to the server of the object; `None` without a server.
    fn traffic(&self) -> Option<Arc<Traffic>> {
        None
    }

    /// The version of the object that was opened, which no other version under its name has; `None` if the back end does
    /// not tell versions apart.
    fn version(&self) -> Option<String> {
        None
    }

    /// Reads one range by one request. An empty range needs no request.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for bytes beyond [`size`](Self::size), [`ErrorKind::Changed`] when the object is no
    /// longer the one that was opened, and errors of the back end.
    fn read_range(&self, range: Range<u64>) -> Result<Bytes>;

    /// Reads consecutive bytes from `start` into buffers of the caller, one after the other, by one request.
    ///
    /// The default implementation copies the result of [`read_range`](Self::read_range).
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range); the buffers then hold unspecified bytes.
    fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        read_range_into(self, start, pieces)
    }

    /// Reads many ranges, in any order, overlapping or not. The results are in the order of the ranges.
    ///
    /// The default implementation merges near ranges by [`hints`](Self::hints), and runs the requests one after
    /// another. Back ends with concurrent requests should override it.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range); the first error ends the call.
    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let plan = plan_requests(self, ranges)?;
        let answers = plan.requests().iter().map(|request| exact(self, request, self.read_range(request.clone())?));
        Ok(plan.cut(&answers.collect::<Result<Vec<_>>>()?))
    }
}

/// Copies the result of [`ByteSource::read_range`] into buffers that follow each other.
pub(crate) fn read_range_into<S: ByteSource + ?Sized>(source: &S, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
    let range = start..start.saturating_add(pieces.iter().map(|piece| piece.len() as u64).sum());
    let answer = exact(source, &range, source.read_range(range.clone())?)?;
    let mut rest = &answer[..];
    for piece in pieces {
        let (mine, others) = rest.split_at(piece.len());
        piece.copy_from_slice(mine);
        rest = others;
    }
    Ok(())
}

/// The merged requests for `ranges`, which must not be reversed.
pub(crate) fn plan_requests<S: ByteSource + ?Sized>(source: &S, ranges: &[Range<u64>]) -> Result<range::Plan> {
    if let Some(reversed) = ranges.iter().find(|range| range.start > range.end) {
        return Err(Error::out_of_range(reversed, source, source.size()?));
    }
    let hints = source.hints();
    Ok(range::coalesce(ranges, hints.gap_bytes, hints.max_request_bytes))
}

/// Reads ranges: `found` gives the bytes of those that are known, and `fetch` requests the others, merged.
pub(crate) fn read_missing<S: ByteSource + ?Sized>(
    source: &S,
    ranges: &[Range<u64>],
    found: impl FnOnce() -> Vec<Option<Bytes>>,
    fetch: impl FnOnce(&[Range<u64>]) -> Result<Vec<Bytes>>,
) -> Result<Vec<Bytes>> {
    let size = source.size()?;
    for range in ranges {
        checked_len(range, source, size)?;
    }
    let found = found();
    let missing = ranges.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(range, _)| range.clone());
    let plan = plan_requests(source, &missing.collect::<Vec<_>>())?;
    let mut fetched = plan.cut(&fetch(plan.requests())?).into_iter();
    Ok(found.into_iter().map(|found| found.or_else(|| fetched.next()).unwrap_or_default()).collect())
}

/// Checks that the back end returned as many bytes as requested.
fn exact<S: ByteSource + ?Sized>(source: &S, request: &Range<u64>, answer: Bytes) -> Result<Bytes> {
    if answer.len() as u64 == request.end - request.start {
        return Ok(answer);
    }
    let action = format!("read bytes {}..{} of", request.start, request.end);
    Err(Error::new(ErrorKind::Other, action, source, format!("the back end returned {} bytes", answer.len())))
}

/// The length of a range within an object of `size_bytes`, or the error that names both.
pub(crate) fn checked_len(range: &Range<u64>, uri: impl Display, size_bytes: u64) -> Result<usize> {
    match range.end.checked_sub(range.start) {
        Some(0) => Ok(0),
        Some(len) if range.end <= size_bytes => usize::try_from(len).map_err(|_| too_large(range, uri)),
        _ => Err(Error::out_of_range(range, uri, size_bytes)),
    }
}

/// A range that does not fit into memory.
#[cold]
fn too_large(range: &Range<u64>, uri: impl Display) -> Error {
    let action = format!("read bytes {}..{} of", range.start, range.end);
    Error::new(ErrorKind::Other, action, uri, "out of memory")
}

macro_rules! forward_source {
    ($($pointer:ty),*) => {$(
        impl<S: ByteSource + ?Sized> ByteSource for $pointer {
            fn size(&self) -> Result<u64> {
                (**self).size()
            }
            fn hints(&self) -> Hints {
                (**self).hints()
            }
            fn reads_in_place(&self, range: &Range<u64>) -> bool {
                (**self).reads_in_place(range)
            }
            fn traffic(&self) -> Option<Arc<Traffic>> {
                (**self).traffic()
            }
            fn version(&self) -> Option<String> {
                (**self).version()
            }
            fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
                (**self).read_range(range)
            }
            fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
                (**self).read_into(start, pieces)
            }
            fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
                (**self).read_ranges(ranges)
            }
        }
    )*};
}
forward_source!(&S, Box<S>, Arc<S>);

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// Returns one byte too few.
    #[derive(Debug)]
    struct Short;

    impl fmt::Display for Short {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("test:short")
        }
    }

    impl ByteSource for Short {
        fn size(&self) -> Result<u64> {
            Ok(100)
        }
        fn hints(&self) -> Hints {
            Hints { gap_bytes: 0, max_request_bytes: 10, concurrency: 1 }
        }
        fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
            Ok(Bytes::from(vec![0; (range.end - range.start) as usize - 1]))
        }
    }

    #[test]
    fn short_results_and_reversed_ranges_are_errors() {
        let short = Short.read_ranges(&[3..7, 20..30]).unwrap_err();
        assert_eq!(short.to_string(), "cannot read bytes 3..7 of test:short: the back end returned 3 bytes");
        let short = Short.read_into(3, &mut [&mut [0; 1], &mut [0; 3]]).unwrap_err();
        assert_eq!(short.to_string(), "cannot read bytes 3..7 of test:short: the back end returned 3 bytes");
        let reversed = Short.read_ranges(&[0..1, Range { start: 7, end: 3 }]).unwrap_err();
        assert_eq!(reversed.to_string(), "cannot read bytes 7..3 of test:short: the range ends before it starts");
    }

    #[test]
    fn lengths_are_checked_against_the_size() {
        assert_eq!(checked_len(&(5..9), "x", 9).unwrap(), 4);
        assert_eq!(checked_len(&(50..50), "x", 9).unwrap(), 0);
        assert_eq!(checked_len(&(5..10), "x", 9).unwrap_err().kind(), ErrorKind::OutOfRange);
    }
}
