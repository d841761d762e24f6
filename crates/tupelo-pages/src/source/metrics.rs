//! Read statistics.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tupelo_storage::adapter::{Clock, Meter, Time};

/// Read statistics of a file since it was opened. Enabled by `with_metrics`, returned by `metrics()`.
///
/// The names in brackets are those of the counters of ROOT's `RPageSourceFile` (`RNTupleReader::GetMetrics`) that count
/// the same. Times are summed over threads, so that with several threads they may be more than `elapsed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Read requests to the storage, near ranges merged (`nRead`). Of a remote file these are the requests to the server,
    /// those of opening and retries included; what the cache has is not requested.
    pub requests: u64,
    /// Requests to a server that repeat one that failed.
    pub retries: u64,
    /// Time from each request to a server to its complete answer, summed: requests overlap. Zero for local files.
    pub request_time: Duration,
    /// Bytes that the requests read (`szReadPayload` + `szReadOverhead`).
    pub read_bytes: u64,
    /// Bytes of the sealed pages that were decoded, checksums included (`szReadPayload`), or of the baskets of a tree
    /// without their keys; metadata are in `read_bytes` only.
    pub page_bytes: u64,
    /// Pages decoded (`nPageUnsealed`), or baskets.
    pub pages: u64,
    /// Bytes of those pages once decompressed (`szUnzip`).
    pub unpacked_bytes: u64,
    /// Time spent waiting for the storage (`timeWallRead`, `timeCpuRead`).
    pub read: Time,
    /// Comparing checksums and decompressing (`timeWallUnzip`, `timeCpuUnzip`).
    pub decompress: Time,
    /// Decoding pages into arrays.
    pub decode: Time,
    /// Wall time of all reading requests together, from call to answer.
    pub elapsed: Duration,
    /// Threads that could work on them.
    pub threads: usize,
}

impl Metrics {
    /// Mean time from a request to a server to its complete answer.
    pub fn latency(&self) -> Duration {
        self.request_time.checked_div(u32::try_from(self.requests).unwrap_or(u32::MAX)).unwrap_or_default()
    }

    /// Bytes read outside of decoded pages, relative to the bytes of decoded pages (`fracReadOverhead`).
    pub fn read_overhead(&self) -> f64 {
        ratio(self.read_bytes.saturating_sub(self.page_bytes) as f64, self.page_bytes as f64)
    }

    /// Decompressed bytes of pages over those that are stored (`compressionRatio` is the inverse).
    pub fn compression_factor(&self) -> f64 {
        ratio(self.unpacked_bytes as f64, self.page_bytes as f64)
    }

    /// Bytes per second from the storage, during the time spent waiting for it (`bwRead`).
    pub fn read_bandwidth(&self) -> f64 {
        ratio(self.read_bytes as f64, self.read.wall.as_secs_f64())
    }

    /// Decompressed bytes per second of decompression and thread (`bwUnzip`).
    pub fn decompress_bandwidth(&self) -> f64 {
        ratio(self.unpacked_bytes as f64, self.decompress.wall.as_secs_f64())
    }

    /// Decompressed bytes per second of total reading time (`bwReadUnzip`).
    pub fn bandwidth(&self) -> f64 {
        ratio(self.unpacked_bytes as f64, self.elapsed.as_secs_f64())
    }

    /// Time in which threads neither read, nor decompressed, nor decoded: they planned, put arrays together, or had
    /// nothing to do.
    pub fn idle(&self) -> Duration {
        let all = self.elapsed.saturating_mul(u32::try_from(self.threads).unwrap_or(u32::MAX));
        all.saturating_sub(self.read.wall + self.decompress.wall + self.decode.wall)
    }
}

/// Adds the statistics of another file that was read before or after.
impl AddAssign for Metrics {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.retries += other.retries;
        self.request_time += other.request_time;
        self.read_bytes += other.read_bytes;
        self.page_bytes += other.page_bytes;
        self.pages += other.pages;
        self.unpacked_bytes += other.unpacked_bytes;
        let times = [&mut self.read, &mut self.decompress, &mut self.decode];
        for (time, other) in times.into_iter().zip([other.read, other.decompress, other.decode]) {
            time.wall += other.wall;
            time.cpu += other.cpu;
        }
        self.elapsed += other.elapsed;
        self.threads = self.threads.max(other.threads);
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// One line per number, for people.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        let mut time = |name: &str, time: &Time| {
            writeln!(f, "{name:<12} {:10.3} ms wall, {:.3} ms CPU", ms(time.wall), ms(time.cpu))
        };
        time("read", &self.read)?;
        time("decompress", &self.decompress)?;
        time("decode", &self.decode)?;
        writeln!(f, "idle         {:10.3} ms of {} threads", ms(self.idle()), self.threads)?;
        writeln!(f, "elapsed      {:10.3} ms", ms(self.elapsed))?;
        let retries = if self.retries > 0 { format!(", {} of them retries", self.retries) } else { String::new() };
        let latency = match self.request_time.is_zero() {
            true => String::new(),
            false => format!(", {:.3} ms each", ms(self.latency())),
        };
        writeln!(f, "requests     {:10}{retries}{latency}", self.requests)?;
        let overhead = match self.pages {
            0 => String::new(),
            _ => format!(", {:.1} % more than the pages", self.read_overhead() * 100.0),
        };
        writeln!(f, "bytes read   {:10.3} MiB{overhead}", mib(self.read_bytes as f64))?;
        writeln!(f, "pages        {:10}", self.pages)?;
        let (unpacked, factor) = (mib(self.unpacked_bytes as f64), self.compression_factor());
        writeln!(f, "unpacked     {unpacked:10.3} MiB, {factor:.2} times the stored pages")?;
        let bandwidths = [self.read_bandwidth(), self.decompress_bandwidth(), self.bandwidth()].map(mib);
        let [read, decompress, all] = bandwidths;
        writeln!(
            f,
            "bandwidths   {read:10.0} MiB/s read, {decompress:.0} MiB/s decompressed per thread, {all:.0} MiB/s in all"
        )
    }
}

/// Counters of a read; without them nothing is counted, and no clock is read.
#[derive(Debug, Clone, Default)]
pub struct Counters(Option<Arc<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    meter: Arc<Meter>,
    page_bytes: AtomicU64,
    pages: AtomicU64,
    unpacked_bytes: AtomicU64,
    decompress: Clock,
    decode: Clock,
    elapsed: Clock,
}

impl Counters {
    /// Counters, with the meter of what is read.
    pub(crate) fn metered() -> (Self, Arc<Meter>) {
        let counts = Arc::new(Counts::default());
        let meter = Arc::clone(&counts.meter);
        (Self(Some(counts)), meter)
    }

    /// Counts the requests, if statistics are enabled.
    pub(crate) fn meter(&self) -> Option<&Arc<Meter>> {
        self.0.as_ref().map(|counts| &counts.meter)
    }

    pub(crate) fn decompress<T>(&self, sealed_bytes: usize, unpacked_bytes: u64, work: impl FnOnce() -> T) -> T {
        let Some(counts) = &self.0 else { return work() };
        counts.pages.fetch_add(1, Ordering::Relaxed);
        counts.page_bytes.fetch_add(sealed_bytes as u64, Ordering::Relaxed);
        counts.unpacked_bytes.fetch_add(unpacked_bytes, Ordering::Relaxed);
        counts.decompress.time(work)
    }

    /// Counts the time of `work` as time of decoding.
    pub(crate) fn decode<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(counts) => counts.decode.time(work),
            None => work(),
        }
    }

    /// Counts the time of `work` as time of a read.
    pub fn elapsed<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(counts) => counts.elapsed.time(work),
            None => work(),
        }
    }

    /// The counts so far; `None` if counting is off.
    pub fn read(&self, threads: usize) -> Option<Metrics> {
        let counts = self.0.as_ref()?;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Some(Metrics {
            requests: counts.meter.requests(),
            retries: counts.meter.retries(),
            request_time: counts.meter.request_time(),
            read_bytes: counts.meter.bytes(),
            page_bytes: count(&counts.page_bytes),
            pages: count(&counts.pages),
            unpacked_bytes: count(&counts.unpacked_bytes),
            read: counts.meter.time(),
            decompress: counts.decompress.read(),
            decode: counts.decode.read(),
            elapsed: counts.elapsed.read().wall,
            threads,
        })
    }
}
