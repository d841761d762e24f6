//! Objects and requests of an ntuple in an object store, computed from its page sizes for any mapping.

use std::collections::HashSet;
use std::ops::Range;

use tupelo_format::descriptor::ColumnId;
use tupelo_storage::{Hints, range};

use crate::Result;
use crate::reader::Read;
use crate::sink::Mapping;
use crate::source::Metadata;
use crate::{Error, plan};

/// Objects besides pages and page lists: header, footer, manifest and anchor.
const OTHER_OBJECTS: u64 = 4;
/// Requests that open an ntuple: for anchor, header and footer.
const OPENING_REQUESTS: u64 = 3;

/// What an ntuple takes with a mapping. Attribute sets are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappingCost {
    /// The mapping.
    pub mapping: Mapping,
    /// Objects, each of which is written by one request.
    pub objects: u64,
    /// Bytes of all objects.
    pub bytes: u64,
    /// Requests to open it and to read the selected fields of all entries once.
    pub read_requests: u64,
    /// Bytes of these, with gaps between pages that a request reads too.
    pub read_bytes: u64,
}

/// The costs of an ntuple with each mapping: to write it, and to read the fields of a request for all entries. `hints`
/// are those of the store. Nothing but metadata is read; the ntuple may be stored anywhere.
///
/// # Errors
/// Corrupt if a page list is damaged; unsupported for what is not an ntuple.
pub fn costs(read: &Read, mappings: &[Mapping], hints: Hints) -> Result<Vec<MappingCost>> {
    let ntuple = read.source().as_ntuple().ok_or_else(|| Error::unsupported("costs are those of one ntuple"))?;
    let source = ntuple.source();
    let selected = selected(read, source)?;
    let resolve = |mapping: &Mapping| mapping.resolve(false, hints.max_request_bytes);
    let groups = source.descriptor().cluster_groups();
    let links = [source.store().anchor().header, source.store().anchor().footer];
    let envelope_bytes: u64 = links.iter().map(|link| link.locator.stored_bytes()).fold(0, u64::saturating_add);
    let list_bytes = groups.iter().map(|group| group.page_list.locator.stored_bytes()).fold(0, u64::saturating_add);
    let start = |mapping: &Mapping| MappingCost {
        mapping: resolve(mapping),
        objects: OTHER_OBJECTS + groups.len() as u64,
        bytes: envelope_bytes.saturating_add(list_bytes),
        read_requests: OPENING_REQUESTS + groups.len() as u64,
        read_bytes: envelope_bytes.saturating_add(list_bytes),
    };
    let mut costs: Vec<MappingCost> = mappings.iter().map(start).collect();
    for group in 0..groups.len() {
        for cluster in source.group_clusters(group)? {
            let mut pages: Vec<(u32, u64)> = Vec::new();
            for column in 0..source.listed_columns(&cluster)? as u32 {
                let Some(stored) = source.column_pages(&cluster, ColumnId::from(column))? else { continue };
                for page in &stored.pages {
                    pages.push((column, source.store().page_range(cluster.number, column, page)?.bytes()));
                }
            }
            costs.iter_mut().for_each(|cost| cost.add(&pages, &selected, hints));
        }
    }
    Ok(costs)
}

impl MappingCost {
    /// Adds a cluster, by the columns and bytes of its pages.
    fn add(&mut self, pages: &[(u32, u64)], selected: &HashSet<u32>, hints: Hints) {
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
            let plan = range::coalesce(&wanted, hints.gap_bytes, hints.max_request_bytes);
            let requests = plan.requests().iter().map(|request| {
                let bytes = request.end - request.start;
                bytes.div_ceil(hints.max_request_bytes.max(1))
            });
            self.read_requests += requests.sum::<u64>();
            self.read_bytes = self.read_bytes.saturating_add(plan.request_bytes());
        }
    }
}

/// The columns of the fields of a request, in all representations.
fn selected(read: &Read, source: &Metadata) -> Result<HashSet<u32>> {
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

    /// Requests and bytes for column 1 of three columns of three pages.
    fn of(mapping: Mapping) -> (u64, u64, u64, u64) {
        let pages: Vec<(u32, u64)> = (0..3).flat_map(|column| [(column, 400); 3]).collect();
        let mut cost = MappingCost { mapping, objects: 0, bytes: 0, read_requests: 0, read_bytes: 0 };
        cost.add(&pages, &HashSet::from([1]), HINTS);
        (cost.objects, cost.bytes, cost.read_requests, cost.read_bytes)
    }

    #[test]
    fn objects_and_requests_follow_the_mapping() {
        assert_eq!(of(Mapping::Page), (9, 3600, 3, 1200));
        assert_eq!(of(Mapping::Cage(800)), (6, 3600, 2, 1200));
        // A request has at most 1000 bytes.
        assert_eq!(of(Mapping::PageGroup), (3, 3600, 2, 1200));
        assert_eq!(of(Mapping::Cluster), (1, 3600, 2, 1200));
    }
}
