//! What is known about a read before its first page is fetched.

use std::collections::HashSet;
use std::ops::Range;

use tupelo_schema::schema::Field;
use tupelo_storage::Hints;
use tupelo_storage::range::coalesce;

use super::{ColumnOf, ColumnTable, PageId, Segment, columns, fraction, is_flat};
use crate::Result;
use crate::source::BlobRange;

/// The pages to read for some fields and segments.
///
/// Pages of columns whose elements follow from the entries, and all pages of whole clusters, are known. Which other pages
/// of nested columns are read depends on offsets that have to be decoded first.
#[derive(Debug)]
pub struct ReadPlan<'f> {
    /// In the order of the fields, of each with those below it.
    pub columns: Vec<PlannedColumn<'f>>,
    /// The columns of each field.
    fields: Vec<Range<usize>>,
    /// Stored bytes of all pages, estimated where they are not known.
    pub(crate) stored_bytes: u64,
}

/// The pages of one column.
#[derive(Debug)]
pub struct PlannedColumn<'f> {
    pub column: ColumnOf<'f>,
    /// The pages that are known, each once.
    pub pages: Vec<(PageId, BlobRange)>,
    /// Segments of entries, each a part of a cluster, in which the pages depend on offsets.
    pub(crate) unresolved: Vec<Segment>,
}

/// Fields whose known pages are fetched together, and these pages.
#[derive(Debug)]
pub(crate) struct FetchGroup {
    pub(crate) fields: Range<usize>,
    pub(crate) pages: Vec<(PageId, BlobRange)>,
}

impl<'f> ReadPlan<'f> {
    /// Plans the read of fields over segments of entries.
    pub fn new(table: &mut ColumnTable<'_>, fields: &'f [Field], segments: &[Segment]) -> Result<Self> {
        let (mut planned, mut ranges) = (Vec::new(), Vec::with_capacity(fields.len()));
        for field in fields {
            let first = planned.len();
            for column in columns(field) {
                planned.push(PlannedColumn::new(table, column, segments)?);
            }
            ranges.push(first..planned.len());
        }
        let stored_bytes = (table.stored_bytes() as f64 * fraction(segments)) as u64;
        Ok(Self { columns: planned, fields: ranges, stored_bytes })
    }

    /// Consecutive fields whose known pages take at most `max_bytes` together, without pages for which `is_fetched` is
    /// false. Where one field takes more, or all do that have one level only, all are one group without pages: they are
    /// fetched level by level and cluster by cluster, so that no field waits for another, and requests are few.
    pub(crate) fn groups(&self, is_fetched: impl Fn(&BlobRange) -> bool, max_bytes: u64) -> Vec<FetchGroup> {
        let is_flat = is_flat(self.columns.iter().map(|planned| planned.column));
        let mut groups: Vec<FetchGroup> = Vec::new();
        let (mut known, mut bytes) = (HashSet::new(), 0);
        let size = |pages: &[(PageId, BlobRange)]| pages.iter().map(|(_, range)| range.bytes()).sum::<u64>();
        for (index, columns) in self.fields.iter().enumerate() {
            let mut own = HashSet::new();
            let pages = self.columns[columns.clone()].iter().flat_map(|column| &column.pages);
            let fetched = pages.filter(|(id, range)| is_fetched(range) && own.insert(*id));
            let pages: Vec<(PageId, BlobRange)> = fetched.copied().collect();
            let new: Vec<_> = pages.iter().filter(|(id, _)| !known.contains(id)).copied().collect();
            bytes += size(&new);
            if size(&pages) > max_bytes || (is_flat && bytes > max_bytes) {
                return vec![FetchGroup { fields: 0..self.fields.len(), pages: Vec::new() }];
            }
            match groups.last_mut().filter(|_| bytes <= max_bytes) {
                Some(group) => {
                    known.extend(own);
                    group.fields.end = index + 1;
                    group.pages.extend(new);
                }
                None => {
                    known = own;
                    bytes = size(&pages);
                    groups.push(FetchGroup { fields: index..index + 1, pages });
                }
            }
        }
        groups
    }
}

impl<'f> PlannedColumn<'f> {
    fn new(table: &mut ColumnTable<'_>, column: ColumnOf<'f>, segments: &[Segment]) -> Result<Self> {
        let (mut pages, mut unresolved): (Vec<(PageId, BlobRange)>, _) = (Vec::new(), Vec::new());
        for segment in segments {
            let of_column = if segment.count == segment.cluster.entries {
                segment.whole()
            } else if let Some(times) = column.per_entry {
                let [start, count] = [segment.start, segment.count].map(|n| n.saturating_mul(times));
                let total = segment.total.and_then(|total| total.checked_mul(times));
                Segment { start, count: count.min(Segment::ALL), total, per_entry: Some(times), ..*segment }
            } else {
                unresolved.push(*segment);
                continue;
            };
            let touched = table.pages(column.field, column.k, &of_column)?;
            // Segments may share a page.
            let known = pages.last().map(|(id, _)| *id);
            pages.extend(touched.into_iter().filter(|(id, _)| Some(*id) != known));
        }
        Ok(Self { column, pages, unresolved })
    }

    /// The pages that may be read, and whether these may be fewer: where offsets decide, all of the cluster.
    pub fn at_most(&self, table: &mut ColumnTable<'_>) -> Result<(Vec<(PageId, BlobRange)>, bool)> {
        let mut pages = self.pages.clone();
        let mut seen: HashSet<PageId> = pages.iter().map(|(id, _)| *id).collect();
        for segment in &self.unresolved {
            let touched = table.pages(self.column.field, self.column.k, &segment.whole())?;
            pages.extend(touched.into_iter().filter(|(id, _)| seen.insert(*id)));
        }
        Ok((pages, !self.unresolved.is_empty()))
    }
}

/// The number of requests that read these pages.
pub fn requests(hints: Hints, pages: &[BlobRange]) -> u64 {
    let mut by_blob = pages.to_vec();
    by_blob.sort_unstable();
    let of_blob = |ranges: &[BlobRange]| {
        let ranges: Vec<Range<u64>> = ranges.iter().map(|range| range.start..range.end).collect();
        coalesce(&ranges, hints.gap_bytes, hints.max_request_bytes).requests().len() as u64
    };
    by_blob.chunk_by(|a, b| a.blob == b.blob).map(of_blob).sum()
}

#[cfg(test)]
mod tests {
    use tupelo_schema::schema::{Kind, Primitive};

    use super::*;
    use crate::source::Blob;

    fn range(blob: u64, start: u64, end: u64) -> BlobRange {
        BlobRange { blob: Blob::numbered(blob), start, end }
    }

    /// A plan of fields with one column each, whose pages have 100 bytes; the numbers are those of the pages.
    fn plan<'f>(fields: &'f [Field], pages: &[&[u32]], per_entry: Option<u64>) -> ReadPlan<'f> {
        let place = |page: u64| range(0, page * 100, page * 100 + 100);
        let column = |(field, pages): (&'f Field, &&[u32])| PlannedColumn {
            column: ColumnOf { field, k: 0, per_entry },
            pages: pages.iter().map(|&page| (PageId { column: 0, page }, place(page.into()))).collect(),
            unresolved: Vec::new(),
        };
        let columns = fields.iter().zip(pages).map(column).collect();
        ReadPlan { columns, fields: (0..fields.len()).map(|index| index..index + 1).collect(), stored_bytes: 0 }
    }

    fn groups(pages: &[&[u32]], reads_in_place: bool, max_bytes: u64) -> Vec<(Range<usize>, Vec<u32>)> {
        groups_of(pages, None, reads_in_place, max_bytes)
    }

    fn groups_of(
        pages: &[&[u32]],
        per_entry: Option<u64>,
        reads_in_place: bool,
        max_bytes: u64,
    ) -> Vec<(Range<usize>, Vec<u32>)> {
        let fields = vec![Field::new("x", "", Kind::Primitive(Primitive::Float)); pages.len()];
        let groups = plan(&fields, pages, per_entry).groups(|_| !reads_in_place, max_bytes);
        let numbers = |group: FetchGroup| group.pages.iter().map(|(id, _)| id.page).collect();
        groups.into_iter().map(|group| (group.fields.clone(), numbers(group))).collect()
    }

    #[test]
    fn fields_are_fetched_together_up_to_a_limit() {
        assert_eq!(groups(&[&[0], &[1], &[2]], false, 1000), [(0..3, vec![0, 1, 2])]);
        assert_eq!(groups(&[&[0], &[1], &[2]], false, 200), [(0..2, vec![0, 1]), (2..3, vec![2])]);
        // With a field that is too large, all are fetched level by level.
        assert_eq!(groups(&[&[0], &[1, 2, 3], &[4], &[5]], false, 200), [(0..4, vec![])]);
        // Pages that fields share are fetched once in a group, and once more in the next one.
        assert_eq!(groups(&[&[0, 1], &[1, 2, 2]], false, 200), [(0..1, vec![0, 1]), (1..2, vec![1, 2])]);
        assert_eq!(groups(&[&[0, 1], &[0, 1], &[2]], false, 300), [(0..3, vec![0, 1, 2])]);
        assert_eq!(groups(&[], false, 300), []);
        // Fields with one level that do not fit together are not divided: each would need requests in every cluster.
        assert_eq!(groups_of(&[&[0], &[1], &[2]], Some(1), false, 200), [(0..3, vec![])]);
        assert_eq!(groups_of(&[&[0], &[1], &[2]], Some(1), false, 300), [(0..3, vec![0, 1, 2])]);
        // What is read in place is not fetched, however much it is.
        assert_eq!(groups(&[&[0, 1], &[2, 3, 4]], true, 100), [(0..2, vec![])]);
    }

    #[test]
    fn requests_are_merged_within_a_blob() {
        let hints = Hints { gap_bytes: 10, max_request_bytes: 1000, concurrency: 1 };
        assert_eq!(requests(hints, &[]), 0);
        assert_eq!(requests(hints, &[range(0, 110, 200), range(0, 0, 100), range(0, 300, 400)]), 2);
        assert_eq!(requests(hints, &[range(0, 0, 100), range(1, 100, 200), range(1, 200, 300)]), 2);
        assert_eq!(requests(hints, &[range(0, 0, 900), range(0, 900, 1800)]), 2);
    }
}
