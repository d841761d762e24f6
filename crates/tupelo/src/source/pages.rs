//! From element ranges of a column to the pages that hold them, and ([`reading`]) what is in these.

mod reading;

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use tupelo_format::descriptor::{ColumnId, Descriptor, FieldId};
use tupelo_format::encoding::Encoding;
use tupelo_format::envelope::{ColumnPages, FeatureFlags, PageInfo};

use super::{Cluster, PAGE_MEMORY, PageSource, Request, packed_bytes};
use crate::schema::{Field, Kind, Primitive};
use crate::{Error, Result};

/// Memory of a column in one cluster, its pages not counted, in bytes.
const COLUMN_MEMORY: u64 = 384;

/// A range of a field's elements within one cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) cluster: Cluster,
    /// First element, counted from the start of the cluster.
    pub(crate) start: u64,
    /// Number of elements.
    pub(crate) count: u64,
    /// Elements that the field has in the whole cluster, where that is known without reading anything.
    pub(crate) total: Option<u64>,
    /// Elements that every entry has, where all have the same.
    pub(crate) per_entry: Option<u64>,
}

/// What a segment needs of a column in its cluster.
struct Need {
    column: ColumnId,
    /// Leading elements of a deferred column that are zero and that nobody stored.
    zeros: u64,
    /// Stored elements, counted from the first one that is stored.
    start: u64,
    end: u64,
}

/// A part of a page that a segment touches, and where its elements belong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touch {
    cluster: Cluster,
    column: ColumnId,
    page: usize,
    /// Elements to leave out at the front.
    pub(crate) skip: usize,
    /// Elements to take.
    pub(crate) take: usize,
    /// Index of the first one in the output.
    pub(crate) to: usize,
}

/// A page that has to be fetched.
#[derive(Clone, Copy)]
pub(crate) struct Missing {
    cluster: u64,
    column: ColumnId,
    page: usize,
    pub(super) info: PageInfo,
    /// Stored, with its checksum.
    pub(crate) bytes: u64,
}

/// The pages of a field's column in one cluster.
struct Column {
    id: ColumnId,
    encoding: Encoding,
    info: ColumnPages,
    /// Index of each page's first element in the cluster, and the end.
    starts: Vec<u64>,
    bytes: Vec<Option<Bytes>>,
}

impl Column {
    /// Puts the place of a page in front of an error.
    #[cold]
    fn within(&self, cluster: &Cluster, page: usize, error: Error) -> Error {
        let located = error.at_page(self.id.index() as u32, cluster.number, page as u64);
        located.within(format!(
            "column {} ({}), cluster {}, page {page} ({})",
            self.id,
            self.encoding.column_type().name(),
            cluster.number,
            self.info.pages[page].locator
        ))
    }
}

/// Where columns ended in the last cluster that was looked at: its number, and the element behind.
#[derive(Default)]
pub(crate) struct Ends(HashMap<ColumnId, (u64, u64)>);

impl Ends {
    /// A column goes on where it ended in the cluster before. Before a deferred column nobody stored anything.
    pub(crate) fn follow(
        &mut self,
        descriptor: &Descriptor,
        cluster: &Cluster,
        id: ColumnId,
        listed: &ColumnPages,
    ) -> Result<()> {
        let Some(first) = listed.first_element else { return Ok(()) };
        let before = self.0.insert(id, (cluster.number, first.saturating_add(listed.elements())));
        let expected = before.filter(|(number, _)| number.checked_add(1) == Some(cluster.number)).map(|(_, end)| end);
        match expected {
            Some(end) if end != first && !descriptor.column(id)?.is_deferred() => Err(Error::corrupt(format!(
                "column {id} begins at element {first} in cluster {} where element {end} is next",
                cluster.number
            ))),
            _ => Ok(()),
        }
    }
}

/// Finds the pages of one reading request, and keeps those that were fetched ahead.
pub(crate) struct Pages<'s> {
    source: &'s PageSource,
    /// By cluster and column.
    columns: HashMap<(u64, ColumnId), Column>,
    /// Which column is the `k`-th of a field in a cluster; `None` where the cluster is older than the field.
    primary: HashMap<(u64, FieldId, usize), Option<ColumnId>>,
    ends: Ends,
    memory: &'s Request,
}

impl<'s> Pages<'s> {
    /// Pages that count their memory in `memory`.
    pub(crate) fn new(source: &'s PageSource, memory: &'s Request) -> Self {
        Self { source, columns: HashMap::new(), primary: HashMap::new(), ends: Ends::default(), memory }
    }

    /// The memory of this request.
    pub(crate) fn memory(&self) -> &'s Request {
        self.memory
    }

    pub(crate) fn source(&self) -> &'s PageSource {
        self.source
    }

    /// The field's `k`-th column in the cluster: that of the one representation that is not suppressed.
    fn primary(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<Option<ColumnId>> {
        let Some(id) = field.id else { return Err(Error::corrupt("the field is in no file")) };
        if let Some(found) = self.primary.get(&(cluster.number, id, k)) {
            return Ok(*found);
        }
        let (mut found, mut is_listed) = (None, false);
        let representations = &self.source.descriptor().field(id)?.representations;
        for columns in representations {
            let Some(&column) = columns.get(k) else { continue };
            let Some(pages) = self.source.column_pages(cluster, column)? else { continue };
            is_listed = true;
            if pages.first_element.is_none() {
                continue;
            }
            if found.is_some() {
                return Err(Error::corrupt(format!("cluster {} stores two representations", cluster.number)));
            }
            found = Some(column);
            self.insert(cluster, column, pages)?;
        }
        // A cluster that is older than the field lists none of its columns; check_page_list saw to the others.
        if found.is_none() && is_listed {
            return Err(Error::corrupt(format!("cluster {} stores no representation", cluster.number)));
        }
        self.primary.insert((cluster.number, id, k), found);
        Ok(found)
    }

    fn insert(&mut self, cluster: &Cluster, id: ColumnId, info: ColumnPages) -> Result<()> {
        let encoding = self.source.descriptor().column(id)?.encoding;
        let encoding = encoding.ok_or_else(|| Error::unsupported(format!("column {id} has an unknown type")))?;
        let mut end = 0u64;
        let mut starts = Vec::with_capacity(info.pages.len() + 1);
        for page in &info.pages {
            starts.push(end);
            end += u64::from(page.elements);
        }
        starts.push(end);
        self.memory.take(COLUMN_MEMORY + PAGE_MEMORY * info.pages.len() as u64, "the pages of a column")?;
        let bytes = vec![None; info.pages.len()];
        self.columns.insert((cluster.number, id), Column { id, encoding, info, starts, bytes });
        Ok(())
    }

    /// Elements of the field's `k`-th column that the cluster stores, and those that a deferred column lacks before.
    fn extent(&mut self, field: &Field, k: usize, segment: &Segment) -> Result<(Option<ColumnId>, u64, u64)> {
        let Some(id) = self.primary(field, k, &segment.cluster)? else { return Ok((None, 0, u64::MAX)) };
        let Some(column) = self.columns.get(&(segment.cluster.number, id)) else {
            return Err(Error::corrupt(format!("column {id} is not loaded")));
        };
        let stored = column.starts.last().copied().unwrap_or(0);
        let misfit = |total: u64| {
            Error::corrupt(format!(
                "column {id} has {stored} elements in cluster {}, not {total}",
                segment.cluster.number
            ))
        };
        let is_deferred = self.source.descriptor().column(id)?.is_deferred();
        let missing = match segment.total {
            Some(total) if is_deferred => {
                let missing = total.checked_sub(stored).ok_or_else(|| misfit(total))?;
                self.check_deferred(column, segment, total, missing)?;
                missing
            }
            Some(total) if total != stored => return Err(misfit(total)),
            _ => 0,
        };
        let expected = segment.per_entry.and_then(|times| segment.cluster.first_entry.checked_mul(times));
        let first = column.info.first_element.unwrap_or_default();
        // Behind the clusters that lack a deferred column, uproot 5.7 counts from 0 again. ROOT does not look
        // (`RClusterDescriptorBuilder::AddExtendedColumnRanges`).
        let is_uncounted = is_deferred && first == 0;
        if let Some(expected) = expected.and_then(|expected| expected.checked_add(missing))
            && (stored > 0 && first != expected && !is_uncounted)
        {
            return Err(Error::corrupt(format!(
                "column {id} begins at element {first} in cluster {}, not {expected}",
                segment.cluster.number
            )));
        }
        Ok((Some(id), stored, missing))
    }

    /// The elements of a field that a cluster does not list must be those before the first one of a deferred column: only
    /// those read as zero (format specification, "Column Description").
    fn check_unlisted(&self, field: &Field, k: usize, segment: &Segment) -> Result<()> {
        if segment.count == 0 {
            return Ok(());
        }
        let descriptor = self.source.descriptor();
        let Some(id) = field.id else { return Err(Error::corrupt("the field is in no file")) };
        let cluster = &segment.cluster;
        // Below collections the number of items in the clusters before is not known.
        let end = segment.per_entry.and_then(|times| cluster.entry_range().end.checked_mul(times));
        if segment.per_entry.is_none() && !self.may_defer_items() {
            let what = format!("cluster {} does not store the field, but has items of it", cluster.number);
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
                true if column.starts_suppressed => format!("column {id} is suppressed, not zero, where it is missing"),
                true => format!("column {id} begins at element {}", column.first_element),
            };
        }
        Err(Error::corrupt(format!("cluster {} does not store the field, but {why}", cluster.number)))
    }

    /// Whether columns below collections may be deferred, so that items without stored values are zero.
    fn may_defer_items(&self) -> bool {
        self.source.descriptor().feature_flags().bits().contains(&FeatureFlags::NESTED_DEFERRED_COLUMNS)
    }

    /// The elements that a deferred column lacks in a cluster must be those before its first one.
    fn check_deferred(&self, column: &Column, segment: &Segment, total: u64, missing: u64) -> Result<()> {
        let described = self.source.descriptor().column(column.id)?;
        let (first, cluster) = (described.first_element, &segment.cluster);
        let wrong = |what: String| {
            let place = format!("column {} begins at element {first}, but cluster {}", column.id, cluster.number);
            Err(Error::corrupt(format!("{place} {what}")))
        };
        if missing > 0 && described.starts_suppressed {
            return wrong(format!("stores it, and lacks {missing} elements although suppressed columns have no zeros"));
        }
        if missing > 0 && missing < total && column.info.first_element != Some(first) {
            return wrong(format!("has element {} first", column.info.first_element.unwrap_or_default()));
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

    /// What a segment needs; `None` where the cluster is older than the field.
    fn need(&mut self, field: &Field, k: usize, segment: &Segment) -> Result<Option<Need>> {
        let (Some(column), stored, missing) = self.extent(field, k, segment)? else {
            // Only here it is known how many elements are wanted: fetching ahead asks for more than there are.
            self.check_unlisted(field, k, segment)?;
            return Ok(None);
        };
        if let (None, Some(listed)) = (segment.per_entry, self.columns.get(&(segment.cluster.number, column))) {
            self.ends.follow(self.source.descriptor(), &segment.cluster, column, &listed.info)?;
        }
        let end = (segment.start + segment.count).saturating_sub(missing);
        if segment.count > 0 && end > stored {
            return Err(Error::corrupt(format!(
                "column {column} has {stored} elements in cluster {}, but element {} is needed",
                segment.cluster.number,
                end - 1
            )));
        }
        let zeros = missing.saturating_sub(segment.start).min(segment.count);
        let start = (segment.start + zeros).saturating_sub(missing);
        Ok(Some(Need { column, zeros, start, end }))
    }

    /// Refuses segments that reach behind what is stored, and pages that cannot hold what they claim: to be asked
    /// before anybody makes room for them. Gives the number of elements that are zero without being stored.
    pub(crate) fn check(&mut self, field: &Field, k: usize, segments: &[Segment]) -> Result<u64> {
        let mut unstored = 0u64;
        for segment in segments {
            let Some(need) = self.need(field, k, segment).map_err(|e| self.named(field, e))? else {
                unstored = unstored.saturating_add(segment.count);
                continue;
            };
            unstored = unstored.saturating_add(need.zeros);
            let Some(column) = self.columns.get(&(segment.cluster.number, need.column)) else { continue };
            let mut touched = 0u64;
            for page in Self::touched(column, need.start, need.end) {
                let info = &column.info.pages[page];
                let fits = info.locator.in_file().map_err(Error::from).and_then(|(_, stored_bytes)| {
                    touched = touched.saturating_add(stored_bytes);
                    packed_bytes(info, stored_bytes, &column.encoding)
                });
                fits.map_err(|e| self.named(field, column.within(&segment.cluster, page, e)))?;
            }
            self.memory.touch(touched);
        }
        Ok(unstored)
    }

    /// Puts the path of the field in front of an error.
    pub(crate) fn named(&self, field: &Field, error: Error) -> Error {
        let path = field.id.map_or_else(|| field.name.clone(), |id| self.source.descriptor().path(id));
        error.in_field(&path)
    }

    /// The pages of a column that hold elements of a stored range.
    fn touched(column: &Column, start: u64, end: u64) -> Range<usize> {
        if start >= end {
            return 0..0;
        }
        let first = column.starts.partition_point(|&s| s <= start).saturating_sub(1);
        let last = column.starts.partition_point(|&s| s < end).min(column.info.pages.len());
        first..last.max(first)
    }

    /// The pages that the segments touch and that have to be fetched.
    pub(crate) fn missing<'f>(
        &mut self,
        wanted: impl Iterator<Item = (&'f Field, usize, Segment)>,
    ) -> Result<Vec<Missing>> {
        let mut missing = Vec::new();
        for (field, k, segment) in wanted {
            let (id, stored, before) = self.extent(field, k, &segment).map_err(|e| self.named(field, e))?;
            let Some(column) = id.and_then(|id| self.columns.get(&(segment.cluster.number, id))) else { continue };
            let start = segment.start.saturating_sub(before);
            let end = (segment.start + segment.count).saturating_sub(before).min(stored);
            for page in Self::touched(column, start, end) {
                missing.extend(self.missing_page(field, column, &segment.cluster, page)?);
            }
        }
        Ok(missing)
    }

    fn missing_page(&self, field: &Field, column: &Column, cluster: &Cluster, page: usize) -> Result<Option<Missing>> {
        let info = column.info.pages[page];
        if column.bytes[page].is_some() || self.source.is_near(&info) {
            return Ok(None);
        }
        let place = self.source.page_range(&info);
        let place = place.map_err(|e| self.named(field, column.within(cluster, page, e)))?;
        Ok(Some(Missing { cluster: cluster.number, column: column.id, page, info, bytes: place.end - place.start }))
    }

    /// Keeps pages that were fetched.
    pub(crate) fn put(&mut self, missing: &[Missing], fetched: impl IntoIterator<Item = Bytes>) {
        for (page, bytes) in missing.iter().zip(fetched) {
            let column = self.columns.get_mut(&(page.cluster, page.column));
            if let Some(slot) = column.and_then(|column| column.bytes.get_mut(page.page)) {
                *slot = Some(bytes);
            }
        }
    }

    /// Fetches the first of the touched pages, and with it as many of the others as there is room for.
    fn fetch_run(&mut self, field: &Field, touches: &[Touch]) -> Result<()> {
        let room = self.memory.room();
        let (mut missing, mut bytes) = (Vec::new(), 0u64);
        for touches in
            touches.chunk_by(|a, b| (a.cluster.number, a.column, a.page) == (b.cluster.number, b.column, b.page))
        {
            let touch = &touches[0];
            let Some(column) = self.column_of(touch) else { continue };
            let Some(page) = self.missing_page(field, column, &touch.cluster, touch.page)? else { continue };
            if !missing.is_empty() && bytes + page.bytes > room {
                break;
            }
            bytes += page.bytes;
            missing.push(page);
        }
        let fetched = self.source.fetch_pages(&missing, self.memory).map_err(|e| self.named(field, e))?;
        self.put(&missing, fetched);
        Ok(())
    }

    /// The `k`-th column of a field in a cluster.
    fn column(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<Option<&Column>> {
        let id = self.primary(field, k, cluster).map_err(|e| self.named(field, e))?;
        Ok(id.and_then(|id| self.columns.get(&(cluster.number, id))))
    }

    /// Stored bytes of the columns that were looked at, in the clusters where they were.
    pub(crate) fn known_bytes(&self) -> u64 {
        let pages = self.columns.values().flat_map(|column| &column.info.pages);
        pages.filter_map(|page| page.locator.in_file().ok()).fold(0, |sum, (_, bytes)| bytes.saturating_add(sum))
    }

    /// Compression setting of the `k`-th column of a field in a cluster; 0 is none.
    pub(crate) fn compression(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<u32> {
        Ok(self.column(field, k, cluster)?.map_or(0, |column| column.info.compression))
    }

    /// The entries behind the pages of a column of one element for each entry; none where it is not stored for all.
    pub(crate) fn ends(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<Vec<u64>> {
        let entries = cluster.entries;
        let column = self.column(field, k, cluster)?.filter(|column| column.info.elements() == entries);
        let starts = column.iter().flat_map(|column| column.starts.iter().skip(1));
        Ok(starts.map(|start| cluster.first_entry + start).collect())
    }

    /// What the `k`-th column of a field in a whole cluster takes in memory once decoded, in bytes.
    pub(crate) fn unpacked_bytes(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<f64> {
        let Some(column) = self.column(field, k, cluster)? else { return Ok(0.0) };
        let column_type = column.encoding.column_type();
        let bits = match &field.kind {
            Kind::Primitive(Primitive::Double) => 64,
            Kind::Primitive(Primitive::Float) => 32,
            _ if column_type.is_index() => 64,
            _ => u32::from(column.encoding.bits()),
        };
        Ok(column.info.elements() as f64 * f64::from(bits) / 8.0)
    }

    /// The parts of pages that hold elements of the segments, in order; all that there is of it is checked that needs no
    /// page. Elements that are not stored, because the column was added later, are in none.
    pub(crate) fn touches(&mut self, field: &Field, k: usize, segments: &[Segment]) -> Result<Vec<Touch>> {
        let (mut touches, mut to) = (Vec::new(), 0u64);
        for segment in segments {
            let base = to;
            to += segment.count;
            let Some(need) = self.need(field, k, segment).map_err(|e| self.named(field, e))? else { continue };
            let Some(column) = self.columns.get(&(segment.cluster.number, need.column)) else { continue };
            let mut to = base + need.zeros;
            for page in Self::touched(column, need.start, need.end) {
                let (first, next) = (column.starts[page], column.starts[page + 1]);
                let (from, until) = (need.start.max(first), need.end.min(next));
                if from >= until {
                    continue;
                }
                let (skip, take) = ((from - first) as usize, (until - from) as usize);
                touches.push(Touch { cluster: segment.cluster, column: column.id, page, skip, take, to: to as usize });
                to += until - from;
            }
        }
        Ok(touches)
    }
}
