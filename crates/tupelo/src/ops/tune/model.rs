//! The model: requests, bytes and CPU time of an ntuple become seconds.
//!
//! Requests follow the rules of [`MappingCost`]. Decoding, transfer and waiting for requests overlap, so the slowest of
//! them is the time; only the round trips that depend on each other are added.

use std::collections::{BTreeMap, HashSet};

use tupelo_format::compression::Compression;
use tupelo_storage::Hints;
use tupelo_storage::remote::REMOTE_HINTS;

use crate::ops::cost::MappingCost;
use crate::sink::Mapping;
use crate::writer::{PENDING_BYTES, WRITE_BYTES, WriteOptions};

/// Round trips of opening an ntuple that depend on each other: the anchor, then header, footer and page lists.
const OPENING_ROUND_TRIPS: u32 = 2;
/// Round trips at the end of writing: header, footer and page list, the manifest, the record of the attempt, a check, and the
/// anchor; before the first page, a look at the existing anchor.
const CLOSING_ROUND_TRIPS: u32 = 6;

/// One direction of the connection to a store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Time of a request for few bytes, in seconds.
    pub latency_seconds: f64,
    /// Bytes per second of all concurrent requests together; infinite without a limit.
    pub bytes_per_second: f64,
}

/// The store of the objects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoreModel {
    /// Reading.
    pub get: Link,
    /// Writing.
    pub put: Link,
    /// Which ranges become one request, and how many requests are concurrent.
    pub hints: Hints,
    /// Whether reading costs little more than copying the bytes, as in a directory.
    pub reads_in_place: bool,
}

impl StoreModel {
    /// A server, with the same link in both directions.
    pub fn remote(link: Link) -> Self {
        Self { get: link, put: link, hints: REMOTE_HINTS, reads_in_place: false }
    }
}

/// The settings of pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageSettings {
    /// Codec and level.
    pub compression: Compression,
    /// Largest page, in bytes before compression.
    pub page_bytes: u64,
    /// Compressed size at which a cluster is complete, in bytes.
    pub cluster_bytes: u64,
}

/// The time of writing or reading all entries once, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Encoding or decoding, divided by the cores.
    pub cpu_seconds: f64,
    /// All bytes through the link.
    pub transfer_seconds: f64,
    /// The latencies of all requests, divided by the concurrent ones.
    pub wait_seconds: f64,
    /// Round trips that depend on each other, at the beginning or end.
    pub round_trip_seconds: f64,
}

impl Phase {
    /// `cpu_seconds` are those of all cores together.
    pub(super) fn new(
        cpu_seconds: f64,
        cores: usize,
        (requests, bytes): (u64, u64),
        round_trips: u32,
        link: Link,
        hints: Hints,
    ) -> Self {
        let rounds = requests.div_ceil(hints.concurrency.max(1) as u64);
        Self {
            cpu_seconds: cpu_seconds / cores.max(1) as f64,
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

/// One way to store the ntuple, and its costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The settings of pages; `None` for the existing pages, copied unchanged.
    pub layout: Option<PageSettings>,
    /// Objects, requests and bytes. A [`Mapping::Auto`] is resolved.
    pub cost: MappingCost,
    /// Number of clusters.
    pub clusters: u64,
    /// Stored bytes of a complete cluster that a writer keeps in memory.
    pub cluster_memory_bytes: u64,
    /// Writing all entries once.
    pub write: Phase,
    /// Reading the selected fields of all entries once.
    pub read: Phase,
    /// Reading them of single entries.
    pub take: Take,
}

/// Reading single entries all over the ntuple, together in one call.
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

impl Candidate {
    pub(super) fn new(
        layout: Option<PageSettings>,
        cost: MappingCost,
        (clusters, cluster_bytes): (u64, u64),
        (write_cpu, read_cpu): (f64, f64),
        take: Take,
        (store, cores): (&StoreModel, usize),
    ) -> Self {
        let written = (cost.write_requests, cost.bytes);
        let read = (cost.read_requests, cost.read_bytes);
        Self {
            layout,
            cost,
            clusters,
            cluster_memory_bytes: match cost.mapping.needs_whole_clusters() {
                true => cluster_bytes,
                false => cluster_bytes.min(WRITE_BYTES),
            },
            write: Phase::new(write_cpu, cores, written, CLOSING_ROUND_TRIPS, store.put, store.hints),
            read: Phase::new(read_cpu, cores, read, OPENING_ROUND_TRIPS, store.get, store.hints),
            take,
        }
    }

    /// The time of writing once, reading `reads` times and taking the single entries once, in seconds.
    pub fn seconds(&self, reads: u64) -> f64 {
        let take = self.take.phase.map_or(0.0, |phase| phase.seconds());
        self.write.seconds() + reads as f64 * self.read.seconds() + take
    }

    /// The requests of the same.
    pub fn requests(&self, reads: u64) -> u64 {
        let read = reads.saturating_mul(self.cost.read_requests);
        self.cost.write_requests.saturating_add(read).saturating_add(self.take.requests)
    }
}

/// A column of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnBytes {
    /// Number in the ntuple.
    pub(super) column: u32,
    /// Bytes before compression.
    pub(super) unpacked: u64,
    /// Bytes of the pages as stored, checksums included.
    pub(super) stored: u64,
}

/// The measured costs of the sample with one codec and page size.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub(super) compression: Compression,
    pub(super) page_bytes: u64,
    /// Entries of the sample.
    pub(super) entries: u64,
    pub(super) columns: Vec<ColumnBytes>,
    /// The columns that the request reads.
    pub(super) selected: HashSet<u32>,
    /// Bytes of header and footer.
    pub(super) envelope_bytes: u64,
    /// Bytes of the page list for each page.
    pub(super) list_bytes_per_page: f64,
    /// CPU time of encoding all columns, in seconds.
    pub(super) write_seconds: f64,
    /// CPU time of decoding the selected columns, in seconds.
    pub(super) read_seconds: f64,
}

/// The clusters that `entries` entries make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clusters {
    /// Complete clusters, and the entries of one.
    full: u64,
    entries: u64,
    /// Entries of the last cluster; 0 if all are complete.
    rest: u64,
}

impl Trial {
    /// The codec and level.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The largest page, in bytes before compression.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Stored bytes of the sample.
    pub fn stored_bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.stored).sum()
    }

    /// Bytes of the sample before compression.
    pub fn unpacked_bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.unpacked).sum()
    }

    /// CPU time of encoding all columns of the sample, in seconds.
    pub fn write_seconds(&self) -> f64 {
        self.write_seconds
    }

    /// CPU time of decoding the selected columns of the sample, in seconds.
    pub fn read_seconds(&self) -> f64 {
        self.read_seconds
    }

    /// Whether no column of the sample is larger than a page.
    pub(super) fn has_whole_columns(&self) -> bool {
        self.columns.iter().all(|column| column.unpacked <= self.page_bytes)
    }

    /// The same for larger pages.
    pub(super) fn with_page_bytes(self, page_bytes: u64) -> Self {
        Self { page_bytes, ..self }
    }

    /// What an ntuple of `entries` entries takes that are like the sample.
    pub(super) fn candidate(
        &self,
        entries: u64,
        cluster_bytes: u64,
        mapping: Mapping,
        takes: u64,
        (store, cores): (&StoreModel, usize),
    ) -> Candidate {
        let layout = PageSettings { compression: self.compression, page_bytes: self.page_bytes, cluster_bytes };
        let clusters = self.clusters(entries, cluster_bytes);
        let (full, rest) = (self.pages(clusters.entries), self.pages(clusters.rest));
        let pages = full.len() as u64 * clusters.full + rest.len() as u64;
        let metadata_bytes = self.envelope_bytes + (pages as f64 * self.list_bytes_per_page) as u64;
        let mapping = mapping.resolve(store.reads_in_place, store.hints.max_request_bytes);
        let mut cost = MappingCost::of_metadata(mapping, 1, metadata_bytes);
        cost.add(&full, &self.selected, store.hints, clusters.full);
        cost.add(&rest, &self.selected, store.hints, u64::from(clusters.rest > 0));
        let scale = entries as f64 / self.entries.max(1) as f64;
        let cpu = (self.write_seconds * scale, self.read_seconds * scale);
        let largest = if clusters.full > 0 { &full } else { &rest };
        let largest_bytes = largest.iter().map(|(_, bytes)| bytes).sum();
        let number = clusters.full + u64::from(clusters.rest > 0);
        let mut selected: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (pages, clusters) in [(&full, clusters.full), (&rest, u64::from(clusters.rest > 0))] {
            for (column, bytes) in pages.iter().filter(|(column, _)| self.selected.contains(column)) {
                let (number, sum) = selected.entry(*column).or_default();
                (*number, *sum) = (*number + clusters, sum.saturating_add(bytes.saturating_mul(clusters)));
            }
        }
        let selected: Vec<(u64, u64)> = selected.into_values().collect();
        let take = Take::new(takes, &selected, cpu.1, store, cores);
        Candidate::new(Some(layout), cost, (number, largest_bytes), cpu, take, (store, cores))
    }

    /// A cluster ends by its stored or unpacked size, as the writer ends it.
    fn clusters(&self, entries: u64, cluster_bytes: u64) -> Clusters {
        let most_unpacked = WriteOptions::default().with_cluster_bytes(cluster_bytes).max_unpacked_cluster_bytes();
        let entries_of = |limit: u64, sample: u64| limit as f64 / sample.max(1) as f64 * self.entries as f64;
        let by_size = entries_of(cluster_bytes, self.stored_bytes());
        let of_one = by_size.min(entries_of(most_unpacked, self.unpacked_bytes()));
        let of_one = (of_one as u64).clamp(1, entries.max(1));
        Clusters { full: entries / of_one, entries: of_one, rest: entries % of_one }
    }

    /// The pages of a cluster of `entries` entries: their columns and stored bytes.
    fn pages(&self, entries: u64) -> Vec<(u32, u64)> {
        let scale = entries as f64 / self.entries.max(1) as f64;
        let unpacked: Vec<f64> = self.columns.iter().map(|column| column.unpacked as f64 * scale).collect();
        let limit = page_limit(&unpacked, self.page_bytes as f64);
        let mut pages = Vec::new();
        for (column, unpacked) in self.columns.iter().zip(unpacked).filter(|(_, unpacked)| *unpacked > 0.0) {
            let count = (unpacked / limit).ceil().max(1.0) as u64;
            let stored = (column.stored as f64 * scale).round() as u64;
            let (each, more) = (stored / count, stored % count);
            pages.extend((0..count).map(|page| (column.column, each + u64::from(page < more))));
        }
        pages
    }
}

/// The size at which pages end, for the unpacked bytes of the columns of a cluster. With many columns the writer ends the
/// largest pages early, so that all pending values together take [`PENDING_BYTES`]: on average half of a page is pending.
fn page_limit(columns: &[f64], page_bytes: f64) -> f64 {
    let pending = |limit: f64| columns.iter().map(|bytes| bytes.min(limit) / 2.0).sum::<f64>();
    let most = PENDING_BYTES as f64;
    if pending(page_bytes) <= most {
        return page_bytes;
    }
    let (mut low, mut high) = (1.0, page_bytes);
    // Halving an interval of at most 1 GiB to a byte.
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        *(if pending(middle) <= most { &mut low } else { &mut high }) = middle;
    }
    low
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

    #[test]
    fn many_columns_have_smaller_pages() {
        assert_eq!(page_limit(&[1e9; 8], 1e6), 1e6);
        // 64 MiB of pending values are half-filled pages of 128 KiB in 1024 columns.
        let limit = page_limit(&[1e9; 1024], 4e6);
        assert!((limit - 131_072.0).abs() < 2.0, "{limit}");
        // Columns with few values leave more for the others.
        let columns = [&[1e9; 128][..], &[0.0; 1000]].concat();
        assert!((page_limit(&columns, 4e6) - 1_048_576.0).abs() < 2.0);
    }
}
