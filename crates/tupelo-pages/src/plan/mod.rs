//! The pages of a request, computed from the metadata as far as possible before anything is fetched.

mod boundary;
mod columns;
mod entry_set;
mod read_plan;

use std::ops::{Bound, Range, RangeBounds};

use tupelo_format::descriptor::Descriptor;

pub use boundary::batch_end;
pub use columns::{ClusterColumn, ColumnTable, Continuity, PageId, PageSlice};
pub use entry_set::EntrySet;
pub use read_plan::{ReadPlan, requests};
use tupelo_schema::schema::{Field, Kind};

use crate::source::Cluster;

/// A range of a field's elements within one cluster.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// The cluster of the entries.
    pub cluster: Cluster,
    /// First element, counted from the start of the cluster.
    pub(crate) start: u64,
    /// Number of elements.
    pub(crate) count: u64,
    /// Elements that the field has in the whole cluster, where that is known without reading anything.
    pub(crate) total: Option<u64>,
    /// Elements that every entry has, where all have the same.
    pub(crate) per_entry: Option<u64>,
}

impl Segment {
    /// A count that means all elements.
    const ALL: u64 = u64::MAX / 2;

    /// All elements of a column in the cluster, however many there are.
    fn whole(self) -> Self {
        Self { start: 0, count: Self::ALL, total: None, per_entry: None, ..self }
    }

    /// All entries of a cluster, as elements of top-level fields.
    pub fn of_cluster(cluster: &Cluster) -> Self {
        let (start, count) = (0, cluster.entries);
        Self { cluster: *cluster, start, count, total: Some(count), per_entry: Some(1) }
    }
}

/// The parts of clusters that hold entries, as elements of top-level fields.
pub fn segments(clusters: &[Cluster], entries: &EntrySet) -> Vec<Segment> {
    let mut clusters = clusters.iter();
    let mut cluster = clusters.next();
    let mut segments: Vec<Segment> = Vec::with_capacity(entries.ranges().len());
    for range in entries.ranges() {
        let mut next = range.start;
        while let Some(current) = cluster.filter(|_| next < range.end) {
            let own = current.entry_range();
            if next >= own.end {
                cluster = clusters.next();
                continue;
            }
            let (start, end) = (next.max(own.start), range.end.min(own.end));
            if start < end {
                segments.push(Segment {
                    cluster: *current,
                    start: start - own.start,
                    count: end - start,
                    total: Some(current.entries),
                    per_entry: Some(1),
                });
            }
            next = own.end.min(range.end);
        }
    }
    segments
}

/// The part of a range that is within the first `entries` entries.
pub fn truncated(range: impl RangeBounds<u64>, entries: u64) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => entries,
    };
    let end = end.min(entries);
    start.min(end)..end
}

/// The fraction of the entries of their clusters that is in the segments.
fn fraction(segments: &[Segment]) -> f64 {
    let clusters = segments.chunk_by(|a, b| a.cluster.number == b.cluster.number);
    let all: u64 = clusters.map(|segments| segments[0].cluster.entries).sum();
    segments.iter().map(|segment| segment.count).sum::<u64>() as f64 / all.max(1) as f64
}

/// A column of a field or of one below it.
#[derive(Debug, Clone, Copy)]
pub struct ColumnOf<'f> {
    /// The field of the column.
    pub field: &'f Field,
    /// Its number among the columns of the field.
    pub k: usize,
    /// Elements that every entry has, where that follows from the schema.
    pub(crate) per_entry: Option<u64>,
}

impl ColumnOf<'_> {
    /// Dotted path of its field.
    pub fn path(&self, descriptor: &Descriptor) -> String {
        self.field.id.map_or_else(|| self.field.name.clone(), |id| descriptor.path(id))
    }
}

/// Every column of a field and of those below it.
pub fn columns(field: &Field) -> Vec<ColumnOf<'_>> {
    let mut columns = Vec::new();
    collect(field, Some(1), &mut columns);
    columns
}

/// Whether the elements of all columns follow from the entries, so that no column has to be read before another one.
pub fn is_flat<'f>(columns: impl IntoIterator<Item = ColumnOf<'f>>) -> bool {
    columns.into_iter().all(|column| column.per_entry.is_some())
}

fn collect<'f>(field: &'f Field, per_entry: Option<u64>, columns: &mut Vec<ColumnOf<'f>>) {
    let (own, below) = match &field.kind {
        Kind::Record(_) | Kind::Tuple(_) | Kind::Wrapper(_) => (0, per_entry),
        Kind::Array { size, .. } => (0, per_entry.and_then(|times| times.checked_mul(*size))),
        Kind::String | Kind::Streamer => (2, None),
        _ => (1, None),
    };
    let first = match &field.kind {
        Kind::Bitset { size } => per_entry.and_then(|times| times.checked_mul(*size)),
        _ => per_entry,
    };
    columns.extend((0..own).map(|k| ColumnOf { field, k, per_entry: if k == 0 { first } else { None } }));
    for child in field.children() {
        collect(child, below, columns);
    }
}

#[cfg(test)]
mod tests {
    use tupelo_schema::schema::Primitive;

    use super::*;

    fn cluster(number: u64, first_entry: u64, entries: u64) -> Cluster {
        Cluster::for_tests(number, first_entry, entries)
    }

    /// Number of the cluster, start and count.
    fn shown(segments: &[Segment]) -> Vec<(u64, u64, u64)> {
        segments.iter().map(|segment| (segment.cluster.number, segment.start, segment.count)).collect()
    }

    #[test]
    fn entries_become_segments_of_clusters() {
        let clusters = [cluster(0, 0, 10), cluster(1, 10, 5), cluster(2, 15, 10)];
        let of = |entries: EntrySet| shown(&segments(&clusters, &entries));
        assert_eq!(of((0..25).into()), [(0, 0, 10), (1, 0, 5), (2, 0, 10)]);
        assert_eq!(of((9..16).into()), [(0, 9, 1), (1, 0, 5), (2, 0, 1)]);
        assert_eq!(of(EntrySet::default()), []);
        assert_eq!(of([1..3, 8..12, 20..25].into_iter().collect()), [(0, 1, 2), (0, 8, 2), (1, 0, 2), (2, 5, 5)]);
        let all = segments(&clusters, &EntrySet::from(5..25));
        assert!((fraction(&all) - 0.8).abs() < 1e-9);
    }

    #[test]
    fn elements_per_entry_follow_from_the_schema() {
        let float = || Field::new("x", "", Kind::Primitive(Primitive::Float));
        let array = Field::new("a", "", Kind::Array { size: 3, item: Box::new(float()) });
        let list = Field::new("l", "", Kind::Collection(Box::new(array.clone())));
        let record = Field::new("r", "", Kind::Record(vec![array, list, Field::new("s", "", Kind::String), float()]));
        let columns: Vec<_> = columns(&record).iter().map(|it| (it.field.name.clone(), it.k, it.per_entry)).collect();
        let expected = [
            ("x", 0, Some(3)),
            ("l", 0, Some(1)),
            ("x", 0, None),
            ("s", 0, Some(1)),
            ("s", 1, None),
            ("x", 0, Some(1)),
        ];
        assert_eq!(columns, expected.map(|(name, k, per_entry)| (name.to_owned(), k, per_entry)));
    }
}
