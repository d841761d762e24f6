//! A source that imitates a slower disk.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::Result;
use crate::source::{ByteSource, Hints, Traffic};

/// The speed of a disk with one head: requests are served one after the other, and one that does not begin where the last
/// one ended waits for the head.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskSpeed {
    latency: Duration,
    bytes_per_second: f64,
}

impl DiskSpeed {
    /// A disk with this time to move the head, and this many bytes per second after that; infinity for no limit.
    pub fn new(latency: Duration, bytes_per_second: f64) -> Self {
        Self { latency, bytes_per_second }
    }

    /// The time of a request.
    fn time_of(self, bytes: u64, is_next: bool) -> Duration {
        let transfer = Duration::try_from_secs_f64(bytes as f64 / self.bytes_per_second).unwrap_or(Duration::MAX);
        transfer.saturating_add(if is_next { Duration::ZERO } else { self.latency })
    }
}

/// A source that takes at least the time of a slower disk for each request, also for bytes that were read before.
#[derive(Debug)]
pub struct SlowSource {
    inner: Arc<dyn ByteSource>,
    speed: DiskSpeed,
    head: Mutex<Head>,
}

/// Where the disk is.
#[derive(Debug)]
struct Head {
    offset: u64,
    is_free_at: Instant,
}

impl SlowSource {
    /// Slows a source down.
    pub fn new(inner: Arc<dyn ByteSource>, speed: DiskSpeed) -> Self {
        Self { inner, speed, head: Mutex::new(Head { offset: 0, is_free_at: Instant::now() }) }
    }

    /// Waits until the disk has served a request that begins now.
    fn wait(&self, range: &Range<u64>) {
        let bytes = range.end.saturating_sub(range.start);
        if bytes == 0 {
            return;
        }
        let done_at = {
            let mut head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let time = self.speed.time_of(bytes, head.offset == range.start);
            let done_at = head.is_free_at.max(now).checked_add(time).unwrap_or(now);
            *head = Head { offset: range.end, is_free_at: done_at };
            done_at
        };
        thread::sleep(done_at.saturating_duration_since(Instant::now()));
    }
}

impl fmt::Display for SlowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl ByteSource for SlowSource {
    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.inner.traffic()
    }

    fn version(&self) -> Option<String> {
        self.inner.version()
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let read = self.inner.read_range(range.clone())?;
        self.wait(&range);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySource;

    #[test]
    fn seeks_and_bytes_take_their_time() {
        let speed = DiskSpeed::new(Duration::from_millis(8), 1e6);
        assert_eq!(speed.time_of(1000, true), Duration::from_millis(1));
        assert_eq!(speed.time_of(1000, false), Duration::from_millis(9));
        assert_eq!(DiskSpeed::new(Duration::ZERO, f64::INFINITY).time_of(u64::MAX, false), Duration::ZERO);
        assert_eq!(DiskSpeed::new(Duration::ZERO, 0.0).time_of(1, true), Duration::MAX);
    }

    #[test]
    fn requests_wait_for_each_other() {
        let bytes = Bytes::from((0..100).collect::<Vec<u8>>());
        let source =
            SlowSource::new(Arc::new(MemorySource::new(bytes.clone())), DiskSpeed::new(Duration::from_millis(5), 1e9));
        let begin = Instant::now();
        // The first and the second follow the head; the others move it.
        assert_eq!(source.read_range(0..10).unwrap(), bytes.slice(0..10));
        assert_eq!(source.read_range(10..20).unwrap(), bytes.slice(10..20));
        thread::scope(|scope| {
            for start in [40, 60, 80] {
                let (source, bytes) = (&source, &bytes);
                scope.spawn(move || {
                    assert_eq!(
                        source.read_range(start..start + 5).unwrap(),
                        bytes.slice(start as usize..start as usize + 5)
                    )
                });
            }
        });
        assert!(begin.elapsed() >= Duration::from_millis(15));
        assert_eq!(source.size().unwrap(), 100);
        assert!(source.read_range(90..101).is_err());
    }
}
