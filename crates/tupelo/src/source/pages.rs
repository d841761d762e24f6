//! From element ranges of a column to unsealed pages.

use std::collections::HashMap;

use bytes::Bytes;
use tupelo_format::descriptor::{ColumnId, FieldId};
use tupelo_format::encoding::Encoding;
use tupelo_format::envelope::{ColumnPages, PageInfo};

use super::{Cluster, PageSource};
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

/// The pages of a field's column in one cluster.
struct Column {
    id: ColumnId,
    encoding: Encoding,
    info: ColumnPages,
    /// Index of each page's first element in the cluster, and the end.
    starts: Vec<u64>,
    bytes: Vec<Option<Bytes>>,
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
        let mut found = None;
        let representations = &self.source.descriptor().field(id)?.representations;
        for columns in representations {
            let Some(&column) = columns.get(k) else { continue };
            let Some(pages) = self.source.column_pages(cluster, column)? else { continue };
            if pages.first_element.is_none() {
                continue;
            }
            if found.is_some() {
                return Err(Error::corrupt(format!("cluster {} stores two representations", cluster.number)));
            }
            found = Some(column);
            self.insert(cluster, column, pages)?;
        }
        if found.is_none() {
            let known = |columns: &Vec<ColumnId>| {
                columns
                    .get(k)
                    .map(|&id| self.source.descriptor().column(id))
                    .transpose()
                    .map(|c| c.is_some_and(|c| !c.in_extension))
            };
            for columns in representations {
                if known(columns)? {
                    return Err(Error::corrupt(format!("cluster {} stores no representation", cluster.number)));
                }
            }
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
        let missing = match segment.total {
            Some(total) if self.source.descriptor().column(id)?.is_deferred() => {
                total.checked_sub(stored).ok_or_else(|| {
                    Error::corrupt(format!(
                        "column {id} has {stored} elements in cluster {}, not {total}",
                        segment.cluster.number
                    ))
                })?
            }
            _ => 0,
        };
        Ok((Some(id), stored, missing))
    }

    /// The pages of a column that hold elements of a stored range.
    fn touched(column: &Column, start: u64, end: u64) -> std::ops::Range<usize> {
        let first = column.starts.partition_point(|&s| s <= start).saturating_sub(1);
        let last = column.starts.partition_point(|&s| s < end).min(column.info.pages.len());
        first..last.max(first)
    }

    /// Fetches what is not there yet of all pages that the segments touch, in one go.
    pub(crate) fn prefetch<'f>(&mut self, wanted: impl Iterator<Item = (&'f Field, usize, Segment)>) -> Result<()> {
        let mut places: Vec<(u64, ColumnId, usize)> = Vec::new();
        let mut infos: Vec<PageInfo> = Vec::new();
        for (field, k, segment) in wanted {
            let (Some(id), stored, missing) = self.extent(field, k, &segment)? else { continue };
            let start = segment.start.saturating_sub(missing);
            let end = (segment.start + segment.count).saturating_sub(missing).min(stored);
            let Some(column) = self.columns.get(&(segment.cluster.number, id)) else { continue };
            if start >= end {
                continue;
            }
            for page in Self::touched(column, start, end) {
                if column.bytes[page].is_none() {
                    self.source.page_range(&column.info.pages[page]).map_err(|e| {
                        e.within(format!("column {id}, cluster {}, page {page}", segment.cluster.number))
                            .within(format!("field '{}'", field.name))
                    })?;
                    places.push((segment.cluster.number, id, page));
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

    /// Stored bytes and elements of the `k`-th column of a field in a whole cluster.
    pub(crate) fn stored_bytes(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<u64> {
        let Some(id) = self.primary(field, k, cluster)? else { return Ok(0) };
        let Some(column) = self.columns.get(&(cluster.number, id)) else { return Ok(0) };
        column.info.pages.iter().map(|page| self.source.page_range(page).map(|r| r.end - r.start)).sum()
    }

    /// Compression setting of the `k`-th column of a field in a cluster; 0 is none.
    pub(crate) fn compression(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<u32> {
        let Some(id) = self.primary(field, k, cluster)? else { return Ok(0) };
        Ok(self.columns.get(&(cluster.number, id)).map_or(0, |column| column.info.compression))
    }

    /// What the `k`-th column of a field in a whole cluster takes in memory once decoded, in bytes.
    pub(crate) fn unpacked_bytes(&mut self, field: &Field, k: usize, cluster: &Cluster) -> Result<f64> {
        let Some(id) = self.primary(field, k, cluster)? else { return Ok(0.0) };
        let Some(column) = self.columns.get(&(cluster.number, id)) else { return Ok(0.0) };
        let column_type = column.encoding.column_type();
        let bits = match &field.kind {
            Kind::Primitive(Primitive::Double) => 64,
            Kind::Primitive(Primitive::Float) => 32,
            _ if column_type.is_index() => 64,
            _ => u32::from(column.encoding.bits()),
        };
        Ok(column.info.elements() as f64 * f64::from(bits) / 8.0)
    }

    /// Visits all parts of pages that hold elements of the segments, in order. Elements that are not stored, because
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
            let (id, stored, missing) = self.extent(field, k, segment)?;
            let Some(id) = id else { continue };
            let end = (segment.start + segment.count).saturating_sub(missing);
            if segment.count > 0 && end > stored {
                return Err(Error::corrupt(format!(
                    "column {id} has {stored} elements in cluster {}, but element {} is needed",
                    segment.cluster.number,
                    end - 1
                )));
            }
            // Of a deferred column the first `missing` elements are zeros that nobody stored.
            let zeros = missing.saturating_sub(segment.start).min(segment.count);
            let start = (segment.start + zeros).saturating_sub(missing);
            if start >= end {
                continue;
            }
            let Some(column) = self.columns.get_mut(&(segment.cluster.number, id)) else { continue };
            let mut to = base + zeros as usize;
            for page in Self::touched(column, start, end) {
                let info = column.info.pages[page];
                let (first, next) = (column.starts[page], column.starts[page + 1]);
                let (from, until) = (start.max(first), end.min(next));
                let Some(sealed) = column.bytes[page].clone() else { continue };
                let take = (until - from) as usize;
                let mut piece = || {
                    let packed = self.source.unseal(&info, &column.encoding, &sealed, &mut self.scratch)?;
                    visit(Piece {
                        encoding: &column.encoding,
                        packed,
                        elements: info.elements as usize,
                        skip: (from - first) as usize,
                        take,
                        to,
                    })
                };
                piece().map_err(|e| {
                    e.within(format!(
                        "column {} ({}), cluster {}, page {page} ({})",
                        column.id,
                        column.encoding.column_type().name(),
                        segment.cluster.number,
                        info.locator
                    ))
                })?;
                // Each page is used once, but for those at the seams of batches.
                column.bytes[page] = None;
                to += take;
            }
        }
        Ok(())
    }
}
