//! From element ranges of a column to unsealed pages.

use std::collections::HashMap;

use bytes::Bytes;
use tupelo_format::descriptor::{ColumnId, Descriptor, FieldId};
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::envelope::{ColumnPages, FeatureFlags, PageInfo};

use super::{Cluster, PAGE_MEMORY, PageSource, Request, packed_bytes};
use crate::schema::{Field, Kind, Primitive};
use crate::{Error, Result};

/// Sealed pages that are fetched at once, in bytes, where the memory budget has so much left.
const FETCH_BYTES: u64 = 64 << 20;
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

/// A part of an unsealed page and where its elements belong.
pub(crate) struct Piece<'a> {
    pub(crate) encoding: &'a Encoding,
    /// The whole page.
    pub(crate) packed: &'a [u8],
    /// Elements in the page.
    pub(crate) elements: usize,
    /// Elements to leave out at the front.
    pub(crate) skip: usize,
    /// Elements to take.
    pub(crate) take: usize,
    /// Index of the first one in the output.
    pub(crate) to: usize,
}

impl Piece<'_> {
    pub(crate) fn is_whole(&self) -> bool {
        self.take == self.elements
    }
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
struct Touch {
    cluster: Cluster,
    column: ColumnId,
    page: usize,
    /// Elements to leave out at the front.
    skip: u64,
    take: u64,
    to: u64,
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
        error.within(format!(
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

/// Gives out the pages of one reading request.
pub(crate) struct Pages<'s> {
    source: &'s PageSource,
    /// By cluster and column.
    columns: HashMap<(u64, ColumnId), Column>,
    /// Which column is the `k`-th of a field in a cluster; `None` where the cluster is older than the field.
    primary: HashMap<(u64, FieldId, usize), Option<ColumnId>>,
    ends: Ends,
    scratch: Vec<u8>,
    memory: Request,
}

impl<'s> Pages<'s> {
    pub(crate) fn new(source: &'s PageSource) -> Self {
        let (columns, primary, ends, scratch) = (HashMap::new(), HashMap::new(), Ends::default(), Vec::new());
        Self { source, columns, primary, ends, scratch, memory: source.request() }
    }

    /// The memory of this request.
    pub(crate) fn memory(&mut self) -> &mut Request {
        &mut self.memory
    }

    /// Sealed pages that may be fetched at once, in bytes: half of what is left, for they are unpacked one by one.
    pub(crate) fn room(&self) -> u64 {
        FETCH_BYTES.min(self.memory.left() / 2)
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
        let missing = match segment.total {
            Some(total) if self.source.descriptor().column(id)?.is_deferred() => {
                let missing = total.checked_sub(stored).ok_or_else(|| misfit(total))?;
                self.check_deferred(column, &segment.cluster, total, missing)?;
                missing
            }
            Some(total) if total != stored => return Err(misfit(total)),
            _ => 0,
        };
        let expected = segment.per_entry.and_then(|times| segment.cluster.first_entry.checked_mul(times));
        let first = column.info.first_element.unwrap_or_default();
        if let Some(expected) = expected.and_then(|expected| expected.checked_add(missing))
            && (stored > 0 && first != expected)
        {
            return Err(Error::corrupt(format!(
                "column {id} begins at element {first} in cluster {}, not {expected}",
                segment.cluster.number
            )));
        }
        Ok((Some(id), stored, missing))
    }

    /// The elements that a deferred column lacks in a cluster must be those before its first one.
    fn check_deferred(&self, column: &Column, cluster: &Cluster, total: u64, missing: u64) -> Result<()> {
        let descriptor = self.source.descriptor();
        let first = descriptor.column(column.id)?.first_element;
        let wrong = |what: String| {
            let place = format!("column {} begins at element {first}, but cluster {}", column.id, cluster.number);
            Err(Error::corrupt(format!("{place} {what}")))
        };
        if missing > 0 && missing < total && column.info.first_element != Some(first) {
            return wrong(format!("has element {} first", column.info.first_element.unwrap_or_default()));
        }
        // Below collections nobody knows how many items the clusters before have.
        let is_nested = descriptor.feature_flags().bits().contains(&FeatureFlags::NESTED_DEFERRED_COLUMNS);
        let before = cluster.first_entry.checked_mul(total.checked_div(cluster.entries).unwrap_or(0));
        let expected = before.map_or(0, |before| first.saturating_sub(before).min(total));
        match is_nested || expected == missing {
            true => Ok(()),
            false => wrong(format!("lacks {missing} of its {total} elements")),
        }
    }

    /// What a segment needs; `None` where the cluster is older than the field.
    fn need(&mut self, field: &Field, k: usize, segment: &Segment) -> Result<Option<Need>> {
        let (Some(column), stored, missing) = self.extent(field, k, segment)? else { return Ok(None) };
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
        error.within(format!("field '{path}'"))
    }

    /// The pages of a column that hold elements of a stored range.
    fn touched(column: &Column, start: u64, end: u64) -> std::ops::Range<usize> {
        if start >= end {
            return 0..0;
        }
        let first = column.starts.partition_point(|&s| s <= start).saturating_sub(1);
        let last = column.starts.partition_point(|&s| s < end).min(column.info.pages.len());
        first..last.max(first)
    }

    /// Fetches what is not there yet of all pages that the segments touch, in one go if there is room for it; if not,
    /// [`Pages::visit`] does it bit by bit.
    pub(crate) fn prefetch<'f>(&mut self, wanted: impl Iterator<Item = (&'f Field, usize, Segment)>) -> Result<()> {
        let mut places: Vec<(u64, ColumnId, usize)> = Vec::new();
        let (mut infos, mut bytes) = (Vec::new(), 0u64);
        for (field, k, segment) in wanted {
            let (id, stored, missing) = self.extent(field, k, &segment).map_err(|e| self.named(field, e))?;
            let Some(column) = id.and_then(|id| self.columns.get(&(segment.cluster.number, id))) else { continue };
            let start = segment.start.saturating_sub(missing);
            let end = (segment.start + segment.count).saturating_sub(missing).min(stored);
            for page in Self::touched(column, start, end) {
                if column.bytes[page].is_none() {
                    let place = self.source.page_range(&column.info.pages[page]);
                    let place = place.map_err(|e| self.named(field, column.within(&segment.cluster, page, e)))?;
                    bytes += place.end - place.start;
                    places.push((segment.cluster.number, column.id, page));
                    infos.push(column.info.pages[page]);
                }
            }
        }
        if bytes > self.room() {
            return Ok(());
        }
        self.fetch(&places, &infos, bytes)
    }

    fn fetch(&mut self, places: &[(u64, ColumnId, usize)], infos: &[PageInfo], bytes: u64) -> Result<()> {
        self.memory.take(bytes, "sealed pages")?;
        for (&(cluster, id, page), bytes) in places.iter().zip(self.source.fetch(infos)?) {
            if let Some(slot) = self.columns.get_mut(&(cluster, id)).and_then(|column| column.bytes.get_mut(page)) {
                *slot = Some(bytes);
            }
        }
        Ok(())
    }

    /// Fetches the first of the touched pages, and with it as many of the others as there is room for.
    fn fetch_run(&mut self, field: &Field, touches: &[Touch]) -> Result<()> {
        let room = self.room();
        let (mut places, mut infos, mut bytes) = (Vec::new(), Vec::new(), 0u64);
        for touch in touches {
            let Some(column) = self.columns.get(&(touch.cluster.number, touch.column)) else { continue };
            if column.bytes[touch.page].is_some() {
                continue;
            }
            let info = column.info.pages[touch.page];
            let place = self.source.page_range(&info);
            let place = place.map_err(|e| self.named(field, column.within(&touch.cluster, touch.page, e)))?;
            if !places.is_empty() && bytes + (place.end - place.start) > room {
                break;
            }
            bytes += place.end - place.start;
            places.push((touch.cluster.number, touch.column, touch.page));
            infos.push(info);
        }
        self.fetch(&places, &infos, bytes).map_err(|e| self.named(field, e))
    }

    /// The `k`-th column of a field in a cluster.
    fn column(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<Option<&Column>> {
        let id = self.primary(field, k, cluster).map_err(|e| self.named(field, e))?;
        Ok(id.and_then(|id| self.columns.get(&(cluster.number, id))))
    }

    /// Stored bytes of the `k`-th column of a field in a whole cluster. A page that is nowhere counts for nothing: it
    /// hurts when it is wanted.
    pub(crate) fn stored_bytes(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<u64> {
        let source = self.source;
        let Some(column) = self.column(field, k, cluster)? else { return Ok(0) };
        let ranges = column.info.pages.iter().filter_map(|page| source.page_range(page).ok());
        Ok(ranges.map(|range| range.end - range.start).sum())
    }

    /// Compression setting of the `k`-th column of a field in a cluster; 0 is none.
    pub(crate) fn compression(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<u32> {
        Ok(self.column(field, k, cluster)?.map_or(0, |column| column.info.compression))
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

    /// The parts of pages that hold elements of the segments, in order.
    fn touches(&mut self, field: &Field, k: usize, segments: &[Segment]) -> Result<Vec<Touch>> {
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
                let (cluster, skip, take) = (segment.cluster, from - first, until - from);
                touches.push(Touch { cluster, column: column.id, page, skip, take, to });
                to += take;
            }
        }
        Ok(touches)
    }

    /// Visits all parts of pages that hold elements of the segments, in order, at most one segment a cluster; their
    /// bytes are given up then. Elements that are not stored, because
    /// the column was added later, are left out: the output is expected to be zero there.
    pub(crate) fn visit(
        &mut self,
        field: &Field,
        k: usize,
        segments: &[Segment],
        mut visit: impl FnMut(Piece<'_>) -> Result<()>,
    ) -> Result<()> {
        let touches = self.touches(field, k, segments)?;
        // A page of which only a part is wanted is decoded beside the output.
        let mut spare = 0;
        for (index, touch) in touches.iter().enumerate() {
            let key = (touch.cluster.number, touch.column);
            if self.columns.get(&key).is_some_and(|column| column.bytes[touch.page].is_none()) {
                self.fetch_run(field, &touches[index..])?;
            }
            let Some(column) = self.columns.get_mut(&key) else { continue };
            let info = column.info.pages[touch.page];
            let sealed = column.bytes[touch.page].take();
            let (source, memory, scratch) = (self.source, &mut self.memory, &mut self.scratch);
            let mut piece = || {
                let sealed = sealed.as_ref().ok_or_else(|| Error::corrupt("the page is wanted twice"))?;
                let elements = u64::from(info.elements);
                let packed_bytes = column.encoding.packed_bytes(elements).unwrap_or(u64::MAX);
                if packed_bytes > sealed.len() as u64 {
                    make_room(scratch, packed_bytes, memory)?;
                }
                if touch.take < elements {
                    let decoded = elements * decoded_width(&column.encoding);
                    memory.take(decoded.saturating_sub(spare), "a page of which a part is wanted")?;
                    spare = spare.max(decoded);
                }
                let packed = source.unseal(&info, &column.encoding, sealed, scratch)?;
                visit(Piece {
                    encoding: &column.encoding,
                    packed,
                    elements: info.elements as usize,
                    skip: touch.skip as usize,
                    take: touch.take as usize,
                    to: touch.to as usize,
                })
            };
            let outcome = piece();
            let sealed_bytes = sealed.map_or(0, |sealed| sealed.len() as u64);
            if let Err(error) = outcome {
                let error = column.within(&touch.cluster, touch.page, error);
                return Err(self.named(field, error));
            }
            self.memory.give(sealed_bytes);
        }
        self.memory.give(spare);
        Ok(())
    }
}

/// Room for an unpacked page, exactly, without the old and the new one at a time.
fn make_room(scratch: &mut Vec<u8>, bytes: u64, memory: &mut Request) -> Result<()> {
    let before = scratch.capacity() as u64;
    if bytes > before {
        memory.give(before);
        *scratch = Vec::new();
        memory.take(bytes, "a page")?;
        let failed = |_| Error::limit(format!("no memory for a page of {bytes} bytes"));
        scratch.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(failed)?;
    }
    Ok(())
}

/// Bytes of one element in memory, of the widest way to decode it.
fn decoded_width(encoding: &Encoding) -> u64 {
    match encoding.column_type() {
        ColumnType::Bit => 0,
        ColumnType::Switch => 12,
        ColumnType::Byte | ColumnType::Char | ColumnType::Int8 | ColumnType::UInt8 => 1,
        _ => 8,
    }
}
