//! Where bytes are read from.

use std::fmt::{Debug, Display};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::range;

/// What a back end is good at; whoever plans requests keeps to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Ranges at most this many bytes apart are better fetched as one.
    pub gap_bytes: u64,
    /// No request should be merged beyond this many bytes.
    pub max_request_bytes: u64,
    /// How many requests are worth having under way at a time.
    pub concurrency: usize,
    /// Whether a read costs little more than copying its bytes, as from the page cache of this machine: then whoever
    /// decodes bytes reads them, by [`ByteSource::read_into`], and nothing is fetched ahead.
    pub is_near: bool,
}

/// An object of fixed size whose bytes can be read at any place, from any number of threads.
///
/// Its `Display` is the URI or path that it was opened by. Answers have the exact length asked for, or there is an
/// error. [`crate::laws::source_laws`] is the contract in code.
pub trait ByteSource: Debug + Display + Send + Sync {
    /// The size in bytes when the object was opened; every byte below it can be read.
    ///
    /// # Errors
    /// What the back end says.
    fn size(&self) -> Result<u64>;

    /// What the back end is good at.
    fn hints(&self) -> Hints;

    /// Reads one range as one request. An empty range is no request at all.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for bytes beyond [`size`](Self::size), [`ErrorKind::Changed`] when the object is no
    /// longer the one that was opened, and what the back end says.
    fn read_range(&self, range: Range<u64>) -> Result<Bytes>;

    /// Reads consecutive bytes from `start` into memory of the caller, one piece after the other, as one request.
    ///
    /// As provided, the answer of [`read_range`](Self::read_range) is copied; near back ends do without.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range); the pieces then hold unspecified bytes.
    fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        let range = start..start.saturating_add(pieces.iter().map(|piece| piece.len() as u64).sum());
        let answer = exact(self, &range, self.read_range(range.clone())?)?;
        let mut rest = &answer[..];
        for piece in pieces {
            let (mine, others) = rest.split_at(piece.len());
            piece.copy_from_slice(mine);
            rest = others;
        }
        Ok(())
    }

    /// Reads many ranges, in any order, overlapping or not; the answers come in the order of the ranges.
    ///
    /// As provided, near ranges are merged by [`hints`](Self::hints), and the requests run one after another. Back ends
    /// that can keep several requests under way do better.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range); the first error ends the call.
    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let plan = plan_requests(self, ranges)?;
        let answers = plan.requests().iter().map(|request| exact(self, request, self.read_range(request.clone())?));
        Ok(plan.cut(&answers.collect::<Result<Vec<_>>>()?))
    }
}

/// The merged requests for `ranges`, after a look at their sanity.
pub(crate) fn plan_requests<S: ByteSource + ?Sized>(source: &S, ranges: &[Range<u64>]) -> Result<range::Plan> {
    if let Some(reversed) = ranges.iter().find(|range| range.start > range.end) {
        return Err(Error::out_of_range(reversed, source, source.size()?));
    }
    let hints = source.hints();
    Ok(range::coalesce(ranges, hints.gap_bytes, hints.max_request_bytes))
}

/// Holds a back end to its word: the answer is as long as the request.
fn exact<S: ByteSource + ?Sized>(source: &S, request: &Range<u64>, answer: Bytes) -> Result<Bytes> {
    if answer.len() as u64 == request.end - request.start {
        return Ok(answer);
    }
    let action = format!("read bytes {}..{} of", request.start, request.end);
    Err(Error::new(ErrorKind::Other, action, source, format!("the answer has {} bytes", answer.len())))
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
    Error::new(ErrorKind::Other, action, uri, "there is not enough memory for them")
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

    /// Answers one byte too few.
    #[derive(Debug)]
    struct Liar;

    impl fmt::Display for Liar {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("test:liar")
        }
    }

    impl ByteSource for Liar {
        fn size(&self) -> Result<u64> {
            Ok(100)
        }
        fn hints(&self) -> Hints {
            Hints { gap_bytes: 0, max_request_bytes: 10, concurrency: 1, is_near: false }
        }
        fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
            Ok(Bytes::from(vec![0; (range.end - range.start) as usize - 1]))
        }
    }

    #[test]
    fn a_short_answer_and_a_reversed_range_are_errors() {
        let short = Liar.read_ranges(&[3..7, 20..30]).unwrap_err();
        assert_eq!(short.to_string(), "cannot read bytes 3..7 of test:liar: the answer has 3 bytes");
        let short = Liar.read_into(3, &mut [&mut [0; 1], &mut [0; 3]]).unwrap_err();
        assert_eq!(short.to_string(), "cannot read bytes 3..7 of test:liar: the answer has 3 bytes");
        let reversed = Liar.read_ranges(&[0..1, Range { start: 7, end: 3 }]).unwrap_err();
        assert_eq!(reversed.to_string(), "cannot read bytes 7..3 of test:liar: the range ends before it starts");
    }

    #[test]
    fn lengths_are_checked_against_the_size() {
        assert_eq!(checked_len(&(5..9), "x", 9).unwrap(), 4);
        assert_eq!(checked_len(&(50..50), "x", 9).unwrap(), 0);
        assert_eq!(checked_len(&(5..10), "x", 9).unwrap_err().kind(), ErrorKind::OutOfRange);
    }
}
