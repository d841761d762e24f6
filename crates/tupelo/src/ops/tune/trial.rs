//! What a measured sample says of all entries.

use std::collections::{BTreeMap, HashSet};

use tupelo_format::compression::Compression;
use tupelo_pages::source::FETCH_BYTES;

use super::model::{Candidate, Contents, PageSettings, Sizes, StoreModel, Take, sealed_memory};
use crate::ops::cost::{Container, Cost, FileReads, OPENING_FILE_REQUESTS, OPENING_TREE_REQUESTS, Reads};
use crate::writer::{EntrySink, PENDING_BYTES, TreeWriter, WRITE_BYTES, WriteOptions};

/// Equal clusters of a file that are laid out one after the other, at most, and their pages: the requests for all clusters
/// follow from those for these.
const MOST_CLUSTERS: u64 = 64;
const MOST_PAGES: u64 = 1 << 18;

/// A column or branch of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ColumnBytes {
    /// Number in the ntuple or tree.
    pub(super) column: u32,
    /// Bytes before compression.
    pub(super) unpacked: u64,
    /// Bytes of the pages as stored, with checksums and heads.
    pub(super) stored: u64,
    /// Number of pages.
    pub(super) pages: u64,
    /// Bytes before compression as they count for the size of a page, and those of one entry in a basket.
    pub(super) counted: u64,
    pub(super) counted_entry: u64,
    /// Bytes in front of each page: the key of a basket.
    pub(super) head: u64,
}

impl ColumnBytes {
    /// Adds a page, whose unpacked bytes count for its size.
    pub(super) fn add(&mut self, unpacked: u64, stored: u64) {
        self.unpacked += unpacked;
        self.counted += unpacked;
        self.stored += stored;
        self.pages += 1;
    }

    /// Stored bytes without heads.
    fn payload(&self) -> u64 {
        self.stored.saturating_sub(self.pages.saturating_mul(self.head))
    }
}

/// How the entries of a trial are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Ntuple,
    /// With clusters of `cluster_entries` entries, for an automatic flush of `auto_flush`. The baskets of a cluster are moved
    /// from another tree, or follow from batches of entries.
    Tree {
        auto_flush: i64,
        cluster_entries: u64,
        is_moved: bool,
    },
}

/// The measured costs of the sample with one codec and page size, of trees also one size of clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    pub(super) form: Form,
    pub(super) compression: Compression,
    pub(super) page_bytes: u64,
    /// Entries of the sample.
    pub(super) entries: u64,
    pub(super) columns: Vec<ColumnBytes>,
    /// The columns that the request reads.
    pub(super) selected: HashSet<u32>,
    /// Bytes of header and footer, or of the record of a tree without what it says of baskets.
    pub(super) envelope_bytes: u64,
    /// Bytes of the page list, or of that record, for each page.
    pub(super) list_bytes_per_page: f64,
    /// All other bytes of a file.
    pub(super) file_bytes: u64,
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

/// The pages of a cluster: their columns and stored bytes, ordered by column.
type Pages = Vec<(u32, u64)>;

impl Trial {
    /// The codec and level.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The largest page, or the size of a basket, in bytes before compression.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The clusters of a tree as they were asked for; `None` for an ntuple.
    pub fn auto_flush(&self) -> Option<i64> {
        match self.form {
            Form::Ntuple => None,
            Form::Tree { auto_flush, .. } => Some(auto_flush),
        }
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
        self.columns.iter().all(|column| column.counted + column.head + column.counted_entry <= self.page_bytes)
    }

    /// The same for larger pages.
    pub(super) fn with_page_bytes(self, page_bytes: u64) -> Self {
        Self { page_bytes, ..self }
    }

    /// Whether entries are stored like this in a container.
    pub(super) fn is_for(&self, container: Container) -> bool {
        (self.form == Form::Ntuple) == (container != Container::Tree)
    }

    /// What `entries` entries take that are like the sample. `cluster_bytes` is for ntuples.
    pub(super) fn candidate(
        &self,
        entries: u64,
        cluster_bytes: u64,
        container: Container,
        takes: u64,
        (store, cores): (&StoreModel, usize),
    ) -> Candidate {
        let clusters = self.clusters(entries, cluster_bytes);
        let (full, rest) = (self.pages(clusters.entries), self.pages(clusters.rest));
        let number = clusters.full + u64::from(clusters.rest > 0);
        let both = [(&full, clusters.full), (&rest, u64::from(clusters.rest > 0))];
        let largest: u64 = if clusters.full > 0 { &full } else { &rest }.iter().map(|(_, bytes)| bytes).sum();
        let pages: u64 = both.iter().map(|(pages, clusters)| pages.len() as u64 * clusters).sum();
        let metadata_bytes = self.envelope_bytes + (pages as f64 * self.list_bytes_per_page) as u64;
        let (mut columns, mut stored_bytes, mut head_bytes) = (BTreeMap::<u32, (u64, u64)>::new(), 0u64, 0u64);
        for (pages, clusters) in both {
            for &(column, bytes) in pages {
                let bytes = bytes.saturating_mul(clusters);
                stored_bytes = stored_bytes.saturating_add(bytes);
                // All branches are columns in their order; pages of ntuples have no heads.
                let head = self.columns.get(column as usize).map_or(0, |column| column.head);
                head_bytes = head_bytes.saturating_add(head.saturating_mul(clusters));
                if self.selected.contains(&column) {
                    let (number, sum) = columns.entry(column).or_default();
                    (*number, *sum) = (*number + clusters, sum.saturating_add(bytes));
                }
            }
        }
        let cost = match container {
            Container::Objects(mapping) => {
                let mapping = mapping.resolve(store.is_local, store.hints.max_request_bytes);
                let mut cost = Cost::of_metadata(mapping, 1, metadata_bytes);
                both.iter().for_each(|(pages, clusters)| cost.add(pages, &self.selected, store.hints, *clusters));
                cost
            }
            Container::File | Container::Tree => {
                let opening = if container == Container::Tree { OPENING_TREE_REQUESTS } else { OPENING_FILE_REQUESTS };
                let mut reads = Reads { requests: opening, bytes: metadata_bytes };
                reads += self.file_reads(both, store);
                let bytes = stored_bytes.saturating_add(metadata_bytes).saturating_add(self.file_bytes);
                Cost::of_file(container, bytes, reads)
            }
        };
        let scale = entries as f64 / self.entries.max(1) as f64;
        let cpu = (self.write_seconds * scale, self.read_seconds * scale);
        let columns: Vec<(u64, u64)> = columns.into_values().collect();
        let contents = Contents {
            sizes: Sizes {
                unpacked_bytes: ((self.unpacked_bytes() as f64 * scale) as u64).saturating_add(head_bytes),
                stored_bytes,
            },
            clusters: number,
            memory_bytes: match self.form {
                Form::Ntuple => sealed_memory(container, largest),
                Form::Tree { .. } => self.open_bytes(clusters.entries.min(entries)),
            },
            cpu,
            take: Take::new(takes, &columns, cpu.1, store, cores),
        };
        let layout = PageSettings {
            compression: self.compression,
            page_bytes: self.page_bytes,
            cluster_bytes: if self.form == Form::Ntuple { cluster_bytes } else { largest },
            cluster_entries: clusters.entries,
        };
        Candidate::new(Some(layout), cost, contents, (store, cores))
    }

    /// Entries of a cluster that takes this many stored bytes.
    pub(super) fn entries_in(&self, stored_bytes: u64) -> u64 {
        let sample: u64 = self.pages(self.entries).iter().map(|(_, bytes)| bytes).sum();
        (stored_bytes as f64 / sample.max(1) as f64 * self.entries as f64) as u64
    }

    /// A cluster of an ntuple ends by its stored or unpacked size, as the writer ends it.
    fn clusters(&self, entries: u64, cluster_bytes: u64) -> Clusters {
        let of_one = match self.form {
            Form::Tree { cluster_entries, .. } => cluster_entries,
            Form::Ntuple => {
                let most = WriteOptions::default().with_cluster_bytes(cluster_bytes).max_unpacked_cluster_bytes();
                let entries_of = |limit: u64, sample: u64| limit as f64 / sample.max(1) as f64 * self.entries as f64;
                entries_of(cluster_bytes, self.stored_bytes()).min(entries_of(most, self.unpacked_bytes())) as u64
            }
        };
        let of_one = of_one.clamp(1, entries.max(1));
        Clusters { full: entries / of_one, entries: of_one, rest: entries % of_one }
    }

    /// The pages of a cluster of `entries` entries.
    fn pages(&self, entries: u64) -> Pages {
        let scale = entries as f64 / self.entries.max(1) as f64;
        let counted = |column: &ColumnBytes| column.counted as f64 * scale;
        let of_ntuple = match self.form {
            Form::Ntuple => page_limit(&self.columns.iter().map(counted).collect::<Vec<_>>(), self.page_bytes as f64),
            Form::Tree { .. } => 0.0,
        };
        let mut pages = Vec::new();
        for column in self.columns.iter().filter(|column| column.unpacked > 0 && entries > 0) {
            let stored = (column.payload() as f64 * scale).round() as u64;
            match self.form {
                Form::Ntuple => {
                    let count = (counted(column) / of_ntuple).ceil().max(1.0) as u64;
                    let (each, more) = (stored / count, stored % count);
                    pages.extend((0..count).map(|page| (column.column, each + u64::from(page < more))));
                }
                // A basket is full when another entry might not fit; the last one has the rest.
                Form::Tree { .. } => {
                    let limit = self.page_bytes.saturating_sub(column.head + column.counted_entry).max(1) as f64;
                    let count = ((counted(column) / limit).ceil().max(1.0) as u64).min(entries);
                    let full = stored as f64 * limit / counted(column).max(limit);
                    let full = (full as u64).max(stored / entries);
                    let last = stored.saturating_sub(full * (count - 1));
                    let sizes = (1..=count).map(|basket| if basket < count { full } else { last });
                    pages.extend(sizes.map(|bytes| (column.column, column.head + bytes)));
                }
            }
        }
        pages
    }

    /// The requests for clusters of a file, each kind with its number, without metadata.
    fn file_reads(&self, kinds: [(&Pages, u64); 2], store: &StoreModel) -> Reads {
        let mut reads = FileReads::new(store.hints, FETCH_BYTES);
        let mut all = Reads::default();
        for (pages, clusters) in kinds {
            let pages = self.in_parts(pages);
            let some = clusters.min(MOST_CLUSTERS).min(MOST_PAGES / pages.len().max(1) as u64).max(1).min(clusters);
            for _ in 0..some {
                pages.iter().for_each(|(column, bytes)| reads.put(*bytes, self.selected.contains(column)));
            }
            if some < clusters {
                let Reads { requests, bytes } = reads.finish();
                let of_all = |of_some: u64| (of_some as f64 * clusters as f64 / some as f64).round() as u64;
                all += Reads { requests: of_all(requests), bytes: of_all(bytes) };
                reads = FileReads::new(store.hints, FETCH_BYTES);
            }
        }
        all += reads.finish();
        all
    }

    /// The pages of a cluster in the order of the file.
    fn in_parts(&self, pages: &Pages) -> Pages {
        let stored: u64 = pages.iter().map(|(_, bytes)| bytes).sum();
        let unpacked = self.unpacked_bytes() as f64 * stored as f64 / self.stored_bytes().max(1) as f64;
        match self.form {
            Form::Ntuple => in_parts(pages, stored.div_ceil(WRITE_BYTES), false),
            Form::Tree { is_moved: true, .. } => pages.clone(),
            // Full baskets follow each batch, and those that are not full the last one.
            Form::Tree { .. } => in_parts(pages, (unpacked as u64).div_ceil(TreeWriter::BATCH_BYTES), true),
        }
    }

    /// The most that open baskets take.
    fn open_bytes(&self, cluster_entries: u64) -> u64 {
        let scale = cluster_entries as f64 / self.entries.max(1) as f64;
        self.columns.iter().map(|column| ((column.unpacked as f64 * scale) as u64).min(self.page_bytes)).sum()
    }
}

/// Pages in the order of a file whose writer stores a cluster in parts, each ordered by column; the last page of each column
/// may come after all others.
fn in_parts(pages: &Pages, parts: u64, has_last: bool) -> Pages {
    let mut placed: Vec<(u64, (u32, u64))> = Vec::with_capacity(pages.len());
    for column in pages.chunk_by(|(a, _), (b, _)| a == b) {
        let of_parts = column.len() as u64 - u64::from(has_last);
        let part = |page: u64| if page < of_parts { page * parts / of_parts } else { parts };
        placed.extend((0..).zip(column).map(|(page, it)| (part(page), *it)));
    }
    placed.sort_by_key(|(part, _)| *part);
    placed.into_iter().map(|(_, page)| page).collect()
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
    fn many_columns_have_smaller_pages() {
        assert_eq!(page_limit(&[1e9; 8], 1e6), 1e6);
        // 64 MiB of pending values are half-filled pages of 128 KiB in 1024 columns.
        let limit = page_limit(&[1e9; 1024], 4e6);
        assert!((limit - 131_072.0).abs() < 2.0, "{limit}");
        // Columns with few values leave more for the others.
        let columns = [&[1e9; 128][..], &[0.0; 1000]].concat();
        assert!((page_limit(&columns, 4e6) - 1_048_576.0).abs() < 2.0);
    }

    #[test]
    fn parts_of_a_cluster_are_ordered_by_column() {
        let pages: Pages = vec![(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (2, 6), (2, 7)];
        assert_eq!(in_parts(&pages, 1, false), pages);
        assert_eq!(in_parts(&pages, 2, false), [(0, 1), (0, 2), (1, 5), (2, 6), (0, 3), (0, 4), (2, 7)]);
        assert_eq!(in_parts(&pages, 9, false).len(), pages.len());
        assert_eq!(in_parts(&pages, 1, true), [(0, 1), (0, 2), (0, 3), (2, 6), (0, 4), (1, 5), (2, 7)]);
    }
}
