//! Objects and requests of an ntuple in an object store, computed from its page sizes for any mapping; requests for ntuples
//! and trees in files.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::{AddAssign, Range};

use tupelo_format::descriptor::ColumnId;
use tupelo_format::envelope::PageInfo;
use tupelo_pages::decode::branches_of;
use tupelo_pages::plan;
use tupelo_pages::sink::Mapping;
use tupelo_pages::source::{BlobRange, Cluster, FETCH_BYTES, Metadata};
use tupelo_storage::remote::put_requests;
use tupelo_storage::{Hints, range};
use tupelo_ttree::tree::Stored;

use crate::Result;
use crate::reader::{Ntuple, Read, Tree};

/// Objects besides pages and page lists: header, footer, manifest and anchor. The record of the attempt is not counted.
const OTHER_OBJECTS: u64 = 4;
/// Requests that open an ntuple: for anchor, header and footer.
const OPENING_REQUESTS: u64 = 3;
/// Requests that open an ntuple in a file: for head and tail of the file, in which header and footer are, and the page list.
pub(super) const OPENING_FILE_REQUESTS: u64 = 3;
/// Requests that open a tree: for head and tail of the file, streamer info and the record of the tree.
pub(super) const OPENING_TREE_REQUESTS: u64 = 3;

/// What holds entries. As text: the mapping of objects, `file` or `tree`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// An ntuple as objects, with this mapping.
    Objects(Mapping),
    /// An ntuple in a ROOT file.
    File,
    /// A tree in a ROOT file.
    Tree,
}

impl Container {
    /// The mapping of objects.
    pub fn mapping(self) -> Option<Mapping> {
        match self {
            Self::Objects(mapping) => Some(mapping),
            Self::File | Self::Tree => None,
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Objects(mapping) => mapping.fmt(f),
            Self::File => f.write_str("file"),
            Self::Tree => f.write_str("tree"),
        }
    }
}

/// The cost of entries in a container. Attribute sets are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The container.
    pub container: Container,
    /// Objects.
    pub objects: u64,
    /// Requests that write them: large objects are uploaded in parts.
    pub write_requests: u64,
    /// Bytes of all objects; of a tree that exists those of its baskets and its own record, without the rest of the file.
    pub bytes: u64,
    /// Requests to open it and to read the selected fields of all entries once.
    pub read_requests: u64,
    /// Bytes of these, with gaps between pages that a request reads too.
    pub read_bytes: u64,
}

/// The costs of an ntuple with each mapping: to write it, and to read the fields of a request to it for all entries.
/// `hints` are those of the store. Nothing but metadata is read; the ntuple may be stored anywhere.
///
/// # Errors
/// Corrupt if a page list is damaged.
pub fn costs(ntuple: &Ntuple, read: &Read, mappings: &[Mapping], hints: Hints) -> Result<Vec<Cost>> {
    ntuple.in_any_store(&|it| costs_in(it.source(), read, mappings, hints)).map_err(|e| ntuple.context(e))
}

/// The cost of a tree: to write it, and to read the fields of a request to it for all entries. `hints` are those of the
/// store. Nothing but metadata is read; the tree may be stored anywhere.
///
/// # Errors
/// Corrupt if a basket lies outside of the file.
pub fn tree_cost(tree: &Tree, read: &Read, hints: Hints) -> Result<Cost> {
    tree_cost_in(tree, read, hints).map_err(|e| read.context(e))
}

fn tree_cost_in(tree: &Tree, read: &Read, hints: Hints) -> Result<Cost> {
    let (source, selected) = (tree.source(), selected_branches(tree, read)?);
    let record_bytes = source.stored_record_bytes();
    let mut bytes = record_bytes;
    let mut wanted: Vec<(u64, usize, BlobRange)> = Vec::new();
    source.open_others(selected.iter().copied())?;
    for (index, branch) in tree.metadata().branches.iter().enumerate() {
        for (basket, place) in branch.baskets.iter().enumerate() {
            let Stored::InFile { bytes: own, .. } = place.stored else { continue };
            bytes = bytes.saturating_add(own.into());
            if selected.contains(&index)
                && let Some(range) = source.range(branch, basket)?
            {
                wanted.push((range.blob.number, source.cluster_of(place.entries.start), range));
            }
        }
    }
    // As they are read: one cluster after the other, of each file.
    wanted.sort_unstable();
    let mut reads = Reads { requests: OPENING_TREE_REQUESTS, bytes: record_bytes };
    for own in wanted.chunk_by(|(file, ..), (next, ..)| file == next) {
        let mut of_file = FileReads::new(hints, source.request_memory().fetch_bytes());
        own.iter().for_each(|(.., range)| of_file.add(range.start..range.end));
        reads += of_file.finish();
    }
    Ok(Cost::of_file(Container::Tree, bytes, reads))
}

/// The branches of the fields of a request to a tree.
pub(super) fn selected_branches(tree: &Tree, read: &Read) -> Result<HashSet<usize>> {
    let (cut, others) = read.fields_in_order();
    let mut selected = HashSet::new();
    for field in cut.iter().chain(&others) {
        let mut found = Vec::new();
        branches_of(tree.tree_field(field)?, &field.name, &mut found);
        selected.extend(found.into_iter().map(|(_, branch, _)| branch));
    }
    Ok(selected)
}

/// The cost of an ntuple in a file to which its pages are copied as they are. `hints` are those of the store of the file.
pub(super) fn file_cost(ntuple: &Ntuple, read: &Read, hints: Hints) -> Result<Cost> {
    let cost = |source: &Metadata| {
        let selected = selected(read, source)?;
        let (envelopes, lists) = metadata_bytes(source);
        let metadata = envelopes.saturating_add(lists);
        let mut all = FileReads::new(hints, FETCH_BYTES);
        for group in 0..source.descriptor().cluster_groups().len() {
            for cluster in source.group_clusters(group)? {
                each_page(source, &cluster, |column, _, bytes| all.put(bytes, selected.contains(&column)))?;
            }
        }
        let bytes = metadata.saturating_add(all.position);
        let mut reads = Reads { requests: OPENING_FILE_REQUESTS, bytes: metadata };
        reads += all.finish();
        Ok(Cost::of_file(Container::File, bytes, reads))
    };
    ntuple.in_any_store(&|it| cost(it.source())).map_err(|e| ntuple.context(e))
}

/// Requests that read, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) requests: u64,
    pub(super) bytes: u64,
}

impl AddAssign for Reads {
    fn add_assign(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Adds up the requests for ranges of a file, as readers make them: of a number of bytes that are fetched together, near
/// ranges are one request.
#[derive(Debug)]
pub(super) struct FileReads {
    hints: Hints,
    most_bytes: u64,
    /// Where the next range is put.
    position: u64,
    batch: Vec<Range<u64>>,
    batch_bytes: u64,
    reads: Reads,
}

impl FileReads {
    pub(super) fn new(hints: Hints, most_bytes: u64) -> Self {
        Self { hints, most_bytes, position: 0, batch: Vec::new(), batch_bytes: 0, reads: Reads::default() }
    }

    /// Adds a range that is read.
    fn add(&mut self, range: Range<u64>) {
        let bytes = range.end.saturating_sub(range.start);
        if self.batch_bytes.saturating_add(bytes) > self.most_bytes {
            self.end_batch();
        }
        self.batch_bytes = self.batch_bytes.saturating_add(bytes);
        self.batch.push(range);
    }

    /// Puts a page behind those before it.
    pub(super) fn put(&mut self, bytes: u64, is_read: bool) {
        let start = self.position;
        self.position = start.saturating_add(bytes);
        if is_read {
            self.add(start..self.position);
        }
    }

    fn end_batch(&mut self) {
        self.reads += requests(&self.batch, self.hints);
        self.batch.clear();
        self.batch_bytes = 0;
    }

    pub(super) fn finish(mut self) -> Reads {
        self.end_batch();
        self.reads
    }
}

/// The requests for ranges that are fetched together.
fn requests(ranges: &[Range<u64>], hints: Hints) -> Reads {
    let plan = range::coalesce(ranges, hints.gap_bytes, hints.max_request_bytes);
    let of_one = |request: &Range<u64>| (request.end - request.start).div_ceil(hints.max_request_bytes.max(1));
    Reads { requests: plan.requests().iter().map(of_one).sum(), bytes: plan.request_bytes() }
}

fn costs_in(source: &Metadata, read: &Read, mappings: &[Mapping], hints: Hints) -> Result<Vec<Cost>> {
    let selected = selected(read, source)?;
    let resolve = |mapping: &Mapping| mapping.resolve(false, hints.max_request_bytes);
    let groups = source.descriptor().cluster_groups();
    let metadata_bytes = metadata_bytes(source);
    let start = |mapping: &Mapping| {
        Cost::of_metadata(resolve(mapping), groups.len() as u64, metadata_bytes.0.saturating_add(metadata_bytes.1))
    };
    let mut costs: Vec<Cost> = mappings.iter().map(start).collect();
    for group in 0..groups.len() {
        for cluster in source.group_clusters(group)? {
            let mut pages: Vec<(u32, u64)> = Vec::new();
            each_page(source, &cluster, |column, _, bytes| pages.push((column, bytes)))?;
            costs.iter_mut().for_each(|cost| cost.add(&pages, &selected, hints, 1));
        }
    }
    Ok(costs)
}

/// Of each selected column that has pages, their number and stored bytes.
pub(super) fn selected_pages(ntuple: &Ntuple, read: &Read) -> Result<Vec<(u64, u64)>> {
    let count = |source: &Metadata| {
        let selected = selected(read, source)?;
        let mut pages: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for group in 0..source.descriptor().cluster_groups().len() {
            for cluster in source.group_clusters(group)? {
                each_page(source, &cluster, |column, _, bytes| {
                    let (number, sum) = pages.entry(column).or_default();
                    (*number, *sum) = (*number + 1, sum.saturating_add(bytes));
                })?;
            }
        }
        let chosen = pages.into_iter().filter(|(column, _)| selected.contains(column));
        Ok(chosen.map(|(_, pages)| pages).collect())
    };
    ntuple.in_any_store(&|it| count(it.source())).map_err(|e| ntuple.context(e))
}

/// The same of the selected branches of a tree, and their baskets.
pub(super) fn selected_baskets(tree: &Tree, read: &Read) -> Result<Vec<(u64, u64)>> {
    let selected = selected_branches(tree, read)?;
    let own = tree.metadata().branches.iter().enumerate().filter(|(index, _)| selected.contains(index));
    let baskets = own.map(|(_, branch)| {
        let stored = branch.baskets.iter().map(|place| place.stored.bytes()).fold(0, u64::saturating_add);
        (branch.baskets.len() as u64, stored)
    });
    Ok(baskets.filter(|(baskets, _)| *baskets > 0).collect())
}

/// Stored bytes of header and footer, and of all page lists.
pub(super) fn metadata_bytes(source: &Metadata) -> (u64, u64) {
    let links = [source.store().anchor().header, source.store().anchor().footer];
    let envelopes = links.iter().map(|link| link.locator.stored_bytes());
    let lists = source.descriptor().cluster_groups().iter().map(|group| group.page_list.locator.stored_bytes());
    (envelopes.fold(0, u64::saturating_add), lists.fold(0, u64::saturating_add))
}

/// Passes the column, the record and the stored bytes of each page of a cluster, by column.
pub(super) fn each_page(
    source: &Metadata,
    cluster: &Cluster,
    mut found: impl FnMut(u32, &PageInfo, u64),
) -> Result<()> {
    for column in 0..source.listed_columns(cluster)? as u32 {
        let Some(stored) = source.column_pages(cluster, ColumnId::from(column))? else { continue };
        for page in &stored.pages {
            found(column, page, source.store().page_range(cluster.number, column, page)?.bytes());
        }
    }
    Ok(())
}

impl Cost {
    /// The cost of an ntuple without clusters, from the number of page lists and the bytes of these, header and footer.
    pub(super) fn of_metadata(mapping: Mapping, page_lists: u64, bytes: u64) -> Self {
        let objects = OTHER_OBJECTS + page_lists;
        let read_requests = OPENING_REQUESTS + page_lists;
        let container = Container::Objects(mapping);
        Self { container, objects, write_requests: objects, bytes, read_requests, read_bytes: bytes }
    }

    /// The cost of a file in a store, which stores it as one object.
    pub(super) fn of_file(container: Container, bytes: u64, reads: Reads) -> Self {
        let (read_requests, read_bytes) = (reads.requests, reads.bytes);
        Self { container, objects: 1, write_requests: put_requests(bytes), bytes, read_requests, read_bytes }
    }

    /// Adds a number of equal clusters, by the columns and bytes of the pages of one.
    pub(super) fn add(&mut self, pages: &[(u32, u64)], selected: &HashSet<u32>, hints: Hints, clusters: u64) {
        let Some(mapping) = self.container.mapping() else { return };
        let sum = |total: u64, of_one: u64| total.saturating_add(of_one.saturating_mul(clusters));
        for object in mapping.objects(pages.iter().copied()) {
            let mut end = 0u64;
            let mut wanted: Vec<Range<u64>> = Vec::new();
            for (column, bytes) in pages.get(object).unwrap_or_default() {
                let start = end;
                end = end.saturating_add(*bytes);
                if selected.contains(column) {
                    wanted.push(start..end);
                }
            }
            let reads = requests(&wanted, hints);
            self.objects = sum(self.objects, 1);
            self.write_requests = sum(self.write_requests, put_requests(end));
            self.bytes = sum(self.bytes, end);
            self.read_requests = sum(self.read_requests, reads.requests);
            self.read_bytes = sum(self.read_bytes, reads.bytes);
        }
    }
}

/// The columns of the fields of a request, in all representations.
pub(super) fn selected(read: &Read, source: &Metadata) -> Result<HashSet<u32>> {
    let mut columns = HashSet::new();
    let (cut, others) = read.fields_in_order();
    for column in cut.iter().chain(&others).flat_map(plan::columns) {
        let Some(id) = column.field.id else { continue };
        let own = source.descriptor().field(id)?.representations.iter().flatten();
        columns.extend(own.map(|column| column.index() as u32));
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINTS: Hints = Hints { gap_bytes: 10, max_request_bytes: 1000, concurrency: 1 };

    /// Objects, bytes, requests to read and their bytes, for column 1 of three columns of three pages.
    fn of(mapping: Mapping) -> (u64, u64, u64, u64) {
        let pages: Vec<(u32, u64)> = (0..3).flat_map(|column| [(column, 400); 3]).collect();
        let mut cost = Cost::of_metadata(mapping, 1, 7);
        cost.add(&pages, &HashSet::from([1]), HINTS, 2);
        assert_eq!(cost.write_requests, cost.objects);
        // Those of metadata are the same for all mappings, and of two clusters each has one half.
        ((cost.objects - 5) / 2, (cost.bytes - 7) / 2, (cost.read_requests - 4) / 2, (cost.read_bytes - 7) / 2)
    }

    #[test]
    fn objects_and_requests_follow_the_mapping() {
        assert_eq!(of(Mapping::Page), (9, 3600, 3, 1200));
        assert_eq!(of(Mapping::Cage(800)), (6, 3600, 2, 1200));
        // A request has at most 1000 bytes.
        assert_eq!(of(Mapping::PageGroup), (3, 3600, 2, 1200));
        assert_eq!(of(Mapping::Cluster), (1, 3600, 2, 1200));
    }

    #[test]
    fn large_objects_are_uploaded_in_parts() {
        let mut cost = Cost::of_metadata(Mapping::Cluster, 1, 0);
        cost.add(&[(0, 65 << 20)], &HashSet::new(), HINTS, 3);
        // Nine parts, a request to begin and one to complete the upload.
        assert_eq!((cost.objects, cost.write_requests), (5 + 3, 5 + 3 * 11));
    }

    #[test]
    fn ranges_of_a_file_are_fetched_in_batches() {
        let reads = |ranges: &[Range<u64>]| {
            let mut all = FileReads::new(HINTS, 500);
            ranges.iter().for_each(|range| all.add(range.clone()));
            let Reads { requests, bytes } = all.finish();
            (requests, bytes)
        };
        assert_eq!(reads(&[]), (0, 0));
        assert_eq!(reads(&[0..100, 110..200, 211..300]), (2, 289));
        // The second range does not fit into the first batch, and the third is larger than a request.
        assert_eq!(reads(&[0..300, 300..501, 501..2600]), (1 + 1 + 3, 2600));
        let mut all = FileReads::new(HINTS, 500);
        for (bytes, is_read) in [(100, true), (5, false), (100, true), (20, false), (1, true)] {
            all.put(bytes, is_read);
        }
        assert_eq!((all.position, all.finish()), (226, Reads { requests: 2, bytes: 206 }));
    }
}
