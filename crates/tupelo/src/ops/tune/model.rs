//! The model: requests, bytes and CPU time of entries in a container become seconds.
//!
//! Requests follow the rules of [`Cost`]. Decoding, transfer and waiting for requests overlap, so the slowest of
//! them is the time; only the round trips that depend on each other are added.

use tupelo_format::compression::Compression;
use tupelo_pages::sink::Mapping;
use tupelo_storage::Hints;
use tupelo_storage::local::LOCAL_HINTS;
use tupelo_storage::remote::REMOTE_HINTS;

use crate::ops::cost::{Container, Cost};
use crate::writer::WRITE_BYTES;

/// Round trips of opening an ntuple or tree that depend on each other: the anchor, or head and tail of a file; then header,
/// footer and page lists, or the record of a tree.
const OPENING_ROUND_TRIPS: u32 = 2;
/// Round trips at the end of writing objects: header, footer and page list, the manifest, the record of the attempt, a check,
/// and the anchor; before the first page, a look at the existing anchor.
const CLOSING_ROUND_TRIPS: u32 = 6;
/// Round trips of writing a file: the data and then the head are made durable, and the name; on a server, a look at the name,
/// and the begin and the end of the upload.
const CLOSING_FILE_ROUND_TRIPS: u32 = 3;

/// One direction of the connection to a store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Time of a request for few bytes, in seconds.
    pub latency_seconds: f64,
    /// Bytes per second of all concurrent requests together; infinite without a limit.
    pub bytes_per_second: f64,
}

/// The store of the objects or the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoreModel {
    /// Reading.
    pub get: Link,
    /// Writing.
    pub put: Link,
    /// Which ranges become one request, and how many requests are concurrent.
    pub hints: Hints,
    /// Whether it is a disk of this machine. Writing a file there is one request, and its bytes follow each other.
    pub is_local: bool,
}

impl StoreModel {
    /// A server, with the same link in both directions.
    pub fn remote(link: Link) -> Self {
        Self { get: link, put: link, hints: REMOTE_HINTS, is_local: false }
    }

    /// A disk of this machine, which answers this number of requests at the same time: one if it has a head that moves.
    pub fn disk(link: Link, concurrency: usize) -> Self {
        Self { get: link, put: link, hints: Hints { concurrency, ..LOCAL_HINTS }, is_local: true }
    }
}

/// How often entries are written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Number of times that all entries are written.
    pub writes: u64,
    /// Number of times that the selected fields of all entries are read.
    pub reads: u64,
}

impl Usage {
    /// Data that many analyses read: written once, read a hundred times.
    pub const READ_OFTEN: Self = Self { writes: 1, reads: 100 };
    /// Data for one step of a production: written once, read once.
    pub const READ_ONCE: Self = Self { writes: 1, reads: 1 };
    /// Data that is seldom read again: written a hundred times for each read.
    pub const WRITE_OFTEN: Self = Self { writes: 100, reads: 1 };
}

/// The settings of pages or baskets, and of clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageSettings {
    /// Codec and level.
    pub compression: Compression,
    /// Largest page, or size of a basket, in bytes before compression.
    pub page_bytes: u64,
    /// Compressed size at which a cluster of an ntuple is complete, in bytes; of a tree the size that its clusters have.
    pub cluster_bytes: u64,
    /// Entries of a complete cluster; of a tree this is a setting, the number for
    /// [`TreeOptions::with_auto_flush`](crate::writer::TreeOptions::with_auto_flush).
    pub cluster_entries: u64,
}

/// The time of writing or reading all entries once, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Encoding or decoding, of all cores together.
    pub core_seconds: f64,
    /// The same, divided by the cores.
    pub cpu_seconds: f64,
    /// All bytes through the link.
    pub transfer_seconds: f64,
    /// The latencies of all requests, divided by the concurrent ones.
    pub wait_seconds: f64,
    /// Round trips that depend on each other, at the beginning or end.
    pub round_trip_seconds: f64,
}

impl Phase {
    pub(super) fn new(
        core_seconds: f64,
        cores: usize,
        (requests, bytes): (u64, u64),
        round_trips: u32,
        link: Link,
        hints: Hints,
    ) -> Self {
        let rounds = requests.div_ceil(hints.concurrency.max(1) as u64);
        Self {
            core_seconds,
            cpu_seconds: core_seconds / cores.max(1) as f64,
            transfer_seconds: bytes as f64 / link.bytes_per_second,
            wait_seconds: rounds as f64 * link.latency_seconds,
            round_trip_seconds: f64::from(round_trips) * link.latency_seconds,
        }
    }

    /// The time of the phase.
    pub fn seconds(&self) -> f64 {
        self.cpu_seconds.max(self.transfer_seconds).max(self.wait_seconds) + self.round_trip_seconds
    }

    /// What limits the time: `CPU`, `bandwidth` or `latency`.
    pub fn limit(&self) -> &'static str {
        match self {
            it if it.cpu_seconds >= it.transfer_seconds.max(it.wait_seconds) => "CPU",
            it if it.transfer_seconds >= it.wait_seconds => "bandwidth",
            _ => "latency",
        }
    }
}

/// One way to store the entries, and its costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The settings of pages; `None` for the existing pages or baskets, copied unchanged.
    pub layout: Option<PageSettings>,
    /// Container, requests and bytes. A [`Mapping::Auto`] is resolved.
    pub cost: Cost,
    /// Bytes of all entries, before and after compression, without metadata.
    pub sizes: Sizes,
    /// Number of clusters.
    pub clusters: u64,
    /// Bytes that a writer keeps in memory: sealed pages of an open cluster, or open baskets.
    pub cluster_memory_bytes: u64,
    /// Writing all entries once.
    pub write: Phase,
    /// Reading the selected fields of all entries once.
    pub read: Phase,
    /// Reading them of single entries.
    pub take: Take,
}

/// Bytes of pages or baskets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Before compression, with the keys of baskets.
    pub unpacked_bytes: u64,
    /// As stored, with the checksums of pages and the keys of baskets.
    pub stored_bytes: u64,
}

/// Reading single entries all over the ntuple or tree, together in one call.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Take {
    /// Pages that are read: one request each.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time; `None` if no entries are taken.
    pub phase: Option<Phase>,
}

impl Take {
    /// `entries` entries at random from columns with these numbers of pages and stored bytes. Decoding all of them takes
    /// `read_cpu` seconds.
    pub(super) fn new(entries: u64, columns: &[(u64, u64)], read_cpu: f64, store: &StoreModel, cores: usize) -> Self {
        if entries == 0 {
            return Self::default();
        }
        let (mut requests, mut bytes) = (0.0, 0.0);
        for &(pages, stored) in columns.iter().filter(|(pages, _)| *pages > 0) {
            // Some entries are in the same page.
            let different = pages as f64 * -(-(entries as f64) / pages as f64).exp_m1();
            requests += different;
            bytes += different * stored as f64 / pages as f64;
        }
        let all: u64 = columns.iter().map(|(_, stored)| stored).sum();
        let cpu = read_cpu * bytes / all.max(1) as f64;
        let (requests, bytes) = (requests.ceil() as u64, bytes as u64);
        let phase = Phase::new(cpu, cores, (requests, bytes), OPENING_ROUND_TRIPS, store.get, store.hints);
        Self { requests, bytes, phase: Some(phase) }
    }
}

/// What is known of a candidate beside its requests.
pub(super) struct Contents {
    pub(super) sizes: Sizes,
    pub(super) clusters: u64,
    pub(super) memory_bytes: u64,
    /// CPU time of writing and of reading all entries, in seconds.
    pub(super) cpu: (f64, f64),
    pub(super) take: Take,
}

impl Candidate {
    pub(super) fn new(
        layout: Option<PageSettings>,
        cost: Cost,
        contents: Contents,
        (store, cores): (&StoreModel, usize),
    ) -> Self {
        let is_file = cost.container.mapping().is_none();
        let write_requests = if is_file && store.is_local { 1 } else { cost.write_requests };
        let cost = Cost { write_requests, ..cost };
        let (written, read) = ((write_requests, cost.bytes), (cost.read_requests, cost.read_bytes));
        let closing = if is_file { CLOSING_FILE_ROUND_TRIPS } else { CLOSING_ROUND_TRIPS };
        let Contents { sizes, clusters, memory_bytes: cluster_memory_bytes, cpu, take } = contents;
        Self {
            layout,
            cost,
            sizes,
            clusters,
            cluster_memory_bytes,
            write: Phase::new(cpu.0, cores, written, closing, store.put, store.hints),
            read: Phase::new(cpu.1, cores, read, OPENING_ROUND_TRIPS, store.get, store.hints),
            take,
        }
    }

    /// The time of writing and reading so often, and of taking the single entries once, in seconds.
    /// ```no_run
    /// use std::ops::ControlFlow;
    /// use tupelo::ops::tune::{Link, StoreModel, TuneOptions, Usage, best, measure};
    ///
    /// let table = tupelo::open("events.root:Events").table()?;
    /// let read = table.read(["Muon_pt"])?;
    /// let go_on = &mut |_| ControlFlow::Continue(());
    /// if let Some(measured) = measure(&table, &read, &TuneOptions::default(), go_on)? {
    ///     let disk = StoreModel::disk(Link { latency_seconds: 0.012, bytes_per_second: 250e6 }, 1);
    ///     let candidates = measured.candidates(&disk, 4);
    ///     let seconds = |it: &_| tupelo::ops::tune::Candidate::seconds(it, Usage::READ_OFTEN);
    ///     println!("{:?}", best(&candidates, &[&seconds]));
    /// }
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    pub fn seconds(&self, usage: Usage) -> f64 {
        self.sum(usage, Phase::seconds)
    }

    /// The CPU time of the same, of all cores together, in seconds.
    pub fn core_seconds(&self, usage: Usage) -> f64 {
        self.sum(usage, |phase| phase.core_seconds)
    }

    /// The requests of the same.
    pub fn requests(&self, usage: Usage) -> u64 {
        let written = usage.writes.saturating_mul(self.cost.write_requests);
        let read = usage.reads.saturating_mul(self.cost.read_requests);
        written.saturating_add(read).saturating_add(self.take.requests)
    }

    fn sum(&self, usage: Usage, of: impl Fn(&Phase) -> f64) -> f64 {
        let take = self.take.phase.as_ref().map_or(0.0, &of);
        usage.writes as f64 * of(&self.write) + usage.reads as f64 * of(&self.read) + take
    }
}

/// The bytes of sealed pages that the writer of an ntuple keeps in memory.
pub(super) fn sealed_memory(container: Container, cluster_bytes: u64) -> u64 {
    match container.mapping().is_some_and(Mapping::needs_whole_clusters) {
        true => cluster_bytes,
        false => cluster_bytes.min(WRITE_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_entries_need_a_page_of_each_column() {
        let store = StoreModel::remote(Link { latency_seconds: 0.01, bytes_per_second: 1e6 });
        let take = |entries, columns: &[_]| Take::new(entries, columns, 8.0, &store, 2);
        assert_eq!(take(0, &[(10, 100)]), Take::default());
        let one = take(1, &[(1000, 1_000_000), (1, 500)]);
        // A page of each column; nearly all of the second one.
        assert_eq!((one.requests, one.bytes / 100), (2, 13));
        // Few pages are all read, and take as long as reading everything.
        let all = take(10_000, &[(10, 1000), (20, 3000)]);
        assert_eq!((all.requests, all.bytes), (30, 4000));
        assert_eq!(all.phase.map(|phase| phase.cpu_seconds), Some(4.0));
    }
}
