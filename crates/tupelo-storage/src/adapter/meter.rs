//! Counters of read requests, bytes and time.

use std::fmt;
use std::iter::Sum;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::Result;
use crate::objects::{Keys, ObjectEntry, ObjectRange, ObjectSource, ObjectVersion};
use crate::source::{ByteSource, Hints, Traffic, plan_requests};

/// Time spent on a task, summed over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Time {
    /// Wall-clock time.
    pub wall: Duration,
    /// CPU time of the threads; equal to `wall` if the system does not report it.
    pub cpu: Duration,
}

/// A [`Time`] that many threads add to.
#[derive(Debug, Default)]
pub struct Clock {
    wall_ns: AtomicU64,
    cpu_ns: AtomicU64,
}

impl Clock {
    /// Runs a task and adds its time.
    pub fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let (wall, cpu) = (Instant::now(), thread_cpu());
        let done = work();
        let wall = wall.elapsed();
        let cpu = thread_cpu().zip(cpu).map_or(wall, |(now, before)| now.saturating_sub(before));
        self.wall_ns.fetch_add(nanoseconds(wall), Ordering::Relaxed);
        self.cpu_ns.fetch_add(nanoseconds(cpu), Ordering::Relaxed);
        done
    }

    /// The total so far.
    pub fn read(&self) -> Time {
        let read = |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed));
        Time { wall: read(&self.wall_ns), cpu: read(&self.cpu_ns) }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(unix)]
fn thread_cpu() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(unix))]
fn thread_cpu() -> Option<Duration> {
    None
}

/// CPU time of all threads of the process so far; `None` if the system does not report it.
#[cfg(unix)]
pub fn process_cpu() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

/// CPU time of all threads of the process so far; `None` if the system does not report it.
#[cfg(not(unix))]
pub fn process_cpu() -> Option<Duration> {
    None
}

/// Counters of the reads of a source. For an object on a server these are the requests that were sent, opening and
/// retries included; what a cache had is not counted.
#[derive(Debug, Default)]
pub struct Meter {
    requests: AtomicU64,
    bytes: AtomicU64,
    clock: Clock,
    /// Those of the sources that have a server.
    traffic: Mutex<Vec<Arc<Traffic>>>,
}

impl Meter {
    /// Number of requests, after merging.
    pub fn requests(&self) -> u64 {
        self.sum(Traffic::requests).unwrap_or_else(|| self.requests.load(Ordering::Relaxed))
    }

    /// Number of requests that repeat one that failed.
    pub fn retries(&self) -> u64 {
        self.sum(Traffic::retries).unwrap_or(0)
    }

    /// Time from each request to a server to its complete answer, summed; zero without a server.
    pub fn request_time(&self) -> Duration {
        self.sum(Traffic::time).unwrap_or_default()
    }

    /// Number of bytes of the requests.
    pub fn bytes(&self) -> u64 {
        self.sum(Traffic::bytes).unwrap_or_else(|| self.bytes.load(Ordering::Relaxed))
    }

    /// Time of the requests.
    pub fn time(&self) -> Time {
        self.clock.read()
    }

    /// The sum of a count over the servers; `None` without any.
    fn sum<T: Sum>(&self, count: impl Fn(&Traffic) -> T) -> Option<T> {
        let traffic = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        (!traffic.is_empty()).then(|| traffic.iter().map(|it| count(it)).sum())
    }

    fn add_traffic(&self, traffic: Option<Arc<Traffic>>) {
        let mut known = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        // The meter of a source may have it already.
        let new = traffic.filter(|new| !known.iter().any(|it| Arc::ptr_eq(it, new)));
        known.extend(new);
    }

    fn count(&self, requests: usize, bytes: u64) {
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A source whose reads are counted.
#[derive(Debug)]
pub struct MeteredSource<S> {
    inner: S,
    meter: Arc<Meter>,
}

impl<S: ByteSource> MeteredSource<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, meter: &Arc<Meter>) -> Self {
        meter.add_traffic(inner.traffic());
        Self { inner, meter: Arc::clone(meter) }
    }
}

impl<S: ByteSource> fmt::Display for MeteredSource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl<S: ByteSource> ByteSource for MeteredSource<S> {
    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }

    fn reads_in_place(&self, range: &Range<u64>) -> bool {
        self.inner.reads_in_place(range)
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.inner.traffic()
    }

    fn version(&self) -> Option<String> {
        self.inner.version()
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes = self.meter.clock.time(|| self.inner.read_range(range))?;
        self.meter.count(usize::from(!bytes.is_empty()), bytes.len() as u64);
        Ok(bytes)
    }

    fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        self.meter.clock.time(|| self.inner.read_into(start, pieces))?;
        let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.meter.count(usize::from(bytes > 0), bytes);
        Ok(())
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        // Merged here to be counted. The inner source merges no further.
        let plan = plan_requests(self, ranges)?;
        let answers = self.meter.clock.time(|| self.inner.read_ranges(plan.requests()))?;
        self.meter.count(plan.requests().len(), plan.request_bytes());
        Ok(plan.cut(&answers))
    }
}

/// A namespace whose reads are counted.
#[derive(Debug)]
pub struct MeteredObjects {
    inner: Arc<dyn ObjectSource>,
    meter: Arc<Meter>,
}

impl MeteredObjects {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn ObjectSource>, meter: &Arc<Meter>) -> Self {
        meter.add_traffic(inner.traffic());
        Self { inner, meter: Arc::clone(meter) }
    }
}

impl fmt::Display for MeteredObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl ObjectSource for MeteredObjects {
    fn keys(&self) -> Keys {
        self.inner.keys()
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }

    fn reads_in_place(&self) -> bool {
        self.inner.reads_in_place()
    }

    fn traffic(&self) -> Option<Arc<Traffic>> {
        self.inner.traffic()
    }

    fn get(&self, key: &str, max_bytes: u64) -> Result<(Bytes, ObjectVersion)> {
        let got = self.meter.clock.time(|| self.inner.get(key, max_bytes))?;
        self.meter.count(1, got.0.len() as u64);
        Ok(got)
    }

    /// Where there is no server, each range counts.
    fn get_ranges(&self, ranges: &[ObjectRange]) -> Result<Vec<Bytes>> {
        let got = self.meter.clock.time(|| self.inner.get_ranges(ranges))?;
        self.meter.count(got.len(), got.iter().map(|bytes| bytes.len() as u64).sum());
        Ok(got)
    }

    fn get_into(&self, key: &Arc<str>, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        self.meter.clock.time(|| self.inner.get_into(key, start, pieces))?;
        self.meter.count(1, pieces.iter().map(|piece| piece.len() as u64).sum());
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectEntry>> {
        self.inner.list(prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::source_laws;
    use crate::local::memory::MemorySource;

    #[test]
    fn metering_keeps_the_laws() {
        let bytes: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
        source_laws(&MeteredSource::new(MemorySource::new(bytes.clone()), &Arc::default()), &bytes);
    }

    #[test]
    fn requests_bytes_and_time_are_counted() {
        let meter = Arc::new(Meter::default());
        let source = MeteredSource::new(MemorySource::new(vec![1; 100]), &meter);
        source.read_range(0..10).unwrap();
        source.read_range(5..5).unwrap();
        source.read_ranges(&[20..30, 30..40, 50..60]).unwrap();
        source.read_into(90, &mut [&mut [0; 4], &mut [0; 6]]).unwrap();
        assert!(source.read_range(90..101).is_err());
        assert_eq!((meter.requests(), meter.bytes()), (4, 50));
        assert!(meter.time().wall > Duration::ZERO);
    }

    #[test]
    fn waiting_takes_no_cpu_time() {
        let clock = Clock::default();
        clock.time(|| std::thread::sleep(Duration::from_millis(20)));
        let time = clock.read();
        assert!(time.wall >= Duration::from_millis(20));
        assert!(cfg!(not(unix)) || time.cpu < time.wall, "{time:?}");
    }
}
