//! From element ranges of a column to the pages that hold them.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use tupelo_format::descriptor::{ColumnId, Descriptor, FieldId};
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::envelope::{ColumnPages, FeatureFlags, PageInfo};

use tupelo_format::checksum::CHECKSUM_BYTES;

use super::scratch::{sized, with_scratch};
use super::{Cluster, PAGE_MEMORY, PageSource, Request, packed_bytes};
use crate::schema::{Field, Kind, Primitive};
use crate::{Error, Result};

/// Pages that are read at once, in bytes: together with one that is unpacked they stay in a core's own cache.
const RUN_BYTES: u64 = 256 << 10;
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
                self.check_deferred(column, &segment.cluster, total, missing)?;
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

    /// Sees to it that the first pages are at hand, as many as there is room for: they are fetched unless the source is
    /// near. Gives their number.
    pub(crate) fn provide(&mut self, field: &Field, touches: &[Touch]) -> Result<usize> {
        let is_there = |pages: &Self, touch: &Touch| {
            pages.column_of(touch).is_none_or(|column| {
                column.bytes[touch.page].is_some() || pages.source.is_near(&column.info.pages[touch.page])
            })
        };
        if !touches.first().is_none_or(|touch| is_there(self, touch)) {
            self.fetch_run(field, touches)?;
        }
        Ok(touches.iter().take_while(|touch| is_there(self, touch)).count())
    }

    /// Gives up pages that were fetched.
    pub(crate) fn release(&mut self, touches: &[Touch]) {
        for touch in touches {
            let key = (touch.cluster.number, touch.column);
            let slot = self.columns.get_mut(&key).and_then(|column| column.bytes.get_mut(touch.page));
            if let Some(bytes) = slot.and_then(Option::take) {
                self.memory.give(bytes.len() as u64);
            }
        }
    }

    fn column_of(&self, touch: &Touch) -> Option<&Column> {
        self.columns.get(&(touch.cluster.number, touch.column))
    }

    /// Touches in runs: pages of one column that lie side by side in the file and are small enough to be read at once, or
    /// one page. What is taken of one page stays together.
    pub(crate) fn runs<'t>(&self, mut touches: &'t [Touch]) -> Vec<&'t [Touch]> {
        let mut runs = Vec::new();
        while !touches.is_empty() {
            let (run, others) = touches.split_at(self.run_end(touches));
            runs.push(run);
            touches = others;
        }
        runs
    }

    /// Where the next run ends.
    fn run_end(&self, touches: &[Touch]) -> usize {
        let Some((column, first)) = touches.first().and_then(|first| Some((self.column_of(first)?, first))) else {
            return touches.len();
        };
        let place = |touch: &Touch| self.source.page_range(&column.info.pages[touch.page]).unwrap_or(0..0);
        let (mut last, mut until, start) = (first, place(first).end, place(first).start);
        for (index, touch) in touches.iter().enumerate().skip(1) {
            if touch.cluster.number != first.cluster.number || touch.column != first.column {
                return index;
            }
            if touch.page != last.page {
                let place = place(touch);
                let is_other = column.bytes[touch.page].is_some() != column.bytes[first.page].is_some();
                if is_other || place.start != until || place.end - start > RUN_BYTES {
                    return index;
                }
                until = place.end;
            }
            last = touch;
        }
        touches.len()
    }

    /// Reads, compares and decompresses the pages of a run, one after the other. `decode` is given what is wanted of one
    /// page (once, or several parts), its encoding, the number of its elements, and the page.
    pub(crate) fn unseal(
        &self,
        field: &Field,
        run: &[Touch],
        mut decode: impl FnMut(&[Touch], &Encoding, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(column) = run.first().and_then(|touch| self.column_of(touch)) else { return Ok(()) };
        let within = |touch: &Touch, e: Error| self.named(field, column.within(&touch.cluster, touch.page, e));
        with_scratch(|scratch| {
            let sealed = self.read_run(column, run, &mut scratch.sealed).map_err(|e| within(&run[0], e))?;
            let mut at = 0;
            for touches in run.chunk_by(|a, b| a.page == b.page) {
                let page = touches[0].page;
                let info = &column.info.pages[page];
                let mut unseal = || {
                    let sealed = match &column.bytes[page] {
                        Some(bytes) => bytes,
                        None => {
                            let place = self.source.page_range(info)?;
                            let from = at;
                            at += (place.end - place.start) as usize;
                            sealed.get(from..at).ok_or_else(|| Error::corrupt("the page was not read"))?
                        }
                    };
                    let elements = info.elements as usize;
                    let packed_bytes = column.encoding.packed_bytes(elements as u64).unwrap_or(u64::MAX);
                    let is_packed = packed_bytes > sealed.len() as u64;
                    // A page of which only a part is wanted is decoded beside the output.
                    let beside = match touches {
                        [touch] if touch.take == elements => 0,
                        _ => elements as u64 * decoded_width(&column.encoding),
                    };
                    let _room = self.memory.hold(if is_packed { packed_bytes } else { 0 }, "a page")?;
                    let _beside = self.memory.hold(beside, "a page of which a part is wanted")?;
                    let counters = self.source.counters();
                    let packed = counters.decompress(sealed.len(), packed_bytes, || {
                        self.source.unseal(info, &column.encoding, sealed, &mut scratch.packed)
                    })?;
                    counters.decode(|| decode(touches, &column.encoding, elements, packed))
                };
                unseal().map_err(|e| within(&touches[0], e))?;
            }
            Ok(())
        })
    }

    /// The bytes of a run of pages that were not fetched.
    fn read_run<'r>(&self, column: &Column, run: &[Touch], room: &'r mut Vec<u8>) -> Result<&'r [u8]> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok(&[]) };
        if column.bytes[first.page].is_some() {
            return Ok(&[]);
        }
        let start = self.source.page_range(&column.info.pages[first.page])?.start;
        let end = self.source.page_range(&column.info.pages[last.page])?.end;
        let _room = self.memory.hold(end.saturating_sub(start), "sealed pages")?;
        let sealed = sized(room, end.saturating_sub(start))?;
        self.source.read_into(start, &mut [sealed])?;
        Ok(sealed)
    }

    /// Reads the pages of a run straight into their place in the output, where they are stored as they are in memory and
    /// are wanted whole; `false` where they are not.
    pub(crate) fn read_plain(&self, field: &Field, run: &[Touch], width: usize, out: &mut [u8]) -> Result<bool> {
        let Some(column) = run.first().and_then(|touch| self.column_of(touch)) else { return Ok(true) };
        let page = |touch: &Touch| &column.info.pages[touch.page];
        let is_plain = |touch: &Touch| {
            let stored = page(touch).locator.in_file().map(|(_, bytes)| bytes);
            column.bytes[touch.page].is_none()
                && touch.take == page(touch).elements as usize
                && stored.is_ok_and(|stored| stored == (touch.take * width) as u64)
        };
        // Segments may share an element, and so take a small page whole twice.
        let is_once = run.windows(2).all(|pair| pair[0].page != pair[1].page);
        if !is_once
            || !column.encoding.is_plain()
            || usize::from(column.encoding.bits()) != 8 * width
            || !run.iter().all(is_plain)
        {
            return Ok(false);
        }
        let within = |touch: &Touch, e: Error| self.named(field, column.within(&touch.cluster, touch.page, e));
        let mut checksums = vec![[0; CHECKSUM_BYTES]; run.len()];
        let (mut rest, mut pieces) = (&mut *out, Vec::with_capacity(2 * run.len()));
        for (touch, checksum) in run.iter().zip(&mut checksums) {
            let (mine, others) = rest.split_at_mut(touch.take * width);
            rest = others;
            pieces.push(mine);
            if page(touch).has_checksum {
                pieces.push(checksum);
            }
        }
        let start = self.source.page_range(page(&run[0])).map_err(|e| within(&run[0], e))?.start;
        self.source.read_into(start, &mut pieces).map_err(|e| within(&run[0], e))?;
        let mut rest = &*out;
        for (touch, checksum) in run.iter().zip(checksums) {
            let (mine, others) = rest.split_at(touch.take * width);
            rest = others;
            let checksum = page(touch).has_checksum.then_some(&checksum);
            let sealed_bytes = mine.len() + if checksum.is_some() { CHECKSUM_BYTES } else { 0 };
            self.source
                .counters()
                .decompress(sealed_bytes, mine.len() as u64, || self.source.compare(page(touch), mine, checksum))
                .map_err(|e| within(touch, e))?;
        }
        Ok(true)
    }
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
