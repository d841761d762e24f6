//! Objects and requests of an ntuple in an object store, computed from its page sizes for any mapping; requests for a tree
//! in a file there.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use tupelo_format::descriptor::ColumnId;
use tupelo_format::envelope::PageInfo;
use tupelo_storage::remote::put_requests;
use tupelo_storage::{Hints, range};
use tupelo_ttree::tree::Stored;

use super::batches;
use crate::decode::branches_of;
use crate::reader::{Ntuple, Read, Tree};
use crate::sink::Mapping;
use crate::source::{BlobRange, Cluster, Metadata};
use crate::{Result, plan};

/// Objects besides pages and page lists: header, footer, manifest and anchor. The record of the attempt is not counted.
const OTHER_OBJECTS: u64 = 4;
/// Requests that open an ntuple: for anchor, header and footer.
const OPENING_REQUESTS: u64 = 3;
/// Requests that open a tree: for head and tail of the file, streamer info and the record of the tree.
const OPENING_TREE_REQUESTS: u64 = 3;

/// The cost of an ntuple with a mapping. Attribute sets are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappingCost {
    /// The mapping.
    pub mapping: Mapping,
    /// Objects.
    pub objects: u64,
    /// Requests that write them: large objects are uploaded in parts.
    pub write_requests: u64,
    /// Bytes of all objects.
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
pub fn costs(ntuple: &Ntuple, read: &Read, mappings: &[Mapping], hints: Hints) -> Result<Vec<MappingCost>> {
    ntuple.in_any_store(&|it| costs_in(it.source(), read, mappings, hints)).map_err(|e| ntuple.context(e))
}

/// The cost of a tree in a store, which stores its file as one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeCost {
    /// Requests that write the object: a large one is uploaded in parts.
    pub write_requests: u64,
    /// Bytes of its baskets and its own record, without the rest of the file.
    pub bytes: u64,
    /// Requests to open it and to read the selected fields of all entries once.
    pub read_requests: u64,
    /// Bytes of these, with gaps between baskets that a request reads too.
    pub read_bytes: u64,
}

/// The cost of a tree: to write it, and to read the fields of a request to it for all entries. `hints` are those of the
/// store. Nothing but metadata is read; the tree may be stored anywhere.
///
/// # Errors
/// Corrupt if a basket lies outside of the file.
pub fn tree_cost(tree: &Tree, read: &Read, hints: Hints) -> Result<TreeCost> {
    tree_cost_in(tree, read, hints).map_err(|e| read.context(e))
}

fn tree_cost_in(tree: &Tree, read: &Read, hints: Hints) -> Result<TreeCost> {
    let (source, branches) = (tree.source(), &tree.metadata().branches);
    let (cut, others) = read.fields_in_order();
    let mut selected = HashSet::new();
    for field in cut.iter().chain(&others) {
        let mut found = Vec::new();
        branches_of(tree.tree_field(field)?, &field.name, &mut found);
        selected.extend(found.into_iter().map(|(_, branch, _)| branch));
    }
    let mut bytes = source.stored_record_bytes();
    let mut wanted: Vec<(u64, usize, BlobRange)> = Vec::new();
    source.open_others(selected.iter().copied())?;
    for (index, branch) in branches.iter().enumerate() {
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
    let (mut read_requests, mut read_bytes) = (OPENING_TREE_REQUESTS, source.stored_record_bytes());
    let most = source.request_memory().fetch_bytes();
    for own in wanted.chunk_by(|(file, ..), (next, ..)| file == next) {
        let ranges: Vec<Range<u64>> = own.iter().map(|(.., range)| range.start..range.end).collect();
        for group in batches(&ranges, most, usize::MAX, |range| range.end - range.start) {
            let plan = range::coalesce(group, hints.gap_bytes, hints.max_request_bytes);
            read_requests += plan.requests().len() as u64;
            read_bytes = read_bytes.saturating_add(plan.request_bytes());
        }
    }
    Ok(TreeCost { write_requests: put_requests(bytes), bytes, read_requests, read_bytes })
}

fn costs_in(source: &Metadata, read: &Read, mappings: &[Mapping], hints: Hints) -> Result<Vec<MappingCost>> {
    let selected = selected(read, source)?;
    let resolve = |mapping: &Mapping| mapping.resolve(false, hints.max_request_bytes);
    let groups = source.descriptor().cluster_groups();
    let metadata_bytes = metadata_bytes(source);
    let start = |mapping: &Mapping| {
        MappingCost::of_metadata(
            resolve(mapping),
            groups.len() as u64,
            metadata_bytes.0.saturating_add(metadata_bytes.1),
        )
    };
    let mut costs: Vec<MappingCost> = mappings.iter().map(start).collect();
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

impl MappingCost {
    /// The cost of an ntuple without clusters, from the number of page lists and the bytes of these, header and footer.
    pub(super) fn of_metadata(mapping: Mapping, page_lists: u64, bytes: u64) -> Self {
        let objects = OTHER_OBJECTS + page_lists;
        let read_requests = OPENING_REQUESTS + page_lists;
        Self { mapping, objects, write_requests: objects, bytes, read_requests, read_bytes: bytes }
    }

    /// Adds a number of equal clusters, by the columns and bytes of the pages of one.
    pub(super) fn add(&mut self, pages: &[(u32, u64)], selected: &HashSet<u32>, hints: Hints, clusters: u64) {
        let empty = Self { objects: 0, write_requests: 0, bytes: 0, read_requests: 0, read_bytes: 0, ..*self };
        let one = empty.with_cluster(pages, selected, hints);
        let sum = |total: u64, of_one: u64| total.saturating_add(of_one.saturating_mul(clusters));
        self.objects = sum(self.objects, one.objects);
        self.write_requests = sum(self.write_requests, one.write_requests);
        self.bytes = sum(self.bytes, one.bytes);
        self.read_requests = sum(self.read_requests, one.read_requests);
        self.read_bytes = sum(self.read_bytes, one.read_bytes);
    }

    fn with_cluster(mut self, pages: &[(u32, u64)], selected: &HashSet<u32>, hints: Hints) -> Self {
        for object in self.mapping.objects(pages.iter().copied()) {
            self.objects += 1;
            let mut end = 0u64;
            let mut wanted: Vec<Range<u64>> = Vec::new();
            for (column, bytes) in pages.get(object).unwrap_or_default() {
                let start = end;
                end = end.saturating_add(*bytes);
                if selected.contains(column) {
                    wanted.push(start..end);
                }
            }
            self.bytes = self.bytes.saturating_add(end);
            self.write_requests += put_requests(end);
            let plan = range::coalesce(&wanted, hints.gap_bytes, hints.max_request_bytes);
            let requests = plan.requests().iter().map(|request| {
                let bytes = request.end - request.start;
                bytes.div_ceil(hints.max_request_bytes.max(1))
            });
            self.read_requests += requests.sum::<u64>();
            self.read_bytes = self.read_bytes.saturating_add(plan.request_bytes());
        }
        self
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
        let mut cost = MappingCost::of_metadata(mapping, 1, 7);
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
        let mut cost = MappingCost::of_metadata(Mapping::Cluster, 1, 0);
        cost.add(&[(0, 65 << 20)], &HashSet::new(), HINTS, 3);
        // Nine parts, a request to begin and one to complete the upload.
        assert_eq!((cost.objects, cost.write_requests), (5 + 3, 5 + 3 * 11));
    }
}
