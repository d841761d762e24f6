//! From element ranges of a column to the pages that hold them, by metadata alone.

use std::collections::HashMap;
use std::ops::Range;

use tupelo_format::descriptor::{ColumnId, Descriptor, FieldId};
use tupelo_format::encoding::Encoding;
use tupelo_format::envelope::{ColumnPages, FeatureFlags};
use tupelo_schema::schema::{Field, Kind, Primitive};

use super::{ColumnOf, Segment};
use crate::source::{BlobRange, Cluster, Metadata, PAGE_MEMORY, RequestMemory, packed_bytes};
use crate::{Error, Result};

/// Memory of a column in one cluster, its pages not counted, in bytes.
const COLUMN_MEMORY: u64 = 384;

/// A page of a request: the index of its column in the table, and of the page in the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageId {
    /// Place of the column in its [`ColumnTable`].
    pub column: u32,
    /// Number of the page in the cluster.
    pub page: u32,
}

/// A part of a page that is read, and where its elements go.
#[derive(Debug, Clone, Copy)]
pub struct PageSlice {
    /// The page.
    pub(crate) id: PageId,
    /// The sealed page.
    pub(crate) range: BlobRange,
    /// Elements to leave out at the front.
    pub(crate) skip: usize,
    /// Elements to take.
    pub(crate) take: usize,
    /// Index of the first one in the output.
    pub(crate) to: usize,
}

/// The parts of one column to read over some segments.
#[derive(Debug, Default)]
pub(crate) struct ColumnSlices {
    /// In the order of their elements in the output.
    pub(crate) slices: Vec<PageSlice>,
    /// Elements that are zero and not stored in any page.
    pub(crate) unstored: u64,
}

/// A column in one cluster.
#[derive(Debug)]
pub struct ClusterColumn {
    /// Number of the cluster.
    pub(crate) cluster: u64,
    /// The column.
    pub id: ColumnId,
    /// Encoding of its elements.
    pub encoding: Encoding,
    /// Its pages in the cluster.
    pub info: ColumnPages,
    /// Index of each page's first element in the cluster, and the end.
    starts: Vec<u64>,
}

impl ClusterColumn {
    /// Adds the place of a page to an error.
    #[cold]
    pub(crate) fn within(&self, page: u32, error: Error) -> Error {
        let located = error.at_page(self.id.index() as u32, self.cluster, page.into());
        located.within(format!(
            "column {} ({}), cluster {}, page {page} ({})",
            self.id,
            self.encoding.column_type().name(),
            self.cluster,
            self.info.pages[page as usize].locator
        ))
    }

    /// Where a page is stored.
    fn range(&self, metadata: &Metadata, page: usize) -> Result<BlobRange> {
        metadata.store().page_range(self.cluster, self.id.index() as u32, &self.info.pages[page])
    }

    /// Bytes of a page once it is decompressed.
    pub fn unpacked_bytes(&self, page: u32) -> u64 {
        let elements = self.info.pages.get(page as usize).map_or(0, |page| page.elements);
        self.encoding.packed_bytes(elements.into()).unwrap_or(0)
    }

    /// Number of elements.
    fn elements(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The pages that hold elements of a stored range.
    fn pages_of(&self, start: u64, end: u64) -> Range<usize> {
        if start >= end {
            return 0..0;
        }
        let first = self.starts.partition_point(|&s| s <= start).saturating_sub(1);
        let last = self.starts.partition_point(|&s| s < end).min(self.info.pages.len());
        first..last.max(first)
    }
}

/// Checks that a column continues where it ended in the previous cluster.
#[derive(Debug, Default)]
pub struct Continuity {
    /// By column: the number of the last cluster, and the element after it.
    ends: HashMap<ColumnId, (u64, u64)>,
}

impl Continuity {
    /// Checks the next cluster of a column. Before a deferred column nothing is stored.
    pub fn check(
        &mut self,
        descriptor: &Descriptor,
        cluster: &Cluster,
        id: ColumnId,
        listed: &ColumnPages,
    ) -> Result<()> {
        let Some(first) = listed.first_element else { return Ok(()) };
        match self.go_on(cluster.number, id, first..first.saturating_add(listed.elements())) {
            Err(_) if descriptor.column(id)?.is_deferred() => Ok(()),
            checked => checked,
        }
    }

    /// Checks the elements of a column in the cluster with a number.
    pub fn go_on(&mut self, number: u64, id: ColumnId, elements: Range<u64>) -> Result<()> {
        let Range { start, end } = elements;
        let before = self.ends.insert(id, (number, end));
        match before.filter(|(last, _)| last.checked_add(1) == Some(number)) {
            Some((_, expected)) if expected != start => {
                let what =
                    format!("column {id} begins at element {start} in cluster {number}, expected element {expected}");
                Err(Error::corrupt(what))
            }
            _ => Ok(()),
        }
    }
}

/// The part of a column that a cluster stores.
#[derive(Debug, Clone, Copy)]
struct Extent {
    column: u32,
    /// Elements in the cluster.
    stored: u64,
    /// Elements of a deferred column that come before these and are not stored.
    missing: u64,
}

/// The elements of a column that a segment needs: stored ones, after some that are zero and not stored.
struct ElementRange {
    column: u32,
    zeros: u64,
    start: u64,
    end: u64,
}

/// The columns of one reading request, each loaded from the page lists when it is first needed.
#[derive(Debug)]
pub struct ColumnTable<'m> {
    metadata: &'m Metadata,
    memory: &'m RequestMemory,
    columns: Vec<ClusterColumn>,
    /// By cluster and column.
    places: HashMap<(u64, ColumnId), u32>,
    /// Which column is the `k`-th of a field in a cluster; `None` where the cluster is older than the field.
    primary: HashMap<(u64, FieldId, usize), Option<u32>>,
    continuity: Continuity,
}

impl<'m> ColumnTable<'m> {
    /// A table that counts its memory in `memory`.
    pub fn new(metadata: &'m Metadata, memory: &'m RequestMemory) -> Self {
        let (columns, places, primary) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { metadata, memory, columns, places, primary, continuity: Continuity::default() }
    }

    /// The column of a page that the table gave.
    pub fn column(&self, page: PageId) -> &ClusterColumn {
        &self.columns[page.column as usize]
    }

    /// Adds the path of the field to an error.
    pub(crate) fn named(&self, field: &Field, error: Error) -> Error {
        let descriptor = self.metadata.descriptor();
        let path = field.id.map_or_else(|| field.name.clone(), |id| descriptor.path(id));
        error.in_field(&path)
    }

    /// The field's `k`-th column in the cluster: that of the one representation that is not suppressed.
    fn primary(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<Option<u32>> {
        let Some(id) = field.id else { return Err(Error::corrupt("the field is not stored")) };
        if let Some(found) = self.primary.get(&(cluster.number, id, k)) {
            return Ok(*found);
        }
        let (mut found, mut is_listed) = (None, false);
        for columns in &self.metadata.descriptor().field(id)?.representations {
            let Some(&column) = columns.get(k) else { continue };
            let Some(pages) = self.metadata.column_pages(cluster, column)? else { continue };
            is_listed = true;
            if pages.first_element.is_none() {
                continue;
            }
            if found.is_some() {
                return Err(Error::corrupt(format!("cluster {} stores two representations", cluster.number)));
            }
            found = Some(self.insert(cluster, column, pages)?);
        }
        // A cluster that is older than the field lists none of its columns; check_page_list saw to the others.
        if found.is_none() && is_listed {
            return Err(Error::corrupt(format!("cluster {} stores no representation", cluster.number)));
        }
        self.primary.insert((cluster.number, id, k), found);
        Ok(found)
    }

    fn insert(&mut self, cluster: &Cluster, id: ColumnId, info: ColumnPages) -> Result<u32> {
        if let Some(&place) = self.places.get(&(cluster.number, id)) {
            return Ok(place);
        }
        let encoding = self.metadata.descriptor().column(id)?.encoding;
        let encoding = encoding.ok_or_else(|| Error::unsupported(format!("column {id} has an unknown type")))?;
        let mut end = 0u64;
        let mut starts = Vec::with_capacity(info.pages.len() + 1);
        for page in &info.pages {
            starts.push(end);
            end += u64::from(page.elements);
        }
        starts.push(end);
        self.memory.reserve(COLUMN_MEMORY + PAGE_MEMORY * info.pages.len() as u64, "the pages of a column")?;
        let place =
            u32::try_from(self.columns.len()).map_err(|_| Error::limit("more than 2^32 columns in clusters"))?;
        self.columns.push(ClusterColumn { cluster: cluster.number, id, encoding, info, starts });
        self.places.insert((cluster.number, id), place);
        Ok(place)
    }

    /// The elements of the field's `k`-th column that the cluster stores; `None` where it is older than the field.
    fn extent(&mut self, field: &Field, k: usize, segment: &Segment) -> Result<Option<Extent>> {
        let Some(place) = self.primary(field, k, &segment.cluster)? else { return Ok(None) };
        let column = &self.columns[place as usize];
        let (id, stored) = (column.id, column.elements());
        let mismatch = |total: u64| {
            Error::corrupt(format!(
                "column {id} has {stored} elements in cluster {}, expected {total}",
                segment.cluster.number
            ))
        };
        let is_deferred = self.metadata.descriptor().column(id)?.is_deferred();
        let missing = match segment.total {
            Some(total) if is_deferred => {
                let missing = total.checked_sub(stored).ok_or_else(|| mismatch(total))?;
                self.check_deferred(column, segment, total, missing)?;
                missing
            }
            Some(total) if total != stored => return Err(mismatch(total)),
            _ => 0,
        };
        let expected = segment.per_entry.and_then(|times| segment.cluster.first_entry.checked_mul(times));
        let first = column.info.first_element.unwrap_or_default();
        // After the clusters that lack a deferred column, uproot 5.7 counts from 0 again. ROOT does not look
        // (`RClusterDescriptorBuilder::AddExtendedColumnRanges`).
        let is_uncounted = is_deferred && first == 0;
        if let Some(expected) = expected.and_then(|expected| expected.checked_add(missing))
            && (stored > 0 && first != expected && !is_uncounted)
        {
            return Err(Error::corrupt(format!(
                "column {id} begins at element {first} in cluster {}, expected {expected}",
                segment.cluster.number
            )));
        }
        Ok(Some(Extent { column: place, stored, missing }))
    }

    /// The elements of a field that a cluster does not list must be those before the first one of a deferred column: only
    /// those read as zero (format specification, "Column Description").
    fn check_unlisted(&self, field: &Field, k: usize, segment: &Segment) -> Result<()> {
        if segment.count == 0 {
            return Ok(());
        }
        let descriptor = self.metadata.descriptor();
        let Some(id) = field.id else { return Err(Error::corrupt("the field is not stored")) };
        let cluster = &segment.cluster;
        // Below collections the number of items in the clusters before is not known.
        let end = segment.per_entry.and_then(|times| cluster.entry_range().end.checked_mul(times));
        if segment.per_entry.is_none() && !self.may_defer_items() {
            let what = format!("cluster {} lacks the field, but has items of it", cluster.number);
            return Err(Error::corrupt(what));
        }
        let mut why = String::new();
        for &id in descriptor.field(id)?.representations.iter().filter_map(|columns| columns.get(k)) {
            let column = descriptor.column(id)?;
            if column.has_synthetic_zeros() && end.is_none_or(|end| end <= column.first_element) {
                return Ok(());
            }
            why = match column.is_deferred() {
                false => format!("column {id} is not deferred"),
                true if column.starts_suppressed => format!("missing elements of column {id} are not zero"),
                true => format!("column {id} begins at element {}", column.first_element),
            };
        }
        Err(Error::corrupt(format!("cluster {} lacks the field, but {why}", cluster.number)))
    }

    /// Whether columns below collections may be deferred, so that items without stored values are zero.
    fn may_defer_items(&self) -> bool {
        self.metadata.descriptor().feature_flags().bits().contains(&FeatureFlags::NESTED_DEFERRED_COLUMNS)
    }

    /// The elements that a deferred column lacks in a cluster must be those before its first one.
    fn check_deferred(&self, column: &ClusterColumn, segment: &Segment, total: u64, missing: u64) -> Result<()> {
        let described = self.metadata.descriptor().column(column.id)?;
        let (first, cluster) = (described.first_element, &segment.cluster);
        let wrong = |what: String| {
            let place = format!("column {} begins at element {first}, but cluster {}", column.id, cluster.number);
            Err(Error::corrupt(format!("{place} {what}")))
        };
        if missing > 0 && described.starts_suppressed {
            return wrong(format!("stores it and lacks {missing} elements, although suppressed columns have no zeros"));
        }
        if missing > 0 && missing < total && column.info.first_element != Some(first) {
            return wrong(format!("begins at element {}", column.info.first_element.unwrap_or_default()));
        }
        let expected = match segment.per_entry {
            Some(times) => first.saturating_sub(cluster.first_entry.saturating_mul(times)).min(total),
            // The number of items in the clusters before is not known.
            None if self.may_defer_items() => missing,
            None => 0,
        };
        match expected == missing {
            true => Ok(()),
            false => wrong(format!("lacks {missing} of its {total} elements")),
        }
    }

    /// The elements that a segment needs; `None` if the cluster is older than the field.
    fn elements(&mut self, field: &Field, k: usize, segment: &Segment) -> Result<Option<ElementRange>> {
        let Some(Extent { column, stored, missing }) = self.extent(field, k, segment)? else {
            // Only here the exact number of elements is known: planning asks for more than there are.
            self.check_unlisted(field, k, segment)?;
            return Ok(None);
        };
        let listed = &self.columns[column as usize];
        let id = listed.id;
        if segment.per_entry.is_none() {
            self.continuity.check(self.metadata.descriptor(), &segment.cluster, id, &listed.info)?;
        }
        let end = (segment.start + segment.count).saturating_sub(missing);
        if segment.count > 0 && end > stored {
            return Err(Error::corrupt(format!(
                "column {id} has {stored} elements in cluster {}, but element {} is needed",
                segment.cluster.number,
                end - 1
            )));
        }
        let zeros = missing.saturating_sub(segment.start).min(segment.count);
        let start = (segment.start + zeros).saturating_sub(missing);
        Ok(Some(ElementRange { column, zeros, start, end }))
    }

    /// The parts of pages that hold the segments' elements of the field's `k`-th column. Segments past the end of what is
    /// stored are refused, and so are pages that cannot hold what they claim: before memory is allocated for them.
    pub(crate) fn slices(&mut self, field: &Field, k: usize, segments: &[Segment]) -> Result<ColumnSlices> {
        self.try_slices(field, k, segments).map_err(|e| self.named(field, e))
    }

    fn try_slices(&mut self, field: &Field, k: usize, segments: &[Segment]) -> Result<ColumnSlices> {
        let (mut slices, mut unstored, mut to) = (Vec::new(), 0u64, 0u64);
        for segment in segments {
            let base = to;
            to += segment.count;
            let Some(elements) = self.elements(field, k, segment)? else {
                unstored = unstored.saturating_add(segment.count);
                continue;
            };
            unstored = unstored.saturating_add(elements.zeros);
            let column = &self.columns[elements.column as usize];
            let (mut to, first_slice) = (base + elements.zeros, slices.len());
            for page in column.pages_of(elements.start, elements.end) {
                let (first, next) = (column.starts[page], column.starts[page + 1]);
                let (from, until) = (elements.start.max(first), elements.end.min(next));
                let info = &column.info.pages[page];
                let id = PageId { column: elements.column, page: page as u32 };
                let range = column.range(self.metadata, page).and_then(|range| {
                    packed_bytes(info, info.locator.stored_bytes(), &column.encoding)?;
                    Ok(range)
                });
                let range = range.map_err(|e| column.within(id.page, e))?;
                if from >= until {
                    continue;
                }
                let (skip, take) = ((from - first) as usize, (until - from) as usize);
                slices.push(PageSlice { id, range, skip, take, to: to as usize });
                to += until - from;
            }
            self.memory.add_pages(slices[first_slice..].iter().map(|slice| &slice.range));
        }
        Ok(ColumnSlices { slices, unstored })
    }

    /// The pages of the field's `k`-th column that a segment touches, as far as it has that many elements.
    pub(super) fn pages(&mut self, field: &Field, k: usize, segment: &Segment) -> Result<Vec<(PageId, BlobRange)>> {
        let pages = |table: &mut Self| {
            let Some(Extent { column: place, stored, missing }) = table.extent(field, k, segment)? else {
                return Ok(Vec::new());
            };
            let column = &table.columns[place as usize];
            let start = segment.start.saturating_sub(missing);
            let end = (segment.start + segment.count).saturating_sub(missing).min(stored);
            let page = |page: usize| {
                let range = column.range(table.metadata, page);
                let id = PageId { column: place, page: page as u32 };
                Ok((id, range.map_err(|e| column.within(id.page, e))?))
            };
            column.pages_of(start, end).map(page).collect()
        };
        pages(self).map_err(|e| self.named(field, e))
    }

    /// The `k`-th column of a field in a cluster.
    fn of_field(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<Option<&ClusterColumn>> {
        let place = self.primary(field, k, cluster).map_err(|e| self.named(field, e))?;
        Ok(place.map(|place| &self.columns[place as usize]))
    }

    /// Stored bytes of the columns that were loaded, in the clusters where they were.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let pages = self.columns.iter().flat_map(|column| &column.info.pages);
        pages.fold(0, |sum, page| sum.saturating_add(page.locator.stored_bytes()))
    }

    /// The index of the `k`-th column of a field in a cluster, and where each of its pages is stored; `None` where elements
    /// of it may be missing.
    pub fn stored(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<Option<(u32, Vec<BlobRange>)>> {
        let Some(place) = self.primary(field, k, cluster)? else { return Ok(None) };
        let (column, metadata) = (&self.columns[place as usize], self.metadata);
        if metadata.descriptor().column(column.id)?.is_deferred() && self.may_defer_items() {
            return Ok(None);
        }
        let ranges = (0..column.info.pages.len()).map(|page| column.range(metadata, page));
        Ok(Some((place, ranges.collect::<Result<_>>()?)))
    }

    /// Entries at the beginning of a cluster for which a field with these columns has no values, as it was added later;
    /// `None` where its columns begin at different entries.
    pub fn missing_entries(&mut self, columns: &[ColumnOf<'_>], cluster: &Cluster) -> Result<Option<u64>> {
        let mut all = None;
        for ColumnOf { field, k, per_entry } in columns {
            let Some(times) = per_entry.filter(|times| *times > 0) else { continue };
            let count = cluster.entries.saturating_mul(times);
            let segment = Segment { cluster: *cluster, start: 0, count, total: Some(count), per_entry: Some(times) };
            let missing = match self.extent(field, *k, &segment).map_err(|e| self.named(field, e))? {
                Some(extent) => extent.missing,
                None => {
                    self.check_unlisted(field, *k, &segment).map_err(|e| self.named(field, e))?;
                    count
                }
            };
            if missing % times != 0 || *all.get_or_insert(missing / times) != missing / times {
                return Ok(None);
            }
        }
        Ok(Some(all.unwrap_or(0)))
    }

    /// Compression setting of the `k`-th column of a field in a cluster; 0 is none.
    pub fn compression(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<u32> {
        Ok(self.of_field(field, k, cluster)?.map_or(0, |column| column.info.compression))
    }

    /// The entries after the pages of a column of one element for each entry; none where it is not stored for all.
    pub(super) fn page_ends(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<Vec<u64>> {
        let column = self.of_field(field, k, cluster)?.filter(|column| column.elements() == cluster.entries);
        let starts = column.iter().flat_map(|column| column.starts.iter().skip(1));
        Ok(starts.map(|start| cluster.first_entry + start).collect())
    }

    /// Memory of the decoded `k`-th column of a field in a whole cluster, in bytes.
    pub fn decoded_bytes(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<f64> {
        let Some(column) = self.of_field(field, k, cluster)? else { return Ok(0.0) };
        let column_type = column.encoding.column_type();
        let bits = match &field.kind {
            Kind::Primitive(Primitive::Double) => 64,
            Kind::Primitive(Primitive::Float) => 32,
            _ if column_type.is_index() => 64,
            _ => u32::from(column.encoding.bits()),
        };
        Ok(column.elements() as f64 * f64::from(bits) / 8.0)
    }
}
