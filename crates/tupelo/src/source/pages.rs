//! From element ranges of a column to unsealed pages.

use std::collections::HashMap;

use bytes::Bytes;
use tupelo_format::descriptor::{ColumnId, FieldId};
use tupelo_format::encoding::Encoding;
use tupelo_format::envelope::{ColumnPages, FeatureFlags, PageInfo};

use super::{Cluster, PageSource, packed_bytes};
use crate::schema::{Field, Kind, Primitive};
use crate::{Error, Result};

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

/// Gives out the pages of one reading request.
pub(crate) struct Pages<'s> {
    source: &'s PageSource,
    /// By cluster and column.
    columns: HashMap<(u64, ColumnId), Column>,
    /// Which column is the `k`-th of a field in a cluster; `None` where the cluster is older than the field.
    primary: HashMap<(u64, FieldId, usize), Option<ColumnId>>,
    scratch: Vec<u8>,
}

impl<'s> Pages<'s> {
    pub(crate) fn new(source: &'s PageSource) -> Self {
        Self { source, columns: HashMap::new(), primary: HashMap::new(), scratch: Vec::new() }
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
            for page in Self::touched(column, need.start, need.end) {
                let info = &column.info.pages[page];
                let place = info.locator.in_file().map_err(Error::from);
                let fits = place.and_then(|(_, stored_bytes)| packed_bytes(info, stored_bytes, &column.encoding));
                fits.map_err(|e| self.named(field, column.within(&segment.cluster, page, e)))?;
            }
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

    /// Fetches what is not there yet of all pages that the segments touch, in one go.
    pub(crate) fn prefetch<'f>(&mut self, wanted: impl Iterator<Item = (&'f Field, usize, Segment)>) -> Result<()> {
        let mut places: Vec<(u64, ColumnId, usize)> = Vec::new();
        let mut infos: Vec<PageInfo> = Vec::new();
        for (field, k, segment) in wanted {
            let (id, stored, missing) = self.extent(field, k, &segment).map_err(|e| self.named(field, e))?;
            let Some(column) = id.and_then(|id| self.columns.get(&(segment.cluster.number, id))) else { continue };
            let start = segment.start.saturating_sub(missing);
            let end = (segment.start + segment.count).saturating_sub(missing).min(stored);
            for page in Self::touched(column, start, end) {
                if column.bytes[page].is_none() {
                    let place = self.source.page_range(&column.info.pages[page]);
                    place.map_err(|e| self.named(field, column.within(&segment.cluster, page, e)))?;
                    places.push((segment.cluster.number, column.id, page));
                    infos.push(column.info.pages[page]);
                }
            }
        }
        let fetched = self.source.fetch(&infos)?;
        for ((cluster, id, page), bytes) in places.into_iter().zip(fetched) {
            if let Some(slot) = self.columns.get_mut(&(cluster, id)).and_then(|column| column.bytes.get_mut(page)) {
                *slot = Some(bytes);
            }
        }
        Ok(())
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
        self.prefetch(segments.iter().map(|segment| (field, k, *segment)))?;
        let mut to = 0usize;
        for segment in segments {
            let base = to;
            to += segment.count as usize;
            let Some(need) = self.need(field, k, segment).map_err(|e| self.named(field, e))? else { continue };
            let Some(column) = self.columns.get_mut(&(segment.cluster.number, need.column)) else { continue };
            let mut to = base + need.zeros as usize;
            for page in Self::touched(column, need.start, need.end) {
                let info = column.info.pages[page];
                let (first, next) = (column.starts[page], column.starts[page + 1]);
                let (from, until) = (need.start.max(first), need.end.min(next));
                if from >= until {
                    continue;
                }
                let take = (until - from) as usize;
                let sealed = column.bytes[page].take();
                let mut piece = || {
                    let sealed = sealed.as_ref().ok_or_else(|| Error::corrupt("the page is wanted twice"))?;
                    let packed = self.source.unseal(&info, &column.encoding, sealed, &mut self.scratch)?;
                    visit(Piece {
                        encoding: &column.encoding,
                        packed,
                        elements: info.elements as usize,
                        skip: (from - first) as usize,
                        take,
                        to,
                    })
                };
                if let Err(error) = piece() {
                    let error = column.within(&segment.cluster, page, error);
                    return Err(self.named(field, error));
                }
                to += take;
            }
        }
        Ok(())
    }
}
