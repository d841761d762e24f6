//! The contract of back ends and adapters, as functions for their tests. They panic if it is violated.

mod objects;

use std::fmt;
use std::ops::Range;

use crate::error::{ErrorKind, Result};
use crate::sink::ByteSink;
use crate::source::ByteSource;

pub use self::objects::{LawKeys, object_laws, object_laws_with, object_source_laws, object_source_laws_with};

/// The laws of a source whose bytes are known.
///
/// # Panics
/// If `source` violates the contract.
pub fn source_laws(source: &dyn ByteSource, expected: &[u8]) {
    let size = expected.len() as u64;
    let slice = |range: &Range<u64>| &expected[range.start as usize..range.end as usize];
    let read = |range: Range<u64>| must(source.read_range(range.clone()), format_args!("read {range:?}"));

    assert_eq!(must(source.size(), "size"), size, "size is the number of bytes");
    assert!(!source.to_string().is_empty(), "a source has a name");
    let hints = source.hints();
    assert!(hints.max_request_bytes > 0 && hints.concurrency > 0, "hints are positive: {hints:?}");

    assert_eq!(read(0..size), expected, "the whole object can be read");
    assert_eq!(must(source.read_ranges(&[]), "read nothing").len(), 0, "no ranges give no results");
    for at in [0, size / 2, size, size + 1, u64::MAX] {
        assert!(read(at..at).is_empty(), "an empty range has no bytes at any offset");
    }

    let mut ranges = some_ranges(size);
    let answers = must(source.read_ranges(&ranges), "read many ranges");
    assert_eq!(answers.len(), ranges.len(), "one result for each range");
    for (range, answer) in ranges.iter().zip(&answers) {
        assert_eq!(answer, slice(range), "read_ranges returns {range:?} in the given order");
        assert_eq!(read(range.clone()), slice(range), "read_range returns {range:?}");
        let mut room = vec![0; answer.len()];
        let (front, back) = room.split_at_mut(answer.len() / 3);
        must(source.read_into(range.start, &mut [front, &mut [], back]), "read into pieces");
        assert_eq!(room, slice(range), "read_into fills its pieces with {range:?}");
    }

    #[expect(clippy::reversed_empty_ranges, reason = "a reversed range is refused")]
    for bad in [size..size + 1, 0..size + 1, size + 10..size + 20, u64::MAX - 1..u64::MAX, 2..1] {
        refused(source.read_range(bad.clone()), ErrorKind::OutOfRange, format_args!("read {bad:?}"));
        if let Some(bytes @ 1..100) = bad.end.checked_sub(bad.start) {
            let read = source.read_into(bad.start, &mut [&mut vec![0; bytes as usize]]);
            refused(read, ErrorKind::OutOfRange, format_args!("read {bad:?} into a piece"));
        }
        ranges.push(bad.clone());
        refused(source.read_ranges(&ranges), ErrorKind::OutOfRange, format_args!("read {bad:?} among others"));
        ranges.pop();
    }

    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(must(source.read_ranges(&ranges), "read from threads"), answers));
        }
    });
}

/// Ranges of all lengths and places within `size` bytes: out of order, overlapping, repeated, empty.
fn some_ranges(size: u64) -> Vec<Range<u64>> {
    let mut numbers = Numbers(size + 1);
    let mut ranges = Vec::new();
    for _ in 0..50 {
        let (a, b) = (numbers.below(size + 1), numbers.below(size + 1));
        ranges.push(a.min(b)..a.max(b));
        ranges.push(a..a + numbers.below(64).min(size - a));
    }
    ranges.extend_from_within(10..20);
    ranges
}

/// A sink under test, and a function that reads its target.
pub struct SinkCase {
    sink: Box<dyn ByteSink>,
    content: Box<dyn Fn() -> Option<Vec<u8>>>,
    /// Bytes at the start that can be patched at any time, if not all.
    patchable_bytes: Option<u64>,
}

impl SinkCase {
    /// A case of one sink; `content` returns what a reader would see now.
    pub fn new(sink: impl ByteSink + 'static, content: impl Fn() -> Option<Vec<u8>> + 'static) -> Self {
        Self { sink: Box::new(sink), content: Box::new(content), patchable_bytes: None }
    }

    /// A case of a sink that sends its bytes before commit: it has no checkpoints, and only its first bytes can be
    /// patched at any time.
    #[must_use]
    pub fn streamed(self, patchable_bytes: u64) -> Self {
        Self { patchable_bytes: Some(patchable_bytes), ..self }
    }

    /// A checkpoint, or its refusal.
    fn checkpoint(&mut self) {
        match self.patchable_bytes {
            None => must(self.sink.checkpoint(), "checkpoint"),
            Some(_) => refused(self.sink.checkpoint(), ErrorKind::NotSupported, "checkpoint"),
        }
    }
}

impl fmt::Debug for SinkCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SinkCase({:?})", self.sink)
    }
}

/// The laws of sinks that create or replace an object.
///
/// `make` creates a case from the old content of the target, `None` for a new one.
///
/// # Panics
/// If a sink violates the contract.
pub fn sink_laws(make: impl Fn(Option<&[u8]>) -> SinkCase) {
    for old in [None, Some(&b"old content"[..])] {
        let mut case = make(old);
        assert!(!case.sink.to_string().is_empty(), "a sink has a name");
        assert_eq!(case.sink.position(), 0, "a new object starts at 0");
        let mut model = Vec::new();
        for round in 0..3 {
            work(&mut case, &mut model, round);
            case.checkpoint();
            assert_eq!((case.content)().as_deref(), old, "nothing is visible before commit");
        }
        let SinkCase { sink, content, .. } = case;
        must(sink.commit(), "commit");
        assert!(content().is_some_and(|found| found == model), "commit makes all of it visible");

        let SinkCase { sink, content, .. } = make(old);
        must(sink.commit(), "commit nothing");
        assert_eq!(content().as_deref(), Some(&[][..]), "an empty object can be committed");

        for abort in [true, false] {
            let mut case = make(old);
            work(&mut case, &mut Vec::new(), 0);
            case.checkpoint();
            let SinkCase { sink, content, .. } = case;
            if abort {
                drop(must(sink.abort(), "abort"))
            } else {
                drop(sink)
            }
            assert_eq!(content().as_deref(), old, "a checkpoint of a new object is not visible");
        }

        unfinished_laws(|| make(old), 0, old);
    }
}

/// The laws of sinks that continue an object.
///
/// `make` creates a case from the old content of the target.
///
/// # Panics
/// If a sink violates the contract.
pub fn update_laws(make: impl Fn(&[u8]) -> SinkCase) {
    for old in [&b""[..], b"0123456789"] {
        let mut case = make(old);
        assert_eq!(case.sink.position(), old.len() as u64, "an update starts at the end");
        let mut model = old.to_vec();
        for round in 0..3 {
            work(&mut case, &mut model, round);
            assert!((case.content)().is_some_and(|now| now.starts_with(old)), "no old byte changes before commit");
        }
        let SinkCase { sink, content, .. } = case;
        must(sink.commit(), "commit");
        assert!(content().is_some_and(|found| found == model), "commit makes all of it visible");

        let SinkCase { sink, content, .. } = make(old);
        must(sink.commit(), "commit nothing");
        assert_eq!(content().as_deref(), Some(old), "an empty update changes nothing");

        for ending in [Some("abort"), Some("poisoned commit"), None] {
            let mut case = make(old);
            let mut model = old.to_vec();
            for round in 0..2 {
                work(&mut case, &mut model, round);
                case.checkpoint();
                assert!((case.content)().is_some_and(|found| found == model), "a checkpoint makes all of it visible");
            }
            work(&mut case, &mut model.clone(), 3);
            let SinkCase { mut sink, content, .. } = case;
            match ending {
                Some("abort") => assert_eq!(must(sink.abort(), "abort"), None, "no temporary object is kept"),
                Some(_) => {
                    refused(sink.patch(u64::MAX, b"x"), ErrorKind::OutOfRange, "patch beyond the end");
                    assert!(sink.checkpoint().is_err(), "a poisoned sink makes no checkpoint");
                    assert!(sink.commit().is_err(), "a poisoned sink does not commit");
                }
                None => drop(sink),
            }
            assert!(content().is_some_and(|found| found == model), "without commit, the checkpoint is kept");
        }

        unfinished_laws(|| make(old), old.len(), Some(old));
    }
}

/// Without a commit, or after a failed one, the old content is kept.
fn unfinished_laws(make: impl Fn() -> SinkCase, start: usize, old: Option<&[u8]>) {
    for abort in [true, false] {
        let mut case = make();
        work(&mut case, &mut old.unwrap_or_default()[..start].to_vec(), 1);
        let SinkCase { sink, content, .. } = case;
        if abort {
            assert_eq!(must(sink.abort(), "abort"), None, "nothing is kept")
        } else {
            drop(sink)
        }
        assert_eq!(content().as_deref(), old, "without commit, the old content is kept");
    }
    for overreach in [0, 1, u64::MAX - 1] {
        let SinkCase { mut sink, content, .. } = make();
        must(sink.append(b"abc"), "append");
        let offset = sink.position().saturating_add(overreach);
        refused(sink.patch(offset, b"x"), ErrorKind::OutOfRange, "patch beyond the end");
        assert!(sink.commit().is_err(), "a sink that refused a patch does not commit");
        assert_eq!(content().as_deref(), old, "after a failed commit, the old content is kept");
    }
}

/// Appends and patches of many sizes, the same in the model.
fn work(case: &mut SinkCase, model: &mut Vec<u8>, round: u64) {
    let (sink, patchable_bytes) = (&mut case.sink, case.patchable_bytes.unwrap_or(u64::MAX));
    let mut numbers = Numbers(round);
    for step in 0..60 {
        // Small ones, and one that is larger than any buffer.
        let len = if step == 30 { 5 << 20 } else { numbers.below(3000) as usize };
        let bytes = pattern(len, step + round);
        if step % 3 == 0 {
            let (a, b) = bytes.split_at(len / 3);
            must(sink.append_vectored(&[a, &[], b]), "append in pieces");
        } else {
            must(sink.append(&bytes), "append");
        }
        model.extend_from_slice(&bytes);
        assert_eq!(sink.position(), model.len() as u64, "the position is the end of the appended bytes");

        // At the start, in the middle and at the end. Where patches overlap, the last one wins.
        let len = numbers.below(20).min(model.len() as u64);
        let last = (model.len() as u64).min(patchable_bytes) - len;
        for offset in [numbers.below(16).min(last), numbers.below(last + 1), last] {
            let patch = vec![numbers.below(256) as u8; len as usize];
            must(sink.patch(offset, &patch), format_args!("patch {len} bytes at {offset}"));
            model[offset as usize..][..patch.len()].copy_from_slice(&patch);
            assert_eq!(sink.position(), model.len() as u64, "a patch does not move the position");
        }
    }
}

/// Bytes that grow by 7.
fn pattern(len: usize, first: u64) -> Vec<u8> {
    // Copies of a period are made faster than bytes one by one, since tests are built without optimisation.
    let period: Vec<u8> = (0..256).map(|i| (i * 7 + first) as u8).collect();
    let mut bytes = period.repeat(len.div_ceil(period.len()));
    bytes.truncate(len);
    bytes
}

/// The value of a call that must succeed.
fn must<T>(result: Result<T>, what: impl fmt::Display) -> T {
    result.unwrap_or_else(|error| panic!("{what} must succeed: {error}"))
}

/// Checks that a call is refused.
fn refused<T>(result: Result<T>, kind: ErrorKind, what: impl fmt::Display) {
    match result {
        Ok(_) => panic!("{what} must be refused"),
        Err(error) => assert_eq!(error.kind(), kind, "{what}: {error}"),
    }
}

/// Pseudo-random numbers, the same in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

/// Runs work on a server that does not answer, and cancels it after 50 ms.
///
/// # Panics
/// If the work does not end with [`ErrorKind::Cancelled`] within 200 ms of that, in one of five attempts: other tests may
/// keep the machine busy.
#[cfg(test)]
pub(crate) fn is_cancelled_soon<T>(mut work: impl FnMut() -> Result<T>) {
    use std::time::{Duration, Instant};

    let mut is_soon = || {
        let until = Instant::now() + Duration::from_millis(50);
        let error = crate::cancel::cancellable(move || Instant::now() > until, &mut work).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        assert!(error.to_string().ends_with("cancelled by the caller"), "{error}");
        until.elapsed() < Duration::from_millis(200)
    };
    assert!((0..5).any(|_| is_soon()));
}
